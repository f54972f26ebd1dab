"""Audit -> words: one module a format; each shows what it is given and computes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sklearn_ethiclens.report import _cards, _html, _markdown, _pdf, _text
from sklearn_ethiclens.report._cards import add_to_card

__all__ = ["FORMATS", "SUFFIXES", "add_to_card", "render", "schema"]

FORMATS: Mapping[str, Callable[..., str | bytes]] = MappingProxyType(
    {
        "text": _text.render,
        "html": _html.render,
        "pdf": _pdf.render,
        "markdown": _markdown.render,
        "model_card": _cards.model_card,
        "datasheet": _cards.datasheet,
    }
)
"""The formats by name: a function of an audit, and of options of its own."""

SUFFIXES: Mapping[str, str] = MappingProxyType(
    {".txt": "text", ".html": "html", ".htm": "html", ".pdf": "pdf", ".md": "markdown"}
)
"""The format of a file by how its name ends."""


def render(audit: Any, format: str = "text", **options: Any) -> str | bytes:
    """Return an audit in words.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.
    format : str, default="text"
        A name in ``FORMATS``.
    **options
        Of the format: "text" takes ``width`` and ``color``.

    Returns
    -------
    str, or bytes of "pdf"

    Raises
    ------
    ValueError
        If there is no such format.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {[*FORMATS, 'json']}; got {format!r}.")
    return FORMATS[format](audit, **options)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of stored audits, for those who read them without this package.

    Returns
    -------
    dict

    Examples
    --------
    >>> schema()["$id"]
    'urn:sklearn-ethiclens:audit:1'
    """
    stored: dict[str, Any] = json.loads((Path(__file__).parent / "schemas" / "audit-1.json").read_text("utf-8"))
    return stored
