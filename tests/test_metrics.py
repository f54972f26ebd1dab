"""The catalogue of metrics: laws over all of it, worked numbers, agreement with fairlearn and scikit-learn."""

import pickle
import warnings

import fairlearn.metrics as fl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, precision_score

from sklearn_ethiclens import metrics
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.metrics import ALIASES, METRICS, generalized_entropy, get_metric
from sklearn_ethiclens.metrics._comparisons import above, below, choose_reference, confusion_of, distance_from_parity
from sklearn_ethiclens.metrics._rates import EMPTY, RATES, divide
from sklearn_ethiclens.metrics._scores import find_metric

GROUP = [m for m in METRICS.values() if m.kind == "group"]
PAIR = [m for m in METRICS.values() if m.kind == "pair"]
OVERALL = [m for m in METRICS.values() if m.kind == "overall"]
PLAIN = [m.name for m in METRICS.values() if m.kind != "group" and m.name != "composite_bias_score"]
OUTCOMES = ["favorable", "adverse"]
quick = settings(deadline=None, max_examples=60)

# tables [[tn, fp], [fn, tp]]: group and reference, or several groups
tables = hnp.arrays(np.int64, (2, 2, 2), elements=st.integers(0, 50))
several = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 5), st.just(2), st.just(2)), elements=st.sampled_from([0, 0, 1, 2, 7, 50])
)
sparse_tables = hnp.arrays(np.int64, (2, 2, 2), elements=st.sampled_from([0, 0, 1, 3, 50]))


def ids(metric):
    return metric.name


def value_of(metric, stack, outcome="favorable"):
    """Value of one metric of a stack of groups: the first, the first against the second, or all."""
    if metric.kind == "group":
        return metric(stack[0], outcome=outcome)
    if metric.kind == "pair":
        return metric(stack[0], stack[1], outcome=outcome)
    return metric(stack, outcome=outcome)


def rows_of(stack):
    """Rows (group, y_true, y_pred) of a stack of tables."""
    group, truth, decision = np.indices(stack.shape).reshape(3, -1)
    return [np.repeat(v, stack.ravel()) for v in (group, truth, decision)]


def denominator(name, table):
    (tn, fp), (fn, tp) = table
    return {
        "total": tn + fp + fn + tp,
        "positives": fn + tp,
        "negatives": tn + fp,
        "selected": fp + tp,
        "rejected": tn + fn,
        "f1_denominator": 2 * tp + fp + fn,
    }[name]


def expected_undefined(metric, stack, outcome):
    def blank(table):
        if metric.name.startswith("theil") and table[1, 0] == table.sum():
            return True  # every row is a false negative (or there is none)
        return any(denominator(d, table) == 0 for d in metric.denominators)

    def rate(table, name):
        if name == "favorable_rate" and outcome == "adverse":
            return table[:, 0].sum() / table.sum()
        name = {"favorable_rate": "selection_rate"}.get(name, name)
        return float(METRICS[name](table))

    if metric.kind == "group":
        return blank(stack[0])
    if metric.kind == "pair":
        if blank(stack[0]) or blank(stack[1]):
            return True
        if metric.scale == "ratio" or metric.name == "composite_bias_score":
            return rate(stack[1], metric.rates[0]) == 0
        return False
    for name in metric.rates:
        defined = [t for t in stack if denominator(RATES[name].denominator, t)]
        if len(defined) < 2 or (metric.scale == "ratio" and max(rate(t, name) for t in defined) == 0):
            return True
    return False


# ----------------------------------------------------------------------------------------------------- the catalogue
def test_the_catalogue_holds_every_required_metric():
    rates = [
        "selection_rate base_rate true_positive_rate false_positive_rate false_negative_rate true_negative_rate",
        "precision negative_predictive_value false_discovery_rate false_omission_rate accuracy f1",
    ]
    named = [
        "disparate_impact statistical_parity_difference equalized_odds_difference average_odds_difference",
        "average_odds_error equal_opportunity_difference predictive_parity_difference false_positive_rate_balance",
        "theil_index demographic_parity_ratio demographic_parity_difference equalized_odds_tpr_gap",
        "equalized_odds_fpr_gap composite_bias_score",
    ]
    for rate in " ".join(rates).split():
        assert {rate, f"{rate}_difference", f"{rate}_ratio"} <= set(METRICS)
    assert set(" ".join(named).split()) <= set(METRICS)


@pytest.mark.parametrize("metric", METRICS.values(), ids=ids)
def test_every_entry_is_complete(metric):
    assert METRICS[metric.name] is metric
    assert metric.formula
    assert metric.source
    assert metric.low < metric.high
    assert set(metric.rates) <= set(RATES)
    assert set(metric.denominators) <= set(EMPTY)
    assert (metric.parity is None) == (metric.kind == "group" or metric.scale == "score")
    assert "a group has" in metric.undefined
    with pytest.raises(AttributeError):
        metric.low = 3


def test_the_catalogue_cannot_be_changed():
    with pytest.raises(TypeError):
        METRICS["mine"] = METRICS["f1"]
    assert not set(ALIASES) & set(METRICS)
    assert set(ALIASES.values()) <= set(METRICS)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("disparate_impct", "Did you mean .*'disparate_impact'"),
        ("equalised_odds", "Did you mean .*'equalized_odds'"),
        ("Demographic_Parity", "demographic_parity"),
        ("xyzzy", r"got 'xyzzy'\.$"),
        (3, r"got 3\.$"),
    ],
)
def test_a_wrong_name_is_answered_with_near_ones(wrong, hint):
    with pytest.raises(ValueError, match=rf"metric must be a name in METRICS; got {wrong!r}.*"):
        get_metric(wrong)
    with pytest.raises(ValueError, match=hint):
        get_metric(wrong)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_the_metric(alias, name):
    assert get_metric(alias) is METRICS[name]


@pytest.mark.parametrize("metric", METRICS.values(), ids=ids)
def test_the_wrong_number_of_tables_is_refused(metric):
    table = [[1, 1], [1, 1]]
    for tables_given in ([table, table] if metric.kind != "pair" else [table], []):
        with pytest.raises(TypeError):
            metric(*tables_given)


def test_an_outcome_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="outcome must be one of"):
        METRICS["disparate_impact"]([[6, 4]], [[2, 8]], outcome="advers")


# ----------------------------------------------------------------------------------------------------- worked numbers
WORKED = {
    # group [[tn, fp], [fn, tp]] = [[30, 10], [15, 45]], reference [[20, 5], [5, 70]], 100 rows each
    "selection_rate": 0.55,
    "base_rate": 0.60,
    "true_positive_rate": 0.75,
    "false_positive_rate": 0.25,
    "false_negative_rate": 0.25,
    "true_negative_rate": 0.75,
    "precision": 45 / 55,
    "negative_predictive_value": 30 / 45,
    "false_discovery_rate": 10 / 55,
    "false_omission_rate": 15 / 45,
    "accuracy": 0.75,
    "f1": 90 / 115,
    "balanced_accuracy": 0.75,
    "favorable_rate": 0.55,
    # benefits 0 (15), 1 (75), 2 (10), mean .95: (75 log(1/.95)/.95 + 10 (2/.95) log(2/.95)) / 100
    "theil_index": (75 * np.log(1 / 0.95) / 0.95 + 20 * np.log(2 / 0.95) / 0.95) / 100,
    "disparate_impact": 0.55 / 0.75,
    "statistical_parity_difference": 0.55 - 0.75,
    "selection_rate_difference": 0.55 - 0.75,
    "selection_rate_ratio": 0.55 / 0.75,
    "true_positive_rate_difference": 0.75 - 70 / 75,
    "true_positive_rate_ratio": 0.75 / (70 / 75),
    "false_positive_rate_difference": 0.25 - 0.20,
    "false_positive_rate_ratio": 0.25 / 0.20,
    "equalized_odds_difference": 70 / 75 - 0.75,
    "average_odds_difference": (0.75 - 70 / 75 + 0.05) / 2,
    "average_odds_error": (70 / 75 - 0.75 + 0.05) / 2,
    "equal_opportunity_difference": 70 / 75 - 0.75,
    "predictive_parity_difference": 70 / 75 - 45 / 55,
    "false_positive_rate_balance": 0.05,
    "composite_bias_score": 0.40 * 0.55 / 0.75 + 0.35 * 0.80 + 0.25 * (1 - (70 / 75 - 0.75)),
    "demographic_parity_difference": 0.20,
    "demographic_parity_ratio": 0.55 / 0.75,
    "equalized_odds_tpr_gap": 70 / 75 - 0.75,
    "equalized_odds_fpr_gap": 0.05,
    "equalized_odds_ratio": min(0.75 / (70 / 75), 0.20 / 0.25),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_by_hand(name):
    stack = np.array([[[30, 10], [15, 45]], [[20, 5], [5, 70]]])
    assert value_of(METRICS[name], stack) == pytest.approx(WORKED[name], abs=1e-12)


def test_worked_numbers_of_the_rules():
    # A,A,A,A,B,B,B,B: TPR 1 against .5, FPR 0 against 0
    y, p, g = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0], list("AAAABBBB")
    assert metrics.equalized_odds_tpr_gap(y, p, sensitive_features=g) == 0.5
    assert metrics.equalized_odds_fpr_gap(y, p, sensitive_features=g) == 0.0
    # groups 1,1 and 1,0,0: ratio 1/3
    ratio = metrics.disparate_impact(None, [1, 1, 1, 0, 0], sensitive_features=list("mmfff"))
    assert ratio == pytest.approx(1 / 3, abs=1e-15)
    assert metrics.calculate_disparate_impact(0.8, 0.4) == 0.5
    assert metrics.calculate_statistical_parity_difference(0.7, 0.4) == pytest.approx(-0.3, abs=1e-15)
    assert metrics.calculate_equalized_odds_difference(-0.34, 0.10) == 0.34
    assert metrics.compute_composite_bias_score(0.6, -0.25, 0.15) == pytest.approx(0.7150, abs=1e-12)
    # 65% against 57%
    stack = np.array([[[43, 57]], [[35, 65]]])
    assert METRICS["demographic_parity_difference"](stack) == pytest.approx(0.08, abs=1e-12)
    assert METRICS["demographic_parity_ratio"](stack) == pytest.approx(0.877, abs=5e-4)


def test_the_group_of_four_example():
    tpr, fpr = [0.72, 0.64, 0.55, 0.38], [0.10, 0.15, 0.12, 0.20]
    stack = np.array([[[100 - 100 * f, 100 * f], [100 - 100 * t, 100 * t]] for t, f in zip(tpr, fpr, strict=True)])
    assert METRICS["equalized_odds_tpr_gap"](stack) == pytest.approx(0.34)
    assert METRICS["equalized_odds_fpr_gap"](stack) == pytest.approx(0.10)
    assert METRICS["true_positive_rate_ratio"](stack[0], stack[3]) == pytest.approx(1.89, abs=5e-3)


def test_thresholds_are_compared_beyond_rounding():
    assert not below(0.48 / 0.60, 0.8)
    assert not above(0.40 - 0.30, 0.10)
    assert below(0.7999, 0.8)
    assert above(0.1001, 0.1)
    assert not below(float("nan"), 0.8)
    assert not above(float("nan"), 0.8)


# --------------------------------------------------------------------------------------------------------------- laws
EVERY = [
    (metric, outcome) for metric in METRICS.values() for outcome in (OUTCOMES if metric.by_outcome else OUTCOMES[:1])
]


@quick
@given(stack=tables)
def test_values_lie_in_the_range(stack):
    for metric, outcome in EVERY:
        value = value_of(metric, stack, outcome)
        assert isinstance(value, float), metric.name
        assert np.isnan(value) or metric.low - 1e-12 <= value <= metric.high + 1e-12, metric.name
        assert not np.isinf(value), metric.name


@quick
@given(pair=sparse_tables, many=several)
def test_a_value_is_undefined_exactly_where_a_denominator_is_empty(pair, many):
    for metric, outcome in EVERY:
        stack = many if metric.kind == "overall" else pair
        found = np.isnan(value_of(metric, stack, outcome))
        assert found == expected_undefined(metric, stack, outcome), (metric.name, outcome)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("metric", METRICS.values(), ids=ids)
def test_many_tables_at_once_give_the_values_of_each(metric, outcome):
    rng = np.random.default_rng(0)
    stack = rng.integers(0, 6, (3, 40, 4, 2, 2))
    stack[rng.random(stack.shape) < 0.3] = 0
    if metric.kind == "pair":
        both = metric(stack[..., :2, :, :], stack[..., 2:, :, :], outcome=outcome)
        alone = [
            metric(a, b, outcome=outcome)
            for a, b in zip(stack[..., :2, :, :].reshape(-1, 2, 2), stack[..., 2:, :, :].reshape(-1, 2, 2), strict=True)
        ]
    else:
        both = metric(stack, outcome=outcome)
        flat = stack.reshape(-1, 4, 2, 2) if metric.kind == "overall" else stack.reshape(-1, 2, 2)
        alone = [metric(table, outcome=outcome) for table in flat]
    assert both.shape == {"pair": (3, 40, 2), "overall": (3, 40), "group": (3, 40, 4)}[metric.kind]
    np.testing.assert_array_equal(both.ravel(), alone)


@quick
@given(stack=tables, k=st.sampled_from([2, 3, 1000, 10**7]))
def test_multiplying_all_counts_changes_nothing(stack, k):
    for metric in METRICS.values():
        one, many = value_of(metric, stack), value_of(metric, stack * k)
        np.testing.assert_allclose(many, one, rtol=1e-12, atol=1e-12, err_msg=metric.name)


SIGNED = [m for m in PAIR if m.scale == "difference" and m.low < 0]
RATIOS = [m for m in PAIR if m.scale == "ratio"]
SYMMETRIC = [m for m in PAIR if m not in SIGNED and m not in RATIOS]


@quick
@given(stack=tables)
def test_signed_differences_change_sign_when_the_reference_swaps(stack):
    for metric in SIGNED:
        np.testing.assert_allclose(metric(*stack), -metric(*stack[::-1]), atol=1e-15, err_msg=metric.name)


@quick
@given(stack=tables)
def test_ratios_invert_when_the_reference_swaps(stack):
    for metric in RATIOS:
        one, other = metric(*stack), metric(*stack[::-1])
        if one == 0:
            assert np.isnan(other), metric.name
        elif not np.isnan(one) and not np.isnan(other):
            assert one * other == pytest.approx(1, rel=1e-12), metric.name


@quick
@given(stack=tables)
def test_absolute_gaps_and_the_composite_are_symmetric(stack):
    for metric in SYMMETRIC:
        one, other = metric(*stack), metric(*stack[::-1])
        if not np.isnan(one) and not np.isnan(other):
            assert one == pytest.approx(other, rel=1e-12, abs=1e-15), metric.name
        if metric.name != "composite_bias_score":
            assert np.isnan(one) == np.isnan(other), metric.name


@quick
@given(stack=tables)
def test_a_group_against_itself_is_at_parity(stack):
    for metric in PAIR:
        value, parity = metric(stack[0], stack[0]), 1.0 if metric.parity is None else metric.parity
        assert np.isnan(value) or value == pytest.approx(parity, abs=1e-12), metric.name


@quick
@given(stack=several, data=st.data())
def test_the_order_of_groups_does_not_matter(stack, data):
    for metric in OVERALL:
        order = data.draw(st.permutations(range(len(stack))))
        np.testing.assert_array_equal(metric(stack), metric(stack[order]), err_msg=metric.name)


@quick
@given(stack=tables)
def test_complements_add_to_one(stack):
    for name, complement in (
        ("true_positive_rate", "false_negative_rate"),
        ("precision", "false_discovery_rate"),
        ("negative_predictive_value", "false_omission_rate"),
        ("true_negative_rate", "false_positive_rate"),
    ):
        total = METRICS[name](stack) + METRICS[complement](stack)
        np.testing.assert_allclose(total[~np.isnan(total)], 1, atol=1e-15)
        np.testing.assert_allclose(
            METRICS[f"{name}_difference"](*stack), -METRICS[f"{complement}_difference"](*stack), atol=1e-15
        )


@quick
@given(table=hnp.arrays(np.int64, (2, 2), elements=st.integers(1, 50)))
def test_false_positive_rate_follows_from_precision_base_rate_and_false_negative_rate(table):
    p, ppv, fnr, fpr = (
        METRICS[n](table) for n in ("base_rate", "precision", "false_negative_rate", "false_positive_rate")
    )
    assert fpr == pytest.approx(p / (1 - p) * (1 - ppv) / ppv * (1 - fnr), rel=1e-12)


TURNED = [m for m in METRICS.values() if m.by_outcome]


@quick
@given(stack=several.filter(lambda s: len(s) > 1))
def test_adverse_is_favorable_of_the_opposite_decisions(stack):
    for metric in [m for m in TURNED if m.name != "composite_bias_score"]:
        opposite = value_of(metric, stack[..., ::-1], "favorable")
        np.testing.assert_array_equal(value_of(metric, stack, "adverse"), opposite, err_msg=metric.name)


@quick
@given(stack=tables)
def test_other_metrics_do_not_read_the_outcome(stack):
    for metric in [m for m in METRICS.values() if not m.by_outcome]:
        adverse, favorable = (value_of(metric, stack, outcome) for outcome in ("adverse", "favorable"))
        np.testing.assert_array_equal(adverse, favorable, err_msg=metric.name)


def test_those_that_read_the_outcome_are_named():
    assert {m.name for m in TURNED} == {
        "favorable_rate",
        "disparate_impact",
        "statistical_parity_difference",
        "demographic_parity_difference",
        "demographic_parity_ratio",
        "composite_bias_score",
    }


def test_composite_of_an_adverse_outcome_reads_the_favourable_event_and_odds_of_the_positive_label():
    stack = np.array([[[30, 10], [15, 45]], [[20, 5], [5, 70]]])
    di, spd = 0.45 / 0.25, 0.45 - 0.25
    eo = METRICS["equalized_odds_difference"](*stack)
    expected = metrics.composite_bias_score(di, spd, eo)
    assert METRICS["composite_bias_score"](*stack, outcome="adverse") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS.values(), ids=ids)
def test_without_labels_only_selection_is_known(metric):
    stack = np.array([[[6, 4]], [[2, 8]]])
    assert np.isnan(value_of(metric, stack)) == metric.uses_labels
    if not metric.uses_labels:
        with_labels = np.array([[[4, 1], [2, 3]], [[1, 8], [1, 0]]])
        assert value_of(metric, stack) == value_of(metric, with_labels)


# -------------------------------------------------------------------------------------------------------- the entropy
def entropy_of_rows(table, alpha):
    (tn, fp), (fn, tp) = table
    benefit = np.repeat([0.0, 1.0, 2.0], [fn, tn + tp, fp])
    share = benefit / benefit.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        if alpha == 1:
            return np.mean(np.where(share > 0, share * np.log(np.where(share > 0, share, 1)), 0))
        if alpha == 0:
            return -np.mean(np.log(share))
        return np.mean(share**alpha - 1) / (alpha * (alpha - 1))


@pytest.mark.parametrize("alpha", [-1, 0, 0.5, 1, 2, 3.5])
@quick
@given(table=hnp.arrays(np.int64, (2, 2), elements=st.integers(0, 50)).filter(lambda t: t.sum() > t[1, 0]))
def test_the_entropy_in_closed_form_is_that_of_rows(alpha, table):
    expected = entropy_of_rows(table, alpha)
    value = generalized_entropy(confusion_of(table), alpha)
    if np.isinf(expected):
        assert np.isnan(value)
    else:
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if alpha == 1:
        assert METRICS["theil_index"](table) == value


def test_the_entropy_of_equal_benefits_is_zero():
    for alpha in (-1, 0, 0.5, 1, 2):
        assert generalized_entropy(confusion_of([[5, 0], [0, 5]]), alpha) == pytest.approx(0, abs=1e-15)
        assert generalized_entropy(confusion_of([[0, 5], [0, 0]]), alpha) == pytest.approx(0, abs=1e-15)


# --------------------------------------------------------------------------------------------- agreement with the field
def random_rows(seed, n_groups, n=600):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    group[: 4 * n_groups] = np.repeat(np.arange(n_groups), 4)
    truth, decision = (rng.random((2, n)) < rng.uniform(0.2, 0.8, (2, n_groups))[:, group]).astype(int)
    truth[: 4 * n_groups] = np.tile([0, 0, 1, 1], n_groups)
    decision[: 4 * n_groups] = np.tile([0, 1, 0, 1], n_groups)
    return truth, decision, group


BY_GROUP = {
    "selection_rate": fl.selection_rate,
    "true_positive_rate": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
    "true_negative_rate": fl.true_negative_rate,
    "false_negative_rate": fl.false_negative_rate,
    "accuracy": accuracy_score,
    "precision": precision_score,
    "f1": f1_score,
    "balanced_accuracy": balanced_accuracy_score,
}


@pytest.mark.parametrize("n_groups", [2, 5, 9])
@pytest.mark.parametrize("seed", range(4))
def test_rates_by_group_agree_with_fairlearn(seed, n_groups):
    truth, decision, group = random_rows(seed, n_groups)
    frame = fl.MetricFrame(metrics=BY_GROUP, y_true=truth, y_pred=decision, sensitive_features=group).by_group
    stack = np.zeros((n_groups, 2, 2))
    np.add.at(stack, (group, truth, decision), 1)
    for name in BY_GROUP:
        np.testing.assert_allclose(METRICS[name](stack), frame[name].to_numpy(float), atol=1e-9)


@pytest.mark.parametrize("n_groups", [2, 5, 9])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("demographic_parity_difference", fl.demographic_parity_difference),
        ("demographic_parity_ratio", fl.demographic_parity_ratio),
        ("equalized_odds_ratio", fl.equalized_odds_ratio),
    ],
)
def test_overall_metrics_agree_with_fairlearn(ours, theirs, seed, n_groups):
    truth, decision, group = random_rows(seed, n_groups)
    value = getattr(metrics, ours)(truth, decision, sensitive_features=group)
    assert value == pytest.approx(theirs(truth, decision, sensitive_features=group), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("equalized_odds_difference", fl.equalized_odds_difference),
        ("equal_opportunity_difference", fl.equal_opportunity_difference),
        ("demographic_parity_difference", fl.demographic_parity_difference),
    ],
)
def test_pair_metrics_agree_with_fairlearn_for_two_groups(ours, theirs, seed):
    truth, decision, group = random_rows(seed, 2)
    value = getattr(metrics, ours)(truth, decision, sensitive_features=group)
    assert value == pytest.approx(theirs(truth, decision, sensitive_features=group), abs=1e-9)


@pytest.mark.parametrize("n_groups", [2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_gaps_agree_with_fairlearn_for_many_groups(seed, n_groups):
    truth, decision, group = random_rows(seed, n_groups)
    tpr = metrics.equalized_odds_tpr_gap(truth, decision, sensitive_features=group)
    fpr = metrics.equalized_odds_fpr_gap(truth, decision, sensitive_features=group)
    theirs = fl.equalized_odds_difference(truth, decision, sensitive_features=group)
    assert max(tpr, fpr) == pytest.approx(theirs, abs=1e-9)
    frame = fl.MetricFrame(metrics=fl.selection_rate, y_true=truth, y_pred=decision, sensitive_features=group)
    # reference = highest rate: the worst comparison is the lowest rate
    di = metrics.disparate_impact(truth, decision, sensitive_features=group)
    assert di == pytest.approx(frame.ratio(), abs=1e-9)
    spd = metrics.statistical_parity_difference(truth, decision, sensitive_features=group)
    assert -spd == pytest.approx(frame.difference(), abs=1e-9)


# ------------------------------------------------------------------------------------------------------ plain functions
Y_TRUE = [1, 0, 1, 1, 0, 1, 0, 1, 0, 0]
Y_PRED = [1, 1, 1, 0, 0, 1, 0, 0, 1, 0]
SEX = list("mmmmmfffff")


@pytest.mark.parametrize("name", PLAIN)
def test_every_plain_function_is_public_documented_and_picklable(name):
    function = getattr(metrics, name)
    assert name in metrics.__all__
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__name__ == name
    doc = function.__doc__
    assert doc.startswith(f"Return {name.replace('_', ' ')}")
    assert METRICS[name].formula in doc
    assert METRICS[name].source in doc
    assert "{" not in doc.replace("{0, 1}", "").replace("{-1, 1}", "").replace('{"favorable", "adverse"}', "")


def test_everything_public_is_there():
    assert all(hasattr(metrics, name) for name in metrics.__all__)
    assert len(set(metrics.__all__)) == len(metrics.__all__)


@pytest.mark.parametrize("name", PLAIN)
def test_recoding_rows_groups_and_labels_changes_nothing(name):
    function = getattr(metrics, name)
    truth, decision, group = random_rows(1, 4)
    value = function(truth, decision, sensitive_features=group)
    order = np.random.default_rng(0).permutation(len(truth))
    recoded = [
        function(truth[order], decision[order], sensitive_features=group[order]),
        function(truth, decision, sensitive_features=np.array(list("zyxw"))[group]),
        function(truth, decision, sensitive_features=np.array(list("wzxy"))[group]),
        function(truth * 2 - 1, decision * 2 - 1, sensitive_features=group),
        function(truth == 1, decision == 1, sensitive_features=group),
    ]
    text = np.array(["no", "yes"])
    recoded.append(function(text[truth], text[decision], sensitive_features=group, pos_label="yes"))
    np.testing.assert_allclose(recoded, value, rtol=1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_the_worst_comparison_is_the_one_farthest_from_parity(name):
    metric = METRICS[name]
    truth, decision, group = random_rows(3, 4)
    stack = np.zeros((4, 2, 2))
    np.add.at(stack, (group, truth, decision), 1)
    value = getattr(metrics, name)(truth, decision, sensitive_features=group, reference=2)
    if metric.kind == "overall":
        assert value == metric(stack)
        return
    others = np.array([metric(stack[i], stack[2]) for i in (0, 1, 3)])
    assert value == others[np.argmax(distance_from_parity(others, metric.parity))]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_default_reference_has_the_highest_rate_of_the_favourable_decision(outcome):
    # selected: a 3 of 4, b 1 of 4, c 2 of 4
    decision = [1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0]
    group = list("aaaabbbbcccc")
    expected = {"favorable": (1 / 4) / (3 / 4), "adverse": (1 / 4) / (3 / 4)}[outcome]
    value = metrics.disparate_impact(None, decision, sensitive_features=group, outcome=outcome)
    assert value == pytest.approx(expected, abs=1e-15)
    gap = metrics.selection_rate_difference(None, decision, sensitive_features=group, outcome=outcome)
    assert gap == {"favorable": -0.5, "adverse": 0.5}[outcome]


def test_the_missing_bucket_is_never_the_default_reference():
    decision, group = [1, 1, 0, 1, 0, 0], [None, None, "a", "a", "b", "b"]
    with pytest.warns(UserWarning, match="missing in 2"):
        value = metrics.disparate_impact(None, decision, sensitive_features=group)
    assert value == 0.0  # a is the reference (.5): missing 1 / .5 = 2, b 0 / .5 = 0


def test_several_features_are_their_intersection():
    race = list("xyxyxyxyxy")
    both = metrics.disparate_impact(None, Y_PRED, sensitive_features={"sex": SEX, "race": race}, reference=("m", "x"))
    joined = [f"{s}{r}" for s, r in zip(SEX, race, strict=True)]
    assert both == metrics.disparate_impact(None, Y_PRED, sensitive_features=joined, reference="mx")


@pytest.mark.parametrize("reference", ["m", ("m",), ["m"], np.str_("m")])
def test_a_reference_is_given_as_a_label(reference):
    value = metrics.statistical_parity_difference(None, Y_PRED, sensitive_features=SEX, reference=reference)
    assert value == pytest.approx(2 / 5 - 3 / 5, abs=1e-15)


@pytest.mark.parametrize("name", [m.name for m in PAIR if m.name != "composite_bias_score"])
def test_a_reference_that_does_not_occur_is_refused_with_those_that_do(name):
    with pytest.raises(ValueError, match=r"reference of sensitive_feature must be one of \['f', 'm'\]; got 'x'"):
        getattr(metrics, name)(Y_TRUE, Y_PRED, sensitive_features=SEX, reference="x")


@pytest.mark.parametrize("name", PLAIN)
def test_labels_are_asked_for_where_they_are_needed(name):
    function = getattr(metrics, name)
    if METRICS[name].uses_labels:
        with pytest.raises(ValueError, match=f"{name} needs y_true"):
            function(None, Y_PRED, sensitive_features=SEX)
    else:
        assert function(None, Y_PRED, sensitive_features=SEX) == function(Y_TRUE, Y_PRED, sensitive_features=SEX)


def test_a_wrong_outcome_is_refused():
    with pytest.raises(ValueError, match="outcome must be one of"):
        metrics.disparate_impact(None, Y_PRED, sensitive_features=SEX, outcome="bad")


@pytest.mark.parametrize("name", PLAIN)
def test_one_group_has_no_comparison(name):
    with pytest.warns(UndefinedMetricWarning, match=f"{name} is undefined: .*one group"):
        assert np.isnan(getattr(metrics, name)(Y_TRUE, Y_PRED, sensitive_features=["a"] * 10))


def test_an_empty_denominator_is_named_and_the_others_compared():
    truth, decision, group = [1, 0, 0, 0, 1, 0], [1, 0, 1, 0, 0, 1], list("aabbcc")
    with pytest.warns(UndefinedMetricWarning, match=r"taken over the other groups: b \(no positive y_true\)"):
        value = metrics.equal_opportunity_difference(truth, decision, sensitive_features=group, reference="a")
    assert value == 1.0
    with pytest.warns(UndefinedMetricWarning, match=r"equal_opportunity_difference is undefined: b \(no positive"):
        assert np.isnan(metrics.equal_opportunity_difference(truth[:4], decision[:4], sensitive_features=group[:4]))


def test_a_reference_rate_of_zero_is_named():
    decision, group = [0, 0, 1, 0], list("aabb")
    with pytest.warns(UndefinedMetricWarning, match="favorable_rate is 0 in the reference a"):
        assert np.isnan(metrics.disparate_impact(None, decision, sensitive_features=group, reference="a"))
    with pytest.warns(UndefinedMetricWarning, match="is 0 in every group|no group has any selected row"):
        assert np.isnan(metrics.disparate_impact(None, [0] * 4, sensitive_features=group))


def test_an_undefined_theil_index_is_said_to_be_so_for_its_own_reason():
    truth, decision = [1, 1, 1, 0], [0, 0, 1, 0]
    with pytest.warns(UndefinedMetricWarning, match="theil_index_difference is undefined") as caught:
        assert np.isnan(metrics.theil_index_difference(truth, decision, sensitive_features=list("aabb")))
    message = str(caught[0].message)
    assert "false negative" in message
    assert "no group has any selected row" not in message  # b has one


def test_pandas_features_work_in_plain_functions():
    frame = pd.DataFrame({"sex": SEX})
    value = metrics.equalized_odds_difference(Y_TRUE, Y_PRED, sensitive_features=frame)
    assert value == metrics.equalized_odds_difference(Y_TRUE, Y_PRED, sensitive_features=SEX)


def test_a_plain_function_serves_as_a_metric_of_fairlearns_kind():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in PLAIN:
            assert np.isfinite(getattr(metrics, name)(Y_TRUE, Y_PRED, sensitive_features=SEX))


# ------------------------------------------------------------------------------------------------- helpers of a metric
def test_division_by_zero_is_undefined():
    assert np.isnan(divide(1.0, 0.0))
    assert np.isnan(divide(0.0, 0.0))
    assert divide([1.0, 2.0], [4.0, 4.0]).tolist() == [0.25, 0.5]


def test_distance_from_parity_is_equal_for_a_ratio_and_its_inverse():
    assert distance_from_parity(0.5, 1.0) == pytest.approx(distance_from_parity(2.0, 1.0))
    assert distance_from_parity(0.0, 1.0) == np.inf
    assert distance_from_parity([-0.2, 0.1], 0.0).tolist() == [0.2, 0.1]


@pytest.mark.parametrize(
    ("values", "sizes", "eligible", "expected"),
    [
        ([0.1, 0.5, 0.3], [1, 1, 1], [1, 1, 1], 1),
        ([0.5, 0.5, 0.3], [1, 2, 9], [1, 1, 1], 1),
        ([0.5, 0.5, 0.5], [2, 2, 2], [1, 1, 1], 0),
        ([0.1, 0.5, 0.3], [1, 1, 1], [1, 0, 1], 2),
        ([np.nan, 0.5, 0.7], [9, 1, 1], [1, 1, 0], 1),
        ([0.1, 0.5, 0.3], [1, 3, 2], [0, 0, 0], 1),
        ([0.3, 0.1 + 0.2], [1, 2], [1, 1], 1),
    ],
)
def test_the_reference_has_the_highest_rate_ties_by_size_then_order(values, sizes, eligible, expected):
    assert choose_reference(np.array(values), np.array(sizes), np.array(eligible, bool)) == expected


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (0.0, "High Risk"),
        (0.5999, "High Risk"),
        (0.6, "Medium Risk"),
        (0.2 * 3, "Medium Risk"),
        (0.7999, "Medium Risk"),
        (0.8, "Low Risk"),
        (1.0, "Low Risk"),
        (float("nan"), None),
    ],
)
def test_composite_bands(score, band):
    assert metrics.composite_band(score) == band


@quick
@given(
    di=st.just(0.0) | st.floats(1e-6, 1e6),
    spd=st.floats(-1, 1),
    eo=st.floats(-1, 1),
    k=st.sampled_from([(0.4, 0.35, 0.25), (0, 0, 1)]),
)
def test_composite_lies_in_its_range_and_reads_ratio_and_inverse_alike(di, spd, eo, k):
    score = metrics.composite_bias_score(di, spd, eo, weights=k)
    assert 0 <= score <= 1
    assert score == metrics.composite_bias_score(di, -spd, -eo, weights=k)
    if di:
        assert score == pytest.approx(metrics.composite_bias_score(1 / di, spd, eo, weights=k), abs=1e-9)


def test_composite_of_what_was_not_measured_is_nan():
    for parts in ((np.nan, 0, 0), (1, np.nan, 0), (1, 0, np.nan)):
        assert np.isnan(metrics.composite_bias_score(*parts))


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.5, 0.4, 0.2), (-0.1, 0.6, 0.5), (np.nan, 0.5, 0.5)])
def test_composite_weights_add_to_one(weights):
    with pytest.raises(ValueError, match="weights must be three numbers"):
        metrics.composite_bias_score(1, 0, 0, weights=weights)


@pytest.mark.parametrize("rates", [(0.0, 0.4), (-0.1, 0.4), (0.8, 1.1), (np.nan, 0.4), (0.8, np.nan)])
def test_the_two_number_ratio_refuses_what_does_not_exist(rates):
    with pytest.raises(ValueError, match="privileged_rate"):
        metrics.calculate_disparate_impact(*rates)


def test_a_negative_ratio_is_refused():
    with pytest.raises(ValueError, match="di must be a ratio of at least 0"):
        metrics.composite_bias_score(-0.1, 0, 0)


def test_shortfall_and_flip_flop_count_people():
    assert metrics.shortfall(45, 100, 60, 100) == 7.5
    assert metrics.shortfall(60, 100, 60, 100) == 0
    assert metrics.flip_flop(3, 20, 16, 80)
    assert not metrics.flip_flop(30, 100, 60, 100)
    assert not metrics.flip_flop(20, 20, 80, 80)
    assert not metrics.flip_flop(0, 20, 0, 80)


@pytest.mark.parametrize("name", [None, 5, ["disparate_impact"], {"disparate_impact": 1}])
@pytest.mark.parametrize("find", [get_metric, find_metric])
def test_what_is_no_name_of_a_metric_is_refused_whatever_it_is(find, name):
    with pytest.raises(ValueError, match="metric must be a name in METRICS.*; got "):
        find(name)
