"""The report as HTML: one file that loads nothing from outside, and a fragment for notebooks; every label is escaped."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.policy import Verdict
from sklearn_ethiclens.report._document import digest, document
from sklearn_ethiclens.report._forest import WIDTH
from sklearn_ethiclens.report._words import DESCRIPTIVE, Section, rates_by_group

_TEMPLATES = Path(__file__).parent / "templates"
_NUMBER = re.compile(r"[\[<]?-?\d[^\s\]]*(?=$|[\s\]])|inf$|undefined$")
# Of the drawings where style sheets do not reach into them, as in print; the same as in report.css.
_PAINTS = {
    "FLAGGED": "#a31515",
    "INCONCLUSIVE": "#8a5a00",
    "CLEARED": "#1a6b35",
    "INSUFFICIENT_DATA": "#6b3fa0",
    "UNDEFINED": "#6b3fa0",
}


def render(audit: Any) -> str:
    """Return the report of an audit as one page.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.

    Returns
    -------
    str
        Byte-identical for the same audit; the caller's facts on its run (date, duration) are no part of it.
    """
    return page([document(audit)])


def page(documents: Sequence[Sequence[Section]], *, script: bool = True) -> str:
    """Return documents as one page: the sections of each in order, the first of them its summary.

    Parameters
    ----------
    documents : sequence of sequences of Section
        One an audit.
    script : bool, default=True
        Whether tables can be sorted and filtered; without, the page is the same but for that.

    Returns
    -------
    str
    """
    css = _static("report.css") + _static("page.css")
    code = _static("report.js") if script else ""
    first = documents[0][0].title
    return _render(
        "page.html.j2",
        documents=[_keyed(sections) for sections in documents],
        title=first if len(documents) == 1 else f"{len(documents)} audits, the first: {first}",
        css=_raw(css),
        css_hash=_hash(css),
        script=_raw(code),
        script_hash=_hash(code),
        version=__version__,
        unfolded=True,  # what the script folds, so that without it everything is shown
    )


def _keyed(sections: Sequence[Section]) -> tuple[Section, ...]:
    """Return sections that can all be linked to."""
    return tuple(replace(section, key=section.key or f"section-{i}") for i, section in enumerate(sections, 1))


def notebook(audit: Any) -> str:
    """Return the summary of an audit as a fragment, with what was audited and each attribute folded below it."""
    return _render(
        "fragment.html.j2",
        sections=digest(audit, rates_by_group(audit)),
        css=_raw(_static("report.css")),
        folded=True,
        opened=1,
        unfolded=False,
    )


def fragment(sections: Iterable[Section]) -> str:
    """Return sections as a ``div``, the first under a larger heading; the counterpart of the text's ``lay_out``."""
    return _render(
        "fragment.html.j2",
        sections=tuple(sections),
        css=_raw(_static("report.css")),
        folded=False,
        opened=0,
        unfolded=True,
    )


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["numeric"] = lambda text: _NUMBER.match(text) is not None
    environment.globals.update(verdicts=(*map(str, Verdict), DESCRIPTIVE), paints=_PAINTS, width=WIDTH)
    return environment


def _render(name: str, **values: Any) -> str:
    return str(_environment().get_template(name).render(**values)).strip() + "\n"


@cache
def _static(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _raw(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()
