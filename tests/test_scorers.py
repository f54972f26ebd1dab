"""Fairness scorers: what they return, the silent traps of others that must not be silent here, and their manners as objects."""

import copy
import pickle
import subprocess
import sys
import warnings
from functools import partial

import fairlearn.metrics as fl
import numpy as np
import pandas as pd
import pytest
import sklearn
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, get_scorer, make_scorer, max_error, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ethiclens import (
    METRICS,
    FairnessAuditor,
    Tally,
    audit,
    fairness_scorers,
    load_german_credit,
    make_fairness_scorer,
    metrics,
    select_pareto,
    select_within,
)
from sklearn_ethiclens.exceptions import FairnessScoringWarning
from sklearn_ethiclens.metrics._functions import worst_comparison
from tests.test_search_matrix import FOLDS, GRID, METRIC, data, pipe

COMPARISONS = [m for m in METRICS.values() if m.kind != "group"]


class Rule(ClassifierMixin, BaseEstimator):
    """Predicts a column of X, as it is."""

    def __init__(self, column="yhat"):
        self.column = column

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return X[self.column].to_numpy()


def rows(seed=0, n=240, labels=(0, 1)):
    """Return X with the groups and the decisions in it, and y, all rates of all groups defined."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["k", "l", "m"], n // 3)
    y = rng.integers(0, 2, n)
    yhat = np.where(rng.random(n) < 0.7 + 0.1 * (group == "m"), y, 1 - y)
    table = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    ids = rng.permutation(np.arange(100, 100 + 2 * n, 2))
    X = pd.DataFrame({"group": group, "yhat": table[yhat], "other": rng.random(n)}, index=ids)
    return X, pd.Series(table[y], index=ids)


def score(metric, X, y, **options):
    options.setdefault("sensitive_features", "group")
    return make_fairness_scorer(metric, **options)(Rule().fit(X, y), X, y)


# ------------------------------------------------------------------------------------------------------ the named scorers
@pytest.mark.parametrize("metric", COMPARISONS, ids=lambda m: m.name)
@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
def test_every_comparison_of_the_catalogue_is_a_scorer_and_greater_is_better(metric, outcome):
    X, y = rows()
    found = score(metric.name, X, y, outcome=outcome)
    tally = Tally.from_predictions(y, X["yhat"], sensitive_features=X["group"])
    if metric.name == "composite_bias_score":
        assert 0 <= found <= 1
    else:
        value = worst_comparison(metric, tally, outcome=outcome)
        assert found == (min(value, 1 / value) if metric.scale == "ratio" else -abs(value))
        assert 0 <= found <= 1 if metric.scale == "ratio" else found <= 0


@pytest.mark.parametrize("metric", COMPARISONS, ids=lambda m: m.name)
def test_equal_treatment_has_the_best_score(metric):
    X, y = rows()
    one = X[X["group"] == "k"]
    X = pd.concat([one, one.assign(group="l")], ignore_index=True)
    y = pd.concat([y[one.index]] * 2, ignore_index=True)
    best = 1.0 if metric.scale in ("ratio", "score") else 0.0
    assert score(metric.name, X, y) == pytest.approx(best, abs=1e-12)


def test_a_composite_score_is_that_of_the_worst_comparison():
    X, y = rows()
    tally = Tally.from_predictions(y, X["yhat"], sensitive_features=X["group"])
    counts = {group[0]: table for group, table in zip(tally.groups, tally.counts, strict=True)}
    worst = min(METRICS["composite_bias_score"](counts[g], counts["m"]) for g in "kl")
    assert score("composite_bias_score", X, y, reference="m") == worst


def test_a_reference_that_is_given_is_used():
    X, y = rows()
    for reference in "klm":
        expected = metrics.disparate_impact(y, X["yhat"], sensitive_features=X["group"], reference=reference)
        assert score("disparate_impact", X, y, reference=reference) == min(expected, 1 / expected)


def test_several_columns_are_their_intersection():
    X, y = rows()
    X["half"] = np.where(X["other"] > 0.5, "u", "v")
    expected = metrics.equalized_odds_difference(y, X["yhat"], sensitive_features=X[["group", "half"]])
    assert score("equalized_odds_difference", X, y, sensitive_features=["group", "half"]) == -expected
    assert score("equalized_odds_difference", X, y, sensitive_features=X[["group", "half"]]) == -expected


def test_a_metric_of_one_group_is_no_score():
    with pytest.raises(ValueError, match=r"number of one group, no comparison; try 'selection_rate_difference'"):
        make_fairness_scorer("selection_rate")


def test_an_unknown_name_is_refused_with_the_near_ones():
    with pytest.raises(ValueError, match="equalized_odds_difference"):
        make_fairness_scorer("equalised_odds_difference")


@pytest.mark.parametrize("name", ["statistical_parity_difference", "disparate_impact", "equalized_odds_difference"])
@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
def test_the_worst_estimate_is_the_end_of_the_interval_of_the_audit(name, outcome):
    X, y = rows(n=900)  # groups that meet the floor for a reference
    options = {"outcome": outcome, "n_resamples": 500, "confidence_level": 0.9, "random_state": 3}
    audited = audit(y, X["yhat"], sensitive_features=X["group"], metrics=[name], **options)
    ends = [end for f in audited.findings if f.metric == name for end in (f.low, f.high)]
    worst = min(min(e, 1 / e) if e > 0 else 0.0 for e in ends) if "impact" in name else -max(map(abs, ends))
    found = score(name, X, y, estimate="worst", **options)
    assert found == worst
    assert found < score(name, X, y, outcome=outcome)


def test_the_worst_estimate_needs_an_interval():
    with pytest.raises(ValueError, match="only comparisons with a reference have"):
        make_fairness_scorer("demographic_parity_difference", estimate="worst")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"outcome": "good"}, ValueError, "outcome must be one of"),
        ({"estimate": "low"}, ValueError, "estimate must be 'value' or 'worst'"),
        ({"greater_is_better": True}, TypeError, "greater_is_better is for callables"),
        ({"method": "to_overall"}, TypeError, "takes no further arguments; got \\['method'\\]"),
        ({"groups": "ab"}, ValueError, "groups must be a list of the groups"),
        ({"groups": {"a", "b"}}, ValueError, "groups must be a list of the groups"),
        ({"groups": 5}, ValueError, "groups must be a list of the groups .* got 5"),
        ({"groups": ["a", "a"]}, ValueError, "two at least"),
        ({"min_group_size": "a"}, TypeError, "min_group_size must be a whole number of rows; got 'a'"),
        ({"min_group_size": 1.5}, TypeError, "min_group_size must be a whole number of rows; got 1.5"),
        ({"min_group_size": 0}, ValueError, "min_group_size must be at least 1; got 0"),
        ({"groups": ["a"]}, ValueError, "two at least"),
    ],
)
def test_options_are_checked_when_the_scorer_is_made(options, error, match):
    with pytest.raises(error, match=match):
        make_fairness_scorer("disparate_impact", sensitive_features="group", **options)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: make_fairness_scorer(["disparate_impact"]), TypeError, "fairness_scorers takes several"),
        (lambda: make_fairness_scorer(None), TypeError, "metric must be a name .* got None"),
        (lambda: fairness_scorers([METRIC], performance=5), TypeError, "performance must be a list .* got 5"),
        (lambda: fairness_scorers([METRIC], performance={"a": 5}), TypeError, "performance must hold .* got 5"),
    ],
)
def test_what_is_no_metric_and_no_performance_is_named(make, error, match):
    with pytest.raises(error, match=match):
        make()


SCORES = {"disparity": "disparate_impact", "performance": "accuracy"}


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: select_within("x", **SCORES), TypeError, "bound must be a number; got 'x'"),
        (lambda: select_within(True, **SCORES), TypeError, "bound must be a number; got True"),
        (
            lambda: select_within(1.25, **SCORES),
            ValueError,
            r"bound of disparate_impact must lie in \[0, 1\].*got 1.25",
        ),
        (lambda: select_within(tolerance="x", **SCORES), TypeError, "tolerance must be a number; got 'x'"),
        (lambda: select_within(tolerance=float("nan"), **SCORES), ValueError, "tolerance must be at least 0"),
        (lambda: select_within(0.8, confidence="x", **SCORES), TypeError, "confidence must be a number; got 'x'"),
        (lambda: select_pareto(weight=None, **SCORES), TypeError, "weight must be a number; got None"),
    ],
)
def test_a_refit_callable_refuses_its_numbers_before_the_search(make, error, match):
    with pytest.raises(error, match=match):
        make()


# -------------------------------------------------------------------------------------------------------- any callable
FAIRLEARN = [
    name
    for name in dir(fl)
    if name.endswith(("_difference", "_ratio")) and ("parity" in name or "odds" in name or "rate" in name)
]


@pytest.mark.parametrize("name", FAIRLEARN)
def test_every_fairlearn_disparity_is_a_scorer_with_its_value(name):
    X, y = rows()
    metric = getattr(fl, name)
    value = metric(y, X["yhat"].astype(int), sensitive_features=X["group"])
    assert score(metric, X, y) == pytest.approx(value if name.endswith("ratio") else -value, abs=1e-15)


def test_fairlearn_is_handed_text_labels_as_0_and_1():
    X, y = rows(labels=("no", "yes"))
    numeric, labels = rows()
    expected = score(fl.demographic_parity_difference, numeric, labels)
    assert score(fl.demographic_parity_difference, X, y, pos_label="yes") == expected != 0
    turned = fl.true_positive_rate_difference(1 - labels, 1 - numeric["yhat"], sensitive_features=X["group"])
    assert score(fl.true_positive_rate_difference, X, y, pos_label="no") == -turned


def test_arguments_reach_the_callable():
    X, y = rows()
    value = fl.demographic_parity_difference(y, X["yhat"], sensitive_features=X["group"], method="to_overall")
    assert score(fl.demographic_parity_difference, X, y, method="to_overall") == -value
    assert score(partial(fl.demographic_parity_difference, method="to_overall"), X, y) == -value


def number_of_groups(y_true, y_pred, *, sensitive_features):
    return float(sensitive_features.nunique())


def test_the_direction_of_a_callable_is_said_where_its_name_does_not_tell():
    X, y = rows()
    with pytest.raises(ValueError, match="pass greater_is_better=True or False"):
        make_fairness_scorer(number_of_groups)
    assert score(number_of_groups, X, y, greater_is_better=True) == 3.0
    assert score(number_of_groups, X, y, greater_is_better=False) == -3.0


def nan_difference(y_true, y_pred, *, sensitive_features):
    return np.nan


def test_a_callable_that_returns_nan_is_said_to():
    X, y = rows()
    with pytest.warns(FairnessScoringWarning, match="nan_difference is NaN: the metric is NaN"):
        assert np.isnan(score(nan_difference, X, y))


def test_a_callable_of_several_columns_is_handed_a_frame():
    X, y = rows()
    X["half"] = np.where(X["other"] > 0.5, "u", "v")
    value = fl.demographic_parity_difference(y, X["yhat"], sensitive_features=X[["group", "half"]])
    assert score(fl.demographic_parity_difference, X, y, sensitive_features=["group", "half"]) == -value


# ------------------------------------------------------------------------------ estimators that ask for the groups
def optimizer():
    return ThresholdOptimizer(
        estimator=LogisticRegression(), constraints="demographic_parity", predict_method="predict"
    )


def on_fold(X, y, race, features):
    """Return what fairlearn's own calls give on each fold, with the random decisions of seed 0."""
    found = []
    for train, test in FOLDS.split(X, y):
        model = optimizer().fit(features.iloc[train], y.iloc[train], sensitive_features=race.iloc[train])
        np.random.seed(0)  # noqa: NPY002
        decisions = model.predict(features.iloc[test], sensitive_features=race.iloc[test])
        groups = race.iloc[test].to_numpy()
        found.append(
            -metrics.demographic_parity_difference(y.iloc[test].to_numpy(), decisions, sensitive_features=groups)
        )
    return found


def numeric_threshold_problem():
    """Return German Credit by age, numbers only, labels 0 and 1 (fairlearn knows no others)."""
    bunch = load_german_credit()
    X = bunch.data[["duration", "credit_amount", "installment_rate"]] / [10, 1000, 1]
    return X, (bunch.target == "good").astype(int), (bunch.sensitive_features["age"] == "age < 25").astype(int)


class Seeded:
    """A scorer that seeds numpy's global state first: ThresholdOptimizer draws its decisions from it."""

    def __init__(self, scorer):
        self.scorer = scorer

    def __call__(self, estimator, X, y):
        np.random.seed(0)  # noqa: NPY002
        return self.scorer(estimator, X, y)


@pytest.mark.parametrize("transport", ["a column of X", "a Series"])
@pytest.mark.parametrize("in_a_pipeline", [False, True])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_threshold_optimizer_can_be_cross_validated(transport, in_a_pipeline):
    X, y, age = numeric_threshold_problem()
    source = {"a column of X": "age", "a Series": age}[transport]
    scorer = make_fairness_scorer("demographic_parity_difference", sensitive_features=source)
    features = X.assign(age=age)
    model = make_pipeline("passthrough", optimizer()) if in_a_pipeline else optimizer()
    name = "thresholdoptimizer__sensitive_features" if in_a_pipeline else "sensitive_features"
    found = cross_val_score(model, features, y, cv=FOLDS, scoring=Seeded(scorer), params={name: age})
    assert found.tolist() == on_fold(X, y, age, features)
    several = fairness_scorers(["demographic_parity_difference"], sensitive_features=source)
    both = cross_validate(model, features, y, cv=FOLDS, scoring=Seeded(several), params={name: age})
    assert both["test_demographic_parity_difference"].tolist() == found.tolist()
    assert np.isfinite(both["test_accuracy"]).all()


def test_the_auditor_around_it_is_scored_too():
    X, y, _ = data()
    model = FairnessAuditor(pipe(), sensitive_features="race").fit(X, y)
    inner = make_fairness_scorer(METRIC, sensitive_features="race")(model.estimator_, X, y)
    assert make_fairness_scorer(METRIC, sensitive_features="race")(model, X, y) == inner


# -------------------------------------------------------------------------------------------------------- several metrics
NAMES = ["disparate_impact", "statistical_parity_difference", "equalized_odds_difference", "demographic_parity_ratio"]


class Counting(LogisticRegression):
    """A logistic regression that counts its predictions over all its clones."""

    calls = {"predict": 0, "predict_proba": 0}

    def predict(self, X):
        self.calls["predict"] += 1
        return super().predict(X)

    def predict_proba(self, X):
        self.calls["predict_proba"] += 1
        return super().predict_proba(X)


def calls_of(scoring, refit):
    X, y, _ = data()
    Counting.calls.update(predict=0, predict_proba=0)
    GridSearchCV(Counting(), {"C": [0.1, 1.0]}, cv=FOLDS, scoring=scoring, refit=refit).fit(X, y)
    return dict(Counting.calls)


def test_fairness_scorers_predict_once_per_candidate_and_fold():
    many = fairness_scorers(NAMES, sensitive_features="race", performance=["accuracy", "f1", "balanced_accuracy"])
    assert calls_of(many, "accuracy") == {"predict": 6, "predict_proba": 0}
    proba = fairness_scorers(NAMES, sensitive_features="race", performance=["accuracy", "roc_auc", "neg_log_loss"])
    scored = calls_of(proba, "accuracy")
    assert scored["predict"] == 6
    assert scored["predict_proba"] <= 6


def test_a_dict_of_single_scorers_predicts_once_each():
    single = {name: make_fairness_scorer(name, sensitive_features="race") for name in NAMES}
    assert calls_of(single, NAMES[0])["predict"] == 6 * len(NAMES)


def test_fairness_scorers_return_what_single_ones_do():
    X, y, _ = data()
    model = pipe().fit(X, y)
    metric_list = [*NAMES, fl.equalized_odds_ratio]
    performance = {"accuracy": "accuracy", "auc": get_scorer("roc_auc")}
    found = fairness_scorers(metric_list, sensitive_features="race", performance=performance)(model, X, y)
    single = {name: make_fairness_scorer(name, sensitive_features="race")(model, X, y) for name in NAMES}
    single["equalized_odds_ratio"] = make_fairness_scorer(fl.equalized_odds_ratio, sensitive_features="race")(
        model, X, y
    )
    single |= {"accuracy": model.score(X, y), "auc": get_scorer("roc_auc")(model, X, y)}
    assert found == single | {"selection_rate": model.predict(X).mean()}


def test_names_must_be_distinct():
    with pytest.raises(ValueError, match="every score needs its own name, .*; repeated: \\['accuracy_ratio'\\]"):
        fairness_scorers(["accuracy_ratio"], performance={"accuracy_ratio": "accuracy"})
    with pytest.raises(ValueError, match="repeated: \\['selection_rate'\\]"):  # which is returned beside them
        fairness_scorers(["accuracy_ratio"], performance={"selection_rate": "accuracy"})
    with pytest.raises(ValueError, match="metrics is empty"):
        fairness_scorers([])


def test_one_metric_needs_no_list():
    assert list(fairness_scorers("disparate_impact", performance="f1").scorers) == ["disparate_impact"]


def test_a_fold_that_cannot_be_judged_is_said_once_for_all_metrics():
    X, y = rows()
    X["yhat"] = 1
    with pytest.warns(FairnessScoringWarning) as caught:
        found = fairness_scorers(NAMES, sensitive_features="group")(Rule().fit(X, y), X, y)
    assert len(caught) == 1
    assert "the score of disparate_impact, statistical_parity_difference" in str(caught[0].message)
    assert all(np.isnan(found[name]) for name in NAMES)
    assert found["selection_rate"] == 1.0
    assert np.isfinite(found["accuracy"])


def test_metrics_undefined_for_themselves_leave_the_others_their_scores():
    X, y = rows()
    y = y.where(X["group"] != "k", 0)  # no positives among k
    names = ["true_positive_rate_difference", "selection_rate_difference"]
    scorer = fairness_scorers(names, sensitive_features="group", reference="k")
    said = r"the score of true_positive_rate_difference is NaN: .*: k \(no positive y_true\)\. A search"
    with pytest.warns(FairnessScoringWarning, match=said):
        found = scorer(Rule().fit(X, y), X, y)
    assert np.isnan(found["true_positive_rate_difference"])
    assert found["selection_rate_difference"] < 0


# --------------------------------------------------------------------------------------------------------- field reports
def test_o07_the_search_picks_the_rule_without_a_gap():
    class ByMode(Rule):
        def __init__(self, mode="by_score"):
            self.mode = mode

        def predict(self, X):
            return ((X["score"] > 0.5) if self.mode == "by_score" else (X["sex"] == "m")).astype(int).to_numpy()

    X = pd.DataFrame({"sex": list("mfmfmfmf"), "score": [0.9, 0.9, 0.1, 0.1, 0.9, 0.9, 0.1, 0.1]})
    y = np.array([1, 1, 0, 0, 1, 1, 0, 0])
    gap = make_fairness_scorer("demographic_parity_difference", sensitive_features="sex")
    ratio = make_fairness_scorer("demographic_parity_ratio", sensitive_features="sex")
    for metric, scorer, good, bad in (("difference", gap, 0.0, -1.0), ("ratio", ratio, 1.0, 0.0)):
        search = GridSearchCV(ByMode(), {"mode": ["by_sex", "by_score"]}, cv=2, scoring=scorer).fit(X, y)
        assert search.best_params_ == {"mode": "by_score"}, metric
        assert search.cv_results_["mean_test_score"].tolist() == [bad, good]
        assert "greater_is_better" in repr(scorer)


class Even(Rule):
    def predict(self, X):
        return (X["z"] % 2 == 0).astype(int).to_numpy()


O08 = pd.DataFrame({"grp": list("aaaaabbb"), "z": range(8)})
Y08 = np.array([1, 0, 1, 0, 1, 0, 1, 0])


@pytest.mark.parametrize(
    "options",
    [{"sensitive_features": "grp", "groups": ["a", "b"]}, {"sensitive_features": O08["grp"]}],
    ids=["told", "known"],
)
def test_o08_a_fold_without_a_group_is_nan_and_never_the_best(options):
    scorer = make_fairness_scorer("demographic_parity_difference", **options)
    with pytest.warns(FairnessScoringWarning, match=r"holds a \(n=4\) and no b; stratify_by\(y, sensitive_features\)"):
        found = cross_validate(Even(), O08, Y08, cv=KFold(2), scoring=scorer)["test_score"]
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(-2 / 3)


def test_o08_a_fold_of_one_group_is_nan_also_if_the_groups_are_not_known():
    scorer = make_fairness_scorer("demographic_parity_difference", sensitive_features="grp")
    with pytest.warns(FairnessScoringWarning, match=r"one group only, a \(n=4\); nothing can be compared"):
        assert np.isnan(scorer(Even().fit(O08, Y08), O08[:4], Y08[:4]))


def test_o13_the_pipeline_never_sees_the_column():
    X = pd.DataFrame({"sex": ["m"] * 4 + ["f"] * 4, "inc": [9.0, 8, 7, 1, 9, 1, 2, 1]})
    y = np.array([1, 1, 1, 0, 1, 0, 0, 0])
    model = make_pipeline(ColumnTransformer([("n", StandardScaler(), ["inc"])]), LogisticRegression()).fit(X, y)
    scorer = make_fairness_scorer("demographic_parity_difference", sensitive_features="sex")
    assert scorer(model, X, y) == -0.5
    ratio = make_fairness_scorer("demographic_parity_ratio", sensitive_features="sex")
    assert ratio(model, X, y) == pytest.approx(1 / 3)
    with (
        pytest.warns(FairnessScoringWarning, match="ValueError"),
        pytest.raises(ValueError, match="X as ndarray, without column names, so that 'sex' cannot be read"),
    ):
        scorer(model, X.to_numpy(), y)
    with (
        pytest.warns(FairnessScoringWarning, match="ValueError"),
        pytest.raises(ValueError, match=r"\['sex'\] are not among the columns of X: \['inc'\]"),
    ):
        scorer(model, X[["inc"]], y)


def test_o15_the_positive_class_is_the_one_named_wherever_it_sorts():
    class Fixed(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            p = np.asarray(X)[:, 0].astype(float)
            return np.c_[p, 1 - p]

        def predict(self, X):
            return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    X = pd.DataFrame({"p": [0.14, 0.06, 0.86, 0.94]})
    y, groups = np.array(["good", "good", "bad", "bad"]), pd.Series(["x", "y", "x", "y"])
    model = Fixed().fit(X, y)
    for pos_label in ("bad", "good"):
        options = {"sensitive_features": groups, "pos_label": pos_label}
        assert make_fairness_scorer("true_positive_rate_ratio", **options)(model, X, y) == 1.0
        scores = fairness_scorers(["selection_rate_ratio", "true_positive_rate_difference"], **options)(model, X, y)
        assert scores == {
            "accuracy": 1.0,
            "selection_rate_ratio": 1.0,
            "true_positive_rate_difference": 0.0,
            "selection_rate": 0.5,
        }
    skewed = pd.Series(["x", "y", "y", "y"])
    bad = make_fairness_scorer("selection_rate_difference", sensitive_features=skewed, pos_label="bad")
    good = make_fairness_scorer("selection_rate_ratio", sensitive_features=skewed, pos_label="good")
    assert bad(model, X, y) == pytest.approx(-2 / 3)  # x 0/1, y 2/3
    assert good(model, X, y) == pytest.approx(1 / 3)  # x 1/1, y 1/3


# ---------------------------------------------------------------------------------------------- traps that others fall into
def quiet(X, y, **options):
    """Return the score and the warnings of a scorer on the rows of a rule."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return score("demographic_parity_difference", X, y, **options), caught


def test_trap_string_labels_give_0():
    X, y = rows(labels=("no", "yes"))
    assert fl.selection_rate(["no", "yes"], ["yes", "no"]) == 0.0  # what the trap is
    with (
        pytest.warns(FairnessScoringWarning, match="pass pos_label"),
        pytest.raises(ValueError, match="hold the labels .*pass pos_label"),
    ):
        score("demographic_parity_difference", X, y)
    with (
        pytest.warns(FairnessScoringWarning, match="pass pos_label"),
        pytest.raises(ValueError, match="pass pos_label"),
    ):
        score(fl.demographic_parity_difference, X, y)
    assert score("demographic_parity_difference", X, y, pos_label="yes") < 0


def test_trap_forgotten_sensitive_features():
    X, y, _ = data()
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=make_fairness_scorer(METRIC))
    with (
        pytest.warns(
            FairnessScoringWarning, match="no sensitive_features reached the scorer.*refits its first candidate"
        ),
        pytest.warns(UserWarning, match="Scoring failed"),
        pytest.warns(UserWarning, match="One or more of the test scores are non-finite"),
    ):
        search.fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test scores")
def test_trap_a_search_whose_every_score_is_nan_picks_its_first_candidate():
    """What GridSearchCV does is pinned here; our warning is of a named category, and the refit callables raise."""
    X, y, _ = data()
    grid = {"logisticregression__C": [1e-6, 1.0]}
    wrong = {"sensitive_features": "raec"}
    with pytest.warns(FairnessScoringWarning, match="raises ValueError: .*'raec'. are not among the columns"):
        search = GridSearchCV(pipe(), grid, cv=FOLDS, scoring=make_fairness_scorer(METRIC, **wrong)).fit(X, y)
    assert search.best_index_ == 0
    assert search.cv_results_["rank_test_score"].tolist() == [1, 1]
    for refit in (
        select_within(0.5, disparity=METRIC, performance="accuracy"),
        select_pareto(disparity=METRIC, performance="accuracy"),
    ):
        several = fairness_scorers([METRIC], groups=[0, 1, 9], sensitive_features="race")
        with (
            pytest.warns(FairnessScoringWarning, match="and no 9; stratify_by"),
            pytest.raises(ValueError, match="none of the 2 candidates can be chosen"),
        ):
            GridSearchCV(pipe(), grid, cv=FOLDS, scoring=several, refit=refit).fit(X, y)


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test scores")
def test_trap_misspelt_column():
    X, y, _ = data()
    scorer = make_fairness_scorer(METRIC, sensitive_features="Race")
    with (
        pytest.warns(
            FairnessScoringWarning, match=r"\['Race'\] are not among the columns of X: \['race', 'a', 'b', 'c'\]"
        ),
        pytest.raises(ValueError, match="Race"),
    ):
        GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scorer, error_score="raise").fit(X, y)
    several = fairness_scorers([METRIC], sensitive_features="Race")
    refit = select_within(0.5, disparity=METRIC, performance="accuracy")
    with pytest.warns(FairnessScoringWarning, match="Race"), pytest.raises(Exception, match="(?i)score|fits failed"):
        GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=several, refit=refit).fit(X, y)


def test_trap_a_fairness_only_scorer_picks_useless_models():
    X, _, _ = data()
    y = (X["a"] + X["b"] > 1.2).astype(int)
    useless = {"logisticregression__C": [1e-9, 1.0]}
    # What the trap is: with fairlearn's metric in the same place, the model that decides alike for all wins at gap 0.
    naive = make_column_gap("race")
    assert GridSearchCV(pipe(), useless, cv=FOLDS, scoring=naive).fit(X, y).best_params_ == {
        "logisticregression__C": 1e-9
    }
    scorer = make_fairness_scorer("demographic_parity_difference", sensitive_features="race")
    with (
        pytest.warns(FairnessScoringWarning, match="one class is predicted for all 120 rows"),
        pytest.warns(UserWarning, match="One or more of the test scores are non-finite"),
    ):
        search = GridSearchCV(pipe(), useless, cv=FOLDS, scoring=scorer).fit(X, y)
    assert search.best_params_ == {"logisticregression__C": 1.0}


class make_column_gap:
    """A plain scoring function of the gap in a column of X, as people write it."""

    def __init__(self, column):
        self.column = column

    def __call__(self, estimator, X, y):
        return -fl.demographic_parity_difference(y, estimator.predict(X), sensitive_features=X[self.column])


@pytest.mark.parametrize(
    "metric", ["demographic_parity_difference", "disparate_impact", fl.demographic_parity_difference]
)
def test_trap_a_tuned_threshold_that_decides_alike_for_everyone(metric):
    X, y, race = data()
    scorer = make_fairness_scorer(metric, sensitive_features=race)
    tuned = TunedThresholdClassifierCV(pipe(), scoring=scorer, cv=FOLDS, thresholds=12).fit(X, y)
    assert 0 < tuned.predict(X).mean() < 1
    assert tuned.best_score_ > -1


def test_trap_an_unknown_group_at_every_threshold_is_said():
    X, y, race = data()
    scorer = make_fairness_scorer(METRIC, sensitive_features=race, groups=[0, 1, 2, 3])
    with pytest.warns(FairnessScoringWarning, match="is the worst at every threshold: .*and no 3"):
        TunedThresholdClassifierCV(pipe(), scoring=scorer, cv=FOLDS, thresholds=5).fit(X, y)


@pytest.mark.parametrize("direction", [True, False])
def test_trap_a_threshold_that_cannot_be_judged_wins_for_no_direction(direction):
    """Whatever the range of a callable: below every score it can have."""
    scorer = make_fairness_scorer(
        number_of_groups, sensitive_features=pd.Series(list("aabb")), greater_is_better=direction
    )
    y = pd.Series([0, 1, 0, 1])
    judged, one_class = scorer._score_func(y, np.array([0, 1, 0, 1])), scorer._score_func(y, np.ones(4, dtype=int))
    assert one_class < judged


def test_trap_reordered_indexes():
    X, y, race = data()
    model = pipe().fit(X, y)
    expected = make_fairness_scorer(METRIC, sensitive_features="race")(model, X, y)
    shuffled = race.sample(frac=1, random_state=1)
    # What the trap is: by position, a shuffled Series gives another number without a word.
    assert (
        -metrics.equalized_odds_difference(y.to_numpy(), model.predict(X), sensitive_features=shuffled.to_numpy())
        != expected
    )
    assert make_fairness_scorer(METRIC, sensitive_features=shuffled)(model, X, y) == expected
    found = cross_val_score(pipe(), X, y, cv=FOLDS, scoring=make_fairness_scorer(METRIC, sensitive_features=shuffled))
    assert (
        found.tolist()
        == cross_val_score(
            pipe(), X, y, cv=FOLDS, scoring=make_fairness_scorer(METRIC, sensitive_features="race")
        ).tolist()
    )
    with (
        pytest.warns(FairnessScoringWarning, match="differs from that of X"),
        pytest.raises(
            ValueError, match="index of sensitive_features differs from that of X, so rows cannot be matched"
        ),
    ):
        make_fairness_scorer(METRIC)(model, X, y, sensitive_features=shuffled)


def test_trap_an_index_that_was_reset():
    X, y, race = data()
    model = pipe().fit(X, y)
    with (
        pytest.warns(FairnessScoringWarning, match="are not in the index"),
        pytest.raises(ValueError, match=r"360 of 360 rows are not in the index of sensitive_features \(first: 0\)"),
    ):
        make_fairness_scorer(METRIC, sensitive_features=race)(model, X.reset_index(drop=True), y)


def test_trap_an_index_that_repeats():
    with pytest.raises(ValueError, match="the index of sensitive_features repeats 7"):
        make_fairness_scorer(METRIC, sensitive_features=pd.Series(["a", "b", "a"], index=[7, 7, 8]))


@pytest.mark.parametrize("values", [np.array(["a", "b"]), ["a", "b", 1.5], [True, False], {"a": 1}, np.array([1, 2])])
def test_trap_bare_arrays_are_refused(values):
    with pytest.raises(TypeError, match="Bare values cannot be aligned with folds: wrap them as pandas.Series"):
        make_fairness_scorer(METRIC, sensitive_features=values)
    with pytest.raises(TypeError, match="Bare values"):
        fairness_scorers([METRIC], sensitive_features=values)


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test scores")
def test_trap_a_dict_of_metadata_is_not_split_by_folds():
    X, y, race = data()
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.warns(FairnessScoringWarning, match="cannot split a dict by folds. Pass a pandas.DataFrame"),
    ):
        found = cross_val_score(
            pipe(), X, y, cv=FOLDS, scoring=make_fairness_scorer(METRIC), params={"sensitive_features": {"race": race}}
        )
    assert np.isnan(found).all()
    with sklearn.config_context(enable_metadata_routing=True):
        frame = race.to_frame()
        found = cross_val_score(
            pipe(), X, y, cv=FOLDS, scoring=make_fairness_scorer(METRIC), params={"sensitive_features": frame}
        )
    assert np.isfinite(found).all()


def test_trap_multiclass_labels_are_no_selection_rate():
    X, y = rows()
    X["yhat"], y = np.arange(len(X)) % 3, y * 2
    with (
        pytest.warns(FairnessScoringWarning, match="3 labels"),
        pytest.raises(ValueError, match="hold 3 labels: .*pass pos_label, and it is judged against all the others"),
    ):
        score("demographic_parity_difference", X, y)
    expected = metrics.demographic_parity_difference(None, (X["yhat"] == 2) * 1, sensitive_features=X["group"])
    with pytest.warns(FairnessScoringWarning) if expected == 0 else warnings.catch_warnings():
        assert score("demographic_parity_difference", X, y, pos_label=2) == -expected


def test_trap_a_wrong_pos_label():
    X, y = rows(labels=("no", "yes"))
    with (
        pytest.warns(FairnessScoringWarning, match="pos_label='Yes'"),
        pytest.raises(ValueError, match=r"pos_label='Yes' is not among the labels found in .*: \['no', 'yes'\]"),
    ):
        score("demographic_parity_difference", X, y, pos_label="Yes")


def test_trap_a_tiny_group_moves_a_fold():
    X, y = rows()
    X = X.assign(group=np.where(np.arange(len(X)) < 2, "tiny", X["group"]))
    assert np.isfinite(score("selection_rate_difference", X, y))
    with pytest.warns(FairnessScoringWarning, match=r"tiny has fewer than 10 rows in this fold \(.*tiny \(n=2\)"):
        assert np.isnan(score("selection_rate_difference", X, y, min_group_size=10))


def test_trap_a_missing_group_is_no_lost_row():
    from sklearn_ethiclens.exceptions import MissingGroupsWarning

    X, y = rows()
    gaps = X["group"].where(X["other"] > 0.3)
    with pytest.warns(MissingGroupsWarning, match="they are audited as the group"):
        found = score("demographic_parity_difference", X, y, sensitive_features=gaps)
    named = score("demographic_parity_difference", X, y, sensitive_features=gaps.fillna("nobody said"))
    assert found == named


def test_trap_an_unused_category_is_no_group():
    X, y = rows()
    categories = X["group"].astype("category").cat.add_categories("never")
    found = score("demographic_parity_difference", X, y, sensitive_features=categories)
    assert found == score("demographic_parity_difference", X, y)


# ------------------------------------------------------------------------------------------------------------ weights
GAPS = {
    "demographic_parity_difference": fl.demographic_parity_difference,
    "equalized_odds_difference": fl.equalized_odds_difference,
    "equal_opportunity_difference": fl.equal_opportunity_difference,
}


def weights():
    X, y, race = data()
    return pd.Series(np.where(X["a"] > 0, 5.0, 1.0), index=y.index)


def test_unrequested_weights_are_an_error_and_declined_ones_are_left_out():
    X, y, race = data()
    model = LogisticRegression()
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        params = {"sample_weight": weights(), "sensitive_features": race}

        def run(scorer):
            return cross_val_score(model, X, y, cv=FOLDS, scoring=scorer, params=params, error_score="raise")

        with pytest.raises(Exception, match=r"\[sample_weight\] are passed but are not explicitly set as requested"):
            run(make_fairness_scorer(METRIC))
        declined = run(make_fairness_scorer(METRIC).set_score_request(sample_weight=False))
        requested = run(make_fairness_scorer(METRIC).set_score_request(sample_weight=True))
        by_fold = []
        for train, test in FOLDS.split(X, y):
            w = weights().iloc[train]
            fitted = LogisticRegression().fit(X.iloc[train], y.iloc[train], sample_weight=w)
            decided, own = fitted.predict(X.iloc[test]), {"sensitive_features": race.iloc[test]}
            gap = getattr(metrics, METRIC)
            plain = gap(y.iloc[test], decided, **own)
            by_fold.append([-abs(plain), -abs(gap(y.iloc[test], decided, **own, sample_weight=weights().iloc[test]))])
        np.testing.assert_allclose(np.stack([declined, requested], axis=1), by_fold, rtol=1e-9)
        assert (declined != requested).any()


@pytest.mark.parametrize("name", GAPS)
def test_weighted_scores_are_those_of_fairlearn(name):
    X, y = rows()
    X = X[X["group"] != "m"]  # of two groups the gap to the reference is that between the extremes
    y = y[X.index]
    w = np.random.default_rng(0).lognormal(size=len(y))
    model = Rule().fit(X, y)
    expected = -GAPS[name](y, X["yhat"], sensitive_features=X["group"], sample_weight=w)
    scorer = make_fairness_scorer(name, sensitive_features="group")
    assert scorer(model, X, y, sample_weight=w) == pytest.approx(expected, abs=1e-9)
    assert expected != pytest.approx(scorer(model, X, y), abs=1e-3)
    several = fairness_scorers([name], sensitive_features="group")(model, X, y, sample_weight=w)
    assert several[name] == pytest.approx(expected, abs=1e-9)
    assert several["accuracy"] == get_scorer("accuracy")(model, X, y, sample_weight=w)
    assert several["selection_rate"] == pytest.approx(np.average(X["yhat"], weights=w))


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.kind != "group"])
def test_weighted_scores_are_those_of_the_weighted_tally_and_equal_weights_change_nothing(name):
    X, y = rows()
    model, w = Rule().fit(X, y), np.random.default_rng(1).lognormal(size=len(y))
    scorer = make_fairness_scorer(name, sensitive_features="group")
    metric = METRICS[name]
    tally = Tally.from_predictions(y, X["yhat"], sensitive_features=X["group"], sample_weight=w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = worst_comparison(metric, tally)
        given = {"sensitive_features": X["group"], "sample_weight": w}
        plain = value if name == "composite_bias_score" else getattr(metrics, name)(y, X["yhat"], **given)
        score = scorer(model, X, y, sample_weight=w)
        equal, unweighted = scorer(model, X, y, sample_weight=np.full(len(y), 0.1)), scorer(model, X, y)
    assert plain == pytest.approx(value, abs=1e-12, nan_ok=True)
    if metric.parity is not None and metric.scale == "difference":
        assert score == pytest.approx(-abs(value - metric.parity), abs=1e-12, nan_ok=True)
    elif metric.scale == "ratio":
        assert score == pytest.approx(min(value, 1 / value), abs=1e-12, nan_ok=True)
    assert equal == pytest.approx(unweighted, abs=1e-12, nan_ok=True)


def test_sizes_are_of_rows_whatever_they_weigh():
    X, y = rows()
    model, n = Rule().fit(X, y), int((X["group"] == X["group"].iloc[0]).sum())
    scorer = make_fairness_scorer(METRIC, sensitive_features="group", min_group_size=2)
    w = np.where(X["group"] == X["group"].iloc[0], 1000.0, 0.001)
    assert np.isfinite(scorer(model, X, y, sample_weight=w))
    w[np.flatnonzero(X["group"] == X["group"].iloc[0])[1:]] = 0
    assert n > 2
    with pytest.warns(FairnessScoringWarning, match="has fewer than 2 rows in this fold"):
        assert np.isnan(scorer(model, X, y, sample_weight=w))


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (lambda n: [1.0] * (n - 1), "sample_weight"),
        (lambda n: [-1.0] + [1.0] * (n - 1), "sample_weight must be finite and at least 0; got 1 negative"),
        (lambda n: [np.nan] + [1.0] * (n - 1), r"sample_weight must .* got 1 missing \(NaN\)"),
        (lambda n: [0.0] * n, "sample_weight must be above 0 in some row"),
        (lambda n: ["a"] * n, "sample_weight must hold one number per row"),
    ],
)
def test_wrong_weights_are_named(w, words):
    X, y = rows()
    model = Rule().fit(X, y)
    for scorer in (
        make_fairness_scorer(METRIC, sensitive_features="group"),
        fairness_scorers([METRIC], sensitive_features="group"),
    ):
        with pytest.warns(FairnessScoringWarning), pytest.raises((ValueError, TypeError), match=words):
            scorer(model, X, y, sample_weight=w(len(y)))
    with pytest.raises((ValueError, TypeError), match=words):
        metrics.disparate_impact(y, X["yhat"], sensitive_features=X["group"], sample_weight=w(len(y)))


def test_a_series_of_weights_must_have_the_index_of_X():
    X, y = rows()
    scorer, w = make_fairness_scorer(METRIC, sensitive_features="group"), pd.Series(np.ones(len(y)), X.index)
    assert np.isfinite(scorer(Rule().fit(X, y), X, y, sample_weight=w))
    moved = w.set_axis(X.index[::-1])
    with pytest.warns(FairnessScoringWarning), pytest.raises(ValueError, match="the index of sample_weight differs"):
        scorer(Rule().fit(X, y), X, y, sample_weight=moved)


def test_metrics_of_scores_take_weights_and_pooled_counts_do_not():
    X, y, race = data()
    model = LogisticRegression().fit(X[["a"]], y)
    scorer = make_fairness_scorer("roc_auc", sensitive_features=race)
    assert scorer._accept_sample_weight() is True
    probability, w = model.predict_proba(X[["a"]])[:, 1], weights()
    own = [np.asarray(race == group) for group in sorted(set(race))]
    areas = [roc_auc_score(np.asarray(y)[at], probability[at], sample_weight=w[at]) for at in own]
    assert scorer(model, X[["a"]], y, sample_weight=w) == pytest.approx(min(areas), abs=1e-12)
    brier = [brier_score_loss(np.asarray(y)[at], probability[at], sample_weight=w[at]) for at in own]
    worst = make_fairness_scorer("brier_score", sensitive_features=race)(model, X[["a"]], y, sample_weight=w)
    assert worst == pytest.approx(-max(brier), abs=1e-12)
    pooled = fairness_scorers([METRIC], sensitive_features=race, pooled=True)
    with pytest.warns(FairnessScoringWarning), pytest.raises(ValueError, match="pooled=True pools numbers of rows"):
        pooled(model, X[["a"]], y, sample_weight=weights())


def test_a_performance_that_takes_no_weights_is_named_and_no_search_hands_them_on():
    X, y, race = data()
    model = LogisticRegression().fit(X[["a"]], y)
    performance = {"accuracy": "accuracy", "size": lambda estimator, X, y: 1.0, "worst": make_scorer(max_error)}
    scorer = fairness_scorers([METRIC], sensitive_features=race, performance=performance)
    assert scorer._accept_sample_weight() is False
    assert scorer(model, X[["a"]], y)["size"] == 1.0
    with (
        pytest.warns(FairnessScoringWarning),
        pytest.raises(ValueError, match=r"sample_weight reached the scorer, but \['size', 'worst'\] of performance"),
    ):
        scorer(model, X[["a"]], y, sample_weight=weights())


@pytest.mark.parametrize("several", [False, True])
def test_weights_alone_are_routed_where_groups_are_a_column(several):
    X, y, race = data()
    make = fairness_scorers if several else make_fairness_scorer
    scoring = make([METRIC] if several else METRIC, sensitive_features="race").set_score_request(sample_weight=True)
    if several:
        scoring.performance = {"accuracy": get_scorer("accuracy")}
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=FOLDS, scoring=scoring, refit=METRIC if several else True)
        search.fit(X, y, sample_weight=weights())
    train, test = next(iter(FOLDS.split(X, y)))
    p = LogisticRegression(C=0.1).fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
    found = search.cv_results_[f"split0_test_{METRIC if several else 'score'}"][0]
    value = getattr(metrics, METRIC)(
        y.iloc[test], p, sensitive_features=X["race"].iloc[test], sample_weight=weights().iloc[test]
    )
    assert found == pytest.approx(-abs(value), abs=1e-9)


def test_weights_reach_a_fairlearn_metric():
    X, y = rows()
    w = np.arange(len(y)) % 3 + 1.0
    model = Rule().fit(X, y)
    value = fl.demographic_parity_difference(y, X["yhat"], sensitive_features=X["group"], sample_weight=w)
    scorer = make_fairness_scorer(fl.demographic_parity_difference, sensitive_features="group")
    assert scorer(model, X, y, sample_weight=w) == -value
    several = fairness_scorers([fl.demographic_parity_difference], sensitive_features="group")
    found = several(model, X, y, sample_weight=w)
    assert found["demographic_parity_difference"] == -value
    assert found["accuracy"] == get_scorer("accuracy")(model, X, y, sample_weight=w)


@pytest.mark.parametrize("several", [False, True])
def test_a_search_fitted_with_weights_without_routing_scores_by_them_unless_declined(several):
    """From 1.9 a search hands weights on to scorers that accept them; before, none gets any."""
    X, y, race = data()
    new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
    found, said = {}, {}
    for declined in (False, True):
        one = (
            fairness_scorers([METRIC], sensitive_features="race")
            if several
            else make_fairness_scorer(METRIC, sensitive_features="race")
        )
        if declined:
            one.set_score_request(sample_weight=False)
        scoring = one if several else {"gap": one, "accuracy": "accuracy"}
        search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=FOLDS, scoring=scoring, refit="accuracy")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(X, y, sample_weight=weights())
        said[declined] = any("does not support sample_weight" in str(w.message) for w in caught)
        found[declined] = search.cv_results_[f"mean_test_{METRIC if several else 'gap'}"]
        assert np.isfinite(found[declined]).all()
    assert said == {False: False, True: new}
    assert (found[False] != found[True]).any() == new


# ----------------------------------------------------------------------------------------------------- manners as objects
SCORERS = [
    make_fairness_scorer("disparate_impact", sensitive_features="race", reference=0, min_group_size=2),
    make_fairness_scorer(fl.demographic_parity_difference, sensitive_features="race"),
    make_fairness_scorer("equalized_odds_difference", sensitive_features=data()[2]),
    fairness_scorers(NAMES, sensitive_features=data()[2], pooled=True),
]


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda s: repr(s)[:60])
@pytest.mark.parametrize("make", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy, clone])
def test_a_copy_scores_the_same(scorer, make):
    X, y, _ = data()
    model = pipe().fit(X, y)
    made = make(scorer) if make is not clone else clone(scorer, safe=False)
    assert made(model, X, y) == scorer(model, X, y)
    assert repr(made) == repr(scorer)


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda s: repr(s)[:60])
def test_clones_of_a_search_share_the_held_series(scorer):
    refit = NAMES[0] if not isinstance(scorer, type(SCORERS[0])) else True
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scorer, refit=refit)
    cloned = clone(search)
    held, source = (getattr(s.scoring, "_first", s.scoring).sensitive_features for s in (cloned, search))
    assert held is source
    X, y, _ = data()
    assert cloned.fit(X, y).best_params_ == search.fit(X, y).best_params_


def test_parameters_of_a_search_are_not_those_of_its_scorer():
    search = GridSearchCV(pipe(), GRID, scoring=SCORERS[2])
    assert [name for name in search.get_params() if name.startswith("scoring")] == ["scoring"]


def test_requests_of_a_copy_are_its_own():
    scorer = make_fairness_scorer(METRIC)
    copied = copy.copy(scorer).set_score_request(sample_weight=False)
    assert copied._requests != scorer._requests
    with pytest.raises(TypeError, match="can request .*; got \\['groups'\\]"):
        scorer.set_score_request(groups=True)
    with pytest.raises(TypeError, match="can request .*; got \\['groups'\\]"):
        fairness_scorers([METRIC]).set_score_request(groups=True)


def test_repr_says_metric_attribute_and_direction():
    assert repr(SCORERS[0]) == (
        "FairnessScorer('disparate_impact', sensitive_features='race', reference=0, min_group_size=2, "
        "greater_is_better: min(r, 1/r))"
    )
    assert repr(SCORERS[2]) == (
        "FairnessScorer('equalized_odds_difference', sensitive_features=<Series, 360 rows>, "
        "greater_is_better: -abs(difference))"
    )
    assert repr(make_fairness_scorer(number_of_groups, greater_is_better=True)).endswith("greater_is_better: as it is)")
    assert repr(make_fairness_scorer(number_of_groups, greater_is_better=False)).endswith("greater_is_better: negated)")


def test_what_scikit_learn_reads_of_its_own_scorers_is_there():
    """Private names, pinned for each version that CI runs."""
    scorer = make_fairness_scorer(METRIC, sensitive_features=data()[2])
    assert scorer._sign == scorer.sign == 1
    assert scorer._response_method == scorer.response_method == "predict"
    assert dict(scorer._kwargs) == {}
    assert scorer._score_func == scorer.score_func
    assert scorer._accept_sample_weight() is True
    assert make_fairness_scorer(fl.demographic_parity_difference)._accept_sample_weight() is True
    for one, wanted in ((scorer, False), (make_fairness_scorer(METRIC), True)):
        assert one.get_metadata_routing().score.requests["sensitive_features"] is wanted
        assert one._get_metadata_request().score.requests["sensitive_features"] is wanted


@pytest.mark.parametrize("engine", ["polars", "pyarrow"])
def test_other_frames_have_columns_too(engine):
    X, y = rows()
    pytest.importorskip(engine)
    if engine == "polars":
        import polars

        frame = polars.DataFrame({"group": X["group"].tolist(), "yhat": X["yhat"].tolist()})
    else:
        import pyarrow

        frame = pyarrow.table({"group": X["group"].tolist(), "yhat": X["yhat"].tolist()})

    class Columns(Rule):
        def predict(self, X):
            return np.asarray(X["yhat"])

    scorer = make_fairness_scorer("equalized_odds_difference", sensitive_features="group")
    assert scorer(Columns().fit(None, y), frame, y.to_numpy()) == score("equalized_odds_difference", X, y)


def test_a_stratified_search_on_text_labels_and_text_groups_runs():
    bunch = load_german_credit()
    X = bunch.data[["duration", "credit_amount"]].assign(age=bunch.sensitive_features["age"])
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["duration", "credit_amount"])),
        LogisticRegression(class_weight="balanced"),
    )
    scoring = fairness_scorers(["disparate_impact"], sensitive_features="age", pos_label="good")
    search = GridSearchCV(model, GRID, cv=StratifiedKFold(3), scoring=scoring, refit="accuracy").fit(X, bunch.target)
    found = search.cv_results_["mean_test_disparate_impact"]
    assert ((found > 0) & (found <= 1)).all()


# -------------------------------------------------------------------------------------------------------------- the gate
GATE = """
import numpy as np
from sklearn_ethiclens import FairnessAuditor, audit, load_german_credit

sex = np.repeat(["F", "M"], 500)
decision = np.r_[np.arange(500) < 150, np.arange(500) < 250].astype(int)

def test_audit():
    audit(None, decision, sensitive_features={"sex": sex}, metrics=["disparate_impact"]).raise_if_flagged()

def test_auditor():
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.frozen import FrozenEstimator
    X = pd.DataFrame({"sex": (sex == "M").astype(int), "decision": decision})
    model = DecisionTreeClassifier().fit(X, decision)
    FairnessAuditor(FrozenEstimator(model), sensitive_features="sex").audit(X, decision).raise_if_flagged()

def test_passes():
    audit(None, np.tile(decision[:500], 2), sensitive_features={"sex": sex}, metrics=["disparate_impact"]).raise_if_flagged()
"""


def test_the_gate_shows_the_scorecard_in_a_pytest_run(tmp_path):
    (tmp_path / "test_gate.py").write_text(GATE, encoding="utf-8")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            str(tmp_path / "test_gate.py"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "2 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "FairnessGateError" in run.stdout
    assert "FAIL" in run.stdout
    assert "disparate" in run.stdout.lower()
    assert "0.6" in run.stdout
