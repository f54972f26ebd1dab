"""Bootstrap and jackknife of a table of counts; percentile and BCa intervals. Knows counts, not rows and not metrics.

Rows are exchangeable within a cell of the table, so a bootstrap of n rows *is* one multinomial draw of n over the cells,
and leaving one row out has one value per cell, weighted by the cell's count. Both are exact, at a cost that does not
depend on n.

Rows with weights differ within a cell by their weight. A replicate then draws the numbers of rows first, and for each cell
the sum of so many weights drawn from its own: exactly where the weights are kept, and elsewhere from the gamma distribution
with the same mean and variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from sklearn_ethiclens._weights import CellWeights
from sklearn_ethiclens.inference._intervals import Interval, check_fraction

Floats = NDArray[np.float64]

METHODS = ("bca", "percentile")  # of the bootstrap; an audit can also choose "auto", by metric
STREAM = 1000  # replicates per random stream: results do not depend on threads, blocks or chunks
MIN_VALID_SHARE = 0.95
_BLOCK_VALUES = 1 << 21
_EQUAL_WEIGHTS = 1e-9  # of the squared coefficient of variation: below it the weights of a cell are one and the same


class BootstrapBounds(NamedTuple):
    """Intervals of many statistics at once.

    ``valid_share`` is the share of replicates where the statistic is defined; ``degenerate`` marks statistics whose
    replicates are all equal: the interval is a point, and no proof of certainty. ``edge`` marks those with no replicate on
    one side of the estimate, such as a gap of exactly 0: BCa does not exist there, and the percentile interval stands in,
    widened to hold the estimate.
    """

    low: Floats
    high: Floats
    valid_share: Floats
    degenerate: NDArray[np.bool_]
    edge: NDArray[np.bool_]


def check_method(method: str) -> str:
    """Return the interval method; refuse one there is not."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}.")
    return method


def check_n_resamples(n_resamples: Any) -> int:
    """Return the number of replicates; refuse one too small for an interval."""
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 100:
        raise ValueError(f"n_resamples must be a whole number of at least 100; got {n_resamples!r}.")
    return int(n_resamples)


def as_seed(random_state: Any) -> int:
    """Return the integer that a random state stands for; None draws one, which is kept so that it can be repeated."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ValueError(f"random_state must be a non-negative integer, a numpy generator or None; got {random_state!r}.")


def seed_of_part(seed: int, number: int) -> int:
    """Return the seed of one part of an audit, such as an attribute that is drawn on its own."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


# ------------------------------------------------------------------------------------------------------------- draws
def by_stream(
    fill: Callable[[int, np.random.Generator], None],
    n_resamples: int,
    seed: int,
    n_jobs: int | None,
    *,
    child: bool = False,
) -> None:
    """Call ``fill(start, generator)`` for each 1,000 replicates, in threads if asked; each has a stream of its own.

    Parameters
    ----------
    fill : callable
        Fills the replicates from ``start`` on.
    n_resamples, seed, n_jobs
        As in :func:`draw_cells`.
    child : bool, default=False
        Whether to take the streams below those of the same seed, for a second draw that goes with a first.
    """
    starts = range(0, n_resamples, STREAM)
    streams = np.random.SeedSequence(seed).spawn(len(starts))
    if child:
        streams = [stream.spawn(1)[0] for stream in streams]
    generators = [np.random.Generator(np.random.SFC64(stream)) for stream in streams]
    if n_jobs in (None, 1) or len(starts) == 1:
        for start, generator in zip(starts, generators, strict=True):
            fill(start, generator)
    else:
        Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(fill)(start, generator) for start, generator in zip(starts, generators, strict=True)
        )


def draw_cells(counts: NDArray[Any], n_resamples: int, seed: int, n_jobs: int | None = None) -> Floats:
    """Return bootstrap counts of the cells of a table.

    Parameters
    ----------
    counts : ndarray of int of shape (n_cells,)
        Rows by cell.
    n_resamples : int
        Number of replicates.
    seed : int
        Seed; each 1,000 replicates have a stream of their own.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (n_cells, n_resamples)
    """
    total = int(counts.sum())
    out = np.empty((counts.size, n_resamples))
    block = max(1, min(STREAM, _BLOCK_VALUES // max(1, counts.size)))

    def fill(start: int, generator: np.random.Generator) -> None:
        stop = min(start + STREAM, n_resamples)
        for first in range(start, stop, block):
            last = min(first + block, stop)
            out[:, first:last] = generator.multinomial(total, counts / total, size=last - first).T

    by_stream(fill, n_resamples, seed, n_jobs)
    return out


def draw_tables(
    tables: NDArray[Any],
    weights: CellWeights | None,
    table_of: NDArray[np.intp],
    slot_of: NDArray[np.intp],
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
) -> Floats:
    """Return bootstrap counts, or sums of weights, of those cells of tables that have rows.

    Parameters
    ----------
    tables : ndarray of int of shape (n_tables, ...)
        Rows by table and cell.
    weights : CellWeights or None
        Of the same cells, where rows are weighted.
    table_of, slot_of : ndarray of int of shape (n_cells,)
        Where the cells with rows are.
    n_resamples, seed, n_jobs
        As in :func:`draw_cells`.

    Returns
    -------
    ndarray of shape (n_cells, n_resamples)
    """

    def cells(values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(len(tables), -1)[table_of, slot_of]

    rows = cells(tables)
    draws = draw_cells(rows, n_resamples, seed, n_jobs)
    if weights is None:
        return draws
    kept = [weights.kept[cell] for cell in table_of * tables[0].size + slot_of]
    return weigh_draws(draws, rows, cells(weights.sums), cells(weights.squares), kept, seed, n_jobs)


def weigh_draws(
    draws: Floats,
    rows: NDArray[Any],
    sums: Floats,
    squares: Floats,
    kept: Sequence[Floats | None],
    seed: int,
    n_jobs: int | None = None,
) -> Floats:
    """Return bootstrap sums of weights for bootstrap counts of cells.

    Parameters
    ----------
    draws : ndarray of shape (n_cells, n_resamples)
        Counts, as :func:`draw_cells` gives them; replaced by sums of weights.
    rows, sums, squares : ndarray of shape (n_cells,)
        Rows of each cell, above 0, and the sums of their weights and squared weights.
    kept : sequence of (ndarray or None)
        The weights of each cell's rows where they are known.
    seed : int
        The seed that the counts were drawn with; weights have streams of their own.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (n_cells, n_resamples)
    """
    n_resamples = draws.shape[1]
    mean = sums / rows
    variance = squares / rows - mean**2
    equal = variance <= _EQUAL_WEIGHTS * mean**2

    def fill(start: int, generator: np.random.Generator) -> None:
        for cell, own in enumerate(draws[:, start : start + STREAM]):
            weights = kept[cell]
            if equal[cell]:
                own *= mean[cell]
            elif weights is not None:
                own[:] = _sums_of_draws(weights, own.astype(np.int64), generator)
            else:
                shape = mean[cell] ** 2 / variance[cell]
                own[:] = generator.standard_gamma(own * shape) * (variance[cell] / mean[cell])

    by_stream(fill, n_resamples, seed, n_jobs, child=True)
    return draws


def _sums_of_draws(weights: Floats, sizes: NDArray[np.int64], generator: np.random.Generator) -> Floats:
    """Return for each size the sum of so many weights drawn with replacement."""
    totals = np.empty(sizes.size)
    block = max(1, _BLOCK_VALUES // max(1, int(sizes.max(initial=0))))
    for first in range(0, sizes.size, block):
        part = sizes[first : first + block]
        drawn = weights[generator.integers(0, weights.size, size=int(part.sum()))]
        owner = np.repeat(np.arange(part.size), part)
        totals[first : first + block] = np.bincount(owner, weights=drawn, minlength=part.size)
    return totals


def collect_cells(
    cells: NDArray[Any], table_of: NDArray[Any], slot_of: NDArray[Any], n_tables: int, n_slots: int
) -> Floats:
    """Return cell counts summed into tables.

    Parameters
    ----------
    cells : ndarray of shape (n_cells, ...)
        Counts, or replicates of counts.
    table_of, slot_of : ndarray of int of shape (n_cells,)
        The table (group) and the place in it (outcome, decision) that each cell belongs to.
    n_tables, n_slots : int
        Number of tables, and of places in each.

    Returns
    -------
    ndarray of shape (n_slots, n_tables, ...)
        The places come first, so that each is one contiguous block of replicates.
    """
    out = np.zeros((n_slots, n_tables, *cells.shape[1:]))
    for k, (table, slot) in enumerate(zip(table_of, slot_of, strict=True)):
        out[slot, table] += cells[k]
    return out


# --------------------------------------------------------------------------------------------------------- jackknife
def leave_one_out(tables: NDArray[Any], n_rows: int) -> tuple[Floats, Floats]:
    """Return each table with one row less in each of its cells, and how many rows each deletion stands for.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, n_outcomes, 2)
        Rows by table and cell.
    n_rows : int
        Rows in all tables: the others' deletions leave a table as it is.

    Returns
    -------
    deleted : ndarray of shape (n_tables, n_cells + 1, n_outcomes, 2)
        The last deletion is of a row elsewhere.
    weights : ndarray of shape (n_tables, n_cells + 1)
    """
    n_tables, n_cells = tables.shape[0], tables[0].size
    flat = tables.reshape(n_tables, 1, n_cells).astype(float)
    deleted = np.repeat(flat, n_cells + 1, axis=1)
    weights = np.empty((n_tables, n_cells + 1))
    weights[:, :n_cells] = flat[:, 0]
    weights[:, n_cells] = n_rows - flat[:, 0].sum(1)
    cell = np.arange(n_cells)
    deleted[:, cell, cell] -= flat[:, 0] > 0
    return deleted.reshape(n_tables, n_cells + 1, *tables.shape[1:]), weights


def weighted_leave_one_out(rows: NDArray[Any], sums: Floats, squares: Floats, cubes: Floats) -> tuple[Floats, Floats]:
    """Return each table of sums of weights without the mean weight of each of its cells, and what the deletions stand for.

    A row's influence is that of a unit of weight in its cell times its own weight, so that squares and cubes of influences
    are summed with those of the weights.

    Parameters
    ----------
    rows, sums, squares, cubes : ndarray of shape (n_tables, n_outcomes, 2)
        Rows by table and cell, and sums of powers of their weights.

    Returns
    -------
    deleted : ndarray of shape (n_tables, n_cells + 1, n_outcomes, 2)
        The last deletion is of a row elsewhere.
    moments : ndarray of shape (3, n_tables, n_cells + 1)
        Rows; and squares and cubes of the weights, each in units of its cell's mean weight, summed. Equal weights make all
        three the numbers of rows.
    """
    n_tables, n_cells = rows.shape[0], rows[0].size
    n = rows.reshape(n_tables, n_cells).astype(float)
    mean = sums.reshape(n_tables, n_cells) / np.where(n > 0, n, 1.0)
    unit = np.where(n > 0, mean, 1.0)
    flat = sums.reshape(n_tables, 1, n_cells)
    deleted = np.repeat(flat, n_cells + 1, axis=1)
    cell = np.arange(n_cells)
    deleted[:, cell, cell] -= mean
    own = np.stack([n, squares.reshape(n.shape) / unit**2, cubes.reshape(n.shape) / unit**3])
    moments = np.empty((3, n_tables, n_cells + 1))
    moments[..., :n_cells] = own
    moments[..., n_cells] = own.sum((1, 2))[:, None] - own.sum(2)
    return deleted.reshape(n_tables, n_cells + 1, *sums.shape[1:]), np.maximum(moments, 0.0)


def pair_leave_one_out(weights: Floats, first: NDArray[Any], second: int) -> tuple[tuple[Any, Any], Floats]:
    """Return how the deletions of two tables make those of their comparison.

    Parameters
    ----------
    weights : ndarray of shape (n_tables, n_cells + 1)
        As :func:`leave_one_out` gives them.
    first : ndarray of int of shape (n_pairs,)
        The compared tables.
    second : int
        The table compared with.

    Returns
    -------
    index : pair of tuples of ndarray
        Where in (n_tables, n_cells + 1) the compared table and the other stand, for each of the deletions: one in each
        cell of the first, one in each cell of the second, one elsewhere. Each of shape (n_pairs, 2 n_cells + 1).
    weights : ndarray of shape (n_pairs, 2 n_cells + 1)
    """
    n_cells = weights.shape[1] - 1
    cell, stay = np.arange(n_cells), np.full(n_cells, n_cells)
    shape = (first.size, 2 * n_cells + 1)
    rows_first = np.broadcast_to(first[:, None], shape)
    rows_second = np.full(shape, second)
    index_first = np.broadcast_to(np.concatenate([cell, stay, [n_cells]]), shape)
    index_second = np.broadcast_to(np.concatenate([stay, cell, [n_cells]]), shape)
    both = np.empty(shape)
    both[:, :n_cells] = weights[first, :n_cells]
    both[:, n_cells:-1] = weights[second, :n_cells]
    both[:, -1] = weights[first, -1] - weights[second, :n_cells].sum()
    return ((rows_first, index_first), (rows_second, index_second)), both


def acceleration(values: Floats, weights: Floats, moments: Floats | None = None) -> Floats:
    """Return the acceleration of BCa from weighted leave-one-out values (Efron 1987); undefined values are left out.

    Parameters
    ----------
    values, weights : ndarray of shape (n_statistics, n_deletions)
    moments : ndarray of shape (2, n_statistics, n_deletions), optional
        What squares and cubes of influences are summed with; default: the weights, as for unweighted rows.

    Returns
    -------
    ndarray of shape (n_statistics,)
        0 where the statistic does not move.
    """
    used = np.isfinite(values) & (weights > 0)
    weights = np.where(used, weights, 0.0)
    values = np.where(used, values, 0.0)
    total = weights.sum(-1)
    mean = (weights * values).sum(-1) / np.where(total > 0, total, 1.0)
    influence = np.where(used, mean[..., None] - values, 0.0)
    scale = np.abs(influence).max(-1, initial=0.0)
    scale = np.where(scale > 1e-13 * np.abs(values).max(-1, initial=0.0), scale, 0.0)  # less is rounding of the mean
    influence = np.where(scale[..., None] > 0, influence, 0.0)
    influence = influence / np.where(scale > 0, scale, 1.0)[..., None]
    of_squares, of_cubes = (weights, weights) if moments is None else np.where(used, moments, 0.0)
    square, cube = (of_squares * influence**2).sum(-1), (of_cubes * influence**3).sum(-1)
    return np.where(square > 0, cube / (6 * np.where(square > 0, square, 1.0) ** 1.5), 0.0)


# --------------------------------------------------------------------------------------------------------- intervals
def bootstrap_bounds(
    estimates: Floats,
    replicates: Floats,
    jackknife: Floats | None = None,
    weights: Floats | None = None,
    *,
    moments: Floats | None = None,
    bend: Floats | None = None,
    confidence_level: float = 0.95,
    method: str = "bca",
    ordered: bool = False,
) -> BootstrapBounds:
    """Return percentile or BCa intervals of many statistics.

    Parameters
    ----------
    estimates : ndarray of shape (n_statistics,)
        Values of the sample.
    replicates : ndarray of shape (n_statistics, n_resamples)
        Bootstrap values; NaN where undefined. Sorted in place.
    jackknife, weights : ndarray of shape (n_statistics, n_deletions)
        Leave-one-out values and how many rows each stands for; needed by BCa.
    moments : ndarray of shape (2, n_statistics, n_deletions), optional
        Of weighted rows, as :func:`acceleration` takes them.
    bend : ndarray of shape (n_statistics,), optional
        The acceleration, in place of that of the leave-one-out values.
    confidence_level : float
        In (0, 1).
    method : {"bca", "percentile"}
        BCa is second-order accurate (DiCiccio and Efron 1996) from about five expected successes on; the percentile
        interval needs about forty. Neither is valid for an absolute or largest gap near parity.
    ordered : bool, default=False
        Whether each row of ``replicates`` is in ascending order, NaN last; then they are only read.

    Returns
    -------
    BootstrapBounds
        NaN where the estimate is undefined, or where more than 5% of the replicates are. Replicates equal to the estimate
        count half in the bias correction.
    """
    n_statistics, n_resamples = replicates.shape
    if not ordered:
        replicates.sort(axis=1)
    n_valid = np.full(n_statistics, n_resamples)
    gaps = np.isnan(replicates[:, -1])
    if gaps.any():
        n_valid[gaps] -= np.isnan(replicates[gaps]).sum(1)
    rows, top = np.arange(n_statistics), np.maximum(n_valid - 1, 0)
    tolerance = 1e-12 * np.maximum(1.0, np.abs(np.nan_to_num(estimates)))
    degenerate = (n_valid > 0) & (replicates[rows, top] - replicates[:, 0] <= 2 * tolerance)
    tail = (1 - confidence_level) / 2
    shares = np.tile([[tail], [1 - tail]], n_statistics)
    edge = np.zeros(n_statistics, dtype=bool)
    if method == "bca":
        if bend is None:
            if jackknife is None or weights is None:
                raise ValueError("BCa needs the leave-one-out values and their weights.")
            bend = acceleration(jackknife, weights, moments)
        lower = _count_below(replicates, estimates - tolerance, np.less)
        upper = _count_below(replicates, estimates + tolerance, np.less_equal)
        counted = np.maximum(n_valid, 1)  # where no replicate is defined there is no interval, but no warning either
        share = np.clip((lower + upper) / (2.0 * counted), 1 / (counted + 1), counted / (counted + 1))
        edge = ((lower == 0) | (upper == n_valid)) & ~degenerate & (n_valid > 0)
        bias = ndtri(share)
        with np.errstate(divide="ignore"):
            moved = bias + ndtri(shares)
            shares = np.where(edge, shares, ndtr(bias + moved / (1 - bend * moved)))
    position = np.clip(shares, 0, 1) * top
    before = np.floor(position).astype(np.intp)
    at, after = replicates[rows, before], replicates[rows, np.minimum(before + 1, top)]
    low, high = at + (position - before) * (after - at)
    valid_share = n_valid / n_resamples
    low[np.isnan(estimates) | ((valid_share < MIN_VALID_SHARE) & ~degenerate)] = np.nan
    high[np.isnan(low)] = np.nan
    low, high = np.minimum(low, estimates), np.maximum(high, estimates)  # near an edge BCa can leave its own value out
    return BootstrapBounds(low, high, valid_share, degenerate & ~np.isnan(low), edge & ~np.isnan(low))


def _count_below(rows: Floats, ends: Floats, below: np.ufunc) -> NDArray[np.intp]:
    """Return how many values of each sorted row (NaN last) are below its end, by bisection of all rows at once."""
    at = np.arange(len(rows))
    found, missed = np.zeros(len(rows), dtype=np.intp), np.full(len(rows), rows.shape[1])
    for _ in range(rows.shape[1].bit_length()):
        middle = (found + missed) // 2
        hit = (found < missed) & below(rows[at, np.minimum(middle, rows.shape[1] - 1)], ends)
        found, missed = np.where(hit, middle + 1, found), np.where(hit, missed, middle)
    return found


def bootstrap_interval(
    counts: Any,
    statistic: Callable[[NDArray[Any]], Any],
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    method: str = "bca",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Interval:
    """Return the bootstrap interval of any statistic of a table of counts.

    Parameters
    ----------
    counts : array-like of int of shape (...)
        A table of any shape: rows by cell.
    statistic : callable
        ``statistic(counts)``, vectorised over leading axes: ``(..., *table shape) -> (...)``.
    confidence_level : float, default=0.95
        In (0, 1).
    n_resamples : int, default=2000
        Replicates, at least 100.
    method : {"bca", "percentile"}, default="bca"
        See :func:`bootstrap_bounds`.
    random_state : int, RandomState, Generator or None, default=0
        Seed.
    n_jobs : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    Interval
        ``degenerate`` if all replicates are equal (then a point); NaN if over 5% of them are undefined.

    References
    ----------
    DiCiccio and Efron 1996, Bootstrap confidence intervals.

    Examples
    --------
    >>> import numpy as np
    >>> share = lambda c: c[..., 1] / c.sum(-1)
    >>> interval = bootstrap_interval(np.array([700, 300]), share)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.27, 0.33)
    """
    check_method(method)
    check_fraction(confidence_level, "confidence_level")
    check_n_resamples(n_resamples)
    table = np.asarray(counts)
    whole = table.dtype.kind in "iuf" and np.isfinite(table).all() and (table == np.floor(table)).all()
    if table.size == 0 or not whole or table.min() < 0 or table.sum() == 0:
        raise ValueError("counts must be a table of whole numbers, at least 0 and not all 0.")
    table, seed = table.astype(np.int64), as_seed(random_state)
    occupied = np.flatnonzero(table)
    flat = table.ravel()[occupied]

    def values(cells: Floats) -> Floats:
        full = np.zeros((cells.shape[0], table.size))
        full[:, occupied] = cells
        return np.asarray(statistic(full.reshape(-1, *table.shape)), dtype=float)

    draws = draw_cells(flat, n_resamples, seed, n_jobs)
    deletions = np.tile(flat.astype(float), (flat.size, 1)) - np.eye(flat.size)
    bounds = bootstrap_bounds(
        values(flat[None].astype(float)),
        values(draws.T)[None],
        values(deletions)[None],
        flat[None].astype(float),
        confidence_level=confidence_level,
        method=method,
    )
    return Interval(
        float(bounds.low[0]),
        float(bounds.high[0]),
        "percentile" if bounds.edge[0] else method,
        confidence_level,
        degenerate=bool(bounds.degenerate[0]),
        valid_share=float(bounds.valid_share[0]),
    )
