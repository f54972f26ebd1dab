"""Rows by position, in pandas, polars, pyarrow and numpy: columns read, rows taken, cells written in their own type."""

from __future__ import annotations

from typing import Any, cast

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from sklearn_ethiclens._validation import frame_columns, listing

Positions = NDArray[np.intp]
_EXACT_FLOATS = 2.0**53  # from here on neighbouring whole numbers are one float


# ------------------------------------------------------------------------------------------------------------- reading
def as_rows(values: Any, name: str) -> Any:
    """Return what came as it is, lists as arrays; refuse a query that has no rows yet."""
    if hasattr(values, "collect") and not hasattr(values, "__len__"):
        raise TypeError(f"{name} is a {type(values).__name__}, which has no rows yet; pass {name}.collect().")
    if not isinstance(values, list | tuple):
        return values
    kinds = set(map(type, values))
    if kinds <= {int, float, bool} or all(isinstance(row, list | tuple | np.ndarray) for row in values):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)  # numpy would turn [30, "unknown"] into text
    array[:] = values
    return array


def n_columns(data: Any) -> int:
    """Return how many columns there are; one, for a Series or a flat array."""
    shape: tuple[int, ...] = getattr(data, "shape", (0,))
    return 1 if len(shape) < 2 else int(shape[1])


def position_of(column: Any, X: Any, argument: str) -> int:
    """Return where a column of X stands; a name is a name, a number a position."""
    names = frame_columns(X)
    if isinstance(column, bool) or not isinstance(column, str | int | np.integer):
        raise TypeError(f"{argument} takes the name or the position of a column of X; got {column!r}.")
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{argument}={column!r} is a column name, but X is a {type(X).__name__} without names; give the position, "
                f"or pass a frame."
            )
        if column not in names:
            raise ValueError(f"{argument}={column!r} is not among the columns of X: {listing(names, 30)}.")
        if names.count(column) > 1:
            raise ValueError(f"X has {names.count(column)} columns named {column!r}; give each its own name.")
        return names.index(column)
    width = n_columns(X)
    if not -width <= column < width:
        raise ValueError(f"{argument}={int(column)} is a column position, but X has {width} columns.")
    return int(column) % width


def column_at(data: Any, j: int = 0) -> Any:
    """Return one column by its position; of a Series or a flat array, itself."""
    if isinstance(data, pd.DataFrame):
        return data.iloc[:, j]
    if issparse(data):
        return cast(Any, data).tocsc()[:, [j]].toarray().ravel()
    if isinstance(data, np.ndarray):
        return data if data.ndim == 1 else data[:, j]
    if frame_columns(data) is not None:
        return nw.from_native(data, eager_only=True)[:, j].to_native()
    return data


def numbers(data: Any, j: int, name: str) -> NDArray[np.float64]:
    """Return a column as floats, NaN where missing; refuse what holds no numbers."""
    column = column_at(data, j)
    if isinstance(column, pd.Series | np.ndarray):
        kind, dtype = column.dtype.kind, column.dtype
        if isinstance(dtype, pd.SparseDtype):
            raise TypeError(f"{name} is sparse; make it dense first.")
    else:
        series = nw.from_native(column, series_only=True)
        dtype = series.dtype
        kind = "i" if dtype.is_integer() else "f" if dtype.is_numeric() else "O"
    if kind not in "iuf":
        raise TypeError(f"{name} must hold numbers; its type is {dtype}. Give it a numeric type first.")
    if isinstance(column, pd.Series):
        floats = column.to_numpy(dtype=float, na_value=np.nan)
    elif isinstance(column, np.ndarray):
        floats = column.astype(float)
    else:
        floats = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
    if kind in "iu" and (np.abs(floats) >= _EXACT_FLOATS).any():
        raise ValueError(f"{name} holds whole numbers of 2**53 and more, which cannot be computed with exactly.")
    if np.isinf(floats).any():
        raise ValueError(f"{name} holds infinite values; replace them first.")
    return floats


def gaps(data: Any, j: int) -> NDArray[np.bool_]:
    """Return which values of a column are missing; NaN counts, as None does."""
    column = column_at(data, j)
    if not isinstance(column, pd.Series | np.ndarray):
        series = nw.from_native(column, series_only=True)
        missing = series.is_null()
        if series.dtype.is_float():
            missing = missing | series.is_nan().fill_null(True)
        return np.asarray(missing.to_numpy(), dtype=bool)
    return np.asarray(pd.isna(column), dtype=bool)


def cells(data: Any, rows: Positions, j: int = 0) -> list[Any]:
    """Return some values of a column as plain objects."""
    column = take(column_at(data, j), rows)
    if isinstance(column, np.ndarray):
        return list(column.ravel().tolist())
    if isinstance(column, pd.Series | pd.api.extensions.ExtensionArray):
        return list(column.tolist())
    return list(nw.from_native(column, series_only=True).to_list())


def take(data: Any, rows: Positions) -> Any:
    """Return rows by position, as what the data is; a copy."""
    if isinstance(data, pd.DataFrame | pd.Series):
        return data.iloc[rows]
    if isinstance(data, pd.Index | pd.api.extensions.ExtensionArray):
        return data.take(rows)
    if isinstance(data, np.ndarray):
        return data[rows]
    if issparse(data):
        sparse = cast(Any, data)
        return sparse.tocsr()[rows].asformat(sparse.format)
    if frame_columns(data) is not None:
        return nw.from_native(data, eager_only=True)[rows.tolist()].to_native()
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(data, arrow.Array):
        return data.take(rows)
    return nw.from_native(data, series_only=True)[rows.tolist()].to_native()


def copied(data: Any) -> Any:
    """Return data that shares no memory that could be written to with the original; polars and pyarrow never do."""
    return data.copy() if hasattr(data, "copy") and not isinstance(data, str) else data


def row_labels(*columns: Any) -> pd.Index:
    """Return the index of the first pandas object, else the positions."""
    for data in columns:
        if isinstance(data, pd.DataFrame | pd.Series):
            return data.index
    first = next(data for data in columns if data is not None)
    return pd.RangeIndex(first.shape[0] if hasattr(first, "shape") else len(first))


# ------------------------------------------------------------------------------------------------------------- writing
def written(data: Any, rows: Positions, values: NDArray[Any] | None, name: str, j: int = 0) -> Any:
    """Return data with some values of a column replaced; index, types and all else stay, the original too.

    Parameters
    ----------
    data : frame, Series or array
        A flat one is its own column.
    rows : ndarray of shape (n_changed,)
        Positions.
    values : ndarray of shape (n_changed,) or None
        What they get; None makes them missing.
    name : str
        What the column is called in messages.
    j : int, default=0
        The column's position.

    Raises
    ------
    ValueError
        If the column's type cannot hold the values.
    TypeError
        If the container is none that can be written.
    """
    if rows.size == 0:
        return copied(data)
    if isinstance(data, pd.DataFrame):
        column: Any = _pandas_column(data.iloc[:, j], rows, values, name)
        frame = data.copy()
        frame.isetitem(j, column)
        return frame
    if isinstance(data, pd.Series):
        return _pandas_column(data, rows, values, name)
    if isinstance(data, pd.api.extensions.ExtensionArray):
        return _pandas_column(pd.Series(cast(Any, data)), rows, values, name).array
    if isinstance(data, np.ndarray):
        out = data.copy()
        at = rows if out.ndim == 1 else (rows, j)
        out[at] = _cast(values, out.dtype, name)
        return out
    if issparse(data):
        raise TypeError(
            f"{name} is sparse and cannot be written; pass X.toarray(), or inject a bias that moves no column."
        )
    column = column_at(data, j)
    new = _foreign_column(column, rows, values, name)
    if frame_columns(data) is None:
        return new
    table = nw.from_native(data, eager_only=True)
    series = nw.from_native(new, series_only=True).alias(table.columns[j])
    return table.with_columns(series).to_native()


def with_column(X: Any, name: str, values: NDArray[np.float64]) -> Any:
    """Return X with a column of floats more, as the last one."""
    if isinstance(X, pd.DataFrame):
        out = X.copy()
        out[name] = values
        return out
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.dtype.kind not in "fO":
            raise ValueError(
                f"X of type {X.dtype} and shape {X.shape} cannot hold a column of fractions; pass X.astype(float)."
            )
        return np.column_stack([X, values.astype(X.dtype)])
    if issparse(X):
        raise TypeError("X is sparse and cannot get a dense column; pass X.toarray().")
    frame = nw.from_native(X, eager_only=True)
    column = nw.new_series(name, values.tolist(), nw.Float64, backend=frame.implementation)
    return frame.with_columns(column).to_native()


def _pandas_column(series: pd.Series, rows: Positions, values: NDArray[Any] | None, name: str) -> pd.Series:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        array = series.to_numpy(copy=True)
        array[rows] = _cast(values, dtype, name, series.name)
        return pd.Series(array, index=series.index, name=series.name, dtype=dtype)
    extension: Any = series.array.copy()
    given: Any = dtype.na_value if values is None else _whole(values, dtype, name).tolist()
    try:
        extension[rows] = given
    except (TypeError, ValueError, NotImplementedError) as error:
        raise _cannot_hold(name, dtype, error) from error
    return pd.Series(extension, index=series.index, name=series.name, dtype=dtype)


def _foreign_column(column: Any, rows: Positions, values: NDArray[Any] | None, name: str) -> Any:
    """Return a polars or pyarrow column with some values replaced, of its own type."""
    polars, arrow = nw.dependencies.get_polars(), nw.dependencies.get_pyarrow()
    refusals: tuple[type[Exception], ...] = (TypeError, ValueError, OverflowError, NotImplementedError)
    series = nw.from_native(column, series_only=True)
    everything = series.to_list()
    if values is not None and series.dtype.is_integer():
        values = _whole(values, np.dtype(np.int64), name)
    new = [None] * rows.size if values is None else values.tolist()
    for row, value in zip(rows.tolist(), new, strict=True):
        everything[row] = value
    if polars is not None and isinstance(column, polars.Series):
        try:
            return polars.Series(column.name, everything, dtype=column.dtype, strict=True)
        except (*refusals, polars.exceptions.PolarsError) as error:
            raise _cannot_hold(name, column.dtype, error) from error
    if arrow is not None and isinstance(column, arrow.ChunkedArray | arrow.Array):
        try:
            return arrow.chunked_array([arrow.array(everything, type=column.type)])
        except refusals as error:
            raise _cannot_hold(name, column.type, error) from error
    raise TypeError(f"{name} must be a pandas, polars or pyarrow column, or an array; got {type(column).__name__}.")


def _cast(values: NDArray[Any] | None, dtype: np.dtype[Any], name: str, column: Any = None) -> Any:
    """Return values in a numpy type that holds them exactly (floats: as well as they can)."""
    if values is None:
        if dtype.kind in "fc":
            return np.nan
        if dtype.kind in "mM":
            return np.array("NaT", dtype=dtype)
        if dtype.kind == "O":
            return None
        raise ValueError(f"{name} of type {dtype} cannot hold missing values; pass {_nullable(dtype, column)}.")
    if dtype.kind == "O":
        return values
    given = _whole(values, dtype, name)
    try:
        cast = given.astype(dtype)
    except (TypeError, ValueError) as error:
        raise _cannot_hold(name, dtype, error) from error
    if dtype.kind not in "fc" and not np.array_equal(cast, given):
        raise _cannot_hold(name, dtype, f"{given[cast != given][0]!r} does not fit")
    return cast


def _nullable(dtype: np.dtype[Any], column: Any) -> str:
    """Return, as code, the same data in a type that has missing values."""
    if column is None:
        return f"X.astype({'float' if dtype.kind in 'iu' else 'object'})"
    bits = str(dtype.itemsize * 8)
    nullable = {"b": "boolean", "i": "Int" + bits, "u": "UInt" + bits}.get(dtype.kind, "object")
    return f"it as the nullable type {nullable!r}, for example X.astype({{{column!r}: {nullable!r}}})"


def _whole(values: NDArray[Any], dtype: Any, name: str) -> NDArray[Any]:
    """Return numbers meant for a column of whole numbers as such; refuse fractions."""
    if values.dtype.kind == "O":
        values = np.array(values.tolist()) if len(set(map(type, values.tolist()))) == 1 else values
    if dtype.kind not in "iu" or values.dtype.kind != "f":
        return values
    fractions = values[~np.isfinite(values) | (values != np.round(values))]
    if fractions.size:
        raise ValueError(
            f"{name} of type {dtype} cannot hold {fractions[0].item():.6g}: it holds whole numbers. Cast it to float first, or "
            f"choose an effect that keeps numbers whole."
        )
    return values.astype(np.int64)


def _cannot_hold(name: str, dtype: Any, error: Any) -> ValueError:
    return ValueError(f"{name} of type {dtype} cannot hold the new values: {error}.")
