"""Work in blocks: the same calls in the same order for any number of workers, with a bar where it takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

PATIENCE = 2.0  # seconds without a bar


def in_blocks(
    work: Callable[[Any], Any], blocks: Sequence[Any], *, n_jobs: int | None, verbose: int, words: str
) -> Iterator[Any]:
    """Yield ``work(block)`` of each block, in order, made by threads.

    Parameters
    ----------
    work : callable
        A function of one block that only reads what is shared.
    blocks : sequence
        What to call it with; the caller fixes them without a look at ``n_jobs``.
    n_jobs : int or None
        Threads, as in joblib.
    verbose : int
        0 is silent; else a bar on a terminal once two seconds have passed.
    words : str
        What the bar says.
    """
    if len(blocks) < 2 or effective_n_jobs(n_jobs) == 1:
        done = map(work, blocks)
    else:
        tasks = (delayed(work)(block) for block in blocks)
        done = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")(tasks)
    return _with_bar(done, len(blocks), words) if verbose else iter(done)


def _with_bar(done: Iterator[Any], total: int, words: str) -> Iterator[Any]:
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
