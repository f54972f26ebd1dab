"""``audit`` and ``audit_tally``: rows, or their tally, -> ``Audit``: tally, findings, provenance."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, cast, overload
from warnings import warn

import joblib
import narwhals
import numpy as np
import pandas as pd
import scipy
import sklearn

from sklearn_ethiclens._assess import Settings, assess
from sklearn_ethiclens._assess_scores import KEY as SCORES
from sklearn_ethiclens._assess_scores import STORED, assess_scores
from sklearn_ethiclens._design import SurveyDesign
from sklearn_ethiclens._files import write_whole
from sklearn_ethiclens._findings import (
    Assessment,
    Finding,
    Headline,
    Reference,
    Section,
    design_section,
    disparities,
    group_rates,
    made_when_read,
    weights_section,
)
from sklearn_ethiclens._scan import scan_depth, scan_section
from sklearn_ethiclens._score_tally import ScoreBins
from sklearn_ethiclens._strata import strata_frame, strata_sections
from sklearn_ethiclens._tally import Tally, label_from_json, label_to_json
from sklearn_ethiclens._validation import as_scalar, listing, show
from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.exceptions import (
    DegenerateIntervalWarning,
    FairnessGateError,
    SampleSizeWarning,
    UndefinedMetricWarning,
)
from sklearn_ethiclens.inference._resampling import METHODS, as_seed
from sklearn_ethiclens.metrics._definitions import METRICS
from sklearn_ethiclens.metrics._functions import reference_position
from sklearn_ethiclens.metrics._rates import OUTCOMES, confusion_of
from sklearn_ethiclens.metrics._scores import SCORE_METRICS, find_metric
from sklearn_ethiclens.plotting import DisparityDisplay, draw
from sklearn_ethiclens.policy import Policy, Verdict, get_policy, overall_verdict
from sklearn_ethiclens.presets import get_preset
from sklearn_ethiclens.report import SUFFIXES, add_to_card, render
from sklearn_ethiclens.report._html import notebook
from sklearn_ethiclens.report._notebook import NotebookDisplay

SCHEMA = "sklearn-ethiclens/audit/1"
_ABSOLUTE_GAPS = ("equalized_odds_difference", "average_odds_error")
_WARNED = 6


@made_when_read("findings")
@dataclass(frozen=True, eq=False)
class Audit(NotebookDisplay):
    """What was found, on what data, under which policy.

    Made by :func:`audit` or :func:`audit_tally`; frozen and picklable. It keeps its tally, so that it can be judged again
    under another policy without the data, and shared without rows.

    Attributes
    ----------
    tally : Tally
        The counts everything rests on.
    findings : tuple of Finding
        One for each metric of each group, comparison and attribute.
    policy : Policy
        What judged them.
    parameters : dict
        How it was called.
    provenance : dict
        Versions, data name and hash, row counts.
    tests : tuple of dict
        Tests that all groups of an attribute have the same rate: chi-square, or Wald's F with a survey design.
    references : tuple of Reference
        The reference of each attribute, and whether it was given.
    composite, minimum_disparate_impact : Headline
        Summary numbers over single attributes, or why they are withheld.
    notes : tuple of str
        On the size of groups.
    sections : tuple of Section
        Further parts, each with a table: what :meth:`with_section` added, and what further arguments asked for.
    run : dict
        What the caller adds of this run (date, duration); no part of equality.
    """

    tally: Tally
    findings: tuple[Finding, ...]
    policy: Policy
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    tests: tuple[dict[str, Any], ...] = ()
    references: tuple[Reference, ...] = ()
    composite: Headline = field(default_factory=Headline)
    minimum_disparate_impact: Headline = field(default_factory=Headline)
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------------- judgement
    @property
    def judged(self) -> tuple[Finding, ...]:
        """The findings that the policy has a rule for."""
        return tuple(f for f in self.findings if f.threshold is not None)

    @property
    def flagged(self) -> tuple[Finding, ...]:
        """The findings that are flagged."""
        return tuple(f for f in self.findings if f.verdict is Verdict.FLAGGED)

    @property
    def verdict(self) -> Verdict | None:
        """Flagged if any finding is; else inconclusive, else insufficient data if any is; else cleared.

        None if the policy judges nothing. An audit with rules but nothing to compare has insufficient data.
        """
        if self.policy.rules and not self.judged:
            return Verdict.INSUFFICIENT_DATA
        return overall_verdict(f.verdict for f in self.judged if f.verdict is not None)

    @property
    def assessable(self) -> bool:
        """Whether anything could be judged at all."""
        return any(f.verdict not in (Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED) for f in self.judged)

    @property
    def status(self) -> str:
        """The verdict in a word: PASS, PASS WITH CONDITIONS, FAIL, NOT ASSESSABLE or NOT JUDGED.

        Conditions are the findings that are inconclusive or could not be judged. NOT ASSESSABLE: no finding could be
        judged. NOT JUDGED: the policy has no rule.
        """
        if not self.policy.rules:
            return "NOT JUDGED"
        if self.flagged or any(self._fails_when_elevated(f) for f in self.judged):
            return "FAIL"
        if not self.assessable:
            return "NOT ASSESSABLE"
        return "PASS" if self.verdict is Verdict.CLEARED else "PASS WITH CONDITIONS"

    def _fails_when_elevated(self, finding: Finding) -> bool:
        rule = self.policy.rule(finding.metric)
        return rule is not None and rule.elevated is not None and finding.verdict is Verdict.INCONCLUSIVE

    @property
    def conditions(self) -> tuple[Finding, ...]:
        """The judged findings that are neither flagged nor cleared."""
        return tuple(f for f in self.judged if f.verdict not in (Verdict.FLAGGED, Verdict.CLEARED))

    def raise_if_flagged(self, also: Iterable[str] = ()) -> None:
        """Raise if the audit is flagged: the gate of a test suite.

        Parameters
        ----------
        also : iterable of {"inconclusive", "insufficient"}
            Further states that must not occur; "insufficient" covers undefined comparisons.

        Raises
        ------
        FairnessGateError
            An ``AssertionError`` whose message is the scorecard.
        """
        if self.fails(["flagged", *_words(also)]):
            raise FairnessGateError("\n" + self.report("text"))

    def fails(self, states: Iterable[str]) -> bool:
        """Tell whether any judged finding is in one of the states "flagged", "inconclusive" and "insufficient"."""
        known = {
            "flagged": {Verdict.FLAGGED},
            "inconclusive": {Verdict.INCONCLUSIVE},
            "insufficient": {Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED},
        }
        states = _words(states)
        unknown = [state for state in states if state not in known]
        if unknown:
            raise ValueError(f"states must be among {list(known)}; got {unknown}.")
        wanted = set().union(*(known[state] for state in states))
        nothing = "insufficient" in states and self.verdict is Verdict.INSUFFICIENT_DATA
        elevated = "flagged" in states and self.status == "FAIL"
        return nothing or elevated or any(f.verdict in wanted for f in self.judged)

    # ---------------------------------------------------------------------------------------------------------- tables
    def frame(self) -> pd.DataFrame:
        """Return one row a finding."""
        rows = [
            {
                **{name: getattr(f, name) for name in Finding.__slots__},
                "attribute": show(f.attribute),
                "verdict": None if f.verdict is None else str(f.verdict),
            }
            for f in self.findings
        ]
        return pd.DataFrame(rows, columns=list(Finding.__slots__))

    def rates(self) -> pd.DataFrame:
        """Return one row a group and rate: value, Wilson interval, and the counts it is made of.

        Returns
        -------
        DataFrame
            ``attribute, group, n, rate, value, low, high, count, denominator``. Of weighted rows the value is weighted,
            numbers are of rows, and ``effective`` is the denominator that the interval is computed with; so too of rows
            with a survey design.
        """
        return group_rates(self.marginals(), self.outcome, self.policy.confidence_level)

    def disparities(self) -> pd.DataFrame:
        """Return one row a rate and attribute: the largest and smallest rate, their groups, the gap, limit and status.

        ``disparity_pct`` is the gap in percent of the smallest rate, infinite where that is 0.
        """
        rows = disparities(self.findings, self.policy, self.marginals(), self.outcome)
        return pd.DataFrame([{**row, "attribute": show(row["attribute"])} for row in rows])

    def strata(self) -> pd.DataFrame:
        """Return one row a stratum of the control features and group: rows, rates, and the ratio to the reference within it.

        ``audit.section("strata").frame()`` is the table of the comparisons pooled over strata.

        Returns
        -------
        DataFrame
            ``attribute, stratum, group, n, favorable_rate, disparate_impact``, and with labels ``true_positive_rate,
            false_positive_rate``; groups without rows in a stratum are not listed.

        Raises
        ------
        ValueError
            If there are no control features.
        """
        if not self.tally.controls:
            raise ValueError(
                "this audit has no strata: give audit(...) control_features, the columns to compare within."
            )
        return strata_frame(self.tally, self.references, outcome=self.outcome)

    def marginals(self) -> dict[Any, Tally]:
        """Return the tally of each audited attribute and intersection, keyed as findings name them."""
        return {
            attributes[0] if len(attributes) == 1 else attributes: self.tally.marginal(attributes)
            for attributes in self.plan
        }

    @property
    def plan(self) -> tuple[tuple[str, ...], ...]:
        """The attributes and intersections that were audited."""
        return tuple(tuple(attributes) for attributes in self.parameters["plan"])

    @property
    def outcome(self) -> str:
        """What a positive decision means for a person: "favorable" or "adverse"."""
        return str(self.parameters["outcome"])

    # ------------------------------------------------------------------------------------------------- judging again
    def rejudge(self, policy: str | Policy) -> Audit:
        """Return the audit of the same tally under another policy; nothing but the tally is needed.

        References that were given stay, and so do further sections; method, level and replicates are the new policy's.
        Metrics of scores are computed again too, unless the audit was read back from JSON, which holds no single scores:
        they are then those that were stored, at the level they were stored with.
        """
        given = {r.attribute: r.group for r in self.references if r.given}
        again = audit_tally(
            self.tally,
            outcome=self.outcome,
            reference=given or None,
            intersections=self.parameters.get("scan") or [names for names in self.plan if len(names) > 1],
            policy=policy,
            metrics=self.parameters["metrics"],
            random_state=self.parameters["random_state"],
        )
        made = {section.key for section in again.sections}
        again = again._with(sections=(*again.sections, *(s for s in self.sections if s.key not in made)))
        if isinstance(self.tally.scores, ScoreBins) and "score_confidence_level" in self.parameters:
            again = self._give_scores(again)
        again = again.annotate(
            **{k: v for k, v in self.provenance["data"].items() if k not in again.provenance["data"]}
        )
        for name in self.parameters.get("presets", ()):
            again = again.preset(name, policy=again.policy)
        return again

    def preset(self, name: str, *, policy: str | Policy | None = None) -> Audit:
        """Return the audit with the facts that a regulator's rule asks for, judged by the policy that belongs to the rule.

        Facts, not a certificate: the rule, its source, its date and its status stand first, then tables; nothing says that the
        rule is met.

        Parameters
        ----------
        name : {"ll144", "eeoc", "eu-ai-act", "lending"}
            A name in ``PRESETS``.
        policy : str or Policy, optional
            What is judged instead; default: the policy of the preset, or this audit's where none belongs to it. To keep this
            audit's, pass ``audit.policy``.

        Returns
        -------
        Audit
            With the section "preset <name>" and those of the facts ahead of other sections, and the name in
            ``parameters["presets"]``.

        Raises
        ------
        ValueError
            If there is no such preset or policy.

        Examples
        --------
        >>> tally = Tally.from_counts({"F": {"n": 20, "selected": 3}, "M": {"n": 80, "selected": 16}}, attribute="sex")
        >>> row = audit_tally(tally).preset("eeoc").section("eeoc adverse impact").frame().iloc[0]
        >>> row["group"], row["impact_ratio"].round(2).item(), row["below_4/5"], row["one_more"]
        ('F', 0.75, 'yes', 'yes')
        """
        preset = get_preset(name)
        own = self.policy if preset.policy is None or preset.policy == self.policy.name else preset.policy
        chosen = own if policy is None else get_policy(policy)
        judged = self if chosen == self.policy else self.rejudge(chosen)
        made = preset.sections(judged)
        keys = {section.key for section in made}
        before = [names for names in judged.parameters.get("presets", ()) if names != preset.name]
        return judged._with(
            parameters={**judged.parameters, "presets": [*before, preset.name]},
            sections=(*made, *(section for section in judged.sections if section.key not in keys)),
        )

    def _give_scores(self, again: Audit) -> Audit:
        """Return another audit of this tally with the metrics of scores of this one, which cannot be computed again."""
        level = self.parameters["score_confidence_level"]
        said = f"{STORED} This is what was found before they were stored, at {100 * level:g}% and with that policy's floors."
        section = self.section(SCORES)
        lines = section.lines if said in section.lines else (said, *section.lines)
        kept = tuple(f for f in self.findings if f.metric in SCORE_METRICS)
        again = replace(
            again,
            findings=(*again.findings, *kept),
            parameters={**again.parameters, "score_confidence_level": level},
        )
        return again.with_section(replace(section, lines=lines))

    def annotate(self, *, run: Mapping[str, Any] | None = None, **data: Any) -> Audit:
        """Return the audit with facts added to its provenance.

        Parameters
        ----------
        run : mapping, optional
            Of this run: date, duration, path; kept apart from what must be reproducible.
        **data
            Of the data: ``name``, ``sha256`` of the file, ``model``, ``notes``.
        """
        provenance = {**self.provenance, "data": {**self.provenance["data"], **data}}
        return self._with(provenance=provenance, run={**self.run, **(run or {})})

    def with_section(self, section: Section) -> Audit:
        """Return the audit with a further part, in place of an earlier one of the same key.

        Parameters
        ----------
        section : Section
            Sentences and a table, such as ``CounterfactualAudit.section()`` gives.

        Returns
        -------
        Audit
        """
        if not isinstance(section, Section):
            raise TypeError(f"section must be a Section, as .section() gives one; got {type(section).__name__}.")
        return self._with(sections=(*(s for s in self.sections if s.key != section.key), section))

    def _with(self, **changes: Any) -> Audit:
        """Return the audit with other fields; findings that were not read are not made for it."""
        return replace(self, **{"findings": self.__dict__["findings"], **changes})

    def section(self, key: str) -> Section:
        """Return one of the further parts by its key; ``.frame()`` of it is its table."""
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(f"this audit has no section {key!r}; it has {[s.key for s in self.sections]}.")

    def cross_check(self) -> pd.DataFrame:
        """Compute every by-group rate again with fairlearn's ``MetricFrame``, from the same tally, weights included.

        Returns
        -------
        DataFrame
            ``attribute, metric, compared, largest_deviation``: how many groups or comparisons were compared and the largest
            absolute difference. Groups where a rate is undefined are left out: fairlearn gives 0 there.
        """
        from fairlearn import metrics as fl
        from sklearn.metrics import accuracy_score, precision_score

        functions = {
            "selection_rate": fl.selection_rate,
            "true_positive_rate": fl.true_positive_rate,
            "false_positive_rate": fl.false_positive_rate,
            "false_negative_rate": fl.false_negative_rate,
            "true_negative_rate": fl.true_negative_rate,
            "precision": partial(precision_score, zero_division=0),
            "accuracy": accuracy_score,
        }
        rows = []
        for attribute, tally in self.marginals().items():
            group, truth, decision = np.nonzero(tally.counts)
            weight = tally.counts[group, truth, decision]
            if group.size == 1:  # which MetricFrame cannot take; a row given twice changes no rate
                group, truth, decision, weight = (np.repeat(column, 2) for column in (group, truth, decision, weight))
            used = {k: v for k, v in functions.items() if tally.labelled or k == "selection_rate"}
            frame = fl.MetricFrame(
                metrics=used,
                y_true=truth,
                y_pred=decision,
                sensitive_features=pd.Series(group),
                sample_params={name: {"sample_weight": weight} for name in used},
            )
            confusion = confusion_of(tally, self.outcome)
            labels = [g[0] if len(g) == 1 else g for g in tally.groups]
            for rate in used:
                by_group = frame.by_group[rate].reindex(range(len(labels)))  # a group without rows is not in the frame
                ours, theirs = confusion.rate(rate), by_group.to_numpy(float)
                defined = ~np.isnan(ours)
                rows.append((show(attribute), rate, int(defined.sum()), _largest(ours[defined] - theirs[defined])))
                for name in (f"{rate}_difference", f"{rate}_ratio"):
                    pairs = [f for f in self.findings if f.metric == name and f.attribute == attribute]
                    gaps = []
                    for f in pairs:
                        a, b = theirs[labels.index(f.group)], theirs[labels.index(f.reference)]
                        if not np.isnan(f.value):
                            gaps.append(f.value - (a - b if name.endswith("difference") else a / b))
                    if pairs:
                        rows.append((show(attribute), name, len(gaps), _largest(gaps)))
        return pd.DataFrame(rows, columns=["attribute", "metric", "compared", "largest_deviation"])

    # ---------------------------------------------------------------------------------------------------------- reporting
    @overload
    def report(self, format: Literal["text", "html", "json"] = "text", **options: Any) -> str: ...
    @overload
    def report(self, format: Literal["pdf"], **options: Any) -> bytes: ...
    @overload
    def report(self, format: str | os.PathLike[str], **options: Any) -> Any: ...
    def report(self, format: str | os.PathLike[str] = "text", **options: Any) -> Any:
        """Return the audit in words, or write it to a file.

        Parameters
        ----------
        format : {"text", "html", "pdf", "markdown", "model_card", "datasheet", "json"} or path
            A scorecard for a terminal, a page that loads nothing from outside, the same on paper, the scorecard for a pull
            request, a model card or a datasheet of the audited rows (both Markdown), or :meth:`to_json`. A name that ends in
            .txt, .html, .pdf, .md or .json, and any path object, is a file to write.
        **options
            Of the format: "text" takes ``width`` and ``color``.

        Returns
        -------
        str, bytes of "pdf", or Path of a file written
            Byte-identical for the same audit. Of a JSON file alone the facts in :attr:`run` are a part.

        Raises
        ------
        ValueError
            If there is no such format, or a file's name does not say which.
        ImportError
            If a PDF is asked for and WeasyPrint is missing: ``pip install "sklearn-ethiclens[report]"``.

        Examples
        --------
        >>> tally = Tally.from_counts({"F": {"n": 500, "selected": 150}, "M": {"n": 500, "selected": 250}}, attribute="sex")
        >>> audit_tally(tally).report("html").splitlines()[0]
        '<!DOCTYPE html>'
        """
        path = Path(format)
        if isinstance(format, str) and not path.suffix:
            return self.to_json(**options) if format == "json" else render(self, format, **options)
        kind = "json" if path.suffix.lower() == ".json" else SUFFIXES.get(path.suffix.lower())
        if kind is None:
            raise ValueError(
                f"the name of a report's file must end in one of {[*SUFFIXES, '.json']}; got {os.fspath(format)!r}."
            )
        said = self.report(kind, **options)
        write_whole(path, said if isinstance(said, bytes) else said.encode("utf-8", "backslashreplace"))
        return path

    def add_to_card(self, card: Any) -> Any:
        """Add what the audit knows to a model card of skops, and return the card.

        Parameters
        ----------
        card : skops.card.Card
            Changed in place: sections of Mitchell et al. (2019) that the audit knows something of are added or replaced.

        Returns
        -------
        skops.card.Card
        """
        return add_to_card(self, card)

    def plot(self, kind: str = "disparity", ax: Any = None, **options: Any) -> Any:
        """Return the audit as a picture, drawn; matplotlib is needed.

        Parameters
        ----------
        kind : {"disparity", "rates", "calibration", "impossibility"}, default="disparity"
            A :class:`DisparityDisplay`, :class:`GroupRatesDisplay`, :class:`~sklearn_ethiclens.plotting.CalibrationDisplay` or
            :class:`ImpossibilityDisplay`.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        **options
            Of the display's ``from_audit``: ``metric``, ``rate``, ``attribute``, ``name``, and properties of the points.

        Returns
        -------
        display
            Its table is in ``table``, the figure in ``figure_``.
        """
        return draw(self, kind, ax=ax, **options)

    def __str__(self) -> str:
        return self.report("text")

    def __repr__(self) -> str:
        return (
            f"<Audit of {self.tally.n_rows} rows by {', '.join(show(p) for p in self.plan)}: {self.verdict or 'not judged'} "
            f"under {self.policy.name!r}, {len(self.flagged)} flagged of {len(self.judged)} judged>"
        )

    def _as_fragment(self) -> str:
        return notebook(self)

    # ------------------------------------------------------------------------------------------------------------ storing
    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain JSON types; NaN is null, labels keep their type."""
        return {
            "schema": SCHEMA,
            "provenance": _plain(self.provenance),
            "parameters": _plain(self.parameters),
            "policy": _plain(self.policy.to_dict()),
            "tally": self.tally.to_dict(),
            "references": [
                {**asdict(r), "attribute": _name(r.attribute), "group": _group(r.group)} for r in self.references
            ],
            "findings": [_finding_to_json(f) for f in self.findings],
            "tests": [_plain(test) for test in self.tests],
            "composite": _headline_to_json(self.composite),
            "minimum_disparate_impact": _headline_to_json(self.minimum_disparate_impact),
            "notes": list(self.notes),
            "sections": [_section_to_json(section) for section in self.sections],
            "verdict": None if self.verdict is None else str(self.verdict),
            "status": self.status,
            "run": _plain(self.run),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the audit as JSON: byte-identical for the same data, parameters, seed and versions."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Audit:
        """Return the audit that :meth:`to_json` wrote.

        Raises
        ------
        ValueError
            If the text is no stored audit, or one of another schema.
        """
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"this is no stored audit: {error}.") from error
        found = data.get("schema") if isinstance(data, dict) else None
        if found != SCHEMA:
            raise ValueError(f"a stored audit has the schema {SCHEMA!r}; got {found!r}.")
        try:
            return cls(
                tally=Tally.from_dict(data["tally"]),
                findings=tuple(_finding_from_json(f) for f in data["findings"]),
                policy=Policy.from_dict(data["policy"]),
                parameters=data["parameters"],
                provenance=data["provenance"],
                tests=tuple(
                    {k: _number(v) if k in ("statistic", "pvalue") else v for k, v in t.items()} for t in data["tests"]
                ),
                references=tuple(
                    Reference(_unname(r["attribute"]), _ungroup(r["group"]), r["given"], r["sufficient"])
                    for r in data["references"]
                ),
                composite=_headline_from_json(data["composite"]),
                minimum_disparate_impact=_headline_from_json(data["minimum_disparate_impact"]),
                notes=tuple(data["notes"]),
                sections=tuple(map(_section_from_json, data["sections"])),
                run=data["run"],
            )
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"this stored audit is damaged, or of another version of the package: {said}.") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Audit):
            return NotImplemented
        mine, theirs = self.to_dict(), other.to_dict()
        return all(mine[key] == theirs[key] for key in mine if key != "run")

    def __hash__(self) -> int:
        return hash((self.tally.digest(), self.policy.name))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "findings": self.findings}


# -------------------------------------------------------------------------------------------------------------- making
def audit(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    control_features: Any = None,
    y_score: Any = None,
    sample_weight: Any = None,
    exact_weights: bool = False,
    clusters: Any = None,
    strata: Any = None,
    replicate_weights: Any = None,
    pos_label: Any = None,
    outcome: str = "favorable",
    reference: Any = None,
    intersections: Any = None,
    policy: str | Policy = "ethiclens",
    method: str | None = None,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    missing: str = "bucket",
    multiplicity: str | None = None,
    metrics: Sequence[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Audit:
    """Return the audit of predictions: every metric of every group and comparison, with intervals, tests and verdicts.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        True labels. With None only selection rates are assessed; error metrics have insufficient data.
    y_pred : array-like of shape (n_rows,)
        Decisions (labels, not scores).
    sensitive_features : Series, array, dict of arrays or frame with n_rows rows
        The group of each row; names come from it. pandas, polars and pyarrow are accepted. pandas objects must share
        their index; arrays and lists are positional.
    control_features : Series, array, dict of arrays or frame with n_rows rows, optional
        What groups are to be compared within, such as the department applied to; not audited themselves. Adds the sections
        "strata" and "strata tables" to the audit, and changes nothing else: verdicts are of the crude comparisons.
    y_score : array-like of shape (n_rows,), optional
        Scores or probabilities of the positive label. Adds findings of the metrics in ``SCORE_METRICS`` (calibration, Brier
        score, area under the curve) and the section "scores"; they are described, never judged.
    sample_weight : array-like of shape (n_rows,), optional
        Sampling weights: how many people each row stands for, up to a common factor; at least 0. Rates are weighted,
        intervals and tests allow for the weights, numbers of rows and floors are of rows as they are. Adds the section
        "weights".
    exact_weights : bool, default=False
        Whether the bootstrap draws the weights of single rows in all cells. By default it does in cells below 30 rows, and
        matches mean and variance in the others, at a cost that does not depend on the number of rows.
    clusters : array-like of shape (n_rows,), optional
        Label of the sampling unit of each row (household, school), where whole units were drawn. Intervals, tests and the
        bootstrap are then of units. Adds the section "design", as do the two below; none of the three goes together with
        ``control_features``, ``y_score`` or a scan.
    strata : array-like of shape (n_rows,), optional
        Label of the design stratum of each row, within which units were drawn (quotas, oversampled groups), at least two
        units each. Without ``clusters`` each row is its own unit.
    replicate_weights : array-like or frame of shape (n_rows, n_replicates), optional
        Replicates of ``sample_weight`` by successive differences, such as PWGTP1 to PWGTP80 of the ACS, in place of
        ``clusters`` and ``strata``. There is nothing to resample: intervals are closed forms whatever the policy's method.
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans. More than two labels are judged one against the
        rest.
    outcome : {"favorable", "adverse"}, default="favorable"
        What receiving ``pos_label`` means for a person. With "adverse" the ratio that is judged, the parity difference and
        the composite are of the favourable event (not receiving it).
    reference : label or mapping of attribute to label, optional
        The group compared with. Default: by the policy, as a rule the highest rate of the favourable decision among the
        groups that meet the floor. For an intersection the key is a tuple of names (or "a*b"), the value a tuple.
    intersections : list of tuples (or "a*b"), "all", int, "scan" or "scan:k", optional
        Combinations of attributes to audit too: given ones, every pair, or all of up to that many attributes. "scan" audits
        single attributes, and adds the section "scan": the worst of all well-populated subgroups of up to two (or ``k``)
        attributes, each against everybody else, with p-values and intervals that hold for all of them at once.
    policy : str or Policy, default="ethiclens"
        What is judged; a name in ``POLICIES`` or a policy of your own.
    method : {"bca", "percentile", "auto"}, optional
        Interval method; default: the policy's. "auto" takes the one that holds its level, by metric.
    confidence_level : float, optional
        In (0, 1); default: the policy's.
    n_resamples : int, optional
        Bootstrap replicates, at least 100; default: the policy's.
    missing : {"bucket", "raise"}, default="bucket"
        What to do with rows whose group is missing: audit them as a group, with a warning, or refuse.
    multiplicity : {"holm", "bh", "max-t"}, optional
        Adjustment of p-values over the comparisons of a metric; default: the policy's. Under a policy that judges everything
        together ("calibrated") also of the tests that decide.
    metrics : list of str, optional
        Names in ``METRICS``; default: all. The policy's own are always included. Of the metrics of scores those that are
        named here; all if none is.
    n_jobs : int, optional
        Threads for the draws; results do not depend on it.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the bootstrap. The integer used is kept in ``parameters``.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError, TypeError
        If rows cannot be matched, labels are ambiguous, or a name is unknown; the message says what was found and the way
        out.

    Warns
    -----
    UndefinedMetricWarning
        A rate has an empty denominator: it is NaN, and named.
    MissingGroupsWarning
        Some rows have no group.

    Examples
    --------
    >>> import numpy as np
    >>> sex = np.repeat(["F", "M"], 500)
    >>> decision = np.r_[np.arange(500) < 150, np.arange(500) < 250].astype(int)
    >>> audit(None, decision, sensitive_features={"sex": sex}, metrics=["disparate_impact"]).flagged[0].group
    'F'
    """
    tally = Tally.from_predictions(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        control_features=control_features,
        y_score=y_score,
        sample_weight=sample_weight,
        exact_weights=exact_weights,
        clusters=clusters,
        strata=strata,
        replicate_weights=replicate_weights,
        pos_label=pos_label,
        missing=missing,
    )
    return audit_tally(
        tally,
        outcome=outcome,
        reference=reference,
        intersections=intersections,
        policy=policy,
        method=method,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        multiplicity=multiplicity,
        metrics=metrics,
        n_jobs=n_jobs,
        random_state=random_state,
    )


# Displays are views and stand in a lower room; they are handed how an audit is made of predictions.
DisparityDisplay._audit = staticmethod(audit)


def audit_tally(
    tally: Tally,
    *,
    outcome: str = "favorable",
    reference: Any = None,
    intersections: Any = None,
    policy: str | Policy = "ethiclens",
    method: str | None = None,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    multiplicity: str | None = None,
    metrics: Sequence[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Audit:
    """Return the audit of a tally; parameters as in :func:`audit`.

    Parameters
    ----------
    tally : Tally
        Counts by group; a sum of tallies is audited as one.
    outcome, reference, intersections, policy, method, confidence_level, n_resamples, multiplicity, metrics, n_jobs, \
random_state
        As in :func:`audit`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> tally = Tally.from_counts({"F": {"n": 500, "selected": 150}, "M": {"n": 500, "selected": 250}}, attribute="sex")
    >>> audit_tally(tally).verdict
    <Verdict.FLAGGED: 'FLAGGED'>
    """
    settings = audit_settings(
        tally,
        outcome=outcome,
        reference=reference,
        intersections=intersections,
        policy=policy,
        method=method,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        multiplicity=multiplicity,
        metrics=metrics,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    _warn_of_percentile(settings.policy)
    audited = tally.marginal(tally.audited) if tally.controls else tally
    found = assess(audited, settings)
    _warn_of_undefined(found)
    for block in settings.plan:
        at = [tally.attributes.index(name) for name in block]
        if all(group[i] == tally.groups[0][i] for group in tally.groups for i in at):
            warn(f"{show(block)} has one group only; nothing can be compared.", SampleSizeWarning, stacklevel=3)
    depth = scan_depth(intersections)
    sections = strata_sections(
        tally, found.references, outcome=outcome, confidence_level=settings.policy.confidence_level
    )
    if depth is not None:
        chosen, seed = settings.policy, settings.seed
        scan = scan_section(audited, depth, outcome=outcome, policy=chosen, seed=seed, n_jobs=n_jobs)
        sections = (scan, *sections)
    if tally.weights is not None or tally.design is not None:
        marginals = {block[0] if len(block) == 1 else block: tally.marginal(block) for block in settings.plan}
        if tally.design is not None:
            own = get_policy(policy).method if method is None else method
            sections = (
                design_section(marginals, outcome, own if own != settings.policy.method else None),
                *sections,
            )
        if tally.weights is not None:
            sections = (weights_section(marginals), *sections)
    scored, score_sections = _scores(audited, settings, found, _asked(metrics))
    return Audit(
        tally=tally,
        findings=(*found.findings(), *scored) if scored else cast(Any, found.findings),
        policy=settings.policy,
        parameters={
            "outcome": outcome,
            "pos_label": label_to_json(tally.pos_label),
            "plan": [list(attributes) for attributes in settings.plan],
            "metrics": _asked(metrics),
            "random_state": settings.seed,
            **({} if depth is None else {"scan": f"scan:{depth}"}),
            **({"score_confidence_level": settings.policy.confidence_level} if scored else {}),
        },
        provenance=_provenance(tally),
        tests=found.tests,
        references=found.references,
        composite=found.composite if settings.policy.rules else replace(found.composite, band=None),
        minimum_disparate_impact=found.minimum_disparate_impact,
        notes=found.notes,
        sections=(*score_sections, *sections),
    )


def _scores(
    tally: Tally, settings: Settings, found: Assessment, asked: list[str] | None
) -> tuple[tuple[Finding, ...], tuple[Section, ...]]:
    """Return the findings and the section of a tally's scores; of a tally read back from JSON, that it has none."""
    if tally.scores is None:
        return (), ()
    if isinstance(tally.scores, ScoreBins):
        return (), (Section(SCORES, "Scores", (STORED,)),)
    named = [name for name in asked or () if name in SCORE_METRICS]
    scored = assess_scores(tally, settings.plan, found.references, settings.policy, settings.seed, named or None)
    return scored.findings, (scored.section,)


def audit_settings(
    tally: Tally,
    *,
    outcome: str = "favorable",
    reference: Any = None,
    intersections: Any = None,
    policy: str | Policy = "ethiclens",
    method: str | None = None,
    confidence_level: float | None = None,
    n_resamples: int | None = None,
    multiplicity: str | None = None,
    metrics: Sequence[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Settings:
    """Return how a tally will be audited; every argument is checked, nothing is computed."""
    if not isinstance(tally, Tally):
        raise TypeError(f"tally must be a Tally; got {type(tally).__name__}. Use audit(...) for rows.")
    if tally.n_rows == 0:
        raise ValueError("the tally holds no rows.")
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome must be one of {OUTCOMES}; got {outcome!r}.")
    asked: dict[str, Any] = {
        "method": method,
        "confidence_level": confidence_level,
        "n_resamples": n_resamples,
        "multiplicity": multiplicity,
    }
    chosen = get_policy(policy).replace(**{key: value for key, value in asked.items() if value is not None})
    if not tally.audited:
        raise ValueError(
            f"the tally holds control features only, {listing(tally.controls)}: there is nothing to audit."
        )
    plan = tuple((name,) for name in tally.audited) + _intersections(intersections, tally.audited)
    names = _metric_names(metrics, chosen, outcome)
    of_scores = [name for name in _asked(metrics) or () if name in SCORE_METRICS]
    if of_scores and tally.scores is None:
        raise ValueError(
            f"metrics names {listing(of_scores)}, which are of scores: pass y_score too, or leave them out."
        )
    if tally.design is not None:
        unable = ["control_features"] * bool(tally.controls)
        unable += ["intersections='scan'"] * (scan_depth(intersections) is not None)
        if unable:
            raise ValueError(
                f"{' and '.join(unable)} of rows with a survey design are not supported: leave out {' and '.join(unable)}, or "
                f"the {tally.design.kind}."
            )
    if tally.design is not None and tally.design.units is None:
        if method in METHODS:
            what = "replicate weights leave" if tally.design.deviations is not None else "a stored tally has"
            raise ValueError(
                f"method={method!r} resamples units, and {what} none to draw: pass method='auto', or leave it out."
            )
        chosen = chosen.replace(method="auto")
    seed = as_seed(random_state)
    return Settings(outcome, plan, _references(reference, tally, plan), chosen, names, seed, n_jobs)


def _intersections(intersections: Any, attributes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the intersections asked for as tuples of names; none for a scan, which is no part of the plan."""
    if intersections is None or scan_depth(intersections) is not None:
        return ()
    if isinstance(intersections, str) and intersections == "all":
        return tuple(combinations(attributes, 2))
    if isinstance(intersections, int | np.integer) and not isinstance(intersections, bool):
        if intersections < 2:
            raise ValueError(f"intersections must combine at least 2 attributes; got {intersections}.")
        sizes = range(2, min(int(intersections), len(attributes)) + 1)
        return tuple(combo for size in sizes for combo in combinations(attributes, size))
    if isinstance(intersections, str):
        intersections = intersections.split(",")
    if not isinstance(intersections, Iterable):
        raise ValueError(
            f"intersections must be a list of tuples of names, 'all', a number or 'scan'; got {intersections!r}."
        )
    entries = list(intersections)
    if entries and all(isinstance(name, str) and name in attributes for name in entries):
        entries = [tuple(entries)]  # one tuple of names instead of a list of tuples
    plan: list[tuple[str, ...]] = []
    for entry in entries:
        names = tuple(name.strip() for name in entry.split("*")) if isinstance(entry, str) else tuple(entry)
        unknown = [name for name in names if name not in attributes]
        if unknown:
            scan = any(str(name).strip().lower().startswith("scan") for name in unknown)
            raise ValueError(
                f"intersections name {listing(unknown)}; the sensitive features are {listing(attributes)}."
                f"{' A scan is asked for by that word alone: intersections=' + repr('scan') + '.' if scan else ''}"
            )
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(f"an intersection combines at least 2 different attributes; got {names!r}.")
        if not any(set(names) == set(known) for known in plan):  # else each comparison would be tested twice
            plan.append(names)
    return tuple(plan)


def _references(reference: Any, tally: Tally, plan: tuple[tuple[str, ...], ...]) -> dict[tuple[str, ...], Any]:
    """Return the given references by attribute; every one is checked to occur."""
    if reference is None:
        return {}
    if not isinstance(reference, Mapping):
        if len(tally.audited) > 1:
            raise ValueError(
                f"reference must name its attribute, as in {{{tally.audited[0]!r}: ...}}, since there are several: "
                f"{listing(tally.audited)}; got {reference!r}."
            )
        reference = {tally.audited[0]: reference}
    given = {}
    for key, value in reference.items():
        names = (key,) if key in tally.audited else tuple(key.split("*")) if isinstance(key, str) else tuple(key)
        if names not in plan:
            raise ValueError(f"reference names {key!r}; audited are {listing([show(p) for p in plan])}.")
        group = tuple(map(as_scalar, value)) if len(names) > 1 else as_scalar(value)
        reference_position(tally.marginal(names).groups, group if len(names) > 1 else (group,), names)
        given[names] = group if len(names) > 1 else (group,)
    return given


def _metric_names(metrics: Sequence[str] | None, policy: Policy, outcome: str) -> tuple[str, ...]:
    """Return the metrics to compute, in the order of the catalogue, those the policy judges included."""
    if metrics is None:
        return tuple(name for name in METRICS if name != "favorable_rate" or outcome == "adverse")
    wanted = {*(_asked(metrics) or ()), *(rule.metric for rule in policy.rules)}
    return tuple(name for name in METRICS if name in wanted)


def _asked(metrics: Sequence[str] | None) -> list[str] | None:
    """Return the metrics asked for by their own names, in the order of the catalogue; None for all."""
    if metrics is None:
        return None
    names = {find_metric(name).name for name in ([metrics] if isinstance(metrics, str) else metrics)}
    return [name for name in (*METRICS, *SCORE_METRICS) if name in names]


def _warn_of_percentile(policy: Policy) -> None:
    gaps = [rule.metric for rule in policy.rules if rule.metric in _ABSOLUTE_GAPS and rule.basis == "interval"]
    if policy.method == "percentile" and gaps:
        warn(
            f"the percentile interval of {gaps[0]}, an absolute gap, never holds 0 and flags too often; 'bca' is the default.",
            DegenerateIntervalWarning,
            stacklevel=4,
        )


def _warn_of_undefined(found: Assessment) -> None:
    """Warn once of all undefined rates and comparisons, naming groups and empty denominators."""
    blank: dict[tuple[str, str], list[str]] = {}
    for attribute, reason, metric in found.undefined:
        if reason and reason != "no labels" and not reason.startswith(("left out", "unknown")):
            blank.setdefault((attribute, reason), []).append(metric)
    if blank:
        said = [
            f"{where}: {reason} ({names[0]}{' and others' * (len(names) > 1)})"
            for (where, reason), names in blank.items()
        ]
        more = f"; ... ({len(said)} in all)" if len(said) > _WARNED else ""
        warn(f"undefined, shown as NaN: {'; '.join(said[:_WARNED])}{more}.", UndefinedMetricWarning, stacklevel=4)


def _provenance(tally: Tally) -> dict[str, Any]:
    return {
        "package": {"name": "sklearn-ethiclens", "version": __version__},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "libraries": {module.__name__: module.__version__ for module in (joblib, narwhals, np, pd, scipy, sklearn)},
        "data": {
            "n_rows": tally.n_rows,
            **({} if tally.weights is None else {"sum_of_weights": float(tally.counts.sum())}),
            **({} if tally.design is None else {"design": _design_facts(tally.design)}),
            "tally_sha256": tally.digest(),
        },
    }


def _design_facts(design: SurveyDesign) -> dict[str, Any]:
    facts = {"kind": design.kind, "units": design.n_units, "strata": design.n_strata, "dof": design.dof}
    return {name: value for name, value in facts.items() if value is not None}


# -------------------------------------------------------------------------------------------------------------- storing
def _words(states: Iterable[str]) -> list[str]:
    return [states] if isinstance(states, str) else list(states)


def _largest(values: Any) -> float:
    return float(np.max(np.abs(values))) if len(values) else 0.0


def _number(value: Any) -> Any:
    return float("nan") if value is None else value


def _plain(value: Any) -> Any:
    """Return nested values as JSON types; NaN is null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return label_to_json(as_scalar(value))


def _name(attribute: Any) -> Any:
    return list(attribute) if isinstance(attribute, tuple) else attribute


def _unname(attribute: Any) -> Any:
    return tuple(attribute) if isinstance(attribute, list) else attribute


def _group(group: Any) -> Any:
    return [label_to_json(v) for v in group] if type(group) is tuple else label_to_json(group)


def _ungroup(group: Any) -> Any:
    return tuple(map(label_from_json, group)) if isinstance(group, list) else label_from_json(group)


_FLOATS = ("value", "low", "high", "pvalue", "pvalue_adjusted", "power", "minimum_detectable", "limit_pvalue")


def _finding_to_json(f: Finding) -> dict[str, Any]:
    data = {name: getattr(f, name) for name in Finding.__slots__}
    data |= {name: None if np.isnan(data[name]) else data[name] for name in _FLOATS}
    data |= {"attribute": _name(f.attribute), "group": _group(f.group), "reference": _group(f.reference)}
    return data | {"denominators": _plain(f.denominators), "verdict": None if f.verdict is None else str(f.verdict)}


def _finding_from_json(data: Mapping[str, Any]) -> Finding:
    values = dict(data) | {name: _number(data[name]) for name in _FLOATS}
    values |= {
        "attribute": _unname(data["attribute"]),
        "group": _ungroup(data["group"]),
        "reference": _ungroup(data["reference"]),
        "denominators": {k: _unname(v) for k, v in data["denominators"].items()},
        "verdict": None if data["verdict"] is None else Verdict(data["verdict"]),
    }
    return Finding(**values)


def _headline_to_json(headline: Headline) -> dict[str, Any]:
    return {**asdict(headline), "group": _group(headline.group), "reference": _group(headline.reference)}


def _headline_from_json(data: Mapping[str, Any]) -> Headline:
    return Headline(**{**data, "group": _ungroup(data["group"]), "reference": _ungroup(data["reference"])})


def _section_to_json(section: Section) -> dict[str, Any]:
    rows = [[_cell(value) for value in row] for row in section.rows]
    return {
        "key": section.key,
        "title": section.title,
        "lines": list(section.lines),
        "columns": list(section.columns),
        "rows": rows,
    }


def _cell(value: Any) -> Any:
    return {"type": "float", "value": "nan"} if isinstance(value, float) and np.isnan(value) else _group(value)


def _section_from_json(data: Mapping[str, Any]) -> Section:
    rows = tuple(tuple(_ungroup(value) for value in row) for row in data["rows"])
    return Section(data["key"], data["title"], tuple(data["lines"]), tuple(data["columns"]), rows)
