"""The report as a page, in a notebook and on paper: what is drawn is what was found, and nothing gets in or out."""

import hashlib
import html
import re
import subprocess
import sys
import warnings
import zlib
from base64 import b64encode
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st

from sklearn_ethiclens import POLICIES, Audit, audit
from sklearn_ethiclens._findings import Section as FurtherSection
from sklearn_ethiclens.metrics._scores import metric_kind
from sklearn_ethiclens.policy import Verdict
from sklearn_ethiclens.report import SUFFIXES, _guidance
from sklearn_ethiclens.report._document import document
from sklearn_ethiclens.report._forest import MARGIN, WIDTH, axis, forest
from sklearn_ethiclens.report._html import page
from sklearn_ethiclens.report._words import LIMITS, number, pvalue

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><b>x</b>", "{{ 7 * 7 }}", "$x$ & y"]
OWN_TAGS = set(
    "a article bdi body br button caption circle dd desc details div dl dt h1 h2 h3 h4 head html li line main meta nav p "
    "path rect region script section small span style summary svg table tbody td text th thead title tr ul wbr".split()
)


def made(y_true, y_pred, groups, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit(y_true, y_pred, sensitive_features=groups, **{"n_resamples": 200, **options})


def drawn(names=("F", "M", "X"), n=2000, seed=0, **options):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(names), n)
    y_true = (rng.random(n) < 0.5).astype(int)
    y_pred = (rng.random(n) < np.where(code % 3 == 1, 0.3, 0.6)).astype(int)
    return made(y_true, y_pred, {"group": np.array(names, dtype=object)[code]}, **options)


@pytest.fixture(scope="module")
def three():
    return drawn()


@pytest.fixture(scope="module")
def extremes():
    """A group of which nobody is selected, and one of which nobody is positive, so that equalized odds has no value."""
    code = np.repeat([0, 1, 2], 200)
    y_true = np.where(code == 2, 0, np.arange(600) % 2)
    y_pred = np.where(code == 1, 0, np.arange(600) % 3 == 0).astype(int)
    names = np.array(["all", "none selected", "none positive"], dtype=object)
    return made(y_true, y_pred, {"g": names[code]}, reference="all")


def words(markup):
    """The text of markup, without style, script and drawings."""
    markup = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", markup, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<br>", " ", re.sub(r"<wbr>", "", markup))).split())


def plain(cell):
    return " ".join(html.unescape(re.sub(r"<(?!br)[^>]*>", "", re.sub(r"<svg.*?</svg>", "", cell, flags=re.S))).split())


def rows_of(page, caption):
    """The cells of the table under a caption, as they are read."""
    table = next(t for t in re.findall(r"<table.*?</table>", page, re.S) if f"<span>{html.escape(caption)}</span>" in t)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>", 1)[1], re.S)
    return [[plain(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)] for row in rows]


# --------------------------------------------------------------------------------------------------------- one file
class Reader(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.links, self.ids, self.handlers = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "xlink:href"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)
            if name.startswith("on") or name == "style":
                self.handlers.append((tag, name))


def test_the_page_loads_nothing_and_links_only_to_itself(three):
    text = three.report("html")
    read = Reader(text)
    assert all(link.startswith("#") for link in read.links)
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert not re.search(r"url\(|@import|https?:", text)
    assert read.handlers == []


def test_the_policy_of_content_allows_its_own_style_and_script_alone(three):
    text = three.report("html")
    said = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert said.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        inner = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert len(inner) == 1
        digest = b64encode(hashlib.sha256(inner[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in said


def test_labels_of_any_kind_are_text():
    text = drawn(HOSTILE).report("html")
    assert set(Reader(text).tags) <= OWN_TAGS
    assert text.count("<script>") == text.count("<style>") == 1
    assert "b" not in Reader(text).tags
    groups = [row[0] for row in rows_of(text, "Rates by group: value, denominator, interval")]
    assert sorted(groups) == sorted(HOSTILE)


def test_same_audit_same_bytes_whatever_the_run(three):
    text = three.report("html")
    assert three.report("html") == text
    assert Audit.from_json(three.to_json()).report("html") == text
    assert three.annotate(run={"date": "2026-01-01", "duration_seconds": 3}).report("html") == text


def test_same_bytes_in_another_process(three, tmp_path):
    (tmp_path / "a.json").write_text(three.to_json(), encoding="utf-8")
    code = (
        "import hashlib, sys; from pathlib import Path; from sklearn_ethiclens import Audit\n"
        "found = Audit.from_json(Path(sys.argv[1]).read_text(encoding='utf-8'))\n"
        "print(hashlib.sha256(found.report('html').encode()).hexdigest())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.json")]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    assert out.strip() == hashlib.sha256(three.report("html").encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------ what it says
def test_every_finding_is_a_row_of_its_numbers(three):
    rows = rows_of(three.report("html"), "Every finding in a row, the judged ones first")
    expected = sorted(three.findings, key=lambda f: f.threshold is None)
    assert len(rows) == len(expected)
    for row, f in zip(rows, expected, strict=True):
        assert row[0] == f.metric
        assert row[2] == f.group
        assert row[4] == number(f.value)
        assert row[5] == ("" if np.isnan(f.low) else f"[{number(f.low)}, {number(f.high)}]")
        assert row[9] == pvalue(f.pvalue_adjusted)
    assert [row[6] for row in rows][:4] == [str(f.verdict) for f in three.judged]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
def test_every_judged_finding_stands_beside_its_drawing(policy, outcome):
    found = drawn(policy=policy, outcome=outcome, n_resamples=100)
    text = found.report("html")
    if not found.judged:
        assert "NOT JUDGED" in words(text)
        return
    rows = rows_of(text, "Judged comparisons by group")
    for f in found.judged:
        overall = metric_kind(f.metric) == "overall"
        who = f"all groups, {f.group} lowest, {f.reference} highest" if overall else f.group
        shown = f"{number(f.value)}{'' if np.isnan(f.low) else f' [{number(f.low)}, {number(f.high)}]'}"
        assert any(row[0].startswith(who) and row[2:] == [shown, pvalue(f.pvalue_adjusted), f.verdict] for row in rows)


def test_the_summary_names_the_worst_and_what_was_not_assessed(extremes):
    text = extremes.report("html")
    worst = rows_of(text, "The worst comparison of each attribute and judged metric")
    assert worst[0][:3] == ["g: none selected against all", "FLAGGED", "disparate_impact"]
    summary = words(text).split("What was audited </h2>")[0]
    assert "Not assessed, and why" in summary
    assert "equalized_odds_difference of none positive against all: none positive has no positive" in summary


def test_all_parts_are_there_in_order(three):
    said = words(three.report("html"))
    titles = [
        "Audit: FLAGGED",
        "What was audited",
        "By group",
        "All findings",
        "What this does not show",
        "Causes to look at",
        "Which metric for which purpose",
        "Ways to mitigate",
        "Conditions and monitoring plan",
        "Method and provenance",
        "Approval",
    ]
    main = said.split('<main id="main" tabindex="-1">')[1]
    at = [re.search(rf"<h[12]>{title}", main).start() for title in titles]
    assert at == sorted(at)
    for sentence in (
        *LIMITS,
        *_guidance.CAUSES,
        _guidance.NOT_PARITY,
        _guidance.GATE,
        three.provenance["data"]["tally_sha256"],
    ):
        assert sentence in main


def test_further_sections_stand_between_the_attributes_and_the_findings(three):
    found = three.with_section(
        FurtherSection("key", "Further", ("B < c.",), ("who", "n"), (("<b>", 1200), ("a", float("nan"))))
    )
    text = found.report("html")
    assert rows_of(text, "Further: 2 rows") == [["<b>", "1200"], ["a", "undefined"]]
    at = [words(text).index(f"<h2>{title}") for title in ("By group", "Further", "All findings")]
    assert at == sorted(at)


def test_many_comparisons_leave_the_descriptive_ones_to_the_table_of_all():
    found = drawn([f"g{i}" for i in range(20)], n=6000, n_resamples=100)
    said = words(found.report("html"))
    assert re.search(r"\d+ more comparisons that are not judged stand among all findings\.", said)
    assert len(rows_of(found.report("html"), "Every finding in a row, the judged ones first")) == len(found.findings)


def test_of_many_alike_reasons_some_are_named_and_the_others_counted():
    found = drawn([f"g{i}" for i in range(20)], n=6000, n_resamples=100, metrics=["disparate_impact"])
    alike = [f for f in found.flagged if f.metric == "disparate_impact" and f.reason == "the interval lies below 0.8"]
    assert len(alike) > 6
    named = "; ".join(f"{f.group} against {f.reference}" for f in alike[:6])
    expected = f"disparate_impact of {named} and {len(alike) - 6} more: the interval lies below 0.8"
    assert expected in words(found.report("html"))


def test_several_audits_make_one_page(three, extremes):
    text = page([document(three), document(extremes)])
    read = Reader(text)
    assert len(read.ids) == len(set(read.ids))
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert read.tags.count("h1") == 1
    assert read.tags.count("article") == 2


def test_every_table_has_a_caption_and_every_header_a_scope(three):
    text = three.report("html")
    tables = re.findall(r"<table.*?</table>", text, re.S)
    assert tables
    for table in tables:
        assert table.count("<caption>") == 1
        assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", table))
    regions = re.findall(r'<div class="scroll" role="region" aria-label="[^"]+" tabindex="0">', text)
    assert len(regions) == len(tables)


# --------------------------------------------------------------------------------------------------------- the drawing
def scale_of(panel):
    """The value at a place, by the outer ticks."""
    (x0, low), (x1, high) = panel.ticks[0], panel.ticks[-1]
    return lambda x: float(low) + (x - x0) / (x1 - x0) * (float(high) - float(low))


def panels_of(found, names=None):
    shown = [
        f
        for f in found.findings
        if metric_kind(f.metric) == "pair" and f.metric in (names or {f.metric for f in found.judged})
    ]
    return {p.metric: p for p in forest(shown, found.policy).panels}, shown


def test_marks_lie_where_the_axis_has_their_values(three):
    metrics = ("disparate_impact", "equalized_odds_difference", "statistical_parity_difference", "precision_difference")
    panels, shown = panels_of(three, metrics)
    for f in shown:
        panel = panels[f.metric]
        value_at = scale_of(panel)
        mark = next(m for m in panel.marks if m.group == f.group)
        pixel = abs(value_at(1.0) - value_at(0.0))
        for place, value in ((mark.at, f.value), (mark.low, f.low), (mark.high, f.high)):
            assert value_at(place) == pytest.approx(value, abs=pixel * 0.01)
        assert mark.beyond == ()
        for place, text in panel.ticks:
            assert value_at(place) == pytest.approx(float(text), abs=pixel * 0.01)


def test_the_band_is_what_the_rule_accepts(three):
    panels, _ = panels_of(three)
    impact, odds = panels["disparate_impact"], panels["equalized_odds_difference"]
    assert [round(scale_of(impact)(x), 2) for x in impact.edges] == [0.8]
    assert round(scale_of(impact)(impact.band[0]), 2) == 0.8
    assert impact.band[1] == WIDTH - MARGIN  # without a maximum up to the end of the axis
    assert round(scale_of(odds)(odds.band[1]), 2) == 0.1
    assert scale_of(impact)(impact.parity) == pytest.approx(1, abs=0.01)
    assert scale_of(odds)(odds.parity) == pytest.approx(0, abs=0.01)


def test_the_band_of_a_signed_gap_has_both_sides():
    found = drawn(policy="glassalpha")
    panels, _ = panels_of(found)
    for name in ("true_positive_rate_difference", "selection_rate_difference"):
        limit = found.policy.rule(name).maximum
        assert [round(scale_of(panels[name])(x), 2) for x in panels[name].edges] == [-limit, limit]


def test_zero_is_drawn_as_zero_and_undefined_as_undefined(extremes):
    panels, _ = panels_of(extremes)
    impact, odds = panels["disparate_impact"], panels["equalized_odds_difference"]
    none = next(m for m in impact.marks if m.group == "none selected")
    assert impact.ticks[0] == (none.at, "0")
    assert none.shown.startswith("0.000")
    blank = next(m for m in odds.marks if m.group == "none positive")
    assert (blank.at, blank.low, blank.high, blank.shown) == (None, None, None, "undefined")
    text = extremes.report("html")
    svg = next(
        s for s in re.findall(r"<svg.*?</svg>", text, re.S) if "<title>none positive against all: undefined" in s
    )
    assert ">undefined</text>" in svg
    assert not re.search(r'class="(point|hollow|interval)"', svg)


def test_what_lies_beyond_the_axis_is_an_arrow_at_its_edge():
    # 200 of 400 against 10 of 400: the ratio to the reference is 20, far beyond what is drawn.
    y_pred = np.r_[np.arange(400) < 10, np.arange(400) < 200].astype(int)
    found = made(None, y_pred, {"g": np.repeat(["few", "many"], 400)}, reference="few", metrics=["disparate_impact"])
    panels, shown = panels_of(found)
    mark = panels["disparate_impact"].marks[0]
    assert shown[0].value == 20
    assert set(mark.beyond) == {"value", "low", "high"}
    assert mark.at == mark.high == WIDTH - MARGIN
    assert mark.shown.startswith("20")


def test_drawings_say_what_they_show(three):
    text = three.report("html")
    axes = re.findall(r'<svg class="axis" role="img".*?</svg>', text, re.S)
    assert axes
    for one in axes:
        assert re.search(r"<title>[a-z_]+</title><desc>[a-z_]+: 2 comparisons on a scale \[", one)
    assert len(re.findall(r'<svg class="mark [a-z_]+" aria-hidden="true"', text)) == text.count('<svg class="mark ')


@given(st.lists(st.integers(-(10**6), 3 * 10**6), min_size=1, max_size=8))
def test_an_axis_holds_all_values_on_few_round_ticks(millionths):
    values = [value / 10**6 for value in millionths]
    start, stop, step = axis(values)
    assert start - 1e-9 <= min(values)
    assert max(values) <= stop + 1e-9
    n_steps = (stop - start) / step
    assert n_steps == pytest.approx(round(n_steps))
    assert 1 <= round(n_steps) <= 5
    assert start / step == pytest.approx(round(start / step), abs=1e-6)


# ------------------------------------------------------------------------------------------------------- in a notebook
def test_a_notebook_shows_the_summary_and_folds_the_rest(three):
    shown = three._repr_html_()
    assert shown.startswith('<div class="sklearn-ethiclens">')
    assert "<script" not in shown
    assert " id=" not in shown
    head, *folded = shown.split("<details>")
    assert "The worst comparison" in head
    assert "<details open>" not in shown
    titles = [re.search(r"<summary>(.*?)</summary>", part).group(1) for part in folded]
    assert titles == ["What was audited", "By group", f"Further comparisons, not judged ({4 * 2})"]


def test_the_styles_of_a_fragment_reach_nothing_else(three):
    style = re.search(r"<style>(.*?)</style>", three._repr_html_(), re.S).group(1)
    style = re.sub(r"@media[^{]*\{(.*?\})\s*\}", r"\1", style, flags=re.S)
    selectors = [s.strip() for group in re.findall(r"([^{}]+)\{", style) for s in group.split(",")]
    assert len(selectors) > 30
    assert [s for s in selectors if not s.startswith(".sklearn-ethiclens")] == []


def test_dollars_in_a_label_are_no_formula_in_a_notebook():
    shown = drawn(["$10k", "$20k"])._repr_html_()
    assert shown.index('class="tex2jax_ignore mathjax_ignore"') < shown.index("$10k")


def test_the_display_setting_of_scikit_learn_is_honoured(three):
    with sklearn.config_context(display="diagram"):
        assert three._repr_mimebundle_() == {"text/plain": repr(three), "text/html": three._repr_html_()}
    with sklearn.config_context(display="text"):
        assert three._repr_mimebundle_(include=None, exclude=None) == {"text/plain": repr(three)}
        assert not hasattr(three, "_repr_html_")


# ----------------------------------------------------------------------------------------------------------- files
@pytest.mark.parametrize("name", ["r.html", "R.HTM", "r.txt", "r.json"])
def test_a_name_with_an_ending_is_a_file(three, tmp_path, name):
    path = tmp_path / "new" / name
    assert three.report(str(path)) == path
    kind = {**SUFFIXES, ".json": "json"}[path.suffix.lower()]
    assert path.read_text(encoding="utf-8") == three.report(kind)
    assert three.report(path) == path


def test_a_file_of_unknown_kind_is_refused(three, tmp_path):
    with pytest.raises(
        ValueError, match=r"must end in one of \['.txt', '.html', '.htm', '.pdf', '.md', '.json'\]; got .*r.docx"
    ):
        three.report(tmp_path / "r.docx")
    with pytest.raises(ValueError, match="must end in one of"):
        three.report(tmp_path / "html")
    with pytest.raises(ValueError, match="format must be one of"):
        three.report("docx")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------- on paper
@pytest.fixture(scope="module")
def weasyprint():
    try:
        import weasyprint
    except (ImportError, OSError) as error:
        pytest.skip(f"WeasyPrint cannot be used here: {error}")
    return weasyprint


def inflated(stream):
    """A stream of a PDF as it was before it was packed; one that is not packed as it is."""
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return stream


def test_a_pdf_is_tagged_titled_and_the_same_for_the_same_audit(weasyprint, tmp_path):
    found = drawn(["F", "M"], metrics=["disparate_impact"]).annotate(name="R & D")
    paper = found.report("pdf")
    assert paper.startswith(b"%PDF-1.7")
    inside = paper + b"".join(map(inflated, re.findall(rb"stream\r?\n(.*?)\r?\nendstream", paper, re.S)))
    assert b"pdfuaid" in inside
    assert b"/MarkInfo" in inside
    assert b"Audit of R &amp; D: FLAGGED" in inside
    assert not re.search(rb"/(CreationDate|ModDate)|CreateDate|ModifyDate", inside)
    assert found.annotate(run={"date": "2026-01-01"}).report("pdf") == paper
    assert found.report(tmp_path / "r.pdf").read_bytes() == paper
    tree = weasyprint.HTML(string=page([document(found, condensed=True)], script=False)).etree_element
    assert tree.get("lang") == "en"


def test_paper_has_the_judged_findings_and_says_where_the_others_are():
    found = drawn([f"g{i}" for i in range(20)], n=6000, n_resamples=100)
    said = words(page([document(found, condensed=True)], script=False))
    assert "Every finding in a row" not in said
    assert "the HTML report and the JSON file have all" in said
    assert "more comparisons that are not judged stand in the HTML report." in said
    for f in found.judged:
        assert number(f.value) in said


def test_without_weasyprint_the_way_out_is_named(three, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(ImportError, match=r'pip install "sklearn-ethiclens\[report\]"'):
        three.report(tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


def test_without_pango_the_library_is_named(three, monkeypatch, tmp_path):
    (tmp_path / "weasyprint.py").write_text("raise OSError('cannot load library libpango')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    with pytest.raises(ImportError, match=r"Pango library.*libpango-1.0-0.*cannot load library"):
        three.report("pdf")


def test_nothing_is_fetched_for_paper(weasyprint):
    from sklearn_ethiclens.report._pdf import _fetch_nothing

    with pytest.raises(ValueError, match="loads nothing from outside; got 'file:///etc/passwd'"):
        _fetch_nothing("file:///etc/passwd")


def test_conditions_count_what_is_open(three):
    found = drawn(n=150)
    counts = {v: sum(f.verdict is v for f in found.conditions) for v in Verdict}
    said = words(found.report("html")).split("<h2>Conditions and monitoring plan")[1]
    assert counts[Verdict.INSUFFICIENT_DATA] > 0
    assert f"{counts[Verdict.INSUFFICIENT_DATA]} without enough data" in said
