"""The strategies: what else moves when a sensitive feature is set to another value, each with what it assumes.

A strategy is one entry of ``STRATEGIES``: its words, and a class whose ``fit`` learns from the rows of
:meth:`CounterfactualProbe.fit` and whose ``move`` returns the changes of the other columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._validation import MISSING, Column, encode_column, listing
from sklearn_ethiclens.counterfactual._columns import (
    Attribute,
    Changes,
    Mask,
    as_floats,
    column_at,
    is_numeric,
    positions,
)
from sklearn_ethiclens.inference._paired import row_uniforms

__all__ = ["STRATEGIES", "Flip", "Strategy"]

_KEPT_QUANTILES = 10_000  # of a number in a group; beyond, order statistics at evenly spaced shares
_MAX_CATEGORIES = 255  # that scikit-learn's gradient boosting takes as categories; more are read as ordered codes
_ADJUST_STREAM = 1 << 20
_ONE_THREAD = 20_000  # rows below which boosting's threads cost more than they save: 70 times more beside other work

Floats = NDArray[np.float64]
Moves = list[tuple[Mask, Any]]  # rows, and the value of the sensitive feature they get


@dataclass(frozen=True)
class Context:
    """What a strategy learns from: rows, sensitive features, and the columns that may move."""

    X: Any
    names: Sequence[Any]
    attributes: Mapping[Any, Attribute]
    columns: Mapping[Any, Column]
    features: tuple[int, ...]
    descendants: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Flip:
    """Nothing else moves."""

    @classmethod
    def fit(cls, context: Context) -> Flip:
        """Learn nothing."""
        return cls()

    def move(self, X: Any, attribute: Attribute, column: Column, moves: Moves) -> dict[int, Changes]:
        """Return no further changes."""
        return {}


# ----------------------------------------------------------------------------------------------------------- transport
@dataclass(frozen=True)
class Transport:
    """Each feature moves to the counterpart of its value in the other group.

    Numbers keep their rank within the group (a tie is broken by a number of the row's own); other values stay where the
    other group has as many of them, and else move to what it has more of: a maximal coupling.
    """

    features: tuple[int, ...]
    ranks: Mapping[Any, Mapping[int, tuple[Floats, ...]]]  # attribute -> numeric feature -> sorted values by group
    shares: Mapping[Any, Mapping[int, tuple[tuple[Any, ...], Floats]]]  # attribute -> other feature -> levels, by group
    seed: int

    @classmethod
    def fit(cls, context: Context) -> Transport:
        """Learn the distribution of each feature in each group."""
        ranks: dict[Any, dict[int, tuple[Floats, ...]]] = {name: {} for name in context.attributes}
        shares: dict[Any, dict[int, tuple[tuple[Any, ...], Floats]]] = {name: {} for name in context.attributes}
        codes = {name: positions(context.columns[name], a.values) for name, a in context.attributes.items()}
        for name, attribute in context.attributes.items():
            if not attribute.countable:
                raise ValueError(
                    f"strategy='transport' needs groups, but {name!r} has {attribute.known()}; cut it into bands first."
                )
        for j in context.features:
            feature = encode_column(column_at(context.X, j), f"column {context.names[j]!r}")
            numbers = as_floats(feature) if is_numeric(feature) else None
            for name, attribute in context.attributes.items():
                n_groups = len(attribute.values)
                if numbers is not None:
                    ranks[name][j] = tuple(_sorted_sample(numbers[codes[name] == g]) for g in range(n_groups))
                    continue
                levels = tuple(v for v in feature.levels if v is not MISSING)
                at = positions(feature, levels)
                used = (at >= 0) & (codes[name] >= 0)
                table = np.bincount(codes[name][used] * len(levels) + at[used], minlength=n_groups * len(levels))
                counts = table.reshape(n_groups, len(levels)).astype(float)
                shares[name][j] = levels, counts / np.maximum(counts.sum(1, keepdims=True), 1.0)
        return cls(context.features, ranks, shares, context.seed)

    def move(self, X: Any, attribute: Attribute, column: Column, moves: Moves) -> dict[int, Changes]:
        """Return the changes of the features of the rows that change group."""
        group = positions(column, attribute.values)
        encoded = {j: encode_column(column_at(X, j), f"column {j}") for j in self.features}
        rows = _content(column, encoded.values())
        updates: dict[int, Changes] = {}
        for stream, j in enumerate(self.features):
            uniform = row_uniforms(rows, self.seed, stream)
            changes: Changes = []
            for mask, value in moves:
                if value not in attribute.values:
                    raise ValueError(
                        f"strategy='transport' has not seen {attribute.name!r} = {value!r}; known are {attribute.known()}."
                    )
                target = attribute.values.index(value)
                for source in np.unique(group[mask & (group >= 0)]).tolist():
                    at = np.flatnonzero(mask & (group == source))
                    moved, values = self._counterparts(attribute.name, j, encoded[j], at, source, target, uniform[at])
                    if moved.any():
                        changed = np.zeros(mask.size, dtype=bool)
                        changed[at[moved]] = True
                        changes.append((changed, values[moved]))
            if changes:
                updates[j] = changes
        return updates

    def _counterparts(
        self, name: Any, j: int, feature: Column, at: NDArray[Any], source: int, target: int, uniform: Floats
    ) -> tuple[Mask, NDArray[Any]]:
        """Return which of the rows ``at`` move, and their values in the target group."""
        if j in self.ranks[name]:
            numbers = as_floats(feature)[at] if is_numeric(feature) else np.full(at.size, np.nan)
            moved = counterpart_numbers(numbers, self.ranks[name][j][source], self.ranks[name][j][target], uniform)
            return (moved != numbers) & ~np.isnan(moved), moved
        levels, shares = self.shares[name][j]
        codes = positions(feature, levels)[at]
        coupled = couple(codes, shares[source], shares[target], uniform)
        values = np.empty(len(levels), dtype=object)
        values[:] = levels
        return coupled != codes, values[coupled]


def _sorted_sample(values: Floats) -> Floats:
    values = np.sort(values[~np.isnan(values)])
    if values.size > _KEPT_QUANTILES:
        shares = (np.arange(_KEPT_QUANTILES) + 0.5) / _KEPT_QUANTILES
        values = values[(shares * values.size).astype(np.intp)]
    return values


def counterpart_numbers(values: Floats, source: Floats, target: Floats, uniform: Floats) -> Floats:
    """Return numbers at the same rank of another sample; a tie's share of ranks is entered at ``uniform``.

    Examples
    --------
    >>> import numpy as np
    >>> counterpart_numbers(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([10.0, 30.0]), np.array([0.5, 0.5]))
    array([10., 30.])
    """
    if not source.size or not target.size:
        return values
    low, high = np.searchsorted(source, values, "left"), np.searchsorted(source, values, "right")
    rank = (low + uniform * (high - low)) / source.size
    index = np.clip(np.ceil(rank * target.size) - 1, 0, target.size - 1).astype(np.intp)
    return np.where(np.isnan(values), np.nan, target[index])


def couple(codes: NDArray[Any], source: Floats, target: Floats, uniform: Floats) -> NDArray[Any]:
    """Return codes of the target distribution, as many as possible left as they are (a maximal coupling).

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Values drawn from ``source``; negative ones (missing, unknown) stay.
    source, target : ndarray of shape (n_levels,)
        Shares of the levels.
    uniform : ndarray of shape (n_rows,)
        What decides, in [0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> couple(np.zeros(4, int), np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0.1, 0.4, 0.6, 0.9])).tolist()
    [0, 0, 1, 1]
    """
    excess = np.maximum(target - source, 0.0)
    if not excess.sum() or not source.sum():
        return codes
    stay = np.ones(source.size)
    np.divide(np.minimum(source, target), source, out=stay, where=source > 0)
    kept = np.where(codes >= 0, stay[codes], 1.0)
    leaves = uniform >= kept
    again = np.clip((uniform - kept) / np.where(leaves, 1 - kept, 1.0), 0.0, 1.0)
    steps = np.cumsum(excess / excess.sum())
    new = np.minimum(np.searchsorted(steps, again, "right"), np.flatnonzero(excess)[-1])
    return np.where(leaves, new, codes)


# -------------------------------------------------------------------------------------------------------------- adjust
@dataclass(frozen=True)
class Adjust:
    """Declared descendants are predicted anew from the changed feature and all that does not descend from it.

    A number keeps its own residual; another value keeps its place in the cumulated class probabilities (drawn within its
    class by a number of the row's own).
    """

    inputs: tuple[int, ...]
    levels: Mapping[int, tuple[Any, ...]]  # of the inputs that are no numbers
    models: Mapping[Any, Mapping[int, tuple[Any, tuple[Any, ...], tuple[float, float]]]] = field(repr=False)
    seed: int = 0

    @classmethod
    def fit(cls, context: Context) -> Adjust:
        """Learn each descendant from each sensitive feature and the remaining columns."""
        inputs = tuple(j for j in context.features if j not in context.descendants)
        levels: dict[int, tuple[Any, ...]] = {}
        for j in inputs:
            feature = encode_column(column_at(context.X, j), f"column {context.names[j]!r}")
            if not is_numeric(feature):
                levels[j] = tuple(v for v in feature.levels if v is not MISSING)
        models: dict[Any, dict[int, tuple[Any, tuple[Any, ...], tuple[float, float]]]] = {}
        for name, attribute in context.attributes.items():
            given = _attribute_input(context.columns[name], attribute)
            design = np.column_stack([given, _design(context.X, inputs, levels)])
            categorical = [0] if attribute.countable and len(attribute.values) <= _MAX_CATEGORIES else []
            categorical += [i for i, j in enumerate(inputs, 1) if j in levels and len(levels[j]) <= _MAX_CATEGORIES]
            with _threads(len(design)):
                models[name] = {
                    j: _descendant_model(context, j, design, categorical, ~np.isnan(given)) for j in context.descendants
                }
        return cls(inputs, levels, models, context.seed)

    def move(self, X: Any, attribute: Attribute, column: Column, moves: Moves) -> dict[int, Changes]:
        """Return the changes of the descendants of the rows that change."""
        with _threads(X.shape[0]):
            return self._move(X, attribute, column, moves)

    def _move(self, X: Any, attribute: Attribute, column: Column, moves: Moves) -> dict[int, Changes]:
        updates: dict[int, Changes] = {}
        design = np.column_stack([_attribute_input(column, attribute), _design(X, self.inputs, self.levels)])
        encoded = {
            j: encode_column(column_at(X, j), f"column {j}") for j in (*self.inputs, *self.models[attribute.name])
        }
        rows = _content(column, encoded.values())
        for stream, (j, (model, classes, span)) in enumerate(self.models[attribute.name].items()):
            uniform = row_uniforms(rows, self.seed, _ADJUST_STREAM + stream)
            changes: Changes = []
            for mask, value in moves:
                at = np.flatnonzero(mask)
                after = design[at].copy()
                after[:, 0] = attribute.values.index(value) if attribute.countable else value
                if classes:
                    codes = positions(encoded[j], classes)[at]
                    before, later = _cumulated(model, design[at]), _cumulated(model, after)
                    new = _same_place(codes, before, later, uniform[at])
                    objects = np.empty(len(classes), dtype=object)
                    objects[:] = classes
                    moved, values = new != codes, objects[new]
                else:
                    numbers = as_floats(encoded[j])[at]
                    values = np.clip(numbers + model.predict(after) - model.predict(design[at]), *span)
                    values = np.round(values) if _whole(encoded[j]) else values
                    moved = (values != numbers) & ~np.isnan(values)
                if moved.any():
                    changed = np.zeros(mask.size, dtype=bool)
                    changed[at[moved]] = True
                    changes.append((changed, values[moved]))
            if changes:
                updates[j] = changes
        return updates


def _threads(n_rows: int) -> AbstractContextManager[Any]:
    """Return a context in which few rows are learnt from by one thread."""
    limits: AbstractContextManager[Any] = import_module("threadpoolctl").threadpool_limits(
        1 if n_rows < _ONE_THREAD else None, user_api="openmp"
    )
    return limits


def _descendant_model(
    context: Context, j: int, design: Floats, categorical: list[int], known: Mask
) -> tuple[Any, tuple[Any, ...], tuple[float, float]]:
    """Return the fitted model of a descendant, its classes (none for a number) and the range of a number."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    feature = encode_column(column_at(context.X, j), f"column {context.names[j]!r}")
    settings: dict[str, Any] = {"max_iter": 50, "learning_rate": 0.2, "max_leaf_nodes": 15, "min_samples_leaf": 20}
    settings |= {"categorical_features": categorical or None, "random_state": context.seed % (1 << 32)}
    if is_numeric(feature):
        numbers = as_floats(feature)
        used = known & ~np.isnan(numbers)
        if not used.any():
            raise ValueError(f"descendant {context.names[j]!r} has no row to learn from.")
        model = HistGradientBoostingRegressor(**settings).fit(design[used], numbers[used])
        return model, (), (float(numbers[used].min()), float(numbers[used].max()))
    levels = tuple(v for v in feature.levels if v is not MISSING)
    codes = positions(feature, levels)
    used = known & (codes >= 0)
    occurring = np.unique(codes[used])
    if occurring.size < 2:
        raise ValueError(f"descendant {context.names[j]!r} has {occurring.size} value(s); nothing can be re-predicted.")
    classes = tuple(levels[i] for i in occurring)
    model = HistGradientBoostingClassifier(**settings).fit(design[used], np.searchsorted(occurring, codes[used]))
    return model, classes, (0.0, 0.0)


def _attribute_input(column: Column, attribute: Attribute) -> Floats:
    """Return a sensitive feature as a model takes it: codes of its values, or its numbers; NaN where unknown."""
    if not attribute.countable:
        return as_floats(column)
    codes = positions(column, attribute.values)
    return np.where(codes >= 0, codes, np.nan)


def _design(X: Any, inputs: Sequence[int], levels: Mapping[int, tuple[Any, ...]]) -> Floats:
    """Return columns as floats: numbers as they are, other values as codes; NaN where missing or unknown."""
    parts = []
    for j in inputs:
        feature = encode_column(column_at(X, j), f"column {j}")
        if j in levels:
            codes = positions(feature, levels[j])
            parts.append(np.where(codes >= 0, codes, np.nan))
        else:
            parts.append(as_floats(feature))
    return np.column_stack(parts) if parts else np.empty((X.shape[0], 0))


def _cumulated(model: Any, design: Floats) -> Floats:
    """Return the cumulated class probabilities, from 0 to 1."""
    steps = np.cumsum(model.predict_proba(design), axis=1)
    return np.column_stack([np.zeros(len(steps)), steps[:, :-1], np.ones(len(steps))])


def _same_place(codes: NDArray[Any], before: Floats, after: Floats, uniform: Floats) -> NDArray[Any]:
    """Return the class at the same cumulated probability; unknown ones stay."""
    known = np.maximum(codes, 0)
    rows = np.arange(codes.size)
    low, high = before[rows, known], before[rows, known + 1]
    place = low + uniform * (high - low)
    new = np.count_nonzero(after[:, 1:-1] <= place[:, None], axis=1)
    same = (after[rows, known] <= place) & (place < after[rows, known + 1])
    return np.where((codes < 0) | same, codes, new)


def _whole(feature: Column) -> bool:
    return all(v is MISSING or float(v).is_integer() for v in feature.levels)


def _content(column: Column, others: Any) -> pd.DataFrame:
    """Return what identifies a row: the labels of its columns, as codes and levels so that text is hashed once."""
    parts = {str(i): _categorical(one) for i, one in enumerate((column, *others))}
    return pd.DataFrame(parts)


def _categorical(column: Column) -> Any:
    if is_numeric(column):
        return as_floats(column)
    return pd.Categorical.from_codes(column.codes.astype(np.int64), pd.Index([repr(v) for v in column.levels]))


# ----------------------------------------------------------------------------------------------------------- catalogue
@dataclass(frozen=True)
class Strategy:
    """One entry of ``STRATEGIES``."""

    name: str
    summary: str
    assumes: str
    kind: Any = field(repr=False)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy(
                "flip",
                "do(A = a): the attribute is set, everything else stays",
                "Assumes that the model's use of the attribute itself is the question. Features that depend on it in life "
                "(proxies) stay as they are, so what comes through them is not seen.",
                Flip,
            ),
            Strategy(
                "transport",
                "each row is mapped to its counterpart in the other group (the idea of FlipTest, Black et al. 2020)",
                "Assumes that people of the same rank in their groups are counterparts, feature by feature: dependence "
                "between features is not kept, and no cause is claimed. Other sensitive features stay.",
                Transport,
            ),
            Strategy(
                "adjust",
                "declared descendants are predicted anew from the attribute and all other features",
                "Assumes that the declared descendants are all that the attribute changes, that nothing unmeasured moves "
                "both, and that a row keeps its residual. What was not declared stays.",
                Adjust,
            ),
        )
    }
)
"""The strategies by name."""


def get_strategy(name: str) -> Strategy:
    """Return a strategy; refuse one there is not."""
    if name not in STRATEGIES:
        raise ValueError(f"strategy must be one of {listing(list(STRATEGIES))}; got {name!r}.")
    return STRATEGIES[name]
