"""Scores of weighted rows: values of scikit-learn, intervals from influence functions, tallies that add, and coverage."""

import json
import pickle
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.metrics import brier_score_loss, roc_auc_score

from sklearn_ethiclens import Audit, Tally, audit, audit_tally, reliability_table
from sklearn_ethiclens._assess_scores import _residuals, reliability_of
from sklearn_ethiclens._score_tally import ScoreBins, ScoreTally, bin_edges
from sklearn_ethiclens.cli import main
from sklearn_ethiclens.inference._intervals import wilson_interval
from sklearn_ethiclens.inference._scores import (
    LEAST_CLASS,
    WeightedResiduals,
    auc_interval,
    auc_variance,
    bounded_mean_interval,
    calibration_error_interval,
)
from sklearn_ethiclens.metrics._scores import SCORE_METRICS, ScoredGroup
from sklearn_ethiclens.plotting import CalibrationDisplay

GROUP_METRICS = [metric for metric in SCORE_METRICS.values() if metric.kind == "group"]


def group_of(scores, truth, weights=None):
    scores = np.asarray(scores, dtype=float)
    weights = None if weights is None else np.asarray(weights, dtype=float)
    return ScoredGroup(ScoreTally.from_rows(scores, truth, np.zeros(scores.size), n_groups=1, weights=weights).group(0))


def drawn(n=200, seed=0, digits=2):
    random = np.random.default_rng(seed)
    x = random.normal(0, 1.2, n)
    truth = (random.random(n) < expit(0.7 * x)).astype(int)
    return expit(x).round(digits).clip(0.01, 0.99), truth, random.lognormal(0, 0.8, n)


def people(n=600, seed=0):
    scores, truth, weights = drawn(n, seed, digits=3)
    random = np.random.default_rng(seed + 1)
    groups = {"sex": random.choice(["f", "m"], n), "age": random.choice([30, 40, 50], n)}
    return truth, (scores > 0.5).astype(int), groups, scores, weights


def tally_of(truth, decided, groups, scores, weights, part=slice(None)):
    groups = {name: values[part] for name, values in groups.items()}
    return Tally.from_predictions(
        truth[part], decided[part], sensitive_features=groups, y_score=scores[part], sample_weight=weights[part]
    )


# ---------------------------------------------------------------------------------------------------------------- values
def test_worked_numbers():
    """Positives .9 (weight 1) and .4 (3), negatives .6 (2) and .2 (2); sum of weights 8."""
    group = group_of([0.9, 0.4, 0.6, 0.2], [1, 1, 0, 0], [1, 3, 2, 2])
    values = {metric.name: metric.value(group) for metric in GROUP_METRICS}
    assert values["roc_auc"] == (1 * 4 + 3 * 2) / (4 * 4)  # .9 beats both negatives, .4 the one of weight 2
    assert values["brier_score"] == pytest.approx((1 * 0.01 + 3 * 0.36 + 2 * 0.36 + 2 * 0.04) / 8, abs=1e-15)
    assert values["calibration_in_the_large"] == pytest.approx((0.9 + 1.2 + 1.2 + 0.4) / 8 - 4 / 8, abs=1e-15)
    assert values["expected_calibration_error"] == pytest.approx((0.1 + 1.8 + 1.2 + 0.4) / 8, abs=1e-15)
    assert (group.n, group.positives, group.effective_rows) == (4, 2, 64 / 18)
    # Placements: of positives 1 and 1/2 (share of weight 1/4 and 3/4), of negatives 1/4 and 1 (1/2 each); area 5/8.
    # Left out, they move it by h (placement - area) / (1 - h); of two rows a class the jackknife halves the squares.
    variance = (
        (1 / 4 * 3 / 8 / (3 / 4)) ** 2 + (3 / 4 * 1 / 8 / (1 / 4)) ** 2 + 2 * (1 / 2 * 3 / 8 / (1 / 2)) ** 2
    ) / 2
    assert auc_variance(*group.scores.placements, *group.scores.weights) == pytest.approx(variance, abs=1e-15)


@st.composite
def rows(draw):
    n = draw(st.integers(2, 40))
    score = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]) | st.floats(0, 1)
    scores = draw(st.lists(score, min_size=n, max_size=n))
    truth = [0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))]
    weights = draw(st.lists(st.floats(0.01, 100), min_size=n, max_size=n))
    return np.array(scores), np.array(truth), np.array(weights)


@given(rows())
@settings(max_examples=100, deadline=None)
def test_area_brier_score_and_calibration_error_are_those_of_scikit_learn_and_a_loop(data):
    scores, truth, weights = data
    group = group_of(*data)
    assert group.auc == pytest.approx(roc_auc_score(truth, scores, sample_weight=weights), abs=1e-12)
    assert group.brier == pytest.approx(brier_score_loss(truth, scores, sample_weight=weights), abs=1e-12)
    assert group.mean_score == pytest.approx(np.average(scores, weights=weights), abs=1e-12)
    assert group.base_rate == pytest.approx(np.average(truth, weights=weights), abs=1e-12)
    gaps = np.zeros(10)
    for s, y, w in zip(*data, strict=True):
        gaps[next(k for k in reversed(range(10)) if s >= k / 10)] += w * (y - s)
    assert group.calibration_error(bin_edges(10)) == pytest.approx(np.abs(gaps).sum() / weights.sum(), abs=1e-12)


@pytest.mark.parametrize("name", [metric.name for metric in GROUP_METRICS])
def test_whole_weights_have_the_values_of_so_many_rows(name):
    scores, truth, _ = drawn()
    times = np.random.default_rng(1).integers(1, 5, scores.size)
    metric = SCORE_METRICS[name]
    repeated = metric.value(group_of(np.repeat(scores, times), np.repeat(truth, times)))
    assert metric.value(group_of(scores, truth, times)) == pytest.approx(repeated, abs=1e-10)


@pytest.mark.parametrize("name", [metric.name for metric in GROUP_METRICS])
def test_values_know_weights_up_to_a_factor(name):
    scores, truth, weights = drawn()
    metric = SCORE_METRICS[name]
    value = metric.value(group_of(scores, truth, weights))
    assert metric.value(group_of(scores, truth, 1e6 * weights)) == pytest.approx(value, rel=1e-9)
    assert value != metric.value(group_of(scores, truth))


@pytest.mark.parametrize("weight", [1.0, 0.1, 7e8])
def test_equal_weights_change_no_metric_of_scores_to_the_last_digit(weight):
    truth, decided, groups, scores, _ = people()
    plain = audit(truth, decided, sensitive_features=groups, y_score=scores, method="auto")
    equal = audit(
        truth, decided, sensitive_features=groups, y_score=scores, method="auto", sample_weight=np.full(600, weight)
    )
    chosen = [[f for f in one.findings if f.metric in SCORE_METRICS] for one in (plain, equal)]
    assert len(chosen[0]) == 34
    assert repr(chosen[0]) == repr(chosen[1])
    pd.testing.assert_frame_equal(plain.section("scores").frame(), equal.section("scores").frame(), check_exact=True)


def test_rows_of_weight_0_are_left_out():
    truth, decided, groups, scores, weights = people()
    weights[np.r_[:40, 100:130]] = 0
    groups["sex"][:5] = "x"  # a group of which nothing is left
    kept = weights > 0
    whole = tally_of(truth, decided, groups, scores, weights)
    assert whole.scores.counts.sum() == 530
    left = tally_of(truth[kept], decided[kept], {k: v[kept] for k, v in groups.items()}, scores[kept], weights[kept])
    assert np.array_equal(whole.scores.scores, left.scores.scores)
    assert np.array_equal(whole.scores.weights, left.scores.weights)
    assert whole.groups == left.groups


# ------------------------------------------------------------------------------------------------------------ variances
def influence_variance(of, weights, step=1e-6):
    """Sum of (w dT/dw)^2 by central differences: the linearised variance of any statistic of weighted rows."""
    total = 0.0
    for i in range(weights.size):
        ends = []
        for sign in (1, -1):
            moved = weights.copy()
            moved[i] *= 1 + sign * step
            ends.append(of(moved))
        total += ((ends[0] - ends[1]) / (2 * step)) ** 2
    return total


def test_variances_are_those_of_influence_functions():
    scores, truth, weights = drawn(120)
    group = group_of(scores, truth, weights)
    brier = influence_variance(lambda w: group_of(scores, truth, w).brier, weights)
    assert group.brier_variance / group.effective_rows == pytest.approx(brier, rel=1e-6)
    in_the_large = influence_variance(
        lambda w: SCORE_METRICS["calibration_in_the_large"].value(group_of(scores, truth, w)), weights
    )
    assert group.residual_variance / group.effective_rows == pytest.approx(in_the_large, rel=1e-6)


def test_the_variance_of_an_area_is_that_of_a_jackknife_of_both_classes():
    scores, truth, weights = drawn(60)
    group = group_of(scores, truth, weights)
    expected = 0.0
    for outcome in (0, 1):
        rows = np.flatnonzero(truth == outcome)
        areas = [
            roc_auc_score(np.delete(truth, i), np.delete(scores, i), sample_weight=np.delete(weights, i)) for i in rows
        ]
        expected += (rows.size - 1) / rows.size * np.sum((np.array(areas) - group.auc) ** 2)
    assert auc_variance(*group.scores.placements, *group.scores.weights) == pytest.approx(expected, rel=1e-10)


def test_equal_weights_have_delongs_variance():
    scores, truth, _ = drawn(60)
    positives, negatives = group_of(scores, truth).scores.placements
    m, n = positives.size, negatives.size
    found = auc_variance(3 * positives, 3 * negatives, np.full(m, 3.0), np.full(n, 3.0))
    assert found == pytest.approx(auc_variance(positives, negatives), rel=1e-12)


def test_the_slope_is_that_of_statsmodels_and_its_error_a_sandwich():
    scores, truth, weights = drawn()
    fit = group_of(scores, truth, weights).recalibration
    design = sm.add_constant(logit(scores))
    model = sm.GLM(truth, design, family=sm.families.Binomial(), var_weights=weights).fit(tol=1e-14)
    assert [fit.intercept, fit.slope] == pytest.approx(model.params.tolist(), abs=1e-8)
    fitted = model.fittedvalues
    root = np.sqrt(weights * fitted * (1 - fitted))[:, None] * design
    leverage = np.diag(root @ np.linalg.inv(root.T @ root) @ root.T)
    influence = np.linalg.inv(root.T @ root) @ (design * (weights * (truth - fitted))[:, None]).T
    variance = (influence / (1 - leverage) ** 2) @ influence.T
    assert fit.standard_error == pytest.approx(np.sqrt(variance[1, 1]), rel=1e-6)


def test_the_interval_of_the_brier_score_is_the_normal_one_of_its_variance_and_wilson_widened():
    scores, truth, weights = drawn()
    group = group_of(scores, truth, weights)
    robust = sm.WLS((truth - scores) ** 2, np.ones(truth.size), weights=weights).fit(cov_type="HC0")
    assert group.brier == pytest.approx(robust.params[0], abs=1e-12)
    low, high = bounded_mean_interval(group.brier, group.brier_variance, group.effective_rows)
    assert [low, high] == pytest.approx(robust.conf_int()[0].tolist(), abs=0.02)
    assert low == pytest.approx(robust.conf_int()[0][0], abs=1e-9)  # below, where rare large errors are no danger
    assert low <= robust.conf_int()[0][0] + 1e-9
    assert high >= robust.conf_int()[0][1] - 1e-9


# ------------------------------------------------------------------------------------------------- calibration error
def test_halves_of_rows_agree_with_halves_of_cells_where_weights_are_equal():
    scores, truth, _ = drawn(400, digits=3)
    bins = ScoreTally.from_rows(scores, truth, np.zeros(400), n_groups=1).bins
    of_rows = WeightedResiduals(truth - scores, np.full(400, 2.0), np.minimum((scores * 10).astype(int), 9))
    found = [
        calibration_error_interval(bins.counts, bins.sums, bins.squares, n_splits=4000, weighted=weighted)
        for weighted in (None, {0: of_rows})
    ]
    assert found[1].plug_in[0] == pytest.approx(found[0].plug_in[0], abs=1e-12)
    assert found[1].high[0] == pytest.approx(found[0].high[0], abs=1e-9)
    assert found[1].crossfit[0] == pytest.approx(found[0].crossfit[0], abs=0.002)
    assert found[1].low[0] == pytest.approx(found[0].low[0], abs=0.002)


def test_the_width_of_the_calibration_error_is_that_of_its_influence_function():
    """Where no gap is near 0 the error is smooth in the weights, and the upper end is one normal half-width above it."""
    random = np.random.default_rng(5)
    scores, weights = random.uniform(0.02, 0.98, 3000), random.lognormal(0, 1, 3000)
    truth = (random.random(3000) < np.where(scores < 0.5, scores + 0.4, scores - 0.4)).astype(int)
    group = group_of(scores, truth, weights)
    bins = replace_weights(scores, truth)
    found = calibration_error_interval(bins.counts, bins.sums, bins.squares, weighted={0: _residuals(group.scores)})
    edges = bin_edges(10)
    gaps = np.bincount(np.searchsorted(edges[1:-1], scores, side="right"), weights * (truth - scores), 10)
    influence = np.sign(gaps)[np.searchsorted(edges[1:-1], scores, side="right")] * (truth - scores) - found.plug_in[0]
    error = np.sqrt(np.sum((weights * influence) ** 2)) / weights.sum()
    assert found.plug_in[0] == pytest.approx(group.calibration_error(edges), abs=1e-12)
    assert found.high[0] - found.plug_in[0] == pytest.approx(1.959964 * error, abs=0.002)
    assert found.crossfit[0] <= found.plug_in[0]
    assert found.low[0] < found.crossfit[0] - 1.9 * error


@pytest.mark.parametrize("factor", [1 / 3, 1e-50, 7e40])
def test_the_calibration_error_knows_weights_up_to_a_factor(factor):
    """A half without rows, or whose residuals cancel, has no sign: not that of a rounding error."""
    random = np.random.default_rng(0)
    scores, truth = random.choice([0.0, 0.1, 0.3, 0.5, 0.7, 1.0], 60), random.integers(0, 2, 60)
    rows = WeightedResiduals(truth - scores, random.integers(1, 4, 60).astype(float), (scores * 9.9).astype(int))
    empty = np.zeros((1, 10, 2))
    found, scaled = (
        calibration_error_interval(
            empty.astype(int), empty, empty, weighted={0: rows._replace(weight=rows.weight * by)}
        )
        for by in (1.0, factor)
    )
    np.testing.assert_allclose(np.ravel(scaled), np.ravel(found), rtol=1e-9)


def replace_weights(scores, truth):
    return ScoreTally.from_rows(scores, truth, np.zeros(scores.size), n_groups=1).bins


def test_the_calibration_error_of_weighted_rows_is_seeded_and_of_each_group_alone():
    data = people()
    found, again = (audit_tally(tally_of(*data), method="auto").section("scores").frame() for _ in range(2))
    pd.testing.assert_frame_equal(found, again, check_exact=True)
    other = audit_tally(tally_of(*data), method="auto", random_state=1).section("scores").frame()
    assert (found["ece_crossfit"] != other["ece_crossfit"]).any()
    assert (found["ece"] == other["ece"]).all()
    assert ((found["ece_low"] <= found["ece_crossfit"]) & (found["ece"] <= found["ece_high"])).all()


# ------------------------------------------------------------------------------------------------------------- tallies
def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("scores", "starts", "weights"))


def test_tallies_add_and_have_marginals_as_their_rows_do():
    truth, decided, groups, scores, weights = people()
    scores = scores.round(1)  # many ties, so that the weights must be told apart by more than their score
    whole = tally_of(truth, decided, groups, scores, weights)
    parts = [tally_of(truth, decided, groups, scores, weights, part) for part in (slice(250), slice(250, None))]
    assert same((parts[0] + parts[1]).scores, whole.scores)
    assert same((parts[1] + parts[0]).scores, whole.scores)
    alone = tally_of(truth, decided, {"age": groups["age"]}, scores, weights)
    assert same(whole.marginal(["age"]).scores, alone.scores)
    order = np.random.default_rng(1).permutation(600)
    shuffled = tally_of(
        truth[order], decided[order], {k: v[order] for k, v in groups.items()}, scores[order], weights[order]
    )
    assert same(shuffled.scores, whole.scores)


def test_weights_stay_beside_their_scores():
    truth, decided, groups, scores, weights = people()
    tally = tally_of(truth, decided, groups, scores, weights)
    pairs = {(s, w) for s, w in zip(scores, weights, strict=True)}
    assert {(s, w) for s, w in zip(tally.scores.scores, tally.scores.weights, strict=True)} == pairs
    merged = tally.marginal(["sex"]).scores
    assert {(s, w) for s, w in zip(merged.scores, merged.weights, strict=True)} == pairs
    at = (groups["sex"] == "f") & (truth == 1)
    assert merged.group(0).totals[0] == pytest.approx(weights[at].sum(), rel=1e-12)
    np.testing.assert_allclose(
        merged.mean(), [np.average(scores[groups["sex"] == g], weights=weights[groups["sex"] == g]) for g in "fm"]
    )


def test_json_holds_weighted_bins_and_no_single_score():
    data = people()
    tally = tally_of(*data)
    text = json.dumps(tally.to_dict())
    read = Tally.from_dict(json.loads(text))
    assert isinstance(read.scores, ScoreBins)
    assert read == tally
    assert read.digest() == tally.digest()
    assert pickle.loads(pickle.dumps(read)) == tally
    assert same(pickle.loads(pickle.dumps(tally)).scores, tally.scores)
    assert set(tally.to_dict()["score_bins"]) == {"n", "sum", "sum_of_squares", "weight", "squared_weight"}
    truth, _, groups, scores, weights = data
    at = (groups["sex"] == "f") & (groups["age"] == 30) & (truth == 1) & (scores >= 0.5) & (scores < 0.6)
    bins = read.scores
    found = [getattr(bins, name)[0, 5, 1] for name in ("counts", "sums", "squares", "weights", "squared_weights")]
    w, s = weights[at], scores[at]
    assert found == pytest.approx([at.sum(), w @ s, w @ s**2, w.sum(), w @ w], rel=1e-12)


def test_stored_bins_add_and_have_marginals():
    data = people()
    whole, parts = tally_of(*data), [tally_of(*data, slice(150)), tally_of(*data, slice(150, None))]
    read = [Tally.from_dict(json.loads(json.dumps(part.to_dict()))) for part in parts]
    for total in (read[0] + read[1], read[0] + parts[1], parts[0] + read[1]):
        for name in ("counts", "sums", "squares", "weights", "squared_weights"):
            np.testing.assert_allclose(getattr(total.scores, name), getattr(whole.scores.bins, name), rtol=1e-12)
            merged = (getattr(one.marginal(["sex"]).scores.bins, name) for one in (total, whole))
            np.testing.assert_allclose(*merged, rtol=1e-12)


def test_scores_of_other_weights_are_refused():
    truth, decided, groups, scores, weights = people()
    mine = tally_of(truth, decided, groups, scores, weights)
    plain = Tally.from_predictions(truth, decided, sensitive_features=groups, y_score=scores)
    for held, of in ((plain, mine), (mine, plain), (tally_of(truth, decided, groups, scores, 2 * weights), mine)):
        with pytest.raises(ValueError, match="scores must be of the rows that are counted: their weights"):
            Tally(of.attributes, of.groups, of.counts, scores=held.scores, weights=of.weights)
    for a, b in ((mine.scores, plain.scores), (plain.scores.bins, mine.scores)):
        with pytest.raises(ValueError, match="scores of weighted rows and of unweighted ones do not add"):
            a + b
    with pytest.raises(ValueError, match="finite and above 0, one for each of 2 scores"):
        ScoreTally(np.array([0.1, 0.2]), np.array([[0, 1]]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="given both, or neither"):
        ScoreBins(*[np.ones((1, 1, 2))] * 4)


# -------------------------------------------------------------------------------------------------------------- audits
def test_findings_are_of_the_rows_of_each_group():
    truth, decided, groups, scores, weights = people()
    made = audit(truth, decided, sensitive_features=groups["sex"], y_score=scores, sample_weight=weights, method="auto")
    table = made.section("scores").frame().set_index("group")
    for g in "fm":
        at = groups["sex"] == g
        own = group_of(scores[at], truth[at], weights[at])
        found = {f.metric: f for f in made.findings if f.group == g and f.reference is None}
        for metric in GROUP_METRICS:
            assert found[metric.name].value == pytest.approx(metric.value(own), abs=1e-12)
            assert found[metric.name].low < found[metric.name].value < found[metric.name].high
        variance = auc_variance(*own.scores.placements, *own.scores.weights)
        ends = auc_interval(own.auc, variance, *own.scores.effective, dof=min(own.scores.effective) - 1)[0]
        assert (found["roc_auc"].low, found["roc_auc"].high) == pytest.approx(ends, abs=1e-12)
        assert found["roc_auc"].method == "DeLong, logit"
        assert found["calibration_slope"].method == "Wald, sandwich"
        assert (found["roc_auc"].n, table.loc[g, "n"]) == (at.sum(), at.sum())
        assert table.loc[g, "base_rate"] == pytest.approx(np.average(truth[at], weights=weights[at]), abs=1e-12)
    (gap,) = (f for f in made.findings if f.metric == "roc_auc_difference")
    areas = {f.group: f.value for f in made.findings if f.metric == "roc_auc"}
    assert gap.value == pytest.approx(areas[gap.group] - areas[gap.reference], abs=1e-12)
    assert any("Rows are weighted" in line for line in made.section("scores").lines)
    plain = audit(truth, decided, sensitive_features=groups["sex"], y_score=scores, method="auto")
    assert not any("weighted" in line for line in plain.section("scores").lines)


@pytest.mark.filterwarnings("ignore:undefined, shown as NaN")  # ratios of error rates that are all 0
def test_few_effective_rows_of_a_class_have_newcombes_interval():
    """A positive that weighs many times as much as all others together: about one effective row of its class."""
    scores, truth, _ = drawn(60, seed=3)
    weights = np.ones(60)
    weights[np.flatnonzero(truth)[0]] = 1000
    groups = np.repeat(["a", "b"], 30)
    made = audit(truth, truth, sensitive_features=groups, y_score=scores, sample_weight=weights, method="auto")
    found = {f.group: f for f in made.findings if f.metric == "roc_auc"}
    heavy = groups[np.flatnonzero(truth)[0]]
    assert found[heavy].method == "Newcombe"
    assert found[heavy].high - found[heavy].low > 0.5
    assert found["b" if heavy == "a" else "a"].method == "DeLong, logit"
    (gap,) = (f for f in made.findings if f.metric == "roc_auc_difference")
    assert np.isnan(gap.pvalue)


def test_whether_base_rates_differ_is_asked_of_effective_rows():
    """60 and 40 of 100 differ beyond chance; not if a few rows carry the weight."""
    truth, groups = np.r_[np.arange(100) < 60, np.arange(100) < 40].astype(int), np.repeat(["a", "b"], 100)
    scores = np.full(200, 0.5)
    said = []
    for spread in (0.01, 2.0):
        weights = np.exp(spread * np.tile(np.linspace(-1, 3, 20), 10))
        made = audit(
            truth,
            truth,
            sensitive_features=groups,
            y_score=scores,
            sample_weight=weights,
            method="auto",
            metrics=["brier_score"],
        )
        said.append(any("Base rates differ" in line for line in made.section("scores").lines))
    assert said == [True, False]


def test_a_stored_audit_keeps_what_was_found_and_its_reliability():
    truth, decided, groups, scores, weights = people()
    made = audit(truth, decided, sensitive_features=groups, y_score=scores, sample_weight=weights, method="auto")
    read = Audit.from_json(made.to_json())
    pd.testing.assert_frame_equal(read.frame(), made.frame())
    assert read.to_json() == made.to_json()
    pd.testing.assert_frame_equal(reliability_of(read.tally), reliability_of(made.tally))
    assert "Rows are weighted: n counts them" in made.report("text")
    assert [f.metric for f in read.rejudge("four_fifths").findings if f.metric in SCORE_METRICS]


# --------------------------------------------------------------------------------------------------------- reliability
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_of_weighted_rows_is_that_of_a_loop_over_bins(strategy):
    truth, _, groups, scores, weights = people()
    table = reliability_table(
        truth, scores, sensitive_features={"sex": groups["sex"]}, sample_weight=weights, n_bins=5, strategy=strategy
    )
    assert table["n"].sum() == 600
    for row in table.itertuples():
        at = (groups["sex"] == row.sex) & (scores >= row.bin_low) & (scores < row.bin_high)
        at |= (groups["sex"] == row.sex) & (scores == row.bin_high) & (row.bin_high == table["bin_high"].max())
        w, y = weights[at], truth[at]
        assert row.n == at.sum()
        assert row.mean_score == pytest.approx(np.average(scores[at], weights=w), abs=1e-12)
        rate = np.average(y, weights=w)
        assert row.observed_rate == pytest.approx(rate, abs=1e-12)
        size = rate * (1 - rate) / (np.sum((w * (y - rate)) ** 2) / w.sum() ** 2)
        assert (row.low, row.high) == pytest.approx(wilson_interval(rate * size, size), abs=1e-9)


def test_reliability_with_equal_weights_is_that_of_rows_and_empty_bins_have_none():
    scores, truth, _ = drawn()
    scores = scores / 2
    plain = reliability_table(truth, scores)
    pd.testing.assert_frame_equal(reliability_table(truth, scores, sample_weight=np.full(200, 0.1)), plain)
    assert plain["observed_rate"].isna().any()
    with pytest.raises(ValueError, match="sample_weight 199"):
        reliability_table(truth, scores, sample_weight=np.ones(199))


def test_the_calibration_display_draws_weighted_rates():
    truth, decided, groups, scores, weights = people()
    made = audit(truth, decided, sensitive_features=groups["sex"], y_score=scores, sample_weight=weights, method="auto")
    expected = reliability_table(truth, scores, sensitive_features=groups["sex"], sample_weight=weights)
    drawn_ = [
        CalibrationDisplay.from_audit(made),
        CalibrationDisplay.from_predictions(truth, scores, sensitive_features=groups["sex"], sample_weight=weights),
    ]
    for display in drawn_:
        for group, line in display.lines_.items():
            own = expected[expected.iloc[:, 0] == group]
            np.testing.assert_allclose(line.get_ydata(), own["observed_rate"])
    plt.close("all")


# --------------------------------------------------------------------------------------------------- presets, commands
def test_scoring_rates_count_rows_and_are_left_out():
    truth, decided, groups, scores, weights = people()
    made = audit(truth, decided, sensitive_features=groups["sex"], y_score=scores, sample_weight=weights, method="auto")
    report = made.preset("ll144").report("text")
    assert "scoring rates and impact ratios" not in report
    assert "Scoring rates are left out: they count rows" in " ".join(report.split())
    act = made.preset("eu-ai-act").section("eu-ai-act article 15").frame().set_index("metric")
    whole = group_of(scores, truth, weights)
    assert act.loc["roc_auc", "value"] == pytest.approx(whole.auc, abs=1e-12)
    ends = bounded_mean_interval(whole.brier, whole.brier_variance, whole.effective_rows)
    assert act.loc["brier_score", ["low", "high"]].tolist() == pytest.approx([*ends], abs=1e-12)


def test_the_command_line_weighs_scores(tmp_path, monkeypatch, capsys):
    truth, decided, groups, scores, weights = people()
    path = tmp_path / "rows.csv"
    pd.DataFrame({"y": truth, "p": decided, "s": scores, "w": weights, **groups}).to_csv(path, index=False)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", "audit", str(path), *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    own = ["--sensitive", "sex", "--fail-on", "none"]
    code, out, err = run(
        "--y-true", "y", "--y-pred", "p", "--y-score", "s", "--weight", "w", *own, "--n-resamples", "200", "--json", "-"
    )
    assert (code, err) == (0, "")
    found = {f.group: f.value for f in Audit.from_json(out).findings if f.metric == "roc_auc"}
    for g, value in found.items():
        at = groups["sex"] == g
        assert value == pytest.approx(roc_auc_score(truth[at], scores[at], sample_weight=weights[at]), abs=1e-9)
    code, _, err = run("--y-score", "s", "--weight", "w", "--preset", "ll144", *own)
    assert (code, "--weight does not go with scores alone: scoring rates count rows" in err) == (2, True)


# ------------------------------------------------------------------------------------------------------------ coverage
def sampled(random, n, informative):
    """Rows of a population with scores expit(x), x normal, that are true with expit(.6 x); and their sampling weights.

    Informative: those who come true are drawn at half the rate of the others, and low scores at less than half of high ones.
    """
    x = random.normal(0, 1.3, 12 * n if informative else n)
    truth, scores = (random.random(x.size) < expit(0.6 * x)).astype(int), expit(x)
    weights = random.lognormal(0, 0.7, x.size)
    if informative:
        weights *= np.where(truth == 1, 2.0, 1.0) * np.where(scores > 0.5, 0.6, 1.4)
        weights = np.maximum(weights, 0.15)
        drawn_ = np.flatnonzero(random.random(x.size) < 0.15 / weights)[:n]
        scores, truth, weights = scores[drawn_], truth[drawn_], weights[drawn_]
    return scores, truth, weights


@pytest.mark.slow
@pytest.mark.parametrize("informative", [False, True])
def test_intervals_of_weighted_scores_cover(informative):
    """True values by numerical integration over x; 1,000 samples, standard error .007. The Brier score's is wide by design."""
    x, mass = np.polynomial.hermite_e.hermegauss(200)
    x, mass = 1.3 * x, mass / mass.sum()
    rate, scores = expit(0.6 * x), expit(x)
    brier = np.sum(mass * (rate * (1 - scores) ** 2 + (1 - rate) * scores**2))
    grid = np.linspace(-9, 9, 20001)
    density = np.exp(-((grid / 1.3) ** 2) / 2)
    above, below = density * expit(0.6 * grid), density * expit(-0.6 * grid)
    auc = np.sum(above * (np.cumsum(below) - below / 2)) / above.sum() / below.sum()
    random, covered = np.random.default_rng(2), np.zeros(2)
    for _ in range(1000):
        group = group_of(*sampled(random, 150, informative))
        variance = auc_variance(*group.scores.placements, *group.scores.weights)
        assert min(group.scores.effective) >= LEAST_CLASS
        ends = [
            auc_interval(group.auc, variance, *group.scores.effective, dof=min(group.scores.effective) - 1)[0],
            bounded_mean_interval(group.brier, group.brier_variance, group.effective_rows),
        ]
        covered += [low <= value <= high for (low, high), value in zip(ends, (auc, brier), strict=True)]
    assert 930 <= covered[0] <= 970
    assert 930 <= covered[1] <= 990
