"""BiasInjector: its truth is the truth of what it draws, and what cannot be is refused by name."""

import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from sklearn_ethiclens import METRICS, MISSING, BiasInjector, Tally, audit, datasets, make_biased_classification
from sklearn_ethiclens.datasets import Truth
from sklearn_ethiclens.exceptions import MissingGroupsWarning
from sklearn_ethiclens.metrics import SCORE_METRICS
from tests._shared import case


def two_groups(**params):
    """F and M, M the reference."""
    return BiasInjector({"F": 0.4, "M": 0.6}, **{"reference": "M", **params})


# -------------------------------------------------------------------------------------------------------- worked numbers
def test_truth_by_hand():
    """Per 100: F has 50 positives, of whom 30 selected, 10 of 50 negatives; M 50, 40 and 10."""
    truth = two_groups(base_rate=0.5, true_positive_rate={"F": 0.6, "M": 0.8}, false_positive_rate=0.2).truth
    by_hand = {
        "selection_rate": Fraction(40, 100),
        "base_rate": Fraction(1, 2),
        "precision": Fraction(30, 40),
        "negative_predictive_value": Fraction(40, 60),
        "false_discovery_rate": Fraction(10, 40),
        "false_omission_rate": Fraction(20, 60),
        "accuracy": Fraction(70, 100),
        "f1": Fraction(60, 90),
        "balanced_accuracy": Fraction(70, 100),
    }
    for name, value in by_hand.items():
        assert truth.value(name, "F") == pytest.approx(float(value), abs=1e-15)
    pairs = {
        "disparate_impact": Fraction(40, 50),
        "statistical_parity_difference": Fraction(-1, 10),
        "equalized_odds_difference": Fraction(1, 5),
        "average_odds_difference": Fraction(-1, 10),
        "predictive_parity_difference": Fraction(1, 20),  # 30/40 against 40/50
        "false_positive_rate_ratio": 1,
        # .40 x .8 + .35 x .9 + .25 x .8
        "composite_bias_score": Fraction(835, 1000),
    }
    for name, value in pairs.items():
        assert truth.value(name, "F", reference="M") == pytest.approx(float(value), abs=1e-15)
        assert truth[name] == {"F": truth.value(name)}
    assert truth["demographic_parity_ratio"] == pytest.approx(0.8)
    assert truth["equalized_odds_tpr_gap"] == pytest.approx(0.2)
    # Benefits of F: 20 get 0, 70 get 1, 10 get 2; their mean is .9.
    theil = 0.7 / 0.9 * math.log(1 / 0.9) + 0.2 / 0.9 * math.log(2 / 0.9)
    assert truth.value("theil_index", "F") == pytest.approx(theil, abs=1e-15)
    # Everyone: .4 x .4 + .6 x .5
    assert truth.value("selection_rate") == pytest.approx(0.46)


def test_the_reference_case_of_a_ratio_of_six_tenths():
    one = case("inject_di_060")
    given, expected, n = one["input"], one["expect"], one["input"]["n_per_group"]
    injector = BiasInjector(
        ["unprivileged", "privileged"],
        selection_rate=given["rate_privileged"],
        disparate_impact=given["target_di"],
        reference="privileged",
    )
    truth = injector.truth
    assert truth.value("selection_rate", "unprivileged") == pytest.approx(expected["rate_unprivileged"], abs=1e-9)
    assert truth["statistical_parity_difference"]["unprivileged"] == pytest.approx(expected["spd"], abs=1e-9)
    tables = injector.sample_tallies(2 * n, 2000, fixed_groups=True)
    assert (tables.sum((2, 3)) == n).all()
    ratios = METRICS["disparate_impact"](tables[:, 1], tables[:, 0])  # canonical order: privileged first
    outside = np.mean((ratios < expected["di_3se_low"]) | (ratios > expected["di_3se_high"]))
    assert outside <= 0.0027 + 4 * math.sqrt(0.0027 / 2000)
    assert np.log(ratios).std() == pytest.approx(expected["log_di_se"], rel=0.06)


def test_an_adverse_outcome_turns_the_ratio_over():
    injector = two_groups(outcome="adverse", selection_rate=0.2, disparate_impact=0.5)
    # 80% of M are spared, so 40% of F are.
    assert injector.truth.value("selection_rate", "F") == pytest.approx(0.6)
    assert injector.truth["disparate_impact"]["F"] == pytest.approx(0.5)


def test_groups_of_one_class_have_undefined_rates_and_no_other_number_is_touched():
    truth = two_groups(base_rate={"F": 0.0, "M": 1.0}, true_positive_rate=0.7, false_positive_rate=0.2).truth
    assert truth.value("selection_rate", "F") == 0.2
    assert truth.value("selection_rate", "M") == 0.7
    for name in ("true_positive_rate", "false_negative_rate", "balanced_accuracy", "roc_auc"):
        assert math.isnan(truth.value(name, "F"))
    assert math.isnan(truth["equalized_odds_difference"]["F"])
    assert math.isnan(truth["equalized_odds_tpr_gap"])
    assert truth.value("brier_score", "F") == truth.value("expected_calibration_error", "F") == 0


def test_a_group_that_nobody_of_is_selected_has_no_precision_and_its_ratio_is_undefined():
    truth = two_groups(selection_rate={"F": 0.4, "M": 0.0}).truth
    assert math.isnan(truth.value("precision", "M"))
    assert math.isnan(truth["disparate_impact"]["F"])
    assert math.isnan(truth["composite_bias_score"]["F"])
    assert truth.value("disparate_impact", "M", reference="F") == 0
    # .40 x 0 + .35 x .6 + .25 x (1 - the larger odds gap, F's true positive rate)
    gap = truth.value("true_positive_rate", "F")
    assert truth.value("composite_bias_score", "M", reference="F") == pytest.approx(0.35 * 0.6 + 0.25 * (1 - gap))


# ------------------------------------------------------------------------------------------------ the truth and METRICS
RATE = st.sampled_from([0.0, 1.0, 0.25, 0.5]) | st.floats(1e-3, 1 - 1e-3)
INNER = st.floats(0.05, 0.95)


@st.composite
def specifications(draw, rate=RATE, max_groups=5):
    """Populations of any kind: rates by group, one or two attributes, with and without labels."""
    weights = draw(st.lists(st.floats(0.1, 1.0), min_size=2, max_size=max_groups))
    labels = [f"g{i}" for i in range(len(weights))]
    shares = dict(zip(labels, (np.array(weights) / sum(weights)).tolist(), strict=True))
    if draw(st.booleans()):
        groups = {"sex": {"f": 0.3, "m": 0.7}, "race": shares}
        keys = [(sex, race) for sex in "fm" for race in shares]
    else:
        groups, keys = shares, labels
    by_group = lambda: {key: draw(rate) for key in keys}  # noqa: E731
    if draw(st.integers(0, 3)) == 0:
        return {"groups": groups, "labelled": False, "selection_rate": by_group()}
    names = ["base_rate", "true_positive_rate", "false_positive_rate"]
    return {"groups": groups, "outcome": draw(st.sampled_from(["favorable", "adverse"]))} | {
        name: by_group() for name in names
    }


def expected_tables(injector, names):
    """Expected counts of one row, by the values of some attributes, from the population frame: groups, tables."""
    frame = injector.population
    if injector.labelled:
        cells = frame[["tn", "fp", "fn", "tp"]].to_numpy().reshape(-1, 2, 2)
    else:
        selected = frame["selection_rate"].to_numpy()
        cells = np.stack([1 - selected, selected], -1)[:, None]
    joint = frame["share"].to_numpy()[:, None, None] * cells
    keys = frame[list(names)].apply(tuple, axis=1).tolist()
    summed = {}
    for key, table in zip(keys, joint, strict=True):
        summed[key] = summed.get(key, 0) + table
    return {key[0] if len(key) == 1 else key: table for key, table in summed.items()}


def metric_of(metric, tables, group, reference, outcome):
    if metric.kind == "overall":
        return metric(np.stack([*tables.values()]), outcome=outcome)
    sides = [tables[group]] + ([tables[reference]] if metric.kind == "pair" else [])
    return metric(*sides, outcome=outcome)


def test_the_truth_knows_every_metric():
    truth = BiasInjector().truth
    assert set(truth) == {*METRICS, *SCORE_METRICS}


@settings(max_examples=60)
@given(specifications())
def test_truth_is_each_metric_of_the_expected_table(specification):
    injector = BiasInjector(**specification)
    truth = injector.truth
    frame = truth.frame(list(METRICS))
    levels = [(name,) for name in truth.attributes] + [truth.attributes] * (len(truth.attributes) > 1)
    assert list(frame["attribute"].unique()) == [" & ".join(names) for names in levels]
    for names in levels:
        tables = expected_tables(injector, names)
        stacked = np.stack([*tables.values()])
        rows = frame[frame["attribute"] == " & ".join(names)]
        told = {
            (name, group): (value, reference)
            for name, group, reference, value in rows[["metric", "group", "reference", "value"]].to_numpy()
        }
        references = {reference for _, reference in told.values()} - {None}
        assert len(references) == 1
        reference = references.pop()
        expected = {}
        for name, metric in METRICS.items():
            sides = [stacked] + ([tables[reference][None]] if metric.kind == "pair" else [])
            values = np.atleast_1d(metric(*sides, outcome=injector.outcome))
            groups = [None] if metric.kind == "overall" else list(tables)
            expected |= {
                (name, g): v for g, v in zip(groups, values, strict=True) if metric.kind != "pair" or g != reference
            }
        assert set(told) == set(expected)
        found = np.array([float(told[key][0]) for key in expected])
        np.testing.assert_allclose(found, [*expected.values()], rtol=1e-12, atol=1e-12)


@settings(max_examples=25)
@given(specifications())
def test_the_truth_of_any_comparison_can_be_asked_for(specification):
    truth = BiasInjector(**specification).truth
    groups = list(truth["selection_rate"])
    a, b = groups[0], groups[-1]
    there, back = truth.value("disparate_impact", a, b), truth.value("disparate_impact", b, a)
    if there > 0 and back > 0:
        assert there * back == pytest.approx(1)
    difference = truth.value("selection_rate_difference", a, b)
    assert difference == pytest.approx(truth.value("selection_rate", a) - truth.value("selection_rate", b))


# ------------------------------------------------------------------------------------------------------------ the draws
def monte_carlo_error(metric, tables, group, reference, outcome, n):
    """An upper bound of the standard error of a metric of n rows, by the delta method."""
    keys = list(tables)
    cells = np.stack([tables[key] for key in keys])
    flat = cells.ravel()
    value = metric_of(metric, tables, group, reference, outcome)
    step = 1e-7
    gradient = np.empty(flat.size)
    for i in range(flat.size):
        moved = flat.copy()
        moved[i] += step
        shifted = dict(zip(keys, moved.reshape(cells.shape), strict=True))
        gradient[i] = (metric_of(metric, shifted, group, reference, outcome) - value) / step
    return math.sqrt(float(flat @ gradient**2) / n)


def check_draw(injector, n):
    """Every metric of a drawn tally lies within five standard errors of the truth."""
    drawn = injector.sample_tally(n)
    assert drawn.n_rows == n
    truth = injector.truth
    names = list(METRICS)
    checked = 0
    attribute = " & ".join(truth.attributes)
    frame = truth.frame(names)
    expected = expected_tables(injector, truth.attributes)
    found = {(g[0] if len(g) == 1 else g): c for g, c in zip(drawn.groups, drawn.counts, strict=True)}
    for row in frame[frame["attribute"] == attribute].dropna(subset="value").itertuples():
        metric = METRICS[row.metric]
        error = monte_carlo_error(metric, expected, row.group, row.reference, injector.outcome, n)
        value = metric_of(metric, found, row.group, row.reference, injector.outcome)
        assert abs(value - row.value) <= 5 * error + 50 / n, (row, value, error)
        checked += 1
    assert checked >= 5


@settings(max_examples=5)
@given(specifications(rate=INNER, max_groups=3), st.integers(0, 2**32 - 1))
def test_truth_is_what_a_million_rows_show(specification, seed):
    check_draw(BiasInjector(**specification, random_state=seed), 1_000_000)


@pytest.mark.long
@settings(max_examples=100)
@given(specifications(rate=INNER), st.integers(0, 2**32 - 1))
def test_truth_is_what_ten_million_rows_show(specification, seed):
    check_draw(BiasInjector(**specification, random_state=seed), 10_000_000)


@pytest.mark.parametrize("by_score", [True, False])
@pytest.mark.parametrize("as_frame", [True, False])
def test_rows_have_the_cells_of_the_population(as_frame, by_score):
    injector = BiasInjector(
        {"sex": ["F", "M"], "race": {"x": 0.2, "y": 0.8}},
        base_rate=0.3,
        true_positive_rate={("F", "x"): 0.5, ("M", "y"): 0.8},
        false_positive_rate=0.2,
        reference=("M", "y"),
        by_score=by_score,
        n_features=0,
    )
    n = 200_000
    made = injector.sample(n, as_frame=as_frame)
    people = made.sensitive_features if as_frame else dict(zip(("sex", "race"), made.sensitive_features.T, strict=True))
    tally = Tally.from_predictions(made.y, made.y_pred, sensitive_features=people)
    assert made.X.shape == (n, 0)
    expected = expected_tables(injector, ("sex", "race"))
    flat = np.concatenate([n * expected[group].ravel() for group in tally.groups])
    assert stats.chisquare(tally.counts.ravel(), flat).pvalue > 1e-4


def test_rows_stand_in_no_order():
    made = two_groups(selection_rate=0.5, disparate_impact=0.4).sample(20_000)
    half = np.arange(20_000) < 10_000
    for values in (made.y, made.y_pred, made.sensitive_features["group"] == "F", made.X["informative_0"] > 0):
        table = [np.asarray(values, float)[half].sum(), np.asarray(values, float)[~half].sum()]
        assert abs(table[0] - table[1]) < 5 * math.sqrt(20_000 / 4)
        steps = np.asarray(values, float) - np.mean(values)
        assert abs(np.mean(steps[1:] * steps[:-1])) < 5 * np.var(steps) / math.sqrt(20_000)


def test_tallies_of_many_sets_are_independent_multinomials():
    injector = two_groups(base_rate=0.4, true_positive_rate=0.7, false_positive_rate=0.3)
    tables = injector.sample_tallies(50, 20_000)
    assert tables.shape == (20_000, 2, 2, 2)
    assert (tables.sum((1, 2, 3)) == 50).all()
    joint = np.stack([*expected_tables(injector, ["group"]).values()])
    error = np.sqrt(50 * joint * (1 - joint) / 20_000)
    assert (np.abs(tables.mean(0) - 50 * joint) < 5 * error).all()
    np.testing.assert_allclose(tables.var(0), 50 * joint * (1 - joint), rtol=0.08)


def test_fixed_groups_have_the_rounded_size_in_every_set():
    injector = BiasInjector({"a": 0.5, "b": 0.25, "c": 0.25}, selection_rate=0.5)
    tables = injector.sample_tallies(103, 50, fixed_groups=True)
    assert (tables.sum((2, 3)) == [51, 26, 26]).all()  # 51.5, 25.75, 25.75: the two largest remainders are rounded up
    assert injector.sample(103, fixed_groups=True).sensitive_features["group"].value_counts()["a"] == 51
    assert injector.sample_tallies(103, 50).sum((2, 3)).std(0).min() > 0


def test_a_group_that_was_not_drawn_is_not_in_the_tally():
    injector = BiasInjector({"rare": 0.001, "common": 0.999}, selection_rate=0.5)
    assert injector.sample_tally(10).groups == (("common",),)


# ----------------------------------------------------------------------------------------------------------- the scores
def by_quadrature(p, auc, shift, slope):
    """Brier, ECE and mean minus base rate of one group by adaptive quadrature over the density of the true log-odds."""
    d = math.sqrt(2) * stats.norm.ppf(auc)
    brier = ece = mean = 0.0
    edges = [-40.0, *((logit(np.arange(1, 10) / 10) - shift) * slope - logit(p)), 40.0]
    for low, high in pairwise(edges):
        positive = score = 0.0
        for y, weight in ((0, 1 - p), (1, p)):
            centre = (y - 0.5) * d * d
            here = [min(max(edge, centre - 10 * d), centre + 10 * d) for edge in (low, high)]
            density = stats.norm(centre, d).pdf

            def expected(value, density=density, here=here):
                reported = lambda odds: expit(shift + (odds + logit(p)) / slope)  # noqa: E731
                return quad(lambda odds: value(reported(odds)) * density(odds), *here, epsabs=1e-13, limit=200)[0]

            score += weight * expected(lambda q: q)
            brier += weight * expected(lambda q, y=y: (q - y) ** 2)
            positive += y * weight * (stats.norm.cdf(here[1], centre, d) - stats.norm.cdf(here[0], centre, d))
        ece += abs(positive - score)
        mean += score
    return {"brier_score": brier, "expected_calibration_error": ece, "calibration_in_the_large": mean - p}


@pytest.mark.parametrize(
    ("p", "auc", "shift", "slope"),
    [(0.5, 0.8, 0.0, 1.0), (0.2, 0.7, 0.5, 1.0), (0.7, 0.95, -1.0, 2.0), (0.01, 0.9, 0.0, 0.3), (0.4, 0.99, 1.0, 0.2)],
)
def test_truth_of_scores_agrees_with_quadrature(p, auc, shift, slope):
    truth = BiasInjector(base_rate=p, auc=auc, calibration_shift=shift, calibration_slope=slope).truth
    for name, value in by_quadrature(p, auc, shift, slope).items():
        assert truth.value(name, "a") == pytest.approx(value, abs=1e-10), name
    assert truth.value("roc_auc", "a") == pytest.approx(auc, abs=1e-14)
    assert truth.value("calibration_slope", "a") == slope


def empirical(y, score):
    bins = np.minimum((score * 10).astype(int), 9)
    gap = np.bincount(bins, y, 10) - np.bincount(bins, score, 10)
    return {
        "roc_auc": roc_auc_score(y, score),
        "brier_score": brier_score_loss(y, score),
        "expected_calibration_error": np.abs(gap).sum() / y.size,
        "calibration_in_the_large": score.mean() - y.mean(),
        "calibration_slope": LogisticRegression(C=1e8).fit(logit(score)[:, None], y).coef_[0, 0],
    }


@pytest.mark.parametrize("by_score", [True, False])
def test_truth_of_scores_is_what_rows_show_by_group_and_of_everyone(by_score):
    injector = two_groups(
        base_rate={"F": 0.3, "M": 0.6},
        auc={"F": 0.7, "M": 0.9},
        calibration_shift={"F": -0.7, "M": 0.2},
        calibration_slope={"F": 1.0, "M": 0.7},
        true_positive_rate=0.7,
        false_positive_rate=0.1,
        by_score=by_score,
    )
    made, n = injector.sample(200_000), 200_000
    for group in ("F", "M", None):
        of = np.full(n, True) if group is None else (made.sensitive_features["group"] == group).to_numpy()
        found = empirical(made.y[of].to_numpy(), made.y_score[of].to_numpy())
        for name, value in found.items():
            # Each is a mean, or rank mean, of numbers in [0, 1] or [-1, 1]: a standard error of at most 1 / sqrt(n). That of
            # a slope is 1 / sqrt(information), here at most 3 / sqrt(n).
            errors = 9 if name == "calibration_slope" else 3
            assert value == pytest.approx(made.truth.value(name, group), abs=errors / math.sqrt(of.sum())), (
                name,
                group,
            )
    difference = made.truth.value("brier_score_difference", "F")
    assert difference == made.truth.value("brier_score", "F") - made.truth.value("brier_score", "M")


def test_a_calibrated_score_means_what_it_says():
    injector = two_groups(base_rate={"F": 0.3, "M": 0.6}, selection_rate=0.5)
    truth = injector.truth
    for group in ("F", "M", None):
        assert truth.value("calibration_slope", group) == 1
        assert truth.value("expected_calibration_error", group) == 0
        assert truth.value("calibration_in_the_large", group) == 0
    made = injector.sample(300_000)
    for group in ("F", "M"):
        of = (made.sensitive_features["group"] == group).to_numpy()
        bins = pd.cut(made.y_score[of], np.linspace(0, 1, 21))
        for _, rows in made.y[of].groupby(bins, observed=True):
            expected = made.y_score[rows.index]
            error = math.sqrt((expected * (1 - expected)).sum())
            assert abs(rows.sum() - expected.sum()) < 5 * error


def test_a_shift_of_the_log_odds_moves_the_scores_of_its_group_only():
    plain, shifted = (two_groups(base_rate=0.4, calibration_shift={"F": s, "M": 0.0}).truth for s in (0.0, 1.0))
    assert shifted.value("calibration_in_the_large", "F") > 0.1
    assert shifted.value("expected_calibration_error", "F") == pytest.approx(
        shifted.value("calibration_in_the_large", "F")
    )
    for name in ("roc_auc", "brier_score", "expected_calibration_error", "calibration_in_the_large"):
        assert shifted.value(name, "M") == pytest.approx(plain.value(name, "M"), abs=1e-14)
    assert shifted.value("roc_auc", "F") == pytest.approx(plain.value("roc_auc", "F"), abs=1e-15)


def test_scores_that_say_nothing_have_an_area_of_one_half():
    truth = BiasInjector(auc=0.5, base_rate=0.3, calibration_shift=1.0).truth
    score = expit(logit(0.3) + 1)
    assert truth.value("roc_auc", "a") == 0.5
    assert truth.value("brier_score", "a") == pytest.approx(0.3 * (1 - score) ** 2 + 0.7 * score**2, abs=1e-15)
    assert truth.value("expected_calibration_error", "a") == pytest.approx(score - 0.3, abs=1e-15)
    assert math.isnan(truth.value("calibration_slope", "a"))


def test_the_area_under_the_curve_of_everyone_counts_groups_of_one_class():
    truth = two_groups(base_rate={"F": 0.0, "M": 0.5}, auc=0.8, true_positive_rate=0.6, false_positive_rate=0.3).truth
    # Negatives: .4 of F, below every positive, and .3 of M.
    assert truth.value("roc_auc") == pytest.approx((0.4 + 0.3 * 0.8) / 0.7, abs=1e-14)


def test_with_a_selection_rate_alone_the_selected_are_those_above_one_cut_of_the_score():
    injector = two_groups(base_rate={"F": 0.3, "M": 0.7}, selection_rate=0.6, disparate_impact=0.5)
    made = injector.sample(50_000)
    for group in ("F", "M"):
        of = (made.sensitive_features["group"] == group).to_numpy()
        score, selected = made.y_score[of], made.y_pred[of] == 1
        # One cut in the population: where positives and negatives were cut apart, both cuts are at the same score.
        assert score[selected].min() > score[~selected].max() - 1e-3
        assert score[selected].min() == pytest.approx(score[~selected].max(), abs=1e-3)


def test_selected_at_random_do_not_have_higher_scores():
    by_score, random = (
        two_groups(true_positive_rate=0.5, false_positive_rate=0.5, by_score=by).sample(50_000) for by in (True, False)
    )
    positive = by_score.y == 1
    assert by_score.y_score[positive & (by_score.y_pred == 1)].min() > 0.5
    positive = random.y == 1
    means = random.y_score[positive].groupby(random.y_pred).mean()
    assert abs(means[1] - means[0]) < 0.01


# --------------------------------------------------------------------------------------------------------- the features
def test_the_features_hold_the_score_and_no_more():
    """Their sum is the latent of the score; a model of one group reaches the stated area, and not more."""
    injector = two_groups(base_rate=0.4, auc=0.85, n_features=7, n_informative=3, n_proxies=1)
    made = injector.sample(60_000)
    total = made.X[["informative_0", "informative_1", "informative_2"]].sum(axis=1) / math.sqrt(3)
    d = math.sqrt(2) * stats.norm.ppf(0.85)
    np.testing.assert_allclose(expit(logit(0.4) + d * (total - d / 2)), made.y_score, rtol=1e-9, atol=1e-12)
    of_f = (made.sensitive_features["group"] == "F").to_numpy()
    X, y = made.X[of_f], made.y[of_f]
    fitted = LogisticRegression().fit(X[:12_000], y[:12_000])
    assert roc_auc_score(y[12_000:], fitted.predict_proba(X[12_000:])[:, 1]) == pytest.approx(0.85, abs=0.015)
    within = made.X[["informative_0", "informative_1", "informative_2", "noise_0"]][made.y == 0]
    np.testing.assert_allclose(within.cov(), np.eye(4), atol=5 / math.sqrt(len(within)) * 1.5)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_proxies_have_the_stated_correlation_with_belonging_to_their_group(strength):
    injector = BiasInjector(
        {"sex": ["F", "M"], "race": {"x": 0.2, "y": 0.3, "z": 0.5}},
        reference={"sex": "M", "race": "z"},
        n_features=6,
        n_proxies=4,
        proxy_strength=strength,
    )
    made = injector.sample(100_000)
    assert made.proxies == {
        "proxy_0": ("sex", "F"),
        "proxy_1": ("race", "x"),
        "proxy_2": ("race", "y"),
        "proxy_3": ("sex", "F"),
    }
    for name, (attribute, value) in made.proxies.items():
        belongs = (made.sensitive_features[attribute] == value).to_numpy()
        found = np.corrcoef(made.X[name], belongs)[0, 1]
        assert found == pytest.approx(strength, abs=5 / math.sqrt(100_000)), name
        assert made.X[name].std() == pytest.approx(1, abs=0.02)
        given_group = np.corrcoef(made.X.loc[belongs, name], made.y[belongs])[0, 1] if strength < 1 else 0.0
        assert abs(given_group) < 5 / math.sqrt(belongs.sum())
    if strength == 1:
        assert made.X["proxy_0"].round(9).nunique() == 2


def test_features_are_named_by_what_they_are():
    made = BiasInjector(n_features=6, n_proxies=2).sample(10)
    names = ["informative_0", "informative_1", "proxy_0", "proxy_1", "noise_0", "noise_1"]
    assert made.feature_names == list(made.X) == names
    assert list(BiasInjector(n_features=1).sample(10).X) == ["proxy_0"]
    assert list(BiasInjector(n_features=2, n_proxies=0, n_informative=0).sample(10).X) == ["noise_0", "noise_1"]


def test_frames_and_arrays_hold_the_same_rows():
    injector = two_groups(selection_rate=0.5, disparate_impact=0.7, classes=("no", "yes"))
    frames, arrays = injector.sample(500), injector.sample(500, as_frame=False)
    np.testing.assert_array_equal(frames.X.to_numpy(), arrays.X)
    assert frames.y.tolist() == arrays.y.tolist()
    assert frames.y_pred.tolist() == arrays.y_pred.tolist()
    assert frames.sensitive_features["group"].tolist() == arrays.sensitive_features.tolist()
    assert set(frames.y) == {"no", "yes"}
    assert frames.pos_label == arrays.pos_label == "yes"
    assert isinstance(arrays.X, np.ndarray)


# ---------------------------------------------------------------------------------------------------------- what follows
def test_any_two_rates_give_the_third():
    rates = {"true_positive_rate": 0.8, "false_positive_rate": 0.1, "selection_rate": 0.3 * 0.8 + 0.7 * 0.1}
    for left_out, value in rates.items():
        given = {name: rate for name, rate in rates.items() if name != left_out}
        assert BiasInjector(base_rate=0.3, **given).truth.value(left_out, "b") == pytest.approx(value, abs=1e-15)
    assert BiasInjector(**rates).truth.value("base_rate", "a") == pytest.approx(0.3, abs=1e-15)


def test_a_ratio_beside_equal_odds_is_met_by_base_rates():
    injector = two_groups(disparate_impact=0.6, true_positive_rate=0.8, false_positive_rate=0.1)
    truth = injector.truth
    assert truth["disparate_impact"]["F"] == pytest.approx(0.6)
    assert truth["equalized_odds_difference"]["F"] == 0
    assert truth.value("base_rate", "M") == 0.5
    assert truth.value("base_rate", "F") == pytest.approx((0.6 * 0.45 - 0.1) / 0.7)


def test_a_ratio_beside_a_true_positive_rate_moves_the_false_positive_rate():
    truth = two_groups(base_rate=0.4, selection_rate=0.5, disparate_impact=0.8, true_positive_rate=0.7).truth
    assert truth["equal_opportunity_difference"]["F"] == pytest.approx(0, abs=1e-15)
    assert truth.value("false_positive_rate", "F") == pytest.approx((0.4 - 0.28) / 0.6)
    assert truth["disparate_impact"]["F"] == pytest.approx(0.8)


def test_odds_that_differ_by_a_target():
    given = {"base_rate": 0.4, "true_positive_rate": 0.8, "false_positive_rate": 0.3}
    alone = two_groups(equalized_odds_difference=0.15, **given).truth
    assert alone["true_positive_rate_difference"]["F"] == pytest.approx(-0.15)
    assert alone["false_positive_rate_difference"]["F"] == 0
    both = two_groups(equalized_odds_difference=0.15, disparate_impact=0.9, **given).truth
    assert both["equalized_odds_difference"]["F"] == pytest.approx(0.15)
    assert both["disparate_impact"]["F"] == pytest.approx(0.9)


@given(INNER, INNER, INNER, st.floats(0.3, 1.5), st.floats(0.0, 1.0))
def test_a_target_for_both_is_met_or_the_nearest_is_named_and_can_be_had(p, t, f, ratio, where):
    given = {"base_rate": p, "true_positive_rate": t, "false_positive_rate": f, "disparate_impact": ratio}
    if ratio * (p * t + (1 - p) * f) > 0.99:
        return
    try:
        truth = two_groups(equalized_odds_difference=where, **given).truth
    except ValueError as refused:
        nearest = float(str(refused).rpartition("the nearest is ")[2].rstrip("."))
        assert nearest != pytest.approx(where, abs=1e-9)
        inwards = nearest + (1e-5 if nearest > where else -1e-5)  # the message rounds to six digits
        truth, where = two_groups(equalized_odds_difference=inwards, **given).truth, inwards
    assert truth["equalized_odds_difference"]["F"] == pytest.approx(where, abs=1e-9)
    assert truth["disparate_impact"]["F"] == pytest.approx(ratio, abs=1e-9)


def test_what_a_group_is_not_given_is_as_in_the_reference():
    truth = two_groups(base_rate={"M": 0.3}, true_positive_rate=0.8, false_positive_rate={"M": 0.1}).truth
    for name in ("base_rate", "true_positive_rate", "false_positive_rate"):
        assert truth.value(name, "F") == truth.value(name, "M")


def test_the_default_reference_is_the_largest_group_or_the_one_that_does_best():
    assert BiasInjector({"x": 0.3, "y": 0.7}, disparate_impact=0.5).truth.reference == {"group": "y"}
    assert BiasInjector(["x", "y"], disparate_impact=0.5).truth.reference == {"group": "x"}
    assert BiasInjector(["x", "y"], disparate_impact={"x": 0.5}).truth.reference == {"group": "y"}
    by_rate = BiasInjector({"x": 0.3, "y": 0.7}, selection_rate={"x": 0.6, "y": 0.5})
    assert by_rate.truth.reference == {"group": "x"}
    assert by_rate.set_params(outcome="adverse").truth.reference == {"group": "y"}


def test_the_reference_is_the_one_that_an_audit_would_choose():
    injector = BiasInjector(["x", "y", "z"], selection_rate={"x": 0.3, "y": 0.5, "z": 0.4})
    result = audit(None, (made := injector.sample(3000)).y_pred, sensitive_features=made.sensitive_features)
    assert {finding.reference for finding in result.findings if finding.metric == "disparate_impact"} == {"y"}
    assert injector.truth.reference == {"group": "y"}


def test_an_audit_of_drawn_rows_lists_what_the_truth_lists_and_comes_near_it():
    injector = BiasInjector(
        {"sex": ["F", "M"], "race": {"x": 0.3, "y": 0.7}},
        base_rate=0.4,
        true_positive_rate={("F", "x"): 0.6, ("F", "y"): 0.7, ("M", "x"): 0.7, ("M", "y"): 0.8},
        false_positive_rate=0.2,
        reference=("M", "y"),
    )
    made = injector.sample(40_000)
    found = audit(
        made.y,
        made.y_pred,
        y_score=made.y_score,
        sensitive_features=made.sensitive_features,
        reference=made.reference,
        intersections="all",
        policy="four_fifths",
    ).frame()
    wanted = made.truth.frame()
    wanted = wanted[wanted["attribute"] != "sex & race"]  # an audit chooses the reference of an intersection by itself
    both = wanted.merge(found, on=["attribute", "group", "reference", "metric"], suffixes=("", "_found"))
    wanted_names = [name for name, metric in {**METRICS, **SCORE_METRICS}.items() if metric.kind == "pair"]
    assert set(wanted_names) <= set(both["metric"])
    differences = both[~both["metric"].str.endswith(("_ratio", "impact"))]
    assert np.abs(differences["value"] - differences["value_found"]).max() < 0.03
    impact = both[both["metric"] == "disparate_impact"]
    assert np.abs(np.log(impact["value"] / impact["value_found"])).max() < 0.05


# ------------------------------------------------------------------------------------------------------ what cannot be
IMPOSSIBLE = {
    "a ratio above what the reference leaves room for": (
        {"selection_rate": 0.7, "disparate_impact": 2.0},
        r"asks group 'F' for a rate of 1\.4, above 1\. At most 1\.42857 is possible .* lower its rate to 0\.5\.",
    ),
    "a ratio to nobody": ({"selection_rate": 0.0, "disparate_impact": 0.8}, "0 in the reference 'M'"),
    "a ratio that rates and base rate contradict": (
        {"base_rate": 0.5, "true_positive_rate": 0.8, "false_positive_rate": 0.2, "disparate_impact": 0.8},
        r"group 'F': selection_rate 0\.4 \(of disparate_impact 0\.8\) contradicts base_rate 0\.5, true_positive_rate 0\.8 and "
        r"false_positive_rate 0\.2, which make .* = 0\.5\.",
    ),
    "a selection rate that they contradict": (
        {"base_rate": 0.5, "true_positive_rate": 0.8, "false_positive_rate": 0.2, "selection_rate": {"M": 0.45}},
        r"group 'M': selection_rate 0\.45 contradicts",
    ),
    "a true positive rate too high for the selection rate": (
        {"base_rate": 0.5, "true_positive_rate": 0.9, "selection_rate": 0.3},
        r"false_positive_rate would have to be -0\.3\. The selection rate then lies in \[0\.45, 0\.95\]; the nearest is 0\.45\.",
    ),
    "a false positive rate too low": (
        {"base_rate": 0.2, "false_positive_rate": 0.1, "selection_rate": 0.5},
        r"true_positive_rate would have to be 2\.1\. .* lies in \[0\.08, 0\.28\]; the nearest is 0\.28\.",
    ),
    "no base rate between the rates": (
        {"true_positive_rate": 0.8, "false_positive_rate": 0.2, "selection_rate": 0.9},
        r"no base_rate gives selection_rate 0\.9 .* The nearest is 0\.8\.",
    ),
    "a ratio and another selection rate": (
        {"selection_rate": {"F": 0.5, "M": 0.5}, "disparate_impact": 0.8},
        r"group 'F': selection_rate 0\.5 contradicts disparate_impact 0\.8, which makes it 0\.4\.",
    ),
    "rates of a group of one class": (
        {"base_rate": 0.0, "false_positive_rate": 0.2, "selection_rate": 0.3},
        r"contradicts false_positive_rate 0\.2: with base_rate 0 they are one number",
    ),
    "an undefined rate taken over from the reference": (
        {"base_rate": {"F": 0.5, "M": 0.0}, "false_positive_rate": 0.2},
        "true_positive_rate is not given, and undefined in the reference",
    ),
    "odds lowered below zero": (
        {"true_positive_rate": 0.3, "false_positive_rate": 0.2, "equalized_odds_difference": 0.4},
        r"at most 0\.3 is possible",
    ),
    "odds that the ratio does not allow": (
        {
            "base_rate": 0.5,
            "true_positive_rate": 0.8,
            "false_positive_rate": 0.2,
            "equalized_odds_difference": 0.05,
            "disparate_impact": 0.8,
        },
        r"it lies in \[0\.1, .*\]; the nearest is 0\.1\.",
    ),
    "odds that the rates contradict": (
        {
            "true_positive_rate": {"F": 0.7, "M": 0.8},
            "false_positive_rate": 0.2,
            "equalized_odds_difference": 0.2,
        },
        r"equalized_odds_difference 0\.2 cannot be had; it is 0\.1 with the rates given",
    ),
    "a comparison of the reference with itself": ({"disparate_impact": {"M": 0.8}}, "the reference, which is 'M'"),
    "labels needed and not there": ({"labelled": False, "base_rate": 0.5}, r"\['base_rate'\] need true labels"),
    "a rate above one": ({"base_rate": 1.2}, r"base_rate must lie in \[0, 1\]; got 1\.2"),
    "a negative ratio": ({"disparate_impact": -0.1}, "disparate_impact must lie in"),
    "a rate that is no number": ({"base_rate": "half"}, "base_rate must be a number in .*; got 'half'"),
    "a rate that is not known": ({"base_rate": float("nan")}, "base_rate must be a number"),
    "a rate of nobody": ({"base_rate": {"X": 0.5}}, r"base_rate: a group must be one of \['F', 'M'\]; got 'X'"),
    "a perfect score": ({"auc": 1.0}, r"auc must lie in \[0\.5, 1\); got 1\.0"),
    "a score of some groups": ({"auc": {"F": 0.7}}, "none for group 'M'"),
    "a slope that turns the score over": ({"calibration_slope": -1.0}, "calibration_slope must lie in"),
    "an endless ratio": ({"disparate_impact": float("inf")}, r"disparate_impact must lie in \[0, inf\); got inf"),
    "an unknown outcome": ({"outcome": "good"}, "outcome must be one of"),
    "an unknown reference": ({"reference": "X"}, r"reference must be one of \['F', 'M'\]; got 'X'"),
}


@pytest.mark.parametrize(("given", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_refused_and_says_why(given, message):
    injector = two_groups(**given)  # nothing is checked before it is used
    with pytest.raises(ValueError, match=message):
        injector.truth  # noqa: B018


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ({"F": 0.4, "M": 0.5}, ValueError, r"add up to 1; they add up to 0\.9"),
        ({"F": 0.0, "M": 1.0}, ValueError, r"share of 'F' must be a number in \(0, 1\]; got 0\.0"),
        (["F"], ValueError, "at least two groups"),
        ([], ValueError, "at least two groups"),
        (["F", "M", "F"], ValueError, "'F' stands more than once"),
        ("FM", TypeError, "groups must be a sequence of labels"),
        ([("F", "x"), ("M",)], ValueError, "different numbers of attributes"),
        ({"sex": {"F": 0.4, "M": 0.5}, "race": ["x", "y"]}, ValueError, r"they add up to 0\.9"),
        ({"sex": ["F", "M"], "race": ["x"]}, ValueError, r"the values of 'race': .*two groups; got \['x'\]"),
        (
            {"sex": ["F", "M"], "race": [("x", "y"), ("z", "y")]},
            ValueError,
            "the values of 'race' must be single labels",
        ),
        (["F", None, float("nan")], ValueError, r"'\(missing\)' stands more than once"),
    ],
)
def test_groups_that_are_none_are_refused(groups, error, message):
    with pytest.raises(error, match=message):
        BiasInjector(groups).truth  # noqa: B018


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_features": 2, "n_informative": 2}, "n_features=2 is too few for n_informative=2 and n_proxies=1"),
        ({"n_features": 1, "n_proxies": 2}, "too few"),
        ({"n_features": -1}, "n_features must be a whole number of at least 0; got -1"),
        ({"n_features": 2.0}, "n_features must be a whole number"),
        ({"proxy_strength": 1.5}, r"proxy_strength must be a correlation in \[0, 1\]; got 1\.5"),
        ({"classes": (1, 1)}, "two different labels"),
        ({"classes": "no"}, "negative and the positive label"),
        ({"classes": (None, 1)}, r"classes must be text, numbers or booleans; got \(None, 1\)"),
        ({"classes": (float("nan"), 1)}, "classes must be text, numbers or booleans"),
        ({"classes": ([0], [1])}, "classes must be text, numbers or booleans"),
        ({"classes": (0, 0.5)}, "a fraction reads as a score"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        BiasInjector(**given).sample(10)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labelled": "no"}, "labelled must be True or False; got 'no'"),
        ({"labelled": None}, "labelled must be True or False"),
        ({"by_score": "no"}, "by_score must be True or False; got 'no'"),
        ({"attribute": 3}, "attribute must be a name, .*; got 3"),
    ],
)
def test_values_of_another_kind_are_refused(given, message):
    with pytest.raises(TypeError, match=message):
        BiasInjector(**given).sample(10)


@pytest.mark.parametrize("label", [None, float("nan"), np.nan, pd.NA, pd.NaT, MISSING], ids=repr)
def test_a_group_without_a_name_is_the_missing_bucket_whatever_names_it(label):
    injector = BiasInjector({"a": 0.6, label: 0.4}, base_rate={"a": 0.5, label: 0.4}, disparate_impact={label: 0.5})
    assert injector.population["group"].tolist() == ["a", MISSING]
    assert injector.truth.value("disparate_impact", MISSING) == pytest.approx(0.5)
    made = injector.sample(2000)
    assert set(made.sensitive_features["group"].dropna()) == {"a"}
    assert made.proxies == {"proxy_0": ("group", MISSING)}
    assert np.isfinite(made.X.to_numpy()).all()
    with pytest.warns(MissingGroupsWarning):
        found = audit(
            made.y, made.y_pred, sensitive_features=made.sensitive_features, reference=made.reference, n_resamples=100
        )
    assert [r.group for r in found.references] == ["a"]
    reversed_ = BiasInjector(["a", label], reference=(label,), selection_rate=0.5).sample(2000)
    with pytest.warns(MissingGroupsWarning):
        found = audit(
            reversed_.y,
            reversed_.y_pred,
            sensitive_features=reversed_.sensitive_features,
            reference=reversed_.reference,
            n_resamples=100,
        )
    assert found.references[0].group is MISSING


def test_from_a_tally_of_one_group_is_refused_and_controls_are_summed_over():
    counts = np.array([[[3, 1], [2, 4]], [[0, 0], [0, 0]]])
    with pytest.raises(ValueError, match=r"rows of at least two groups; it has of \[\('a',\)\]"):
        BiasInjector.from_tally(Tally(("race",), (("a",), ("b",)), counts))
    keys = (("a", "x"), ("a", "y"), ("b", "x"))
    counts = np.array([[[3, 1], [2, 4]], [[1, 2], [2, 5]], [[4, 4], [3, 1]]])
    tally = Tally(("race", "job"), keys, counts, controls=("job",))
    injector, plain = BiasInjector.from_tally(tally), BiasInjector.from_tally(tally.marginal(("race",)))
    assert injector.population.equals(plain.population)


@pytest.mark.parametrize("n", [0, -1, 10.0, True])
def test_a_number_of_rows_is_a_whole_number(n):
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1"):
        BiasInjector().sample(n)


def test_the_truth_refuses_what_it_does_not_know():
    truth = BiasInjector(["a", "b", "c"], selection_rate=0.5).truth
    with pytest.raises(ValueError, match=r"got 'disparate_impct'\. Did you mean 'disparate_impact'"):
        truth.value("disparate_impct")
    with pytest.raises(ValueError, match="pass group, one of"):
        truth.value("disparate_impact")
    with pytest.raises(ValueError, match=r"group must be one of \['a', 'b', 'c'\]; got 'd'"):
        truth.value("selection_rate", "d")
    with pytest.raises(ValueError, match="of one group; leave out reference"):
        truth.value("selection_rate", "a", "b")
    with pytest.raises(ValueError, match="of all groups at once"):
        truth.value("demographic_parity_ratio", "a")
    with pytest.raises(ValueError, match=r"attribute must be among \['group'\]"):
        truth.value("selection_rate", "a", attribute="sex")
    with pytest.raises(KeyError):
        truth["nothing"]


# ------------------------------------------------------------------------------------------------ an object of its kind
FULL = {
    "groups": {"F": 0.4, "M": 0.6},
    "base_rate": {"F": 0.3, "M": 0.5},
    "disparate_impact": 0.6,
    "selection_rate": 0.5,
    "reference": "M",
    "proxy_strength": 0.3,
    "classes": ("bad", "good"),
    "random_state": 3,
}


def test_it_is_cloned_and_pickled_and_its_parameters_are_what_was_given():
    injector = BiasInjector(**FULL)
    assert {name: injector.get_params()[name] for name in FULL} == FULL
    for copy in (clone(injector), pickle.loads(pickle.dumps(injector))):
        assert copy.get_params() == injector.get_params()
        assert copy.truth == injector.truth
        pd.testing.assert_frame_equal(copy.sample(50).X, injector.sample(50).X)
    assert repr(BiasInjector(disparate_impact=0.6)) == "BiasInjector(disparate_impact=0.6)"
    truth = pickle.loads(pickle.dumps(injector.truth))
    assert truth == injector.truth
    assert isinstance(truth, Truth)
    assert repr(truth) == f"<Truth of 2 groups of group: {len(truth)} metrics, reference group=M>"
    assert truth != clone(injector).set_params(disparate_impact=0.7).truth


def test_the_same_seed_draws_the_same_and_another_does_not():
    injector = BiasInjector(**FULL)
    a, b, c = (injector.sample(200, random_state=seed) for seed in (None, 3, 4))
    pd.testing.assert_frame_equal(a.X, b.X)
    pd.testing.assert_series_equal(a.y_pred, b.y_pred)
    assert not a.X.equals(c.X)
    assert injector.sample_tally(200) == injector.sample_tally(200)
    generator = np.random.default_rng(0)
    assert injector.sample_tally(200, random_state=generator) != injector.sample_tally(200, random_state=generator)


def test_the_order_in_which_groups_are_listed_does_not_matter():
    one = BiasInjector({"F": 0.4, "M": 0.6}, disparate_impact=0.6, reference="M")
    other = BiasInjector({"M": 0.6, "F": 0.4}, disparate_impact=0.6, reference="M")
    pd.testing.assert_frame_equal(one.sample(100).X, other.sample(100).X)
    assert one.truth == other.truth


def test_labels_of_any_kind_are_groups():
    injector = BiasInjector([30, "30", True], selection_rate={30: 0.2, "30": 0.4, True: 0.6})
    assert injector.truth["selection_rate"] == {True: 0.6, 30: 0.2, "30": 0.4}
    assert set(map(type, injector.sample(200).sensitive_features["group"])) == {int, str, bool}


def test_crossed_attributes_are_independent_and_joint_shares_need_not_be():
    crossed = BiasInjector({"sex": {"F": 0.4, "M": 0.6}, "race": ["x", "y"]})
    assert crossed.population["share"].tolist() == [0.2, 0.2, 0.3, 0.3]
    joint = BiasInjector(
        {("F", "x"): 0.1, ("M", "y"): 0.9}, attribute=("sex", "race"), selection_rate={("F", "x"): 0.2, ("M", "y"): 0.6}
    )
    assert joint.truth.attributes == ("sex", "race")
    assert joint.truth.value("disparate_impact", "F", attribute="sex") == pytest.approx(1 / 3)
    assert joint.truth.value("selection_rate", ("x", "F"), attribute=("race", "sex")) == 0.2
    assert list(joint.sample(50).sensitive_features) == ["sex", "race"]


# ------------------------------------------------------------------------------------------------------------ from tally
@st.composite
def tallies(draw):
    labelled = draw(st.booleans())
    n_groups = draw(st.integers(2, 5))
    shape = (n_groups, 2 if labelled else 1, 2)
    counts = np.array(draw(st.lists(st.integers(0, 60), min_size=math.prod(shape), max_size=math.prod(shape))))
    counts = counts.reshape(shape)
    counts[:, 0, 0] += 1
    groups = tuple((draw(st.sampled_from("fm")), i) for i in range(n_groups))
    return Tally(("sex", "age"), tuple(sorted(groups)), counts, "good", ("bad", "good"))


@settings(max_examples=50)
@given(tallies())
def test_a_population_made_of_a_tally_expects_that_tally(tally):
    injector = BiasInjector.from_tally(tally)
    truth, tables = injector.truth, expected_tables(injector, tally.attributes)
    for group, counts in zip(tally.groups, tally.counts, strict=True):
        np.testing.assert_allclose(tally.n_rows * tables[group], counts, atol=1e-9)
        for name in ("selection_rate", "precision", "theil_index", "f1"):
            value = METRICS[name](counts)
            assert truth.value(name, group) == pytest.approx(value, abs=1e-12, nan_ok=True)
    assert clone(injector).population.equals(injector.population)
    again = injector.sample_tally(tally.n_rows)
    assert (again.attributes, again.pos_label, again.labelled) == (tally.attributes, "good", tally.labelled)
    assert set(again.groups) <= set(tally.groups)


def test_from_a_tally_with_a_missing_bucket_and_a_group_without_rows():
    counts = np.array([[[3, 1], [2, 4]], [[0, 0], [0, 0]], [[1, 1], [1, 2]]])
    tally = Tally(("race",), (("a",), ("b",), (MISSING,)), counts)
    injector = BiasInjector.from_tally(tally, n_features=0)
    assert injector.population["race"].tolist() == ["a", MISSING]
    made = injector.sample(500)
    assert set(made.sensitive_features["race"].dropna()) == {"a"}
    assert 0 < made.sensitive_features["race"].isna().sum() < 500
    with pytest.raises(TypeError, match="tally must be a Tally; got list"):
        BiasInjector.from_tally([])


def test_without_labels_there_are_selection_rates_only():
    tally = Tally.from_counts({"F": {"n": 100, "selected": 45}, "M": {"n": 100, "selected": 60}})
    injector = BiasInjector.from_tally(tally)
    made = injector.sample(100)
    assert made.y is None
    assert made.y_score is None
    assert list(made.X) == ["proxy_0", "noise_0", "noise_1", "noise_2"]
    assert injector.sample_tallies(100, 7).shape == (7, 2, 1, 2)
    assert math.isnan(injector.truth["equalized_odds_difference"]["F"])
    with pytest.raises(ValueError, match="metric must be a name that the truth knows"):
        injector.truth.value("roc_auc", "F")


def test_power_by_simulation_is_the_power_of_the_normal_approximation():
    """Two proportions .45 and .60 of 300 each, by the two-sided z test; noncentral normal with unequal variances."""
    tally = Tally.from_counts({"F": {"n": 300, "selected": 135}, "M": {"n": 300, "selected": 180}})
    counts = BiasInjector.from_tally(tally).sample_tallies(600, 20_000, fixed_groups=True)[:, :, 0, 1]
    pooled = counts.sum(1) / 600
    z = (counts[:, 0] - counts[:, 1]) / 300 / np.sqrt(pooled * (1 - pooled) / 150)
    null, other = math.sqrt(0.525 * 0.475 / 150), math.sqrt((0.45 * 0.55 + 0.6 * 0.4) / 300)
    power = stats.norm.cdf((0.15 - 1.959964 * null) / other)
    assert np.mean(np.abs(z) > 1.959964) == pytest.approx(power, abs=0.01)


# ------------------------------------------------------------------------------------------------- biased classification
def test_biased_classification_loses_the_stated_share_of_positives():
    made = make_biased_classification(
        200_000, 5, base_rate=0.4, label_bias={"b": 0.3}, proxy_strength=0.5, return_bunch=True, random_state=0
    )
    assert made.X.shape == (200_000, 5)
    of_b = (made.sensitive_features["group"] == "b").to_numpy()
    assert (made.y[~of_b] == made.y_true[~of_b]).all()
    assert (made.y <= made.y_true).all()
    kept = made.y[of_b & (made.y_true == 1)].mean()
    assert kept == pytest.approx(0.7, abs=5 * math.sqrt(0.21 / 40_000))
    assert made.truth["disparate_impact"] == {"b": pytest.approx(0.7)}
    assert made.y.mean() == pytest.approx(made.truth.value("selection_rate"), abs=5 * math.sqrt(0.25 / 200_000))
    positive = of_b & (made.y_true == 1)
    assert abs(np.corrcoef(made.y[positive], made.X.loc[positive, "informative_0"])[0, 1]) < 5 / math.sqrt(
        positive.sum()
    )


def test_biased_classification_returns_what_other_makers_return():
    X, y, people = make_biased_classification(300, 6, label_bias=0.5, as_frame=False, random_state=1)
    assert (X.shape, y.shape, people.shape) == ((300, 6), (300,), (300,))
    assert set(y) == {0, 1}
    unbiased = make_biased_classification(300, label_bias=0.0, return_bunch=True, random_state=1)
    assert (unbiased.y == unbiased.y_true).all()
    one = make_biased_classification(50, groups={"x": 0.4, "y": 0.6}, label_bias=0.5, return_bunch=True)
    assert one.truth["disparate_impact"] == {"x": 0.5}  # the largest group is the reference and keeps its labels
    with pytest.raises(ValueError, match=r"label_bias must lie in \[0, 1\]"):
        make_biased_classification(label_bias=2)


# ---------------------------------------------------------------------------------------------------------- real rows
def test_real_rows_are_injected_with_the_seed_of_the_injector():
    X = pd.DataFrame({"sex": ["f", "m"] * 50, "income": np.arange(100.0)})
    y = pd.Series([1, 1, 0, 0] * 25, name="ok")
    what = {"sensitive_features": "sex", "kind": "label", "group": "f", "rate": 0.5}
    injector = BiasInjector(random_state=5, injection=what)
    made = injector.inject(X, y, **what)
    direct = datasets.inject(X, y, **what, random_state=5)
    pd.testing.assert_series_equal(made.y, direct.y)
    assert 0 < len(made.changed) < 25
    for one in (injector, clone(injector)):
        X_new, y_new = one.fit_resample(X, y)
        pd.testing.assert_series_equal(y_new, direct.y)
        pd.testing.assert_frame_equal(X_new, X)
    with pytest.raises(ValueError, match="injection must say what to put in"):
        BiasInjector().fit_resample(X, y)


def test_everything_public_is_found_where_it_is_said_to_be():
    assert datasets.BiasInjector is BiasInjector
    assert {"BiasInjector", "Truth", "inject", "make_biased_classification"} <= set(dir(datasets))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        datasets.nothing  # noqa: B018


def test_a_population_table_of_an_attribute_called_as_a_column_of_it_is_refused():
    injector = BiasInjector({"share": ["a", "b"], "sex": ["F", "M"]})
    with pytest.raises(ValueError, match=r"the population table has columns called \['share'\] itself"):
        injector.population  # noqa: B018
    assert set(injector.sample(50).sensitive_features) == {"share", "sex"}
