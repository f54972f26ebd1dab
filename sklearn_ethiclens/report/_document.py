"""What a report for reviewers says: the scorecard in full, with drawings, every finding, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isnan
from typing import Any, ClassVar

from sklearn_ethiclens._findings import Finding
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.metrics._scores import metric_kind
from sklearn_ethiclens.policy import Policy, Verdict
from sklearn_ethiclens.report._forest import KEY, UNJUDGED_KEY, forest
from sklearn_ethiclens.report._guidance import approval, guidance, monitoring
from sklearn_ethiclens.report._words import (
    DESCRIPTIVE,
    MANY,
    Facts,
    Items,
    Paragraph,
    Section,
    Table,
    assessed,
    beside_line,
    further,
    groups_table,
    headline_facts,
    interval,
    is_left_out,
    key_of,
    label,
    limit_words,
    limits_section,
    number,
    power_sections,
    provenance_rows,
    pvalue,
    rates_by_group,
    reason_rows,
    reference_line,
    result_facts,
    setting_facts,
    shown_metrics,
    size_sections,
    tests_line,
    title,
    undefined_rates,
    value_of,
    where_of,
    who_of,
)

_REASONS = 8  # at the top; the others stand with their attribute
_NAMED = 6  # comparisons with the same reason; the drawing has the verdict of each
_UNASSESSED = (Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED)
_DECIDED = (Verdict.FLAGGED, Verdict.INCONCLUSIVE, Verdict.CLEARED)


@dataclass(frozen=True)
class Folded:
    """Parts that a format may fold away under a title; where it cannot, they are shown."""

    kind: ClassVar[str] = "folded"
    title: str
    parts: tuple[Any, ...]


def document(audit: Any, *, condensed: bool = False) -> tuple[Section, ...]:
    """Return all that a report for reviewers says, in order; the first section is the summary.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.
    condensed : bool, default=False
        For paper: without the table of all findings, and of many comparisons only those that are judged.

    Returns
    -------
    tuple of Section
    """
    rates = rates_by_group(audit)
    return (
        *digest(audit, rates, condensed=condensed),
        *(replace(s, key=key) for s, key in zip(size_sections(audit), ["size"], strict=False)),
        *(replace(s, key=key) for s, key in zip(power_sections(audit), ["power"], strict=False)),
        *(replace(further(section), key=f"part-{i}") for i, section in enumerate(audit.sections, 1)),
        _all_findings(audit, condensed),
        replace(limits_section(audit, rates), key="limits"),
        *guidance(),
        _conditions(audit),
        Section("Method and provenance", (Facts(provenance_rows(audit)),), key="provenance"),
        approval(),
    )


def digest(audit: Any, rates: Any, *, condensed: bool = False) -> tuple[Section, ...]:
    """Return the summary, what was audited, and a section for each attribute."""
    return (
        _summary(audit),
        Section("What was audited", (Facts(setting_facts(audit)),), key="setting"),
        *(
            _by_attribute(audit, tuple(attributes), rates, f"by-{i}", condensed)
            for i, attributes in enumerate(audit.plan, 1)
        ),
    )


# ------------------------------------------------------------------------------------------------------------- summary
def _summary(audit: Any) -> Section:
    beside = beside_line(audit)
    headlines = headline_facts(audit) if audit.policy.rules else ()
    facts = (*result_facts(audit), *headlines, *((("Calibrated", beside),) if beside else ()))
    parts: list[Any] = [Facts(facts)]
    worst = _worst(audit)
    if worst:
        rows = tuple(
            (where_of(f), str(f.verdict), f.metric, value_of(f).strip(), _limit(audit.policy, f)) for f in worst
        )
        header = ("comparison", "verdict", "metric", "value and interval", "limit")
        parts.append(Table(header, (("", rows),), 1, "The worst comparison of each attribute and judged metric"))
    unassessed = [f for f in audit.judged if f.verdict in _UNASSESSED]
    if unassessed:
        reasons = tuple(row for row in reason_rows(unassessed, _NAMED) if row[0] in map(str, _UNASSESSED))
        cut = len(reasons) - _REASONS
        more = (("...", f"and {cut} more reasons: see each attribute"),) if cut > 0 else ()
        parts.append(Facts((*reasons[:_REASONS], *more), "Not assessed, and why"))
    return Section(title(audit), tuple(parts), str(audit.verdict or ""), "summary")


def _worst(audit: Any) -> list[Finding]:
    """Return of each attribute and judged metric the comparison with the worst verdict, and of these the farthest one out."""
    worst: dict[Any, tuple[tuple[float, float], Finding]] = {}
    for f in audit.judged:
        if f.verdict in _DECIDED:
            rank = (_DECIDED.index(f.verdict), -_excess(audit.policy, f))
            key = (f.attribute, f.metric)
            if key not in worst or rank < worst[key][0]:
                worst[key] = (rank, f)
    return [f for _, f in sorted(worst.values(), key=lambda entry: entry[0][0])]


def _excess(policy: Policy, finding: Finding) -> float:
    """Return how far a value lies beyond its limit; negative within."""
    rule = policy.rule(finding.metric)
    if rule is None:
        return -inf
    value = abs(finding.value) if rule.absolute or rule.basis == "gap" else finding.value
    below = -inf if rule.minimum is None else rule.minimum - value
    above = -inf if rule.maximum is None else value - rule.maximum
    return max(below, above)


def _limit(policy: Policy, finding: Finding) -> str:
    rule = policy.rule(finding.metric)
    return "" if rule is None else limit_words(rule)


# --------------------------------------------------------------------------------------------------------- an attribute
def _by_attribute(audit: Any, attributes: tuple[str, ...], rates: Any, key: str, condensed: bool) -> Section:
    name = key_of(attributes)
    reference = next(r for r in audit.references if r.attribute == name)
    found = [f for f in audit.findings if f.attribute == name and metric_kind(f.metric) != "group"]
    order = {metric: i for i, metric in enumerate(shown_metrics(audit, found))}
    shown = [f for f in found if f.metric in order and assessed(f)]
    drawn = sorted((f for f in shown if not is_left_out(f)), key=lambda f: order[f.metric])
    judged = [f for f in drawn if f.threshold is not None]
    main = judged or [f for f in drawn if f.metric == "disparate_impact"]
    apart = set(map(id, main))  # comparing findings with each other would take the square of their number
    others = [f for f in drawn if id(f) not in apart]
    cut = 0
    if len({who_of(f) for f in drawn}) > MANY:
        flagged = {who_of(f) for f in drawn if f.verdict is Verdict.FLAGGED}
        kept = [f for f in others if who_of(f) in flagged and not condensed]
        cut, others = len(others) - len(kept), kept
    parts: list[Any] = [Paragraph(reference_line(reference, audit.policy, len(rates[show(name)])))]
    called = "Judged comparisons" if judged else "Comparisons"
    if main:
        parts.append(forest(main, audit.policy, f"{called} by {label(name)}", KEY if judged else UNJUDGED_KEY))
    reasons = reason_rows(shown, _NAMED)
    if reasons:
        facts = Facts(reasons, f"Reasons by {label(name)}")
        parts.append(facts if len(reasons) <= MANY else Folded(f"Reasons ({len(reasons)})", (facts,)))
    if others:
        drawing = forest(others, audit.policy, f"Further comparisons by {label(name)}, not judged")
        parts.append(Folded(f"Further comparisons, not judged ({len(others)})", (drawing,)))
    if cut:
        where = "in the HTML report" if condensed else "among all findings"
        parts.append(Paragraph(f"{cut} more comparisons that are not judged stand {where}."))
    groups = groups_table(audit, show(name), rates, apart=True)
    parts.append(
        replace(groups, keys=1, caption=f"Rates by {label(name)}: value, denominator, interval", sortable=True)
    )
    parts += map(Paragraph, undefined_rates(show(name), rates))
    tests = tests_line(audit, name)
    parts += [Paragraph(tests)] if tests else []
    return Section(f"By {label(name)}", tuple(parts), key=key)


# --------------------------------------------------------------------------------------------------------- all findings
_COLUMNS = (
    "metric",
    "attribute",
    "group",
    "reference",
    "value",
    "interval",
    "verdict",
    "limit",
    "p",
    "p adj",
    "rows",
    "power",
    "method",
    "reason",
)


def _all_findings(audit: Any, condensed: bool) -> Section:
    """Return the table of findings; for paper where to find it."""
    said = f"{len(audit.findings)} findings; {len(audit.judged)} are judged, the others describe."
    if condensed:
        said += " The judged ones stand with their attribute; the HTML report and the JSON file have all."
        return Section("All findings", (Paragraph(said),), key="findings")
    judged_first = sorted(audit.findings, key=lambda f: f.threshold is None)
    rows = tuple(_finding(audit.policy, f) for f in judged_first)
    table = Table(
        _COLUMNS, (("", rows),), 1, "Every finding in a row, the judged ones first", sortable=True, filterable=True
    )
    return Section("All findings", (Paragraph(said), *((table,) if rows else ())), key="findings")


def _finding(policy: Policy, f: Finding) -> tuple[str, ...]:
    judged = f.threshold is not None and f.verdict is not None
    return (
        f.metric,
        label(f.attribute),
        "" if f.group is None else label(f.group),
        "" if f.reference is None else label(f.reference),
        number(f.value),
        interval(f.low, f.high),
        str(f.verdict) if judged else DESCRIPTIVE,
        _limit(policy, f) if judged else "",
        pvalue(f.pvalue),
        pvalue(f.pvalue_adjusted),
        f"{f.n}" if f.n_reference is None else f"{f.n} / {f.n_reference}",
        "" if isnan(f.power) else f"{f.power:.2f}",
        f.method or "",
        f.reason,
    )


# ---------------------------------------------------------------------------------------------------------------- below
def _conditions(audit: Any) -> Section:
    """Return what an approval rests on, and what to watch after it."""
    if not audit.policy.rules:
        plan, _ = monitoring()
        return Section("Monitoring plan", (plan,), key="conditions")
    conditions = audit.conditions
    parts: list[Any] = []
    if audit.flagged:
        n = len(audit.flagged)
        are = "finding is" if n == 1 else "findings are"
        parts.append(Paragraph(f"{n} {are} flagged: before use, justify each, or mitigate it and audit again."))
    if conditions:
        counts = {verdict: sum(f.verdict is verdict for f in conditions) for verdict in Verdict}
        words = {
            Verdict.INCONCLUSIVE: "inconclusive: collect more data, or treat the limit as passed",
            Verdict.INSUFFICIENT_DATA: "without enough data: nothing is known of these groups; collect data, or limit use",
            Verdict.UNDEFINED: "undefined: the rate has no denominator in a group",
        }
        lines = tuple(f"{counts[verdict]} {said}." for verdict, said in words.items() if counts[verdict])
        parts += [Paragraph("Conditions, each named with its reason above:"), Items(lines)]
    if not parts:
        parts.append(Paragraph("No finding calls for a condition." if audit.judged else "There was nothing to judge."))
    return Section("Conditions and monitoring plan", (*parts, *monitoring()), key="conditions")
