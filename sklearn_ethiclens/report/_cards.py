"""Model card and datasheet: what an audit knows under the headings of these documents; the rest is left to be filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sklearn_ethiclens._validation import MISSING, show
from sklearn_ethiclens.report._markdown import body, escape
from sklearn_ethiclens.report._words import (
    Facts,
    Items,
    Paragraph,
    Section,
    Table,
    chapters,
    label,
    number,
    some,
    title,
)

TO_FILL_IN = "*Not known from an audit: to be filled in.*"


# ----------------------------------------------------------------------------------------------------------- model card
def model_card(audit: Any) -> str:
    """Return a model card (Mitchell et al. 2019) as Markdown.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.

    Returns
    -------
    str
    """
    return _document("Model card", model_card_sections(audit))


def model_card_sections(audit: Any) -> dict[str, str]:
    """Return the sections of a model card by their heading, as Markdown, in the order of Mitchell et al. (2019).

    A section that an audit knows nothing of says so.
    """
    found = chapters(audit)
    facts = _facts_of(found)
    data, attributes = audit.provenance["data"], [label(show(names)) for names in audit.plan]
    return {
        "Model Details": _facts(facts, "Model") if data.get("model") else TO_FILL_IN,
        "Intended Use": TO_FILL_IN,
        "Factors": _join(
            body(
                [Paragraph(f"Groups are compared by {some(attributes)}. Groups that these do not name are not seen.")]
            ),
            *_nested(found["size"]),
        ),
        "Metrics": _facts(facts, "Decision", "Policy", "Caution", "Judged", "Floors", "Intervals"),
        "Evaluation Data": _facts(facts, "Data", "Note"),
        "Training Data": TO_FILL_IN,
        "Quantitative Analyses": _join(
            body([Paragraph(title(audit))]),
            *_nested((*found["attributes"], *found["summary"], *found["power"], *found["further"])),
        ),
        "Ethical Considerations": _join(*(body(section.parts) for section in found["limits"])),
        "Caveats and Recommendations": _join(body([Items(_recommendations(audit))]), *_nested(found["provenance"])),
    }


def add_to_card(audit: Any, card: Any) -> Any:
    """Add what an audit knows to a model card of skops, and return the card.

    Sections that the audit knows nothing of are left as they are.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.
    card : skops.card.Card
        Changed in place.

    Returns
    -------
    skops.card.Card
    """
    if not callable(getattr(card, "add", None)):
        raise TypeError(f"card must be a skops.card.Card; got {type(card).__name__}.")
    known = {heading: text for heading, text in model_card_sections(audit).items() if text != TO_FILL_IN}
    card.add(**known)
    return card


def _recommendations(audit: Any) -> tuple[str, ...]:
    """Return what is to be done about each verdict that is not "cleared", worst first."""
    lines = []
    if audit.flagged:
        lines.append(
            f"{len(audit.flagged)} of {len(audit.judged)} judged comparisons are flagged: find out why before use, and "
            f"audit again."
        )
    if audit.conditions:
        lines.append(
            f"{len(audit.conditions)} of {len(audit.judged)} could not be decided: collect more rows of these groups, or "
            f"use the model on the condition that they are watched."
        )
    if not audit.policy.rules:
        lines.append("Nothing was judged: the policy sets no limit.")
    return (*lines, "Audit again on new data, and when the model, its use or the people it decides about change.")


# ------------------------------------------------------------------------------------------------------------ datasheet
def datasheet(audit: Any) -> str:
    """Return a datasheet (Gebru et al. 2021) of the audited rows as Markdown.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.

    Returns
    -------
    str
        What the audit knows of its data: composition by group and label, missing groups, weights, hashes.
    """
    found = chapters(audit)
    tally, facts, data = audit.tally, _facts_of(found), audit.provenance["data"]
    what = "a label and a decision" if tally.labelled else "a decision and no true label"
    values, positive = some(map(_quoted, tally.labels)), _quoted(tally.pos_label)
    described = f"Each row has {what}; values are {values}, and {positive} is the positive one."
    hashes = {"SHA-256 of the counts": data["tally_sha256"], "SHA-256 of the file": data.get("sha256")}
    used = label(data["model"]) if data.get("model") else "a model"
    sections = {
        "Motivation": TO_FILL_IN,
        "Composition": _join(
            _facts(facts, "Data"), body([Paragraph(described), *_composition(audit), Items(_missing(audit))])
        ),
        "Collection Process": _facts(facts, "Note") or TO_FILL_IN,
        "Preprocessing, Cleaning, Labeling": TO_FILL_IN,
        "Uses": _join(
            body([Paragraph(f"These rows were used to audit {used}.")]),
            *(body(section.parts) for section in found["limits"]),
        ),
        "Distribution": body([Facts(tuple((what, text) for what, text in hashes.items() if text))]),
        "Maintenance": TO_FILL_IN,
    }
    return _document("Datasheet", sections)


def _composition(audit: Any) -> Iterable[Table]:
    """Yield for each attribute the rows, labels and decisions of its groups."""
    rates = audit.rates()
    for attribute, of_attribute in rates.groupby("attribute", sort=False):
        wide = of_attribute.set_index("rate")
        shown = [name for name in ("base_rate", "selection_rate") if name in wide.index]
        rows = []
        for i, row in enumerate(wide.loc[["selection_rate"]].itertuples(index=False)):
            values = [wide.loc[[name]].iloc[i] for name in shown]
            rows.append((label(row.group), str(row.n), *(number(float(v["value"])) for v in values)))
        yield Table((label(attribute), "rows", *(name.replace("_", " ") for name in shown)), (("", tuple(rows)),))


def _missing(audit: Any) -> tuple[str, ...]:
    lines = []
    for i, name in enumerate(audit.tally.attributes):
        pairs = zip(audit.tally.groups, audit.tally.rows, strict=True)
        n = sum(int(rows.sum()) for group, rows in pairs if group[i] is MISSING)
        lines.append(f"{label(name)}: {n} of {audit.tally.n_rows} rows have no value.")
    return tuple(lines)


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else label(value)


# ------------------------------------------------------------------------------------------------------------- assembly
def _document(heading: str, sections: Mapping[str, str]) -> str:
    return f"# {heading}\n\n" + "\n\n".join(f"## {name}\n\n{text}" for name, text in sections.items()) + "\n"


def _facts_of(found: Mapping[str, tuple[Section, ...]]) -> dict[str, str]:
    """Return the facts at the head of a report by name; those given more than once as one."""
    said: dict[str, list[str]] = {}
    for part in found["head"][0].parts:
        for key, text in part.rows if isinstance(part, Facts) else ():
            said.setdefault(key, []).append(text)
    return {key: " ".join(texts) for key, texts in said.items()}


def _facts(facts: Mapping[str, str], *keys: str) -> str:
    return body([Facts(tuple((key, facts[key]) for key in keys if key in facts))] if set(keys) & set(facts) else [])


def _nested(sections: Iterable[Section]) -> Iterable[str]:
    """Yield sections as parts of another, each under its title."""
    return (f"### {escape(section.title)}\n\n{body(section.parts)}" for section in sections)


def _join(*pieces: str) -> str:
    return "\n\n".join(filter(None, pieces))
