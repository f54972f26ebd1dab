"""Bootstrap of sampling units, and what stands in where there are none to draw: replicates of the cell totals of a table.

Units that are alike are drawn as one, so that the cost goes with the number of different ones.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sklearn_ethiclens.inference._resampling import STREAM, Floats, by_stream

__all__ = ["draw_totals", "draw_units", "unit_acceleration"]

_BLOCK_VALUES = 1 << 20
_MANY_ALIKE = 4  # units of one kind, on average, from which counting kinds is cheaper than drawing units


def draw_units(
    totals: csr_matrix,
    multiplicity: NDArray[np.int64],
    stratum: NDArray[np.int64],
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
) -> Floats:
    """Return bootstrap totals of cells: of each stratum's m units, m - 1 are drawn with replacement and scaled to m.

    Parameters
    ----------
    totals : csr_matrix of shape (n_signatures, n_cells)
        Cell totals of a unit of each kind.
    multiplicity : ndarray of int of shape (n_signatures,)
        Units of each kind.
    stratum : ndarray of int of shape (n_signatures,)
        Their stratum, ascending from 0.
    n_resamples : int
        Number of replicates.
    seed : int
        Seed; each 1,000 replicates have a stream of their own.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    ndarray of shape (n_cells, n_resamples)

    References
    ----------
    Rao and Wu (1988), JASA 83:231-241.
    """
    columns = csr_matrix(totals.T)
    out = np.empty((totals.shape[1], n_resamples))
    ends = np.searchsorted(stratum, np.arange(int(stratum[-1]) + 2))
    block = max(1, min(STREAM, _BLOCK_VALUES // max(1, stratum.size)))

    def fill(start: int, generator: np.random.Generator) -> None:
        stop = min(start + STREAM, n_resamples)
        for begin in range(start, stop, block):
            end = min(begin + block, stop)
            drawn = np.empty((stratum.size, end - begin))
            for first, last in pairwise(ends.tolist()):
                drawn[first:last] = _draw_stratum(multiplicity[first:last], end - begin, generator)
            out[:, begin:end] = columns @ drawn

    by_stream(fill, n_resamples, seed, n_jobs)
    return out


def _draw_stratum(multiplicity: NDArray[np.int64], n_resamples: int, generator: np.random.Generator) -> Floats:
    """Return how often each kind of unit of one stratum is drawn, scaled, of shape (n_signatures, n_resamples)."""
    n_units, n_kinds = int(multiplicity.sum()), multiplicity.size
    if n_units >= _MANY_ALIKE * n_kinds:
        drawn = generator.multinomial(n_units - 1, multiplicity / n_units, size=n_resamples).T
    else:
        kind = np.repeat(np.arange(n_kinds), multiplicity)
        picked = kind[generator.integers(0, n_units, size=(n_resamples, n_units - 1))]
        picked += n_kinds * np.arange(n_resamples)[:, None]
        drawn = np.bincount(picked.ravel(), minlength=n_kinds * n_resamples).reshape(n_resamples, n_kinds).T
    return np.asarray(drawn * (n_units / (n_units - 1)), dtype=np.float64)


def draw_totals(
    totals: Floats, covariance: Floats, dof: int, n_resamples: int, seed: int, n_jobs: int | None = None
) -> Floats:
    """Return replicates of totals around them, with a covariance that has been estimated: by the multivariate t law.

    Parameters
    ----------
    totals : ndarray of shape (n_cells,)
    covariance : ndarray of shape (n_cells, n_cells)
    dof : int
        Degrees of freedom of the covariance.
    n_resamples, seed, n_jobs
        As in :func:`draw_units`.

    Returns
    -------
    ndarray of shape (n_cells, n_resamples)
        At least 0: a total below is drawn as none.
    """
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    out = np.empty((totals.size, n_resamples))

    def fill(start: int, generator: np.random.Generator) -> None:
        stop = min(start + STREAM, n_resamples)
        moved = root @ generator.standard_normal((totals.size, stop - start))
        moved *= np.sqrt(dof / generator.chisquare(dof, size=stop - start))
        out[:, start:stop] = np.maximum(totals[:, None] + moved, 0.0)

    by_stream(fill, n_resamples, seed, n_jobs)
    return out


def unit_acceleration(
    totals: csr_matrix, multiplicity: NDArray[Any], stratum: NDArray[np.int64], gradients: Floats
) -> Floats:
    """Return the acceleration of BCa from the influence of whole units.

    Parameters
    ----------
    totals, multiplicity, stratum
        As in :func:`draw_units`.
    gradients : ndarray of shape (n_cells, n_statistics)
        Derivatives of the statistics by the cells; NaN, where one is undefined, counts as none.

    Returns
    -------
    ndarray of shape (n_statistics,)
        Sum of cubes over units of their influence, less their stratum's mean, over six times the sum of squares to the
        power 1.5; 0 where the statistic does not move.

    References
    ----------
    Efron (1987), JASA 82:171-185; Davison and Hinkley (1997), section 5.4 (several samples).
    """
    influence = totals @ np.nan_to_num(gradients)
    scale = np.abs(influence).max(0, initial=0.0)
    influence = influence / np.where(scale > 0, scale, 1.0)
    n_kinds = stratum.size
    summed = csr_matrix((multiplicity.astype(float), (stratum, np.arange(n_kinds))))
    influence -= ((summed @ influence) / summed.sum(1).A1[:, None])[stratum]
    square, cube = multiplicity @ influence**2, multiplicity @ influence**3
    moves = square > 1e-20 * multiplicity.sum()
    bend: Floats = np.where(moves, cube / (6 * np.where(moves, square, 1.0) ** 1.5), 0.0)
    return bend
