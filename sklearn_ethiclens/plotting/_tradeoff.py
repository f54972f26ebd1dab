"""The candidates of a search, performance against disparity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sklearn_ethiclens.metrics._candidates import Candidates, frontier_table
from sklearn_ethiclens.plotting._common import check_axes, pyplot

# Okabe and Ito's colours, told apart also by shape and size.
_BLUE, _GREY, _ORANGE = "#0072B2", "#6e6e6e", "#D55E00"


class TradeoffDisplay:
    """Performance against disparity of the candidates of a search, with the frontier that none of them beats.

    Made by :meth:`from_cv_results`; the data are in the attributes, and :meth:`plot` draws them again.

    Parameters
    ----------
    table : DataFrame
        As :func:`sklearn_ethiclens.pareto_frontier` returns it.
    performance, disparity : str
        What the scores are called.
    is_ratio : bool, default=False
        Whether the disparity is a ratio, 1 at parity, and not a gap.
    chosen : int, optional
        The position of the candidate that was chosen, ``search.best_index_``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    frontier_ : matplotlib Line2D
    points_ : list of matplotlib ErrorbarContainer
        Frontier and other candidates; bars are one standard deviation over the folds.

    Examples
    --------
    >>> results = {"params": [{"C": 1}, {"C": 2}], "mean_test_accuracy": [0.7, 0.8], "mean_test_gap": [-0.1, -0.2]}
    >>> display = TradeoffDisplay.from_cv_results(results, performance="accuracy", disparity="gap")
    >>> display.table["on_frontier"].tolist()
    [True, True]
    """

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        performance: str,
        disparity: str,
        is_ratio: bool = False,
        chosen: int | None = None,
    ) -> None:
        self.table = table
        self.performance, self.disparity = performance, disparity
        self.is_ratio, self.chosen = is_ratio, chosen

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        performance: str,
        disparity: str,
        chosen: int | None = None,
        ax: Any = None,
    ) -> TradeoffDisplay:
        """Return the drawn display of a search.

        Parameters
        ----------
        cv_results : mapping
            ``cv_results_`` of any search class.
        performance, disparity : str
            Names of scores in it.
        chosen : int, optional
            ``search.best_index_``, to be marked.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        TradeoffDisplay
        """
        candidates = Candidates(cv_results, performance, disparity)
        n = len(candidates.params)
        if chosen is not None and not 0 <= chosen < n:
            raise ValueError(f"chosen must be the position of one of the {n} candidates; got {chosen!r}.")
        display = cls(
            frontier_table(candidates),
            performance=performance,
            disparity=disparity,
            is_ratio=candidates.is_ratio,
            chosen=None if chosen is None else int(chosen),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> TradeoffDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        TradeoffDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        plt = pyplot()
        check_axes(ax)
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
        usable = self.table[self.table["usable"]]
        frontier = usable[usable["on_frontier"]].sort_values(["disparity", "performance"])
        (self.frontier_,) = ax.plot(
            frontier["disparity"],
            frontier["performance"],
            drawstyle="steps-pre" if self.is_ratio else "steps-post",
            color=_BLUE,
            marker="o",
            linewidth=1.5,
            zorder=2,
            label="frontier: no candidate is better in both",
        )
        self.points_ = [
            self._draw_points(ax, usable[usable["on_frontier"]], _BLUE, "o", None),
            self._draw_points(ax, usable[~usable["on_frontier"]], _GREY, "s", "other candidates"),
        ]
        self._draw_unusable(ax)
        if self.chosen is not None:
            self._draw_chosen(ax)
        away, words = ("→", "greater") if self.is_ratio else ("←", "smaller")
        said = self.disparity.replace("_", " ")
        ax.set_xlabel(f"{away} {said}, {words} is better" if not self.is_ratio else f"{said}, {words} is better {away}")
        ax.set_ylabel(f"{self.performance.replace('_', ' ')}, greater is better →")
        ax.set_title("Mean of the folds; bars: standard deviation over folds", fontsize="medium", loc="left")
        ax.margins(0.08)
        # Below the axes, where it hides no candidate.
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(0.0, -0.15), borderaxespad=0.0, frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_points(self, ax: Any, rows: pd.DataFrame, color: str, marker: str, label: str | None) -> Any:
        if not len(rows):
            return None
        bars = {"xerr": rows["disparity_std"], "yerr": rows["performance_std"]}
        return ax.errorbar(
            rows["disparity"],
            rows["performance"],
            **{k: v.fillna(0.0) for k, v in bars.items()},
            fmt=marker,
            color=color,
            markersize=6,
            elinewidth=0.8,
            ecolor=(color, 0.45),
            zorder=3,
            label=label,
        )

    def _draw_unusable(self, ax: Any) -> None:
        """Mark the candidates that cannot be chosen: where they are if they have a disparity, else at the right edge."""
        unusable = self.table[~self.table["usable"]]
        for reason, rows in unusable.groupby("reason"):
            marker = "x" if "class" in str(reason) else "+"
            known = rows.dropna(subset=["disparity", "performance"])
            edge = rows[rows["disparity"].isna() & rows["performance"].notna()]
            style = {"color": _ORANGE, "marker": marker, "s": 40, "linewidths": 1.5, "zorder": 4}
            where = ", drawn at the right edge" if len(edge) == len(rows) else ""
            label = f"not to be chosen ({len(rows)}): {reason}{where}"
            ax.scatter(known["disparity"], known["performance"], label=label, **style)
            if len(edge):
                across = ax.get_yaxis_transform()  # x in parts of the axes, y in data
                ax.scatter(np.full(len(edge), 0.985), edge["performance"], transform=across, **style)

    def _draw_chosen(self, ax: Any) -> None:
        row = self.table.loc[self.chosen]
        ax.scatter(
            [row["disparity"]],
            [row["performance"]],
            s=190,
            facecolors="none",
            edgecolors="black",
            linewidths=1.6,
            zorder=5,
            label=f"chosen: {', '.join(_short(str(k)) + f'={v}' for k, v in row['params'].items())}",
        )

    def __repr__(self) -> str:
        return (
            f"TradeoffDisplay({len(self.table)} candidates, {int(self.table['on_frontier'].sum())} on the frontier of "
            f"{self.performance} and {self.disparity})"
        )


def _short(parameter: str) -> str:
    """Return the name of a parameter without the steps it is reached by."""
    return parameter.rsplit("__", 1)[-1]
