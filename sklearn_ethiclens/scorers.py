"""Fairness scorers for cross-validation and search, and the choice of a model under a bounded disparity.

Lead with the refit callable: a score of disparity alone rewards useless models, and a search whose every score is NaN
refits its first candidate without an error. :func:`select_within` raises in both cases.

>>> from sklearn.model_selection import GridSearchCV
>>> search = GridSearchCV(
...     estimator=None,
...     param_grid={},
...     scoring=fairness_scorers(["equalized_odds_difference"], sensitive_features="sex"),
...     refit=select_within(0.1, disparity="equalized_odds_difference", performance="accuracy"),
... )
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from warnings import catch_warnings, simplefilter, warn

import numpy as np
import pandas as pd
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_ethiclens._audit import audit_tally
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import (
    MISSING,
    as_scalar,
    check_aligned,
    column_list,
    encode_column,
    frame_columns,
    listing,
    probability_column,
    sensitive_columns,
    show,
    take_columns,
)
from sklearn_ethiclens._weights import check_sample_weight
from sklearn_ethiclens.exceptions import FairnessScoringWarning, UndefinedMetricWarning
from sklearn_ethiclens.metrics._candidates import TALLY_KEY, Candidates, pareto_frontier
from sklearn_ethiclens.metrics._comparisons import above, below
from sklearn_ethiclens.metrics._definitions import METRICS, Metric, get_metric
from sklearn_ethiclens.metrics._functions import worst_comparison
from sklearn_ethiclens.metrics._rates import OUTCOMES
from sklearn_ethiclens.metrics._scores import ScoreMetric, find_metric, worst_of_scores
from sklearn_ethiclens.policy import Policy

__all__ = [
    "FairnessMultiScorer",
    "FairnessScorer",
    "fairness_scorers",
    "make_fairness_scorer",
    "pareto_frontier",
    "select_pareto",
    "select_within",
    "stratify_by",
]

Scale = Literal["ratio", "difference", "score"]

_CELLS = ("tn", "fp", "fn", "tp")
_ADVICE = "stratify_by(y, sensitive_features) makes folds that hold every group"


def make_fairness_scorer(
    metric: str | Callable[..., float],
    *,
    sensitive_features: Any = None,
    reference: Any = None,
    pos_label: Any = None,
    outcome: str = "favorable",
    estimate: str = "value",
    min_group_size: int = 1,
    groups: Sequence[Any] | None = None,
    greater_is_better: bool | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    **metric_kw: Any,
) -> FairnessScorer:
    """Return a scorer of a disparity: always greater-is-better, picklable, never silently NaN.

    Parameters
    ----------
    metric : str or callable
        A comparison in ``METRICS``, scored as ``-abs(difference)``, or ``min(r, 1 / r)`` for a ratio, of the comparison
        farthest from parity; or a name in ``SCORE_METRICS``, of ``predict_proba``: a comparison as before, a number of one
        group of the group farthest from the ideal (``-abs(value - ideal)``, ``roc_auc`` as it is); or any
        ``metric(y_true, y_pred, *, sensitive_features)``, fairlearn's included.
    sensitive_features : str, int, list of them, Series, DataFrame or None
        Where the groups come from. Column name(s) or position(s): read from the X handed to the search, also if the
        pipeline drops them. Series or DataFrame: matched by the index of X, else of y. None: metadata routing, requested
        for you. What is passed to the call always wins. Several columns are read as their intersection.
    reference : label or tuple of labels, optional
        The group compared with; default: chosen per call, the highest rate of the favourable decision.
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.
    outcome : {"favorable", "adverse"}, default="favorable"
        What receiving ``pos_label`` means for a person.
    estimate : {"value", "worst"}, default="value"
        "worst" scores the unfavourable end of the confidence interval.
    min_group_size : int, default=1
        A fold with a smaller group scores NaN.
    groups : list of labels, optional
        The groups every fold must hold (tuples for several columns). Known by itself for a Series.
    greater_is_better : bool, optional
        For a callable whose name does not end in "difference", "gap", "error", "ratio" or "impact".
    confidence_level, n_resamples, random_state
        Of the interval, for ``estimate="worst"``.
    **metric_kw
        Passed to a callable.

    Returns
    -------
    FairnessScorer
        ``scorer(estimator, X, y)``. NaN, with a :class:`FairnessScoringWarning` that names the reason, where a fold cannot
        be judged: a group is absent or too small, a rate is undefined, or one class is predicted for every row (the
        disparity of 0 then says nothing; metrics of scores do not mind).

    See Also
    --------
    fairness_scorers : several metrics for one prediction.
    select_within : choose the best model under a bounded disparity.

    Examples
    --------
    >>> make_fairness_scorer("demographic_parity_difference", sensitive_features="sex")
    FairnessScorer('demographic_parity_difference', sensitive_features='sex', greater_is_better: -abs(difference))
    """
    return FairnessScorer(
        metric,
        sensitive_features=sensitive_features,
        reference=reference,
        pos_label=pos_label,
        outcome=outcome,
        estimate=estimate,
        min_group_size=min_group_size,
        groups=groups,
        greater_is_better=greater_is_better,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        random_state=random_state,
        metric_kw=metric_kw,
    )


class _Fold(NamedTuple):
    """What is scored: rows, their tally, and why it cannot be judged: by its groups, or since it has one class."""

    y_true: Any
    y_pred: Any
    groups: pd.DataFrame
    weights: Any
    tally: Tally
    reason: str
    group_reason: str
    by_groups: bool


class FairnessScorer:
    """A scorer made by :func:`make_fairness_scorer`; ``scorer(estimator, X, y)`` returns a float, greater is better."""

    def __init__(self, metric: str | Callable[..., float], *, sensitive_features: Any = None, **options: Any) -> None:
        self.metric: Any = metric if callable(metric) else _scorable(metric)
        self.sensitive_features = _checked_transport(sensitive_features)
        self.reference = options.pop("reference", None)
        self.pos_label = options.pop("pos_label", None)
        self.outcome = options.pop("outcome", "favorable")
        self.estimate = options.pop("estimate", "value")
        self.min_group_size = options.pop("min_group_size", 1)
        self.groups = options.pop("groups", None)
        self.confidence_level = options.pop("confidence_level", 0.95)
        self.n_resamples = options.pop("n_resamples", 1000)
        self.random_state = options.pop("random_state", 0)
        self.metric_kw = options.pop("metric_kw", {})
        greater_is_better = options.pop("greater_is_better", None)
        if options:
            raise TypeError(f"unexpected arguments: {sorted(options)}.")
        self.scale = _scale_of(self.metric, greater_is_better)
        self.flip = greater_is_better is False
        if isinstance(self.groups, np.ndarray | pd.Index):
            self.groups = self.groups.tolist()
        # Not a set, whose order, and that of the keys of cv_results_, changes from run to run.
        if self.groups is not None and not (isinstance(self.groups, list | tuple) and len(set(self.groups)) >= 2):
            raise ValueError(
                f"groups must be a list of the groups that every fold must hold, two at least; got {self.groups!r}."
            )
        if isinstance(self.min_group_size, bool) or not isinstance(self.min_group_size, int | np.integer):
            raise TypeError(f"min_group_size must be a whole number of rows; got {self.min_group_size!r}.")
        if self.min_group_size < 1:
            raise ValueError(f"min_group_size must be at least 1; got {self.min_group_size!r}.")
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {OUTCOMES}; got {self.outcome!r}.")
        if self.estimate not in ("value", "worst"):
            raise ValueError(f"estimate must be 'value' or 'worst'; got {self.estimate!r}.")
        if self.estimate == "worst" and getattr(self.metric, "kind", None) != "pair":
            raise ValueError(
                f"estimate='worst' needs an interval, which only comparisons with a reference have; {self._name()} is none. "
                f"Try 'statistical_parity_difference', 'disparate_impact' or 'equalized_odds_difference'."
            )
        if self._catalogued and self.metric_kw:
            raise TypeError(f"metric {self._name()!r} takes no further arguments; got {sorted(self.metric_kw)}.")
        self._requests: dict[str, Any] = {"sensitive_features": self.sensitive_features is None, "sample_weight": None}

    # ---------------------------------------------------------------------------------------------- what a search calls
    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the score of an estimator.

        Parameters
        ----------
        estimator : object
            Fitted, with ``predict``; one whose ``predict`` takes ``sensitive_features`` is handed the groups.
        X : array or frame of shape (n_samples, n_features)
            Features, as the search holds them.
        y : array-like of shape (n_samples,)
            True labels.
        sensitive_features : array-like of shape (n_samples,) or frame, optional
            Groups; they win over what the scorer was made with.
        sample_weight : array-like of shape (n_samples,), optional
            Sampling weights of the rows: the metric is that of weighted rows. Sizes of groups go by rows all the same, and
            rows with a weight of 0 are left out.

        Returns
        -------
        float
        """
        try:
            groups = self._groups(X, y, sensitive_features)
            weights = _passed_weights(X, y, sample_weight)
            predictions = estimator.predict(X, **_groups_for(estimator, groups))
            scores = self._probabilities(estimator, X, groups) if self._of_scores else None
            fold = self._count(y, predictions, groups, sensitive_features, scores, weights)
            score, reason = self._score(fold)
        except (ValueError, TypeError, KeyError) as error:
            _warn_unscorable(self._name(), f"raises {type(error).__name__}: {error}")
            raise
        if reason:
            _warn_unscorable(self._name(), f"is NaN: {reason}")
        return score

    def _score(self, fold: _Fold) -> tuple[float, str]:
        """Return the score of a fold, or NaN and why it has none."""
        unfit = fold.group_reason if self._of_scores else fold.reason
        value, reason = (float("nan"), unfit) if unfit else self._value(fold)
        return (float("nan"), reason) if reason else (_as_score(value, self.scale, self.flip), "")

    @property
    def _catalogued(self) -> bool:
        return isinstance(self.metric, Metric | ScoreMetric)

    @property
    def _of_scores(self) -> bool:
        return isinstance(self.metric, ScoreMetric)

    def _probabilities(self, estimator: Any, X: Any, groups: pd.DataFrame, cached: Any = None) -> Any:
        """Return the probabilities of the positive label, their column picked by ``classes_``; ``cached`` answers for it."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"{self._name()} is a metric of scores and needs predict_proba, which this {type(estimator).__name__} has not. "
                f"Put the classifier into sklearn.calibration.CalibratedClassifierCV."
            )
        answering = estimator if cached is None else cached
        probabilities = answering.predict_proba(X, **_groups_for(estimator, groups, "predict_proba"))
        return probability_column(probabilities, estimator.classes_, self.pos_label)

    def _count(
        self, y_true: Any, y_pred: Any, groups: pd.DataFrame, passed: Any, y_score: Any = None, weights: Any = None
    ) -> _Fold:
        """Return a fold with its tally, made once for all metrics, and why it cannot be judged."""
        y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
        tally = Tally.from_predictions(
            y_true,
            y_pred,
            sensitive_features=groups,
            y_score=y_score,
            sample_weight=weights,
            pos_label=self.pos_label,
        )
        sizes = dict(zip(tally.groups, tally.rows.sum((1, 2)).tolist(), strict=True))
        said = ", ".join(f"{show(group)} (n={n})" for group, n in sizes.items())
        absent = [group for group in self._expected(passed) if group not in sizes]
        small = [group for group, n in sizes.items() if n < self.min_group_size]
        one_class = not tally.counts[:, :, 0].any() or not tally.counts[:, :, 1].any()
        reason = ""
        if absent:
            reason = f"this fold holds {said} and no {', '.join(map(show, absent))}; {_ADVICE}"
        elif len(sizes) < 2:
            reason = f"this fold holds one group only, {said}; nothing can be compared, and {_ADVICE}"
        elif small:
            reason = f"{', '.join(map(show, small))} has fewer than {self.min_group_size} rows in this fold ({said})"
        group_reason = reason
        if one_class and not reason:
            reason = f"one class is predicted for all {tally.n_rows} rows, so that no disparity could show"
        return _Fold(
            y_true, y_pred, groups, weights, tally, reason, group_reason, by_groups=bool(reason) and not one_class
        )

    def _expected(self, passed: Any = None) -> list[tuple[Any, ...]]:
        """Return the groups that each fold must hold: those told, or those of a whole Series, unless others were passed."""
        if self.groups is not None:
            return [group if isinstance(group, tuple) else (group,) for group in self.groups]
        if passed is None and isinstance(self.sensitive_features, pd.Series | pd.DataFrame):
            if not hasattr(self, "_known"):
                columns = sensitive_columns(self.sensitive_features)
                encoded = [encode_column(column, name) for name, column in columns.items()]
                rows = zip(*([c.levels[i] for i in c.codes.tolist()] for c in encoded), strict=True)
                self._known = list(dict.fromkeys(rows))
            return [group for group in self._known if MISSING not in group]
        return []

    def _value(self, fold: _Fold) -> tuple[float, str]:
        """Return the metric's value, and why it is undefined; empty if it is not."""
        if not self._catalogued:
            return self._value_of_callable(fold)
        if self.estimate == "worst":
            return self._worst_end(fold.tally)
        if not isinstance(self.metric, ScoreMetric):
            return _quiet_worst_comparison(self.metric, fold.tally, self.reference, self.outcome)
        value, blank = worst_of_scores(self.metric, fold.tally, reference=self.reference, outcome=self.outcome)
        if np.isnan(value):
            return value, f"it is undefined: {blank}"
        return value if self.scale == "score" else value - self.metric.ideal, ""

    def _value_of_callable(self, fold: _Fold) -> tuple[float, str]:
        kw, pos_label = dict(self.metric_kw), fold.tally.pos_label
        labels: list[Any] = [fold.y_true, fold.y_pred]
        if fold.weights is not None:
            kw["sample_weight"] = fold.weights
        if self.pos_label is None and set(fold.tally.labels) - {0, 1, -1}:
            raise ValueError(
                f"labels are {listing(fold.tally.labels)}: pass pos_label, so that they reach the metric as 0/1."
            )
        if self.pos_label is not None and "pos_label" in inspect.signature(self.metric).parameters:
            kw["pos_label"] = self.pos_label
        elif self.pos_label is not None:  # a metric of 0/1 labels
            labels = [np.asarray(column == pos_label).astype(int) for column in labels]
        given = fold.groups.iloc[:, 0] if fold.groups.shape[1] == 1 else fold.groups
        value = float(self.metric(*labels, sensitive_features=given, **kw))
        return value, "the metric is NaN" if np.isnan(value) else ""

    def _worst_end(self, tally: Tally) -> tuple[float, str]:
        """Return the interval end farthest from parity over the comparisons."""
        return worst_limit(
            tally,
            self.metric,
            reference=self.reference,
            outcome=self.outcome,
            confidence_level=self.confidence_level,
            n_resamples=self.n_resamples,
            random_state=self.random_state,
        )

    # ------------------------------------------------------------------------------------------------ where groups are
    def _groups(self, X: Any, y: Any, passed: Any) -> pd.DataFrame:
        """Return the groups of the rows at hand, as a frame without an index of its own."""
        source = self.sensitive_features
        if passed is not None:
            return _passed_groups(X, y, passed)
        if source is None:
            raise ValueError(
                "no sensitive_features reached the scorer. Make it with sensitive_features=<column of X> or a Series with "
                "the index of X; or switch on sklearn.set_config(enable_metadata_routing=True) and pass "
                "params={'sensitive_features': ...} (GridSearchCV.fit: sensitive_features=...)."
            )
        if isinstance(source, pd.Series | pd.DataFrame):
            return self._by_index(X, y)
        if X is None:
            raise ValueError(
                f"this caller hands the scorer no X, so that column {source!r} cannot be read. {_way_out(y)}"
            )
        if frame_columns(X) is None and any(isinstance(column, str) for column in column_list(source)):
            raise ValueError(
                f"this caller hands the scorer X as {type(X).__name__}, without column names, so that {source!r} cannot be "
                f"read. {_way_out(y)}"
            )
        return take_columns(X, source).reset_index(drop=True)

    def _by_index(self, X: Any, y: Any) -> pd.DataFrame:
        held = self.sensitive_features
        indexed = [rows for rows in (X, y) if isinstance(rows, pd.Series | pd.DataFrame)]
        if not indexed:
            raise ValueError(
                f"sensitive_features are matched by index, but neither X ({type(X).__name__}) nor y ({type(y).__name__}) has "
                f"one here. {_way_out(y)}"
            )
        ids = indexed[0].index  # of X, where it has one: permutation tests shuffle y together with its index
        lost = ids.difference(held.index)
        if len(lost):
            raise ValueError(
                f"{len(lost)} of {len(ids)} rows are not in the index of sensitive_features (first: {as_scalar(lost[0])!r}); "
                f"it must hold the row ids of X."
            )
        found = held.loc[ids]
        frame = found.to_frame(_column_name(found)) if isinstance(found, pd.Series) else found
        return frame.reset_index(drop=True)

    # ------------------------------------------------------------------------------------------------ metadata routing
    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks for: ``sensitive_features`` if it was made without any."""
        request = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    _get_metadata_request = get_metadata_routing  # TunedThresholdClassifierCV before scikit-learn 1.8

    def set_score_request(self, **requests: Any) -> FairnessScorer:
        """Say which metadata the scorer asks for; as of scikit-learn's scorers."""
        unknown = sorted(set(requests) - set(self._requests))
        if unknown:
            raise TypeError(f"a fairness scorer can request {sorted(self._requests)}; got {unknown}.")
        self._requests = {**self._requests, **requests}
        return self

    # What scikit-learn reads of its own scorers, under both spellings; tests pin it for each supported version.
    _sign = sign = 1
    _response_method = response_method = "predict"
    _kwargs: Mapping[str, Any] = {}

    def _score_func(
        self, y_true: Any, y_pred: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the score of predictions at one threshold; the worst value where it is undefined, since NaN would win."""
        if self._of_scores:
            raise ValueError(
                f"{self._name()} is a metric of scores: a threshold does not change it, so none can be tuned by it."
            )
        groups = self._groups(None, y_true, sensitive_features)
        weights = _passed_weights(None, y_true, sample_weight)
        fold = self._count(y_true, y_pred, groups, sensitive_features, weights=weights)
        score, reason = self._score(fold)
        if fold.by_groups:  # at any threshold; that one class is predicted beyond the outermost scores is usual
            _warn_unscorable(self._name(), f"is the worst at every threshold: {reason}")
        return self._worst() if reason else score

    def _worst(self) -> float:
        if self.scale == "ratio":
            return 0.0
        if not isinstance(self.metric, Metric):
            return -1e9  # of unknown range; finite, since thresholds between folds are interpolated
        if self.scale == "score":
            return self.metric.low
        reach = max(abs(self.metric.low), abs(self.metric.high))
        return -reach if np.isfinite(reach) else -1e9

    score_func = _score_func

    def _accept_sample_weight(self) -> bool:
        """Tell a search that is fitted with weights whether to hand them on: unless declined, or a callable takes none."""
        if self._requests["sample_weight"] is False:
            return False
        return self._catalogued or _takes(self.metric, "sample_weight")

    # ------------------------------------------------------------------------------------------------------- object
    def __sklearn_clone__(self) -> FairnessScorer:
        return copy.copy(self)  # a held Series is shared, not copied

    def _name(self) -> str:
        if self._catalogued:
            return str(self.metric.name)
        return _callable_name(self.metric) or repr(self.metric)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._catalogued:
            state["metric"] = self.metric.name
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self.metric, str):
            self.metric = find_metric(self.metric)

    def __repr__(self) -> str:
        source = self.sensitive_features
        shown = f"<{type(source).__name__}, {len(source)} rows>" if hasattr(source, "iloc") else repr(source)
        as_is = "negated" if self.flip else "as it is"
        direction = {"ratio": "min(r, 1/r)", "difference": "-abs(difference)", "score": as_is}[self.scale]
        if self._of_scores and self.metric.kind == "group":
            direction = "of the worst group" + (
                "" if self.scale == "score" else f", -abs(value - {self.metric.ideal:g})"
            )
        options = {
            "reference": None,
            "pos_label": None,
            "outcome": "favorable",
            "estimate": "value",
            "min_group_size": 1,
        }
        extra = [f"{k}={getattr(self, k)!r}" for k, v in options.items() if getattr(self, k) != v]
        said = [repr(self._name()), f"sensitive_features={shown}", *extra, f"greater_is_better: {direction}"]
        return f"FairnessScorer({', '.join(said)})"


# ------------------------------------------------------------------------------------------------------ several metrics
def fairness_scorers(
    metrics: Sequence[str | Callable[..., float]],
    *,
    sensitive_features: Any = None,
    performance: Sequence[str] | Mapping[str, Any] = ("accuracy",),
    pos_label: Any = None,
    pooled: bool = False,
    **options: Any,
) -> FairnessMultiScorer:
    """Return one callable that scores several metrics for a single prediction: a multi-metric ``scoring``.

    A dict of single scorers costs one ``predict`` each; this one costs one ``predict`` a candidate and fold (and one of each
    other response that a performance scorer asks for).

    Parameters
    ----------
    metrics : list of str or callable
        As in :func:`make_fairness_scorer`.
    sensitive_features : str, int, list of them, Series, DataFrame or None
        As in :func:`make_fairness_scorer`.
    performance : list of str, or dict of name -> scorer, default=("accuracy",)
        scikit-learn scorers to have beside them.
    pos_label : label, optional
        The positive label of the fairness metrics.
    pooled : bool, default=False
        Return the counts by group too, under ``tally[...]`` keys, so that ``select_within(..., confidence=)`` can pool the
        folds; needs ``groups`` or a Series.
    **options
        Of :func:`make_fairness_scorer`.

    Returns
    -------
    FairnessMultiScorer
        Returns a dict: each metric under its name, each performance under its own, and ``selection_rate``. Not for
        ``cross_val_score`` and the halving searches, which take one score only.

    Examples
    --------
    >>> fairness_scorers(["disparate_impact", "equalized_odds_difference"], sensitive_features="sex")
    FairnessMultiScorer(accuracy, disparate_impact, equalized_odds_difference; sensitive_features='sex')
    """
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    scorers = [
        make_fairness_scorer(metric, sensitive_features=sensitive_features, pos_label=pos_label, **options)
        for metric in metrics
    ]
    if not scorers:
        raise ValueError("metrics is empty; name at least one, such as 'disparate_impact'.")
    if isinstance(performance, str):
        performance = [performance]
    if not isinstance(performance, Mapping | list | tuple):
        raise TypeError(
            f"performance must be a list of names of scorers, or a dict of scorers by name; got {performance!r}."
        )
    named = dict(performance) if isinstance(performance, Mapping) else {name: name for name in performance}
    strange = [name for name, scorer in named.items() if not (isinstance(scorer, str) or callable(scorer))]
    if strange:
        raise TypeError(
            f"performance must hold names of scorers, or callables (estimator, X, y); got {named[strange[0]]!r}."
        )
    return FairnessMultiScorer(scorers, named, pooled=pooled)


class FairnessMultiScorer:
    """Several scorers over one prediction, made by :func:`fairness_scorers`; a call returns a dict of floats."""

    def __init__(
        self, scorers: Sequence[FairnessScorer], performance: Mapping[str, Any], *, pooled: bool = False
    ) -> None:
        self.scorers = {scorer._name(): scorer for scorer in scorers}
        from sklearn.metrics import get_scorer

        self.performance = {k: get_scorer(v) if isinstance(v, str) else v for k, v in performance.items()}
        self.pooled = pooled
        clash = sorted({*self.scorers, "selection_rate"} & set(self.performance))
        if clash or len(self.scorers) < len(scorers):
            raise ValueError(
                f"every score needs its own name, and selection_rate is one of them; repeated: "
                f"{clash or [s._name() for s in scorers]}."
            )
        self._first = next(iter(self.scorers.values()))
        if pooled and not self._first._expected():
            raise ValueError("pooled=True needs the groups beforehand: pass groups=[...], or a Series.")
        self._requests: dict[str, Any] = {"sensitive_features": self._first.sensitive_features is None}

    def _accept_sample_weight(self) -> bool:
        """Tell a search that is fitted with weights: unless declined, and only if every score takes them."""
        if self._requests.get("sample_weight") is False:
            return False
        return all(scorer._accept_sample_weight() for scorer in self.scorers.values()) and not self._unweighted()

    def _unweighted(self) -> list[str]:
        """Return the performance scorers that take no weights."""
        inner = {name: getattr(scorer, "_score_func", scorer) for name, scorer in self.performance.items()}
        return [name for name, function in inner.items() if not _takes(function, "sample_weight")]

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> dict[str, float]:
        """Return all scores of an estimator; parameters as of :class:`FairnessScorer`."""
        first = self._first
        try:
            groups = first._groups(X, y, sensitive_features)
            cached = _CachedEstimator(estimator)
            predictions = cached.predict(X, **_groups_for(estimator, groups))
            weights = _passed_weights(X, y, sample_weight)
            if weights is not None and self.pooled:
                raise ValueError(
                    "pooled=True pools numbers of rows, but sample_weight reached the scorer: leave out pooled, or leave "
                    "sample_weight unrequested (set_score_request(sample_weight=False))."
                )
            if weights is not None and (unweighted := self._unweighted()):
                raise ValueError(
                    f"sample_weight reached the scorer, but {listing(unweighted)} of performance takes none: leave such out, or "
                    f"leave sample_weight unrequested (set_score_request(sample_weight=False))."
                )
            given = {} if weights is None else {"sample_weight": weights}
            scores = {k: float(scorer(cached, X, y, **given)) for k, scorer in self.performance.items()}
            asking = next((scorer for scorer in self.scorers.values() if scorer._of_scores), None)
            y_score = None if asking is None else asking._probabilities(estimator, X, groups, cached)
            fold = first._count(y, predictions, groups, sensitive_features, y_score, weights)
            found = {k: scorer._score(fold) for k, scorer in self.scorers.items()}
            cells = self._cells(fold.tally) if self.pooled else {}
        except (ValueError, TypeError, KeyError) as error:
            _warn_unscorable(", ".join(self.scorers), f"raises {type(error).__name__}: {error}")
            raise
        for reason in dict.fromkeys(reason for _, reason in found.values() if reason):
            names = [name for name, (_, why) in found.items() if why == reason]
            _warn_unscorable(", ".join(names), f"is NaN: {reason}")
        scores |= {name: score for name, (score, _) in found.items()}
        scores["selection_rate"] = float(fold.tally.counts[:, :, 1].sum() / fold.tally.counts.sum())
        return scores | cells

    def _cells(self, tally: Tally) -> dict[str, float]:
        """Return the counts of a fold under one key a cell, the same keys in every fold."""
        table = dict(zip(tally.groups, tally.counts.reshape(-1, 4).tolist(), strict=True))
        expected = self._first._expected()
        unknown = [group for group in table if group not in expected]
        if unknown:
            raise ValueError(
                f"groups do not name {', '.join(map(show, unknown))}, which occurs; pooling would lose its rows."
            )
        prefix = TALLY_KEY if self._first.outcome == "favorable" else f"{TALLY_KEY}.adverse"
        return {
            f"{prefix}[{i}:{show(group)}].{cell}": float(count)
            for i, group in enumerate(expected)
            for cell, count in zip(_CELLS, table.get(group, [0, 0, 0, 0]), strict=True)
        }

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorers ask for."""
        request = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def set_score_request(self, **requests: Any) -> FairnessMultiScorer:
        """Say which metadata the scorers ask for."""
        unknown = sorted(set(requests) - {"sensitive_features", "sample_weight"})
        if unknown:
            raise TypeError(f"fairness scorers can request ['sample_weight', 'sensitive_features']; got {unknown}.")
        self._requests = {**self._requests, **requests}
        return self

    def __sklearn_clone__(self) -> FairnessMultiScorer:
        return copy.copy(self)

    def __repr__(self) -> str:
        source = self._first.sensitive_features
        shown = f"<{type(source).__name__}, {len(source)} rows>" if hasattr(source, "iloc") else repr(source)
        return f"FairnessMultiScorer({', '.join([*self.performance, *self.scorers])}; sensitive_features={shown})"


class _CachedEstimator:
    """An estimator that answers each prediction method once; scikit-learn's scorers see the estimator itself."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._estimator, name)
        if name not in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            return attribute

        def answer(X: Any, **params: Any) -> Any:
            if name not in self._answers:
                self._answers[name] = attribute(X, **params)
            return self._answers[name]

        answer.__name__ = name
        return answer

    def __sklearn_tags__(self) -> Any:
        return self._estimator.__sklearn_tags__()


# -------------------------------------------------------------------------------------------------------------- helpers
def _scorable(name: Any) -> Metric | ScoreMetric:
    if not isinstance(name, str):
        raise TypeError(
            f"metric must be a name in METRICS or SCORE_METRICS, or a callable; got {name!r}. fairness_scorers takes several."
        )
    metric = find_metric(name)
    if isinstance(metric, Metric) and metric.kind == "group":
        related = [m.name for m in METRICS.values() if m.kind != "group" and metric.name in m.rates][:3]
        raise ValueError(
            f"{metric.name} is a number of one group, no comparison; try {' or '.join(map(repr, related))}."
        )
    return metric


def _checked_transport(source: Any) -> Any:
    if source is None:
        return None
    if isinstance(source, pd.Series | pd.DataFrame):
        if not source.index.is_unique:
            repeated = as_scalar(source.index[source.index.duplicated()][0])
            raise ValueError(f"the index of sensitive_features repeats {repeated!r}: rows cannot be matched by it.")
        return source
    column_list(source)
    return source


def _scale_of(metric: Any, greater_is_better: bool | None) -> Scale:
    """Return how a metric's value becomes a score."""
    if isinstance(metric, Metric | ScoreMetric):
        if greater_is_better is not None:
            raise TypeError(f"greater_is_better is for callables; the direction of {metric.name!r} is known.")
        if isinstance(metric, ScoreMetric):
            return "score" if metric.greater_is_better else "difference"
        return "score" if metric.parity is None else ("ratio" if metric.scale == "ratio" else "difference")
    if greater_is_better is not None:
        return "score"
    name = _callable_name(metric)
    if name.endswith(("ratio", "impact")):
        return "ratio"
    if name.endswith(("difference", "gap", "error")):
        return "difference"
    raise ValueError(
        f"cannot tell from the name {name!r} whether a greater value is better: pass greater_is_better=True or False."
    )


def _as_score(value: float, scale: Scale, flip: bool) -> float:
    if scale == "ratio":
        return min(value, 1 / value) if value > 0 else 0.0
    if scale == "difference":
        return -abs(value)
    return -value if flip else value


def _passed_groups(X: Any, y: Any, passed: Any) -> pd.DataFrame:
    """Return groups handed to a call, matched by position; pandas objects must have the index of X, else of y."""
    columns = sensitive_columns(passed)
    n_rows = len(y)
    if isinstance(passed, Mapping) and any(len(column) != n_rows for column in columns.values()):
        raise ValueError(
            f"sensitive_features reached the scorer as a dict of columns that do not have the {n_rows} rows of y: "
            f"scikit-learn cannot split a dict by folds. Pass a pandas.DataFrame of them."
        )
    rows = X if isinstance(X, pd.DataFrame) else y  # y may have been shuffled with its index
    check_aligned({"X": rows, "y": np.asarray(y), "sensitive_features": next(iter(columns.values()))})
    return pd.DataFrame({k: pd.Series(v).reset_index(drop=True) for k, v in columns.items()})


def _passed_weights(X: Any, y: Any, passed: Any) -> Any:
    """Return weights handed to a call as an array; a pandas object must have the index of X, else of y."""
    if passed is None:
        return None
    rows = X if isinstance(X, pd.DataFrame) else y
    check_aligned({"X": rows, "y": np.asarray(y), "sample_weight": passed})
    return check_sample_weight(passed)


def _way_out(y: Any) -> str:
    """Return which transport of the groups works where the scorer is handed no frame."""
    if isinstance(y, pd.Series | pd.DataFrame):
        return (
            "y keeps its index here: make the scorer with the column itself, sensitive_features=X[...], a Series that is "
            "matched by index; or use metadata routing (sensitive_features=None)."
        )
    return (
        "Only metadata routing works here: make the scorer with sensitive_features=None, switch on "
        "sklearn.set_config(enable_metadata_routing=True), and pass sensitive_features= to fit (params= in functions)."
    )


def _column_name(column: pd.Series) -> str:
    return "sensitive_feature" if column.name in (None, "") else str(column.name)


def _callable_name(metric: Any) -> str:
    while hasattr(metric, "func"):  # functools.partial
        metric = metric.func
    return str(getattr(metric, "__name__", ""))


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number; got {value!r}.")


def _takes(function: Any, argument: str) -> bool:
    """Tell whether a function has an argument of that name, or any keyword."""
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _groups_for(estimator: Any, groups: pd.DataFrame, method: str = "predict") -> dict[str, Any]:
    """Return the groups as an argument of ``predict`` where the estimator inside asks for them."""
    inner = estimator
    while True:
        if hasattr(inner, "steps"):
            inner = inner.steps[-1][1]
        elif hasattr(inner, "sensitive_features") and hasattr(inner, "estimator_"):
            inner = inner.estimator_
        else:
            break
    predict = getattr(inner, method, None)
    if predict is None or "sensitive_features" not in inspect.signature(predict).parameters:
        return {}
    return {"sensitive_features": groups.iloc[:, 0] if groups.shape[1] == 1 else groups}


def _warn_unscorable(name: str, why: str) -> None:
    warn(
        f"the score of {name} {why.rstrip('.')}. A search whose every score is NaN refits its first candidate all the same; "
        f"refit=select_within(...) raises instead.",
        FairnessScoringWarning,
        stacklevel=3,
    )


def _quiet_worst_comparison(metric: Metric, tally: Tally, reference: Any, outcome: str) -> tuple[float, str]:
    """Return a worst comparison, with the warning of an undefined one as its reason."""
    with catch_warnings(record=True) as caught:
        simplefilter("always", UndefinedMetricWarning)
        value = worst_comparison(metric, tally, reference=reference, outcome=outcome)
    reason = "; ".join(str(w.message).rstrip(".") for w in caught)
    return value, (reason or "it is undefined") if np.isnan(value) else ""


def worst_limit(
    tally: Tally,
    metric: Metric | ScoreMetric,
    *,
    reference: Any = None,
    outcome: str = "favorable",
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> tuple[float, str]:
    """Return the interval end farthest from parity over a metric's comparisons, and why there is none; empty if there is."""
    plan = tally.attributes
    policy = Policy("limits", "no rules, no floors", confidence_level=confidence_level, n_resamples=n_resamples)
    where = plan[0] if len(plan) == 1 else plan
    with catch_warnings():
        simplefilter("ignore", UndefinedMetricWarning)
        found = audit_tally(
            tally,
            outcome=outcome,
            reference=None if reference is None else {where: reference},
            intersections=None if len(plan) == 1 else [plan],
            policy=policy,
            metrics=[metric.name],
            random_state=random_state,
        )
    ends, reason = [], ""
    for f in found.findings:
        if f.metric != metric.name or f.attribute != where:
            continue
        if np.isnan(f.low):
            reason = f"{show(f.group)}: {f.reason or 'no interval'}"
            continue
        ends += [f.low, f.high]
    if reason or not ends:
        return float("nan"), reason or "nothing can be compared"
    if metric.scale == "ratio":
        return min(min(end, 1 / end) if end > 0 else 0.0 for end in ends), ""
    if metric.parity is None:
        return min(ends), ""
    return max(map(abs, ends)), ""


# ------------------------------------------------------------------------------------------------------------ selection
def select_within(
    bound: float | None = None,
    *,
    disparity: str,
    performance: str,
    tolerance: float | None = None,
    confidence: float | None = None,
    **options: Any,
) -> Callable[[Mapping[str, Any]], int]:
    """Return a ``refit=`` callable: the best performance among candidates whose disparity is within a bound.

    Parameters
    ----------
    bound : float, optional
        The largest acceptable gap, or the smallest acceptable ratio in [0, 1]. Without it, ``tolerance`` decides.
    disparity, performance : str
        Names of scores in ``cv_results_``, as :func:`fairness_scorers` gives them.
    tolerance : float, optional
        Without a bound: the least disparity among candidates at most this far below the best performance.
    confidence : float, optional
        Bound the unfavourable end of the interval at this level, of the folds pooled by adding their tallies; needs
        ``fairness_scorers(..., pooled=True)``. The mean of fold gaps grows with the number of folds, the pooled does not.
    **options
        ``reference``, ``n_resamples``, ``random_state`` of the pooled interval. The outcome is the scorers' own; a reference
        must be named again, else it is chosen from the pooled rates.

    Returns
    -------
    callable
        Picklable. Raises ValueError where no candidate is within the bound (the nearest is named), or none can be judged.
        A candidate with a NaN score, or one that predicts a single class, is never chosen.

    Examples
    --------
    >>> refit = select_within(0.1, disparity="equalized_odds_difference", performance="accuracy")
    >>> refit({"params": [{"C": 1}, {"C": 9}], "mean_test_accuracy": [0.8, 0.9], "std_test_accuracy": [0, 0],
    ...        "mean_test_equalized_odds_difference": [-0.05, -0.2]})
    0
    """
    if (bound is None) == (tolerance is None):
        raise ValueError("give either a bound on the disparity, or a tolerance of performance.")
    for name, number in (("bound", bound), ("tolerance", tolerance), ("confidence", confidence)):
        if number is not None:
            _check_number(name, number)
    if tolerance is not None and (not tolerance >= 0 or confidence is not None):
        raise ValueError("tolerance must be at least 0, and goes without confidence.")
    if bound is not None and not bound >= 0:
        raise ValueError(f"bound must be at least 0: disparities are bounded without their sign; got {bound!r}.")
    known = METRICS.get(disparity)
    if bound is not None and bound > 1 and known is not None and known.scale == "ratio":
        raise ValueError(
            f"bound of {disparity} must lie in [0, 1], the smallest acceptable of r and 1 / r; got {bound:g}."
        )
    if confidence is not None:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie in (0, 1); got {confidence!r}.")
        if get_metric(disparity).kind != "pair":
            raise ValueError(
                f"confidence needs an interval, which only comparisons with a reference have; {disparity} is none. Try "
                f"'statistical_parity_difference', 'disparate_impact' or 'equalized_odds_difference'."
            )
    unknown = sorted(set(options) - {"reference", "n_resamples", "random_state"})
    if unknown:
        raise TypeError(f"options are reference, n_resamples and random_state; got {unknown}.")
    return _Within(bound, disparity, performance, tolerance, confidence, options)


class _Within:
    """The refit callable of :func:`select_within`."""

    def __init__(
        self,
        bound: float | None,
        disparity: str,
        performance: str,
        tolerance: float | None,
        confidence: float | None,
        options: Mapping[str, Any],
    ) -> None:
        self.bound, self.disparity, self.performance = bound, disparity, performance
        self.tolerance, self.confidence, self.options = tolerance, confidence, dict(options)

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the position of the chosen candidate."""
        candidates = Candidates(cv_results, self.performance, self.disparity)
        if self.confidence is not None:
            candidates.limit_by(self._limits(cv_results))
        candidates.refuse_if_none()
        usable = candidates.usable
        if self.bound is None:
            assert self.tolerance is not None
            near = usable & (candidates.performance >= candidates.performance[usable].max() - self.tolerance - 1e-12)
            return int(min(np.flatnonzero(near), key=lambda i: (candidates.cost[i], -candidates.performance[i])))
        beyond = below if candidates.is_ratio else above
        within = np.array(
            [ok and not beyond(float(v), self.bound) for ok, v in zip(usable, candidates.disparity, strict=True)]
        )
        if not within.any():
            nearest = int(min(np.flatnonzero(usable), key=lambda i: candidates.cost[i]))
            side = "at least" if candidates.is_ratio else "at most"
            limit = f" at confidence {self.confidence:g}" if self.confidence is not None else ""
            raise ValueError(
                f"no candidate has {self.disparity} {side} {self.bound:g}{limit}; the nearest is "
                f"{candidates.describe(nearest)}. Widen the bound, or search more models."
            )
        return candidates.best(within)

    def _limits(self, cv_results: Mapping[str, Any]) -> list[float]:
        """Return the unfavourable end of the pooled interval of each candidate; NaN if a fold has no counts."""
        metric = get_metric(self.disparity)
        options = {"outcome": _pooled_outcome(cv_results), **self.options, "confidence_level": self.confidence}
        if options.get("reference") is not None:
            options["reference"] = show(options["reference"])  # pooled groups are named as they are shown
        tallies = pooled_tallies(cv_results)
        return [float("nan") if tally is None else worst_limit(tally, metric, **options)[0] for tally in tallies]

    def __repr__(self) -> str:
        what = f"{self.bound:g}" if self.bound is not None else f"tolerance={self.tolerance:g}"
        level = f", confidence={self.confidence:g}" if self.confidence is not None else ""
        return f"select_within({what}, disparity={self.disparity!r}, performance={self.performance!r}{level})"


def pooled_tallies(cv_results: Mapping[str, Any]) -> list[Tally | None]:
    """Return the tally of each candidate over all folds, from a search with ``fairness_scorers(..., pooled=True)``.

    None for a candidate of which a fold failed.

    Raises
    ------
    ValueError
        If the search kept no counts.
    """
    cells = [key.removeprefix("mean_test_") for key in cv_results if key.startswith(f"mean_test_{TALLY_KEY}")]
    if not cells:
        raise ValueError(
            "the search kept no counts to pool: score with fairness_scorers(..., pooled=True, groups=[...])."
        )
    splits = {key.split("_")[0] for key in cv_results if key.startswith("split") and key.endswith(f"_test_{cells[0]}")}
    sums = {cell: np.sum([cv_results[f"{split}_test_{cell}"] for split in splits], axis=0) for cell in cells}
    tallies: list[Tally | None] = []
    for i in range(len(cv_results["params"])):
        counts = {cell: sums[cell][i] for cell in cells}
        if np.isnan(list(counts.values())).any():  # a fold failed
            tallies.append(None)
            continue
        table: dict[str, dict[str, int]] = {}
        for cell, count in counts.items():
            group, name = cell.rsplit(".", 1)
            table.setdefault(group.split(":", 1)[1][:-1], {})[name] = int(count)
        occurring = {group: row for group, row in table.items() if sum(row.values())}
        tallies.append(Tally.from_counts(occurring, attribute="sensitive features"))
    return tallies


def _pooled_outcome(cv_results: Mapping[str, Any]) -> str:
    """Return the outcome that the scorers were made with, as the names of the counts tell it."""
    adverse = any(key.startswith(f"mean_test_{TALLY_KEY}.adverse[") for key in cv_results)
    return "adverse" if adverse else "favorable"


def select_pareto(*, disparity: str, performance: str, weight: float = 0.5) -> Callable[[Mapping[str, Any]], int]:
    """Return a ``refit=`` callable: the candidate on the Pareto frontier nearest to the best of both.

    Performance and disparity are scaled to the frontier's own ranges; the distance to (best performance, least disparity)
    weighs performance by ``weight`` and disparity by ``1 - weight``.

    Parameters
    ----------
    disparity, performance : str
        Names of scores in ``cv_results_``.
    weight : float, default=0.5
        In [0, 1].

    Returns
    -------
    callable
        Picklable; raises ValueError where no candidate can be judged.

    Examples
    --------
    >>> refit = select_pareto(disparity="equalized_odds_difference", performance="accuracy", weight=0.5)
    >>> refit({"params": [{"C": 1}, {"C": 2}, {"C": 3}], "mean_test_accuracy": [0.5, 0.89, 0.9],
    ...        "std_test_accuracy": [0, 0, 0], "mean_test_equalized_odds_difference": [-0.0, -0.02, -0.2]})
    1
    """
    _check_number("weight", weight)
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must lie in [0, 1]; got {weight!r}.")
    return _OnFrontier(disparity, performance, weight)


class _OnFrontier:
    """The refit callable of :func:`select_pareto`."""

    def __init__(self, disparity: str, performance: str, weight: float) -> None:
        self.disparity, self.performance, self.weight = disparity, performance, weight

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the position of the chosen candidate."""
        candidates = Candidates(cv_results, self.performance, self.disparity)
        candidates.refuse_if_none()
        frontier, cost = np.flatnonzero(candidates.on_frontier()), candidates.cost
        lost = _unit(-candidates.performance[frontier])
        distance = np.hypot(self.weight * lost, (1 - self.weight) * _unit(cost[frontier]))
        return int(frontier[np.argmin(distance)])

    def __repr__(self) -> str:
        return f"select_pareto(disparity={self.disparity!r}, performance={self.performance!r}, weight={self.weight:g})"


def _unit(values: Any) -> Any:
    """Return values scaled to [0, 1]."""
    spread = values.max() - values.min()
    return (values - values.min()) / spread if spread > 0 else np.zeros_like(values)


def stratify_by(
    y: Any, sensitive_features: Any, n_splits: int = 5, shuffle: bool = False, random_state: Any = None
) -> list[tuple[Any, Any]]:
    """Return folds stratified by label and group, for ``cv=``: each holds its share of every group and label.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    sensitive_features : Series, array, dict of arrays or frame
        Groups; several columns are crossed.
    n_splits : int, default=5
        Number of folds.
    shuffle, random_state
        As in :class:`sklearn.model_selection.StratifiedKFold`.

    Returns
    -------
    list of (train, test)
        Positions of rows.

    Raises
    ------
    ValueError
        If every combination of label and group has fewer rows than there are folds.

    Examples
    --------
    >>> folds = stratify_by([0, 1] * 6, ["a"] * 6 + ["b"] * 6, n_splits=3)
    >>> [len(test) for _, test in folds]
    [4, 4, 4]
    """
    from sklearn.model_selection import StratifiedKFold

    columns = sensitive_columns(sensitive_features)
    n_rows = check_aligned({"y": y, **columns})
    code = np.zeros(n_rows, dtype=np.int64)
    for name, values in {"y": y, **columns}.items():
        column = encode_column(values, name)
        code = code * len(column.levels) + column.codes
    codes, strata = np.unique(code, return_inverse=True)
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # the rarest stratum has fewer rows than folds: said below
        folds = list(
            StratifiedKFold(n_splits, shuffle=shuffle, random_state=random_state).split(np.zeros(n_rows), strata)
        )
    rare = int((np.bincount(strata) < n_splits).sum())
    if rare:
        warn(
            f"{rare} of {len(codes)} combinations of label and group have fewer than {n_splits} rows: some folds lack them.",
            UserWarning,
            stacklevel=2,
        )
    return folds
