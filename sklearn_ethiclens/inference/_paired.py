"""Inference on pairs: the mean change of rows under an intervention, and draws that belong to a row, not to its place.

A counterfactual changes rows one by one, so chance must not depend on the order or the batch a row comes in: the uniform
numbers here are a hash of the row's content and the seed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from sklearn_ethiclens.inference._intervals import Bounds, check_fraction

__all__ = ["mean_interval", "row_uniforms", "subsample"]

_GOLDEN = 0.6180339887498949  # its multiples fill [0, 1) evenly, however many are taken


@np.errstate(divide="ignore", invalid="ignore")
def mean_interval(
    mean: npt.ArrayLike, variance: npt.ArrayLike, nobs: npt.ArrayLike, *, confidence_level: float = 0.95
) -> Bounds:
    """Student's t interval for a mean.

    Parameters
    ----------
    mean, variance : array-like
        Mean and sample variance (divisor n - 1) of the rows.
    nobs : array-like
        Number of rows, broadcast against the others.
    confidence_level : float, default=0.95
        In (0, 1).

    Returns
    -------
    Bounds
        NaN with fewer than two rows. Without width where all rows are equal: that is no proof of certainty.

    Notes
    -----
    Assumes independent rows and a mean that is nearly normal. Where a few rows carry most of the change (skewness above
    about the fourth root of n) it is too short.

    References
    ----------
    Student (1908), Biometrika 6:1-25.

    Examples
    --------
    Four rows with mean 1 and variance 4: 1 +- 3.1824 x 2 / 2

    >>> low, high = mean_interval(1.0, 4.0, 4)
    >>> print(f"{low:.4f} {high:.4f}")
    -2.1824 4.1824
    """
    tail = (1 + float(check_fraction(confidence_level, "confidence_level"))) / 2
    centre, spread, n = (np.asarray(v, dtype=np.float64) for v in (mean, variance, nobs))
    enough = n > 1
    half = stdtrit(np.where(enough, n - 1, 1.0), tail) * np.sqrt(spread / n)
    half = np.where(enough, half, np.nan)
    return Bounds((centre - half)[()], (centre + half)[()])


def row_uniforms(rows: pd.DataFrame, seed: int, stream: int) -> npt.NDArray[np.float64]:
    """Return one uniform number in [0, 1) a row, from the row's content and the seed.

    Parameters
    ----------
    rows : DataFrame of shape (n_rows, n_columns)
        What identifies a row; its index does not count.
    seed : int
        Seed.
    stream : int
        Which of several independent numbers of a row.

    Returns
    -------
    ndarray of shape (n_rows,)
        A row keeps its number in another order or batch. Equal rows get numbers spread evenly over [0, 1), so that
        together they still follow a distribution.

    Examples
    --------
    >>> people = pd.DataFrame({"job": ["a", "b", "c"]})
    >>> bool((row_uniforms(people, 0, 0)[::-1] == row_uniforms(people[::-1], 0, 0)).all())
    True
    """
    hashes = pd.util.hash_pandas_object(rows, index=False).to_numpy(dtype=np.uint64, copy=True)
    repeats = pd.Series(hashes).groupby(hashes, sort=False).cumcount().to_numpy(dtype=np.float64)
    key = np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0]
    uniform = (_mixed(hashes ^ key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    out: npt.NDArray[np.float64] = (uniform + repeats * _GOLDEN) % 1.0
    return out


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 64-bit numbers whose every bit depends on all bits given (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def subsample(n_rows: int, size: int, seed: int) -> npt.NDArray[np.intp]:
    """Return positions of at most ``size`` of ``n_rows`` rows, drawn without replacement, in rising order.

    Examples
    --------
    >>> subsample(3, 5, 0).tolist()
    [0, 1, 2]
    """
    if n_rows <= size:
        return np.arange(n_rows)
    drawn = np.random.default_rng(seed).choice(n_rows, size, replace=False)
    return np.sort(drawn).astype(np.intp)
