"""The one door: arrays, frames and columns come in; aligned integer codes and their labels, or a clear error, come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, cast
from warnings import warn

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from sklearn_ethiclens.exceptions import MissingGroupsWarning

MAX_NUMERIC_GROUPS = 60
MAX_GROUPS = 1000
_EXACT_FLOATS = 2.0**53  # from here on neighbouring whole numbers are one float
_BLOCK = 1 << 16  # rows that fit a processor's own cache, as eight bytes each
_SHOWN = 10


class _Missing:
    """The one bucket of rows whose sensitive value is missing; never equal to a real value, sorts last."""

    _instance: _Missing | None = None

    def __new__(cls) -> _Missing:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "(missing)"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True)
class ForeignLabel:
    """A label of a type JSON does not know (a date, an interval), as read back from a stored audit.

    ``rank`` is its place among the labels it was stored with: text alone would put (100, 120] before (25, 40].
    """

    type: str
    text: str
    rank: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.text


class Column(NamedTuple):
    """One column of labels: ``levels[codes[i]]`` is the label of row ``i``; some levels may not occur."""

    codes: NDArray[Any]
    levels: tuple[Any, ...]

    @property
    def occurring(self) -> tuple[Any, ...]:
        """The levels that occur, in canonical order."""
        if len(self.levels) <= 2 and self.codes.size and self.codes.min() != self.codes.max():
            return self.levels
        seen = np.flatnonzero(np.bincount(self.codes, minlength=len(self.levels)))
        return tuple(self.levels[i] for i in seen)


class Labels(NamedTuple):
    """Decisions and outcomes as 0/1 codes (1 = ``pos_label``); ``y_true`` is None where there are no labels."""

    y_true: NDArray[np.uint8] | None
    y_pred: NDArray[np.uint8]
    pos_label: Any
    labels: tuple[Any, ...]


# ------------------------------------------------------------------------------------------------------------ labels
def as_scalar(value: Any) -> Any:
    """Return a label as a plain Python scalar: ``numpy.int64(3)`` is 3, ``numpy.str_('x')`` is 'x'."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and type(value) is not str:
        value = str(value)
    if isinstance(value, pd.Timestamp) and not value.nanosecond:
        value = value.to_pydatetime()
    if isinstance(value, pd.Timedelta) and not value.nanoseconds:
        value = value.to_pytimedelta()
    if isinstance(value, float) and value == 0:
        value = 0.0  # -0.0 is the same label, and which of the two a library shows depends on which came first
    return value


def canonical_key(value: Any) -> tuple[Any, ...]:
    """Return a sort key: by type name, then by value; the missing bucket is last. Never compares int with str."""
    if value is MISSING:
        return (1, "", "")
    if isinstance(value, ForeignLabel):
        return (0, value.type, value.rank, value.text)
    if isinstance(value, bool | int | float | str | bytes):
        return (0, type(value).__name__, value)
    return (0, type(value).__name__, 0, str(value))


def sort_labels(values: Sequence[Any]) -> list[Any]:
    """Return labels in canonical order; values of one foreign type that know an order (dates, intervals) keep it."""
    try:
        return sorted(values, key=lambda v: (v is MISSING, type(v).__name__, 0 if v is MISSING else v))
    except TypeError:
        return sorted(values, key=canonical_key)


def show(value: Any) -> str:
    """Return a label, or a tuple of labels, as a person reads it: ``1.0`` is ``1``, a tuple is joined by ``&``."""
    if isinstance(value, tuple):
        return " & ".join(show(v) for v in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def listing(values: Sequence[Any], shown: int = _SHOWN) -> str:
    """Return values as a list for a message, cut after ``shown`` of them."""
    more = f", ... ({len(values)} in all)" if len(values) > shown else ""
    return "[" + ", ".join(repr(v) for v in values[:shown]) + more + "]"


def check_apart(names: Sequence[str], columns: Iterable[str], table: str) -> None:
    """Refuse attributes that are called as a column of a table: one would stand in place of the other."""
    shared = [name for name in names if name in set(columns)]
    if shared:
        raise ValueError(f"{table} has columns called {listing(shared)} itself; give these attributes other names.")


# ----------------------------------------------------------------------------------------------------------- columns
def encode_column(values: Any, name: str) -> Column:
    """Return codes and labels of one column, by the cheapest way its type allows.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        A numpy array, a list, a pandas, polars or pyarrow column; missing values are None, NaN, NaT or pandas.NA.
    name : str
        What the column is called in messages.

    Returns
    -------
    Column
        Labels in canonical order (type name, then value), the missing bucket last.
    """
    column = _one_dimensional(values, name)
    if isinstance(column, pd.Series):
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return _from_categories(column.cat.codes.to_numpy(), column.cat.categories)
        if dtype.kind in "mM":
            return _from_hashing(column, name)
        if not isinstance(dtype, np.dtype):
            return _encode_extension(column, name)
        column = column.to_numpy()
    return _encode_array(column, name)


def numeric_column(values: Any, name: str, *, one: str, hint: str, booleans: bool) -> NDArray[np.float64]:
    """Return numbers as one column of floats, NaN where one is missing.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        pandas, polars and pyarrow columns are accepted.
    name : str
        What it is called in messages.
    one, hint : str
        What there must be of each row, and the way out where there are several columns.
    booleans : bool
        Whether True and False are numbers here.

    Raises
    ------
    ValueError
        If there are several columns.
    TypeError
        If the values are no numbers.
    """
    shape: tuple[int, ...] = np.shape(values) if hasattr(values, "shape") or isinstance(values, list | tuple) else ()
    if len(shape) == 2 and shape[1] != 1:
        raise ValueError(f"{name} must be {one}; got {shape[1]} columns. {hint}")
    column = _one_dimensional(values, name)
    read: Any = column
    if isinstance(column, pd.Series):
        numeric = pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind not in ("c" if booleans else "cb")
        read = column.to_numpy(dtype=np.float64, na_value=np.nan) if numeric else column.to_numpy(dtype=object)
    if read.dtype == object:
        gaps = pd.isna(read)
        plain = (float(v) if isinstance(v, Decimal) else v for v in read)
        read = np.array([np.nan if gap else v for v, gap in zip(plain, gaps, strict=True)])
    if read.dtype.kind not in ("iufb" if booleans else "iuf"):
        raise TypeError(f"{name} must hold one number per row; got values such as {read.tolist()[0]!r:.80}.")
    return np.asarray(read.astype(np.float64))


def _one_dimensional(values: Any, name: str) -> pd.Series | NDArray[Any]:
    """Return a pandas Series or a 1-d array; refuse what is no column."""
    if isinstance(values, str | bytes | Mapping | set | frozenset) or np.isscalar(values) or values is None:
        raise TypeError(f"{name} must be a column of values, one per row; got {values!r:.80}.")
    if issparse(values):
        raise TypeError(f"{name} must be dense; got a sparse matrix. Pass {name}.toarray() or a plain column.")
    if isinstance(values, pd.DataFrame):
        if values.shape[1] != 1:
            raise ValueError(f"{name} must be one column; got a frame with columns {listing(list(values.columns))}.")
        return values.iloc[:, 0]
    if isinstance(values, pd.Series):
        return values
    if isinstance(values, pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(values)
    if isinstance(values, np.ndarray | list):
        return _from_array(values, name)  # first, since asking narwhals takes longer than counting a small column
    if nw.dependencies.is_into_dataframe(values):
        frame = nw.from_native(values, eager_only=True)
        if len(frame.columns) != 1:
            raise ValueError(f"{name} must be one column; got a frame with columns {listing(frame.columns)}.")
        return _from_narwhals(frame[frame.columns[0]])
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(values, arrow.Array):
        values = arrow.chunked_array([values])
    if nw.dependencies.is_into_series(values) or isinstance(values, nw.Series):
        return _from_narwhals(nw.from_native(values, series_only=True))
    return _from_array(values, name)


def _from_array(values: Any, name: str) -> pd.Series | NDArray[Any]:
    """Return an array or a sequence as one column of numpy, of pandas where it holds times; masked values are missing."""
    if isinstance(values, np.ma.MaskedArray):
        gaps, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[gaps] = None
    array = values if isinstance(values, np.ndarray) else _from_sequence(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one column, of shape (n_rows,); got an array of shape {array.shape}.")
    if array.dtype.kind in "mM":
        return pd.Series(array)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_narwhals(series: nw.Series[Any]) -> pd.Series | NDArray[Any]:
    """Return a polars or pyarrow column as numpy has it, without losing gaps or turning whole numbers into floats."""
    native = series.to_native()
    if isinstance(native, pd.Series):
        return native
    if str(getattr(native, "type", "")).startswith("dictionary"):  # pyarrow's categories, of any type
        native = native.cast(native.type.value_type)
        series = nw.from_native(native, series_only=True)
    if isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum) and series.null_count() < len(series):
        return _from_text(native)
    if series.dtype == nw.Date:  # numpy has no days without a time
        return _from_sequence(series.to_list(), str(series.name))
    if not series.null_count() or not (series.dtype.is_integer() or series.dtype == nw.Boolean):
        array = series.to_numpy()
        return pd.Series(array) if array.dtype.kind in "mM" else array
    gaps = series.is_null().to_numpy()
    filled = series.fill_null(False if series.dtype == nw.Boolean else 0).to_numpy().astype(object)
    filled[gaps] = None
    return filled


def _from_text(native: Any) -> pd.Series:
    """Return text or categories of polars or pyarrow as categories of pandas: their library hashes, nothing becomes an object."""
    polars = nw.dependencies.get_polars()
    if polars is None or not isinstance(native, polars.Series):
        coded = native.dictionary_encode().combine_chunks()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return pd.Series(pd.Categorical.from_codes(codes, coded.dictionary.to_pylist()))
    is_text = native.dtype == polars.String
    if is_text:
        native = native.cast(polars.Enum(native.drop_nulls().unique(maintain_order=True)))
    places = native.to_physical()
    codes = places.cast(polars.Int64).fill_null(-1).to_numpy()
    if is_text:
        return pd.Series(pd.Categorical.from_codes(codes, native.dtype.categories.to_list()))
    first = native.gather(places.arg_unique()).drop_nulls()  # of categories, which columns may share, those that occur
    table = np.full(int(codes.max()) + 2, -1, dtype=np.int64)  # the last place is that of -1, a missing value
    table[first.to_physical().to_numpy()] = np.arange(len(first))
    return pd.Series(pd.Categorical.from_codes(table[codes], first.to_list()))


def _from_sequence(values: Any, name: str) -> NDArray[Any]:
    """Return a list as an array without letting numpy turn [30, 'unknown', None] into text."""
    if not isinstance(values, Sequence):
        if not hasattr(values, "__array__"):
            raise TypeError(f"{name} must be an array, a list or a column; got {type(values).__name__}.")
        return np.asarray(values)
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return np.asarray(values, dtype=object if str in kinds else None)
    if kinds and kinds <= {int, float}:
        numbers = np.asarray(values, dtype=float)
        if not (np.abs(numbers) >= _EXACT_FLOATS).any():
            return numbers
    if kinds and all(issubclass(kind, np.generic) for kind in kinds) and len(kinds) == 1:
        return np.asarray(values)
    if kinds & {list, tuple, np.ndarray}:
        return np.array(values, dtype=object)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_array(array: NDArray[Any], name: str) -> Column:
    """Return the codes of a numpy array: bool and small integers (also stored as float) directly, others by hashing."""
    if array.dtype == bool:
        return Column(array.view(np.uint8), (False, True))
    if array.size and array.dtype.kind in "iu":
        small = _as_bytes(array)
        if small is not None:
            return _from_small_integers(small, int(small.min()), int(small.max()))
        low, high = int(array.min()), int(array.max())
        if high - low < 256:
            return _from_small_integers(array, low, high)
    if array.size and array.dtype.kind == "f":
        column = _from_integral_floats(array)
        if column is not None:
            return column
    return _from_hashing(array, name)


def _as_bytes(array: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Return integers as uint8 if all lie in 0..255, else None.

    They do if no bit above the lowest eight is set in any, which takes one pass where minimum and maximum take two; by blocks,
    so that what is looked at is copied while it is in the cache.
    """
    if array.dtype == np.uint8:
        return array
    found = np.empty(array.size, dtype=np.uint8)
    for start in range(0, array.size, _BLOCK):
        block = array[start : start + _BLOCK]
        if not 0 <= int(np.bitwise_or.reduce(block)) < 256:
            return None
        found[start : start + _BLOCK] = block
    return found


def _from_small_integers(array: NDArray[Any], low: int, high: int) -> Column:
    """Return the codes of integers of which high - low < 256: the difference to low is exact modulo 256, so cast first."""
    codes = array.astype(np.uint8, copy=False)
    return Column(codes if low == 0 else codes - np.uint8(low % 256), tuple(range(low, high + 1)))


def _from_integral_floats(array: NDArray[Any]) -> Column | None:
    """Return the codes of floats that are all small integers, with or without NaN; None where they are not."""
    low, high = float(array.min()), float(array.max())
    gaps = low != low
    if gaps:
        missing = np.isnan(array)
        if missing.all():
            return Column(np.zeros(array.size, np.uint8), (MISSING,))
        array = np.where(missing, np.nanmin(array), array)
        low, high = float(array.min()), float(array.max())
    if not (np.isfinite(low) and np.isfinite(high) and low.is_integer() and 0 <= high - low < 255):
        return None
    codes, shift = np.empty(array.size, dtype=np.uint8), array.dtype.type(low)
    for start in range(0, array.size, _BLOCK):
        block, inside = array[start : start + _BLOCK], slice(start, start + _BLOCK)
        codes[inside] = block - shift
        if not np.array_equal(codes[inside] + shift, block):
            return None
    levels: tuple[Any, ...] = tuple(low + i for i in range(int(high - low) + 1))
    if gaps:
        codes[missing] = len(levels)
        levels += (MISSING,)
    return Column(codes, levels)


def _encode_extension(column: pd.Series, name: str) -> Column:
    """Return the codes of a pandas extension column: nullable numbers and booleans by their values and mask."""
    if column.dtype.kind in "iufb":
        missing = column.isna().to_numpy()
        base = {"b": np.bool_, "f": np.float64}.get(column.dtype.kind, np.int64)
        if column.dtype.kind == "u":
            base = np.uint64
        inner = _encode_array(column.to_numpy(dtype=base, na_value=base(0)), name)
        if not missing.any():
            return inner
        levels = inner.levels if MISSING in inner.levels else (*inner.levels, MISSING)  # NaN beside NA is missing too
        codes = inner.codes.astype(np.int64)
        codes[missing] = len(levels) - 1
        return Column(codes, levels)
    return _from_hashing(column, name)


def _from_hashing(values: Any, name: str) -> Column:
    try:
        codes, uniques = pd.factorize(values, use_na_sentinel=True)
    except (TypeError, NotImplementedError) as error:  # the latter is pyarrow's
        raise TypeError(
            f"{name} holds values that cannot be labels ({error}); pass text, numbers or booleans."
        ) from error
    return _from_categories(codes, uniques)


def _from_categories(codes: NDArray[Any], categories: Any) -> Column:
    """Return codes (-1 = missing) and categories with the categories in canonical order."""
    levels = [as_scalar(v) for v in categories]
    order = sort_labels(levels)
    if codes.dtype == np.int8 and all(label is other for label, other in zip(levels, order, strict=True)):
        ready = codes.view(np.uint8)  # as they are; -1 is 255 there
        if codes.size and codes.min() < 0:
            ready = np.minimum(ready, np.uint8(len(levels)))
        return Column(ready, (*order, MISSING))
    rank = {label: i for i, label in enumerate(order)}
    table = np.array([*(rank[label] for label in levels), len(levels)])
    size = len(levels) + 1
    table = table.astype(np.uint8 if size <= 256 else np.int64)
    return Column(table[codes], (*order, MISSING))


# ------------------------------------------------------------------------------------------------- sensitive features
def sensitive_columns(sensitive_features: Any, argument: str = "sensitive_features") -> dict[str, Any]:
    """Return the sensitive features as named raw columns, whatever they came as; ``argument`` is their name in messages."""
    one = argument.removesuffix("s")
    if sensitive_features is None:
        raise ValueError(
            f"{argument} is missing: pass the column (or a frame, or a dict of columns) that says which group each row "
            f"belongs to."
        )
    if isinstance(sensitive_features, str | bytes):
        raise TypeError(
            f"{argument} must hold one value per row; got the name {sensitive_features!r}. Pass the column itself, "
            f"such as X[{sensitive_features!r}]."
        )
    if isinstance(sensitive_features, Mapping):
        columns = [(str(name), column) for name, column in sensitive_features.items()]
    elif isinstance(sensitive_features, pd.DataFrame):
        columns = [(str(name), column) for name, column in sensitive_features.items()]
    elif nw.dependencies.is_into_dataframe(sensitive_features) or isinstance(sensitive_features, nw.DataFrame):
        frame = nw.from_native(sensitive_features, eager_only=True)
        columns = [(str(name), frame[name]) for name in frame.columns]
    elif isinstance(sensitive_features, np.ndarray) and sensitive_features.ndim == 2:
        columns = [(f"{one}_{i}", column) for i, column in enumerate(sensitive_features.T)]
    elif (
        isinstance(sensitive_features, list | tuple)
        and sensitive_features
        and isinstance(sensitive_features[0], list | tuple)
    ):
        widths = {len(row) if isinstance(row, list | tuple) else 1 for row in sensitive_features}
        if len(widths) > 1:
            raise ValueError(f"the rows of {argument} differ in length: {sorted(widths)} values.")
        rows = zip(*sensitive_features, strict=True)
        columns = [(f"{one}_{i}", list(column)) for i, column in enumerate(rows)]
    else:
        name = getattr(sensitive_features, "name", None)
        columns = [(one if name in (None, "") else str(name), sensitive_features)]
    if not columns:
        raise ValueError(f"{argument} has no columns; at least one is needed.")
    names = [name for name, _ in columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{argument} repeats the column name {listing(repeated)}; give each column its own name.")
    return dict(columns)


def encode_groups(
    columns: Mapping[str, Any],
    *,
    missing: str = "bucket",
    kind: str = "sensitive feature",
    counts: NDArray[np.int64] | None = None,
) -> dict[str, Column]:
    """Return the codes of each sensitive feature; say how many of its values are missing, or refuse them.

    Parameters
    ----------
    columns : mapping of str to array-like of shape (n_rows,)
        As :func:`sensitive_columns` gives them.
    missing : {"bucket", "raise"}
        What to do with rows without a value: count them as one group of their own, with a warning, or refuse.
    kind : str
        What the columns are called in messages.
    counts : ndarray of shape (n_rows,), optional
        How many rows each one stands for, where they were counted already.

    Returns
    -------
    dict of str to Column
    """
    if missing not in ("bucket", "raise"):
        raise ValueError(f"missing must be 'bucket' or 'raise'; got {missing!r}.")
    doing = "audited" if kind == "sensitive feature" else "kept"
    encoded = {}
    for name, values in columns.items():
        column = encode_column(values, f"{kind} {name!r}")
        if MISSING in column.levels:
            n_missing, n_rows = _n_missing(column, counts)
            if n_missing:
                text = f"{kind} {name!r} is missing in {n_missing} of {n_rows} rows"
                if missing == "raise":
                    raise ValueError(
                        f"{text}; fill them, drop the rows, or pass missing='bucket' to audit them as a group."
                    )
                warn(f"{text}; they are {doing} as the group {MISSING}.", MissingGroupsWarning, stacklevel=4)
        if len(column.levels) > MAX_NUMERIC_GROUPS:
            _check_group_count(f"{kind} {name!r}", column.occurring)
        encoded[name] = column
    return encoded


def _n_missing(column: Column, counts: NDArray[np.int64] | None) -> tuple[int, int]:
    """Return how many rows have no value in a column whose last level is the missing bucket, and how many there are."""
    gone = column.codes == len(column.levels) - 1
    if counts is None:
        return int(np.count_nonzero(gone)), gone.size
    return int(counts[gone].sum()), int(counts.sum())


def _check_group_count(name: str, levels: Sequence[Any]) -> None:
    numbers = [v for v in levels if isinstance(v, int | float) and not isinstance(v, bool)]
    check_group_count(name, len(numbers), len(levels))


def check_group_count(name: str, n_numbers: int, n_levels: int) -> None:
    """Refuse an attribute with so many values that it is a measurement or an identifier, not a grouping.

    Parameters
    ----------
    name : str
        What it is called in messages.
    n_numbers, n_levels : int
        How many of its distinct values are numbers, and how many there are, a missing one among them.
    """
    if n_numbers > MAX_NUMERIC_GROUPS and n_numbers >= n_levels - 1:
        raise ValueError(
            f"{name} has {n_numbers} distinct numbers (at most {MAX_NUMERIC_GROUPS}): it looks like a "
            f"measurement. Group it first, for example pandas.cut(x, [0, 25, 40, 120]); if the numbers are codes, pass them "
            f"as text."
        )
    if n_levels > MAX_GROUPS:
        raise ValueError(
            f"{name} has {n_levels} distinct values (at most {MAX_GROUPS}): it looks like an "
            f"identifier. Merge its values into groups."
        )


def column_list(columns: Any) -> list[str | int]:
    """Return column names or positions given one by one or as a list; refuse values given in their place."""
    listed = [columns] if isinstance(columns, str | int | np.integer) else columns
    if isinstance(listed, list | tuple) and listed and all(isinstance(c, str | int | np.integer) for c in listed):
        if not any(isinstance(c, bool) for c in listed):
            return [c if isinstance(c, str) else int(c) for c in listed]
    raise TypeError(
        f"sensitive_features takes column name(s) or position(s), a Series or DataFrame with the index of X, or None for "
        f"metadata routing; got {type(columns).__name__}. Bare values cannot be aligned with folds: wrap them as "
        f"pandas.Series(values, index=X.index)."
    )


def take_columns(X: Any, columns: Any) -> pd.DataFrame:
    """Return columns of a feature matrix as a frame with the index of X; a name is a name, a number a position.

    Parameters
    ----------
    X : DataFrame, array or sparse matrix of shape (n_rows, n_features)
        pandas, polars and pyarrow frames have names.
    columns : str, int or list of them
        What to take.

    Returns
    -------
    DataFrame
        Keeps the types of pandas columns.
    """
    wanted = column_list(columns)
    names = frame_columns(X)
    if names is None:
        named = [c for c in wanted if isinstance(c, str)]
        if named:
            raise ValueError(
                f"sensitive_features={named!r} are column names, but X is a {type(X).__name__} without names here. Pass "
                f"them as a Series with the index of X, by metadata routing (sensitive_features=None), or as positions."
            )
        array: Any = cast(Any, X).tocsc() if issparse(X) else np.asarray(X)
        _check_positions(wanted, array.shape[1])
        taken = {str(c): array[:, [c]].toarray().ravel() if issparse(X) else array[:, c] for c in wanted}
        return pd.DataFrame(taken)
    _check_positions([c for c in wanted if isinstance(c, int)], len(names))
    keys = [names[c] if isinstance(c, int) else c for c in wanted]
    absent = [c for c in keys if c not in names]
    if absent:
        raise ValueError(f"sensitive_features {listing(absent)} are not among the columns of X: {listing(names, 30)}.")
    if isinstance(X, pd.DataFrame):
        at = [names.index(c) for c in keys]
        return X.iloc[:, at].set_axis([str(c) for c in keys], axis=1)
    frame = nw.from_native(X, eager_only=True)
    return pd.DataFrame({str(c): pd.Series(frame[c].to_numpy()) for c in keys})


def drop_columns(X: Any, columns: Any) -> Any:
    """Return X without columns, as what it was; named columns that are not there are no error."""
    wanted, names = column_list(columns), frame_columns(X)
    if names is None:
        keep = [i for i in range(X.shape[1]) if i not in {c % X.shape[1] for c in wanted if isinstance(c, int)}]
        return X[:, keep]
    gone = {names[c] if isinstance(c, int) else c for c in wanted}
    if isinstance(X, pd.DataFrame):
        return X.loc[:, [c not in gone for c in names]]
    return nw.from_native(X, eager_only=True).drop(*gone, strict=False).to_native()


def frame_columns(X: Any) -> list[Any] | None:
    """Return the column names of a frame of any library; None for an array."""
    if isinstance(X, pd.DataFrame):
        return list(X.columns)
    if nw.dependencies.is_into_dataframe(X):
        return list(nw.from_native(X, eager_only=True).columns)
    return None


def _check_positions(positions: Sequence[Any], n_columns: int) -> None:
    outside = [c for c in positions if not -n_columns <= c < n_columns]
    if outside:
        raise ValueError(f"sensitive_features {listing(outside)} are positions, but X has {n_columns} columns.")


# ------------------------------------------------------------------------------------------------------------- labels
def encode_labels(
    y_true: Any, y_pred: Any, pos_label: Any = None, *, counts: NDArray[np.int64] | None = None
) -> Labels:
    """Return outcomes and decisions as 0/1, with 1 for ``pos_label``.

    The positive class is guessed only for labels in {0, 1}, {-1, 1} or booleans. With more than two labels a given
    ``pos_label`` is judged against all the others. ``counts``: as in :func:`encode_groups`.
    """
    named = {} if y_true is None else {"y_true": y_true}
    encoded = {name: _encode_label_column(values, name, counts) for name, values in {**named, "y_pred": y_pred}.items()}
    occurring = {name: column.occurring for name, column in encoded.items()}
    found = sort_labels(list(dict.fromkeys(label for labels in occurring.values() for label in labels)))
    if (
        pos_label is not None
        and len(found) > 2
        and len(occurring) == 2
        and not set(occurring["y_true"]) & set(occurring["y_pred"])
    ):
        raise ValueError(
            f"y_true holds {listing(occurring['y_true'])} and y_pred {listing(occurring['y_pred'])}: they share no label. Give "
            f"both the same encoding."
        )
    pos_label = _positive_label(found, as_scalar(pos_label), " and ".join(encoded))
    codes = {}
    for name, column in encoded.items():
        table = np.array([label == pos_label for label in column.levels], dtype=np.uint8)
        identity = np.array_equal(table, np.arange(table.size)) and column.codes.dtype == np.uint8
        codes[name] = column.codes if identity else table[column.codes]
    return Labels(codes.get("y_true"), codes["y_pred"], pos_label, tuple(found))


def encode_outcomes(y_true: Any, pos_label: Any = None) -> tuple[NDArray[np.uint8], Any]:
    """Return true labels as 0/1, with 1 for ``pos_label``, and that label; for scores, which come without decisions."""
    column = _encode_label_column(y_true, "y_true")
    pos_label = _positive_label(list(column.occurring), as_scalar(pos_label), "y_true")
    table = np.array([label == pos_label for label in column.levels], dtype=np.uint8)
    return table[column.codes], pos_label


def probability_column(probabilities: Any, classes: Any, pos_label: Any = None) -> NDArray[np.float64]:
    """Return the column of the positive label of a ``predict_proba``, picked by ``classes_`` and never by its place.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
        What ``predict_proba`` returned.
    classes : array-like of shape (n_classes,)
        The classifier's ``classes_``.
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> probability_column([[0.9, 0.1], [0.2, 0.8]], ["bad", "good"], "bad")
    array([0.9, 0.2])
    """
    table, known = np.asarray(probabilities), [as_scalar(label) for label in classes]
    if table.ndim != 2 or table.shape[1] != len(known):
        raise ValueError(
            f"predict_proba must return a column for each of classes_ {listing(known)}; got shape {table.shape}."
        )
    pos_label = _positive_label(known, as_scalar(pos_label), "classes_")
    if pos_label not in known:
        raise ValueError(f"pos_label={pos_label!r} is not among classes_ {listing(known)}: it has no probability.")
    return np.asarray(table[:, known.index(pos_label)], dtype=np.float64)


def _encode_label_column(values: Any, name: str, counts: NDArray[np.int64] | None = None) -> Column:
    column = encode_column(values, name)
    if MISSING in column.levels:
        n_missing, n_rows = _n_missing(column, counts)
        if n_missing:
            raise ValueError(
                f"{name} is missing in {n_missing} of {n_rows} rows; drop these rows (and those of the other "
                f"arguments)" + (", or pass y_true=None to audit selection rates only." if name == "y_true" else ".")
            )
        column = Column(column.codes, column.levels[:-1])
    if any(isinstance(v, float) and not v.is_integer() for v in column.levels):
        fractions = [v for v in column.occurring if isinstance(v, float) and not v.is_integer()]
    else:
        fractions = []
    if fractions:
        raise ValueError(
            f"{name} holds scores such as {fractions[0]!r}, where labels belong: pass the decisions, for example "
            f"(scores >= 0.5).astype(int)."
        )
    return column


def _positive_label(found: list[Any], pos_label: Any, where: str) -> Any:
    """Return the positive label: the given one if it occurs, else 1 (True) where that is beyond doubt."""
    if np.ndim(pos_label) or isinstance(pos_label, Mapping | set):
        raise ValueError(f"pos_label must be one label; got {pos_label!r}.")
    if pos_label is None:
        for pair in ((0, 1), (-1, 1)):
            if all(isinstance(label, bool | int | float) and label in pair for label in found):
                return True if found and all(isinstance(label, bool) for label in found) else 1
        if len(found) > 2:
            raise ValueError(
                f"{where} hold {len(found)} labels: {listing(found)}. Audits are of one decision: pass pos_label, "
                f"and it is judged against all the others."
            )
        raise ValueError(f"{where} hold the labels {listing(found)}; pass pos_label to say which one is positive.")
    if pos_label not in found:
        message = f"pos_label={pos_label!r} is not among the labels found in {where}: {listing(found)}"
        binary = (
            all(isinstance(label, bool | int | float) and label in (-1, 0, 1) for label in found) and pos_label == 1
        )
        if len(found) > 1 and not binary:
            raise ValueError(f"{message}.")
        if not binary:
            warn(f"{message}; every row counts as negative.", UserWarning, stacklevel=5)
    return next((label for label in found if label == pos_label), pos_label)


# ---------------------------------------------------------------------------------------------------------- alignment
def check_aligned(named: Mapping[str, Any]) -> int:
    """Return the number of rows; refuse unequal lengths, and pandas objects whose row ids differ.

    Parameters
    ----------
    named : mapping of str to array-like
        The arguments by name; None is skipped. Arrays and lists are positional; pandas objects must share their index.
    """
    present = {name: values for name, values in named.items() if values is not None}
    lengths = {name: _length(values, name) for name, values in present.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ValueError(f"all arguments must have one entry per row; got {said} rows.")
    n_rows = next(iter(lengths.values()))
    if n_rows == 0:
        raise ValueError(f"there are no rows: {', '.join(lengths)} are empty.")
    indexed = [(name, values.index) for name, values in present.items() if isinstance(values, pd.Series | pd.DataFrame)]
    for name, index in indexed[1:]:
        first, first_index = indexed[0]
        if index is not first_index and not index.equals(first_index):
            raise ValueError(
                f"the index of {name} differs from that of {first}, so rows cannot be matched. Align them by row id, for "
                f"example groups.loc[y_true.index], or pass arrays (.to_numpy()) to match them by position."
            )
    return n_rows


def _length(values: Any, name: str) -> int:
    if isinstance(values, str | bytes | Mapping | set | frozenset):
        raise TypeError(f"{name} must be a column of values, one per row; got {values!r:.80}.")
    if issparse(values):
        raise TypeError(f"{name} must be dense; got a sparse matrix. Pass {name}.toarray() or a plain column.")
    try:
        return len(values)
    except TypeError as error:
        raise TypeError(f"{name} must be a column with one value per row; got {type(values).__name__}.") from error
