"""A bar where work takes long: on a terminal or in a notebook, and not before two seconds have passed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

PATIENCE = 2.0  # seconds without a bar
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silent(quiet: bool = True) -> Iterator[None]:
    """Show no bar within the block, if ``quiet``."""
    token = _SILENT.set(quiet or _SILENT.get())
    try:
        yield
    finally:
        _SILENT.reset(token)


def with_bar(
    done: Iterable[Any], total: float | None, words: str, *, size: Callable[[Any], float] = lambda _: 1
) -> Iterator[Any]:
    """Yield what ``done`` yields, and show on standard error how much of ``total`` there was.

    Parameters
    ----------
    done : iterable
        Results, one for each part of the work, made when asked for.
    total : float or None
        How much there will be; None if nobody knows.
    words : str
        What the bar says.
    size : callable, default=1 for each
        How much of the total a result is.
    """
    started, bar, amount = time.monotonic(), None, 0.0
    try:
        for result in done:
            amount += size(result)
            if bar is None and time.monotonic() - started > PATIENCE and _can_be_seen():
                bar = _Bar(words, total)
            if bar is not None:
                bar.show(amount)
            yield result
    finally:
        if bar is not None:
            bar.stop()


def _can_be_seen() -> bool:
    """Tell whether a bar would be drawn over, not written into a file; rich needs ipywidgets for that in a notebook."""
    if _SILENT.get():
        return False
    return sys.stderr.isatty() or ("ipykernel" in sys.modules and find_spec("ipywidgets") is not None)


class _Bar:
    """A bar of rich on standard error; silent where rich is not installed (it comes with typer)."""

    def __init__(self, words: str, total: float | None) -> None:
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            self._progress: Any = None
            return
        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(words, total=total)
        self._progress.start()

    def show(self, completed: float) -> None:
        """Draw the bar anew."""
        if self._progress is not None:
            self._progress.update(self._task, completed=completed)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
