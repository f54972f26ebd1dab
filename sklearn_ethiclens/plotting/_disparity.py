"""Comparisons of groups as a forest: estimate, interval, what the policy accepts, and the verdict in a word."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from sklearn_ethiclens._validation import listing
from sklearn_ethiclens.metrics._scores import find_metric
from sklearn_ethiclens.plotting import _common as common
from sklearn_ethiclens.plotting._base import DecisionsDisplay
from sklearn_ethiclens.policy import Rule, Verdict
from sklearn_ethiclens.report._words import label

# Verdict -> colour, marker, filled. What is undefined has no point.
_MARKS: Mapping[str, tuple[str, str, bool]] = {
    str(Verdict.FLAGGED): (common.VERMILLION, "D", True),
    str(Verdict.INCONCLUSIVE): (common.ORANGE, "s", True),
    str(Verdict.CLEARED): (common.BLUE, "o", True),
    str(Verdict.INSUFFICIENT_DATA): (common.GREY, "o", False),
    "": ("#333333", "^", True),
}
_COLUMNS = (
    "attribute",
    "group",
    "reference",
    "metric",
    "value",
    "low",
    "high",
    "n",
    "n_reference",
    "verdict",
    "reason",
)
_TICKS = (0.5, 2.0, 0.2, 5.0, 0.1, 10.0, 0.05, 20.0, 0.02, 50.0, 0.01, 100.0)
_APART = (0.16, 0.3)  # of the width of the axes, between labels of ticks; in narrow ones more
_FARTHEST = 20.0  # times the most extreme estimate or limit; intervals may end beyond


class DisparityDisplay(DecisionsDisplay):
    """Forest of comparisons: a row for each, with its interval, the range the policy accepts, and the verdict.

    Made by :meth:`from_audit`, :meth:`from_predictions` or :meth:`from_estimator`; the data are in the attributes, and
    :meth:`plot` draws them again. A panel a metric. The verdict is a word, a marker and a colour: flagged a diamond,
    inconclusive a square, cleared a circle, insufficient data a hollow circle, descriptive a triangle. An undefined comparison
    has no point, but the reason in its place.

    Parameters
    ----------
    table : DataFrame
        Comparisons, as :meth:`sklearn_ethiclens.Audit.frame` returns them.
    rules : sequence of Rule, default=()
        Of the policy; the accepted range is shaded.
    confidence_level : float, default=0.95
        Of the intervals.
    name : str, optional
        What is shown, such as the name of the model; stands in the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were given, or the first panel.
    axes_ : ndarray of matplotlib Axes
        The panels, one a metric.
    figure_ : matplotlib Figure
    points_ : dict of (str, str) to matplotlib Line2D
        Estimates by metric and verdict; the verdict of a descriptive one is "".
    intervals_ : dict of (str, str) to matplotlib LineCollection
        Their intervals; no entry where none is known.

    Notes
    -----
    Ratios stand on a logarithmic axis, where half and double are equally far from 1. A ratio of 0 has its place at the left end,
    marked 0: from there to the first gridline the axis is linear. An interval that ends beyond the axes ends in an arrow.

    Examples
    --------
    >>> from sklearn_ethiclens import Tally, audit_tally
    >>> tally = Tally.from_counts({"F": {"n": 500, "selected": 150}, "M": {"n": 500, "selected": 250}}, attribute="sex")
    >>> display = DisparityDisplay.from_audit(audit_tally(tally), metric="disparate_impact")
    >>> display.table[["group", "reference", "value", "verdict"]]
      group reference  value  verdict
    0     F         M    0.6  FLAGGED
    """

    _columns, _source = _COLUMNS, "Audit.frame()"

    # Displays stand below audits; the room of audits, which is above, hands down how one is made of predictions.
    _audit: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        rules: Sequence[Rule] = (),
        confidence_level: float = 0.95,
        name: str | None = None,
    ) -> None:
        super().__init__(table, confidence_level=confidence_level, name=name)
        own = [metric for metric in dict.fromkeys(table["metric"]) if find_metric(metric).kind == "group"]
        if own:
            raise ValueError(
                f"{listing(own)} are values of one group, no comparisons. GroupRatesDisplay draws rates by group."
            )
        self.rules = tuple(rules)

    # ---------------------------------------------------------------------------------------------------------- making
    @classmethod
    def from_audit(
        cls,
        audit: Any,
        *,
        metric: str | Sequence[str] | None = None,
        attribute: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> DisparityDisplay:
        """Return the drawn display of an audit.

        Parameters
        ----------
        audit : Audit
            What to show.
        metric : str or list of str, optional
            Names in ``METRICS`` or ``SCORE_METRICS``, a panel each. Default: those the policy judges; ``disparate_impact`` where
            it judges none.
        attribute : str, tuple of str or list of these, optional
            Sensitive features and intersections; default: all.
        name : str, optional
            What is shown; stands in the title.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure, as high as its rows need.
        **kwargs
            Properties of the points, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        DisparityDisplay

        Raises
        ------
        ValueError
            If the audit has no such comparison.
        """
        common.check_plain_audit(audit)
        frame = audit.frame()
        present = list(dict.fromkeys(frame["metric"]))
        sizes = {label(key): len(tally.groups) for key, tally in audit.marginals().items()}
        if max(sizes.values()) < 2:
            raise ValueError(
                f"there is nothing to compare by {listing(list(sizes))}: one group only. GroupRatesDisplay, or plot('rates'), "
                f"shows its rates."
            )
        if metric is None:
            judged = [rule.metric for rule in audit.policy.rules]
            wanted = [one for one in judged if one in present] or ["disparate_impact"]
        else:
            wanted = [find_metric(one).name for one in ([metric] if isinstance(metric, str) else metric)]
        absent = [one for one in wanted if one not in present]
        if absent or not wanted:
            compared = [one for one in present if find_metric(one).kind != "group"]
            raise ValueError(f"metric must name comparisons of the audit, {listing(compared, 60)}; got {absent}.")
        known = list(dict.fromkeys(frame["attribute"]))
        asked = common.chosen_attributes(attribute, known)
        table = common.in_order(frame[frame["attribute"].isin(asked)], "metric", wanted)
        if not len(table):
            raise ValueError(f"there is nothing to compare by {listing(asked)}: it has one group only.")
        rules = tuple(rule for rule in audit.policy.rules if rule.metric in wanted)
        display = cls(table, rules=rules, confidence_level=audit.policy.confidence_level, name=name)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        metric: str | Sequence[str] | None = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        outcome: str = "favorable",
        reference: Any = None,
        intersections: Any = None,
        policy: Any = "ethiclens",
        confidence_level: float | None = None,
        n_resamples: int | None = None,
        missing: str = "bucket",
        random_state: Any = 0,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> DisparityDisplay:
        """Return the drawn display of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,) or None
            True labels.
        y_pred : array-like of shape (n_rows,)
            Decisions.
        sensitive_features : Series, array, dict of arrays or frame with n_rows rows
            The group of each row.
        metric, name, ax, **kwargs
            As in :meth:`from_audit`.
        sample_weight, pos_label, outcome, reference, intersections, policy, confidence_level, n_resamples, missing, random_state
            As in :func:`sklearn_ethiclens.audit`, whose findings are shown.

        Returns
        -------
        DisparityDisplay

        Examples
        --------
        >>> sex, decision = ["f", "m"] * 200, [0, 1, 1, 1] * 100
        >>> display = DisparityDisplay.from_predictions(
        ...     None, decision, sensitive_features={"sex": sex}, metric="disparate_impact"
        ... )
        >>> display.table["value"].tolist()
        [0.5]
        """
        asked = [metric] if isinstance(metric, str) else ["disparate_impact"] if metric is None else list(metric)
        made = cls._audit(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            metrics=asked,
            sample_weight=sample_weight,
            pos_label=pos_label,
            outcome=outcome,
            reference=reference,
            intersections=intersections,
            policy=policy,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            missing=missing,
            random_state=random_state,
        )
        return cls.from_audit(made, metric=metric, name=name, ax=ax, **kwargs)

    # --------------------------------------------------------------------------------------------------------- drawing
    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> DisparityDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure, as high as its rows need. Axes of a grid make room for several panels.
        name : str, optional
            In place of the display's own.
        **kwargs
            Properties of the points, as of ``matplotlib.lines.Line2D``.

        Returns
        -------
        DisparityDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        metrics = list(dict.fromkeys(self.table["metric"]))
        rows = common.Rows(self._blocks())
        size = (rows.width + 5.2 * len(metrics), rows.height)
        self.ax_, panels = common.grid_of_axes(ax, (1, len(metrics)), size, sharey=True)
        self.axes_, self.figure_ = panels[0], self.ax_.figure
        self.points_: dict[tuple[str, str], Any] = {}
        self.intervals_: dict[tuple[str, str], Any] = {}
        defined = [row for row in common.records(self.table) if not np.isnan(row.value)]
        letters, form = rows.write(self.axes_, [_texts(row) for row in defined], given=ax is not None)
        name = self.name if name is None else name
        for metric, panel in zip(metrics, self.axes_, strict=True):
            found = self.table[self.table["metric"] == metric]
            self._draw_axis(panel, metric, found, narrow=form == 1)
            self._draw_rows(panel, metric, found, rows, letters, form, kwargs)
            common.set_title(panel, common.words(metric), name if panel is self.axes_[0] else None)
        return self

    def _blocks(self) -> dict[str, dict[Hashable, str]]:
        """Return the rows by attribute: a heading that names the reference, and a label for each comparison."""
        blocks: dict[str, dict[Hashable, str]] = {}
        for attribute, found in self.table.groupby("attribute", sort=False):
            pairs = found[[find_metric(metric).kind == "pair" for metric in found["metric"]]]
            keys = dict.fromkeys(map(_key, common.records(found)))
            references = {repr(row.reference): row for row in common.records(pairs)}
            heading = common.elide(label(attribute), common.LABEL)
            if len(references) == 1:
                (row,) = references.values()
                (who,) = common.short_labels([row.reference])
                heading += f": against {who} (n={int(row.n_reference)})"
            elif references:
                heading += ": each against the reference of its metric"
            first = {_key(row): row for row in reversed(common.records(found))}
            names = dict(zip(keys, common.short_labels(first[key].group for key in keys), strict=True))
            blocks[heading] = {
                key: "all groups" if key[1] is None else f"{names[key]} (n={int(first[key].n)})" for key in keys
            }
        return blocks

    def _draw_axis(self, panel: Any, metric: str, found: pd.DataFrame, *, narrow: bool) -> None:
        """Shade what is accepted, mark equality, and set the scale."""
        entry = find_metric(metric)
        rule = next((rule for rule in self.rules if rule.metric == metric), None)
        limits = _limits(rule)
        parity = 1.0 if entry.scale == "ratio" else 0.0
        numbers = found[["value", "low", "high"]].to_numpy(dtype=float)
        marked = [parity, *(limit for limit in limits if np.isfinite(limit))]
        if entry.scale == "ratio":
            _set_ratio_axis(panel, numbers, marked, _APART[narrow])
            said = "group over reference" if entry.kind == "pair" else "smallest over largest"
        else:
            _set_linear_axis(panel, numbers, marked, narrow)
            said = "group against reference" if entry.kind == "pair" else "over all groups"
        panel.axvline(parity, color="0.35", linewidth=0.9, zorder=1)
        accepted = "no limit: descriptive"
        if rule is not None:
            start, end = (np.clip(limit, *panel.get_xlim()) for limit in limits)
            panel.axvspan(start, end, color=common.GREEN, alpha=0.13, linewidth=0, zorder=0)
            for limit in limits:
                if np.isfinite(limit):
                    panel.axvline(limit, color=common.GREEN, linewidth=1, linestyle="--", zorder=1)
            if rule.elevated is not None:
                panel.axvline(rule.elevated, color=common.ORANGE, linewidth=1, linestyle=":", zorder=1)
            accepted = f"shaded: accepted, {_accepted(limits)}"
        level = common.percent(self.confidence_level)
        known = f"with {level} interval" if np.isfinite(numbers[:, 1:]).any() else "without interval"
        text = f"{said}, {known}\n{accepted}"
        text = text.replace(", ", "\n") if narrow else text
        panel.set_xlabel(text, fontsize="x-small" if narrow else "small", **common.PLAIN)

    def _draw_rows(
        self,
        panel: Any,
        metric: str,
        found: pd.DataFrame,
        rows: common.Rows,
        letters: float,
        form: int,
        kwargs: Mapping[str, Any],
    ) -> None:
        lots: dict[str, list[Any]] = {}
        drawn: set[Hashable] = set()
        for row in common.records(found):
            drawn.add(_key(row))
            verdict = _verdict(row)
            at = rows.at[_key(row)]
            if np.isnan(row.value):
                undefined = verdict != Verdict.INSUFFICIENT_DATA
                said = label(row.reason) or "no value"
                common.write_instead(panel, at, f"{'undefined' if undefined else 'not assessed'}: {said}", letters)
                continue
            lots.setdefault(verdict, []).append(row)
            common.write_beside(panel, at, _texts(row)[form], letters)
        for verdict, lot in lots.items():
            color, marker, filled = _MARKS[verdict]
            style = common.point_style(
                kwargs,
                color=color,
                marker=marker,
                markersize=6.5,
                markerfacecolor=color if filled else "white",
                linestyle="none",
                clip_on=False,
                zorder=3,
            )
            points, intervals = common.draw_row_points(
                panel,
                [row.value for row in lot],
                [rows.at[_key(row)] for row in lot],
                [row.low for row in lot],
                [row.high for row in lot],
                color=color,
                style=style,
            )
            self.points_[metric, verdict] = points
            if intervals is not None:
                self.intervals_[metric, verdict] = intervals
        references = {(row.attribute, repr(row.reference)) for row in common.records(found)}
        for key, at in rows.at.items():
            if key not in drawn:
                common.write_instead(panel, at, "the reference" if key in references else "not compared", letters)

    def __repr__(self) -> str:
        metrics = ", ".join(dict.fromkeys(self.table["metric"]))
        return f"DisparityDisplay({len(self.table)} comparisons by {metrics})"


def _key(row: Any) -> tuple[str, str | None]:
    """Return what row of the display a comparison stands in."""
    return row.attribute, None if find_metric(row.metric).kind == "overall" else repr(row.group)


def _verdict(row: Any) -> str:
    """Return the verdict on a comparison; empty for a descriptive one."""
    return "" if pd.isna(row.verdict) else str(row.verdict)


def _texts(row: Any) -> tuple[str, str]:
    """Return what stands beside a row, in full and in short."""
    word = (_verdict(row) or "descriptive").replace("_", " ")
    return f"{common.estimate(row.value, row.low, row.high)} {word}", word


def _limits(rule: Rule | None) -> tuple[float, float]:
    """Return the ends of the accepted range."""
    if rule is None:
        return -np.inf, np.inf
    low = -np.inf if rule.minimum is None else rule.minimum
    high = np.inf if rule.maximum is None else rule.maximum
    if rule.absolute or rule.basis == "gap":
        low = max(low, -high)
    return low, high


def _accepted(limits: tuple[float, float]) -> str:
    low, high = limits
    if np.isinf(low):
        return f"at most {high:g}"
    return f"at least {low:g}" if np.isinf(high) else f"{low:g} to {high:g}"


def _set_linear_axis(panel: Any, numbers: Any, marked: Sequence[float], narrow: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    shown = np.append(numbers[np.isfinite(numbers)], marked)
    low, high = float(shown.min()), float(shown.max())
    margin = 0.06 * (high - low or 1.0)
    panel.set_xlim(low - margin, high + margin)
    panel.xaxis.set_major_locator(MaxNLocator(3 if narrow else 5))


def _set_ratio_axis(panel: Any, numbers: Any, marked: Sequence[float], apart: float) -> None:
    """Set a logarithmic axis; where there are zeros, a linear one up to the smallest positive number."""
    from matplotlib.ticker import NullFormatter, NullLocator

    values = np.append(numbers[:, 0], marked)
    values = values[np.isfinite(values) & (values > 0)]
    ends = numbers[np.isfinite(numbers) & (numbers > 0)]
    low = max(np.append(ends, values).min(), values.min() / _FARTHEST)
    high = min(np.append(ends, values).max(), values.max() * _FARTHEST)
    ticks = [*marked, *_TICKS]
    if (numbers == 0).any():
        least = low / 1.5
        panel.set_xscale("symlog", linthresh=least, linscale=0.4)
        panel.set_xlim(-0.2 * least, high * 1.15)
        panel.axvline(0.0, color="0.7", linewidth=0.8, zorder=0.8)
        panel.axvline(least, color="0.7", linewidth=0.8, linestyle=":", zorder=0.8)
        ticks = [0.0, *ticks]
    else:
        panel.set_xscale("log")
        panel.set_xlim(low / 1.15, high * 1.15)
    chosen: dict[float, float] = {}
    for tick in ticks:
        place = panel.transAxes.inverted().transform(panel.transData.transform((tick, 0.0)))[0]
        if 0 <= place <= 1 and all(abs(place - other) > apart for other in chosen.values()):
            chosen[tick] = place
    panel.set_xticks(sorted(chosen), [f"{tick:g}" for tick in sorted(chosen)], **common.PLAIN)
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_minor_formatter(NullFormatter())
