"""Two groups compared within strata and pooled over them: Mantel-Haenszel estimates, the CMH test, homogeneity.

Every function takes counts by stratum, along the last axis, and broadcasts over the others. A stratum where either group
has no row compares nothing: it is left out, and how many were used is returned. NaN in, NaN out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from sklearn_ethiclens.inference._intervals import FloatArray, check_two_counts, normal_quantile

__all__ = [
    "CMHTestResult",
    "HomogeneityTestResult",
    "PooledEstimate",
    "breslow_day_test",
    "cmh_test",
    "mantel_haenszel_difference",
    "mantel_haenszel_odds_ratio",
    "mantel_haenszel_ratio",
]


class PooledEstimate(NamedTuple):
    """A comparison pooled over strata: estimate, interval, standard error (of a ratio: of its log), strata used."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    standard_error: FloatArray
    n_strata: npt.NDArray[np.intp]


class CMHTestResult(NamedTuple):
    """Statistic, p-value, strata used, and the margin that the normal approximation rests on (Mantel and Fleiss)."""

    statistic: FloatArray
    pvalue: FloatArray
    n_strata: npt.NDArray[np.intp]
    margin: FloatArray


class HomogeneityTestResult(NamedTuple):
    """Statistic, degrees of freedom and p-value of a test that all strata have one odds ratio."""

    statistic: FloatArray
    dof: npt.NDArray[np.intp]
    pvalue: FloatArray


@np.errstate(divide="ignore", invalid="ignore")
def mantel_haenszel_ratio(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> PooledEstimate:
    """Mantel-Haenszel ratio of two rates, pooled over strata.

    The ratio of the group's rate to the reference's that the strata have in common: sum(x m / N) / sum(y n / N) with x of n
    rows in the group, y of m in the reference and N = n + m. Where the ratios differ between strata it is an average of
    them, and `breslow_day_test` is worth a look.

    Parameters
    ----------
    count, nobs : array-like of shape (..., n_strata)
        Rows with the event and all rows of the group, 0 <= count <= nobs.
    count_reference, nobs_reference : array-like of shape (..., n_strata)
        The same of the reference group. All four are broadcast.
    confidence_level : float, default=0.95
        In (0, 1).

    Returns
    -------
    PooledEstimate
        Of shape (...); `estimate` in [0, inf), 1 at parity; `standard_error` is that of its log. NaN where no stratum has
        both groups, or the reference has no event. The interval is NaN besides where the group has no event, and where
        everybody has one: the variance says nothing there.

    Notes
    -----
    A Wald interval on the log scale with the variance of Greenland and Robins, which holds for few large strata and for many
    small ones alike. Assumes rows independent within strata. Too short with fewer than about 5 events in either group.

    References
    ----------
    Mantel and Haenszel (1959), JNCI 22:719-748; Greenland and Robins (1985), Biometrics 41:55-68.

    Examples
    --------
    2 of 10 against 4 of 10, and 30 of 60 against 20 of 40: (2 x 10/20 + 30 x 40/100) / (4 x 10/20 + 20 x 60/100) = 13/14.

    >>> pooled = mantel_haenszel_ratio([2, 30], [10, 60], [4, 20], [10, 40])
    >>> round(float(pooled.estimate), 4), int(pooled.n_strata)
    (0.9286, 2)
    """
    x, n, y, m, used = _strata(count, nobs, count_reference, nobs_reference)
    total = n + m
    above, below = _sum(x * m / total, used), _sum(y * n / total, used)
    estimate = np.where(below > 0, above / below, np.nan)
    variance = _sum((n * m * (x + y) - x * y * total) / total**2, used) / (above * below)
    error = np.sqrt(np.where((above > 0) & (variance > 0), variance, np.nan))
    half = normal_quantile(confidence_level) * error
    return _pooled(estimate, estimate * np.exp(-half), estimate * np.exp(half), error, used)


@np.errstate(divide="ignore", invalid="ignore")
def mantel_haenszel_difference(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> PooledEstimate:
    """Mantel-Haenszel difference of two rates, pooled over strata.

    The mean of the strata's differences (group minus reference) with the weights n m / (n + m), which favour strata where both
    groups are large.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `mantel_haenszel_ratio`.

    Returns
    -------
    PooledEstimate
        In [-1, 1], 0 at parity; NaN where no stratum has both groups. The interval is NaN besides where the event happened,
        in each stratum, in no row or in all: nothing varies.

    Notes
    -----
    The variance is Sato's, which is right for few large strata and for many small ones; that of Greenland and Robins is so
    too, but can only be used at the estimate. Sato's is linear in the difference, so the interval is all differences that
    the score test with it does not reject (Klingenberg), which has honest width where rates are 0 or 1.
    Assumes rows independent within strata.

    References
    ----------
    Sato (1989), Biometrics 45:1323-1324; Klingenberg (2014), Statistics in Medicine 33:2968-2983; Greenland and Robins
    (1985), Biometrics 41:55-68.

    Examples
    --------
    Differences -.2 and 0 with weights 10 x 10 / 20 = 5 and 60 x 40 / 100 = 24: -1/29.

    >>> pooled = mantel_haenszel_difference([2, 30], [10, 60], [4, 20], [10, 40])
    >>> round(float(pooled.estimate), 4)
    -0.0345
    """
    x, n, y, m, used = _strata(count, nobs, count_reference, nobs_reference)
    total = n + m
    weight = _sum(n * m / total, used)
    estimate = _sum((x * m - y * n) / total, used) / weight
    slope = _sum((n**2 * y - m**2 * x + n * m * (m - n) / 2) / total**2, used) / weight**2
    level = _sum((x * (m - y) + y * (n - x)) / (2 * total), used) / weight**2
    level = np.where(level > 0, level, np.nan)
    error = np.sqrt(np.maximum(estimate * slope + level, 0.0))  # its own variance is 0 where the difference is -1 or 1
    # (estimate - d)**2 = z**2 (slope d + level) is a quadratic in d.
    z2 = normal_quantile(confidence_level) ** 2
    middle = estimate + z2 * slope / 2
    half = np.sqrt(middle**2 - estimate**2 + z2 * level)
    return _pooled(estimate, np.maximum(middle - half, -1.0), np.minimum(middle + half, 1.0), error, used)


@np.errstate(divide="ignore", invalid="ignore")
def mantel_haenszel_odds_ratio(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> PooledEstimate:
    """Mantel-Haenszel odds ratio, pooled over strata.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `mantel_haenszel_ratio`.

    Returns
    -------
    PooledEstimate
        In [0, inf), 1 at parity; `standard_error` is that of its log. NaN where the denominator sum(y (n - x) / N) is 0; the
        interval is NaN besides where the numerator sum(x (m - y) / N) is.

    Notes
    -----
    A Wald interval on the log scale with the variance of Robins, Breslow and Greenland. An odds ratio is farther from 1 than
    the ratio of the rates: it is no measure of disparate impact, but what `cmh_test` and `breslow_day_test` are about.

    References
    ----------
    Robins, Breslow and Greenland (1986), Biometrics 42:311-323.

    Examples
    --------
    (2 x 6 / 20 + 30 x 20 / 100) / (4 x 8 / 20 + 20 x 30 / 100) = 6.6 / 7.6

    >>> pooled = mantel_haenszel_odds_ratio([2, 30], [10, 60], [4, 20], [10, 40])
    >>> round(float(pooled.estimate), 4)
    0.8684
    """
    x, n, y, m, used = _strata(count, nobs, count_reference, nobs_reference)
    total = n + m
    r, s = x * (m - y) / total, y * (n - x) / total
    p, q = (x + m - y) / total, (y + n - x) / total
    above, below = _sum(r, used), _sum(s, used)
    estimate = np.where(below > 0, above / below, np.nan)
    variance = _sum(p * r, used) / above**2 + _sum(p * s + q * r, used) / (above * below) + _sum(q * s, used) / below**2
    error = np.sqrt(np.where((above > 0) & (below > 0), variance / 2, np.nan))
    half = normal_quantile(confidence_level) * error
    return _pooled(estimate, estimate * np.exp(-half), estimate * np.exp(half), error, used)


@np.errstate(divide="ignore", invalid="ignore")
def cmh_test(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    correction: bool = False,
) -> CMHTestResult:
    """Cochran-Mantel-Haenszel test that both groups have the same rate in every stratum.

    Sees differences that mostly point in one direction. Differences that point in opposite directions cancel: a large
    p-value is then no sign of equal rates, and `breslow_day_test` is the test to look at.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference : array-like
        As in `mantel_haenszel_ratio`.
    correction : bool, default=False
        Whether to take 1/2 off the absolute sum, at most down to 0. With it the test is closer to the exact one and
        rejects less often than it may.

    Returns
    -------
    CMHTestResult
        Chi-square `statistic` with one degree of freedom, and `pvalue`. Where the event happened, in each stratum, in no row or
        in all, there is no evidence of a difference: statistic 0, p-value 1. NaN where no stratum has both groups.
        `margin` is the least distance of the expected number of events of the group from what it can be: below 5 the p-value
        is not to be trusted.

    Notes
    -----
    Assumes rows independent within strata; needs no large strata, only a large sum. With one stratum it is
    `two_proportion_ztest` squared, times (N - 1) / N.

    References
    ----------
    Cochran (1954), Biometrics 10:417-451; Mantel and Haenszel (1959), JNCI 22:719-748; Mantel and Fleiss (1980), American
    Journal of Epidemiology 112:129-134.

    Examples
    --------
    40 of 100 against 60 of 100, 50 expected, in each of two strata: (2 x -10)**2 over 2 x 100 x 100 x 100 x 100 / (200**2 x 199)

    >>> result = cmh_test([40, 40], [100, 100], [60, 60], [100, 100])
    >>> print(f"{result.statistic:.2f} {result.pvalue:.6f}")
    15.92 0.000066
    """
    x, n, y, m, used = _strata(count, nobs, count_reference, nobs_reference)
    total, events = n + m, x + y
    expected = n * events / total
    distance = np.abs(_sum(x - expected, used))
    free = np.where(total < 2, total / 2, total - 1)  # effective counts can be fewer than one row on each side
    variance = _sum(n * m * events * (total - events) / (total**2 * free), used)
    if correction:
        distance = np.maximum(distance - 0.5, 0.0)
    statistic = np.where(variance == 0, 0.0, distance**2 / variance)
    n_strata = used.sum(-1)
    statistic = np.where(n_strata > 0, statistic, np.nan)
    least, most = np.maximum(0.0, events - m), np.minimum(n, events)
    margin = np.minimum(_sum(expected - least, used), _sum(most - expected, used))
    return CMHTestResult(statistic[()], chdtrc(1, statistic)[()], n_strata, margin[()])


@np.errstate(divide="ignore", invalid="ignore")
def breslow_day_test(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    correction: bool = True,
) -> HomogeneityTestResult:
    """Breslow-Day test that all strata have the same odds ratio.

    A small p-value says that one pooled number hides how much the strata differ. A large one says little: the test needs
    large strata to see anything.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference : array-like
        As in `mantel_haenszel_ratio`.
    correction : bool, default=True
        Tarone's, without which the statistic is, in theory, not quite chi-square; it seldom matters.

    Returns
    -------
    HomogeneityTestResult
        `dof` is the number of strata where both groups have rows and the event is neither absent nor in all rows, minus 1.
        NaN with fewer than two of them, and where the pooled odds ratio is 0 or undefined.

    Notes
    -----
    Assumes about 5 expected rows in most cells; with many small strata it rejects too seldom or too often.

    References
    ----------
    Breslow and Day (1980), Statistical Methods in Cancer Research I, 142-146; Tarone (1985), Biometrika 72:91-95.

    Examples
    --------
    Two strata whose difference of 20 points is turned round, so that the pooled odds ratio is 1 and 50 are expected in each
    cell: without the correction (which is 0 here) 2 x 10**2 x 4/50

    >>> result = breslow_day_test([40, 60], [100, 100], [60, 40], [100, 100])
    >>> print(f"{result.statistic:.1f} {result.dof} {result.pvalue:.5f}")
    16.0 1 0.00006
    """
    x, n, y, m, used = _strata(count, nobs, count_reference, nobs_reference)
    events = x + y
    used = used & ~((events == 0) | (events == n + m))
    odds = mantel_haenszel_odds_ratio(x, n, y, m).estimate
    odds = np.where(odds > 0, odds, np.nan)[..., np.newaxis]
    # The expected count solves (odds - 1) a**2 - linear a + odds n events = 0; this form of the root holds at odds 1 too.
    linear = m - events + odds * (n + events)
    fitted = 2 * odds * n * events / (linear + np.sqrt(linear**2 - 4 * (odds - 1) * odds * n * events))
    variance = 1 / (1 / fitted + 1 / (n - fitted) + 1 / (events - fitted) + 1 / (m - events + fitted))
    statistic = _sum((x - fitted) ** 2 / variance, used)
    if correction:
        statistic = statistic - _sum(x - fitted, used) ** 2 / _sum(variance, used)
    dof = np.maximum(used.sum(-1) - 1, 0)
    statistic = np.where((dof > 0) & ~np.isnan(odds[..., 0]), statistic, np.nan)
    return HomogeneityTestResult(statistic[()], dof, chdtrc(np.maximum(dof, 1), statistic)[()])


# -------------------------------------------------------------------------------------------------------- arguments
def _strata(
    count: npt.ArrayLike, nobs: npt.ArrayLike, count_reference: npt.ArrayLike, nobs_reference: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """The four counts, checked and of one shape, and which strata have rows of both groups (NaN counts as having)."""
    x, n, y, m = map(np.atleast_1d, check_two_counts(count, nobs, count_reference, nobs_reference))
    return x, n, y, m, (n != 0) & (m != 0)


def _sum(values: FloatArray, used: npt.NDArray[np.bool_]) -> FloatArray:
    total: FloatArray = np.where(used, values, 0.0).sum(axis=-1)
    return total


def _pooled(
    estimate: FloatArray, low: FloatArray, high: FloatArray, error: FloatArray, used: npt.NDArray[np.bool_]
) -> PooledEstimate:
    """The result; without a stratum that has both groups, all is undefined (0/0 on the way)."""
    unknown = np.isnan(estimate) | np.isnan(error)
    low, high = np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)
    error = np.where(np.isnan(estimate), np.nan, error)
    return PooledEstimate(estimate[()], low[()], high[()], error[()], used.sum(-1))
