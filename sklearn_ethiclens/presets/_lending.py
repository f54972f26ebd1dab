"""Facts for lending: comparisons of approval for a fair-lending review, and what model-risk documentation asks of an audit."""

from __future__ import annotations

from typing import Any

from sklearn_ethiclens._findings import Section
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.metrics._rates import confusion_of
from sklearn_ethiclens.policy import Policy
from sklearn_ethiclens.presets._rules import UNKNOWN
from sklearn_ethiclens.presets._tables import favorable_event, findings_by, labels_of, triple, with_interval

_CALIBRATION = {"ece": "expected_calibration_error", "in_the_large": "calibration_in_the_large"}


def lending_facts(audit: Any) -> tuple[Section, ...]:
    """Return comparisons of approval, calibration where there are scores, and documentation of the model and the audit."""
    return (*_approval(audit), *_calibration(audit), _model_risk(audit))


# --------------------------------------------------------------------------------------------------------- fair lending
def _approval(audit: Any) -> tuple[Section, ...]:
    found, rows, level = findings_by(audit.findings), [], audit.policy.confidence_level
    of_worthy = "true_positive_rate" if audit.outcome == "favorable" else "true_negative_rate"
    for reference in audit.references:
        tally = audit.marginals()[reference.attribute]
        confusion, attribute = confusion_of(tally, audit.outcome), show(reference.attribute)
        approved = with_interval(confusion, "favorable_rate", level)
        worthy = with_interval(confusion, of_worthy, level) if tally.labelled else None
        for i, label in enumerate(labels_of(tally)):
            itself = repr(label) == repr(reference.group)
            pairs = [
                value
                for metric in ("disparate_impact", "statistical_parity_difference", f"{of_worthy}_difference")
                for value in ((None,) * 3 if itself else triple(found.get((attribute, repr(label), metric))))
            ]
            rows.append(
                (
                    attribute,
                    label,
                    "reference" if itself else "",
                    int(confusion.rows("total")[i]),
                    *(float(column[i]) for column in approved),
                    *pairs[:6],
                    *((None,) * 3 if worthy is None else (float(column[i]) for column in worthy)),
                    *((None,) * 3 if worthy is None else pairs[6:]),
                )
            )
    who = ", ".join(f"{show(r.attribute)}: {show(r.group)}{'' if r.given else ' (chosen)'}" for r in audit.references)
    lines = (
        f"Approval: {favorable_event(audit)}. Reference: {who}.",
        f"air: adverse impact ratio, the approval rate over the reference's; gap: marginal difference of approval, group minus "
        f"reference. Intervals are {100 * level:g}%, of rates Wilson's.",
        "creditworthy: approval among those whose label is the good outcome; creditworthy_gap: group minus reference. Only "
        "people whose outcome is known can be counted so."
        if audit.tally.labelled
        else f"The data have no labels: approval of the creditworthy is {UNKNOWN}.",
        f"Reasons for a difference, business need, less discriminatory alternatives, use of proxies: {UNKNOWN}.",
    )
    names = ("approval_rate", "air", "gap", "creditworthy", "creditworthy_gap")
    columns = ("attribute", "group", "note", "n", *(f"{name}{end}" for name in names for end in ("", "_low", "_high")))
    return (Section("lending approval", "Fair lending: approval", lines, columns, tuple(rows)),)


def _calibration(audit: Any) -> tuple[Section, ...]:
    """Return the calibration of scores by group, as the findings have it; nothing without such findings."""
    found, rows = findings_by(audit.findings), []
    wanted = [name for name in _CALIBRATION if any(f.metric == _CALIBRATION[name] for f in audit.findings)]
    if not wanted or not audit.tally.labelled:
        return ()
    for attribute, tally in audit.marginals().items():
        base = confusion_of(tally).rate("base_rate")
        for i, label in enumerate(labels_of(tally)):
            of_label = [found.get((show(attribute), repr(label), _CALIBRATION[name])) for name in wanted]
            n = next((f.n for f in of_label if f is not None), None)
            rows.append((show(attribute), label, n, float(base[i]), *(v for f in of_label for v in triple(f))))
    lines = ("ece: expected calibration error; in_the_large: mean score minus base rate. The part on scores has more.",)
    columns = ("attribute", "group", "n", "base_rate", *(f"{c}{end}" for c in wanted for end in ("", "_low", "_high")))
    return (Section("lending calibration", "Fair lending: calibration of scores", lines, columns, tuple(rows)),)


# ----------------------------------------------------------------------------------------------------------- model risk
def _model_risk(audit: Any) -> Section:
    known, parameters, policy = audit.provenance, audit.parameters, audit.policy
    data = known["data"]
    scored = "with scores" if audit.tally.scores is not None else "without scores"
    labelled = "with labels" if audit.tally.labelled else "without labels"
    rows = (
        ("model", str(data["model"]) if data.get("model") else UNKNOWN),
        ("data", f"{data.get('name') or 'unnamed'}, {data['n_rows']} rows, {labelled}, {scored}"),
        ("data, tally sha256", data["tally_sha256"]),
        ("data, file sha256", data.get("sha256") or UNKNOWN),
        *(("data, note", str(note)) for note in data.get("notes", ())),
        ("groups", "; ".join(f"{show(a)}: {len(tally.groups)}" for a, tally in audit.marginals().items())),
        ("favourable decision", favorable_event(audit)),
        ("method", _method(policy)),
        ("judged", "; ".join(rule.describe() for rule in policy.rules) or "nothing"),
        ("floors", ", ".join(f"{n} {name}" for name, n in policy.floors.items()) or "none"),
        ("limits", "sampling error only; groups and outcomes as labelled; more at the end of this report"),
        (
            "version",
            f"{known['package']['name']} {known['package']['version']}, Python {known['python']}, {known['system']}",
        ),
        ("libraries", ", ".join(f"{name} {version}" for name, version in known["libraries"].items())),
        ("seed", str(parameters["random_state"])),
        ("reproducibility", "same data, parameters, seed and versions: the same report, byte for byte"),
        ("conceptual soundness, development, use", UNKNOWN),
        ("ongoing monitoring, governance, independence of the reviewer", UNKNOWN),
    )
    lines = (
        "What this audit adds to the documentation of a model: data, method, limits, version and how to repeat it.",
    )
    return Section("lending model risk", "Model risk: documentation", lines, ("item", "fact"), rows)


def _method(policy: Policy) -> str:
    return (
        f"policy {policy.name}, {100 * policy.confidence_level:g}% intervals ({policy.method}, {policy.n_resamples} bootstrap "
        f"replicates), p-values adjusted ({policy.multiplicity})"
    )
