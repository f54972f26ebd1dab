"""FairnessAuditor: a meta-estimator that predicts as the classifier it wraps, and audits it."""

from __future__ import annotations

import inspect
from typing import Any
from warnings import warn

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from scipy.stats import binom
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_array, get_tags, indexable
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from sklearn_ethiclens._audit import Audit, audit_settings, audit_tally
from sklearn_ethiclens._score_tally import check_scores
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import (
    check_aligned,
    column_list,
    drop_columns,
    frame_columns,
    probability_column,
    sensitive_columns,
    take_columns,
)
from sklearn_ethiclens._weights import check_sample_weight
from sklearn_ethiclens.exceptions import TrainingRowsWarning

__all__ = ["FairnessAuditor"]

_CHANCE = 0.001  # rows are not called training rows where fresh ones would repeat them as often with this probability
_DELEGATED = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


def _inner_has(name: str) -> Any:
    def check(self: FairnessAuditor) -> bool:
        getattr(self._inner(), name)  # raises the inner estimator's own AttributeError
        return True

    return check


class FairnessAuditor(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that predicts exactly as the one it wraps, and can say how it treats groups.

    It never changes a prediction, and never audits the rows it was fitted on without saying so.

    Parameters
    ----------
    estimator : classifier
        What is wrapped; cloned in ``fit``. A model fitted elsewhere goes in as ``FrozenEstimator(model)``.
    sensitive_features : str, int or list of them, optional
        Column name(s) or position(s) of X. Without them pass ``sensitive_features`` to ``fit`` and ``audit``.
    drop_sensitive : bool, default=False
        Train and predict without these columns, but audit by them. ``predict`` then also takes X without them.
    cv : int, splitter or iterable, optional
        Audit out-of-fold predictions in ``fit``: sets ``audit_`` and ``oof_predictions_``. None: no audit in ``fit``.
    y_score : "predict_proba", optional
        Audit the wrapped classifier's probabilities of the positive label too (calibration, Brier score, area under the
        curve): in ``audit`` by default, and out of fold with ``cv``, from the models that make the predictions.
    reference, pos_label, outcome, intersections, policy, method, confidence_level, n_resamples
        As in :func:`audit`.
    n_jobs : int, optional
        Workers of the cross-validation.
    random_state : int, default=0
        Seed of the bootstrap.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone.
    classes_ : ndarray of shape (n_classes,)
        As of ``estimator_``.
    n_features_in_, feature_names_in_
        As of ``estimator_``; with ``drop_sensitive`` those of X with the sensitive columns.
    audit_ : Audit
        Of out-of-fold predictions; with ``cv`` only.
    oof_predictions_ : ndarray of shape (n_samples,)
        With ``cv`` only.

    Notes
    -----
    For classifiers of one target. A regressor, clusterer or multilabel target is a ``TypeError``. With more than two
    classes give ``pos_label``, which is judged against the others. ``fit`` keeps a 64-bit hash of each training row, so that
    ``audit`` can tell rows it was fitted on. A ``sample_weight`` given to ``fit`` reaches the wrapped classifier only: audits
    count each row once, unless they are given sampling weights, as ``fit(audit_weight=...)`` and ``audit(sample_weight=...)``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn_ethiclens import load_german_credit
    >>> data = load_german_credit()
    >>> X = data.data[["duration", "credit_amount"]].assign(age=data.sensitive_features["age"])
    >>> pipe = make_pipeline(make_column_transformer(("passthrough", ["duration"])), LogisticRegression())
    >>> auditor = FairnessAuditor(pipe, sensitive_features="age", pos_label="good", cv=5).fit(X, data.target)
    >>> auditor.audit_.tally.n_rows
    1000
    """

    # score names sample_weight so that a weighted search weighs it; whether it is requested, the wrapped estimator says.
    __metadata_request__score = {"sample_weight": UNUSED}

    def __init__(
        self,
        estimator,
        *,
        sensitive_features=None,
        drop_sensitive=False,
        cv=None,
        y_score=None,
        reference=None,
        pos_label=None,
        outcome="favorable",
        intersections=None,
        policy="ethiclens",
        method=None,
        confidence_level=None,
        n_resamples=None,
        n_jobs=None,
        random_state=0,
    ):
        self.estimator = estimator
        self.sensitive_features = sensitive_features
        self.drop_sensitive = drop_sensitive
        self.cv = cv
        self.y_score = y_score
        self.reference = reference
        self.pos_label = pos_label
        self.outcome = outcome
        self.intersections = intersections
        self.policy = policy
        self.method = method
        self.confidence_level = confidence_level
        self.n_resamples = n_resamples
        self.n_jobs = n_jobs
        self.random_state = random_state

    # --------------------------------------------------------------------------------------------------------- fitting
    def fit(self, X, y, sensitive_features=None, audit_weight=None, **fit_params):
        """Fit the wrapped classifier; with ``cv``, audit its out-of-fold predictions.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        sensitive_features : Series, array, dict of arrays or frame, optional
            The group of each row, where X does not hold it.
        audit_weight : array-like of shape (n_samples,), optional
            Sampling weights of the rows for the out-of-fold audit, with ``cv`` only; see :func:`audit`. Neither the wrapped
            classifier nor the folds know of them: to fit with them too, pass them as ``sample_weight`` as well.
        **fit_params
            Passed to the wrapped classifier's ``fit``; routed where metadata routing is switched on. ``sample_weight`` is
            one of them: a weight of training, which never weighs the audit.

        Returns
        -------
        self
        """
        self._refuse_what_is_no_classifier(y)
        for name in (
            "_out_of_fold",
            "_audit_made",
            "oof_predictions_",
            "n_features_in_",
            "feature_names_in_",
            "_dropped",
        ):
            vars(self).pop(name, None)  # of an earlier fit
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if self.drop_sensitive:
            X = self._remember_dropped(X)
        groups = None
        if self.cv is not None or frame_columns(X) is not None or _wants_groups(self.estimator, "fit"):
            groups = self._groups(X, sensitive_features, y)
        splits = None if self.cv is None else self._splits(X, y, groups)
        if self.y_score is not None:
            self._check_probabilities(self.estimator, self.y_score)
        weights = None if audit_weight is None else self._audit_weights(X, audit_weight)
        inner_X = drop_columns(X, list(self._dropped)) if self.drop_sensitive else X
        metadata = self._fit_metadata(X, groups, sensitive_features, fit_params)
        params = process_routing(self, "fit", **metadata)["estimator"]["fit"] if _routing_enabled() else metadata
        self.estimator_ = clone(self.estimator).fit(inner_X, y, **params)
        if not hasattr(self.estimator_, "classes_"):
            self._classes = np.unique(np.asarray(y))
        if not self.drop_sensitive:
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.estimator_, name):
                    setattr(self, name, getattr(self.estimator_, name))
        self._row_hashes, self._repeated_share = _remember(_hash_rows(inner_X))
        if splits is not None:
            self._audit_out_of_fold(inner_X, y, groups, metadata, splits, weights)
        return self

    def _audit_weights(self, X, audit_weight):
        """Return the weights of the out-of-fold audit, before anything is fitted; refuse those that nothing could use."""
        if self.cv is None:
            raise ValueError(
                "audit_weight weighs the out-of-fold audit, and cv=None makes none: set cv, or pass the weights of rows held "
                "out to audit(sample_weight=...). The weights of training are sample_weight."
            )
        check_aligned({"X": X if isinstance(X, pd.DataFrame) else range(_num_samples(X)), "audit_weight": audit_weight})
        return check_sample_weight(audit_weight, name="audit_weight")

    def _refuse_what_is_no_classifier(self, y):
        kind = get_tags(self.estimator).estimator_type
        if kind not in (None, "classifier"):
            raise TypeError(
                f"FairnessAuditor audits classifiers; got the {kind} {type(self.estimator).__name__}. Turn its output into "
                f"decisions first, or audit them with sklearn_ethiclens.audit(y_true, y_pred, ...)."
            )
        if not hasattr(self.estimator, "predict"):
            raise TypeError(
                f"FairnessAuditor audits classifiers; {type(self.estimator).__name__} does not predict. Give it the whole "
                f"pipeline, or make it the last step."
            )
        target = type_of_target(y, input_name="y", raise_unknown=False)
        if target.startswith("multilabel") or target.endswith("multioutput"):
            raise TypeError(
                f"FairnessAuditor audits one target at a time; y is {target} with shape {np.shape(y)}. Wrap one classifier "
                f"a column."
            )

    def _check_probabilities(self, estimator, y_score):
        """Refuse another word than "predict_proba", and classifiers that have no probabilities."""
        if y_score != "predict_proba":
            raise ValueError(
                f"y_score must be 'predict_proba' or None; got {y_score!r:.80}. Scores go to audit(y_score=...)."
            )
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"y_score='predict_proba' needs a classifier with predict_proba, which {type(estimator).__name__} has not. Put "
                f"it into sklearn.calibration.CalibratedClassifierCV, or pass scores to audit(y_score=...)."
            )

    def _fit_metadata(self, X, groups, sensitive_features, fit_params):
        """Return what ``fit`` hands on, before routing: all it was given, and groups for an estimator that asks for them."""
        metadata = dict(fit_params)
        wanted = groups is not None and _wants_groups(self.estimator, "fit")
        if wanted:
            metadata["sensitive_features"] = _as_argument(groups, X)
        elif sensitive_features is not None and _routing_enabled():
            metadata["sensitive_features"] = sensitive_features  # so that routing can refuse what nothing requests
        return metadata

    def _splits(self, X, y, groups):
        """Return the folds, before anything is fitted; refuse those that cannot give each row one held-out prediction."""
        if groups is None:
            raise ValueError(
                "cv is set, so that fit audits, but there are no groups: give sensitive_features=<column of X> to "
                "FairnessAuditor, or the groups to fit."
            )
        if _frozen(self.estimator):
            raise ValueError(
                "cv with a FrozenEstimator would audit the rows the model was fitted on; leave cv=None and call "
                "audit(X_test, y_test)."
            )
        from sklearn.model_selection import check_cv

        splits = [(train, test) for train, test in check_cv(self.cv, y, classifier=True).split(X, y)]
        n_rows = _num_samples(X)
        hits = np.zeros(n_rows, dtype=int)
        for _, test in splits:
            np.add.at(hits, test, 1)
        if not np.all(hits == 1):
            raise ValueError(
                f"cv must put every row in exactly one test fold, so that each has one out-of-fold prediction; of {n_rows} "
                f"rows {np.sum(hits == 0)} are in none and {np.sum(hits > 1)} in several."
            )
        return splits

    def _audit_out_of_fold(self, X, y, groups, metadata, splits, weights):
        from sklearn.model_selection import cross_validate

        X, y = indexable(X, y)
        if _routing_enabled():  # cross_validate refuses what the wrapped estimator does not request
            metadata = {k: metadata[k] for k in get_routing_for_object(self.estimator).consumes("fit", metadata)}
        models = cross_validate(
            clone(self.estimator),
            X,
            y,
            cv=splits,
            scoring=_no_score,
            return_estimator=True,
            n_jobs=self.n_jobs,
            params=metadata or None,
            error_score="raise",
        )["estimator"]
        parts, scores = [], []
        for model, (_, test) in zip(models, splits, strict=True):
            rows, held_out = _safe_indexing(X, test), groups.iloc[test]
            given = {method: _groups_given(model, method, held_out, rows) for method in ("predict", "predict_proba")}
            parts.append(np.asarray(model.predict(rows, **given["predict"])))
            if self.y_score is not None:
                probabilities = model.predict_proba(rows, **given["predict_proba"])
                scores.append(probability_column(probabilities, model.classes_, self.pos_label))
        order = np.concatenate([np.arange(len(groups))[test] for _, test in splits])
        self.oof_predictions_ = _placed(np.concatenate(parts), order)
        y_score = _placed(np.concatenate(scores), order) if scores else None
        tally = self._tally(y, self.oof_predictions_, groups, y_score=y_score, sample_weight=weights)
        audit_settings(tally, **self._audit_options())  # what is wrong with them is said now
        how = f"{type(self.estimator).__name__}; out-of-fold predictions of {len(splits)} folds"
        self._out_of_fold = tally, self._audit_options(), how

    @property
    def audit_(self) -> Audit:
        """Audit of the out-of-fold predictions; made from their tally when first asked for, and kept."""
        if "_out_of_fold" not in vars(self):
            raise AttributeError(
                "there is no audit_: it is made of out-of-fold predictions, so fit FairnessAuditor(..., cv=5), or call "
                "audit(X_test, y_test)."
            )
        if "_audit_made" not in vars(self):
            tally, options, how = self._out_of_fold
            self._audit_made = audit_tally(tally, **options).annotate(model=how)
        return self._audit_made

    # --------------------------------------------------------------------------------------------------------- auditing
    def audit(
        self,
        X,
        y,
        *,
        sensitive_features=None,
        control_features=None,
        y_score=None,
        sample_weight=None,
        clusters=None,
        strata=None,
        replicate_weights=None,
    ) -> Audit:
        """Return the audit of the fitted classifier on data held out.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features, not those it was fitted on.
        y : array-like of shape (n_samples,) or None
            True labels; with None only selection rates are assessed.
        sensitive_features : Series, array, dict of arrays or frame, optional
            The group of each row; default: the columns of X that the auditor was given.
        control_features : Series, array, dict of arrays or frame, optional
            What groups are to be compared within; see :func:`audit`.
        y_score : "predict_proba" or array-like of shape (n_samples,), optional
            Scores to audit too: the wrapped classifier's probabilities of the positive label, their column picked by
            ``classes_``, or scores as given. Default: the auditor's own ``y_score``.
        sample_weight : array-like of shape (n_samples,), optional
            Sampling weights of these rows; see :func:`audit`. They are not the weights that the classifier was fitted with,
            which say nothing of whom the rows stand for and never weigh an audit by themselves.
        clusters, strata : array-like of shape (n_samples,), optional
            Sampling units and design strata of these rows; see :func:`audit`.
        replicate_weights : array-like or frame of shape (n_samples, n_replicates), optional
            Replicates of ``sample_weight``; see :func:`audit`.

        Returns
        -------
        Audit

        Warns
        -----
        TrainingRowsWarning
            More than half of the rows are rows it was fitted on. Rows are told by their values: where so many repeat that
            fresh rows could be the same by chance, there is no warning.
        """
        check_is_fitted(self)
        groups = self._groups(X, sensitive_features, y)
        if groups is None:
            raise ValueError(
                "nothing to audit by: give sensitive_features=<column of X> to FairnessAuditor, or the groups to audit()."
            )
        seen = self._share_seen(self._without_sensitive(X))
        if seen > 0.5:
            warn(
                f"{seen:.0%} of these rows are rows the model was fitted on: what is found here is too good. Audit rows held "
                f"out, or use cv= for out-of-fold predictions.",
                TrainingRowsWarning,
                stacklevel=2,
            )
        given = _groups_given(self._inner(), "predict", groups, X)
        controls = None if control_features is None else self._groups(X, control_features, y, "control_features")
        scores = self._scores(X, groups, self.y_score if y_score is None else y_score)
        surveyed = {"clusters": clusters, "strata": strata, "replicate_weights": replicate_weights}
        for name, values in {"sample_weight": sample_weight, **surveyed}.items():
            if isinstance(values, pd.Series | pd.DataFrame) and isinstance(X, pd.DataFrame):
                check_aligned({"X": X, name: values})
        design = {
            name: values.reset_index(drop=True) if isinstance(values, pd.Series | pd.DataFrame) else values
            for name, values in surveyed.items()
        }
        tally = self._tally(y, self.predict(X, **given), groups, controls, scores, sample_weight, design)
        made = audit_tally(tally, **self._audit_options())
        return made.annotate(model=f"{type(self.estimator).__name__}; predictions of the fitted model")

    def _scores(self, X, groups, y_score):
        """Return the scores to audit: given ones, or the probabilities of the positive label; None for none."""
        if y_score is None:
            return None
        if not isinstance(y_score, str):
            if isinstance(y_score, pd.Series | pd.DataFrame) and isinstance(X, pd.DataFrame):
                check_aligned({"X": X, "y_score": y_score})
            return check_scores(y_score)
        inner = self._inner()
        self._check_probabilities(inner, y_score)
        probabilities = self.predict_proba(X, **_groups_given(inner, "predict_proba", groups, X))
        return probability_column(probabilities, self.classes_, self.pos_label)

    def _tally(self, y, predictions, groups, controls=None, y_score=None, sample_weight=None, design=None) -> Tally:
        return Tally.from_predictions(
            None if y is None else np.asarray(y),
            predictions,
            sensitive_features=groups,
            control_features=controls,
            y_score=y_score,
            sample_weight=None if sample_weight is None else check_sample_weight(sample_weight),
            **(design or {}),
            pos_label=self.pos_label,
        )

    def _audit_options(self) -> dict[str, Any]:
        names = ("outcome", "reference", "intersections", "policy", "method", "confidence_level", "n_resamples")
        return {name: getattr(self, name) for name in (*names, "random_state")}

    def _share_seen(self, X) -> float:
        """Return the share of rows that were trained on, beyond what chance gives; 0 where chance alone would do."""
        known = getattr(self, "_row_hashes", None)
        if known is None or not known.size or _frozen(self.estimator):
            return 0.0
        hashes = _hash_rows(X)
        at = np.minimum(np.searchsorted(known, hashes), known.size - 1)
        new, fresh = int(np.sum(known[at] != hashes)), 1 - self._repeated_share
        # A fresh row is new with the probability that a training row is the only one of its kind (Good 1953).
        if fresh <= 0 or binom.cdf(new, hashes.size, fresh) > _CHANCE:
            return 0.0
        return max(0.0, 1 - new / hashes.size / fresh)

    # -------------------------------------------------------------------------------------------------------------- data
    def _groups(self, X, sensitive_features, y, argument="sensitive_features"):
        """Return the groups as a frame without an index of its own; None if there are none."""
        if sensitive_features is not None:
            columns = sensitive_columns(sensitive_features, argument)
            rows = {"X": X if isinstance(X, pd.DataFrame) else range(_num_samples(X))}
            if y is not None and not _paired_by_position(y, X):
                rows["y"] = y
            whole = isinstance(sensitive_features, pd.Series | pd.DataFrame)
            given = {argument: sensitive_features} if whole else columns
            kind = argument.removesuffix("s").replace("_", " ")
            check_aligned({**rows, **{str(k) if whole else f"{kind} {k!r}": v for k, v in given.items()}})
            return pd.DataFrame({k: _positional(v) for k, v in columns.items()})
        return None if self.sensitive_features is None else self._own_columns(X).reset_index(drop=True)

    def _own_columns(self, X):
        """Return the sensitive columns of X; those that were dropped in ``fit`` are known by their names there."""
        wanted = column_list(self.sensitive_features)
        if hasattr(self, "_dropped"):
            names, known = frame_columns(X), getattr(self, "feature_names_in_", None)
            if names is not None and known is not None:
                wanted = [str(known[i]) for i in self._dropped]
            elif np.shape(X)[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {np.shape(X)[1]} columns, but fit saw {self.n_features_in_}, so that sensitive_features="
                    f"{self.sensitive_features!r} cannot be found by position. Pass X with these columns, or the groups as "
                    f"sensitive_features."
                )
        return take_columns(X, wanted)

    def _remember_dropped(self, X):
        """Return X validated; note which of its columns the wrapped classifier is not shown."""
        if self.sensitive_features is None:
            raise ValueError("drop_sensitive=True needs sensitive_features=<column(s) of X> to know what to drop.")
        if frame_columns(X) is not None:
            validate_data(self, X, reset=True, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=True, accept_sparse="csr", dtype=None, ensure_all_finite=False)
        take_columns(X[:1] if frame_columns(X) is None else X, self.sensitive_features)  # refuses what is not there
        names = frame_columns(X)
        self._dropped = tuple(
            names.index(c) if isinstance(c, str) else c % self.n_features_in_
            for c in column_list(self.sensitive_features)
        )
        return X

    def _without_sensitive(self, X):
        """Return X as the wrapped classifier takes it: without the columns to drop, which need not be there."""
        if not self.drop_sensitive or self.sensitive_features is None:
            return X
        names, known = frame_columns(X), getattr(self, "feature_names_in_", None)
        dropped = list(getattr(self, "_dropped", column_list(self.sensitive_features)))
        if names is not None and known is not None:
            return drop_columns(X, [str(known[i]) for i in dropped])
        if names is None:
            X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
        width = X.shape[1]
        if width == getattr(self._inner(), "n_features_in_", None):
            return X
        if width != getattr(self, "n_features_in_", width):
            raise ValueError(
                f"X has {width} features, but FairnessAuditor is expecting {self.n_features_in_} features as input, or "
                f"{self.n_features_in_ - len(set(dropped))} without those it drops."
            )
        return drop_columns(X, dropped)

    # -------------------------------------------------------------------------------------------------------- delegation
    def _inner(self):
        return getattr(self, "estimator_", self.estimator)

    def _delegate(self, method, X, args, params):
        check_is_fitted(self)
        inner = self._inner()
        named = method == "predict" and self.sensitive_features is not None and "sensitive_features" not in params
        if named and _wants_groups(inner, "predict"):
            params["sensitive_features"] = _as_argument(self._own_columns(X), X)
        if _routing_enabled():
            params = process_routing(self, method, **params)["estimator"][method]
        return getattr(inner, method)(self._without_sensitive(X), *args, **params)

    @available_if(_inner_has("predict"))
    def predict(self, X, **params):
        """Return the wrapped classifier's decisions, unchanged.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features.
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._delegate("predict", X, (), params)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X, **params):
        """Return the wrapped classifier's ``predict_proba``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features.
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._delegate("predict_proba", X, (), params)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X, **params):
        """Return the wrapped classifier's ``predict_log_proba``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features.
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._delegate("predict_log_proba", X, (), params)

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X, **params):
        """Return the wrapped classifier's ``decision_function``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features.
        **params
            Passed on.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._delegate("decision_function", X, (), params)

    @available_if(_inner_has("score"))
    def score(self, X, y, sample_weight=None, **params):
        """Return the wrapped classifier's ``score``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, passed on if given.
        **params
            Passed on.

        Returns
        -------
        float
        """
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        return self._delegate("score", X, (y,), params)

    @property
    def classes_(self):
        """Classes of the wrapped classifier."""
        inner = self._inner()
        return self._classes if not hasattr(inner, "classes_") and hasattr(self, "_classes") else inner.classes_

    # --------------------------------------------------------------------------------------------------------- protocol
    def __sklearn_is_fitted__(self):
        if hasattr(self, "estimator_"):
            return True
        if not isinstance(self.estimator, FrozenEstimator):
            return False
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            return False
        return True

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type or "classifier"
        if inner.classifier_tags is not None:
            tags.classifier_tags = inner.classifier_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.target_tags.multi_output = False
        tags.non_deterministic = inner.non_deterministic
        return tags

    def get_metadata_routing(self):
        """Return the routing of ``fit`` (its own ``sensitive_features`` too) and of the delegated methods.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping()
        for method in ("fit", *_DELEGATED):
            mapping.add(caller=method, callee=method)
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)


# ------------------------------------------------------------------------------------------------------------- helpers
def _no_score(estimator, X, y):
    """Score nothing: the cross-validation is run for its fitted models."""
    return 0.0


def _routing_enabled() -> bool:
    return bool(get_config().get("enable_metadata_routing", False))


def _frozen(estimator) -> bool:
    """Tell whether ``fit`` leaves the decisions as they are: frozen, also at the end of a pipeline or under a threshold."""
    from sklearn.model_selection import FixedThresholdClassifier

    while not isinstance(estimator, FrozenEstimator):  # first, since it has the attributes of what it holds
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, FixedThresholdClassifier | FairnessAuditor):
            estimator = estimator.estimator
        else:
            return False
    return True


def _wants_groups(estimator, method: str) -> bool:
    """Tell whether a method asks for ``sensitive_features``: by name, as fairlearn's mitigators do, or by routing."""
    function = getattr(estimator, method, None)
    if function is not None and "sensitive_features" in inspect.signature(function).parameters:
        return True
    return _routing_enabled() and bool(get_routing_for_object(estimator).consumes(method, ["sensitive_features"]))


def _groups_given(estimator, method, groups, X):
    """Return the groups as an argument of a method, where it asks for them."""
    return {"sensitive_features": _as_argument(groups, X)} if _wants_groups(estimator, method) else {}


def _placed(values, order):
    """Return values of rows, in the order they came in, in the order of the rows."""
    placed = np.empty_like(values)
    placed[order] = values
    return placed


def _as_argument(groups, X):
    """Return groups as a method of X is handed them: one column as a Series, with the index of X if it has one."""
    if isinstance(X, pd.DataFrame) and groups.index is not X.index:
        groups = groups.set_axis(X.index)
    return groups.iloc[:, 0] if groups.shape[1] == 1 else groups


def _positional(values):
    """Return a column of any library as a Series numbered from 0."""
    if not isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray | list | tuple):
        values = np.asarray(values)
    return pd.Series(values).reset_index(drop=True)


def _paired_by_position(y, X) -> bool:
    """Tell whether X and y are pandas objects with different indexes, which scikit-learn pairs by position."""
    return isinstance(y, pd.Series | pd.DataFrame) and isinstance(X, pd.DataFrame) and not y.index.equals(X.index)


def _hash_rows(X) -> Any:
    """Return a 64-bit hash of each row, which does not depend on its index or position."""
    if issparse(X):
        return _hash_sparse(X)
    if isinstance(X, pd.DataFrame):
        frame = X
    elif (names := frame_columns(X)) is not None:
        frame = take_columns(X, list(range(len(names))))
    else:
        array = np.asarray(X)
        frame = pd.DataFrame(array.reshape(len(array), -1))
    frame = frame.set_axis(range(frame.shape[1]), axis=1)
    try:
        return pd.util.hash_pandas_object(frame, index=False).to_numpy()
    except TypeError:  # dicts and the like cannot be factorized; without that they are hashed as text
        return pd.util.hash_pandas_object(frame, index=False, categorize=False).to_numpy()


def _hash_sparse(X) -> Any:
    """Return the hash of each row of a sparse matrix: a sum over its entries, so that their order does not matter."""
    X = X.tocsr()
    values = pd.util.hash_array(np.asarray(X.data, dtype=float)) * (2 * pd.util.hash_array(X.indices) + 1)
    values[X.data == 0] = 0  # stored zeros
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values)])
    return total[X.indptr[1:]] - total[X.indptr[:-1]]


def _remember(hashes) -> tuple[Any, float]:
    """Return the distinct hashes, sorted, and the share of rows that are not the only one of their kind."""
    distinct, counts = np.unique(hashes, return_counts=True)
    return distinct, float(counts[counts > 1].sum() / max(1, hashes.size))
