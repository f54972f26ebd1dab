"""Closed-form intervals and tests that respect a survey design: effective counts for one rate, correlations for several.

Groups, and the errors of one group, lie in the same clusters and are correlated. Each rate has Wilson's interval from its
effective counts with Student's t; rates are combined with their linearised correlation (MOVER).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens.inference._correlated import (
    WaldTestResult,
    mover_interval,
    satterthwaite,
    t_test,
    wald_f_test,
)
from sklearn_ethiclens.inference._gap_intervals import absolute_bounds, largest_of
from sklearn_ethiclens.inference._index_intervals import (
    f1_interval,
    mover_ratio_interval,
    theil_influence,
    theil_interval,
)
from sklearn_ethiclens.inference._intervals import Bounds, wilson_interval
from sklearn_ethiclens.inference._tests import TwoProportionTestResult
from sklearn_ethiclens.metrics._definitions import METRICS, Metric
from sklearn_ethiclens.metrics._rates import RATES, DesignConfusion, Floats

__all__ = ["design_form", "global_test", "rate_test"]

Positions = NDArray[np.intp]


def design_form(
    metric: Metric, confusion: DesignConfusion, groups: Positions, at: int | None, confidence_level: Any
) -> tuple[Bounds, str]:
    """Return the closed-form intervals of a metric that has one, and their name, under a survey design.

    Parameters
    ----------
    metric : Metric
        A rate, an index, a comparison of one, or a gap or mean of several rates.
    confusion : DesignConfusion
        Of all groups.
    groups : ndarray of int of shape (n,)
        The groups, or those compared with the reference.
    at : int or None
        The reference of a pair metric.
    confidence_level : float or ndarray
        In (0, 1).

    Returns
    -------
    bounds : Bounds
        Arrays of shape (n,); NaN where a denominator is empty or the design gives no variance.
    name : str
    """
    bounds, name = _form(metric, confusion, groups, at, confidence_level)
    return bounds, f"{name}, {confusion.design.kind}"


def _form(
    metric: Metric, confusion: DesignConfusion, groups: Positions, at: int | None, level: Any
) -> tuple[Bounds, str]:
    if "f1" in metric.rates or metric.name.startswith("theil"):
        return _index_form(metric, confusion, groups, at, level)
    if at is None:
        if len(metric.rates) == 1:
            return _wilson(confusion, metric.rates[0], groups, level), "Wilson"
        share = 1 / len(metric.rates)
        return _combined(confusion, [(rate, groups, share) for rate in metric.rates], level), "Wilson, MOVER"
    reference = np.full(groups.size, at)
    if metric.scale == "ratio":
        rate = metric.rates[0]
        gradient, value = confusion.rate_gradient(rate), confusion.rate(rate)
        own, theirs = (_wilson(confusion, rate, where, level) for where in (groups, reference))
        correlation = confusion.correlation(gradient, groups, gradient, at)
        bounds = mover_ratio_interval(value[groups], own, value[reference], theirs, correlation)
        return _where_moving(bounds, confusion.shared(rate, groups, at, ratio=True)), "MOVER ratio"

    def gap(rate: str, level: Any) -> Bounds:
        bounds = _combined(confusion, [(rate, groups, 1.0), (rate, reference, -1.0)], level)
        return _where_moving(bounds, confusion.shared(rate, groups, at))

    def gaps(level: Any) -> Bounds:
        return Bounds(*map(np.stack, zip(*(absolute_bounds(*gap(rate, level)) for rate in metric.rates), strict=True)))

    if len(metric.rates) == 1:
        bounds = gap(metric.rates[0], level)
        return (absolute_bounds(*bounds) if metric.low == 0 else bounds), "Newcombe"
    if metric.name == "equalized_odds_difference":
        return largest_of(gaps, level), "Newcombe, largest gap"
    share = 1 / len(metric.rates)
    if metric.low < 0:
        parts = [(rate, where, sign) for rate in metric.rates for where, sign in ((groups, share), (reference, -share))]
        return _combined(confusion, parts, level), "Newcombe, MOVER"
    low, high = gaps(np.asarray(level) ** share)
    return Bounds(low.mean(0), high.mean(0)), "Newcombe, Sidak"


def _wilson(confusion: DesignConfusion, rate: str, groups: Positions, level: Any) -> Bounds:
    """Return Wilson's intervals of one rate of groups, from effective counts."""
    counts = confusion.at_level(RATES[rate].numerator, RATES[rate].denominator, groups, level)
    return wilson_interval(*counts, confidence_level=level)


def _where_moving(bounds: Bounds, shared: Floats) -> Bounds:
    """Return intervals, none where all that two estimates do they do together: no width is no proof."""
    still = np.isnan(shared)
    return Bounds(np.where(still, np.nan, bounds.low), np.where(still, np.nan, bounds.high))


def _combined(confusion: DesignConfusion, parts: list[tuple[str, Positions, float]], level: Any) -> Bounds:
    """Return the intervals of sums of rates of groups times coefficients."""
    own = [_wilson(confusion, rate, where, level) for rate, where, _ in parts]
    moves = [(confusion.rate_gradient(rate), where) for rate, where, _ in parts]
    correlation = np.array([[confusion.correlation(*one, *other) for other in moves] for one in moves])
    every = np.arange(len(parts))
    correlation[every, every] = 1.0
    return mover_interval(
        [coefficient for _, _, coefficient in parts],
        np.stack([confusion.rate(rate)[where] for rate, where, _ in parts]),
        Bounds(*map(np.stack, zip(*own, strict=True))),
        correlation,
    )


# -------------------------------------------------------------------------------------------------------------- indices
def _index_form(
    metric: Metric, confusion: DesignConfusion, groups: Positions, at: int | None, level: Any
) -> tuple[Bounds, str]:
    """Return the intervals of the F measure or the Theil index, or of a comparison of one."""
    own = METRICS["f1" if "f1" in metric.rates else "theil_index"]
    value = np.asarray(own.function(confusion))
    # F1 rises with the share of true positives among hits and errors, and correlates as that does.
    gradient = confusion.gradient("tp", "hits_and_errors") if own.name == "f1" else theil_gradient(confusion)

    def of(where: Positions) -> Bounds:
        if own.name == "f1":
            hits, both = confusion.at_level("tp", "hits_and_errors", where, level)
            return f1_interval(hits, both - hits, confidence_level=level)
        return theil_interval(*_theil_counts(confusion, gradient, where, level), confidence_level=level)

    name = "Wilson" if own.name == "f1" else "Wilson, MOVER"
    if at is None:
        return of(groups), name
    reference = np.full(groups.size, at)
    estimates, bounds = (value[groups], value[reference]), (of(groups), of(reference))
    correlation = confusion.correlation(gradient, groups, gradient, at)
    still = np.where(correlation >= 1 - 1e-10, np.nan, 1.0)
    if metric.scale == "ratio":
        ratio = mover_ratio_interval(estimates[0], bounds[0], estimates[1], bounds[1], correlation)
        return _where_moving(ratio, still), "MOVER ratio"
    one = np.ones(groups.size)
    gap = mover_interval(
        [1.0, -1.0],
        np.stack(estimates),
        Bounds(*map(np.stack, zip(*bounds, strict=True))),
        np.array([[one, correlation], [correlation, one]]),
    )
    return _where_moving(gap, still), "Wilson, MOVER"


@np.errstate(divide="ignore", invalid="ignore")
def theil_gradient(confusion: DesignConfusion) -> Floats:
    """Return the derivatives of each group's Theil index by its cells (true negatives, false and missed positives, true)."""
    total = confusion.count("total")
    false, missed, other = theil_influence(confusion.count("fp") / total, confusion.count("fn") / total)
    gradient: Floats = np.stack([other, false, missed, other], axis=1) / total[:, None]
    return gradient


@np.errstate(divide="ignore", invalid="ignore")
def _theil_counts(
    confusion: DesignConfusion, gradient: Floats, groups: Positions, level: Any
) -> tuple[Floats, Floats, Floats]:
    """Return false and missed positives and rows, of so many simple random rows that the index has the same variance."""
    total = confusion.count("total")
    shares = confusion._counts.reshape(len(total), -1) / total[:, None]
    alone = ((gradient * total[:, None]) ** 2 * shares).sum(1)[groups]
    plain = confusion.size("total", "total")[1][groups]  # of a share of 1: what the units leave
    _, with_t = confusion.at_level("total", "total", groups, level)
    variance = confusion.variance(gradient)[groups]
    size = np.where(alone > 0, alone / np.where(variance > 1e-10 * alone / plain, variance, np.nan), plain)
    size = np.where(total[groups] > 0, size * with_t / plain, 0.0)
    share = size / np.where(size > 0, total[groups], 1.0)
    return confusion.count("fp")[groups] * share, confusion.count("fn")[groups] * share, size


# ---------------------------------------------------------------------------------------------------------------- tests
def rate_test(confusion: DesignConfusion, rate: str, groups: Positions, at: int) -> TwoProportionTestResult:
    """Return Student's t tests that groups have the rate of another, with the covariance that the design gives them.

    Where a rate is 0 or 1, and so has no variance of first order, it has that of its effective counts with half a success and
    half a failure added.
    """
    value, variance, dof = _spread(confusion, rate)
    gradient = confusion.rate_gradient(rate)
    covariance = np.nan_to_num(confusion.covariance(gradient, groups, gradient, at))
    both = np.stack([variance[groups], np.full(groups.size, variance[at])])
    shared = confusion.shared(rate, groups, at)
    joint = np.where(np.isnan(shared), np.nan, both.sum(0) - 2 * covariance)
    constant = (value[groups] == value[at]) & ((value[at] == 0) | (value[at] == 1))
    dofs = satterthwaite(both, np.stack([dof[groups], np.full(groups.size, dof[at])]), confusion.design.dof)
    statistic, pvalue = t_test(value[groups] - value[at], np.where(constant, 0.0, joint), np.where(constant, 1.0, dofs))
    test = np.full(groups.size, "t", dtype=object)
    test[np.isnan(pvalue)] = None
    return TwoProportionTestResult(np.atleast_1d(statistic), np.atleast_1d(pvalue), test)


def global_test(confusion: DesignConfusion, rate: str, compared: NDArray[np.bool_]) -> WaldTestResult:
    """Return the test that all groups have one rate; groups without rows, or without a variance, are left out."""
    value, variance, dof = _spread(confusion, rate)
    used = np.flatnonzero(compared & ~np.isnan(value) & ~np.isnan(variance))
    gradient = confusion.rate_gradient(rate)
    n = used.size
    covariance = confusion.covariance(gradient, np.repeat(used, n), gradient, np.tile(used, n)).reshape(n, n)
    covariance[np.arange(n), np.arange(n)] = variance[used]
    if not n or (value[used] == 0).all() or (value[used] == 1).all():
        return WaldTestResult(float("nan"), max(n - 1, 0), float("nan"), float("nan"))
    return wald_f_test(value[used], covariance, min(float(confusion.design.dof), float(dof[used].sum())))


@np.errstate(divide="ignore", invalid="ignore")
def _spread(confusion: DesignConfusion, rate: str) -> tuple[Floats, Floats, Floats]:
    """Return each group's rate, its variance and the degrees of freedom of that."""
    names = RATES[rate].numerator, RATES[rate].denominator
    value, size = confusion.size(*names)
    count = value * size
    smoothed = (count + 0.5) * (size - count + 0.5) / ((size + 1) ** 2 * size)
    edge = (value == 0) | (value == 1)
    variance = np.where(edge, smoothed, np.where(np.isnan(size), np.nan, value * (1 - value) / size))
    return value, variance, confusion.dof(names[1])
