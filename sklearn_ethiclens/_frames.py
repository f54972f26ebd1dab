"""Counts made where the data lie: one select, group-by and collect; distinct rows and their counts come back, nothing else."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._progress import with_bar
from sklearn_ethiclens._validation import as_scalar, check_group_count, encode_groups, encode_labels, listing
from sklearn_ethiclens._weights import KEPT_BELOW, WeightSums, check_sample_weight, refuse_sizes, refuse_weights

ENGINES = ("pandas", "polars", "pyarrow", "duckdb", "dask")
SUFFIXES = (".csv", ".parquet")
# Of a CSV file only an empty cell is missing, so that a group called NA stays a group.
CSV: Mapping[str, Any] = {"keep_default_na": False, "na_values": [""], "encoding": "utf-8-sig"}
MAX_CELLS = 1 << 20  # so many distinct rows are brought back without a look at what makes them so many
_CHUNK = 1 << 18  # rows of a file held at a time
_SHOWN = 64
_STREAMING = (1, 23)  # the polars that has it under this name
_DASK_MOVES = "Dask support is moving out of Narwhals"


@dataclass(frozen=True)
class ColumnNames:
    """Which columns of a frame hold what; :func:`column_names` makes it."""

    y_true: str | None
    y_pred: str
    sensitive: tuple[str, ...]
    controls: tuple[str, ...] = ()
    weight: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of labels, each once."""
        return tuple(dict.fromkeys(filter(None, [self.y_true, self.y_pred])))

    @property
    def all(self) -> tuple[str, ...]:
        """Every column of labels and groups, each once: those whose distinct rows are counted."""
        return tuple(dict.fromkeys([*self.labels, *self.sensitive, *self.controls]))

    @property
    def read(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        return tuple(dict.fromkeys([*self.all, *filter(None, [self.weight])]))

    @property
    def kinds(self) -> dict[str, str]:
        """What each column of groups is called in messages."""
        return {name: "sensitive feature" for name in self.sensitive} | dict.fromkeys(self.controls, "control feature")


@dataclass(frozen=True, eq=False)
class Cells:
    """Distinct rows and how many rows each stands for.

    Parameters
    ----------
    columns : dict of str to Series or list
        The values, by column name; as plain Python values with None where one is missing, if they were counted.
    counts : ndarray of shape (n_cells,) or None
        None where these are the rows themselves, each once.
    weights : WeightSums, Series or None
        If weights were asked for: their sums by distinct row; of the rows themselves their weights.
    """

    columns: dict[str, Any]
    counts: NDArray[np.int64] | None
    weights: WeightSums | pd.Series | None = None

    def columns_of(self, names: ColumnNames) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
        """Return true labels (or None), decisions, sensitive features and control features."""
        y_true = None if names.y_true is None else self.columns[names.y_true]
        sensitive, controls = ({n: self.columns[n] for n in some} for some in (names.sensitive, names.controls))
        return y_true, self.columns[names.y_pred], sensitive, controls


def column_names(
    y_true: Any, y_pred: Any, sensitive_features: Any, control_features: Any = None, sample_weight: Any = None
) -> ColumnNames:
    """Return which columns are asked for, or say which argument is no name."""
    for argument, name in (("y_true", y_true), ("y_pred", y_pred), ("sample_weight", sample_weight)):
        if not (isinstance(name, str) or (name is None and argument != "y_pred")):
            or_none = " or None" if argument != "y_pred" else ""
            raise TypeError(
                f"{argument} must be the name of a column{or_none}; got {_short(name)}. For rows in memory there is "
                f"Tally.from_predictions."
            )
    sensitive = _names(sensitive_features, "sensitive_features")
    controls = () if control_features is None else _names(control_features, "control_features")
    return ColumnNames(y_true, y_pred, sensitive, controls, sample_weight)


def _names(given: Any, argument: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument} must be the name of a column, or a list of names; got {_short(given)}.")
    if not names:
        raise ValueError(f"{argument} has no columns; at least one is needed.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{argument} repeats the column name {listing(repeated)}; name each column once.")
    return tuple(names)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN and "\n" not in text else f"a {type(value).__name__}"


# ------------------------------------------------------------------------------------------------------------ counting
def count_cells(frame: Any, names: ColumnNames, *, pos_label: Any = None, whole: bool = True) -> Cells:
    """Return the distinct rows of some columns of a frame, counted by its own engine.

    Parameters
    ----------
    frame : frame of pandas, polars, pyarrow, duckdb, dask, pyspark or another library narwhals knows, eager or lazy
        Columns of pandas come back as they are: counting them is no engine's work.
    names : ColumnNames
        Which columns. Of weights their sums by distinct row come back, and of distinct rows that few rows have, each weight.
    pos_label : label, optional
        As in ``Tally.from_frame``; only for refusing columns that are no labels.
    whole : bool, default=True
        Whether these are all rows: in a part of them all weights may be 0.

    Returns
    -------
    Cells

    Raises
    ------
    ValueError
        If a column is absent, or has so many values that it is no grouping; if weights are none.
    TypeError
        If this is no frame, or a column holds lists or the like.
    """
    native = nw.to_native(frame, pass_through=True)
    if isinstance(native, pd.DataFrame):
        check_columns("frame", names.read, list(native.columns))
        weights = None if names.weight is None else native[names.weight]
        return Cells({name: native[name] for name in names.all}, None, weights)
    with _known_warnings(native):
        wide = _lazy(native, names)
        schema = wide.collect_schema()
        check_columns("frame", names.read, schema.names())
        _check_types(names, schema)
        # Engines differ in which names they can group by (spaces, case, a name that is also an aggregate's); in these not.
        keys = {name: f"key_{i}" for i, name in enumerate(names.all)}
        columns = [nw.col(name).alias(key) for name, key in keys.items()]
        lazy = wide.select(*columns, *_weight_columns(names.weight))
        grouped = lazy.group_by(*keys.values()).agg(nw.len().alias("n_rows"), *_weight_sums(names.weight))
        counted = _collect(grouped.head(MAX_CELLS + 1), native)
        if len(counted) > MAX_CELLS:
            _refuse_measurements(lazy, names, keys, schema, pos_label, native)
            counted = _collect(grouped, native)
        counts = np.array([int(n) for n in counted["n_rows"].to_list()], dtype=np.int64)
        cells = Cells({name: _plain(counted[key].to_list()) for name, key in keys.items()}, counts)
        if names.weight is None:
            return cells
        totals = _Totals(weighted=True)  # NaN and null are two values to some engines, and one here
        totals.add(replace(cells, weights=_summed(counted, whole)))
        sums = cast("WeightSums", totals.weights)
        if ((sums.rows > 0) & (sums.rows < KEPT_BELOW)).any():
            full = {keys[name]: schema[name] for name, values in cells.columns.items() if None not in values}
            gaps = {keys[name]: schema[name] for name in names.all if keys[name] not in full}
            few = _collect(_rows_of_small_cells(lazy, grouped, full, gaps).select(*keys.values(), "w"), native)
            _keep(sums, totals.places, [_plain(few[key].to_list()) for key in keys.values()], few["w"].to_list())
    return totals.cells(names, is_text=False)


# ------------------------------------------------------------------------------------------------------------- weights
_WRONG = {
    "n_null": "missing (NaN)",
    "n_nan": "missing (NaN)",
    "n_infinite": "infinite",
    "n_negative": "negative",
}
_MOMENTS = ("sum_w", "sum_w2", "sum_w3")


def _weight_columns(weight: str | None) -> list[nw.Expr]:
    """Return what is summed of a weight as columns: pyarrow and dask sum no expression inside an aggregation."""
    if weight is None:
        return []
    w = nw.col(weight).cast(nw.Float64)
    powers = [power.alias(name) for power, name in zip((w, w * w, w * w * w), _MOMENTS, strict=True)]
    infinity = float("inf")
    flags = {
        "n_null": w.is_null(),
        "n_nan": w.is_nan() & ~w.is_null(),  # to dask a null is a NaN too
        "n_infinite": (w == infinity) | (w == -infinity),
        "n_negative": w < 0,
        "n_weighed": w > 0,
    }
    numbers = [nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)).alias(name) for name, flag in flags.items()]
    return [w.alias("w"), *powers, *numbers, nw.when(w > 0).then(w).alias("low_w")]


def _weight_sums(weight: str | None) -> list[nw.Expr]:
    if weight is None:
        return []
    sums = [nw.col(name).sum() for name in (*_MOMENTS, *_WRONG, "n_weighed")]
    return [*sums, nw.col("low_w").min(), nw.col("w").max().alias("high_w")]


def _summed(counted: nw.DataFrame[Any], whole: bool) -> WeightSums:
    """Return the sums of weights that an engine made, if all of them are weights."""

    def numbers(name: str) -> NDArray[np.float64]:
        return np.array([np.nan if value is None else value for value in counted[name].to_list()], dtype=np.float64)

    n_rows = int(np.sum(numbers("n_rows")))
    wrong = dict.fromkeys(_WRONG.values(), 0)
    for name, words in _WRONG.items():
        wrong[words] += int(np.nansum(numbers(name)))  # a flag of a null is null to some engines
    refuse_weights(n_rows, wrong)
    rows = numbers("n_weighed").astype(np.int64)
    low, high = np.where(rows > 0, numbers("low_w"), np.inf), np.where(rows > 0, numbers("high_w"), 0.0)
    if n_rows and (whole or rows.any()):
        refuse_sizes(n_rows, low.min(initial=np.inf), high.max(initial=0.0))
    return WeightSums(rows, np.stack([numbers(name) for name in _MOMENTS], axis=1), low, high, {})


def _rows_of_small_cells(
    lazy: nw.LazyFrame[Any], grouped: nw.LazyFrame[Any], without_gaps: Mapping[str, Any], with_gaps: Mapping[str, Any]
) -> nw.LazyFrame[Any]:
    """Return the rows with a weight above 0 of distinct rows that few rows have, joined by the engine.

    Columns with gaps are joined as text, since nulls match nothing in most engines. Two values with one text, or a column
    left out, cost some rows more.
    """
    by: dict[str, nw.Expr] = {}
    for key, dtype in [*without_gaps.items(), *with_gaps.items()]:
        column, as_text = nw.col(key), key in with_gaps or dtype in (nw.Categorical, nw.Enum)
        if as_text and dtype.is_float():  # 0.0 and -0.0 are one value with two texts
            by[key] = nw.when(column == 0).then(nw.lit("0")).otherwise(column.cast(nw.String)).fill_null(_NULL)
        elif as_text and dtype != nw.Duration:  # which polars makes no text of
            by[key] = column.cast(nw.String).fill_null(_NULL)
        elif not as_text:
            by[key] = column
    here, there = ({key: f"{side}_{key}" for key in by} for side in ("row", "cell"))
    small = grouped.filter((nw.col("n_weighed") > 0) & (nw.col("n_weighed") < KEPT_BELOW))
    small = small.select(*(value.alias(there[key]) for key, value in by.items()))
    rows = lazy.filter(nw.col("w") > 0).with_columns(*(value.alias(here[key]) for key, value in by.items()))
    return rows.join(small, left_on=list(here.values()), right_on=list(there.values()), how="semi")


_NULL = "\x1e"  # stands for a gap; a text that is the same costs some rows more


def _keep(
    sums: WeightSums, places: Mapping[tuple[Any, ...], int], columns: list[list[Any]], weights: list[float]
) -> None:
    """Note the weights of distinct rows that few rows have."""
    for key, weight in zip(_typed_rows(columns), weights, strict=True):
        place = places.get(key, -1)
        if place >= 0 and sums.rows[place] < KEPT_BELOW:
            sums.kept.setdefault(place, []).append(weight)
    small = np.flatnonzero((sums.rows > 0) & (sums.rows < KEPT_BELOW))
    if {i: len(own) for i, own in sums.kept.items()} != {int(i): int(sums.rows[i]) for i in small}:
        raise ValueError(
            "frame has other rows when it is read a second time, which weights need; write it to a file, or collect it, first."
        )


def _typed_rows(columns: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield each row of plain values with their types, since True equals 1 in Python."""
    for row in zip(*columns, strict=True):
        yield tuple((type(value), value) for value in row)


def check_columns(what: str, wanted: Sequence[str], found: Sequence[Any]) -> None:
    """Refuse what has not got a column, or has it twice; ``what`` is its name in messages."""
    absent = [name for name in wanted if name not in found]
    if absent:
        hint = " Is it separated by commas?" if what.endswith(".csv") and len(found) == 1 else ""
        raise ValueError(f"{what} has no column {listing(absent)}; it has {listing(found, 30)}.{hint}")
    repeated = [name for name in wanted if list(found).count(name) > 1]
    if repeated:
        raise ValueError(f"{what} repeats the column {listing(repeated)}; give each column its own name.")


def _lazy(native: Any, names: ColumnNames) -> nw.LazyFrame[Any]:
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(native, arrow.Table):
        native = _without_dictionaries(native)
    elif nw.dependencies.is_dask_dataframe(native):
        native = _without_arrow_types(native, names)
    try:
        return nw.from_native(native).lazy()
    except TypeError as error:
        raise TypeError(
            f"frame must be a data frame of pandas, polars, pyarrow, duckdb, dask, pyspark or another library that narwhals "
            f"knows; got {_short(native)}. Files are read by Tally.from_shards, arrays by Tally.from_predictions."
        ) from error


def _without_dictionaries(table: Any) -> Any:
    """Return a pyarrow table with the values of its dictionaries: parts with different ones cannot be grouped."""
    for i, column in enumerate(table.schema):
        if str(column.type).startswith("dictionary"):
            table = table.set_column(i, column.name, table.column(i).cast(column.type.value_type))
    return table


def _without_arrow_types(frame: Any, names: ColumnNames) -> Any:
    """Return a dask frame with those of pandas' pyarrow types changed that pandas cannot group by if values are missing."""
    types: dict[str, Any] = {}
    for name in names.all:
        dtype = frame.dtypes.get(name)
        if not isinstance(dtype, pd.ArrowDtype):
            continue
        if dtype.kind == "f":
            types[name] = "Float32" if str(dtype.pyarrow_dtype) == "float" else "Float64"
        elif str(dtype.pyarrow_dtype).startswith("dictionary"):
            types[name] = pd.ArrowDtype(dtype.pyarrow_dtype.value_type)
    return frame.astype(types) if types else frame


def _check_types(names: ColumnNames, schema: Mapping[str, Any]) -> None:
    arguments = {"y_true": names.y_true, "y_pred": names.y_pred}
    named = [(argument, name) for argument, name in arguments.items() if name is not None]
    named += [(f"{kind} {name!r}", name) for name, kind in names.kinds.items()]
    if names.weight is not None and not (schema[names.weight].is_numeric() or schema[names.weight] == nw.Object):
        raise TypeError(f"sample_weight must hold one number per row; got a column of type {schema[names.weight]}.")
    for what, name in named:
        if schema[name].is_nested():
            raise TypeError(
                f"{what} holds values that cannot be labels ({schema[name]}); pass text, numbers or booleans."
            )


def _collect(lazy: nw.LazyFrame[Any], native: Any) -> nw.DataFrame[Any]:
    """Return what is left of a frame, in memory; a lazy frame of polars is streamed, as it may be larger than that."""
    polars = nw.dependencies.get_polars()
    if polars is not None and isinstance(native, polars.LazyFrame):
        version = tuple(int(part) for part in polars.__version__.split(".")[:2])
        if version >= _STREAMING:
            return lazy.collect(engine="streaming")
    return lazy.collect()


@contextmanager
def _known_warnings(native: Any) -> Iterator[None]:
    """Leave out the one warning that narwhals has for every frame of dask: that its support moves to another package."""
    if not nw.dependencies.is_dask_dataframe(native):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_DASK_MOVES, category=FutureWarning)
        yield


def _plain(values: list[Any]) -> list[Any]:
    """Return the values of a column as Python has them, None where one is missing, whatever its engine calls that."""
    gone = pd.isna(pd.Series(values, dtype=object)).tolist()
    return [None if missing else as_scalar(value) for value, missing in zip(values, gone, strict=True)]


# ------------------------------------------------------------------------------------------------------ too many values
def _refuse_measurements(
    lazy: nw.LazyFrame[Any],
    names: ColumnNames,
    keys: Mapping[str, str],
    schema: Mapping[str, Any],
    pos_label: Any,
    native: Any,
) -> None:
    """Refuse, in the words of rows in memory, the column that makes a frame fall into so many distinct rows.

    Only numbers about the columns and a few values are brought back. Where no single column is to blame, nothing is said.
    """

    def distinct(name: str) -> nw.LazyFrame[Any]:
        return lazy.group_by(keys[name]).agg(nw.len().alias("n_rows"))

    labels = {}
    for name in names.labels:
        values = distinct(name).filter(~nw.col(keys[name]).is_null()).sort(keys[name])
        labels[name] = _plain(_collect(values.head(MAX_CELLS + 1), native)[keys[name]].to_list())
    present = {name: [v for v in values if v is not None] for name, values in labels.items()}
    encode_labels(None if names.y_true is None else present[names.y_true], present[names.y_pred], pos_label)
    for name, kind in names.kinds.items():
        key, dtype = nw.col(keys[name]), schema[name]
        missing = key.is_null() | key.is_nan() if dtype.is_float() else key.is_null()
        found = _collect(distinct(name).with_columns(gone=missing).group_by("gone").agg(nw.len().alias("n")), native)
        numbers = dict(zip(found["gone"].to_list(), found["n"].to_list(), strict=True))
        n_values = int(numbers.get(False, 0))
        is_number = dtype.is_integer() or dtype.is_float()
        check_group_count(f"{kind} {name!r}", n_values if is_number else 0, n_values + (True in numbers))


# --------------------------------------------------------------------------------------------------------------- files
def count_files(
    paths: Any,
    names: ColumnNames,
    *,
    pos_label: Any = None,
    verbose: int = 1,
) -> Cells:
    """Return the distinct rows of files, counted one after another: never more than a part of one is in memory.

    Parameters
    ----------
    paths : path or iterable of paths
        Files that end in .parquet, or files that end in .csv, whose columns are read as text.
    names : ColumnNames
        Which columns.
    pos_label : label, optional
        As in ``Tally.from_shards``; only for refusing columns that are no labels.
    verbose : int, default=1
        0 is silent; else a bar on a terminal once two seconds have passed.

    Returns
    -------
    Cells
    """
    files = _files(paths)
    totals = _Totals(names.weight is not None)
    is_text, limit = files[0].suffix.lower() == ".csv", MAX_CELLS

    def work(path: Path) -> Path:
        nonlocal limit
        for cells in _parts(path, names):
            totals.add(cells)
            if len(totals.places) > limit:
                _refuse(totals.cells(names, is_text), names, pos_label)
                limit *= 2
        return path

    done = (_named_errors(work, path) for path in files)
    for _ in with_bar(done, len(files), "files") if verbose else done:
        pass
    if totals.weights is not None and totals.counts:
        refuse_sizes(sum(totals.counts), totals.weights.low.min(), totals.weights.high.max())
    return totals.cells(names, is_text)


def _files(paths: Any) -> list[Path]:
    """Return the files in the order given; refuse what is none, and text beside columns with types."""
    given = [paths] if isinstance(paths, str | PathLike) else paths
    if not isinstance(given, Iterable):
        raise TypeError(f"paths must be a path or a list of paths; got {_short(paths)}.")
    listed = list(given)
    strangers = [path for path in listed if not isinstance(path, str | PathLike)]
    if strangers or isinstance(given, bytes):
        raise TypeError(
            f"paths must be a path or a list of paths; got {_short(given if isinstance(given, bytes) else strangers[0])}."
        )
    files = [Path(path) for path in listed]
    if not files:
        raise ValueError("paths is empty: there is no file to count.")
    strange = [str(path) for path in files if path.suffix.lower() not in SUFFIXES]
    if strange:
        raise ValueError(f"paths must end in one of {list(SUFFIXES)}; got {listing(strange)}.")
    absent = [str(path) for path in files if not path.is_file()]
    if absent:
        raise ValueError(f"there is no file {absent[0] if len(absent) == 1 else listing(absent)}.")
    if len({path.suffix.lower() for path in files}) > 1:
        raise ValueError(
            "paths mix .csv and .parquet: columns of a CSV file are text, so its group '1' would stand beside the group 1. "
            "Count them apart, or convert one kind."
        )
    first: dict[tuple[int, int], Path] = {}  # a link, or a path by another way, is the same file
    for path in files:
        status = path.stat()
        known = first.setdefault((status.st_dev, status.st_ino), path)
        if known is not path:
            under = "" if known == path else f", the second time as {path}"
            raise ValueError(f"paths name {known} more than once{under}: its rows would be counted again.")
    return files


def _named_errors(work: Callable[[Path], Path], path: Path) -> Path:
    """Work on a file; an error names it."""
    try:
        return work(path)
    except (TypeError, ValueError, OSError) as error:
        text = str(error)
        raise ValueError(text if text.startswith(path.name) else f"{path.name} cannot be counted: {text}") from error


def _parts(path: Path, names: ColumnNames) -> Iterator[Cells]:
    """Yield the counts of the parts of a file."""
    if path.suffix.lower() == ".csv":
        header = csv_header(path)  # pandas gives the second of two columns of one name another
        with pd.read_csv(path, dtype=str, chunksize=_CHUNK, **CSV) as chunks:
            check_columns(path.name, names.read, header)
            for chunk in chunks:
                if not isinstance(chunk.index, pd.RangeIndex):
                    raise ValueError(
                        f"{path.name} has rows with more fields than its header names; mend the header or the rows."
                    )
                yield _count_by_pandas(chunk, names)
    elif find_spec("polars") is not None:
        frame = scan_parquet(path, "polars", names.read)
        yield count_cells(frame, names, whole=False)
    else:
        file = _module("pyarrow.parquet", "reading .parquet").ParquetFile(path)
        check_columns(path.name, names.read, file.schema_arrow.names)
        table = _module("pyarrow", "reading .parquet").Table
        for batch in file.iter_batches(_CHUNK, columns=list(names.read)):
            yield count_cells(table.from_batches([batch]), names, whole=False)


def csv_header(path: Path) -> list[str]:
    """Return the names of a CSV file's columns as they are written, repeated ones too."""
    try:
        with path.open(encoding=CSV["encoding"], newline="") as file:
            return next((row for row in csv.reader(file) if row), [])
    except csv.Error as error:
        raise ValueError(f"{path.name} has no header that can be read: {error}.") from error


def _count_by_pandas(frame: pd.DataFrame, names: ColumnNames) -> Cells:
    by_value = frame.groupby(list(names.all), dropna=False, sort=False)
    sizes = by_value.size()
    columns = {name: _plain(sizes.index.get_level_values(name).tolist()) for name in names.all}
    cells = Cells(columns, np.asarray(sizes, dtype=np.int64))
    if names.weight is None:
        return cells
    column = frame[names.weight].map(_number, na_action="ignore").astype(float)
    weights = check_sample_weight(column, whole=False)
    return replace(cells, weights=WeightSums.from_rows(weights, by_value.ngroup().to_numpy(), len(sizes)))


def _number(text: str) -> float:
    try:
        return float(_written(text))
    except ValueError as error:
        raise TypeError(f"sample_weight must hold one number per row; got values such as {text!r}.") from error


def _written(text: str) -> str:
    """Return a text that may spell a number; ValueError where only Python's own spelling makes it one, as of 1_000."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


class _Totals:
    """Distinct rows of several parts, how many rows each stands for, and the sums of their weights."""

    def __init__(self, weighted: bool) -> None:
        self.places: dict[tuple[Any, ...], int] = {}
        self.counts: list[int] = []
        self.weights = WeightSums.empty(0) if weighted else None

    def add(self, cells: Cells) -> None:
        """Add the counts of a part to those of the same values."""
        counts, position = cast("NDArray[np.int64]", cells.counts), []
        for key, n in zip(_typed_rows(cells.columns.values()), counts.tolist(), strict=True):
            place = self.places.setdefault(key, len(self.places))
            if place == len(self.counts):
                self.counts.append(0)
            self.counts[place] += n
            position.append(place)
        if self.weights is not None and isinstance(cells.weights, WeightSums):
            self.weights.add(cells.weights, np.array(position, dtype=np.intp), len(self.places))

    def cells(self, names: ColumnNames, is_text: bool) -> Cells:
        """Return what was counted; labels that came as text are read as numbers or booleans where all of them spell such."""
        columns = {name: [key[i][1] for key in self.places] for i, name in enumerate(names.all)}
        for name in names.labels if is_text else ():
            columns[name] = typed(pd.Series(columns[name], dtype=object)).tolist()
        return Cells(columns, np.array(self.counts, dtype=np.int64), self.weights)


def _refuse(cells: Cells, names: ColumnNames, pos_label: Any) -> None:
    """Raise, as the whole would, if the rows counted so far show a column to be no label or no grouping."""
    columns = cells.columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of missing groups is said of the whole
        y_true = None if names.y_true is None else columns[names.y_true]
        encode_labels(y_true, columns[names.y_pred], pos_label, counts=cells.counts)
        for name, kind in names.kinds.items():
            encode_groups({name: columns[name]}, kind=kind, counts=cells.counts)


def scan_parquet(path: Path, engine: str, columns: Sequence[str]) -> Any:
    """Return a Parquet file as a frame of an engine, read as late and as little as that engine can.

    Parameters
    ----------
    path : Path
        The file.
    engine : {"polars", "pyarrow", "duckdb", "dask"}
        Whose frame.
    columns : sequence of str
        What will be needed of it.
    """
    module = _module({"dask": "dask.dataframe", "pyarrow": "pyarrow.parquet"}.get(engine, engine), f"engine {engine!r}")
    if engine == "polars":
        with named_reading(path, module.exceptions.PolarsError):
            frame = module.scan_parquet(path, glob=False)
            found = frame.collect_schema().names()
        check_columns(path.name, columns, found)
        return frame
    if engine == "duckdb":
        with named_reading(path, module.Error):
            frame = module.read_parquet(str(path))
        check_columns(path.name, columns, frame.columns)
        return frame
    with named_reading(path):
        found = _module("pyarrow.parquet", "reading .parquet").read_schema(path).names
    check_columns(path.name, columns, found)
    if engine == "pyarrow":
        return module.read_table(path, columns=list(columns))
    # With the types of numpy whole numbers beside a missing one would be read as fractions.
    return module.read_parquet(path, columns=list(columns), index=False, dtype_backend="numpy_nullable")


@contextmanager
def named_reading(path: Path, *own: type[Exception]) -> Iterator[None]:
    """Have an error of a library that reads a file name the file."""
    errors: tuple[type[Exception], ...] = (ValueError, OSError, *own)
    try:
        yield
    except errors as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from error


def _module(name: str, purpose: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install 'sklearn-ethiclens[engines]'") from error


# --------------------------------------------------------------------------------------------------------------- text
def spelled(text: str) -> Any:
    """Return a text as the boolean or the finite number it spells, or as it is."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            value = kind(_written(text))
        except ValueError:
            continue
        if isfinite(value):
            return value
    return text


def typed(column: pd.Series) -> pd.Series:
    """Return a column of text as numbers, or as booleans, if all of it spells such."""
    values = {text: spelled(text) for text in column.dropna().unique()}
    kinds = {type(value) for value in values.values()}
    if str in kinds or (bool in kinds and len(kinds) > 1) or not kinds:
        return column
    return column.map(values).infer_objects()
