"""Forest plots as data: a row for each comparison, and where on an axis its value, its interval and the limits lie.

Nothing is computed of the audit here: positions are layout. A format draws the marks and writes the same numbers beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, isnan, log10
from typing import ClassVar

from sklearn_ethiclens._findings import Finding
from sklearn_ethiclens.metrics._definitions import METRICS
from sklearn_ethiclens.metrics._scores import find_metric, metric_kind
from sklearn_ethiclens.policy import Policy, Rule
from sklearn_ethiclens.report._words import DESCRIPTIVE, interval, label, limit_words, number, pvalue, value_of, who_of

WIDTH = 280  # of the drawing, in CSS pixels
MARGIN = 16  # left and right of the axis, for the words of the outer ticks
_FARTHEST = 3.0  # ratios beyond are drawn as an arrow at the edge, so that one of few rows does not flatten the others
KEY = (
    "Shaded: what the policy accepts, up to the dashed limits; thin line: parity; bar: the interval; an arrow: it goes on beyond "
    "the axis. Diamond: flagged; ring: inconclusive; disc: cleared; cross: not enough data; small disc: not judged."
)
UNJUDGED_KEY = "Thin line: parity; bar: the interval; an arrow: it goes on beyond the axis."
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_INTERVALS = 4  # between ticks, at most


@dataclass(frozen=True)
class Mark:
    """A comparison: in words and numbers, and where it is drawn.

    Parameters
    ----------
    group, reference : str
        Who is compared with whom; ``reference`` is empty where ``group`` says it all.
    shown : str
        Value and interval, or that the value is undefined.
    pvalue : str
        Adjusted.
    verdict : str
        Or "descriptive".
    at : float or None
        Where the value lies; None where it is undefined.
    low, high : float or None
        Where its interval ends; None where there is none.
    beyond : tuple of {"value", "low", "high"}
        What lies outside the axis and is drawn at its edge, as an arrow.
    said : str
        All of it in a sentence.
    """

    group: str
    reference: str
    shown: str
    pvalue: str
    verdict: str
    at: float | None
    low: float | None
    high: float | None
    beyond: tuple[str, ...]
    said: str


@dataclass(frozen=True)
class Panel:
    """The comparisons of one metric over one axis.

    Parameters
    ----------
    metric, rule : str
        What is shown, and the limits in words; "descriptive" without.
    ticks : tuple of (float, str)
        Where they stand, and what they say.
    band : tuple of float, or None
        From where to where a value is acceptable; None without limits.
    edges : tuple of float
        Which ends of the band are limits: those within the axis.
    parity : float or None
        Where groups are treated alike.
    marks : tuple of Mark
        The comparisons.
    said : str
        The drawing in a sentence.
    """

    metric: str
    rule: str
    ticks: tuple[tuple[float, str], ...]
    band: tuple[float, float] | None
    edges: tuple[float, ...]
    parity: float | None
    marks: tuple[Mark, ...]
    said: str


@dataclass(frozen=True)
class Forest:
    """Panels under one caption; the same numbers stand beside the drawing."""

    kind: ClassVar[str] = "forest"
    panels: tuple[Panel, ...]
    caption: str = ""
    key: str = ""


def forest(findings: Iterable[Finding], policy: Policy, caption: str = "", key: str = "") -> Forest:
    """Return the panels of comparisons, one a metric, in the order in which metrics first occur.

    Parameters
    ----------
    findings : iterable of Finding
        Of comparisons.
    policy : Policy
        Its rules give the limits.
    caption, key : str
        Of the whole, and how to read it.

    Returns
    -------
    Forest
    """
    by_metric: dict[str, list[Finding]] = {}
    for finding in findings:
        by_metric.setdefault(finding.metric, []).append(finding)
    return Forest(tuple(_panel(name, found, policy.rule(name)) for name, found in by_metric.items()), caption, key)


def _panel(name: str, findings: Sequence[Finding], rule: Rule | None) -> Panel:
    metric = find_metric(name)
    parity = metric.parity
    low, high = _limits(rule)
    limits = [limit for limit in (low, high) if isfinite(limit)]
    least = max(metric.low, -1.0) if metric.scale != "ratio" else 0.0
    most = min(metric.high, _FARTHEST if metric.scale == "ratio" else 1.0)
    wanted = [*limits, *([] if parity is None else [parity])]
    wanted += [end for f in findings for end in (f.value, f.low, f.high) if not isnan(end)]
    start, stop, step = axis([min(max(end, least), most) for end in wanted])

    def place(value: float) -> float:
        share = (min(max(value, start), stop) - start) / (stop - start)
        return round(MARGIN + share * (WIDTH - 2 * MARGIN), 2)

    def mark(finding: Finding) -> Mark:
        ends = {"value": finding.value, "low": finding.low, "high": finding.high}
        spanned = not (isnan(finding.low) or isnan(finding.high) or isnan(finding.value))
        if not spanned:
            ends = {"value": finding.value}
        verdict = DESCRIPTIVE if finding.threshold is None or finding.verdict is None else str(finding.verdict)
        alone = metric_kind(name) == "overall"
        shown = value_of(finding).strip()
        return Mark(
            who_of(finding) if alone else label(finding.group),
            "" if alone else label(finding.reference),
            shown,
            pvalue(finding.pvalue_adjusted),
            verdict,
            None if isnan(finding.value) else place(finding.value),
            place(finding.low) if spanned else None,
            place(finding.high) if spanned else None,
            tuple(which for which, end in ends.items() if end < start or end > stop),
            f"{who_of(finding)}: {shown}, {verdict}",
        )

    n_steps = round((stop - start) / step)
    ticks = tuple((place(start + i * step), _tick(start + i * step, step)) for i in range(n_steps + 1))
    return Panel(
        name,
        DESCRIPTIVE if rule is None else f"judged: {limit_words(rule)}",
        ticks,
        None if rule is None else (place(low), place(high)),
        tuple(place(limit) for limit in limits),
        None if parity is None else place(parity),
        tuple(mark(finding) for finding in findings),
        _said(name, findings, rule, parity, start, stop),
    )


def _limits(rule: Rule | None) -> tuple[float, float]:
    """Return the ends of what is acceptable, infinite where there is no limit."""
    if rule is None:
        return -inf, inf
    low = -inf if rule.minimum is None else rule.minimum
    high = inf if rule.maximum is None else rule.maximum
    both_signs = rule.absolute or (rule.basis == "gap" and METRICS[rule.metric].low < 0)
    return (-high, high) if both_signs else (low, high)


def axis(values: Iterable[float]) -> tuple[float, float, float]:
    """Return the ends of an axis that holds values, and the distance of its ticks.

    Examples
    --------
    >>> axis([0.8, 1.0, 0.465, 0.117]), axis([0.0, 0.0])
    ((0.0, 1.0, 0.25), (0.0, 1.0, 0.25))
    """
    values = list(values)
    low, high = min(values), max(values)
    if low == high:
        high = low + 1.0
    rough = (high - low) / _INTERVALS
    size = 10.0 ** floor(log10(rough))
    for step in (factor * scale for scale in (size, 10 * size) for factor in _STEPS):
        start, stop = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        if step >= rough * (1 - 1e-9) and stop - start <= _INTERVALS + 1:
            return start * step, stop * step, step
    raise AssertionError("a step of at least the range holds it in two intervals")  # pragma: no cover


def _tick(value: float, step: float) -> str:
    decimals = max(0, -floor(log10(step) + 1e-9)) + (abs(step / 10 ** floor(log10(step) + 1e-9) - 2.5) < 1e-9)
    return f"{value + 0.0:.{decimals}f}" if abs(value) > step / 1000 else "0"


def _said(
    name: str, findings: Sequence[Finding], rule: Rule | None, parity: float | None, start: float, stop: float
) -> str:
    """Return what a drawing shows, for who cannot see it."""
    undefined = sum(isnan(f.value) for f in findings)
    limits = "no limit" if rule is None else f"acceptable {limit_words(rule)}"
    equal = "" if parity is None else f", parity {number(parity)}"
    words = f"{len(findings)} {'comparison' if len(findings) == 1 else 'comparisons'}"
    blank = f"; {undefined} undefined" if undefined else ""
    return f"{name}: {words} on a scale {interval(start, stop)}, {limits}{equal}{blank}."
