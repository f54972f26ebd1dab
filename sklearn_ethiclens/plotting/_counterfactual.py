"""Flip rates: how often a decision changes when a sensitive feature is set to another value, and in which direction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sklearn_ethiclens.inference._intervals import wilson_interval
from sklearn_ethiclens.plotting import _common as common
from sklearn_ethiclens.plotting._base import TableDisplay
from sklearn_ethiclens.policy import FLIP_BANDS
from sklearn_ethiclens.report._words import label

_COLUMNS = (
    "attribute",
    "source",
    "target",
    "n",
    "flip_rate",
    "flip_low",
    "flip_high",
    "to_positive",
    "to_negative",
    "off_support",
    "band",
)
# Column -> what it is called, colour, marker, and where in its row it stands.
_SERIES: Mapping[str, tuple[str, str, str, float]] = {
    "flip_rate": ("change", "#333333", "o", -0.24),
    "to_positive": ("turn positive", common.BLUE, "^", 0.02),
    "to_negative": ("turn negative", common.VERMILLION, "v", 0.26),
}


class CounterfactualDisplay(TableDisplay):
    """Flip rates of each value set to another: all, to positive and to negative, with intervals and the bands.

    Made by :meth:`from_audit`, or by ``CounterfactualAudit.plot``; the data are in the attributes, and :meth:`plot` draws them
    again. Beside each row stand the number of rows changed, the share of them off support, and the band.

    Parameters
    ----------
    table : DataFrame
        As :meth:`sklearn_ethiclens.CounterfactualAudit.frame` returns it.
    confidence_level : float, default=0.95
        Of the intervals.
    name : str, optional
        What is shown, such as the name of the model; stands in the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib Line2D
        By "flip_rate", "to_positive" and "to_negative".
    intervals_ : dict of str to matplotlib LineCollection
        Wilson intervals, by the same names.
    directions : DataFrame
        The Wilson intervals of both directions: ``to_positive_low, to_positive_high, to_negative_low, to_negative_high``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn_ethiclens.counterfactual import CounterfactualProbe
    >>> X = pd.DataFrame({"SEX": np.repeat([1, 2], 100)})
    >>> model = DecisionTreeClassifier().fit(X, X["SEX"] == 1)  # decides by the attribute alone
    >>> display = CounterfactualDisplay.from_audit(CounterfactualProbe("SEX").fit(X).audit(model, X, pos_label=True))
    >>> display.table[["source", "target", "to_positive", "to_negative"]]
       source  target  to_positive  to_negative
    0       1       2          0.0          1.0
    1       2       1          1.0          0.0
    """

    _columns, _source = _COLUMNS, "CounterfactualAudit.frame()"

    def __init__(self, table: pd.DataFrame, *, confidence_level: float = 0.95, name: str | None = None) -> None:
        super().__init__(table, confidence_level=confidence_level, name=name)
        n = table["n"].to_numpy(dtype=float)
        ends: dict[str, Any] = {}
        for column in ("to_positive", "to_negative"):
            counts = np.round(table[column].to_numpy(dtype=float) * n)
            bounds = wilson_interval(counts, n, confidence_level=confidence_level)
            ends |= {f"{column}_low": bounds.low, f"{column}_high": bounds.high}
        self.directions = pd.DataFrame(ends, index=table.index)

    @classmethod
    def from_audit(
        cls, audit: Any, *, attribute: Any = None, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> CounterfactualDisplay:
        """Return the drawn display of a counterfactual audit.

        Parameters
        ----------
        audit : CounterfactualAudit
            What to show.
        attribute : str or list of str, optional
            Sensitive features; default: all.
        name : str, optional
            What is shown; stands in the title.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure, as high as its rows need.
        **kwargs
            Properties of the points, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        CounterfactualDisplay
        """
        way_out = "Audits of decisions have DisparityDisplay."
        common.check_audit(audit, "pairs", "a CounterfactualAudit, as CounterfactualProbe.audit returns it", way_out)
        frame = audit.frame()
        asked = common.chosen_attributes(attribute, list(dict.fromkeys(frame["attribute"])))
        table = frame[frame["attribute"].isin(asked)].reset_index(drop=True)
        level = audit.parameters["confidence_level"]
        return cls(table, confidence_level=level, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> CounterfactualDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure, as high as its rows need.
        name : str, optional
            In place of the display's own.
        **kwargs
            Properties of the points, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        CounterfactualDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        rows = common.Rows(self._blocks(), per_row=0.44)
        self.ax_, panels = common.grid_of_axes(ax, (1, 1), (rows.width + 6.2, rows.height + 0.5))
        panel, self.figure_ = panels[0, 0], self.ax_.figure
        found = common.records(self.table)
        texts = [_texts(row) for row in found]
        letters, form = rows.write([panel], texts, given=ax is not None)
        self.points_: dict[str, Any] = {}
        self.intervals_: dict[str, Any] = {}
        self._draw_bands(panel)
        at = [rows.at[_key(row)] for row in found]
        for column in _SERIES:
            self._draw_series(panel, column, at, kwargs)
        for row, y, text in zip(found, at, texts, strict=True):
            if np.isnan(row.flip_rate):
                common.write_instead(panel, y, "undefined: no rows changed", letters)
            else:
                common.write_beside(panel, y, text[form], letters)
        level = common.percent(self.confidence_level)
        bands = ", ".join(f"{common.percent(start)} {band}" for band, start in FLIP_BANDS.items() if start)
        panel.set_xlabel(
            f"share of the rows changed, with {level} Wilson interval\ndashed: {bands}",
            fontsize="small",
            **common.PLAIN,
        )
        common.set_title(panel, "decisions under another value", self.name if name is None else name)
        common.set_legend(panel, columns=3, lines=2)
        return self

    def _blocks(self) -> dict[str, dict[Hashable, str]]:
        blocks: dict[str, dict[Hashable, str]] = {}
        for attribute, found in self.table.groupby("attribute", sort=False):
            rows = common.records(found)
            both = common.short_labels([end for row in rows for end in (row.source, row.target)], common.LABEL // 2)
            names = zip(both[::2], both[1::2], strict=True)
            blocks[common.elide(label(attribute), common.LABEL)] = {
                _key(row): f"{source} → {target} (n={int(row.n)})"
                for row, (source, target) in zip(rows, names, strict=True)
            }
        return blocks

    def _draw_bands(self, panel: Any) -> None:
        ends = self.table[["flip_high"]].join(self.directions).to_numpy(dtype=float)
        end = min(1.0, 1.05 * float(np.nanmax(np.append(ends, 1.3 * FLIP_BANDS["audit"]))))
        panel.set_xlim(-0.03 * end, 1.03 * end)
        panel.axvline(0.0, color="0.7", linewidth=0.8, zorder=0.8)
        for start in FLIP_BANDS.values():
            if start:
                panel.axvline(start, color=common.GREY, linewidth=0.9, linestyle="--", zorder=0.9)

    def _draw_series(self, panel: Any, column: str, at: Sequence[int], kwargs: Mapping[str, Any]) -> None:
        said, color, marker, offset = _SERIES[column]
        values = self.table[column].to_numpy(dtype=float)
        defined = ~np.isnan(values)
        if not defined.any():
            return
        ends = (
            [self.table[name] for name in ("flip_low", "flip_high")]
            if column == "flip_rate"
            else [self.directions[f"{column}_{end}"] for end in ("low", "high")]
        )
        low, high = (end.to_numpy(dtype=float)[defined] for end in ends)
        style = common.point_style(
            kwargs, color=color, marker=marker, markersize=5.5, linestyle="none", clip_on=False, zorder=3, label=said
        )
        points, intervals = common.draw_row_points(
            panel, values[defined], np.asarray(at)[defined], low, high, color=color, style=style, offset=offset
        )
        self.points_[column] = points
        if intervals is not None:
            self.intervals_[column] = intervals

    def __repr__(self) -> str:
        return (
            f"CounterfactualDisplay({len(self.table)} changes of {', '.join(dict.fromkeys(self.table['attribute']))})"
        )


def _key(row: Any) -> tuple[str, str, str]:
    return row.attribute, repr(row.source), repr(row.target)


def _texts(row: Any) -> tuple[str, str]:
    """Return what stands beside a row, in full and in short."""
    support = "" if np.isnan(row.off_support) else f"\noff support: {100 * row.off_support:.1f}%"
    numbers = common.estimate(row.flip_rate, row.flip_low, row.flip_high)
    return f"{numbers} {row.band}{support}", f"{row.band}{support}"
