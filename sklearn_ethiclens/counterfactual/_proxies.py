"""Proxies: how well a sensitive feature can be read from the features beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._validation import MISSING, encode_column
from sklearn_ethiclens.counterfactual._columns import Attribute, as_floats, column_at, is_numeric, positions, take_rows
from sklearn_ethiclens.inference._paired import subsample

ALL = "all features"
_MAX_ROWS = 5_000
_FOLDS = 3


def find_proxies(
    X: Any, names: Sequence[Any], attribute: Attribute, codes: NDArray[Any], seed: int
) -> tuple[Mapping[str, Any], ...]:
    """Return how well each feature, and all together, predict a sensitive feature, the strongest first.

    Parameters
    ----------
    X : frame or array of shape (n_rows, n_columns)
        Rows; at most 5,000 of them are used, drawn with the seed.
    names : sequence of length n_columns
        What the columns are called.
    attribute : Attribute
        The sensitive feature; its own columns are left out.
    codes : ndarray of int of shape (n_rows,)
        The position of each row's value; negative where there is none.
    seed : int
        Seed of the rows and of the folds.

    Returns
    -------
    tuple of dict
        ``attribute, feature, balanced_accuracy, chance``: of decision trees, for all features of a forest, out of fold.
        Chance is 1 over the number of values. Empty where fewer than two values have rows enough.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    rows = np.flatnonzero(codes >= 0)
    rows = rows[subsample(rows.size, _MAX_ROWS, seed)]
    sizes = np.bincount(codes[rows], minlength=len(attribute.values))
    rows = rows[sizes[codes[rows]] >= 2 * _FOLDS]
    y = codes[rows]
    n_values = np.unique(y).size
    features = [j for j in range(len(names)) if j not in attribute.columns]
    if n_values < 2 or not features:
        return ()
    taken = take_rows(X, rows)
    matrix = np.column_stack([_numbers(taken, j, names[j]) for j in features])
    state = seed % (1 << 32)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=state)
    tree = DecisionTreeClassifier(min_samples_leaf=5, class_weight="balanced", random_state=state)
    forest = RandomForestClassifier(50, min_samples_leaf=5, class_weight="balanced", random_state=state)

    def row(feature: str, model: Any, design: NDArray[np.float64]) -> dict[str, Any]:
        accuracy = balanced_accuracy_score(y, cross_val_predict(model, design, y, cv=folds))
        return {
            "attribute": str(attribute.name),
            "feature": feature,
            "balanced_accuracy": float(accuracy),
            "chance": 1.0 / n_values,
        }

    single = [row(str(names[j]), tree, matrix[:, [i]]) for i, j in enumerate(features)]
    single.sort(key=lambda found: -found["balanced_accuracy"])
    together = [row(ALL, forest, matrix)] if len(features) > 1 else []
    return tuple(together + single)


def _numbers(X: Any, j: int, name: Any) -> NDArray[np.float64]:
    """Return a column as numbers; other values as codes by how common they are, missing ones as a code of their own."""
    column = encode_column(column_at(X, j), f"column {name!r}")
    if is_numeric(column):
        values = as_floats(column)
        values = np.clip(values, -1e30, 1e30)
        gaps = np.isnan(values)
        return np.where(gaps, (values[~gaps].min() if (~gaps).any() else 0.0) - 1.0, values)
    levels = [v for v in column.levels if v is not MISSING]
    return positions(column, levels).astype(float)
