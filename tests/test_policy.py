"""Policies: the verdict of a value and an interval, every field overridable, the named ones as pinned."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_ethiclens import METRICS, POLICIES, Policy, Rule, Verdict
from sklearn_ethiclens.policy import get_policy, judged_metrics, overall_verdict

NAN = math.nan
FLAGGED, CLEARED, INCONCLUSIVE = Verdict.FLAGGED, Verdict.CLEARED, Verdict.INCONCLUSIVE
INSUFFICIENT, UNDEFINED = Verdict.INSUFFICIENT_DATA, Verdict.UNDEFINED

DI = Rule("disparate_impact", minimum=0.8)
DI_BOTH = Rule("disparate_impact", minimum=0.8, maximum=1.25)
EO = Rule("equalized_odds_difference", maximum=0.1)
SPD = Rule("statistical_parity_difference", maximum=0.1, absolute=True)
POINT = Rule("equal_opportunity_difference", maximum=0.1, basis="point", elevated=0.05)
SPD_POINT = Rule("statistical_parity_difference", maximum=0.1, basis="point", absolute=True, elevated=0.05)
FOUR = Rule("demographic_parity_ratio", minimum=0.8, basis="point")
GAP = Rule("selection_rate_difference", maximum=0.1, basis="gap")
TEST = Rule("disparate_impact", minimum=0.8, basis="significance")


@pytest.mark.parametrize(
    ("rule", "value", "low", "high", "verdict"),
    [
        # the interval: beyond, inside, or neither
        (DI, 0.5, 0.4, 0.79, FLAGGED),
        (DI, 0.5, 0.4, 0.8, INCONCLUSIVE),
        (DI, 0.9, 0.8, 1.1, CLEARED),
        (DI, 0.9, 0.79, 1.1, INCONCLUSIVE),
        (DI, 2.0, 1.5, math.inf, CLEARED),
        (DI, 0.0, 0.0, 0.0077, FLAGGED),
        (DI_BOTH, 2.0, 1.5, 2.5, FLAGGED),
        (DI_BOTH, 2.0, 1.5, math.inf, FLAGGED),
        (DI_BOTH, 1.0, 0.8, 1.25, CLEARED),
        (DI_BOTH, 1.2, 1.1, 1.3, INCONCLUSIVE),
        (DI_BOTH, 0.5, 0.4, 0.7, FLAGGED),
        (EO, 0.2, 0.11, 0.3, FLAGGED),
        (EO, 0.2, 0.1, 0.3, INCONCLUSIVE),
        (EO, 0.05, 0.0, 0.1, CLEARED),
        (SPD, -0.2, -0.3, -0.11, FLAGGED),
        (SPD, 0.2, 0.11, 0.3, FLAGGED),
        (SPD, -0.05, -0.1, 0.1, CLEARED),
        (SPD, -0.05, -0.3, 0.02, INCONCLUSIVE),
        # no interval: never a flag
        (DI, 0.1, NAN, NAN, INCONCLUSIVE),
        (EO, 0.9, NAN, NAN, INCONCLUSIVE),
        (SPD, -0.9, NAN, NAN, INCONCLUSIVE),
        (GAP, -0.9, NAN, NAN, INCONCLUSIVE),
        # the point alone, ends inclusive
        (FOUR, 0.8, NAN, NAN, CLEARED),
        (FOUR, 0.48 / 0.60, NAN, NAN, CLEARED),
        (FOUR, 0.7999, NAN, NAN, FLAGGED),
        (POINT, 0.0499, NAN, NAN, CLEARED),
        (POINT, 0.05, NAN, NAN, INCONCLUSIVE),
        (POINT, 0.40 - 0.30, NAN, NAN, INCONCLUSIVE),
        (POINT, 0.1001, NAN, NAN, FLAGGED),
        (SPD_POINT, -0.07, NAN, NAN, INCONCLUSIVE),
        (SPD_POINT, -0.12, NAN, NAN, FLAGGED),
        (SPD_POINT, -0.04, NAN, NAN, CLEARED),
        # the gap above its limit, and an interval without 0
        (GAP, -0.12, -0.19, -0.05, FLAGGED),
        (GAP, 0.12, 0.05, 0.19, FLAGGED),
        (GAP, -0.12, -0.25, 0.01, INCONCLUSIVE),
        (GAP, -0.12, -0.24, 0.0, INCONCLUSIVE),
        (GAP, -0.03, -0.08, 0.02, CLEARED),
        (GAP, -0.10, -0.18, -0.02, INCONCLUSIVE),
        (GAP, 0.40 - 0.30, 0.02, 0.18, INCONCLUSIVE),
    ],
)
def test_verdict_of_a_value_and_its_interval(rule, value, low, high, verdict):
    found, reason = rule.judge(value, low, high)
    assert found is verdict
    assert reason


@pytest.mark.parametrize(
    ("value", "significant", "verdict"),
    [
        (0.5, True, FLAGGED),
        (0.5, False, INCONCLUSIVE),
        (0.9, True, INCONCLUSIVE),
        (0.9, False, CLEARED),
        (0.8, False, CLEARED),
        (0.5, None, INCONCLUSIVE),
        (0.9, None, INCONCLUSIVE),
    ],
)
def test_verdict_of_a_ratio_and_a_test(value, significant, verdict):
    assert TEST.judge(value, 0.1, 0.2, significant=significant)[0] is verdict


@given(
    st.sampled_from([DI, DI_BOTH, EO, SPD]),
    st.lists(st.floats(0, 3), min_size=2, max_size=2).map(sorted),
    st.floats(0, 1),
)
def test_an_interval_that_narrows_never_turns_a_verdict_over(rule, ends, share):
    low, high = ends
    inner = low + (high - low) * share
    wide = rule.judge(inner, low, high)[0]
    narrow = rule.judge(inner, inner, inner)[0]
    assert wide in (INCONCLUSIVE, narrow)


def test_a_reason_names_the_limit_that_was_crossed():
    assert "0.1" in EO.judge(0.2, 0.15, 0.3)[1]
    assert "0.8" in DI.judge(0.5, 0.4, 0.6)[1]
    for low, high in ((1.5, 2.5), (1.1, 1.4)):  # above 1.25, holds 1.25; nowhere near 0.8
        assert "1.25" in DI_BOTH.judge(2.0, low, high)[1]
    assert "uncertainty ignored" in POINT.judge(0.2, NAN, NAN)[1]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (DI, "disparate_impact >= 0.8"),
        (DI_BOTH, "disparate_impact >= 0.8 and <= 1.25"),
        (EO, "equalized_odds_difference <= 0.1"),
        (SPD, "|statistical_parity_difference| <= 0.1"),
        (Rule("equalized_odds_difference", maximum=0.0), "equalized_odds_difference <= 0"),
    ],
)
def test_a_rule_says_its_range(rule, words):
    assert rule.describe() == words


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"metric": "disparate_impct", "minimum": 0.8}, "metric must be a name in METRICS.*'disparate_impact'"),
        ({"metric": "disparate_impact"}, "needs a minimum or a maximum"),
        ({"metric": "selection_rate_difference", "maximum": 0.1, "basis": "hunch"}, "basis"),
        ({"metric": "selection_rate_difference", "minimum": -0.1, "basis": "gap"}, "maximum"),
        ({"metric": "disparate_impact", "minimum": NAN}, "minimum"),
        ({"metric": "disparate_impact", "minimum": 1.2, "maximum": 0.8}, "minimum"),
        ({"metric": "disparate_impact", "minimum": "0.8"}, "has the minimum '0.8'; it must be a finite number"),
        ({"metric": "disparate_impact", "minimum": True}, "must be a finite number"),
        ({"metric": "selection_rate_difference", "maximum": float("inf")}, "must be a finite number"),
        ({"metric": "accuracy", "minimum": 0.9}, "accuracy is a value of one group, no comparison"),
        (
            {"metric": "accuracy_ratio", "maximum": 0.1, "basis": "gap"},
            "a gap is a difference; accuracy_ratio is a ratio",
        ),
        ({"metric": "f1_ratio", "minimum": 0.9, "basis": "significance"}, "no comparison of one proportion"),
        ({"metric": "equalized_odds_difference", "maximum": 0.1, "basis": "significance"}, "no comparison of one"),
        ({"metric": "average_odds_error", "maximum": 0.1, "basis": "simultaneous"}, "could never be flagged"),
        ({"metric": "composite_bias_score", "minimum": 0.7, "basis": "simultaneous"}, "could never be flagged"),
        ({"metric": "demographic_parity_ratio", "minimum": 0.7, "basis": "simultaneous"}, "could never be flagged"),
        ({"metric": "equalized_odds_difference", "maximum": 0, "basis": "simultaneous"}, "cannot test a maximum of 0"),
        ({"metric": "disparate_impact", "minimum": 0.8, "elevated": 0.9}, "elevated is of points"),
        ({"metric": "accuracy_difference", "maximum": 0.1, "elevated": 0.2, "basis": "point"}, "exceed maximum"),
        ({"metric": "disparate_impact", "minimum": 80}, r"would flag parity, which is 1: .*Did you mean 0\.8\?"),
        ({"metric": "equalized_odds_difference", "maximum": -0.1}, "would flag parity, which is 0"),
        (
            {"metric": "equalized_odds_difference", "maximum": 10},
            r"would never flag: .* at most 1\. Did you mean 0\.1\?",
        ),
    ],
)
def test_a_rule_that_cannot_judge_is_refused_when_it_is_made(keywords, message):
    with pytest.raises(ValueError, match=message):
        Rule(**keywords)


def test_a_rule_keeps_the_metric_by_its_own_name_and_limits_as_plain_numbers():
    rule = Rule("adverse_impact_ratio", minimum=np.float32(0.5))
    assert rule == Rule("disparate_impact", minimum=0.5)
    assert type(rule.minimum) is float
    assert Policy("mine", "", rules=(rule,)).rule("disparate_impact") is rule


# --------------------------------------------------------------------------------------------------- the named policies
def test_the_named_policies_are_pinned():
    assert list(POLICIES) == ["ethiclens", "calibrated", "assessor", "glassalpha", "four_fifths", "eeoc", "ll144"]
    ethiclens = POLICIES["ethiclens"]
    assert (ethiclens.method, ethiclens.n_resamples, ethiclens.confidence_level) == ("bca", 2000, 0.95)
    assert (ethiclens.reference, ethiclens.multiplicity) == ("highest_rate", "holm")
    assert ethiclens.floors["total"] == 100
    assert ethiclens.floors["positives"] == ethiclens.floors["negatives"] == 30
    assert ethiclens.rules == (DI, EO)
    assert POLICIES["assessor"].reference == "first"
    assert [rule.metric for rule in POLICIES["assessor"].rules] == [
        "disparate_impact",
        "statistical_parity_difference",
        "equal_opportunity_difference",
        "false_positive_rate_balance",
    ]
    assert all(rule.elevated == 0.05 and rule.maximum == 0.1 for rule in POLICIES["assessor"].rules[1:])
    glassalpha = POLICIES["glassalpha"]
    assert (glassalpha.method, glassalpha.n_resamples, glassalpha.reference) == ("percentile", 1000, "highest_value")
    assert glassalpha.rule("true_positive_rate_difference").maximum == 0.05
    assert {rule.threshold for rule in POLICIES["four_fifths"].rules} == {0.8, 0.1}
    assert POLICIES["eeoc"].rules == (TEST,)
    assert not POLICIES["ll144"].rules
    assert POLICIES["ll144"].min_share == 0.02


@pytest.mark.parametrize("name", POLICIES)
def test_a_named_policy_is_complete(name):
    policy = POLICIES[name]
    assert get_policy(name) is policy is get_policy(policy)
    assert policy.name == name
    assert policy.description
    assert policy.source
    assert policy.ignores_uncertainty == (name in ("assessor", "four_fifths"))
    assert judged_metrics(policy) == [metric for metric in METRICS if policy.rule(metric)]
    assert policy.rule("accuracy") is None


def test_the_named_policies_cannot_be_changed():
    with pytest.raises(TypeError):
        POLICIES["mine"] = POLICIES["eeoc"]
    with pytest.raises(AttributeError):
        POLICIES["eeoc"].name = "mine"
    with pytest.raises(TypeError):
        POLICIES["ethiclens"].floors["total"] = 1


@pytest.mark.parametrize("bad", ["Ethiclens", None, 3, {"name": "ethiclens"}])
def test_an_unknown_policy_is_answered_with_those_there_are(bad):
    with pytest.raises(ValueError, match=r"policy must be a Policy or one of \['assessor', .*'ll144'\]; got"):
        get_policy(bad)


# ---------------------------------------------------------------------------------------------------------- overriding
def test_thresholds_replace_the_limit_and_keep_the_rest_of_the_rule():
    policy = POLICIES["ethiclens"].replace(thresholds={"disparate_impact": 0.9, "equalized_odds": 0.05})
    assert policy.rules == (
        Rule("disparate_impact", minimum=0.9),
        Rule("equalized_odds_difference", maximum=0.05),
    )
    assert POLICIES["ethiclens"].rule("disparate_impact").minimum == 0.8
    strict = POLICIES["glassalpha"].replace(thresholds={"selection_rate_difference": 0.2})
    assert strict.rule("selection_rate_difference") == Rule("selection_rate_difference", maximum=0.2, basis="gap")


def test_a_threshold_on_another_metric_adds_a_rule_on_its_interval():
    policy = POLICIES["ethiclens"].replace(thresholds={"accuracy_difference": 0.05, "accuracy_ratio": 0.9})
    assert policy.rule("accuracy_difference") == Rule("accuracy_difference", maximum=0.05, absolute=True)
    assert policy.rule("accuracy_ratio") == Rule("accuracy_ratio", minimum=0.9)
    assert len(policy.rules) == 4


@pytest.mark.parametrize("metric", ["accuracy", "composite_bias_score", "theil_index"])
def test_what_is_no_comparison_has_no_threshold(metric):
    with pytest.raises(ValueError, match=f"{metric} is no comparison"):
        POLICIES["ethiclens"].replace(thresholds={metric: 0.5})


def test_direction_both_judges_over_selection_too():
    both = POLICIES["ethiclens"].replace(direction="both")
    assert both.rule("disparate_impact").maximum == pytest.approx(1.25)
    assert both.rule("equalized_odds_difference") == EO
    assert both.replace(direction="below") == POLICIES["ethiclens"]
    stricter = POLICIES["ethiclens"].replace(direction="both", thresholds={"disparate_impact": 0.9})
    assert stricter.rule("disparate_impact").maximum == pytest.approx(1 / 0.9)


def test_a_direction_both_stays_when_a_threshold_is_replaced_later():
    both = POLICIES["ethiclens"].replace(direction="both").replace(thresholds={"disparate_impact": 0.9})
    rule = both.rule("disparate_impact")
    assert rule.minimum == 0.9
    assert rule.maximum == pytest.approx(1 / 0.9)


def test_fields_are_replaced_by_name():
    policy = POLICIES["ethiclens"].replace(name="mine", floors={"total": 5}, n_resamples=500, rules=(DI,))
    assert (policy.name, dict(policy.floors), policy.n_resamples, policy.rules) == ("mine", {"total": 5}, 500, (DI,))


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"flors": {}}, TypeError, r"a policy has no \['flors'\]; it has"),
        ({"direction": "above"}, ValueError, "direction must be 'below' or 'both'; got 'above'"),
        ({"thresholds": {"disparate_impct": 0.8}}, ValueError, "metric must be a name in METRICS"),
        ({"method": "wald"}, ValueError, "method must be one of"),
        ({"confidence_level": 95}, ValueError, "confidence_level"),
        ({"n_resamples": 10}, ValueError, "n_resamples"),
        ({"multiplicity": "bonferroni"}, ValueError, "multiplicity must be 'holm', 'bh' or 'max-t'; got 'bonferroni'"),
        ({"reference": "largest"}, ValueError, "reference must be 'highest_rate', 'first' or 'highest_value'"),
        ({"floors": {"people": 3}}, ValueError, r"floors must be named by .*'total'.*got \['people'\]"),
        ({"rules": (DI, DI_BOTH)}, ValueError, r"at most one rule; \['disparate_impact'\]"),
        ({"rules": DI}, TypeError, "rules must be a tuple of Rule objects"),
        ({"rules": ({"metric": "disparate_impact", "minimum": 0.8},)}, TypeError, "rules must hold Rule objects"),
        ({"thresholds": ["disparate_impact"]}, TypeError, "thresholds must map a metric to its limit"),
        ({"thresholds": {"disparate_impact": "0.9"}}, ValueError, "the threshold '0.9'; it must be a finite number"),
        ({"thresholds": {"disparate_impact": None}}, ValueError, "must be a number; got None"),
        ({"floors": {"rows": "30"}}, ValueError, "floors must be whole numbers of at least 0; got 'rows': '30'"),
        ({"floors": {"rows": -1}}, ValueError, "floors must be whole numbers"),
        ({"min_share": 2}, ValueError, r"min_share must be a share in \[0, 1\); got 2"),
    ],
)
def test_a_wrong_override_is_refused(keywords, error, message):
    with pytest.raises(error, match=message):
        POLICIES["ethiclens"].replace(**keywords)


def test_a_threshold_below_the_elevated_band_leaves_no_band():
    rule = POLICIES["assessor"].replace(thresholds={"statistical_parity_difference": 0.03}).rules[1]
    assert (rule.maximum, rule.elevated) == (0.03, None)
    wider = POLICIES["assessor"].replace(thresholds={"statistical_parity_difference": 0.07}).rules[1]
    assert (wider.maximum, wider.elevated) == (0.07, 0.05)


def test_no_minimum_has_no_maximum_on_the_other_side():
    none = POLICIES["ethiclens"].replace(direction="both", thresholds={"disparate_impact": 0})
    assert (none.rule("disparate_impact").minimum, none.rule("disparate_impact").maximum) == (0, None)


def test_replicates_too_few_for_the_level_of_max_t_are_refused():
    # The smallest p-value of n replicates is 1 / (n + 1); .0025 needs 399 of them.
    calibrated = POLICIES["calibrated"]
    with pytest.raises(ValueError, match="n_resamples=398 can flag nothing .* Take at least 399 replicates"):
        calibrated.replace(n_resamples=398, confidence_level=0.995)
    assert calibrated.replace(n_resamples=399, confidence_level=0.995).n_resamples == 399
    assert calibrated.replace(n_resamples=100, confidence_level=0.995, multiplicity="holm").multiplicity == "holm"
    assert (
        POLICIES["ethiclens"].replace(n_resamples=100, confidence_level=0.999, multiplicity="max-t").n_resamples == 100
    )


# -------------------------------------------------------------------------------------------------------------- storing
OWN = POLICIES["glassalpha"].replace(name="own", direction="both", thresholds={"accuracy_ratio": 0.9}, min_share=0.01)


@pytest.mark.parametrize("policy", [*POLICIES.values(), OWN], ids=lambda p: p.name)
def test_a_policy_is_stored_and_read(policy):
    text = json.dumps(policy.to_dict(), allow_nan=False)
    back = Policy.from_dict(json.loads(text))
    assert back == policy
    assert json.dumps(back.to_dict()) == text
    assert isinstance(back.rules, tuple)


@pytest.mark.parametrize(
    "remake", [lambda p: pickle.loads(pickle.dumps(p)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deep"]
)
@pytest.mark.parametrize("policy", [*POLICIES.values(), OWN], ids=lambda p: p.name)
def test_a_policy_is_pickled_and_copied(policy, remake):
    assert remake(policy) == policy


def test_equal_policies_have_equal_hashes():
    policy = POLICIES["ethiclens"]
    assert hash(policy) == hash(policy.replace())
    assert policy != policy.replace(n_resamples=500)


# ----------------------------------------------------------------------------------------------------------- all findings
@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], None),
        ([CLEARED, CLEARED], CLEARED),
        ([CLEARED, FLAGGED, INCONCLUSIVE, UNDEFINED], FLAGGED),
        ([CLEARED, INCONCLUSIVE, INSUFFICIENT], INCONCLUSIVE),
        ([CLEARED, INSUFFICIENT], INSUFFICIENT),
        ([CLEARED, UNDEFINED], INSUFFICIENT),
        ([UNDEFINED], INSUFFICIENT),
    ],
)
def test_the_verdict_of_an_audit_is_the_gravest(verdicts, expected):
    assert overall_verdict(verdicts) is expected
    assert overall_verdict(reversed(verdicts)) is expected


def test_a_verdict_reads_as_its_word():
    assert str(FLAGGED) == f"{FLAGGED}" == FLAGGED.value == "FLAGGED"
    assert Verdict("CLEARED") is CLEARED
    assert pickle.loads(pickle.dumps(FLAGGED)) is FLAGGED
