"""Features of people -> a space with distances: columns read, put into an order of their own, scaled.

The order is the reason why permuting rows changes nothing, to the last byte: all work is done on rows sorted by a key of
their content, and only the labels of the result speak of the rows as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from sklearn_ethiclens._validation import MISSING, check_aligned, encode_column, listing

METRICS = ("mixed", "euclidean", "mahalanobis")
SCALES = ("range", "robust", "standard", None)
_DEFAULT_SCALE = {"mixed": "range", "euclidean": "standard", "mahalanobis": None}
_CLIPPED = (0.025, 0.975)  # scale="robust": numbers beyond these quantiles are set to them

Metric = str | Callable[[NDArray[Any], NDArray[Any]], Any]


@dataclass(frozen=True, eq=False)
class Features:
    """Columns as read: numbers as floats (NaN = missing), categories as codes (-1 = missing)."""

    numeric: NDArray[np.float64]  # (n_numeric, n_rows)
    codes: NDArray[np.int32]  # (n_categorical, n_rows)
    numeric_names: tuple[Any, ...]
    categorical_names: tuple[Any, ...]
    index: pd.Index

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.index)

    def take(self, rows: NDArray[Any]) -> Features:
        """Return the features of some rows."""
        return Features(
            np.ascontiguousarray(self.numeric[:, rows]),
            np.ascontiguousarray(self.codes[:, rows]),
            self.numeric_names,
            self.categorical_names,
            self.index[rows],
        )


@dataclass(frozen=True, eq=False)
class Space:
    """Rows with a distance: scaled numbers and codes of categories, feature by feature.

    Attributes
    ----------
    numeric : ndarray of shape (n_numeric, n_rows)
        Scaled; NaN = missing (only where ``power`` is 1).
    codes : ndarray of int of shape (n_categorical, n_rows)
        -1 = missing.
    power : {1, 2}
        1: the mean over features of absolute differences (Gower); 2: the root of the sum of squared differences.
    missing : bool
        Whether any value is.
    function : callable or None
        A distance of blocks that takes the place of the formula.
    """

    numeric: NDArray[np.float64]
    codes: NDArray[np.int32]
    power: int
    missing: bool
    function: Callable[[NDArray[Any], NDArray[Any]], Any] | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.numeric) + len(self.codes)

    def take(self, rows: NDArray[Any]) -> Space:
        """Return the space of some rows."""
        numeric, codes = self.numeric[:, rows], self.codes[:, rows]
        return Space(
            np.ascontiguousarray(numeric), np.ascontiguousarray(codes), self.power, self.missing, self.function
        )

    def between(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distance of each pair of rows; the bytes do not depend on what other pairs are asked for.

        Infinite where two rows have no feature in common.
        """
        total = np.zeros(first.size)
        common = np.full(first.size, self.n_features) if self.missing else None
        for values in self.numeric:
            gap = values[first]
            gap -= values[second]
            np.multiply(gap, gap, out=gap) if self.power == 2 else np.abs(gap, out=gap)
            if common is not None:
                absent = np.isnan(gap)
                common -= absent
                gap[absent] = 0.0
            total += gap
        for codes in self.codes:
            one, other = codes[first], codes[second]
            differs = one != other
            if common is not None:
                absent = (one < 0) | (other < 0)
                common -= absent
                differs &= ~absent
            total += differs
        if self.power == 2:
            return np.sqrt(total)
        if common is None:
            return total / self.n_features
        return np.divide(total, common, out=np.full(first.size, np.inf), where=common > 0)

    def block(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distances of all rows of one block to all of another, by the caller's function."""
        assert self.function is not None
        result = np.asarray(self.function(self.numeric[:, first].T, self.numeric[:, second].T), dtype=float)
        if result.shape != (first.size, second.size):
            raise ValueError(
                f"metric(A, B) must return distances of shape (len(A), len(B)) = {(first.size, second.size)}; got shape "
                f"{result.shape}."
            )
        if np.isnan(result).any():
            raise ValueError("metric(A, B) returned NaN; distances must be numbers.")
        return result


# -------------------------------------------------------------------------------------------------------------- reading
def read_features(X: Any, categorical_features: Sequence[Any] | None = None) -> Features:
    """Return the columns of a frame (pandas, polars, pyarrow) or of a 2-d array.

    Numbers, booleans and dates are numeric, all else is categorical; ``categorical_features`` names further columns (or
    positions) whose numbers are codes.
    """
    columns, index = _columns(X)
    forced = _categorical(categorical_features, [name for name, _ in columns])
    numeric, codes, numeric_names, categorical_names = [], [], [], []
    for position, (name, column) in enumerate(columns):
        values = None if position in forced else _as_numbers(column, name)
        if values is None:
            encoded = encode_column(column, f"feature {name!r}")
            labels = encoded.codes.astype(np.int32)
            if MISSING in encoded.levels:
                labels[labels == encoded.levels.index(MISSING)] = -1
            codes.append(labels)
            categorical_names.append(name)
        else:
            numeric.append(values)
            numeric_names.append(name)
    n_rows = len(index)
    return Features(
        np.array(numeric).reshape(len(numeric), n_rows),
        np.array(codes, dtype=np.int32).reshape(len(codes), n_rows),
        tuple(numeric_names),
        tuple(categorical_names),
        index,
    )


def _columns(X: Any) -> tuple[list[tuple[Any, Any]], pd.Index]:
    if issparse(X):
        raise TypeError(
            "X is sparse; distances between people need dense features. Pass X.toarray(), or fewer columns (for example "
            "TruncatedSVD(50).fit_transform(X))."
        )
    named: list[tuple[Any, Any]]
    if isinstance(X, pd.DataFrame):
        named, index = [(name, X.iloc[:, i]) for i, name in enumerate(X.columns)], X.index
    elif nw.dependencies.is_into_dataframe(X) or isinstance(X, nw.DataFrame):
        frame = nw.from_native(X, eager_only=True)
        named, index = [(name, pd.Series(frame[name].to_numpy())) for name in frame.columns], pd.RangeIndex(len(frame))
    else:
        array = np.asarray(X, dtype=None if hasattr(X, "dtype") or not _holds_text(X) else object)
        if array.ndim != 2:
            raise ValueError(
                f"X must have a row for each person and a column for each feature; got shape {array.shape}. For a single "
                f"feature pass X.reshape(-1, 1) or a frame."
            )
        named, index = [(i, pd.Series(array[:, i])) for i in range(array.shape[1])], pd.RangeIndex(len(array))
    if not named:
        raise ValueError("X has no columns; distances need at least one feature.")
    return named, index


def _holds_text(X: Any) -> bool:
    return any(isinstance(value, str) for row in X for value in (row if isinstance(row, list | tuple) else ()))


def _categorical(wanted: Sequence[Any] | None, names: list[Any]) -> set[int]:
    if wanted is None:
        return set()
    if isinstance(wanted, str):
        raise TypeError(f"categorical_features must be a list of columns; got the text {wanted!r}: pass [{wanted!r}].")
    absent = [name for name in wanted if name not in names]
    if absent:
        raise ValueError(
            f"categorical_features {listing(absent)} are not among the columns of X: {listing(names, 30)}."
        )
    return {i for i, name in enumerate(names) if name in set(wanted)}


def _as_numbers(column: pd.Series, name: Any) -> NDArray[np.float64] | None:
    """Return a column as floats, or None if it holds categories."""
    if column.dtype == object:
        column = column.infer_objects()
    kind = "O" if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype.kind
    if kind in "mM":
        moments = column.to_numpy(dtype="datetime64[ns]" if kind == "M" else "timedelta64[ns]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(float))
    if kind not in "biuf":
        if kind == "c":
            raise TypeError(f"feature {name!r} holds complex numbers, which have no order; split it into two columns.")
        return None
    values = column.to_numpy(dtype=float, na_value=np.nan)
    if np.isinf(values).any():
        raise ValueError(f"feature {name!r} holds infinite values; replace them, or mark them as missing (NaN).")
    return values + 0.0  # a copy, and -0. becomes 0.


def read_scores(y_score: Any, name: str = "y_score") -> NDArray[np.float64]:
    """Return scores or decisions in [0, 1] as floats."""
    column = pd.Series(encode_or_take(y_score, name))
    values = _as_numbers(column, name)
    if values is None:
        raise TypeError(f"{name} must be scores in [0, 1] or decisions 0 and 1; got values such as {column.iloc[0]!r}.")
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise ValueError(f"{name} is missing in {n_missing} of {values.size} rows; drop these rows from all arguments.")
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"{name} must be scores in [0, 1] or decisions 0 and 1; got values from {low:g} to {high:g}. Recode decisions, for "
            f"example ({name} == 1).astype(int), and map other scores into [0, 1]."
        )
    return values


def encode_or_take(values: Any, name: str) -> Any:
    """Return one column as something pandas makes a Series of."""
    if isinstance(values, pd.DataFrame) or (getattr(values, "ndim", 1) == 2 and hasattr(values, "shape")):
        if values.shape[1] != 1:
            raise ValueError(
                f"{name} must be one column; got shape {values.shape}. Of predict_proba, pass the column of the positive "
                f"class."
            )
        return values.iloc[:, 0] if isinstance(values, pd.DataFrame) else np.asarray(values)[:, 0]
    if isinstance(values, pd.Series):
        return values
    return np.asarray(values)


# ---------------------------------------------------------------------------------------------------------------- order
def content_order(features: Features, *columns: NDArray[Any]) -> NDArray[np.intp]:
    """Return an order of the rows that depends on their content alone.

    Rows of equal features stand together, sorted by ``columns`` and then by their label. Which rows come first is arbitrary,
    and not related to the values.
    """
    return np.lexsort((_label_rank(features.index), *reversed(columns), _content_key(features)))


def _content_key(features: Features) -> NDArray[np.uint64]:
    key = np.full(features.n_rows, 0x9E3779B97F4A7C15, dtype=np.uint64)
    words = [np.where(np.isnan(column), np.nan, column).view(np.uint64) for column in features.numeric]
    words += [column.astype(np.int64).view(np.uint64) for column in features.codes]
    for word in words:  # the finalizer of splitmix64, feature by feature
        key ^= word
        key ^= key >> np.uint64(30)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(27)
        key *= np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key


def _label_rank(index: pd.Index) -> NDArray[np.intp]:
    rank = np.arange(len(index))
    if isinstance(index, pd.RangeIndex) and index.step > 0:
        return rank
    try:
        order = index.argsort(kind="stable") if not isinstance(index, pd.MultiIndex) else index.argsort()
    except TypeError:  # labels of several types have no order
        return rank
    rank[order] = np.arange(len(index))
    return rank


def starts_of_equal_rows(features: Features) -> NDArray[np.intp]:
    """Return where runs of rows with equal features start, for rows in :func:`content_order`."""
    differs = np.zeros(features.n_rows, dtype=bool)
    differs[0] = True
    for column in features.numeric:
        differs[1:] |= (column[1:] != column[:-1]) & ~(np.isnan(column[1:]) & np.isnan(column[:-1]))
    for codes in features.codes:
        differs[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(differs)


# ---------------------------------------------------------------------------------------------------------------- space
def check_metric(metric: Any, scale: Any) -> tuple[str, str | None]:
    """Return the name of the metric and the scale it is used with."""
    if not callable(metric) and metric not in METRICS:
        raise ValueError(
            f"metric must be one of {listing(METRICS)} or a callable of two blocks of rows; got {metric!r}."
        )
    if scale == "auto":
        return (_name_of(metric), "standard") if callable(metric) else (metric, _DEFAULT_SCALE[metric])
    if scale not in SCALES:
        raise ValueError(f"scale must be 'auto' or one of {listing(SCALES)}; got {scale!r}.")
    return _name_of(metric), scale


def _name_of(metric: Any) -> str:
    return metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)


def make_space(features: Features, metric: Metric, scale: str | None) -> Space:
    """Return the scaled features with their distance; refuse, by name, what the metric cannot take."""
    missing = np.array([np.isnan(values).any() for values in features.numeric], dtype=bool)
    if metric != "mixed":
        words = repr(metric) if isinstance(metric, str) else "a callable"
        if features.categorical_names:
            raise ValueError(
                f"metric={words} needs numbers, but these features are categories: {listing(features.categorical_names)}. "
                f"Use metric='mixed', or encode them."
            )
        if missing.any():
            named = [name for name, gap in zip(features.numeric_names, missing, strict=True) if gap]
            raise ValueError(
                f"metric={words} cannot use missing values, which these features have: {listing(named)}. Use metric='mixed', "
                f"which leaves them out pair by pair, or impute them."
            )
    numeric = np.array([_scaled(values, scale) for values in features.numeric]).reshape(features.numeric.shape)
    if metric == "mahalanobis":
        numeric = _whitened(numeric)
    absent = bool(missing.any() or (features.codes < 0).any())
    return Space(numeric, features.codes, 1 if metric == "mixed" else 2, absent, metric if callable(metric) else None)


def _scaled(values: NDArray[np.float64], scale: str | None) -> NDArray[np.float64]:
    """Return a feature without its centre, divided by its spread; a feature that does not vary is 0."""
    present = values[~np.isnan(values)]
    if not present.size or present.min() == present.max():
        return values - values
    if scale == "robust":
        low, high = np.quantile(present, _CLIPPED)
        if low < high:
            values, present = np.clip(values, low, high), np.clip(present, low, high)
    centre = present.mean()
    if scale is None:
        return values - centre
    return (values - centre) / (present.std() if scale == "standard" else np.ptp(present))


def _whitened(numeric: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return features whose covariance is the identity; directions without variance are left out."""
    spread = numeric.std(axis=1)
    unit = numeric / np.where(spread > 0, spread, 1.0)[:, None]
    variances, directions = np.linalg.eigh(unit @ unit.T / max(1, unit.shape[1] - 1))
    kept = variances > len(variances) * np.finfo(float).eps * max(variances[-1], 0.0) * 100
    if not kept.any():
        return np.zeros_like(numeric[:1])
    return np.ascontiguousarray((directions[:, kept] / np.sqrt(variances[kept])).T @ unit)


def check_rows(**named: Any) -> int:
    """Return the number of rows of aligned arguments; at least two are needed for a pair."""
    sparse = [name for name, values in named.items() if issparse(values)]
    if sparse and sparse[0] != "X":
        raise TypeError(f"{sparse[0]} must be dense; got a sparse matrix.")
    n_rows = check_aligned({name: values for name, values in named.items() if not issparse(values)})
    if n_rows < 2:
        raise ValueError(f"at least two rows are needed to compare people; got {n_rows}.")
    return n_rows
