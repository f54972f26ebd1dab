"""Work in blocks: the same calls in the same order for any number of workers, with a bar where it takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from sklearn_ethiclens._progress import with_bar


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
    return with_bar(done, len(blocks), words) if verbose else iter(done)
