"""Audits: floors, precedence, references, intersections, headlines, storage; no verdict where nothing was measured."""

import copy
import dataclasses
import json
import pickle
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from statsmodels.stats.proportion import proportion_confint

from sklearn_ethiclens import (
    METRICS,
    MISSING,
    POLICIES,
    Audit,
    Rule,
    Tally,
    Verdict,
    audit,
    audit_tally,
)
from sklearn_ethiclens.exceptions import (
    DegenerateIntervalWarning,
    FairnessGateError,
    MissingGroupsWarning,
    SampleSizeWarning,
    UndefinedMetricWarning,
)
from sklearn_ethiclens.inference import (
    adjust_pvalues,
    miettinen_nurminen_ratio_interval,
    newcombe_interval,
    two_proportion_test,
)

FLAGGED, CLEARED, INCONCLUSIVE = Verdict.FLAGGED, Verdict.CLEARED, Verdict.INCONCLUSIVE
INSUFFICIENT, UNDEFINED = Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED
ETHICLENS = POLICIES["ethiclens"]


def labelled(attribute="group", **groups):
    """The tally of groups given as (tp, fp, fn, tn)."""
    names = ("tp", "fp", "fn", "tn")
    return Tally.from_counts({k: dict(zip(names, v, strict=True)) for k, v in groups.items()}, attribute=attribute)


def selected(attribute="group", **groups):
    """The tally of groups given as (selected, n)."""
    return Tally.from_counts({k: {"n": n, "selected": s} for k, (s, n) in groups.items()}, attribute=attribute)


def quiet(tally, **keywords):
    with warnings.catch_warnings():
        for category in (UndefinedMetricWarning, SampleSizeWarning, DegenerateIntervalWarning):
            warnings.simplefilter("ignore", category)
        return audit_tally(tally, **{"n_resamples": 300, **keywords})


def pick(found, metric, group, attribute=None):
    """The one finding of a metric and group."""
    (finding,) = [
        f
        for f in found.findings
        if f.metric == metric and f.group == group and (attribute is None or f.attribute == attribute)
    ]
    return finding


def two_attributes(seed=0, n=2000):
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2])
    truth = (rng.random(n) < 0.5).astype(int)
    decision = (rng.random(n) < 0.2 + 0.3 * truth + 0.15 * (sex == "m") + 0.1 * (race == "x")).astype(int)
    return truth, decision, {"sex": sex, "race": race}


def tally_of_two(**keywords):
    truth, decision, columns = two_attributes(**keywords)
    return Tally.from_predictions(truth, decision, sensitive_features=columns)


# -------------------------------------------------------------------------------------------------------------- floors
@pytest.mark.parametrize(
    ("n_group", "n_reference", "judged"), [(100, 100, True), (99, 100, False), (100, 99, False), (99, 99, False)]
)
def test_rates_are_judged_from_one_hundred_rows_in_both_groups(n_group, n_reference, judged):
    found = quiet(selected(a=(n_group // 10, n_group), b=(n_reference * 9 // 10, n_reference)), reference="b")
    finding = pick(found, "disparate_impact", "a")
    assert finding.verdict is (FLAGGED if judged else INSUFFICIENT)
    assert finding.low < finding.value < finding.high  # shown all the same
    if not judged:
        short = "a has 99 rows" if n_group < 100 else "b has 99 rows"
        assert f"{short} (floor 100)" in finding.reason


@pytest.mark.parametrize(
    ("a", "b", "judged"),
    [
        ((3, 3, 27, 67), (27, 3, 3, 67), True),
        ((3, 3, 26, 68), (27, 3, 3, 67), False),
        ((3, 3, 27, 67), (26, 3, 3, 68), False),
        ((10, 3, 61, 27), (60, 20, 10, 10), True),
        ((10, 3, 61, 26), (60, 20, 10, 10), False),
        ((10, 3, 61, 27), (60, 20, 10, 9), False),
    ],
)
def test_odds_are_judged_from_thirty_positives_and_negatives_in_both_groups(a, b, judged):
    found = quiet(labelled(a=a, b=b), reference="b")
    finding = pick(found, "equalized_odds_difference", "a")
    assert finding.verdict is (FLAGGED if judged else INSUFFICIENT)
    assert not np.isnan(finding.low)
    if not judged:
        assert "29 positives (floor 30)" in finding.reason or "29 negatives (floor 30)" in finding.reason


def test_floors_of_a_policy_are_those_that_count():
    tally = selected(a=(4, 40), b=(36, 40))
    assert pick(quiet(tally, reference="b"), "disparate_impact", "a").verdict is INSUFFICIENT
    low = ETHICLENS.replace(floors={"total": 40})
    assert pick(quiet(tally, policy=low), "disparate_impact", "a").verdict is FLAGGED


def test_glassalpha_judges_no_metric_of_a_group_of_fewer_than_thirty_rows():
    # 29 rows, 15 positives: TPR .2 against .9
    found = quiet(labelled(a=(3, 7, 12, 7), b=(90, 10, 10, 90)), policy="glassalpha")
    for finding in found.judged:
        assert finding.verdict is INSUFFICIENT, finding
        assert "29 rows (floor 30)" in finding.reason


# ---------------------------------------------------------------------------------------------------------- precedence
def test_undefined_stands_before_floors_and_no_labels_before_undefined():
    found = quiet(labelled(a=(0, 5, 0, 5), b=(90, 10, 10, 90)))
    odds = pick(found, "equalized_odds_difference", "a")
    assert odds.verdict is UNDEFINED
    assert "a has no positive y_true" in odds.reason
    assert np.isnan(odds.low)
    found = quiet(selected(a=(0, 500), b=(0, 500)))
    assert pick(found, "equalized_odds_difference", "b").verdict is INSUFFICIENT
    ratio = pick(found, "disparate_impact", "b")
    assert ratio.verdict is UNDEFINED
    assert "0 in every group" in ratio.reason


def test_a_reference_without_selections_leaves_the_ratio_undefined():
    found = quiet(selected(a=(50, 200), b=(0, 200)), reference="b")
    ratio = pick(found, "disparate_impact", "a")
    assert (ratio.verdict, np.isnan(ratio.value), np.isnan(ratio.low)) == (UNDEFINED, True, True)
    assert "of the reference b is 0" in ratio.reason
    assert found.verdict is INSUFFICIENT


def test_undefined_is_warned_of_once_by_group_and_denominator():
    with pytest.warns(UndefinedMetricWarning, match=r"group: a has no positive y_true") as caught:
        audit_tally(labelled(a=(0, 50, 0, 50), b=(90, 10, 10, 90)), n_resamples=200)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "counts",
    [
        {"a": (0, 50, 0, 50), "b": (90, 10, 10, 90)},  # no positives
        {"a": (50, 0, 50, 0), "b": (90, 10, 10, 90)},  # no negatives
        {"a": (0, 0, 50, 50), "b": (90, 10, 10, 90)},  # nobody selected
        {"a": (50, 50, 0, 0), "b": (90, 10, 10, 90)},  # all selected
        {"a": (0, 0, 60, 0), "b": (90, 10, 10, 90)},  # false negatives only
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_group_with_an_empty_denominator_is_audited_under_every_policy(policy, counts):
    found = quiet(labelled(**counts), policy=policy)
    for finding in found.findings:
        if np.isnan(finding.value):
            assert finding.reason
            assert finding.verdict in (None, UNDEFINED, INSUFFICIENT)


# ---------------------------------------------------------------------------------------------- degenerate intervals
def test_nobody_selected_of_five_thousand_is_flagged_through_miettinen_nurminen():
    found = quiet(selected(a=(0, 5000), b=(500, 5000)))
    finding = pick(found, "disparate_impact", "a")
    assert finding.verdict is FLAGGED
    assert (finding.value, finding.low, finding.high) == (0, 0, 0)
    assert finding.method == "BCa, degenerate; judged by Miettinen-Nurminen"
    high = float(miettinen_nurminen_ratio_interval(0, 5000, 500, 5000).high)
    assert f"[0, {high:.3g}]" in finding.reason


def test_nobody_selected_of_few_is_not_cleared_by_a_point():
    # 0 of 100 against 3 of 100: the ratio is 0 in every replicate where it is defined, its interval reaches above .8
    high = float(miettinen_nurminen_ratio_interval(0, 100, 4, 100).high)
    assert high > 0.8
    finding = pick(quiet(selected(a=(0, 100), b=(4, 100))), "disparate_impact", "a")
    assert finding.verdict is INCONCLUSIVE


def test_a_degenerate_difference_is_judged_by_newcombe():
    policy = ETHICLENS.replace(thresholds={"statistical_parity_difference": 0.1})
    finding = pick(quiet(selected(a=(0, 300), b=(300, 300)), policy=policy), "statistical_parity_difference", "a")
    assert (finding.value, finding.low, finding.high) == (-1, -1, -1)
    assert finding.verdict is FLAGGED
    assert "Newcombe" in finding.method or "Miettinen-Nurminen" in finding.method
    equal = pick(quiet(selected(a=(300, 300), b=(300, 300)), policy=policy), "statistical_parity_difference", "b")
    low, high = (float(v) for v in newcombe_interval(300, 300, 300, 300))
    assert max(abs(low), abs(high)) < 0.1
    assert equal.verdict is CLEARED


def test_degenerate_odds_are_inconclusive():
    found = quiet(labelled(a=(50, 0, 0, 50), b=(50, 0, 0, 50)))
    finding = pick(found, "equalized_odds_difference", "b")
    assert (finding.value, finding.low, finding.high) == (0, 0, 0)
    assert finding.method == "BCa, degenerate"
    assert finding.verdict is INCONCLUSIVE
    assert "no proof of certainty" in finding.reason


@pytest.mark.parametrize("size", [1, 3])
def test_equal_error_rates_of_small_groups_are_not_cleared_on_an_interval_without_width(size):
    # TPR 24/30 and FPR 7/70 in both: BCa of a gap that is exactly 0 lies at its lower end, and does not hold the value
    counts = tuple(size * v for v in (24, 7, 6, 63))
    finding = pick(quiet(labelled(a=counts, b=counts), n_resamples=2000), "equalized_odds_difference", "b")
    assert finding.value == 0
    assert finding.verdict is not CLEARED or finding.low <= finding.value <= finding.high


@pytest.mark.parametrize("cell", [2, 3, 4, 5])
def test_a_handful_of_rows_is_not_cleared_on_an_interval_without_width(cell):
    # equal tables: some replicates of the gap are exactly 0, the others above; both ends of BCa fall on those at 0
    counts = (cell,) * 4
    policy = ETHICLENS.replace(floors={})
    finding = pick(
        quiet(labelled(a=counts, b=counts), policy=policy, n_resamples=2000), "equalized_odds_difference", "b"
    )
    assert finding.verdict is INCONCLUSIVE or finding.high - finding.low > 0.01


def test_a_degenerate_interval_of_a_descriptive_metric_is_marked():
    finding = pick(quiet(selected(a=(0, 300), b=(100, 300))), "selection_rate", "a")
    assert finding.method == "BCa, degenerate"
    assert finding.verdict is None


# ----------------------------------------------------------------------------------------------- verdicts of policies
@pytest.mark.parametrize(
    ("a", "verdict"), [((300, 1000), FLAGGED), ((480, 1000), CLEARED), ((410, 1000), INCONCLUSIVE)]
)
def test_the_four_fifths_ratio_is_judged_on_its_interval(a, verdict):
    finding = pick(quiet(selected(a=a, b=(500, 1000))), "disparate_impact", "a")
    assert finding.verdict is verdict
    assert finding.threshold == 0.8


def test_over_selection_is_flagged_only_when_both_directions_are_judged():
    tally = selected(a=(400, 500), b=(200, 500))
    assert pick(quiet(tally, reference="b"), "disparate_impact", "a").verdict is CLEARED
    both = ETHICLENS.replace(direction="both")
    assert pick(quiet(tally, reference="b", policy=both), "disparate_impact", "a").verdict is FLAGGED


def test_thresholds_of_a_policy_of_ones_own_judge():
    tally = labelled(a=(300, 50, 200, 450), b=(310, 60, 190, 440))
    policy = ETHICLENS.replace(thresholds={"accuracy_difference": 0.10, "equalized_odds_difference": 0.0})
    found = quiet(tally, policy=policy)
    assert {f.metric for f in found.judged} == {
        "disparate_impact",
        "equalized_odds_difference",
        "accuracy_difference",
    }
    assert pick(found, "accuracy_difference", "a").verdict is CLEARED
    assert pick(found, "equalized_odds_difference", "a").threshold == 0.0


def test_other_metrics_are_descriptive():
    found = quiet(labelled(a=(30, 50, 70, 150), b=(90, 60, 10, 140)))
    for finding in found.findings:
        judged = finding.metric in ("disparate_impact", "equalized_odds_difference")
        assert (finding.verdict is not None) == judged == (finding.threshold is not None)


def test_assessor_fails_where_a_gap_is_elevated():
    # dTPR .06, all else equal
    found = quiet(labelled(a=(470, 100, 30, 400), b=(500 - 60, 100, 60, 400)), policy="assessor")
    assert found.references[0].group == "a"
    assert pick(found, "equal_opportunity_difference", "b").verdict is INCONCLUSIVE
    assert not found.flagged
    assert found.verdict is INCONCLUSIVE
    assert found.status == "FAIL"
    assert found.fails(["flagged"])
    with pytest.raises(FairnessGateError):
        found.raise_if_flagged()


def test_assessor_judges_the_absolute_parity_difference():
    found = quiet(selected(a=(500, 1000), b=(570, 1000)), policy="assessor")
    assert pick(found, "statistical_parity_difference", "b").verdict is INCONCLUSIVE
    found = quiet(selected(a=(570, 1000), b=(500, 1000)), policy="assessor")
    assert pick(found, "statistical_parity_difference", "b").verdict is INCONCLUSIVE
    found = quiet(selected(a=(500, 1000), b=(610, 1000)), policy="assessor")
    assert pick(found, "statistical_parity_difference", "b").verdict is FLAGGED


def test_four_fifths_names_the_two_extremes():
    # selection .4 .5 .6, TPR .5 .6 .58, FPR .30 .40 .62
    found = quiet(
        labelled(a=(50, 30, 50, 70), b=(60, 40, 40, 60), c=(58, 62, 42, 38)), policy="four_fifths", reference="b"
    )
    ratio = next(f for f in found.findings if f.metric == "demographic_parity_ratio")
    assert (ratio.group, ratio.reference, ratio.verdict) == ("a", "c", FLAGGED)
    assert ratio.value == pytest.approx(0.4 / 0.6)
    tpr = next(f for f in found.findings if f.metric == "equalized_odds_tpr_gap")
    assert (tpr.group, tpr.reference) == ("a", "b")
    assert tpr.value == pytest.approx(0.1)
    assert tpr.verdict is CLEARED  # inclusive
    fpr = next(f for f in found.findings if f.metric == "equalized_odds_fpr_gap")
    assert (fpr.group, fpr.reference, fpr.verdict) == ("a", "c", FLAGGED)
    assert len(found.judged) == 3


def test_a_number_of_all_groups_that_is_undefined_compares_no_group_with_itself():
    found = quiet(selected(a=(400, 500), b=(200, 500)), policy="four_fifths")
    for finding in found.judged:
        assert finding.group != finding.reference, finding


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((30, 100), (60, 100), FLAGGED),  # .5, z = -4.3
        ((4, 20), (30, 100), INCONCLUSIVE),  # .67, not significant
        ((4500, 5000), (4900, 5000), INCONCLUSIVE),  # .92, significant
        ((48, 100), (50, 100), CLEARED),
    ],
)
def test_eeoc_needs_ratio_and_significance(a, b, verdict):
    assert pick(quiet(selected(a=a, b=b), policy="eeoc"), "disparate_impact", "a").verdict is verdict


def test_eeoc_uses_fishers_test_where_an_expected_cell_is_small():
    finding = pick(quiet(selected(a=(0, 20), b=(12, 60)), policy="eeoc"), "disparate_impact", "a")
    assert finding.test == "fisher"
    assert finding.pvalue == pytest.approx(float(two_proportion_test(0, 20, 12, 60).pvalue))
    assert (finding.verdict is FLAGGED) == (finding.pvalue < 0.05)


def test_eeoc_notes_that_one_more_hire_would_reverse_it():
    assert "flip-flop" in pick(quiet(selected(a=(3, 20), b=(16, 80)), policy="eeoc"), "disparate_impact", "a").reason
    assert (
        "flip-flop"
        not in pick(quiet(selected(a=(30, 100), b=(60, 100)), policy="eeoc"), "disparate_impact", "a").reason
    )


def test_ll144_lists_small_and_unknown_categories_and_judges_nothing():
    tally = selected(a=(100, 500), b=(200, 480), c=(18, 19)) + Tally.from_counts({MISSING: {"n": 300, "selected": 300}})
    found = quiet(tally, policy="ll144")
    assert found.verdict is None
    assert found.status == "NOT JUDGED"
    assert not found.judged
    assert found.references[0].group == "b"  # c has the highest rate, 1.9%
    assert pick(found, "disparate_impact", "a").value == pytest.approx((100 / 500) / (200 / 480))
    assert np.isnan(pick(found, "disparate_impact", "c").value)
    assert "left out" in pick(found, "disparate_impact", "c").reason
    assert "unknown" in pick(found, "disparate_impact", MISSING).reason
    assert pick(found, "selection_rate", "c").value == pytest.approx(18 / 19)
    ratio = next(f for f in found.findings if f.metric == "demographic_parity_ratio")
    assert (ratio.group, ratio.reference) == ("a", "b")


def test_ll144_keeps_a_category_of_two_percent():
    found = quiet(selected(a=(400, 490), b=(200, 490), c=(10, 20)), policy="ll144")
    assert pick(found, "disparate_impact", "c").value == pytest.approx(0.5 / (400 / 490))


@pytest.mark.parametrize(
    "tally",
    [
        Tally.from_counts({f"g{i:02}": {"n": 10, "selected": 5} for i in range(60)}),
        Tally.from_counts({MISSING: {"n": 100, "selected": 50}}),
    ],
    ids=["all under 2%", "unknown only"],
)
def test_ll144_with_nobody_to_compare_lists_the_rates(tally):
    found = quiet(tally, policy="ll144")
    assert all(np.isnan(f.value) for f in found.findings if METRICS[f.metric].kind != "group")
    assert found.verdict is None


# ----------------------------------------------------------------------------------------------------------- reference
def reference_of(tally, **keywords):
    return quiet(tally, **keywords).references[0]


def test_the_reference_has_the_highest_rate_above_the_floor():
    tally = selected(a=(50, 99), b=(40, 100), c=(30, 100))
    reference = reference_of(tally)
    assert (reference.group, reference.given, reference.sufficient) == ("b", False, True)
    assert reference_of(tally, outcome="adverse").group == "c"
    assert reference_of(tally, policy="eeoc").group == "a"
    given_one = reference_of(tally, reference="c")
    assert (given_one.group, given_one.given) == ("c", True)


def test_ties_go_to_the_larger_group_then_to_the_first():
    assert reference_of(selected(a=(100, 200), b=(200, 400), c=(50, 400))).group == "b"
    assert reference_of(selected(a=(100, 200), b=(100, 200))).group == "a"


def test_the_missing_bucket_is_never_chosen():
    missing = Tally.from_counts({MISSING: {"n": 1000, "selected": 900}})
    for policy in POLICIES:
        assert reference_of(selected(a=(50, 200), b=(60, 300)) + missing, policy=policy).group != MISSING
    assert reference_of(selected(a=(50, 200)) + missing, reference=MISSING).group is MISSING


def test_the_missing_bucket_is_not_chosen_where_nobody_meets_the_floor():
    missing = Tally.from_counts({MISSING: {"n": 50, "selected": 40}})
    reference = reference_of(selected(a=(5, 20), b=(10, 30)) + missing)
    assert (reference.group, reference.sufficient) == ("b", False)


def test_the_missing_bucket_is_not_chosen_for_a_metric_that_no_other_group_has():
    tally = labelled(a=(0, 50, 0, 50), b=(0, 40, 0, 60)) + Tally.from_counts(
        {MISSING: {"tp": 300, "fp": 10, "fn": 10, "tn": 90}}
    )
    for finding in quiet(tally, policy="glassalpha").findings:
        if METRICS[finding.metric].kind == "pair":
            assert finding.reference is not MISSING, finding


def test_nobody_above_the_floor_leaves_all_insufficient():
    found = quiet(labelled(a=(10, 5, 5, 20), b=(15, 5, 10, 60), c=(10, 0, 5, 5)))
    reference = found.references[0]
    assert (reference.group, reference.sufficient) == ("b", False)
    assert {f.verdict for f in found.judged if f.metric == "disparate_impact"} == {INSUFFICIENT}
    assert {f.verdict for f in found.judged} == {INSUFFICIENT}
    assert any("no group of group meets the floor" in note for note in found.notes)
    assert found.status == "NOT ASSESSABLE"
    assert not found.assessable


def test_the_first_reference_is_the_first_category_in_order():
    assert reference_of(selected(b=(50, 200), a=(10, 200)), policy="assessor").group == "a"


def test_highest_value_chooses_a_reference_for_each_metric():
    # selection a .5 b .4; TPR a .6 b .7; FPR a .4 b .1
    found = quiet(labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90)), policy="glassalpha")
    references = {f.metric: f.reference for f in found.judged}
    assert references == {
        "selection_rate_difference": "a",
        "true_positive_rate_difference": "b",
        "false_positive_rate_difference": "a",
    }
    assert all(f.value <= 0 for f in found.judged)
    given_one = quiet(labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90)), policy="glassalpha", reference="b")
    assert {f.reference for f in given_one.judged} == {"b"}


def test_a_reference_that_does_not_occur_is_refused_as_it_was_given():
    with pytest.raises(ValueError, match=r"reference of group must be one of \['a', 'b'\]; got 'm'\."):
        audit_tally(selected(a=(5, 9), b=(5, 9)), reference="m")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("f", "reference must name its attribute, as in {'sex': ...}"),
        ({"age": "f"}, "reference names 'age'; audited are"),
        ({("sex", "race"): ("f", "x")}, "audited are"),
        ({"sex": "x"}, r"reference of sex must be one of \['f', 'm'\]; got 'x'"),
    ],
)
def test_a_wrong_reference_is_refused(reference, message):
    with pytest.raises(ValueError, match=message):
        audit_tally(tally_of_two(), reference=reference)


def test_an_intersection_has_a_reference_of_its_own_unless_given():
    tally = tally_of_two()
    found = quiet(tally, intersections=["sex*race"], reference={"sex": "f"})
    assert [(r.attribute, r.group, r.given) for r in found.references] == [
        ("sex", "f", True),
        ("race", "x", False),
        (("sex", "race"), ("m", "x"), False),
    ]
    for key in (("sex", "race"), "sex*race"):
        found = quiet(tally, intersections=["sex*race"], reference={key: ("f", "z")})
        assert (found.references[2].group, found.references[2].given) == (("f", "z"), True)


# -------------------------------------------------------------------------------------------------------- intersections
def three_attributes():
    truth, decision, columns = two_attributes()
    return Tally.from_predictions(
        truth, decision, sensitive_features={**columns, "old": np.arange(len(truth)) % 2 == 0}
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ([], []),
        ("all", [("sex", "race"), ("sex", "old"), ("race", "old")]),
        (2, [("sex", "race"), ("sex", "old"), ("race", "old")]),
        (3, [("sex", "race"), ("sex", "old"), ("race", "old"), ("sex", "race", "old")]),
        (9, [("sex", "race"), ("sex", "old"), ("race", "old"), ("sex", "race", "old")]),
        ("sex*race", [("sex", "race")]),
        ("race * sex", [("race", "sex")]),
        ("sex*race,race*old", [("sex", "race"), ("race", "old")]),
        (["sex*race"], [("sex", "race")]),
        ([("sex", "old"), ("sex", "old")], [("sex", "old")]),
        ("sex*race,race*sex", [("sex", "race")]),
        (("sex", "old"), [("sex", "old")]),
        ([["sex", "race", "old"]], [("sex", "race", "old")]),
    ],
)
def test_intersections_are_named_in_many_ways(given, expected):
    found = quiet(three_attributes(), intersections=given, metrics=["selection_rate"])
    assert list(found.plan) == [("sex",), ("race",), ("old",), *expected]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (1, "at least 2 attributes; got 1"),
        (0, "at least 2 attributes; got 0"),
        ([("sex", "age")], r"intersections name \['age'\]; the sensitive features are \['sex', 'race', 'old'\]"),
        ("sex*age", r"intersections name \['age'\]"),
        ([("sex",)], "at least 2 different attributes"),
        ([("sex", "sex")], "at least 2 different attributes"),
        (True, "intersections"),
        (3.5, "intersections"),
    ],
)
def test_wrong_intersections_are_refused(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        audit_tally(three_attributes(), intersections=given)


def test_groups_of_an_intersection_are_tuples_and_only_those_that_occur():
    columns = {"sex": ["f", "m"] * 200, "race": ["x", "y"] * 200}
    tally = Tally.from_predictions(None, [1, 1, 0, 0] * 100, sensitive_features=columns)
    found = quiet(tally, intersections="all", policy="eeoc")
    groups = {f.group for f in found.findings if f.attribute == ("sex", "race") and f.metric == "selection_rate"}
    assert groups == {("f", "x"), ("m", "y")}


def test_small_intersections_are_advised_against():
    found = quiet(tally_of_two(n=150), intersections="all")
    assert any(note.startswith("sex & race: 150 rows for 6 cells; at least 200 are advised") for note in found.notes)
    many = quiet(tally_of_two(n=150), intersections="all", policy="four_fifths")
    assert any("fewer than 50 rows in an intersection" in note for note in many.notes)


# ----------------------------------------------------------------------------------------------------------- no labels
@pytest.mark.parametrize("policy", POLICIES)
def test_without_labels_no_error_metric_is_ever_a_number(policy):
    found = quiet(selected(a=(300, 500), b=(200, 500), c=(10, 20)), policy=policy)
    for finding in found.findings:
        if METRICS[finding.metric].uses_labels:
            assert np.isnan([finding.value, finding.low, finding.high, finding.pvalue, finding.power]).all()
            assert finding.verdict is INSUFFICIENT
            assert finding.reason == "no labels"
    assert set(found.rates()["rate"]) == {"selection_rate"}
    assert found.composite.value is None


def test_without_labels_nothing_is_warned_of():
    found = audit(None, [1, 0, 1, 1] * 100, sensitive_features=["a", "b"] * 200, n_resamples=200)
    assert not found.tally.labelled


# ------------------------------------------------------------------------------------------------------- single groups
def test_a_single_group_is_described_and_compared_with_nobody():
    with pytest.warns(SampleSizeWarning, match="group has one group only"), pytest.warns(UndefinedMetricWarning):
        found = audit_tally(labelled(a=(50, 20, 30, 100)), n_resamples=200, policy=ETHICLENS)
    assert found.verdict is INSUFFICIENT
    assert found.status == "NOT ASSESSABLE"
    assert not found.assessable
    assert found.fails(["insufficient"])
    assert not found.fails(["flagged"])
    assert pick(found, "selection_rate", "a").value == 0.35
    assert "there is no comparison" in found.composite.reason


# ------------------------------------------------------------------------------------------------------------ headlines
def test_the_composite_is_that_of_the_worst_comparison():
    found = quiet(labelled(a=(200, 50, 300, 450), b=(250, 60, 250, 440), c=(150, 30, 350, 470)))
    scores = {f.group: f.value for f in found.findings if f.metric == "composite_bias_score"}
    assert found.composite.value == min(scores.values()) == scores["c"]
    assert (found.composite.attribute, found.composite.group, found.composite.reference) == ("group", "c", "b")
    assert found.composite.band == "High Risk" if scores["c"] < 0.6 else "Medium Risk"
    ratios = {f.group: f.value for f in found.findings if f.metric == "disparate_impact"}
    assert found.minimum_disparate_impact.value == min(ratios.values())
    assert found.minimum_disparate_impact.band is None


@pytest.mark.parametrize(
    ("tally", "composite", "minimum"),
    [
        (labelled(a=(20, 5, 5, 69), b=(50, 60, 50, 440)), "floor 100", "floor 100"),
        (labelled(a=(20, 30, 5, 169), b=(50, 60, 50, 440)), "positives (floor 30)", None),
        (labelled(a=(0, 30, 0, 169), b=(50, 60, 50, 440)), "UNDEFINED", None),
        (labelled(a=(0, 0, 60, 160), b=(0, 0, 50, 440)), "UNDEFINED", "UNDEFINED"),
        (selected(a=(30, 200), b=(50, 200)), "no labels", None),
    ],
)
def test_headlines_are_withheld_with_the_reason(tally, composite, minimum):
    found = quiet(tally)
    assert found.composite.value is None
    assert found.composite.band is None
    assert found.composite.reason.startswith("withheld: ")
    assert composite in found.composite.reason
    assert (found.minimum_disparate_impact.value is None) == (minimum is not None)
    assert (minimum or "") in found.minimum_disparate_impact.reason


def test_a_headline_that_was_not_audited_says_so():
    found = quiet(selected(a=(30, 200), b=(50, 200)), policy="four_fifths", metrics=["selection_rate"])
    for headline in (found.composite, found.minimum_disparate_impact):
        assert headline.value is None
        assert "not audited" in headline.reason


def test_intersections_never_enter_a_headline():
    tally = tally_of_two()
    with_pairs, alone = quiet(tally, intersections="all"), quiet(tally)
    assert with_pairs.composite == alone.composite
    assert with_pairs.minimum_disparate_impact == alone.minimum_disparate_impact
    worst = min(f.value for f in with_pairs.findings if f.metric == "disparate_impact")
    assert worst < with_pairs.minimum_disparate_impact.value


# ----------------------------------------------------------------------------------------------------------- p-values
@pytest.mark.parametrize("multiplicity", ["holm", "bh"])
def test_the_family_of_a_metric_is_all_its_comparisons_intersections_included(multiplicity):
    found = quiet(tally_of_two(), intersections="all", multiplicity=multiplicity)
    for metric in ("selection_rate_difference", "disparate_impact", "equalized_odds_difference"):
        family = [f for f in found.findings if f.metric == metric]
        assert len(family) == 1 + 2 + 5
        expected = adjust_pvalues([f.pvalue for f in family], multiplicity)
        np.testing.assert_allclose([f.pvalue_adjusted for f in family], expected, rtol=1e-12)


def test_the_test_of_a_comparison_is_that_of_its_rate():
    found = quiet(labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90), c=(1, 1, 2, 6)), reference="a")
    for group, (tp, fp, fn, tn) in {"b": (70, 10, 30, 90), "c": (1, 1, 2, 6)}.items():
        expected = two_proportion_test(tp + fp, tp + fp + fn + tn, 100, 200)
        for metric in ("disparate_impact", "statistical_parity_difference", "selection_rate_ratio"):
            finding = pick(found, metric, group)
            assert finding.pvalue == pytest.approx(float(expected.pvalue), rel=1e-12)
            assert finding.test == expected.test
        tpr = two_proportion_test(tp, tp + fn, 60, 100).pvalue
        fpr = two_proportion_test(fp, fp + tn, 40, 100).pvalue
        sidak = 1 - (1 - min(float(tpr), float(fpr))) ** 2
        assert pick(found, "equalized_odds_difference", group).pvalue == pytest.approx(sidak, rel=1e-12)
        assert np.isnan(pick(found, "average_odds_difference", group).pvalue)
        assert np.isnan(pick(found, "theil_index_difference", group).pvalue)
    chi2 = next(t for t in found.tests if t["rate"] == "favorable_rate")
    overall = next(f for f in found.findings if f.metric == "demographic_parity_difference")
    assert overall.pvalue == chi2["pvalue"]


# --------------------------------------------------------------------------------------------------- outcome, polarity
def test_an_adverse_outcome_turns_the_judged_ratio_over():
    tally = labelled(a=(60, 40, 40, 60), b=(80, 50, 20, 50))
    found = quiet(tally, outcome="adverse")
    assert found.references[0].group == "a"
    assert pick(found, "disparate_impact", "b").value == pytest.approx(0.35 / 0.5)
    assert pick(found, "selection_rate_ratio", "b").value == pytest.approx(0.65 / 0.5)
    assert pick(found, "selection_rate_ratio", "b").verdict is None
    assert pick(found, "favorable_rate", "b").value == pytest.approx(0.35)
    assert pick(found, "true_positive_rate", "b").value == pytest.approx(0.8)
    assert not [f for f in quiet(tally).findings if f.metric == "favorable_rate"]
    assert found.outcome == "adverse"


def test_a_wrong_outcome_is_refused():
    with pytest.raises(ValueError, match="outcome must be one of"):
        audit_tally(selected(a=(5, 9), b=(5, 9)), outcome="good")


# --------------------------------------------------------------------------------------------------------------- tables
def test_rates_have_wilson_intervals():
    found = quiet(tally_of_two(), intersections="all", confidence_level=0.9)
    rates = found.rates()
    assert len(rates) == (2 + 3 + 6) * 11
    defined = rates[rates["denominator"] > 0]
    low, high = proportion_confint(defined["count"], defined["denominator"], alpha=0.1, method="wilson")
    np.testing.assert_allclose(defined["low"], low, atol=1e-12)
    np.testing.assert_allclose(defined["high"], high, atol=1e-12)
    np.testing.assert_allclose(defined["value"], defined["count"] / defined["denominator"], atol=1e-15)


def test_rates_of_an_empty_denominator_are_nan():
    rates = quiet(labelled(a=(0, 50, 0, 50), b=(90, 10, 10, 90))).rates()
    row = rates[(rates["group"] == "a") & (rates["rate"] == "true_positive_rate")].iloc[0]
    assert np.isnan([row["value"], row["low"], row["high"]]).all()
    assert row["denominator"] == 0


def test_disparities_name_the_extremes_and_the_gap_in_percent_of_the_smallest():
    found = quiet(labelled(a=(57, 0, 43, 100), b=(65, 10, 35, 90), c=(60, 10, 40, 90)))
    table = found.disparities().set_index("metric")
    tpr = table.loc["true_positive_rate"]
    assert (tpr["max_group"], tpr["min_group"]) == ("b", "a")
    assert tpr["disparity"] == pytest.approx(0.08)
    assert tpr["disparity_pct"] == pytest.approx(100 * 0.08 / 0.57)
    assert table.loc["false_positive_rate", "disparity_pct"] == np.inf
    assert tpr["threshold"] == 0.1
    assert tpr["status"] in [str(v) for v in Verdict]


@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
def test_disparities_carry_the_status_of_every_judged_rate(outcome):
    found = quiet(labelled(a=(10, 5, 190, 200), b=(150, 150, 50, 50)), outcome=outcome)
    table = found.disparities()
    judged = {f.metric: f for f in found.judged}
    assert judged["disparate_impact"].verdict is FLAGGED
    row = table[table["metric"] == ("selection_rate" if outcome == "favorable" else "favorable_rate")].iloc[0]
    assert (row["threshold"], row["status"]) == (0.8, "FLAGGED")


def test_frame_has_one_row_a_finding():
    found = quiet(tally_of_two(), intersections="all")
    frame = found.frame()
    assert len(frame) == len(found.findings)
    assert frame["verdict"].dropna().isin([str(v) for v in Verdict]).all()
    assert "sex & race" in set(frame["attribute"])
    assert list(frame.columns[:4]) == ["attribute", "group", "reference", "metric"]


def test_every_metric_stands_for_every_group_or_comparison():
    found = quiet(labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90), c=(50, 10, 50, 90)))
    number = {"group": 3, "pair": 2, "overall": 1}
    for name, metric in METRICS.items():
        expected = 0 if name == "favorable_rate" else number[metric.kind]
        assert sum(f.metric == name for f in found.findings) == expected
    few = quiet(labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90)), metrics=["f1", "demographic_parity"])
    assert {f.metric for f in few.findings} == {
        "f1",
        "demographic_parity_difference",
        "disparate_impact",
        "equalized_odds_difference",
    }


def test_denominators_are_those_of_the_metric():
    found = quiet(labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90)), reference="a")
    assert pick(found, "equalized_odds_difference", "b").denominators == {
        "positives": (100, 100),
        "negatives": (100, 100),
    }
    assert pick(found, "precision", "b").denominators == {"selected": 80}
    assert pick(found, "precision_ratio", "b").denominators == {"selected": (80, 100)}
    assert (pick(found, "f1_ratio", "b").n, pick(found, "f1_ratio", "b").n_reference) == (200, 200)


@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
@pytest.mark.parametrize("policy", ["ethiclens", "glassalpha"])
def test_cross_check_with_fairlearn_finds_no_deviation(policy, outcome):
    found = quiet(tally_of_two(), intersections="all", policy=policy, outcome=outcome)
    table = found.cross_check()
    assert (table["compared"] > 0).all()
    assert table["largest_deviation"].max() < 1e-12
    assert {"selection_rate", "precision_ratio", "accuracy_difference"} <= set(table["metric"])


@pytest.mark.parametrize(
    "tally",
    [
        labelled(a=(0, 0, 50, 100), b=(90, 10, 10, 90)),
        labelled(a=(0, 50, 0, 100), b=(90, 10, 10, 90)),
        labelled(a=(50, 0, 50, 0), b=(90, 10, 10, 90)),
        selected(a=(50, 100), b=(30, 100)),
        labelled(a=(0, 0, 0, 0), b=(90, 10, 10, 90), c=(80, 10, 20, 90)),
    ],
    ids=["nobody selected", "no positives", "no negatives", "no labels", "no rows"],
)
def test_cross_check_leaves_out_what_is_undefined_without_a_warning(tally):
    table = quiet(tally).cross_check()
    assert table["largest_deviation"].max() < 1e-12


# ------------------------------------------------------------------------------------------------------------ the gate
def test_the_gate_raises_with_the_scorecard():
    found = quiet(selected(a=(100, 500), b=(250, 500)))
    with pytest.raises(FairnessGateError) as caught:
        found.raise_if_flagged()
    assert isinstance(caught.value, AssertionError)
    assert found.report("text") in str(caught.value)
    assert found.fails("flagged")


def test_the_gate_passes_what_is_not_flagged_unless_asked():
    found = quiet(labelled(a=(205, 100, 295, 400), b=(250, 100, 250, 400)))
    assert found.verdict is INCONCLUSIVE
    found.raise_if_flagged()
    for also in ("inconclusive", ["inconclusive"]):
        with pytest.raises(FairnessGateError):
            found.raise_if_flagged(also=also)
    assert not found.fails(["insufficient"])
    assert found.status == "PASS WITH CONDITIONS"
    assert found.conditions
    assert all(f.verdict is INCONCLUSIVE for f in found.conditions)


def test_a_cleared_audit_passes():
    found = quiet(labelled(a=(5000, 1000, 5000, 9000), b=(5000, 1001, 5000, 8999)))
    assert found.verdict is CLEARED
    assert found.status == "PASS"
    assert not found.conditions
    assert not found.fails(["flagged", "inconclusive", "insufficient"])


def test_undefined_comparisons_are_insufficient_for_the_gate():
    found = quiet(selected(a=(50, 200), b=(0, 200)), reference="b")
    assert found.fails(["insufficient"])
    with pytest.raises(FairnessGateError):
        found.raise_if_flagged(also=["insufficient"])


def test_an_unknown_state_is_refused():
    with pytest.raises(ValueError, match=r"states must be among \['flagged', 'inconclusive', 'insufficient'\]"):
        quiet(selected(a=(50, 200), b=(60, 200))).fails(["bad"])


# -------------------------------------------------------------------------------------------------------------- storing
def stored_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingGroupsWarning)
        truth, decision, columns = two_attributes(n=600)
        mixed = np.array([30, "30", None, True, 0.5, "é"], dtype=object)[np.arange(600) % 6]
        days = pd.Series(pd.to_datetime(["2020-01-01", "2019-05-05"])).repeat(300)
        bands = pd.cut(pd.Series(np.arange(600) % 40), [-1, 5, 10, 20, 40])
        make = Tally.from_predictions
        return {
            "two": (make(truth, decision, sensitive_features=columns), {"intersections": "all"}),
            "mixed": (
                make(truth, decision, sensitive_features={"a": mixed, "sex": columns["sex"]}),
                {"intersections": 2},
            ),
            "days": (make(truth, decision, sensitive_features={"d": days.to_numpy()}), {}),
            "bands": (make(truth, decision, sensitive_features={"age": bands}), {"policy": "assessor"}),
            "given": (make(truth, decision, sensitive_features=columns), {"reference": {"sex": "f"}}),
            "unlabelled": (make(None, decision, sensitive_features=columns), {"policy": "four_fifths"}),
            "undefined": (labelled(a=(0, 50, 0, 50), b=(0, 0, 20, 90)), {"policy": "glassalpha"}),
            "single": (labelled(a=(10, 50, 10, 50)), {"policy": "ll144"}),
            "own": (
                make(truth, decision, sensitive_features=columns),
                {"policy": ETHICLENS.replace(name="own", thresholds={"f1_ratio": 0.9}), "outcome": "adverse"},
            ),
        }


STORED = stored_cases()


@pytest.mark.parametrize("case", STORED)
def test_an_audit_is_stored_and_read_byte_for_byte(case):
    tally, keywords = STORED[case]
    found = quiet(tally, **keywords)
    text = found.to_json()
    back = Audit.from_json(text)
    assert back.to_json() == text
    assert back == found
    assert Audit.from_json(text.encode()).to_json(indent=2) == found.to_json(indent=2)
    assert (back.verdict, back.status, back.plan) == (found.verdict, found.status, found.plan)
    assert back.tally.digest() == found.tally.digest() == found.provenance["data"]["tally_sha256"]
    pd.testing.assert_frame_equal(back.rates().drop(columns="group"), found.rates().drop(columns="group"))
    assert [f.verdict for f in back.findings] == [f.verdict for f in found.findings]
    assert json.loads(text)["schema"] == "sklearn-ethiclens/audit/1"


@pytest.mark.parametrize("case", STORED)
@pytest.mark.parametrize("policy", ["ethiclens", "assessor"])
def test_rejudging_equals_a_fresh_audit_also_from_store(case, policy):
    tally, keywords = STORED[case]
    first = quiet(tally, **keywords)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = first.rejudge(policy)
        from_store = Audit.from_json(first.to_json()).rejudge(policy)
        fresh = audit_tally(tally, **{**keywords, "policy": policy})
    assert again == fresh
    assert again.to_json() == fresh.to_json()
    assert from_store.to_json() == fresh.to_json()


def test_rejudging_some_metrics_equals_a_fresh_audit_of_them():
    tally = tally_of_two()
    again = quiet(tally, metrics=["accuracy"]).rejudge("eeoc")
    fresh = audit_tally(tally, metrics=["accuracy"], policy="eeoc")
    assert {f.metric for f in again.findings} == {f.metric for f in fresh.findings}


def test_rejudging_keeps_what_was_added_of_the_data():
    found = quiet(tally_of_two()).annotate(name="adult", sha256="0" * 64)
    again = found.rejudge("eeoc")
    assert again.provenance["data"]["name"] == "adult"
    assert again.policy.name == "eeoc"
    with pytest.raises(ValueError, match="policy must be a Policy or one of"):
        found.rejudge("nothing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "this is no stored audit"),
        ("{}", "a stored audit has the schema 'sklearn-ethiclens/audit/1'; got None"),
        ('{"schema": "other/2"}', "got 'other/2'"),
        ('{"schema": "sklearn-ethiclens/audit/1"}', "damaged, or of another version of the package: it lacks 'tally'"),
        ("[1]", "got None"),
    ],
)
def test_what_is_no_stored_audit_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Audit.from_json(text)


@pytest.mark.parametrize(
    "remake", [lambda a: pickle.loads(pickle.dumps(a)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deep"]
)
def test_an_audit_is_pickled_and_copied(remake):
    found = quiet(*STORED["mixed"][:1], **STORED["mixed"][1])
    back = remake(found)
    assert back == found
    assert back.to_json() == found.to_json()
    assert hash(back) == hash(found)
    assert any(f.group is MISSING for f in back.findings)


def test_an_audit_is_frozen_and_equal_to_its_like():
    tally = tally_of_two()
    found = quiet(tally)
    with pytest.raises(AttributeError):
        found.findings = ()
    assert found == quiet(tally)
    assert found != quiet(tally, random_state=1)
    assert found != quiet(tally, policy="eeoc")
    assert found != "an audit"


def test_findings_are_one_tuple_however_often_they_are_read():
    found = quiet(tally_of_two())
    assert type(found.findings) is tuple
    assert found.findings is found.findings
    fresh = quiet(tally_of_two())
    noted = fresh.annotate(name="loans")
    assert noted.findings is fresh.findings
    assert repr(noted.findings) == repr(found.findings)
    assert dataclasses.replace(found, notes=("small",)).findings is found.findings
    assert pickle.loads(pickle.dumps(quiet(tally_of_two()))) == found
    with pytest.raises(AttributeError, match="by instance"):
        Audit.findings  # noqa: B018


def test_findings_read_by_threads_at_the_same_time_are_one_tuple():
    found, n_threads = quiet(tally_of_two()), 4
    make, made, together = vars(found)["findings"], [], threading.Barrier(n_threads)

    def slowly():
        made.append(make())
        time.sleep(0.05)  # so that the others ask meanwhile
        return made[-1]

    def read(_):
        together.wait(timeout=10)
        return found.findings

    vars(found)["findings"] = slowly
    with ThreadPoolExecutor(n_threads) as pool:
        read_by_each = list(pool.map(read, range(n_threads)))
    assert len(made) == 1
    assert all(findings is made[0] for findings in read_by_each)


def test_an_audit_that_was_never_filled_has_no_findings():
    assert not hasattr(object.__new__(Audit), "findings")


def test_annotations_are_provenance_and_the_run_is_no_part_of_equality():
    found = quiet(selected(a=(50, 200), b=(60, 200)))
    noted = found.annotate(run={"seconds": 3}, name="loans")
    assert noted.provenance["data"]["name"] == "loans"
    assert noted.run == {"seconds": 3}
    assert noted != found
    assert found.annotate(run={"seconds": 3}) == found
    assert noted.annotate(run={"path": "x"}).run == {"seconds": 3, "path": "x"}
    assert json.loads(noted.to_json())["run"] == {"seconds": 3}
    assert "run" not in found.provenance
    assert found.provenance["data"]["n_rows"] == 400


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_a_group_of_days_reads_as_a_day_in_every_unit(unit):
    days = np.array(["2020-01-01", "2019-05-05"], f"datetime64[{unit}]").repeat(200)
    found = audit(None, [0, 1] * 200, sensitive_features={"d": days}, n_resamples=200)
    assert "2019-05-05" in str(found.findings[0])


# -------------------------------------------------------------------------------------------------------------- calling
def test_what_is_not_told_comes_from_the_policy():
    tally = selected(a=(50, 200), b=(60, 200))
    policy = ETHICLENS.replace(n_resamples=300, confidence_level=0.9, multiplicity="bh")
    found = audit_tally(tally, policy=policy)
    assert (found.policy.n_resamples, found.policy.confidence_level, found.policy.multiplicity) == (300, 0.9, "bh")
    told = audit_tally(tally, policy=policy, n_resamples=400, confidence_level=0.99, multiplicity="holm")
    assert (told.policy.n_resamples, told.policy.confidence_level, told.policy.multiplicity) == (400, 0.99, "holm")


def test_audit_of_rows_is_the_audit_of_their_tally():
    truth, decision, columns = two_attributes()
    tally = Tally.from_predictions(truth, decision, sensitive_features=columns)
    rows = audit(truth, decision, sensitive_features=columns, n_resamples=200, intersections="all")
    assert rows.to_json() == audit_tally(tally, n_resamples=200, intersections="all").to_json()


def test_the_percentile_interval_of_an_absolute_gap_is_honoured_with_a_warning():
    tally = labelled(a=(60, 40, 40, 60), b=(70, 10, 30, 90))
    with pytest.warns(DegenerateIntervalWarning, match="percentile interval of equalized_odds_difference"):
        found = audit_tally(tally, method="percentile", n_resamples=200)
    assert (
        pick(found, "equalized_odds_difference", "a" if found.references[0].group == "b" else "b").method
        == "percentile"
    )


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"policy": "none"}, ValueError, "policy must be a Policy or one of"),
        ({"method": "wald"}, ValueError, "method must be one of"),
        ({"n_resamples": 10}, ValueError, "n_resamples must be"),
        ({"confidence_level": 1.5}, ValueError, "confidence_level"),
        ({"multiplicity": "none"}, ValueError, "multiplicity must be"),
        ({"metrics": ["acuracy"]}, ValueError, "Did you mean 'accuracy'"),
        ({"random_state": -1}, ValueError, "random_state must be"),
    ],
)
def test_a_wrong_argument_is_refused(keywords, error, message):
    with pytest.raises(error, match=message):
        audit_tally(selected(a=(50, 200), b=(60, 200)), **keywords)


def test_rows_are_for_audit_and_tallies_for_audit_tally():
    with pytest.raises(TypeError, match=r"tally must be a Tally; got list. Use audit\(...\) for rows"):
        audit_tally([1, 0])
    with pytest.raises(ValueError, match="the tally holds no rows"):
        audit_tally(selected(a=(0, 0), b=(0, 0)))


def test_a_group_without_rows_is_listed():
    found = quiet(labelled(a=(0, 0, 0, 0), b=(90, 10, 10, 90), c=(80, 10, 20, 90)))
    assert pick(found, "disparate_impact", "a").verdict is UNDEFINED
    found = quiet(labelled(a=(0, 0, 0, 0), b=(90, 10, 10, 90), c=(80, 10, 20, 90)), reference="a")
    assert {f.verdict for f in found.judged} == {UNDEFINED}


def test_a_finding_and_an_audit_read_as_a_sentence():
    found = quiet(selected(a=(100, 500), b=(250, 500)))
    assert str(pick(found, "disparate_impact", "a")).startswith("disparate_impact of group=a against b: 0.400 [0.3")
    assert repr(found).startswith("<Audit of 1000 rows by group: FLAGGED under 'ethiclens', 1 flagged of 2 judged")


def test_missing_groups_are_a_group_of_the_audit():
    with pytest.warns(MissingGroupsWarning):
        found = audit(
            None, [1, 0, 1, 1] * 100, sensitive_features=["a", "b", None, "a"] * 100, n_resamples=200, policy="eeoc"
        )
    assert pick(found, "selection_rate", MISSING).value == 1.0
    assert found.references[0].group == "a"


# ----------------------------------------------------------------------------------------------------------------- laws
cell = st.sampled_from([0, 0, 1, 2, 5, 29, 30, 31, 70, 100, 400])
any_tables = hnp.arrays(np.int64, st.tuples(st.integers(1, 4), st.sampled_from([1, 2]), st.just(2)), elements=cell)
OWN_RULES = ETHICLENS.replace(
    name="own",
    floors={},
    direction="both",
    thresholds={
        "statistical_parity_difference": 0.1,
        "true_positive_rate_ratio": 0.8,
        "predictive_parity_difference": 0.1,
        "theil_index_difference": 0.1,
        "f1_ratio": 0.8,
    },
)


@pytest.mark.parametrize("policy", [*POLICIES.values(), OWN_RULES], ids=lambda p: p.name)
@settings(deadline=None, max_examples=15)
@given(counts=any_tables.filter(lambda c: c.sum() > 0), outcome=st.sampled_from(["favorable", "adverse"]))
def test_no_tally_breaks_an_audit_and_no_verdict_stands_on_nothing(policy, counts, outcome):
    counts = counts[counts.sum((1, 2)) > 0]
    names = ["a", "b", "c", MISSING][-len(counts) :]
    tally = Tally(("group",), tuple((name,) for name in names), counts)
    found = quiet(tally, policy=policy, n_resamples=200, outcome=outcome)
    for f in found.findings:
        metric, rule = METRICS[f.metric], policy.rule(f.metric)
        assert np.isnan(f.value) or metric.low - 1e-9 <= f.value <= metric.high + 1e-9
        assert np.isnan(f.low) == np.isnan(f.high)
        assert np.isnan(f.low) or f.low <= f.high
        assert np.isnan(f.pvalue) or 0 <= f.pvalue <= f.pvalue_adjusted <= 1
        assert np.isnan(f.power) or 0 <= f.power <= 1
        if metric.uses_labels and not tally.labelled:
            assert (f.verdict, np.isnan(f.value)) == (INSUFFICIENT, True)
        elif rule is None:
            assert f.verdict is None
        elif np.isnan(f.value):
            assert f.verdict in (UNDEFINED, INSUFFICIENT)
        else:
            assert f.verdict is not None
            assert f.verdict is not UNDEFINED
        if f.verdict in (FLAGGED, CLEARED) and rule.basis in ("interval", "gap"):
            assert not np.isnan(f.low)
            if f.low == f.high:
                assert "judged by" in f.method
        if f.verdict in (INSUFFICIENT, UNDEFINED, INCONCLUSIVE):
            assert f.reason
    back = Audit.from_json(found.to_json())
    assert back == found


def test_rules_of_all_bases_judge_together():
    policy = ETHICLENS.replace(
        rules=(
            Rule("disparate_impact", minimum=0.8, basis="significance"),
            Rule("selection_rate_difference", maximum=0.1, basis="gap"),
            Rule("accuracy_ratio", minimum=0.8, basis="point"),
            Rule("demographic_parity_ratio", minimum=0.8),
        )
    )
    found = quiet(labelled(a=(30, 20, 70, 80), b=(70, 30, 30, 70)), policy=policy)
    verdicts = {f.metric: f.verdict for f in found.judged}
    assert verdicts == {
        "disparate_impact": FLAGGED,
        "selection_rate_difference": FLAGGED,
        "accuracy_ratio": FLAGGED,
        "demographic_parity_ratio": INCONCLUSIVE,  # no interval of a largest gap
    }


# ------------------------------------------------------------------------------------------- absolute gaps are not cleared
def test_equalized_odds_is_not_cleared_while_a_signed_gap_beyond_the_limit_stands_open():
    # TPR 38/75 against 37/75: the signed interval reaches beyond .10, though BCa of the absolute gap ends at about .01
    tally = labelled(a=(38, 37, 37, 38), b=(37, 38, 38, 37))
    finding = pick(quiet(tally, reference="a"), "equalized_odds_difference", "b")
    assert finding.verdict is INCONCLUSIVE
    assert "is not excluded (Newcombe" in finding.reason
    assert finding.low <= finding.value <= finding.high


def test_an_infinite_label_is_stored_and_read():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = audit([0, 1] * 50, [0, 1] * 50, sensitive_features={"s": [float("inf"), 1.0] * 50})
    assert Audit.from_json(found.to_json()) == found
    assert Audit.from_json(found.to_json()).tally.groups == ((1.0,), (float("inf"),))
