"""Tally: sums, marginals, printed tables, storage, and counts that equal pandas' whatever the code path."""

import copy
import datetime
import hashlib
import json
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_ethiclens import MISSING, Tally
from sklearn_ethiclens._tally import _count
from sklearn_ethiclens._validation import ForeignLabel
from sklearn_ethiclens.exceptions import MissingGroupsWarning

SEX = ["f", "m", "f", "m", "f", "f"]
RACE = ["x", "x", "y", "y", "y", "x"]
Y_TRUE = [1, 0, 1, 1, 0, 0]
Y_PRED = [1, 1, 0, 1, 0, 1]


def small(y_true=Y_TRUE):
    return Tally.from_predictions(y_true, Y_PRED, sensitive_features={"sex": SEX, "race": RACE})


def quiet(y_true, y_pred, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingGroupsWarning)
        return Tally.from_predictions(y_true, y_pred, **keywords)


def by_pandas(columns, y_true, y_pred):
    """Counts by group of pandas: {(group values..., y_true, y_pred): n}."""
    frame = pd.DataFrame({**columns, "_t": y_true, "_p": y_pred})
    return {
        key: int(n) for key, n in frame.groupby([*columns, "_t", "_p"], dropna=False, observed=True).size().items() if n
    }


def by_tally(tally):
    return {
        (*group, t, p): int(n)
        for group, table in zip(tally.groups, tally.counts, strict=True)
        for t, row in enumerate(table)
        for p, n in enumerate(row)
        if n
    }


# ---------------------------------------------------------------------------------------------------------- counting
def test_counts_stand_by_group_truth_and_decision():
    # f & x: rows 0 (1, 1) and 5 (0, 1); f & y: 2 (1, 0) and 4 (0, 0); m & x: 1 (0, 1); m & y: 3 (1, 1)
    tally = small()
    assert tally.attributes == ("sex", "race")
    assert tally.groups == (("f", "x"), ("f", "y"), ("m", "x"), ("m", "y"))
    assert tally.counts.tolist() == [[[0, 1], [0, 1]], [[1, 0], [1, 0]], [[0, 1], [0, 0]], [[0, 0], [0, 1]]]
    assert tally.n_rows == 6
    assert tally.labelled


def test_without_labels_the_middle_axis_has_length_one():
    tally = small(None)
    assert tally.counts.shape == (4, 1, 2)
    assert not tally.labelled
    assert np.array_equal(tally.counts[:, 0], small().counts.sum(1))


def test_frame_names_the_cells():
    frame = small().frame()
    assert list(frame.columns) == ["sex", "race", "n", "tp", "fp", "fn", "tn"]
    assert frame.iloc[0].tolist() == ["f", "x", 2, 1, 1, 0, 0]
    assert list(small(None).frame().columns) == ["sex", "race", "n", "selected"]


@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_those_of_pandas(seed):
    rng = np.random.default_rng(seed)
    n = 20_000
    columns = {
        "a": rng.choice(["u", "v", "w"], n),
        "b": rng.integers(-3, 40, n),
        "c": rng.random(n) < 0.3,
        "d": pd.Series(rng.choice(["p", "q"], n)).astype("category"),
    }
    y_true, y_pred = rng.integers(0, 2, (2, n))
    tally = Tally.from_predictions(y_true, y_pred, sensitive_features=columns)
    assert by_tally(tally) == by_pandas(columns, y_true, y_pred)


@pytest.mark.parametrize("n_rows", [1000, (1 << 17) + 3, 300_001])
@pytest.mark.parametrize("n_levels", [1, 2, 63, 64, 254 // 4, 255 // 4, 257])
def test_every_code_width_gives_the_same_counts(n_levels, n_rows):
    # cells = levels x 4: 252 (uint8), 256 (uint16), 1028 (uint16); above 131,072 rows uint8 codes are counted in pairs
    rng = np.random.default_rng(n_levels)
    column = np.array([f"{i:03}" for i in range(n_levels)])[rng.integers(0, n_levels, n_rows)]
    y_true, y_pred = rng.integers(0, 2, (2, n_rows))
    tally = Tally.from_predictions(y_true, y_pred, sensitive_features={"a": column})
    assert by_tally(tally) == by_pandas({"a": column}, y_true, y_pred)


@pytest.mark.parametrize("n_rows", [5_000, (1 << 17) + 1])
@pytest.mark.parametrize(
    "sizes",
    [(127,), (128,), (129,), (2, 64), (255,), (255, 128), (256, 128), (257, 128), (1000, 33), (181, 181), (1000, 999)],
)
def test_code_widths_change_where_cells_outgrow_them(sizes, n_rows):
    # without labels cells = product x 2: 254, 256, 258, 256, 510, 65280, 65536, 65792, 66000, 65522, 1998000; text columns
    # carry one level more for the missing bucket, so their sizes are given one lower here and the top level may be missing
    rng = np.random.default_rng(sum(sizes))
    columns, codes = {}, []
    for number, size in enumerate(sizes):
        code = rng.integers(0, size, n_rows)
        code[:size] = np.arange(size)
        codes.append(code)
        text = np.array([f"{i:04}" for i in range(size - 1)] + [None], dtype=object)
        columns[f"a{number}"] = text[code]
    y_pred = rng.integers(0, 2, n_rows)
    tally = quiet(None, y_pred, sensitive_features=columns)
    key = np.ravel_multi_index((*codes, y_pred), (*sizes, 2))
    expected = np.bincount(key, minlength=np.prod(sizes) * 2).reshape(-1, 2)
    assert np.array_equal(tally.counts[:, 0], expected[expected.sum(1) > 0])


@pytest.mark.parametrize("n_cells", [254, 255, 256, 257, 65_534, 65_535, 65_536, 65_537])
@pytest.mark.parametrize("n_rows", [3_000, 140_001])
def test_combined_codes_never_wrap(n_cells, n_rows):
    rng = np.random.default_rng(n_cells)
    code = rng.integers(0, n_cells, n_rows)
    code[:2] = 0, n_cells - 1
    cells, counts = _count([code], [n_cells])
    expected = np.bincount(code, minlength=n_cells)
    assert np.array_equal(cells, np.flatnonzero(expected))
    assert np.array_equal(counts, expected[expected > 0])
    assert counts.dtype.kind == "i"


@pytest.mark.parametrize("n_attributes", [4, 6])
def test_many_combinations_are_counted_by_hashing(n_attributes):
    rng = np.random.default_rng(n_attributes)
    n = 3_000  # 50**4 x 4 = 25 million possible cells, 50**6 x 4 = 6e10
    columns = {f"a{i}": rng.integers(0, 50, n) for i in range(n_attributes)}
    y_true, y_pred = rng.integers(0, 2, (2, n))
    tally = Tally.from_predictions(y_true, y_pred, sensitive_features=columns)
    assert by_tally(tally) == by_pandas(columns, y_true, y_pred)
    assert list(tally.groups) == sorted(tally.groups)


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_shards_add_to_the_whole(data):
    n = data.draw(st.integers(2, 40))
    value = st.sampled_from(["a", "b", 3, True, None])
    sex = data.draw(st.lists(value, min_size=n, max_size=n))
    age = data.draw(st.lists(st.integers(-2, 4), min_size=n, max_size=n))
    labels = data.draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=n, max_size=n))
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4)))
    y_true, y_pred = map(list, zip(*labels, strict=True))

    def part(i, j, labelled):
        features = {"sex": np.array(sex[i:j], dtype=object), "age": age[i:j]}
        return quiet(y_true[i:j] if labelled else None, y_pred[i:j], sensitive_features=features, pos_label=True)

    for labelled in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            parts = [part(i, j, labelled) for i, j in pairwise([0, *cuts, n])]
            whole = part(0, n, labelled)
        added = sum(parts)
        assert added.groups == whole.groups
        assert np.array_equal(added.counts, whole.counts)
        assert added == sum(reversed(parts))
        assert added.marginal(["age"]) == sum(p.marginal(["age"]) for p in parts)


# ------------------------------------------------------------------------------------------------ sums and marginals
def test_a_sum_unites_the_groups():
    one = Tally.from_counts({"b": {"n": 5, "selected": 2}})
    other = Tally.from_counts({"a": {"n": 3, "selected": 1}, "b": {"n": 1, "selected": 1}})
    assert (one + other).groups == (("a",), ("b",))
    assert (one + other).counts[:, 0].tolist() == [[2, 1], [3, 3]]
    assert one + other == other + one


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (Tally.from_counts({"a": {"n": 3, "selected": 1}}, attribute="race"), "attributes"),
        (Tally.from_counts({"a": {"n": 3, "selected": 1}}, pos_label="yes"), "pos_label"),
        (Tally.from_counts({"a": {"tp": 1, "fp": 1, "fn": 1, "tn": 1}}), "labelled"),
    ],
)
def test_tallies_that_do_not_agree_do_not_add(other, what):
    with pytest.raises(ValueError, match=f"tallies add only if their {what} agree"):
        Tally.from_counts({"a": {"n": 3, "selected": 1}}) + other


def test_a_tally_adds_to_tallies_only():
    with pytest.raises(TypeError):
        small() + 1
    assert sum([small()]) == small()


def test_a_marginal_sums_over_the_other_attributes():
    for names in (["sex"], ["race"], ["race", "sex"], ["sex", "race"]):
        columns = {name: {"sex": SEX, "race": RACE}[name] for name in names}
        assert small().marginal(names) == Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=columns)


@pytest.mark.parametrize("names", [["age"], ["sex", "age"], []])
def test_a_marginal_of_unknown_attributes_is_refused(names):
    with pytest.raises(ValueError, match=r"attributes must be among \['sex', 'race'\]"):
        small().marginal(names)


def test_marginals_keep_the_missing_bucket_last_and_apart():
    tally = quiet(Y_TRUE, Y_PRED, sensitive_features={"a": [None, 3, "x", None, 3, "x"], "b": RACE})
    assert tally.marginal(["a"]).groups == ((3,), ("x",), (MISSING,))
    assert [group[0] for group in tally.groups] == [3, 3, "x", "x", MISSING, MISSING]


# ---------------------------------------------------------------------------------------------------- printed tables
def test_a_printed_table_gives_the_tally_of_its_rows():
    table = {"m": {"tp": 1, "fp": 1, "fn": 0, "tn": 0}, "f": {"tp": 1, "fp": 1, "fn": 1, "tn": 1}}
    assert Tally.from_counts(table, attribute="sex") == small().marginal(["sex"])
    table = {"m": {"n": 2, "selected": 2}, "f": {"n": 4, "selected": 2}}
    assert Tally.from_counts(table, attribute="sex") == small(None).marginal(["sex"])


def test_a_printed_table_of_intersections_gives_the_tally_of_its_rows():
    rows = small().frame()
    table = {(r.sex, r.race): {"tp": r.tp, "fp": r.fp, "fn": r.fn, "tn": r.tn} for r in rows.itertuples()}
    assert Tally.from_counts(dict(reversed(table.items())), attribute=["sex", "race"]) == small()


def test_a_printed_table_stands_in_the_order_of_rows():
    a = ["a", "a", "a", 3, 3, None]
    b = [None, "z", 3, "z", None, "z"]
    from_rows = quiet(None, Y_PRED, sensitive_features={"a": a, "b": b})
    table = {
        tuple(MISSING if v is None else v for v in key): {"n": 1, "selected": p}
        for *key, p in zip(a, b, Y_PRED, strict=True)
    }
    assert Tally.from_counts(table, attribute=["a", "b"]).groups == from_rows.groups


def test_labels_of_a_printed_table_become_python_scalars():
    table = {np.str_("b"): {"n": 3, "selected": 1}, np.int64(3): {"n": 3, "selected": 1}}
    tally = Tally.from_counts(table, pos_label=np.int64(1))
    assert [type(group[0]) for group in tally.groups] == [int, str]
    assert type(tally.pos_label) is int


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": {"tp": 1}}, r"counts of group 'a' must give tp, fp, fn, tn or n, selected; got \['tp'\]"),
        ({"a": {"n": 3, "selected": 4}}, "counts must not be negative"),
        ({"a": {"n": 3.5, "selected": 1}}, "whole numbers"),
        ({"a": {"n": float("nan"), "selected": 1}}, "whole numbers"),
        ({"a": {"n": float("inf"), "selected": 1}}, "whole numbers"),
        (
            {"a": {"n": 3, "selected": 1}, "b": {"tp": 1, "fp": 1, "fn": 1, "tn": 1}},
            r"counts must be one table a group, all of them labelled or none\.$",
        ),
        ({}, r"counts must give a mapping of counts for each of one or more groups; got \{\}"),
        (
            {"a": {"tp": 2**61, "fp": 2**61, "fn": 2**61, "tn": 1}},
            r"counts must sum up to at most 4.61e\+18 rows; got 6.92e\+18",
        ),
        ({"a": {"tp": 2**63, "fp": 1, "fn": 1, "tn": 1}}, r"at most 4.61e\+18 rows; got 9.22e\+18"),
    ],
)
def test_a_wrong_printed_table_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        Tally.from_counts(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "counts must give a mapping of counts for each of one or more groups; got None"),
        ([1, 2], r"counts must give a mapping of counts for each of one or more groups; got \[1, 2\]"),
        ({"a": 3}, "counts of group 'a' must be a mapping of tp, fp, fn, tn or n, selected; got 3"),
        ({"a": {"tp": "3", "fp": 1, "fn": 1, "tn": 1}}, "counts of group 'a' must be numbers of rows; tp is '3'"),
        ({"a": {"n": 3, "selected": None}}, "counts of group 'a' must be numbers of rows; selected is None"),
    ],
)
def test_what_is_no_printed_table_is_refused(table, message):
    with pytest.raises(TypeError, match=message):
        Tally.from_counts(table)


def test_a_group_of_the_wrong_length_is_refused():
    for group in (("f",), ("f", "x", "y"), "fx"):
        with pytest.raises(ValueError, match="every group must hold one value for each of the attributes"):
            Tally.from_counts({group: {"n": 3, "selected": 1}}, attribute=["sex", "race"])


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 2), (1, 3, 2), (1, 2, 3), (1, 2, 2, 1)])
def test_counts_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"counts must have shape \(1, 2, 2\)"):
        Tally(("a",), (("x",),), np.ones(shape, int))


def test_a_group_stands_once():
    with pytest.raises(ValueError, match="group"):
        Tally(("a",), (("x",), ("x",)), np.ones((2, 2, 2), int))


# ------------------------------------------------------------------------------------------------------------ storing
LABELS = {
    "text": ["a", "b", "a"],
    "number_and_text": [30, "30", 30],
    "floats": [0.5, 1.5, 0.5],
    "booleans": [True, False, True],
    "missing": ["a", None, "b"],
    "dates": [datetime.date(2020, 1, 2), datetime.date(2019, 1, 2), datetime.date(2020, 1, 2)],
    "timestamps": pd.Series(pd.to_datetime(["2020-01-02", "2019-01-02", "2020-01-02"])),
    "intervals": pd.Series(pd.IntervalIndex.from_tuples([(5, 10), (10, 20), (5, 10)])),
    "unicode": ["é", "日本", "\u2028"],
}


@pytest.mark.parametrize("kind", LABELS)
def test_storing_and_reading_gives_the_same_tally(kind):
    features = {"a": LABELS[kind], "b": ["x", "y", "y"]}
    tally = quiet([1, 0, 1], [1, 1, 0], sensitive_features=features)
    text = json.dumps(tally.to_dict(), allow_nan=False)
    back = Tally.from_dict(json.loads(text))
    assert back == tally
    assert back.digest() == tally.digest()
    assert json.dumps(back.to_dict(), allow_nan=False) == text
    assert back.marginal(["b"]) == tally.marginal(["b"])


@pytest.mark.parametrize("kind", LABELS)
def test_groups_keep_their_order_when_stored(kind):
    tally = quiet(None, [1, 1, 0], sensitive_features={"a": LABELS[kind], "b": ["x", "y", "y"]})
    back = Tally.from_dict(json.loads(json.dumps(tally.to_dict())))
    assert back.marginal(["a"]) == tally.marginal(["a"])
    assert back + back == tally + tally


def test_stored_labels_keep_their_type():
    tally = quiet([1, 0, 1], [1, 1, 0], sensitive_features=np.array([30, "30", None], dtype=object))
    back = Tally.from_dict(json.loads(json.dumps(tally.to_dict())))
    assert back.groups == ((30,), ("30",), (MISSING,))
    assert back.groups[2][0] is MISSING
    day = Tally.from_predictions([1, 0], [1, 1], sensitive_features=[datetime.date(2020, 1, 2)] * 2)
    assert Tally.from_dict(day.to_dict()).groups == ((ForeignLabel("date", "2020-01-02"),),)


def test_unlabelled_and_empty_tallies_are_stored():
    tally = small(None)
    assert Tally.from_dict(json.loads(json.dumps(tally.to_dict()))) == tally


def test_digest_is_pinned():
    tally = Tally.from_counts({"F": {"n": 10, "selected": 4}, "M": {"n": 20, "selected": 10}}, attribute="sex")
    text = '{"attributes":["sex"],"counts":[[[6,4]],[[10,10]]],"groups":[["F"],["M"]],"labels":[0,1],"pos_label":1}'
    assert tally.digest() == hashlib.sha256(text.encode()).hexdigest()


def test_digest_tells_tallies_apart():
    one = Tally.from_counts({30: {"n": 10, "selected": 4}})
    others = [
        Tally.from_counts({"30": {"n": 10, "selected": 4}}),
        Tally.from_counts({30: {"n": 10, "selected": 5}}),
        Tally.from_counts({30: {"n": 10, "selected": 4}}, attribute="sex"),
        Tally.from_counts({30: {"n": 10, "selected": 4}}, pos_label="1"),
    ]
    assert len({one.digest(), *(other.digest() for other in others)}) == 5
    assert all(one != other for other in others)


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(6)
    shuffled = {name: np.array(values)[order] for name, values in {"sex": SEX, "race": RACE}.items()}
    again = Tally.from_predictions(np.array(Y_TRUE)[order], np.array(Y_PRED)[order], sensitive_features=shuffled)
    assert again.digest() == small().digest()


def test_equal_tallies_have_equal_hashes():
    ints = Tally.from_predictions([1, 0], [1, 0], sensitive_features=["a", "b"])
    booleans = Tally.from_predictions([True, False], [True, False], sensitive_features=["a", "b"])
    assert hash(ints) == hash(Tally.from_predictions([1, 0], [1, 0], sensitive_features=["a", "b"]))
    assert ints != booleans or hash(ints) == hash(booleans)
    assert ints != "a tally"


# --------------------------------------------------------------------------------------------------------- immutable
@pytest.mark.parametrize(
    "remake",
    [lambda t: t, lambda t: pickle.loads(pickle.dumps(t)), copy.copy, copy.deepcopy],
    ids=["made", "pickled", "copied", "deep"],
)
def test_a_tally_cannot_be_changed(remake):
    tally = remake(quiet(Y_TRUE, Y_PRED, sensitive_features={"a": ["x", None] * 3}))
    assert tally.groups[1][0] is MISSING
    with pytest.raises(AttributeError):
        tally.attributes = ("b",)
    with pytest.raises(ValueError, match="read-only"):
        tally.counts[0, 0, 0] = 7


def test_a_pickled_tally_is_equal():
    for tally in (small(), small(None)):
        back = pickle.loads(pickle.dumps(tally))
        assert back == tally
        assert back.digest() == tally.digest()
        assert back.counts.dtype == np.int64


def test_counts_given_are_copied():
    counts = np.ones((1, 2, 2), int)
    tally = Tally(("a",), (("x",),), counts)
    counts[:] = 5
    assert tally.n_rows == 4
    assert counts.flags.writeable


def test_counts_of_a_whole_nation_do_not_overflow():
    huge = {"tp": 10**15, "fp": 10**15, "fn": 10**15, "tn": 10**15}
    tally = Tally.from_counts({"a": huge, "b": huge})
    assert (tally + tally).n_rows == 16 * 10**15


def test_repr_says_size_and_attributes():
    assert repr(small()) == "<Tally of 6 rows, 4 groups of sex & race, labelled>"
    assert repr(small(None)) == "<Tally of 6 rows, 4 groups of sex & race, no labels>"


@pytest.mark.parametrize("name", ["n", "tp"])
def test_a_table_of_an_attribute_called_as_a_column_of_it_is_refused(name):
    tally = Tally.from_predictions([1, 0], [1, 0], sensitive_features={name: ["a", "b"]})
    with pytest.raises(ValueError, match=f"columns called \\['{name}'\\] itself; give these attributes other names"):
        tally.frame()
    free = Tally.from_predictions(None, [1, 0], sensitive_features={"tp": ["a", "b"]}).frame()
    assert free["tp"].tolist() == ["a", "b"]
