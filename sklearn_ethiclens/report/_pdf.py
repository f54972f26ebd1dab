"""The report as a PDF: the page laid out for paper by WeasyPrint, tagged, and the same bytes for the same audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn_ethiclens.report._document import document
from sklearn_ethiclens.report._html import page
from sklearn_ethiclens.report._words import Section


def render(audit: Any) -> bytes:
    """Return the report of an audit as a PDF.

    Parameters
    ----------
    audit : Audit
        Anything with the attributes of one.

    Returns
    -------
    bytes

    Raises
    ------
    ImportError
        If WeasyPrint, or the Pango library that it lays text out with, is not installed.
    """
    return pdf([document(audit, condensed=True)])


def pdf(documents: Sequence[Sequence[Section]]) -> bytes:
    """Return documents as one PDF, as :func:`~sklearn_ethiclens.report._html.page` returns them as one page."""
    html = load_weasyprint().HTML(string=page(documents, script=False), url_fetcher=_fetch_nothing)
    return bytes(html.write_pdf(pdf_variant="pdf/ua-1", pdf_identifier=b"sklearn-ethiclens"))


def load_weasyprint() -> Any:
    """Return the module, or raise with what is missing and how to get it."""
    try:
        import weasyprint
    except ImportError as error:
        raise ImportError('a PDF needs WeasyPrint: pip install "sklearn-ethiclens[report]"') from error
    except OSError as error:  # what cffi raises where a shared library is missing
        raise ImportError(
            "WeasyPrint does not find the Pango library, which it lays text out with; on Debian and Ubuntu: apt install "
            f"libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 ({error})"
        ) from error
    return weasyprint


def _fetch_nothing(url: str, *_: Any, **__: Any) -> Any:
    raise ValueError(f"a report loads nothing from outside; got {url!r}.")
