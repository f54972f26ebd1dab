"""Field reports: faults people really hit with tools like this one, each as a law with its small input.

O07, O08, O13, O14 and O16 belong to scorers, the auditor and the probe; O12 and O15 are held by ``test_scores.py``, O18 by
``test_datasets.py``, O19 by the tests of the report.
"""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_ethiclens import METRICS, MISSING, POLICIES, Audit, Tally, Verdict, audit, audit_tally, inference, metrics
from sklearn_ethiclens.datasets import fetch_compas, inject
from sklearn_ethiclens.exceptions import MissingGroupsWarning, SampleSizeWarning, UndefinedMetricWarning
from tests._shared import ROOT, data_file


def rates(tally, name="selection_rate"):
    """Return a rate by group, of groups of one attribute."""
    return {group[0]: value for group, value in zip(tally.groups, METRICS[name](tally.counts), strict=True)}


def sizes(tally):
    return {group[0]: int(n) for group, n in zip(tally.groups, tally.counts.sum((1, 2)), strict=True)}


def findings(audited, metric):
    """Return the findings of a metric by group (and by None for the one of all groups)."""
    return {None if METRICS[metric].kind == "overall" else f.group: f for f in audited.findings if f.metric == metric}


# ------------------------------------------------------------------------------------------ O01: the group is missing
Y_TRUE, Y_PRED = [1, 0, 1, 0, 1, 0], [1, 0, 1, 1, 0, 1]
GAPPY = ["x", "x", "y", "y", None, np.nan]


def dictionary_encoded(chunked):
    pa = pytest.importorskip("pyarrow")
    array = pa.array(["x", "x", "y", "y", None, None]).dictionary_encode()
    return pa.chunked_array([array]) if chunked else array


GAPPY_COLUMNS = {
    "Series": lambda: pd.Series(GAPPY),
    "list": lambda: GAPPY,
    "list with pandas.NA": lambda: [*GAPPY[:4], pd.NA, None],
    "object array": lambda: np.array(GAPPY, dtype=object),
    "string": lambda: pd.Series(GAPPY, dtype="string"),
    "category": lambda: pd.Series(GAPPY, dtype="category"),
    "column of a frame": lambda: pd.DataFrame({"gender": GAPPY}),
    "polars": lambda: pytest.importorskip("polars").Series("gender", [*GAPPY[:4], None, None]),
    "polars category": lambda: (
        pytest.importorskip("polars")
        .Series("gender", [*GAPPY[:4], None, None])
        .cast(pytest.importorskip("polars").Categorical)
    ),
    "pyarrow": lambda: pytest.importorskip("pyarrow").array([*GAPPY[:4], None, None]),
    "pyarrow dictionary": lambda: dictionary_encoded(chunked=False),
    "pyarrow dictionary, chunked": lambda: dictionary_encoded(chunked=True),
}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=pytest.mark.engines if name.startswith("p") else ())
        for name, make in GAPPY_COLUMNS.items()
    ],
)
def test_o01_missing_groups_are_one_bucket_and_no_row_is_lost(make):
    with pytest.warns(MissingGroupsWarning, match="'gender' is missing in 2 of 6 rows"):
        tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features={"gender": make()})
    assert rates(tally) == {"x": 0.5, "y": 1.0, MISSING: 0.5}
    assert sizes(tally) == {"x": 2, "y": 2, MISSING: 2}
    assert tally.n_rows == 6
    assert METRICS["selection_rate"](tally.counts.sum(0)) == pytest.approx(4 / 6)


def test_o01_the_name_of_a_series_is_in_the_warning():
    with pytest.warns(MissingGroupsWarning, match="'gender'"):
        Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=pd.Series(GAPPY, name="gender"))


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA], ids=str)
def test_o01_missing_is_not_the_text_nan(missing):
    groups = ["nan", "nan", "y", "y", missing, missing]
    with pytest.warns(MissingGroupsWarning, match="2 of 6 rows"):
        tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=groups)
    assert rates(tally) == {"nan": 0.5, "y": 1.0, MISSING: 0.5}


def test_o01_the_text_nan_is_a_value_like_any_other():
    tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=np.array(["nan", "nan", "y", "y", "nan", "nan"]))
    assert sizes(tally) == {"nan": 4, "y": 2}


def test_o01_undefined_numbers_and_missing_ones_are_one_bucket():
    """In pandas' nullable floats NaN and NA are told apart; here both are rows without a group."""
    groups = pd.Series([1.0, 1.0, 2.0, 2.0, 0.0, None], dtype="Float64") / pd.Series([1, 1, 1, 1, 0, 1])
    with pytest.warns(MissingGroupsWarning, match="2 of 6 rows"):
        tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=groups)
    assert sizes(tally) == {1.0: 2, 2.0: 2, MISSING: 2}
    assert len(tally.groups) == 3


def test_o01_masked_rows_are_missing():
    groups = np.ma.array([1, 1, 2, 2, 2, 1], mask=[0, 0, 0, 0, 1, 1])
    with pytest.warns(MissingGroupsWarning, match="2 of 6 rows"):
        tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=groups)
    assert sizes(tally) == {1: 2, 2: 2, MISSING: 2}


@pytest.mark.parametrize("make", [GAPPY_COLUMNS["Series"], GAPPY_COLUMNS["list"]], ids=["Series", "list"])
def test_o01_a_strict_mode_names_the_column_and_the_count(make):
    with pytest.raises(ValueError, match="'gender' is missing in 2 of 6 rows"):
        audit(Y_TRUE, Y_PRED, sensitive_features={"gender": make()}, missing="raise")


def test_o01_an_audit_lists_the_bucket_and_never_takes_it_as_reference():
    groups = [*["x"] * 200, *["y"] * 200, *[None] * 200]
    decisions = [*[1, 0] * 100, *[1, 0, 0, 0] * 50, *[1] * 200]
    with pytest.warns(MissingGroupsWarning, match="200 of 600"):
        audited = audit(None, decisions, sensitive_features={"gender": groups}, metrics=["selection_rate"])
    assert audited.references[0].group == "x"
    assert {f.group: f.n for f in findings(audited, "selection_rate").values()} == {"x": 200, "y": 200, MISSING: 200}
    assert sum(f.n for f in findings(audited, "selection_rate").values()) == audited.tally.n_rows


# ------------------------------------------------------------------------- O02: labels of several types, unused category
@pytest.mark.parametrize(
    ("groups", "keys"),
    [
        (pd.Series([30, 30, "unknown", "unknown", 30, "unknown"], dtype=object), [30, "unknown"]),
        ([30, 30, "unknown", "unknown", 30, "unknown"], [30, "unknown"]),
        ([1, 1, 2, 2, 1, 2], [1, 2]),
        (np.array([1, 1, 2, 2, 1, 2], dtype=np.int8), [1, 2]),
        (pd.Series(pd.Categorical(list("aabbab"), categories=["a", "b", "c"])), ["a", "b"]),
    ],
    ids=["mixed object", "mixed list", "integers", "int8", "category never used"],
)
def test_o02_group_labels_of_any_type_keep_their_values(groups, keys):
    tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=groups)
    assert rates(tally) == {keys[0]: pytest.approx(1 / 3), keys[1]: 1.0}
    assert [type(group[0]) for group in tally.groups] == [type(key) for key in keys]
    assert sizes(tally) == dict.fromkeys(keys, 3)
    gap = metrics.demographic_parity_difference(Y_TRUE, Y_PRED, sensitive_features=groups)
    assert gap == pytest.approx(2 / 3)


def test_o02_text_and_number_of_the_same_look_stay_apart():
    tally = Tally.from_predictions(None, [1, 0, 1, 0], sensitive_features=[30, "30", "30", 30])
    assert [group[0] for group in tally.groups] == [30, "30"]
    assert Tally.from_dict(json.loads(json.dumps(tally.to_dict()))) == tally


@pytest.mark.engines
def test_o02_integers_with_a_gap_stay_integers_in_polars():
    """A column of whole numbers must not go through floats, which merge large codes."""
    pl = pytest.importorskip("polars")
    codes = pl.Series("code", [2**60 + 1, 2**60 + 2, 2**60 + 1, None])
    with pytest.warns(MissingGroupsWarning, match="'code' is missing in 1 of 4"):
        tally = Tally.from_predictions(None, [1, 0, 1, 0], sensitive_features=codes)
    assert rates(tally) == {2**60 + 1: 1.0, 2**60 + 2: 0.0, MISSING: 0.0}


# ------------------------------------------------------------------------------------------- O03: the index disagrees
ROW_IDS = [10, 11, 12, 13]
LABELS = pd.Series([1, 1, 0, 0], index=ROW_IDS)
SHUFFLED = pd.Series(list("xyxy"), index=[10, 12, 11, 13], name="sex")


@pytest.mark.parametrize(
    "features",
    [SHUFFLED, SHUFFLED.to_frame(), {"sex": SHUFFLED}],
    ids=["Series", "frame", "dict"],
)
@pytest.mark.parametrize("function", [audit, metrics.demographic_parity_difference], ids=lambda f: f.__name__)
def test_o03_row_ids_that_disagree_are_refused(function, features):
    with pytest.raises(ValueError, match="the index of .* differs from that of y_true.*\\.loc\\[.*to_numpy"):
        function(LABELS, LABELS, sensitive_features=features)


def test_o03_the_way_out_in_the_message_is_python():
    """The advice names something the caller can type."""
    with pytest.raises(ValueError, match="differs") as caught:
        audit(LABELS, LABELS, sensitive_features=SHUFFLED)
    advice = str(caught.value).split("for example ")[1].split(", or pass")[0]
    compile(advice, "advice", "eval")


def test_o03_lengths_that_disagree_are_both_named():
    with pytest.raises(ValueError, match="y_true 4.*sex.* 3 rows"):
        audit(LABELS, LABELS, sensitive_features=SHUFFLED.iloc[:3])


def test_o03_aligned_and_positional_arguments_agree():
    aligned = SHUFFLED.loc[ROW_IDS]
    assert metrics.demographic_parity_difference(LABELS, LABELS, sensitive_features=aligned) == 1.0
    assert rates(Tally.from_predictions(LABELS, LABELS, sensitive_features=aligned)) == {"x": 1.0, "y": 0.0}
    positional = metrics.demographic_parity_difference(
        LABELS.to_numpy(), LABELS.tolist(), sensitive_features=SHUFFLED.to_numpy()
    )
    assert positional == 0.0


def test_o03_an_array_is_positional_beside_a_series():
    assert metrics.demographic_parity_difference(LABELS, LABELS, sensitive_features=list("xxyy")) == 1.0


# ------------------------------------------------------------------------------------- O04: text labels and pos_label
TEXT_TRUE, TEXT_PRED = ["<=50K", ">50K", ">50K", "<=50K"], ["<=50K", ">50K", "<=50K", "<=50K"]
AABB = list("aabb")


@pytest.mark.parametrize("function", [audit, metrics.demographic_parity_difference], ids=lambda f: f.__name__)
def test_o04_text_labels_need_pos_label(function):
    with pytest.raises(ValueError, match="'<=50K', '>50K'.*pos_label"):
        function(TEXT_TRUE, TEXT_PRED, sensitive_features=AABB)


def test_o04_with_pos_label_the_gaps_are_seen():
    options = {"sensitive_features": AABB, "pos_label": ">50K"}
    tally = Tally.from_predictions(TEXT_TRUE, TEXT_PRED, **options)
    assert rates(tally) == {"a": 0.5, "b": 0.0}
    assert rates(tally, "true_positive_rate") == {"a": 1.0, "b": 0.0}
    assert metrics.demographic_parity_difference(TEXT_TRUE, TEXT_PRED, **options) == 0.5
    assert metrics.equal_opportunity_difference(TEXT_TRUE, TEXT_PRED, **options) == 1.0


@pytest.mark.parametrize("function", [audit, metrics.demographic_parity_difference], ids=lambda f: f.__name__)
def test_o04_a_misspelt_pos_label_is_refused(function):
    with pytest.raises(ValueError, match="'>50k' is not among the labels.*'<=50K', '>50K'"):
        function(TEXT_TRUE, TEXT_PRED, sensitive_features=AABB, pos_label=">50k")


@pytest.mark.parametrize("dtype", ["boolean", "bool", "Int64", "int8", "float64"])
def test_o04_booleans_and_numbers_are_zero_and_one(dtype):
    y_true = pd.Series([True, False, True, False]).astype(dtype)
    y_pred = np.array([1, 0, 0, 0])
    tally = Tally.from_predictions(y_true, y_pred, sensitive_features=AABB)
    assert rates(tally) == {"a": 0.5, "b": 0.0}
    assert rates(tally, "true_positive_rate") == {"a": 1.0, "b": 0.0}
    assert metrics.equalized_odds_difference(y_true, y_pred, sensitive_features=AABB) == 1.0


def test_o04_minus_one_is_negative():
    tally = Tally.from_predictions([1, -1, 1, -1], [1, -1, -1, -1], sensitive_features=AABB)
    assert rates(tally) == {"a": 0.5, "b": 0.0}
    assert tally.pos_label == 1


def test_o04_missing_labels_are_refused_by_name_and_count():
    y_pred = pd.Series([True, False, None, False], dtype="boolean")
    with pytest.raises(ValueError, match="y_pred is missing in 1 of 4 rows"):
        audit([1, 0, 1, 0], y_pred, sensitive_features=AABB)


# ------------------------------------------------------------------------------------ O05: a group without positives
NO_POSITIVES = {"y_true": [0, 0, 0, 1, 1, 0, 0, 0], "y_pred": [0, 0, 1, 0, 0, 0, 0, 1]}
AAABBBBB = ["a"] * 3 + ["b"] * 5


def test_o05_a_rate_that_was_never_measured_is_undefined():
    tally = Tally.from_predictions(**NO_POSITIVES, sensitive_features=AAABBBBB)
    assert np.isnan(rates(tally, "true_positive_rate")["a"])
    assert rates(tally, "true_positive_rate")["b"] == 0.0
    assert rates(tally, "false_positive_rate") == {"a": pytest.approx(1 / 3), "b": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    "name", ["equal_opportunity_difference", "equalized_odds_difference", "equalized_odds_tpr_gap"]
)
def test_o05_a_comparison_that_was_never_made_is_undefined_with_a_warning(name):
    with pytest.warns(UndefinedMetricWarning, match=f"{name} is undefined: a \\(no positive y_true\\)"):
        assert np.isnan(getattr(metrics, name)(**NO_POSITIVES, sensitive_features=AAABBBBB))


@pytest.mark.parametrize("name", ["false_positive_rate_difference", "false_positive_rate_balance"])
def test_o05_what_was_measured_has_its_value(name):
    assert getattr(metrics, name)(**NO_POSITIVES, sensitive_features=AAABBBBB) == 0.0


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_o05_the_verdict_is_undefined_and_never_a_pass(method):
    policy = POLICIES["ethiclens"].replace(floors={})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the percentile interval of")
        with pytest.warns(UndefinedMetricWarning, match="a has no positive y_true"):
            audited = audit(**NO_POSITIVES, sensitive_features=AAABBBBB, reference="b", policy=policy, method=method)
    odds = findings(audited, "equalized_odds_difference")["a"]
    assert np.isnan([odds.value, odds.low, odds.high]).all()
    assert odds.verdict is Verdict.UNDEFINED
    assert odds.reason == "a has no positive y_true"
    assert findings(audited, "false_positive_rate_difference")["a"].value == 0.0
    assert audited.composite.value is None
    assert "UNDEFINED" in audited.composite.reason
    assert audited.status != "PASS"


@pytest.mark.parametrize("policy", [name for name in POLICIES if POLICIES[name].rules])
def test_o05_under_no_policy_is_it_a_pass(policy):
    with pytest.warns(UndefinedMetricWarning, match="a has no positive y_true"):
        audited = audit(**NO_POSITIVES, sensitive_features=AAABBBBB, policy=policy)
    assert audited.verdict is not Verdict.CLEARED
    assert audited.status != "PASS"


def test_o05_a_group_of_one_class_has_a_whole_table():
    with pytest.warns(UndefinedMetricWarning, match="a has no positive y_true"):
        audited = audit([0, 0, 0, 1, 0], [0, 0, 0, 1, 0], sensitive_features=list("aaabb"))
    assert audited.tally.frame().iloc[0][["tp", "fp", "fn", "tn"]].tolist() == [0, 0, 0, 3]
    assert rates(audited.tally, "false_positive_rate") == {"a": 0.0, "b": 0.0}
    assert np.isnan(rates(audited.tally, "true_positive_rate")["a"])
    assert rates(audited.tally, "true_positive_rate")["b"] == 1.0


def test_o05_with_three_groups_the_others_are_compared_and_the_one_left_out_is_named():
    y_true, y_pred = [0, 0, 0, 1, 1, 0, 1, 1, 0], [0, 0, 1, 0, 1, 0, 1, 1, 0]
    with pytest.warns(UndefinedMetricWarning, match="taken over the other groups: a \\(no positive y_true\\)"):
        gap = metrics.equalized_odds_tpr_gap(y_true, y_pred, sensitive_features=list("aaabbbccc"))
    assert gap == 0.5


# --------------------------------------------------------------------------------------------- O06: nobody is selected
NOBODY = {"y_true": [1, 0, 1, 0, 1, 0], "y_pred": [0] * 6, "sensitive_features": list("aabbcc")}


@pytest.fixture(scope="module")
def nobody_selected():
    with pytest.warns(UndefinedMetricWarning, match="selection_rate is 0 in every group"):
        return audit(**NOBODY)


def test_o06_rates_and_differences_are_zero(nobody_selected):
    for name in ("selection_rate", "true_positive_rate"):
        assert [f.value for f in findings(nobody_selected, name).values()] == [0.0, 0.0, 0.0]
        assert [f.value for f in findings(nobody_selected, f"{name}_difference").values()] == [0.0, 0.0]
    assert findings(nobody_selected, "demographic_parity_difference")[None].value == 0.0
    assert metrics.demographic_parity_difference(**NOBODY) == 0.0
    assert metrics.equal_opportunity_difference(**NOBODY) == 0.0


def test_o06_the_interval_of_the_difference_is_the_point(nobody_selected):
    """All defined replicates are equal: the point is shown, marked, though small groups are missing from many replicates."""
    for finding in findings(nobody_selected, "statistical_parity_difference").values():
        assert (finding.low, finding.high) == (0.0, 0.0)
        assert "degenerate" in finding.method


def test_o06_with_groups_of_some_size_the_interval_is_the_point():
    decisions, groups = np.zeros(300, int), np.repeat(list("abc"), 100)
    with pytest.warns(UndefinedMetricWarning, match="in every group"):
        audited = audit(None, decisions, sensitive_features=groups)
    for finding in findings(audited, "statistical_parity_difference").values():
        assert (finding.value, finding.low, finding.high) == (0.0, 0.0, 0.0)
        assert "degenerate" in finding.method
    assert {f.verdict for f in findings(audited, "disparate_impact").values()} == {Verdict.UNDEFINED}


@pytest.mark.parametrize("name", ["disparate_impact", "demographic_parity_ratio"])
def test_o06_the_ratio_is_undefined_and_the_warning_says_that_nobody_is_selected(name):
    with pytest.warns(UndefinedMetricWarning, match="no group has any selected row"):
        assert np.isnan(getattr(metrics, name)(**NOBODY))


def test_o06_the_ratio_of_true_positive_rates_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="true_positive_rate is 0 in every group"):
        assert np.isnan(metrics.true_positive_rate_ratio(**NOBODY))


@pytest.mark.parametrize(
    ("policy", "metric"),
    [("four_fifths", "demographic_parity_ratio"), ("ethiclens", "disparate_impact"), ("eeoc", "disparate_impact")],
)
def test_o06_the_four_fifths_verdict_is_undefined(policy, metric):
    with pytest.warns(UndefinedMetricWarning, match="in every group"):
        audited = audit(**NOBODY, policy=policy)
    assert {f.verdict for f in audited.judged if f.metric == metric} == {Verdict.UNDEFINED}
    assert not audited.flagged
    assert audited.status not in ("PASS", "FAIL")


# ------------------------------------------------------------------------------------- O09: two columns of one name
def test_o09_a_repeated_column_name_is_refused():
    groups = pd.DataFrame([["f", "old"], ["m", "old"], ["f", "young"], ["m", "young"]], columns=["grp", "grp"])
    with pytest.raises(ValueError, match="repeats the column name \\['grp'\\]"):
        audit([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=groups)


def test_o09_names_that_become_one_as_text_are_refused():
    with pytest.raises(ValueError, match="repeats the column name \\['1'\\]"):
        audit([1, 0], [1, 0], sensitive_features={1: ["a", "b"], "1": ["c", "d"]})


# ---------------------------------------------------------------------------------- O10: all replicates are equal
TWELVE = np.array(["a", "b"] * 6)


@pytest.mark.parametrize(
    ("y_pred", "estimate"),
    [(np.ones(12, int), 0.0), (np.where(TWELVE == "a", 1, 0), 1.0)],
    ids=["everybody", "all of a, none of b"],
)
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_o10_a_degenerate_interval_is_a_point_and_says_so(method, y_pred, estimate):
    tally = Tally.from_predictions(np.ones(12, int), y_pred, sensitive_features=TWELVE)
    gap = METRICS["demographic_parity_difference"]
    interval = inference.bootstrap_interval(tally.counts, gap, n_resamples=200, method=method, random_state=0)
    assert gap(tally.counts) == estimate
    assert (interval.low, interval.high, interval.degenerate) == (estimate, estimate, True)

    with pytest.warns(UndefinedMetricWarning, match="a has no negative y_true"):
        audited = audit_tally(tally, n_resamples=200, method=method, policy="ll144")
    finding = findings(audited, "statistical_parity_difference")["b"]
    assert (finding.value, finding.low, finding.high) == (-estimate, -estimate, -estimate)
    assert finding.method.endswith("degenerate")
    assert "no width is no proof of certainty" in finding.reason


# ----------------------------------------------------------------------------------------- O11: a million rows
MILLION = """
import json, sys, time
import numpy as np
from sklearn_ethiclens import audit
from tests.benchmarks._timing import peak_memory
n = 1_000_000
rng = np.random.default_rng(0)
groups = np.where(np.arange(n) % 2 == 0, "a", "b")
y_pred = (rng.random(n) < 0.3).astype(int)
y_true = (rng.random(n) < 0.3).astype(int)
options = {"sensitive_features": groups, "n_resamples": 500, "random_state": 0}
small = audit(y_true[:100], y_pred[:100], sensitive_features=groups[:100], n_resamples=100)
before, start = peak_memory(), time.perf_counter()
audited = audit(y_true, y_pred, **options)
after, seconds = peak_memory(), time.perf_counter() - start
widths = [f.high - f.low for f in audited.findings if f.metric == "selection_rate"]
(gap,) = (f for f in audited.findings if f.metric == "statistical_parity_difference")
again = audit(y_true, y_pred, **options, n_jobs=2)
json.dump({"extra": after - before, "seconds": seconds, "widths": widths, "gap": [gap.low, gap.value, gap.high],
           "same": audited.to_json() == again.to_json()}, sys.stdout)
"""


def test_o11_a_million_rows_need_little_memory_and_time():
    pytest.importorskip("resource")
    command = [sys.executable, "-c", MILLION]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, cwd=ROOT)
    measured = json.loads(run.stdout)
    assert measured["extra"] < 256  # MiB; the report asks for less than 1,024
    assert measured["seconds"] < 60
    assert measured["widths"] == pytest.approx([0.00254] * 2, rel=0.2)
    low, value, high = measured["gap"]
    assert low < value < high
    assert high - low == pytest.approx(0.00254 * 2**0.5, rel=0.2)
    assert measured["same"]


# -------------------------------------------------------------------------- O17: labels are flipped in the right rows
@pytest.mark.parametrize("index", [[3, 2, 1, 0], [40, 11, 7, 29], [5, 5, 5, 5], list("wxyz")], ids=str)
def test_o17_rows_are_chosen_and_written_by_position_and_told_by_label(index):
    X = pd.DataFrame({"sex": ["f", "m", "f", "m"], "inc": [1, 2, 3, 4]}, index=index)
    y = pd.Series([1, 1, 0, 0], index=index, name="ok")
    originals = X.copy(), y.copy()
    options = {
        "sensitive_features": "sex",
        "kind": "label",
        "direction": "to_negative",
        "group": "f",
        "random_state": 0,
    }
    biased = inject(X, y, rate=1.0, **options)
    pd.testing.assert_series_equal(biased.y, pd.Series([0, 1, 0, 0], index=index, name="ok"))
    pd.testing.assert_frame_equal(biased.X, X)
    assert biased.changed.tolist() == index[:1]
    assert biased.changes["position"].tolist() == [0]

    same = inject(X, y, rate=0.0, **options)
    pd.testing.assert_series_equal(same.y, y)
    pd.testing.assert_frame_equal(same.X, X)
    assert same.changed.empty
    pd.testing.assert_frame_equal(X, originals[0])
    pd.testing.assert_series_equal(y, originals[1])


def test_o17_the_same_seed_flips_the_same_rows_whatever_the_index():
    rng = np.random.default_rng(3)
    X, y = pd.DataFrame({"sex": rng.choice(["f", "m"], 200)}), pd.Series(rng.integers(0, 2, 200))
    options = {"sensitive_features": "sex", "kind": "label", "group": "f", "rate": 0.5, "random_state": 0}
    first = inject(X, y, **options)
    order = rng.permutation(200)
    second = inject(X.set_axis(order), y.set_axis(order), **options)
    assert first.y.tolist() == second.y.tolist()
    assert second.changed.tolist() == order[first.changed].tolist()


# --------------------------------------------------------------------------------- O20: what the outcome means
def test_o20_the_favourable_event_of_compas_is_no_new_charge():
    data_file("compas-two-years.csv")
    bunch = fetch_compas(download_if_missing=False)
    assert bunch.outcome == "adverse"
    assert len(bunch.target) == 6172
    tally = Tally.from_predictions(
        None, bunch.target, sensitive_features=bunch.sensitive_features, pos_label=bunch.pos_label
    )
    assert sizes(tally.marginal(["race"])) | {} == {
        "African-American": 3175,
        "Asian": 31,
        "Caucasian": 2103,
        "Hispanic": 509,
        "Native American": 11,
        "Other": 343,
    }
    audited = audit_tally(tally, outcome=bunch.outcome, reference=bunch.reference, metrics=["selection_rate_ratio"])
    sex, race = {"Female": 0.6485, "Male": 0.5205}, {"African-American": 0.4769, "Caucasian": 0.6091}
    frame = audited.rates().query("rate == 'favorable_rate'").set_index("group")["value"]
    assert frame[list(sex)].to_dict() == pytest.approx(sex, abs=5e-5)
    assert frame[list(race)].to_dict() == pytest.approx(race, abs=5e-5)
    ratio = findings(audited, "disparate_impact")["African-American"]
    assert ratio.reference == "Caucasian"
    assert ratio.value == pytest.approx(0.7828, abs=5e-5)
    assert findings(audited, "selection_rate_ratio")["African-American"].value == pytest.approx(1.3384, abs=5e-5)


def test_o20_the_plain_functions_know_the_outcome_too():
    data_file("compas-two-years.csv")
    bunch = fetch_compas(download_if_missing=False, races=["African-American", "Caucasian"])
    options = {"sensitive_features": bunch.sensitive_features["race"], "pos_label": bunch.pos_label}
    named = {"reference": bunch.reference["race"], "outcome": bunch.outcome}
    assert metrics.disparate_impact(None, bunch.target, **options, **named) == pytest.approx(0.7828, abs=5e-5)
    difference = metrics.statistical_parity_difference(None, bunch.target, **options, **named)
    assert difference == pytest.approx(-0.1323, abs=5e-5)
    # Women are the favoured side: the default reference is the highest rate of the favourable event.
    sex = {"sensitive_features": bunch.sensitive_features["sex"], "outcome": "adverse"}
    assert audit(None, bunch.target, **sex, metrics=["selection_rate"]).references[0].group == "Female"


def test_o20_tiny():
    tally = Tally.from_predictions(None, [1, 0, 0, 1], sensitive_features=list("ppqq"))
    favored = METRICS["favorable_rate"](tally.counts, outcome="adverse")
    assert favored.tolist() == [0.5, 0.5]
    assert metrics.disparate_impact(None, [1, 0, 0, 1], sensitive_features=list("ppqq"), outcome="adverse") == 1.0


# ------------------------------------------------------------------------------------------------------ further leads
def test_lead_more_than_two_labels_are_refused_or_judged_one_against_the_rest():
    y_true, y_pred = [0, 1, 2, 0], [0, 1, 2, 1]
    with pytest.raises(ValueError, match="3 labels: \\[0, 1, 2\\].*pos_label"):
        audit(y_true, y_pred, sensitive_features=AABB)
    tally = Tally.from_predictions(y_true, y_pred, sensitive_features=AABB, pos_label=1)
    as_binary = Tally.from_predictions([0, 1, 0, 0], [0, 1, 0, 1], sensitive_features=AABB)
    assert tally.counts.tolist() == as_binary.counts.tolist()
    assert tally.labels == (0, 1, 2)


@pytest.mark.parametrize("values", [np.linspace(0, 1, 500), np.arange(500) % 73, np.arange(500)], ids=str)
def test_lead_a_measurement_is_no_group(values):
    with pytest.raises(ValueError, match="'income' has .* distinct numbers \\(at most 60\\).*pandas.cut"):
        audit(None, np.arange(500) % 2, sensitive_features={"income": values})


def test_lead_an_identifier_is_no_group():
    with pytest.raises(ValueError, match="'id' has 3000 distinct values"):
        audit(None, np.arange(3000) % 2, sensitive_features={"id": [f"person {i}" for i in range(3000)]})


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["polars", "pyarrow"])
def test_lead_other_engines_give_the_same_audit(engine):
    module = pytest.importorskip(engine)
    frame = {"polars": "DataFrame", "pyarrow": "table"}[engine]
    rng = np.random.default_rng(3)
    data = {
        "sex": rng.choice(["f", "m"], 400).tolist(),
        "age": rng.integers(1, 4, 400).tolist(),
        "y": rng.integers(0, 2, 400).tolist(),
        "p": (rng.random(400) < 0.5).tolist(),
    }
    data["sex"][:20] = [None] * 20
    other, ours = getattr(module, frame)(data), pd.DataFrame(data)
    names, options = ["sex", "age"], {"n_resamples": 100, "intersections": "all"}
    with pytest.warns(MissingGroupsWarning, match="'sex' is missing in 20 of 400"):
        first = audit(ours["y"], ours["p"], sensitive_features=ours[names], **options)
    with pytest.warns(MissingGroupsWarning, match="'sex' is missing in 20 of 400"):
        second = audit(other["y"], other["p"], sensitive_features=other.select(names), **options)
    assert second.to_json() == first.to_json()


def test_lead_a_combination_that_does_not_occur_is_no_finding():
    groups = pd.DataFrame({"sex": ["f"] * 400 + ["m"] * 600, "race": ["x"] * 400 + ["x"] * 300 + ["y"] * 300})
    decisions = (np.arange(1000) % 3 == 0).astype(int)
    audited = audit(None, decisions, sensitive_features=groups, intersections="all")
    crossed = [f for f in audited.findings if f.attribute == ("sex", "race")]
    assert {f.group for f in crossed if f.reference is None} == {("f", "x"), ("m", "x"), ("m", "y")}
    assert all(f.n > 0 for f in crossed)


def test_lead_a_group_too_small_to_judge_keeps_its_row():
    groups, decisions = ["small"] * 20 + ["large"] * 800, [1, 0] * 10 + [1, 0] * 400
    audited = audit(None, decisions, sensitive_features=groups)
    ratio = findings(audited, "disparate_impact")["small"]
    assert (ratio.n, ratio.n_reference, ratio.verdict) == (20, 800, Verdict.INSUFFICIENT_DATA)
    assert ratio.value == 1.0
    assert audited.verdict is not Verdict.CLEARED
    assert audited.status != "PASS"


def test_lead_a_group_left_out_by_the_policy_keeps_its_row():
    counts = {"a": {"n": 980, "selected": 490}, "b": {"n": 1000, "selected": 500}, "c": {"n": 20, "selected": 1}}
    audited = audit_tally(Tally.from_counts(counts), policy="ll144")
    left_out = findings(audited, "disparate_impact")["c"]
    assert left_out.n == 20
    assert np.isnan(left_out.value)
    assert left_out.reason == "left out: 1.0% of the rows (under 2%)"
    assert findings(audited, "selection_rate")["c"].value == 0.05
    # No test was made, so none is named.
    assert np.isnan(left_out.pvalue)
    assert left_out.test is None


def test_lead_the_share_in_the_reason_is_the_share_that_was_tested():
    """Unknown categories do not count in the share, neither where it is tested nor where it is told."""
    counts = {"a": {"n": 1000, "selected": 500}, "b": {"n": 900, "selected": 400}, "c": {"n": 30, "selected": 1}}
    counts[MISSING] = {"n": 2000, "selected": 100}
    audited = audit_tally(Tally.from_counts(counts), policy="ll144", metrics=["disparate_impact"])
    assert findings(audited, "disparate_impact")["c"].reason == "left out: 1.6% of the rows (under 2%)"


@pytest.mark.parametrize("policy", POLICIES)
def test_lead_the_order_of_rows_and_of_groups_never_matters(policy):
    rng = np.random.default_rng(5)
    groups = rng.choice(["c", "a", "b"], 900)
    y_true, y_pred = rng.integers(0, 2, 900), rng.integers(0, 2, 900)
    order = rng.permutation(900)
    options = {"policy": policy, "n_resamples": 100}
    first = audit(y_true, y_pred, sensitive_features=groups, **options)
    second = audit(y_true[order], y_pred[order], sensitive_features=groups[order], **options)
    assert first.to_json() == second.to_json()
    categories = pd.Categorical(groups, categories=["b", "c", "a"])
    third = audit(y_true, y_pred, sensitive_features=categories, **options)
    assert first.to_json() == third.to_json()


def test_lead_the_first_group_seen_is_not_the_reference():
    decisions, groups = [0] * 150 + [1] * 150, ["seen first"] * 150 + ["later"] * 150
    audited = audit(None, decisions, sensitive_features=groups)
    assert audited.references[0].group == "later"
    assert not audited.references[0].given


def test_lead_without_labels_error_metrics_are_refused_by_name():
    audited = audit(None, [1, 0] * 200, sensitive_features=["a"] * 200 + ["b"] * 200)
    assert {f.reason for f in audited.findings if METRICS[f.metric].uses_labels} == {"no labels"}
    assert {f.verdict for f in audited.findings if METRICS[f.metric].uses_labels} == {Verdict.INSUFFICIENT_DATA}
    assert findings(audited, "selection_rate_difference")["b"].value == 0.0
    with pytest.raises(ValueError, match="equal_opportunity_difference needs y_true"):
        metrics.equal_opportunity_difference(None, [1, 0], sensitive_features=["a", "b"])


def test_lead_a_warning_names_the_condition_that_was_tested():
    """Somebody is selected here: it is the true positive rate that is 0 everywhere."""
    with pytest.warns(UndefinedMetricWarning) as caught:
        value = metrics.equalized_odds_ratio(
            [1, 0, 1, 0] * 2, [0, 1, 0, 0, 0, 1, 0, 1], sensitive_features=list("aaaabbbb")
        )
    assert np.isnan(value)
    (message,) = (str(warning.message) for warning in caught)
    assert "no group has any selected row" not in message
    assert "true_positive_rate is 0 in every group" in message


def test_lead_a_warning_names_the_condition_that_was_tested_under_an_adverse_outcome():
    with pytest.warns(UndefinedMetricWarning) as caught:
        value = metrics.demographic_parity_ratio(None, [1] * 8, sensitive_features=list("aaaabbbb"), outcome="adverse")
    assert np.isnan(value)
    (message,) = (str(warning.message) for warning in caught)
    assert "no group has any selected row" not in message


def test_lead_one_group_is_said_to_be_nothing_to_compare():
    with (
        pytest.warns(SampleSizeWarning, match="has one group only"),
        pytest.warns(UndefinedMetricWarning, match="fewer than two groups"),
    ):
        audited = audit([1, 0] * 4, [1, 0] * 4, sensitive_features=["a"] * 8)
    assert audited.verdict is Verdict.INSUFFICIENT_DATA
    assert audited.status == "NOT ASSESSABLE"


def test_lead_an_audit_with_undefined_numbers_is_stored_and_read_whole():
    with pytest.warns(UndefinedMetricWarning, match="a has no positive y_true"):
        audited = audit(**NO_POSITIVES, sensitive_features=AAABBBBB)
    assert Audit.from_json(audited.to_json()) == audited
