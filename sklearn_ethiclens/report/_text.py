"""The scorecard for a terminal, laid out by rich into plain or coloured text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import repeat
from typing import Any

from sklearn_ethiclens.report._words import Facts, Items, Paragraph, Part, Section, Table, scorecard

WIDTHS = (72, 100)  # less does not hold the tables; beyond, lines are hard to read
_INDENT = 2
_GAP = 2  # between columns, where there is room
_NARROWEST = 8  # of a column that gives way
_SPACED = (Facts, Table)  # stand between empty lines
_STYLES = {
    "FLAGGED": "bold red",
    "INCONCLUSIVE": "yellow",
    "CLEARED": "green",
    "INSUFFICIENT_DATA": "magenta",
    "UNDEFINED": "magenta",
    "descriptive": "dim",
}


def render(audit: Any, *, width: int = 80, color: bool = False) -> str:
    """Return the scorecard of an audit.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.
    width : int, default=80
        Columns; at least 72 and at most 100 are used.
    color : bool, default=False
        Whether to colour verdicts with terminal codes.

    Returns
    -------
    str
    """
    return lay_out(scorecard(audit), width=width, color=color)


def lay_out(sections: Iterable[Section], *, width: int = 80, color: bool = False) -> str:
    """Return sections as text ``width`` columns wide; labels are printed as they are, never read as markup."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    width = min(max(width, WIDTHS[0]), WIDTHS[1])
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    for i, section in enumerate(sections):
        if i:
            console.print()
        style = f"bold {_STYLES.get(section.verdict, '')}".strip()
        console.print(Text(section.title, style=style, overflow="fold"))
        for before, part in zip([None, *section.parts], section.parts, strict=False):
            if before and (isinstance(part, _SPACED) or isinstance(before, _SPACED)):
                console.print()
            for piece in _pieces(part, width - _INDENT):
                console.print(Padding(piece, (0, 0, 0, _INDENT)))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().rstrip("\n").split("\n"))


def _pieces(part: Part, width: int) -> list[Any]:
    from rich.text import Text

    if isinstance(part, Paragraph):
        return [Text(part.text, overflow="fold")]
    if isinstance(part, Items):
        return [_grid([("-", line) for line in part.lines], [1, width - 2], 1)]
    if isinstance(part, Facts):
        first = max(len(key) for key, _ in part.rows)
        return [_grid(part.rows, [first, width - first - _GAP], _GAP)]
    return _table(part, width)


def _table(table: Table, width: int) -> list[Any]:
    """Return the grids of a table: the header, then a heading and the rows of each block."""
    widths = _natural(table, range(len(table.header)))
    gaps = len(widths) - 1
    if table.keys and sum(widths) + gaps > width:
        return _panels(table, width)
    widest = widths.index(max(widths))  # gives way where all is too wide
    room = width - sum(widths) + widths[widest] - gaps
    widths[widest] = min(widths[widest], max(_NARROWEST, room))
    return _panel(table, range(len(widths)), widths, width)


def _natural(table: Table, columns: Iterable[int], words: bool = False) -> list[int]:
    """Return how wide columns are, and with ``words`` how wide where headers break at spaces."""
    from rich.cells import cell_len

    rows = [row for _, block in table.blocks for row in block]
    return [
        max(
            max(map(cell_len, table.header[j].split() if words else table.header[j].split("\n")), default=0),
            max((cell_len(line) for row in rows for line in row[j].split("\n")), default=0),
        )
        for j in columns
    ]


def _panels(table: Table, width: int) -> list[Any]:
    """Return a table too wide for the page: as many columns as there is room for, the others below beside the same keys."""
    from rich.text import Text

    keys, others = range(table.keys), range(table.keys, len(table.header))
    key_widths = _natural(table, keys, words=True)
    other_widths = _natural(table, others, words=True)
    budget = width * 2 // 3 - (len(key_widths) - 1)  # long labels leave a third of the page to what is said of them
    while sum(key_widths) > budget:
        key_widths[key_widths.index(max(key_widths))] -= 1
    room = width - sum(key_widths) - len(key_widths)
    panels: list[tuple[list[int], list[int]]] = []
    for j, wide in zip(others, (min(w, room) for w in other_widths), strict=True):
        if not panels or sum(panels[-1][1]) + len(panels[-1][1]) + wide > room:
            panels.append(([], []))
        panels[-1][0].append(j)
        panels[-1][1].append(wide)
    pieces: list[Any] = []
    for columns, widths in panels:
        pieces += [Text("")] * bool(pieces)
        pieces += _panel(table, [*keys, *columns], [*key_widths, *widths], width)
    return pieces


def _panel(table: Table, columns: Sequence[int], widths: list[int], width: int) -> list[Any]:
    """Return some columns of a table at given widths."""
    from rich.text import Text

    gaps = len(widths) - 1
    gap = _GAP if sum(widths) + _GAP * gaps <= width else 1
    header = [table.header[j] for j in columns]
    pieces = [_grid([header], widths, gap, style="bold"), Text("-" * (sum(widths) + gap * gaps))]
    for i, (heading, block) in enumerate(table.blocks):
        if heading:
            pieces += [Text("")] * bool(i) + [Text(heading, style="bold", overflow="fold")]
        pieces.append(_grid([[row[j] for j in columns] for row in block], widths, gap))
    return pieces


def _grid(rows: Iterable[Iterable[str]], widths: list[int], gap: int, style: str = "") -> Any:
    """Return rows in columns of fixed widths; what is too long goes on in the next line."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=0)  # gaps are columns: versions of rich differ on padding at the edge
    for i, columns in enumerate(widths):
        if i:
            grid.add_column(width=gap)
        grid.add_column(width=columns, overflow="fold")
    for row in rows:
        cells = [Text(cell, style=style or _STYLES.get(cell, ""), overflow="fold") for cell in row]
        grid.add_row(*[cell for pair in zip(repeat(Text()), cells, strict=False) for cell in pair][1:])
    return grid
