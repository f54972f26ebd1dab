"""Facts for the European Union's Artificial Intelligence Act: articles 10, 13 and 15, and what of Annex IV an audit can state."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_ethiclens._findings import Section
from sklearn_ethiclens._score_tally import ScoreBins, ScoreTally
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.inference._scores import LEAST_CLASS, auc_interval, auc_variance, bounded_mean_interval
from sklearn_ethiclens.metrics._rates import RATES, Confusion, Floats, confusion_of
from sklearn_ethiclens.metrics._scores import SCORE_METRICS, scored_groups
from sklearn_ethiclens.policy import Verdict
from sklearn_ethiclens.presets._rules import UNKNOWN
from sklearn_ethiclens.presets._tables import known_groups, labels_of, whole, with_interval

_BY_GROUP = ("accuracy", "true_positive_rate", "false_positive_rate", "precision", "selection_rate")
_OVERALL = (
    *("accuracy", "true_positive_rate", "true_negative_rate", "false_positive_rate", "false_negative_rate"),
    *("precision", "negative_predictive_value", "selection_rate"),
)


def eu_ai_act_facts(audit: Any) -> tuple[Section, ...]:
    """Return facts for articles 10, 13 and 15 and for Annex IV."""
    return _data(audit), _by_group(audit), _overall(audit), _annex_iv(audit)


# ---------------------------------------------------------------------------------------------------------- article 10
def _data(audit: Any) -> Section:
    rows, missing, differing = [], [], []
    for attribute, tally in audit.marginals().items():
        confusion = confusion_of(tally)
        n, total = confusion.rows("total"), confusion.count("total")
        positives = confusion.rows("positives") if tally.labelled else None
        base = confusion.rate("base_rate") if tally.labelled else None
        for i, label in enumerate(labels_of(tally)):
            labelled = (None, None) if positives is None or base is None else (int(positives[i]), float(base[i]))
            rows.append((show(attribute), label, int(n[i]), float(total[i] / total.sum()), *labelled))
        missing.append(f"{int(n[~known_groups(tally)].sum())} of {show(attribute)}")
        names = attribute if isinstance(attribute, tuple) else (attribute,)
        tests = [
            test
            for test in audit.tests
            if test["rate"] == "base_rate" and _names(test["attribute"]) == names and test["pvalue"] < 0.05
        ]
        differing += [show(attribute)] * bool(tests)
    comparisons = {
        (show(f.attribute), repr(f.group), repr(f.reference)) for f in audit.findings if f.reference is not None
    }
    metrics = {f.metric for f in audit.findings}
    lines = (
        f"Article 10(2)(f), possible biases: examined by {', '.join(show(a) for a in audit.marginals())}, with {len(metrics)} "
        f"metrics of groups and of {len(comparisons)} pairs; the parts by attribute have them.",
        f"Base rates differ between groups (chi-square, p < .05) by: {', '.join(differing) or 'none'}."
        if audit.tally.labelled
        else "The data have no labels: base rates and errors cannot be examined.",
        f"Article 10(3), representativeness: n and share count these rows. The shares among the persons that the system is meant "
        f"for: {UNKNOWN}.",
        f"Article 10(3), completeness: rows without a group: {', '.join(missing)}. Errors in the data: {UNKNOWN}.",
        f"Article 10(2)(a) to (e), (g) and (h), design choices, collection and origin, preparation, assumptions, availability, "
        f"measures against bias, gaps; article 10(4), setting of use: {UNKNOWN}.",
    )
    columns = ("attribute", "group", "n", "share", "positives", "base_rate")
    return Section("eu-ai-act article 10", "Article 10: data", lines, columns, tuple(rows))


def _names(attribute: Any) -> tuple[str, ...]:
    return (attribute,) if isinstance(attribute, str) else tuple(attribute)


# ----------------------------------------------------------------------------------------------------- articles 13, 15
def _rates(tally: Tally, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if tally.labelled or not RATES[name].uses_labels]


def _by_group(audit: Any) -> Section:
    names, level, rows = _rates(audit.tally, _BY_GROUP), audit.policy.confidence_level, []
    for attribute, tally in audit.marginals().items():
        confusion = confusion_of(tally)
        found = [with_interval(confusion, name, level) for name in names]
        for i, (label, n) in enumerate(zip(labels_of(tally), confusion.rows("total"), strict=True)):
            ends = (float(column[i]) for columns in found for column in columns)
            rows.append((show(attribute), label, int(n), *ends))
    lines = (
        f"Article 13(3)(b)(v), performance regarding groups of persons: rates with {100 * level:g}% intervals (Wilson).",
        *_without_labels(audit.tally),
        "Limitations: the intervals hold the chance of sampling only; what they do not show stands at the end of this report.",
        "Article 13(3)(b)(ii), level of accuracy: article 15 below.",
        f"Article 13(3)(b)(i), (iii), (iv), (vi), (vii) and (c) to (f), intended purpose, foreseeable misuse, explanation, input "
        f"data, interpretation, changes, oversight, resources, logs: {UNKNOWN}.",
    )
    columns = ("attribute", "group", "n", *(f"{name}{end}" for name in names for end in ("", "_low", "_high")))
    return Section("eu-ai-act article 13", "Article 13: performance by group", lines, columns, tuple(rows))


def _overall(audit: Any) -> Section:
    tally, level = whole(audit.tally), audit.policy.confidence_level
    confusion = confusion_of(tally)
    rows = [_overall_row(confusion, name, level) for name in _rates(tally, _OVERALL)]
    rows += _scores_row(tally, level)
    stored = isinstance(tally.scores, ScoreBins)
    lines = (
        f"Article 15(1) and (3), levels of accuracy and the metrics they are in: over all rows, with {100 * level:g}% intervals.",
        *_without_labels(tally),
        *((f"Single scores are not stored: their metrics over all rows are {UNKNOWN}.",) if stored else ()),
        f"Whether a level is appropriate to the purpose, robustness and cybersecurity (article 15(1), (4) and (5)): {UNKNOWN}.",
    )
    columns = ("metric", "denominator", "value", "low", "high")
    return Section("eu-ai-act article 15", "Article 15: accuracy", lines, columns, tuple(rows))


def _overall_row(confusion: Confusion, name: str, level: float) -> tuple[Any, ...]:
    value, low, high = (float(column[0]) for column in with_interval(confusion, name, level))
    return name, int(confusion.rows(RATES[name].denominator)[0]), value, low, high


def _scores_row(tally: Tally, level: float) -> list[tuple[Any, ...]]:
    """Return the metrics of scores over all rows, where there are scores and labels."""
    if not isinstance(tally.scores, ScoreTally) or not tally.labelled:
        return []
    (group,) = scored_groups(tally)
    auc, brier = (SCORE_METRICS[name].value(group) for name in ("roc_auc", "brier_score"))
    of_auc: tuple[Any, Any] = (np.nan, np.nan)
    sizes = group.scores.effective
    if min(sizes) >= LEAST_CLASS:
        variance = auc_variance(*group.scores.placements, *group.scores.weights)
        dof = min(sizes) - 1 if group.scores.weights else np.inf
        of_auc = auc_interval(auc, variance, *sizes, confidence_level=level, dof=dof)[0]
    of_brier: tuple[Floats | float, Floats | float] = (np.nan, np.nan)
    if not np.isnan(brier):
        of_brier = bounded_mean_interval(brier, group.brier_variance, group.effective_rows, confidence_level=level)
    return [
        ("roc_auc", group.n, auc, *map(float, of_auc)),
        ("brier_score", group.n, brier, *map(float, of_brier)),
    ]


def _without_labels(tally: Tally) -> tuple[str, ...]:
    return () if tally.labelled else (f"The data have no labels: accuracy and error rates are {UNKNOWN}.",)


# ------------------------------------------------------------------------------------------------------------- Annex IV
def _annex_iv(audit: Any) -> Section:
    known = audit.provenance["data"]
    accuracy = float(confusion_of(whole(audit.tally)).rate("accuracy")[0]) if audit.tally.labelled else None
    verdicts = [f.verdict for f in audit.judged]
    counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts)
    level = (
        "the data have no labels" if accuracy is None else f"accuracy {accuracy:.3f} over all rows; article 15 above"
    )
    groups = "selection rates only; article 13 above" if accuracy is None else "article 13 above"
    rows = (
        ("2(g) data used for testing", f"{known.get('name') or 'unnamed'}, {known['n_rows']} rows; article 10 above"),
        ("2(g) identity of the data", f"tally sha256 {known['tally_sha256']}"),
        ("2(g) metrics of accuracy", level),
        (
            "2(g) potentially discriminatory impacts",
            f"by the policy {audit.policy.name}: {counted or 'nothing is judged'}",
        ),
        ("2(g) metrics of robustness", UNKNOWN),
        ("2(g) test logs and reports, dated and signed", f"this report; date and signature {UNKNOWN}"),
        ("3 accuracy for groups of persons", groups),
        ("3 overall expected level of accuracy", level),
        ("3 foreseeable unintended outcomes and risks", UNKNOWN),
        ("3 human oversight (article 14)", UNKNOWN),
        ("3 specifications on input data", UNKNOWN),
        ("1 general description", f"model: {known['model']}" if known.get("model") else UNKNOWN),
        ("2(a) to (f) and (h) development", UNKNOWN),
        ("4 to 9 suitability, risk management, changes, standards, declaration, monitoring", UNKNOWN),
    )
    lines = (
        f"What of the technical documentation this audit is evidence for, by point of Annex IV; the rest is {UNKNOWN}.",
    )
    return Section("eu-ai-act annex iv", "Annex IV: technical documentation", lines, ("point", "fact"), rows)
