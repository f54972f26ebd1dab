"""Counting where the data lie: every engine's tally is that of the same rows in pandas, and so is every refusal."""

import datetime
import json
import re
import shutil
import sys
import textwrap
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_ethiclens import MISSING, Audit, Tally, _frames, _progress, audit_tally
from sklearn_ethiclens._tally import _count
from sklearn_ethiclens.cli import main
from sklearn_ethiclens.exceptions import MissingGroupsWarning
from tests._shared import data_file

# What engines say of pandas 3, not of this package.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

DAY, TIME = datetime.date, datetime.datetime
N = 240
GROUPS = [
    "whole",
    "large",
    "small",
    "text",
    "flag",
    "fraction",
    "single",
    "day",
    "time",
    "category",
    "nothing",
    "key_0",
    "n_rows",
]
ENGINES = ["pandas", "polars", "polars lazy", "pyarrow", "duckdb", "dask", "pyspark"]
COLUMNS = {"y_true": "y", "y_pred": "p"}


def cycle(*values):
    return [values[(i * i + i // 7) % len(values)] for i in range(N)]


def arrow_table():
    """Columns of every type that groups come in, most of them with gaps."""
    pa = pytest.importorskip("pyarrow")
    return pa.table(
        {
            "y": pa.array(cycle(0, 1, 1), pa.int64()),
            "p": pa.array(cycle(1, 0, 0, 1, 0), pa.int32()),
            "y_text": cycle("no", "yes", "yes"),
            "p_text": cycle("yes", "no", "no", "yes", "maybe"),
            "y_flag": cycle(False, True, True),
            "p_flag": cycle(True, False, False, True, False),
            "p_float": pa.array(cycle(1.0, 0.0, 0.0, 1.0, 0.0)),
            "whole": pa.array(cycle(3, 1, None, 2, 1), pa.int64()),
            "large": pa.array(cycle(2**53 + 1, 2**53, -5), pa.int64()),
            "small": pa.array(cycle(1, 2), pa.int16()),
            "text": cycle("b", None, "a", "", "NA", "None"),
            "flag": cycle(True, None, False),
            "fraction": pa.array(cycle(1.5, float("nan"), None, 2.0)),
            "single": pa.array(cycle(0.1, 2.0, None), pa.float32()),
            "day": cycle(DAY(2021, 1, 1), DAY(2020, 12, 31), None),
            "time": pa.array(cycle(TIME(2021, 1, 1, 12), None, TIME(2020, 1, 1)), pa.timestamp("us")),
            "category": pa.array(cycle("x", None, "y")).dictionary_encode(),
            "nothing": pa.array([None] * N, pa.string()),
            "key_0": cycle("a", "b"),
            "n_rows": cycle("a", "c"),
        }
    )


NULLABLE = {"bool": "boolean", "int16": "Int16", "int32": "Int32", "int64": "Int64"}


def in_pandas(table):
    """The same rows in pandas, with its nullable types: without them whole numbers beside a gap would be floats."""
    types = {str(kind): NULLABLE[str(kind)] for kind in set(table.schema.types) if str(kind) in NULLABLE}
    return table.to_pandas(
        types_mapper=lambda kind: pd.api.types.pandas_dtype(types[str(kind)]) if str(kind) in types else None
    )


@pytest.fixture(scope="module")
def dask():
    """dask on a cluster of two processes."""
    module = pytest.importorskip(
        "dask.dataframe", reason="dask is not installed: pip install 'sklearn-ethiclens[engines]'"
    )
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        yield module


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'sklearn-ethiclens[spark]'")
    if shutil.which("java") is None:
        pytest.skip("pyspark needs Java, which is not installed")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=[pytest.param(name, marks=() if name == "pandas" else pytest.mark.engines) for name in ENGINES])
def load(request, tmp_path):
    """A function from a table to the frame of an engine, on file where the engine reads files."""
    name = request.param
    engine = request.getfixturevalue("dask") if name == "dask" else None
    session = request.getfixturevalue("spark") if name == "pyspark" else None
    module = pytest.importorskip(name.split()[0]) if engine is None and session is None else None

    def convert(table):
        if name == "pandas":
            return in_pandas(table)
        if name == "polars":
            return module.from_arrow(table)
        if name == "pyarrow":
            return table
        path = tmp_path / "rows.parquet"
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=max(1, table.num_rows // 3))
        if name == "polars lazy":
            return module.scan_parquet(path)
        if name == "duckdb":
            return module.read_parquet(str(path))
        if name == "dask":
            return engine.read_parquet(path, dtype_backend="pyarrow", split_row_groups=True)
        return session.read.parquet(str(path))

    convert.name = name
    return convert


def by_rows(frame, y_true, y_pred, sensitive_features, control_features=None, **keywords):
    """The oracle: the tally of the rows of a pandas frame."""
    return Tally.from_predictions(
        None if y_true is None else frame[y_true],
        frame[y_pred],
        sensitive_features=frame[[sensitive_features] if isinstance(sensitive_features, str) else sensitive_features],
        control_features=None if control_features is None else frame[control_features],
        **keywords,
    )


def quietly(function, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingGroupsWarning)
        return function(*arguments, **keywords)


def same(tally, expected):
    assert tally == expected
    assert tally.digest() == expected.digest()
    assert [list(map(type, group)) for group in tally.groups] == [list(map(type, group)) for group in expected.groups]
    assert tally.counts.dtype == np.int64
    return True


# ------------------------------------------------------------------------------------------------------------- engines
def test_a_tally_does_not_depend_on_the_engine(load):
    table = arrow_table()
    frame, rows = load(table), in_pandas(table)
    for group in GROUPS:
        asked = {**COLUMNS, "sensitive_features": group}
        assert same(quietly(Tally.from_frame, frame, **asked), quietly(by_rows, rows, **asked)), group


@pytest.mark.parametrize(
    ("y_true", "y_pred", "pos_label"),
    [(None, "p", None), ("y_text", "p_text", "yes"), ("y_flag", "p_flag", None), ("y", "p_float", None), ("y", "y", 0)],
)
def test_labels_are_read_as_those_of_rows(load, y_true, y_pred, pos_label):
    table = arrow_table()
    asked = {
        "y_true": y_true,
        "y_pred": y_pred,
        "sensitive_features": ["text", "whole", "y"],
        "control_features": ["flag", "day"],
        "pos_label": pos_label,
    }
    found = quietly(Tally.from_frame, load(table), **asked)
    assert same(found, quietly(by_rows, in_pandas(table), **asked))
    assert found.controls == ("flag", "day")


def test_an_audit_does_not_depend_on_the_engine(load):
    table = arrow_table()
    asked = {**COLUMNS, "sensitive_features": ["small", "key_0"]}
    found, expected = (
        audit_tally(tally, intersections="all", n_resamples=200).to_json()
        for tally in (Tally.from_frame(load(table), **asked), by_rows(in_pandas(table), **asked))
    )
    assert found == expected


def test_missing_groups_are_one_bucket_and_counted_in_rows(load):
    table = arrow_table()
    n_gaps = int(in_pandas(table)["fraction"].isna().sum())
    with pytest.warns(MissingGroupsWarning, match=f"'fraction' is missing in {n_gaps} of {N} rows; they are audited"):
        tally = Tally.from_frame(load(table), **COLUMNS, sensitive_features="fraction")
    assert tally.groups == ((1.5,), (2.0,), (MISSING,))
    assert tally.counts[2].sum() == n_gaps
    with pytest.raises(ValueError, match=f"'fraction' is missing in {n_gaps} of {N} rows; fill them"):
        Tally.from_frame(load(table), **COLUMNS, sensitive_features="fraction", missing="raise")


@pytest.fixture(params=["as it comes", "overflowing"])
def refusing(request, monkeypatch):
    """Refusals are the same where the distinct rows are too many to be brought back."""
    if request.param == "overflowing":
        monkeypatch.setattr(_frames, "MAX_CELLS", 20)


REFUSED = {
    "scores": ({"y_pred": "score"}, "y_pred holds scores such as 0.00"),
    "no labels": ({"y_true": "y_gap"}, "y_true is missing in 22 of 1100 rows"),
    "measurement": ({"sensitive_features": "income"}, "'income' has 550 distinct numbers"),
    "measurement with gaps": (
        {"sensitive_features": ["key_0", "income_gap"]},
        "'income_gap' has 1091 distinct numbers",
    ),
    "identifier": ({"sensitive_features": "id"}, "sensitive feature 'id' has 1100 distinct values"),
    "identifier as a control": ({"control_features": ["id"]}, "control feature 'id' has 1100 distinct values"),
    "many labels": ({"y_true": "many"}, "y_true and y_pred hold 19 labels"),
    "no positive label": ({"y_true": "y_text", "y_pred": "y_text"}, "pass pos_label to say which one is positive"),
    "unknown positive label": ({"y_true": "y_text", "y_pred": "y_text", "pos_label": "YES"}, "'YES' is not among"),
    "labels that share nothing": ({"y_true": "y_text", "pos_label": "yes"}, "they share no label"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("refusing")
def test_refusals_have_the_words_of_rows(load, case):
    pa, n = pytest.importorskip("pyarrow"), 1100
    table = pa.table(
        {
            "y": [i % 2 for i in range(n)],
            "p": [i % 3 % 2 for i in range(n)],
            "y_text": ["yes" if i % 2 else "no" for i in range(n)],
            "y_gap": pa.array([None if i % 50 == 0 else i % 2 for i in range(n)], pa.int64()),
            "many": [i % 19 for i in range(n)],
            "score": [(i + 0.5) / n for i in range(n)],
            "income": [100 + i // 2 for i in range(n)],
            "income_gap": pa.array([float("nan") if i < 7 else None if i < 9 else i / 4 for i in range(n)]),
            "id": [f"person {i}" for i in range(n)],
            "key_0": ["a" if i % 2 else "b" for i in range(n)],
        }
    )
    changed, words = REFUSED[case]
    asked = {**COLUMNS, "sensitive_features": "key_0", **changed}
    with pytest.raises(ValueError, match=words) as expected:
        quietly(by_rows, in_pandas(table), **asked)
    with pytest.raises(ValueError, match=words) as found:
        quietly(Tally.from_frame, load(table), **asked)
    assert str(found.value) == str(expected.value)


def test_many_distinct_rows_are_counted_if_no_column_is_to_blame(load, monkeypatch):
    monkeypatch.setattr(_frames, "MAX_CELLS", 5)
    table = arrow_table()
    asked = {**COLUMNS, "sensitive_features": ["text", "whole", "fraction"]}
    assert same(quietly(Tally.from_frame, load(table), **asked), quietly(by_rows, in_pandas(table), **asked))


def test_only_counts_leave_the_engine(load, monkeypatch):
    if load.name == "pandas":
        pytest.skip("rows of pandas are in memory already")
    brought, collect = [], _frames._collect
    monkeypatch.setattr(_frames, "_collect", lambda *words: brought.append(collect(*words)) or brought[-1])
    Tally.from_frame(load(arrow_table()), **COLUMNS, sensitive_features=["small"])
    assert [(len(frame), sorted(frame.columns)) for frame in brought] == [(8, ["key_0", "key_1", "key_2", "n_rows"])]


def test_without_rows_is_said_so(load):
    with pytest.raises(ValueError, match="there are no rows: y_true, y_pred are empty"):
        Tally.from_frame(load(arrow_table().slice(0, 0)), **COLUMNS, sensitive_features="small")


def test_an_absent_column_is_named_beside_those_there_are(load):
    with pytest.raises(ValueError, match=r"frame has no column \['gender'\]; it has \['y', 'p', 'y_text'"):
        Tally.from_frame(load(arrow_table()), **COLUMNS, sensitive_features="gender")


def test_lists_are_no_labels(load):
    if load.name in ("pandas", "dask"):
        pytest.skip("a column of objects says too late what it holds")
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"y": [0, 1], "p": [1, 1], "g": [["a"], ["b"]]})
    with pytest.raises(TypeError, match=r"sensitive feature 'g' holds values that cannot be labels \(List"):
        Tally.from_frame(load(table), **COLUMNS, sensitive_features="g")


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weight", [None, "w"])
def test_minus_zero_is_the_group_zero(load, gaps, weight):
    """Whichever of the two comes first, and where a gap has the engine join by text."""
    pa = pytest.importorskip("pyarrow")
    group = pa.array(cycle(-0.0, 0.0, 1.0, 2.0, -0.0, None if gaps else 3.0))
    table = pa.table({"y": cycle(0, 1, 1), "p": cycle(1, 0, 0, 1, 0), "g": group, "w": cycle(1.5, 0.25, 3.0)})
    asked = {**COLUMNS, "sensitive_features": "g"}
    found = quietly(Tally.from_frame, load(table), **asked, sample_weight=weight)
    rows = table.to_pandas().assign(g=lambda t: t["g"].replace(-0.0, 0.0))
    weights = {} if weight is None else {"sample_weight": rows["w"]}
    assert str(found.groups[0][0]) == "0.0"
    assert found.digest() == quietly(by_rows, rows, **asked, **weights).digest()


# ------------------------------------------------------------------------------------------------------------- weights
def weighted_table(seed=0):
    """The rows of :func:`arrow_table` seven times over, so that cells have few rows and many, with weights, some of them 0."""
    pa, generator = pytest.importorskip("pyarrow"), np.random.default_rng(seed)
    table = pa.concat_tables([arrow_table()] * 7).combine_chunks()
    n = table.num_rows
    few = np.where(generator.random(n) < 0.02, "few", "many")
    weight = generator.lognormal(0, 1, n) * (generator.random(n) > 0.05)
    return (
        table.append_column("w", pa.array(weight))
        .append_column("equal", pa.array(np.full(n, 0.1)))
        .append_column("of_its_cell", pa.array(np.where(few == "few", 0.3, 0.7)))
        .append_column("few", pa.array(few))
        .append_column("whole_w", pa.array(generator.integers(0, 5, n)))
    )


def alike(tally, expected, rtol=1e-12):
    """Assert that tallies of weighted rows are the same but for the last digits of sums."""
    assert tally.groups == expected.groups
    assert (tally.labels, tally.pos_label, tally.controls) == (expected.labels, expected.pos_label, expected.controls)
    np.testing.assert_array_equal(tally.rows, expected.rows)
    mine, theirs = tally.weights, expected.weights
    assert (mine.n_zero, mine.exact) == (theirs.n_zero, theirs.exact)
    for name in ("sums", "squares", "cubes"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=rtol)
    for own, other in zip(mine.kept, theirs.kept, strict=True):
        assert (own is None) == (other is None)
        assert own is None or np.array_equal(own, other)
    return True


def test_a_weighted_tally_does_not_depend_on_the_engine(load):
    table = weighted_table()
    frame, rows = load(table), in_pandas(table)
    asked = {"y_true": "y_text", "y_pred": "p_text", "pos_label": "yes"}
    for groups in (
        ["fraction", "few"],
        ["text", "day"],
        ["time", "flag", "small"],
        ["category"],
        ["nothing", "n_rows"],
    ):
        for weight in ("w", "whole_w"):
            expected = quietly(by_rows, rows, **asked, sensitive_features=groups, sample_weight=rows[weight])
            found = quietly(Tally.from_frame, frame, **asked, sensitive_features=groups, sample_weight=weight)
            assert alike(found, expected), groups
            assert expected.weights.n_zero > 0


def test_both_kinds_of_cells_come_from_engines(load):
    asked = {**COLUMNS, "sensitive_features": "few"}
    kept = Tally.from_frame(load(weighted_table()), **asked, sample_weight="w").weights.kept
    assert any(part is None for part in kept)
    assert sum(part is not None and part.size > 1 for part in kept) > 2


@pytest.mark.parametrize("weight", ["equal", "of_its_cell", "whole_w"])
def test_sums_are_exact_where_weights_are_equal_or_whole(load, weight):
    table = weighted_table()
    asked = {"y_true": "y_text", "y_pred": "p_text", "pos_label": "yes", "sensitive_features": ["few", "small"]}
    found = Tally.from_frame(load(table), **asked, sample_weight=weight)
    rows = in_pandas(table)
    assert found.digest() == by_rows(rows, **asked, sample_weight=rows[weight]).digest()


def test_a_weighted_audit_does_not_depend_on_the_engine(load):
    table = weighted_table()
    rows = in_pandas(table)
    asked = {**COLUMNS, "sensitive_features": ["few", "small"]}
    options = {"n_resamples": 100, "metrics": ["disparate_impact", "equalized_odds_difference"]}
    found = audit_tally(Tally.from_frame(load(table), **asked, sample_weight="w"), **options).frame()
    expected = audit_tally(by_rows(rows, **asked, sample_weight=rows["w"]), **options).frame()
    numbers = ["value", "low", "high", "pvalue"]
    np.testing.assert_allclose(found[numbers].astype(float), expected[numbers].astype(float), rtol=1e-9, atol=1e-9)
    assert found["verdict"].tolist() == expected["verdict"].tolist()


def wrong_weights():
    nan, inf = float("nan"), float("inf")
    return {
        "gap": ([1.0, None, 2.0, nan], "sample_weight must be finite and at least 0; got 2 missing (NaN) of 4 rows"),
        "infinite": ([1.0, inf, 2.0, 1.0], "got 1 infinite of 4 rows"),
        "negative": ([1.0, -1.0, -inf, nan], "got 1 missing (NaN) and 1 infinite and 2 negative of 4 rows"),
        "all zero": ([0.0, 0.0, 0.0, 0.0], "sample_weight must be above 0 in some row; got 0 in all 4."),
        "too far apart": ([1e-100, 1.0, 2.0, 0.0], "must lie between 1e-90 and 1e+90 where it is not 0"),
        "text": (["1", "2", "3", "4"], "sample_weight must hold one number per row; got"),
        "boolean": ([True, False, True, True], "sample_weight must hold one number per row; got"),
    }


@pytest.mark.parametrize("case", wrong_weights())
def test_weights_that_are_none_are_refused_in_the_words_of_rows(load, case):
    pa = pytest.importorskip("pyarrow")
    weights, words = wrong_weights()[case]
    table = pa.table({"y": [0, 1, 0, 1], "p": [1, 1, 0, 0], "g": ["a", "b", "a", "b"], "w": pa.array(weights)})
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as found:
        Tally.from_frame(load(table), **COLUMNS, sensitive_features="g", sample_weight="w")
    if case not in ("text", "boolean"):  # where the column's type is told, not a value of it
        with pytest.raises(ValueError, match=re.escape(words)) as expected:
            by_rows(table.to_pandas(), **COLUMNS, sensitive_features="g", sample_weight=weights)
        assert str(found.value) == str(expected.value)


def test_only_sums_and_the_rows_of_small_cells_leave_the_engine(load, monkeypatch):
    if load.name == "pandas":
        pytest.skip("rows of pandas are in memory already")
    table = weighted_table()
    rows, brought, collect = in_pandas(table), [], _frames._collect
    frame = load(table)
    monkeypatch.setattr(_frames, "_collect", lambda *words: brought.append(collect(*words)) or brought[-1])
    tally = Tally.from_frame(frame, **COLUMNS, sensitive_features="few", sample_weight="w")
    n_small = tally.rows[tally.rows < 30].sum()
    assert [len(found) for found in brought] == [8, n_small]
    assert n_small < len(rows) / 20
    assert sorted(brought[1].columns) == ["key_0", "key_1", "key_2", "w"]
    brought.clear()
    Tally.from_frame(frame, y_true=None, y_pred="p", sensitive_features="small", sample_weight="w")
    assert [len(found) for found in brought] == [4]  # no cell is small, so that no row is asked for


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["category", "enum", "duration", "decimal", "lazy"])
def test_weights_of_groups_and_of_types_that_engines_treat_apart(kind):
    polars = pytest.importorskip("polars")
    generator, n = np.random.default_rng(1), 400
    group = generator.choice(np.array(["a", "b", None], dtype=object), n, p=[0.9, 0.06, 0.04]).tolist()
    rows = {"p": generator.integers(0, 2, n), "g": group, "w": generator.integers(1, 500, n) / 4}
    frame = polars.DataFrame(rows)
    days = polars.col("g").replace_strict({"a": 1, "b": 2}, default=None, return_dtype=polars.Int64) * 86_400_000_000
    types = {
        "category": polars.col("g").cast(polars.Categorical),
        "enum": polars.col("g").cast(polars.Enum(["b", "a"])),
        "duration": days.cast(polars.Duration("us")).alias("g"),
        "decimal": polars.col("w").cast(polars.Decimal(10, 2)),
        "lazy": polars.col("w").cast(polars.Float32),
    }
    frame = frame.lazy().with_columns(types[kind]) if kind == "lazy" else frame.with_columns(types[kind])
    found = quietly(Tally.from_frame, frame, y_true=None, y_pred="p", sensitive_features="g", sample_weight="w")
    expected = quietly(Tally.from_predictions, None, rows["p"], sensitive_features=group, sample_weight=rows["w"])
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-12)
    for own, other in zip(found.weights.kept, expected.weights.kept, strict=True):
        assert (own is None) == (other is None)
        assert own is None or np.array_equal(own, other)


def test_a_frame_that_changes_between_its_two_readings_is_refused(monkeypatch):
    pa, collect, read = pytest.importorskip("pyarrow"), _frames._collect, []

    def lose_a_row(*words):
        read.append(collect(*words))
        return read[-1] if len(read) == 1 else read[-1].head(len(read[-1]) - 1)

    monkeypatch.setattr(_frames, "_collect", lose_a_row)
    table = pa.table({"p": [0, 1] * 20, "g": ["a"] * 40, "w": [1.5] * 40})
    with pytest.raises(ValueError, match="frame has other rows when it is read a second time"):
        Tally.from_frame(table, y_true=None, y_pred="p", sensitive_features="g", sample_weight="w")


def test_a_weight_is_named_and_must_be_there(load):
    frame = load(weighted_table())
    with pytest.raises(ValueError, match=r"frame has no column \['weights'\]"):
        Tally.from_frame(frame, **COLUMNS, sensitive_features="small", sample_weight="weights")
    with pytest.raises(TypeError, match="sample_weight must be the name of a column or None; got"):
        Tally.from_frame(frame, **COLUMNS, sensitive_features="small", sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_weighted_shards_are_the_tally_of_all_rows(suffix, tmp_path):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    generator, n = np.random.default_rng(4), 900
    rows = pd.DataFrame(
        {
            "y": generator.integers(0, 2, n),
            "p": generator.integers(0, 2, n),
            "g": generator.choice(np.array(["a", "b", "c", None], dtype=object), n, p=[0.6, 0.35, 0.03, 0.02]),
            "w": generator.lognormal(0, 1, n) * (generator.random(n) > 0.1),
        }
    )
    rows.loc[:99, "w"] = 0  # a part of nothing but zeros
    cuts, paths = [0, 100, 103, 500, n], []
    for i, (start, stop) in enumerate(pairwise(cuts)):
        paths.append(tmp_path / f"{i}.{suffix}")
        part = rows.iloc[start:stop]
        part.to_csv(paths[-1], index=False) if suffix == "csv" else part.to_parquet(paths[-1])
    asked = {**COLUMNS, "sensitive_features": "g"}
    expected = quietly(by_rows, rows, **asked, sample_weight=rows["w"])
    assert alike(quietly(Tally.from_shards, paths, **asked, sample_weight="w"), expected)
    assert len({None if part is None else part.size for part in expected.weights.kept}) > 2
    with pytest.raises(ValueError, match=rf"0\.{suffix} has no column \['v'\]"):
        Tally.from_shards(paths, **asked, sample_weight="v")
    with pytest.raises(ValueError, match="sample_weight must be above 0 in some row; got 0 in all 100"):
        Tally.from_shards(paths[:1], **asked, sample_weight="w")


def test_wrong_weights_of_a_file_name_it(tmp_path):
    good, bad, text = (tmp_path / f"{name}.csv" for name in ("good", "bad", "text"))
    good.write_text("p,g,w\n1,a,1.5\n0,a,0\n")
    bad.write_text("p,g,w\n1,a,-2\n0,b,\n0,b,NaN\n")
    text.write_text("p,g,w\n1,a,nan\n0,a,True\n")
    asked = {"y_true": None, "y_pred": "p", "sensitive_features": "g", "sample_weight": "w"}
    words = r"bad.csv cannot be counted: sample_weight must be .* got 2 missing \(NaN\) and 1 negative of 3 rows"
    with pytest.raises(ValueError, match=words):
        Tally.from_shards([good, bad], **asked)
    with pytest.raises(
        ValueError, match="text.csv cannot be counted: sample_weight must hold one number per row; got values"
    ):
        Tally.from_shards([good, text], **asked)


@pytest.mark.engines
def test_categories_of_polars_are_the_values_they_stand_for():
    polars = pytest.importorskip("polars")
    text = ["b", None, "a", "b"]
    expected = quietly(Tally.from_predictions, None, [1, 0, 1, 1], sensitive_features={"g": text})
    for kind in (polars.Categorical, polars.Enum(["c", "b", "a"])):
        frame = polars.DataFrame({"g": polars.Series(text, dtype=kind), "p": [1, 0, 1, 1]})
        for one in (frame, frame.lazy()):
            assert same(quietly(Tally.from_frame, one, y_true=None, y_pred="p", sensitive_features="g"), expected)


@pytest.mark.engines
def test_dictionaries_of_pyarrow_may_differ_by_chunk_and_hold_numbers():
    pa = pytest.importorskip("pyarrow")
    chunks = [pa.array(values).dictionary_encode() for values in ([1, 2, None], [2, 3, 3])]
    table = pa.table({"g": pa.chunked_array(chunks), "p": [1, 0, 1, 0, 1, 1]})
    tally = quietly(Tally.from_frame, table, y_true=None, y_pred="p", sensitive_features="g")
    assert tally.groups == ((1,), (2,), (3,), (MISSING,))
    assert tally.counts[:, 0].tolist() == [[0, 1], [2, 0], [0, 2], [0, 1]]


@pytest.mark.engines
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1]),
            st.sampled_from([0, 1]),
            st.sampled_from([None, "a", "b", ""]),
            st.sampled_from([None, -1, 0, 2**40]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_counting_first_changes_nothing(rows):
    polars = pytest.importorskip("polars")
    schema = {"y": polars.Int64, "p": polars.Int64, "text": polars.String, "whole": polars.Int64}
    asked = {**COLUMNS, "sensitive_features": ["text", "whole"]}
    frame = pd.DataFrame(rows, columns=list(schema)).astype({"whole": "Int64"})
    found = quietly(Tally.from_frame, polars.DataFrame(rows, schema=schema, orient="row"), **asked)
    assert same(found, quietly(by_rows, frame, **asked))


def test_rows_with_multiplicity_are_rows_repeated():
    rng = np.random.default_rng(0)
    codes, n = [rng.integers(0, 3, 20), rng.integers(0, 2, 20)], rng.integers(1, 9, 20)
    cells, counts = _count(codes, [3, 2], n)
    expected = _count([np.repeat(code, n) for code in codes], [3, 2])
    assert np.array_equal(cells, expected[0])
    assert np.array_equal(counts, expected[1])


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"y_pred": [1, 0]}, TypeError, "y_pred must be the name of a column; got .1, 0.. For rows in memory"),
        ({"y_pred": None}, TypeError, "y_pred must be the name of a column; got None"),
        ({"y_true": 3}, TypeError, "y_true must be the name of a column or None; got 3"),
        ({"sensitive_features": {"a": "b"}}, TypeError, "sensitive_features must be the name of a column, or a list"),
        ({"sensitive_features": []}, ValueError, "sensitive_features has no columns"),
        ({"sensitive_features": ["g", "g"]}, ValueError, r"sensitive_features repeats the column name \['g'\]"),
        ({"control_features": ["g"]}, ValueError, r"control_features repeat the sensitive features \['g'\]"),
        ({"frame": {"y": [1]}}, TypeError, "frame must be a data frame of pandas, .*; got {'y': .1.}"),
        ({"frame": "rows.csv"}, TypeError, "got 'rows.csv'. Files are read by Tally.from_shards"),
    ],
)
def test_what_is_no_frame_or_no_name_is_refused(asked, error, words):
    frame = asked.get("frame", pd.DataFrame({"y": [0, 1], "p": [0, 1], "g": ["a", "b"]}))
    columns = {**COLUMNS, "sensitive_features": "g", **{k: v for k, v in asked.items() if k != "frame"}}
    with pytest.raises(error, match=words):
        Tally.from_frame(frame, **columns)


def test_a_repeated_column_of_pandas_is_refused():
    frame = pd.DataFrame([[0, 1, "a", "b"]], columns=["y", "p", "g", "g"])
    with pytest.raises(ValueError, match=r"frame repeats the column \['g'\]"):
        Tally.from_frame(frame, **COLUMNS, sensitive_features="g")


# -------------------------------------------------------------------------------------------------------------- shards
ASKED = {**COLUMNS, "sensitive_features": ["text", "whole"], "control_features": "day", "verbose": 0}


@pytest.fixture
def shards(tmp_path):
    """Three files of a table's rows."""
    parquet = pytest.importorskip("pyarrow.parquet")
    paths = [tmp_path / f"part-{i}.parquet" for i in range(3)]
    for path, (start, stop) in zip(paths, [(0, 50), (50, 51), (51, N)], strict=True):
        parquet.write_table(arrow_table().slice(start, stop - start), path)
    return paths


@pytest.fixture(params=["polars", "pyarrow"])
def reader(request, monkeypatch):
    """What reads Parquet shards; without polars it is pyarrow, by batches."""
    pytest.importorskip(request.param)
    if request.param == "pyarrow":
        monkeypatch.setattr(_frames, "find_spec", lambda name: None)
        monkeypatch.setattr(_frames, "_CHUNK", 16)


@pytest.mark.engines
@pytest.mark.usefixtures("reader")
def test_shards_are_counted_as_one_table(shards):
    asked = {key: value for key, value in ASKED.items() if key != "verbose"}
    expected = quietly(by_rows, in_pandas(arrow_table()), **{**asked, "control_features": ["day"]})
    assert same(quietly(Tally.from_shards, shards, **ASKED), expected)
    assert same(quietly(Tally.from_shards, shards[::-1], **ASKED), expected)
    one = quietly(Tally.from_shards, shards[0], **ASKED)
    assert same(sum((quietly(Tally.from_shards, [path], **ASKED) for path in shards[1:]), one), expected)


@pytest.fixture
def months(tmp_path):
    """CSV files: the second has one label only, another group, and codes that look like numbers or like gaps."""
    parts = {
        "may.csv": "hired,code,y\nyes,NA,1\nno,01,0\nno,,1\nyes,NA,0\n",
        "june.csv": '\ufeffy,hired,code\n1,no,"x, y"\n\n0,no,""\n1,no,NA\n',
    }
    for name, text in parts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [tmp_path / name for name in parts]


def test_columns_of_csv_shards_are_text_and_labels_are_judged_once(months):
    with pytest.warns(MissingGroupsWarning, match="'code' is missing in 2 of 7 rows"):
        tally = Tally.from_shards(months, y_true=None, y_pred="hired", sensitive_features="code", pos_label="yes")
    assert tally.groups == (("01",), ("NA",), ("x, y",), (MISSING,))
    assert tally.counts[:, 0].tolist() == [[1, 0], [1, 2], [1, 0], [2, 0]]
    labelled = quietly(Tally.from_shards, months, y_true="y", y_pred="y", sensitive_features="code")
    assert (labelled.pos_label, labelled.labels) == (1, (0, 1))


def test_chunks_of_a_csv_file_are_counted_as_one(months, monkeypatch):
    asked = {"y_true": "y", "y_pred": "y", "sensitive_features": ["code", "hired"]}
    whole = quietly(Tally.from_shards, months, **asked)
    monkeypatch.setattr(_frames, "_CHUNK", 2)
    assert same(quietly(Tally.from_shards, map(str, months), **asked), whole)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"y,p\n1,0\n", r"a.csv has no column \['g'\]; it has \['y', 'p'\]"),
        ("a.csv", b"y;p;g\n1;0;a\n", r"it has \['y;p;g'\]. Is it separated by commas\?"),
        ("a.csv", b"y,p,g\n1,0,\xe9\n", "a.csv cannot be counted: .*utf-8"),
        ("a.csv", b"", "a.csv cannot be counted: No columns"),
        ("a.csv", b"y,p,g\n1,0,a,b\n", "a.csv has rows with more fields than its header names"),
        ("a.parquet", b"no parquet", "a.parquet cannot be (counted|read): "),
        ("a.txt", b"", r"paths must end in one of \['.csv', '.parquet'\]; got \['.*a.txt'\]"),
    ],
)
@pytest.mark.usefixtures("reader")
@pytest.mark.engines
def test_a_shard_that_cannot_be_counted_is_named(tmp_path, name, content, words):
    (tmp_path / "good.csv").write_text("y,p,g\n1,0,a\n", encoding="utf-8")
    (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name] if name.endswith(".parquet") else [tmp_path / "good.csv", tmp_path / name]
    with pytest.raises(ValueError, match=words):
        Tally.from_shards(paths, **COLUMNS, sensitive_features="g")


@pytest.mark.engines
@pytest.mark.usefixtures("reader")
def test_a_shard_without_a_column_is_named(shards):
    with pytest.raises(ValueError, match=r"^part-0.parquet has no column \['gender'\]; it has \['y', 'p'"):
        Tally.from_shards(shards, **COLUMNS, sensitive_features="gender")


def test_paths_that_are_no_files_are_refused(tmp_path, months):
    (tmp_path / "a.parquet").write_bytes(b"")
    for paths, error, words in (
        ([], ValueError, "paths is empty"),
        (3, TypeError, "paths must be a path or a list of paths; got 3"),
        (tmp_path / "none.csv", ValueError, "there is no file .*none.csv"),
        ([*months, tmp_path / "a.parquet"], ValueError, "paths mix .csv and .parquet"),
        ([*months, months[0]], ValueError, "may.csv more than once: its rows"),
        ([*months, None], TypeError, "paths must be a path or a list of paths; got None"),
        ([*months, 3], TypeError, "paths must be a path or a list of paths; got 3"),
        (b"may.csv", TypeError, "paths must be a path or a list of paths; got b'may.csv'"),
    ):
        with pytest.raises(error, match=words):
            Tally.from_shards(paths, y_true=None, y_pred="hired", sensitive_features="code")


@pytest.mark.parametrize("way", ["other spelling", "symbolic link", "hard link"])
def test_a_file_is_not_counted_again_under_another_path(tmp_path, months, way):
    other = tmp_path / "other.csv"
    if way == "other spelling":
        (tmp_path / "sub").mkdir()
        other = tmp_path / "sub" / ".." / months[0].name
    elif way == "symbolic link":
        other.symlink_to(months[0])
    else:
        other.hardlink_to(months[0])
    with pytest.raises(ValueError, match=r"paths name .*may.csv more than once, the second time as .*\.csv: its rows"):
        Tally.from_shards([*months, other], y_true=None, y_pred="hired", sensitive_features="code", pos_label="yes")


def test_a_csv_shard_that_repeats_a_column_is_refused_unless_nothing_asks_for_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p,g,w,w,z,z\n1,1,a,1,9,0,1\n0,0,b,2,9,0,1\n", encoding="utf-8")
    assert Tally.from_shards(path, **COLUMNS, sensitive_features="g").n_rows == 2
    with pytest.raises(ValueError, match=r"^a.csv repeats the column \['w'\]; give each column its own name"):
        Tally.from_shards(path, **COLUMNS, sensitive_features="g", sample_weight="w")


@pytest.mark.parametrize("text", ["1_0", "\u0661"])
def test_text_is_a_number_as_files_spell_it_and_not_as_python_does(tmp_path, text):
    """Python reads 1_0 as ten, and the Arabic digit as one."""
    path = tmp_path / "a.csv"
    path.write_text(f"y,p,g,w\n{text},0,a,{text}\n0,{text},b,2\n", encoding="utf-8")
    assert Tally.from_shards(path, **COLUMNS, sensitive_features="g", pos_label=text).labels == ("0", text)
    with pytest.raises(ValueError, match=rf"a.csv cannot be counted: sample_weight must hold one number .*'{text}'"):
        Tally.from_shards(path, **COLUMNS, sensitive_features="g", pos_label=text, sample_weight="w")


def test_shards_by_an_identifier_are_refused_before_all_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(_frames, "MAX_CELLS", 1500)
    for i in range(3):
        rows = pd.DataFrame({"id": [f"{i}-{k}" for k in range(1000)], "p": 1, "score": np.arange(1000) / 1000 + i})
        rows.to_csv(tmp_path / f"{i}.csv", index=False)
    paths = [tmp_path / f"{i}.csv" for i in range(3)]
    with pytest.raises(ValueError, match="1.csv cannot be counted: sensitive feature 'id' has 2000 distinct values"):
        Tally.from_shards(paths, y_true=None, y_pred="p", sensitive_features="id", pos_label=1)
    with pytest.raises(ValueError, match="1.csv cannot be counted: y_pred holds scores such as 0.001"):
        Tally.from_shards(paths, y_true=None, y_pred="score", sensitive_features="p")


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_bar_of_files_is_drawn_on_a_terminal_after_the_wait_only(months, verbose, monkeypatch, capsys):
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    quietly(Tally.from_shards, months, y_true=None, y_pred="y", sensitive_features="code", verbose=verbose)
    assert ("files" in capsys.readouterr().err) == bool(verbose)


# ------------------------------------------------------------------------------------------------------------ the page
PAGE = (Path(__file__).parent.parent / "docs" / "distributed.rst").read_text(encoding="utf-8")
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"code-block:: python\n\n((?: {4}.*\n|\n)+)", PAGE)]


@pytest.mark.engines
def test_the_page_on_distributed_data_runs(tmp_path, monkeypatch):
    pytest.importorskip("dask.dataframe", reason="dask is not installed: pip install 'sklearn-ethiclens[engines]'")
    pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    (tmp_path / "loans").mkdir()
    rng = np.random.default_rng(0)
    for year in (2023, 2024):
        columns = {"sex": rng.choice(["f", "m"], 300), "region": rng.choice(["north", "south"], 300)}
        labels = {name: rng.integers(0, 2, 300) for name in ("repaid", "granted")}
        pd.DataFrame({**columns, **labels}).to_parquet(tmp_path / "loans" / f"{year}.parquet")
    monkeypatch.chdir(tmp_path)
    named = {}
    for block in BLOCKS:
        exec(compile(block, "distributed.rst", "exec"), named)
    assert len(BLOCKS) == 4
    assert named["result"].tally.n_rows == 600
    on_the_cluster = named["search"]
    alone = named["GridSearchCV"](**on_the_cluster.get_params(deep=False)).fit(named["X"], named["y"])
    gap = f"mean_test_{named['GAP']}"
    assert np.array_equal(on_the_cluster.cv_results_[gap], alone.cv_results_[gap])
    assert on_the_cluster.best_params_ == alone.best_params_


# -------------------------------------------------------------------------------------------------------- command line
@pytest.fixture
def run(monkeypatch, capsys):
    """Call the entry point as a shell does; give back the exit code, stdout and stderr."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", "audit", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return end.value.code or 0, out, err

    return call


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """332,900 people, and a decision that favours long hours."""
    pytest.importorskip("pyarrow")
    frame = pd.read_parquet(data_file("acs-income-test.parquet"))
    lucky = np.random.default_rng(0).random(len(frame)) < 0.3
    path = tmp_path_factory.mktemp("census") / "acs.parquet"
    frame.assign(DECISION=(lucky | (frame.WKHP > 45)).astype(int)).to_parquet(path)
    return path


CENSUS = ("--y-true", "PINCP", "--y-pred", "DECISION", "--sensitive", "SEX,RAC1P", "--intersections", "SEX*RAC1P")
FEW = ("--n-resamples", "200", "--json", "-")


@pytest.fixture(scope="module")
def by_pandas(census):
    """What the rows themselves give."""
    frame = pd.read_parquet(census)
    tally = by_rows(frame, "PINCP", "DECISION", ["SEX", "RAC1P"])
    return audit_tally(tally, intersections=["SEX*RAC1P"], n_resamples=200)


@pytest.mark.parametrize("engine", [None, *_frames.ENGINES])
@pytest.mark.engines
def test_an_audit_of_a_file_prints_the_same_with_every_engine(run, census, by_pandas, engine, request):
    if engine is not None:
        request.getfixturevalue("dask") if engine == "dask" else pytest.importorskip(engine)
    code, out, err = run(census, *CENSUS, *FEW, *(() if engine is None else ("--engine", engine)))
    assert (code, err) == (1, "")
    found, expected = json.loads(out), json.loads(by_pandas.to_json())
    assert found["findings"] == expected["findings"]
    assert found["tally"] == expected["tally"]
    assert found["provenance"]["data"]["name"] == "acs.parquet"


@pytest.mark.parametrize("engine", [None, *_frames.ENGINES])
@pytest.mark.engines
def test_a_weighted_audit_of_a_file_is_the_same_with_every_engine(run, tmp_path, engine, request):
    if engine is not None:
        request.getfixturevalue("dask") if engine == "dask" else pytest.importorskip(engine)
    table, path = weighted_table(), tmp_path / "weighted.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    words = ("--y-true", "y", "--y-pred", "p", "--sensitive", "few,small", "--weight", "w", "--fail-on", "none", *FEW)
    code, out, err = run(path, *words, *(() if engine is None else ("--engine", engine)))
    assert (code, err) == (0, "")
    rows, found = in_pandas(table), Audit.from_json(out)
    tally = by_rows(rows, "y", "p", ["few", "small"], sample_weight=rows["w"])
    assert alike(found.tally, tally)
    code, _, err = run(path, *words[:-2], "--weight", "text", *(() if engine is None else ("--engine", engine)))
    assert code == 2
    assert "sample_weight must hold one number per row" in err


@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow", "duckdb"])
@pytest.mark.engines
def test_bands_gaps_controls_and_references_work_with_every_engine(run, tmp_path, engine):
    pytest.importorskip(engine)
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng, n = np.random.default_rng(1), 600
    age = [None if i % 40 == 0 else int(a) for i, a in enumerate(rng.integers(18, 80, n))]
    region = [None if i % 50 == 0 else i % 2 + 1 for i in range(n)]
    sex = rng.choice(["f", "m"], n)
    hired = np.where(rng.random(n) < np.where(sex == "f", 0.3, 0.6), "yes", "no")
    columns = {"age": pa.array(age, pa.int64()), "region": pa.array(region, pa.int64()), "sex": sex, "hired": hired}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    words = ("--y-pred", "hired", "--pos-label", "yes", "--sensitive", "age,sex,region", "--bands", "age=25,40")
    words += ("--reference", "sex=m", "--reference", "region=2", *FEW)
    outputs = [run(tmp_path / "a.parquet", *words, *given) for given in ((), ("--engine", engine))]
    plain, counted = (json.loads(out) for _, out, _ in outputs)
    assert {**plain, "run": 0} == {**counted, "run": 0}
    assert outputs[0][2] == outputs[1][2]
    assert f"'age' is missing in 15 of {n} rows" in outputs[1][2]
    assert {"attribute": "region", "group": 2} == {k: counted["references"][2][k] for k in ("attribute", "group")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("a.parquet", "--engine", "excel"),
            "--engine must be one of ['pandas', 'polars', 'pyarrow', 'duckdb', 'dask']",
        ),
        (("a.csv", "--engine", "duckdb"), "--engine duckdb counts .parquet files; a.csv is read by pandas"),
        (("a.parquet", "--engine", "duckdb", "--y-score", "s"), "brings back counts, but --y-score needs the rows"),
        (("a.parquet", "--engine", "nowhere"), "--engine must be one of"),
    ],
)
def test_an_engine_that_cannot_do_what_is_asked_says_so(run, tmp_path, words, said):
    (tmp_path / words[0]).write_bytes(b"")
    code, out, err = run(tmp_path / words[0], *words[1:], "--y-pred", "p", "--sensitive", "g")
    assert (code, out) == (2, "")
    assert said in err


def test_an_engine_is_not_for_data_sets(run):
    assert "--engine is for files; german-credit is a data set." in run("german-credit", "--engine", "polars")[2]


@pytest.mark.parametrize("engine", ["polars", "pyarrow", "duckdb", "dask"])
def test_an_engine_that_is_not_installed_says_how_to_get_it(run, tmp_path, engine, monkeypatch):
    module = {"dask": "dask.dataframe", "pyarrow": "pyarrow.parquet"}.get(engine, engine)
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "a.parquet").write_bytes(b"")
    code, _, err = run(tmp_path / "a.parquet", "--y-pred", "p", "--sensitive", "g", "--engine", engine)
    assert code == 2
    assert "pip install 'sklearn-ethiclens[engines]'" in err


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["polars", "pyarrow", "duckdb"])
def test_a_file_that_is_no_parquet_is_one_line(run, tmp_path, engine):
    pytest.importorskip(engine)
    (tmp_path / "a.parquet").write_bytes(b"not a parquet file")
    code, out, err = run(tmp_path / "a.parquet", "--y-pred", "p", "--sensitive", "g", "--engine", engine)
    assert (code, out, err.count("\n")) == (2, "", 1)
