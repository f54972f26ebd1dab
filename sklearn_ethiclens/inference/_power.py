"""What a sample could have shown: power, sample size, the smallest gap that would be seen, the half-width of a rate."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from sklearn_ethiclens.inference._intervals import FloatArray, check_fraction, check_rate, normal_quantile
from sklearn_ethiclens.inference._tests import cohens_h

__all__ = [
    "half_width",
    "minimum_detectable_difference",
    "power_label",
    "power_two_proportions",
    "sample_size_rate",
    "sample_size_two_proportions",
]

MARGINAL_POWER = 0.5
ADEQUATE_POWER = 0.7


@np.errstate(divide="ignore", invalid="ignore")
def power_two_proportions(
    p: npt.ArrayLike,
    p_reference: npt.ArrayLike,
    nobs: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    alpha: npt.ArrayLike = 0.05,
    alternative: Literal["two-sided", "larger"] = "two-sided",
    method: Literal["pooled_z", "arcsine"] = "pooled_z",
) -> FloatArray:
    """Probability that a two-proportion test rejects when the two rates are these.

    For rates that are *supposed*, such as the reference rate and a gap that would matter. With the observed rates it
    only repeats the p-value.

    Parameters
    ----------
    p, p_reference : array-like
        The supposed rates, in [0, 1].
    nobs, nobs_reference : array-like
        Numbers of rows. All four are broadcast.
    alpha : array-like, default=0.05
        Level of the test, in (0, 1).
    alternative : {"two-sided", "larger"}, default="two-sided"
        "larger": only a group rate above the reference rate counts.
    method : {"pooled_z", "arcsine"}, default="pooled_z"
        "pooled_z": the test of `two_proportion_ztest` (R: `power.prop.test(strict=TRUE)`). "arcsine": with Cohen's h,
        as R's pwr package.

    Returns
    -------
    ndarray
        In [0, 1]; `alpha` at equal rates; NaN where a number of rows is 0. Where both rates are 0 or 1 nothing is left
        to chance and the power is 0 or 1.

    Notes
    -----
    A normal approximation for two independent samples; it promises too much when fewer than about 5 events are
    expected, where Fisher's test, which has less power, takes over.

    References
    ----------
    Fleiss, Levin and Paik (2003), Statistical Methods for Rates and Proportions, chapter 4; Cohen (1988), chapter 6.

    Examples
    --------
    388 rows a group show a gap of 0.10 at 0.50 four times in five; 35 rows against 165 show it one time in five:

    >>> power_two_proportions(0.6, 0.5, [388, 35], [388, 165]).round(2).tolist()
    [0.8, 0.19]
    """
    if alternative not in ("two-sided", "larger"):
        raise ValueError(f"alternative must be one of ['two-sided', 'larger']; got {alternative!r}.")
    if method not in ("pooled_z", "arcsine"):
        raise ValueError(f"method must be one of ['pooled_z', 'arcsine']; got {method!r}.")
    p, p_reference = check_rate(p, "p"), check_rate(p_reference, "p_reference")
    n, m = _check_positive(nobs, "nobs"), _check_positive(nobs_reference, "nobs_reference")
    alpha = check_fraction(alpha, "alpha")
    if method == "arcsine":
        gap = cohens_h(p, p_reference)
        null = true = np.sqrt(1 / n + 1 / m)
    else:
        gap = p - p_reference
        null, true = _standard_errors(p, p_reference, n, m)
    critical = null * -ndtri(alpha / 2 if alternative == "two-sided" else alpha)
    power = _reaches(gap - critical, true)
    if alternative == "two-sided":
        power = power + _reaches(-gap - critical, true)
    return np.minimum(power, 1.0)[()]


@np.errstate(divide="ignore", invalid="ignore")
def sample_size_two_proportions(
    p: npt.ArrayLike,
    p_reference: npt.ArrayLike,
    *,
    power: npt.ArrayLike = 0.8,
    alpha: npt.ArrayLike = 0.05,
    ratio: npt.ArrayLike = 1.0,
) -> FloatArray:
    """Rows of the group at which the two-sided pooled z test has the asked power.

    Parameters
    ----------
    p, p_reference : array-like
        The supposed rates, in [0, 1].
    power, alpha : array-like
        In (0, 1).
    ratio : array-like, default=1.0
        Reference rows for each row of the group, positive.

    Returns
    -------
    ndarray
        Not rounded: take the ceiling. The reference needs `ratio` times as many. Infinite at equal rates.

    Notes
    -----
    R's `power.prop.test` (`strict=FALSE`): rejections in the wrong direction are not counted on. Lehr's rule of thumb,
    16 p (1 - p) / d**2, is some 3% above it.

    References
    ----------
    Fleiss, Levin and Paik (2003), Statistical Methods for Rates and Proportions, chapter 4; Lehr (1992), Statistics in
    Medicine 11:1099-1102.

    Examples
    --------
    ((1.960 sqrt(2 x 0.55 x 0.45) + 0.842 sqrt(0.5 x 0.5 + 0.6 x 0.4)) / 0.1)**2 = ((1.3791 + 0.5892) / 0.1)**2

    >>> print(f"{sample_size_two_proportions(0.6, 0.5):.1f}")
    387.3
    """
    p, p_reference = check_rate(p, "p"), check_rate(p_reference, "p_reference")
    power, alpha = check_fraction(power, "power"), check_fraction(alpha, "alpha")
    ratio = _check_positive(ratio, "ratio")
    null, true = _standard_errors(p, p_reference, np.ones(()), ratio)
    needed = np.maximum(ndtri(power) * true - ndtri(alpha / 2) * null, 0.0)
    n = np.where(p == p_reference, np.inf, (needed / (p - p_reference)) ** 2)
    return n[()]


def minimum_detectable_difference(
    p_reference: npt.ArrayLike,
    nobs: npt.ArrayLike,
    nobs_reference: npt.ArrayLike,
    *,
    power: npt.ArrayLike = 0.8,
    alpha: npt.ArrayLike = 0.05,
) -> FloatArray:
    """Smallest gap to the reference rate that the two-sided pooled z test detects with the asked power.

    Parameters
    ----------
    p_reference : array-like
        Rate of the reference, in [0, 1].
    nobs, nobs_reference : array-like
        Numbers of rows. All three are broadcast.
    power, alpha : array-like
        In (0, 1).

    Returns
    -------
    ndarray
        d > 0, for a group rate of p_reference + d where `p_reference` is at most 0.5 and p_reference - d where it is
        above: towards the middle, where rates vary more, so that the same gap in the other direction is detected too.
        NaN where no gap that stays within [0, 1] is detected with this power, and where a number of rows is 0.

    Notes
    -----
    As `sample_size_two_proportions`, whose inverse it is. Falls as either number of rows grows.

    References
    ----------
    Fleiss, Levin and Paik (2003), Statistical Methods for Rates and Proportions, chapter 4.

    Examples
    --------
    The inverse of the example of `sample_size_two_proportions`:

    >>> print(f"{minimum_detectable_difference(0.5, 387.34, 387.34):.4f}")
    0.1000
    """
    start, n, m, power, alpha = np.broadcast_arrays(
        check_rate(p_reference, "p_reference"),
        _check_positive(nobs, "nobs"),
        _check_positive(nobs_reference, "nobs_reference"),
        check_fraction(power, "power"),
        check_fraction(alpha, "alpha"),
    )
    z_power, z_alpha = ndtri(power), -ndtri(alpha / 2)
    # A rate p has the variance of the rate 1 - p: with the start mirrored below 1/2 the direction is always up.
    start = np.minimum(start, 1 - start)

    @np.errstate(divide="ignore", invalid="ignore")
    def detected(gap: FloatArray) -> npt.NDArray[np.bool_]:
        null, true = _standard_errors(np.minimum(start + gap, 1.0), start, n, m)
        return np.asarray(gap >= z_alpha * null + z_power * true)

    missed, seen = np.zeros(start.shape), 1 - start
    possible = detected(seen)
    for _ in range(52):
        middle = (missed + seen) / 2
        hit = detected(middle)
        missed, seen = np.where(hit, missed, middle), np.where(hit, middle, seen)
    return np.where(possible, seen, np.nan)[()]


@np.errstate(divide="ignore", invalid="ignore")
def half_width(nobs: npt.ArrayLike, *, p: npt.ArrayLike = 0.5, confidence_level: npt.ArrayLike = 0.95) -> FloatArray:
    """Half the length of the normal interval for a rate: how far off an estimate from so many rows may be.

    Parameters
    ----------
    nobs : array-like
        Number of rows.
    p : array-like, default=0.5
        The supposed rate, in [0, 1]; 0.5 is the worst case.
    confidence_level : array-like, default=0.95
        In (0, 1).

    Returns
    -------
    ndarray
        z sqrt(p (1 - p) / nobs), not negative; NaN where `nobs` is 0.

    Notes
    -----
    For planning. It is too small when p is within a few rows of 0 or 1; `wilson_interval` is the interval to report.

    Examples
    --------
    1.96 x 0.5 / sqrt(n):

    >>> half_width([200, 100, 30]).round(3).tolist()
    [0.069, 0.098, 0.179]
    """
    n = _check_positive(nobs, "nobs")
    p = check_rate(p, "p")
    width: FloatArray = normal_quantile(confidence_level) * np.sqrt(p * (1 - p) / n)
    return width


def sample_size_rate(
    half_width: npt.ArrayLike, *, p: npt.ArrayLike = 0.5, confidence_level: npt.ArrayLike = 0.95
) -> FloatArray:
    """Rows at which the normal interval for a rate has this half-width: the inverse of `half_width`.

    Parameters
    ----------
    half_width : array-like
        In (0, 1).
    p : array-like, default=0.5
        The supposed rate, in [0, 1]; 0.5 is the worst case.
    confidence_level : array-like, default=0.95
        In (0, 1).

    Returns
    -------
    ndarray
        Not rounded: take the ceiling.

    Examples
    --------
    (1.96 x 0.5 / 0.05)**2 = 384.1

    >>> np.ceil(sample_size_rate([0.02, 0.05, 0.10])).tolist()
    [2401.0, 385.0, 97.0]
    """
    width = check_fraction(half_width, "half_width")
    p = check_rate(p, "p")
    n: FloatArray = (normal_quantile(confidence_level) / width) ** 2 * p * (1 - p)
    return n


def power_label(power: npt.ArrayLike) -> Any:
    """The word for a power: "insufficient" below 0.5, "marginal" below 0.7, "adequate" from 0.7 on.

    Parameters
    ----------
    power : array-like
        In [0, 1]. NaN, for a comparison that cannot be made, is "insufficient".

    Returns
    -------
    str or ndarray of str objects
        A str for a scalar.

    Examples
    --------
    >>> power_label(0.69), list(power_label([0.2, 0.7]))
    ('marginal', ['insufficient', 'adequate'])
    """
    array = check_rate(power, "power")
    words = np.array(["insufficient", "marginal", "adequate"], dtype=object)
    return words[(array >= MARGINAL_POWER).astype(int) + (array >= ADEQUATE_POWER)]


def _standard_errors(p: FloatArray, q: FloatArray, n: FloatArray, m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard error of a difference of rates: with the pooled rate, as the test has it, and with the true rates."""
    pooled = (n * p + m * q) / (n + m)
    null = np.sqrt(np.maximum(pooled * (1 - pooled), 0.0) * (1 / n + 1 / m))
    return null, np.sqrt(p * (1 - p) / n + q * (1 - q) / m)


def _reaches(margin: FloatArray, error: FloatArray) -> FloatArray:
    """Probability that a normal variable with this mean and standard deviation is positive."""
    return np.where(error == 0, np.where(margin > 0, 1.0, 0.0 * margin), ndtr(margin / error))


def _check_positive(value: npt.ArrayLike, name: str) -> FloatArray:
    """Number of rows or ratio as an array; NaN passes, and 0 becomes NaN: nothing can be said."""
    array = np.asarray(value, dtype=np.float64)
    wrong = array[(array < 0) | np.isinf(array)]
    if wrong.size:
        raise ValueError(f"{name} must be finite and not negative; got {wrong[0]:g}.")
    return np.where(array == 0, np.nan, array)
