"""FairnessAuditor: predicts as what it wraps, behaves as scikit-learn's own meta-estimators do, audits rows held out."""

import copy
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    check_cv,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from statsmodels.stats.weightstats import DescrStatsW
from threadpoolctl import threadpool_limits

from sklearn_ethiclens import FairnessAuditor, Tally, audit, make_fairness_scorer
from sklearn_ethiclens.exceptions import FairnessGateError, TrainingRowsWarning

NUMBERS = ["x0", "x1", "x2"]
FAST = {"n_resamples": 100}


def people(n=600, seed=0, index=None):
    """Return X with the attributes race and sex among its columns, and y in {0, 1}."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=NUMBERS, index=index)
    X["race"] = rng.choice(["a", "b"], n)
    X["sex"] = rng.choice(["f", "m"], n)
    y = (X["x0"] + 0.8 * (X["race"] == "a") + rng.normal(size=n) > 0.4).astype(int).rename("y")
    return X, y


def dropping(classifier=None):
    """Return a pipeline that drops race and sex."""
    scaled = make_column_transformer((StandardScaler(), NUMBERS))
    return make_pipeline(scaled, LogisticRegression() if classifier is None else classifier)


def encoding():
    """Return a pipeline that takes every column it gets, text one-hot."""
    text = OneHotEncoder(handle_unknown="ignore")
    chosen = make_column_transformer(
        (text, lambda X: [c for c in X.columns if c in ("race", "sex")]), remainder="passthrough"
    )
    return make_pipeline(chosen, LogisticRegression())


def numeric(n=600, seed=0):
    """Return an array whose column 0 is a group coded 0/1, and y."""
    X, y = people(n, seed)
    return np.column_stack([X["race"] == "a", X[NUMBERS]]).astype(float), y.to_numpy()


def stored(audited):
    """Return an audit as JSON, without how its predictions were come by."""
    return audited.annotate(model=None).to_json()


def by_hand(y, predictions, groups, **options):
    options = {**FAST, **options}
    return stored(audit(np.asarray(y), predictions, sensitive_features=groups, **options))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small fits: threads that wait for each other on a busy machine would take minutes."""
    with threadpool_limits(1):
        yield


X, Y = people()
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, test_size=0.5, random_state=0, stratify=Y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# ------------------------------------------------------------------------------------------------------- the protocol
def configured():
    return FairnessAuditor(
        dropping(),
        sensitive_features=["race", "sex"],
        cv=KFold(3),
        reference={"race": "a"},
        intersections="all",
        **FAST,
    )


def test_constructor_keeps_what_it_is_given():
    given = ["race", "sex"]
    auditor = FairnessAuditor(LogisticRegression(C=2), sensitive_features=given, n_jobs=2)
    assert auditor.sensitive_features is given
    assert auditor.get_params()["estimator__C"] == 2
    assert auditor.set_params(estimator__C=3).estimator.C == 3
    copied = clone(auditor)
    assert copied.get_params(deep=False) | {"estimator": None} == auditor.get_params(deep=False) | {"estimator": None}
    assert copied.estimator is not auditor.estimator
    assert repr(auditor) == (
        "FairnessAuditor(estimator=LogisticRegression(C=3), n_jobs=2,\n                sensitive_features=['race', 'sex'])"
    )


def test_html_shows_the_wrapped_estimator_before_and_after_fit():
    auditor = configured()
    assert "LogisticRegression" in auditor._repr_html_()
    assert "LogisticRegression" in auditor.fit(X, Y)._repr_html_()


def test_fitted_state_survives_pickle_joblib_and_deepcopy(tmp_path):
    auditor = configured().fit(X_TRAIN, Y_TRAIN)
    joblib.dump(auditor, tmp_path / "auditor.joblib")
    expected = auditor.audit(X_TEST, Y_TEST).to_json()
    for again in (
        pickle.loads(pickle.dumps(auditor)),
        joblib.load(tmp_path / "auditor.joblib"),
        copy.deepcopy(auditor),
    ):
        np.testing.assert_array_equal(again.predict(X_TEST), auditor.predict(X_TEST))
        assert again.audit_.to_json() == auditor.audit_.to_json()
        assert again.audit(X_TEST, Y_TEST).to_json() == expected
        with pytest.warns(TrainingRowsWarning):
            again.audit(X_TRAIN, Y_TRAIN)


def test_clone_drops_what_fit_set():
    again = clone(configured().fit(X, Y))
    assert [name for name in vars(again) if name.endswith("_") or name.startswith("_")] == []


def test_refit_without_cv_forgets_the_earlier_audit():
    auditor = configured().fit(X, Y)
    auditor.set_params(cv=None).fit(X, Y)
    assert not hasattr(auditor, "audit_")
    assert not hasattr(auditor, "oof_predictions_")


def test_o14_it_is_a_classifier_and_cross_validation_stratifies():
    auditor = FairnessAuditor(LogisticRegression())
    assert is_classifier(auditor)
    assert isinstance(check_cv(3, [0] * 9 + [1] * 3, classifier=is_classifier(auditor)), StratifiedKFold)
    numbers, y = numeric()
    scores = cross_validate(auditor, numbers, y, scoring="roc_auc", error_score="raise")["test_score"]
    assert scores.tolist() == cross_validate(LogisticRegression(), numbers, y, scoring="roc_auc")["test_score"].tolist()


def test_o14_it_is_a_classifier_around_what_is_not_seen_as_one():
    mitigator = pytest.importorskip("fairlearn.postprocessing").ThresholdOptimizer(estimator=LogisticRegression())
    assert not is_classifier(mitigator)
    assert is_classifier(FairnessAuditor(mitigator))


@pytest.mark.parametrize("fitted", [False, True])
def test_o14_methods_exist_only_where_the_wrapped_estimator_has_them(fitted):
    numbers, y = numeric()
    for inner in (LogisticRegression(), LinearSVC(), DecisionTreeClassifier(), dropping(LinearSVC())):
        auditor = FairnessAuditor(inner)
        if fitted:
            auditor.fit(X if hasattr(inner, "steps") else numbers, y)
        for name in ("predict", "predict_proba", "predict_log_proba", "decision_function", "score"):
            assert hasattr(auditor, name) == hasattr(inner, name), (inner, name)


def test_o14_attributes_are_those_of_the_wrapped_estimator():
    auditor = FairnessAuditor(LogisticRegression())
    assert not any(hasattr(auditor, name) for name in ("classes_", "n_features_in_", "feature_names_in_"))
    auditor.fit(X[NUMBERS], np.where(Y, "yes", "no"))
    assert auditor.classes_.tolist() == ["no", "yes"]
    assert auditor.n_features_in_ == 3
    assert auditor.feature_names_in_.tolist() == NUMBERS
    auditor.fit(X[NUMBERS].to_numpy(), Y)
    assert auditor.classes_.tolist() == [0, 1]
    assert not hasattr(auditor, "feature_names_in_")


def test_not_fitted_is_said():
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features="race")
    for call in (auditor.predict, lambda X: auditor.audit(X, Y)):
        with pytest.raises(NotFittedError, match="FairnessAuditor"):
            call(X)


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (LinearRegression(), "audits classifiers; got the regressor LinearRegression"),
        (KMeans(), "audits classifiers; got the clusterer KMeans"),
        (make_pipeline(StandardScaler(), LinearRegression()), "got the regressor Pipeline"),
        (StandardScaler(), "StandardScaler does not predict"),
    ],
)
def test_what_is_no_classifier_is_refused(inner, words):
    with pytest.raises(TypeError, match=words):
        FairnessAuditor(inner).fit(*numeric())


@pytest.mark.parametrize("y", [np.tile([[0, 1], [1, 0]], (300, 1)), np.tile([[0, 2], [1, 0]], (300, 1))])
def test_several_targets_are_refused(y):
    with pytest.raises(TypeError, match="audits one target at a time; y is multi.*Wrap one classifier"):
        FairnessAuditor(DecisionTreeClassifier()).fit(numeric()[0], y)


def test_column_y_is_read_as_one_target():
    numbers, y = numeric()
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features=0, cv=3, **FAST)
    with pytest.warns(DataConversionWarning):
        auditor.fit(numbers, y[:, None])
    assert stored(auditor.audit_) == stored(clone(auditor).fit(numbers, y).audit_)


def test_fit_leaves_what_it_is_given_as_it_was():
    given_X, given_y, inner = X.copy(), Y.copy(), dropping()
    FairnessAuditor(inner, sensitive_features="race", cv=3, **FAST).fit(given_X, given_y)
    FairnessAuditor(encoding(), sensitive_features="race", drop_sensitive=True, **FAST).fit(given_X, given_y)
    pd.testing.assert_frame_equal(given_X, X)
    pd.testing.assert_series_equal(given_y, Y)
    assert not hasattr(inner[-1], "coef_")


def test_audit_sets_nothing_on_the_auditor():
    auditor = configured().fit(X_TRAIN, Y_TRAIN)
    before = dict(vars(auditor))
    auditor.audit(X_TEST, Y_TEST)
    assert vars(auditor).keys() == before.keys()
    assert all(vars(auditor)[name] is value for name, value in before.items())


# --------------------------------------------------------------------------------------- predictions are never changed
@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(),
        LogisticRegression(class_weight="balanced"),
        LinearSVC(),
        DecisionTreeClassifier(max_depth=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        FixedThresholdClassifier(LogisticRegression(), threshold=0.3),
        TunedThresholdClassifierCV(LogisticRegression(), cv=3, thresholds=10),
        CalibratedClassifierCV(LinearSVC(), cv=3),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_every_output_is_that_of_the_wrapped_estimator(inner):
    numbers, y = numeric()
    train, test = slice(0, 300), slice(300, None)
    y = np.where(y, "yes", "no") if isinstance(inner, LogisticRegression | LinearSVC) else y
    auditor = FairnessAuditor(clone(inner), sensitive_features=0, pos_label=max(y), cv=3, **FAST)
    auditor.fit(numbers[train], y[train])
    alone = clone(inner).fit(numbers[train], y[train])
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(inner, name):
            np.testing.assert_array_equal(getattr(auditor, name)(numbers[test]), getattr(alone, name)(numbers[test]))
    assert auditor.score(numbers[test], y[test]) == alone.score(numbers[test], y[test])
    made = auditor.audit(numbers[test], y[test])
    groups = {"0": numbers[test, 0]}
    assert stored(made) == by_hand(y[test], alone.predict(numbers[test]), groups, pos_label=max(y))
    predicted = cross_val_predict(inner, numbers[train], y[train], cv=3)
    np.testing.assert_array_equal(auditor.oof_predictions_, predicted)


class ByColumn(ClassifierMixin, BaseEstimator):
    """P(bad) is the first column: the classifier of field report O15, whose positive class sorts first."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0]
        return np.c_[p, 1 - p]

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


@pytest.mark.parametrize(("pos_label", "selected"), [("bad", [2, 3]), ("good", [0, 1])])
def test_o15_the_positive_class_may_sort_first(pos_label, selected):
    scores = np.array([[0.14], [0.06], [0.86], [0.94]])
    y, groups = np.array(["good", "good", "bad", "bad"]), ["x", "y", "x", "y"]
    auditor = FairnessAuditor(FrozenEstimator(ByColumn().fit(scores, y)), pos_label=pos_label, **FAST)
    assert np.flatnonzero(auditor.predict(scores) == pos_label).tolist() == selected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # four rows are too few
        rates = auditor.audit(scores, y, sensitive_features=groups).rates()
    assert rates.loc[rates["rate"].isin(["selection_rate", "true_positive_rate"]), "value"].tolist() == [0.5, 0.5, 1, 1]


# ------------------------------------------------------------------------------------------------- how X and y may come
def frames_and_arrays():
    numbers, y = numeric()
    names = ["race", *NUMBERS]
    frame = pd.DataFrame(numbers, columns=names)
    yield pytest.param(numbers, 0, id="numpy")
    yield pytest.param(numbers, -4, id="numpy, from the end")
    yield pytest.param(numbers.tolist(), 0, id="list")
    yield pytest.param(frame, "race", id="pandas")
    yield pytest.param(frame, ["race"], id="pandas, list of names")
    yield pytest.param(frame, 0, id="pandas, position")
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array):
        yield pytest.param(kind(numbers), 0, id=kind.__name__)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize(("features", "column"), list(frames_and_arrays()))
def test_numbers_are_the_same_however_X_comes(features, column, drop):
    numbers, y = numeric()
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features=column, drop_sensitive=drop, cv=3, **FAST)
    auditor.fit(features, y)
    groups = {auditor.audit_.tally.attributes[0]: numbers[:, 0]}
    predicted = cross_val_predict(LogisticRegression(), numbers[:, 1:] if drop else numbers, y, cv=3)
    if sparse.issparse(features):
        assert np.mean(auditor.oof_predictions_ == predicted) > 0.99  # another solver path
        predicted = auditor.oof_predictions_
    assert stored(auditor.audit_) == by_hand(y, predicted, groups)
    assert auditor.n_features_in_ == 4
    assert auditor.estimator_.n_features_in_ == 4 - drop
    with pytest.warns(TrainingRowsWarning):
        auditor.audit(features, y)


@pytest.mark.engines
@pytest.mark.parametrize("drop", [False, True])
def test_polars_frames(drop):
    pl = pytest.importorskip("polars")
    numbers, y = numeric()
    frame = pl.DataFrame(dict(zip(["race", *NUMBERS], numbers.T, strict=True)))
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features="race", drop_sensitive=drop, cv=3, **FAST)
    auditor.fit(frame, pl.Series("y", y))
    predicted = cross_val_predict(LogisticRegression(), numbers[:, 1:] if drop else numbers, y, cv=3)
    assert stored(auditor.audit_) == by_hand(y, predicted, {"race": numbers[:, 0]})
    assert auditor.feature_names_in_.tolist() == ["race", *NUMBERS]
    if drop:
        assert auditor.estimator_.feature_names_in_.tolist() == NUMBERS
        np.testing.assert_array_equal(auditor.predict(frame.drop("race")), auditor.predict(frame))
    with pytest.warns(TrainingRowsWarning):
        auditor.audit(frame, pl.Series("y", y))
    fresh, fresh_y = numeric(seed=1)
    fresh = pl.DataFrame(dict(zip(["race", *NUMBERS], fresh.T, strict=True)))
    text = fresh["race"].cast(pl.Int64).cast(pl.String)
    given = auditor.audit(fresh, pl.Series("y", fresh_y), sensitive_features=text.alias("code"))
    assert given.tally.attributes == ("code",)
    assert given.tally.n_rows == 600


@pytest.mark.engines
def test_polars_frame_into_a_pipeline_that_drops_by_name():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({name: X[name].to_numpy() for name in X.columns})
    number = FunctionTransformer(lambda frame: frame.select(NUMBERS).to_numpy())
    auditor = FairnessAuditor(
        make_pipeline(number, LogisticRegression()), sensitive_features=["race", "sex"], cv=3, **FAST
    ).fit(frame, Y)
    predicted = cross_val_predict(LogisticRegression(), X[NUMBERS].to_numpy(), Y, cv=3)
    assert stored(auditor.audit_) == by_hand(Y, predicted, X[["race", "sex"]].reset_index(drop=True))


def test_string_labels_and_adverse_outcomes_are_judged_as_given():
    labels = np.where(Y, "yes", "no")
    auditor = FairnessAuditor(dropping(), sensitive_features="race", pos_label="yes", cv=3, **FAST).fit(X, labels)
    by_numbers = FairnessAuditor(dropping(), sensitive_features="race", cv=3, **FAST).fit(X, Y)
    np.testing.assert_array_equal(auditor.audit_.tally.counts, by_numbers.audit_.tally.counts)
    assert 0 < auditor.audit_.rates()["value"].iloc[0] < 1
    adverse = auditor.set_params(outcome="adverse", reference="a").fit(X, labels).audit_
    assert adverse.outcome == "adverse"
    assert adverse.references[0].group == "a"


def test_string_labels_without_pos_label_are_an_error():
    with pytest.raises(ValueError, match="hold the labels .* pass pos_label"):
        FairnessAuditor(dropping(), sensitive_features="race", cv=3).fit(X, np.where(Y, "yes", "no"))


def test_several_classes_are_judged_one_against_the_rest():
    numbers, y = make_classification(600, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    groups = pd.Series(np.where(np.arange(600) % 2, "a", "b"), name="race")
    auditor = FairnessAuditor(LogisticRegression(), pos_label=2, cv=3, **FAST).fit(
        numbers, y, sensitive_features=groups
    )
    predicted = cross_val_predict(LogisticRegression(), numbers, y, cv=3)
    np.testing.assert_array_equal(auditor.oof_predictions_, predicted)
    by_rest = audit(y == 2, predicted == 2, sensitive_features=groups, **FAST)
    np.testing.assert_array_equal(auditor.audit_.tally.counts, by_rest.tally.counts)
    with pytest.raises(ValueError, match="hold 3 labels.*pass pos_label"):
        auditor.set_params(pos_label=None).fit(numbers, y, sensitive_features=groups)


def test_texts_and_dicts_as_X():
    texts = [f"word{i} {'good' if v > 0 else 'poor'}" for i, v in enumerate(X["x0"])]
    auditor = FairnessAuditor(make_pipeline(CountVectorizer(), LogisticRegression()), cv=3, **FAST)
    auditor.fit(texts, Y.tolist(), sensitive_features=X["race"].tolist())
    assert auditor.audit_.tally.n_rows == 600
    with pytest.warns(TrainingRowsWarning):
        auditor.audit(texts, Y, sensitive_features=X["race"])
    dicts = X[NUMBERS].to_dict("records")
    auditor = FairnessAuditor(make_pipeline(DictVectorizer(), LogisticRegression()), **FAST).fit(dicts, Y)
    with pytest.warns(TrainingRowsWarning):
        auditor.audit(dicts, Y, sensitive_features=X["race"])


def test_set_output_reaches_a_wrapped_chain():
    step = make_column_transformer(
        (StandardScaler(), NUMBERS), ("passthrough", ["race"]), verbose_feature_names_out=False
    )
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features="race", drop_sensitive=True, **FAST)
    pipe = make_pipeline(step, auditor).set_output(transform="pandas").fit(X_TRAIN, Y_TRAIN)
    assert pipe[-1].feature_names_in_.tolist() == [*NUMBERS, "race"]
    assert pipe[-1].estimator_.feature_names_in_.tolist() == NUMBERS
    np.testing.assert_array_equal(pipe.predict(X_TEST), dropping().fit(X_TRAIN, Y_TRAIN).predict(X_TEST))
    assert pipe[-1].audit(pipe[:-1].transform(X_TEST), Y_TEST).tally.attributes == ("race",)


# ----------------------------------------------------------------------------------------------- columns that are dropped
def test_dropped_columns_need_not_be_there_to_predict():
    auditor = FairnessAuditor(encoding(), sensitive_features="race", drop_sensitive=True, cv=3, **FAST)
    auditor.fit(X_TRAIN, Y_TRAIN)
    alone = encoding().fit(X_TRAIN.drop(columns="race"), Y_TRAIN)
    assert auditor.feature_names_in_.tolist() == list(X.columns)
    assert auditor.n_features_in_ == 5
    assert auditor.estimator_.n_features_in_ == 4
    for features in (X_TEST, X_TEST.drop(columns="race")):
        np.testing.assert_array_equal(auditor.predict_proba(features), alone.predict_proba(X_TEST.drop(columns="race")))
    groups = X_TEST["race"].reset_index(drop=True)
    assert stored(auditor.audit(X_TEST, Y_TEST)) == by_hand(Y_TEST, alone.predict(X_TEST.drop(columns="race")), groups)
    assert stored(auditor.audit(X_TEST.drop(columns="race"), Y_TEST, sensitive_features=X_TEST["race"])) == by_hand(
        Y_TEST, auditor.predict(X_TEST), groups
    )
    with pytest.raises(ValueError, match=r"\['race'\] are not among the columns of X: \['x0', 'x1', 'x2', 'sex'\]"):
        auditor.audit(X_TEST.drop(columns="race"), Y_TEST)
    with pytest.warns(TrainingRowsWarning):
        auditor.audit(X_TRAIN.drop(columns="race"), Y_TRAIN, sensitive_features=X_TRAIN["race"])


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, pd.DataFrame, sparse.csc_matrix])
def test_dropped_positions_are_told_by_the_width_of_X(convert):
    numbers, y = numeric()
    numbers = numbers[:, [1, 0, 2, 3]]
    whole, without = convert(numbers), convert(np.ascontiguousarray(numbers[:, [0, 2, 3]]))
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features=1, drop_sensitive=True, **FAST).fit(whole, y)
    assert auditor.n_features_in_ == 4
    assert auditor.estimator_.n_features_in_ == 3
    np.testing.assert_array_equal(auditor.predict(whole), auditor.predict(without))
    with pytest.raises(ValueError, match="fit saw 4, so that sensitive_features=1 cannot be found by position"):
        auditor.audit(without, y)
    with pytest.raises(ValueError, match="X has 2 features, but FairnessAuditor is expecting 4 .*or 3 without"):
        auditor.predict(convert(np.ascontiguousarray(numbers[:, :2])))


def test_position_of_a_frame_is_the_name_it_had_in_fit():
    auditor = FairnessAuditor(encoding(), sensitive_features=3, drop_sensitive=True, **FAST).fit(X_TRAIN, Y_TRAIN)
    assert auditor.estimator_.feature_names_in_.tolist() == [*NUMBERS, "sex"]
    np.testing.assert_array_equal(auditor.predict(X_TEST), auditor.predict(X_TEST.drop(columns="race")))
    moved = X_TEST[["race", *NUMBERS, "sex"]]
    assert stored(auditor.audit(moved, Y_TEST)) == stored(auditor.audit(X_TEST, Y_TEST))


def test_dropping_what_cannot_be_found_is_refused():
    numbers, y = numeric()
    with pytest.raises(ValueError, match="drop_sensitive=True needs sensitive_features"):
        FairnessAuditor(LogisticRegression(), drop_sensitive=True).fit(numbers, y, sensitive_features=numbers[:, 0])
    with pytest.raises(ValueError, match=r"\['race'\] are column names, but X is a ndarray"):
        FairnessAuditor(LogisticRegression(), sensitive_features="race", drop_sensitive=True).fit(numbers, y)
    with pytest.raises(ValueError, match=r"\['rase'\] are not among the columns of X"):
        FairnessAuditor(encoding(), sensitive_features="rase", drop_sensitive=True).fit(X, Y)


def test_frozen_model_that_never_saw_the_column_audits_by_it():
    numbers, y = numeric()
    frame = pd.DataFrame(numbers, columns=["race", *NUMBERS])
    for data, column, rest in ((frame, "race", frame[NUMBERS]), (numbers, 0, numbers[:, 1:])):
        model = LogisticRegression().fit(rest, y)
        auditor = FairnessAuditor(FrozenEstimator(model), sensitive_features=column, drop_sensitive=True, **FAST)
        np.testing.assert_array_equal(auditor.predict(data), model.predict(rest))
        np.testing.assert_array_equal(auditor.predict(rest), model.predict(rest))
        assert auditor.audit(data, y).tally.n_rows == 600


# ------------------------------------------------------------------------------------------------- where the groups are
def test_explicit_groups_win_over_columns():
    auditor = FairnessAuditor(dropping(), sensitive_features="race", cv=3, **FAST)
    auditor.fit(X_TRAIN, Y_TRAIN, sensitive_features=X_TRAIN["sex"])
    assert auditor.audit_.tally.attributes == ("sex",)
    assert auditor.audit(X_TEST, Y_TEST).tally.attributes == ("race",)
    assert auditor.audit(X_TEST, Y_TEST, sensitive_features=X_TEST["sex"]).tally.attributes == ("sex",)


@pytest.mark.parametrize(
    "convert",
    [
        lambda s: s,
        lambda s: s.to_numpy(),
        lambda s: s.tolist(),
        lambda s: {"race": s},
        lambda s: {"race": s.tolist()},
        lambda s: s.to_frame(),
        lambda s: s.astype("category"),
    ],
    ids=["Series", "array", "list", "dict of Series", "dict of lists", "frame", "category"],
)
@pytest.mark.parametrize("as_array", [False, True])
def test_groups_come_in_any_form(convert, as_array):
    groups = convert(X["race"])
    features = X[NUMBERS].to_numpy() if as_array else X[NUMBERS]
    auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST).fit(features, Y, sensitive_features=groups)
    predicted = cross_val_predict(LogisticRegression(), features, Y, cv=3)
    name = auditor.audit_.tally.attributes[0]
    assert stored(auditor.audit_) == by_hand(Y, predicted, {name: X["race"].to_numpy()})


def test_reordered_index_is_refused():
    features, y = people(index=np.arange(600) + 1000)
    auditor = FairnessAuditor(dropping(), sensitive_features="race", cv=3, **FAST)
    wrong = features["race"].sample(frac=1, random_state=0)
    for form in (wrong, wrong.to_frame(), {"race": wrong}):
        with pytest.raises(ValueError, match="the index of .* differs from that of X"):
            auditor.fit(features, y, sensitive_features=form)
    auditor.fit(features, y)
    with pytest.raises(ValueError, match="the index of sensitive_features differs from that of X"):
        auditor.audit(features, y, sensitive_features=wrong)
    with pytest.raises(
        ValueError, match="one entry per row; got X 600, y 600, sensitive feature 'sensitive_feature' 599"
    ):
        auditor.audit(features, y, sensitive_features=features["race"].tolist()[:-1])


def test_an_index_that_does_not_start_at_0_is_no_obstacle():
    shifted, y = X.set_axis(range(1000, 1600)), Y.set_axis(range(1000, 1600))
    auditor = FairnessAuditor(dropping(), sensitive_features="race", cv=3, **FAST)
    expected = stored(auditor.fit(X, Y).audit_)
    assert stored(clone(auditor).fit(shifted, y).audit_) == expected
    assert stored(clone(auditor).fit(shifted, Y).audit_) == expected  # as scikit-learn pairs X and y: by position
    assert stored(clone(auditor).fit(shifted, y, sensitive_features=shifted["race"]).audit_) == expected


def test_missing_column_is_refused_with_the_columns_there_are():
    words = r"\['rase'\] are not among the columns of X: \['x0', 'x1', 'x2', 'race', 'sex'\]"
    with pytest.raises(ValueError, match=words):
        FairnessAuditor(dropping(), sensitive_features="rase").fit(X, Y)
    auditor = FairnessAuditor(FrozenEstimator(dropping().fit(X, Y)), sensitive_features="rase")
    with pytest.raises(ValueError, match=words):
        auditor.audit(X, Y)
    numbers, y = numeric()
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features=4).fit(numbers, y)
    with pytest.raises(ValueError, match=r"\[4\] are positions, but X has 4 columns"):
        auditor.audit(numbers, y)
    with pytest.raises(TypeError, match="column name.*got ndarray"):
        FairnessAuditor(dropping(), sensitive_features=X["race"].to_numpy()).fit(X, Y)


def test_nothing_to_audit_by_is_an_error_only_where_something_is_audited():
    auditor = FairnessAuditor(LogisticRegression()).fit(X[NUMBERS], Y)
    with pytest.raises(ValueError, match="nothing to audit by"):
        auditor.audit(X[NUMBERS], Y)
    with pytest.raises(ValueError, match="cv is set, so that fit audits, but there are no groups"):
        auditor.set_params(cv=3).fit(X[NUMBERS], Y)


# ----------------------------------------------------------------------------------------------------- out of fold, gate
@pytest.mark.parametrize(
    "cv",
    [3, KFold(4), StratifiedKFold(3, shuffle=True, random_state=1), list(KFold(2).split(X))],
    ids=["int", "splitter", "shuffled", "iterable"],
)
def test_out_of_fold_audit_is_that_of_cross_val_predict(cv):
    auditor = FairnessAuditor(dropping(), sensitive_features=["race", "sex"], intersections="all", cv=cv, **FAST).fit(
        X, Y
    )
    predicted = cross_val_predict(dropping(), X, Y, cv=cv)
    np.testing.assert_array_equal(auditor.oof_predictions_, predicted)
    assert auditor.oof_predictions_.dtype == predicted.dtype
    assert stored(auditor.audit_) == by_hand(Y, predicted, X[["race", "sex"]], intersections="all")
    assert auditor.audit_.provenance["data"]["model"].startswith("Pipeline; out-of-fold predictions of ")


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0), "0 are in none and 600 in several"),
        (ShuffleSplit(1, test_size=100, random_state=0), "500 are in none and 0 in several"),
        (TimeSeriesSplit(3), "150 are in none and 0 in several"),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_folds_that_repeat_or_miss_rows_are_refused_before_anything_is_fitted(cv, words):
    auditor = FairnessAuditor(dropping(), sensitive_features="race", cv=cv)
    with pytest.raises(ValueError, match=f"every row in exactly one test fold.*of 600 rows {words}"):
        auditor.fit(X, Y)
    assert not hasattr(auditor, "estimator_")


def test_workers_change_no_byte():
    one = FairnessAuditor(dropping(), sensitive_features="race", cv=3, **FAST).fit(X, Y)
    two = FairnessAuditor(dropping(), sensitive_features="race", cv=3, n_jobs=2, **FAST).fit(X, Y)
    assert one.audit_.to_json() == two.audit_.to_json()
    assert one.oof_predictions_.tobytes() == two.oof_predictions_.tobytes()


def test_audit_without_labels_judges_selection_only():
    auditor = FairnessAuditor(dropping(), sensitive_features="race", **FAST).fit(X_TRAIN, Y_TRAIN)
    made = auditor.audit(X_TEST, None)
    assert not made.tally.labelled
    assert stored(made) == stored(audit(None, auditor.predict(X_TEST), sensitive_features=X_TEST["race"], **FAST))


def test_gate():
    biased = FairnessAuditor(encoding(), sensitive_features="race", n_resamples=500)
    features, y = people(4000, seed=2)
    rng = np.random.default_rng(0)
    y = ((features["x0"] > np.where(features["race"] == "a", -1, 1)) ^ (rng.random(4000) < 0.1)).astype(int)
    held_out = slice(2000, None)
    made = biased.fit(features[:2000], y[:2000]).audit(features[held_out], y[held_out])
    with pytest.raises(FairnessGateError, match="disparate_impact|Disparate impact"):
        made.raise_if_flagged()
    y = ((features["x0"] > 0) ^ (rng.random(4000) < 0.1)).astype(int)
    even = FairnessAuditor(dropping(), sensitive_features="race", n_resamples=500).fit(features[:2000], y[:2000])
    even.audit(features[held_out], y[held_out]).raise_if_flagged()


# -------------------------------------------------------------------------------------------------------- training rows
def text_frame(n, seed):
    features, _ = people(n, seed)
    rng = np.random.default_rng(seed)
    features["city"] = rng.choice([f"city {i}" for i in range(50)], n)
    features["band"] = pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "high", "never"])
    features["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="s")
    features["count"] = pd.array(rng.integers(0, 9, n), dtype="Int64")
    features.iloc[::3, :3] = np.nan
    return features


def plain(n, seed):
    return people(n, seed)[0]


def array(n, seed):
    made = numeric(n, seed)[0]
    made[::4, 1] = np.nan
    return made


def sparse_rows(n, seed):
    made = sparse.random(n, 40, density=0.2, format="csr", random_state=seed)
    made.data[::7] = np.nan
    return made


class Constant(ClassifierMixin, BaseEstimator):
    """Answers 1 to everything, whatever it is."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return np.arange(X.shape[0]) % 2


def warned(auditor, features):
    n = features.shape[0]
    y, groups = np.arange(n) // 2 % 2, np.where(np.arange(n) % 3, "a", "b")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        auditor.audit(features, y, sensitive_features=groups)
    return any(issubclass(w.category, TrainingRowsWarning) for w in caught)


@pytest.mark.parametrize("make", [plain, text_frame, array, sparse_rows])
def test_training_rows_are_told_from_rows_held_out(make):
    whole = make(1000, 0)
    rng = np.random.default_rng(0)
    rows = [
        whole[i] if not isinstance(whole, pd.DataFrame) else whole.iloc[i] for i in (slice(0, 500), slice(500, 1000))
    ]
    train, test = rows
    auditor = FairnessAuditor(Constant(), **FAST).fit(train, np.arange(500) % 2)

    def take(features, order):
        return features.iloc[order] if isinstance(features, pd.DataFrame) else features[order]

    shuffled = take(train, rng.permutation(500))
    both = np.r_[0:500]
    mixed = {
        "itself": train,
        "a copy": train.copy(),
        "shuffled": shuffled,
        "60 %": take(train, rng.permutation(500)[:300]),
        "a few": take(train, rng.permutation(500)[:20]),
    }
    if isinstance(train, pd.DataFrame):
        mixed["renumbered"] = shuffled.reset_index(drop=True)
        mixed["two thirds"] = pd.concat([train, test.iloc[:250]])
    if sparse.issparse(train):
        mixed["CSC"] = train.tocsc()
    for name, features in mixed.items():
        assert warned(auditor, features), name
        assert warned(pickle.loads(pickle.dumps(auditor)), features), name
    assert not warned(auditor, test)
    third = take(whole, np.r_[both[:150], 500:1000])
    assert not warned(auditor, third)


def test_training_rows_warning_says_how_many_and_what_to_do():
    auditor = FairnessAuditor(dropping(), sensitive_features="race", **FAST).fit(X_TRAIN, Y_TRAIN)
    with pytest.warns(
        TrainingRowsWarning, match="100% of these rows are rows the model was fitted on.*cv= for out-of-fold"
    ):
        auditor.audit(X_TRAIN, Y_TRAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auditor.audit(X_TEST, Y_TEST)


@pytest.mark.parametrize("n_values", [2, 3, 6])
@pytest.mark.parametrize("n_test", [40, 400])
def test_fresh_rows_that_repeat_training_rows_by_chance_are_not_called_training_rows(n_values, n_test):
    calls = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        train, test = (rng.integers(0, n_values, (n, 4)).astype(float) for n in (1000, n_test))
        auditor = FairnessAuditor(Constant(), **FAST).fit(train, np.arange(1000) % 2)
        auditor._audit = lambda *args: None
        calls += warned(auditor, test)
    assert calls == 0


def test_training_rows_are_told_where_some_rows_repeat():
    rng = np.random.default_rng(0)
    train = rng.integers(0, 6, (1000, 4)).astype(float)
    auditor = FairnessAuditor(Constant(), **FAST).fit(train, np.arange(1000) % 2)
    assert 0.3 < auditor._repeated_share < 0.7
    assert warned(auditor, train)
    assert warned(auditor, train[:600])
    assert not warned(auditor, rng.integers(0, 6, (1000, 4)).astype(float))


# ------------------------------------------------------------------------------------------------------------ pipelines
def test_last_step_of_a_pipeline_takes_groups_through_fit():
    step = make_column_transformer((StandardScaler(), NUMBERS))
    pipe = make_pipeline(step, FairnessAuditor(LogisticRegression(), cv=3, **FAST))
    pipe.fit(X_TRAIN, Y_TRAIN, fairnessauditor__sensitive_features=X_TRAIN["race"])
    predicted = cross_val_predict(LogisticRegression(), step.fit_transform(X_TRAIN), Y_TRAIN, cv=3)
    assert stored(pipe[-1].audit_) == by_hand(Y_TRAIN, predicted, X_TRAIN["race"].reset_index(drop=True))
    np.testing.assert_array_equal(pipe.predict(X_TEST), dropping().fit(X_TRAIN, Y_TRAIN).predict(X_TEST))
    made = pipe[-1].audit(pipe[:-1].transform(X_TEST), Y_TEST, sensitive_features=X_TEST["race"])
    assert stored(made) == by_hand(Y_TEST, pipe.predict(X_TEST), X_TEST["race"].reset_index(drop=True))
    with pytest.warns(TrainingRowsWarning):
        pipe[-1].audit(pipe[:-1].transform(X_TRAIN), Y_TRAIN, sensitive_features=X_TRAIN["race"])


def test_last_step_of_a_pipeline_takes_groups_by_routing(routing):
    auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST).set_fit_request(sensitive_features=True)
    pipe = make_pipeline(make_column_transformer((StandardScaler(), NUMBERS)), auditor)
    pipe.fit(X_TRAIN, Y_TRAIN, sensitive_features=X_TRAIN["race"])
    with sklearn.config_context(enable_metadata_routing=False):
        plain = clone(pipe).fit(X_TRAIN, Y_TRAIN, fairnessauditor__sensitive_features=X_TRAIN["race"])
    assert pipe[-1].audit_.to_json() == plain[-1].audit_.to_json()
    made = pipe[-1].audit(pipe[:-1].transform(X_TEST), Y_TEST, sensitive_features=X_TEST["race"])
    assert made.tally.attributes == ("race",)


def test_around_a_search():
    search = GridSearchCV(dropping(), {"logisticregression__C": [0.1, 1]}, cv=3)
    auditor = FairnessAuditor(search, sensitive_features="race", cv=3, **FAST).fit(X_TRAIN, Y_TRAIN)
    alone = clone(search).fit(X_TRAIN, Y_TRAIN)
    assert auditor.estimator_.best_params_ == alone.best_params_
    np.testing.assert_array_equal(auditor.predict(X_TEST), alone.predict(X_TEST))
    np.testing.assert_array_equal(auditor.oof_predictions_, cross_val_predict(search, X_TRAIN, Y_TRAIN, cv=3))
    assert auditor.audit(X_TEST, Y_TEST).tally.n_rows == 300


def test_inside_a_search():
    auditor = FairnessAuditor(dropping(), sensitive_features="race", **FAST)
    grid = {"estimator__logisticregression__C": [0.1, 1]}
    scoring = {
        "accuracy": "accuracy",
        "gap": make_fairness_scorer("demographic_parity_difference", sensitive_features="race"),
    }
    search = GridSearchCV(auditor, grid, cv=3, scoring=scoring, refit="accuracy", error_score="raise").fit(
        X_TRAIN, Y_TRAIN
    )
    alone = GridSearchCV(dropping(), {"logisticregression__C": [0.1, 1]}, cv=3).fit(X_TRAIN, Y_TRAIN)
    np.testing.assert_array_equal(search.cv_results_["mean_test_accuracy"], alone.cv_results_["mean_test_score"])
    best = search.best_estimator_
    assert stored(best.audit(X_TEST, Y_TEST)) == by_hand(
        Y_TEST, alone.predict(X_TEST), X_TEST["race"].reset_index(drop=True)
    )
    with pytest.warns(TrainingRowsWarning):
        best.audit(X_TRAIN, Y_TRAIN)


class Watchful(LogisticRegression):
    """Notes the metadata that reaches ``fit``."""

    seen: list = []

    def fit(self, X, y, sample_weight=None, sensitive_features=None):
        Watchful.seen.append((len(X), sample_weight, sensitive_features))
        return super().fit(X, y, sample_weight)


def test_inside_a_search_metadata_is_sliced_by_fold():
    features = X[NUMBERS]
    Watchful.seen.clear()
    search = GridSearchCV(FairnessAuditor(Watchful(), cv=2, **FAST), {"estimator__C": [1.0]}, cv=3)
    search.fit(features, Y, sensitive_features=X["race"], sample_weight=np.arange(600.0))
    assert search.best_estimator_.audit_.tally.n_rows == 600
    assert [n for n, *_ in Watchful.seen] == [400, 200, 200] * 3 + [600, 300, 300]
    for n, weight, groups in Watchful.seen:
        assert len(weight) == len(groups) == n
        pd.testing.assert_series_equal(groups, X["race"].loc[groups.index], check_names=False)
        np.testing.assert_array_equal(weight, groups.index)


# ------------------------------------------------------------------------------------------------------ weights, routing
WEIGHTS = np.random.default_rng(3).uniform(0.1, 5, len(X))


def test_weights_reach_the_fit_of_every_fold():
    auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST)
    auditor.fit(X[NUMBERS], Y, sensitive_features=X["race"], sample_weight=WEIGHTS)
    alone = LogisticRegression().fit(X[NUMBERS], Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(auditor.estimator_.coef_, alone.coef_)
    predicted = cross_val_predict(LogisticRegression(), X[NUMBERS], Y, cv=3, params={"sample_weight": WEIGHTS})
    np.testing.assert_array_equal(auditor.oof_predictions_, predicted)
    assert not np.array_equal(predicted, cross_val_predict(LogisticRegression(), X[NUMBERS], Y, cv=3))
    assert auditor.score(X[NUMBERS], Y, sample_weight=WEIGHTS) == alone.score(X[NUMBERS], Y, WEIGHTS)


def test_unweighted_audit_of_a_weighted_fit_counts_each_row_once():
    auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST)
    auditor.fit(X[NUMBERS], Y, sensitive_features=X["race"], sample_weight=WEIGHTS)
    assert auditor.audit_.tally.counts.dtype.kind == "i"
    assert auditor.audit_.tally.n_rows == 600
    assert "audits\n    count each row once" in FairnessAuditor.__doc__


def test_audit_weights_weigh_the_out_of_fold_audit_and_nothing_else():
    given = {"sensitive_features": X["race"]}
    plain = FairnessAuditor(LogisticRegression(), cv=3, **FAST).fit(X[NUMBERS], Y, **given)
    auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST)
    auditor.fit(X[NUMBERS], Y, **given, audit_weight=pd.Series(WEIGHTS, X.index))
    np.testing.assert_array_equal(auditor.estimator_.coef_, plain.estimator_.coef_)
    np.testing.assert_array_equal(auditor.oof_predictions_, plain.oof_predictions_)
    tally = Tally.from_predictions(
        np.asarray(Y), plain.oof_predictions_, sensitive_features=X[["race"]], sample_weight=WEIGHTS
    )
    assert auditor.audit_.tally == tally
    for race, value in auditor.audit_.rates().query("rate == 'selection_rate'").set_index("group")["value"].items():
        own = (X["race"] == race).to_numpy()
        assert value == pytest.approx(DescrStatsW(plain.oof_predictions_[own], WEIGHTS[own]).mean, abs=1e-9)
    equal = clone(auditor).fit(X[NUMBERS], Y, **given, audit_weight=np.full(len(X), 2.0))
    np.testing.assert_allclose(equal.audit_.frame()["low"], plain.audit_.frame()["low"], rtol=1e-9)


def test_weights_of_training_and_of_the_audit_are_apart():
    auditor, given = FairnessAuditor(LogisticRegression(), cv=3, **FAST), {"sensitive_features": X["race"]}
    auditor.fit(X[NUMBERS], Y, **given, sample_weight=WEIGHTS, audit_weight=WEIGHTS[::-1])
    predicted = cross_val_predict(LogisticRegression(), X[NUMBERS], Y, cv=3, params={"sample_weight": WEIGHTS})
    np.testing.assert_array_equal(auditor.oof_predictions_, predicted)
    assert auditor.audit_.tally.counts.sum() == pytest.approx(WEIGHTS.sum())
    assert auditor.audit_.tally == Tally.from_predictions(
        np.asarray(Y), predicted, sensitive_features=X[["race"]], sample_weight=WEIGHTS[::-1]
    )


@pytest.mark.parametrize("routed", [False, True])
def test_a_search_splits_audit_weights_by_fold(routed):
    with sklearn.config_context(enable_metadata_routing=routed):
        auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST)
        if routed:
            auditor.set_fit_request(audit_weight=True, sensitive_features=True)
        search = GridSearchCV(auditor, {"estimator__C": [0.1, 1.0]}, cv=2, error_score="raise")
        search.fit(X[NUMBERS], Y, sensitive_features=X["race"], audit_weight=WEIGHTS)
    assert search.best_estimator_.audit_.tally.counts.sum() == pytest.approx(WEIGHTS.sum())


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (WEIGHTS[:-1], "audit_weight 599"),
        (-WEIGHTS, "audit_weight must be finite and at least 0; got 600 negative"),
        (WEIGHTS * np.nan, r"audit_weight must be finite and at least 0; got 600 missing \(NaN\)"),
        (WEIGHTS * 0, "audit_weight must be above 0 in some row; got 0 in all 600"),
        (pd.Series(WEIGHTS, X.index[::-1]), "the index of audit_weight differs from that of X"),
        (["heavy"] * len(X), "audit_weight must hold one number per row"),
    ],
)
def test_wrong_audit_weights_are_refused_before_anything_is_fitted(weights, words):
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features=None, cv=3, **FAST)
    with pytest.raises((ValueError, TypeError), match=words):
        auditor.fit(X[NUMBERS], Y, sensitive_features=X["race"], audit_weight=weights)
    assert not hasattr(auditor, "estimator_")


def test_audit_weights_without_an_audit_to_weigh_are_refused():
    with pytest.raises(ValueError, match=r"cv=None makes none: set cv, or .* audit\(sample_weight=\.\.\.\)"):
        FairnessAuditor(LogisticRegression()).fit(X[NUMBERS], Y, audit_weight=WEIGHTS)


def test_audit_weights_weigh_the_probabilities_out_of_fold():
    auditor = FairnessAuditor(LogisticRegression(), cv=3, y_score="predict_proba", sensitive_features=None, **FAST)
    auditor.fit(X[NUMBERS], Y, sensitive_features=X["race"], audit_weight=WEIGHTS)
    own = cross_val_predict(LogisticRegression(), X[NUMBERS], Y, cv=3, method="predict_proba")[:, 1]
    areas = {f.group: f.value for f in auditor.audit_.findings if f.metric == "roc_auc"}
    for group, area in areas.items():
        at = np.asarray(X["race"] == group)
        assert area == pytest.approx(roc_auc_score(np.asarray(Y)[at], own[at], sample_weight=WEIGHTS[at]), abs=1e-12)
    assert set(areas) == set(X["race"])


@pytest.mark.parametrize("name", [True, "weight"])
def test_weights_by_routing_also_under_another_name(routing, name):
    auditor = FairnessAuditor(
        LogisticRegression().set_fit_request(sample_weight=name), sensitive_features="race", cv=3, **FAST
    )
    pipe_free = X[[*NUMBERS]].assign(race=(X["race"] == "a").astype(int))
    auditor.fit(pipe_free, Y, **{"sample_weight" if name is True else name: WEIGHTS})
    with sklearn.config_context(enable_metadata_routing=False):
        plain = clone(auditor).fit(pipe_free, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(auditor.estimator_.coef_, plain.estimator_.coef_)
    assert auditor.audit_.to_json() == plain.audit_.to_json()


def test_weights_that_nothing_requests_are_refused_by_routing(routing):
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        FairnessAuditor(LogisticRegression()).fit(X[NUMBERS], Y, sample_weight=WEIGHTS)


def test_groups_only_the_auditor_wants_go_no_further(routing):
    auditor = FairnessAuditor(LogisticRegression(), cv=3, **FAST).fit(X[NUMBERS], Y, sensitive_features=X["race"])
    assert auditor.audit_.tally.attributes == ("race",)


@pytest.mark.parametrize("explicit", [False, True])
def test_inner_search_whose_scorer_requests_the_groups_gets_them(routing, explicit):
    scorer = make_fairness_scorer("demographic_parity_difference")
    search = GridSearchCV(dropping(), {"logisticregression__C": [0.1, 1]}, cv=3, scoring=scorer, error_score="raise")
    alone = clone(search).fit(X_TRAIN, Y_TRAIN, sensitive_features=X_TRAIN["race"])
    auditor = FairnessAuditor(search, sensitive_features=None if explicit else "race", cv=3, **FAST)
    auditor.fit(X_TRAIN, Y_TRAIN, sensitive_features=X_TRAIN["race"] if explicit else None)
    np.testing.assert_array_equal(
        auditor.estimator_.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert auditor.audit_.tally.n_rows == 300
    assert auditor.audit(X_TEST, Y_TEST, sensitive_features=X_TEST["race"]).tally.n_rows == 300


# ------------------------------------------------------------------------------------------------------------- frozen
def test_frozen_model_is_audited_without_fit():
    model = dropping().fit(X_TRAIN, Y_TRAIN)
    auditor = FairnessAuditor(FrozenEstimator(model), sensitive_features="race", **FAST)
    np.testing.assert_array_equal(auditor.predict(X_TEST), model.predict(X_TEST))
    np.testing.assert_array_equal(auditor.classes_, model.classes_)
    expected = stored(auditor.audit(X_TEST, Y_TEST))
    assert expected == by_hand(Y_TEST, model.predict(X_TEST), X_TEST["race"].reset_index(drop=True))
    with pytest.raises(NotFittedError):
        FairnessAuditor(FrozenEstimator(dropping()), sensitive_features="race").predict(X_TEST)


def test_fit_leaves_a_frozen_model_and_its_rows_alone():
    model = dropping().fit(X_TRAIN, Y_TRAIN)
    auditor = FairnessAuditor(FrozenEstimator(model), sensitive_features="race", **FAST).fit(X_TEST, Y_TEST)
    np.testing.assert_array_equal(auditor.predict(X_TEST), model.predict(X_TEST))
    auditor.audit(X_TEST, Y_TEST)  # not the rows the model was fitted on: no warning


@pytest.mark.parametrize(
    "around",
    [
        lambda frozen: frozen,
        lambda frozen: make_pipeline(FunctionTransformer(), frozen),
        lambda frozen: FixedThresholdClassifier(frozen, threshold=0.4),
        lambda frozen: FairnessAuditor(frozen),
    ],
    ids=["frozen", "pipeline", "threshold", "auditor"],
)
def test_frozen_model_is_not_cross_validated(around):
    auditor = FairnessAuditor(around(FrozenEstimator(dropping().fit(X, Y))), sensitive_features="race", cv=3)
    with pytest.raises(ValueError, match="cv with a FrozenEstimator would audit the rows the model was fitted on"):
        auditor.fit(X, Y)


# -------------------------------------------------------------------------------------------- fairlearn's mitigators
def mitigator(**options):
    postprocessing = pytest.importorskip("fairlearn.postprocessing")
    return postprocessing.ThresholdOptimizer(
        **{"estimator": dropping(), "predict_method": "predict_proba", "constraints": "demographic_parity", **options}
    )


class Seeded(BaseEstimator):
    """ThresholdOptimizer with a fixed seed, so that its random decisions can be compared."""

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y, *, sensitive_features):
        self.inner_ = clone(self.inner).fit(X, y, sensitive_features=sensitive_features)
        return self

    def predict(self, X, *, sensitive_features):
        return self.inner_.predict(X, sensitive_features=sensitive_features, random_state=0)


def test_threshold_optimizer_gets_the_groups_in_fit_predict_and_every_fold():
    features, y = people(index=np.arange(600)[::-1])
    auditor = FairnessAuditor(Seeded(mitigator()), sensitive_features="race", cv=3, **FAST).fit(features, y)
    alone = Seeded(mitigator()).fit(features, y, sensitive_features=features["race"])
    expected = alone.predict(features, sensitive_features=features["race"])
    np.testing.assert_array_equal(auditor.predict(features), expected)
    assert auditor.classes_.tolist() == [0, 1]
    for train, test in StratifiedKFold(3).split(features, y):
        model = Seeded(mitigator()).fit(
            features.iloc[train], y.iloc[train], sensitive_features=features["race"].iloc[train]
        )
        predicted = model.predict(features.iloc[test], sensitive_features=features["race"].iloc[test])
        np.testing.assert_array_equal(auditor.oof_predictions_[test], predicted)
    fresh, fresh_y = people(seed=1)
    made = auditor.audit(fresh, fresh_y)
    assert stored(made) == by_hand(fresh_y, auditor.predict(fresh), fresh["race"])
    swapped = fresh["race"].map({"a": "b", "b": "a"})
    np.testing.assert_array_equal(
        auditor.predict(fresh, sensitive_features=swapped), alone.predict(fresh, sensitive_features=swapped)
    )
    assert not hasattr(auditor, "predict_proba")


def test_threshold_optimizer_itself_is_audited_with_and_without_a_frozen_model():
    auditor = FairnessAuditor(mitigator(), sensitive_features="race", cv=3, **FAST).fit(X_TRAIN, Y_TRAIN)
    assert auditor.audit_.tally.n_rows == 300
    assert auditor.audit(X_TEST, Y_TEST).tally.n_rows == 300
    frozen = mitigator(estimator=FrozenEstimator(dropping().fit(X_TRAIN, Y_TRAIN)), prefit=True)
    for inner in (frozen, FrozenEstimator(clone(frozen).fit(X_TRAIN, Y_TRAIN, sensitive_features=X_TRAIN["race"]))):
        auditor = FairnessAuditor(inner, sensitive_features="race", **FAST).fit(X_TRAIN, Y_TRAIN)
        assert auditor.audit(X_TEST, Y_TEST).tally.n_rows == 300


def test_threshold_optimizer_is_scored_in_cross_validation():
    auditor = FairnessAuditor(mitigator(), sensitive_features="race")
    assert np.isfinite(cross_validate(auditor, X, Y, scoring="accuracy", error_score="raise")["test_score"]).all()


def test_threshold_optimizer_that_requests_the_groups_gets_them_by_routing(routing):
    inner = mitigator().set_fit_request(sensitive_features=True).set_predict_request(sensitive_features=True)
    auditor = FairnessAuditor(inner, sensitive_features="race", cv=3, **FAST).fit(X_TRAIN, Y_TRAIN)
    assert auditor.audit_.tally.n_rows == 300
    assert auditor.audit(X_TEST, Y_TEST).tally.n_rows == 300
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="set_fit_request"):
        FairnessAuditor(mitigator(), sensitive_features="race").fit(X_TRAIN, Y_TRAIN)
