"""What the displays share: axes, rows of text that cannot collide, colours told apart by shape too, labels as typed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from sklearn_ethiclens._validation import (
    check_aligned,
    column_list,
    frame_columns,
    listing,
    sensitive_columns,
    take_columns,
)
from sklearn_ethiclens.report._words import label, number

# Okabe and Ito's colours, those that are read on white; each has a marker and a line style of its own.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY, FAINT = "#6e6e6e", "#c8c8c8"
SERIES = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (ORANGE, "v", (0, (5, 1))),
    (SKY, "P", (0, (3, 1, 1, 1, 1, 1))),
)

# A "$" in the name of a group is a dollar, whatever the settings of the user say.
PLAIN = {"parse_math": False, "usetex": False}

LABEL = 40  # characters of a label
_ROW = 0.27  # inches
_FONT = 9.0
_SMALLEST_FONT = 4.0
_READABLE = 7.0
_FACET = 2.1  # inches
_LETTER = 0.56  # width of a letter on average, in parts of its size


# ---------------------------------------------------------------------------------------------------------------- axes
def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        If matplotlib is not installed; the message says how to get it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "sklearn-ethiclens[plot]"'
        ) from error
    return plt


def grid_of_axes(
    ax: Any,
    shape: tuple[int, int],
    size: tuple[float, float],
    *,
    sharex: bool = False,
    sharey: bool = False,
    height_ratios: Sequence[float] | None = None,
    margins: Mapping[str, float] | None = None,
) -> tuple[Any, NDArray[Any]]:
    """Return the axes that a display is drawn in, and its panels.

    Parameters
    ----------
    ax : matplotlib Axes or None
        None for a new figure. Given axes are the one panel, or make room for several.
    shape : tuple of int
        Rows and columns of panels.
    size : tuple of float
        Width and height of a new figure, in inches.
    sharex, sharey : bool
        Whether the panels share an axis.
    height_ratios : sequence of float, optional
        Of the rows.
    margins : mapping, optional
        Of a new figure, in parts of it; default: the constrained layout.

    Returns
    -------
    tuple of matplotlib Axes and ndarray of Axes
        The given axes, or the first panel; all panels, of that shape.
    """
    plt = pyplot()
    check_axes(ax)
    if ax is None:
        _, panels = plt.subplots(
            *shape,
            figsize=size,
            layout="constrained" if margins is None else "none",
            gridspec_kw=margins,
            sharex=sharex,
            sharey=sharey,
            squeeze=False,
            height_ratios=height_ratios,
        )
        return panels[0, 0], panels
    if shape == (1, 1):
        return ax, np.array([[ax]], dtype=object)
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError(
            f"ax must be axes of a grid, as plt.subplots makes them, to make room for {shape[0] * shape[1]} panels; "
            f"leave it out for a figure of its own."
        )
    ax.set_axis_off()
    grid = spec.subgridspec(*shape, height_ratios=height_ratios)
    return ax, grid.subplots(sharex=sharex, sharey=sharey, squeeze=False)


def check_axes(ax: Any) -> None:
    """Refuse what is given in place of axes: an array of them, a figure, a number."""
    from matplotlib.axes import Axes

    if not (ax is None or isinstance(ax, Axes)):
        hint = " Take one of them, such as axes[0, 0]." if isinstance(ax, np.ndarray | list | tuple) else ""
        raise TypeError(f"ax must be matplotlib Axes, or None for a figure of its own; got {type(ax).__name__}.{hint}")


def point_style(kwargs: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return properties of points, those the caller gave before the defaults; short names are known."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(dict(kwargs), Line2D)}


# -------------------------------------------------------------------------------------------------------------- labels
def elide(text: str, width: int) -> str:
    """Return a text of at most ``width`` characters; what is left out stood in its middle.

    Examples
    --------
    >>> elide("abcdefghij", 5), elide("abc", 5)
    ('ab…ij', 'abc')
    """
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def short_labels(values: Iterable[Any], width: int = LABEL) -> list[str]:
    """Return labels as typed, elided where they are long, as far as different ones stay different.

    Examples
    --------
    >>> short_labels(["a" * 9 + "x" + "b" * 9, "a" * 9 + "y" + "b" * 9, "$1$"], 10)
    ['aaaaaaaaaxbbbbbbbbb', 'aaaaaaaaaybbbbbbbbb', '$1$']
    """
    whole = [label(value) for value in values]
    longest = max(map(len, whole), default=0)
    while width < longest:
        short = [elide(text, width) for text in whole]
        if len(set(short)) == len(set(whole)):
            return short
        width *= 2
    return whole


def words(name: str) -> str:
    """Return a name of the catalogue as words."""
    return name.replace("_", " ")


def estimate(value: float, low: float, high: float) -> str:
    """Return a value with its interval."""
    interval = "no interval" if np.isnan(low) or np.isnan(high) else f"[{number(low)}, {number(high)}]"
    return f"{number(value)} {interval}"


def percent(level: float) -> str:
    """Return a confidence level in percent."""
    return f"{100 * level:g}%"


def set_legend(ax: Any, handles: Sequence[Any] | None = None, *, columns: int = 1, lines: int = 1) -> Any:
    """Put the legend below the axes, where it hides nothing, with labels as typed.

    Parameters
    ----------
    ax : matplotlib Axes
        Of the legend.
    handles : sequence of artists, optional
        What it explains; default: all of the axes that have a label.
    columns : int
        Of the legend.
    lines : int
        Of the label of the axis that it stands below.
    """
    from matplotlib.transforms import ScaledTranslation

    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    # A distance in inches, which is the same however high the layout makes the axes.
    down = ScaledTranslation(0.0, -(0.3 + 0.16 * lines), ax.figure.dpi_scale_trans)
    legend = ax.legend(
        handles=list(handles),
        fontsize="small",
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + down,
        borderaxespad=0.0,
        frameon=False,
        ncols=columns,
    )
    for text in legend.get_texts():
        text.set(**PLAIN)
    return legend


def set_title(ax: Any, title: str, name: str | None = None, **kwargs: Any) -> None:
    """Write a title at the left, after the name of what is shown."""
    said = f"{elide(label(name), LABEL)}: {title}" if name else title
    ax.set_title(said, loc="left", **{"fontsize": "medium", **PLAIN, **kwargs})


# ---------------------------------------------------------------------------------------------------------------- rows
class Rows:
    """The rows of a display, in blocks under a heading, from the top down.

    Parameters
    ----------
    blocks : mapping of heading to mapping of key to label
        What stands in which row; labels as :func:`short_labels` gives them.
    per_row : float
        Inches.
    """

    def __init__(self, blocks: Mapping[str, Mapping[Hashable, str]], *, per_row: float = _ROW) -> None:
        self._per_row = per_row
        self.at: dict[Hashable, int] = {}
        self._lines: list[tuple[str, bool]] = []
        for heading, rows in blocks.items():
            self._lines.append((heading, True))
            for key, text in rows.items():
                self.at[key] = len(self._lines)
                self._lines.append((text, False))

    @property
    def height(self) -> float:
        """Inches that a figure needs for them, titles and axes included."""
        return 1.5 + self._per_row * len(self._lines)

    @property
    def width(self) -> float:
        """Inches that their labels need."""
        return 0.3 + _LETTER * _FONT / 72 * self._longest

    @property
    def _longest(self) -> int:
        return max(len(text) for text, _ in self._lines)

    def write(self, panels: Sequence[Any], texts: Sequence[tuple[str, str]], *, given: bool) -> tuple[float, int]:
        """Label the rows of the panels, which stand side by side.

        Parameters
        ----------
        panels : sequence of matplotlib Axes
            From left to right.
        texts : sequence of (str, str)
            What is to stand beside rows, in full and in short.
        given : bool
            Whether the caller gave the axes. A figure of our own is as large as the text needs.

        Returns
        -------
        tuple of float and int
            The size of letters that fit, and which of the texts: 0 in full, 1 in short.
        """
        first = panels[0]
        inches = first.get_window_extent().height / first.figure.dpi
        size, form = min(_FONT, 0.65 * 72 * inches / len(self._lines)), 0
        if given:
            inches = 0.75 * sum(panel.get_window_extent().width / panel.figure.dpi for panel in panels)
            fitting = [
                72 * inches / _LETTER / (self._longest + len(panels) * max((len(text[k]) for text in texts), default=0))
                for k in (0, 1)
            ]
            form = int(fitting[0] < _READABLE)
            size = min(size, fitting[form])
        size = max(size, _SMALLEST_FONT)
        for panel in panels:
            panel.set_ylim(len(self._lines) - 0.4, -0.6)
            panel.set_axisbelow(True)
            panel.tick_params(axis="y", length=0, labelleft=panel is first, labelsize=size)
            panel.tick_params(axis="x", labelsize="small")
            for side in ("top", "right", "left"):
                panel.spines[side].set_visible(False)
            rows = [y for y, (_, heading) in enumerate(self._lines) if not heading]
            panel.hlines(
                rows,
                0,
                1,
                transform=panel.get_yaxis_transform(),
                color="0.92",
                linewidth=0.6,
                zorder=0.5,
            )
        first.set_yticks(range(len(self._lines)), [text for text, _ in self._lines], **PLAIN)
        for tick, (_, heading) in zip(first.get_yticklabels(), self._lines, strict=True):
            if heading:
                tick.set_fontweight("bold")
        return size, form


def draw_row_points(
    ax: Any,
    x: ArrayLike,
    y: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    color: str,
    style: Mapping[str, Any],
    offset: float = 0.0,
) -> tuple[Any, Any]:
    """Draw points of rows and their intervals; return both artists, the second None where no interval is known.

    An interval may end outside the axes, at infinity; it is then drawn to their edge, with an arrow.
    """
    at = np.asarray(y, dtype=float) + offset
    starts, ends = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    known = ~np.isnan(starts) & ~np.isnan(ends)
    intervals = None
    if known.any():
        edge = ax.get_xlim()[1]
        beyond = known & (ends > edge)
        intervals = ax.hlines(
            at[known], starts[known], np.minimum(ends, edge)[known], color=color, linewidth=1.4, zorder=2.5
        )
        if beyond.any():
            arrows = np.full(int(beyond.sum()), edge)
            ax.plot(arrows, at[beyond], ">", color=color, markersize=4, zorder=2.5, clip_on=False)
    (points,) = ax.plot(x, at, **style)
    return points, intervals


def write_beside(ax: Any, y: float, text: str, size: float, **kwargs: Any) -> Any:
    """Write at the right of a row."""
    across = ax.get_yaxis_transform()
    return ax.text(1.03, y, text, transform=across, fontsize=size, va="center", **PLAIN, **kwargs)


def write_instead(ax: Any, y: float, text: str, size: float) -> Any:
    """Write in a row that has nothing to draw why it has not."""
    across = ax.get_yaxis_transform()
    behind = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 1.0}  # no line strikes it through
    return ax.text(
        0.02,
        y,
        elide(text, 60),
        transform=across,
        fontsize=size,
        va="center",
        color=GREY,
        bbox=behind,
        zorder=3,
        **PLAIN,
    )


# ----------------------------------------------------------------------------------------------------------- arguments
def records(table: pd.DataFrame) -> list[Any]:
    """Return the rows of a table, each with its columns as attributes."""
    return list(table.itertuples(index=False))


def in_order(table: pd.DataFrame, column: str, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the rows whose value of a column is wanted, in the order of these; alike rows keep theirs."""
    rows = table[table[column].isin(wanted)]
    order = rows[column].map({one: i for i, one in enumerate(wanted)})
    return rows.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)


def check_audit(audit: Any, needed: str, what: str, way_out: str) -> None:
    """Refuse what is no audit of the kind that a display is of, told by an attribute that it needs."""
    if not hasattr(audit, needed):
        raise TypeError(f"audit must be {what}; got {type(audit).__name__}. {way_out}")


def check_plain_audit(audit: Any) -> None:
    """Refuse what is no audit of decisions."""
    way_out = "Of rows there is from_predictions, and of a tally audit_tally(tally)."
    check_audit(audit, "marginals", "an Audit, as audit(...) returns it", way_out)


def check_columns(table: Any, needed: Sequence[str], where: str) -> None:
    """Refuse a table that lacks a column."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be a DataFrame, as {where} returns it; got {type(table).__name__}.")
    absent = [name for name in needed if name not in table]
    if absent:
        raise ValueError(f"table lacks the columns {listing(absent)}; {where} returns one that has them.")
    if not len(table):
        raise ValueError("table has no rows: there is nothing to draw.")


def chosen_attributes(asked: Any, known: Sequence[str]) -> list[str]:
    """Return the attributes to draw, as tables name them; all by default.

    Parameters
    ----------
    asked : str, tuple of str, list of these, or None
        ``("sex", "race")`` and ``"sex & race"`` name an intersection.
    known : sequence of str
        Those there are.
    """
    if asked is None:
        return list(known)
    listed = [asked] if isinstance(asked, str | tuple) else list(asked)
    named = [label(one) for one in listed]
    unknown = [one for one in named if one not in known]
    if unknown or not named:
        raise ValueError(f"attribute must name one of {listing(list(known), 30)}; got {asked!r}.")
    return named


def one_attribute(asked: Any, known: Sequence[str], display: str) -> str:
    """Return the attribute to draw, for a display of one; it must be named where there are several."""
    found = chosen_attributes(asked, known)
    if len(found) > 1:
        raise ValueError(f"{display} shows one attribute: pass attribute=, one of {listing(found, 30)}.")
    return found[0]


def groups_of_rows(X: Any, y: Any, sensitive_features: Any) -> Any:
    """Return the sensitive features of the rows of X: names or positions are looked up in it, others must fit it.

    pandas objects must share the index of X; arrays, lists and other frames are positional.
    """
    if isinstance(sensitive_features, str | int | np.integer) or _names_columns(X, sensitive_features):
        taken = take_columns(X, sensitive_features)
        return taken if isinstance(X, pd.DataFrame) else {name: taken[name].to_numpy() for name in taken}
    if isinstance(X, pd.DataFrame):
        columns = sensitive_columns(sensitive_features)
        check_aligned({"X": X, "y": y, **{f"sensitive feature {k!r}": v for k, v in columns.items()}})
    return sensitive_features


def _names_columns(X: Any, sensitive_features: Any) -> bool:
    """Tell whether a list holds names of columns, and not one group a row."""
    if not isinstance(sensitive_features, list | tuple) or not sensitive_features:
        return False
    names = frame_columns(X)
    if names is None or not all(isinstance(one, str) for one in sensitive_features):
        return False
    return set(column_list(list(sensitive_features))) <= set(names)


def decisions_of(estimator: Any, X: Any) -> Any:
    """Return the decisions of a fitted classifier."""
    if not hasattr(estimator, "predict"):
        raise TypeError(f"estimator must be a fitted classifier, with predict; got {type(estimator).__name__}.")
    return estimator.predict(X)


# -------------------------------------------------------------------------------------------------------------- series
def grid_of_facets(ax: Any, n: int) -> tuple[Any, NDArray[Any]]:
    """Return the axes that small panels are drawn in, and the panels, as :func:`grid_of_axes`."""
    shape = facet_shape(n)
    width, height = _FACET * shape[1] + 0.7, _FACET * shape[0] + 0.9
    # What stands around small panels is known, and the constrained layout takes half a minute to find it for sixty.
    margins = {
        "left": 0.55 / width,
        "right": 1 - 0.15 / width,
        "bottom": 0.45 / height,
        "top": 1 - 0.5 / height,
        "wspace": 0.12,
        "hspace": 0.22,
    }
    return grid_of_axes(ax, shape, (width, height), sharex=True, sharey=True, margins=margins)


def facet_shape(n: int) -> tuple[int, int]:
    """Return rows and columns of small panels for so many groups."""
    columns = min(n, 6 if n > 15 else 4)
    return -(-n // columns), columns


def dress_facets(panels: NDArray[Any], names: Sequence[str], xlabel: str, ylabel: str) -> list[Any]:
    """Title the small panels, label the outer ones, hide those left over, and return the others."""
    used = list(panels.ravel()[: len(names)])
    for panel, name in zip(used, names, strict=True):
        panel.set_title(name, loc="left", fontsize="x-small", **PLAIN)
        panel.tick_params(labelsize="x-small")
    for panel in panels.ravel()[len(names) :]:
        panel.set_axis_off()
    for column in panels.T:
        lowest = [panel for panel in column if panel in used][-1]
        lowest.set_xlabel(xlabel, fontsize="x-small", **PLAIN)
        lowest.tick_params(labelbottom=True)
    for row in panels:
        row[0].set_ylabel(ylabel, fontsize="x-small", **PLAIN)
    return used


def set_facets_title(ax: Any, first: Any, own_figure: bool, title: str, name: str | None) -> None:
    """Title small panels: above all of them in a figure of their own, else in the axes that made room for them."""
    said = f"{elide(label(name), LABEL)}: {title}" if name else title
    if own_figure:
        height = first.figure.get_figheight()
        first.figure.suptitle(said, y=1 - 0.1 / height, va="top", fontsize="medium", **PLAIN)
    else:
        set_title(ax, said, pad=18)
