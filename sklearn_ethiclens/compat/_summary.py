"""What GlassAlpha's JSON says, as parts of a report: what was assessed, errors and warnings apart, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn_ethiclens._findings import Section

_SHOWN = 8  # lines of a kind; the JSON has all
NOTHING = "Nothing is asked for under these thresholds; what is not flagged is not cleared by that."
_HEADS = {"errors": "Errors", "warnings": "Warnings", "cautions": "Cautions", "actions": "To do"}


def summary_sections(document: Mapping[str, Any]) -> tuple[Section, ...]:
    """Return a document of :func:`to_glassalpha` as sections of an audit.

    Parameters
    ----------
    document : dict
        What :func:`to_glassalpha` returned.

    Returns
    -------
    tuple of Section
        "glassalpha": what was assessed, errors, warnings and cautions, what to do, and a table of the disparities; with matched
        pairs also "individual", a table of them. For :meth:`sklearn_ethiclens.Audit.with_section`.

    Examples
    --------
    >>> from sklearn_ethiclens import Tally, audit_tally
    >>> tally = Tally.from_counts({"f": {"n": 500, "selected": 150}, "m": {"n": 500, "selected": 250}}, attribute="sex")
    >>> made = audit_tally(tally, policy="glassalpha", n_resamples=100)
    >>> from sklearn_ethiclens.compat import to_glassalpha
    >>> summary_sections(to_glassalpha(made))[0].lines[:2]
    ('Assessed:', '- sex: 2 groups (f n=500, m n=500)')
    """
    summary = document["fairness_summary"]
    lines = ["Assessed:", *_items(summary["assessed"])]
    people = document["individual_fairness"]
    if "features" in people:
        lines.append(f"People are alike by {', '.join(people['features'])}; compared are {people['scores']}.")
    for key, head in _HEADS.items():
        found = summary[key]
        none = NOTHING if key == "actions" else "none."
        lines += [f"{head} ({len(found)}):", *_items(found)] if found else [f"{head}: {none}"]
    columns = ("attribute", "metric", "highest", "lowest", "disparity", "low", "high", "status")
    rows = []
    for attribute, section in document["fairness_analysis"].items():
        for metric, found in section["metrics"].items():
            if metric != "recall":  # which is tpr by another name
                ends = [(found["ci"] or {}).get(end) for end in ("ci_lower", "ci_upper")]
                rows.append(
                    (attribute, metric, found["highest"], found["lowest"], found["disparity"], *ends, found["status"])
                )
    sections = [
        Section("glassalpha", f"In the words of GlassAlpha: {summary['status']}", tuple(lines), columns, tuple(rows))
    ]
    pairs = document["individual_fairness"]["matched_pairs"]
    if pairs:
        sections.append(_pairs(pairs, document["individual_fairness"]["n_matched_pairs"]))
    return tuple(sections)


def _pairs(pairs: list[dict[str, Any]], n_found: int) -> Section:
    shown = pairs[:_SHOWN]
    said = f"{n_found} pairs of people who are alike and scored differently; the {len(shown)} most serious."
    columns = ("differs in", "one", "other", "distance", "difference of scores", "high risk")
    keys = ("protected_attr_differs", "individual_a", "individual_b", "distance", "prediction_diff", "high_risk")
    return Section(
        "individual", "Matched pairs", (said,), columns, tuple(tuple(pair[key] for key in keys) for pair in shown)
    )


def _items(lines: list[str]) -> list[str]:
    more = [f"- and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [*(f"- {line}" for line in lines[:_SHOWN]), *more]
