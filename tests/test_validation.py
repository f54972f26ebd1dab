"""The door: every kind of column gives the tally of the plain list; what is no column is refused by name, in one error."""

import datetime
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sklearn_ethiclens import MISSING, Tally
from sklearn_ethiclens._validation import (
    ForeignLabel,
    as_scalar,
    encode_column,
    listing,
    show,
    sort_labels,
)
from sklearn_ethiclens.exceptions import MissingGroupsWarning

N = 8
Y_TRUE = [1, 0, 1, 1, 0, 0, 1, 0]
Y_PRED = [1, 0, 0, 1, 1, 0, 1, 0]

TEXT = ["b", "a", "c", "a", "b", "c", "a", "b"]
TEXT_GAPS = ["b", "a", None, "a", "b", "c", None, "b"]
WHOLE = [30, 7, 30, 7, 30, 7, 7, 30]
WHOLE_GAPS = [30, 7, None, 7, 30, 7, None, 30]
WIDE = [100_000, -5, 100_000, -5, 3, 3, 3, 100_000]
FLAGS = [True, False, True, True, False, False, True, False]
FLAGS_GAPS = [True, False, None, True, False, None, True, False]
HALVES = [0.5, 1.25, 0.5, 1.25, 0.5, 1.25, 1.25, 0.5]
HALVES_GAPS = [0.5, 1.25, None, 1.25, 0.5, None, 1.25, 0.5]
DAYS = [datetime.datetime(2020, 1, 1 + i % 3) for i in range(N)]


def polars():
    return pytest.importorskip("polars")


def pyarrow():
    return pytest.importorskip("pyarrow")


def arrow_type(name):
    return pd.ArrowDtype(getattr(pyarrow(), name)())


def of_rows(sensitive_features, y_true=Y_TRUE, y_pred=Y_PRED, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingGroupsWarning)
        return Tally.from_predictions(y_true, y_pred, sensitive_features=sensitive_features, **keywords)


def named(tally, *names):
    return Tally(names, tally.groups, tally.counts, tally.pos_label, tally.labels)


def assert_same(one, other, *names):
    names = names or ("x",)
    assert [tuple(map(type, group)) for group in one.groups] == [tuple(map(type, group)) for group in other.groups]
    assert one.groups == other.groups
    assert named(one, *names) == named(other, *names)
    assert named(one, *names).digest() == named(other, *names).digest()


def chunks(values, **keywords):
    pa = pyarrow()
    return pa.chunked_array([pa.array(values[:3], **keywords), pa.array(values[3:], **keywords)])


def dictionary_chunks(values):
    pa = pyarrow()
    return pa.chunked_array([pa.array(values).dictionary_encode()])


CONTAINERS = {
    "object": lambda v: np.array(v, dtype=object),
    "tuple": tuple,
    "numpy_scalars": lambda v: [None if x is None else np.asarray(x)[()] for x in v],
    "pandas_object": lambda v: pd.Series(v, dtype=object),
    "pandas_category": lambda v: pd.Series(v, dtype=object).astype("category"),
    "pandas_categorical": lambda v: pd.Categorical(v),
    "pandas_index": lambda v: pd.Index(v, dtype=object),
    "pandas_frame": lambda v: pd.DataFrame({"x": pd.Series(v, dtype=object)}),
    "dict": lambda v: {"x": v},
    "dict_of_object": lambda v: {"x": np.array(v, dtype=object)},
    "array_2d": lambda v: np.array(v, dtype=object).reshape(-1, 1),
    "polars": lambda v: polars().Series("x", v),
    "polars_frame": lambda v: polars().DataFrame({"x": v}),
    "pyarrow": lambda v: pyarrow().array(v),
    "pyarrow_chunked": chunks,
    "pyarrow_table": lambda v: pyarrow().table({"x": v}),
    "pyarrow_frame": lambda v: pd.DataFrame({"x": pd.array(v, dtype=pd.ArrowDtype(pyarrow().array(v).type))}),
    "narwhals_polars": lambda v: nw.from_native(polars().Series("x", v), series_only=True),
    "narwhals_pandas": lambda v: nw.from_native(pd.Series(v, dtype=object), series_only=True),
    "narwhals_frame": lambda v: nw.from_native(polars().DataFrame({"x": v}), eager_only=True),
    "dictionary": lambda v: pyarrow().array(v).dictionary_encode(),
    "dictionary_chunked": dictionary_chunks,
    "dictionary_arrow_dtype": lambda v: pd.Series(pd.arrays.ArrowExtensionArray(dictionary_chunks(v))),
}
VALUES = {
    "text": TEXT,
    "text_gaps": TEXT_GAPS,
    "whole": WHOLE,
    "whole_gaps": WHOLE_GAPS,
    "wide": WIDE,
    "flags": FLAGS,
    "flags_gaps": FLAGS_GAPS,
    "halves": HALVES,
    "halves_gaps": HALVES_GAPS,
}


@pytest.mark.engines
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("values", VALUES)
def test_every_container_gives_the_tally_of_the_plain_list(values, container):
    plain = VALUES[values]
    assert_same(of_rows(CONTAINERS[container](plain)), of_rows(plain))


TYPED = {
    "numpy_text": (TEXT, lambda: np.array(TEXT)),
    "numpy_bool": (FLAGS, lambda: np.array(FLAGS)),
    "numpy_int64": (WHOLE, lambda: np.array(WHOLE)),
    "numpy_int8": (WHOLE, lambda: np.array(WHOLE, np.int8)),
    "numpy_uint64": (WHOLE, lambda: np.array(WHOLE, np.uint64)),
    "numpy_wide": (WIDE, lambda: np.array(WIDE, np.int32)),
    "numpy_float32": (HALVES, lambda: np.array(HALVES, np.float32)),
    "numpy_big_endian": (WIDE, lambda: np.array(WIDE, ">i4")),
    "numpy_strided": (TEXT, lambda: np.repeat(np.array(TEXT), 2)[::2]),
    "numpy_float_gaps": (HALVES_GAPS, lambda: np.array(HALVES_GAPS, float)),
    "pandas_string": (TEXT_GAPS, lambda: pd.Series(TEXT_GAPS, dtype="string")),
    "pandas_str": (TEXT_GAPS, lambda: pd.Series(TEXT_GAPS, dtype="str")),
    "pandas_string_pyarrow": (TEXT_GAPS, lambda: pyarrow() and pd.Series(TEXT_GAPS, dtype="string[pyarrow]")),
    "pandas_ordered": (TEXT, lambda: pd.Categorical(TEXT, categories=["c", "z", "b", "a"], ordered=True)),
    "pandas_unused": (TEXT_GAPS, lambda: pd.Series(pd.Categorical(TEXT_GAPS, categories=["z", "c", "y", "b", "a"]))),
    "pandas_whole_category": (WHOLE_GAPS, lambda: pd.Series(pd.array(WHOLE_GAPS, dtype="Int64")).astype("category")),
    "pandas_Int64": (WHOLE_GAPS, lambda: pd.Series(WHOLE_GAPS, dtype="Int64")),
    "pandas_UInt8": (WHOLE_GAPS, lambda: pd.Series(WHOLE_GAPS, dtype="UInt8")),
    "pandas_boolean": (FLAGS_GAPS, lambda: pd.array(FLAGS_GAPS, dtype="boolean")),
    "pandas_Float64": (HALVES_GAPS, lambda: pd.Series(HALVES_GAPS, dtype="Float64")),
    "arrow_int64": (WHOLE_GAPS, lambda: pd.Series(WHOLE_GAPS, dtype=arrow_type("int64"))),
    "arrow_bool": (FLAGS_GAPS, lambda: pd.Series(FLAGS_GAPS, dtype=arrow_type("bool_"))),
    "arrow_string": (TEXT_GAPS, lambda: pd.Series(TEXT_GAPS, dtype=arrow_type("string"))),
    "polars_categorical": (TEXT_GAPS, lambda: polars().Series(TEXT_GAPS, dtype=polars().Categorical)),
    "polars_enum": (TEXT_GAPS, lambda: polars().Series(TEXT_GAPS, dtype=polars().Enum(["c", "z", "b", "a"]))),
    "polars_uint8": (WHOLE, lambda: polars().Series(WHOLE, dtype=polars().UInt8)),
    "polars_null": ([None] * N, lambda: polars().Series([None] * N)),
    "pyarrow_null": ([None] * N, lambda: pyarrow().nulls(N)),
    "all_nan": ([None] * N, lambda: np.full(N, np.nan)),
    "pandas_days": (DAYS, lambda: pd.Series(pd.to_datetime(DAYS).as_unit("us"))),
    "pandas_days_ns": (DAYS, lambda: pd.Series(pd.to_datetime(DAYS).as_unit("ns"))),
    "numpy_days_ns": (DAYS, lambda: np.array(DAYS, "datetime64[ns]")),
    "numpy_days_us": (DAYS, lambda: np.array(DAYS, "datetime64[us]")),
    "polars_days": (DAYS, lambda: polars().Series(DAYS)),
    "polars_days_ns": (DAYS, lambda: polars().Series(DAYS, dtype=polars().Datetime("ns"))),
}


@pytest.mark.engines
@pytest.mark.parametrize("kind", TYPED)
def test_every_dtype_gives_the_tally_of_the_plain_list(kind):
    plain, make = TYPED[kind]
    assert_same(of_rows(make()), of_rows(plain))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(256, dtype=np.uint8),
        np.arange(-128, 128, dtype=np.int8),
        np.arange(-128, 128, dtype=np.int64) * 1,
        np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max]),
        np.array([0, np.iinfo(np.uint64).max], np.uint64),
        np.array([-3, 252]),
        np.array([-3, 253]),
        np.array([-2.0, 252.0]),
        np.array([-2.0, 253.0]),
        np.array([1e300, -1e300]),
        np.array([1.0, np.inf]),
        np.array([2.0**60, 2.0**60 + 256]),
        np.array([0.0, 254.0, np.nan]),
        np.array([0.0, 255.0, np.nan]),
        np.array([2**63, 2**63 + 5], np.uint64),
        np.array([-1.0, 1e-300]),  # a difference of 1 after rounding, but no whole number
        np.array([[3, 0], [7, 0], [5, 0]])[:, 0],
        np.r_[np.full(70_000, 5), 6],  # longer than a block: the last row decides
        np.r_[np.full(70_000, 5), 300],
        np.r_[np.full(70_000, 5), -1],
        np.r_[np.full(70_000, 5.0), 5.5],
        np.r_[np.full(70_000, 5.0), 7.0, np.nan],
    ],
    ids=str,
)
def test_codes_point_at_the_value_of_each_row(values):
    column = encode_column(values, "x")
    back = [column.levels[code] for code in column.codes]
    assert [None if v is MISSING else v for v in back] == [None if v != v else v for v in values.tolist()]


@pytest.mark.parametrize(
    "values",
    [
        np.array([5, 6, 5, 7, 5, 6, 5, 7], np.uint8),
        np.array([-1, 1] * 4, np.int8),
        np.array([2.0, 3.0] * 4),
        pd.Series(TEXT_GAPS, dtype="category"),
        pd.Series(pd.Categorical(TEXT_GAPS, ["c", "z", "b", "a"])),
    ],
    ids=lambda values: str(values.dtype),
)
@pytest.mark.filterwarnings("ignore::sklearn_ethiclens.exceptions.MissingGroupsWarning")
def test_columns_are_left_as_they_were(values):
    before = values.copy()
    Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features={"x": values, "again": values})
    assert pd.Series(values).equals(pd.Series(before))


@pytest.mark.engines
@pytest.mark.parametrize("dtype", ["String", "Categorical"])
def test_text_of_polars_and_of_objects_is_encoded_alike(dtype):
    words = np.random.default_rng(0).choice(np.array([*"zyxwvä", "", "nan", None], dtype=object), 5000)
    series = polars().Series(words.tolist(), dtype=getattr(polars(), dtype))
    for values in (series, series[::-1].slice(100), series.head(1), series.to_arrow()):
        plain = np.array(values.to_pylist() if hasattr(values, "to_pylist") else values.to_list(), dtype=object)
        here, there = encode_column(values, "x"), encode_column(plain, "x")
        assert here.occurring == there.occurring
        assert [here.levels[i] for i in here.codes] == [there.levels[i] for i in there.codes]


def test_uint8_column_of_256_values_is_not_wrapped():
    values = np.repeat(np.arange(256, dtype=np.uint8), 2)
    with pytest.raises(ValueError, match="256 distinct numbers"):
        Tally.from_predictions(None, values % 2, sensitive_features=values)
    assert encode_column(values, "x").occurring == tuple(range(256))


def test_text_and_number_that_look_alike_stay_apart():
    tally = of_rows([30, "30", 30, "30", None, float("nan"), "x", "x"])
    assert tally.groups == ((30,), ("30",), ("x",), (MISSING,))
    assert tally.counts.sum((1, 2)).tolist() == [2, 2, 2, 2]


def test_list_of_mixed_types_is_never_turned_into_text():
    tally = of_rows([30, "unknown", None, 30, "unknown", np.int64(30), np.str_("unknown"), pd.NA])
    assert tally.groups == ((30,), ("unknown",), (MISSING,))
    assert [type(group[0]) for group in tally.groups[:2]] == [int, str]


def test_large_whole_numbers_beside_a_gap_stay_apart():
    one, other = 2**53, 2**53 + 1
    assert len(of_rows([one, other, None, one, other, one, other, one]).groups) == 3
    assert len(of_rows([one, other, float("nan"), one, other, one, other, one]).groups) == 3


@pytest.mark.engines
def test_large_whole_numbers_beside_a_gap_stay_apart_in_polars():
    assert len(of_rows(polars().Series([2**53, 2**53 + 1, None, 1, 1, 1, 1, 1])).groups) == 4


@pytest.mark.parametrize("gap", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")], ids=repr)
def test_every_kind_of_gap_is_the_missing_bucket(gap):
    tally = of_rows(["a", gap, "b", gap, "a", "b", "a", gap])
    assert tally.groups == (("a",), ("b",), (MISSING,))
    assert tally.counts[2].sum() == 3


def test_a_masked_entry_is_missing_whatever_stands_below_the_mask():
    mask = [True] + [False] * (N - 1)
    assert_same(of_rows(np.ma.array(TEXT, mask=mask)), of_rows([None, *TEXT[1:]]))
    with pytest.raises(ValueError, match="y_pred is missing in 1 of 8 rows"):
        of_rows(TEXT, None, np.ma.array(Y_PRED, mask=mask))


def test_interval_groups_of_cut_stand_in_their_own_order():
    ages = pd.Series([8, 31, 5, 100, 8, 31, 5, 100])
    tally = of_rows(pd.cut(ages, [0, 5, 10, 40, 120]))
    assert [str(group[0]) for group in tally.groups] == ["(0, 5]", "(5, 10]", "(10, 40]", "(40, 120]"]
    assert tally.counts.sum((1, 2)).tolist() == [2, 2, 2, 2]


def test_unused_categories_make_no_group():
    column = pd.Categorical(TEXT, categories=["a", "b", "c", "d", "e"])
    assert of_rows(column).groups == (("a",), ("b",), ("c",))
    labels = pd.Categorical(["no", "yes"] * 4, categories=["maybe", "no", "yes"])
    assert of_rows(TEXT, None, labels, pos_label="yes").labels == ("no", "yes")


def test_unused_category_of_a_decision_is_no_score():
    decisions = pd.Categorical([0.0, 1.0] * 4, categories=[0.0, 0.5, 1.0])
    assert of_rows(TEXT, None, decisions).counts[:, 0, 1].sum() == 4


# ---------------------------------------------------------------------------------------------- frames of features
@pytest.mark.engines
@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda d: polars().DataFrame(d),
        lambda d: pyarrow().table(d),
        lambda d: nw.from_native(pd.DataFrame(d), eager_only=True),
        lambda d: nw.from_native(polars().DataFrame(d), eager_only=True),
        lambda d: {k: np.array(v, dtype=object) for k, v in d.items()},
        lambda d: pd.DataFrame(d).astype("category"),
        lambda d: pd.DataFrame(d).convert_dtypes(),
    ],
    ids=["pandas", "polars", "pyarrow", "narwhals_pandas", "narwhals_polars", "dict", "category", "nullable"],
)
def test_every_frame_gives_the_tally_of_a_dict_of_lists(make):
    columns = {"sex": TEXT, "code": WHOLE, "flag": FLAGS}
    assert_same(of_rows(make(columns)), of_rows(columns), "sex", "code", "flag")
    assert of_rows(make(columns)).attributes == ("sex", "code", "flag")


@pytest.mark.parametrize("make", [np.array, list], ids=["array", "rows"])
def test_columns_of_a_table_without_names_are_numbered(make):
    rows = [[a, b] for a, b in zip(TEXT, TEXT[::-1], strict=True)]
    tally = of_rows(make(rows))
    assert tally.attributes == ("sensitive_feature_0", "sensitive_feature_1")
    assert_same(tally, of_rows({"a": TEXT, "b": TEXT[::-1]}), "a", "b")


def test_the_name_of_a_series_names_the_attribute():
    assert of_rows(pd.Series(TEXT, name="sex")).attributes == ("sex",)
    assert of_rows(pd.Series(TEXT, name=3)).attributes == ("3",)
    assert of_rows(pd.Series(TEXT)).attributes == ("sensitive_feature",)


@pytest.mark.engines
@pytest.mark.parametrize(
    "make",
    [
        lambda v: np.array(v),
        lambda v: np.array(v).reshape(-1, 1),
        lambda v: np.array(v, np.uint8),
        lambda v: np.array(v, float),
        lambda v: pd.Series(v),
        lambda v: pd.DataFrame({"y": v}),
        lambda v: pd.array(v, dtype="Int64"),
        lambda v: pd.Categorical(v),
        lambda v: polars().Series(v),
        lambda v: polars().DataFrame({"y": v}),
        lambda v: pyarrow().array(v),
        lambda v: pyarrow().table({"y": v}),
        lambda v: nw.from_native(polars().Series(v), series_only=True),
        lambda v: nw.from_native(polars().DataFrame({"y": v}), eager_only=True),
        tuple,
    ],
    ids="array column_array uint8 float series frame nullable category polars polars_frame pyarrow table nw nw_frame "
    "tuple".split(),
)
def test_labels_come_in_every_container(make):
    tally = of_rows(TEXT, make(Y_TRUE), make(Y_PRED))
    assert np.array_equal(tally.counts, of_rows(TEXT).counts)
    assert tally.pos_label == 1
    assert tally.labels == (0, 1)


# ------------------------------------------------------------------------------------------------- nothing is changed
@pytest.mark.parametrize(
    "column",
    [
        np.array(FLAGS),
        np.array(WHOLE),
        np.array(WHOLE, np.uint8),
        np.array([0, 1, 0, 1, 0, 1, 1, 1], np.uint8),
        np.array(HALVES_GAPS, float),
        np.array([1.0, np.nan] * 4),
        np.array(TEXT_GAPS, dtype=object),
        pd.Series(WHOLE_GAPS, dtype="Int64"),
        pd.Series(FLAGS_GAPS, dtype="boolean"),
        pd.Series(pd.Categorical(TEXT_GAPS)),
        pd.DataFrame({"a": TEXT_GAPS, "b": WHOLE}),
        {"a": np.array(WHOLE, np.uint8), "b": np.array(TEXT)},
    ],
    ids=lambda v: f"{type(v).__name__}-{getattr(v, 'dtype', '')}",
)
def test_arguments_are_never_modified(column):
    y_true, y_pred = np.array(Y_TRUE, np.uint8), np.array(Y_PRED, np.uint8)
    before = {k: v.copy() for k, v in column.items()} if isinstance(column, dict) else column.copy()
    of_rows(column, y_true, y_pred)
    assert y_true.tolist() == Y_TRUE
    assert y_pred.tolist() == Y_PRED
    for name in column if isinstance(column, dict) else [slice(None)]:
        pd.testing.assert_frame_equal(pd.DataFrame(before[name]), pd.DataFrame(column[name]))


def test_arrays_that_cannot_be_written_are_read():
    column, decisions = np.array(WHOLE, np.uint8), np.array(Y_PRED, np.uint8)
    column.setflags(write=False)
    decisions.setflags(write=False)
    assert_same(of_rows(column, None, decisions), of_rows(WHOLE, None, Y_PRED))


# ------------------------------------------------------------------------------------------------------ missing groups
def test_missing_groups_are_a_bucket_with_a_warning_that_counts_them():
    with pytest.warns(MissingGroupsWarning, match=r"'sensitive_feature' is missing in 2 of 8 rows.*\(missing\)"):
        tally = Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=TEXT_GAPS)
    assert tally.groups[-1] == (MISSING,)


def test_missing_groups_are_refused_on_request():
    with pytest.raises(
        ValueError, match=r"'sex' is missing in 2 of 8 rows; fill them, drop the rows, or pass missing="
    ):
        Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features={"sex": TEXT_GAPS}, missing="raise")


def test_missing_has_two_modes():
    with pytest.raises(ValueError, match="missing must be 'bucket' or 'raise'; got 'drop'"):
        Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=TEXT, missing="drop")


def test_columns_that_may_but_do_not_miss_give_no_warning():
    for column in (pd.Categorical(TEXT), pd.Series(WHOLE, dtype="Int64"), np.array(TEXT, dtype=object)):
        assert (MISSING,) not in Tally.from_predictions(Y_TRUE, Y_PRED, sensitive_features=column).groups


# ----------------------------------------------------------------------------------------------------------- alignment
def test_pandas_index_must_agree():
    index = list("pqrstuvw")
    y_true, y_pred = pd.Series(Y_TRUE, index), pd.Series(Y_PRED, index)
    groups = pd.Series(TEXT, index, name="sex")
    assert_same(of_rows(groups, y_true, y_pred), of_rows(TEXT))
    message = "index of sensitive feature 'sex' differs from that of y_true"
    with pytest.raises(ValueError, match=message):
        of_rows(groups[::-1], y_true, y_pred)
    with pytest.raises(ValueError, match=message):
        of_rows(groups.to_frame()[::-1], y_true, y_pred)
    with pytest.raises(ValueError, match="index of y_pred differs from that of y_true"):
        of_rows(TEXT, y_true, y_pred[::-1])
    with pytest.raises(ValueError, match="index of sensitive feature 'sex' differs from that of y_pred"):
        of_rows(groups[::-1], Y_TRUE, y_pred)


def test_arrays_are_positional_beside_pandas():
    y_true = pd.Series(Y_TRUE, index=range(10, 10 + N))
    assert_same(of_rows(np.array(TEXT), y_true, np.array(Y_PRED)), of_rows(TEXT))


def test_equal_indexes_with_duplicates_are_positional():
    index = [0, 0, 1, 1, 2, 2, 3, 3]
    series = [pd.Series(v, pd.Index(index)) for v in (TEXT, Y_TRUE, Y_PRED)]
    assert_same(of_rows(*series), of_rows(TEXT))


def test_frame_and_series_of_different_rows_are_refused():
    frame = pd.DataFrame({"a": TEXT, "b": TEXT})
    with pytest.raises(ValueError, match="index of sensitive feature 'a' differs"):
        of_rows(frame.iloc[::-1], pd.Series(Y_TRUE), pd.Series(Y_PRED))


@pytest.mark.parametrize(
    ("groups", "y_true", "y_pred", "message"),
    [
        (TEXT[:-1], Y_TRUE, Y_PRED, "y_true 8, y_pred 8, sensitive feature 'sensitive_feature' 7 rows"),
        (TEXT, Y_TRUE[:-1], Y_PRED, "y_true 7, y_pred 8"),
        (TEXT, None, Y_PRED[:-1], "y_pred 7, sensitive feature 'sensitive_feature' 8"),
        ({"a": TEXT, "b": TEXT[:3]}, Y_TRUE, Y_PRED, "sensitive feature 'a' 8, sensitive feature 'b' 3"),
    ],
)
def test_unequal_lengths_are_named(groups, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        of_rows(groups, y_true, y_pred)


# -------------------------------------------------------------------------------------------------------------- labels
POSITIVE = [1, 0, 1, 1, 0]
GROUPS = list("aabbb")


@pytest.mark.parametrize(
    ("no", "yes", "given"),
    [
        (0, 1, None),
        (-1, 1, None),
        (False, True, None),
        (0.0, 1.0, None),
        (-1.0, 1.0, None),
        (0, 1, 1),
        (1, 0, 0),
        (True, False, False),
        (0, 1, True),
        (0, 1, np.int64(1)),
        ("no", "yes", "yes"),
        ("yes", "no", "no"),
        ("no", "yes", np.str_("yes")),
        (1, 2, 2),
        (2, 1, 1),
        (1.0, 2.0, 2),
    ],
)
def test_positive_label_is_guessed_only_beyond_doubt_else_as_given(no, yes, given):
    labels = [yes if v else no for v in POSITIVE]
    tally = of_rows(GROUPS, labels, labels, pos_label=given)
    assert tally.counts.tolist() == [[[1, 0], [0, 1]], [[1, 0], [0, 2]]]
    assert tally.pos_label == yes
    assert set(tally.labels) == {no, yes}


@pytest.mark.parametrize(("no", "yes"), [(1, 2), ("no", "yes"), ("0", "1"), (0, 2), (1.0, 2.0), (-1, 0)])
def test_positive_label_in_doubt_is_asked_for(no, yes):
    labels = [yes if v else no for v in POSITIVE]
    with pytest.raises(ValueError, match=r"y_true and y_pred hold the labels \[.*\]; pass pos_label"):
        of_rows(GROUPS, labels, labels)


@pytest.mark.parametrize("label", [2, "yes", 0.25 + 0.75 + 1])
def test_one_label_alone_is_ambiguous_unless_it_is_0_or_1(label):
    with pytest.raises(ValueError, match="y_pred hold the labels"):
        of_rows(GROUPS, None, [label] * 5)


@pytest.mark.parametrize(("label", "selected"), [(0, 0), (1, 5), (False, 0), (True, 5), (-1, 0), (1.0, 5)])
def test_one_class_only_of_a_known_pair_is_counted(label, selected):
    assert of_rows(GROUPS, None, [label] * 5).counts[:, 0, 1].sum() == selected


def test_more_than_two_labels_are_judged_one_against_the_rest():
    labels = ["low", "mid", "high", "high", "mid"]
    tally = of_rows(GROUPS, labels, labels, pos_label="high")
    assert tally.counts[:, 1, 1].tolist() == [0, 2]
    assert tally.labels == ("high", "low", "mid")
    with pytest.raises(ValueError, match="hold 3 labels.*pass pos_label"):
        of_rows(GROUPS, labels, labels)


@pytest.mark.parametrize("given", ["Yes", 1, None, float("nan")])
def test_a_positive_label_that_does_not_occur_is_refused_with_those_that_do(given):
    message = "pass pos_label" if given is None else r"pos_label=.* is not among the labels found.*\['no', 'yes'\]"
    with pytest.raises(ValueError, match=message):
        of_rows(GROUPS, None, ["yes", "no", "no", "yes", "no"], pos_label=given)


def test_an_absent_positive_label_beside_one_class_counts_all_as_negative_with_a_warning():
    with pytest.warns(UserWarning, match="pos_label='yes' is not among.*every row counts as negative"):
        tally = of_rows(GROUPS, None, ["no"] * 5, pos_label="yes")
    assert tally.counts[:, 0, 1].sum() == 0
    assert tally.pos_label == "yes"


def test_an_array_as_positive_label_is_refused_by_name():
    with pytest.raises((ValueError, TypeError), match="pos_label"):
        of_rows(GROUPS, None, POSITIVE, pos_label=np.array([0, 1]))


def test_labels_of_y_true_and_y_pred_must_be_of_one_kind():
    with pytest.raises(ValueError, match="4 labels.*pass pos_label"):
        of_rows(GROUPS, POSITIVE, list(map(str, POSITIVE)))
    assert of_rows(GROUPS, np.array(POSITIVE, bool), POSITIVE).counts[:, 1, 1].sum() == 3


@pytest.mark.parametrize("name", ["y_true", "y_pred"])
@pytest.mark.parametrize("as_kind", [list, np.array, pd.Series, lambda v: pd.Series(v, dtype="Float64")])
def test_scores_are_refused_where_labels_belong(name, as_kind):
    columns = {"y_true": POSITIVE, "y_pred": POSITIVE, name: as_kind([0.1, 0.9, 0.4, 1.0, 0.0])}
    with pytest.raises(ValueError, match=rf"{name} holds scores such as .*\(scores >= 0.5\)"):
        of_rows(GROUPS, **columns)


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("name", ["y_true", "y_pred"])
def test_missing_labels_are_refused(name, gap):
    columns = {"y_true": POSITIVE, "y_pred": POSITIVE, name: [1, gap, 0, gap, 1]}
    with pytest.raises(ValueError, match=rf"{name} is missing in 2 of 5 rows; drop these rows"):
        of_rows(GROUPS, **columns)


def test_advice_for_missing_truth_is_to_audit_selection_only():
    with pytest.raises(ValueError, match="pass y_true=None"):
        of_rows(GROUPS, [1, None, 0, 1, 0], POSITIVE)


# -------------------------------------------------------------------------------------------------------- many groups
@pytest.mark.parametrize(
    "values",
    [np.arange(60), np.arange(60) / 7, np.arange(60) * 1000, pd.Series(range(60)), [*range(59), None]],
    ids=["whole", "fractions", "wide", "series", "gap"],
)
def test_sixty_groups_of_numbers_are_allowed(values):
    assert len(of_rows(values, None, [0, 1] * 30).groups) == 60


@pytest.mark.parametrize(
    "values",
    [
        np.arange(61),
        np.arange(61) / 7,
        np.arange(61.0),
        np.arange(61) * 1000,
        pd.Series(range(61), dtype="Int64"),
        [*range(61), None],
        pd.Categorical(range(61)),
    ],
    ids=["whole", "fractions", "floats", "wide", "nullable", "gap", "category"],
)
def test_a_measurement_is_refused_with_the_way_to_group_it(values):
    decisions = ([0, 1] * 31)[: len(values)]
    with pytest.raises(ValueError, match=r"'age' has 61 distinct numbers \(at most 60\).*pandas.cut"):
        of_rows({"age": values}, None, decisions)


def test_an_identifier_is_refused():
    ids = [f"row {i}" for i in range(1001)]
    with pytest.raises(ValueError, match=r"'id' has 1001 distinct values \(at most 1000\).*identifier"):
        of_rows({"id": ids}, None, [0, 1] * 500 + [0])
    assert len(of_rows({"id": ids[:1000]}, None, [0, 1] * 500).groups) == 1000


def test_codes_in_a_wide_range_are_few_groups():
    assert len(of_rows(np.array([0, 200, 200, 0, 255, 1, 1, 0])).groups) == 4


# ---------------------------------------------------------------------------------------------------- what is no column
NO_COLUMN = {
    "none": None,
    "scalar": 3,
    "text": "sex",
    "bytes": b"sex",
    "set": {0, 1},
    "generator": (v for v in Y_PRED),
    "sparse": sparse.csr_matrix(np.eye(N)),
    "zero_dimensional": np.array(1),
    "mapping": {0: 1, 1: 0},
    "function": len,
}


@pytest.mark.parametrize("kind", NO_COLUMN)
def test_what_is_no_column_of_decisions_is_a_type_error_that_names_it(kind):
    with pytest.raises(TypeError, match="y_pred must be"):
        of_rows(TEXT, None, NO_COLUMN[kind])


@pytest.mark.parametrize("kind", [kind for kind in NO_COLUMN if kind not in ("none",)])
def test_what_is_no_column_of_labels_is_a_type_error_that_names_it(kind):
    with pytest.raises(TypeError, match="y_true must be"):
        of_rows(TEXT, NO_COLUMN[kind], Y_PRED)


@pytest.mark.parametrize("kind", [kind for kind in NO_COLUMN if kind not in ("none", "mapping")])
def test_what_is_no_column_of_groups_is_a_type_error_that_names_it(kind):
    with pytest.raises(TypeError, match="sensitive.features? .*must "):
        of_rows(NO_COLUMN[kind], None, Y_PRED)
    with pytest.raises(TypeError, match="sensitive feature 'sex' must "):
        of_rows({"sex": NO_COLUMN[kind]}, None, Y_PRED)


@pytest.mark.parametrize("name", ["y_true", "y_pred", "sensitive feature"])
def test_a_sparse_matrix_is_refused_with_the_way_out(name):
    matrix = sparse.csr_matrix(np.array([[v] for v in Y_PRED]))
    columns = {"y_true": Y_TRUE, "y_pred": Y_PRED, "sensitive feature": TEXT, name: matrix}
    with pytest.raises(TypeError, match=f"{name}.*dense|{name}.*toarray"):
        of_rows(columns["sensitive feature"], columns["y_true"], columns["y_pred"])


def test_no_sensitive_features_is_said_first():
    with pytest.raises(ValueError, match="sensitive_features is missing: pass the column"):
        of_rows(None, None, Y_PRED)


@pytest.mark.parametrize("name", ["sex", b"sex"])
def test_a_column_name_is_refused_with_the_way_to_pass_the_column(name):
    with pytest.raises(TypeError, match=r"got the name b?'sex'. Pass the column itself, such as X\[b?'sex'\]"):
        of_rows(name)


@pytest.mark.parametrize("empty", [{}, pd.DataFrame(index=range(N)), np.empty((N, 0))], ids=["dict", "frame", "array"])
def test_no_columns_are_refused(empty):
    with pytest.raises(ValueError, match="sensitive_features has no columns"):
        of_rows(empty)


@pytest.mark.parametrize("make", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_no_rows_are_refused(make):
    with pytest.raises(ValueError, match="there are no rows: y_pred, sensitive feature"):
        of_rows(make([]), None, make([]))


def test_an_empty_frame_of_named_columns_has_no_rows():
    with pytest.raises(ValueError, match="there are no rows"):
        of_rows(pd.DataFrame({"sex": [], "race": []}), None, [])


@pytest.mark.parametrize(
    "values",
    [[["a"], ["b"]] * 4, [{"a": 1}] * N, [{1}] * N, [np.arange(2)] * N],
    ids=["lists", "dicts", "sets", "arrays"],
)
def test_values_that_cannot_be_labels_are_refused_by_name(values):
    series = pd.Series(values)
    with pytest.raises((TypeError, ValueError), match="sensitive feature 'sex'"):
        of_rows({"sex": series})
    with pytest.raises((TypeError, ValueError), match="y_pred"):
        of_rows(TEXT, None, series)


def test_rows_of_unequal_length_are_refused_by_name():
    with pytest.raises(ValueError, match="sensitive_features"):
        of_rows([["a", "b"], ["a"]], None, [0, 1])


@pytest.mark.parametrize("shape", [(N, 2), (2, N), (N, 1, 1)])
def test_a_table_of_decisions_is_refused(shape):
    decisions = np.zeros(shape, int)
    with pytest.raises(ValueError, match="y_pred must be one column|all arguments must have one entry per row"):
        of_rows(TEXT, None, decisions)


def test_a_frame_of_two_columns_is_no_column():
    frame = pd.DataFrame({"a": Y_PRED, "b": Y_PRED})
    with pytest.raises(ValueError, match=r"y_pred must be one column; got a frame with columns \['a', 'b'\]"):
        of_rows(TEXT, None, frame)
    with pytest.raises(ValueError, match="sensitive feature 'sex' must be one column"):
        of_rows({"sex": frame}, None, Y_PRED)


@pytest.mark.engines
def test_a_polars_frame_of_two_columns_is_no_column():
    frame = polars().DataFrame({"a": Y_PRED, "b": Y_PRED})
    for wrapped in (frame, nw.from_native(frame, eager_only=True)):
        with pytest.raises(ValueError, match=r"y_pred must be one column; got a frame with columns \['a', 'b'\]"):
            of_rows(TEXT, None, wrapped)


@pytest.mark.engines
def test_a_lazy_frame_is_refused_by_name():
    with pytest.raises(TypeError, match="sensitive.features? .*LazyFrame"):
        of_rows(polars().DataFrame({"a": TEXT}).lazy())


def test_repeated_column_names_are_refused():
    frame = pd.DataFrame(np.array([TEXT, TEXT]).T, columns=["a", "a"])
    with pytest.raises(ValueError, match=r"repeats the column name \['a'\]"):
        of_rows(frame)
    with pytest.raises(ValueError, match=r"repeats the column name \['1'\]"):
        of_rows({1: TEXT, "1": TEXT})


def test_too_many_combinations_are_refused():
    column = [f"v{i}" for i in range(1000)]
    with pytest.raises(ValueError, match="too many combinations"):
        of_rows({f"a{i}": column for i in range(7)}, None, [0, 1] * 500)


# -------------------------------------------------------------------------------------------------------------- helpers
def test_labels_sort_by_type_then_value_and_the_missing_bucket_last():
    assert sort_labels(["b", 2, MISSING, 1, True, "a", 1.5]) == [True, 1.5, 1, 2, "a", "b", MISSING]
    days = [datetime.date(2021, 1, 1), datetime.date(2020, 1, 1)]
    assert sort_labels(days) == days[::-1]


def test_numpy_scalars_become_python_scalars():
    assert [type(as_scalar(v)) for v in (np.int8(1), np.float32(0.5), np.bool_(True), np.str_("x"))] == [
        int,
        float,
        bool,
        str,
    ]


def test_times_and_spans_of_pandas_become_those_of_python_unless_that_loses_something():
    assert type(as_scalar(pd.Timedelta(days=1))) is datetime.timedelta
    assert as_scalar(pd.Timedelta(days=1, nanoseconds=1)).nanoseconds == 1
    assert type(as_scalar(pd.Timestamp(2020, 1, 1))) is datetime.datetime


def test_minus_zero_is_zero():
    assert str(as_scalar(np.float32(-0.0))) == str(as_scalar(-0.0)) == "0.0"
    assert str(encode_column([-0.0, 0.0, 0.5], "g").levels[0]) == "0.0"


@pytest.mark.parametrize("values", [[["a"], ["b"]], [{"a": 1}, {"a": 2}]])
def test_nested_values_of_pandas_pyarrow_types_are_no_labels(values):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match="g holds values that cannot be labels"):
        encode_column(pd.Series(values, dtype=pd.ArrowDtype(pa.array(values).type)), "g")


def test_labels_are_shown_as_a_person_reads_them():
    assert show(1.0) == "1"
    assert show(1.5) == "1.5"
    assert show(("f", 2.0, MISSING)) == "f & 2 & (missing)"
    assert show(ForeignLabel("date", "2020-01-01")) == "2020-01-01"
    assert listing(range(12)) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 in all)]"


@pytest.mark.parametrize("bad", [float("inf"), float("-inf")])
def test_infinite_labels_are_kept_apart_from_gaps(bad):
    assert of_rows([bad, 1.0, 1.0, 1.0, float("nan"), 1.0, 1.0, 1.0]).counts.sum((1, 2)).max() == 6


def test_labels_in_two_encodings_are_refused_also_with_a_positive_label():
    with pytest.raises(ValueError, match="they share no label. Give both the same encoding"):
        Tally.from_predictions(["0", "1", "1"], [0, 1, 1], sensitive_features=list("aab"), pos_label=1)
