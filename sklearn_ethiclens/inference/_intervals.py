"""Closed-form and score confidence intervals for a rate, a difference of rates and a ratio of rates.

Every function takes counts (selected or wrong rows, out of all rows) and broadcasts over arrays of any shape. Counts
need not be whole numbers: weighted rates come in as effective counts. NaN in, NaN out; an empty denominator gives NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

__all__ = [
    "Bounds",
    "Interval",
    "clopper_pearson_interval",
    "katz_interval",
    "koopman_interval",
    "miettinen_nurminen_difference_interval",
    "miettinen_nurminen_ratio_interval",
    "newcombe_interval",
    "wald_difference_interval",
    "wilson_interval",
]

FloatArray = npt.NDArray[np.float64]

# Newton below starts where the statistic is at most twice its target and is convex, so it never leaves the root's
# right side and doubles its digits at each step; the tests compare with bisection.
_NEWTON_STEPS = 8
# A count this close to 0, or (as a share) to all of its rows, is taken to be there: the score equations change form.
_SNAP = 1e-9


class Bounds(NamedTuple):
    """The two ends of an interval, or of an array of intervals."""

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Interval:
    """One confidence interval together with how it was made.

    Parameters
    ----------
    low, high : float
        The two ends; NaN where no interval could be given.
    method : str
        The method that was used, also when it is not the one that was asked for.
    confidence_level : float
        In (0, 1).
    degenerate : bool, default=False
        True when all replicates were equal: the interval has no width and proves nothing.
    valid_share : float, default=1.0
        Share of the bootstrap replicates in which the statistic was defined; 1 for closed forms.

    Examples
    --------
    >>> interval = Interval(0.25, 0.75, "wilson", 0.95)
    >>> 0.5 in interval, 0.8 in interval, interval.width
    (True, False, 0.5)
    """

    low: float
    high: float
    method: str
    confidence_level: float
    degenerate: bool = False
    valid_share: float = 1.0

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    @property
    def width(self) -> float:
        """Length of the interval; NaN without an interval."""
        return self.high - self.low


# --------------------------------------------------------------------------------------------------------- one rate
@np.errstate(divide="ignore", invalid="ignore")
def wilson_interval(count: npt.ArrayLike, nobs: npt.ArrayLike, *, confidence_level: npt.ArrayLike = 0.95) -> Bounds:
    """Wilson score interval for a rate.

    All rates that a normal test with the variance *under the tested rate* does not reject. Never empty, never outside
    [0, 1], and of honest width at 0 and at n successes, where the bootstrap and the Wald interval shrink to a point.

    Parameters
    ----------
    count : array-like
        Rows with the event, 0 <= count <= nobs.
    nobs : array-like
        All rows, broadcast against `count`.
    confidence_level : array-like, default=0.95
        In (0, 1).

    Returns
    -------
    Bounds
        Arrays `low`, `high` of the broadcast shape (scalars for scalars), in [0, 1]; NaN where `nobs` is 0.

    Notes
    -----
    Assumes independent rows of one common rate. Coverage swings around its nominal value with n and the rate, by a
    point or two from 5 expected events on. It falls short next to 0 and 1: to 0.84 at 0.18 expected events, and to
    0.92 between one and five.

    References
    ----------
    Wilson (1927), JASA 22:209-212; Newcombe (1998), Statistics in Medicine 17:857-872, method 3.

    Examples
    --------
    With no event in n rows the upper end is z**2 / (n + z**2), here 3.8415 / 23.8415:

    >>> low, high = wilson_interval(0, 20)
    >>> print(f"{low:.4f} {high:.4f}")
    0.0000 0.1611
    """
    z = normal_quantile(confidence_level)
    count, nobs = check_counts(count, nobs)
    scale = nobs + z**2
    centre = (count + z**2 / 2) / scale
    half = z * np.sqrt(count * (nobs - count) / nobs + z**2 / 4) / scale
    low = np.where((count == 0) & (nobs > 0), 0.0, np.maximum(centre - half, 0.0))
    high = np.where((count == nobs) & (nobs > 0), 1.0, np.minimum(centre + half, 1.0))
    return Bounds(low[()], high[()])


@np.errstate(divide="ignore", invalid="ignore")
def clopper_pearson_interval(
    count: npt.ArrayLike, nobs: npt.ArrayLike, *, confidence_level: npt.ArrayLike = 0.95
) -> Bounds:
    """Exact (Clopper-Pearson) interval for a rate.

    All rates that neither one-sided exact binomial test rejects. Coverage is never below the nominal level and often
    far above it, so its intervals are wider than `wilson_interval`'s: use it where a guarantee is asked for.

    Parameters
    ----------
    count, nobs, confidence_level : array-like
        As in `wilson_interval`.

    Returns
    -------
    Bounds
        In [0, 1]; NaN where `nobs` is 0.

    Notes
    -----
    Assumes independent rows of one common rate. The guarantee holds for whole counts only.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26:404-413.

    Examples
    --------
    With no event in n rows the upper end is 1 - 0.025**(1/n); for n = 1 that is 0.975:

    >>> low, high = clopper_pearson_interval(0, 1)
    >>> print(f"{low:.4f} {high:.4f}")
    0.0000 0.9750
    """
    tail = (1 - check_fraction(confidence_level, "confidence_level")) / 2
    count, nobs = check_counts(count, nobs)
    # betaincinv wants positive parameters; the ends it cannot give are 0 and 1.
    below = betaincinv(np.where(count > 0, count, 1.0), nobs - count + 1, tail)
    above = betaincinv(count + 1, np.where(count < nobs, nobs - count, 1.0), 1 - tail)
    unknown = np.where((nobs > 0) & ~np.isnan(count), 0.0, np.nan)
    low: FloatArray = np.where(count > 0, below, 0.0) + unknown
    high: FloatArray = np.where(count < nobs, above, 1.0) + unknown
    return Bounds(low[()], high[()])


# ------------------------------------------------------------------------------------------------------- difference
@np.errstate(divide="ignore", invalid="ignore")
def wald_difference_interval(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> Bounds:
    """Wald interval for a difference of rates: for comparison with other software only.

    Estimate plus or minus z standard errors. It misleads where it matters: it can leave [-1, 1], it has no width when
    both rates are 0 or 1, and with few events it is too short.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `newcombe_interval`.

    Returns
    -------
    Bounds
        Unbounded; NaN where a denominator is 0.

    Notes
    -----
    Assumes two independent samples large enough for a normal difference. Exact coverage at 95% for rates of 0.05 in
    both groups: 0.81 with 30 against 120 rows, 0.93 with 100 against 400.

    References
    ----------
    Fagerland, Lydersen and Laake (2015), Statistical Methods in Medical Research 24:224-254.

    Examples
    --------
    0.5 against 0.5 with 100 rows each: 0 +- 1.96 sqrt(0.25/100 + 0.25/100) = 0 +- 1.96 x 0.0707

    >>> low, high = wald_difference_interval(50, 100, 50, 100)
    >>> print(f"{low:.4f} {high:.4f}")
    -0.1386 0.1386
    """
    z = normal_quantile(confidence_level)
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    difference = x1 / n1 - x2 / n2
    half: FloatArray = z * np.sqrt(x1 * (n1 - x1) / n1**3 + x2 * (n2 - x2) / n2**3)
    return Bounds((difference - half)[()], (difference + half)[()])


@np.errstate(divide="ignore", invalid="ignore")
def newcombe_interval(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> Bounds:
    """Newcombe's hybrid score interval for a difference of rates.

    For the rate of the group minus the rate of the reference: the distances from the two rates to the ends of their
    Wilson intervals, squared and added. Has honest width when a rate is 0 or 1.

    Parameters
    ----------
    count, nobs : array-like
        Rows with the event and all rows of the group, 0 <= count <= nobs.
    count_reference, nobs_reference : array-like
        The same of the reference group. All four are broadcast.
    confidence_level : array-like, default=0.95
        In (0, 1).

    Returns
    -------
    Bounds
        Arrays `low`, `high` of the broadcast shape (scalars for scalars), in [-1, 1]; NaN where a denominator is 0.

    Notes
    -----
    Assumes two independent samples. Measured mean coverage 0.957, 0.950 and 0.950 (lowest 0.943) at n = 30, 100 and
    300 with four times as many reference rows. Next to 0 and 1 it is too long rather than too short (exact coverage
    0.97 to 0.99 for rates of 0.05 and n = 30): `miettinen_nurminen_difference_interval` is shorter there.

    References
    ----------
    Newcombe (1998), Statistics in Medicine 17:873-890, method 10.

    Examples
    --------
    0 of 10 against 0 of 20. Wilson's upper ends are z**2 / (n + z**2) = 0.2775 and 0.1611, and the distances to the
    other ends are 0, so each end of the interval is one of them:

    >>> low, high = newcombe_interval(0, 10, 0, 20)
    >>> print(f"{low:.4f} {high:.4f}")
    -0.1611 0.2775
    """
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    low1, high1 = wilson_interval(x1, n1, confidence_level=confidence_level)
    low2, high2 = wilson_interval(x2, n2, confidence_level=confidence_level)
    rate1, rate2 = x1 / n1, x2 / n2
    low = rate1 - rate2 - np.hypot(rate1 - low1, high2 - rate2)
    high = rate1 - rate2 + np.hypot(high1 - rate1, rate2 - low2)
    return Bounds(low[()], high[()])


def miettinen_nurminen_difference_interval(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> Bounds:
    """Miettinen-Nurminen score interval for a difference of rates.

    All differences d that the score test of "rate minus reference rate is d" does not reject; the variance is that of
    the most likely pair of rates with this difference, times N / (N - 1).

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `newcombe_interval`.

    Returns
    -------
    Bounds
        In [-1, 1]; NaN where a denominator is 0 or N, all rows together, is not above 1.

    Notes
    -----
    Assumes two independent samples. Exact coverage at 95% was 0.94 to 0.97 for rates of 0.05 to 0.5 and 20 to 100
    rows in the group; the low end is where fewer than about 5 events are expected.

    References
    ----------
    Miettinen and Nurminen (1985), Statistics in Medicine 4:213-226.

    Examples
    --------
    0 of 10 against 10 of 10 is -1. With d = -1 + e the most likely pair is (e/2, 1 - e/2), and (N - 1)/N times e**2
    over e/2 (1 - e/2) / 5 equals z**2 at e/2 = 1 / (1 + 20 (19/20) / z**2), so the upper end is -1 + 2/5.9460:

    >>> low, high = miettinen_nurminen_difference_interval(0, 10, 10, 10)
    >>> print(f"{low:.4f} {high:.4f}")
    -1.0000 -0.6636
    """
    z = normal_quantile(confidence_level)
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    target = _inflated(z**2, n1 + n2)
    low = _score_difference_low(x1, n1, x2, n2, target)
    high = -_score_difference_low(x2, n2, x1, n1, target)
    return Bounds(low[()], high[()])


# ------------------------------------------------------------------------------------------------------------ ratio
@np.errstate(divide="ignore", invalid="ignore")
def katz_interval(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
    correction: Literal["walter"] | None = None,
) -> Bounds:
    """Katz log interval for a ratio of rates.

    For the rate of the group over the rate of the reference: a Wald interval on the log scale. The interval most
    publications print, and scipy's `relative_risk`.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `newcombe_interval`.
    correction : {"walter"}, default=None
        The formula gives nothing when a count is 0, and a point when both rates are 1. None: NaN there. "walter":
        there, and only there, 1/2 is added to both counts and both numbers of rows. The corrected interval is finite,
        and does not contain an estimated ratio of 0.

    Returns
    -------
    Bounds
        In (0, inf); NaN where a denominator is 0 and where the formula gives nothing.

    Notes
    -----
    Assumes two independent samples and a log ratio that is nearly normal. Low rates with few events make it too long
    (mean coverage 0.960 at n = 30, median width 1.15 times Miettinen-Nurminen's), which costs power. Rates close to 1
    make it too short: exact coverage with Walter's correction at 95%, for 0.95 against 0.98, is 0.78 with 30 against
    120 rows and 0.92 with 100 against 400.

    References
    ----------
    Katz, Baptista, Azen and Pike (1978), Biometrics 34:469-474; Walter (1975), Biometrika 62:371-374.

    Examples
    --------
    0.5 against 0.5 with 100 rows each: exp(+- 1.96 sqrt(1/50 - 1/100 + 1/50 - 1/100)) = exp(+- 1.96 x 0.1414)

    >>> low, high = katz_interval(50, 100, 50, 100)
    >>> print(f"{low:.4f} {high:.4f}")
    0.7579 1.3194
    """
    if correction not in (None, "walter"):
        raise ValueError(f"correction must be one of [None, 'walter']; got {correction!r}.")
    z = normal_quantile(confidence_level)
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    silent = (x1 == 0) | (x2 == 0) | ((x1 == n1) & (x2 == n2))
    added = np.where(silent & (n1 > 0) & (n2 > 0), 0.5 if correction else np.nan, 0.0)
    x1, n1, x2, n2 = x1 + added, n1 + added, x2 + added, n2 + added
    ratio = (x1 / n1) / (x2 / n2)
    factor = np.exp(z * np.sqrt(1 / x1 - 1 / n1 + 1 / x2 - 1 / n2))
    return Bounds((ratio / factor)[()], (ratio * factor)[()])


def koopman_interval(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> Bounds:
    """Koopman score interval for a ratio of rates.

    As `miettinen_nurminen_ratio_interval` without the factor N / (N - 1), so a trifle shorter.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `newcombe_interval`.

    Returns
    -------
    Bounds
        In [0, inf]; `low` is 0 where `count` is 0, `high` is inf where `count_reference` is 0; NaN where a denominator
        is 0.

    Notes
    -----
    Assumes two independent samples. Exact coverage at 95% was 0.94 to 0.97 for rates of 0.05 to 0.5 and 20 to 100
    rows in the group; the low end is where fewer than about 5 events are expected.

    References
    ----------
    Koopman (1984), Biometrics 40:513-517; Gart and Nam (1988), Biometrics 44:323-338.

    Examples
    --------
    Both rates 1: with a ratio r below 1 the most likely pair is (r, 1), and the statistic n (1 - r) / r is z**2 at
    r = n / (n + z**2); the upper end is its inverse:

    >>> low, high = koopman_interval(20, 20, 20, 20)
    >>> print(f"{low:.4f} {high:.4f}")
    0.8389 1.1921
    """
    z = normal_quantile(confidence_level)
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    return _score_ratio(x1, n1, x2, n2, z**2)


def miettinen_nurminen_ratio_interval(
    count: npt.ArrayLike,
    nobs: npt.ArrayLike,
    count_reference: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    confidence_level: npt.ArrayLike = 0.95,
) -> Bounds:
    """Miettinen-Nurminen score interval for a ratio of rates, such as disparate impact.

    All ratios that the score test does not reject; the variance is that of the most likely pair of rates with this
    ratio, times N / (N - 1). Defined for every count, 0 included, which is why verdicts may rest on it.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference, confidence_level : array-like
        As in `newcombe_interval`.

    Returns
    -------
    Bounds
        In [0, inf]; `low` is 0 where `count` is 0, `high` is inf where `count_reference` is 0 (both when both are: the
        data say nothing about the ratio); NaN where a denominator is 0 or N, all rows together, is not above 1.

    Notes
    -----
    Assumes two independent samples. Measured mean coverage 0.955, 0.950 and 0.950 (lowest 0.940) at n = 30, 100 and
    300 with four times as many reference rows, reference rates 0.05 to 0.5 and ratios 0.6 to 1; the rule
    "upper end below 0.80" flagged at most 2.5% of true ratios of 0.80.

    With x of n and y of m rows, the likelihood equation of the pair (p, q), p = r q, reads
    (x - n p) / (1 - p) = -(y - m q) / (1 - q) = t, and so p = (x - t) / (n - t), q = (y + t) / (m + t), and the
    statistic is t**2 (a / (x - t) + b / (y + t)) with a, b the shares without the event: convex in t.
    Its two roots are found by Newton's method, from a side from which it cannot overshoot.

    References
    ----------
    Miettinen and Nurminen (1985), Statistics in Medicine 4:213-226.

    Examples
    --------
    Both rates 1 and n = 20: as in `koopman_interval` with z**2 times 40/39, so 20 / (20 + 3.9400):

    >>> low, high = miettinen_nurminen_ratio_interval(20, 20, 20, 20)
    >>> print(f"{low:.4f} {high:.4f}")
    0.8354 1.1970
    """
    z = normal_quantile(confidence_level)
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    return _score_ratio(x1, n1, x2, n2, _inflated(z**2, n1 + n2))


# -------------------------------------------------------------------------------------------------- score equations
@np.errstate(divide="ignore", invalid="ignore")
def _inflated(target: FloatArray, total: FloatArray) -> FloatArray:
    """Variance times N / (N - 1) is the statistic times (N - 1) / N: ask for N / (N - 1) times the target instead."""
    return np.where(total > 1, target * total / (total - 1), np.nan)


@np.errstate(divide="ignore")
def _score_ratio(x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, target: FloatArray) -> Bounds:
    low = _score_ratio_low(x1, n1, x2, n2, target)
    high = 1 / _score_ratio_low(x2, n2, x1, n1, target)
    return Bounds(low[()], high[()])


@np.errstate(divide="ignore", invalid="ignore")
def _score_ratio_low(x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, target: FloatArray) -> FloatArray:
    """The ratio below the estimate at which the uncorrected score statistic reaches `target` (see the Notes above)."""
    x1, x2 = _snapped(x1, n1), _snapped(x2, n2)
    a, b = (n1 - x1) / n1, (n2 - x2) / n2
    # Each of the two terms grows with t and reaches the target alone at these t; at the smaller, the sum is 1 to 2
    # times the target.
    alone1 = 2 * target * x1 / (target + np.sqrt(target**2 + 4 * a * target * x1))
    alone2 = (target + np.sqrt(target**2 + 4 * b * target * x2)) / (2 * b)
    t = np.minimum(alone1, alone2)
    for _ in range(_NEWTON_STEPS):
        left, right = x1 - t, x2 + t
        excess = t**2 * (a / left + b / right) - target
        t = t - excess / (t * (a * (2 * x1 - t) / left**2 + b * (2 * x2 + t) / right**2))
    low = (x1 - t) / (n1 - t) * (n2 + t) / (x2 + t)
    # Rate 1: p stays 1 until t = n, where t stays and p comes down.
    t = np.minimum(alone2, n1)
    left_over = np.maximum(target - t**2 * b / (x2 + t), 0.0)
    low_of_full = (n2 + t) / (x2 + t) / (1 + left_over / n1)
    low = np.where(x1 == n1, low_of_full, np.where(x1 == 0, 0.0, low))
    return np.where((n1 > 0) & (n2 > 0) & ~np.isnan(x1 + x2 + target), low, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def _score_difference_low(
    x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, target: FloatArray
) -> FloatArray:
    """The difference below the estimate at which the uncorrected score statistic reaches `target`.

    The likelihood equation of (p, q), q = p - d, reads (x - n p) / (p (1 - p)) = -(y - m q) / (q (1 - q)) = t. For
    each t > 0 both are quadratics; in terms of "q' = 1 - q, y' = m - y" they are the same one, with the root in [0, 1]
    that `_falling` gives. The statistic is t (x/n - p) + t (y'/m - q'), convex in t; d = p + q' - 1.
    """
    x, y = _snapped(x1, n1), n2 - _snapped(x2, n2)
    t = np.minimum(_alone(x, n1, target), _alone(y, n2, target))
    for _ in range(_NEWTON_STEPS):
        p, slope1 = _falling(t, x, n1)
        q, slope2 = _falling(t, y, n2)
        t = t - (t * (x / n1 - p + y / n2 - q) - target) / (slope1 + slope2)
    low = np.clip(_falling(t, x, n1)[0] + _falling(t, y, n2)[0] - 1, -1.0, 1.0)
    low = np.where((x == 0) & (y == 0), -1.0, low)
    return np.where((n1 > 0) & (n2 > 0) & ~np.isnan(x1 + x2 + target), low, np.nan)


def _falling(t: FloatArray, x: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The root p of x - n p = t p (1 - p), and the slope in t of t (x/n - p)."""
    root = np.sqrt((n - t) ** 2 + 4 * t * (n - x))
    slope = np.where(root > 0, x / n - 0.5 + (t + n - 2 * x) / (2 * root), 1.0)
    return 2 * x / (n + t + root), slope


def _alone(x: FloatArray, n: FloatArray, target: FloatArray) -> FloatArray:
    """The t at which t (x/n - p) by itself reaches the target; infinite at x = 0."""
    p = x / n
    variance, lean = p * (1 - p), target * (1 - 2 * p)
    root = np.sqrt(target**2 + 4 * variance * n * target)
    return np.where(lean > 0, (lean + root) / (2 * variance), 2 * target * (n + target) / (root - lean))


def _snapped(count: FloatArray, nobs: FloatArray) -> FloatArray:
    return np.where(count <= _SNAP, 0.0 * count, np.where(nobs - count <= _SNAP * nobs, nobs, count))


# -------------------------------------------------------------------------------------------------------- arguments
def check_fraction(value: npt.ArrayLike, name: str) -> FloatArray:
    """`value` as an array, or ValueError unless it lies strictly between 0 and 1, TypeError unless it is a number."""
    array = _numbers(value, name, "(0, 1)")
    wrong = array[~((array > 0) & (array < 1))]
    if wrong.size:
        hint = f" Did you mean {wrong[0] / 100:g}?" if 1 < wrong[0] < 100 else ""
        raise ValueError(f"{name} must lie in (0, 1); got {wrong[0]:g}.{hint}")
    return array


def _numbers(value: npt.ArrayLike, name: str, where: str) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number in {where}; got {value!r}.") from error
    if value is None:  # which numpy reads as NaN
        raise TypeError(f"{name} must be a number in {where}; got None.")
    return array


def check_rate(value: npt.ArrayLike, name: str) -> FloatArray:
    """`value` as an array, or ValueError unless it lies in [0, 1], TypeError unless it is a number; NaN passes."""
    array = _numbers(value, name, "[0, 1]")
    wrong = array[(array < 0) | (array > 1)]
    if wrong.size:
        hint = f" Did you mean {wrong[0] / 100:g}?" if 1 < wrong[0] <= 100 else ""
        raise ValueError(f"{name} must lie in [0, 1]; got {wrong[0]:g}.{hint}")
    return array


def check_counts(count: npt.ArrayLike, nobs: npt.ArrayLike, suffix: str = "") -> tuple[FloatArray, FloatArray]:
    """Both as float arrays of one shape, or ValueError unless 0 <= count <= nobs; NaN passes."""
    array, total = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(nobs, dtype=np.float64))
    for name, values in (("count", array), ("nobs", total)):
        if (values < 0).any() or np.isinf(values).any():
            wrong = values[(values < 0) | np.isinf(values)][0]
            raise ValueError(f"{name}{suffix} must be finite and not negative; got {wrong:g}.")
    # Sums of weights may pass their total by rounding.
    above = array > total * (1 + 1e-12)
    if above.any():
        raise ValueError(
            f"count{suffix} must not exceed nobs{suffix}; got {array[above][0]:g} of {total[above][0]:g}. "
            "Were the two swapped?"
        )
    return np.minimum(array, total), total


def check_two_counts(
    count: npt.ArrayLike, nobs: npt.ArrayLike, count_reference: npt.ArrayLike, nobs_reference: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The counts of a group and of its reference, checked and broadcast to one shape."""
    x1, n1 = check_counts(count, nobs)
    x2, n2 = check_counts(count_reference, nobs_reference, "_reference")
    x1, n1, x2, n2 = np.broadcast_arrays(x1, n1, x2, n2)
    return x1, n1, x2, n2


def normal_quantile(confidence_level: npt.ArrayLike) -> FloatArray:
    """Standard normal z with this probability between -z and z."""
    z: FloatArray = -ndtri((1 - check_fraction(confidence_level, "confidence_level")) / 2)
    return z
