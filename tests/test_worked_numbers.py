"""Numbers worked by hand, thresholds at their edge, and who judges what: no data is needed here."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_ethiclens import (
    METRICS,
    POLICIES,
    Audit,
    Policy,
    Rule,
    Tally,
    Verdict,
    audit,
    audit_tally,
    inference,
    metrics,
)
from sklearn_ethiclens.exceptions import DegenerateIntervalWarning, FairnessGateError, UndefinedMetricWarning
from sklearn_ethiclens.policy import overall_verdict

NAN = float("nan")


def two_groups(first, second):
    """Return the tally of groups "a" and "b" from (selected, n) or (tp, fp, fn, tn)."""
    keys = ("selected", "n") if len(first) == 2 else ("tp", "fp", "fn", "tn")
    return Tally.from_counts({"a": dict(zip(keys, first, strict=True)), "b": dict(zip(keys, second, strict=True))})


def rates_tally(tpr, fpr):
    """Return the tally of groups of 100 positives and 100 negatives with these true and false positive percentages."""
    return Tally.from_counts(
        {
            name: {"tp": t, "fn": 100 - t, "fp": f, "tn": 100 - f}
            for name, t, f in zip("ABCDEFGH", tpr, fpr, strict=False)
        },
        attribute="group",
    )


def finding(audited, metric, group=None):
    (found,) = (f for f in audited.findings if f.metric == metric and (group is None or f.group == group))
    return found


# ------------------------------------------------------------------------------------------------- the worked block
def test_composite_by_hand():
    assert metrics.composite_bias_score(0.6, -0.25, 0.15) == pytest.approx(0.7150, abs=1e-12)
    assert metrics.compute_composite_bias_score(0.6, -0.25, 0.15) == pytest.approx(0.7150, abs=1e-12)
    assert metrics.composite_band(0.7150) == "Medium Risk"


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (0.0, "High Risk"),
        (0.5999, "High Risk"),
        (0.60, "Medium Risk"),
        (0.1 + 0.2 + 0.3, "Medium Risk"),
        (0.7999, "Medium Risk"),
        (0.80, "Low Risk"),
        (0.7 + 0.1, "Low Risk"),
        (1.0, "Low Risk"),
        (NAN, None),
    ],
)
def test_bands_begin_at_their_limit_and_nan_has_none(score, band):
    assert metrics.composite_band(score) == band


@pytest.mark.parametrize(
    ("parts", "score"),
    [
        ((1.0, 0.0, 0.0), 1.0),
        ((0.0, -1.0, 1.0), 0.0),
        ((2.0, 0.0, 0.0), 0.40 * 0.5 + 0.60),
        ((0.5, 0.0, 0.0), 0.40 * 0.5 + 0.60),
        ((math.inf, 0.0, 0.0), 0.60),
        ((1.0, 2.0, 3.0), 0.40),
        ((NAN, 0.0, 0.0), NAN),
        ((1.0, NAN, 0.0), NAN),
        ((1.0, 0.0, NAN), NAN),
    ],
)
def test_composite_folds_ratios_clamps_and_is_never_a_number_of_unknowns(parts, score):
    assert metrics.composite_bias_score(*parts) == pytest.approx(score, nan_ok=True)


def test_the_ratio_takes_the_privileged_rate_first():
    assert metrics.calculate_disparate_impact(0.8, 0.4) == 0.5
    assert metrics.calculate_disparate_impact(privileged_rate=0.8, unprivileged_rate=0.4) == 0.5
    with pytest.raises(ValueError, match="privileged_rate is 0"):
        metrics.calculate_disparate_impact(0.0, 0.4)


def test_difference_by_hand():
    assert metrics.calculate_statistical_parity_difference(0.7, 0.4) == pytest.approx(-0.3)
    tables = [[3, 7]], [[6, 4]]
    assert METRICS["statistical_parity_difference"](tables[1], tables[0]) == pytest.approx(-0.3)


def test_ratio_of_five_rows_is_one_third():
    """Groups of two and of three rows, both of the first and one of the second selected."""
    decisions, groups = [1, 1, 1, 0, 0], ["m", "m", "f", "f", "f"]
    assert metrics.disparate_impact(None, decisions, sensitive_features=groups) == pytest.approx(1 / 3)
    assert metrics.demographic_parity_ratio(None, decisions, sensitive_features=groups) == pytest.approx(1 / 3)


def test_65_percent_against_57():
    tables = [[43, 57]], [[35, 65]]
    assert METRICS["selection_rate_difference"](tables[1], tables[0]) == pytest.approx(0.08)
    assert round(METRICS["demographic_parity_ratio"]([tables[0], tables[1]]), 3) == 0.877


@pytest.fixture(scope="module")
def group_of_four():
    return rates_tally((72, 64, 55, 38), (10, 15, 12, 20))


def test_group_of_four(group_of_four):
    assert METRICS["true_positive_rate"](group_of_four.counts).tolist() == [0.72, 0.64, 0.55, 0.38]
    assert METRICS["equalized_odds_tpr_gap"](group_of_four.counts) == pytest.approx(0.34)
    assert METRICS["equalized_odds_fpr_gap"](group_of_four.counts) == pytest.approx(0.10)
    largest_ratio = METRICS["true_positive_rate_ratio"](group_of_four.counts[0], group_of_four.counts[3])
    assert round(largest_ratio, 2) == 1.89


def test_group_of_four_as_a_table_of_disparities(group_of_four):
    table = audit_tally(group_of_four, policy="four_fifths").disparities().set_index("metric")
    row = table.loc["true_positive_rate"]
    assert (row["max_group"], row["max"], row["min_group"], row["min"]) == ("A", 0.72, "D", 0.38)
    assert row["disparity"] == pytest.approx(0.34)
    assert row["disparity_pct"] == pytest.approx(0.34 / 0.38 * 100)
    assert (row["threshold"], row["status"]) == (0.10, "FLAGGED")
    row = table.loc["false_positive_rate"]
    assert row["disparity"] == pytest.approx(0.10)
    assert row["disparity_pct"] == pytest.approx(100.0)
    # .10 is the limit and the limit is allowed.
    assert (row["threshold"], row["status"]) == (0.10, "CLEARED")


@pytest.mark.parametrize("policy", ["ethiclens", "assessor", "four_fifths", "eeoc"])
def test_the_table_of_disparities_names_the_limit_of_the_selection_rate(policy):
    """Each of these policies judges a ratio of selection rates."""
    audited = audit_tally(two_groups((20, 400), (200, 400)), policy=policy)
    row = audited.disparities().set_index("metric").loc["selection_rate"]
    assert row["disparity"] == pytest.approx(0.45)
    assert row["threshold"] == 0.80
    assert row["status"] == "FLAGGED"


def test_a_disparity_over_nothing_is_infinite_percent():
    table = audit_tally(two_groups((0, 400), (200, 400))).disparities().set_index("metric")
    assert table.loc["selection_rate", "disparity_pct"] == math.inf


def test_eight_rows():
    y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0]
    groups = list("AAAABBBB")
    assert metrics.equalized_odds_tpr_gap(y_true, y_pred, sensitive_features=groups) == 0.5
    assert metrics.equalized_odds_fpr_gap(y_true, y_pred, sensitive_features=groups) == 0.0
    assert metrics.equalized_odds_difference(y_true, y_pred, sensitive_features=groups) == 0.5
    assert metrics.calculate_equalized_odds_difference(-0.5, 0.0) == 0.5


def test_signed_gaps_cancel_in_the_average_and_not_in_its_error():
    a, b = [[80, 20], [40, 60]], [[90, 10], [30, 70]]
    assert METRICS["average_odds_difference"](a, b) == pytest.approx(0.0)
    assert METRICS["average_odds_error"](a, b) == pytest.approx(0.10)


def test_generalized_entropy_takes_counts_as_the_catalogue_does():
    table = [[2345, 1018], [1076, 1733]]
    assert metrics.generalized_entropy(table) == pytest.approx(METRICS["theil_index"](table))
    assert metrics.generalized_entropy(np.array(table), alpha=2) == pytest.approx(0.17282583909749222)


def test_generalized_entropy_of_four_rows_by_hand():
    """Benefits 2, 1, 1, 0 (one fp, one fn) have mean 1: Theil 2 ln 2 / 4, alpha=2 half the variance."""
    table = [[1, 1], [1, 1]]
    assert METRICS["theil_index"](table) == pytest.approx(math.log(2) / 2)
    assert metrics.generalized_entropy(table, alpha=2) == pytest.approx(0.25)
    # alpha=0: -mean(log(benefit / mean)), which the one benefit of 0 leaves undefined; without it: (1, 2), mean 1.5.
    assert np.isnan(metrics.generalized_entropy(table, alpha=0))
    value = metrics.generalized_entropy([[1, 1], [0, 0]], alpha=0)
    assert value == pytest.approx(math.log(1.5) - math.log(2) / 2)


# ----------------------------------------------------------------------------------------------- thresholds at the edge
JUDGES = [
    pytest.param(policy, rule, id=f"{name}-{rule.metric}") for name, policy in POLICIES.items() for rule in policy.rules
]


# Decimal fractions that floating point puts on the wrong side of the limit they are equal to.
AT_LIMIT = {0.8: [0.48 / 0.60, (16 / 100) / (20 / 100)], 0.1: [0.40 - 0.30, 0.80 - 0.70], 0.05: [0.05, 0.55 - 0.50]}


def test_floating_point_puts_them_on_the_wrong_side():
    assert min(AT_LIMIT[0.8]) < 0.8
    assert all(value > 0.1 for value in AT_LIMIT[0.1])
    assert max(AT_LIMIT[0.05]) > 0.05


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("policy", "rule"), JUDGES)
def test_a_value_at_the_limit_is_not_beyond_it(policy, rule, which):
    value = AT_LIMIT[rule.threshold][which]
    beyond = value - 1e-6 if rule.minimum is not None else value + 1e-6
    signs = (1, -1) if rule.absolute or rule.basis == "gap" else (1,)
    for sign in signs:
        at, out = sign * value, sign * beyond
        assert rule.judge(at, at, at, significant=True)[0] is not Verdict.FLAGGED
        assert rule.judge(out, out, out, significant=True)[0] is Verdict.FLAGGED


@pytest.mark.parametrize("n", [100, 1000, 100_000])
@pytest.mark.parametrize("policy", ["assessor", "four_fifths", "eeoc", "ethiclens"])
def test_counts_at_four_fifths_are_not_flagged(policy, n):
    tally = two_groups((48 * n // 100, n), (60 * n // 100, n))
    audited = audit_tally(tally, policy=policy, reference="b", n_resamples=100)
    (judged,) = (f for f in audited.judged if METRICS[f.metric].scale == "ratio")
    assert judged.value == pytest.approx(0.8)
    assert judged.verdict is not Verdict.FLAGGED


@pytest.mark.parametrize("policy", [name for name in POLICIES if POLICIES[name].rules])
def test_gaps_of_ten_points_are_not_flagged(policy):
    """TPR .40 against .30, FPR .40 against .30: ten points each, on many rows; the ratio is not asked here."""
    n = 10_000
    tally = two_groups((3 * n, 3 * n, 7 * n, 7 * n), (4 * n, 4 * n, 6 * n, 6 * n))
    audited = audit_tally(tally, policy=policy, reference="b", n_resamples=100)
    gaps = [f for f in audited.judged if METRICS[f.metric].scale == "difference" and f.threshold == 0.10]
    if policy != "eeoc":
        assert gaps
    for f in gaps:
        assert abs(f.value) == pytest.approx(0.10)
        assert f.verdict is not Verdict.FLAGGED


# --------------------------------------------------------------------------------------------------- power and sizes
def test_power_numbers():
    assert math.ceil(inference.sample_size_two_proportions(0.5, 0.6)) == 388
    assert float(inference.power_two_proportions(0.6, 0.5, 35, 165)) == pytest.approx(0.2, abs=0.02)
    assert inference.half_width([200, 100, 30]).round(3).tolist() == [0.069, 0.098, 0.179]
    assert np.ceil(inference.sample_size_rate([0.02, 0.05, 0.10])).tolist() == [2401, 385, 97]


@pytest.mark.parametrize(
    ("power", "label"),
    [(0.0, "insufficient"), (0.499, "insufficient"), (0.5, "marginal"), (0.699, "marginal"), (0.7, "adequate")],
)
def test_power_labels(power, label):
    assert inference.power_label(power) == label


def test_the_power_of_a_comparison_is_for_ten_points():
    audited = audit_tally(two_groups((20, 35), (82, 165)), reference="b")
    spd = finding(audited, "statistical_parity_difference")
    assert spd.power == pytest.approx(0.2, abs=0.02)
    assert inference.power_label(spd.power) == "insufficient"
    expected = inference.minimum_detectable_difference(82 / 165, 35, 165)
    assert spd.minimum_detectable == pytest.approx(float(expected))


@pytest.mark.parametrize(("n_rows", "advised"), [(199, True), (200, False)])
def test_four_cells_are_advised_to_have_200_rows(n_rows, advised):
    index = np.arange(n_rows)
    audited = audit(
        None,
        index % 3 == 0,
        sensitive_features={"sex": index % 2, "race": index // 2 % 2},
        intersections="all",
        n_resamples=100,
    )
    assert any("4 cells; at least 200 are advised" in note for note in audited.notes) is advised


@pytest.mark.parametrize(("n_rows", "advised"), [(239, True), (240, False)])
def test_eight_cells_are_advised_to_have_240_rows(n_rows, advised):
    index = np.arange(n_rows)
    audited = audit(
        None,
        index % 3 == 0,
        sensitive_features={"sex": index % 2, "race": index // 2 % 4},
        intersections="all",
        n_resamples=100,
    )
    assert any("8 cells; at least 240 are advised" in note for note in audited.notes) is advised


# ----------------------------------------------------------------------------------------------------------- policies
@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (0.03, -0.02, 0.08, Verdict.INCONCLUSIVE),
        (0.08, -0.02, 0.18, Verdict.INCONCLUSIVE),
        (0.12, 0.05, 0.19, Verdict.FLAGGED),
        (-0.12, -0.19, -0.05, Verdict.FLAGGED),
        (0.03, 0.01, 0.045, Verdict.CLEARED),
        (0.08, NAN, NAN, Verdict.INCONCLUSIVE),
    ],
)
def test_three_interval_examples_of_glassalpha(value, low, high, verdict):
    rule = POLICIES["glassalpha"].rule("true_positive_rate_difference")
    assert (rule.maximum, rule.basis) == (0.05, "gap")
    assert rule.judge(value, low, high)[0] is verdict


def test_glassalpha_takes_the_group_with_the_highest_value_of_each_metric():
    tally = Tally.from_counts(
        {
            "high tpr": {"tp": 90, "fn": 10, "fp": 10, "tn": 90},
            "high fpr": {"tp": 50, "fn": 50, "fp": 60, "tn": 40},
        }
    )
    audited = audit_tally(tally, policy="glassalpha")
    assert finding(audited, "true_positive_rate_difference").reference == "high tpr"
    assert finding(audited, "false_positive_rate_difference").reference == "high fpr"
    assert all(f.value <= 0 for f in audited.judged)


@pytest.mark.parametrize("n", [8, 29])
def test_glassalpha_judges_no_group_under_30_rows_by_any_of_its_metrics(n):
    """The floor is of rows, also where the metric divides by positives or negatives."""
    half = n // 2
    tally = two_groups((0, half, half, n - 2 * half), (800, 100, 200, 900))
    audited = audit_tally(tally, policy="glassalpha")
    assert len(audited.judged) == 3
    for f in audited.judged:
        assert f.verdict is Verdict.INSUFFICIENT_DATA, f
        assert not np.isnan(f.value)
    assert not audited.flagged


def test_assessor_zones():
    rule = POLICIES["assessor"].rule("equal_opportunity_difference")
    verdicts = [rule.judge(value, NAN, NAN)[0] for value in (0.0, 0.0499, 0.05, 0.0999, 0.10, 0.1001)]
    zones = [Verdict.CLEARED] * 2 + [Verdict.INCONCLUSIVE] * 3 + [Verdict.FLAGGED]
    assert verdicts == zones


@pytest.mark.parametrize(("points", "status"), [(4, "PASS"), (5, "FAIL"), (10, "FAIL"), (11, "FAIL")])
def test_assessor_fails_from_five_points_on(points, status):
    tally = two_groups((70, 30, 30, 70), (70, 30 - points, 30, 70 + points))
    audited = audit_tally(tally, policy="assessor", reference="a")
    gap = finding(audited, "false_positive_rate_balance")
    assert gap.value == pytest.approx(points / 100)
    assert audited.status == status
    assert audited.fails(["flagged"]) is (status == "FAIL")


def test_assessor_takes_the_first_category_in_sort_order_wherever_it_stands():
    audited = audit(None, [1] * 30 + [0, 1] * 20, sensitive_features=["b"] * 30 + ["a"] * 40, policy="assessor")
    assert audited.references[0].group == "a"
    assert finding(audited, "disparate_impact").value == pytest.approx(2.0)


def test_point_policies_ignore_uncertainty_by_design_and_say_so():
    assert {name for name, policy in POLICIES.items() if policy.ignores_uncertainty} == {"assessor", "four_fifths"}
    for name in ("assessor", "four_fifths"):
        assert "ignores uncertainty" in POLICIES[name].description.lower()


def test_four_fifths_makes_one_finding_an_attribute_and_names_both_extremes(group_of_four):
    audited = audit_tally(group_of_four, policy="four_fifths")
    assert [f.metric for f in audited.judged] == [r.metric for r in POLICIES["four_fifths"].rules]
    gap = finding(audited, "equalized_odds_tpr_gap")
    assert (gap.group, gap.reference) == ("D", "A")
    assert gap.verdict is Verdict.FLAGGED
    assert finding(audited, "equalized_odds_fpr_gap").verdict is Verdict.CLEARED


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((20, 400), (200, 400), Verdict.FLAGGED),  # beyond four fifths and significant
        ((3, 20), (16, 80), Verdict.INCONCLUSIVE),  # beyond, not significant
        ((8500, 10_000), (9500, 10_000), Verdict.INCONCLUSIVE),  # significant, not beyond
        ((49, 100), (50, 100), Verdict.CLEARED),
        ((0, 10), (6, 10), Verdict.FLAGGED),  # Fisher, since three are expected: p = .0108
    ],
)
def test_eeoc_wants_both_the_ratio_and_significance(first, second, verdict):
    assert finding(audit_tally(two_groups(first, second), policy="eeoc"), "disparate_impact").verdict is verdict


def test_eeoc_notes_the_flip_flop():
    reason = finding(audit_tally(two_groups((3, 20), (16, 80)), policy="eeoc"), "disparate_impact").reason
    assert "flip-flop" in reason
    reason = finding(audit_tally(two_groups((20, 400), (200, 400)), policy="eeoc"), "disparate_impact").reason
    assert "flip-flop" not in reason


@pytest.mark.parametrize(("direction", "verdict"), [("below", Verdict.CLEARED), ("both", Verdict.FLAGGED)])
def test_direction_says_whether_over_selection_is_judged(direction, verdict):
    policy = POLICIES["ethiclens"].replace(direction=direction)
    assert policy.rule("disparate_impact").maximum == (None if direction == "below" else 1.25)
    audited = audit_tally(two_groups((800, 1000), (400, 1000)), reference="b", policy=policy)
    assert finding(audited, "disparate_impact").verdict is verdict


def test_the_reason_names_the_limit_that_was_passed():
    rule = POLICIES["ethiclens"].replace(direction="both").rule("disparate_impact")
    assert "1.25" in rule.judge(2.0, 1.8, 2.2)[1]
    assert "1.25" in rule.judge(1.2, 1.1, 1.3)[1]
    assert "0.8" in rule.judge(0.5, 0.4, 0.6)[1]
    assert "0.8" in rule.judge(0.8, 0.7, 0.9)[1]


def test_percentile_of_equalized_odds_is_honoured_with_a_warning():
    tally = two_groups((60, 30, 40, 70), (70, 20, 30, 80))
    with pytest.warns(DegenerateIntervalWarning, match="percentile interval of equalized_odds_difference"):
        audited = audit_tally(tally, method="percentile")
    assert finding(audited, "equalized_odds_difference").method == "percentile"


def test_a_largest_gap_has_no_interval_under_any_policy(group_of_four):
    for name in POLICIES:
        audited = audit_tally(group_of_four, policy=name, n_resamples=100)
        overall = [f for f in audited.findings if METRICS[f.metric].kind == "overall"]
        assert overall
        assert all(np.isnan([f.low, f.high]).all() for f in overall)


# --------------------------------------------------------------------------------------------- precedence of verdicts
def test_no_labels_comes_before_all_else():
    audited = audit_tally(two_groups((2, 5), (3, 5)))
    odds = finding(audited, "equalized_odds_difference")
    assert (odds.verdict, odds.reason) == (Verdict.INSUFFICIENT_DATA, "no labels")


def test_undefined_comes_before_the_floor():
    with pytest.warns(UndefinedMetricWarning, match="a has no positive y_true"):
        audited = audit_tally(two_groups((0, 1, 0, 4), (2, 1, 2, 4)))
    odds = finding(audited, "equalized_odds_difference")
    assert (odds.verdict, odds.reason) == (Verdict.UNDEFINED, "a has no positive y_true")


def test_the_floor_comes_before_the_rule_and_leaves_value_and_interval():
    audited = audit_tally(two_groups((1, 99), (500, 1000)), reference="b")
    ratio = finding(audited, "disparate_impact")
    assert ratio.verdict is Verdict.INSUFFICIENT_DATA
    assert "a has 99 rows (floor 100)" in ratio.reason
    assert ratio.value == pytest.approx(2 / 99)
    assert ratio.high < 0.8
    flagged = audit_tally(two_groups((1, 100), (500, 1000)), reference="b")
    assert finding(flagged, "disparate_impact").verdict is Verdict.FLAGGED


def test_the_floor_is_on_both_sides():
    audited = audit_tally(two_groups((100, 1000), (90, 99)), reference="b")
    assert finding(audited, "disparate_impact").verdict is Verdict.INSUFFICIENT_DATA
    assert "b has 99 rows (floor 100)" in finding(audited, "disparate_impact").reason


@pytest.mark.parametrize(("positives", "negatives"), [(29, 500), (500, 29)])
def test_error_rates_have_floors_of_positives_and_of_negatives(positives, negatives):
    small = (0, 0, positives, negatives)
    with pytest.warns(UndefinedMetricWarning, match="a has no positive y_pred"):
        audited = audit_tally(two_groups(small, (450, 50, 50, 450)), reference="b")
    odds = finding(audited, "equalized_odds_difference")
    assert odds.verdict is Verdict.INSUFFICIENT_DATA
    assert "(floor 30)" in odds.reason


def test_without_an_interval_it_is_inconclusive():
    policy = POLICIES["ethiclens"].replace(floors={})
    tally = two_groups((1, 0, 1, 500), (400, 100, 100, 400))
    audited = audit_tally(tally, policy=policy, reference="b")
    odds = finding(audited, "equalized_odds_difference")
    assert np.isnan([odds.low, odds.high]).all()
    assert odds.method is None
    assert odds.verdict is Verdict.INCONCLUSIVE
    assert "no valid interval" in odds.reason
    assert "replicates" in odds.reason


def test_nobody_of_5000_selected_can_be_flagged_and_the_method_is_named():
    audited = audit_tally(two_groups((0, 5000), (2500, 5000)), reference="b")
    ratio = finding(audited, "disparate_impact")
    assert (ratio.value, ratio.low, ratio.high) == (0.0, 0.0, 0.0)
    assert ratio.method == "BCa, degenerate; judged by Miettinen-Nurminen"
    assert ratio.verdict is Verdict.FLAGGED


def test_a_degenerate_difference_is_judged_by_newcombe():
    policy = POLICIES["ll144"].replace(rules=(Rule("statistical_parity_difference", maximum=0.1, absolute=True),))
    everybody, nobody = (5000, 5000), (0, 5000)
    audited = audit_tally(two_groups(everybody, nobody), policy=policy, reference="a")
    gap = finding(audited, "statistical_parity_difference")
    assert gap.method == "BCa, degenerate; judged by Newcombe"
    assert gap.verdict is Verdict.FLAGGED
    small = audit_tally(two_groups((3, 3), (3, 3)), policy=policy)
    assert finding(small, "statistical_parity_difference").verdict is Verdict.INCONCLUSIVE


def test_equalized_odds_of_a_degenerate_table_is_never_judged():
    """All of one group's positives found and none of the other's: no interval of a maximum stands in."""
    policy = POLICIES["ethiclens"].replace(floors={})
    with pytest.warns(UndefinedMetricWarning, match="in every group"):
        audited = audit_tally(two_groups((0, 0, 500, 500), (500, 0, 0, 500)), policy=policy, reference="b")
    odds = finding(audited, "equalized_odds_difference")
    assert (odds.value, odds.low, odds.high) == (1.0, 1.0, 1.0)
    assert odds.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("policy", [name for name, policy in POLICIES.items() if policy.rules])
@pytest.mark.parametrize("rows", [(2, 0, 1, 3), (0, 2, 3, 1), (3, 1, 0, 2), (1, 1, 1, 1)])
def test_interval_policies_never_flag_on_a_missing_interval(policy, rows):
    """Few rows against many: whatever is flagged has an interval, or its policy judges on points or a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        audited = audit_tally(two_groups(rows, (300, 100, 100, 300)), policy=POLICIES[policy].replace(floors={}))
    for f in audited.flagged:
        if POLICIES[policy].rule(f.metric).basis in ("interval", "gap"):
            assert not np.isnan([f.low, f.high]).any()


# ------------------------------------------------------------------------------------------------------- status words
FLAGGED, CLEARED = Verdict.FLAGGED, Verdict.CLEARED
INCONCLUSIVE, INSUFFICIENT, UNDEFINED = Verdict.INCONCLUSIVE, Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        ([CLEARED, UNDEFINED, INSUFFICIENT, INCONCLUSIVE, FLAGGED], FLAGGED),
        ([CLEARED, UNDEFINED, INSUFFICIENT, INCONCLUSIVE], INCONCLUSIVE),
        ([CLEARED, UNDEFINED, INSUFFICIENT], INSUFFICIENT),
        ([CLEARED, UNDEFINED], INSUFFICIENT),
        ([CLEARED, CLEARED], CLEARED),
        ([], None),
    ],
)
def test_the_verdict_of_an_audit(verdicts, overall):
    assert overall_verdict(verdicts) is overall


EQUAL = (2500, 2500, 2500, 2500)
STATUS = {
    "PASS": two_groups(EQUAL, EQUAL),
    "FAIL": two_groups((500, 500, 4500, 4500), EQUAL),
    "PASS WITH CONDITIONS": two_groups((40, 40, 60, 60), (50, 50, 50, 50)),
    "NOT ASSESSABLE": two_groups((2, 2, 2, 2), EQUAL),
}


@pytest.mark.parametrize("status", STATUS)
def test_status_words(status):
    audited = audit_tally(STATUS[status], reference="b")
    assert audited.status == status
    verdict = {"PASS": CLEARED, "FAIL": FLAGGED, "NOT ASSESSABLE": INSUFFICIENT}.get(status, INCONCLUSIVE)
    assert audited.verdict is verdict
    assert bool(audited.conditions) is (status in ("PASS WITH CONDITIONS", "NOT ASSESSABLE"))


def test_a_policy_without_rules_judges_nothing():
    audited = audit_tally(STATUS["FAIL"], policy="ll144")
    assert (audited.verdict, audited.status, audited.judged) == (None, "NOT JUDGED", ())


def test_the_gate():
    audit_tally(STATUS["PASS"]).raise_if_flagged(also=["inconclusive", "insufficient"])
    audit_tally(STATUS["PASS WITH CONDITIONS"]).raise_if_flagged()
    with pytest.raises(AssertionError) as caught:
        audit_tally(STATUS["FAIL"], reference="b").raise_if_flagged()
    assert isinstance(caught.value, FairnessGateError)
    with pytest.raises(FairnessGateError):
        audit_tally(STATUS["PASS WITH CONDITIONS"], reference="b").raise_if_flagged(also=["inconclusive"])
    with pytest.raises(FairnessGateError):
        audit_tally(STATUS["NOT ASSESSABLE"], reference="b").raise_if_flagged(also="insufficient")


# --------------------------------------------------------------------------------------------------------- reference
def test_the_default_reference_is_the_highest_rate_above_the_floor():
    counts = {"tiny": {"n": 99, "selected": 99}, "low": {"n": 500, "selected": 100}, "high": {"n": 100, "selected": 60}}
    (reference,) = audit_tally(Tally.from_counts(counts)).references
    assert (reference.group, reference.given, reference.sufficient) == ("high", False, True)


def test_ties_go_to_the_larger_group_then_to_the_first_in_order():
    counts = {"b": {"n": 200, "selected": 100}, "c": {"n": 400, "selected": 200}, "a": {"n": 400, "selected": 200}}
    assert audit_tally(Tally.from_counts(counts)).references[0].group == "a"
    counts["c"] = {"n": 800, "selected": 400}
    assert audit_tally(Tally.from_counts(counts)).references[0].group == "c"


def test_nobody_above_the_floor_names_the_largest_and_judges_nothing():
    counts = {"a": {"n": 20, "selected": 20}, "b": {"n": 40, "selected": 10}}
    audited = audit_tally(Tally.from_counts(counts))
    assert audited.references[0].group == "b"
    assert not audited.references[0].sufficient
    assert {f.verdict for f in audited.judged} == {INSUFFICIENT}
    assert any("meets the floor" in note for note in audited.notes)


def test_an_intersection_chooses_its_own_reference_unless_it_is_given():
    index = np.arange(1200)
    features = pd.DataFrame({"sex": np.where(index % 2, "m", "f"), "race": np.where(index % 3, "x", "y")})
    decisions = ((features["sex"] == "m") & (features["race"] == "y")).astype(int).to_numpy() | (index % 5 == 0)
    options = {"intersections": [("sex", "race")], "n_resamples": 100}
    audited = audit(None, decisions, sensitive_features=features, **options)
    assert {r.attribute: r.group for r in audited.references}["sex", "race"] == ("m", "y")
    audited = audit(None, decisions, sensitive_features=features, reference={("sex", "race"): ("f", "x")}, **options)
    assert {r.attribute: r.group for r in audited.references}["sex", "race"] == ("f", "x")
    assert {r.attribute: r.given for r in audited.references} == {"sex": False, "race": False, ("sex", "race"): True}


# --------------------------------------------------------------------------------------------------------- headlines
def test_the_composite_is_that_of_the_worst_comparison_and_the_minimum_stands_apart():
    tally = Tally.from_counts(
        {
            "best": {"tp": 400, "fp": 200, "fn": 100, "tn": 300},
            "middle": {"tp": 350, "fp": 150, "fn": 150, "tn": 350},
            "worst": {"tp": 200, "fp": 100, "fn": 300, "tn": 400},
        }
    )
    audited = audit_tally(tally)
    assert (audited.composite.group, audited.composite.reference) == ("worst", "best")
    own = finding(audited, "composite_bias_score", "worst").value
    parts = [
        finding(audited, name, "worst").value
        for name in ("disparate_impact", "statistical_parity_difference", "equalized_odds_difference")
    ]
    assert audited.composite.value == own == pytest.approx(metrics.composite_bias_score(*parts))
    assert audited.minimum_disparate_impact.value == pytest.approx(0.5)
    assert audited.composite.band == metrics.composite_band(own)


def test_intersections_never_enter_a_headline():
    index = np.arange(4000)
    features = pd.DataFrame({"sex": index % 2, "race": index // 2 % 2})
    crossed = (features["sex"] ^ features["race"]).to_numpy()  # only the intersections differ
    decisions = np.where(crossed, index % 10 < 7, index % 10 < 3).astype(int)
    options = {"intersections": "all", "n_resamples": 100}
    audited = audit(index % 3 == 0, decisions, sensitive_features=features, **options)
    ratios = [f.value for f in audited.findings if f.metric == "disparate_impact" and isinstance(f.attribute, tuple)]
    assert audited.minimum_disparate_impact.value > 1.5 * min(ratios)
    assert audited.composite.attribute in ("sex", "race")
    assert audited.minimum_disparate_impact.attribute in ("sex", "race")


def test_a_lacking_part_withholds_the_composite_with_its_reason():
    audited = audit_tally(two_groups((200, 400), (200, 400)))
    assert (audited.composite.value, audited.composite.band) == (None, None)
    assert "no labels" in audited.composite.reason
    assert audited.minimum_disparate_impact.value == 1.0
    with pytest.warns(UndefinedMetricWarning, match="of the reference a is 0"):
        audited = audit_tally(two_groups((0, 400), (200, 400)), reference="a")
    assert audited.minimum_disparate_impact.value is None
    assert "UNDEFINED" in audited.minimum_disparate_impact.reason


# ------------------------------------------------------------------------------------------------------ storing, again
def test_the_smallest_tally_can_be_checked_against_fairlearn():
    tally = Tally(("group",), (("a",),), np.array([[[0, 1]]]))
    with pytest.warns(UserWarning, match="group"):
        audited = audit_tally(tally, policy="ll144", metrics=["selection_rate"])
    assert audited.cross_check()["largest_deviation"].tolist() == [0.0]


@pytest.mark.parametrize("policy", POLICIES)
def test_judging_again_needs_only_what_is_stored(policy):
    audited = audit_tally(STATUS["FAIL"], reference="b", n_resamples=100)
    stored = Audit.from_json(audited.to_json())
    again = stored.rejudge(policy)
    assert again == audited.rejudge(policy) == audit_tally(STATUS["FAIL"], reference="b", policy=policy)
    assert Policy.from_dict(again.to_dict()["policy"]) == POLICIES[policy]
