"""Seeded draws for statistics of pairs of rows: pairs, pairs across groups, rows, and resampled means.

A statistic of n rows that looks at pairs has n (n - 1) / 2 of them. Where those are too many to look at, a million drawn
with a stated seed give shares and means of pairs with an error in the third digit, whatever n is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.intp]
Floats = NDArray[np.float64]

_BLOCK_VALUES = 1 << 17  # fits a cache


class Pairs(NamedTuple):
    """Pairs of row positions; all of the ``total`` there are if ``exact``, else drawn from them with replacement."""

    first: Integers
    second: Integers
    total: int
    exact: bool


def draw_pairs(n_rows: int, max_pairs: int, seed: int) -> Pairs:
    """Return all pairs of different rows, or ``max_pairs`` drawn uniformly where there are more.

    Parameters
    ----------
    n_rows : int
        At least 2.
    max_pairs : int
        Most pairs to return.
    seed : int
        Seed of the draw.

    Returns
    -------
    Pairs
    """
    total = n_rows * (n_rows - 1) // 2
    if total <= max_pairs:
        first, second = np.triu_indices(n_rows, 1)
        return Pairs(first, second, total, True)
    generator = _generator(seed)
    first = generator.integers(0, n_rows, max_pairs)
    second = generator.integers(0, n_rows - 1, max_pairs)
    second += second >= first
    return Pairs(first, second, total, False)


def draw_cross_pairs(groups: NDArray[Any], max_pairs: int, seed: int) -> Pairs:
    """Return all pairs of rows of different groups, or ``max_pairs`` drawn uniformly where there are more.

    Parameters
    ----------
    groups : ndarray of int of shape (n_rows,)
        Codes 0, 1, ...; at least two of them occur.
    max_pairs : int
        Most pairs to return.
    seed : int
        Seed of the draw.

    Returns
    -------
    Pairs
    """
    sizes = np.bincount(groups).astype(np.int64)
    n_rows, by_group = groups.size, np.argsort(groups, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    total = int((n_rows**2 - (sizes**2).sum()) // 2)
    if total <= max_pairs:
        # Every row with all rows of later groups.
        later = n_rows - (starts + sizes)[groups[by_group]]
        first = np.repeat(np.arange(n_rows), later)
        ends = np.cumsum(later)
        second = np.arange(total) - np.repeat(ends - later, later) + np.repeat(n_rows - later, later)
        return Pairs(by_group[first], by_group[second], total, True)
    # One number in [0, 2 total) names an ordered pair: the group, the row in it, the row among all others.
    ordered = np.cumsum(sizes * (n_rows - sizes))
    ticket = _generator(seed).integers(0, int(ordered[-1]), max_pairs)
    group = np.searchsorted(ordered, ticket, side="right")
    ticket -= np.concatenate([[0], ordered[:-1]])[group]
    row, other = np.divmod(ticket, n_rows - sizes[group])
    other += np.where(other >= starts[group], sizes[group], 0)
    return Pairs(by_group[starts[group] + row], by_group[other], total, False)


def draw_rows(n_rows: int, size: int | None, seed: int) -> Integers:
    """Return ``size`` row positions drawn without replacement, in ascending order; all of them if there are no more."""
    if size is None or size >= n_rows:
        return np.arange(n_rows)
    return np.sort(_generator(seed).choice(n_rows, size, replace=False, shuffle=False))


def resampled_means(values: NDArray[Any], n_resamples: int, seed: int) -> Floats:
    """Return the means of rows drawn with replacement, which do not depend on the order of the rows.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        One value a row.
    n_resamples : int
        Replicates.
    seed : int
        Seed.

    Returns
    -------
    ndarray of shape (n_resamples,)
    """
    ordered = np.sort(values)
    generator = _generator(seed)
    means = np.empty(n_resamples)
    block = max(1, _BLOCK_VALUES // ordered.size)
    for start in range(0, n_resamples, block):
        stop = min(start + block, n_resamples)
        chosen = generator.integers(0, ordered.size, (stop - start, ordered.size), dtype=np.intp)
        means[start:stop] = ordered.take(chosen).mean(axis=1)
    return means


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))
