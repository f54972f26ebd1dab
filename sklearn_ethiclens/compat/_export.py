"""An audit in the JSON of GlassAlpha: its keys, its words for verdicts, and null with a reason for what is undefined."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sklearn_ethiclens._audit import Audit, audit_tally
from sklearn_ethiclens._findings import Finding
from sklearn_ethiclens._tally import Tally, label_to_json
from sklearn_ethiclens._validation import MISSING, as_scalar, listing, show
from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.metrics._comparisons import above, largest_gap, smallest_ratio
from sklearn_ethiclens.metrics._definitions import METRICS, why_undefined
from sklearn_ethiclens.metrics._rates import confusion_of, divide
from sklearn_ethiclens.policy import POLICIES, Verdict
from sklearn_ethiclens.report._words import label, number

SCHEMA = "sklearn-ethiclens/glassalpha/1"
RATE_OF = {
    "tpr": "true_positive_rate",
    "fpr": "false_positive_rate",
    "precision": "precision",
    "recall": "true_positive_rate",
    "selection_rate": "selection_rate",
}
SEVERITIES = ((10, "ERROR"), (30, "WARNING"), (100, "LIMITED"))  # below so many rows
WORDS = ("WARNING", "ERROR", "CAUTION", "PASS")  # the first that occurs is said of several comparisons
_OWN_KEYS = ("disparity", "ci", "threshold", "status", "reason", "highest", "lowest")
_NOT_GIVEN = "not asked for"
_MAX_PAIRS = 1000  # in the JSON; their number is said


def glassalpha_status(finding: Finding) -> str | None:
    """Return the word of GlassAlpha for a finding.

    Parameters
    ----------
    finding : Finding
        Of an audit under the policy "glassalpha", or one like it.

    Returns
    -------
    {"PASS", "WARNING", "CAUTION", "ERROR"} or None
        None for what is not judged. ERROR: a side of the comparison has fewer than 10 rows, and nothing can be said. WARNING:
        flagged. PASS: cleared, or the difference lies within the threshold and its interval holds 0. CAUTION: anything else,
        which asks for more data: not passed, and not flagged.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sklearn_ethiclens import audit
    >>> found = audit(None, [1, 1, 0] * 100, sensitive_features=["a", "b", "a"] * 100, policy="glassalpha", n_resamples=100)
    >>> pair = next(f for f in found.judged if f.metric == "selection_rate_difference")
    >>> glassalpha_status(pair), glassalpha_status(replace(pair, n=9))
    ('WARNING', 'ERROR')
    """
    if finding.verdict is None or finding.threshold is None:
        return None
    if min(finding.n, finding.n if finding.n_reference is None else finding.n_reference) < SEVERITIES[0][0]:
        return "ERROR"
    if finding.verdict is Verdict.FLAGGED:
        return "WARNING"
    if finding.verdict is Verdict.CLEARED:
        return "PASS"
    inside = METRICS[finding.metric].scale == "difference" and not above(abs(finding.value), finding.threshold)
    if finding.verdict is Verdict.INCONCLUSIVE and inside and finding.low <= 0 <= finding.high:
        return "PASS"
    return "CAUTION"


def severity(n: int) -> str | None:
    """Return the word for a group of so many rows: "ERROR" below 10, "WARNING" below 30, "LIMITED" below 100, else None.

    Examples
    --------
    >>> [severity(n) for n in (9, 10, 30, 100)]
    ['ERROR', 'WARNING', 'LIMITED', None]
    """
    return next((word for limit, word in SEVERITIES if n < limit), None)


def to_glassalpha(
    audit: Audit,
    *,
    consistency: Any = None,
    matched_pairs: pd.DataFrame | None = None,
    counterfactual: Any = None,
    intervals: bool = True,
    reasons: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return an audit in the layout of GlassAlpha's JSON.

    Every number is one of an audit under the policy "glassalpha", which compares each group with the one where the metric is
    highest. An audit under another policy, with a reference of its own or without some of the metrics is made again from its
    tally, at its confidence level and with its replicates and seed.

    Parameters
    ----------
    audit : Audit
        Of labels, decisions and groups.
    consistency : ConsistencyResult, optional
        Of :func:`sklearn_ethiclens.individual.consistency_score`.
    matched_pairs : DataFrame, optional
        Of :func:`sklearn_ethiclens.individual.matched_pairs`.
    counterfactual : CounterfactualAudit, optional
        Of :meth:`sklearn_ethiclens.CounterfactualProbe.audit`.
    intervals : bool, default=True
        Whether to write the intervals of disparities.
    reasons : mapping of str to str, optional
        Why "consistency_score", "matched_pairs" or "counterfactual_flip" is not there.

    Returns
    -------
    dict
        Of plain JSON types without NaN, with the sections

        ``fairness_analysis``
            By attribute: ``metrics`` (``tpr, fpr, precision, recall, selection_rate``: a value for each group; ``disparity``,
            the largest minus the smallest; ``ci``, the interval of the signed difference of these two groups, or null with
            ``reason``; ``status``, ``threshold``, ``highest``, ``lowest``), ``sample_size_warnings``, ``statistical_power``.
        ``intersectional_fairness``
            By ``"a*b"``: ``groups`` with Wilson intervals of their rates, ``disparity`` with ``<metric>_max_diff`` and
            ``<metric>_max_ratio``, ``sample_size_warnings``.
        ``individual_fairness``
            ``consistency_score, matched_pairs, counterfactual_flip``, each null with its reason in ``reasons`` where there is
            none.
        ``fairness_summary``
            What was ``assessed``; ``errors``, ``warnings`` and ``cautions``; ``actions``; ``status``.
        ``provenance``
            Policy, thresholds, seed, data and versions.

    Notes
    -----
    The interval of a largest gap itself is invalid near parity (it never holds 0), so there is none. That of the pair is
    honest for two groups; with more, the two extremes were picked from the data, and it is too narrow by that.

    A group is written as it is read; one that is called as a key here is written ``attribute=group``. Groups of intersections
    are joined by "_", or by " & " where that would give two of them one name.

    ``statistical_power`` is that of the comparison of selection rates with the group where it is highest, for a gap of 10
    points; of that group itself, the largest of its comparisons.

    Examples
    --------
    >>> from sklearn_ethiclens import audit_tally, Tally
    >>> tally = Tally.from_counts({"f": {"n": 500, "selected": 150}, "m": {"n": 500, "selected": 250}}, attribute="sex")
    >>> found = to_glassalpha(audit_tally(tally, policy="glassalpha"))["fairness_analysis"]["sex"]["metrics"]["selection_rate"]
    >>> found["f"], found["m"], found["disparity"], found["status"]
    (0.3, 0.5, 0.2, 'WARNING')
    """
    if not isinstance(audit, Audit):
        raise TypeError(f"audit must be an Audit, as audit(...) returns it; got {type(audit).__name__}.")
    _check_individual(consistency, matched_pairs, counterfactual, reasons)
    own = _comparable(audit)
    single = [names for names in own.plan if len(names) == 1]
    crossed = [names for names in own.plan if len(names) > 1]
    sections = {names: _Block(own, names) for names in own.plan}
    keys = ["*".join(names) for names in crossed]
    if len(set(keys)) < len(keys):
        raise ValueError(
            f"the intersections {listing(crossed)} have one name in GlassAlpha's JSON; rename an attribute."
        )
    individual = _individual(consistency, matched_pairs, counterfactual, reasons or {})
    return {
        "fairness_analysis": {names[0]: sections[names].analysis(intervals) for names in single},
        "intersectional_fairness": {
            key: sections[names].intersection() for key, names in zip(keys, crossed, strict=True)
        },
        "individual_fairness": individual,
        "fairness_summary": _summary(own, list(sections.values()), individual),
        "provenance": _provenance(own),
    }


def _comparable(audit: Audit) -> Audit:
    """Return the audit itself if it compares all rates with the group where they are highest, else made again so that it does."""
    needed = [f"{rate}_difference" for rate in dict.fromkeys(RATE_OF.values())]
    policy = audit.policy
    known = {finding.metric for finding in audit.findings}
    by_highest = policy.reference == "highest_value" and not any(r.given for r in audit.references)
    if by_highest and set(needed) <= known:
        return audit
    if policy.reference != "highest_value":
        policy = POLICIES["glassalpha"].replace(
            confidence_level=policy.confidence_level, n_resamples=policy.n_resamples
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the audit given has warned of the same rows
        made = audit_tally(
            audit.tally,
            outcome=audit.outcome,
            intersections=[names for names in audit.plan if len(names) > 1] or None,
            policy=policy,
            metrics=needed,
            random_state=audit.parameters["random_state"],
        )
    return made.annotate(**{k: v for k, v in audit.provenance["data"].items() if k not in made.provenance["data"]})


class _Pair(NamedTuple):
    """The groups with the highest and the lowest rate, their difference and its interval; positions are None without a value."""

    highest: int | None
    lowest: int | None
    disparity: float
    low: float
    high: float
    method: str | None
    reason: str


class _Block:
    """One attribute or intersection of an audit, read under the keys of GlassAlpha."""

    def __init__(self, audit: Audit, attributes: tuple[str, ...]) -> None:
        self.audit, self.attributes = audit, attributes
        self.key: Any = attributes[0] if len(attributes) == 1 else attributes
        self.tally: Tally = audit.tally.marginal(attributes)
        self.confusion = confusion_of(self.tally, audit.outcome)
        self.labels = [group[0] if len(group) == 1 else group for group in self.tally.groups]
        self.sizes = [int(n) for n in self.confusion.rows("total").tolist()]
        self.names = _group_keys(attributes, self.tally.groups)
        self.findings = [f for f in audit.findings if f.attribute == self.key]

    @property
    def title(self) -> str:
        """Its name in GlassAlpha's JSON."""
        return "*".join(self.attributes)

    def comparisons(self, rate: str) -> list[Finding]:
        """The comparisons of a rate with the group where it is highest."""
        return [f for f in self.findings if f.metric == f"{rate}_difference"]

    def analysis(self, intervals: bool) -> dict[str, Any]:
        """The section of a single attribute."""
        return {
            "metrics": {name: self._metric(rate, intervals) for name, rate in RATE_OF.items()},
            "sample_size_warnings": self.size_warnings(),
            "statistical_power": self._power(),
        }

    def intersection(self) -> dict[str, Any]:
        """The section of an intersection."""
        rates = self.audit.rates()
        rows = rates[rates["attribute"] == show(self.key)].to_dict("records")
        ends = {(repr(row["group"]), row["rate"]): row for row in rows}
        groups = {}
        for i, (name, label_of) in enumerate(zip(self.names, self.labels, strict=True)):
            found: dict[str, Any] = {}
            for metric, rate in RATE_OF.items():
                row = ends.get((repr(label_of), rate))
                found[metric] = None if row is None else _plain(row["value"])
                found[f"{metric}_ci"] = (
                    None
                    if found[metric] is None or row is None
                    else {"ci_lower": _plain(row["low"]), "ci_upper": _plain(row["high"])}
                )
                if found[metric] is None:
                    found[f"{metric}_reason"] = self._why(rate, i)
            groups[name] = {"n": self.sizes[i], "metrics": found}
        disparity: dict[str, Any] = {}
        for metric, rate in RATE_OF.items():
            values = self.confusion.rate(rate)
            ratio = divide(1.0, smallest_ratio(values))
            disparity[f"{metric}_max_diff"] = _plain(float(largest_gap(values)))
            disparity[f"{metric}_max_ratio"] = _plain(float(ratio))
            if isnan(ratio):
                few = np.count_nonzero(~np.isnan(values)) < 2
                zero = "the smallest rate is 0" if np.nanmax(values, initial=0) > 0 else "the rate is 0 in every group"
                disparity[f"{metric}_reason"] = self._blank(rate) or "one group only" if few else zero
        return {"groups": groups, "disparity": disparity, "sample_size_warnings": self.size_warnings()}

    def _metric(self, rate: str, intervals: bool) -> dict[str, Any]:
        values, pair, judged = self.confusion.rate(rate), self.pair(rate), self.comparisons(rate)
        if not intervals:
            pair = pair._replace(
                low=np.nan, high=np.nan, reason=pair.reason or "compute_confidence_intervals is false: not written"
            )
        status, why = self.status(rate)
        level, n_resamples = self.audit.policy.confidence_level, self.audit.policy.n_resamples
        ci = {
            "ci_lower": pair.low,
            "ci_upper": pair.high,
            "confidence_level": level,
            "n_bootstrap": n_resamples,
            "method": pair.method,
        }
        reasons = dict.fromkeys(filter(None, [pair.reason, self._blank(rate), why]))
        return {
            **{name: _plain(float(value)) for name, value in zip(self.names, values, strict=True)},
            "disparity": _plain(pair.disparity),
            "ci": None if isnan(pair.low) or isnan(pair.high) else ci,
            "threshold": judged[0].threshold if judged else None,
            "status": status,
            "reason": "; ".join(reasons),
            "highest": None if pair.highest is None else self.names[pair.highest],
            "lowest": None if pair.lowest is None else self.names[pair.lowest],
        }

    def pair(self, rate: str) -> _Pair:
        """The two extremes of a rate, with the interval of their signed difference where the audit compares them."""
        values = self.confusion.rate(rate)
        if np.count_nonzero(~np.isnan(values)) < 2:
            why = self._blank(rate) or "one group only"
            return _Pair(None, None, np.nan, np.nan, np.nan, None, why)
        found = self.comparisons(rate)
        reference = self.labels.index(found[0].reference)
        top = values[reference] == np.nanmax(values)  # of equals, the one that the others are compared with
        highest = reference if top else int(np.nanargmax(values))
        others = np.where(np.arange(values.size) == highest, np.nan, values)
        lowest = int(np.nanargmin(others))
        disparity = float(values[highest] - values[lowest])
        if not top:
            one, n, floor = self.tally.groups[highest], self.sizes[highest], self.audit.policy.least_rows
            lack = "is no known group" if MISSING in one else f"has {n} rows (floor {floor})"
            why = (
                f"no interval: {label(self.labels[highest])}, where it is highest, {lack}, so that groups are compared with "
                f"{label(self.labels[reference])}"
            )
            return _Pair(highest, lowest, disparity, np.nan, np.nan, None, why)
        finding = next(f for f in found if f.group == self.labels[lowest])
        none = isnan(finding.low) or isnan(finding.high)
        why = f"no interval: {finding.reason or 'none is valid'}" if none else ""
        return _Pair(highest, lowest, disparity, 0.0 - finding.high, 0.0 - finding.low, finding.method, why)

    def status(self, rate: str) -> tuple[str | None, str]:
        """The word for all comparisons of a rate, and the reasons of those it is said for."""
        words = [(glassalpha_status(f), f) for f in self.comparisons(rate)]
        found = next((word for word in WORDS if any(word == one for one, _ in words)), None)
        if found is None:
            judged = any(f"{rate}_difference" == rule.metric for rule in self.audit.policy.rules)
            return ("CAUTION", "there is nothing to compare with") if judged else (None, "")
        said = [f"{label(f.group)}: {f.reason}" for word, f in words if word == found and found != "PASS"]
        return found, "; ".join(said)

    def size_warnings(self) -> dict[str, Any]:
        """The groups with few rows, and how serious that is."""
        found = zip(self.names, self.sizes, strict=True)
        return {name: {"n": n, "severity": word} for name, n in found if (word := severity(n)) is not None}

    def _power(self) -> dict[str, float | None]:
        found = self.comparisons("selection_rate")
        powers = {repr(f.group): f.power for f in found}
        known = [f.power for f in found if not isnan(f.power)]
        best = max(known, default=np.nan)  # of the group that all others are compared with
        return {
            name: _plain(float(powers.get(repr(one), best))) for name, one in zip(self.names, self.labels, strict=True)
        }

    def _why(self, rate: str, i: int) -> str:
        return why_undefined(METRICS[rate], self.confusion, i)

    def _blank(self, rate: str) -> str:
        """The groups where a rate is undefined, each with the reason."""
        if METRICS[rate].uses_labels and not self.tally.labelled:
            return "no labels"
        whys = [(one, self._why(rate, i)) for i, one in enumerate(self.labels)]
        return "; ".join(f"{label(one)}: {why}" for one, why in whys if why)


# -------------------------------------------------------------------------------------------------------- individuals
_EXPLAINED = ("consistency_score", "matched_pairs", "counterfactual_flip")
_OF_PAIRS = ("individual_a", "individual_b", "distance", "prediction_diff", "high_risk")


def _check_individual(consistency: Any, pairs: Any, counterfactual: Any, reasons: Any) -> None:
    """Refuse what is no result about single people; each is told by what is read of it."""
    for name, given, needed, what in (
        (
            "consistency",
            consistency,
            "n_similar_pairs",
            "a ConsistencyResult, as individual.consistency_score returns it",
        ),
        ("counterfactual", counterfactual, "pairs", "a CounterfactualAudit, as CounterfactualProbe.audit returns it"),
    ):
        if given is not None and not hasattr(given, needed):
            raise TypeError(f"{name} must be {what}; got {type(given).__name__}.")
    if pairs is not None:
        what = "matched_pairs must be a DataFrame, as individual.matched_pairs returns it"
        if not isinstance(pairs, pd.DataFrame):
            raise TypeError(f"{what}; got {type(pairs).__name__}.")
        absent = [name for name in _OF_PAIRS if name not in pairs]
        if absent:
            raise ValueError(f"{what}; this one has no columns {listing(absent)}.")
    if reasons is not None and not isinstance(reasons, Mapping):
        raise TypeError(f"reasons must be a mapping of text by name; got {type(reasons).__name__}.")
    unknown = [name for name in reasons or () if name not in _EXPLAINED]
    if unknown:
        raise ValueError(f"reasons explain {listing(_EXPLAINED)}; got {listing(unknown)}.")


def _individual(
    consistency: Any, pairs: pd.DataFrame | None, counterfactual: Any, given: Mapping[str, str]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "consistency_score": None if consistency is None else _consistency(consistency),
        "matched_pairs": None if pairs is None else _matched(pairs),
        "counterfactual_flip": None,
    }
    reasons = {name: given.get(name, _NOT_GIVEN) for name, part in found.items() if part is None}
    if consistency is not None and found["consistency_score"]["score"] is None:
        reasons["consistency_score"] = "no pair of people is similar"
    if pairs is not None:
        found["n_matched_pairs"] = int(pairs.attrs.get("n_found", len(pairs)))
        if len(pairs) > _MAX_PAIRS:
            reasons["matched_pairs"] = f"the {_MAX_PAIRS} most serious of {found['n_matched_pairs']}"
    if counterfactual is not None:
        flips = _flips(counterfactual)
        found["counterfactual_flips"] = flips
        if flips:
            worst = max(flips, key=lambda flip: flip["disparate_treatment_rate"])
            found["counterfactual_flip"] = worst
            del reasons["counterfactual_flip"]
        else:
            reasons["counterfactual_flip"] = "no row could be given another value"
    return {**found, "reasons": reasons}


def _consistency(result: Any) -> dict[str, Any]:
    return {
        "score": _plain(result.score),
        "distance_metric": result.metric,
        "n_similar_pairs": int(result.n_similar_pairs),
        "mean_prediction_diff": _plain(result.mean_difference),
        "max_prediction_diff": _plain(result.max_difference),
        "ci": None
        if isnan(result.low)
        else {
            "ci_lower": float(result.low),
            "ci_upper": float(result.high),
            "confidence_level": float(result.confidence_level),
            "n_bootstrap": int(result.n_resamples),
        },
        "band": result.band,
    }


def _matched(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    attributes = [str(c).removesuffix("_a") for c in pairs if str(c).endswith("_a") and f"{str(c)[:-2]}_b" in pairs]
    attributes = [name for name in attributes if name != "individual"]
    found = []
    for row in pairs.head(_MAX_PAIRS).to_dict("records"):
        differing = [name for name in attributes if row[f"{name}_a"] != row[f"{name}_b"]]
        found.append(
            {
                "individual_a": _identifier(row["individual_a"]),
                "individual_b": _identifier(row["individual_b"]),
                "distance": _plain(float(row["distance"])),
                "prediction_diff": _plain(float(row["prediction_diff"])),
                "protected_attr_differs": "*".join(differing),
                "high_risk": bool(row["high_risk"]),
            }
        )
    return found


def _identifier(value: Any) -> Any:
    value = as_scalar(value)
    return value if isinstance(value, str | int) else show(value)


def _flips(counterfactual: Any) -> list[dict[str, Any]]:
    """Return one entry an attribute: shares and means over all of its pairs of values, by rows."""
    found = []
    for name in dict.fromkeys(pair.attribute for pair in counterfactual.pairs):
        pairs = [pair for pair in counterfactual.pairs if pair.attribute == name and pair.n]
        if not pairs:
            continue
        n = np.array([pair.n for pair in pairs], dtype=float)
        flips = float(np.sum(n * [pair.flip_rate for pair in pairs]))
        changes = float(np.sum(n * [pair.mean_absolute_change for pair in pairs]))
        bands = {pair.band for pair in pairs}
        found.append(
            {
                "protected_attr": name,
                "disparate_treatment_rate": float(flips / n.sum()),
                "mean_change": _plain(changes / n.sum()),
                "max_change": _plain(float(np.max([pair.max_change for pair in pairs]))),
                "n": int(n.sum()),
                "band": next((b for b in ("audit", "investigate", "inconclusive", "pass") if b in bands), None),
            }
        )
    return found


# ------------------------------------------------------------------------------------------------------------ summary
class _Said:
    """What is to be said of an audit, by kind, each line once; and the words of its parts."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {key: [] for key in ("errors", "warnings", "cautions", "actions")}
        self.words: list[str | None] = []

    def add(self, kind: str, line: str) -> None:
        if line not in self.lines[kind]:
            self.lines[kind].append(line)


def _summary(audit: Audit, blocks: Sequence[_Block], individual: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was assessed, errors, warnings and cautions apart, and what to do about them."""
    said, assessed = _Said(), []
    for name, why in individual["reasons"].items():
        if individual[name] is None and why != _NOT_GIVEN:
            said.add("cautions", f"{name.replace('_', ' ')} was not assessed: {why}")
    for block in blocks:
        sizes = ", ".join(f"{label(one)} n={n}" for one, n in zip(block.labels, block.sizes, strict=True))
        assessed.append(f"{label(block.title)}: {_number_of(len(block.labels), 'group')} ({sizes})")
        _of_sizes(block, said)
        _of_comparisons(block, said)
        if len(block.labels) < 2:
            said.words.append("CAUTION")
            said.add("cautions", f"{label(block.title)} has one group only: there is nothing to compare")
    _of_individuals(individual, assessed, said)
    return {
        "status": next((word for word in WORDS if word in said.words), "PASS"),
        "assessed": assessed,
        "judged": [rule.describe() for rule in audit.policy.rules],
        **said.lines,
    }


def _number_of(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _of_sizes(block: _Block, said: _Said) -> None:
    kinds = {"ERROR": "errors", "WARNING": "warnings", "LIMITED": "cautions"}
    words = {"ERROR": "no conclusion", "WARNING": "described, not judged", "LIMITED": "limited power"}
    for one, n in zip(block.labels, block.sizes, strict=True):
        if (word := severity(n)) is not None:
            where = f"{label(block.title)}={label(one)}"
            said.add(kinds[word], f"{where}: {_number_of(n, 'row')}, {words[word]}")
            if word != "LIMITED":
                said.add("actions", f"collect more data for {where}: {_number_of(n, 'row')}, at least 30 are needed")


def _of_comparisons(block: _Block, said: _Said) -> None:
    """Say what was found of each judged comparison; a group that is too small to judge is said once, as that."""
    flagged: dict[str, list[str]] = {}
    unsure: list[str] = []
    for metric, rate in RATE_OF.items():
        for finding in block.comparisons(rate) if metric != "recall" else ():
            word = glassalpha_status(finding)
            said.words.append(word)
            by_rows = finding.verdict is Verdict.INSUFFICIENT_DATA and finding.reason != "no labels"
            if word in (None, "PASS", "ERROR") or by_rows:
                continue
            ends = "" if isnan(finding.low) else f" [{number(finding.low)}, {number(finding.high)}]"
            line = (
                f"{label(block.title)}: {metric} of {label(finding.group)} against {label(finding.reference)} "
                f"{number(finding.value)}{ends}, {finding.reason}"
            )
            if finding.reason == "no labels":
                line = f"{label(block.title)}: {metric} cannot be assessed without labels"
                said.add("actions", "give the true labels")
            said.add("warnings" if word == "WARNING" else "cautions", line)
            if word == "WARNING":
                flagged.setdefault(label(finding.group), []).append(metric)
            elif finding.verdict is Verdict.INCONCLUSIVE and metric not in unsure:
                unsure.append(metric)
    for group, metrics in flagged.items():
        said.add("actions", f"find what sets {', '.join(metrics)} apart for {label(block.title)}={group}")
    if unsure:
        said.add("actions", f"collect more data before a conclusion on {', '.join(unsure)} by {label(block.title)}")


def _of_individuals(individual: Mapping[str, Any], assessed: list[str], said: _Said) -> None:
    score, pairs = individual["consistency_score"], individual["matched_pairs"]
    if score is not None and score["score"] is not None:
        line = f"consistency {number(score['score'])} ({score['band']})"
        assessed.append(line)
        if score["band"] in ("warning", "fail"):
            said.words.append("WARNING")
            said.add("warnings", f"{line}: people who are alike are scored differently")
    if pairs is not None:
        n, high = individual["n_matched_pairs"], sum(pair["high_risk"] for pair in pairs)
        assessed.append(f"{_number_of(n, 'matched pair')}, {high} of high risk")
        if high:
            said.words.append("WARNING")
            said.add("warnings", f"{_number_of(high, 'matched pair')} of high risk")
            said.add("actions", "review the matched pairs of high risk one by one")
    for flip in individual.get("counterfactual_flips", ()):
        name, rate = label(flip["protected_attr"]), flip["disparate_treatment_rate"]
        line = f"{name} set to another value: {rate:.1%} of decisions change"
        assessed.append(line)
        if flip["band"] in ("investigate", "audit"):
            said.words.append("WARNING")
            said.add("warnings", f"{line} ({flip['band']})")
            said.add("actions", f"find where the model reads {name}")
        elif flip["band"] == "inconclusive":
            said.words.append("CAUTION")
            said.add("cautions", f"{line}, with an interval that lies across bands")


def _provenance(audit: Audit) -> dict[str, Any]:
    policy, data = audit.policy, audit.provenance["data"]
    return {
        "schema": SCHEMA,
        "package": {"name": "sklearn-ethiclens", "version": __version__},
        "policy": policy.name,
        "thresholds": {rule.metric: rule.threshold for rule in policy.rules},
        "interval_method": policy.method,
        "confidence_level": policy.confidence_level,
        "n_bootstrap": policy.n_resamples,
        "random_seed": audit.parameters["random_state"],
        "outcome": audit.outcome,
        "pos_label": label_to_json(audit.tally.pos_label),
        "data": {key: data.get(key) for key in ("name", "sha256", "n_rows", "tally_sha256", "model")},
    }


# ------------------------------------------------------------------------------------------------------ names, numbers
def _plain(value: float) -> float | None:
    """Return a number as JSON has it; None where it is undefined."""
    return float(value) if isfinite(value) else None


def _group_keys(attributes: tuple[str, ...], groups: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return one distinct key a group: its text where that is one, else with the attribute's name or the types of its values."""
    if len(attributes) > 1:
        joined = ["_".join(show(value) for value in group) for group in groups]
        if len(set(joined)) == len(joined):
            return joined
    texts = [show(group) for group in groups]
    if len(set(texts)) < len(texts):
        texts = [
            " & ".join(
                f"{show(value)} ({type(value).__name__})" if texts.count(text) > 1 else show(value) for value in group
            )
            for group, text in zip(groups, texts, strict=True)
        ]
    if len(attributes) == 1:
        texts = [f"{attributes[0]}={text}" if text in _OWN_KEYS else text for text in texts]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(
            f"several groups of {' & '.join(attributes)} would be called {twice!r} in GlassAlpha's JSON; rename one."
        )
    return texts
