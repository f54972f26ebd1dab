"""What displays of a table have in common: how they are made, and of a classifier's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import pandas as pd

from sklearn_ethiclens.plotting import _common as common


class TableDisplay:
    """A display of a table; subclasses name the columns that are needed, and where a table with them comes from."""

    _columns: ClassVar[Sequence[str]]
    _source: ClassVar[str]

    def __init__(self, table: pd.DataFrame, *, confidence_level: float = 0.95, name: str | None = None) -> None:
        common.check_columns(table, self._columns, self._source)
        self.table = table
        self.confidence_level = confidence_level
        self.name = name


class DecisionsDisplay(TableDisplay):
    """A display of decisions, which has ``from_predictions(y_true, y_pred, *, sensitive_features, name, ...)``."""

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, sensitive_features: Any, **kwargs: Any) -> Self:
        """Return the drawn display of predictions."""
        raise NotImplementedError  # by each display: they differ in what they take

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sensitive_features: Any, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Return the drawn display of a fitted classifier's decisions.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict``.
        X : array-like or frame of shape (n_rows, n_features)
            Features, of rows it was not fitted on.
        y : array-like of shape (n_rows,) or None
            True labels, as in :meth:`from_predictions`.
        sensitive_features : str, int or list of them, or as in :meth:`from_predictions`
            Columns of X, or the groups themselves.
        name : str, optional
            Default: the name of the estimator's class.
        **kwargs
            As in :meth:`from_predictions`.

        Returns
        -------
        display
        """
        groups = common.groups_of_rows(X, y, sensitive_features)
        name = type(estimator).__name__ if name is None else name
        decisions = common.decisions_of(estimator, X)
        return cls.from_predictions(y, decisions, sensitive_features=groups, name=name, **kwargs)
