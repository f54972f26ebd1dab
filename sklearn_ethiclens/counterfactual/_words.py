"""What a counterfactual audit says: sections of sentences and tables, for a terminal and as an HTML fragment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from sklearn_ethiclens._findings import Section as FurtherSection
from sklearn_ethiclens._tally import label_from_json
from sklearn_ethiclens._validation import as_scalar, show
from sklearn_ethiclens.policy import FLIP_BANDS
from sklearn_ethiclens.report._html import fragment
from sklearn_ethiclens.report._text import lay_out
from sklearn_ethiclens.report._words import Facts, Items, Paragraph, Part, Section, Table, label, number, some
from sklearn_ethiclens.report._words import pvalue as pvalue_words

BANDS: Mapping[str, float] = FLIP_BANDS
"""Where each band of the flip rate begins."""

LIMITS = (
    "A flip rate of 0 is no clearance: the model may not read the attribute and still treat groups differently through "
    "features that stand in for it. Audit the groups too.",
    "What is changed is an entry of the data, not a person: nobody's life with another value is known from it.",
    "A maximum has no interval: it grows with the number of rows.",
    "Bands are a convention, no legal standard. Intervals are of these rows as a sample; the model is taken as it is.",
)
_BANDS_IN_WORDS = "Flip rate below 5% pass, 5 to 10% investigate, above 10% audit, by its whole interval"
_UNUSED = (
    "No answer changes: the model does not read this attribute, so that a flip rate of 0 follows. This says nothing of the "
    "features that stand in for it."
)
# Columns of the section -> fields of a pair; the last two lots only where there are scores, and columns of categories.
_PAIR = {
    "attribute": "attribute",
    "from": "source",
    "to": "target",
    "n": "n",
    "flip rate": "flip_rate",
    "low": "flip_low",
    "high": "flip_high",
    "band": "band",
    "to positive": "to_positive",
    "to negative": "to_negative",
    "p adjusted": "pvalue_adjusted",
}
_SCORES = {
    "mean score change": "mean_change",
    "change low": "mean_change_low",
    "change high": "mean_change_high",
    "mean absolute change": "mean_absolute_change",
    "maximum change": "max_change",
}
_SUPPORT = {"off support": "off_support"}
_MANY = 12  # pairs of a sensitive feature that are shown: those whose interval of the flip rate begins highest
_PROXIES = 6


def render(audit: Any, format: str = "text", **options: Any) -> str:
    """Return a counterfactual audit in words.

    Parameters
    ----------
    audit : CounterfactualAudit
        What is shown.
    format : {"text", "html"}, default="text"
        For a terminal, or an HTML fragment with every label escaped.
    **options
        "text" takes ``width`` and ``color``.
    """
    if format == "text":
        return lay_out(sections(audit), **options)
    if format != "html":
        raise ValueError(f"format must be one of ['text', 'html', 'json']; got {format!r}.")
    if options:
        raise TypeError(f"format 'html' takes no options; got {sorted(options)}.")
    return fragment(sections(audit))


def section(audit: Any) -> FurtherSection:
    """Return a counterfactual audit as a section of another audit: a row for each pair, and what it takes to read them."""
    pairs = audit.pairs
    scored = any(not isnan(pair.mean_change) for pair in pairs)
    supported = any(not isnan(pair.off_support) for pair in pairs)
    columns = _PAIR | (_SCORES if scored else {}) | (_SUPPORT if supported else {})
    names = list(dict.fromkeys(pair.attribute for pair in pairs))
    return FurtherSection(
        "counterfactuals",
        f"Counterfactuals by {some(map(label, names))}" if names else "Counterfactuals",
        _lines(audit, names),
        tuple(columns),
        tuple(tuple(_whole(pair, field) for field in columns.values()) for pair in pairs),
    )


def _lines(audit: Any, names: Sequence[str]) -> tuple[str, ...]:
    parameters, data = audit.parameters, audit.provenance["data"]
    positive = show(label_from_json(parameters["pos_label"]))
    lines = [
        f"What {label(data['model'])} decides of {data['n_rows']} rows when one entry is set to another value; {positive!r} is "
        "the positive decision.",
        f"Strategy {_how(parameters)}. {parameters['assumes']}",
        f"{_BANDS_IN_WORDS}. They are a convention, no legal standard.",
        *(f"{words[0].upper()}{words[1:]}." for words in (*_left_out(audit), *_stale(audit))),
    ]
    for name in names:
        lines += [
            f"{label(name)}: {text}" for text in (_UNUSED * (name in audit.unused), _proxies(audit, name)) if text
        ]
    return (*lines, LIMITS[0])


def _whole(pair: Any, field: str) -> Any:
    """Return a field of a pair; a whole number that is a label as an int, so that no format rounds it as a measurement."""
    value = as_scalar(getattr(pair, field))
    return int(value) if field in ("source", "target") and isinstance(value, float) and value.is_integer() else value


def sections(audit: Any) -> tuple[Section, ...]:
    """Return all that is said of a counterfactual audit."""
    names = list(dict.fromkeys(pair.attribute for pair in audit.pairs))
    return (
        _head(audit, names),
        *(_attribute(audit, name) for name in names),
        Section("What this does not show", (Items(LIMITS),)),
        Section("Provenance", (Paragraph(_provenance(audit)),)),
    )


def _head(audit: Any, names: Sequence[str]) -> Section:
    parameters, data = audit.parameters, audit.provenance["data"]
    source = f" of {label(data['name'])}" if data.get("name") else ""
    bands = [pair.band for pair in audit.pairs]
    counted = ", ".join(f"{bands.count(band)} {band}" for band in ("audit", "investigate", "inconclusive", "pass"))
    positive = show(label_from_json(parameters["pos_label"]))
    scores = {"predict_proba": "probability of that decision", "decision_function": "decision function", None: "none"}
    rows = [
        ("Strategy", _how(parameters)),
        ("", parameters["assumes"]),
        ("Rows", f"{data['n_rows']}, decided by {label(data['model'])}"),
        ("Decision", f"{label(positive)!r}; score: {scores[parameters['scores']]}"),
        ("Bands", f"{counted}. {_BANDS_IN_WORDS}"),
    ]
    rows += [("Note", label(note)) for note in data.get("notes", ())]
    rows += [("Left out", words) for words in _left_out(audit)]
    rows += [("Stale", words) for words in _stale(audit)]
    title = f"Counterfactuals{source} by {some(map(label, names)) or 'nothing'}"
    return Section(title, (Facts(tuple(rows)),))


def _how(parameters: Mapping[str, Any]) -> str:
    """Return the strategy in words, with the columns that move beside the attribute."""
    how = f"{parameters['strategy']}: {parameters['summary']}"
    if parameters["descendants"]:
        how += f". Descendants: {some(map(label, parameters['descendants']))}"
    if parameters["recompute"]:
        how += f". Computed anew: {some(map(label, parameters['recompute']))}"
    return how


def _left_out(audit: Any) -> list[str]:
    """Return which rows were not changed, and why."""
    found = []
    for words, counts in (("without a value", audit.missing), ("with a value not seen in fit", audit.unknown)):
        said = [f"{n} of {label(name)}" for name, n in counts.items() if n]
        found += [f"rows {words}, not changed: {', '.join(said)}"] if said else []
    return found


def _stale(audit: Any) -> list[str]:
    """Return which derived columns were left as they were."""
    return [
        f"derived from {label(name)} and not changed with it: {some(map(label, columns))}"
        for name, columns in audit.stale.items()
    ]


def _attribute(audit: Any, name: str) -> Section:
    pairs = [pair for pair in audit.pairs if pair.attribute == name]
    parts: list[Part] = []
    if name in audit.unused:
        parts.append(Paragraph(_UNUSED))
    shown = pairs
    if len(pairs) > _MANY:
        highest = sorted(pairs, key=lambda pair: -pair.flip_low)[:_MANY]
        shown = [pair for pair in pairs if pair in highest]
    scored = any(not isnan(pair.mean_change) for pair in pairs)
    supported = any(not isnan(pair.off_support) for pair in pairs)
    header = ["from\nto", "flips\ninterval", "to pos\nto neg"]
    header += ["mean change\ninterval", "|change|\nmaximum"] * scored + ["off\nsupport"] * supported
    blocks: dict[str, list[tuple[str, ...]]] = {}
    for pair in shown:
        heading = f"{label(pair.source)} (n={pair.n})"
        blocks.setdefault(heading, []).append(_row(pair, scored, supported))
    parts.append(Table((*header, "band\np adj"), tuple((heading, tuple(rows)) for heading, rows in blocks.items())))
    if len(shown) < len(pairs):
        parts.append(Paragraph(f"Of {len(pairs)} pairs, the {_MANY} whose interval of the flip rate begins highest."))
    parts += [Paragraph(text) for text in (_support(audit, name, pairs), _proxies(audit, name)) if text]
    return Section(f"By {label(name)}", tuple(parts))


def _row(pair: Any, scored: bool, supported: bool) -> tuple[str, ...]:
    cells = [
        label(pair.target),
        f"{number(pair.flip_rate)}\n{_short(pair.flip_low)}-{_short(pair.flip_high)}",
        f"{_short(pair.to_positive)}\n{_short(pair.to_negative)}",
    ]
    if scored:
        ends = f"{_short(pair.mean_change_low)},{_short(pair.mean_change_high)}"
        cells += [
            f"{number(pair.mean_change)}\n{'' if isnan(pair.mean_change_low) else ends}",
            f"{number(pair.mean_absolute_change)}\n{number(pair.max_change)}",
        ]
    if supported:
        cells.append("-" if isnan(pair.off_support) else f"{pair.off_support:.0%}")
    p = pvalue_words(pair.pvalue_adjusted)
    return (*cells, f"{pair.band}\n{p if p.startswith('<') else f'p {p}' if p else ''}")


def _short(value: float) -> str:
    """Return a share to three decimals without its leading zero."""
    if isnan(value):
        return "-"
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _support(audit: Any, name: str, pairs: Sequence[Any]) -> str:
    """Return how many changed rows are people the data never showed, and what becomes of the flip rate without them."""
    rows = sum(pair.n for pair in pairs)
    off = sum(pair.off_support * pair.n for pair in pairs if not isnan(pair.off_support))
    if not rows or not off:
        return ""
    flips_off = sum(_count(pair.flip_rate_off_support, pair.off_support * pair.n) for pair in pairs)
    flips_on = sum(_count(pair.flip_rate_on_support, (1 - pair.off_support) * pair.n) for pair in pairs)
    columns: dict[str, float] = {}
    for row in audit.support:
        if row["attribute"] == name:
            columns[row["column"]] = max(columns.get(row["column"], 0.0), row["share"])
    blamed = sorted(columns, key=lambda column: -columns[column])
    on = f"{flips_on / (rows - off):.3f}" if rows - off > 0.5 else "undefined"
    return (
        f"Off support: {off / rows:.1%} of the changed rows pair the new value with one of another column that it never (or "
        f"next to never) occurred with in fit, most by {some(map(label, blamed), 3)}. Flip rate {flips_off / off:.3f} there, "
        f"{on} elsewhere."
    )


def _count(rate: float, rows: float) -> float:
    return 0.0 if isnan(rate) else rate * rows


def _proxies(audit: Any, name: str) -> str:
    found = [row for row in audit.proxies if row["attribute"] == name][:_PROXIES]
    if not found:
        return ""
    said = ", ".join(f"{label(row['feature'])} {row['balanced_accuracy']:.2f}" for row in found)
    return f"Proxies: it can be predicted, with an out-of-fold balanced accuracy (chance {found[0]['chance']:.2f}), from {said}."


def _provenance(audit: Any) -> str:
    known, seed = audit.provenance, audit.parameters["random_state"]
    file = known["data"].get("sha256")
    return ", ".join(
        [
            f"{known['package']['name']} {known['package']['version']}",
            f"Python {known['python']}",
            f"scikit-learn {known['libraries']['sklearn']}",
            *([] if seed is None else [f"seed {seed}"]),
            f"score threshold {audit.parameters['threshold']:g}",
            f"decisions from {audit.parameters['decisions']}",
            f"tally sha256 {known['data']['tally_sha256'][:12]}",
            *([f"file sha256 {file[:12]}"] if file else []),
        ]
    )
