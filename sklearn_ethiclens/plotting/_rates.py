"""Rates by group, with Wilson intervals and the counts they are made of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sklearn_ethiclens._findings import group_rates
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import listing
from sklearn_ethiclens.metrics._rates import EMPTY, OUTCOMES, RATES
from sklearn_ethiclens.plotting import _common as common
from sklearn_ethiclens.plotting._base import DecisionsDisplay
from sklearn_ethiclens.report._words import label, number

_COLUMNS = ("attribute", "group", "n", "rate", "value", "low", "high", "count", "denominator")
_DEFAULT = ("selection_rate", "true_positive_rate", "false_positive_rate")


class GroupRatesDisplay(DecisionsDisplay):
    """A rate, or several, by group: value, Wilson interval, and the counts beside it.

    Made by :meth:`from_audit`, :meth:`from_predictions` or :meth:`from_estimator`; the data are in the attributes, and
    :meth:`plot` draws them again. A panel a rate. A rate of 0 has its point at 0; an undefined one has none, but says which
    denominator is empty.

    Parameters
    ----------
    table : DataFrame
        Rates by group, as :meth:`sklearn_ethiclens.Audit.rates` returns them.
    confidence_level : float, default=0.95
        Of the intervals.
    name : str, optional
        What is shown, such as the name of the model; stands in the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were given, or the first panel.
    axes_ : ndarray of matplotlib Axes
        The panels, one a rate.
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib Line2D
        By rate; no entry where it is undefined in every group.
    intervals_ : dict of str to matplotlib LineCollection
        By rate.

    Examples
    --------
    >>> display = GroupRatesDisplay.from_predictions(
    ...     [1, 1, 0, 1], [1, 0, 0, 0], sensitive_features={"sex": ["f", "f", "m", "m"]}, rate="selection_rate"
    ... )
    >>> display.table[["group", "value", "count", "denominator"]]
      group  value  count  denominator
    0     f    0.5      1            2
    1     m    0.0      0            2
    """

    _columns, _source = _COLUMNS, "Audit.rates()"

    # ---------------------------------------------------------------------------------------------------------- making
    @classmethod
    def from_audit(
        cls,
        audit: Any,
        *,
        rate: str | Sequence[str] | None = None,
        attribute: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> GroupRatesDisplay:
        """Return the drawn display of an audit.

        Parameters
        ----------
        audit : Audit
            What to show.
        rate : str or list of str, optional
            Columns ``rate`` of ``Audit.rates()``, a panel each. Default: selection rate, and with labels true and false positive
            rate.
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
        GroupRatesDisplay
        """
        common.check_plain_audit(audit)
        return cls._drawn(audit.rates(), rate, attribute, audit.policy.confidence_level, name, ax, kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        rate: str | Sequence[str] | None = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        outcome: str = "favorable",
        confidence_level: float = 0.95,
        missing: str = "bucket",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> GroupRatesDisplay:
        """Return the drawn display of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,) or None
            True labels.
        y_pred : array-like of shape (n_rows,)
            Decisions.
        sensitive_features : Series, array, dict of arrays or frame with n_rows rows
            The group of each row.
        rate, name, ax, **kwargs
            As in :meth:`from_audit`.
        sample_weight, pos_label, outcome, missing
            As in :func:`sklearn_ethiclens.audit`.
        confidence_level : float, default=0.95
            In (0, 1).

        Returns
        -------
        GroupRatesDisplay
        """
        if outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {OUTCOMES}; got {outcome!r}.")
        tally = Tally.from_predictions(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
            missing=missing,
        )
        marginals = {attribute: tally.marginal((attribute,)) for attribute in tally.attributes}
        rates = group_rates(marginals, outcome, confidence_level)
        return cls._drawn(rates, rate, None, confidence_level, name, ax, kwargs)

    @classmethod
    def _drawn(
        cls,
        rates: pd.DataFrame,
        rate: str | Sequence[str] | None,
        attribute: Any,
        confidence_level: float,
        name: str | None,
        ax: Any,
        kwargs: Mapping[str, Any],
    ) -> GroupRatesDisplay:
        present = list(dict.fromkeys(rates["rate"]))
        if rate is None:
            wanted = [one for one in _DEFAULT if one in present]
        else:
            wanted = [rate] if isinstance(rate, str) else list(rate)
        absent = [one for one in wanted if one not in present]
        if absent or not wanted:
            raise ValueError(f"rate must name rates there are, {listing(present, 30)}; got {absent or rate!r}.")
        asked = common.chosen_attributes(attribute, list(dict.fromkeys(rates["attribute"])))
        table = common.in_order(rates[rates["attribute"].isin(asked)], "rate", wanted)
        return cls(table, confidence_level=confidence_level, name=name).plot(ax, **kwargs)

    # --------------------------------------------------------------------------------------------------------- drawing
    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> GroupRatesDisplay:
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
        GroupRatesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        rates = list(dict.fromkeys(self.table["rate"]))
        rows = common.Rows(self._blocks())
        self.ax_, panels = common.grid_of_axes(
            ax, (1, len(rates)), (rows.width + 3.9 * len(rates), rows.height), sharey=True
        )
        self.axes_, self.figure_ = panels[0], self.ax_.figure
        self.points_: dict[str, Any] = {}
        self.intervals_: dict[str, Any] = {}
        defined = [row for row in common.records(self.table) if not np.isnan(row.value)]
        letters, form = rows.write(self.axes_, [_texts(row) for row in defined], given=ax is not None)
        name = self.name if name is None else name
        for rate, panel in zip(rates, self.axes_, strict=True):
            self._draw(panel, rate, rows, letters, form, kwargs)
            common.set_title(panel, common.words(rate), name if panel is self.axes_[0] else None)
        return self

    def _blocks(self) -> dict[str, dict[Hashable, str]]:
        blocks: dict[str, dict[Hashable, str]] = {}
        for attribute, found in self.table.groupby("attribute", sort=False):
            first = {_key(row): row for row in reversed(common.records(found))}
            keys = list(dict.fromkeys(map(_key, common.records(found))))
            names = common.short_labels(first[key].group for key in keys)
            heading = common.elide(label(attribute), common.LABEL)
            blocks[heading] = {key: f"{text} (n={int(first[key].n)})" for key, text in zip(keys, names, strict=True)}
        return blocks

    def _draw(
        self, panel: Any, rate: str, rows: common.Rows, letters: float, form: int, kwargs: Mapping[str, Any]
    ) -> None:
        from matplotlib.ticker import MaxNLocator

        found = self.table[self.table["rate"] == rate]
        defined = found[found["value"].notna()]
        for row in common.records(found[found["value"].isna()]):
            empty = EMPTY[RATES[rate].denominator] if rate in RATES else "no rows"
            common.write_instead(panel, rows.at[_key(row)], f"undefined: {empty}", letters)
        # The axis begins at 0, which a point there must not be cut at.
        end = float(np.nanmax(np.append(defined[["value", "high"]].to_numpy(dtype=float), 0.1)))
        panel.set_xlim(-0.03 * end, min(1.0, end * 1.05) + 0.03 * end)
        panel.axvline(0.0, color="0.7", linewidth=0.8, zorder=0.8)
        panel.xaxis.set_major_locator(MaxNLocator(5))
        if len(defined):
            style = common.point_style(
                kwargs, color=common.BLUE, marker="o", markersize=6, linestyle="none", clip_on=False, zorder=3
            )
            at = [rows.at[_key(row)] for row in common.records(defined)]
            points, intervals = common.draw_row_points(
                panel,
                defined["value"].to_numpy(),
                at,
                defined["low"].to_numpy(),
                defined["high"].to_numpy(),
                color=common.BLUE,
                style=style,
            )
            self.points_[rate] = points
            if intervals is not None:
                self.intervals_[rate] = intervals
        for row in common.records(defined):
            common.write_beside(panel, rows.at[_key(row)], _texts(row)[form], letters)
        level = common.percent(self.confidence_level)
        panel.set_xlabel(f"rate, with {level} Wilson interval", fontsize="small", **common.PLAIN)

    def __repr__(self) -> str:
        groups = len({_key(row) for row in common.records(self.table)})
        return f"GroupRatesDisplay({', '.join(dict.fromkeys(self.table['rate']))} of {groups} groups)"


def _key(row: Any) -> tuple[str, str]:
    return row.attribute, repr(row.group)


def _texts(row: Any) -> tuple[str, str]:
    """Return what stands beside a row, in full and in short."""
    return f"{number(row.value)} ({row.count} of {row.denominator})", f"{row.count}/{row.denominator}"
