"""Choosing a model: the best performance under a bounded disparity, the frontier, and folds that hold every group."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
)

from sklearn_ethiclens import (
    audit,
    fairness_scorers,
    make_fairness_scorer,
    pareto_frontier,
    select_pareto,
    select_within,
    stratify_by,
)
from sklearn_ethiclens.exceptions import FairnessScoringWarning
from sklearn_ethiclens.scorers import pooled_tallies
from tests.test_search_matrix import FOLDS, GRID, METRIC, data, pipe

GAP = {"disparity": "selection_rate_difference", "performance": "accuracy"}
RATIO = {"disparity": "disparate_impact", "performance": "accuracy"}


def results(performance, disparity, name="selection_rate_difference", rate=None):
    """Return what a search would have in ``cv_results_``; the disparity is given without its sign."""
    sign = 1.0 if name == "disparate_impact" else -1.0
    table = {
        "params": [{"C": i} for i in range(len(performance))],
        "mean_test_accuracy": np.array(performance, dtype=float),
        "std_test_accuracy": np.full(len(performance), 0.01),
        f"mean_test_{name}": sign * np.array(disparity, dtype=float),
        f"std_test_{name}": np.full(len(performance), 0.02),
    }
    return table if rate is None else table | {"mean_test_selection_rate": np.array(rate, dtype=float)}


# ------------------------------------------------------------------------------------------------------- select_within
@pytest.mark.parametrize(
    ("bound", "chosen"), [(0.5, 3), (0.30, 3), (0.299, 2), (0.2, 2), (0.1, 1), (0.05, 0), (0.02, 0)]
)
def test_the_best_performance_within_the_bound_of_a_gap(bound, chosen):
    table = results([0.6, 0.7, 0.8, 0.9], [0.02, 0.1, 0.2, 0.3])
    assert select_within(bound, **GAP)(table) == chosen


@pytest.mark.parametrize(("bound", "chosen"), [(0.5, 3), (0.7, 2), (0.8, 1), (0.95, 0)])
def test_the_best_performance_within_the_bound_of_a_ratio(bound, chosen):
    table = results([0.6, 0.7, 0.8, 0.9], [0.99, 0.8, 0.7, 0.5], "disparate_impact")
    assert select_within(bound, **RATIO)(table) == chosen


def test_a_bound_that_is_met_but_for_rounding_is_met():
    assert select_within(0.1, **GAP)(results([0.6, 0.9], [0.01, 0.4 - 0.3])) == 1
    assert select_within(0.8, **RATIO)(results([0.6, 0.9], [0.9, 0.48 / 0.60], "disparate_impact")) == 1


def test_ties_go_to_the_smaller_disparity_then_to_the_first():
    assert select_within(0.5, **GAP)(results([0.9, 0.9, 0.9], [0.2, 0.1, 0.1])) == 1
    assert select_within(0.5, **RATIO)(results([0.9, 0.9, 0.9], [0.7, 0.8, 0.8], "disparate_impact")) == 1


@pytest.mark.parametrize(("tolerance", "chosen"), [(0.0, 3), (0.05, 3), (0.1, 2), (0.2, 1), (1.0, 0)])
def test_the_least_disparity_within_a_tolerance_of_the_best_performance(tolerance, chosen):
    table = results([0.6, 0.7, 0.8, 0.9], [0.02, 0.1, 0.2, 0.3])
    assert select_within(tolerance=tolerance, **GAP)(table) == chosen
    table = results([0.6, 0.7, 0.8, 0.9], [0.99, 0.8, 0.7, 0.5], "disparate_impact")
    assert select_within(tolerance=tolerance, **RATIO)(table) == chosen


def test_no_candidate_within_the_bound_is_an_error_that_names_the_nearest():
    table = results([0.6, 0.7], [0.2, 0.1])
    said = r"no candidate has selection_rate_difference at most 0.05; the nearest is \{'C': 1\} \(performance 0.7, .* 0.1\)"
    with pytest.raises(ValueError, match=said):
        select_within(0.05, **GAP)(table)
    table = results([0.6, 0.7], [0.5, 0.4], "disparate_impact")
    with pytest.raises(ValueError, match=r"disparate_impact at least 0.8; the nearest is \{'C': 0\}"):
        select_within(0.8, **RATIO)(table)


REFITS = [
    select_within(1.0, **GAP),
    select_within(tolerance=1.0, **GAP),
    select_pareto(**GAP),
    select_pareto(**GAP, weight=0.0),
    select_pareto(**GAP, weight=1.0),
]


@pytest.mark.parametrize("refit", REFITS, ids=repr)
def test_nan_never_wins(refit):
    nan = float("nan")
    assert refit(results([0.9, 0.6, nan], [nan, 0.3, 0.0])) == 1
    with pytest.raises(
        ValueError, match=r"none of the 2 candidates can be chosen: 0 predict one class .* 2 have no score"
    ):
        refit(results([0.9, nan], [nan, 0.3]))


@pytest.mark.parametrize("refit", REFITS, ids=repr)
def test_a_candidate_that_predicts_one_class_is_refused(refit):
    assert refit(results([0.9, 0.6, 0.9], [0.0, 0.3, 0.0], rate=[1.0, 0.5, 0.0])) == 1
    with pytest.raises(ValueError, match="none of the 2 candidates can be chosen: 2 predict one class for every row"):
        refit(results([0.9, 0.8], [0.0, 0.0], rate=[1.0, 0.0]))


def test_the_nearest_is_never_one_that_cannot_be_chosen():
    with pytest.raises(ValueError, match=r"the nearest is \{'C': 1\}"):
        select_within(0.1, **GAP)(results([0.9, 0.6, 0.5], [0.0, 0.3, 0.4], rate=[1.0, 0.5, 0.5]))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({}, ValueError, "either a bound on the disparity, or a tolerance"),
        ({"bound": 0.1, "tolerance": 0.1}, ValueError, "either a bound"),
        ({"tolerance": -0.1}, ValueError, "tolerance must be at least 0"),
        ({"tolerance": 0.1, "confidence": 0.9}, ValueError, "goes without confidence"),
        ({"bound": -0.1}, ValueError, "bound must be at least 0"),
        ({"bound": float("nan")}, ValueError, "bound must be at least 0"),
        ({"bound": 0.1, "confidence": 95}, ValueError, "confidence must lie in"),
        ({"bound": 0.1, "method": "bca"}, TypeError, "options are reference, n_resamples and random_state"),
    ],
)
def test_arguments_are_checked_before_the_search_runs(arguments, error, match):
    with pytest.raises(error, match=match):
        select_within(**arguments, **GAP)


def test_a_confidence_limit_needs_a_metric_with_an_interval():
    with pytest.raises(
        ValueError, match="only comparisons with a reference have; demographic_parity_difference is none"
    ):
        select_within(0.1, disparity="demographic_parity_difference", performance="accuracy", confidence=0.9)


@pytest.mark.parametrize("make", [select_within(0.2, **GAP), select_pareto(**GAP)], ids=repr)
def test_a_score_the_search_has_not_is_named_with_those_it_has(make):
    table = {"params": [{}], "mean_test_score": [1.0], "mean_test_tally[0:a].tn": [1.0]}
    with pytest.raises(ValueError, match=r"the search has no score 'accuracy'; it has \['score'\].*fairness_scorers"):
        make(table)


@pytest.mark.parametrize("refit", REFITS, ids=repr)
def test_refit_callables_pickle_and_show_what_they_do(refit):
    table = results([0.6, 0.7, 0.8], [0.02, 0.1, 0.2])
    for made in (pickle.loads(pickle.dumps(refit)), copy.deepcopy(refit)):
        assert repr(made) == repr(refit)
        assert made(table) == refit(table)
    assert "disparity='selection_rate_difference', performance='accuracy'" in repr(refit)


# ------------------------------------------------------------------------------------------------------------ in searches
@pytest.mark.parametrize("search_class", [GridSearchCV, RandomizedSearchCV])
def test_the_search_refits_what_was_chosen(search_class):
    X, y, race = data()
    scoring = fairness_scorers([METRIC, "disparate_impact"], sensitive_features="race")
    options = {"n_iter": 3, "random_state": 0} if search_class is RandomizedSearchCV else {}
    scored = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scoring, refit="accuracy").fit(X, y).cv_results_
    bound = np.sort(-scored[f"mean_test_{METRIC}"])[:2].mean()  # one candidate or two are within
    refit = select_within(bound, disparity=METRIC, performance="accuracy")
    search = search_class(pipe(), GRID, cv=FOLDS, scoring=scoring, refit=refit, **options).fit(X, y)
    table, chosen = search.cv_results_, search.best_index_
    assert isinstance(chosen, int)
    allowed = -table[f"mean_test_{METRIC}"] <= bound
    assert 0 < allowed.sum() < 3  # the bound binds
    assert allowed[chosen]
    assert table["mean_test_accuracy"][chosen] == table["mean_test_accuracy"][allowed].max()
    assert search.best_params_ == table["params"][chosen]
    assert search.best_estimator_.get_params()["logisticregression__C"] == search.best_params_["logisticregression__C"]
    assert search.predict(X).shape == y.shape
    frontier = pareto_frontier(table, performance="accuracy", disparity=METRIC)
    assert set(frontier.index) == {0, 1, 2}
    assert frontier["performance"].is_monotonic_decreasing
    assert select_pareto(disparity=METRIC, performance="accuracy")(table) in frontier.index[frontier["on_frontier"]]


def test_a_halving_search_has_one_score_only():
    X, y, _ = data()
    search = HalvingGridSearchCV(
        pipe(),
        GRID,
        cv=FOLDS,
        scoring=make_fairness_scorer(METRIC, sensitive_features="race"),
        min_resources=120,
        random_state=0,
    ).fit(X, y)
    with pytest.raises(ValueError, match=r"no score 'accuracy'; it has \['score'\]"):
        select_within(0.3, disparity=METRIC, performance="accuracy")(search.cv_results_)


def test_works_with_a_dict_of_scorers_under_any_name():
    X, y, _ = data()
    scoring = {"acc": "accuracy", "gap": make_fairness_scorer(METRIC, sensitive_features="race")}
    refit = select_within(0.9, disparity="gap", performance="acc")
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scoring, refit=refit).fit(X, y)
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_acc"])


@pytest.mark.parametrize(
    "refit",
    [
        select_within(0.9, disparity=METRIC, performance="accuracy"),
        select_pareto(disparity=METRIC, performance="accuracy"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_search_over_models_that_decide_alike_for_everyone_raises(refit):
    X, y, _ = data()
    scoring = fairness_scorers([METRIC], sensitive_features="race")
    search = GridSearchCV(
        DummyClassifier(), {"constant": [0, 1], "strategy": ["constant"]}, cv=FOLDS, scoring=scoring, refit=refit
    )
    with (
        pytest.warns(FairnessScoringWarning, match="one class is predicted for all 120 rows"),
        pytest.raises(ValueError, match="none of the 2 candidates can be chosen: 2 predict one class for every row"),
    ):
        search.fit(X, y)


# ----------------------------------------------------------------------------------------------- folds pooled by their tallies
@pytest.mark.parametrize("name", [METRIC, "disparate_impact", "statistical_parity_difference"])
@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
def test_the_pooled_limit_is_that_of_the_audit_of_out_of_fold_predictions(name, outcome):
    X, y, race = data()
    scoring = fairness_scorers([name], sensitive_features=race, outcome=outcome, pooled=True)
    options = {"n_resamples": 300, "random_state": 1}
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scoring, refit="accuracy").fit(X, y)
    limits = []
    for i, params in enumerate(search.cv_results_["params"]):
        oof = cross_val_predict(pipe().set_params(**params), X, y, cv=FOLDS)
        audited = audit(
            y,
            oof,
            sensitive_features=race,
            outcome=outcome,
            metrics=[name],
            policy="four_fifths",
            confidence_level=0.9,
            method="bca",
            **options,
        )
        assert pooled_tallies(search.cv_results_)[i].counts.tolist() == audited.tally.counts.tolist()
        ends = [end for f in audited.findings if f.metric == name for end in (f.low, f.high)]
        limits.append(min(min(e, 1 / e) if e > 0 else 0.0 for e in ends) if "impact" in name else max(map(abs, ends)))
    ratio = "impact" in name
    loosest, tightest = (min(limits), max(limits)) if ratio else (max(limits), min(limits))
    select = {"disparity": name, "performance": "accuracy", "confidence": 0.9, **options}
    assert select_within(loosest, **select)(search.cv_results_) == np.argmax(search.cv_results_["mean_test_accuracy"])
    assert limits[select_within(tightest, **select)(search.cv_results_)] == pytest.approx(tightest)
    beyond = tightest + 0.01 if ratio else tightest - 0.01
    with pytest.raises(ValueError, match=r"at confidence 0.9; the nearest is"):
        select_within(beyond, **select)(search.cv_results_)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_pooling_judges_what_no_single_fold_can():
    """A group that is absent from a fold: the fold is NaN, the pooled tally is whole."""
    X, y, _ = data()
    rare = pd.Series(
        np.where(np.arange(len(X)) < 60, "r", "s"), index=X.index
    )  # folds in order: r is in the first only
    folds = [(np.setdiff1d(np.arange(360), test), test) for test in np.array_split(np.arange(360), 3)]
    scoring = fairness_scorers(["selection_rate_difference"], sensitive_features=rare, pooled=True)
    refit = select_within(0.9, confidence=0.9, n_resamples=200, **GAP)
    with pytest.warns(FairnessScoringWarning, match="and no r"):
        search = GridSearchCV(pipe(), GRID, cv=folds, scoring=scoring, refit=refit).fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_selection_rate_difference"]).all()
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_accuracy"])
    assert pooled_tallies(search.cv_results_)[0].n_rows == 360


def test_pooling_keeps_a_reference_that_is_named_again():
    X, y, race = data()
    scoring = fairness_scorers(["selection_rate_difference"], sensitive_features=race, pooled=True)
    search = GridSearchCV(pipe(), GRID, cv=FOLDS, scoring=scoring, refit="accuracy").fit(X, y)
    found = [select_within(0.0, confidence=0.9, n_resamples=200, reference=reference, **GAP) for reference in (0, 1, 2)]
    said = set()
    for refit in found:
        with pytest.raises(ValueError, match="the nearest is") as error:
            refit(search.cv_results_)
        said.add(str(error.value))
    assert len(said) >= 2


def test_pooling_needs_the_counts_and_the_groups_beforehand():
    with pytest.raises(ValueError, match="pooled=True needs the groups beforehand"):
        fairness_scorers([METRIC], sensitive_features="race", pooled=True)
    with pytest.raises(ValueError, match="kept no counts to pool: score with fairness_scorers"):
        select_within(0.3, confidence=0.9, **GAP)(results([0.6], [0.1]))


def test_pooling_refuses_a_group_it_was_not_told_of():
    X, y, _ = data()
    model = pipe().fit(X, y)
    scoring = fairness_scorers([METRIC], sensitive_features="race", groups=[0, 1], pooled=True)
    with (
        pytest.warns(FairnessScoringWarning, match="do not name 2"),
        pytest.raises(ValueError, match="groups do not name 2, which occurs; pooling would lose its rows"),
    ):
        scoring(model, X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_candidate_of_which_a_fold_failed_is_not_pooled():
    X, y, race = data()
    scoring = fairness_scorers(["selection_rate_difference"], sensitive_features=race, pooled=True)
    refit = select_within(0.9, confidence=0.9, n_resamples=200, **GAP)
    grid = {"logisticregression__C": [-1.0, 0.2]}
    with pytest.warns(UserWarning, match="test scores are non-finite"):
        search = GridSearchCV(pipe(), grid, cv=FOLDS, scoring=scoring, refit=refit).fit(X, y)
    assert pooled_tallies(search.cv_results_)[0] is None
    assert search.best_index_ == 1


# ----------------------------------------------------------------------------------------------------------- the frontier
def beaten(i, performance, disparity):
    """Tell by brute force whether a point is beaten: another is as good in both and better in one."""
    return any(
        performance[j] >= performance[i]
        and disparity[j] <= disparity[i]
        and (performance[j] > performance[i] or disparity[j] < disparity[i])
        for j in range(len(performance))
    )


grid_points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1, max_size=12)


@given(grid_points)
def test_the_frontier_is_what_no_candidate_beats(points):
    performance = [p / 5 for p, _, _ in points]
    disparity = [float("nan") if lost else d / 5 for _, d, lost in points]
    table = pareto_frontier(
        results(performance, disparity), performance="accuracy", disparity="selection_rate_difference"
    )
    for i, row in table.iterrows():
        known = [j for j in range(len(points)) if not points[j][2]]
        position = known.index(i) if i in known else None
        here = [performance[j] for j in known], [disparity[j] for j in known]
        assert row["on_frontier"] == (position is not None and not beaten(position, *here))
        assert row["usable"] == (not points[i][2])
        assert (row["reason"] == "") == row["usable"]


@given(grid_points, st.floats(0, 1))
def test_what_is_selected_is_on_the_frontier_and_within_the_bound(points, bound):
    performance, disparity = [p / 5 for p, _, _ in points], [float("nan") if lost else d / 5 for _, d, lost in points]
    table = results(performance, disparity)
    frontier = pareto_frontier(table, **GAP)
    efficient = set(frontier.index[frontier["on_frontier"]])
    for refit in (
        select_pareto(**GAP, weight=bound),
        select_within(bound, **GAP),
        select_within(tolerance=bound, **GAP),
    ):
        try:
            chosen = refit(table)
        except ValueError:
            usable = [d for d in disparity if not np.isnan(d)]
            assert not usable or min(usable) > bound
            continue
        row = frontier.loc[chosen]
        assert row["usable"]
        same = [
            i
            for i in efficient
            if frontier.loc[i, "performance"] == row["performance"] and frontier.loc[i, "disparity"] == row["disparity"]
        ]
        assert same  # itself, or its like


def test_the_frontier_of_a_ratio_is_to_be_high():
    table = pareto_frontier(results([0.6, 0.7, 0.65], [0.9, 0.8, 0.7], "disparate_impact"), **RATIO)
    assert table.index.tolist() == [1, 2, 0]
    assert table["on_frontier"].tolist() == [True, False, True]
    assert table["disparity"].tolist() == [0.8, 0.7, 0.9]


def test_the_frontier_says_why_a_candidate_is_not_usable():
    table = pareto_frontier(
        results([0.6, 0.7, 0.8], [0.1, float("nan"), 0.0], rate=[0.5, 0.5, 1.0]), **GAP
    ).sort_index()
    assert table["reason"].tolist() == ["", "a fold could not be scored", "predicts one class for every row"]
    assert table["performance_std"].tolist() == [0.01] * 3
    assert table["disparity_std"].tolist() == [0.02] * 3


@pytest.mark.parametrize(("weight", "chosen"), [(0.0, 0), (0.5, 1), (1.0, 2)])
def test_the_weight_of_select_pareto_goes_from_disparity_to_performance(weight, chosen):
    assert select_pareto(**GAP, weight=weight)(results([0.5, 0.89, 0.9], [0.0, 0.02, 0.2])) == chosen


def test_the_weight_is_a_share():
    with pytest.raises(ValueError, match=r"weight must lie in \[0, 1\]; got 2"):
        select_pareto(**GAP, weight=2)


# ------------------------------------------------------------------------------------------------------------ the folds
def test_folds_hold_their_share_of_every_group_and_label():
    X, y, race = data()
    group = pd.Series(np.where(np.arange(360) < 30, "rare", race.astype(str)), index=y.index)
    for shuffle in (False, True):
        for train, test in stratify_by(y, group, n_splits=5, shuffle=shuffle, random_state=0 if shuffle else None):
            assert np.intersect1d(train, test).size == 0
            whole = pd.crosstab(group, y)
            part = pd.crosstab(group.iloc[test], y.iloc[test])
            assert (np.abs(part.reindex_like(whole).fillna(0) - whole / 5) < 1).all(axis=None)


def test_folds_cover_every_row_once_and_are_the_same_each_time():
    _, y, race = data()
    folds = stratify_by(y, race, n_splits=4)
    assert np.sort(np.concatenate([test for _, test in folds])).tolist() == list(range(360))
    for (_, one), (_, two) in zip(folds, stratify_by(y, race, n_splits=4), strict=True):
        np.testing.assert_array_equal(one, two)


def test_folds_work_as_cv_and_give_every_fold_a_score():
    X, y, _ = data()
    rare = pd.Series(np.where(np.arange(360) < 30, "r", "s"), index=X.index)  # rows in sequence
    scoring = fairness_scorers(["selection_rate_difference"], sensitive_features=rare)
    folds = stratify_by(y, rare, n_splits=3)
    search = GridSearchCV(pipe(), GRID, cv=folds, scoring=scoring, refit=select_within(1.0, **GAP)).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_selection_rate_difference"]).all()


def test_folds_cross_several_columns():
    _, y, race = data()
    other = pd.Series(np.arange(360) // 7 % 2, index=y.index, name="other")
    for _, test in stratify_by(y, pd.DataFrame({"race": race, "other": other}), n_splits=3):
        assert len(pd.crosstab([race.iloc[test], other.iloc[test]], y.iloc[test])) == 6


def test_rare_combinations_are_said():
    y, group = [0, 1] * 10, ["a"] * 18 + ["b"] * 2
    with pytest.warns(
        UserWarning, match="2 of 4 combinations of label and group have fewer than 3 rows: some folds lack them"
    ):
        folds = stratify_by(y, group, n_splits=3)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(20))


def test_folds_refuse_rows_that_do_not_match():
    with pytest.raises(ValueError, match="all arguments must have one entry per row"):
        stratify_by([0, 1, 0], ["a", "b"])
    shuffled = pd.Series(["a", "b", "a", "b"], index=[3, 2, 1, 0])
    with pytest.raises(ValueError, match="rows cannot be matched"):
        stratify_by(pd.Series([0, 1, 0, 1]), shuffled)


def test_folds_stratified_by_group_spread_less_than_folds_by_label():
    """sklearn.md, trap 9: the sizes of the smallest group over folds."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    group = np.where(rng.random(600) < 0.1, "small", "large")

    def spread(folds):
        return np.ptp([np.sum(group[test] == "small") for _, test in folds])

    plain = StratifiedKFold(5, shuffle=True, random_state=1).split(y, y)
    assert spread(stratify_by(y, group, n_splits=5)) <= 2 < spread(plain)


def test_mean_of_fold_gaps_grows_with_the_number_of_folds_and_the_pooled_one_does_not():
    """sklearn.md, trap 8: why a bound belongs on the pooled limit."""
    X, y, race = data()
    means, pooled = [], []
    for n_splits in (3, 15):
        scoring = fairness_scorers(["selection_rate_difference"], sensitive_features=race, pooled=True)
        folds = stratify_by(y, race, n_splits=n_splits)
        search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=folds, scoring=scoring, refit="accuracy").fit(X, y)
        means.append(-search.cv_results_["mean_test_selection_rate_difference"][0])
        counts = pooled_tallies(search.cv_results_)[0].counts
        rates = counts[:, :, 1].sum(1) / counts.sum((1, 2))
        pooled.append(np.ptp(rates))
    assert means[1] > means[0] + 0.01
    assert abs(pooled[1] - pooled[0]) < 0.02
