"""The scorecard as Markdown, as pull requests and wikis show it: the verdict in the open, the rest folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sklearn_ethiclens.report._words import Facts, Items, Paragraph, Part, Section, Table, scorecard

_COMMANDS = re.compile(r"[\\`*_{}\[\]#|~$^!]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}  # an @ would call somebody, a < would be a tag
_LIST = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s|$)")


def render(audit: Any, *, folded: bool = True, level: int = 2) -> str:
    """Return the scorecard of an audit as Markdown (the dialect with tables, GitHub's).

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.
    folded : bool, default=True
        Whether all below the first part is folded away (``<details>``), to be opened with a click.
    level : int, default=2
        Of the first heading, 1 to 5; the others are one below.

    Returns
    -------
    str
    """
    return lay_out(scorecard(audit), folded=folded, level=level)


def lay_out(sections: Iterable[Section], *, folded: bool = True, level: int = 2) -> str:
    """Return sections as Markdown; labels are shown as they are, whatever they would command."""
    if not 1 <= level <= 5:
        raise ValueError(f"level must be that of a heading with one below it, 1 to 5; got {level!r}.")
    first, *others = sections
    pieces = ["#" * level + " " + escape(first.title), body(first.parts)]
    for section in others:
        if folded:
            pieces += ["<details>", f"<summary>{escape(section.title)}</summary>", body(section.parts), "</details>"]
        else:
            pieces += ["#" * (level + 1) + " " + escape(section.title), body(section.parts)]
    return "\n\n".join(filter(None, pieces)) + "\n"


def body(parts: Iterable[Part]) -> str:
    """Return the parts of a section as Markdown, without its heading."""
    return "\n\n".join(filter(None, map(_part, parts)))


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is: no markup, no HTML, no mention, no formula.

    Examples
    --------
    >>> print(escape("<b>x</b> | *y* @all $z$"))
    &lt;b&gt;x&lt;/b&gt; \| \*y\* &#64;all \$z\$
    """
    text = "".join(_ENTITIES.get(character, character) for character in _COMMANDS.sub(r"\\\g<0>", text))
    return _LIST.sub(lambda match: match[1] + match[2][:-1] + "\\" + match[2][-1], text)


def _part(part: Part) -> str:
    if isinstance(part, Paragraph):
        return escape(part.text)
    if isinstance(part, Items):
        return "\n".join(f"- {escape(line)}" for line in part.lines)
    if isinstance(part, Facts):
        return "\n".join(f"- **{escape(key)}**: {escape(text)}" for key, text in part.rows)
    return "\n\n".join(_block(part, *block) for block in part.blocks)


def _block(table: Table, heading: str, rows: tuple[tuple[str, ...], ...]) -> str:
    cells = [[_cell(cell) for cell in row] for row in rows]
    above = f"**{escape(heading)}**\n\n" if heading else ""
    return above + _rows(tuple(map(_cell, table.header)), cells)


def _rows(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = tuple(header)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(text: str) -> str:
    return "<br>".join(escape(line.strip()) for line in text.split("\n") if line.strip())
