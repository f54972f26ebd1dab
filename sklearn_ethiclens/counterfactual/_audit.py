"""CounterfactualAudit: what changes in a model's answers when a sensitive feature is set to another value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from sklearn_ethiclens._findings import Section
from sklearn_ethiclens._tally import label_from_json, label_to_json
from sklearn_ethiclens._validation import as_scalar
from sklearn_ethiclens.counterfactual._paired_tally import PairedTally
from sklearn_ethiclens.counterfactual._strategies import get_strategy
from sklearn_ethiclens.counterfactual._words import BANDS, render, section
from sklearn_ethiclens.exceptions import FairnessGateError
from sklearn_ethiclens.plotting import CounterfactualDisplay
from sklearn_ethiclens.report._notebook import NotebookDisplay

__all__ = ["BANDS", "CounterfactualAudit", "PairFinding"]

SCHEMA = "sklearn-ethiclens/counterfactual/1"
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class PairFinding:
    """What setting a sensitive feature from ``source`` to ``target`` changes.

    Parameters
    ----------
    attribute : str
        The sensitive feature.
    source, target : label
        From which value, to which.
    n : int
        Rows changed.
    flip_rate, flip_low, flip_high : float
        Share of rows whose decision changes, and its Wilson interval.
    to_positive, to_negative : float
        Share of rows that the change turns positive, and negative.
    flip_rate_positives, flip_rate_negatives : float
        Flip rates of the rows whose true label is positive, and negative; NaN without labels.
    score_change_rate : float
        Share of rows whose score moves by more than the threshold.
    mean_change, mean_change_low, mean_change_high : float
        Mean of score after minus score before, and its t interval; NaN without scores.
    mean_absolute_change, mean_absolute_change_low, mean_absolute_change_high : float
        The same of its size.
    max_change : float
        Largest size of a change. It has no interval: a maximum grows with the number of rows.
    test : str
        "exact" or "chi2": the form of McNemar's test that as many rows turn positive as negative.
    pvalue, pvalue_adjusted : float
        Its p-value, and Holm's over all pairs.
    off_support : float
        Share of changed rows with a pair (new value, value of another column) that never occurred in ``fit``, or a thousand
        times more seldom than if the two were independent; NaN where no column holds categories.
    flip_rate_on_support, flip_rate_off_support : float
        Flip rates of the other rows, and of these.
    band : str
        "pass" (below 5%), "investigate" (5 to 10%), "audit" (above 10%) where the whole interval lies there, else
        "inconclusive".
    """

    attribute: str
    source: Any
    target: Any
    n: int
    flip_rate: float
    flip_low: float
    flip_high: float
    to_positive: float
    to_negative: float
    flip_rate_positives: float
    flip_rate_negatives: float
    score_change_rate: float
    mean_change: float
    mean_change_low: float
    mean_change_high: float
    mean_absolute_change: float
    mean_absolute_change_low: float
    mean_absolute_change_high: float
    max_change: float
    test: str
    pvalue: float
    pvalue_adjusted: float
    off_support: float
    flip_rate_on_support: float
    flip_rate_off_support: float
    band: str


_COLUMNS = tuple(f.name for f in fields(PairFinding))
_ROW_COLUMNS = (
    "row",
    "attribute",
    "source",
    "target",
    "decision",
    "counterfactual",
    "score",
    "counterfactual_score",
    "change",
)


@dataclass(frozen=True, eq=False)
class CounterfactualAudit(NotebookDisplay):
    """What a model does with the sensitive features themselves; made by :meth:`CounterfactualProbe.audit`.

    Frozen and picklable, with a JSON round trip. It is no audit of groups: a model that never reads an attribute changes
    nothing here, and may treat groups as differently as it likes through other features.

    Attributes
    ----------
    tally : PairedTally
        ``counts[group, decision, counterfactual decision]``.
    pairs : tuple of PairFinding
        One for each sensitive feature, value and other value that rows have.
    parameters : dict
        Strategy, what it assumes, threshold, positive label, seed.
    provenance : dict
        Versions, row counts, model.
    missing : dict of str to int
        Rows without a value of each sensitive feature: they are not changed.
    unknown : dict of str to int
        Rows with a value not seen in ``fit`` that were left out (``handle_unknown="ignore"``).
    unused : tuple of str
        Sensitive features with which no answer changes.
    proxies : tuple of dict
        For these: how well each feature predicts them, out of fold, and all together.
    support : tuple of dict
        ``attribute, target, column, share``: which columns put changed rows off support.
    stale : dict of str to list
        Derived columns that were left as they were.
    affected : tuple of dict
        The rows most affected; not stored in JSON, which holds no rows.
    run : dict
        What the caller adds of this run; no part of equality.
    """

    tally: PairedTally
    pairs: tuple[PairFinding, ...]
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    missing: Mapping[str, int]
    unknown: Mapping[str, int]
    unused: tuple[str, ...] = ()
    proxies: tuple[Mapping[str, Any], ...] = ()
    support: tuple[Mapping[str, Any], ...] = ()
    stale: Mapping[str, Sequence[str]] = field(default_factory=dict)
    affected: tuple[Mapping[str, Any], ...] | None = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------------- judgement
    @property
    def flagged(self) -> tuple[PairFinding, ...]:
        """The pairs whose band is "audit": more than 10% of the decisions change, and the interval says so."""
        return tuple(pair for pair in self.pairs if pair.band == "audit")

    def raise_if_flagged(self) -> None:
        """Raise if any pair is in the band "audit".

        Raises
        ------
        FairnessGateError
            An ``AssertionError`` whose message is the report.
        """
        if self.flagged:
            raise FairnessGateError("\n" + self.report("text"))

    # ---------------------------------------------------------------------------------------------------------- tables
    @property
    def table(self) -> pd.DataFrame:
        """One row a sensitive feature, source and target; the columns are those of :class:`PairFinding`."""
        return self.frame()

    def frame(self) -> pd.DataFrame:
        """Return :attr:`table`."""
        return pd.DataFrame([{name: getattr(p, name) for name in _COLUMNS} for p in self.pairs], columns=list(_COLUMNS))

    def rows(self, k: int = 10, *, attribute: str | None = None) -> pd.DataFrame:
        """Return the rows most affected, the largest change of score (or a flipped decision) first.

        Parameters
        ----------
        k : int, default=10
            How many; at most 100 of each alternative value are kept.
        attribute : str, optional
            Of this sensitive feature only.

        Returns
        -------
        DataFrame
            ``row`` (the label in the index of X, else the position), ``attribute, source, target, decision,
            counterfactual, score, counterfactual_score, change``. Features are not kept: ``X.loc[found["row"]]``.
        """
        if self.affected is None:
            raise ValueError("an audit read from JSON holds no rows; make it again with probe.audit(...).")
        chosen = [row for row in self.affected if attribute is None or row["attribute"] == attribute]
        return pd.DataFrame(chosen[: max(int(k), 0)], columns=list(_ROW_COLUMNS))

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return str(self.parameters["strategy"])

    @property
    def assumes(self) -> str:
        """What the strategy assumes."""
        return str(self.parameters["assumes"])

    def annotate(self, *, run: Mapping[str, Any] | None = None, **data: Any) -> CounterfactualAudit:
        """Return the audit with facts added to its provenance, as :meth:`sklearn_ethiclens.Audit.annotate`."""
        provenance = {**self.provenance, "data": {**self.provenance["data"], **data}}
        return replace(self, provenance=provenance, run={**self.run, **(run or {})})

    # ------------------------------------------------------------------------------------------------------- reporting
    def report(self, format: str = "text", **options: Any) -> str:
        """Return the audit in words.

        Parameters
        ----------
        format : {"text", "html", "json"}
            For a terminal, as an HTML fragment, or :meth:`to_json`.
        **options
            "text" takes ``width`` and ``color``.
        """
        return self.to_json() if format == "json" else render(self, format, **options)

    def section(self) -> Section:
        """Return the audit as a part of an :class:`~sklearn_ethiclens.Audit` of groups, to be shown and stored with it.

        Returns
        -------
        Section
            Under the key "counterfactuals": strategy, assumption, bands and proxies as sentences, and a row for each pair with
            the columns ``attribute, from, to, n, flip rate, low, high, band, to positive, to negative, p adjusted``; where the
            model has scores, ``mean score change, change low, change high, mean absolute change, maximum change``; where
            columns hold categories, ``off support``.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from sklearn_ethiclens import audit
        >>> from sklearn_ethiclens.counterfactual import CounterfactualProbe
        >>> X = pd.DataFrame({"SEX": np.repeat([1, 2], 100)})
        >>> model = DecisionTreeClassifier().fit(X, X["SEX"] == 1)  # decides by the attribute alone
        >>> found = CounterfactualProbe("SEX").fit(X).audit(model, X, pos_label=True)
        >>> groups = audit(None, model.predict(X), sensitive_features=X, n_resamples=100)
        >>> groups.with_section(found.section()).section("counterfactuals").frame()[["from", "to", "n", "flip rate"]]
           from  to    n  flip rate
        0     1   2  100        1.0
        1     2   1  100        1.0
        """
        return section(self)

    def plot(self, ax: Any = None, **options: Any) -> CounterfactualDisplay:
        """Return the audit as a picture, drawn; matplotlib is needed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        **options
            Of :meth:`CounterfactualDisplay.from_audit`: ``attribute``, ``name``, and properties of the points.

        Returns
        -------
        CounterfactualDisplay
        """
        return CounterfactualDisplay.from_audit(self, ax=ax, **options)

    def __str__(self) -> str:
        return self.report("text")

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(p.attribute for p in self.pairs))
        bands = [p.band for p in self.pairs]
        said = ", ".join(f"{bands.count(band)} {band}" for band in (*BANDS, "inconclusive") if band in bands)
        summary = get_strategy(self.strategy).summary if self.strategy else ""
        return (
            f"<CounterfactualAudit of {names or 'nothing'} in {self.provenance['data']['n_rows']} rows, "
            f"strategy {self.strategy!r} ({summary}): {said or 'no pairs'}>"
        )

    def _as_fragment(self) -> str:
        return str(self.report("html"))

    # ---------------------------------------------------------------------------------------------------------- storing
    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain JSON types; NaN is null, labels keep their type, rows are left out."""
        return {
            "schema": SCHEMA,
            "provenance": _plain(self.provenance),
            "parameters": _plain(self.parameters),
            "tally": self.tally.to_dict(),
            "pairs": [_plain({name: getattr(p, name) for name in _COLUMNS}) for p in self.pairs],
            "missing": dict(self.missing),
            "unknown": dict(self.unknown),
            "unused": list(self.unused),
            "proxies": _plain(self.proxies),
            "support": _plain(self.support),
            "stale": _plain(self.stale),
            "run": _plain(self.run),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the audit as JSON: byte-identical for the same data, parameters, seed and versions."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> CounterfactualAudit:
        """Return the audit that :meth:`to_json` wrote; it holds no rows.

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
            raise ValueError(f"a stored counterfactual audit has the schema {SCHEMA!r}; got {found!r}.")
        return cls(
            tally=PairedTally.from_dict(data["tally"]),
            pairs=tuple(_pair_from_json(pair) for pair in data["pairs"]),
            parameters=data["parameters"],
            provenance=data["provenance"],
            missing=data["missing"],
            unknown=data["unknown"],
            unused=tuple(data["unused"]),
            proxies=tuple(data["proxies"]),
            support=tuple({**row, "target": label_from_json(row["target"])} for row in data["support"]),
            stale=data["stale"],
            affected=None,
            run=data["run"],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CounterfactualAudit):
            return NotImplemented
        mine, theirs = self.to_dict(), other.to_dict()
        return all(mine[key] == theirs[key] for key in mine if key != "run")

    def __hash__(self) -> int:
        return hash(self.tally)


# ------------------------------------------------------------------------------------------------------------- storing
def _plain(value: Any) -> Any:
    """Return nested values as JSON types; NaN is null."""
    if isinstance(value, Mapping):
        if set(value) == {"type"} or set(value) == {"type", "value", "rank"}:
            return dict(value)  # a label, already as JSON keeps it
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return label_to_json(as_scalar(value))


def _pair_from_json(data: Mapping[str, Any]) -> PairFinding:
    words = {"attribute", "test", "band"}
    labels = {"source", "target"}
    values: dict[str, Any] = {
        name: label_from_json(value) if name in labels else value if name in words else NAN if value is None else value
        for name, value in data.items()
    }
    return PairFinding(**values)
