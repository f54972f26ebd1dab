"""Names and files of other tools: worked numbers, agreement with fairlearn, the JSON's keys and types, the configuration."""

import builtins
import json
import re
import sys
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_ethiclens import MISSING, POLICIES, Audit, CounterfactualProbe, Tally, audit, audit_tally, cli
from sklearn_ethiclens.cli import app, main
from sklearn_ethiclens.compat import (
    ConfigError,
    FairnessCheck,
    audit_fairness,
    compute_subgroup_metrics,
    demographic_parity_ratio,
    equalized_odds_gap,
    glassalpha_status,
    load_config,
    read_config,
    summary_sections,
    to_glassalpha,
)
from sklearn_ethiclens.datasets import german_credit_protocol
from sklearn_ethiclens.exceptions import MissingGroupsWarning, UndefinedMetricWarning
from sklearn_ethiclens.individual import consistency_score, matched_pairs
from sklearn_ethiclens.policy import Verdict

# Group A: labels 1 1 0 0, decided 1 1 0 0; group B: labels 1 1 0 0, decided 1 0 0 0.
GROUPS, Y_TRUE, Y_PRED = list("AAAABBBB"), [1, 1, 0, 0] * 2, [1, 1, 0, 0, 1, 0, 0, 0]
METRICS = ("tpr", "fpr", "precision", "recall", "selection_rate")


# ------------------------------------------------------------------------------------------------ functions of guides
def test_ratio_is_smallest_over_largest_selection_rate():
    assert demographic_parity_ratio(GROUPS, Y_PRED) == 0.25 / 0.5


def test_gaps_of_the_worked_example():
    assert equalized_odds_gap(GROUPS, Y_TRUE, Y_PRED) == (1.0 - 0.5, 0.0)


def test_metrics_of_each_group_by_hand():
    found = compute_subgroup_metrics(GROUPS, Y_TRUE, Y_PRED)
    assert list(found) == ["A", "B"]
    assert found["A"] == {"accuracy": 1.0, "precision": 1.0, "recall": 1.0, "f1": 1.0, "count": 4}
    # B: tp 1, fn 1, tn 2: accuracy 3/4, precision 1/1, recall 1/2, F1 2/(2 + 0 + 1)
    assert found["B"] == {"accuracy": 0.75, "precision": 1.0, "recall": 0.5, "f1": 2 / 3, "count": 4}
    assert {type(value) for value in found["B"].values()} == {float, int}


def draw(n_groups=3, n=400, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n).astype(str)
    y_true = rng.integers(0, 2, n)
    return groups, y_true, (rng.random(n) < 0.3 + 0.1 * groups.astype(int) + 0.2 * y_true).astype(int)


@pytest.mark.parametrize("n_groups", [2, 3, 6])
@pytest.mark.parametrize("seed", range(2))
def test_agreement_with_fairlearn_and_scikit_learn(n_groups, seed):
    groups, y_true, y_pred = draw(n_groups, seed=seed)
    ratio = fairlearn.demographic_parity_ratio(y_true, y_pred, sensitive_features=groups)
    assert demographic_parity_ratio(groups, y_pred) == pytest.approx(ratio, abs=1e-12)
    rates = {"tpr": fairlearn.true_positive_rate, "fpr": fairlearn.false_positive_rate}
    gaps = fairlearn.MetricFrame(metrics=rates, y_true=y_true, y_pred=y_pred, sensitive_features=groups).difference()
    assert equalized_odds_gap(groups, y_true, y_pred) == pytest.approx((gaps["tpr"], gaps["fpr"]), abs=1e-12)
    worst = fairlearn.equalized_odds_difference(y_true, y_pred, sensitive_features=groups)
    assert max(equalized_odds_gap(groups, y_true, y_pred)) == pytest.approx(worst, abs=1e-12)
    functions = {"accuracy": sk.accuracy_score, "precision": sk.precision_score, "recall": sk.recall_score}
    functions["f1"] = sk.f1_score
    found = compute_subgroup_metrics(groups, y_true, y_pred)
    for group in np.unique(groups):
        here = groups == group
        for name, function in functions.items():
            assert found[group][name] == pytest.approx(function(y_true[here], y_pred[here]), abs=1e-12)
        assert found[group]["count"] == here.sum()


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)


@settings(max_examples=30, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_of_groups_matters(found, random):
    shuffled, names = random.sample(found, len(found)), {"a": "z", "b": "b", "c": "a"}
    results = []
    for some, name in ((found, dict.fromkeys("abc")), (shuffled, names)):
        groups, y_true, y_pred = zip(*some, strict=True)
        groups = [name[g] or g for g in groups]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            checks = audit_fairness(groups, y_true, y_pred).checks
        results.append([(c.name, c.passed, pytest.approx(c.value, nan_ok=True)) for c in checks])
    assert results[0] == results[1]


@settings(max_examples=30, deadline=None)
@given(rows)
def test_what_passes_has_a_value_within_its_threshold(found):
    result = audit_fairness(*map(list, zip(*found, strict=True)))
    for check in result.checks:
        ratio = check.name.endswith("ratio")
        assert (check.passed is None) == np.isnan(check.value) == (check in result.unassessed)
        if check.passed is not None:
            assert 0 <= check.value <= 1
            within = check.value >= check.threshold - 1e-9 if ratio else check.value <= check.threshold + 1e-9
            assert check.passed == within
    assert result.passed == (not result.failures)
    assert set(result.unassessed) <= set(result.failures)


def test_several_columns_are_their_combinations():
    frame = pd.DataFrame({"sex": list("ffmm") * 2, "race": list("bwbw") * 2})
    found = compute_subgroup_metrics(frame, [1, 1, 1, 1, 1, 1, 1, 1], [1] * 8)
    assert list(found) == [("f", "b"), ("f", "w"), ("m", "b"), ("m", "w")]
    assert demographic_parity_ratio(frame, [1, 1, 1, 0, 1, 1, 1, 1]) == 0.5
    assert {metrics["count"] for metrics in found.values()} == {2}
    assert demographic_parity_ratio([tuple(row) for row in frame.to_numpy()], [1, 1, 1, 0, 1, 1, 1, 1]) == 0.5


def test_rows_without_a_group_are_a_group():
    with pytest.warns(MissingGroupsWarning, match="'groups' is missing in 2 of 4 rows"):
        found = compute_subgroup_metrics(["a", "a", None, None], [1, 0, 1, 0], [1, 0, 1, 1])
    assert found[MISSING]["count"] == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: demographic_parity_ratio(GROUPS, Y_PRED[:5]), "groups' 8.*5|5.*8"),
        (lambda: demographic_parity_ratio(GROUPS, ["yes", "no"] * 4), "pos_label"),
        (lambda: equalized_odds_gap(GROUPS, None, Y_PRED), "y_true is missing"),
        (lambda: compute_subgroup_metrics(GROUPS, None, Y_PRED), "y_true is missing"),
        (lambda: demographic_parity_ratio(GROUPS, [0.2, 0.7] * 4), "scores such as 0.2"),
        (lambda: audit_fairness(GROUPS, Y_TRUE, Y_PRED, 80), r"dp_threshold must be a number in \[0, 1\].*got 80"),
        (lambda: audit_fairness(GROUPS, Y_TRUE, Y_PRED, eo_tpr_threshold=-0.1), "eo_tpr_threshold .* got -0.1"),
        (lambda: audit_fairness(GROUPS, Y_TRUE, Y_PRED, eo_fpr_threshold="a"), "eo_fpr_threshold .* got 'a'"),
        (lambda: audit_fairness(GROUPS, Y_TRUE, Y_PRED, di_threshold=float("nan")), "di_threshold .* got nan"),
        (lambda: audit_fairness(GROUPS, Y_TRUE, Y_PRED, dp_threshold=True), "dp_threshold .* got True"),
    ],
)
def test_errors_name_the_argument_and_what_was_found(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pandas_objects_whose_rows_disagree_are_refused():
    groups = pd.Series(GROUPS, index=range(8, 0, -1), name="sex")
    with pytest.raises(ValueError, match="index"):
        demographic_parity_ratio(groups, pd.Series(Y_PRED))


def test_text_labels_need_and_take_a_positive_label():
    words = {1: "yes", 0: "no"}
    y_true, y_pred = ([words[v] for v in values] for values in (Y_TRUE, Y_PRED))
    assert demographic_parity_ratio(GROUPS, y_pred, pos_label="yes") == 0.5
    assert equalized_odds_gap(GROUPS, y_true, y_pred, pos_label="yes") == (0.5, 0.0)
    assert compute_subgroup_metrics(GROUPS, y_true, y_pred, pos_label="yes")["B"]["recall"] == 0.5
    assert audit_fairness(GROUPS, y_true, y_pred, pos_label="yes").summary() == FAILED


# -------------------------------------------------------------------------------------------------------- undefined
def test_a_group_without_positives_leaves_the_gap_undefined_and_says_so():
    with pytest.warns(UndefinedMetricWarning, match=r"equalized_odds_tpr_gap is undefined: b \(no positive y_true\)"):
        tpr_gap, fpr_gap = equalized_odds_gap(list("aabb"), [1, 0, 0, 0], [1, 0, 0, 1])
    assert np.isnan(tpr_gap)
    assert fpr_gap == 0.5
    with pytest.warns(UndefinedMetricWarning, match=r"recall of b \(no positive y_true\)"):
        found = compute_subgroup_metrics(list("aabb"), [1, 0, 0, 0], [1, 0, 0, 1])
    assert np.isnan(found["b"]["recall"])


def test_nobody_selected_is_no_parity():
    with pytest.warns(UndefinedMetricWarning, match="no group has any selected row"):
        assert np.isnan(demographic_parity_ratio(list("aabb"), [0] * 4))
    result = audit_fairness(list("aabb"), [1, 0, 1, 0], [0] * 4)
    assert [check.name for check in result.unassessed] == ["demographic_parity_ratio", "disparate_impact_ratio"]
    assert not result.passed


def test_one_group_is_compared_with_nobody():
    with pytest.warns(UndefinedMetricWarning, match="one group only"):
        assert np.isnan(demographic_parity_ratio(["a", "a"], [1, 0]))
    result = audit_fairness(["a", "a"], [1, 0], [1, 0])
    assert len(result.unassessed) == 4
    assert not result.passed


def test_of_three_groups_those_without_a_rate_are_named_and_left_out():
    groups, y_true, y_pred = list("aabbcc"), [1, 0, 1, 0, 0, 0], [1, 0, 1, 0, 0, 1]
    with pytest.warns(UndefinedMetricWarning, match=r"taken over the other groups: c \(no positive y_true\)"):
        assert equalized_odds_gap(groups, y_true, y_pred) == (0.0, 0.5)
    check = audit_fairness(groups, y_true, y_pred).checks[1]
    assert str(check) == ("[PASS] equalized_odds_tpr_gap: 0.0000 (threshold: 0.10; left out: c (no positive y_true))")


# ------------------------------------------------------------------------------------------------------------ the gate
FAILED = """Fairness audit: FAILED
  [FAIL] demographic_parity_ratio: 0.5000 (threshold: 0.80)
  [FAIL] equalized_odds_tpr_gap: 0.5000 (threshold: 0.10)
  [PASS] equalized_odds_fpr_gap: 0.0000 (threshold: 0.10)
  [FAIL] disparate_impact_ratio: 0.5000 (threshold: 0.80)"""


def test_summary_of_a_failure_line_by_line():
    result = audit_fairness(GROUPS, Y_TRUE, Y_PRED)
    assert result.summary() == str(result) == FAILED
    assert not result.passed
    names = [failure.name for failure in result.failures]
    assert names == ["demographic_parity_ratio", "equalized_odds_tpr_gap", "disparate_impact_ratio"]
    assert result.unassessed == ()


def test_summary_of_a_pass_line_by_line():
    result = audit_fairness(list("AAAABBBB"), [1, 1, 0, 0] * 2, [1, 1, 0, 0] * 2)
    assert result.passed
    assert result.failures == ()
    assert result.summary() == (
        "Fairness audit: PASSED\n"
        "  [PASS] demographic_parity_ratio: 1.0000 (threshold: 0.80)\n"
        "  [PASS] equalized_odds_tpr_gap: 0.0000 (threshold: 0.10)\n"
        "  [PASS] equalized_odds_fpr_gap: 0.0000 (threshold: 0.10)\n"
        "  [PASS] disparate_impact_ratio: 1.0000 (threshold: 0.80)"
    )


def test_summary_of_what_was_not_assessed_is_neither_pass_nor_fail():
    result = audit_fairness(list("aabb"), [1, 0, 0, 0], [1, 0, 0, 1])
    assert result.summary().splitlines()[2] == (
        "  [N/A ] equalized_odds_tpr_gap: undefined (threshold: 0.10; b (no positive y_true))"
    )
    assert not result.passed
    assert [check.name for check in result.unassessed] == ["equalized_odds_tpr_gap"]
    assert result.unassessed[0] in result.failures
    assert result.unassessed[0].passed is None


def test_without_labels_the_ratio_is_judged_and_nothing_passes_for_it():
    result = audit_fairness(GROUPS, None, [1, 1, 0, 0] * 2)
    assert [check.passed for check in result.checks] == [True, None, None, True]
    assert {check.reason for check in result.unassessed} == {"no labels"}
    assert not result.passed


def test_thresholds_are_positional_in_the_order_of_the_guides():
    assert audit_fairness(GROUPS, Y_TRUE, Y_PRED, 0.5, 0.5, 0.0).passed
    strict = audit_fairness(GROUPS, Y_TRUE, Y_PRED, 0.5, 0.5, 0.0, di_threshold=0.8)
    assert [check.name for check in strict.failures] == ["disparate_impact_ratio"]


def test_four_fifths_exactly_pass():
    y_pred = [1] * 32 + [0] * 68 + [1] * 40 + [0] * 60  # .32 / .40, which is below 0.8 in floating point
    assert 0.32 / 0.40 < 0.8
    check = audit_fairness(["a"] * 100 + ["b"] * 100, None, y_pred).checks[0]
    assert check.passed
    assert str(check) == "[PASS] demographic_parity_ratio: 0.8000 (threshold: 0.80)"


def test_a_value_is_never_rounded_onto_the_threshold_it_misses():
    check = FairnessCheck("demographic_parity_ratio", 0.79998, 0.8, passed=False)
    assert str(check) == "[FAIL] demographic_parity_ratio: 0.79998 (threshold: 0.80)"
    assert str(replace(check, value=0.8523, passed=True)) == (
        "[PASS] demographic_parity_ratio: 0.8523 (threshold: 0.80)"
    )
    assert "(threshold: 0.125)" in str(replace(check, threshold=0.125))


def test_the_tally_of_a_gate_can_be_audited_with_intervals():
    result = audit_fairness(*draw())
    assert audit_tally(result.tally, n_resamples=100).tally.n_rows == 400


# ------------------------------------------------------------------------------------------------------------ statuses
def finding(value, low, high, threshold=0.05, n=500, metric="true_positive_rate_difference"):
    """A comparison as the policy judges it."""
    made = audit_tally(TALLY, policy="glassalpha", n_resamples=100).judged[0]
    rule = POLICIES["glassalpha"].replace(thresholds={metric: threshold}).rule(metric)
    verdict, reason = rule.judge(value, low, high)
    changes = {"value": value, "low": low, "high": high, "n": n, "verdict": verdict, "reason": reason}
    return replace(made, metric=metric, threshold=rule.threshold, n_reference=500, **changes)


TALLY = Tally.from_counts(
    {"f": {"tp": 80, "fn": 120, "fp": 40, "tn": 160}, "m": {"tp": 120, "fn": 80, "fp": 60, "tn": 140}}, attribute="sex"
)


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (0.03, -0.02, 0.08, "PASS"),
        (0.08, -0.02, 0.18, "CAUTION"),
        (0.12, 0.05, 0.19, "WARNING"),
        (-0.12, -0.19, -0.05, "WARNING"),
        (0.01, -0.01, 0.03, "PASS"),
        (0.04, 0.01, 0.09, "CAUTION"),
        (0.08, np.nan, np.nan, "CAUTION"),
    ],
)
def test_words_of_verdicts(value, low, high, word):
    assert glassalpha_status(finding(value, low, high)) == word


def test_fewer_than_ten_rows_are_an_error_without_exception():
    for ends in ((0.03, -0.02, 0.08), (0.12, 0.05, 0.19), (0.01, -0.01, 0.03)):
        assert glassalpha_status(finding(*ends, n=9)) == "ERROR"
        assert glassalpha_status(finding(*ends, n=10)) != "ERROR"


def test_what_cannot_be_judged_is_a_caution_and_what_is_not_judged_has_no_word():
    one = finding(0.03, -0.02, 0.08)
    for verdict in (Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED):
        assert glassalpha_status(replace(one, verdict=verdict)) == "CAUTION"
    assert glassalpha_status(replace(one, verdict=None, threshold=None)) is None


# ------------------------------------------------------------------------------------------------------------- export
def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["b", "w", "x"], n, p=[0.3, 0.67, 0.03])
    y_true = rng.integers(0, 2, n)
    y_pred = (rng.random(n) < np.where(race == "x", 1.0, np.where(sex == "f", 0.3, 0.6))).astype(int)
    return y_true, y_pred, pd.DataFrame({"sex": sex, "race": race})


@pytest.fixture(scope="module")
def made():
    y_true, y_pred, groups = people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return audit(
            y_true,
            y_pred,
            sensitive_features=groups,
            intersections=["sex*race"],
            policy="glassalpha",
            n_resamples=200,
            random_state=7,
        )


@pytest.fixture(scope="module")
def whole(made):
    """The document with everything in it."""
    y_true, y_pred, groups = people()
    X = pd.DataFrame({"x": np.linspace(0, 1, len(groups)), "male": (groups["sex"] == "m").astype(int)})
    model = LogisticRegression().fit(X, y_true)
    scores = model.predict_proba(X)[:, 1]
    probe = CounterfactualProbe("male").fit(X)
    return to_glassalpha(
        made,
        consistency=consistency_score(X[["x"]], scores, method="similar_pairs", metric="euclidean"),
        matched_pairs=matched_pairs(X[["x"]], y_pred, groups, distance_threshold=0.05, metric="mixed"),
        counterfactual=probe.audit(model, X),
    )


def number_or_none(value):
    return value is None or type(value) is float


def test_every_section_and_key_has_its_type(whole):
    assert set(whole) >= {"fairness_analysis", "intersectional_fairness", "individual_fairness"}
    assert set(whole["fairness_analysis"]) == {"sex", "race"}
    for attribute, groups in (("sex", {"f", "m"}), ("race", {"b", "w", "x"})):
        section = whole["fairness_analysis"][attribute]
        assert tuple(section["metrics"]) == METRICS
        for metric in section["metrics"].values():
            assert groups | {"disparity", "ci", "status", "reason"} <= set(metric)
            assert all(number_or_none(metric[group]) for group in groups)
            assert type(metric["disparity"]) is float
            assert metric["ci"] is not None or metric["reason"]
            if metric["ci"] is not None:
                assert {name: type(value) for name, value in metric["ci"].items()} == {
                    "ci_lower": float,
                    "ci_upper": float,
                    "confidence_level": float,
                    "n_bootstrap": int,
                    "method": str,
                }
            assert metric["status"] in ("PASS", "WARNING", "CAUTION", "ERROR", None)
        assert set(section["statistical_power"]) == groups
        assert all(number_or_none(power) for power in section["statistical_power"].values())
        for warning in section["sample_size_warnings"].values():
            assert type(warning["n"]) is int
            assert warning["severity"] in ("ERROR", "WARNING", "LIMITED")
    crossed = whole["intersectional_fairness"]["sex*race"]
    assert set(crossed) == {"groups", "disparity", "sample_size_warnings"}
    assert {"f_b", "f_w", "m_b", "m_w"} <= set(crossed["groups"])
    for group in crossed["groups"].values():
        assert type(group["n"]) is int
        for metric in METRICS:
            assert number_or_none(group["metrics"][metric])
            ends = group["metrics"][f"{metric}_ci"]
            assert (ends is None) == (group["metrics"][metric] is None)
            assert ends is None or 0 <= ends["ci_lower"] <= group["metrics"][metric] <= ends["ci_upper"] <= 1
    assert {f"{metric}_max_{kind}" for metric in METRICS for kind in ("diff", "ratio")} <= set(crossed["disparity"])
    one = whole["individual_fairness"]
    assert {name: type(one["consistency_score"][name]) for name in CONSISTENCY} == CONSISTENCY
    assert one["matched_pairs"]
    assert {name: type(one["matched_pairs"][0][name]) for name in PAIR} == PAIR
    assert {name: type(one["counterfactual_flip"][name]) for name in FLIP} == FLIP


CONSISTENCY = {
    "score": float,
    "distance_metric": str,
    "n_similar_pairs": int,
    "mean_prediction_diff": float,
    "max_prediction_diff": float,
}
PAIR = {
    "individual_a": int,
    "individual_b": int,
    "distance": float,
    "prediction_diff": float,
    "protected_attr_differs": str,
}
FLIP = {"protected_attr": str, "disparate_treatment_rate": float, "mean_change": float, "max_change": float}


def test_the_document_is_strict_json_and_the_same_again(made, whole):
    text = json.dumps(whole, allow_nan=False)
    assert json.loads(text) == whole
    assert to_glassalpha(made) == to_glassalpha(made)
    assert to_glassalpha(Audit.from_json(made.to_json())) == to_glassalpha(made)


def test_numbers_are_those_of_the_audit(made, whole):
    for attribute in ("sex", "race"):
        rates = made.rates()
        mine = rates[rates["attribute"] == attribute]
        names = {"tpr": "true_positive_rate", "fpr": "false_positive_rate", "selection_rate": "selection_rate"}
        for metric, rate in names.items():
            found = whole["fairness_analysis"][attribute]["metrics"][metric]
            values = mine[mine["rate"] == rate].set_index("group")["value"]
            assert {group: found[group] for group in values.index} == values.to_dict()
            assert found["disparity"] == values.max() - values.min()
            assert (found["highest"], found["lowest"]) == (values.idxmax(), values.idxmin())


def test_the_interval_is_that_of_the_signed_pair_turned_to_highest_minus_lowest(made, whole):
    for metric, rate in (("selection_rate", "selection_rate"), ("tpr", "true_positive_rate")):
        found = whole["fairness_analysis"]["sex"]["metrics"][metric]
        pair = next(f for f in made.findings if f.metric == f"{rate}_difference" and f.attribute == "sex")
        assert (pair.group, pair.reference) == (found["lowest"], found["highest"])
        assert found["disparity"] == -pair.value
        assert (found["ci"]["ci_lower"], found["ci"]["ci_upper"]) == (-pair.high, -pair.low)
        assert found["ci"]["n_bootstrap"] == 200
        assert found["ci"]["method"] == "percentile"


def test_intervals_of_equal_groups_hold_zero():
    """The percentile interval of a largest gap would never do so."""
    held = 0
    for seed in range(20):
        y_pred = np.random.default_rng(seed).integers(0, 2, 400)
        sex = np.repeat(["f", "m"], 200)
        made = audit(None, y_pred, sensitive_features={"sex": sex}, policy="glassalpha", n_resamples=200)
        ci = to_glassalpha(made)["fairness_analysis"]["sex"]["metrics"]["selection_rate"]["ci"]
        held += ci["ci_lower"] <= 0 <= ci["ci_upper"]
    assert held >= 16  # 95% of 20 is 19; fewer than 16 have probability 3e-4


def test_an_extreme_group_below_the_floor_has_no_interval_and_the_reason_says_so(made, whole):
    found = whole["fairness_analysis"]["race"]["metrics"]
    small = [m for m in found.values() if m["highest"] == "x"]
    assert small
    for metric in small:
        assert metric["ci"] is None
        assert "x, where it is highest, has" in metric["reason"]
        assert "(floor 30)" in metric["reason"]


def test_group_of_four_by_hand():
    """True positive rates .72, .64, .55, .38 and false ones .10, .15, .12, .20, each of 100 people."""
    rates = {"m": {"w": (72, 10), "b": (64, 15)}, "f": {"w": (55, 12), "b": (38, 20)}}
    counts = {
        (sex, race): {"tp": tp, "fn": 100 - tp, "fp": fp, "tn": 100 - fp}
        for sex, races in rates.items()
        for race, (tp, fp) in races.items()
    }
    tally = Tally.from_counts(counts, attribute=("sex", "race"))
    made = audit_tally(tally, intersections=["sex*race"], policy="glassalpha", n_resamples=100)
    found = to_glassalpha(made)["intersectional_fairness"]["sex*race"]
    assert set(found["groups"]) == {"m_w", "m_b", "f_w", "f_b"}
    assert found["disparity"]["tpr_max_diff"] == pytest.approx(0.34)
    assert found["disparity"]["tpr_max_ratio"] == pytest.approx(1.89, abs=0.005)
    assert found["disparity"]["fpr_max_diff"] == pytest.approx(0.10)
    assert found["groups"]["f_b"]["n"] == 200
    assert found["groups"]["f_b"]["metrics"]["tpr"] == 0.38


def test_severities_of_sizes():
    sizes = {"a": 9, "b": 10, "c": 29, "d": 30, "e": 99, "f": 100}
    tally = Tally.from_counts({g: {"n": n, "selected": n // 2} for g, n in sizes.items()}, attribute="g")
    found = to_glassalpha(audit_tally(tally, policy="glassalpha", n_resamples=100))
    assert found["fairness_analysis"]["g"]["sample_size_warnings"] == {
        "a": {"n": 9, "severity": "ERROR"},
        "b": {"n": 10, "severity": "WARNING"},
        "c": {"n": 29, "severity": "WARNING"},
        "d": {"n": 30, "severity": "LIMITED"},
        "e": {"n": 99, "severity": "LIMITED"},
    }
    summary = found["fairness_summary"]
    assert summary["errors"] == ["g=a: 9 rows, no conclusion"]
    assert "g=b: 10 rows, described, not judged" in summary["warnings"]
    assert "collect more data for g=a: 9 rows, at least 30 are needed" in summary["actions"]
    assert not any("g=d" in action for action in summary["actions"])


def test_power_is_of_the_pair_and_about_a_fifth_at_165_against_35():
    tally = Tally.from_counts({"m": {"n": 165, "selected": 83}, "f": {"n": 35, "selected": 17}}, attribute="sex")
    found = to_glassalpha(audit_tally(tally, policy="glassalpha", n_resamples=100))["fairness_analysis"]["sex"]
    assert found["statistical_power"]["f"] == found["statistical_power"]["m"] == pytest.approx(0.19, abs=0.02)


def test_without_labels_error_rates_are_null_with_the_reason():
    made = audit(None, [1, 0] * 100, sensitive_features={"g": ["a", "b"] * 100}, policy="glassalpha", n_resamples=100)
    found = to_glassalpha(made)
    metrics = found["fairness_analysis"]["g"]["metrics"]
    for name in ("tpr", "fpr", "precision", "recall"):
        assert metrics[name]["a"] is metrics[name]["disparity"] is metrics[name]["ci"] is None
        assert metrics[name]["reason"] == "no labels" or "no labels" in metrics[name]["reason"]
    assert metrics["tpr"]["status"] == "CAUTION"
    assert metrics["selection_rate"]["disparity"] == 1.0
    assert "give the true labels" in found["fairness_summary"]["actions"]


def test_field_report_o19_zero_and_undefined_values_and_markup_in_labels():
    groups = ["<=25", "<=25", ">25", ">25", "<b>x</b>", "<b>x</b>"]
    with pytest.warns(UndefinedMetricWarning):
        made = audit([1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], sensitive_features={"g": groups}, policy="glassalpha")
    found = to_glassalpha(made)
    section = found["fairness_analysis"]["g"]
    assert {g: section["metrics"]["selection_rate"][g] for g in set(groups)} == {
        "<=25": 0.5,
        ">25": 0.0,
        "<b>x</b>": 0.0,
    }
    assert {g: section["metrics"]["tpr"][g] for g in set(groups)} == {"<=25": 1.0, ">25": 0.0, "<b>x</b>": None}
    assert "<b>x</b>: no positive y_true" in section["metrics"]["tpr"]["reason"]
    assert {row["n"] for row in section["sample_size_warnings"].values()} == {2}
    assert section["metrics"]["tpr"]["status"] == "ERROR"
    json.dumps(found, allow_nan=False)
    for part in summary_sections(found):
        made = made.with_section(part)
    html = made.report("html")
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<b>x</b>" not in html
    assert "(<=25 n=2, <b>x</b> n=2, >25 n=2)" in " ".join(made.report("text").split())
    result = audit_fairness(groups, [1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0])
    assert "left out: <b>x</b> (no positive y_true)" in result.summary()


def test_a_ratio_over_a_rate_of_zero_is_null_with_the_reason():
    counts = {("f", "b"): {"n": 40, "selected": 0}, ("f", "w"): {"n": 40, "selected": 10}}
    tally = Tally.from_counts(counts, attribute=("sex", "race"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = audit_tally(tally, intersections=["sex*race"], policy="glassalpha", n_resamples=100)
    found = to_glassalpha(made)["intersectional_fairness"]["sex*race"]["disparity"]
    assert found["selection_rate_max_diff"] == 0.25
    assert found["selection_rate_max_ratio"] is None
    assert found["selection_rate_reason"] == "the smallest rate is 0"
    assert found["tpr_reason"] == "no labels"


@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        (["ci", "disparity"], {"g=ci", "g=disparity"}),
        ([30, "30"], {"30 (int)", "30 (str)"}),
        ([True, False], {"True", "False"}),
    ],
)
def test_no_group_takes_the_place_of_a_key_or_of_another_group(groups, keys):
    made = audit(None, [1, 0] * 40, sensitive_features={"g": groups * 40}, policy="glassalpha", n_resamples=100)
    found = to_glassalpha(made)["fairness_analysis"]["g"]
    assert keys <= set(found["metrics"]["selection_rate"])
    assert set(found["statistical_power"]) == keys


def test_joined_names_of_intersections_never_collide():
    cells = [("a_b", "c"), ("a", "b_c"), ("a", "c")]
    tally = Tally.from_counts(
        {cell: {"n": 50, "selected": 20 + i} for i, cell in enumerate(cells)}, attribute=("p", "q")
    )
    made = audit_tally(tally, intersections=["p*q"], policy="glassalpha", n_resamples=100)
    assert set(to_glassalpha(made)["intersectional_fairness"]["p*q"]["groups"]) == {"a_b & c", "a & b_c", "a & c"}


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "ethiclens", "confidence_level": 0.9, "n_resamples": 150},
        {"policy": "glassalpha", "reference": {"sex": "f"}, "n_resamples": 150, "confidence_level": 0.9},
        {"policy": "glassalpha", "metrics": ["accuracy"], "n_resamples": 150, "confidence_level": 0.9},
    ],
)
def test_an_audit_that_compares_otherwise_is_made_again_from_its_tally(options):
    y_true, y_pred, groups = people()
    made = audit(y_true, y_pred, sensitive_features=groups[["sex"]], random_state=3, **options)
    own = audit(
        y_true,
        y_pred,
        sensitive_features=groups[["sex"]],
        policy="glassalpha",
        confidence_level=0.9,
        n_resamples=150,
        random_state=3,
    )
    found, expected = to_glassalpha(made), to_glassalpha(own)
    assert found["fairness_analysis"] == expected["fairness_analysis"]
    assert found["provenance"] == expected["provenance"]


def test_what_was_not_asked_for_is_null_with_the_reason(made):
    found = to_glassalpha(made)["individual_fairness"]
    assert found["consistency_score"] is found["matched_pairs"] is found["counterfactual_flip"] is None
    assert set(found["reasons"].values()) == {"not asked for"}
    given = to_glassalpha(made, reasons={"counterfactual_flip": "no model"})
    assert given["individual_fairness"]["reasons"]["counterfactual_flip"] == "no model"
    assert "counterfactual flip was not assessed: no model" in given["fairness_summary"]["cautions"]


def test_intervals_can_be_left_out_and_verdicts_stay(made):
    found, usual = (to_glassalpha(made, intervals=i)["fairness_analysis"]["sex"]["metrics"] for i in (False, True))
    for name in METRICS:
        assert found[name]["ci"] is None
        assert "compute_confidence_intervals is false" in found[name]["reason"]
        assert found[name]["status"] == usual[name]["status"]


def test_flips_are_counted_over_all_rows_of_an_attribute():
    """A tree that reads one attribute alone: each row is decided otherwise with its other value, and never with another age."""
    X = pd.DataFrame({"sex": np.repeat([0, 1], 100), "age": np.tile([0, 1, 2], 67)[:200]})
    model = DecisionTreeClassifier().fit(X, X["sex"])
    with pytest.warns(UserWarning, match="age"):
        flips = CounterfactualProbe(["sex", "age"]).fit(X).audit(model, X)
    made = audit(None, [0, 1] * 100, sensitive_features=X[["sex"]], policy="glassalpha", n_resamples=100)
    found = to_glassalpha(made, counterfactual=flips)["individual_fairness"]
    assert [(flip["protected_attr"], flip["disparate_treatment_rate"]) for flip in found["counterfactual_flips"]] == [
        ("sex", 1.0),
        ("age", 0.0),
    ]
    assert found["counterfactual_flip"]["protected_attr"] == "sex"
    assert found["counterfactual_flip"]["n"] == 200
    assert found["counterfactual_flip"]["max_change"] == 1.0


def test_pairs_that_differ_in_several_attributes_name_them_all(whole):
    named = {pair["protected_attr_differs"] for pair in whole["individual_fairness"]["matched_pairs"]}
    assert "sex" in named
    assert named <= {"sex", "race", "sex*race"}


def test_the_sections_say_errors_and_warnings_apart(whole):
    section, pairs = summary_sections(whole)
    lines = list(section.lines)
    heads = [line for line in lines if not line.startswith("- ")]
    assert [head.partition(" ")[0].rstrip(":") for head in heads] == [
        "Assessed",
        "Errors",
        "Warnings",
        "Cautions",
        "To",
    ]
    assert section.title == f"In the words of GlassAlpha: {whole['fairness_summary']['status']}"
    assert {row[0] for row in section.rows} == {"sex", "race"}
    assert len(pairs.rows) == min(8, len(whole["individual_fairness"]["matched_pairs"]))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"consistency": 5}, TypeError, "consistency must be a ConsistencyResult, .*; got int"),
        ({"counterfactual": "x"}, TypeError, "counterfactual must be a CounterfactualAudit, .*; got str"),
        ({"matched_pairs": 5}, TypeError, "matched_pairs must be a DataFrame, .*; got int"),
        ({"matched_pairs": pd.DataFrame({"a": [1]})}, ValueError, r"this one has no columns \['individual_a', "),
        ({"reasons": 5}, TypeError, "reasons must be a mapping of text by name; got int"),
        (
            {"reasons": {"consistency": "no"}},
            ValueError,
            r"reasons explain \['consistency_score', .*; got \['consistency'\]",
        ),
    ],
)
def test_what_is_no_result_about_people_is_refused_by_the_name_of_its_argument(made, given, error, message):
    with pytest.raises(error, match=message):
        to_glassalpha(made, **given)


def test_a_table_without_columns_is_not_reported_as_no_matched_pairs(made):
    with pytest.raises(ValueError, match="matched_pairs must be a DataFrame, as individual.matched_pairs returns it"):
        to_glassalpha(made, matched_pairs=pd.DataFrame())


def test_only_an_audit_is_exported():
    with pytest.raises(TypeError, match="audit must be an Audit"):
        to_glassalpha({"not": "an audit"})


# ------------------------------------------------------------------------------------------------------ configuration
FULL = {
    "audit_profile": "tabular_compliance",
    "reproducibility": {"random_seed": 42},
    "data": {
        "dataset": "german_credit",
        "target_column": "credit",
        "protected_attributes": ["age", "housing"],
        "intersections": ["age*housing"],
    },
    "metrics": {
        "fairness": {
            "metrics": ["demographic_parity", "equal_opportunity", "predictive_parity"],
            "compute_confidence_intervals": True,
            "n_bootstrap": 200,
            "confidence_level": 0.9,
            "thresholds": {"demographic_parity": 0.2, "predictive_parity": 0.15},
            "individual_fairness": {
                "enabled": True,
                "distance_metric": "mixed",
                "similarity_percentile": 80,
                "prediction_threshold": 0.2,
                "max_samples": 100,
            },
        }
    },
}


def changed(path, value):
    """FULL with one key set to another value."""
    copy = json.loads(json.dumps(FULL))
    here = copy
    *parents, last = path.split(".")
    for key in parents:
        here = here.setdefault(key, {})
    here[last] = value
    return copy


def test_every_key_is_read():
    config = read_config(FULL)
    assert (config.dataset, config.path, config.target_column) == ("german-credit", None, "credit")
    assert config.protected_attributes == ("age", "housing")
    assert config.intersections == (("age", "housing"),)
    assert config.random_seed == 42
    assert config.ignored == ("audit_profile",)
    own = config.individual
    assert (own.enabled, own.distance_metric, own.similarity_percentile) == (True, "mixed", 80)
    assert (own.prediction_threshold, own.max_samples) == (0.2, 100)
    policy = config.policy
    assert policy.name == "glassalpha"
    assert (policy.n_resamples, policy.confidence_level, policy.method) == (200, 0.9, "percentile")
    assert {rule.metric: (rule.maximum, rule.basis) for rule in policy.rules} == {
        "selection_rate_difference": (0.2, "gap"),
        "true_positive_rate_difference": (0.05, "gap"),
        "precision_difference": (0.15, "gap"),
    }


def test_defaults_are_those_of_the_policy():
    config = read_config({"data": {"dataset": "compas"}})
    assert {rule.metric: rule.maximum for rule in config.policy.rules} == {
        rule.metric: rule.maximum for rule in POLICIES["glassalpha"].rules
    }
    assert config.policy == POLICIES["glassalpha"].replace(rules=config.policy.rules)
    assert not config.individual.enabled
    assert config.compute_confidence_intervals


def test_round_trip_through_a_mapping():
    config = read_config(FULL)
    again = read_config(config.to_dict())
    assert replace(again, ignored=config.ignored) == config


def test_equalized_odds_limits_both_rates_and_names_are_alike():
    config = read_config(
        changed("metrics.fairness", {"metrics": ["equalized_odds"], "thresholds": {"equalized_odds": 0.2}})
    )
    assert {rule.metric: rule.maximum for rule in config.policy.rules} == {
        "true_positive_rate_difference": 0.2,
        "false_positive_rate_difference": 0.2,
    }
    config = read_config(changed("metrics.fairness", {"metrics": ["tpr", "selection_rate"]}))
    assert {rule.metric: rule.maximum for rule in config.policy.rules} == {
        "selection_rate_difference": 0.1,
        "true_positive_rate_difference": 0.05,
    }


def test_a_section_on_individuals_asks_for_them_unless_it_says_otherwise():
    path = "metrics.fairness.individual_fairness"
    assert read_config(changed(path, {"max_samples": 50})).individual.enabled
    assert not read_config(changed(path, {"max_samples": 50, "enabled": False})).individual.enabled
    assert not read_config(changed(path, None)).individual.enabled


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("data.dataste", "x", "unknown key data.dataste. Did you mean data.dataset?"),
        ("target_column", "x", "unknown key target_column. Did you mean data.target_column?"),
        ("metric", {}, "unknown key metric. Did you mean metrics?"),
        ("zzz", 1, "unknown key zzz; known at the top are ['audit_profile', 'data', 'metrics'"),
        ("metrics.fairness.qqq", 1, "unknown key metrics.fairness.qqq; known in metrics.fairness are"),
        ("model.type", "xgboost", "model.type has no place here: no model is trained here: give the decisions by"),
        ("data", ["a"], "data must hold the keys ['dataset', "),
        ("data.dataset", 5, "data.dataset must be the name of a data set, such as german_credit, or the path"),
        ("data.dataset", None, "data.dataset is missing"),
        ("data.dataset", "data.xlsx", "data.dataset must be the name of a data set"),
        (
            "data.protected_attributes",
            "age",
            "data.protected_attributes must be a list of column names, as text; got 'age'",
        ),
        ("data.protected_attributes", ["age", True], "YAML reads yes, no, on and off as booleans"),
        ("data.intersections", ["age"], "data.intersections must combine different attributes by *"),
        ("data.intersections", ["age*age"], "data.intersections must combine different attributes by *"),
        ("data.intersections", ["age*sex"], "data.intersections names ['sex'], not among data.protected_attributes"),
        ("data.outcome", "good", "data.outcome must be one of ['favorable', 'adverse']; got 'good' (text)."),
        ("data.bands", {"age": [40, 25]}, "data.bands must be a mapping of a column to rising numbers"),
        ("data.prediction_column", "p", "data.prediction_column is for files; german_credit brings its labels"),
        ("metrics.fairness.metrics", [], "metrics.fairness.metrics is empty"),
        ("metrics.fairness.metrics", ["equal_oportunity"], "is no metric here. Did you mean equal_opportunity?"),
        ("metrics.fairness.thresholds", {"demografic_parity": 0.1}, "Did you mean demographic_parity?"),
        ("metrics.fairness.thresholds", {"fpr": 0.1}, "'fpr', which is not among metrics.fairness.metrics"),
        ("metrics.fairness.thresholds", {"demographic_parity": 10}, "its largest gap in [0, 1]"),
        ("metrics.fairness.thresholds", {"demographic_parity": "a"}, "got {'demographic_parity': 'a'} (a mapping)."),
        ("metrics.fairness.n_bootstrap", 10, "n_bootstrap must be a whole number of at least 100; got 10"),
        ("metrics.fairness.n_bootstrap", 1000.0, "must be a whole number of at least 100; got 1000.0 (a number)."),
        ("metrics.fairness.confidence_level", 95, "confidence_level must be a number between 0 and 1, such as 0.95"),
        ("metrics.fairness.compute_confidence_intervals", "yes", "must be true or false; got 'yes' (text)."),
        (
            "metrics.fairness.individual_fairness.distance_metric",
            "cosine",
            "must be one of ['euclidean', 'mahalanobis'",
        ),
        ("metrics.fairness.individual_fairness.similarity_percentile", 100, "must be a number in [0, 100), such as 90"),
        ("metrics.fairness.individual_fairness.prediction_threshold", True, "got True (a boolean)."),
        ("metrics.fairness.individual_fairness.max_samples", 1, "must be a whole number of at least 2; got 1"),
        ("reproducibility.random_seed", -1, "reproducibility.random_seed must be a whole number of at least 0; got -1"),
        ("reproducibility.random_seed", "42", "got '42' (text)."),
    ],
)
def test_errors_name_the_key_what_was_found_and_expected(path, value, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_config(changed(path, value))


def test_all_errors_are_said_at_once():
    wrong = changed("data.outcome", "good")
    wrong["reproducibility"]["random_seed"] = "x"
    wrong["dta"] = {}
    with pytest.raises(ConfigError) as error:
        read_config(wrong, source="audit.yaml")
    said = str(error.value)
    assert said.startswith("audit.yaml: ")
    assert all(key in said for key in ("data.outcome", "reproducibility.random_seed", "unknown key dta"))


def test_thresholds_that_contradict_are_refused():
    wrong = changed(
        "metrics.fairness",
        {
            "metrics": ["equal_opportunity", "equalized_odds"],
            "thresholds": {"equal_opportunity": 0.05, "equalized_odds": 0.1},
        },
    )
    with pytest.raises(ConfigError, match="both limit true_positive_rate_difference"):
        read_config(wrong)


def test_a_file_needs_groups_and_decisions():
    with pytest.raises(ConfigError) as error:
        read_config({"data": {"dataset": "loans.csv", "target_column": "y"}})
    assert "data.protected_attributes is missing: name the columns of loans.csv" in str(error.value)
    assert "data.prediction_column is missing" in str(error.value)
    assert "model.path may name a fitted one" in str(error.value)


def test_paths_are_relative_to_the_configuration(tmp_path):
    config = read_config(
        {
            "data": {"dataset": "loans.csv", "protected_attributes": ["sex"]},
            "model": {"path": "models/m.skops"},
        },
        folder=tmp_path,
    )
    assert config.path == tmp_path / "loans.csv"
    assert config.model_path == tmp_path / "models" / "m.skops"


@pytest.mark.parametrize("found", [None, [], "text", 3])
def test_what_is_no_mapping_is_refused(found):
    with pytest.raises(ConfigError):
        read_config(found)


# ------------------------------------------------------------------------------------------------------------- YAML
@pytest.fixture
def write(tmp_path):
    pytest.importorskip("yaml")

    def to_file(text, name="audit.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


YAML = """
audit_profile: tabular_compliance
reproducibility:
  random_seed: 42  # required
data:
  dataset: german_credit
  target_column: credit
  protected_attributes:
    - age
    - housing
  intersections:
    - "age*housing"
metrics:
  fairness:
    metrics: [demographic_parity, equal_opportunity, predictive_parity]
    compute_confidence_intervals: true
    n_bootstrap: 200
    confidence_level: 0.90
    thresholds:
      demographic_parity: 0.20
      predictive_parity: 0.15
    individual_fairness:
      enabled: true
      distance_metric: mixed
      similarity_percentile: 80
      prediction_threshold: 0.20
      max_samples: 100
"""


def test_yaml_is_read_as_the_mapping_is(write):
    assert load_config(write(YAML)) == replace(read_config(FULL), source="audit.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {dataset: compas\n", "audit.yaml, line 2 is not YAML"),
        ("data:\n  dataset: compas\n  dataset: german_credit\n", "audit.yaml, line 3: the key 'dataset' stands twice"),
        ("", "data.dataset is missing"),
        ("- a\n- b\n", "it must hold the keys"),
        ("data: {dataset: german_credit, protected_attributes: [yes]}\n", "put them in quotes"),
        ("data: !!python/object/apply:os.getcwd []\n", "is not YAML"),
    ],
)
def test_files_that_cannot_be_followed_are_refused_with_the_place(write, text, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_config(write(text))


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "audit.yaml"
    path.write_bytes(b"data: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path)


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'sklearn-ethiclens[config]'")):
        load_config(tmp_path / "audit.yaml")


def test_importing_the_room_needs_no_yaml(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        assert name != "yaml"
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert read_config(FULL).dataset == "german-credit"


# -------------------------------------------------------------------------------------------------------- command line
german_credit_once = cache(german_credit_protocol)  # the model is fitted once


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.setattr(cli, "german_credit_protocol", german_credit_once)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return end.value.code or 0, out, err

    return call


def flat(text):
    return " ".join(text.split())


def test_a_configuration_audits_german_credit(run, write, tmp_path):
    path, target = write(YAML), tmp_path / "out" / "report.json"
    code, out, err = run("audit", "--config", path, "--compat-json", target, "--json", tmp_path / "audit.json")
    assert code == 1  # flagged
    assert "warning: audit.yaml: audit_profile has no effect here." in err
    said = flat(out)
    assert "In the words of GlassAlpha: WARNING" in said
    assert "- age: 2 groups (age < 25 n=149, age >= 25 n=851)" in said
    assert "- age*housing: 6 groups" in said
    assert "Errors (1): - age*housing=age < 25 & own: 5 rows, no conclusion" in said
    assert re.search(r"Warnings \(\d+\): - ", said)
    assert re.search(r"To do \(\d+\): - ", said)
    assert "collect more data for age*housing=age < 25 & own: 5 rows, at least 30 are needed" in said
    assert "counterfactual flip was not assessed: there is no model to ask" in said
    assert "compared are the decisions, since there are no scores" in said
    found = json.loads(target.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(name))
    assert set(found["fairness_analysis"]) == {"age", "housing"}
    assert found["fairness_analysis"]["age"]["metrics"]["selection_rate"]["threshold"] == 0.2
    assert found["fairness_analysis"]["age"]["metrics"]["fpr"]["status"] is None  # not among the metrics
    assert found["intersectional_fairness"]["age*housing"]["groups"]["age < 25_own"]["n"] == 5
    assert found["individual_fairness"]["consistency_score"]["distance_metric"] == "mixed"
    assert "age" not in found["individual_fairness"]["features"]
    assert found["provenance"]["random_seed"] == 42
    stored = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert stored["provenance"]["data"]["config"]["name"] == "audit.yaml"
    assert {section["key"] for section in stored["sections"]} >= {"glassalpha"}
    again = tmp_path / "again.json"
    run("audit", "--config", path, "--compat-json", again, "--quiet")
    assert again.read_bytes() == target.read_bytes()


@pytest.fixture
def loans(tmp_path):
    """A file of 200 rows with decisions, scores and features."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], 200)
    score = np.clip(rng.random(200) * 0.8 + 0.2 * (sex == "m"), 0, 1).round(3)
    frame = pd.DataFrame(
        {
            "sex": sex,
            "age": rng.integers(18, 70, 200),
            "job": rng.choice(["a", "b"], 200),
            "income": rng.integers(10, 90, 200),
            "y": np.where(rng.random(200) < 0.5, "yes", "no"),
            "p": np.where(score > 0.5, "yes", "no"),
            "s": score,
        }
    )
    frame.to_csv(tmp_path / "loans.csv", index=False)
    return frame


LOANS = """
data:
  dataset: loans.csv
  target_column: y
  prediction_column: p
  score_column: s
  pos_label: "yes"
  protected_attributes: [sex, age]
  intersections: ["sex*age"]
  bands: {age: [30, 50]}
metrics:
  fairness:
    n_bootstrap: 100
    individual_fairness: {distance_metric: DISTANCE, similarity_percentile: 95}
"""


@pytest.mark.parametrize("distance", ["euclidean", "mahalanobis", "mixed"])
def test_a_configuration_audits_a_file_beside_it(run, write, loans, tmp_path, distance):
    target = tmp_path / "out.json"
    code, out, _ = run("audit", "--config", write(LOANS.replace("DISTANCE", distance)), "--compat-json", target)
    assert code in (0, 1)
    found = json.loads(target.read_text(encoding="utf-8"))
    groups = found["fairness_analysis"]["age"]["statistical_power"]
    assert set(groups) == {"age < 30", "30 <= age < 50", "age >= 50"}
    rate = (loans["p"] == "yes").groupby(loans["sex"]).mean()
    assert found["fairness_analysis"]["sex"]["metrics"]["selection_rate"]["f"] == pytest.approx(rate["f"])
    own = found["individual_fairness"]
    assert own["features"] == ["job", "income"]
    assert own["scores"] == "the scores of s"
    coded = pd.get_dummies(loans[["job", "income"]], columns=["job"], dtype=float)
    X = loans[["job", "income"]] if distance == "mixed" else coded
    expected = consistency_score(
        X, loans["s"], method="similar_pairs", metric=distance, similarity_percentile=95, n_resamples=100
    )
    assert own["consistency_score"]["score"] == expected.score
    assert own["consistency_score"]["n_similar_pairs"] == expected.n_similar_pairs
    assert own["matched_pairs"]
    assert "Matched pairs" in out


def test_a_stored_model_decides_and_is_asked_about_the_groups(run, write, loans, tmp_path):
    skops = pytest.importorskip("skops.io")
    X = loans[["income"]].assign(male=(loans["sex"] == "m").astype(int))
    X.assign(y=(loans["y"] == "yes").astype(int)).to_csv(tmp_path / "rows.csv", index=False)
    model = LogisticRegression().fit(X, (loans["s"] > 0.5).astype(int))
    skops.dump(model, tmp_path / "m.skops")
    text = """
data: {dataset: rows.csv, target_column: y, protected_attributes: [male]}
model: {path: m.skops}
metrics: {fairness: {n_bootstrap: 100, individual_fairness: {enabled: true}}}
"""
    target = tmp_path / "out.json"
    code, _, err = run("audit", "--config", write(text), "--compat-json", target)
    assert code in (0, 1), err
    found = json.loads(target.read_text(encoding="utf-8"))["individual_fairness"]
    assert found["scores"] == "the probabilities of the model"
    flipped = X.assign(male=1 - X["male"])
    rate = float(np.mean(model.predict(X) != model.predict(flipped)))
    change = np.abs(model.predict_proba(X)[:, 1] - model.predict_proba(flipped)[:, 1])
    assert found["counterfactual_flip"]["protected_attr"] == "male"
    assert found["counterfactual_flip"]["disparate_treatment_rate"] == pytest.approx(rate)
    assert found["counterfactual_flip"]["mean_change"] == pytest.approx(change.mean())
    assert found["counterfactual_flip"]["max_change"] == pytest.approx(change.max())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {dataset: no_such}", "data.dataset must be one of ['german-credit', 'compas', 'acs-income']"),
        (
            "data: {dataset: german_credit, protected_attributes: [gender]}",
            "what GlassAlpha calls 'gender' in german-credit is 'sex' here",
        ),
        (
            "data: {dataset: german_credit, target_column: credit_risk}",
            "what GlassAlpha calls 'credit_risk' in german-credit is 'credit' here",
        ),
        (
            "data: {dataset: german_credit, target_column: y}\nmetrics: {fairness: {n_bootstrap: 100}}",
            "data.target_column must be 'credit', the label of german-credit, or left out; got 'y'",
        ),
        ("data: {dataset: absent.csv, protected_attributes: [a], prediction_column: p}", "there is no file"),
        (
            LOANS.replace("DISTANCE", "mixed, enabled: true") + "  unknown: {}",
            "unknown key metrics.unknown",
        ),
        (
            LOANS.replace("DISTANCE", "mixed").replace("  bands", "  feature_columns: [nope]\n  bands"),
            "has no column ['nope']",
        ),
        (
            LOANS.replace("DISTANCE", "euclidean").replace("  bands", "  feature_columns: [gap]\n  bands"),
            "cannot use missing values, which ['gap'] have. Take metrics.fairness.individual_fairness.distance_metric: mixed",
        ),
        (
            LOANS.replace("DISTANCE", "euclidean").replace("  bands", "  feature_columns: [id]\n  bands"),
            "['id'] hold more than 100 different texts each",
        ),
    ],
)
def test_errors_of_a_configuration_are_one_line(run, write, loans, tmp_path, text, message):
    gap = [None, *range(199)]
    loans.assign(gap=gap, id=[f"n{i}" for i in range(200)]).to_csv(tmp_path / "loans.csv", index=False)
    code, out, err = run("audit", "--config", write(text))
    assert (code, out) == (2, "")
    assert [line for line in err.splitlines() if line.startswith("error: ")]
    assert message in flat(err)


def test_options_that_say_what_to_audit_are_refused_beside_a_configuration(run, write):
    path = write(YAML)
    code, _, err = run("audit", "german-credit", "--seed", "1", "--policy", "eeoc", "--config", path)
    assert code == 2
    assert flat(err) == (
        "error: SOURCE and --policy and --seed cannot be given with --config, which says all that is audited: put it into "
        "audit.yaml, or leave out --config."
    )


def test_every_option_but_those_of_output_is_refused_beside_a_configuration():
    from sklearn_ethiclens._cli_config import BESIDE

    names = {parameter.name for command in [app] for parameter in _parameters(command)}
    assert names >= BESIDE
    assert {"json_file", "html_file", "fail_on", "quiet", "trust", "allow_pickle"} <= BESIDE
    assert not {"source", "seed", "policy", "sensitive", "y_true", "model_file", "n_resamples"} & BESIDE


def _parameters(command):
    import typer.main

    return typer.main.get_command(command).commands["audit"].params


def test_without_source_and_configuration_the_way_out_is_said(run):
    code, _, err = run("audit")
    assert code == 2
    assert err.startswith("error: SOURCE is missing: name one of ['german-credit'")


def test_any_audit_can_be_written_in_the_layout(run, loans, tmp_path):
    target = tmp_path / "out.json"
    words = ("--y-true", "y", "--y-pred", "p", "--pos-label", "yes", "--sensitive", "sex", "--n-resamples", "100")
    code, out, _ = run("audit", tmp_path / "loans.csv", *words, "--compat-json", target)
    assert code in (0, 1)
    assert "In the words of GlassAlpha" not in out
    found = json.loads(target.read_text(encoding="utf-8"))
    assert found["provenance"]["policy"] == "glassalpha"
    assert found["individual_fairness"]["reasons"]["matched_pairs"] == "not asked for"


def test_a_value_that_anchors_blow_up_is_named_in_short(tmp_path):
    pytest.importorskip("yaml")
    lines = ["data: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"k{i}: &{b} [{', '.join([f'*{a}'] * 9)}]"
        for i, (a, b) in enumerate(zip("abcdefghij", "bcdefghijk", strict=True))
    ]
    path = tmp_path / "c.yaml"
    path.write_text("\n".join([*lines, "metrics: *k", ""]), encoding="utf-8")  # 9**11 texts if written out
    with pytest.raises(ValueError, match="metrics must hold the keys") as caught:
        load_config(path)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("path", [None, 5, {"data": {}}, b"a.yaml"])
def test_what_is_no_path_of_a_configuration_is_refused(path):
    with pytest.raises(TypeError, match="path must be the path of a file; got .* read_config takes a mapping"):
        load_config(path)


@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, "{a: " * 3000 + "1" + "}" * 3000])
def test_a_configuration_nested_too_deeply_is_one_line(tmp_path, text):
    pytest.importorskip("yaml")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="^a.yaml nests lists or mappings too deeply"):
        load_config(tmp_path / "a.yaml")
