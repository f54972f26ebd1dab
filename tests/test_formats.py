"""Every format states the same verdicts and numbers: what each says of the judged comparisons is read back and compared."""

import io
import re
import warnings

import numpy as np
import pytest

from sklearn_ethiclens import Audit, audit
from sklearn_ethiclens.report._words import number
from tests.test_markdown import plain, tokens
from tests.test_report_html import rows_of

FORMATS = ["text", "json", "markdown", "model_card", "html", "pdf"]
VERDICTS = {"FLAGGED", "CLEARED", "INCONCLUSIVE", "INSUFFICIENT_DATA", "UNDEFINED"}
PDF_ROW = re.compile(r"^(.+?) ((?:-?[\d.]+|undefined)(?: \[[^\]]*\])?) ?([<.\d]*) ([A-Z]+(?: DATA)?)$")
TEXT_ROW = re.compile(r"^  (\w+) +((?:-?[\d.]+|undefined)(?: \[[^\]]*\])?) +(?:([<.\d]+) +)?([A-Z_]+|descriptive)$")


@pytest.fixture(scope="module")
def found():
    """Groups that are flagged, cleared, undecided, too small, and without positives."""
    rng = np.random.default_rng(4)
    sizes = {
        "<b>all</b>": 1500,
        "half $as$ often": 1500,
        "alike": 1500,
        "some | few": 250,
        "small": 40,
        "no positives": 120,
    }
    rates = dict(zip(sizes, [0.5, 0.25, 0.5, 0.42, 0.5, 0.5], strict=True))
    group = np.repeat(list(sizes), list(sizes.values()))
    y_true = np.where(group == "no positives", 0, rng.integers(0, 2, group.size))
    chance = np.array([rates[name] for name in group]) + 0.2 * (y_true - 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = audit(
            y_true,
            (rng.random(group.size) < chance).astype(int),
            sensitive_features={"g": group},
            reference="<b>all</b>",
            n_resamples=500,
        )
    assert {str(f.verdict) for f in made.judged} == VERDICTS
    return made


def said_by_findings(found):
    """Group, metric, value with its interval, and verdict of each judged comparison, as all formats write numbers."""
    return {(f.group, f.metric, shown(f), str(f.verdict)) for f in found.judged}


def shown(finding):
    if np.isnan(finding.value):
        return "undefined"
    ends = "" if np.isnan(finding.low) else f" [{number(finding.low)}, {number(finding.high)}]"
    return number(finding.value) + ends


def of_text(text):
    said, who = set(), None
    for line in text.splitlines():
        if " against " in line and line.startswith("  ") and not line.startswith("   "):
            who = line.strip().removesuffix(" against <b>all</b>")
        elif (row := TEXT_ROW.match(line)) and row[4] in VERDICTS:
            said.add((who, row[1], row[2], row[4]))
    return said


def of_json(text):
    return said_by_findings(Audit.from_json(text))


def of_markdown(text):
    said, who, row = set(), None, []
    for token in tokens(text):
        if token.type == "tr_open":
            row = []
        elif token.type == "inline":
            row.append(plain(token).strip())
            if row[-1].endswith(" against <b>all</b>"):
                who = row[-1].removesuffix(" against <b>all</b>")
        elif token.type == "tr_close" and row[-1] in VERDICTS:
            said.add((who, row[0], " ".join(row[1].split()), row[-1]))
    return said


def of_html(text):
    rows = rows_of(text, "Every finding in a row, the judged ones first")
    verdicts = [row[6].replace(" ", "_") for row in rows]
    return {
        (row[2], row[0], f"{row[4]} {row[5]}".strip(), verdict)
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict in VERDICTS
    }


def of_pdf(content):
    """The table of judged comparisons: metrics as headings, and under each a row a group."""
    from pypdf import PdfReader

    text = "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)
    said, metric = set(), None
    for line in text.replace("equalized_odds_\ndifference", "equalized_odds_difference").splitlines():
        if line in ("disparate_impact", "equalized_odds_difference"):
            metric = line
        elif metric and (row := PDF_ROW.match(line)) and row[4].replace(" ", "_") in VERDICTS:
            said.add((row[1], metric, row[2], row[4].replace(" ", "_")))
    return said


READERS = {
    "text": of_text,
    "json": of_json,
    "markdown": of_markdown,
    "model_card": of_markdown,
    "html": of_html,
    "pdf": of_pdf,
}


def rendered(found, name):
    if name == "pdf":
        pytest.importorskip("pypdf", reason="pypdf is not installed")
        try:
            import weasyprint  # noqa: F401
        except (ImportError, OSError) as error:
            pytest.skip(f"WeasyPrint cannot be used: {error}")
    return found.report(name)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_states_the_same_verdicts_and_numbers(found, name):
    assert READERS[name](rendered(found, name)) == said_by_findings(found)


@pytest.mark.parametrize("name", [*FORMATS, "datasheet"])
def test_the_same_audit_gives_the_same_bytes(found, name):
    again = Audit.from_json(found.to_json())
    assert rendered(found, name) == rendered(again, name)


@pytest.mark.parametrize("name", ["text", "markdown", "model_card", "html", "json"])
def test_the_verdict_and_its_status_are_the_audits(found, name):
    said = rendered(found, name)
    assert str(found.verdict) in said
    assert found.status in said
