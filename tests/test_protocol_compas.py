"""The reference protocol on COMPAS: every printed number to 1e-6, and what is flagged under either reading of the outcome."""

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sklearn_ethiclens import METRICS, Tally, Verdict, audit, audit_tally, inference, metrics
from sklearn_ethiclens.datasets import compas_protocol, fetch_compas, load_german_credit
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from tests._shared import data_file

data_file("compas-two-years.csv")

COLUMNS = ["n", "tp", "fp", "fn", "tn", "selection_rate", "base_rate", "true_positive_rate", "false_positive_rate"]
COLUMNS += ["precision"]
TABLE = {
    "Caucasian": (645, 68, 46, 172, 359, 0.176744, 0.372093, 0.283333, 0.113580, 0.596491),
    "African-American": (956, 316, 106, 195, 339, 0.441423, 0.534519, 0.618395, 0.238202, 0.748815),
    "Male": (1492, 371, 148, 345, 628, 0.347855, 0.479893, 0.518156, 0.190722, 0.714836),
    "Female": (360, 49, 17, 78, 216, 0.183333, 0.352778, 0.385827, 0.072961, 0.742424),
}


@pytest.fixture(scope="module")
def protocols():
    race, sex = compas_protocol("reference", download_if_missing=False)
    return {"race": race, "sex": sex}


def audit_of(protocol, **changes):
    options = {
        "sensitive_features": protocol.sensitive_features,
        "pos_label": protocol.pos_label,
        "outcome": protocol.outcome,
        "reference": protocol.reference,
    }
    return audit(protocol.y_true, protocol.y_pred, **options | changes)


@pytest.fixture(scope="module")
def audits(protocols):
    """Return the four audits: race and sex, with the outcome read either way."""
    return {
        (name, outcome): audit_of(protocol, outcome=outcome)
        for name, protocol in protocols.items()
        for outcome in ("favorable", "adverse")
    }


def finding(audited, metric, group=None):
    (found,) = (f for f in audited.findings if f.metric == metric and (group is None or f.group == group))
    return found


# -------------------------------------------------------------------------------------------------------- the table
@pytest.mark.parametrize("group", TABLE)
def test_every_number_of_the_table(audits, group):
    audited = audits["sex" if group in ("Male", "Female") else "race", "favorable"]
    (attribute,) = audited.tally.attributes
    row = audited.tally.frame().set_index(attribute).loc[group].to_dict()
    row |= {name: finding(audited, name, group).value for name in COLUMNS[5:]}
    expected = dict(zip(COLUMNS, TABLE[group], strict=True))
    assert row == pytest.approx(expected, abs=1e-6)


def test_the_protocol_says_how_it_reads_the_outcome_and_who_is_the_reference(protocols):
    assert {p.outcome for p in protocols.values()} == {"favorable"}
    assert {**protocols["race"].reference, **protocols["sex"].reference} == {"race": "Caucasian", "sex": "Male"}
    assert protocols["sex"].n_rows == 1852
    assert protocols["race"].n_rows == 645 + 956


@pytest.mark.parametrize(
    ("attribute", "metric", "value"),
    [
        ("race", "disparate_impact", 2.497523),
        ("race", "statistical_parity_difference", 0.264678),
        ("race", "equalized_odds_difference", 0.335062),
        ("race", "composite_bias_score", 0.583756),
        ("sex", "disparate_impact", 0.527039),
        ("sex", "statistical_parity_difference", -0.164522),
        ("sex", "equalized_odds_difference", 0.132330),
    ],
)
def test_comparisons(audits, protocols, attribute, metric, value):
    audited = audits[attribute, "favorable"]
    assert finding(audited, metric).value == pytest.approx(value, abs=1e-6)
    if metric != "composite_bias_score":  # its plain function takes the three numbers
        protocol = protocols[attribute]
        options = {"sensitive_features": protocol.sensitive_features, "reference": protocol.reference[attribute]}
        plain = getattr(metrics, metric)(protocol.y_true, protocol.y_pred, **options)
        assert plain == finding(audited, metric).value


def test_error_rates_and_precision_stand_side_by_side(audits):
    audited = audits["race", "favorable"]
    rates = {
        name: {group: finding(audited, name, group).value for group in ("African-American", "Caucasian")}
        for name in ("false_positive_rate", "precision", "base_rate")
    }
    assert [round(v, 2) for v in rates["false_positive_rate"].values()] == [0.24, 0.11]
    assert [round(v, 3) for v in rates["precision"].values()] == [0.749, 0.596]
    assert [round(v, 4) for v in rates["base_rate"].values()] == [0.5345, 0.3721]
    gap = finding(audited, "predictive_parity_difference")
    assert gap.value == pytest.approx(0.152, abs=5e-4)
    # The printed ends are near: a quarter of a bootstrap standard deviation, .051 here.
    assert (gap.low, gap.high) == pytest.approx((0.055, 0.257), abs=0.0127)


# ------------------------------------------------------------------------------------------- favourable and adverse
def flagged(audited):
    return {(f.group, f.metric) for f in audited.flagged}


def test_read_as_favourable_the_rule_flags_by_equalized_odds_and_not_by_four_fifths(audits):
    assert flagged(audits["race", "favorable"]) == {("African-American", "equalized_odds_difference")}
    odds = finding(audits["race", "favorable"], "equalized_odds_difference")
    assert odds.method == "BCa"
    assert (odds.low, odds.high) == pytest.approx((0.262, 0.402), abs=0.009)
    assert finding(audits["race", "favorable"], "disparate_impact").verdict is Verdict.CLEARED


def test_read_as_favourable_the_rule_flags_women_whom_the_decision_spares(audits):
    assert flagged(audits["sex", "favorable"]) == {("Female", "disparate_impact")}
    assert finding(audits["sex", "favorable"], "equalized_odds_difference").verdict is Verdict.INCONCLUSIVE


def test_read_as_adverse_both_rules_flag(audits):
    audited = audits["race", "adverse"]
    ratio = finding(audited, "disparate_impact")
    assert ratio.value == pytest.approx(0.6785, abs=5e-5)
    assert (ratio.low, ratio.high) == pytest.approx((0.632, 0.726), abs=0.006)
    assert flagged(audited) == {
        ("African-American", "disparate_impact"),
        ("African-American", "equalized_odds_difference"),
    }
    # The ratio of the adverse event stands beside it, descriptive.
    beside = finding(audited, "selection_rate_ratio")
    assert beside.value == pytest.approx(2.497523, abs=1e-6)
    assert beside.verdict is None


def test_read_as_adverse_women_are_not_flagged(audits):
    assert finding(audits["sex", "adverse"], "disparate_impact").value == pytest.approx(1.252, abs=5e-4)
    assert not audits["sex", "adverse"].flagged


@pytest.mark.parametrize("attribute", ["race", "sex"])
def test_what_the_outcome_turns_over_and_what_it_does_not(audits, attribute):
    favorable, adverse = audits[attribute, "favorable"], audits[attribute, "adverse"]
    spd = "statistical_parity_difference"
    assert finding(adverse, spd).value == pytest.approx(-finding(favorable, spd).value, abs=1e-12)
    for metric in ("true_positive_rate_difference", "false_positive_rate_difference", "precision_difference"):
        assert finding(adverse, metric).value == finding(favorable, metric).value
    assert METRICS["disparate_impact"].by_outcome
    assert not METRICS["true_positive_rate_difference"].by_outcome


def test_composite_and_band_under_either_outcome(audits):
    favorable, adverse = audits["race", "favorable"].composite, audits["race", "adverse"].composite
    assert favorable.value == pytest.approx(0.583756, abs=1e-6)
    assert adverse.value == pytest.approx(0.694996, abs=1e-6)
    assert (favorable.band, adverse.band) == ("High Risk", "Medium Risk")
    assert (favorable.group, favorable.reference) == ("African-American", "Caucasian")


def test_the_default_reference_under_adverse_is_the_group_spared_most(protocols):
    assert audit_of(protocols["race"], outcome="adverse", reference=None).references[0].group == "Caucasian"
    assert audit_of(protocols["race"], outcome="favorable", reference=None).references[0].group == "African-American"
    assert audit_of(protocols["sex"], outcome="adverse", reference=None).references[0].group == "Female"


def test_with_all_six_races_composite_and_minimum_are_withheld(protocols):
    sex = protocols["sex"]
    race = fetch_compas(download_if_missing=False).sensitive_features.loc[sex.y_pred.index, ["race"]]
    with pytest.warns(UndefinedMetricWarning, match="Native American has no positive y_true"):
        audited = audit_of(sex, sensitive_features=race, reference={"race": "Caucasian"})
    sizes = audited.tally.frame().set_index("race")["n"]
    assert sizes[["Native American", "Asian"]].tolist() == [2, 11]
    for headline in (audited.composite, audited.minimum_disparate_impact):
        assert headline.value is None
        assert headline.band is None
        assert headline.reason.startswith("withheld: ")
    # Each comparison's own composite stands on its row.
    assert finding(audited, "composite_bias_score", "African-American").value == pytest.approx(0.583756, abs=1e-6)
    assert flagged(audited) == {("African-American", "equalized_odds_difference")}


def test_every_finding_agrees_with_fairlearn(audits):
    for audited in audits.values():
        assert audited.cross_check()["largest_deviation"].max() < 1e-9


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_flagged_does_not_depend_on_the_seed(audits, seed):
    audited = audits["race", "favorable"]
    again = audit_tally(audited.tally, reference="Caucasian", metrics=["disparate_impact"], random_state=seed)
    assert flagged(again) == flagged(audited)


def test_the_tally_alone_gives_the_same_audit(audits):
    audited = audits["race", "favorable"]
    same = audit_tally(audited.tally, reference="Caucasian")
    assert same.to_json() == audited.to_json()


# ------------------------------------------------------------------------------------------------------- other facts
@pytest.mark.slow
def test_other_splits_give_other_ratios():
    bunch = fetch_compas(download_if_missing=False)
    X = bunch.data[["age", "priors_count", "length_of_stay", "juv_fel_count", "juv_misd_count"]].dropna()
    y, race = bunch.target.loc[X.index], bunch.sensitive_features["race"]
    assert len(X) == 6172
    ratios = []
    for seed in range(10):
        X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        predicted = pd.Series(
            LogisticRegression(max_iter=5000).fit(X_train, y_train).predict(X_test), index=X_test.index
        )
        pair = predicted[race.loc[predicted.index].isin(["African-American", "Caucasian"])]
        ratios.append(
            metrics.disparate_impact(None, pair, sensitive_features=race.loc[pair.index], reference="Caucasian")
        )
    assert (min(ratios), max(ratios)) == pytest.approx((1.83, 2.22), abs=5e-3)


def test_propublica_own_table():
    bunch = fetch_compas(download_if_missing=False, propublica_filter=False)
    assert len(bunch.target) == 7214
    decision = (bunch.frame["decile_score"] >= 5).astype(int)
    tally = Tally.from_predictions(bunch.target, decision, sensitive_features=bunch.sensitive_features["race"])
    rates = {
        (name, group[0]): value
        for name in ("false_positive_rate", "false_negative_rate")
        for group, value in zip(tally.groups, METRICS[name](tally.counts), strict=True)
    }
    printed = {
        ("false_positive_rate", "African-American"): 0.4485,
        ("false_positive_rate", "Caucasian"): 0.2345,
        ("false_negative_rate", "African-American"): 0.2799,
        ("false_negative_rate", "Caucasian"): 0.4772,
    }
    assert {key: round(rates[key], 4) for key in printed} == printed


def test_plain_compas_is_read_as_adverse():
    bunch = fetch_compas(download_if_missing=False)
    assert bunch.outcome == "adverse"
    assert bunch.reference == {"race": "Caucasian", "sex": "Male"}


@pytest.mark.parametrize(("cut", "ratio"), [(25, 0.821), (26, 0.795)])
def test_german_credit_depends_on_where_age_is_cut(cut, ratio):
    bunch = load_german_credit(age_cut=cut)
    options = {"sensitive_features": bunch.sensitive_features, "pos_label": bunch.pos_label}
    value = metrics.disparate_impact(None, bunch.target, **options, reference=bunch.reference["age"])
    assert value == pytest.approx(ratio, abs=5e-4)
    assert bunch.reference["age"] == f"age >= {cut}"


def test_a_gap_of_precision_is_tested_on_the_predicted_positives(audits):
    gap = finding(audits["race", "favorable"], "precision_difference")
    assert gap.denominators == {"selected": (316 + 106, 68 + 46)}
    assert gap.pvalue == pytest.approx(float(inference.two_proportion_ztest(316, 422, 68, 114).pvalue), abs=1e-12)
