"""Judging that holds its level: closed-form intervals by metric, and adjusted tests of the limits themselves.

The adjustment is for everything that is judged, and for a reference that was chosen from the data.

A rule is made of limits on single rates: equalized odds within .10 is two, one on each absolute gap. Each limit has a
studentised statistic, large where the limit is passed, and the replicates of the audit's bootstrap give what chance alone
makes of the largest of all (max-T).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sklearn_ethiclens._design_forms import design_form
from sklearn_ethiclens.inference._gap_intervals import (
    absolute_bounds,
    largest_gap_interval,
    mean_gap_interval,
    mean_rate_interval,
)
from sklearn_ethiclens.inference._index_intervals import (
    f1_interval,
    mover_ratio_interval,
    theil_effective_size,
    theil_interval,
)
from sklearn_ethiclens.inference._intervals import (
    Bounds,
    miettinen_nurminen_ratio_interval,
    newcombe_interval,
    wilson_interval,
)
from sklearn_ethiclens.inference._multiplicity import step_down
from sklearn_ethiclens.inference._scores import mover_difference_interval
from sklearn_ethiclens.inference._studentised import log_ratio, rate_difference, smoothed_variance
from sklearn_ethiclens.inference._tests import adjust_pvalues
from sklearn_ethiclens.metrics._definitions import METRICS, Metric
from sklearn_ethiclens.metrics._rates import Confusion, DesignConfusion, Floats, divide
from sklearn_ethiclens.policy import POLICIES, Policy, Rule

_FAR_INSIDE = -2.0  # a limit kept with this much room is not near the boundary, and no part of the family (selection)
_NEAR = 1.0  # statistics up to here cannot be significant; their replicates are folded into one row
_MEANS = ("average_odds_difference", "average_odds_error", "balanced_accuracy")
_HALVINGS = 40
_ROUNDING = 1e-9  # relative: a bound that is missed by less is not trusted
_FOLDED_VALUES = 1 << 18
_TILE = 32  # groups whose replicates stay in the processor's cache from one operation to the next

CALIBRATED = POLICIES["calibrated"]


# ---------------------------------------------------------------------------------------------------------- intervals
def has_closed_form(metric: Metric) -> bool:
    """Tell whether a metric is a rate, an index, a comparison of one, or a gap or mean of independent rates."""
    if metric.kind == "overall":
        return False
    return len(metric.rates) == 1 or metric.name in (*_MEANS, "equalized_odds_difference")


def is_of_rates(metric: Metric) -> bool:
    """Tell whether a metric is made of proportions: then its limits have a test."""
    return has_closed_form(metric) and "f1" not in metric.rates and not metric.name.startswith("theil")


def closed_form(
    metric: Metric, confusion: Confusion, groups: NDArray[np.intp], at: int | None, confidence_level: Any
) -> tuple[Bounds, str]:
    """Return the closed-form intervals of a metric that has one, and their name.

    Parameters
    ----------
    metric : Metric
        One that :func:`has_closed_form`.
    confusion : Confusion
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
        Arrays of shape (n,); NaN where a denominator is empty.
    name : str
    """
    if isinstance(confusion, DesignConfusion):
        return design_form(metric, confusion, groups, at, confidence_level)
    if not is_of_rates(metric):
        return _index_form(metric, confusion, groups, at, confidence_level)
    pairs = [confusion.proportion(rate) for rate in metric.rates]
    own = [(count[groups], nobs[groups]) for count, nobs in pairs]
    level = {"confidence_level": confidence_level}
    if metric.kind == "group":
        if metric.name in _MEANS:
            count, nobs = map(np.stack, zip(*own, strict=True))
            return mean_rate_interval(count, nobs, **level), "Wilson, MOVER"
        return wilson_interval(*own[0], **level), "Wilson"
    one = (*own[0], pairs[0][0][at], pairs[0][1][at])
    if metric.scale == "ratio":
        return miettinen_nurminen_ratio_interval(*one, **level), "Miettinen-Nurminen"
    if len(metric.rates) == 1:
        bounds = newcombe_interval(*one, **level)
        return (absolute_bounds(*bounds) if metric.low == 0 else bounds), "Newcombe"
    both = [np.stack([mine[i] for mine in own]) for i in (0, 1)]
    both += [np.array([pair[i][at] for pair in pairs])[:, None] for i in (0, 1)]
    if metric.name == "equalized_odds_difference":
        return largest_gap_interval(*both, **level), "Newcombe, largest gap"
    signed = metric.low < 0
    return mean_gap_interval(*both, absolute=not signed, **level), "Newcombe, " + ("MOVER" if signed else "Sidak")


def _index_form(
    metric: Metric, confusion: Confusion, groups: NDArray[np.intp], at: int | None, confidence_level: Any
) -> tuple[Bounds, str]:
    """Return the intervals of the F measure or the Theil index, or of a comparison of one."""
    own = METRICS["f1" if "f1" in metric.rates else "theil_index"]

    def of(which: NDArray[np.intp]) -> tuple[Floats, Bounds]:
        table = confusion.take(which)
        if own.name == "f1":
            hits, both = table.effective("tp", "hits_and_errors")
            bounds = f1_interval(hits, both - hits, confidence_level=confidence_level)
        else:
            bounds = theil_interval(*_theil_counts(table), confidence_level=confidence_level)
        return np.asarray(own.function(table)), bounds

    value, bounds = of(groups)
    if metric.kind == "group":
        return bounds, "Wilson" if own.name == "f1" else "Wilson, MOVER"
    combine = mover_ratio_interval if metric.scale == "ratio" else mover_difference_interval
    return combine(value, bounds, *of(np.array([at]))), "Wilson, MOVER"


def _theil_counts(table: Confusion) -> tuple[Floats, Floats, Floats]:
    """Return false and missed positives and rows; of weighted rows so many that the index has the same variance."""
    wrong, total = (table.count("fp"), table.count("fn")), table.count("total")
    if not table.weighted:
        return *wrong, total
    size = theil_effective_size(*(np.stack([table.count(n), table.squares_of(n)]) for n in ("fp", "fn", "total")))
    rows = table.rows("total")
    scale = divide(np.where(np.isclose(size, rows, rtol=1e-9, atol=0), rows, size), total)
    return wrong[0] * scale, wrong[1] * scale, total * scale


# ------------------------------------------------------------------------------------------------------------- limits
@dataclass(frozen=True)
class Limit:
    """A limit on the ratio, the difference or the absolute difference of one rate: what rules are made of."""

    metric: str
    rate: str
    scale: Literal["ratio", "signed", "absolute"]
    bound: float
    upper: bool


def limits_of(rules: Iterable[Rule]) -> tuple[Limit, ...]:
    """Return the limits that rules on comparisons are made of; rules on other metrics have none."""
    limits = []
    for rule in rules:
        metric = METRICS[rule.metric]
        if metric.kind != "pair" or not is_of_rates(metric) or metric.name in _MEANS:
            continue
        if metric.scale == "ratio":
            scale: Literal["ratio", "signed", "absolute"] = "ratio"
        else:
            scale = "absolute" if rule.absolute or metric.low == 0 or rule.basis == "gap" else "signed"
        for bound, upper in ((rule.minimum, False), (rule.maximum, True)):
            if bound is not None and (bound > 0 or scale == "signed") and (upper or scale != "absolute"):
                limits += [Limit(metric.name, rate, scale, bound, upper) for rate in metric.rates]
    return tuple(limits)


@dataclass(frozen=True)
class Examined:
    """One limit over the comparisons with one reference: statistics, large where the limit is passed.

    ``sign`` says which way is worse; where groups lie in the same clusters of a survey design it is larger than 1 by as much as
    the standard error of the comparison is smaller than that of independent rates.
    """

    limit: Limit
    groups: NDArray[np.intp]
    at: int
    statistic: Floats
    estimate: Floats
    sign: Floats


def _examine(limit: Limit, confusion: Confusion, groups: NDArray[np.intp], at: int) -> Examined:
    count, nobs = confusion.proportion(limit.rate)
    function = log_ratio if limit.scale == "ratio" else rate_difference
    estimate, error = function(count[groups], nobs[groups], count[[at]], nobs[[at]])
    if limit.scale == "absolute":
        sign = np.where(estimate < 0, -1.0, 1.0)
        beyond = np.abs(estimate) - limit.bound
    else:
        sign = np.full(groups.size, 1.0 if limit.upper else -1.0)
        beyond = sign * (estimate - (np.log(limit.bound) if limit.scale == "ratio" else limit.bound))
    shared = confusion.shared(limit.rate, groups, at, ratio=limit.scale == "ratio")
    with np.errstate(divide="ignore", invalid="ignore"):
        return Examined(limit, groups, at, beyond / (error * shared), estimate, sign / shared)


def _compare(
    limit: Limit, own: tuple[Floats, ...], other: tuple[Floats, ...], estimate: Floats, sign: Floats
) -> Floats:
    """Return centred statistics of replicates: of counts and rows of groups against those of the other side."""
    function = log_ratio if limit.scale == "ratio" else rate_difference
    value, error = function(*own, *other)
    with np.errstate(divide="ignore", invalid="ignore"):
        value -= estimate  # in place: memory costs as much as the arithmetic
        value *= sign
        value /= error
    return value


@dataclass(frozen=True)
class Collected:
    """Replicates of the statistics of some groups, as :class:`Evidence` has them of all."""

    kept: list[tuple[int, int]]
    rows: list[Floats]
    folded: Floats | None


@dataclass
class Evidence:
    """Of one attribute: statistics of all limits, and replicates of those that could matter.

    Attributes
    ----------
    examined : list of Examined
        By limit, over the comparisons that meet the floors.
    kept : list of (int, int)
        Which limit and comparison each row of ``rows`` is of.
    rows : list of ndarray of shape (n_resamples,)
        Their replicates.
    folded : ndarray of shape (n_resamples,) or None
        The largest replicate of all the others, comparisons with references that might have been chosen included.
    n_others : int
        How many these comparisons are.
    """

    examined: list[Examined]
    kept: list[tuple[int, int]] = field(default_factory=list)
    rows: list[Floats] = field(default_factory=list)
    folded: Floats | None = None
    n_others: int = 0

    def promising(self, critical: float) -> bool:
        """Tell whether any limit is passed significantly before adjustment; without one, nothing is after it."""
        return any(bool((one.statistic > critical).any()) for one in self.examined)

    def collect(self, replicates: Confusion, first: int, references: Mapping[int, Confusion]) -> Collected:
        """Return the replicates of statistics near or beyond their limit, the rest folded into one row.

        Parameters
        ----------
        replicates : Confusion
            Of consecutive groups, with replicates along the last axis.
        first : int
            The first of these groups.
        references : mapping of int to Confusion
            The same of each reference.
        """
        kept: list[tuple[int, int]] = []
        rows: list[Floats] = []
        folded: Floats | None = None
        size = len(replicates.count("total"))
        for number, one in enumerate(self.examined):
            start, stop = one.groups.searchsorted([first, first + size])
            near = start + np.flatnonzero(one.statistic[start:stop] > _FAR_INSIDE)
            if not near.size:
                continue
            counts = replicates.proportion(one.limit.rate)
            other = references[one.at].proportion(one.limit.rate)
            for k in range(0, near.size, _TILE):
                at = near[k : k + _TILE]
                own = counts if at.size == size else tuple(part[one.groups[at] - first] for part in counts)
                drawn = _compare(one.limit, own, other, one.estimate[at, None], one.sign[at, None])
                keep = one.statistic[at] > _NEAR
                kept += [(number, i) for i in at[keep].tolist()]
                rows += list(drawn[keep])
                if not keep.all():
                    folded = _larger(folded, np.fmax.reduce(drawn[~keep], axis=0))
        return Collected(kept, rows, folded)

    def add(self, found: Collected) -> None:
        """Add what was collected of some groups."""
        self.kept += found.kept
        self.rows += found.rows
        self.folded = _larger(self.folded, found.folded)

    def fold(
        self,
        limit: Limit,
        rivals: Sequence[Examined],
        sample: tuple[Floats, Floats],
        replicates: tuple[Floats, Floats],
        first: int,
        others: tuple[Floats, Floats],
    ) -> None:
        """Fold comparisons with groups that might have been chosen as reference into the row of all the others.

        Of the comparisons of all groups with all rivals only the largest counts. A statistic is a difference of two centred
        estimates over the root of the sum of their variances, so its square is at most the sum of those of the two sides
        (Cauchy and Schwarz): whatever cannot pass the largest so far is not computed.

        Parameters
        ----------
        limit : Limit
            The one that ``rivals`` are of.
        rivals : sequence of Examined
            Comparisons with each rival.
        sample : pair of ndarray of shape (n_groups,)
            Counts and rows of the limit's rate in the sample.
        replicates : pair of ndarray of shape (n, n_resamples)
            The same of replicates of consecutive groups.
        first : int
            The first of these groups.
        others : pair of ndarray of shape (n_rivals, n_resamples)
            The same of replicates of the rivals, in their order.
        """
        counts, nobs = replicates
        size, n_resamples = counts.shape
        shape = size, len(rivals)
        near, estimate, sign = np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape)
        for j, one in enumerate(rivals):
            start, stop = one.groups.searchsorted([first, first + size])
            at = one.groups[start:stop] - first
            near[at, j] = one.statistic[start:stop] > _FAR_INSIDE
            estimate[at, j], sign[at, j] = one.estimate[start:stop], one.sign[start:stop]
        if not near.any():
            return
        widest = np.abs(sign[near]).max()
        if self.folded is None:
            self.folded = np.full(n_resamples, -np.inf)
        chosen = np.array([one.at for one in rivals])
        square = _squared_move(limit, others, tuple(part[chosen, None] for part in sample))
        special = np.isinf(square)
        most = np.where(special, 0.0, square).max(axis=0)
        block = max(1, _FOLDED_VALUES // len(rivals))
        for start in range(0, size, _TILE):
            tile = slice(start, start + _TILE)
            reached = np.maximum(self.folded * (1 - _ROUNDING) / widest, 0.0) ** 2
            before = tuple(part[first : first + size][tile, None] for part in sample)
            mine = _squared_move(limit, (counts[tile], nobs[tile]), before)
            could = np.greater_equal(mine, reached - most) & near[tile].any(axis=1, keepdims=True)
            rows, columns = np.nonzero(could)
            for k in range(0, rows.size, block):
                g, b = start + rows[k : k + block], columns[k : k + block]
                own = tuple(part[g, b][:, None] for part in (counts, nobs))
                drawn = _compare(limit, own, tuple(part[:, b].T for part in others), estimate[g], sign[g])
                np.fmax.at(self.folded, b, np.fmax.reduce(np.where(near[g], drawn, -np.inf), axis=1))
        rows, columns = np.nonzero(special)
        block = max(1, _FOLDED_VALUES // size)
        for k in range(0, rows.size, block):
            r, b = rows[k : k + block], columns[k : k + block]
            other = tuple(part[r, b] for part in others)
            drawn = _compare(limit, (counts[:, b], nobs[:, b]), other, estimate[:, r], sign[:, r])
            np.fmax.at(self.folded, b, np.fmax.reduce(np.where(near[:, r], drawn, -np.inf), axis=0))


def _larger(one: Floats | None, other: Floats | None) -> Floats | None:
    """Return the larger of two rows, element by element, or the one there is."""
    if one is None or other is None:
        return other if one is None else one
    return np.fmax(one, other)


@np.errstate(divide="ignore", invalid="ignore")
def _squared_move(limit: Limit, counts: tuple[Floats, ...], sample: tuple[Floats, ...]) -> Floats:
    """Return the square of what one side of comparisons has moved, in its own standard errors; infinite where unknown.

    A log ratio without a success, or with nothing else, adds to the counts of both sides.
    """
    (x, n), (x0, n0) = counts, sample
    square: Floats
    if limit.scale == "ratio":
        square = np.log(x / n / (x0 / n0)) ** 2 / (1 / x - 1 / n)
        square[(x == 0) | (x == n)] = np.inf
    else:
        square = (x / n - x0 / n0) ** 2 / smoothed_variance(x, n)
    square[n == 0] = 0.0  # never larger than any: undefined
    return square


def examine(
    limits: Sequence[Limit],
    confusion: Confusion,
    reference_of: Mapping[str, int],
    floors: Policy,
    usable: NDArray[np.bool_],
) -> Evidence:
    """Return the statistics of every limit and comparison that meets the floors.

    Parameters
    ----------
    limits : sequence of Limit
        What is judged.
    confusion : Confusion
        Of all groups.
    reference_of : mapping of metric to int
        Whom each metric compares with.
    floors : Policy
        Whose floors count.
    usable : ndarray of bool of shape (n_groups,)
        Groups that take part in comparisons at all.
    """
    return Evidence([_examined(limit, confusion, reference_of[limit.metric], floors, usable) for limit in limits])


def rivals(
    limits: Sequence[Limit],
    confusion: Confusion,
    references: Mapping[str, Iterable[int]],
    floors: Policy,
    usable: NDArray[np.bool_],
) -> list[Examined]:
    """Return the comparisons with other groups that might have been chosen as reference, by metric."""
    return [
        _examined(limit, confusion, at, floors, usable) for limit in limits for at in references.get(limit.metric, ())
    ]


def _examined(limit: Limit, confusion: Confusion, at: int, floors: Policy, usable: NDArray[np.bool_]) -> Examined:
    enough = usable & meets_floors(METRICS[limit.metric], confusion, floors)
    groups = np.flatnonzero(enough & (np.arange(enough.size) != at)) if enough[at] else np.empty(0, dtype=np.intp)
    return _examine(limit, confusion, groups, at)


def meets_floors(metric: Metric, confusion: Confusion, policy: Policy) -> NDArray[np.bool_]:
    """Tell which groups have what a policy's floors ask of a metric's denominators, and of rows."""
    enough = confusion.rows("total") >= policy.floors.get("rows", 0)
    for name in metric.denominators:
        enough &= confusion.rows(name) >= max(policy.floor(name), 1)
    return enough


def adjusted_pvalues(evidence: Sequence[Evidence]) -> list[dict[tuple[str, int], float]]:
    """Return, by attribute, the max-T p-value of each (metric, group): that its limits are kept.

    Parameters
    ----------
    evidence : sequence of Evidence
        Of all attributes and intersections, with collected replicates; all one family.
    """
    folded = [one.folded for one in evidence if one.folded is not None]
    rest = np.fmax.reduce(folded, axis=0) if folded else None
    rows = [row for one in evidence for row in one.rows]
    observed = [one.examined[number].statistic[i] for one in evidence for number, i in one.kept]
    if rest is not None:  # below all that is kept, and never rejected
        rows, observed = [*rows, rest], [*observed, -np.inf]
    adjusted = step_down(np.array(observed, dtype=float), rows)
    kept = iter(adjusted)
    least = float(adjusted[: len(adjusted) - (rest is not None)].max(initial=0.0))
    ordered = np.empty(0) if rest is None else np.sort(rest[~np.isnan(rest)])
    size = ordered.size
    found = []
    for one in evidence:
        pvalues = {place: float(next(kept)) for place in one.kept}
        by_comparison: dict[tuple[str, int], float] = {}
        for number, examined in enumerate(one.examined):
            beyond = size - ordered.searchsorted(examined.statistic, side="left")
            others = np.maximum(least, 1.0 if rest is None else (1 + beyond) / (rest.size + 1))
            others = np.where(np.isnan(examined.statistic), 1.0, others)  # a design can give a comparison no variance
            others = np.broadcast_to(others, examined.groups.shape)
            for i, (group, other) in enumerate(zip(examined.groups.tolist(), others.tolist(), strict=True)):
                pvalue = pvalues.get((number, i), other)
                key = examined.limit.metric, group
                by_comparison[key] = min(by_comparison.get(key, 1.0), pvalue)
        found.append(by_comparison)
    return found


def stepwise_pvalues(
    evidence: Sequence[Evidence],
    confusions: Sequence[Confusion],
    rules: Mapping[str, Rule],
    method: str,
) -> list[dict[tuple[str, int], float]]:
    """Return the same from closed-form intervals, adjusted by Holm or Benjamini-Hochberg instead.

    The p-value of one comparison is the smallest error at which its interval lies beyond the limits. Comparisons with
    references that might have been chosen count as tests that do not reject.
    """
    keys, pvalues, n_others = [], [], 0
    for number, (one, confusion) in enumerate(zip(evidence, confusions, strict=True)):
        n_others += one.n_others
        for name in dict.fromkeys(examined.limit.metric for examined in one.examined):
            examined = next(e for e in one.examined if e.limit.metric == name)
            single = _single_pvalues(rules[name], METRICS[name], confusion, examined.groups, examined.at)
            keys += [(number, name, group) for group in examined.groups.tolist()]
            pvalues += single.tolist()
    adjusted = adjust_pvalues(np.array([*pvalues, *[1.0] * n_others]), method) if keys else ()  # type: ignore[arg-type]
    found: list[dict[tuple[str, int], float]] = [{} for _ in evidence]
    for (number, name, group), pvalue in zip(keys, adjusted, strict=False):
        found[number][name, group] = float(pvalue)
    return found


def _single_pvalues(rule: Rule, metric: Metric, confusion: Confusion, groups: NDArray[np.intp], at: int) -> Floats:
    """Return the smallest one-sided error at which each interval lies beyond the limits, by bisection; 1 if none does."""
    inside, outside = (
        np.full(groups.size, 8.0),
        np.zeros(groups.size),
    )  # quantiles at which the interval (does not) reach
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        low, high = interval_of(rule, metric, confusion, groups, at, 1 - 2 * ndtr(-middle))
        beyond = np.zeros(groups.size, dtype=bool)
        if rule.minimum is not None:
            beyond |= high < rule.minimum
        if rule.maximum is not None:
            beyond |= low > rule.maximum
        outside, inside = np.where(beyond, middle, outside), np.where(beyond, inside, middle)
    return np.where(outside > 0, ndtr(-outside), 1.0)


def interval_of(
    rule: Rule, metric: Metric, confusion: Confusion, groups: NDArray[np.intp], at: int, confidence_level: Any
) -> Bounds:
    """Return closed-form intervals of what a rule limits: absolute where it judges absolute values."""
    bounds, _ = closed_form(metric, confusion, groups, at, confidence_level)
    return absolute_bounds(*bounds) if rule.absolute or rule.basis == "gap" else bounds


# ------------------------------------------------------------------------------------------------------------ verdicts
def calibrated_rule(rule: Rule) -> Rule:
    """Return the rule with the same limits, judged on simultaneous intervals."""
    absolute = rule.absolute or (rule.basis == "gap" and METRICS[rule.metric].low < 0)
    return replace(rule, basis="simultaneous", absolute=absolute, elevated=None)
