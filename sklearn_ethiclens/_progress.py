"""A bar where work takes long: on a terminal only, and not before two seconds have passed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

PATIENCE = 2.0  # seconds without a bar


def with_bar(done: Iterable[Any], total: int, words: str) -> Iterator[Any]:
    """Yield what ``done`` yields, and show on standard error how many of ``total`` there were.

    Parameters
    ----------
    done : iterable
        Results, one for each part of the work, made when asked for.
    total : int
        How many there will be.
    words : str
        What the bar says.
    """
    started, bar = time.monotonic(), None
    try:
        for i, result in enumerate(done, start=1):
            if bar is None and time.monotonic() - started > PATIENCE and sys.stderr.isatty():
                bar = _Bar(words, total)
            if bar is not None:
                bar.show(i)
            yield result
    finally:
        if bar is not None:
            bar.stop()


class _Bar:
    """A bar of rich on standard error; silent where rich is not installed (it comes with typer)."""

    def __init__(self, words: str, total: int) -> None:
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            self._progress: Any = None
            return
        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(words, total=total)
        self._progress.start()

    def show(self, completed: int) -> None:
        """Draw the bar anew."""
        if self._progress is not None:
            self._progress.update(self._task, completed=completed)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
