"""Control features: the tally that carries them, and what an audit says within strata (Simpson's paradox)."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from typer.testing import CliRunner

from sklearn_ethiclens import MISSING, Audit, FairnessAuditor, Tally, audit, audit_tally
from sklearn_ethiclens._findings import Reference
from sklearn_ethiclens._strata import strata_frame, strata_sections
from sklearn_ethiclens.cli import app
from sklearn_ethiclens.exceptions import MissingGroupsWarning
from sklearn_ethiclens.inference import breslow_day_test, cmh_test, mantel_haenszel_difference, mantel_haenszel_ratio
from sklearn_ethiclens.metrics._rates import PartOfWeighted, WeightedConfusion

# Applications to graduate school, Berkeley 1973, the six largest departments: admitted and all, men and women
# (Bickel, Hammel and O'Connell 1975, Science 187:398-404).
BERKELEY = {
    "A": {"M": (512, 825), "F": (89, 108)},
    "B": {"M": (353, 560), "F": (17, 25)},
    "C": {"M": (120, 325), "F": (202, 593)},
    "D": {"M": (138, 417), "F": (131, 375)},
    "E": {"M": (53, 191), "F": (94, 393)},
    "F": {"M": (22, 373), "F": (24, 341)},
}
FAST = {"n_resamples": 100}


def table(counts, names=("sex", "dept"), controls=("dept",)):
    """Return the tally of (selected, all) by stratum and group."""
    cells = {
        (group, stratum): {"n": n, "selected": x} for stratum, by in counts.items() for group, (x, n) in by.items()
    }
    return replace(Tally.from_counts(cells, attribute=names), controls=controls)


def rows_of(found, key="strata"):
    return found.section(key).frame().set_index(["group", "metric"]) if key == "strata" else found.section(key).frame()


@pytest.fixture(scope="module")
def berkeley():
    return audit_tally(table(BERKELEY), reference={"sex": "M"}, **FAST)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {"sex": rng.choice(["F", "M"], n), "race": rng.choice(["a", "b", "c"], n), "grade": rng.choice([1, 2, 3, 4], n)}
    )
    y_true = rng.integers(0, 2, n)
    return y_true, np.where(rng.random(n) < 0.8, y_true, 1 - y_true), frame


# --------------------------------------------------------------------------------------------------------------- tally
def test_controls_are_attributes_that_are_not_audited(people):
    y_true, y_pred, frame = people
    tally = Tally.from_predictions(
        y_true, y_pred, sensitive_features=frame[["sex", "race"]], control_features=frame["grade"]
    )
    assert tally.attributes == ("sex", "race", "grade")
    assert tally.controls == ("grade",)
    assert tally.audited == ("sex", "race")
    assert tally.marginal(["sex"]).controls == ()
    assert tally.marginal(["grade", "sex"]).controls == ("grade",)
    same = Tally.from_predictions(y_true, y_pred, sensitive_features=frame)
    assert np.array_equal(tally.counts, same.counts)
    assert tally.groups == same.groups


def test_a_tally_keeps_its_controls_through_adding_storing_and_pickling():
    tally = table(BERKELEY)
    for again in (tally + tally, Tally.from_dict(tally.to_dict()), pickle.loads(pickle.dumps(tally))):
        assert again.controls == ("dept",)
    assert Tally.from_dict(tally.to_dict()) == tally
    assert pickle.loads(pickle.dumps(tally)) == tally
    plain = replace(tally, controls=())
    assert plain != tally
    assert plain.digest() != tally.digest()
    with pytest.raises(ValueError, match=r"tallies add only if their controls agree; got \('dept',\) and \(\)"):
        tally + plain


def test_a_tally_without_controls_is_stored_as_before():
    plain = replace(table(BERKELEY), controls=())
    assert set(plain.to_dict()) == {"attributes", "groups", "counts", "pos_label", "labels"}
    assert len(plain.__reduce__()[1]) == 5
    two = Tally.from_counts({"F": {"n": 10, "selected": 4}, "M": {"n": 20, "selected": 10}})
    assert two.digest() == "4a74744f68b5e56152c58bb79e048d3b9bab6eab151291b1b17df0194237132f"


@pytest.mark.parametrize(
    ("control", "names"),
    [
        (np.array([1, 2, 1, 2]), ("control_feature",)),
        (pd.Series(["x", "y", "x", "y"], name="dept"), ("dept",)),
        ({"dept": ["x", "y", "x", "y"], "level": [1, 1, 2, 2]}, ("dept", "level")),
        (np.array([["x", "y"], ["x", "y"], ["z", "y"], ["z", "y"]]), ("control_feature_0", "control_feature_1")),
    ],
)
def test_control_features_come_in_the_forms_of_sensitive_features(control, names):
    tally = Tally.from_predictions(None, [0, 1, 0, 1], sensitive_features=list("abab"), control_features=control)
    assert tally.controls == names


@pytest.mark.parametrize(
    ("control", "error", "message"),
    [
        ({"sex": [1, 2, 1]}, ValueError, r"control_features repeat the sensitive features \['sex'\]"),
        ([1, 2], ValueError, "y_pred 3, sensitive feature 'sex' 3, control feature 'control_feature' 2 rows"),
        ("dept", TypeError, "control_features must hold one value per row; got the name 'dept'"),
        ({}, ValueError, "control_features has no columns"),
    ],
)
def test_what_is_no_control_feature_is_refused(control, error, message):
    with pytest.raises(error, match=message):
        Tally.from_predictions(None, [0, 1, 0], sensitive_features={"sex": list("aba")}, control_features=control)


def test_a_measurement_as_control_is_refused_with_advice_to_band():
    income = np.arange(100) / 7
    with pytest.raises(ValueError, match=r"control feature 'income' has 100 distinct numbers .*pandas.cut"):
        audit(None, [0, 1] * 50, sensitive_features=["a", "b"] * 50, control_features={"income": income})


def test_controls_must_be_attributes():
    with pytest.raises(ValueError, match=r"controls must be among the attributes \['sex', 'dept'\]; got \['job'\]"):
        table(BERKELEY, controls=("job",))


def test_a_tally_of_controls_only_has_nothing_to_audit():
    with pytest.raises(ValueError, match="control features only"):
        audit_tally(table(BERKELEY, controls=("sex", "dept")), **FAST)


def test_missing_controls_are_a_stratum_of_their_own():
    with pytest.warns(MissingGroupsWarning, match="control feature 'dept' is missing in 2 of 6 rows; they are kept"):
        tally = Tally.from_predictions(
            None,
            [0, 1] * 3,
            sensitive_features=list("aabbab"),
            control_features={"dept": ["x", "x", "x", "x", None, None]},
        )
    assert [group for group in tally.groups if MISSING in group] == [("a", MISSING), ("b", MISSING)]


# --------------------------------------------------------------------------------------------------------------- audit
def test_berkeley_shows_the_paradox(berkeley):
    row = rows_of(berkeley).loc[("F", "disparate_impact")]
    assert row["crude"] == pytest.approx((557 / 1835) / (1198 / 2691))
    assert row["crude_high"] < 0.8
    assert row["adjusted"] == pytest.approx(1.0583, abs=1e-4)
    assert row["low"] < 1 < row["high"]
    assert row["pvalue"] == pytest.approx(0.2169, abs=1e-4)  # 1.5246 of a chi-square with one degree of freedom
    assert row["homogeneity"] < 0.01
    assert row["strata"] == 6
    assert row["left_out"] == 0
    assert row["reverses"]
    text = " ".join(berkeley.section("strata").lines)
    assert (
        "sex=F against M: crude ratio of favourable rates 0.68 [0.63, 0.74], within dept 1.06 [0.97, 1.15]: the gap is "
        "between values of dept, not within them." in text
    )
    assert "the strata differ (homogeneity of odds ratios: p = 0.0021)" in text
    assert "itself an effect of the attribute" in text


def test_the_table_by_stratum_is_reachable(berkeley):
    frame = berkeley.strata()
    assert berkeley.section("strata tables").frame().equals(frame)
    women = frame[frame["group"] == "F"].set_index("stratum")
    assert women["n"].to_dict() == {dept: by["F"][1] for dept, by in BERKELEY.items()}
    assert women.loc["A", "favorable_rate"] == pytest.approx(89 / 108)
    assert women.loc["A", "disparate_impact"] == pytest.approx((89 / 108) / (512 / 825))
    assert (frame[frame["group"] == "M"]["disparate_impact"] == 1).all()


def test_rows_are_the_functions_of_counts(people):
    y_true, y_pred, frame = people
    found = audit(
        y_true, y_pred, sensitive_features=frame[["sex", "race"]], control_features=frame["grade"], **FAST,
        reference={"sex": "M", "race": "a"},
    )  # fmt: skip
    table = found.section("strata").frame().set_index(["attribute", "group", "metric"])
    assert len(table) == 3 * 4
    for rows, metric in (
        (y_true == 1, "true_positive_rate_difference"),
        (y_true == 0, "false_positive_rate_difference"),
    ):
        counts = []
        for group in ("b", "a"):
            taken = [y_pred[rows & (frame["race"] == group) & (frame["grade"] == g)] for g in (1, 2, 3, 4)]
            counts += [[part.sum() for part in taken], [part.size for part in taken]]
        row, pooled = table.loc[("race", "b", metric)], mantel_haenszel_difference(*counts)
        assert_allclose(row[["adjusted", "low", "high"]].astype(float), pooled[:3])
        assert row["pvalue"] == pytest.approx(cmh_test(*counts).pvalue)
    for f in found.findings:
        if f.metric in table.index.get_level_values("metric"):
            assert table.loc[(f.attribute, f.group, f.metric), "crude"] == pytest.approx(f.value)
    for _, family in table.reset_index().groupby("metric"):
        assert (family["pvalue_adjusted"] >= family["pvalue"]).all()
        assert family["pvalue_adjusted"].min() == pytest.approx(min(1, len(family) * family["pvalue"].min()))


def test_controlling_changes_nothing_but_the_sections(people):
    y_true, y_pred, frame = people
    options = {"sensitive_features": frame[["sex", "race"]], "intersections": "all", **FAST}
    plain = audit(y_true, y_pred, **options)
    controlled = audit(y_true, y_pred, control_features=frame["grade"], **options)
    assert plain.sections == ()
    assert controlled.to_dict()["findings"] == plain.to_dict()["findings"]
    assert controlled.references == plain.references
    assert controlled.plan == plain.plan == (("sex",), ("race",), ("sex", "race"))
    assert {row[0] for row in controlled.section("strata").rows} == {"sex", "race", "sex & race"}


def test_sections_survive_storing_and_judging_again(berkeley):
    again = Audit.from_json(berkeley.to_json())
    assert again == berkeley
    assert again.section("strata") == berkeley.section("strata")
    assert again.strata().equals(berkeley.strata())
    judged = again.rejudge("eeoc")
    assert judged.section("strata").rows == berkeley.section("strata").rows


def test_reports_show_strata(berkeley):
    assert "Within strata of dept" in berkeley.report("text")
    assert "Strata of dept" in berkeley.report("html")


def test_adverse_outcomes_compare_the_favourable_event():
    turned = {d: {g: (n - x, n) for g, (x, n) in by.items()} for d, by in BERKELEY.items()}
    found = audit_tally(table(turned), outcome="adverse", reference={"sex": "M"}, **FAST)
    row = rows_of(found).loc[("F", "disparate_impact")]
    assert row["adjusted"] == pytest.approx(1.0583, abs=1e-4)


def test_without_control_features_there_are_no_strata():
    found = audit_tally(replace(table(BERKELEY), controls=()), **FAST)
    assert found.sections == ()
    with pytest.raises(ValueError, match="this audit has no strata: give audit"):
        found.strata()


def test_several_controls_make_one_stratum_of_each_combination():
    cells = {
        ("F", "x", 1): {"n": 40, "selected": 10},
        ("M", "x", 1): {"n": 40, "selected": 20},
        ("F", "x", 2): {"n": 30, "selected": 10},
        ("F", "y", 2): {"n": 50, "selected": 20},
        ("M", "y", 2): {"n": 60, "selected": 30},
    }
    tally = replace(Tally.from_counts(cells, attribute=("sex", "dept", "level")), controls=("dept", "level"))
    found = audit_tally(tally, reference={"sex": "M"}, **FAST)
    row = rows_of(found).loc[("F", "disparate_impact")]
    assert row["adjusted"] == pytest.approx(mantel_haenszel_ratio([10, 20], [40, 50], [20, 30], [40, 60]).estimate)
    assert (row["strata"], row["left_out"]) == (2, 1)
    said = "1 stratum has rows of one side only and compares nothing (30 rows): dept=x & level=2."
    assert any(said in line for line in found.section("strata").lines)
    assert ("x", 2) in set(found.strata()["stratum"])
    assert Audit.from_json(found.to_json()) == found


def test_where_no_stratum_has_both_groups_all_is_undefined():
    found = audit_tally(table({"A": {"M": (50, 100)}, "B": {"F": (30, 100)}}), reference={"sex": "M"}, **FAST)
    row = rows_of(found).loc[("F", "disparate_impact")]
    assert row["crude"] == pytest.approx(0.6)
    assert np.isnan(row[["adjusted", "low", "high", "pvalue", "pvalue_adjusted", "homogeneity"]].astype(float)).all()
    assert (row["strata"], row["left_out"]) == (0, 2)
    assert not row["reverses"]
    text = " ".join(found.section("strata").lines)
    assert "2 strata have rows of one side only" in text
    assert "1 of 1 comparisons cannot be adjusted" in text
    assert "agree" not in text


def words(counts, **options):
    return " ".join(audit_tally(table(counts, **options), reference={"sex": "M"}, **FAST).section("strata").lines)


def test_words_of_each_way_crude_and_adjusted_part():
    # Within each stratum the rates are 2 to 1 the other way round than in all.
    reversal = {"A": {"M": (900, 1000), "F": (100, 100)}, "B": {"M": (10, 100), "F": (300, 1000)}}
    assert "the direction reverses (Simpson's paradox)" in words(reversal)
    hidden = {"A": {"M": (300, 1000), "F": (20, 100)}, "B": {"M": (60, 100), "F": (400, 1000)}}
    hidden["A"]["F"], hidden["B"]["F"] = (20, 100), (346, 1000)
    assert "the gap is within dept, and the crude comparison hides it" in words(hidden)
    few = {"A": {"M": (30, 60), "F": (3, 10)}, "B": {"M": (2, 8), "F": (12, 60)}}
    assert "so the data do not tell" in words(few)
    same = {"A": {"M": (300, 500), "F": (200, 500)}, "B": {"M": (200, 500), "F": (130, 500)}}
    assert "Crude and adjusted intervals agree throughout" in words(same)


def test_many_strata_are_told_of_and_kept_out_of_the_report():
    counts = {f"d{k:02d}": {"M": (10, 20), "F": (9, 20)} for k in range(40)}
    found = audit_tally(table(counts), reference={"sex": "M"}, **FAST)
    assert [section.key for section in found.sections] == ["strata"]
    assert "The table by stratum has 80 rows: Audit.strata() returns it." in found.section("strata").lines
    assert len(found.strata()) == 80


def test_few_events_are_said_to_make_rough_tests():
    found = words({"A": {"M": (3, 10), "F": (1, 10)}, "B": {"M": (1, 10), "F": (1, 10)}})
    assert "1 of 1 tests rest on so few events that their p-values are rough." in found


@given(
    counts=st.lists(st.tuples(*[st.integers(0, 30)] * 4), min_size=1, max_size=6).filter(
        lambda strata: sum(n for n, *_ in strata) and sum(m for _, m, *_ in strata)
    )
)
def test_rows_and_strata_add_up(counts):
    tally = table({k: {"M": (min(x, n), n), "F": (min(y, m), m)} for k, (n, m, x, y) in enumerate(counts)})
    references = [Reference("sex", "M", given=True, sufficient=True)]
    section, *_ = strata_sections(tally, references, outcome="favorable", confidence_level=0.95)
    assert strata_frame(tally, references, outcome="favorable")["n"].sum() == tally.n_rows
    empty = sum(n == m == 0 for n, m, *_ in counts)
    for row in section.rows:
        row = dict(zip(section.columns, row, strict=True))
        assert row["strata"] + row["left_out"] + empty == len(counts)
        assert np.isnan(row["pvalue"]) == (row["strata"] == 0)


# ------------------------------------------------------------------------------------------------- auditor, command line
def test_the_auditor_hands_control_features_on(people):
    y_true, _, frame = people
    index = np.arange(len(frame))[::-1]
    X = frame.assign(x=np.arange(len(frame))).set_index(index)
    auditor = FairnessAuditor(DummyClassifier(strategy="uniform", random_state=0), sensitive_features="sex", **FAST)
    auditor.fit(X[["sex", "x"]].iloc[:450], y_true[:450])
    X, y_true = X.iloc[450:], y_true[450:]
    found = auditor.audit(X[["sex", "x"]], y_true, control_features=X["grade"])
    assert found.tally.controls == ("grade",)
    assert found.section("strata").rows
    named = auditor.audit(X[["sex", "x"]], y_true, control_features={"grade": X["grade"].to_numpy()})
    assert named.section("strata") == found.section("strata")
    with pytest.raises(ValueError, match="the index of control feature 'grade' differs from that of X"):
        auditor.audit(X[["sex", "x"]], y_true, control_features={"grade": frame["grade"].iloc[450:]})


def test_the_command_line_takes_controls(tmp_path):
    rows = [
        (sex, dept, int(i < x), age)
        for dept, by in BERKELEY.items()
        for sex, (x, n) in by.items()
        for i, age in zip(range(n), np.resize([20, 30], n), strict=True)
    ]
    path = tmp_path / "berkeley.csv"
    pd.DataFrame(rows, columns=["sex", "dept", "admitted", "age"]).to_csv(path, index=False)
    arguments = ["audit", str(path), "--y-pred", "admitted", "--sensitive", "sex", "--control", "dept,age"]
    stored = tmp_path / "audit.json"
    options = ["--bands", "age=25", "--n-resamples", "100", "--fail-on", "none", "--json", str(stored)]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == 0, result.output
    assert "Within strata of dept & age" in result.output
    found = Audit.from_json(stored.read_text(encoding="utf-8"))
    assert found.tally.controls == ("dept", "age")
    assert found.plan == (("sex",),)
    refused = CliRunner().invoke(app, [*arguments[:-1], "sex", "--fail-on", "none"])
    assert refused.exit_code == 2


# ---------------------------------------------------------------------------------------------------------- weighted
def weighed(people, weight, **options):
    y_true, y_pred, frame = people
    groups, controls = frame[["sex", "race"]], frame["grade"]
    return audit(
        y_true, y_pred, sensitive_features=groups, control_features=controls, sample_weight=weight, **FAST, **options
    )


def numbers(found, key="strata"):
    return found.section(key).frame().set_index(["attribute", "group"]).select_dtypes("number")


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_equal_weights_are_no_weights(people, weight):
    with_weights, without = weighed(people, np.full(900, weight)), weighed(people, None)
    for key in ("strata", "strata tables"):
        pd.testing.assert_frame_equal(numbers(with_weights, key), numbers(without, key), rtol=1e-9, atol=1e-12)


def test_a_common_factor_of_the_weights_and_rows_without_weight_change_nothing(people):
    y_true, y_pred, frame = people
    weight = np.random.default_rng(5).lognormal(0, 1, 900) * (np.arange(900) % 7 > 0)
    one = weighed(people, weight)
    kept = weight > 0
    for other in (
        weighed(people, 1000 * weight),
        weighed((y_true[kept], y_pred[kept], frame[kept]), weight[kept]),
    ):
        for key in ("strata", "strata tables"):
            pd.testing.assert_frame_equal(numbers(one, key), numbers(other, key), rtol=1e-9, atol=1e-12)


def test_whole_weights_give_the_rates_of_rows_that_stand_several_times(people):
    y_true, y_pred, frame = people
    weight = np.random.default_rng(6).integers(1, 5, 900)
    again = np.repeat(np.arange(900), weight)
    weighted = weighed(people, weight)
    repeated = weighed((y_true[again], y_pred[again], frame.iloc[again].reset_index(drop=True)), None)
    assert_allclose(numbers(weighted)["crude"], numbers(repeated)["crude"], rtol=1e-9)
    tables = [numbers(found, "strata tables").drop(columns="n") for found in (weighted, repeated)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-9)
    assert (
        numbers(weighted)["high"] - numbers(weighted)["low"] > numbers(repeated)["high"] - numbers(repeated)["low"]
    ).all()
    rows = weighted.section("strata tables").frame().query("attribute == 'sex'")
    assert rows["n"].sum() == 900


def test_strata_pool_rows_for_what_all_of_the_group_are_worth():
    """Women 40 rows of weight 1 and 40 of weight 3, half of each selected: (160)**2 / (40 + 360) = 64 of 80, .8 each."""
    cells = [  # stratum, group, selected, weight, rows
        ("x", "F", 1, 1.0, 15), ("x", "F", 0, 1.0, 15), ("x", "F", 1, 3.0, 5), ("x", "F", 0, 3.0, 5),
        ("y", "F", 1, 1.0, 5), ("y", "F", 0, 1.0, 5), ("y", "F", 1, 3.0, 15), ("y", "F", 0, 3.0, 15),
        ("x", "M", 1, 1.0, 30), ("x", "M", 0, 1.0, 20), ("y", "M", 1, 1.0, 30), ("y", "M", 0, 1.0, 30),
    ]  # fmt: skip
    frame = pd.DataFrame(cells, columns=["stratum", "group", "selected", "weight", "rows"])
    frame = frame.loc[frame.index.repeat(frame.pop("rows"))].reset_index(drop=True)
    found = audit(
        None,
        frame["selected"],
        sensitive_features=frame["group"],
        control_features=frame["stratum"],
        sample_weight=frame["weight"],
        reference="M",
        **FAST,
    )
    counts = [16, 16], [32, 32], [30, 30], [50, 60]  # of 40 rows of women in each stratum, .8 x 40
    row = rows_of(found).loc[("F", "statistical_parity_difference")]
    pooled = mantel_haenszel_difference(*counts)
    assert_allclose(
        row[["crude", "adjusted", "low", "high", "pvalue"]].astype(float),
        [0.5 - 60 / 110, pooled.estimate, pooled.low, pooled.high, cmh_test(*counts).pvalue],
        rtol=1e-9,
    )
    ratio = mantel_haenszel_ratio(*counts)
    row = rows_of(found).loc[("F", "disparate_impact")]
    assert_allclose(row[["adjusted", "low", "high"]].astype(float), [ratio.estimate, ratio.low, ratio.high], rtol=1e-9)
    assert "Rates are weighted" in " ".join(found.section("strata").lines)


@pytest.mark.parametrize(("n_strata", "size"), [(4, 60), (40, 5)])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_weighted_strata_hold_their_level(n_strata, size, factor):
    """Weights are log-normal, and in half the cases three times as large where the event happened.

    Groups differ by .1 in every stratum. Over 1,000 tables .942 to .973 of the intervals held it, and under equal rates the test
    rejected .028 to .058; were each stratum's weights taken for themselves, .84 to .94 and .07 to .19.
    """
    rng, n_tables = np.random.default_rng(n_strata), 400
    for gap in (0.1, 0.0):
        low = rng.uniform(0.2, 0.6, n_strata)
        rates = np.stack([low + gap, low])
        drawn = rates / (rates + factor * (1 - rates))  # so that the weighted rate is the one meant
        sizes = rng.poisson(size, (n_tables, 2, n_strata))
        cell = np.repeat(np.arange(sizes.size), sizes.ravel())
        event = rng.random(cell.size) < np.tile(drawn.ravel(), n_tables)[cell]
        weight = rng.lognormal(0, 0.7, cell.size) * np.where(event, factor, 1.0)
        powers = [
            np.bincount(2 * cell + event, weight**k, minlength=2 * sizes.size).reshape(2 * n_tables, n_strata, 1, 2)
            for k in (1, 0, 2)
        ]
        whole = WeightedConfusion(*(part.sum(1) for part in powers))
        count, nobs = PartOfWeighted(*powers, whole).proportion("favorable_rate")
        tables = count[::2], nobs[::2], count[1::2], nobs[1::2]
        if gap:
            pooled = mantel_haenszel_difference(*tables)
            assert np.mean((pooled.low <= gap) & (gap <= pooled.high)) > 0.92  # .95 less 2.75 errors
        else:
            assert np.mean(cmh_test(*tables).pvalue < 0.05) < 0.08
            assert np.mean(breslow_day_test(*tables).pvalue < 0.05) < 0.10


def test_the_auditor_and_the_command_line_take_controls_together_with_weights(people, tmp_path):
    y_true, y_pred, frame = people
    weight = np.random.default_rng(7).lognormal(0, 0.5, 900)
    expected = weighed(people, weight, intersections="all")
    path, out = tmp_path / "rows.csv", tmp_path / "out.json"
    frame.assign(y=y_true, p=y_pred, w=weight).to_csv(path, index=False)
    asked = ["audit", str(path), "--y-true", "y", "--y-pred", "p", "--sensitive", "sex,race", "--control", "grade"]
    more = ["--weight", "w", "--intersections", "sex*race", "--n-resamples", "100", "--json", str(out)]
    result = CliRunner().invoke(app, [*asked, *more])
    assert result.exit_code in (0, 1), result.output
    found = Audit.from_json(out.read_text(encoding="utf-8"))
    pd.testing.assert_frame_equal(numbers(found), numbers(expected), rtol=1e-9)
    tally = Tally.from_frame(
        frame.assign(y=y_true, p=y_pred, w=weight),
        y_true="y", y_pred="p", sensitive_features=["sex", "race"], control_features=["grade"], sample_weight="w",
    )  # fmt: skip
    pd.testing.assert_frame_equal(numbers(audit_tally(tally, **FAST)), numbers(weighed(people, weight)), rtol=1e-9)
