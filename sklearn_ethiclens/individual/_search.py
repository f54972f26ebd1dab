"""The exact k nearest rows, ties included, of any number of rows in memory that grows with the rows.

Trees visit most points in ten dimensions, and an n x n matrix is slow because it is written, read and sorted. This search
compares blocks of rows that lie close together (in the order of a scikit-learn ``KDTree``) with whatever is not ruled out:

1. the bounding box of a block gives a lower bound of the distance to every row, cheaply;
2. the rows with the lowest bounds give an upper bound of the k-th distance;
3. all rows whose lower bound is below it are compared in single precision, with an allowance for rounding;
4. the few that remain are measured again in double precision, pair by pair, and sorted.

So the result does not depend on blocks, tiles, threads or the linear algebra library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from sklearn_ethiclens.individual._blocks import in_blocks
from sklearn_ethiclens.individual._features import Space

BLOCK_ROWS = 128
_FIRST_TILE = 256
_TILE = 2048
_TIED = 1e-12  # relative; distances this close to the k-th are kept
_ROUNDING = 2.4e-7  # of single precision, twice
_COARSE = 0.2  # of the distances sought: a grid is used whose rounding is below it
_MAX_FOUND = 1 << 20  # candidates held by a block before they are measured and cut
_ONE_HOT_LEVELS = 12
_LARGEST_STEP = 32_000  # of 16 bits

Integers = NDArray[np.intp]


class Neighbours(NamedTuple):
    """Neighbours of a block of rows: those of ``rows[i]`` are ``found[bounds[i]:bounds[i + 1]]``, nearest first.

    The k nearest, and all others at the distance of the last.
    """

    rows: Integers
    bounds: Integers
    found: Integers
    distance: NDArray[np.float64]

    @property
    def owner(self) -> Integers:
        """For each neighbour, the position in ``rows`` of the row it belongs to."""
        return np.repeat(np.arange(self.rows.size), np.diff(self.bounds))


def ranges(starts: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """Return the numbers ``start, ..., start + size - 1`` of each range, one after another, and the range of each.

    Examples
    --------
    >>> import numpy as np
    >>> [part.tolist() for part in ranges(np.array([5, 1]), np.array([2, 3]))]
    [[5, 6, 1, 2, 3], [0, 0, 1, 1, 1]]
    """
    of = np.repeat(np.arange(sizes.size), sizes)
    return np.arange(of.size) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), of


def nearby_order(space: Space) -> Integers:
    """Return the rows in an order where neighbours in the order lie close together; it matters for speed only."""
    columns = [np.nan_to_num(values) for values in space.numeric]
    spread = max([float(np.ptp(values)) for values in columns], default=1.0) or 1.0
    for codes in space.codes:
        frequent = np.argsort(-np.bincount(codes + 1), kind="stable")[:_ONE_HOT_LEVELS]
        columns += [2 * spread * (codes + 1 == level) for level in frequent]
    points = np.array(columns).T
    from sklearn.neighbors import KDTree

    return np.asarray(KDTree(points, leaf_size=BLOCK_ROWS // 2).get_arrays()[1], dtype=np.intp)


def nearest(
    space: Space,
    rows: Integers,
    pool: Integers,
    k: int,
    consume: Callable[[Neighbours], Any],
    *,
    limit: float = np.inf,
    n_jobs: int | None = None,
    verbose: int = 0,
    words: str = "neighbours",
) -> Iterator[Any]:
    """Yield what ``consume`` makes of the k nearest rows of each block of rows.

    Parameters
    ----------
    space : Space
        The rows and their distance.
    rows : ndarray of int
        Whose neighbours are sought, in an order where neighbours lie close together.
    pool : ndarray of int
        Where they are sought. A row is no neighbour of itself.
    k : int
        How many; fewer are found where the pool or ``limit`` leaves fewer.
    consume : callable
        Called in threads with the :class:`Neighbours` of each block.
    limit : float
        Only rows at most this far away are found.
    n_jobs, verbose, words
        See :func:`in_blocks`.
    """
    found_in = _Pool(space, pool)
    blocks = [rows[start : start + BLOCK_ROWS] for start in range(0, rows.size, BLOCK_ROWS)]

    def work(block: Integers) -> Any:
        return consume(_search(found_in, block, k, limit))

    with threadpool_limits(1, user_api="blas"):  # the products are small, and the threads are ours
        yield from in_blocks(work, blocks, n_jobs=n_jobs, verbose=verbose, words=words)


def _search(pool: _Pool, rows: Integers, k: int, limit: float) -> Neighbours:
    query = pool.query(rows)
    bounds = pool.lower_bounds(query)
    reach = np.full(rows.size, pool.to_units(limit))  # no neighbour is farther, in units
    near = np.flatnonzero(bounds <= reach[0])
    rest = near[:0]
    if near.size > _FIRST_TILE:
        near = near[np.argpartition(bounds[near], _FIRST_TILE)]
        near, rest = near[:_FIRST_TILE], near[_FIRST_TILE:]
    own, other, lengths = [], [], []

    def keep(row: Integers, columns: Integers, units: NDArray[Any] | None) -> None:
        candidate = pool.members[columns]
        different = candidate != rows[row]
        row, candidate = row[different], candidate[different]
        own.append(row)
        other.append(candidate)
        lengths.append(pool.space.between(rows[row], candidate) if units is None else units[different])

    def compare(columns: Integers, units: NDArray[Any], allowance: float) -> None:
        at = np.flatnonzero(units <= (reach * (1 + _TIED) + allowance).astype(units.dtype)[:, None])
        row, column = np.divmod(at, columns.size)
        keep(row, columns[column], units.ravel()[at] if pool.space.function else None)

    if near.size:
        units, allowance = pool.units(query, near)
        if near.size > k:
            # The row itself may be among them, at distance 0: one more is looked at.
            reach = np.minimum(reach, np.partition(units, k, axis=1)[:, k] + allowance)
        compare(near, units, allowance)
    if rest.size:
        rest = rest[bounds[rest] <= reach.max()]
    grid = pool.grid
    coarse = grid is not None and grid.allowance < _COARSE * float(np.median(reach))
    for start in range(0, rest.size, _TILE):
        columns = rest[start : start + _TILE]
        if coarse and grid is not None:
            row, column = grid.within(query, columns, reach)
            keep(row, columns[column], None)
        else:
            compare(columns, *pool.units(query, columns))
        if sum(map(len, own)) > _MAX_FOUND:
            kept = _k_nearest(rows, own, other, lengths, k, limit)
            own, other, lengths = [kept.owner], [kept.found], [kept.distance]
    return _k_nearest(rows, own, other, lengths, k, limit)


def _k_nearest(
    rows: Integers, own: list[Any], other: list[Any], lengths: list[Any], k: int, limit: float
) -> Neighbours:
    if not own:
        empty = np.empty(0, dtype=np.intp)
        return Neighbours(rows, np.zeros(rows.size + 1, dtype=np.intp), empty, np.empty(0))
    row, found, distance = np.concatenate(own), np.concatenate(other), np.concatenate(lengths)
    order = np.lexsort((found, distance, row))
    row, found, distance = row[order], found[order], distance[order]
    starts = np.searchsorted(row, np.arange(rows.size + 1))
    last = np.minimum(starts[:-1] + k, starts[1:]) - 1
    cut = np.full(rows.size, -1.0)
    cut[np.diff(starts) > 0] = distance[last[np.diff(starts) > 0]]
    kept = (distance <= (cut * (1 + _TIED))[row]) & (distance <= limit) & np.isfinite(distance)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=rows.size))])
    return Neighbours(rows, bounds.astype(np.intp), found[kept], distance[kept])


@dataclass(frozen=True, eq=False)
class _Query:
    """A block of rows in single precision, with its bounding box."""

    rows: Integers
    numeric: NDArray[np.float32]  # (n_numeric, n_rows)
    present: NDArray[np.bool_] | None
    codes: NDArray[np.int32]
    box_low: NDArray[np.float32]
    box_high: NDArray[np.float32]


class _Pool:
    """The rows that are searched, in single precision. Lengths are in *units*: sums over features, not yet divided or rooted."""

    def __init__(self, space: Space, members: Integers) -> None:
        self.space = space
        self.members = members
        everything = space.numeric[:, members]
        self.present = ~np.isnan(everything) if space.missing and len(everything) else None
        self.numeric = np.nan_to_num(everything).astype(np.float32)
        self.codes = space.codes[:, members]
        self.grid = _Grid.of(space, members)
        self.largest = float(np.abs(np.nan_to_num(space.numeric)).max(initial=0.0))

    def query(self, rows: Integers) -> _Query:
        """Return a block of rows with its bounding box."""
        values = self.space.numeric[:, rows]
        present = ~np.isnan(values) if self.space.missing and len(values) else None
        numeric = np.nan_to_num(values).astype(np.float32)
        return _Query(rows, numeric, present, self.space.codes[:, rows], numeric.min(axis=1), numeric.max(axis=1))

    def to_units(self, distance: float) -> float:
        """Return a distance in units."""
        if self.space.function or not np.isfinite(distance):
            return float(distance)
        if self.space.power == 2:
            return float(distance) ** 2
        return float(distance) * self.space.n_features

    def lower_bounds(self, query: _Query) -> NDArray[np.float32]:
        """Return a lower bound, in units, of the distance of each member to any row of the block."""
        bounds = np.zeros(self.members.size, dtype=np.float32)
        if self.space.function:
            return bounds
        for j, values in enumerate(self.numeric):
            if query.present is not None and not query.present[j].all():
                continue
            gap = np.maximum(values - query.box_high[j], query.box_low[j] - values)
            gap -= np.float32(_ROUNDING * self.largest)
            np.maximum(gap, 0, out=gap)
            if self.present is not None:
                gap *= self.present[j]
            if self.space.power == 2:
                gap *= gap
            bounds += gap
        for j, codes in enumerate(self.codes):
            if (query.codes[j] < 0).any():
                continue
            inside = np.zeros(max(codes.max(), query.codes[j].max()) + 2, dtype=bool)
            inside[query.codes[j] + 1] = True
            inside[0] = True  # missing in the member: no bound
            bounds += ~inside[codes + 1]
        bounds *= np.float32(1 - (self.space.n_features + 4) * _ROUNDING)
        return bounds

    def units(self, query: _Query, columns: Integers) -> tuple[NDArray[Any], float]:
        """Return the lengths between all rows of the block and some members, in units, and how far rounding may move them."""
        space = self.space
        if space.function:
            return space.block(query.rows, self.members[columns]), 0.0
        if space.power == 2:
            return self._squares(query, columns)
        total = np.zeros((query.rows.size, columns.size), dtype=np.float32)
        gap = np.empty_like(total)
        differs = np.empty(total.shape, dtype=bool)
        common = np.full(total.shape, space.n_features, dtype=np.float32) if space.missing else None
        for j, values in enumerate(self.numeric):
            np.subtract(query.numeric[j][:, None], values[columns], out=gap)
            np.abs(gap, out=gap)
            if common is not None and self.present is not None and query.present is not None:
                both = query.present[j][:, None] & self.present[j][columns]
                gap *= both
                common -= ~both
            total += gap
        for j, codes in enumerate(self.codes):
            ours, theirs = query.codes[j], codes[columns]
            if common is None and ours.min() == ours.max():
                total += theirs != ours[0]
                continue
            np.not_equal(ours[:, None], theirs, out=differs)
            if common is not None:
                both = (ours >= 0)[:, None] & (theirs >= 0)
                differs &= both
                common -= ~both
            total += differs
        if common is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                total *= space.n_features / common
            total[common == 0] = np.inf
        return total, (space.n_features + 4) * _ROUNDING * max(self.largest, 1.0)

    def _squares(self, query: _Query, columns: Integers) -> tuple[NDArray[np.float32], float]:
        """Return squared lengths by one matrix product, around the centre of the block so that little cancels.

        [-2 a, a.a, 1] . [b, 1, b.b] is (a - b).(a - b).
        """
        p = len(self.numeric)
        centre = query.numeric.mean(axis=1, dtype=np.float32)[:, None]
        ours = np.ones((p + 2, query.rows.size), dtype=np.float32)
        theirs = np.ones((p + 2, columns.size), dtype=np.float32)
        ours[:p] = query.numeric - centre
        theirs[:p] = self.numeric[:, columns] - centre
        ours[p] = np.einsum("ij,ij->j", ours[:p], ours[:p])
        theirs[p + 1] = np.einsum("ij,ij->j", theirs[:p], theirs[:p])
        ours[:p] *= -2
        # Of the sums, and of coordinates that were rounded before they were centred.
        squares = 4 * (float(ours[p].max()) + float(theirs[p + 1].max()))
        allowance = (p + 4) * (_ROUNDING * (squares + self.largest * squares**0.5) + (_ROUNDING * self.largest) ** 2)
        return ours.T @ theirs, allowance


@dataclass(frozen=True, eq=False)
class _Grid:
    """Gower's distance in whole steps of 16 bits, which ordinary processors add four times as fast as single precision.

    sum |a - b| = 2 sum max(a, b) - sum a - sum b saves a pass over the block for each feature.
    """

    space: Space
    values: NDArray[np.int16]  # (n_features on the grid, n_rows of the space)
    codes: NDArray[np.int16]  # (other categories, n_rows of the space)
    half: NDArray[np.int16]  # half the sum of the values of a row
    members: Integers
    steps: int  # in one unit

    @classmethod
    def of(cls, space: Space, members: Integers) -> _Grid | None:
        """Return the grid of a space without missing values; None where there is none that is of use."""
        if space.power != 1 or space.function or space.missing or not space.n_features:
            return None
        binary = [codes.max() <= 1 for codes in space.codes]
        columns = [values - values.min() for values in space.numeric]
        columns += [codes.astype(float) for codes, two in zip(space.codes, binary, strict=True) if two]
        others = [codes for codes, two in zip(space.codes, binary, strict=True) if not two]
        span = sum(float(values.max()) for values in columns) + len(others)
        if not 0 < span < _LARGEST_STEP / 64 or any(codes.max() > _LARGEST_STEP for codes in others):
            return None
        steps = int(_LARGEST_STEP / span)
        n_rows = space.numeric.shape[1]
        values = np.array([np.rint(column * steps) for column in columns], dtype=np.int16).reshape(len(columns), n_rows)
        half = (values.sum(axis=0, dtype=np.int64) // 2).astype(np.int16)
        codes = np.array(others, dtype=np.int16).reshape(len(others), n_rows)
        return cls(space, values, codes, half, members, steps)

    @property
    def allowance(self) -> float:
        """How far a length in units may be off."""
        return (self.space.n_features + 4) / self.steps

    def within(self, query: _Query, columns: Integers, reach: NDArray[Any]) -> tuple[Integers, Integers]:
        """Return (row of the block, position in columns) of all pairs that may be within reach."""
        members = self.members[columns]
        start = -self.half[members]
        total = np.empty((query.rows.size, columns.size), dtype=np.int16)
        higher = np.empty_like(total)
        mixed = []
        for codes in self.codes:
            ours, theirs = codes[query.rows], codes[members]
            if ours.min() == ours.max():
                start += (theirs != ours[0]) * np.int16(self.steps // 2)
            else:
                mixed.append((ours, theirs))
        total[:] = start
        for values in self.values:
            np.maximum(values[query.rows][:, None], values[members], out=higher)
            total += higher
        for ours, theirs in mixed:
            np.multiply(ours[:, None] != theirs, np.int16(self.steps // 2), out=higher)
            total += higher
        top = (reach * self.steps + self.space.n_features + 4) / 2 + self.half[query.rows]
        most = np.minimum(np.ceil(top), _LARGEST_STEP).astype(np.int16)
        row, column = np.divmod(np.flatnonzero(total <= most[:, None]), columns.size)
        return row, column
