"""Metrics of scores by group: worked numbers, independent oracles, honest intervals, and the way through audit and models."""

import json
import pickle
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, TunedThresholdClassifierCV, cross_val_predict
from sklearn.svm import LinearSVC

from sklearn_ethiclens import (
    METRICS,
    POLICIES,
    SCORE_METRICS,
    Audit,
    FairnessAuditor,
    Tally,
    Verdict,
    audit,
    audit_tally,
    fairness_scorers,
    inference,
    make_fairness_scorer,
    metrics,
    reliability_table,
    select_within,
)
from sklearn_ethiclens._score_tally import GroupScores, ScoreTally, bin_edges
from sklearn_ethiclens.cli import main
from sklearn_ethiclens.exceptions import FairnessScoringWarning, UndefinedMetricWarning
from sklearn_ethiclens.inference._intervals import Bounds
from sklearn_ethiclens.metrics._scores import recalibrate, score_edges, worst_of_scores

GROUP = [name for name, metric in SCORE_METRICS.items() if metric.kind == "group"]
PAIR = [name for name, metric in SCORE_METRICS.items() if metric.kind == "pair"]


def scored(truth, scores):
    return ScoreTally.from_rows(scores, truth, np.zeros(len(scores)), n_groups=1).group(0)


def people(n=600, seed=0):
    """Return labels, decisions, groups and calibrated scores; group b scores lower, group c is small."""
    random = np.random.default_rng(seed)
    group = random.choice(["a", "b", "c"], n, p=[0.6, 0.34, 0.06])
    scores = np.where(group == "a", random.beta(3, 3, n), random.beta(2, 4, n))
    return (random.random(n) < scores).astype(int), (scores > 0.5).astype(int), group, scores


@cache
def plainly_audited():
    truth, decided, group, scores = people()
    return audit(truth, decided, sensitive_features={"g": group}, y_score=scores)


def audited(n=600, seed=0, **options):
    if not options and (n, seed) == (600, 0):
        return plainly_audited()
    truth, decided, group, scores = people(n, seed)
    return audit(truth, decided, sensitive_features={"g": group}, y_score=scores, **options)


def found(made, metric, group=None):
    """Return the findings of a metric by group, or that of one group."""
    rows = {f.group: f for f in made.findings if f.metric == metric}
    return rows if group is None else rows[group]


@st.composite
def samples(draw, low=2, high=60):
    n = draw(st.integers(low, high))
    score = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]) | st.floats(0.001, 0.999)
    scores = np.array(draw(st.lists(score, min_size=n, max_size=n)))
    truth = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return truth, scores


# ------------------------------------------------------------------------------------------------- worked numbers
WORKED = {
    # positives .4 .9, negatives .2 .6: of four pairs the positive wins three (.4 loses to .6)
    "roc_auc": 0.75,
    # (.6^2 + .1^2 + .2^2 + .6^2) / 4 = (.36 + .01 + .04 + .36) / 4
    "brier_score": 0.1925,
    # 2.1 / 4 - 2 / 4
    "calibration_in_the_large": 0.025,
    # four bins of one row: (.6 + .1 + .2 + .6) / 4
    "expected_calibration_error": 0.375,
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_numbers(name):
    assert SCORE_METRICS[name](scored([1, 1, 0, 0], [0.4, 0.9, 0.2, 0.6])) == pytest.approx(WORKED[name], abs=1e-15)


def test_worked_slope():
    """One positive in five at .4 and three at .6: log-odds go from log(1/4) to log(3/2), those of the scores twice log(3/2)."""
    truth = [1, 0, 0, 0, 0, 1, 1, 1, 0, 0]
    found = SCORE_METRICS["calibration_slope"](scored(truth, [0.4] * 5 + [0.6] * 5))
    assert found == pytest.approx(np.log(6) / (2 * np.log(1.5)), abs=1e-9)


@pytest.mark.parametrize("name", PAIR)
def test_a_difference_is_of_the_group_minus_the_reference(name):
    one, other = scored([1, 1, 0, 0], [0.4, 0.9, 0.2, 0.6]), scored([1, 0, 1], [0.7, 0.3, 0.2])
    own = SCORE_METRICS[name.removesuffix("_difference")]
    assert SCORE_METRICS[name](one, other) == own(one) - own(other)
    with pytest.raises(TypeError, match="takes 2 group"):
        SCORE_METRICS[name](one)


def test_no_calibration_error_is_subtracted_from_another():
    """Both are biased upward by an amount that depends on the number of rows, which a difference would keep."""
    assert "expected_calibration_error_difference" not in SCORE_METRICS


# --------------------------------------------------------------------------------------------------------- oracles
@given(samples())
@settings(max_examples=30, deadline=None)
def test_auc_and_brier_score_are_those_of_scikit_learn(sample):
    truth, scores = sample
    group = scored(truth, scores)
    assert SCORE_METRICS["brier_score"](group) == pytest.approx(
        brier_score_loss(truth, scores, pos_label=1) if len(set(truth)) == 2 else np.mean((truth - scores) ** 2),
        abs=1e-12,
    )
    if len(set(truth)) == 2:
        assert SCORE_METRICS["roc_auc"](group) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
    else:
        assert np.isnan(SCORE_METRICS["roc_auc"](group))


@given(samples(), st.integers(1, 15))
@settings(max_examples=40, deadline=None)
def test_calibration_error_is_that_of_a_loop_over_bins(sample, n_bins):
    truth, scores = sample
    expected, rows = 0.0, 0
    for k in range(n_bins):
        last = k == n_bins - 1
        inside = (scores >= k / n_bins) & ((scores <= 1) if last else (scores < (k + 1) / n_bins))
        rows += inside.sum()
        if inside.any():
            expected += inside.mean() * abs(truth[inside].mean() - scores[inside].mean())
    assert rows == len(scores)
    assert metrics.expected_calibration_error(truth, scores, n_bins=n_bins, pos_label=1) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [5, 10])
def test_reliability_table_agrees_with_calibration_curve(strategy, n_bins):
    truth, _, _, scores = people(998)  # 997 is a prime, so that no quantile is a score: sides of the edges differ
    rate, mean = calibration_curve(truth, scores, n_bins=n_bins, strategy=strategy)
    table = reliability_table(truth, scores, n_bins=n_bins, strategy=strategy).query("n > 0")
    np.testing.assert_allclose(table["observed_rate"], rate, atol=1e-12)
    np.testing.assert_allclose(table["mean_score"], mean, atol=1e-12)
    assert table["n"].sum() == 998


@pytest.mark.parametrize("seed", range(4))
def test_slope_and_its_error_are_those_of_statsmodels(seed):
    random = np.random.default_rng(seed)
    scores = random.beta(0.6, 1.2, 300).clip(1e-6, 1 - 1e-6)
    logit = np.log(scores / (1 - scores))
    truth = (random.random(300) < 1 / (1 + np.exp(-(0.4 + 0.3 * (seed + 1) * logit)))).astype(int)
    fit = sm.Logit(truth, sm.add_constant(logit)).fit(disp=0, tol=1e-12)
    group = scored(truth, scores)
    ours = recalibrate(group.positives, group.negatives)
    assert ours.reason == ""
    np.testing.assert_allclose([ours.intercept, ours.slope, ours.standard_error], [*fit.params, fit.bse[1]], rtol=1e-6)


def test_a_far_away_slope_is_found_by_halved_steps():
    """Scores next to 1/2 that tell a lot: the slope is in the hundreds, and undamped Newton steps overshoot."""
    random = np.random.default_rng(0)
    x = random.normal(size=400)
    truth = (random.random(400) < 1 / (1 + np.exp(-4 * x))).astype(int)
    scores = 1 / (1 + np.exp(-x / 100))
    group = scored(truth, scores)
    fit = sm.Logit(truth, sm.add_constant(x)).fit(disp=0, tol=1e-12)
    assert recalibrate(group.positives, group.negatives).slope == pytest.approx(100 * fit.params[1], rel=1e-6)
    inverted = scored(truth, scores[::-1].copy())
    assert recalibrate(inverted.positives, inverted.negatives).reason == ""


def delong_by_pairs(truth, scores):
    """Return DeLong's variance from the matrix of all pairs."""
    wins = np.sign(scores[truth == 1][:, None] - scores[truth == 0][None, :]) / 2 + 0.5
    m, n = wins.shape
    return wins.mean(1).var(ddof=1) / m + wins.mean(0).var(ddof=1) / n


@given(samples(low=6))
@settings(max_examples=40, deadline=None)
def test_delong_variance_is_that_of_all_pairs(sample):
    truth, scores = sample
    assume(2 <= truth.sum() <= len(truth) - 2)
    assert inference.auc_variance(*scored(truth, scores).placements) == pytest.approx(
        delong_by_pairs(truth, scores), abs=1e-14
    )


def test_delong_variance_is_unknown_with_one_row_in_a_class():
    assert np.isnan(inference.auc_variance(*scored([1, 0, 0], [0.5, 0.2, 0.8]).placements))


@pytest.mark.parametrize(("auc", "m", "n"), [(1.0, 12, 30), (0.0, 7, 9), (0.8, 3, 40), (0.5, 1, 1)])
def test_newcombe_ends_lie_z_errors_away_by_hanley_and_mcneil(auc, m, n):
    """At 0 and 1, and with fewer than five rows in a class, the ends solve |auc - a| = z sqrt(V(a))."""
    bounds, method = inference.auc_interval(auc, 0.01, m, n)
    assert method == "Newcombe"
    assert 0 <= bounds.low <= auc <= bounds.high <= 1
    for a in (float(bounds.low), float(bounds.high)):
        if 0 < a < 1:
            q = ((m + n) / 2 - 1) * ((1 - a) / (2 - a) + a / (1 + a))
            assert abs(auc - a) == pytest.approx(norm.ppf(0.975) * np.sqrt(a * (1 - a) * (1 + q) / (m * n)), abs=1e-9)
    assert bounds.high - bounds.low > 0.05


def test_logit_interval_by_hand():
    """.8 +- on the logit scale: log 4 -+ 1.96 x .04 / .16."""
    (low, high), method = inference.auc_interval(0.8, 0.0016, 50, 50)
    z = norm.ppf(0.975)
    assert method == "DeLong, logit"
    odds = np.exp(np.log(4) + np.array([-1, 1]) * z * 0.25)
    np.testing.assert_allclose([low, high], odds / (1 + odds))
    narrower, _ = inference.auc_interval(0.8, 0.0016, 50, 50, confidence_level=0.8)
    assert low < narrower.low < 0.8 < narrower.high < high


def test_mover_of_wilson_intervals_is_newcombes_interval():
    a, b = inference.wilson_interval(15, 40), inference.wilson_interval(9, 60)
    ours = inference.mover_difference_interval(15 / 40, Bounds(*a), 9 / 60, Bounds(*b))
    np.testing.assert_allclose(ours, inference.newcombe_interval(15, 40, 9, 60), atol=1e-12)


@pytest.mark.parametrize(("count", "n"), [(0, 12), (3, 12), (6, 12), (12, 12), (40, 400)])
def test_interval_of_a_bounded_mean_holds_wilsons_for_zeros_and_ones(count, n):
    p = count / n
    ours, wilson = inference.bounded_mean_interval(p, p * (1 - p), n), inference.wilson_interval(count, n)
    assert ours.low <= wilson.low + 1e-12
    assert wilson.high <= ours.high + 1e-12
    assert 0 <= ours.low <= ours.high <= 1
    assert np.isnan(inference.bounded_mean_interval(0.5, 0.1, 0).low)


# ------------------------------------------------------------------------------------------- cross-fitted calibration
def crossfit_by_rows(truth, scores, splits, seed):
    """Return plug-in and cross-fitted calibration errors from random halves of the rows themselves."""
    random = np.random.default_rng(seed)
    cell = np.minimum((scores * 10).astype(int), 9)
    gap = np.bincount(cell, truth - scores, 10)
    total = []
    for _ in range(splits):
        first = random.random(len(scores)) < 0.5
        a = np.bincount(cell[first], (truth - scores)[first], 10)
        total.append((np.sign(a) * (gap - a) + np.sign(gap - a) * a).sum())
    return np.abs(gap).sum() / len(scores), np.mean(total) / len(scores)


@pytest.mark.parametrize("bend", [1.0, 1.6])
def test_crossfit_from_cells_agrees_with_halves_of_rows(bend):
    """A cell's rows differ little in their residuals, so that halves of counts stand for halves of rows."""
    random = np.random.default_rng(3)
    scores = random.random(4000)
    truth = (random.random(4000) < scores**bend).astype(int)
    bins = ScoreTally.from_rows(scores, truth, np.zeros(4000), n_groups=1).bins
    ours = inference.calibration_error_interval(bins.counts, bins.sums, bins.squares, n_splits=2000)
    plug_in, crossfit = crossfit_by_rows(truth, scores, 2000, 4)
    assert ours.plug_in[0] == pytest.approx(plug_in, abs=1e-12)
    assert ours.crossfit[0] == pytest.approx(max(crossfit, 0), abs=6e-4)
    assert 0 <= ours.low[0] <= ours.crossfit[0] <= ours.plug_in[0] <= ours.high[0]


def test_calibration_interval_by_hand():
    """The lower end is a normal half-width below the cross-fitted point, widened by at most z^2 / n; so is the upper end."""
    truth, _, _, scores = people(2000)
    bins = scored(truth, scores**2).binned(bin_edges(10))
    ours = inference.calibration_error_interval(bins.counts, bins.sums, bins.squares)
    mean_square, n, z = np.mean((truth - scores**2) ** 2), 2000, norm.ppf(0.975)
    for point, end in ((ours.crossfit[0], ours.low[0]), (ours.plug_in[0], ours.high[0])):
        half = z * np.sqrt((mean_square - point**2) / n)
        assert half < abs(end - point) < half + z**2 / n


def test_calibration_interval_is_seeded_and_of_each_group_alone():
    truth, _, group, scores = people(900)
    bins = ScoreTally.from_rows(scores, truth, (group == "b").astype(int), n_groups=2).bins
    parts = bins.counts, bins.sums, bins.squares
    one, again = (inference.calibration_error_interval(*parts, seed=5) for _ in range(2))
    other = inference.calibration_error_interval(*parts, seed=6)
    assert np.array_equal(one, again)
    assert not np.array_equal(one.low, other.low) or not np.array_equal(one.crossfit, other.crossfit)
    assert np.array_equal(one.plug_in, other.plug_in)


def test_ten_equal_outcomes_do_not_look_certain():
    """No positive among ten rows scored .02: residuals all equal, but a rate of .25 would do that one time in twenty."""
    bins = scored([0] * 10, [0.02] * 10).binned(bin_edges(10))
    ours = inference.calibration_error_interval(bins.counts, bins.sums, bins.squares)
    assert ours.low[0] == 0
    assert ours.high[0] > 0.23


# -------------------------------------------------------------------------------------------------------- coverage
def auc_coverage(auc, m, n, sets, seed):
    """Return how often the 95% interval of a binormal area holds it, and that of a difference of two holds 0."""
    random = np.random.default_rng(seed)
    shift, hits, zero, last = np.sqrt(2) * norm.ppf(auc), 0, 0, None
    for _ in range(sets):
        group = GroupScores(np.sort(random.normal(shift, 1, m)), np.sort(random.normal(0, 1, n)))
        value = float(group.placements[0].sum() / (m * n))
        bounds, _ = inference.auc_interval(value, inference.auc_variance(*group.placements), m, n)
        hits += bounds.low <= auc <= bounds.high
        if last is not None:
            low, high = inference.mover_difference_interval(value, bounds, *last)
            zero += low <= 0 <= high
        last = value, bounds
    return hits / sets, zero / (sets - 1)


@pytest.mark.parametrize(("auc", "m", "n"), [(0.7, 10, 40), (0.95, 5, 20), (0.6, 3, 30), (1.0 - 1e-9, 8, 8)])
def test_auc_intervals_cover(auc, m, n):
    """.95 less three standard errors of 800 draws, .023, and what small classes cost: measured .935 to .98."""
    covered, zero = auc_coverage(auc, m, n, 800, seed=1)
    assert covered > 0.915
    assert zero > 0.915


@pytest.mark.long
@pytest.mark.parametrize("auc", [0.5, 0.7, 0.85, 0.95, 0.99])
@pytest.mark.parametrize(("m", "n"), [(3, 30), (5, 5), (5, 20), (10, 40), (30, 100)])
def test_auc_intervals_cover_everywhere(auc, m, n):
    covered, zero = auc_coverage(auc, m, n, 4000, seed=2)
    assert covered > 0.92
    assert zero > 0.92


def calibration_coverage(bend, n, sets, seed, confidence_level=0.95):
    """Return how often the true error lies below, and above, the interval; scores uniform, P(y = 1) = score^bend."""
    random = np.random.default_rng(seed)
    scores = random.random((sets, n))
    truth = (random.random((sets, n)) < scores**bend).astype(int)
    groups = np.repeat(np.arange(sets), n)
    bins = ScoreTally.from_rows(scores.ravel(), truth.ravel(), groups, n_groups=sets).bins
    ours = inference.calibration_error_interval(
        bins.counts, bins.sums, bins.squares, confidence_level=confidence_level, seed=seed
    )
    edges = np.arange(11) / 10
    primitive = edges ** (bend + 1) / (bend + 1) - edges**2 / 2
    true = np.abs(np.diff(primitive)).sum()
    return float(np.mean(ours.low > true)), float(np.mean(ours.high < true)), ours, true


@pytest.mark.parametrize("bend", [1.0, 1.15, 1.5])
@pytest.mark.parametrize("n", [30, 300])
def test_calibration_intervals_cover(bend, n):
    """Each side is to miss in 2.5%; both points stand on their side of the truth on average."""
    above, below, ours, true = calibration_coverage(bend, n, 1500, seed=3)
    assert above < 0.025 + 3 * np.sqrt(0.025 * 0.975 / 1500)
    assert below < 0.025
    assert ours.plug_in.mean() > true


@pytest.mark.long
@pytest.mark.parametrize("bend", [1.0, 1.1, 1.3, 1.6])
@pytest.mark.parametrize("n", [50, 1000, 5000])
def test_calibration_intervals_cover_everywhere(bend, n):
    above, below, _, _ = calibration_coverage(bend, n, 4000, seed=4)
    assert above < 0.033
    assert below < 0.03


@pytest.mark.parametrize("n", [20, 200])
def test_intervals_of_means_cover_where_events_are_rare(n):
    """Scores of 4% on average: in samples of 20 the normal interval of the Brier score covers half of the time."""
    random, sets = np.random.default_rng(5), 2000
    scores = random.beta(0.3, 8, (sets, n))
    truth = random.random((sets, n)) < scores
    big = random.beta(0.3, 8, 400_000)
    true = float(np.mean(big * (1 - big)))
    squared = (truth - scores) ** 2
    ours = inference.bounded_mean_interval(squared.mean(1), squared.var(1), n)
    assert np.mean((ours.low <= true) & (true <= ours.high)) > 0.94
    half = norm.ppf(0.975) * squared.std(1, ddof=1) / np.sqrt(n)
    assert np.mean(np.abs(squared.mean(1) - true) <= half) < 0.93
    rate = inference.bounded_mean_interval(truth.mean(1), (truth - scores).var(1), n)
    in_the_large = scores.mean(1) - np.array(rate)  # truly 0
    assert np.mean((in_the_large[1] <= 0) & (0 <= in_the_large[0])) > 0.94


# -------------------------------------------------------------------------------------------------- undefined cases
def test_every_metric_of_no_rows_is_undefined():
    empty = GroupScores(np.empty(0), np.empty(0))
    for metric in SCORE_METRICS.values():
        assert np.isnan(metric(*[empty] * (2 if metric.kind == "pair" else 1)))
        assert metric.undefined.startswith("a group has no ")


@pytest.mark.parametrize(
    ("truth", "scores", "reason"),
    [
        ([0, 0, 1], [0.2, 0.4, 0.8], "classes that do not overlap"),
        ([1, 1, 0], [0.2, 0.4, 0.4], "classes that do not overlap"),
        ([0, 1, 0, 1], [0.5] * 4, "one score for all rows"),
        ([0, 1, 0, 1], [0.5, 0.0, 1.0, 0.3], "2 scores of exactly 0 or 1"),
        ([1, 1], [0.5, 0.6], "no negative y_true"),
        ([0, 0], [0.5, 0.6], "no positive y_true"),
    ],
)
def test_there_is_no_slope_and_why(truth, scores, reason):
    metric, group = SCORE_METRICS["calibration_slope"], scored(truth, scores)
    assert np.isnan(metric(group))
    assert reason in recalibrate(group.positives, group.negatives).reason


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_scores_that_are_no_probabilities_have_an_auc_only():
    truth, decided, group, scores = people()
    made = audit(truth, decided, sensitive_features={"g": group}, y_score=10 * scores - 3)
    plain = audited()
    for name in SCORE_METRICS:
        for one, f in found(made, name).items():
            if name.startswith("roc_auc"):
                assert (f.value, f.low, f.high, f.pvalue) == pytest.approx(
                    tuple(getattr(found(plain, name, one), k) for k in ("value", "low", "high", "pvalue")), nan_ok=True
                )
            else:
                assert np.isnan([f.value, f.low, f.high]).all()
                assert "scores outside [0, 1]" in f.reason
                assert f.verdict is None
    assert any("no probabilities" in line for line in made.section("scores").lines)
    with pytest.warns(
        UndefinedMetricWarning, match="expected_calibration_error is undefined: there are scores outside"
    ):
        assert np.isnan(metrics.expected_calibration_error([0, 1], [0.5, 1.5]))
    with pytest.raises(ValueError, match=r"probabilities, from 0 to 1; got scores from 0.5 to 1.5"):
        reliability_table([0, 1], [0.5, 1.5])


def test_a_group_without_positives_has_no_auc_and_no_difference():
    truth, decided, group, scores = people()
    truth[group == "c"] = 0
    with pytest.warns(UndefinedMetricWarning):
        made = audit(truth, decided, sensitive_features={"g": group}, y_score=scores, reference="a")
    auc, gap = found(made, "roc_auc", "c"), found(made, "roc_auc_difference", "c")
    assert np.isnan([auc.value, auc.low, gap.value, gap.low, gap.pvalue]).all()
    assert auc.reason.startswith("c has no positive y_true")
    assert "c has no positive y_true" in gap.reason
    assert not np.isnan(found(made, "brier_score", "c").value)
    assert not np.isnan(found(made, "roc_auc_difference", "b").pvalue)


def test_without_labels_there_are_no_metrics_but_a_reason():
    _, decided, group, scores = people()
    made = audit(None, decided, sensitive_features={"g": group}, y_score=scores)
    findings = [f for f in made.findings if f.metric in SCORE_METRICS]
    assert len(findings) == 3 * len(GROUP) + 2 * len(PAIR)
    assert all(
        np.isnan(f.value) and f.reason == "no labels" and f.verdict is Verdict.INSUFFICIENT_DATA for f in findings
    )
    assert "no labels" in made.section("scores").lines[0]
    assert Audit.from_json(made.to_json()) == made


@pytest.mark.filterwarnings("ignore:undefined, shown as NaN")  # ratios of error rates that are all 0
def test_an_area_of_one_has_an_interval_with_a_width():
    truth = np.array([0] * 30 + [1] * 30)
    made = audit(
        truth, truth, sensitive_features=["g", "h"] * 30, y_score=np.linspace(0.01, 0.99, 60), policy="four_fifths"
    )
    one = found(made, "roc_auc", "g")
    assert (one.value, one.high, one.method) == (1.0, 1.0, "Newcombe")
    assert one.low < 0.95
    gap = next(f for f in made.findings if f.metric == "roc_auc_difference")
    assert gap.low < 0 < gap.high
    assert np.isnan(gap.pvalue)
    assert gap.test is None


@pytest.mark.filterwarnings("ignore:undefined, shown as NaN")
@pytest.mark.parametrize("score", [0.1, 0.3, 0.7])
def test_equal_residuals_have_an_interval_with_a_width(score):
    """No outcome and one score for all: the variance of residuals is 0, or less than that by rounding."""
    made = audit([0] * 60, [0, 1] * 30, sensitive_features=list("abc") * 20, y_score=[score] * 60, policy="four_fifths")
    for name in ("calibration_in_the_large", "brier_score", "expected_calibration_error"):
        for f in found(made, name).values():
            assert f.low <= f.value + 1e-12
            assert f.high >= f.value - 1e-12
            assert f.high - f.low > 0.1


# --------------------------------------------------------------------------------------------- the field reports
@pytest.mark.parametrize("ece", [0.7375])
def test_O12_probabilities_of_exactly_0_and_1_count_once(ece):
    truth, scores = np.array([1, 1, 0, 1]), np.array([0.0, 0.0, 1.0, 0.95])
    assert metrics.expected_calibration_error(truth, scores) == pytest.approx(ece, abs=1e-15)
    table = reliability_table(truth, scores)
    assert table["n"].tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    tally = Tally.from_predictions(truth, [0, 0, 1, 1], sensitive_features=["g"] * 4, y_score=scores)
    assert tally.scores.bins.counts.sum() == 4
    assert worst_of_scores(SCORE_METRICS["expected_calibration_error"], tally)[0] == pytest.approx(ece, abs=1e-15)


class Fixed(ClassifierMixin, BaseEstimator):
    """Says that the first column of X is the probability of the class that sorts first."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = 1
        return self

    def predict_proba(self, X):
        p = np.asarray(X)[:, 0]
        return np.c_[p, 1 - p]

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


FIXED = (
    np.array([[0.14], [0.06], [0.86], [0.94]]),
    np.array(["good", "good", "bad", "bad"]),
    np.array(["x", "y", "x", "y"]),
)


@pytest.mark.filterwarnings("ignore::sklearn_ethiclens.exceptions.TrainingRowsWarning")
@pytest.mark.filterwarnings("ignore:undefined, shown as NaN")  # ratios of error rates that are all 0
@pytest.mark.parametrize("pos_label", ["bad", "good"])
def test_O15_the_column_of_the_positive_class_is_picked_by_classes(pos_label):
    X, y, group = FIXED
    auditor = FairnessAuditor(Fixed(), pos_label=pos_label, policy="four_fifths").fit(X, y)
    made = auditor.audit(X, y, sensitive_features={"g": group}, y_score="predict_proba")
    brier = {one: f.value for one, f in found(made, "brier_score").items()}
    assert brier == {"x": pytest.approx(0.0196), "y": pytest.approx(0.0036)}
    assert {f.value for f in found(made, "roc_auc").values()} == {1.0}
    rates = found(made, "selection_rate")
    assert {f.value for f in rates.values()} == {0.5}
    assert {f.value for f in found(made, "true_positive_rate").values()} == {1.0}
    scorer = make_fairness_scorer("brier_score", pos_label=pos_label, sensitive_features=pd.Series(group))
    assert scorer(auditor, pd.DataFrame(X), pd.Series(y)) == pytest.approx(-0.0196)


@pytest.mark.filterwarnings("ignore::sklearn_ethiclens.exceptions.TrainingRowsWarning")
def test_the_column_of_a_label_that_is_no_class_is_refused():
    with pytest.raises(ValueError, match=r"pos_label='ugly' is not among"):
        FairnessAuditor(Fixed(), pos_label="ugly").fit(*FIXED[:2]).audit(
            *FIXED[:2], sensitive_features=FIXED[2], y_score="predict_proba"
        )


# ---------------------------------------------------------------------------------------------------- plain functions
def test_quantile_bins_hold_equal_numbers_and_coincide_where_scores_repeat():
    scores = np.arange(100) / 100
    table = reliability_table(np.arange(100) % 2, scores, n_bins=4, strategy="quantile")
    assert table["n"].tolist() == [25] * 4
    tied = np.array([0.2] * 60 + [0.5] * 20 + [0.9] * 20)
    table = reliability_table(np.arange(100) % 2, tied, n_bins=10, strategy="quantile")
    assert table["n"].sum() == 100
    assert table["bin_low"].is_monotonic_increasing
    assert table["bin_low"].is_unique
    assert table.loc[table["n"] > 0, "mean_score"].tolist() == pytest.approx([0.2, 0.5, 0.9])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("score", [0.0, 0.37, 1.0])
def test_all_rows_in_one_bin(strategy, score):
    truth = [1, 0, 0, 0]
    assert metrics.expected_calibration_error(truth, [score] * 4, strategy=strategy) == pytest.approx(abs(0.25 - score))
    table = reliability_table(truth, [score] * 4, strategy=strategy).query("n > 0")
    assert table["n"].tolist() == [4]
    low, high = inference.wilson_interval(1, 4)
    assert table[["low", "high"]].to_numpy().tolist() == [[pytest.approx(low), pytest.approx(high)]]


def test_reliability_table_by_group_adds_up():
    truth, _, group, scores = people()
    table = reliability_table(truth, scores, sensitive_features={"g": group, "h": ["z"] * 600})
    assert list(table.columns[:4]) == ["g", "h", "bin_low", "bin_high"]
    whole = reliability_table(truth, scores)
    assert table.groupby("bin_low")["n"].sum().tolist() == whole["n"].tolist()
    one = reliability_table(truth[group == "b"], scores[group == "b"])
    pd.testing.assert_frame_equal(table[table["g"] == "b"].iloc[:, 2:].reset_index(drop=True), one)


def test_calibration_error_of_named_labels():
    values = ["no", "yes", "yes"], [0.2, 0.9, 0.6]
    assert metrics.expected_calibration_error(*values, pos_label="yes") == pytest.approx((0.2 + 0.1 + 0.4) / 3)
    with pytest.raises(ValueError, match="y_true hold the labels .* pass pos_label"):
        metrics.expected_calibration_error(*values)
    with pytest.raises(ValueError, match="y_true 2, y_score 3"):
        metrics.expected_calibration_error([0, 1], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(("option", "value"), [("n_bins", 0), ("n_bins", 2.5), ("n_bins", True), ("strategy", "width")])
def test_bins_are_checked(option, value):
    with pytest.raises(ValueError, match=f"{option} must be .*{value!r}"):
        metrics.expected_calibration_error([0, 1], [0.1, 0.9], **{option: value})


def test_edges_of_quantiles_are_those_of_numpy():
    scores = np.random.default_rng(0).random(57)
    np.testing.assert_allclose(
        score_edges(scores, 7, "quantile"), np.quantile(scores, np.linspace(0, 1, 8)), atol=1e-15
    )


# ------------------------------------------------------------------------------------------------- through an audit
def test_findings_are_the_metrics_of_each_group():
    truth, _, group, scores = people()
    made = audited(reference="a")
    for one in "abc":
        mine = group == one
        assert found(made, "roc_auc", one).value == pytest.approx(roc_auc_score(truth[mine], scores[mine]))
        assert found(made, "brier_score", one).value == pytest.approx(brier_score_loss(truth[mine], scores[mine]))
        assert found(made, "expected_calibration_error", one).value == pytest.approx(
            metrics.expected_calibration_error(truth[mine], scores[mine])
        )
        assert found(made, "calibration_in_the_large", one).value == pytest.approx(
            scores[mine].mean() - truth[mine].mean()
        )
        for name in GROUP:
            f = found(made, name, one)
            assert f.low <= f.value <= f.high
            assert (f.n, f.threshold, f.verdict, f.reference) == (mine.sum(), None, None, None)
    for name in PAIR:
        own = name.removesuffix("_difference")
        assert set(found(made, name)) == {"b", "c"}
        f = found(made, name, "b")
        assert f.value == pytest.approx(found(made, own, "b").value - found(made, own, "a").value)
        assert f.low <= f.value <= f.high
        assert (f.reference, f.n_reference) == ("a", (group == "a").sum())


def test_auc_difference_is_tested_and_adjusted_over_all_its_comparisons():
    truth, decided, group, scores = people()
    scores = np.where((group == "b") & (truth == 0), scores + 0.2, scores).clip(0, 1)
    made = audit(truth, decided, sensitive_features={"g": group}, y_score=scores, reference="a")
    parts = {one: scored(truth[group == one], scores[group == one]) for one in "abc"}
    aucs = {one: SCORE_METRICS["roc_auc"](part) for one, part in parts.items()}
    variances = {one: delong_by_pairs(truth[group == one], scores[group == one]) for one in "abc"}
    raw = {}
    for one in "bc":
        z = (aucs[one] - aucs["a"]) / np.sqrt(variances[one] + variances["a"])
        raw[one] = 2 * norm.sf(abs(z))
        assert found(made, "roc_auc_difference", one).pvalue == pytest.approx(raw[one])
    adjusted = inference.adjust_pvalues(list(raw.values()), "holm")
    assert [f.pvalue_adjusted for f in found(made, "roc_auc_difference").values()] == pytest.approx(adjusted)
    assert found(made, "roc_auc_difference", "b").pvalue_adjusted < 0.05
    assert all(np.isnan(f.pvalue) for name in PAIR[1:] for f in found(made, name).values())


@pytest.mark.parametrize("policy", POLICIES)
def test_scores_are_described_and_change_no_verdict(policy):
    truth, decided, group, scores = people()
    options = {"sensitive_features": {"g": group}, "policy": policy, "n_resamples": 200}
    plain, with_scores = audit(truth, decided, **options), audit(truth, decided, y_score=scores, **options)
    assert with_scores.verdict == plain.verdict
    assert with_scores.status == plain.status
    kept = [f for f in with_scores.findings if f.metric not in SCORE_METRICS]
    assert [str(f) for f in kept] == [str(f) for f in plain.findings]
    assert all(f.verdict is None for f in with_scores.findings if f.metric in SCORE_METRICS)
    assert len(with_scores.findings) > len(kept)


def test_a_policy_that_leaves_small_groups_out_leaves_them_out_here():
    truth, decided, group, scores = people()
    group[:8] = "d"
    made = audit(truth, decided, sensitive_features={"g": group}, y_score=scores, policy="ll144")
    gap = found(made, "brier_score_difference", "d")
    assert np.isnan(gap.value)
    assert gap.reason.startswith("left out: under 2% of the rows")
    assert not np.isnan(found(made, "brier_score", "d").value)


def test_counts_below_a_floor_are_said():
    reason = found(audited(), "roc_auc", "c").reason
    assert reason.startswith(f"c has {np.sum(people()[2] == 'c')} rows (floor 100), c has ")
    assert "positives (floor 30)" in reason
    assert reason.endswith(": descriptive")
    assert found(audited(), "roc_auc", "a").reason == ""


def test_the_calibration_error_says_its_other_point():
    made = audited()
    rows = made.section("scores").frame().set_index("group")
    for one, f in found(made, "expected_calibration_error").items():
        assert f.reason.startswith(f"cross-fitted point {rows.loc[one, 'ece_crossfit']:.3g}, biased downward")
        assert f.low <= rows.loc[one, "ece_crossfit"] <= f.value


def test_the_section_has_one_row_a_group():
    made = audited()
    table = made.section("scores").frame()
    assert table["group"].tolist() == ["a", "b", "c"]
    assert table["n"].sum() == 600
    for column, metric in {"ece": "expected_calibration_error", "auc": "roc_auc", "brier": "brier_score"}.items():
        assert table[column].tolist() == [f.value for f in found(made, metric).values()]
    truth, _, group, scores = people()
    assert table["base_rate"].tolist() == pytest.approx([truth[group == one].mean() for one in "abc"])
    assert table["mean_score"].tolist() == pytest.approx([scores[group == one].mean() for one in "abc"])
    text = made.report("text")
    assert "Scores by group" in text
    assert "ece_crossfit" in made.report("html")


def test_what_cannot_hold_together_is_said_where_base_rates_differ():
    assert any("cannot also have equal error rates" in line for line in audited(1500).section("scores").lines)
    truth, decided, _, scores = people()
    made = audit(truth, decided, sensitive_features={"h": ["x", "y"] * 300}, y_score=scores)
    assert not any("error rates" in line for line in made.section("scores").lines)


def test_intersections_and_controls_have_scores_of_their_own_groups():
    truth, decided, group, scores = people()
    other = np.array(["x", "y"] * 300)
    options = {"intersections": [("g", "h")], "y_score": scores, "policy": "four_fifths", "metrics": ["roc_auc"]}
    made = audit(truth, decided, sensitive_features={"g": group, "h": other}, **options)
    cells = {f.group: f.value for f in made.findings if f.metric == "roc_auc" and f.attribute == ("g", "h")}
    mine = (group == "b") & (other == "y")
    assert cells["b", "y"] == pytest.approx(roc_auc_score(truth[mine], scores[mine]))
    controlled = audit(
        truth,
        decided,
        sensitive_features={"g": group},
        control_features={"h": other},
        y_score=scores,
        metrics=["roc_auc"],
    )
    assert [f.value for f in found(controlled, "roc_auc").values()] == [
        f.value for f in found(made, "roc_auc").values()
    ][:3]


def test_audits_of_added_tallies_are_those_of_the_rows():
    truth, decided, group, scores = people()
    parts = [
        Tally.from_predictions(truth[part], decided[part], sensitive_features={"g": group[part]}, y_score=scores[part])
        for part in (slice(200), slice(200, None))
    ]
    assert audit_tally(sum(parts)) == audited()


def test_order_and_threads_do_not_matter_and_the_seed_does():
    truth, decided, group, scores = people()
    order = np.random.default_rng(1).permutation(600)
    again = audit(truth[order], decided[order], sensitive_features={"g": group[order]}, y_score=scores[order], n_jobs=2)
    assert again == audited()
    options = {"sensitive_features": {"g": group}, "y_score": scores**2, "metrics": ["expected_calibration_error"]}
    ours, reseeded = (audit(truth, decided, random_state=seed, **options) for seed in (0, 7))
    for one, f in found(ours, "expected_calibration_error").items():
        other = found(reseeded, "expected_calibration_error", one)
        assert (f.value, f.high) == (other.value, other.high)
        assert f.reason != other.reason


def test_metrics_asked_for_are_those_computed():
    names = lambda made: {f.metric for f in made.findings} & set(SCORE_METRICS)  # noqa: E731
    assert names(audited()) == set(SCORE_METRICS)
    assert names(audited(metrics=["disparate_impact"])) == set(SCORE_METRICS)
    only = audited(metrics=["roc_auc", "brier_score_difference"])
    assert names(only) == {"roc_auc", "brier_score_difference"}
    assert list(only.section("scores").columns)[5:] == ["auc", "auc_low", "auc_high"]
    assert "brier_score_difference" in only.report("text")
    truth, decided, group, _ = people()
    with pytest.raises(ValueError, match=r"metrics names \['roc_auc'\], which are of scores: pass y_score"):
        audit(truth, decided, sensitive_features={"g": group}, metrics=["roc_auc"])
    with pytest.raises(ValueError, match="Did you mean 'roc_auc'"):
        audit(truth, decided, sensitive_features={"g": group}, metrics=["roc_au"])


# --------------------------------------------------------------------------------------------------- stored and judged
def test_a_stored_audit_keeps_what_was_found_of_scores():
    made = audited()
    read = Audit.from_json(made.to_json())
    assert read == made
    assert json.loads(made.to_json())["tally"]["score_bins"]["n"]
    scores = people()[3]
    assert not any(repr(float(s)) in made.to_json() for s in scores[:50])
    assert pickle.loads(pickle.dumps(made)).rejudge("eeoc") == made.rejudge("eeoc")


def test_judged_again_with_scores_they_are_computed_again():
    made = audited()
    again = made.rejudge(POLICIES["ethiclens"].replace(confidence_level=0.8))
    assert found(again, "roc_auc", "a").value == found(made, "roc_auc", "a").value
    assert found(again, "roc_auc", "a").low > found(made, "roc_auc", "a").low
    assert "Intervals are 80%." in again.section("scores").lines[0]


def test_judged_again_without_scores_they_are_kept_with_a_word():
    read = Audit.from_json(audited().to_json())
    policy = POLICIES["ethiclens"].replace(confidence_level=0.8)
    again = read.rejudge(policy)
    for name in SCORE_METRICS:
        assert [str(f) for f in found(again, name).values()] == [str(f) for f in found(read, name).values()]
    said = again.section("scores").lines[0]
    assert "Single scores are not stored" in said
    assert "at 95%" in said
    third = again.rejudge("eeoc")
    assert third.section("scores") == again.section("scores")
    assert Audit.from_json(third.to_json()) == third


def test_a_tally_read_back_says_that_it_has_no_scores():
    made = audit_tally(Tally.from_dict(audited().tally.to_dict()))
    assert not any(f.metric in SCORE_METRICS for f in made.findings)
    assert made.section("scores").lines == (
        "Single scores are not stored, so that nothing can be computed of them here.",
    )
    assert not any(f.metric in SCORE_METRICS for f in made.rejudge("eeoc").findings)


# ------------------------------------------------------------------------------------------------------- the auditor
def table(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"sex": random.integers(0, 2, n), "x": random.normal(size=n), "z": random.normal(size=n)})
    y = pd.Series((X["x"] + 0.5 * X["sex"] + random.normal(size=n) > 0).astype(int))
    return X, y


def test_auditor_takes_probabilities_scores_or_none():
    X, y = table()
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features="sex").fit(X[:150], y[:150])
    X_test, y_test = X[150:], y[150:]
    own = auditor.audit(X_test, y_test, y_score="predict_proba")
    probabilities = auditor.predict_proba(X_test)[:, 1]
    given = auditor.audit(X_test, y_test, y_score=probabilities)
    assert own == given
    assert own == auditor.audit(X_test, y_test, y_score=pd.Series(probabilities, index=X_test.index))
    assert auditor.audit(X_test, y_test).tally.scores is None
    with pytest.raises(ValueError, match="the index of y_score differs from that of X"):
        auditor.audit(X_test, y_test, y_score=pd.Series(probabilities))
    with pytest.raises(ValueError, match="y_score must be 'predict_proba' or None; got 'proba'"):
        auditor.audit(X_test, y_test, y_score="proba")


def test_auditor_audits_probabilities_out_of_fold_without_another_fit():
    X, y = table()
    fits = []

    class Counting(LogisticRegression):
        def fit(self, X, y):
            fits.append(len(y))
            return super().fit(X, y)

    auditor = FairnessAuditor(Counting(), sensitive_features="sex", cv=3, y_score="predict_proba").fit(X, y)
    assert len(fits) == 4  # three folds and the whole
    assert auditor.predict_proba(X).shape == (300, 2)
    expected = cross_val_predict(LogisticRegression(), X, y, cv=StratifiedKFold(3), method="predict_proba")[:, 1]
    made = audit(y, auditor.oof_predictions_, sensitive_features=X[["sex"]], y_score=expected)
    assert auditor.audit_.tally == made.tally
    values = [f.value for f in found(auditor.audit_, "roc_auc").values()]
    assert values == [f.value for f in found(made, "roc_auc").values()]
    held_out = auditor.audit(*table(seed=1))
    assert found(held_out, "roc_auc")
    assert clone(auditor).y_score == "predict_proba"


def test_auditor_refuses_a_classifier_without_probabilities():
    X, y = table()
    with pytest.raises(ValueError, match="needs a classifier with predict_proba, which LinearSVC has not"):
        FairnessAuditor(LinearSVC(), sensitive_features="sex", cv=3, y_score="predict_proba").fit(X, y)
    auditor = FairnessAuditor(LinearSVC(), sensitive_features="sex").fit(X, y)
    with pytest.raises(ValueError, match="CalibratedClassifierCV, or pass scores"):
        auditor.audit(*table(seed=1), y_score="predict_proba")
    margins = auditor.audit(*table(seed=1), y_score=auditor.decision_function(table(seed=1)[0]))
    assert not np.isnan(found(margins, "roc_auc", 0).value)
    with pytest.raises(ValueError, match="must be 'predict_proba' or None"):
        FairnessAuditor(LogisticRegression(), sensitive_features="sex", y_score=[0.5]).fit(X, y)


# ------------------------------------------------------------------------------------------------------------ scorers
@pytest.mark.parametrize("name", SCORE_METRICS)
def test_scorers_are_greater_is_better_of_the_worst(name):
    X, y = table()
    model = LogisticRegression().fit(X, y)
    scorer = make_fairness_scorer(name, sensitive_features="sex", reference=0)
    score = scorer(model, X, y)
    made = audit(y, model.predict(X), sensitive_features=X[["sex"]], y_score=model.predict_proba(X)[:, 1], reference=0)
    values = [f.value for f in found(made, name).values()]
    if name == "roc_auc":
        assert score == pytest.approx(min(values))
    else:
        assert score == pytest.approx(-max(abs(v - SCORE_METRICS[name].ideal) for v in values))
    again = pickle.loads(pickle.dumps(clone(scorer)))
    assert again(model, X, y) == score
    assert repr(again) == repr(scorer)
    assert name in repr(scorer)


def test_scorers_of_scores_and_of_decisions_share_one_prediction():
    X, y = table()
    calls = []

    class Counting(LogisticRegression):
        def predict_proba(self, X):
            calls.append("predict_proba")
            return super().predict_proba(X)

    model = Counting().fit(X, y)
    names = ["roc_auc_difference", "brier_score", "equalized_odds_difference"]
    scores = fairness_scorers(names, sensitive_features="sex", performance=("neg_log_loss",))(model, X, y)
    assert calls == ["predict_proba"]
    for name in names:
        assert scores[name] == make_fairness_scorer(name, sensitive_features="sex")(model, X, y)


def test_scores_of_one_predicted_class_are_scored_all_the_same():
    """A model that rejects everybody at 1/2 can still rank them; a gap of decisions says nothing then."""
    X, y = table()
    model = LogisticRegression().fit(X[["sex", "x"]], y)
    model.intercept_ -= 20
    frame = X[["sex", "x"]]
    assert make_fairness_scorer("roc_auc", sensitive_features="sex")(model, frame, y) > 0.5
    with pytest.warns(FairnessScoringWarning, match="one class is predicted"):
        assert np.isnan(make_fairness_scorer("equalized_odds_difference", sensitive_features="sex")(model, frame, y))
    with pytest.warns(FairnessScoringWarning, match="one class is predicted"):
        both = fairness_scorers(["roc_auc", "equalized_odds_difference"], sensitive_features="sex")(model, frame, y)
    assert both["roc_auc"] > 0.5


def test_a_score_that_is_undefined_is_nan_with_the_reason():
    X, y = table(60)
    model = LogisticRegression().fit(X, y)
    one_sided = y.where(X["sex"] == 0, 1)
    scorer = make_fairness_scorer("roc_auc_difference", sensitive_features="sex", reference=0)
    with pytest.warns(FairnessScoringWarning, match="undefined: 1 has no negative y_true"):
        assert np.isnan(scorer(model, X, one_sided))
    with pytest.warns(FairnessScoringWarning, match="holds one group only"):
        assert np.isnan(scorer(model, X[X["sex"] == 0], y[X["sex"] == 0]))
    with (
        pytest.raises(TypeError, match="needs predict_proba, which this LinearSVC has not"),
        pytest.warns(FairnessScoringWarning),
    ):
        scorer(LinearSVC().fit(X, y), X, y)


def test_a_search_can_bound_a_metric_of_scores():
    X, y = table()
    scoring = fairness_scorers(["roc_auc", "expected_calibration_error"], sensitive_features="sex")
    search = GridSearchCV(
        LogisticRegression(),
        {"C": [0.001, 1.0]},
        scoring=scoring,
        refit=select_within(0.5, disparity="roc_auc", performance="accuracy"),
        cv=3,
    ).fit(X, y)
    assert (search.cv_results_["mean_test_roc_auc"] > 0.5).all()
    assert (search.cv_results_["mean_test_expected_calibration_error"] < 0).all()
    with pytest.raises(ValueError, match="no candidate has roc_auc at least 0.999"):
        select_within(0.999, disparity="roc_auc", performance="accuracy")(search.cv_results_)
    assert select_within(0.9, disparity="expected_calibration_error", performance="accuracy")(search.cv_results_) in (
        0,
        1,
    )


def test_worst_ends_of_differences_only():
    X, y = table()
    model = LogisticRegression().fit(X, y)
    worst = make_fairness_scorer("roc_auc_difference", sensitive_features="sex", estimate="worst", reference=0)
    made = audit(y, model.predict(X), sensitive_features=X[["sex"]], y_score=model.predict_proba(X)[:, 1], reference=0)
    f = found(made, "roc_auc_difference", 1)
    assert worst(model, X, y) == pytest.approx(-max(abs(f.low), abs(f.high)))
    with pytest.raises(ValueError, match="only comparisons with a reference have; roc_auc is none"):
        make_fairness_scorer("roc_auc", sensitive_features="sex", estimate="worst")


def test_no_threshold_is_tuned_by_scores():
    X, y = table()
    scorer = make_fairness_scorer("roc_auc", sensitive_features=X["sex"])
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=3)
    with pytest.raises(ValueError, match="a threshold does not change it"):
        tuned.fit(X, y)


# ------------------------------------------------------------------------------------------------------- catalogue
def test_no_name_stands_in_both_catalogues():
    assert not set(SCORE_METRICS) & set(METRICS)
    for name, metric in SCORE_METRICS.items():
        assert metric.name == name
        assert metric.low < metric.high
        assert metric.low <= metric.ideal <= metric.high
        assert metric.formula
        assert metric.source
        assert (metric.parity is None) == (metric.kind == "group")


# ---------------------------------------------------------------------------------------------------- command line
@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command as a shell does; give back the exit code, stdout and stderr."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return call


@pytest.fixture
def file(tmp_path):
    truth, decided, group, scores = people()
    path = tmp_path / "rows.csv"
    pd.DataFrame({"g": group, "y": truth, "p": decided, "s": scores}).to_csv(path, index=False)
    return path


def test_a_file_with_a_column_of_scores_is_audited_by_them(run, file, tmp_path):
    stored = tmp_path / "audit.json"
    words = ("audit", file, "--y-true", "y", "--y-pred", "p", "--sensitive", "g", "--fail-on", "none")
    code, out, err = run(*words, "--y-score", "s", "--json", stored)
    assert (code, err) == (0, "")
    assert "Scores by group" in out
    assert max(map(len, out.splitlines())) <= 80
    read = Audit.from_json(stored.read_text(encoding="utf-8"))
    for name in SCORE_METRICS:
        values = [f.value for f in found(read, name).values()]
        np.testing.assert_allclose(values, [f.value for f in found(audited(), name).values()], atol=1e-12)
    code, out, _ = run("rejudge", stored, "--policy", "eeoc", "--fail-on", "none")
    assert "Single scores are not stored" in out
    assert "Scores" not in run(*words)[1]


def test_the_command_says_what_is_wrong_with_scores(run, file):
    words = ("audit", file, "--y-true", "y", "--y-pred", "p", "--sensitive", "g")
    assert run(*words, "--y-score", "g")[0::2] == (
        2,
        "error: y_score must hold one number per row; got values such as 'b'.\n",
    )
    code, _, err = run(*words, "--y-score", "score")
    assert code == 2
    assert "has no column ['score']" in err
    code, _, err = run("audit", "german-credit", "--y-score", "s")
    assert code == 2
    assert "--y-score is for files" in err


def test_the_command_lists_metrics_of_scores(run):
    code, out, _ = run("metrics")
    assert code == 0
    for name in SCORE_METRICS:
        assert name in out
    assert "Hanley and McNeil" in run("metrics", "roc_auc")[1]


def test_a_reliability_table_of_an_attribute_called_as_a_column_of_it_is_refused():
    with pytest.raises(ValueError, match=r"the reliability table has columns called \['n'\] itself"):
        reliability_table([1, 0], [0.2, 0.8], sensitive_features={"n": ["a", "b"]})
