"""What an audit says: sections of sentences and tables, each worded once; every format lays out the same ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isinf, isnan
from typing import Any, ClassVar

from sklearn_ethiclens._calibrated import limits_of
from sklearn_ethiclens._findings import Finding, Headline, Reference
from sklearn_ethiclens._findings import Section as FurtherSection
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.inference import power_label
from sklearn_ethiclens.metrics._comparisons import distance_from_parity
from sklearn_ethiclens.metrics._definitions import METRICS
from sklearn_ethiclens.metrics._rates import RATES
from sklearn_ethiclens.metrics._scores import metric_kind
from sklearn_ethiclens.policy import Policy, Rule, Verdict

MANY = 12  # comparisons of an attribute beyond which companions are shown only where something is flagged
_SHOWN = 8  # names in a sentence
_FLAGGED = 6  # findings named at the top
DESCRIPTIVE = "descriptive"
_CALIBRATED = "calibrated"  # what that policy's methods say, where it differs
_DECIDED = frozenset({str(Verdict.FLAGGED), str(Verdict.CLEARED)})
_DISGUISES = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_COLUMNS = {  # rates shown by group -> heading
    "selection_rate": "selection\nrate",
    "favorable_rate": "favourable\nrate",
    "true_positive_rate": "TPR\n(positives)",
    "false_positive_rate": "FPR\n(negatives)",
    "precision": "precision\n(selected)",
}
_EMPTY = {"total": "no rows", "positives": "no positives", "negatives": "no negatives", "selected": "none selected"}
_COMPANIONS = (
    "disparate_impact",
    "equalized_odds_difference",
    "statistical_parity_difference",
    "true_positive_rate_difference",
    "false_positive_rate_difference",
    "precision_difference",
)
_REFERENCES = {
    "highest_rate": "the highest rate of the favourable decision",
    "first": "the first in sort order",
    "highest_value": "for each metric the group where it is highest",
}
_METHODS = {"auto": "auto (closed forms, BCa elsewhere)", "bca": "BCa", "percentile": "percentile"}
_MULTIPLICITY = {"holm": "Holm", "bh": "Benjamini-Hochberg", "max-t": "Holm; flags: max-T over everything judged"}
TRIAGE = "A convenience for triage, no legal standard; higher is a smaller disparity."
INFLATES = "A reference chosen from the data inflates flags: name one beforehand."
ALLOWED = "That it was chosen from the data is allowed for in the adjustment."
IGNORES = "the policy ignores uncertainty: it judges values alone, by design"
UNJUDGED = "No limit was set: whether a number is large or small is not said here."
HIGHEST = (
    "The highest of several rates is too high on average, so that ratios to it are too low, the more so with few rows."
)
LIMITS = (
    "Cleared is not fair: it means within this policy's limits, for these groups, metrics and rows. And what is not "
    "flagged is not cleared.",
    "Intervals hold the chance of sampling only. Who is missing from the rows is missing here, and so are groups that "
    "the attributes do not name.",
    "The labels may be biased themselves; all error rates take them as the truth.",
    "A gap says where to look, not what caused it.",
)


# ------------------------------------------------------------------------------------------------------------- shapes
@dataclass(frozen=True)
class Facts:
    """Pairs of a key and what there is to say of it."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a header, in blocks of their own heading (none if empty); a cell may have several lines.

    ``keys`` is the number of leading columns that say whose a row is: they are repeated where a table is too wide for one line
    and goes on below. With 0, the widest column gives way instead. ``sortable`` and ``filterable``: readers may want to do so,
    where the format lets them. ``form``: its empty cells are to be filled in by hand.
    """

    kind: ClassVar[str] = "table"
    header: tuple[str, ...]
    blocks: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    keys: int = 0
    caption: str = ""
    sortable: bool = False
    filterable: bool = False
    form: bool = False


@dataclass(frozen=True)
class Paragraph:
    """A sentence or a few."""

    kind: ClassVar[str] = "paragraph"
    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    kind: ClassVar[str] = "items"
    lines: tuple[str, ...]


Part = Facts | Table | Paragraph | Items


@dataclass(frozen=True)
class Section:
    """A heading and its parts; ``key`` is what it is about, in a word."""

    title: str
    parts: tuple[Any, ...]
    verdict: str = ""
    key: str = ""


# ------------------------------------------------------------------------------------------------- labels and numbers
def label(value: Any) -> str:
    r"""Return a label, or an attribute's name, as typed; characters that command or disguise are shown by their code.

    Examples
    --------
    >>> label("<b>x</b>"), label(1.0), label(("F", "30+")), label("a" + chr(27) + "[2J")
    ('<b>x</b>', '1', 'F & 30+', 'a\\x1b[2J')
    """
    return "".join(_visible(character) for character in show(value))


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _DISGUISES
    return character.encode("unicode_escape").decode() if hidden else character


def number(value: float) -> str:
    """Return a number to three decimals, fewer where it is large; a small one is never shown as zero.

    Examples
    --------
    >>> [number(v) for v in (0.0, 0.8302, -0.1358, 12.345, 4321.0, 0.00003, float("nan"))]
    ['0.000', '0.830', '-0.136', '12.35', '4321', '3e-05', 'undefined']
    """
    if isnan(value):
        return "undefined"
    size = abs(value)
    if isinf(size) or 0 < size < 0.0005:
        return f"{value:.0e}"
    return f"{value:.{3 if size < 9.9995 else 2 if size < 99.995 else 0}f}"


def interval(low: float, high: float) -> str:
    """Return the ends of an interval; nothing where there is none."""
    return "" if isnan(low) or isnan(high) else f"[{number(low)}, {number(high)}]"


def pvalue(value: float) -> str:
    """Return a p-value to three decimals; nothing where there is none."""
    return "" if isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}"


def some(words: Iterable[str], shown: int = _SHOWN, sep: str = ", ") -> str:
    """Return words as a list, cut after ``shown`` of them, with the number left out."""
    words = list(words)
    more = f" and {len(words) - shown} more" if len(words) > shown else ""
    return sep.join(words[:shown]) + more


def _pair(group: Any, reference: Any) -> str:
    return f"{label(group)} against {label(reference)}"


def who_of(finding: Finding) -> str:
    """Return whom a comparison is of; the two extremes, for a number of all groups."""
    if metric_kind(finding.metric) == "overall":
        return f"all groups, {label(finding.group)} lowest, {label(finding.reference)} highest"
    return _pair(finding.group, finding.reference)


def key_of(attributes: Sequence[str]) -> Any:
    """Return what findings call these attributes."""
    return attributes[0] if len(attributes) == 1 else tuple(attributes)


def _event(audit: Any) -> str:
    positive = audit.tally.pos_label
    return repr(positive) if isinstance(positive, str) else label(positive)


# ----------------------------------------------------------------------------------------------------------- the whole
def title(audit: Any) -> str:
    """Return the verdict and the status in a line."""
    name = audit.provenance["data"].get("name")
    said = f"{audit.verdict} ({audit.status})" if audit.verdict else audit.status
    return f"{f'Audit of {label(name)}' if name else 'Audit'}: {said}"


def scorecard(audit: Any) -> tuple[Section, ...]:
    """Return all that a report says of an audit, in order.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.

    Returns
    -------
    tuple of Section
    """
    return tuple(section for chapter in chapters(audit).values() for section in chapter)


def chapters(audit: Any) -> dict[str, tuple[Section, ...]]:
    """Return the same by what they are: "head", "attributes", "summary", "size", "power", "further", "limits", "provenance"."""
    rates = rates_by_group(audit)
    return {
        "head": (Section(title(audit), (_facts(audit),), str(audit.verdict or "")),),
        "attributes": tuple(_by_attribute(audit, tuple(attributes), rates) for attributes in audit.plan),
        "summary": (Section("Summary", (Facts(headline_facts(audit)),)),) if audit.policy.rules else (),
        "size": size_sections(audit),
        "power": power_sections(audit),
        "further": tuple(map(further, audit.sections)),
        "limits": (limits_section(audit, rates),),
        "provenance": (Section("Provenance", (Paragraph(_provenance(audit)),)),),
    }


def _facts(audit: Any) -> Facts:
    result = result_facts(audit)
    worst = sorted(audit.flagged, key=_times_limit, reverse=True)
    flagged = [("Flagged", f"{where_of(f)}: {f.metric} {value_of(f).strip()}") for f in worst[:_FLAGGED]]
    if len(worst) > _FLAGGED:
        flagged.append(("Flagged", f"and {len(worst) - _FLAGGED} more, none farther beyond its limit"))
    beside = [("Calibrated", said)] if (said := beside_line(audit)) else []
    return Facts((*result, *flagged, *setting_facts(audit), *beside))


def _times_limit(finding: Finding) -> float:
    """Return how far from parity a judged value is, in units of its limit's distance; 0 without a parity to measure from."""
    parity = METRICS[finding.metric].parity
    if parity is None or finding.threshold is None:
        return 0.0
    far, limit = distance_from_parity([finding.value, finding.threshold], parity).tolist()
    return float(far / limit) if limit > 0 else inf


def result_facts(audit: Any) -> tuple[tuple[str, str], ...]:
    """Return how many findings have which verdict, and a caution where the policy calls for one."""
    caution = (("Caution", IGNORES),) if audit.policy.ignores_uncertainty else ()
    return (("Result", _tallied(audit)), *caution)


def setting_facts(audit: Any) -> tuple[tuple[str, str], ...]:
    """Return what was audited: data, model, what a decision means, policy and methods."""
    data, policy = audit.provenance["data"], audit.policy
    weighted = f", weighted (sum of weights {data['sum_of_weights']:.6g})" if "sum_of_weights" in data else ""
    rows = [("Data", f"{label(data['name']) + ', ' if data.get('name') else ''}{data['n_rows']} rows{weighted}")]
    if data.get("model"):
        rows.append(("Model", str(data["model"])))
    rows += [("Note", str(note)) for note in data.get("notes", ())]
    rows.append(("Decision", _polarity(audit)))
    rows.append(("Policy", f"{policy.name}: {policy.description}"))
    rows += [(key, text) for key, text in _rules(policy) if text]
    return tuple(rows)


def beside_line(audit: Any) -> str:
    """Return how the calibrated methods judge the same comparisons; nothing where they are the policy's own."""
    limited = {limit.metric for limit in limits_of(audit.policy.rules)}
    comparisons = [f for f in audit.judged if f.metric in limited]
    if audit.policy.judges_together or not comparisons:
        return ""
    differing = [f.calibrated.partition(":")[0] for f in comparisons if f.calibrated]
    if not differing:
        return "intervals that hold their level, adjusted for everything judged, give the same verdicts"
    counts = [f"{differing.count(str(verdict))} {verdict}" for verdict in Verdict if str(verdict) in differing]
    return (
        f"intervals that hold their level, adjusted for everything judged, judge {len(differing)} of {len(comparisons)} "
        f"otherwise: {', '.join(counts)}"
    )


def _tallied(audit: Any) -> str:
    if not audit.policy.rules:
        return f"no verdict, by design: the policy {audit.policy.name} sets no limit"
    found = [f.verdict for f in audit.judged]
    counts = [f"{found.count(verdict)} {verdict}" for verdict in Verdict if verdict in found]
    return f"of {len(found)} judged findings: {', '.join(counts)}" if found else "there was nothing to judge"


def where_of(finding: Finding) -> str:
    """Return the attribute and whom a comparison is of."""
    return f"{label(finding.attribute)}: {who_of(finding)}"


def _polarity(audit: Any) -> str:
    event = _event(audit)
    if audit.outcome == "favorable":
        return f"positive label {event}; receiving {event} is the favourable decision"
    return (
        f"positive label {event}; receiving {event} is adverse. Ratios judged are of NOT receiving {event}, and so are "
        f"the parity difference and the composite; TPR, FPR, precision and selection_rate_ratio are of receiving {event}"
    )


def policy_facts(policy: Policy) -> Facts:
    """Return a policy in full."""
    sizes = {"": policy.size_notes, " in an intersection": policy.intersection_size_notes}
    rows = (
        ("Policy", policy.name),
        ("Caution", IGNORES if policy.ignores_uncertainty else ""),
        ("In words", policy.description),
        *_rules(policy),
        ("Reference", f"{_REFERENCES[policy.reference]}{_above(policy)}, where none is given"),
        ("Left out", f"groups under {policy.min_share:.0%} of the rows" if policy.min_share else ""),
        *(("Note", f"under {n}{where}: {words}") for where, notes in sizes.items() for n, words in notes),
        ("Source", policy.source),
    )
    return Facts(tuple(row for row in rows if row[1]))


def _rules(policy: Policy) -> tuple[tuple[str, str], ...]:
    """Return what is judged, from how many rows on, and how."""
    judged = "; ".join(rule_words(rule) for rule in policy.rules)
    floors = ", ".join(f"{n} {'rows' if name == 'total' else name}" for name, n in policy.floors.items())
    return (
        ("Judged", judged),
        ("Floors", f"{floors}, in both groups of a comparison" if floors else ""),
        ("Intervals", methods_line(policy)),
    )


def rule_words(rule: Rule) -> str:
    """Return a rule in words, its elevated zone too."""
    elevated = "" if rule.elevated is None else f" (elevated from {rule.elevated:g})"
    return f"{rule.describe()}{elevated}"


def limit_words(rule: Rule) -> str:
    """Return the limits of a rule in words, without the name of its metric.

    Examples
    --------
    >>> limit_words(Rule("disparate_impact", 0.8)), limit_words(Rule("selection_rate_difference", maximum=0.1, absolute=True))
    ('>= 0.8', 'size <= 0.1')
    """
    return rule_words(rule).replace(f"|{rule.metric}|", "size").removeprefix(f"{rule.metric} ")


def _above(policy: Policy) -> str:
    return " above the floor" if "total" in policy.floors else ""


def methods_line(policy: Policy) -> str:
    """Return how a policy makes intervals and adjusts p-values."""
    return (
        f"{policy.confidence_level * 100:g}% {_METHODS[policy.method]}, {policy.n_resamples} bootstrap replicates (groups: "
        f"Wilson); p-values adjusted over the comparisons of a metric ({_MULTIPLICITY[policy.multiplicity]})"
    )


# --------------------------------------------------------------------------------------------------------- an attribute
def _by_attribute(audit: Any, attributes: tuple[str, ...], rates: Any) -> Section:
    key = key_of(attributes)
    reference = next(r for r in audit.references if r.attribute == key)
    found = [f for f in audit.findings if f.attribute == key and metric_kind(f.metric) != "group"]
    metrics = set(shown_metrics(audit, found))
    shown = [f for f in found if f.metric in metrics and assessed(f)]
    table, left_out = _comparisons(audit, shown)
    parts: list[Part] = [Paragraph(reference_line(reference, audit.policy, len(rates[show(key)])))]
    parts += [groups_table(audit, show(key), rates), *map(Paragraph, undefined_rates(show(key), rates))]
    parts += [table] if table.blocks else []
    parts += [Paragraph(left_out)] if left_out else []
    tests = tests_line(audit, key)
    parts += [Paragraph(tests)] if tests else []
    reasons = reason_rows(shown)
    parts += [Facts(reasons)] if reasons else []
    return Section(f"By {label(key)}", tuple(parts))


def shown_metrics(audit: Any, found: Sequence[Finding]) -> tuple[str, ...]:
    """Return the metrics to show, the judged ones first."""
    judged = [f.metric for f in found if f.threshold is not None]
    rates = ("selection_rate_ratio",) if audit.outcome == "adverse" else ()
    asked = [name for name in audit.parameters.get("metrics") or () if metric_kind(name) == "pair"]
    return tuple(dict.fromkeys((*judged, *asked, *_COMPANIONS, *rates)))


def assessed(finding: Finding) -> bool:
    """Tell whether a finding has something to show: its value, or at least a verdict of the policy."""
    return finding.threshold is not None or not isnan(finding.value) or finding.verdict is None


def reference_line(reference: Reference, policy: Policy, n_groups: int) -> str:
    """Return who the groups of an attribute are compared with, and how it came to be it."""
    who = label(reference.group)
    if n_groups < 2:
        return f"One group only, {who}: nothing can be compared."
    if reference.given:
        return f"Reference: {who} (given)." + ("" if reference.sufficient else " It is below the policy's floor.")
    if not reference.sufficient:
        return f"Reference: {who}, the largest group, since none meets the policy's floor."
    if policy.reference == "highest_value":
        return f"Reference: {_REFERENCES['highest_value']}. {INFLATES}"
    chosen = f"Reference: {who}, chosen by the policy: {_REFERENCES[policy.reference]}{_above(policy)}."
    if policy.reference != "highest_rate":
        return chosen
    if not policy.rules:
        return f"{chosen} {HIGHEST}"
    return f"{chosen} {ALLOWED if policy.judges_together else INFLATES}"


def rates_by_group(audit: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the rows of the table of rates by attribute, group and rate."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in audit.rates().itertuples(index=False):
        found.setdefault(row.attribute, {}).setdefault(repr(row.group), {})[row.rate] = row
    return found


def groups_table(audit: Any, attribute: str, rates: Any, *, apart: bool = False) -> Table:
    """Return the rates of each group with their intervals; ``apart``: the number of rows in a column of its own."""
    groups = rates[attribute].values()
    columns = [name for name in _COLUMNS if name in next(iter(groups))]
    headings = dict(_COLUMNS)
    if audit.outcome == "adverse":
        headings["selection_rate"] = "selection\n(adverse)"
    rows = []
    for by_rate in groups:
        first = by_rate["selection_rate"]
        head = (label(first.group), f"{first.n}") if apart else (f"{label(first.group)}\nn={first.n}",)
        rows.append((*head, *(_rate(by_rate[name]) for name in columns)))
    header = (*(("group", "rows") if apart else ("group\nrows",)), *(headings[name] for name in columns))
    return Table(header, (("", tuple(rows)),))


def _rate(row: Any) -> str:
    """Return a rate, its denominator where that is not n, and its interval, in two lines."""
    if row.denominator == 0:
        return f"undefined\n({_EMPTY[RATES[row.rate].denominator]})"
    of = "" if RATES[row.rate].denominator == "total" else f" ({row.denominator})"
    return f"{number(row.value)}{of}\n{_short(row.low)}-{_short(row.high)}"


def _short(end: float) -> str:
    return f"{end:.3f}".removeprefix("0")


def undefined_rates(attribute: str, rates: Any) -> list[str]:
    """Return a sentence for each rate that is undefined in some groups, naming them."""
    said = []
    for rate in _COLUMNS:
        rows = [by_rate[rate] for by_rate in rates[attribute].values() if rate in by_rate]
        empty = [label(row.group) for row in rows if row.denominator == 0]
        if empty:
            said.append(f"{rate} undefined ({_EMPTY[RATES[rate].denominator]}): {some(empty)}.")
    return said


def _comparisons(audit: Any, shown: Sequence[Finding]) -> tuple[Table, str]:
    """Return the table of comparisons, and a sentence on the rows that were left out of it."""
    order = {name: i for i, name in enumerate(shown_metrics(audit, shown))}
    blocks: dict[str, list[Finding]] = {}
    for f in sorted(shown, key=lambda f: order[f.metric]):
        if not is_left_out(f):
            blocks.setdefault(who_of(f), []).append(f)
    primary = [name for name in order if audit.policy.rule(name)] or ["disparate_impact"]
    cut = 0
    if len(blocks) > MANY:
        for heading, findings in blocks.items():
            if not any(f.verdict is Verdict.FLAGGED for f in findings):
                kept = [f for f in findings if f.metric in primary]
                cut += len(findings) - len(kept)
                blocks[heading] = kept
    said = f"{cut} descriptive values of comparisons without a flagged finding are not shown."
    rows = tuple((heading, tuple(map(_row, findings))) for heading, findings in blocks.items() if findings)
    return Table(("comparison", "value and interval", "p adj", "verdict"), rows), said * bool(cut)


def _row(finding: Finding) -> tuple[str, ...]:
    verdict = DESCRIPTIVE if finding.threshold is None or finding.verdict is None else str(finding.verdict)
    return finding.metric, value_of(finding), pvalue(finding.pvalue_adjusted), verdict


def value_of(finding: Finding) -> str:
    """Return a value with its interval, or that there is none."""
    if isnan(finding.value):
        return "no labels" if finding.reason == "no labels" else "undefined"
    return f"{number(finding.value):>6} {interval(finding.low, finding.high)}".rstrip()


def is_left_out(finding: Finding) -> bool:
    """Tell whether the policy keeps a group out of comparisons."""
    return isnan(finding.value) and finding.reason.startswith(("left out: ", "unknown category"))


def tests_line(audit: Any, key: Any) -> str:
    """Return the tests that all groups have the same rate, in a sentence."""
    rates = ("selection_rate", "base_rate", "true_positive_rate", "false_positive_rate", "precision")
    found = {
        test["rate"]: test["pvalue"]
        for test in audit.tests
        if key_of([test["attribute"]] if isinstance(test["attribute"], str) else test["attribute"]) == key
    }
    words = [f"{rate} {pvalue(found[rate])}" for rate in rates if rate in found and not isnan(found[rate])]
    name = "Wald's F" if any(test["test"] == "F" for test in audit.tests) else "Chi-square"
    return f"{name} over all groups, p (not adjusted): {', '.join(words)}." if words else ""


def reason_rows(findings: Sequence[Finding], named: int | None = None) -> tuple[tuple[str, str], ...]:
    """Return why each judged finding is not cleared, and why a shown one has no value; alike ones joined.

    Of comparisons with the same reason ``named`` are named and the others counted; all by default.
    """
    metrics: dict[tuple[str, str, str], list[str]] = {}
    judged = [f for f in findings if f.threshold is not None]
    said = {(who_of(f), f.reason) for f in judged}
    for f in (*judged, *(f for f in findings if f.threshold is None)):
        if is_left_out(f):
            metrics.setdefault((label(f.group), "left out", f.reason), [])
        elif f.threshold is not None and f.verdict is not Verdict.CLEARED:
            metrics.setdefault((who_of(f), str(f.verdict), f.reason), []).append(f.metric)
        elif f.threshold is None and f.reason and (who_of(f), f.reason) not in said:
            if isnan(f.value) or (not judged and isnan(f.low)):
                metrics.setdefault((who_of(f), DESCRIPTIVE, f.reason), []).append(f.metric)
    for f in judged:
        if f.calibrated and {f.calibrated.partition(":")[0], str(f.verdict)} & _DECIDED:
            metrics.setdefault((who_of(f), _CALIBRATED, f.calibrated), []).append(f.metric)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for (group, verdict, reason), names in metrics.items():
        groups.setdefault((verdict, ", ".join(names), reason), []).append(group)
    order = [*map(str, Verdict), _CALIBRATED, "left out", DESCRIPTIVE]
    rows = sorted(groups.items(), key=lambda row: order.index(row[0][0]))
    return tuple(
        (
            verdict,
            f"{f'{names} of ' if names else ''}{some(where, named or len(where), '; ')}: {reason.removeprefix('left out: ')}",
        )
        for (verdict, names, reason), where in rows
    )


# ---------------------------------------------------------------------------------------------------------------- below
def headline_facts(audit: Any) -> tuple[tuple[str, str], ...]:
    composite, least = audit.composite, audit.minimum_disparate_impact
    single = ", intersections apart" if any(len(attributes) > 1 for attributes in audit.plan) else ""
    triage = "" if composite.value is None else f" {TRIAGE}"
    return (
        ("Composite bias score", f"{_headline(composite, single)}.{triage}"),
        ("Minimum disparate impact", f"{_headline(least, single)}."),
    )


def _headline(headline: Headline, single: str) -> str:
    if headline.value is None:
        return headline.reason.removesuffix(".")
    where = f"{label(headline.attribute)}: {_pair(headline.group, headline.reference)}"
    band = f", {headline.band}" if headline.band else ""
    return f"{number(headline.value)}{band} ({where}){single}"


def size_sections(audit: Any) -> tuple[Section, ...]:
    notes = tuple(label(note) for note in audit.notes)
    return (Section("Size of groups", (Items(notes),)),) if notes else ()


def power_sections(audit: Any) -> tuple[Section, ...]:
    """Return the comparisons with little power, by how little; the weakest judged metric of each."""
    pairs = [f for f in audit.findings if metric_kind(f.metric) == "pair" and not isnan(f.power) and not is_left_out(f)]
    judged = [f for f in pairs if f.threshold is not None]
    weakest: dict[str, Finding] = {}
    for f in judged or [f for f in pairs if f.metric in _COMPANIONS[:2]]:
        if f.power < weakest.setdefault(where_of(f), f).power:
            weakest[where_of(f)] = f
    words: dict[str, list[str]] = {"insufficient": [], "marginal": []}
    for where, f in weakest.items():
        gap = "" if isnan(f.minimum_detectable) else f"; .80 from a gap of {number(f.minimum_detectable)}"
        if power_label(f.power) in words:
            words[power_label(f.power)].append(f"{where} ({f.metric}: power {f.power:.2f}{gap})")
    heads = {"insufficient": "power below .5 for a 10-point gap", "marginal": "power of .5 to .7 for a 10-point gap"}
    lines = tuple(f"{heads[word]}: {some(found, sep='; ')}" for word, found in words.items() if found)
    return (Section("Power", (Items(lines),)),) if lines else ()


# ------------------------------------------------------------------------------------------------------ further sections
def further(section: FurtherSection) -> Section:
    """Return a further section of an audit: its sentences, then its table.

    Rows that share the word in the first column stand in a block under it; equal ones must be neighbours.
    """
    parts: list[Part] = [Paragraph(label(line)) for line in section.lines]
    if section.columns and not section.rows:
        parts.append(Paragraph("The table has no rows."))
    elif section.columns:
        parts.append(_table_of(section))
    return Section(label(section.title), tuple(parts))


def _table_of(section: FurtherSection) -> Table:
    first, n = [row[0] for row in section.rows], len(section.rows)
    header, cells, fractions = _columns_of(section)
    caption = f"{label(section.title)}: {n} {'row' if n == 1 else 'rows'}"
    runs = [i for i in range(n) if not i or first[i] != first[i - 1]]
    in_blocks = len(header) > 1 and all(isinstance(v, str) for v in first) and len(set(first)) == len(runs) < n
    # The columns before the first fraction say whose a row is, up to four of them.
    keys = min([*fractions, 4]) - in_blocks
    keys = keys if 0 < keys < len(header) - in_blocks else 1
    if not in_blocks:
        return Table(header, (("", cells),), keys, caption)
    blocks = tuple(
        (f"{header[0]}: {cells[start][0]}", tuple(row[1:] for row in cells[start:stop]))
        for start, stop in pairwise([*runs, n])
    )
    return Table(header[1:], blocks, keys, caption)


def _columns_of(section: FurtherSection) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], list[int]]:
    """Return header, cells and which columns hold fractions; the ends of an interval stand beside its value."""
    names, columns = section.columns, list(zip(*section.rows, strict=True))
    header: list[str] = []
    shown: list[list[str]] = []
    fractions: list[int] = []
    j = 0
    while j < len(names):
        fraction = any(isinstance(value, float) for value in columns[j])
        fractions += [len(header)] * fraction
        header.append(label(names[j]))
        if fraction and tuple(names[j + 1 : j + 3]) in ((f"{names[j]}_low", f"{names[j]}_high"), ("low", "high")):
            shown.append([_with_interval(*values) for values in zip(*columns[j : j + 3], strict=True)])
            j += 3
        else:
            shown.append([cell(value) for value in columns[j]])
            j += 1
    return tuple(header), tuple(zip(*shown, strict=True)), fractions


def _with_interval(value: Any, low: Any, high: Any) -> str:
    ends = [end for end in (low, high) if isinstance(end, float) and not isnan(end)]
    return f"{cell(value)} {interval(low, high)}" if len(ends) == 2 else cell(value)


def cell(value: Any) -> str:
    """Return a cell of a further section: a number as :func:`number`, a label as typed, "-" for None.

    Examples
    --------
    >>> [cell(v) for v in (0.25, float("nan"), None, 1200, "<b>", True)]
    ['0.250', 'undefined', '-', '1200', '<b>', 'True']
    """
    if value is None:
        return "-"
    return number(value) if isinstance(value, float) else label(value)


# --------------------------------------------------------------------------------------------------------------- limits
def limits_section(audit: Any, rates: Any) -> Section:
    """Return what the numbers do not show; without a word on verdicts where the policy gives none."""
    always = LIMITS if audit.policy.rules else (UNJUDGED, *LIMITS[1:])
    return Section("What this does not show", (Items((*always, *_base_rates(audit, rates))),))


def _base_rates(audit: Any, rates: Any) -> tuple[str, ...]:
    """Return which parities cannot hold together, for the comparisons whose base rates differ."""
    differing = []
    for f in audit.findings:
        if f.metric == "base_rate_difference" and f.pvalue_adjusted < 0.05:
            by_group, where = rates[show(f.attribute)], f"{label(f.attribute)}: " if len(audit.plan) > 1 else ""
            mine, theirs = by_group[repr(f.group)]["base_rate"], by_group[repr(f.reference)]["base_rate"]
            differing.append(
                f"{where}{number(mine.value)} in {label(f.group)} against {number(theirs.value)} in {label(f.reference)}"
            )
    if not differing:
        return ()
    return (
        f"Base rates differ: {some(differing, 3)} (adjusted p < .05). So equal precision, equal false positive and equal "
        "false negative rates cannot hold together unless predictions are perfect (Chouldechova 2017); nor can calibration "
        "and equal error rates (Kleinberg et al. 2016), nor demographic parity, equalized odds and calibration.",
    )


def _provenance(audit: Any) -> str:
    known, policy = audit.provenance, audit.policy
    file = known["data"].get("sha256")
    return ", ".join(
        [
            f"{known['package']['name']} {known['package']['version']}",
            f"Python {known['python']}",
            f"seed {audit.parameters['random_state']}",
            f"{policy.n_resamples} replicates",
            _METHODS[policy.method],
            f"tally sha256 {known['data']['tally_sha256'][:12]}",
            *([f"file sha256 {file[:12]}"] if file else []),
        ]
    )


def provenance_rows(audit: Any) -> tuple[tuple[str, str], ...]:
    """Return method and provenance in full: how it was computed, with what, of which data."""
    known, policy = audit.provenance, audit.policy
    file = known["data"].get("sha256")
    libraries = ", ".join(f"{name} {version}" for name, version in known.get("libraries", {}).items())
    rows = (
        ("Methods", methods_line(policy)),
        ("Source of the policy", policy.source),
        ("Seed", str(audit.parameters["random_state"])),
        ("Package", f"{known['package']['name']} {known['package']['version']}"),
        ("Python", known["python"]),
        ("System", known.get("system", "")),
        ("Libraries", libraries),
        ("SHA-256 of the tally", known["data"]["tally_sha256"]),
        ("SHA-256 of the file", file or ""),
    )
    return tuple((key, text) for key, text in rows if text)
