"""Reliability curves by group, with intervals and the number of rows behind each point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sklearn_ethiclens._assess_scores import reliability_of, reliability_table
from sklearn_ethiclens._validation import probability_column, show
from sklearn_ethiclens.plotting import _common as common
from sklearn_ethiclens.plotting._base import TableDisplay
from sklearn_ethiclens.report._words import label

_COLUMNS = ("bin_low", "bin_high", "n", "mean_score", "observed_rate", "low", "high")
_FACET_HISTOGRAM = 0.3  # height of the fullest bin of a small panel


class CalibrationDisplay(TableDisplay):
    """Reliability curves by group: how often what was scored came true, with Wilson intervals, and how many rows a bin has.

    Made by :meth:`from_audit`, :meth:`from_predictions` or :meth:`from_estimator`; the data are in the attributes, and
    :meth:`plot` draws them again. Up to six groups share one pair of axes; more have a small panel each. It is not
    scikit-learn's class of the same name, which knows no groups and no intervals.

    Parameters
    ----------
    table : DataFrame
        As :func:`sklearn_ethiclens.reliability_table` returns it. Bins without rows have no point.
    confidence_level : float, default=0.95
        Of the intervals.
    name : str, optional
        What is shown, such as the name of the model; stands in the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were given, or the first panel.
    axes_ : ndarray of matplotlib Axes
        The panels: curves and histogram, or one a group.
    figure_ : matplotlib Figure
    lines_ : dict of group to matplotlib Line2D
        Curves; an intersection is a tuple.
    intervals_ : dict of group to matplotlib LineCollection
    histogram_ : dict of group to matplotlib BarContainer

    See Also
    --------
    sklearn_ethiclens.reliability_table : The numbers.
    sklearn.calibration.CalibrationDisplay : One curve of all rows.

    Examples
    --------
    >>> display = CalibrationDisplay.from_predictions(
    ...     [1, 0, 1, 1], [0.2, 0.3, 0.8, 1.0], sensitive_features={"sex": ["f", "f", "m", "m"]}, n_bins=2
    ... )
    >>> display.table[["sex", "bin_low", "n", "mean_score", "observed_rate"]]
      sex  bin_low  n  mean_score  observed_rate
    0   f      0.0  2        0.25            0.5
    1   f      0.5  0         NaN            NaN
    2   m      0.0  0         NaN            NaN
    3   m      0.5  2        0.90            1.0
    """

    _columns, _source = _COLUMNS, "reliability_table(...)"

    # ---------------------------------------------------------------------------------------------------------- making
    @classmethod
    def from_audit(
        cls,
        audit: Any,
        *,
        attribute: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Return the drawn display of an audit that was given scores.

        Parameters
        ----------
        audit : Audit
            Of labels and scores.
        attribute : str or tuple of str, optional
            The sensitive feature or intersection; must be named where there are several.
        n_bins, strategy
            As in :func:`sklearn_ethiclens.reliability_table`. An audit read back from JSON has ten bins of equal width.
        name : str, optional
            What is shown; stands in the title.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        **kwargs
            Properties of the curves, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ValueError
            If there are no scores or no labels, or scores are no probabilities.
        """
        common.check_plain_audit(audit)
        tallies = {label(key): tally for key, tally in audit.marginals().items()}
        tally = tallies[common.one_attribute(attribute, list(tallies), cls.__name__)]
        level = audit.policy.confidence_level
        table = reliability_of(tally, n_bins=n_bins, strategy=strategy, confidence_level=level)
        return cls(table, confidence_level=level, name=name).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        confidence_level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Return the drawn display of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            True labels.
        y_score : array-like of shape (n_rows,)
            Probabilities of the positive label, in [0, 1].
        sensitive_features : Series, array, dict of arrays or frame with n_rows rows
            The group of each row; several columns are read as their intersection.
        sample_weight, n_bins, strategy, pos_label, confidence_level
            As in :func:`sklearn_ethiclens.reliability_table`.
        name, ax, **kwargs
            As in :meth:`from_audit`.

        Returns
        -------
        CalibrationDisplay
        """
        table = reliability_table(
            y_true,
            y_score,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            n_bins=n_bins,
            strategy=strategy,
            pos_label=pos_label,
            confidence_level=confidence_level,
        )
        return cls(table, confidence_level=confidence_level, name=name).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Return the drawn display of a fitted classifier's probabilities.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``.
        X : array-like or frame of shape (n_rows, n_features)
            Features, of rows it was not fitted on.
        y : array-like of shape (n_rows,)
            True labels.
        sensitive_features : str, int or list of them, or as in :meth:`from_predictions`
            Columns of X, or the groups themselves.
        pos_label : label, optional
            The positive label; guessed only for {0, 1}, {-1, 1} and booleans.
        name : str, optional
            Default: the name of the estimator's class.
        **kwargs
            As in :meth:`from_predictions`.

        Returns
        -------
        CalibrationDisplay
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, which {type(estimator).__name__} has not. Put it into "
                f"sklearn.calibration.CalibratedClassifierCV."
            )
        groups = common.groups_of_rows(X, y, sensitive_features)
        scores = probability_column(estimator.predict_proba(X), estimator.classes_, pos_label)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, scores, sensitive_features=groups, pos_label=pos_label, name=name, **kwargs)

    # --------------------------------------------------------------------------------------------------------- drawing
    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> CalibrationDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure. Axes of a grid make room for several panels.
        name : str, optional
            In place of the display's own.
        **kwargs
            Properties of the curves, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        groups = self._groups()
        names = common.short_labels(groups, common.LABEL if len(groups) <= len(common.SERIES) else 20)
        labels = [f"{said} (n={int(rows['n'].sum())})" for said, rows in zip(names, groups.values(), strict=True)]
        self.lines_: dict[Any, Any] = {}
        self.intervals_: dict[Any, Any] = {}
        self.histogram_: dict[Any, Any] = {}
        name = self.name if name is None else name
        draw = self._draw_together if len(groups) <= len(common.SERIES) else self._draw_apart
        draw(ax, groups, labels, name, kwargs)
        self.figure_ = self.ax_.figure
        return self

    @property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive features: the columns of the table before the bins."""
        columns = list(self.table.columns)
        return tuple(columns[: columns.index("bin_low")])

    def _groups(self) -> dict[Any, pd.DataFrame]:
        """Return the rows of each group, in the order of the table; an attribute's value is a key, or a tuple of them."""
        if not self.attributes:
            return {"all rows": self.table}
        values = [self.table[name].tolist() for name in self.attributes]
        keys = list(zip(*values, strict=True))
        places: dict[str, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(repr(key), []).append(place)
        rows = {}
        for found in places.values():
            key = keys[found[0]]
            rows[key[0] if len(key) == 1 else key] = self.table.iloc[found]
        return rows

    def _draw_together(
        self, ax: Any, groups: Mapping[Any, pd.DataFrame], labels: list[str], name: str | None, kwargs: Any
    ) -> None:
        self.ax_, panels = common.grid_of_axes(ax, (2, 1), (6.4, 6.6), sharex=True, height_ratios=(3, 1))
        curves, histogram = panels[:, 0]
        self.axes_ = panels[:, 0]
        curves.plot([0, 1], [0, 1], color="0.35", linewidth=0.9, zorder=1)
        for (group, rows), said, (color, marker, line) in zip(groups.items(), labels, common.SERIES, strict=False):
            self._draw_curve(curves, group, rows, said, color, marker, line, kwargs)
        share = 0.9 / len(groups)
        for k, ((group, rows), (color, _, _)) in enumerate(zip(groups.items(), common.SERIES, strict=False)):
            width = (rows["bin_high"] - rows["bin_low"]) * share
            left = rows["bin_low"] + (0.05 / share + k) * width
            self.histogram_[group] = histogram.bar(left, rows["n"], width, align="edge", color=color, linewidth=0)
        curves.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        level = common.percent(self.confidence_level)
        curves.set_ylabel(f"share that came true, with {level} interval", fontsize="small", **common.PLAIN)
        histogram.set_ylabel("rows", fontsize="small")
        histogram.set_xlabel("mean score of the bin; line: as scored", fontsize="small")
        for panel in self.axes_:
            panel.tick_params(labelsize="small")
            panel.spines[["top", "right"]].set_visible(False)
        common.set_title(curves, self._title(), name)
        columns = 2 if max(map(len, labels)) < 28 else 1
        common.set_legend(histogram, list(self.lines_.values()), columns=columns)

    def _draw_apart(
        self, ax: Any, groups: Mapping[Any, pd.DataFrame], labels: list[str], name: str | None, kwargs: Any
    ) -> None:
        self.ax_, panels = common.grid_of_facets(ax, len(groups))
        used = common.dress_facets(panels, labels, "mean score; grey: rows", "came true")
        self.axes_ = np.array(used, dtype=object)
        color, marker, line = common.SERIES[0]
        for panel, (group, rows) in zip(used, groups.items(), strict=True):
            panel.plot([0, 1], [0, 1], color="0.35", linewidth=0.8, zorder=1)
            self._draw_curve(panel, group, rows, None, color, marker, line, {"markersize": 3.5, **kwargs})
            height = _FACET_HISTOGRAM * rows["n"] / max(1, rows["n"].max())
            width = rows["bin_high"] - rows["bin_low"]
            self.histogram_[group] = panel.bar(
                rows["bin_low"], height, width, align="edge", color="0.85", edgecolor="white", linewidth=0.4, zorder=0.5
            )
            panel.spines[["top", "right"]].set_visible(False)
        used[0].set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        common.set_facets_title(self.ax_, used[0], ax is None, self._title(), name)

    def _draw_curve(
        self, ax: Any, group: Any, rows: pd.DataFrame, said: str | None, color: str, marker: str, line: Any, kwargs: Any
    ) -> None:
        filled = rows[rows["n"] > 0]
        x = filled["mean_score"].to_numpy(dtype=float)
        style = common.point_style(
            kwargs,
            color=color,
            marker=marker,
            markersize=5.5,
            linestyle=line,
            linewidth=1.2,
            clip_on=False,
            zorder=3,
            label=said,
        )
        (self.lines_[group],) = ax.plot(x, filled["observed_rate"].to_numpy(dtype=float), **style)
        low, high = (filled[end].to_numpy(dtype=float) for end in ("low", "high"))
        self.intervals_[group] = ax.vlines(x, low, high, color=color, linewidth=1.1, alpha=0.7, zorder=2)

    def _title(self) -> str:
        return f"calibration by {label(tuple(self.attributes))}" if self.attributes else "calibration"

    def __repr__(self) -> str:
        by = f" by {show(tuple(self.attributes))}" if self.attributes else ""
        return f"CalibrationDisplay({int(self.table['n'].sum())} rows{by})"
