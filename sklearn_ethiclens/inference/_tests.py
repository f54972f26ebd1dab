"""Tests of equal rates, the effect size that goes with them, and p-values adjusted for their number.

Counts in, arrays out, any shape. NaN in, NaN out; an empty denominator gives NaN.
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import chdtrc, ndtr

from sklearn_ethiclens.inference._intervals import FloatArray, check_counts, check_rate, check_two_counts

__all__ = [
    "Chi2TestResult",
    "McNemarTestResult",
    "TwoProportionTestResult",
    "ZTestResult",
    "adjust_pvalues",
    "chi2_test",
    "cohens_h",
    "fisher_exact_test",
    "mcnemar_test",
    "two_proportion_test",
    "two_proportion_ztest",
]

MIN_DISCORDANT = 25  # pairs that differ; below it McNemar's test is exact
MIN_EXPECTED = 5  # Cochran's rule: below it, in any cell, the normal approximation is not trusted

Adjustment = Literal["holm", "bh", "by", "bonferroni"]


class ZTestResult(NamedTuple):
    """Statistic and two-sided p-value of a z test."""

    statistic: FloatArray
    pvalue: FloatArray


class TwoProportionTestResult(NamedTuple):
    """Pooled z, two-sided p-value, and which test the p-value is from: "fisher", "z" or None."""

    statistic: FloatArray
    pvalue: FloatArray
    test: npt.NDArray[Any]


class Chi2TestResult(NamedTuple):
    """Statistic, degrees of freedom and p-value of a chi-square test."""

    statistic: FloatArray
    dof: npt.NDArray[np.intp]
    pvalue: FloatArray


class McNemarTestResult(NamedTuple):
    """Statistic, two-sided p-value, and which form gave it: "exact", "chi2" or None."""

    statistic: FloatArray
    pvalue: FloatArray
    test: npt.NDArray[Any]


@np.errstate(divide="ignore", invalid="ignore")
def two_proportion_ztest(
    count: npt.ArrayLike, nobs: npt.ArrayLike, count_reference: npt.ArrayLike, nobs_reference: npt.ArrayLike
) -> ZTestResult:
    """Pooled two-proportion z test of equal rates, two-sided, without continuity correction.

    The "two standard deviations" test of adverse impact practice. With many rows it rejects gaps that do not matter;
    with few, a large p-value says nothing (see `power_two_proportions`).

    Parameters
    ----------
    count, nobs : array-like
        Rows with the event and all rows of the group, 0 <= count <= nobs.
    count_reference, nobs_reference : array-like
        The same of the reference group. All four are broadcast.

    Returns
    -------
    ZTestResult
        `statistic`, negative where the group's rate is the lower one, and `pvalue` in [0, 1]. Where both rates are 0,
        or both are 1, the variance is 0 as well as the gap: no evidence of a difference, statistic 0 and p-value 1, as
        the exact test says. NaN where a denominator is 0.

    Notes
    -----
    Assumes two independent samples. Rejects too often when an expected cell is below about 5: `two_proportion_test`
    goes over to Fisher's test there.

    References
    ----------
    Morris and Dunleavy (eds., 2017), Adverse Impact Analysis, formula 4.2.

    Examples
    --------
    40 of 100 against 60 of 100: pooled rate 0.5, standard error sqrt(0.25 x 2/100) = 0.0707, z = -0.2/0.0707

    >>> statistic, pvalue = two_proportion_ztest(40, 100, 60, 100)
    >>> print(f"{statistic:.4f} {pvalue:.4f}")
    -2.8284 0.0047
    """
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    pooled = (x1 + x2) / (n1 + n2)
    gap = x1 / n1 - x2 / n2
    constant = ((x1 == 0) & (x2 == 0)) | ((x1 == n1) & (x2 == n2))
    statistic = np.where(constant, 0.0 * gap, gap / np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2)))
    pvalue = 2 * ndtr(-np.abs(statistic))
    return ZTestResult(statistic[()], pvalue[()])


def fisher_exact_test(
    count: npt.ArrayLike, nobs: npt.ArrayLike, count_reference: npt.ArrayLike, nobs_reference: npt.ArrayLike
) -> FloatArray:
    """Two-sided p-value of Fisher's exact test of equal rates.

    The probability, with both margins fixed, of all tables that are no more likely than the one seen.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference : array-like
        As in `two_proportion_ztest`. Counts that are not whole (effective counts) are rounded first: the
        hypergeometric law knows no others.

    Returns
    -------
    ndarray
        In [0, 1]; 1 where both rates are 0 or both are 1; 0 only where it is below 1e-300; NaN where a denominator is 0.

    Notes
    -----
    Assumes two independent samples. Never rejects too often; with small groups it rejects far less often than it may,
    so that it has little power.

    References
    ----------
    Fisher (1935), The Design of Experiments; Agresti (1990), Categorical Data Analysis, p. 61.

    Examples
    --------
    Fisher's tea taster, 3 of 4 against 1 of 4. Of the C(8, 4) = 70 tables, 16 + 1 have at least 3, as many at most 1:

    >>> round(float(fisher_exact_test(3, 4, 1, 4)), 4) == round(34 / 70, 4)
    True
    """
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    tables = np.rint(np.stack([x1, n1 - x1, x2, n2 - x2], axis=-1)).reshape(-1, 4)
    # Rounding each cell keeps it at or above 0, and the rows at the rounded totals up to one.
    defined = (tables[:, 0] + tables[:, 1] > 0) & (tables[:, 2] + tables[:, 3] > 0)
    pvalue = np.full(len(tables), np.nan)
    if defined.any():
        unique, inverse = np.unique(tables[defined].astype(np.int64), axis=0, return_inverse=True)
        values = np.array([_fisher_pvalue(*table.tolist()) for table in unique], dtype=np.float64)
        pvalue[defined] = values[inverse.ravel()]
    bounded: FloatArray = np.minimum(pvalue, 1.0).reshape(x1.shape)[()]
    return bounded


def _fisher_pvalue(a: int, b: int, c: int, d: int) -> float:
    """Two-sided p-value of one table: of tables as likely as the one seen, up to rounding, all count.

    Tables so far from the mean that no number is small enough for their probability (Bernstein's bound) are left out.
    """
    row, column, total = a + b, a + c, a + b + c + d
    mean = row * column / total
    reach = 40 * sqrt(mean * (1 - row / total) * (total - column) / max(total - 1, 1)) + 600
    first, last = max(0, row + column - total, floor(mean - reach)), min(row, column, ceil(mean + reach))
    if not first <= a <= last:
        return 0.0
    k = np.arange(first, last, dtype=np.float64)
    steps = np.log((row - k) * (column - k) / ((k + 1) * (total - row - column + k + 1)))  # from each table to the next
    log_likelihood = np.concatenate([[0.0], np.cumsum(steps)])
    as_likely = log_likelihood <= log_likelihood[a - first] + 1e-7
    likelihood = np.exp(log_likelihood - log_likelihood.max())
    return float(likelihood[as_likely].sum() / likelihood.sum())


def two_proportion_test(
    count: npt.ArrayLike, nobs: npt.ArrayLike, count_reference: npt.ArrayLike, nobs_reference: npt.ArrayLike
) -> TwoProportionTestResult:
    """Test of equal rates: Fisher's exact test where an expected cell is below 5, the pooled z test elsewhere.

    Parameters
    ----------
    count, nobs, count_reference, nobs_reference : array-like
        As in `two_proportion_ztest`.

    Returns
    -------
    TwoProportionTestResult
        `statistic` is the pooled z throughout, to show direction and size; `pvalue` is from the test that `test` names:
        "fisher", "z", or None (with NaN for both numbers) where a denominator is 0.

    Notes
    -----
    Assumes two independent samples. The expected cells are those of the pooled rate, so that neither the choice of the
    test nor the p-value depends on which group is the reference.

    References
    ----------
    Cochran (1954), Biometrics 10:417-451 (the rule of 5).

    Examples
    --------
    The pooled rate of 3 of 4 against 1 of 4 is 0.5: two rows expected in each cell.

    >>> result = two_proportion_test([40, 3], [100, 4], [60, 1], [100, 4])
    >>> [str(name) for name in result.test], result.pvalue.round(4).tolist()
    (['z', 'fisher'], [0.0047, 0.4857])
    """
    x1, n1, x2, n2 = check_two_counts(count, nobs, count_reference, nobs_reference)
    statistic, z_pvalue = two_proportion_ztest(x1, n1, x2, n2)
    defined = ~np.isnan(statistic)
    with np.errstate(invalid="ignore"):
        pooled = (x1 + x2) / (n1 + n2)
    small = defined & (np.minimum(n1, n2) * np.minimum(pooled, 1 - pooled) < MIN_EXPECTED)
    pvalue = np.array(z_pvalue, dtype=np.float64)
    pvalue[small] = fisher_exact_test(x1[small], n1[small], x2[small], n2[small])
    test = np.full(x1.shape, None, dtype=object)
    test[defined] = "z"
    test[small] = "fisher"
    test[np.isnan(pvalue)] = None
    return TwoProportionTestResult(statistic, pvalue[()], test[()])


def mcnemar_test(gained: npt.ArrayLike, lost: npt.ArrayLike) -> McNemarTestResult:
    """McNemar's test that pairs change as often in one direction as in the other, two-sided.

    Exact (binomial) with fewer than 25 pairs that differ, else chi-square without continuity correction. It says nothing
    of how many pairs change: as many gains as losses give a p-value of 1, however many they are.

    Parameters
    ----------
    gained, lost : array-like
        Pairs that change from negative to positive, and from positive to negative; whole numbers, broadcast.

    Returns
    -------
    McNemarTestResult
        `statistic` is (gained - lost)**2 / (gained + lost), 0 where no pair differs: the p-value is then 1. NaN in, NaN
        out, with `test` None.

    Notes
    -----
    Assumes independent pairs.

    References
    ----------
    McNemar (1947), Psychometrika 12:153-157; Fagerland, Lydersen and Laake (2013), BMC Medical Research Methodology 13:91.

    Examples
    --------
    5 gained, 1 lost: 2 (1 + 6) / 2**6. 40 gained, 20 lost: 20**2 / 60

    >>> result = mcnemar_test([5, 40], [1, 20])
    >>> result.pvalue.round(4).tolist(), result.statistic.round(4).tolist(), result.test.tolist()
    ([0.2188, 0.0098], [2.6667, 6.6667], ['exact', 'chi2'])
    """
    b, c = np.broadcast_arrays(np.asarray(gained, dtype=np.float64), np.asarray(lost, dtype=np.float64))
    for name, values in (("gained", b), ("lost", c)):
        wrong = values[(values < 0) | np.isinf(values) | (values != np.floor(values)) & ~np.isnan(values)]
        if wrong.size:
            raise ValueError(f"{name} must be a whole number of pairs; got {wrong[0]:g}.")
    total = b + c
    defined = ~np.isnan(total)
    few = defined & (total < MIN_DISCORDANT)
    statistic = np.where(total > 0, (b - c) ** 2 / np.where(total > 0, total, 1.0), 0.0 * total)
    pvalue = np.array(chdtrc(1, statistic), dtype=np.float64)
    pvalue[few] = np.minimum(2 * stats.binom.cdf(np.minimum(b, c)[few], total[few], 0.5), 1.0)
    test = np.full(total.shape, None, dtype=object)
    test[defined] = "chi2"
    test[few] = "exact"
    return McNemarTestResult(statistic[()], pvalue[()], test[()])


@np.errstate(divide="ignore", invalid="ignore")
def chi2_test(count: npt.ArrayLike, nobs: npt.ArrayLike) -> Chi2TestResult:
    """Global chi-square test that all groups have the same rate, without continuity correction.

    One test for all groups: it says that rates differ, not which, and needs no reference.

    Parameters
    ----------
    count, nobs : array-like of shape (..., n_groups)
        Rows with the event and all rows, per group. Groups without rows are left out.

    Returns
    -------
    Chi2TestResult
        `statistic`, `dof` and `pvalue` of shape (...). The statistic and the p-value are NaN with fewer than two groups
        that have rows, and when the event happened in no row or in all rows: there is no rate to compare.

    Notes
    -----
    Assumes independent groups. With many groups of fewer than 5 expected events it rejects too often or too seldom.
    For two groups it is the square of `two_proportion_ztest`.

    References
    ----------
    Pearson (1900), Philosophical Magazine 50:157-175.

    Examples
    --------
    40 and 60 of 100 each, 50 expected: 4 cells with 10**2 / 50

    >>> statistic, dof, pvalue = chi2_test([40, 60], [100, 100])
    >>> print(f"{statistic:.1f} {dof} {pvalue:.4f}")
    8.0 1 0.0047
    """
    array, total = check_counts(count, nobs)
    pooled = (array.sum(axis=-1) / total.sum(axis=-1))[..., np.newaxis]
    terms = (array - total * pooled) ** 2 / (total * pooled * (1 - pooled))
    dof = np.maximum((total > 0).sum(axis=-1) - 1, 0)
    statistic = np.where(total == 0, 0.0 * pooled, terms).sum(axis=-1)
    statistic = np.where(dof > 0, statistic, np.nan)
    return Chi2TestResult(statistic[()], dof, chdtrc(np.maximum(dof, 1), statistic)[()])


def adjust_pvalues(pvalues: npt.ArrayLike, method: Adjustment | None = "holm") -> FloatArray:
    """P-values adjusted for the number of tests in their family.

    Parameters
    ----------
    pvalues : array-like
        The family: all entries, whatever the shape. NaN marks a test that could not be made; it does not count.
    method : {"holm", "bh", "by", "bonferroni"}, default="holm"
        "holm" and "bonferroni" bound the chance of any false rejection, under any dependence; Holm's are never the
        larger ones. "bh" bounds the share of false rejections among the rejections, for independent or positively
        dependent tests, "by" under any dependence. None: as they are.

    Returns
    -------
    ndarray
        Same shape, in [0, 1], never below `pvalues`; NaN where `pvalues` is.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6:65-70; Benjamini and Hochberg (1995), JRSS B 57:289-300;
    Benjamini and Yekutieli (2001), Annals of Statistics 29:1165-1188.

    Examples
    --------
    The smallest of three times 3, the next times 2, never below the one before:

    >>> adjust_pvalues([0.01, 0.04, float("nan"), 0.03]).round(4).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    methods = ["holm", "bh", "by", "bonferroni", None]
    if method not in methods:
        raise ValueError(f"method must be one of {methods}; got {method!r}.")
    array = check_rate(pvalues, "pvalues")
    family = array[~np.isnan(array)]
    if method == "bonferroni":
        family = np.minimum(family * family.size, 1.0)
    elif method == "holm":
        order = np.argsort(family, kind="stable")
        steps = np.maximum.accumulate(family[order] * np.arange(family.size, 0, -1))
        family[order] = np.minimum(steps, 1.0)
    elif method is not None and family.size:
        family = stats.false_discovery_control(family, method=method)
    adjusted = np.array(array)
    adjusted[~np.isnan(array)] = family
    return adjusted


def cohens_h(p: npt.ArrayLike, p_reference: npt.ArrayLike) -> FloatArray:
    """Cohen's h: the difference of two rates on the arcsine scale, where its variance hardly depends on the rates.

    Parameters
    ----------
    p, p_reference : array-like
        Rates in [0, 1], broadcast.

    Returns
    -------
    ndarray
        2 asin(sqrt(p)) - 2 asin(sqrt(p_reference)), in [-pi, pi]; 0 at parity, negative where `p` is the lower rate;
        NaN where a rate is. Cohen calls 0.2 small, 0.5 medium, 0.8 large.

    References
    ----------
    Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, chapter 6. (One R package leaves out the
    square root.)

    Examples
    --------
    asin(sqrt(0.75)) = pi/3 and asin(sqrt(0.25)) = pi/6, so h is pi/3:

    >>> print(f"{cohens_h(0.75, 0.25):.4f}")
    1.0472
    """
    p, p_reference = check_rate(p, "p"), check_rate(p_reference, "p_reference")
    h: FloatArray = 2 * np.arcsin(np.sqrt(p)) - 2 * np.arcsin(np.sqrt(p_reference))
    return h
