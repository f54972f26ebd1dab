"""The scorecard as an HTML fragment: the same sections as tables, every label escaped, nothing loaded from outside."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sklearn_ethiclens.report._words import Section, scorecard

_TEMPLATES = Path(__file__).parent / "templates"


def render(audit: Any) -> str:
    """Return the scorecard of an audit as a ``div``.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.

    Returns
    -------
    str
    """
    return fragment(scorecard(audit))


def fragment(sections: Iterable[Section]) -> str:
    """Return sections as a ``div``, the first under a larger heading; the counterpart of the text's ``lay_out``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("audit.html.j2").render(sections=tuple(sections))
