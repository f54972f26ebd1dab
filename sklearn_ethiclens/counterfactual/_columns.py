"""Columns of a feature matrix, read as codes and written back in their own type: pandas, polars, pyarrow and numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._validation import (
    MAX_GROUPS,
    MISSING,
    Column,
    column_list,
    encode_column,
    frame_columns,
    listing,
)

Mask = NDArray[np.bool_]
Changes = list[tuple[Mask, Any]]  # rows, and the value (or one value per row) they get


@dataclass(frozen=True)
class Attribute:
    """A sensitive feature as it was seen in ``fit``.

    Parameters
    ----------
    name : str or int
        What it is called; the position, for an array.
    columns : tuple of int
        Where it stands: one column, or those of a one-hot block.
    one_hot : bool
        Whether it is a block. Its values are then the names (or positions) of its columns.
    values : tuple
        Values seen, in order; of an ordered category in its own order.
    measured : bool
        Numbers that are no codes: any number is a possible target.
    countable : bool
        Whether there are few enough values to go through all of them.
    """

    name: Any
    columns: tuple[int, ...]
    one_hot: bool
    values: tuple[Any, ...]
    measured: bool = False
    countable: bool = True

    def known(self) -> str:
        """Return the values in words."""
        if self.measured:
            return f"{len(self.values)} numbers from {self.values[0]!r} to {self.values[-1]!r}"
        return listing(list(self.values), 30)


# ------------------------------------------------------------------------------------------------------------- finding
def find_attributes(sensitive_features: Any, X: Any, max_values: int) -> dict[Any, Attribute]:
    """Return the sensitive features by name, with the values that X holds.

    Parameters
    ----------
    sensitive_features : None, str, int, list of them, or mapping of name to them
        As :class:`CounterfactualProbe` takes them.
    X : frame or array of shape (n_rows, n_columns)
        Where they stand.
    max_values : int
        Above it, numbers are a measurement.
    """
    if sensitive_features is None:
        return {}
    names = frame_columns(X)
    found: dict[Any, Attribute] = {}
    if isinstance(sensitive_features, Mapping):
        wanted = [(key, block) for key, block in sensitive_features.items()]
    else:
        wanted = [(None, column) for column in column_list(sensitive_features)]
    taken: dict[int, Any] = {}
    for key, block in wanted:
        one_hot = not isinstance(block, str | int | np.integer)
        columns = tuple(_position(column, names, X.shape[1]) for column in column_list(block))
        if one_hot and len(columns) < 2:
            raise ValueError(f"the one-hot block {key!r} needs two columns at least; got {list(block)!r}.")
        labels = [names[j] if names is not None else j for j in columns]
        name = labels[0] if key is None else key
        for j, label in zip(columns, labels, strict=True):
            if j in taken:
                raise ValueError(f"sensitive_features name the column {label!r} twice.")
            taken[j] = name
        if one_hot:
            found[name] = Attribute(name, columns, True, tuple(labels))
            read(X, found[name])
        else:
            found[name] = _plain(name, columns[0], X, max_values)
    return found


def _position(column: str | int, names: list[Any] | None, n_columns: int) -> int:
    """Return where a column stands; a name is a name, a number a position."""
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{column!r} is a column name, but X is an array without names; give its position, or pass a frame."
            )
        if column not in names:
            raise ValueError(f"{column!r} is not among the columns of X: {listing(names, 30)}.")
        if names.count(column) > 1:
            raise ValueError(f"X has {names.count(column)} columns named {column!r}; give each its own name.")
        return names.index(column)
    if not -n_columns <= column < n_columns:
        raise ValueError(f"{column!r} is a column position, but X has {n_columns} columns.")
    return column % n_columns


def _plain(name: Any, j: int, X: Any, max_values: int) -> Attribute:
    column = encode_column(column_at(X, j), f"column {name!r}")
    values = [v for v in column.occurring if v is not MISSING]
    numbers = bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    many = numbers and len(values) > max_values
    if not numbers and len(values) > MAX_GROUPS:
        raise ValueError(
            f"column {name!r} has {len(values)} distinct values (at most {MAX_GROUPS}): it looks like an identifier."
        )
    fractions = numbers and any(isinstance(v, float) and not v.is_integer() for v in values)
    order = _own_order(X, j)
    if order is not None:
        values.sort(key=lambda v: order.get(v, len(order)))
    return Attribute(name, (j,), False, tuple(values), measured=many or fractions, countable=not many)


def _own_order(X: Any, j: int) -> dict[Any, int] | None:
    """Return the order that a column's type gives its values; None where it gives none."""
    if isinstance(X, pd.DataFrame):
        dtype = X.dtypes.iloc[j]
        ordered = isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
        return {v: i for i, v in enumerate(dtype.categories)} if ordered else None
    if frame_columns(X) is None:
        return None
    dtype = nw.from_native(X, eager_only=True)[:, j].dtype
    return {v: i for i, v in enumerate(dtype.categories)} if isinstance(dtype, nw.Enum) else None


# ------------------------------------------------------------------------------------------------------------- reading
def column_at(X: Any, j: int) -> Any:
    """Return one column by its position."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, j]
    return X[:, j] if frame_columns(X) is None else nw.from_native(X, eager_only=True)[:, j]


def read(X: Any, attribute: Attribute) -> Column:
    """Return the codes and levels of a sensitive feature; a row of a block without a 1 is missing."""
    if not attribute.one_hot:
        return encode_column(column_at(X, attribute.columns[0]), f"column {attribute.name!r}")
    matrix = np.column_stack([_indicator(X, j, attribute) for j in attribute.columns])
    gaps = np.isnan(matrix).any(axis=1)
    twice = int(np.count_nonzero(np.nansum(matrix, axis=1) > 1))
    if twice:
        raise ValueError(f"{twice} rows have more than one 1 in the one-hot block {attribute.name!r}.")
    codes = np.where(gaps | ~(matrix == 1).any(axis=1), len(attribute.columns), (matrix == 1).argmax(axis=1))
    return Column(codes, (*attribute.values, MISSING))


def _indicator(X: Any, j: int, attribute: Attribute) -> NDArray[np.float64]:
    column = encode_column(column_at(X, j), f"a column of the one-hot block {attribute.name!r}")
    strange = [v for v in column.occurring if v is not MISSING and v not in (0, 1)]
    if strange:
        label = attribute.values[attribute.columns.index(j)]
        raise ValueError(
            f"column {label!r} of the one-hot block {attribute.name!r} must hold 0 and 1 only; got {strange[0]!r}."
        )
    table = np.array([np.nan if level is MISSING else 0.0 if level not in (0, 1) else level for level in column.levels])
    return table.astype(float)[column.codes]


def positions(column: Column, known: Sequence[Any]) -> NDArray[np.int64]:
    """Return the position of each row's value among known ones; -1 where missing, -2 where it is none of them."""
    rank = {value: i for i, value in enumerate(known)}
    table = np.array([-1 if level is MISSING else rank.get(level, -2) for level in column.levels], dtype=np.int64)
    return table[column.codes]


def is_numeric(column: Column) -> bool:
    """Tell whether a column holds numbers (booleans are none)."""
    levels = [v for v in column.levels if v is not MISSING]
    return bool(levels) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels)


def as_floats(column: Column) -> NDArray[np.float64]:
    """Return a column of numbers as floats, NaN where missing."""
    table = np.array([np.nan if level is MISSING else float(level) for level in column.levels])
    return table[column.codes]


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Return rows by position, as what X is."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if frame_columns(X) is None:
        return X[rows]
    return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()


# ------------------------------------------------------------------------------------------------------------- writing
def change(X: Any, updates: Mapping[int, Changes]) -> Any:
    """Return X with some values of some columns replaced; index, types and all else stay, X itself too.

    Parameters
    ----------
    X : frame or array of shape (n_rows, n_columns)
        pandas, polars, pyarrow or numpy.
    updates : mapping of int to list of (mask, values)
        By column position: the rows, and the value or the array of values they get.

    Raises
    ------
    ValueError
        If a column's type cannot hold a value.
    """
    if not updates:
        return X
    if isinstance(X, pd.DataFrame):
        out = X.copy(deep=False)
        for j, changes in updates.items():
            series = X.iloc[:, j]
            new = _pandas_values(series, changes)
            column: Any = pd.Series(new, index=X.index, name=series.name, dtype=series.dtype, copy=False)
            out.isetitem(j, column)
        return out
    names = frame_columns(X)
    if names is None:
        out = X.copy()
        for j, changes in updates.items():
            for mask, values in changes:
                out[mask, j] = _cast(values, out.dtype, j)
        return out
    frame = nw.from_native(X, eager_only=True)
    for j, changes in updates.items():
        values = frame[names[j]].to_list()
        for mask, given in changes:
            rows = np.flatnonzero(mask).tolist()
            many = given.tolist() if isinstance(given, np.ndarray) else [given] * len(rows)
            if frame[names[j]].dtype == nw.Date:
                many = [value.date() if isinstance(value, datetime) else value for value in many]
            for row, value in zip(rows, many, strict=True):
                values[row] = value
        frame = nw.from_native(_with_column(frame.to_native(), names[j], j, values), eager_only=True)
    return frame.to_native()


def _with_column(native: Any, name: str, j: int, values: list[Any]) -> Any:
    """Return a polars or pyarrow frame with a column replaced by values of its own type."""
    polars, pyarrow = nw.dependencies.get_polars(), nw.dependencies.get_pyarrow()
    refusals: tuple[type[Exception], ...] = (TypeError, ValueError, OverflowError, NotImplementedError)
    if polars is not None and isinstance(native, polars.DataFrame):
        try:
            return native.with_columns(polars.Series(name, values, dtype=native.schema[name], strict=True))
        except (*refusals, polars.exceptions.PolarsError) as error:
            raise _cannot_hold(name, error) from error
    if pyarrow is not None and isinstance(native, pyarrow.Table):
        field = native.schema.field(j)
        try:
            return native.set_column(j, field, pyarrow.array(values, type=field.type))
        except refusals as error:
            raise _cannot_hold(name, error) from error
    raise TypeError(f"X must be a pandas, polars or pyarrow frame, or an array; got {type(native).__name__}.")


def _pandas_values(series: pd.Series, changes: Changes) -> Any:
    """Return the values of a column after changes, in its own type."""
    dtype, name = series.dtype, series.name
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.int64)
        for mask, values in changes:
            given = values if isinstance(values, np.ndarray) else np.array([values], dtype=object)
            new = dtype.categories.get_indexer(pd.Index(given))
            if (new < 0).any():
                raise ValueError(
                    f"column {name!r} cannot hold {given[new < 0][0]!r}; its categories are "
                    f"{listing(list(dtype.categories), 30)}."
                )
            codes[mask] = new if isinstance(values, np.ndarray) else new[0]
        return pd.Categorical.from_codes(codes, dtype=dtype)
    if isinstance(dtype, np.dtype):
        array = series.to_numpy(copy=True)
        for mask, values in changes:
            array[mask] = _cast(values, dtype, name)
        return array
    extension: Any = series.array.copy()
    for mask, values in changes:
        try:
            extension[mask] = values.tolist() if isinstance(values, np.ndarray) else values
        except (TypeError, ValueError, NotImplementedError) as error:
            raise _cannot_hold(name, error) from error
    return extension


def _cast(values: Any, dtype: np.dtype[Any], name: Any) -> Any:
    """Return values in a numpy type that holds them exactly (floats: as well as they can)."""
    if dtype.kind == "O":
        return values
    given = np.asarray(values)
    if given.dtype.kind == "O":
        given = np.array(given.tolist())
    try:
        cast = given.astype(dtype)
    except (TypeError, ValueError) as error:
        raise _cannot_hold(name, error) from error
    if dtype.kind not in "fmM" and not np.array_equal(cast, given):
        bad = given[cast != given][0] if given.ndim else given[()]
        raise ValueError(f"column {name!r} of type {dtype} cannot hold {bad.item()!r}.")
    return cast


def _cannot_hold(name: Any, error: Exception) -> ValueError:
    return ValueError(f"column {name!r} cannot hold the new values: {error}")
