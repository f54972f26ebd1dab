"""Precision against false positive rate: what base rates allow, and why both cannot be equal (Chouldechova 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._findings import group_rates
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens.metrics._rates import EMPTY, RATES
from sklearn_ethiclens.plotting import _common as common
from sklearn_ethiclens.plotting._base import DecisionsDisplay
from sklearn_ethiclens.report._words import label, number

_POINTS = ("precision", "false_positive_rate")
_RATES = ("base_rate", "true_positive_rate", *_POINTS)
_COLUMNS = (
    "attribute",
    "group",
    "n",
    *_RATES,
    *(f"{rate}_{end}" for rate in _POINTS for end in ("low", "high")),
    "reason",
)


class ImpossibilityDisplay(DecisionsDisplay):
    """Precision against false positive rate of each group, with the curve that its base rate and true positive rate allow.

    Of a group with base rate p and true positive rate TPR, precision PPV and false positive rate FPR are bound to each other:
    FPR = p/(1-p) (1-PPV)/PPV TPR (Chouldechova 2017). A group's point lies on its curve, and moves along it alone as long as
    its TPR stays. Curves of groups with other odds p/(1-p) TPR meet only where there are no false positives: groups whose base
    rates differ and whose TPR is equal cannot have equal precision and equal FPR too.

    Made by :meth:`from_audit`, :meth:`from_predictions` or :meth:`from_estimator`; the data are in the attributes, and
    :meth:`plot` draws them again. Up to six groups share one pair of axes; there, hollow marks on a curve show where the
    group would have the precision (square) or the false positive rate (diamond) of the reference, at its own base rate and
    TPR. More groups have a small panel each. A group whose precision or FPR is undefined has no point; the reason is given.

    Parameters
    ----------
    table : DataFrame
        One row a group: ``attribute, group, n, base_rate, true_positive_rate, precision, false_positive_rate``, the ends
        ``precision_low, precision_high, false_positive_rate_low, false_positive_rate_high``, and ``reason``, why there is no
        point.
    reference : label, optional
        The group the others are compared with.
    confidence_level : float, default=0.95
        Of the Wilson intervals.
    name : str, optional
        What is shown, such as the name of the model; stands in the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were given, or the first panel.
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    curves_ : dict of group to matplotlib Line2D
        No entry where base rate or true positive rate is undefined, or every row is positive.
    points_ : dict of group to matplotlib Line2D
    intervals_ : dict of group to tuple of matplotlib LineCollection
        Of the false positive rate and of the precision.

    References
    ----------
    Chouldechova 2017, Fair prediction with disparate impact, Big Data 5:153-163; Kleinberg et al. 2016.

    Examples
    --------
    Base rate 1/2 and TPR 1/2: FPR = (1-PPV)/PPV / 2, here 1/3 of 1/2.

    >>> display = ImpossibilityDisplay.from_predictions(
    ...     [1] * 6 + [0] * 6, [1] * 3 + [0] * 3 + [1] + [0] * 5, sensitive_features={"sex": ["f"] * 12}
    ... )
    >>> display.table[["base_rate", "true_positive_rate", "precision", "false_positive_rate"]].round(4)
       base_rate  true_positive_rate  precision  false_positive_rate
    0        0.5                 0.5       0.75               0.1667
    """

    _columns, _source = _COLUMNS, "ImpossibilityDisplay.from_audit(...).table"

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        reference: Any = None,
        confidence_level: float = 0.95,
        name: str | None = None,
    ) -> None:
        super().__init__(table, confidence_level=confidence_level, name=name)
        self.reference = reference

    # ---------------------------------------------------------------------------------------------------------- making
    @classmethod
    def from_audit(
        cls, audit: Any, *, attribute: Any = None, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> ImpossibilityDisplay:
        """Return the drawn display of an audit of labels and decisions.

        Parameters
        ----------
        audit : Audit
            What to show.
        attribute : str or tuple of str, optional
            The sensitive feature or intersection; must be named where there are several.
        name : str, optional
            What is shown; stands in the title.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.
        **kwargs
            Properties of the points, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        ImpossibilityDisplay

        Raises
        ------
        ValueError
            If there are no labels.
        """
        common.check_plain_audit(audit)
        rates = audit.rates()
        asked = common.one_attribute(attribute, list(dict.fromkeys(rates["attribute"])), cls.__name__)
        reference = next((r.group for r in audit.references if label(r.attribute) == label(asked)), None)
        table = _by_group(rates[rates["attribute"] == asked])
        return cls(table, reference=reference, confidence_level=audit.policy.confidence_level, name=name).plot(
            ax, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        attribute: Any = None,
        reference: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        confidence_level: float = 0.95,
        missing: str = "bucket",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ImpossibilityDisplay:
        """Return the drawn display of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            True labels.
        y_pred : array-like of shape (n_rows,)
            Decisions.
        sensitive_features : Series, array, dict of arrays or frame with n_rows rows
            The group of each row.
        attribute, name, ax, **kwargs
            As in :meth:`from_audit`.
        reference : label, optional
            The group the others are compared with; default: the largest.
        sample_weight, pos_label, missing
            As in :func:`sklearn_ethiclens.audit`.
        confidence_level : float, default=0.95
            In (0, 1).

        Returns
        -------
        ImpossibilityDisplay
        """
        tally = Tally.from_predictions(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
            missing=missing,
        )
        asked = common.one_attribute(attribute, tally.attributes, cls.__name__)
        table = _by_group(group_rates({asked: tally.marginal((asked,))}, "favorable", confidence_level))
        groups = table["group"].tolist()
        if reference is None:
            reference = groups[int(table["n"].to_numpy().argmax())]
        elif reference not in groups:
            raise ValueError(f"reference must be one of the groups {groups}; got {reference!r}.")
        return cls(table, reference=reference, confidence_level=confidence_level, name=name).plot(ax, **kwargs)

    # --------------------------------------------------------------------------------------------------------- drawing
    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> ImpossibilityDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure. Axes of a grid make room for several panels.
        name : str, optional
            In place of the display's own.
        **kwargs
            Properties of the points, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        ImpossibilityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.curves_: dict[Any, Any] = {}
        self.points_: dict[Any, Any] = {}
        self.intervals_: dict[Any, Any] = {}
        rows = common.records(self.table)
        draw = self._draw_together if len(rows) <= len(common.SERIES) else self._draw_apart
        draw(ax, rows, self.name if name is None else name, kwargs)
        self.figure_ = self.ax_.figure
        return self

    def _ends(self) -> tuple[float, float]:
        """Return the largest false positive rate and the smallest precision to show."""
        rates = self.table[["false_positive_rate_high", "false_positive_rate"]].to_numpy(dtype=float)
        precisions = self.table[["precision_low", "precision"]].to_numpy(dtype=float)
        return (
            min(1.0, 1.1 * float(np.nanmax(np.append(rates, 0.1)))),
            max(0.0, float(np.nanmin(np.append(precisions, 0.9))) - 0.05),
        )

    def _draw_together(self, ax: Any, rows: list[Any], name: str | None, kwargs: Mapping[str, Any]) -> None:
        self.ax_, panels = common.grid_of_axes(ax, (1, 1), (6.8, 5.6))
        self.axes_, panel = panels[0], panels[0, 0]
        end, floor = self._ends()
        grid = np.linspace(0.0, 1.0, 501)
        names = common.short_labels(row.group for row in rows)
        reference = next((row for row in rows if repr(row.group) == repr(self.reference) and not row.reason), None)
        for row, said, (color, marker, line) in zip(rows, names, common.SERIES, strict=False):
            rate = "undefined" if np.isnan(row.base_rate) else number(row.base_rate)
            text = f"{said} (n={int(row.n)}, base rate {rate})" + (f": {row.reason}" if row.reason else "")
            self._draw_curve(panel, row, grid, color=color, linestyle=line, linewidth=1.2, alpha=0.8)
            style = {"color": color, "marker": marker, "markersize": 7, "linestyle": "none", "zorder": 4, "label": text}
            self._draw_point(panel, row, common.point_style(kwargs, **style))
            if row.reason:
                panel.plot([], [], color=color, linestyle=line if row.group in self.curves_ else "none", label=text)
            elif reference is not None and row is not reference:
                end = max(end, min(1.0, 1.06 * self._draw_equal(panel, row, reference, color)))
        if reference is not None:
            style = {"color": "0.55", "linewidth": 0.8, "linestyle": ":", "zorder": 1}
            panel.axhline(reference.precision, **style)
            panel.axvline(reference.false_positive_rate, **style)
            if len(self.points_) > 1:
                who = common.elide(label(reference.group), common.LABEL)
                hollow = {"color": "0.3", "markerfacecolor": "white", "linestyle": "none", "markersize": 6}
                panel.plot([], [], marker="s", label=f"where precision would be that of {who}", **hollow)
                panel.plot([], [], marker="D", label=f"where the false positive rate would be that of {who}", **hollow)
        if not self.points_:
            panel.text(0.5, 0.5, "undefined in every group", transform=panel.transAxes, ha="center", color=common.GREY)
        panel.set(xlim=(-0.02 * end, end), ylim=(floor, 1.0 + 0.03 * (1.0 - floor)))
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize="small")
        level = common.percent(self.confidence_level)
        said = "a group moves along its curve; different curves meet only where there are no false positives"
        panel.set_xlabel(f"false positive rate, with {level} interval\n{said}", fontsize="small", **common.PLAIN)
        panel.set_ylabel(f"precision, with {level} interval", fontsize="small", **common.PLAIN)
        common.set_title(panel, self._title(), name)
        common.set_legend(panel, lines=2)

    def _draw_apart(self, ax: Any, rows: list[Any], name: str | None, kwargs: Mapping[str, Any]) -> None:
        self.ax_, panels = common.grid_of_facets(ax, len(rows))
        names = common.short_labels([row.group for row in rows], 20)
        titles = [f"{said} (n={int(row.n)})" for said, row in zip(names, rows, strict=True)]
        used = common.dress_facets(panels, titles, "false positive rate", "precision")
        self.axes_ = np.array(used, dtype=object)
        end, floor = self._ends()
        grid = np.linspace(0.0, 1.0, 201)
        color, marker, line = common.SERIES[0]
        # All curves as one line, broken by NaN between them.
        across = np.tile(np.append(grid, np.nan), len(rows))
        allowed = np.concatenate([np.append(self._allowed(row, grid), np.nan) for row in rows])
        for panel, row in zip(used, rows, strict=True):
            panel.plot(across, allowed, color="0.88", linewidth=0.6, zorder=0.5)
            self._draw_curve(panel, row, grid, color=color, linestyle=line, linewidth=1.2)
            style = {"color": common.VERMILLION, "marker": marker, "markersize": 4.5, "linestyle": "none", "zorder": 4}
            self._draw_point(panel, row, common.point_style(kwargs, **style))
            if row.reason:
                panel.text(
                    0.05,
                    0.05,
                    row.reason,
                    transform=panel.transAxes,
                    fontsize="x-small",
                    color=common.GREY,
                    **common.PLAIN,
                )
            panel.spines[["top", "right"]].set_visible(False)
        used[0].set(xlim=(-0.02 * end, end), ylim=(floor, 1.0 + 0.03 * (1.0 - floor)))
        common.set_facets_title(self.ax_, used[0], ax is None, self._title(), name)

    @staticmethod
    def _allowed(row: Any, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the precision that goes with false positive rates, at a group's base rate and true positive rate."""
        true, false = row.base_rate * row.true_positive_rate, (1 - row.base_rate) * rate
        with np.errstate(invalid="ignore"):
            return np.asarray(true / (true + false))

    def _draw_curve(self, panel: Any, row: Any, grid: NDArray[np.float64], **style: Any) -> None:
        precision = self._allowed(row, grid)
        if np.isnan(row.true_positive_rate) or row.base_rate == 1:
            return
        (self.curves_[row.group],) = panel.plot(grid, precision, zorder=2, **style)

    def _draw_point(self, panel: Any, row: Any, style: Mapping[str, Any]) -> None:
        if row.reason:
            return
        x, y = row.false_positive_rate, row.precision
        line = {"color": style["color"], "linewidth": 1.4, "zorder": 3}
        self.intervals_[row.group] = (
            panel.hlines(y, row.false_positive_rate_low, row.false_positive_rate_high, **line),
            panel.vlines(x, row.precision_low, row.precision_high, **line),
        )
        (self.points_[row.group],) = panel.plot([x], [y], **{"clip_on": False, **style})

    def _draw_equal(self, panel: Any, row: Any, reference: Any, color: str) -> float:
        """Mark where a group would have the reference's false positive rate, and its precision; return the rate of the latter."""
        style = {"color": color, "markerfacecolor": "white", "markersize": 6, "linestyle": "none", "zorder": 3.5}
        at = np.array([reference.false_positive_rate])
        panel.plot(at, self._allowed(row, at), marker="D", **style)
        if not reference.precision > 0:
            return 0.0
        odds = row.base_rate / (1 - row.base_rate) * row.true_positive_rate
        needed = odds * (1 - reference.precision) / reference.precision
        if needed > 1:  # beyond any rate: at this base rate and TPR, precision cannot fall so low
            return 0.0
        panel.plot([needed], [reference.precision], marker="s", **style)
        return float(needed)

    def _title(self) -> str:
        by = common.elide(label(self.table["attribute"].iloc[0]), common.LABEL)
        return f"precision and false positive rate by {by}"

    def __repr__(self) -> str:
        return f"ImpossibilityDisplay({len(self.table)} groups by {label(self.table['attribute'].iloc[0])})"


def _by_group(rates: pd.DataFrame) -> pd.DataFrame:
    """Return one row a group of one attribute from one row a group and rate."""
    if "precision" not in set(rates["rate"]):
        raise ValueError("precision and false positive rates need labels: pass y_true.")
    groups: dict[str, dict[str, Any]] = {}
    for row in common.records(rates):
        found = groups.setdefault(
            repr(row.group), {"attribute": row.attribute, "group": row.group, "n": row.n, "reason": ""}
        )
        if row.rate not in _RATES:
            continue
        found[row.rate] = row.value
        if row.rate in _POINTS:
            found |= {f"{row.rate}_low": row.low, f"{row.rate}_high": row.high}
            if np.isnan(row.value):
                empty = EMPTY[RATES[row.rate].denominator]
                found["reason"] = f"{found['reason']} and {empty}" if found["reason"] else f"undefined, {empty}"
    return pd.DataFrame(list(groups.values()), columns=list(_COLUMNS))
