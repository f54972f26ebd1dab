"""Findings: one number of one group, comparison or attribute, with all that is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from sklearn_ethiclens._design import SurveyDesign
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.inference._intervals import wilson_interval
from sklearn_ethiclens.metrics._definitions import METRICS
from sklearn_ethiclens.metrics._rates import RATES, DesignConfusion, confusion_of
from sklearn_ethiclens.policy import Policy, Verdict

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One number of one group, of one comparison with the reference, or of all groups.

    Parameters
    ----------
    attribute : str or tuple of str
        The sensitive feature, or the features of an intersection.
    group, reference : label or tuple of labels
        Who is compared with whom. ``reference`` is None for a group's own number; a number of all groups names the two
        extremes (lowest, highest).
    metric : str
        A name in ``METRICS``.
    value : float
        As the metric defines it; NaN where undefined.
    low, high : float
        Ends of the interval; NaN where there is none.
    method : str or None
        The interval method that was used, also where it had to fall back.
    pvalue, pvalue_adjusted : float
        Of the test that both groups have the same rate; adjusted over all comparisons of this metric.
    test : str or None
        "z", "fisher", "chi2", or "sidak" (the smaller of two independent tests, adjusted); with a survey design "t" and "F".
    n, n_reference : int
        Rows of the group and of the reference.
    denominators : dict
        What the metric divides by: name -> count, or (count, count of the reference).
    power : float
        Of the comparison for a gap of 10 points at this confidence level.
    minimum_detectable : float
        The smallest gap detected with 80% power.
    threshold : float or None
        The policy's limit; None for a descriptive metric.
    verdict : Verdict or None
        None for a descriptive metric.
    reason : str
        Why that verdict, or why there is no value or interval.
    limit_pvalue : float
        One-sided: of the test that the true value lies within the policy's limits, adjusted for everything judged. NaN where
        no test was needed, since nothing judged passes its limit significantly even alone.
    calibrated : str
        What the "calibrated" policy's methods say of a judged comparison, with the same limits, where that differs from
        the verdict, and why; empty otherwise.
    """

    attribute: str | tuple[str, ...]
    group: Any
    reference: Any
    metric: str
    value: float
    low: float
    high: float
    method: str | None
    pvalue: float
    pvalue_adjusted: float
    test: str | None
    n: int
    n_reference: int | None
    denominators: dict[str, Any]
    power: float
    minimum_detectable: float
    threshold: float | None
    verdict: Verdict | None
    reason: str
    limit_pvalue: float = float("nan")
    calibrated: str = ""

    def __str__(self) -> str:
        where = f"{show(self.attribute)}={show(self.group)}"
        against = "" if self.reference is None else f" against {show(self.reference)}"
        interval = "" if np.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]"
        verdict = "" if self.verdict is None else f" {self.verdict}"
        reason = f" ({self.reason})" if self.reason else ""
        value = "undefined" if np.isnan(self.value) else f"{self.value:.3f}"
        return f"{self.metric} of {where}{against}: {value}{interval}{verdict}{reason}"


_Draft: Any = make_dataclass("_Draft", [(field.name, Any) for field in fields(Finding)], slots=True)


def new_findings(*columns: Iterable[Any]) -> list[Finding]:
    """Return findings with the values of all fields, in their order, given as columns; some times faster than one by one.

    A frozen class sets each field by way of ``object.__setattr__``. One that is not frozen, with the same fields, is
    filled first and then becomes a finding.
    """
    drafts = list(map(_Draft, *columns))
    for draft in drafts:
        draft.__class__ = Finding
    return drafts


class _WhenRead:
    """The descriptor of :func:`made_when_read`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._making = RLock()  # threads that read at the same time get the same object

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError(f"{owner.__name__} has its {self._name} by instance.")
        if self._name not in instance.__dict__:
            raise AttributeError(f"this {owner.__name__} has no {self._name}: it was not made by its class.")
        value = instance.__dict__[self._name]
        if callable(value):
            with self._making:
                value = instance.__dict__[self._name]
                if callable(value):
                    value = instance.__dict__[self._name] = value()
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value


def made_when_read(name: str) -> Callable[[type[_T]], type[_T]]:
    """Return a decorator of dataclasses: a field may be given as a function, which makes it when it is first read."""

    def decorate(cls: type[_T]) -> type[_T]:
        setattr(cls, name, _WhenRead(name))
        return cls

    return decorate


@dataclass(frozen=True, slots=True)
class Headline:
    """The one comparison that a summary number is of, or why the number is withheld.

    Parameters
    ----------
    value : float or None
        None if withheld.
    band : str or None
        Risk band of a composite score.
    attribute, group, reference : label, optional
        Where it was found.
    reason : str
        Why it is withheld; empty otherwise.
    """

    value: float | None = None
    band: str | None = None
    attribute: str | None = None
    group: Any = None
    reference: Any = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """The group that an attribute's groups are compared with, and how it came to be it."""

    attribute: str | tuple[str, ...]
    group: Any
    given: bool
    sufficient: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an audit beside its findings: sentences and one table, ready for every format.

    Parameters
    ----------
    key : str
        What it is about, in a word: "counterfactuals", "scores", "strata", "scan", "weights", "design".
    title : str
        Its heading.
    lines : tuple of str
        What it says, a sentence each; shown above the table.
    columns : tuple of str
        Names of the table's columns; empty without a table.
    rows : tuple of tuple
        Cells as plain scalars (labels, numbers, words, None); formats round and mark what is undefined (NaN).
    """

    key: str
    title: str
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    def frame(self) -> pd.DataFrame:
        """Return the table."""
        return pd.DataFrame(list(self.rows), columns=list(self.columns))


def weights_section(marginals: Mapping[Any, Tally]) -> Section:
    """Return what is to be said of weighted rows: how many there are, their weights, and what these leave of their number.

    Parameters
    ----------
    marginals : mapping of attribute to Tally
        The marginal tallies, all weighted.

    Returns
    -------
    Section
    """
    rows = []
    n_zero = 0
    for attribute, tally in marginals.items():
        if tally.weights is None:
            raise ValueError(f"the tally of {show(attribute)} is not weighted.")
        n_zero = tally.weights.n_zero
        columns = (tally.rows.sum((1, 2)), tally.counts.sum((1, 2)), tally.weights.effective_rows)
        for group, n, weight, effective in zip(tally.groups, *(column.tolist() for column in columns), strict=True):
            rows.append((show(attribute), group[0] if len(group) == 1 else group, n, weight, effective))
    zero = f"{n_zero} {'row has' if n_zero == 1 else 'rows have'} a weight of 0 and no part in anything."
    lines = (
        "Rates are weighted; numbers of rows, floors and denominators are of rows as they are.",
        "Intervals, tests and power allow for the weights: unequal ones make rows count for fewer. The effective number of "
        "rows is the square of the sum of the weights over the sum of their squares (Kish); each rate has its own, in "
        "Audit.rates().",
        "Weights are taken as sampling weights of rows drawn independently: not as frequencies, and without clusters or strata."
        if all(tally.design is None for tally in marginals.values())
        else "Weights are taken as sampling weights, not as frequencies; the survey design is in a section of its own.",
        *([zero] if n_zero else []),
    )
    return Section(
        "weights",
        "Sample weights",
        lines,
        ("attribute", "group", "rows", "sum of weights", "effective rows"),
        tuple(rows),
    )


def design_section(
    marginals: Mapping[Any, Tally], outcome: str = "favorable", unused_method: str | None = None
) -> Section:
    """Return what is to be said of a survey design: its units, and what it makes of the rate that is compared.

    Parameters
    ----------
    marginals : mapping of attribute to Tally
        The marginal tallies, all with the design.
    outcome : {"favorable", "adverse"}
        What a positive decision means.
    unused_method : str, optional
        The method of the policy, where there are no units to resample by it.

    Returns
    -------
    Section
        By group: the design effect of the selection rate (its variance over that of as many simple random rows), how many
        such rows that leaves, and in how many units the group's rows lie in effect; NaN where the rate has no variance.
    """
    rows = []
    said: tuple[str, ...] = ()
    for attribute, tally in marginals.items():
        table = confusion_of(tally, outcome)
        if not isinstance(table, DesignConfusion):
            raise ValueError(f"the tally of {show(attribute)} has no survey design.")
        said = said or _design_lines(table.design, unused_method)
        n, (rate, size) = table.rows("total"), table.size("selected", "total")
        effect = np.where((rate > 0) & (rate < 1), n / np.where(size > 0, size, np.nan), np.nan)
        columns = (n.astype(int), effect, size, table.units("total"))
        for group, *cells in zip(tally.groups, *(column.tolist() for column in columns), strict=True):
            rows.append((show(attribute), group[0] if len(group) == 1 else group, *cells))
    return Section(
        "design",
        "Survey design",
        said,
        ("attribute", "group", "rows", "design effect", "effective rows", "effective units"),
        tuple(rows),
    )


def _design_lines(design: SurveyDesign, unused_method: str | None) -> tuple[str, ...]:
    """Return what is to be said of a design, in sentences."""
    if design.deviations is not None:
        made = f"Variances are 4/{len(design.deviations)} times the sum of squares of {len(design.deviations)} replicate weights"
    else:
        made = f"Variances are between {design.n_units} units"
        made += "" if design.n_strata == 1 else f" within {design.n_strata} strata"
        made += {"strata": " (each row its own)", "clusters": " (clusters)"}.get(design.kind, " (clusters)")
    lines = (
        f"{made}, linearised, on {design.dof} degrees of freedom.",
        "The design effect is the variance of the selection rate over that of as many simple random rows; effective rows are "
        "so many simple random rows that it would be the same. Numbers of rows, floors and denominators are of rows as they "
        "are.",
        "Groups that share units are correlated, and comparisons allow for it.",
    )
    if unused_method is None:
        return lines
    why = "replicate weights leave none" if design.deviations is not None else "they were not stored"
    return (
        *lines,
        f"The policy's method, {unused_method}, resamples units, and {why}: intervals are closed forms instead.",
    )


@dataclass(frozen=True, slots=True)
class Assessment:
    """All that was found: findings, global tests, references, composite, minimum disparate impact, notes on size.

    ``findings`` makes them: many groups have so many that it takes as long as their verdicts. ``undefined`` are the attribute,
    reason and metric of those without a value.
    """

    findings: Callable[[], tuple[Finding, ...]]
    undefined: tuple[tuple[str, str, str], ...]
    tests: tuple[dict[str, Any], ...]
    references: tuple[Reference, ...]
    composite: Headline
    minimum_disparate_impact: Headline
    notes: tuple[str, ...]


def group_rates(tallies: Mapping[Any, Tally], outcome: str, confidence_level: float) -> pd.DataFrame:
    """Return one row a group and rate: value, Wilson interval, and the counts it is made of.

    Parameters
    ----------
    tallies : mapping of attribute to Tally
        The marginal tally of each attribute and intersection.
    outcome : str
        What a positive decision means.
    confidence_level : float
        Of the intervals.

    Returns
    -------
    DataFrame
        ``attribute, group, n, rate, value, low, high, count, denominator``; of rows with weights or a survey design also
        ``effective``.
    """
    rows = []
    for attributes, tally in tallies.items():
        confusion = confusion_of(tally, outcome, confidence_level)
        for rate, definition in RATES.items():
            if rate == "f1" or (definition.uses_labels and not tally.labelled):
                continue
            if rate == "favorable_rate" and outcome == "favorable":
                continue
            count, nobs = confusion.rows(definition.numerator), confusion.rows(definition.denominator)
            effective = confusion.proportion(rate)
            low, high = wilson_interval(*effective, confidence_level=confidence_level)
            total = confusion.rows("total")
            for i, group in enumerate(tally.groups):
                rows.append(
                    {
                        "attribute": show(attributes),
                        "group": group[0] if len(group) == 1 else group,
                        "n": int(total[i]),
                        "rate": rate,
                        "value": float(confusion.rate(rate)[i]),
                        "low": float(low[i]),
                        "high": float(high[i]),
                        "count": int(count[i]),
                        "denominator": int(nobs[i]),
                        **({"effective": float(effective[1][i])} if confusion.weighted else {}),
                    }
                )
    return pd.DataFrame(rows)


def disparities(
    findings: Sequence[Finding], policy: Policy, tallies: Mapping[Any, Tally], outcome: str
) -> list[dict[str, Any]]:
    """Return one row a rate and attribute: the groups with the largest and smallest rate, and their gap.

    Parameters
    ----------
    findings : sequence of Finding
        Of an audit; the judged ones give the status.
    policy : Policy
        Its thresholds are named.
    tallies : mapping of attribute to Tally
        The marginal tally of each attribute and intersection.
    outcome : str
        What a positive decision means.

    Returns
    -------
    list of dict
        ``attribute, metric, max_group, max, min_group, min, disparity, disparity_pct, threshold, status``;
        ``disparity_pct`` is ``disparity / min * 100``, infinite where the smallest rate is 0.
    """
    rows = []
    for attribute, tally in tallies.items():
        confusion = confusion_of(tally, outcome)
        labels = [group[0] if len(group) == 1 else group for group in tally.groups]
        for rate, definition in RATES.items():
            if definition.uses_labels and not tally.labelled:
                continue
            if rate == "favorable_rate" and outcome == "favorable":
                continue
            values = confusion.rate(rate)
            if (~np.isnan(values)).sum() < 2:
                continue
            high, low = int(np.nanargmax(values)), int(np.nanargmin(values))
            gap = float(values[high] - values[low])
            same = {rate, "favorable_rate"} if rate == "selection_rate" and outcome == "favorable" else {rate}
            judged = [
                f
                for f in findings
                if f.attribute == attribute and f.threshold is not None and same & set(METRICS[f.metric].rates)
            ]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = float(np.divide(100 * gap, values[low])) if gap else 0.0
            rows.append(
                {
                    "attribute": attribute,
                    "metric": rate,
                    "max_group": labels[high],
                    "max": float(values[high]),
                    "min_group": labels[low],
                    "min": float(values[low]),
                    "disparity": gap,
                    "disparity_pct": share,
                    "threshold": judged[0].threshold if judged else None,
                    "status": _worst_status(judged),
                }
            )
    return rows


def _worst_status(judged: Sequence[Finding]) -> str | None:
    order = [Verdict.FLAGGED, Verdict.INCONCLUSIVE, Verdict.UNDEFINED, Verdict.INSUFFICIENT_DATA, Verdict.CLEARED]
    found = {f.verdict for f in judged}
    return next((str(v) for v in order if v in found), None)
