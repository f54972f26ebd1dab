"""Audit -> words: one module a format; each shows what it is given and computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sklearn_ethiclens.report import _html, _pdf, _text

FORMATS: Mapping[str, Callable[..., str | bytes]] = MappingProxyType(
    {"text": _text.render, "html": _html.render, "pdf": _pdf.render}
)
"""The formats by name: a function of an audit, and of options of its own."""

SUFFIXES: Mapping[str, str] = MappingProxyType({".txt": "text", ".html": "html", ".htm": "html", ".pdf": "pdf"})
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
