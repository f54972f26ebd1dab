"""Presets: the rules' own tables to the printed digit, what is left out and unknown, and words that must not be said."""

import json
import re
import sys
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportions_ztest

from sklearn_ethiclens import MISSING, POLICIES, PRESETS, Audit, Tally, audit, audit_tally, cli, metrics
from sklearn_ethiclens.cli import main
from sklearn_ethiclens.datasets import compas_protocol, german_credit_protocol
from sklearn_ethiclens.exceptions import MissingGroupsWarning
from sklearn_ethiclens.metrics._scores import above_median_counts, median_score
from sklearn_ethiclens.presets import NO_CERTIFICATE, RULES
from tests._shared import case, data_file
from tests.test_report_html import words

FEW = {"n_resamples": 100}
# Words of verdicts and of bands, however they are spelled; "descriptive" and "no verdict" are none.
VERDICT_WORDS = re.compile(
    r"\b(flag(s|ged)?|cleared|inconclusive|insufficient\w*|pass(ed)?|fail(ed|s)?|compliant|non-?compliant|compliance|"
    r"(low|medium|high) risk|violat\w+|acceptable|unfair|fair)\b",
    re.IGNORECASE,
)
# Claims that no preset makes.
CLAIMS = re.compile(
    r"\b(compliant|compliance|complies|certif(y|ies|ied)|lawful|unlawful|satisf(y|ies|ied)|should)\b", re.IGNORECASE
)
NO_EXCLUSION = POLICIES["ll144"].replace(min_share=0.0, **FEW)
german_credit_once, compas_once = cache(german_credit_protocol), cache(compas_protocol)  # the models are fitted once


def frame_of(made, key):
    return made.section(key).frame()


def by_category(made, key="ll144 selection", table=None):
    """The rows of a table by category, of one table where several are named."""
    frame = frame_of(made, key)
    return (frame if table is None else frame[frame["table"] == table]).set_index("category")


def printed(case, name, value):
    """The value agrees with what the publication printed, to the half-width of its rounding."""
    number, half_width = case["published"][name]
    assert abs(value - number) <= half_width, f"{name}: {value!r}, printed {number!r}"


def rows_of(n, **options):
    """Rows with scores, labels and three columns of groups."""
    rng = np.random.default_rng(0)
    score = rng.random(n)
    people = {
        "sex": rng.choice(["F", "M"], n),
        "race": rng.choice(["B", "N", "W"], n, p=[0.3, 0.01, 0.69]),
    }
    decided = (score > 0.5).astype(int)
    labels = (rng.random(n) < score).astype(int)
    return audit(labels, decided, sensitive_features=people, y_score=score, **FEW, **options)


@pytest.fixture(scope="module")
def scored():
    return rows_of(800)


# ------------------------------------------------------------------------------------------------- LL144: the rule's tables
@pytest.mark.parametrize("name", ["ll144_rule_race", "ll144_rule_sex"])
def test_the_rules_table_of_single_categories_to_the_printed_digit(name):
    given = case(name)
    counts = dict(given["input"]["counts"])
    if unknown := given["input"].get("unknown"):
        counts[MISSING] = {"n": unknown, "selected": 0}
    tally = Tally.from_counts(counts, attribute="race" if "race" in name else "sex")
    table = by_category(audit_tally(tally, policy=NO_EXCLUSION).preset("ll144"))
    for group in given["input"]["counts"]:
        for short in ("selection_rate", "impact_ratio"):
            assert table.loc[group, short] == pytest.approx(given["expect"][f"{short}[{group}]"], abs=1e-9)
            if f"{short}[{group}]" in given["published"]:
                printed(given, f"{short}[{group}]", table.loc[group, short])
        assert table.loc[group, "n"] == given["input"]["counts"][group]["n"]
    assert table.index[table["note"] == "highest"].tolist() == [given["expect"]["most_selected"]]
    assert set(table["table"]) == {"race/ethnicity categories (race)" if "race" in name else "sex categories"}


def test_the_rules_intersectional_table_to_the_printed_digit():
    given = case("ll144_rule_intersectional")
    cells = {tuple(label.rsplit(" ", 1)): cell for label, cell in given["input"]["counts"].items()}
    made = audit_tally(Tally.from_counts(cells, attribute=["race", "sex"]), policy=NO_EXCLUSION).preset("ll144")
    table = by_category(made, table="intersectional categories (race & sex)")
    assert len(table) == 14
    for race, sex in cells:
        for short in ("selection_rate", "impact_ratio"):
            value = table.loc[[(race, sex)], short].item()
            assert value == pytest.approx(given["expect"][f"{short}[{race} {sex}]"], abs=1e-9)
            printed(given, f"{short}[{race} {sex}]", value)
    # Its sums are the rule's table by sex, as printed (1,390 and 667; 1,181 and 555).
    by_sex = by_category(made, table="sex categories")
    assert by_sex.loc["Male", ["n", "selected"]].tolist() == [1390, 667]
    assert by_sex.loc["Female", ["n", "selected"]].tolist() == [1181, 555]


def test_small_categories_are_listed_with_number_and_rate_and_have_no_ratio():
    given = case("ll144_rule_race_exclusion")
    made = audit_tally(Tally.from_counts(given["input"]["counts"], attribute="race"), policy="ll144", **FEW).preset(
        "ll144"
    )
    table = by_category(made)
    assert table.index[table["impact_ratio"].isna()].tolist() == given["expect"]["excluded"]
    for name, expected in given["expect"].items():
        short, _, group = name.rstrip("]").partition("[")
        if short in ("selection_rate", "impact_ratio") and expected is not None:
            assert table.loc[group, short] == pytest.approx(expected, abs=1e-9)
    (small,) = given["expect"]["excluded"]
    assert table.loc[small, ["n", "selected", "note"]].tolist() == [41, 18, "under 2%"]
    (line,) = [line for line in made.section("ll144 selection").lines if "left out" in line]
    assert f"{small} in race/ethnicity categories (race), n = 41, 1.59% of the data, selection rate 0.439" in line


def test_exactly_two_per_cent_is_not_left_out():
    counts = {"a": {"n": 49, "selected": 20}, "b": {"n": 49, "selected": 28}, "c": {"n": 2, "selected": 1}}
    kept = by_category(audit_tally(Tally.from_counts(counts), policy="ll144", **FEW).preset("ll144"))
    assert kept["note"].tolist() == ["", "highest", ""]
    counts["a"] = {"n": 50, "selected": 20}
    left_out = by_category(audit_tally(Tally.from_counts(counts), policy="ll144", **FEW).preset("ll144"))
    assert left_out["note"].tolist() == ["", "highest", "under 2%"]


def test_a_small_category_with_the_highest_rate_is_no_yardstick():
    counts = {"a": {"n": 500, "selected": 250}, "b": {"n": 500, "selected": 200}, "tiny": {"n": 3, "selected": 3}}
    table = by_category(audit_tally(Tally.from_counts(counts), policy="ll144", **FEW).preset("ll144"))
    assert table.loc[["a", "b"], "impact_ratio"].tolist() == [1.0, 0.8]
    assert pd.isna(table.loc["tiny", "impact_ratio"])


def test_unknown_categories_are_counted_and_in_no_calculation():
    given = case("ll144_rule_sex")
    counts = {**given["input"]["counts"], MISSING: {"n": 250, "selected": 200}}  # a rate that would be the highest
    made = audit_tally(Tally.from_counts(counts, attribute="sex"), policy="ll144", **FEW).preset("ll144")
    table = frame_of(made, "ll144 selection")
    unknown = table[table["note"] == "unknown"]
    assert unknown["n"].tolist() == [250]
    assert unknown[["selected", "selection_rate", "impact_ratio"]].isna().all(axis=None)
    printed(given, "impact_ratio[Female]", table.loc[table["category"] == "Female", "impact_ratio"].item())
    assert (
        "Of unknown category, and not in these calculations: 250 in sex categories."
        in made.section("ll144 selection").lines
    )


def test_a_row_of_half_known_categories_is_unknown_where_both_are_asked_for():
    people = {"sex": ["F", "F", "M", "M", None], "race": ["A", "B", "A", "B", "A"]}
    with pytest.warns(MissingGroupsWarning):
        made = audit(None, [1, 0, 1, 1, 1], sensitive_features=people, policy="ll144", **FEW).preset("ll144")
    unknown = frame_of(made, "ll144 selection").query("note == 'unknown'")
    assert unknown[["table", "n"]].values.tolist() == [
        ["sex categories", 1],
        ["intersectional categories (sex & race)", 1],
    ]
    assert by_category(made, table="race/ethnicity categories (race)").loc["A", "n"] == 3


def test_ratios_are_of_rates_that_are_not_rounded():
    # 1/3 over 2/3 is .5; rounded to a whole per cent first it would be 33/67 = .4925.
    counts = {"a": {"n": 300, "selected": 100}, "b": {"n": 300, "selected": 200}}
    table = by_category(audit_tally(Tally.from_counts(counts), policy="ll144", **FEW).preset("ll144"))
    assert table.loc["a", "impact_ratio"] == 0.5


def test_the_ratio_is_to_the_most_selected_category_whatever_reference_was_named():
    counts = {"a": {"n": 300, "selected": 100}, "b": {"n": 300, "selected": 200}}
    made = audit_tally(Tally.from_counts(counts), reference="a", policy="ll144", **FEW).preset("ll144")
    assert by_category(made)["impact_ratio"].tolist() == [0.5, 1.0]


def test_selection_is_of_the_favourable_decision():
    counts = {"a": {"n": 100, "selected": 20}, "b": {"n": 100, "selected": 60}}
    made = audit_tally(Tally.from_counts(counts), outcome="adverse", policy="ll144", **FEW).preset("ll144")
    assert by_category(made)["selection_rate"].tolist() == [0.8, 0.4]
    assert by_category(made)["impact_ratio"].tolist() == [1.0, 0.5]
    assert made.section("ll144 selection").lines[0].startswith("Selected: not receiving 1.")


# ---------------------------------------------------------------------------------------------------- LL144: scoring rates
def test_the_rules_scoring_tables_to_the_printed_digit():
    given = case("ll144_scoring_sex_race")
    rows = given["input"]
    made = audit(
        None,
        metrics.above_median(rows["score"]),
        sensitive_features={"sex": rows["sex"], "race": rows["race"]},
        y_score=rows["score"],
        policy="ll144",
        **FEW,
    ).preset("ll144")
    table = by_category(made, "ll144 scoring")
    for name in given["published"]:
        short, _, group = name.rstrip("]").partition("[")
        printed(given, name, table.loc[group, short])
    assert "above 84.5, the median of all 168 scores" in made.section("ll144 scoring").lines[0]
    assert [section.key for section in made.sections][:2] == ["preset ll144", "ll144 scoring"]  # one table says both


@pytest.mark.parametrize(
    ("scores", "above"),
    [
        ([1, 2, 3], [0, 0, 1]),
        ([1, 2, 3, 4], [0, 0, 1, 1]),
        ([2, 2, 2, 5], [0, 0, 0, 1]),
        ([2, 2, 2, 2], [0, 0, 0, 0]),
        ([5], [0]),
        ([2.0, np.nextafter(2.0, 3)], [0, 1]),  # halfway between them is no float of its own
        ([np.nextafter(2.0, 3), np.nextafter(np.nextafter(2.0, 3), 3)], [0, 1]),
    ],
)
def test_above_the_median_by_hand(scores, above):
    assert metrics.above_median(scores).tolist() == above
    assert metrics.above_median(scores[::-1]).tolist() == above[::-1]


def test_above_the_median_agrees_with_numpy_and_with_the_counts_of_a_tally():
    rng = np.random.default_rng(1)
    for n in (7, 50, 301):
        score, group = rng.integers(0, 9, n) / 8, rng.choice(["a", "b", "c"], n)
        above = metrics.above_median(score)
        assert above.tolist() == (score > np.median(score)).astype(int).tolist()
        labels = rng.integers(0, 2, n)
        for truth, decided in ((labels, labels), (None, above)):
            tally = Tally.from_predictions(truth, decided, sensitive_features=group, y_score=score)
            counted = [int(above[group == name].sum()) for (name,) in tally.groups]
            assert above_median_counts(tally.scores).tolist() == counted
            assert median_score(tally.scores) == np.median(score)


def test_above_the_median_refuses_what_has_none():
    with pytest.raises(ValueError, match="y_score is empty"):
        metrics.above_median([])
    with pytest.raises(ValueError, match=r"1 missing \(NaN\)"):
        metrics.above_median([1.0, np.nan])


def test_decisions_of_their_own_have_a_table_beside_that_of_scores(scored):
    made = scored.preset("ll144")
    assert [section.key for section in made.sections][:3] == ["preset ll144", "ll144 selection", "ll144 scoring"]
    rates = frame_of(made, "ll144 scoring").set_index(["table", "category"])
    assert rates.loc[("sex categories", "F"), "scoring_rate"] != pytest.approx(
        by_category(made, table="sex categories").loc["F", "selection_rate"]
    )


def test_scoring_rates_outlive_storing_and_judging_again():
    score = np.arange(200.0)
    sex = np.repeat(["F", "M", "F", "M"], 50)
    made = audit(
        None, metrics.above_median(score), sensitive_features={"sex": sex}, y_score=score, policy="ll144", **FEW
    )
    made = made.preset("ll144")
    again = Audit.from_json(made.to_json()).rejudge("four_fifths")
    assert again.section("ll144 scoring") == made.section("ll144 scoring")
    assert "ll144 selection" not in [section.key for section in again.sections]
    assert any("four_fifths, chosen in place of ll144" in line for line in again.section("preset ll144").lines)


# ------------------------------------------------------------------------------------------------- LL144: nothing is judged
@pytest.mark.parametrize("format", ["text", "html", "markdown"])
@pytest.mark.parametrize("labelled", [True, False])
def test_no_verdict_word_stands_in_the_report_of_ll144(scored, format, labelled):
    if labelled:
        made = scored.preset("ll144")
    else:
        counts = {"a": {"n": 900, "selected": 100}, "b": {"n": 900, "selected": 600}, "c": {"n": 9, "selected": 0}}
        made = audit_tally(Tally.from_counts(counts), policy="ll144", **FEW).preset("ll144")
    said = made.report(format)
    assert VERDICT_WORDS.findall(words(said) if format == "html" else said) == []
    stored = json.loads(made.to_json())
    assert (stored["verdict"], stored["status"], stored["composite"]["band"]) == (None, "NOT JUDGED", None)
    assert not re.search(r"FLAGGED|CLEARED|INCONCLUSIVE|\bPASS|\bFAIL|Risk", made.to_json())
    assert not made.fails(["flagged", "inconclusive", "insufficient"])


def test_the_search_for_verdict_words_finds_some():
    counts = {"a": {"n": 900, "selected": 100}, "b": {"n": 900, "selected": 600}}
    assert VERDICT_WORDS.findall(audit_tally(Tally.from_counts(counts), **FEW).report("text"))


# ------------------------------------------------------------------------------------------------------------------- EEOC
def adverse_impact(counts, **options):
    made = audit_tally(Tally.from_counts(counts), policy="eeoc", **FEW, **options).preset("eeoc")
    return frame_of(made, "eeoc adverse impact").set_index("group")


@pytest.mark.parametrize(
    "name",
    [
        "ugesp_qa11_rates",
        "ugesp_qa12_four_steps",
        "ugesp_qa21_flip_flop",
        "ricci_captain",
        "auditai_readme_four_groups",
        "exact_four_fifths_float",
    ],
)
def test_reference_cases_of_adverse_impact(name):
    given = case(name)
    table = adverse_impact(given["input"]["counts"])
    columns = {
        "selection_rate": "selection_rate",
        "impact_ratio": "impact_ratio",
        "z_pooled": "sd",
        "p_value": "pvalue",
    }
    columns |= {"fisher_p": "fisher_p", "shortfall": "shortfall"}
    checked = set()
    for key, expected in given["expect"].items():
        short, _, pair = key.rstrip("]").partition("[")
        group = pair.partition("|")[0]
        if short in columns:
            value = table.loc[group, columns[short]]
            if short == "fisher_p" and pd.isna(value):
                continue  # only where an expected count is below 5
            assert value == pytest.approx(expected, abs=1e-9)
            checked.add(short)
        elif short == "flip_flop":
            assert table.loc[group, "one_more"] == ("yes" if expected else "no")
    assert {"selection_rate", "impact_ratio", "z_pooled", "p_value", "shortfall"} <= checked
    for key in given.get("published", {}):
        short, _, group = key.rstrip("]").partition("[")
        printed(given, key, table.loc[group, short])
    assert table.index[table["below_4/5"] == "yes"].tolist() == sorted(given["expect"]["four_fifths_below"])
    assert table.index[table["below_4/5"] == "highest"].tolist() == [given["expect"]["most_selected"]]


def test_question_12_by_hand():
    # 12 of 40 against 48 of 80: pooled rate 60/120 = .5, so 20 expected of 40, 8 short; z = -.3 / sqrt(.25 (1/40 + 1/80)).
    row = adverse_impact({"White": {"n": 80, "selected": 48}, "Black": {"n": 40, "selected": 12}}).loc["Black"]
    assert row[["n", "selected", "impact_ratio", "below_4/5", "shortfall", "persons", "one_more"]].tolist() == [
        *(40, 12, 0.5, "yes", 8.0, 8, "no")
    ]
    assert row["sd"] == pytest.approx(-0.3 / np.sqrt(0.25 * (1 / 40 + 1 / 80)))
    assert pd.isna(row["fisher_p"])  # the least expected count is 20


def test_question_20_a_small_ratio_of_large_numbers():
    # 90% against 96%: the ratio is about 94%, above four fifths, and many standard deviations.
    row = adverse_impact({"a": {"n": 5000, "selected": 4800}, "b": {"n": 5000, "selected": 4500}}).loc["b"]
    assert (round(row["impact_ratio"], 2), row["below_4/5"]) == (0.94, "no")
    assert row["sd"] < -10


def test_question_21_numbers_too_small():
    # Three of 20 men and one of 10 women: 10% over 15% is two thirds, and one more woman in place of a man reverses it.
    row = adverse_impact({"men": {"n": 20, "selected": 3}, "women": {"n": 10, "selected": 1}}).loc["women"]
    assert row["impact_ratio"] == pytest.approx(2 / 3)
    assert (row["below_4/5"], row["one_more"]) == ("yes", "yes")
    assert row["fisher_p"] == pytest.approx(stats.fisher_exact([[1, 9], [3, 17]]).pvalue)


def test_standard_deviations_and_fisher_agree_with_independent_libraries():
    counts = {"a": {"n": 400, "selected": 120}, "b": {"n": 250, "selected": 60}, "c": {"n": 12, "selected": 2}}
    table = adverse_impact(counts)
    for group in ("b", "c"):
        n, k = counts[group]["n"], counts[group]["selected"]
        z, p = proportions_ztest([k, 120], [n, 400])
        assert table.loc[group, "sd"] == pytest.approx(z)
        assert table.loc[group, "pvalue"] == pytest.approx(p)
    assert table["fisher_p"].isna().tolist() == [True, True, False]
    assert table.loc["c", "fisher_p"] == pytest.approx(stats.fisher_exact([[2, 10], [120, 280]]).pvalue)


def test_whole_persons_are_the_nearest_halves_upward():
    # 45 of 100 against 60 of 100: 52.5 expected, 7.5 short, 8 persons; 51 of 100: 4.5 short, 5; 59 of 100: .5 short, 1.
    counts = {"a": {"n": 100, "selected": 60}} | {k: {"n": 100, "selected": int(k)} for k in ("45", "51", "59")}
    table = adverse_impact(counts)
    assert table.loc[["45", "51", "59"], ["shortfall", "persons"]].values.tolist() == [[7.5, 8], [4.5, 5], [0.5, 1]]


def test_nobody_selected_is_undefined_and_not_below_four_fifths():
    with pytest.warns(UserWarning, match="undefined"):
        table = adverse_impact({"a": {"n": 50, "selected": 0}, "b": {"n": 60, "selected": 0}})
    assert np.isnan(table.loc["a", "impact_ratio"])
    assert pd.isna(table.loc["a", "below_4/5"])
    assert table.loc["a", ["sd", "pvalue", "shortfall"]].tolist() == [0.0, 1.0, 0.0]


def test_a_tiny_group_with_the_highest_rate_is_named():
    counts = {"a": {"n": 500, "selected": 250}, "b": {"n": 500, "selected": 200}, "c": {"n": 3, "selected": 3}}
    made = audit_tally(Tally.from_counts(counts, attribute="race"), policy="eeoc", **FEW).preset("eeoc")
    assert "Highest, but under 2% of the rows: c (race, n = 3)." in made.section("eeoc adverse impact").lines


def test_weighted_rows_have_rates_and_tests_but_no_persons():
    rng = np.random.default_rng(2)
    sex, decided, weight = rng.choice(["F", "M"], 400), rng.integers(0, 2, 400), rng.uniform(0.5, 2, 400)
    made = audit(None, decided, sensitive_features={"sex": sex}, sample_weight=weight, policy="eeoc", **FEW).preset(
        "eeoc"
    )
    row = frame_of(made, "eeoc adverse impact").set_index("group")
    for name in ("F", "M"):
        mine = sex == name
        assert row.loc[name, "selection_rate"] == pytest.approx(np.average(decided[mine], weights=weight[mine]))
    assert row[["shortfall", "persons", "one_more"]].isna().all(axis=None)
    assert any("of people counted" in line for line in made.section("eeoc adverse impact").lines)


# -------------------------------------------------------------------------------------------------- EU AI Act and lending
def test_the_eu_facts_are_the_audits_own_numbers(scored):
    made = scored.preset("eu-ai-act")
    data = frame_of(made, "eu-ai-act article 10").set_index(["attribute", "group"])
    assert data.loc["sex", "n"].sum() == data.loc["race", "n"].sum() == 800
    assert data.loc["race", "share"].sum() == pytest.approx(1.0)
    rates = scored.rates().set_index(["attribute", "group", "rate"])
    for row in frame_of(made, "eu-ai-act article 13").itertuples():
        for rate in ("accuracy", "true_positive_rate", "selection_rate"):
            mine = rates.loc[(row.attribute, row.group, rate)]
            assert [getattr(row, f"{rate}{end}") for end in ("", "_low", "_high")] == mine[
                ["value", "low", "high"]
            ].tolist()


def test_overall_accuracy_agrees_with_counting(scored):
    made = scored.preset("eu-ai-act")
    table = frame_of(made, "eu-ai-act article 15").set_index("metric")
    cells = scored.tally.counts.sum(0)
    assert table.loc["accuracy", "value"] == np.trace(cells) / 800
    assert table.loc["true_positive_rate", ["value", "denominator"]].tolist() == [
        cells[1, 1] / cells[1].sum(),
        cells[1].sum(),
    ]
    for name in ("roc_auc", "brier_score"):
        row = table.loc[name]
        assert row["low"] < row["value"] < row["high"]
    truth = np.concatenate([np.ones(cells[1].sum()), np.zeros(cells[0].sum())])
    groups = [scored.tally.scores.group(i) for i in range(scored.tally.scores.n_groups)]
    score = np.concatenate([*(g.positives for g in groups), *(g.negatives for g in groups)])
    positives, negatives = score[truth == 1], score[truth == 0]
    u = stats.mannwhitneyu(positives, negatives).statistic
    assert table.loc["roc_auc", "value"] == pytest.approx(u / (positives.size * negatives.size))


def test_what_the_eu_preset_cannot_state_is_said_to_be_unknown(scored):
    facts = frame_of(scored.preset("eu-ai-act"), "eu-ai-act annex iv").set_index("point")["fact"]
    for point in (
        "3 human oversight (article 14)",
        "2(g) metrics of robustness",
        "3 foreseeable unintended outcomes and risks",
    ):
        assert facts[point] == "not known from this audit"
    assert facts["2(g) identity of the data"].endswith(scored.tally.digest())


def test_lending_repeats_the_findings(scored):
    made = scored.preset("lending")
    found = {(f.attribute, f.group, f.metric): f for f in made.findings}
    table = frame_of(made, "lending approval")
    for row in table[table["note"] != "reference"].itertuples():
        for short, metric in (
            ("air", "disparate_impact"),
            ("gap", "statistical_parity_difference"),
            ("creditworthy_gap", "true_positive_rate_difference"),
        ):
            f = found[row.attribute, row.group, metric]
            np.testing.assert_array_equal(
                [getattr(row, f"{short}{end}") for end in ("", "_low", "_high")], [f.value, f.low, f.high]
            )
    calibration = frame_of(made, "lending calibration").set_index(["attribute", "group"])
    assert calibration.loc[("sex", "F"), "ece"] == found["sex", "F", "expected_calibration_error"].value
    facts = frame_of(made, "lending model risk").set_index("item")["fact"]
    assert (facts["seed"], facts["data, tally sha256"]) == ("0", scored.tally.digest())


def test_approval_of_the_creditworthy_where_the_positive_label_is_adverse():
    # Positive is a default: approved are those predicted negative, creditworthy those labelled negative, so 40 of 50.
    counts = {"a": {"tn": 40, "fp": 10, "fn": 5, "tp": 45}, "b": {"tn": 30, "fp": 20, "fn": 5, "tp": 45}}
    made = audit_tally(Tally.from_counts(counts), outcome="adverse", **FEW).preset("lending")
    table = frame_of(made, "lending approval").set_index("group")
    assert table["creditworthy"].tolist() == [0.8, 0.6]
    assert table["approval_rate"].tolist() == [0.45, 0.35]
    assert table.loc["b", "creditworthy_gap"] == pytest.approx(-0.2)


# ------------------------------------------------------------------------------------------------------------- all presets
@pytest.mark.parametrize("name", PRESETS)
def test_each_states_rule_source_date_and_status_first(scored, name):
    made = scored.preset(name)
    first = made.sections[0]
    assert first.key == f"preset {name}"
    assert first.lines[0] == NO_CERTIFICATE
    said = "\n".join(first.lines)
    for rule in PRESETS[name].rules:
        assert f"{rule.title}. Source: {rule.citation}. Date: {rule.date}." in said
        assert f"Status as of {rule.as_of}: {rule.status}." in said
    for format in ("text", "html"):
        flat = re.sub(r"\s+", " ", made.report(format))
        assert "Status as of November 2026: " in flat
        assert NO_CERTIFICATE in flat


def test_the_statuses_of_late_2026():
    status = {name: rule.status for name, rule in RULES.items()}
    assert {rule.as_of for rule in RULES.values()} == {"November 2026"}
    assert status["ll144"] == "in force"
    assert status["ugesp"] == "under rescission by the EEOC"
    assert "Annex III apply from December 2027" in status["eu-ai-act"]
    assert "effects test (disparate impact) is removed from July 2026, state law stays" in status["ecoa"]


def test_every_rule_is_of_some_preset():
    used = [rule for preset in PRESETS.values() for rule in preset.rules]
    assert sorted(map(id, used)) == sorted(map(id, RULES.values()))


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_claims_or_advises(scored, name):
    made = scored.preset(name)
    keys = [section for section in made.sections if section.key != "scores"]
    words = "\n".join(str(text) for s in keys for text in (s.title, *s.lines, *(c for row in s.rows for c in row)))
    assert CLAIMS.findall(words.replace(NO_CERTIFICATE, "")) == []


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("labelled", [True, False])
def test_json_round_trip(scored, name, labelled):
    if labelled:
        made = scored.preset(name)
    else:
        made = _two_groups().preset(name)
    stored = made.to_json()
    again = Audit.from_json(stored)
    assert again.to_json() == stored
    assert again.sections == made.sections or _same_but_for_nan(again, made)
    assert again.parameters["presets"] == [name]


def _two_groups():
    counts = {"a": {"n": 90, "selected": 30}, "b": {"n": 50, "selected": 5}, MISSING: {"n": 9, "selected": 3}}
    return audit_tally(Tally.from_counts(counts, attribute="sex"), **FEW)


def _same_but_for_nan(one, other):
    return all(a.frame().equals(b.frame()) for a, b in zip(one.sections, other.sections, strict=True))


@pytest.mark.parametrize("name", PRESETS)
def test_without_labels_nothing_is_invented(name):
    made = _two_groups().preset(name)
    said = "\n".join(line for section in made.sections for line in section.lines)
    if name == "eu-ai-act":
        assert set(frame_of(made, "eu-ai-act article 15")["metric"]) == {"selection_rate"}
        assert frame_of(made, "eu-ai-act article 10")[["positives", "base_rate"]].isna().all(axis=None)
        assert "accuracy and error rates are not known from this audit" in said
    if name == "lending":
        table = frame_of(made, "lending approval")
        assert table[["creditworthy", "creditworthy_gap"]].isna().all(axis=None)
        assert "approval of the creditworthy is not known from this audit" in said
    assert made.report("text")
    assert made.report("html")


def test_the_policy_of_a_preset_judges_unless_another_is_given():
    made = _two_groups()
    assert made.preset("ll144").policy == POLICIES["ll144"]
    assert made.preset("eeoc").policy == POLICIES["eeoc"]
    assert made.preset("lending").policy is made.policy
    kept = made.preset("ll144", policy=made.policy)
    assert kept.policy is made.policy
    assert any("ethiclens, chosen in place of ll144" in line for line in kept.section("preset ll144").lines)
    changed = audit_tally(made.tally, policy="eeoc", confidence_level=0.9, **FEW).preset("eeoc")
    assert changed.policy.confidence_level == 0.9


def test_presets_stand_side_by_side_and_only_once():
    made = _two_groups().preset("eeoc").preset("lending").preset("eeoc")
    assert made.parameters["presets"] == ["lending", "eeoc"]
    keys = [section.key for section in made.sections]
    assert len(keys) == len(set(keys))
    assert keys[:2] == ["preset eeoc", "eeoc adverse impact"]


def test_judging_again_says_the_new_policy():
    made = _two_groups().preset("eeoc").rejudge("four_fifths")
    assert made.policy.name == "four_fifths"
    assert any("four_fifths, chosen in place of eeoc" in line for line in made.section("preset eeoc").lines)


@pytest.mark.parametrize("name", ["ll-144", "", None, 3])
def test_bad_names_are_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"preset must be one of \['eeoc', 'eu-ai-act', 'lending', 'll144'\]"):
        _two_groups().preset(name)


# ------------------------------------------------------------------------------------------------------------ command line
@pytest.fixture
def run(monkeypatch, capsys):
    """Call the entry point as a shell does; give back the exit code, stdout and stderr."""
    monkeypatch.setattr(cli, "german_credit_protocol", german_credit_once)
    monkeypatch.setattr(cli, "compas_protocol", compas_once)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        return (end.value.code or 0, *capsys.readouterr())

    return call


@pytest.mark.parametrize(("source", "name"), list(product(["german-credit", "compas"], PRESETS)))
def test_every_preset_on_the_data_sets(run, tmp_path, source, name):
    if source == "compas":
        data_file("compas-two-years.csv")
    page, stored = tmp_path / "a.html", tmp_path / "a.json"
    code, out, err = run("audit", source, "--preset", name, "--n-resamples", "100", "--html", page, "--json", stored)
    assert code in (0, 1)
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    made = Audit.from_json(stored.read_text(encoding="utf-8"))
    assert made.policy.name == (PRESETS[name].policy or "ethiclens")
    html = page.read_text(encoding="utf-8")
    flat = " ".join(out.split())
    for rule in PRESETS[name].rules:
        assert f"Status as of {rule.as_of}: {rule.status}." in flat
        assert rule.citation in html
    for section in PRESETS[name].sections(made):
        assert section.title in flat
    if name == "ll144":
        assert code == 0
        assert VERDICT_WORDS.findall(out) == VERDICT_WORDS.findall(words(html)) == []


def test_an_explicit_policy_is_used_and_said(run):
    _, out, _ = run("audit", "german-credit", "--preset", "eeoc", "--policy", "assessor", "--n-resamples", "100")
    assert "Policy of this audit: assessor, chosen in place of eeoc" in " ".join(out.split())
    assert "ethiclens: " in run("audit", "german-credit", "--n-resamples", "100")[1]


def test_scores_stand_for_decisions_under_ll144_only(run, tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "scores.csv"
    frame = pd.DataFrame(
        {"sex": rng.choice(["F", "M"], 101), "s": rng.integers(0, 60, 101), "y": rng.integers(0, 2, 101)}
    )
    frame.to_csv(path, index=False)
    words = ("audit", path, "--y-score", "s", "--sensitive", "sex", "--n-resamples", "100")
    code, out, err = run(*words, "--preset", "ll144")
    assert (code, err) == (0, "")
    flat = " ".join(out.split())
    assert f"above {frame['s'].median():g}, the median of all 101 scores" in flat
    assert (
        "No decisions were given: a row counts as selected where its score is above the median of all 101 scores."
        in flat
    )
    assert "Local Law 144: selection rates" not in out
    above = (frame["s"] > frame["s"].median()).groupby(frame["sex"]).mean()
    for sex in ("F", "M"):
        assert re.search(rf"^  {sex} +\d+ +\d+ +{above[sex]:.3f} ", out, re.MULTILINE)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: --y-pred is missing")
    code, out, err = run(*words, "--preset", "ll144", "--y-true", "y")
    assert (code, out) == (2, "")
    assert err.startswith("error: --y-true is of no use without decisions")


def test_presets_are_listed_with_source_date_and_status(run):
    code, out, err = run("presets")
    assert (code, err) == (0, "")
    flat = " ".join(out.split())
    for name, preset in PRESETS.items():
        assert f"\n{name}\n" in f"\n{out}"
        for rule in preset.rules:
            assert f"as of {rule.as_of}: {rule.status}" in flat
            assert rule.citation in flat
            assert rule.date in flat
    assert run("presets", "lending")[1].startswith("lending\n")


@pytest.mark.parametrize("words", [("presets", "nope"), ("audit", "german-credit", "--preset", "nope")])
def test_bad_names_at_the_command_line_end_in_one_line(run, words):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: preset must be one of ")
    assert err.count("\n") == 1
