"""Rates -> disparities: ratio, difference, largest gap; the composite score; which group is the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens.metrics._rates import Confusion, Floats, divide

COMPOSITE_WEIGHTS = (0.40, 0.35, 0.25)
BANDS = ((0.60, "High Risk"), (0.80, "Medium Risk"))

# Thresholds are decimal fractions and values quotients of counts: .48/.60 must be four fifths, .40 - .30 must be .10.
_GUARD = 1e-9


# ------------------------------------------------------------------------------------------------------- comparisons
def ratio(rate: Floats, reference_rate: Floats) -> Floats:
    """Return group over reference; NaN where the reference rate is 0."""
    return divide(rate, reference_rate)


def difference(rate: Floats, reference_rate: Floats) -> Floats:
    """Return group minus reference."""
    return np.subtract(rate, reference_rate)


def largest_gap(rates: Floats) -> Floats:
    """Return maximum minus minimum over the last axis, of the groups where the rate is defined (two at least)."""
    lowest, highest = _extremes(rates)
    return highest - lowest


def smallest_ratio(rates: Floats) -> Floats:
    """Return minimum over maximum over the last axis, of the groups where the rate is defined (two at least)."""
    lowest, highest = _extremes(rates)
    return divide(lowest, highest)


def _extremes(rates: Floats) -> tuple[Floats, Floats]:
    defined = ~np.isnan(rates)
    enough = defined.sum(-1) >= 2
    lowest = np.where(defined, rates, np.inf).min(-1, initial=np.inf)
    highest = np.where(defined, rates, -np.inf).max(-1, initial=-np.inf)
    return np.where(enough, lowest, np.nan), np.where(enough, highest, np.nan)


def distance_from_parity(values: Any, parity: float) -> Floats:
    """Return how far values are from parity: the absolute difference, or the absolute logarithm for a ratio (parity 1).

    Examples
    --------
    >>> distance_from_parity([0.5, 2.0, 0.0], parity=1.0).round(4)
    array([0.6931, 0.6931,    inf])
    """
    values = np.asarray(values, dtype=float)
    if parity == 1.0:
        with np.errstate(divide="ignore"):
            return np.abs(np.log(values))
    return np.abs(values - parity)


def below(value: float, threshold: float) -> bool:
    """Tell whether a value lies below a threshold, beyond rounding: 0.48 / 0.60 is not below 0.8."""
    return bool(value < threshold - _GUARD * max(1.0, abs(threshold)))


def above(value: float, threshold: float) -> bool:
    """Tell whether a value lies above a threshold, beyond rounding: 0.40 - 0.30 is not above 0.1."""
    return bool(value > threshold + _GUARD * max(1.0, abs(threshold)))


# --------------------------------------------------------------------------------------------------------- composite
def composite(di: Any, spd: Any, eo: Any, weights: Sequence[float] = COMPOSITE_WEIGHTS) -> Floats:
    """Return the composite score, elementwise; NaN where a part is NaN. See :func:`composite_bias_score`."""
    di, spd, eo = (np.asarray(v, dtype=float) for v in (di, spd, eo))
    with np.errstate(divide="ignore", invalid="ignore"):
        folded = np.where(di > 0, np.minimum(di, 1 / di), np.where(np.isnan(di), np.nan, 0.0))
    score = (
        weights[0] * folded
        + weights[1] * (1 - np.minimum(np.abs(spd), 1))
        + weights[2] * (1 - np.minimum(np.abs(eo), 1))
    )
    return np.clip(score, 0.0, 1.0)


def composite_bias_score(di: float, spd: float, eo: float, *, weights: Sequence[float] = COMPOSITE_WEIGHTS) -> float:
    """Return one score in [0, 1] from a disparate impact, a parity difference and an equalized-odds difference.

    ``0.40 min(DI, 1/DI) + 0.35 (1 - min(|SPD|, 1)) + 0.25 (1 - min(|EO|, 1))``; higher means a smaller disparity. It is a
    convenience for triage, not a legal standard: the selection ratio, which the four-fifths rule reads, weighs most, its
    difference next, error rates last.

    Parameters
    ----------
    di : float
        Disparate impact, at least 0.
    spd, eo : float
        Differences in [-1, 1].
    weights : sequence of three floats, optional
        Weights of the three parts, adding up to 1.

    Returns
    -------
    float
        NaN if a part is NaN: what was not measured has no score.

    Examples
    --------
    >>> round(composite_bias_score(0.6, -0.25, 0.15), 4)
    0.715
    """
    if di < 0:
        raise ValueError(f"di must be a ratio of at least 0; got {di!r}.")
    if len(weights) != 3 or not (min(weights) >= 0 and abs(sum(weights) - 1) <= 1e-9):
        raise ValueError(f"weights must be three numbers of at least 0 that add up to 1; got {tuple(weights)!r}.")
    return float(composite(di, spd, eo, weights))


def composite_band(score: float) -> str | None:
    """Return the risk band of a composite score: "High Risk" below .60, "Medium Risk" below .80, else "Low Risk".

    Returns
    -------
    str or None
        None if the score is NaN: an unknown score has no band.

    Examples
    --------
    >>> composite_band(0.7150), composite_band(0.8), composite_band(float("nan"))
    ('Medium Risk', 'Low Risk', None)
    """
    if np.isnan(score):
        return None
    return next((band for limit, band in BANDS if below(score, limit)), "Low Risk")


def calculate_disparate_impact(privileged_rate: float, unprivileged_rate: float) -> float:
    """Return the ratio of two selection rates, unprivileged over privileged.

    Raises
    ------
    ValueError
        If a rate is outside [0, 1], or the privileged rate is 0: the ratio does not exist.

    Examples
    --------
    >>> calculate_disparate_impact(0.8, 0.4)
    0.5
    """
    for name, rate in (("privileged_rate", privileged_rate), ("unprivileged_rate", unprivileged_rate)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} must lie in [0, 1]; got {rate!r}.")
    if privileged_rate == 0:
        raise ValueError(
            "privileged_rate is 0, so the ratio is undefined: nobody of the privileged group was selected."
        )
    return unprivileged_rate / privileged_rate


def compute_composite_bias_score(di: float, spd: float, eo: float) -> float:
    """Return :func:`composite_bias_score` under the name of the rule it comes from."""
    return composite_bias_score(di, spd, eo)


def calculate_statistical_parity_difference(privileged_rate: float, unprivileged_rate: float) -> float:
    """Return the difference of two selection rates, unprivileged minus privileged.

    Examples
    --------
    >>> round(calculate_statistical_parity_difference(0.7, 0.4), 10)
    -0.3
    """
    for name, rate in (("privileged_rate", privileged_rate), ("unprivileged_rate", unprivileged_rate)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} must lie in [0, 1]; got {rate!r}.")
    return unprivileged_rate - privileged_rate


def calculate_equalized_odds_difference(tpr_difference: float, fpr_difference: float) -> float:
    """Return the larger of two absolute differences, of true and of false positive rates.

    Examples
    --------
    >>> calculate_equalized_odds_difference(-0.2, 0.1)
    0.2
    """
    return float(np.maximum(abs(tpr_difference), abs(fpr_difference)))


# --------------------------------------------------------------------------------------------------------- reference
def choose_reference(
    values: Floats, sizes: NDArray[Any], eligible: NDArray[np.bool_], known: NDArray[np.bool_] | None = None
) -> int:
    """Return the group with the highest value among the eligible; ties by size, then by order.

    Parameters
    ----------
    values : ndarray of shape (n_groups,)
        The rate by which groups are ranked; undefined ones are never chosen.
    sizes : ndarray of shape (n_groups,)
        Rows by group.
    eligible : ndarray of bool of shape (n_groups,)
        Groups that may be chosen. If none may, the largest is named, so that the report can say so.
    known : ndarray of bool of shape (n_groups,), optional
        Groups that may be named then: all but the missing bucket; where there is no other, that one.

    Returns
    -------
    int
    """
    allowed = eligible & ~np.isnan(values)
    if not allowed.any():
        named = np.ones(sizes.size, dtype=bool) if known is None or not known.any() else known
        return int(np.argmax(np.where(named, sizes, -1)))
    highest = np.max(values[allowed])
    tied = allowed & (values >= highest - 1e-12)
    return int(np.argmax(np.where(tied, sizes, -1)))


# ------------------------------------------------------------------------------------------------------- trade-offs
def pareto_efficient(performance: Any, disparity: Any) -> NDArray[np.bool_]:
    """Tell which points no other point beats: none is as good in both and better in one. Points with NaN are not.

    Parameters
    ----------
    performance : array-like of shape (n_points,)
        Greater is better.
    disparity : array-like of shape (n_points,)
        Smaller is better.

    Returns
    -------
    ndarray of bool of shape (n_points,)

    Examples
    --------
    >>> pareto_efficient([0.7, 0.8, 0.6], [0.1, 0.2, 0.1]).tolist()
    [True, True, False]
    """
    performance, disparity = np.asarray(performance, dtype=float), np.asarray(disparity, dtype=float)
    known = ~(np.isnan(performance) | np.isnan(disparity))
    efficient = np.zeros(performance.shape, dtype=bool)
    for i in np.flatnonzero(known):
        as_good = known & (performance >= performance[i]) & (disparity <= disparity[i])
        efficient[i] = not (as_good & ((performance > performance[i]) | (disparity < disparity[i]))).any()
    return efficient


# ------------------------------------------------------------------------------------------- adverse impact, in people
def shortfall(count: float, nobs: float, count_reference: float, nobs_reference: float) -> float:
    """Return how many more of the group would have been selected at the pooled rate (UGESP practice).

    Examples
    --------
    >>> shortfall(45, 100, 60, 100)
    7.5
    """
    return nobs * (count + count_reference) / (nobs + nobs_reference) - count


def flip_flop(count: float, nobs: float, count_reference: float, nobs_reference: float) -> bool:
    """Tell whether one more selected in the group and one fewer in the reference reverses which rate is higher.

    The Uniform Guidelines (Q&A 21) then hold the numbers too small for a finding of adverse impact.

    Examples
    --------
    >>> flip_flop(3, 20, 16, 80)
    True
    """
    if count + 1 > nobs or count_reference - 1 < 0:
        return False
    return bool((count + 1) * nobs_reference > (count_reference - 1) * nobs) and bool(
        count * nobs_reference < count_reference * nobs
    )


def confusion_of(counts: Any, outcome: str = "favorable") -> Confusion:
    """Return counts of shape (..., 2, 2) or (..., 1, 2) as a :class:`Confusion` of floats."""
    return Confusion(np.asarray(counts, dtype=float), outcome)
