"""Closed-form intervals for two indices of a confusion table that are no rates: the F measure and the Theil index.

The F measure is a monotone function of one proportion; the Theil index of benefits is a function of two, whose intervals
are combined. Both keep their level where the bootstrap has too few errors to resample.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sklearn_ethiclens.inference._intervals import Bounds, FloatArray, check_counts, wilson_interval

__all__ = ["f1_interval", "mover_ratio_interval", "theil_effective_size", "theil_influence", "theil_interval"]

_LOG_TWO = float(np.log(2.0))


def f1_interval(
    true_positives: npt.ArrayLike, errors: npt.ArrayLike, *, confidence_level: npt.ArrayLike = 0.95
) -> Bounds:
    """Interval for the F measure, 2 TP / (2 TP + FP + FN).

    Among the rows that are no true negatives, the true positives are a proportion J, and F1 = 2 J / (1 + J): Wilson's
    interval of J gives that of F1.

    Parameters
    ----------
    true_positives, errors : array-like
        TP, and FP + FN.
    confidence_level : array-like, default=0.95
        In (0, 1).

    Returns
    -------
    Bounds
        In [0, 1]; NaN where there are neither true positives nor errors.

    Notes
    -----
    Measured coverage 0.955 on average, 0.948 at the lowest, with 30 rows over twelve populations.

    References
    ----------
    Wilson (1927), JASA 22:209-212.

    Examples
    --------
    J = 10/20 lies in [0.2993, 0.7007]:

    >>> low, high = f1_interval(10, 10)
    >>> print(f"{low:.4f} {high:.4f}")
    0.4607 0.8240
    """
    hits, misses = np.asarray(true_positives, dtype=float), np.asarray(errors, dtype=float)
    low, high = wilson_interval(hits, hits + misses, confidence_level=confidence_level)
    return Bounds(2 * low / (1 + low), 2 * high / (1 + high))


@np.errstate(divide="ignore", invalid="ignore")
def theil_interval(
    false_positives: npt.ArrayLike,
    false_negatives: npt.ArrayLike,
    nobs: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> Bounds:
    """Interval for the Theil index of the benefits ``y_pred - y_true + 1``.

    With shares a of false and b of missed positives it is ``2 ln 2 a / m - ln m``, m = 1 + a - b. How far the index moves
    to either side as each share runs through its Wilson interval is squared and added (MOVER), with the correlation of the
    two shares of one sample.

    Parameters
    ----------
    false_positives, false_negatives, nobs : array-like
        Counts, broadcast.
    confidence_level : array-like, default=0.95
        In (0, 1).

    Returns
    -------
    Bounds
        At least 0; NaN where there are no rows, or no benefit at all (only missed positives).

    Notes
    -----
    Measured coverage 0.955 on average, 0.950 at the lowest, with 30 rows over twelve populations.

    References
    ----------
    Speicher et al. (2018), KDD (the index); Zou and Donner (2008), Statistics in Medicine 27:1693-1702 (MOVER).

    Examples
    --------
    No error in 20 rows: the index is 0, and errors of either kind are possible.

    >>> low, high = theil_interval(0, 0, 20)
    >>> print(f"{low:.4f} {high:.4f}")
    0.0000 0.1809
    """
    fp, n = check_counts(false_positives, nobs)
    fn, n = check_counts(false_negatives, n)
    fp, fn, n = np.broadcast_arrays(fp, fn, n)
    a, b = fp / n, fn / n
    value = _theil(a, b)
    low_a, high_a = wilson_interval(fp, n, confidence_level=confidence_level)
    low_b, high_b = wilson_interval(fn, n, confidence_level=confidence_level)
    peak = np.clip((2 * _LOG_TWO - 1) * (1 - b), low_a, high_a)  # the index rises with a up to here, then falls
    ends = np.stack([value, _theil(low_a, b), _theil(high_a, b), _theil(peak, b)])
    below_a, above_a = value - ends.min(0), ends.max(0) - value
    below_b, above_b = value - _theil(a, low_b), _theil(a, np.minimum(high_b, 1 + a - 1e-12)) - value
    rising = np.where((2 * _LOG_TWO - 1) * (1 - b) > a, 1.0, -1.0)
    together = -rising * np.sqrt(a * b / ((1 - a) * (1 - b)))  # shares of one sample move against each other
    low = value - _added(below_a, below_b, together)
    high = value + _added(above_a, above_b, together)
    known = ~np.isnan(value)
    return Bounds(np.where(known, np.maximum(low, 0.0), np.nan)[()], np.where(known, high, np.nan)[()])


@np.errstate(divide="ignore", invalid="ignore")
def theil_effective_size(
    false_positives: npt.ArrayLike, false_negatives: npt.ArrayLike, nobs: npt.ArrayLike
) -> FloatArray:
    """How many unweighted rows give the Theil index the variance that it has with weights.

    Parameters
    ----------
    false_positives, false_negatives, nobs : array-like of shape (2, ...)
        Sums of the weights, and of their squares, of false and missed positives and of all rows.

    Returns
    -------
    ndarray of shape (...)
        Kish's effective size where the index has no variance of first order, as without errors; 0 without rows.

    Examples
    --------
    Equal weights of 2 leave the number of rows as it is:

    >>> import numpy as np
    >>> print(f"{theil_effective_size(*(np.array([2.0 * n, 4.0 * n]) for n in (10, 5, 100))):.4f}")
    100.0000
    """
    fp, fn, n = (np.asarray(part, dtype=np.float64) for part in (false_positives, false_negatives, nobs))
    a, b = fp[0] / n[0], fn[0] / n[0]
    m = 1 + a - b
    moves = theil_influence(a, b)
    shares = np.stack([fp, fn, n - fp - fn], axis=1) / np.stack([n[0], n[0] ** 2])[:, None]
    alone, weighted = (moves**2 * shares).sum(1)
    size = np.where((alone > 0) & (m > 0), alone / weighted, n[0] ** 2 / n[1])
    return np.where(n[0] > 0, size, 0.0)[()]


@np.errstate(divide="ignore", invalid="ignore")
def theil_influence(a: FloatArray, b: FloatArray) -> FloatArray:
    """How a row more moves the Theil index, times the number of rows: a false positive, a missed one, any other.

    Parameters
    ----------
    a, b : ndarray of shape (...)
        Shares of false and of missed positives.

    Returns
    -------
    ndarray of shape (3, ...)

    Examples
    --------
    Without errors, one of either kind raises the index:

    >>> import numpy as np
    >>> theil_influence(np.array(0.0), np.array(0.0)).round(4).tolist()
    [0.3863, 1.0, 0.0]
    """
    m = 1 + a - b
    by_a, by_b = 2 * _LOG_TWO / m - 2 * _LOG_TWO * a / m**2 - 1 / m, 2 * _LOG_TWO * a / m**2 + 1 / m
    mean = by_a * a + by_b * b
    return np.stack([by_a - mean, by_b - mean, 0.0 - mean])


def _theil(a: FloatArray, b: FloatArray) -> FloatArray:
    mean = np.where(1 + a - b > 0, 1 + a - b, np.nan)
    index: FloatArray = 2 * _LOG_TWO * a / mean - np.log(mean)
    return index


def _added(first: FloatArray, second: FloatArray, correlation: FloatArray) -> FloatArray:
    """Distances squared and added, with what they share; the correlation is 0 where a share has no variance."""
    shared = np.where(np.isfinite(correlation), correlation, 0.0)
    added: FloatArray = np.sqrt(np.maximum(first**2 + second**2 + 2 * shared * first * second, 0.0))
    return added


@np.errstate(divide="ignore", invalid="ignore")
def mover_ratio_interval(
    value: npt.ArrayLike,
    bounds: Bounds,
    reference: npt.ArrayLike,
    reference_bounds: Bounds,
    correlation: npt.ArrayLike = 0.0,
) -> Bounds:
    """Interval for the ratio of two estimates that are not negative, from their own intervals.

    Parameters
    ----------
    value, reference : array-like
        Estimates, at least 0.
    bounds, reference_bounds : Bounds
        Their intervals, of one confidence level.
    correlation : array-like, default=0
        Of the estimates: 0 for independent ones.

    Returns
    -------
    Bounds
        In [0, inf]; the upper end is infinite where the reference may be 0. NaN where the reference is estimated as 0.

    References
    ----------
    Donner and Zou (2012), Statistical Methods in Medical Research 21:347-359.

    Examples
    --------
    Lower end: 0.4 x 0.6 = 0.24 over 0.25 + sqrt(0.25**2 - 0.24**2) = 0.32.

    >>> low, high = mover_ratio_interval(0.5, Bounds(0.4, 0.6), 0.5, Bounds(0.4, 0.6))
    >>> print(f"{low:.4f} {high:.4f}")
    0.7500 1.3333
    """
    a, b = np.asarray(value, dtype=float), np.asarray(reference, dtype=float)
    (low1, high1), (low2, high2) = bounds, reference_bounds
    r = np.asarray(correlation, dtype=float)
    down, up = a * b - r * (a - low1) * (high2 - b), a * b - r * (high1 - a) * (b - low2)
    reach = low1 * (2 * a - low1)
    low = reach / (down + np.sqrt(np.maximum(down**2 - reach * high2 * (2 * b - high2), 0.0)))
    high = (up + np.sqrt(np.maximum(up**2 - high1 * low2 * (2 * a - high1) * (2 * b - low2), 0.0))) / (
        low2 * (2 * b - low2)
    )
    low = np.where(a == 0, 0.0, np.maximum(low, 0.0))
    high = np.where(low2 <= 0, np.inf, high)
    defined = (b > 0) & ~np.isnan(a)
    return Bounds(np.where(defined, low, np.nan)[()], np.where(defined, high, np.nan)[()])
