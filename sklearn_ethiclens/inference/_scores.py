"""Intervals for metrics of scores: area under the curve, calibration error, and means of bounded numbers.

Everything here takes what a sorted score tally gives: placements of positives among negatives, sums by bin and outcome,
means and variances; nothing is resampled by rows. The halves of the cross-fitted calibration error are drawn by cell, and by
row where weights differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtr, stdtrit

from sklearn_ethiclens.inference._intervals import Bounds, normal_quantile

__all__ = [
    "CalibrationError",
    "WeightedResiduals",
    "auc_interval",
    "auc_pvalue",
    "auc_variance",
    "bounded_mean_interval",
    "calibration_error_interval",
    "mover_difference_interval",
]

FloatArray = npt.NDArray[np.float64]

N_SPLITS = 40
LEAST_CLASS = 5  # rows of the smaller class from which DeLong's variance is used
_HALVINGS = 60
_ROUNDING = 1e-12  # of the sum of the absolutes: what a sum that is 0 may come out as


# ------------------------------------------------------------------------------------------------- area under the curve
def auc_variance(
    positives: FloatArray,
    negatives: FloatArray,
    positive_weights: FloatArray | None = None,
    negative_weights: FloatArray | None = None,
) -> float:
    """Return DeLong's variance of an area under the ROC curve.

    Parameters
    ----------
    positives : ndarray of shape (m,)
        For each positive the number of negatives with a lower score, ties half.
    negatives : ndarray of shape (n,)
        For each negative the number of positives with a higher score, ties half.
    positive_weights, negative_weights : ndarray of shape (m,) and (n,), optional
        Weights of the rows; placements are then sums of weights instead of numbers.

    Returns
    -------
    float
        NaN with fewer than two positives or two negatives. 0 where the classes do not overlap: that is no certainty.

    Notes
    -----
    With weights it is the jackknife's: of both classes ``(m - 1) / m`` times the sum of ``(h (p - area) / (1 - h))**2``, where
    ``p`` is a row's placement as a share and ``h`` its share of the weight of its class. Equal weights give DeLong's, with
    divisor m - 1; without 1 - h, of which the area misses less than it should where few rows carry the weight, 95% intervals of
    some twenty effective rows a class cover .92.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44:837-845; Sun and Xu (2014), IEEE Signal Processing Letters
    21:1389-1393 (by ranks instead of pairs); Binder (1983), International Statistical Review 51:279-292 (weights).

    Examples
    --------
    Positives .4, .9 and negatives .2, .6: placements 1, 2 of 2 and 2, 1 of 2, variance .125 / 2 + .125 / 2.

    >>> auc_variance(np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    0.125
    """
    m, n = positives.size, negatives.size
    if m < 2 or n < 2:
        return float("nan")
    if positive_weights is None or negative_weights is None:
        return float((positives / n).var(ddof=1) / m + (negatives / m).var(ddof=1) / n)
    above, below = positive_weights.sum(), negative_weights.sum()
    variance = 0.0
    for placement, weights, own, other in (
        (positives, positive_weights, above, below),
        (negatives, negative_weights, below, above),
    ):
        share, placed = weights / own, placement / other
        deviation = placed - (share * placed).sum()
        left_out = share * deviation / (1 - share)  # how far the area moves without the row
        variance += float(np.square(left_out).sum()) * (share.size - 1) / share.size
    return variance


def auc_interval(
    auc: float,
    variance: float,
    n_positives: float,
    n_negatives: float,
    *,
    confidence_level: float = 0.95,
    dof: float = np.inf,
) -> tuple[Bounds, str]:
    """Return an interval for an area under the ROC curve, and its name.

    Parameters
    ----------
    auc : float
        Estimate, in [0, 1].
    variance : float
        As :func:`auc_variance` gives it.
    n_positives, n_negatives : float
        Rows of both classes; of weighted rows effective ones.
    confidence_level : float, default=0.95
        In (0, 1).
    dof : float, default=inf
        Degrees of freedom of the variance: Student's *t* for *z* with DeLong's, for weighted rows.

    Returns
    -------
    Bounds
        In [0, 1]; NaN without positives or without negatives.
    str
        "DeLong, logit"; or "Newcombe" where the classes do not overlap, so that the variance is 0, or one has fewer than
        five rows, so that it is a guess.

    Notes
    -----
    DeLong's variance on the logit scale keeps inside (0, 1). Measured coverage of 95% intervals, of areas from .5 to .99, is
    .93 to .99 from five rows in the smaller class on; with three rows .88.
    Newcombe's method 5 asks which areas lie z standard errors away, with Hanley and McNeil's variance *at the tested area*:
    as Wilson's interval of a rate it has an honest width at 0 and 1. It needs no placements, only the numbers of rows.

    References
    ----------
    Qin and Hotilovac (2008), Statistical Methods in Medical Research 17:207-221 (logit interval); Newcombe (2006),
    Statistics in Medicine 25:559-573, method 5; Hanley and McNeil (1982), Radiology 143:29-36.

    Examples
    --------
    >>> (low, high), method = auc_interval(1.0, 0.0, 20, 20)
    >>> print(f"{low:.3f} {high:.3f} {method}")
    0.899 1.000 Newcombe
    """
    z = float(normal_quantile(confidence_level))
    if min(n_positives, n_negatives) < 1:
        nan = np.asarray(np.nan)
        return Bounds(nan, nan), ""
    if 0 < auc < 1 and variance > 0 and min(n_positives, n_negatives) >= LEAST_CLASS:
        quantile = z if np.isinf(dof) else float(stdtrit(dof, (1 + confidence_level) / 2))
        half = quantile * np.sqrt(variance) / (auc * (1 - auc))
        return Bounds(expit(logit(auc) - half), expit(logit(auc) + half)), "DeLong, logit"
    return _newcombe_auc(auc, n_positives, n_negatives, z), "Newcombe"


def _newcombe_auc(auc: float, m: float, n: float, z: float) -> Bounds:
    """Return the areas that lie z standard errors from the estimate, by bisection."""
    ends = []
    for inner, outer in ((auc, 0.0), (auc, 1.0)):
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            spread = (m + n) / 2 - 1
            variance = middle * (1 - middle) / (m * n)
            variance *= 1 + spread * ((1 - middle) / (2 - middle) + middle / (1 + middle))
            within = abs(auc - middle) <= z * np.sqrt(variance)
            inner, outer = (middle, outer) if within else (inner, middle)
        ends.append(inner)
    return Bounds(np.asarray(ends[0]), np.asarray(ends[1]))


def auc_pvalue(auc: float, variance: float, auc_reference: float, variance_reference: float) -> float:
    """Return the two-sided p-value that two groups have the same area under the ROC curve.

    Parameters
    ----------
    auc, variance, auc_reference, variance_reference : float
        Estimates and DeLong variances of two disjoint groups: their variances add.

    Returns
    -------
    float
        NaN where a variance is 0 or unknown.

    Examples
    --------
    >>> round(auc_pvalue(0.80, 0.0016, 0.70, 0.0009), 4)  # 0.10 / 0.05 = 2 standard errors
    0.0455
    """
    if not (variance > 0 and variance_reference > 0):
        return float("nan")
    return float(2 * ndtr(-abs(auc - auc_reference) / np.sqrt(variance + variance_reference)))


def mover_difference_interval(
    value: npt.ArrayLike, bounds: Bounds, reference: npt.ArrayLike, reference_bounds: Bounds
) -> Bounds:
    """Return the interval of a difference of two independent estimates from their own intervals.

    Parameters
    ----------
    value, reference : array-like
        Estimates.
    bounds, reference_bounds : Bounds
        Their intervals, of one confidence level.

    Returns
    -------
    Bounds
        NaN where an interval is.

    References
    ----------
    Donner and Zou (2012), Statistical Methods in Medical Research 21:347-359 (MOVER); with Wilson's intervals it is
    Newcombe's of a difference of rates.

    Examples
    --------
    Distances 3 below and 4 above, on both sides 5 in all:

    >>> low, high = mover_difference_interval(10.0, Bounds(7.0, 14.0), 5.0, Bounds(2.0, 9.0))
    >>> float(low), float(high)
    (0.0, 10.0)
    """
    a, b = np.asarray(value, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    low = a - b - np.hypot(a - bounds.low, reference_bounds.high - b)
    high = a - b + np.hypot(bounds.high - a, b - reference_bounds.low)
    return Bounds(low[()], high[()])


# -------------------------------------------------------------------------------------------------------------- means
@np.errstate(divide="ignore", invalid="ignore")
def bounded_mean_interval(
    mean: npt.ArrayLike, variance: npt.ArrayLike, nobs: npt.ArrayLike, *, confidence_level: float = 0.95
) -> Bounds:
    """Return an interval for the mean of numbers in [0, 1] that has a width where all of them are equal.

    The wider, on each side, of the normal interval and of Wilson's with the rate's variance p (1 - p) replaced by that of
    the numbers. Wilson's pulls the centre towards 1/2 and keeps z**2 / n of doubt: thirty squared errors that are all 0.0001,
    because no positive happened to be among thirty rows, do not prove a Brier score of 0.0001.

    Parameters
    ----------
    mean, variance : array-like
        Mean and variance (divisor n) of the numbers.
    nobs : array-like
        How many there are. Of weighted numbers effective ones, with a variance that over these is that of the mean.
    confidence_level : float, default=0.95
        In (0, 1).

    Returns
    -------
    Bounds
        In [0, 1]; NaN without rows. For numbers 0 and 1 it holds Wilson's interval of the rate.

    Notes
    -----
    Assumes independent rows. Too short where a few large errors carry the mean and are rarer than about five.

    Examples
    --------
    >>> low, high = bounded_mean_interval(0.0, 0.0, 20)  # z**2 / (n + z**2), as Wilson's of 0 in 20
    >>> print(f"{low:.4f} {high:.4f}")
    0.0000 0.1611
    """
    z = normal_quantile(confidence_level)
    centre, spread, n = (np.asarray(v, dtype=np.float64) for v in (mean, variance, nobs))
    half = z * np.sqrt(spread / n)
    shift = z**2 / (n + z**2) * (0.5 - centre)
    score_half = z * np.sqrt(n * spread + z**2 / 4) / (n + z**2)
    low = np.maximum(np.minimum(centre - half, centre + shift - score_half), 0.0)
    high = np.minimum(np.maximum(centre + half, centre + shift + score_half), 1.0)
    unknown = np.where(n > 0, 0.0, np.nan)
    return Bounds((low + unknown)[()], (high + unknown)[()])


# --------------------------------------------------------------------------------------------------- calibration error
class CalibrationError(NamedTuple):
    """Expected calibration errors of groups: two points, one biased upward and one downward, and the interval around both.

    Parameters
    ----------
    plug_in : ndarray of shape (n_groups,)
        As usually computed; biased upward, the more so the fewer rows a bin has.
    crossfit : ndarray of shape (n_groups,)
        Never larger on average than the true error, and around 0 for a calibrated score; at least 0.
    low, high : ndarray of shape (n_groups,)
        Ends of the interval.
    """

    plug_in: FloatArray
    crossfit: FloatArray
    low: FloatArray
    high: FloatArray


class WeightedResiduals(NamedTuple):
    """Rows of a group whose weights differ: bins do not hold how these lie among the residuals.

    Parameters
    ----------
    residual : ndarray of shape (n_rows,)
        Outcome minus score.
    weight : ndarray of shape (n_rows,)
        Above 0.
    bin : ndarray of int of shape (n_rows,)
        Which bin the score is in.
    """

    residual: FloatArray
    weight: FloatArray
    bin: npt.NDArray[np.int64]


def calibration_error_interval(
    counts: npt.NDArray[np.int64],
    sums: FloatArray,
    squares: FloatArray,
    *,
    confidence_level: float = 0.95,
    n_splits: int = N_SPLITS,
    seed: int = 0,
    weighted: Mapping[int, WeightedResiduals] | None = None,
) -> CalibrationError:
    """Return the expected calibration error by group, with an interval that the bias of the plug-in does not spoil.

    Parameters
    ----------
    counts : ndarray of int of shape (n_groups, n_bins, 2)
        Rows by bin and outcome.
    sums, squares : ndarray of shape (n_groups, n_bins, 2)
        Sums of their scores, and of the squares of these.
    confidence_level : float, default=0.95
        In (0, 1).
    n_splits : int, default=40
        Random splits into halves that the cross-fitted point is the mean of.
    seed : int, default=0
        Of the splits.
    weighted : mapping of int to WeightedResiduals, optional
        The rows of groups, by position, in which weights differ; of these groups counts and sums are not read.

    Returns
    -------
    CalibrationError
        NaN for a group without rows.

    Notes
    -----
    The plug-in takes the absolute value of each bin's gap, noise included, so that a calibrated score has a positive error
    in every sample, and bootstrap intervals of it never hold 0. The cross-fitted point splits the rows of each bin and
    outcome at random into halves, and signs the gaps of each half by the other's: what is noise then cancels. The lower end
    is the cross-fitted point minus a half-width, the upper end the plug-in plus one; both are conservative in small groups.
    The half-width is the normal one of the mean residual, widened as Wilson's interval widens that of a rate, so that ten
    rows with equal outcomes do not look certain.
    Where weights differ, rows are put into halves one by one, since two rows of a bin and outcome are no longer alike. The
    variance is that of the weighted mean of residuals signed as their bins are, and its number of rows Kish's.

    References
    ----------
    Guo et al. (2017), ICML (the error); Kumar, Liang and Ma (2019), NeurIPS, and Roelofs et al. (2022), AISTATS (its bias).

    Examples
    --------
    Half of 1,000 rows scored .5 are positive:

    >>> error = calibration_error_interval(
    ...     np.array([[[500, 500]]]), np.array([[[250.0, 250.0]]]), np.array([[[125.0, 125.0]]])
    ... )
    >>> print(f"{error.plug_in[0]:.3f} {error.low[0]:.3f} {error.high[0]:.3f}")
    0.000 0.000 0.033
    """
    z = float(normal_quantile(confidence_level))
    n_groups, by_row = len(counts), weighted or {}
    total = counts.sum((1, 2)).astype(np.float64)
    outcome = np.array([0.0, 1.0])
    residual = np.where(
        counts > 0, outcome - sums / np.maximum(counts, 1), 0.0
    )  # mean residual of each bin and outcome
    with np.errstate(divide="ignore", invalid="ignore"):
        plug_in = np.abs((counts * residual).sum(2)).sum(1) / total
        mean_square = (counts * outcome - 2 * outcome * sums + squares).sum((1, 2)) / total
    crossfit = np.empty(n_groups)
    for g, stream in enumerate(np.random.SeedSequence(seed).spawn(n_groups)):
        generator = np.random.Generator(np.random.SFC64(stream))
        if g in by_row:
            rows = by_row[g]
            total[g], plug_in[g], mean_square[g] = _weighted_moments(rows, counts.shape[1])
            crossfit[g] = total[g] * _weighted_crossfit(rows, counts.shape[1], n_splits, generator)
            continue
        half = generator.binomial(counts[g], 0.5, size=(n_splits, *counts.shape[1:]))
        first, second = (half * residual[g]).sum(2), ((counts[g] - half) * residual[g]).sum(2)
        crossfit[g] = (np.sign(first) * second + np.sign(second) * first).sum(1).mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        crossfit = crossfit / total
        widths = [
            (z**2 / 2 + z * np.sqrt(total * np.maximum(mean_square - point**2, 0) + z**2 / 4)) / (total + z**2)
            for point in (crossfit, plug_in)
        ]
    low, high = np.maximum(crossfit - widths[0], 0.0), np.minimum(plug_in + widths[1], 1.0)
    return CalibrationError(plug_in, np.maximum(crossfit, 0.0), low, high)


def _weighted_moments(rows: WeightedResiduals, n_bins: int) -> tuple[float, float, float]:
    """Return the effective number of rows, the calibration error, and what stands for the mean squared residual.

    The latter less the squared error is the variance of the error, linearised, times the effective number of rows.
    """
    weight, moved = rows.weight, rows.weight * rows.residual
    gaps = _clean(np.bincount(rows.bin, moved, n_bins), np.bincount(rows.bin, np.abs(moved), n_bins))
    error = float(np.abs(gaps).sum() / weight.sum())
    squares = np.square(weight)
    signed = np.sign(gaps)[rows.bin] * rows.residual
    variance = float((squares * np.square(signed - error)).sum() / squares.sum())
    return float(weight.sum() ** 2 / squares.sum()), error, variance + error**2


def _clean(gaps: npt.NDArray[Any], size: npt.NDArray[Any]) -> FloatArray:
    """Return gaps with those that are rounding errors set to 0: their sign would be that of the unit weights are given in."""
    return np.where(np.abs(gaps) > _ROUNDING * size, gaps, 0.0)


def _weighted_crossfit(rows: WeightedResiduals, n_bins: int, n_splits: int, generator: np.random.Generator) -> float:
    """Return the mean over random halves of rows of the gaps of each half, signed by the other's."""
    moved = rows.weight * rows.residual
    gaps, size = np.bincount(rows.bin, moved, n_bins), np.bincount(rows.bin, np.abs(moved), n_bins)
    found = 0.0
    for _ in range(n_splits):
        part = np.bincount(rows.bin, np.where(generator.integers(0, 2, moved.size, dtype=bool), moved, 0.0), n_bins)
        first, second = _clean(part, size), _clean(gaps - part, size)
        found += float((np.sign(first) * second + np.sign(second) * first).sum())
    return found / n_splits / float(rows.weight.sum())
