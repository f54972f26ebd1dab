"""The scorecard as an HTML fragment: the same sections as tables, every label escaped, nothing loaded from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn_ethiclens.report._words import scorecard

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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("audit.html.j2").render(sections=scorecard(audit))
