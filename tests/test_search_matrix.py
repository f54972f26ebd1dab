"""Every consumer of scorers in scikit-learn, by three transports of the groups: the same number, or an error that helps.

``python -m tests.test_search_matrix`` prints the table. Columns: (a) a column of X, (b) metadata routing, (c) a Series with
the index of X.
"""

import re
import warnings
from contextlib import nullcontext
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ethiclens import fairness_scorers, make_fairness_scorer, metrics, select_within
from sklearn_ethiclens.exceptions import FairnessScoringWarning

METRIC = "equalized_odds_difference"
GRID = {"logisticregression__C": [0.02, 0.2, 2.0]}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@cache
def data():
    """Return X (race among its columns, row ids that are no positions), y and race."""
    rng = np.random.default_rng(5)
    n = 360
    race = np.tile([0, 1, 2], n // 3)
    a, b, c = rng.normal(size=(3, n))
    a = a + 0.5 * race
    y = (a + b + 0.7 * rng.normal(size=n) > 0.5).astype(int)
    ids = pd.Index(rng.permutation(np.arange(1000, 1000 + 3 * n, 3)), name="id")
    X = pd.DataFrame({"race": race, "a": a, "b": b, "c": c}, index=ids)
    return X, pd.Series(y, index=ids, name="y"), X["race"]


def pipe():
    """Return a model that never sees race."""
    return make_pipeline(make_column_transformer((StandardScaler(), ["a", "b", "c"])), LogisticRegression())


def sources():
    return {"a": "race", "b": None, "c": data()[2]}


def scorer_of(transport, metric=METRIC):
    return make_fairness_scorer(metric, sensitive_features=sources()[transport])


def several_of(transport):
    return fairness_scorers([METRIC, "disparate_impact"], sensitive_features=sources()[transport])


# Each consumer takes the transport and the metadata, and returns the numbers that depend on the scores.
CONSUMERS = {}


def consumer(name):
    def register(function):
        CONSUMERS[name] = function
        return function

    return register


@consumer("cross_val_score")
def _(t, X, y, meta):
    return cross_val_score(pipe(), X, y, cv=FOLDS, scoring=scorer_of(t), params=meta or None)


@consumer("cross_validate, two metrics")
def _(t, X, y, meta):
    scoring = {"gap": scorer_of(t), "accuracy": "accuracy"}
    return cross_validate(pipe(), X, y, cv=FOLDS, scoring=scoring, params=meta or None)["test_gap"]


@consumer("cross_validate, fairness_scorers")
def _(t, X, y, meta):
    return cross_validate(pipe(), X, y, cv=FOLDS, scoring=several_of(t), params=meta or None)[f"test_{METRIC}"]


@consumer("GridSearchCV")
def _(t, X, y, meta):
    return GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scorer_of(t)).fit(X, y, **meta).cv_results_["mean_test_score"]


@consumer("GridSearchCV, dict, refit=key")
def _(t, X, y, meta):
    scoring = {"gap": scorer_of(t), "accuracy": "accuracy"}
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scoring, refit="gap").fit(X, y, **meta)
    return [*search.cv_results_["mean_test_gap"], search.best_index_]


@consumer("GridSearchCV, fairness_scorers, refit=key")
def _(t, X, y, meta):
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=several_of(t), refit=METRIC).fit(X, y, **meta)
    return [*search.cv_results_[f"mean_test_{METRIC}"], search.best_index_]


@consumer("GridSearchCV, refit=select_within")
def _(t, X, y, meta):
    refit = select_within(0.9, disparity=METRIC, performance="accuracy")
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=several_of(t), refit=refit).fit(X, y, **meta)
    return [*search.cv_results_[f"mean_test_{METRIC}"], search.best_index_]


@consumer("RandomizedSearchCV")
def _(t, X, y, meta):
    search = RandomizedSearchCV(pipe(), GRID, n_iter=2, cv=FOLDS, scoring=scorer_of(t), random_state=0)
    return search.fit(X, y, **meta).cv_results_["mean_test_score"]


@consumer("HalvingGridSearchCV")
def _(t, X, y, meta):
    search = HalvingGridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scorer_of(t), min_resources=120, random_state=0)
    return search.fit(X, y, **meta).cv_results_["mean_test_score"]


@consumer("HalvingGridSearchCV, fairness_scorers")
def _(t, X, y, meta):
    HalvingGridSearchCV(pipe(), GRID, cv=FOLDS, scoring=several_of(t), refit=METRIC, random_state=0).fit(X, y, **meta)


@consumer("HalvingGridSearchCV, dict")
def _(t, X, y, meta):
    HalvingGridSearchCV(pipe(), GRID, cv=FOLDS, scoring={"gap": scorer_of(t)}, refit="gap").fit(X, y, **meta)


@consumer("TunedThresholdClassifierCV, cv")
def _(t, X, y, meta):
    tuned = TunedThresholdClassifierCV(pipe(), scoring=scorer_of(t), cv=FOLDS, thresholds=20).fit(X, y, **meta)
    return [tuned.best_score_, tuned.best_threshold_]


@consumer("TunedThresholdClassifierCV, prefit")
def _(t, X, y, meta):
    model = pipe().fit(X, y)
    tuned = TunedThresholdClassifierCV(model, scoring=scorer_of(t), cv="prefit", refit=False, thresholds=20)
    tuned.fit(X, y, **meta)
    return [tuned.best_score_, tuned.best_threshold_]


@consumer("RFECV")
def _(t, X, y, meta):
    found = RFECV(LogisticRegression(), cv=FOLDS, scoring=scorer_of(t), min_features_to_select=2).fit(X, y, **meta)
    return found.cv_results_["mean_test_score"]


@consumer("SequentialFeatureSelector")
def _(t, X, y, meta):
    selector = SequentialFeatureSelector(
        LogisticRegression(), n_features_to_select=2, direction="backward", cv=FOLDS, scoring=scorer_of(t)
    )
    return selector.fit(X, y, **meta).get_support()


@consumer("LogisticRegressionCV")
def _(t, X, y, meta):
    model = LogisticRegressionCV(Cs=[0.05, 1.0], cv=FOLDS, scoring=scorer_of(t))
    scores = model.fit(X, y, **meta).scores_
    return np.ravel(scores[1] if isinstance(scores, dict) else scores)


@consumer("learning_curve")
def _(t, X, y, meta):
    sizes = {"train_sizes": [0.5, 1.0], "cv": FOLDS, "scoring": scorer_of(t)}
    return np.ravel(learning_curve(pipe(), X, y, params=meta or None, **sizes)[2])


@consumer("validation_curve")
def _(t, X, y, meta):
    grid = {"param_name": "logisticregression__C", "param_range": [0.05, 1.0], "cv": FOLDS, "scoring": scorer_of(t)}
    return np.ravel(validation_curve(pipe(), X, y, params=meta or None, **grid)[1])


@consumer("permutation_test_score")
def _(t, X, y, meta):
    options = {"cv": FOLDS, "scoring": scorer_of(t), "n_permutations": 5, "random_state": 0}
    score, permuted, pvalue = permutation_test_score(pipe(), X, y, params=meta or None, **options)
    return [score, *permuted, pvalue]


@consumer("permutation_importance, columns other than race")
def _(t, X, y, meta):
    options = {"params": meta} if meta else {}
    found = permutation_importance(pipe().fit(X, y), X, y, scoring=scorer_of(t), n_repeats=2, random_state=0, **options)
    return found.importances[1:].ravel()


@consumer("permutation_importance, race")
def _(t, X, y, meta):
    options = {"params": meta} if meta else {}
    found = permutation_importance(pipe().fit(X, y), X, y, scoring=scorer_of(t), n_repeats=2, random_state=0, **options)
    return found.importances[0]


@consumer("nested: cross_val_score of GridSearchCV")
def _(t, X, y, meta):
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scorer_of(t))
    return cross_val_score(search, X, y, cv=FOLDS, scoring=scorer_of(t), params=meta or None)


@consumer("GridSearchCV, n_jobs=2")
def _(t, X, y, meta):
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scorer_of(t), n_jobs=2)
    return search.fit(X, y, **meta).cv_results_["mean_test_score"]


OK = ("ok", "")
NO_NAMES = "hands the scorer X as ndarray, without column names, so that 'race' cannot be read. "
ROUTE = "Only metadata routing works here"
SERIES = "y keeps its index here: make the scorer with the column itself, sensitive_features=X"
NO_PARAMS = ("TypeError", "unexpected keyword argument 'params'")
ONE_SCORE = ("KeyError", "mean_test_score")
REFUSED = ("InvalidParameterError", "'scoring' parameter of HalvingGridSearchCV must be")

# All cells that are no number which is equal in all three columns.
EXPECTED = {
    "HalvingGridSearchCV, fairness_scorers": {"a": ONE_SCORE, "b": ONE_SCORE, "c": ONE_SCORE},
    "HalvingGridSearchCV, dict": {"a": REFUSED, "b": REFUSED, "c": REFUSED},
    "TunedThresholdClassifierCV, cv": {"a": ("ValueError", "hands the scorer no X.*" + SERIES)},
    "TunedThresholdClassifierCV, prefit": {"a": ("ValueError", "hands the scorer no X.*" + SERIES)},
    "RFECV": {
        "a": ("ValueError", NO_NAMES + ROUTE),
        "c": ("ValueError", r"neither X \(ndarray\) nor y \(ndarray\).*" + ROUTE),
    },
    "SequentialFeatureSelector": {"a": ("NaN", NO_NAMES + SERIES)},
    "LogisticRegressionCV": {
        "a": ("ValueError", NO_NAMES + ROUTE),
        "c": ("ValueError", r"neither X \(ndarray\) nor y \(ndarray\).*" + ROUTE),
    },
    "permutation_importance, columns other than race": {"b": NO_PARAMS},
    "permutation_importance, race": {"a": ("misleading", ""), "b": NO_PARAMS},
}


@cache
def cell(name, transport):
    """Return what happened: ("ok", numbers), (name of the error, its text), or ("NaN", our warning)."""
    X, y, race = data()
    routed = transport == "b"
    meta = {"sensitive_features": race} if routed else {}
    context = sklearn.config_context(enable_metadata_routing=True) if routed else nullcontext()
    with context, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers = CONSUMERS[name](transport, X, y, meta)
        except Exception as error:
            return type(error).__name__, str(error)
    ours = [str(w.message) for w in caught if issubclass(w.category, FairnessScoringWarning)]
    if ours:
        return "NaN", ours[0]
    return "ok", np.asarray(numbers, dtype=float).tolist()


def expected(name, transport):
    return EXPECTED.get(name, {}).get(transport, OK)


@pytest.mark.parametrize("name", CONSUMERS)
def test_cells_hold_the_same_number_or_the_error_that_names_the_way_out(name):
    numbers = {}
    for transport in "abc":
        kind, text = expected(name, transport)
        found, what = cell(name, transport)
        if kind in ("ok", "misleading"):
            assert found == "ok", f"{transport}: {found}: {what}"
            assert np.isfinite(what).all()
        else:
            assert found == kind, f"{transport}: {found}: {what}"
            with pytest.raises(AssertionError, match=text):
                raise AssertionError(what)
        if kind == "ok":
            numbers[transport] = what
    assert len(set(map(str, numbers.values()))) <= 1, numbers  # equal to the last digit


def test_the_number_is_that_of_the_plain_metric_on_each_fold():
    X, y, race = data()
    expected = []
    for train, test in FOLDS.split(X, y):
        decisions = pipe().fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
        gap = metrics.equalized_odds_difference(y.iloc[test].to_numpy(), decisions, sensitive_features=race.iloc[test])
        expected.append(-gap)
    assert cell("cross_val_score", "a") == ("ok", expected)
    assert cell("cross_validate, two metrics", "c") == ("ok", expected)
    assert cell("cross_validate, fairness_scorers", "b") == ("ok", expected)


def test_permutation_importance_is_wrong_for_the_column_transport_and_right_for_a_series():
    """The pipeline drops race, so that its importance is 0; shuffling the column shuffles the scorer's groups instead."""
    assert cell("permutation_importance, race", "c") == ("ok", [0.0, 0.0])
    assert np.abs(cell("permutation_importance, race", "a")[1]).min() > 0.01


def test_a_pipeline_that_drops_the_column_is_judged_by_it():
    X, y, _ = data()
    model = pipe().fit(X, y)
    assert not any("race" in name for name in model[0].get_feature_names_out())
    assert scorer_of("a")(model, X, y) == scorer_of("c")(model, X, y) < 0


def test_a_position_is_a_column_too():
    X, y, _ = data()
    model = pipe().fit(X, y)
    assert make_fairness_scorer(METRIC, sensitive_features=0)(model, X, y) == scorer_of("a")(model, X, y)


@pytest.mark.parametrize("transport", "ac")
def test_with_routing_switched_on_the_other_transports_still_work(transport):
    X, y, _ = data()
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(pipe(), X, y, cv=FOLDS, scoring=scorer_of(transport))
    assert ("ok", found.tolist()) == cell("cross_val_score", transport)


@pytest.mark.parametrize("transport", "abc")
def test_what_is_passed_to_the_call_wins(transport):
    X, y, race = data()
    other = pd.Series(np.where(race == 0, "p", "q"), index=race.index)
    model = pipe().fit(X, y)
    expected = -metrics.equalized_odds_difference(y, model.predict(X), sensitive_features=other)
    assert scorer_of(transport)(model, X, y, sensitive_features=other) == expected


def test_routing_without_the_groups_says_what_is_missing():
    X, y, _ = data()
    model = pipe().fit(X, y)
    with (
        pytest.warns(FairnessScoringWarning, match="no sensitive_features reached the scorer"),
        pytest.raises(ValueError, match="set_config\\(enable_metadata_routing=True\\)"),
    ):
        scorer_of("b")(model, X, y)


def test_the_library_never_switches_routing_on():
    for transport in "abc":
        cell("GridSearchCV", transport)
    assert sklearn.get_config()["enable_metadata_routing"] is False


def test_string_labels_in_logistic_regression_cv():
    """Up to scikit-learn 1.7 it hands the scorer labels -1 and 1 in place of text: pos_label is then not to be found."""
    X, y, race = data()
    labels = y.map({0: "no", 1: "yes"})
    scorer = make_fairness_scorer(METRIC, pos_label="yes")
    model = LogisticRegressionCV(Cs=[1.0], cv=FOLDS, scoring=scorer)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
            scores = model.fit(X, labels, sensitive_features=race).scores_
            scores = scores["yes"] if isinstance(scores, dict) else scores
            numbers = LogisticRegressionCV(Cs=[1.0], cv=FOLDS, scoring=scorer_of("b")).fit(
                X, y, sensitive_features=race
            )
            numeric = numbers.scores_[1] if isinstance(numbers.scores_, dict) else numbers.scores_
            np.testing.assert_array_equal(np.ravel(scores), np.ravel(numeric))
        else:
            with (
                pytest.warns(FairnessScoringWarning, match="pos_label='yes' is not among the labels"),
                pytest.raises(ValueError, match="pos_label='yes' is not among the labels"),
            ):
                model.fit(X, labels, sensitive_features=race)


def table():
    """Return the matrix as text, as it was found."""
    lines = [
        f"scikit-learn {sklearn.__version__}, pandas {pd.__version__}; = : equal to the last digit, in all = cells"
    ]
    lines.append(f"{'consumer':49s} {'a: column of X':24s} {'b: metadata routing':24s} {'c: Series by index':24s}")
    notes = []
    for name in CONSUMERS:
        cells = []
        for transport in "abc":
            found, what = cell(name, transport)
            if found == "ok":
                shown = "runs, but misleading" if expected(name, transport)[0] == "misleading" else "="
                if shown == "=" and what:
                    shown = "= (same features)" if name.startswith("Sequential") else f"= {what[0]:.6g}"
            else:
                what = re.sub(r"among \{.*?\}", "among {...}", " ".join(what.split()))
                if (found, what) not in notes:
                    notes.append((found, what))
                shown = f"{found} [{notes.index((found, what)) + 1}]"
            cells.append(shown)
        lines.append(f"{name:49s} {cells[0]:24s} {cells[1]:24s} {cells[2]:24s}".rstrip())
    lines += [f"[{i}] {kind}: {text[:330]}" for i, (kind, text) in enumerate(notes, start=1)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
