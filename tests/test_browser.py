"""The report in a browser: offline, by keyboard, without JavaScript, in the dark, on a phone, in print, and to axe-core."""

import re
import shutil
import warnings

import numpy as np
import pytest

from sklearn_ethiclens import audit

playwright = pytest.importorskip("playwright.sync_api", reason='needs the extra "browser"')
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason='needs the extra "browser"')
html5lib = pytest.importorskip("html5lib", reason='needs the extra "browser"')

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LONG = "A label of many words, which goes on and on until it has eighty characters in all"
HOSTILE = [
    "<script>window.hit = 1</script>",
    '"><img src=x onerror="window.hit = 1">',
    "</style></title></script><b onclick=1>x",
    "javascript:window.hit=1",
    "$10k & $20k",
    "x" * 80,
    LONG,
    "עברית 30+",
    "مجموعة",
]
AXE = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
FINDINGS = "table.filterable"


def made(names, n, attribute="group", **options):
    rng = np.random.default_rng(0)
    code = rng.integers(0, len(names), n)
    y_true = (rng.random(n) < 0.5).astype(int)
    y_pred = (rng.random(n) < np.where(code % 3 == 1, 0.3, 0.6)).astype(int)
    y_true[code == 0] = 0  # so that some rates are undefined
    groups = {attribute: np.array(names, dtype=object)[code], "half": np.arange(n) % 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit(y_true, y_pred, sensitive_features=groups, n_resamples=100, **options)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The pages under test: few groups in full, and sixty with labels of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    few = made(["F", "M", "X"], 1500).annotate(name="a test")
    names = [*HOSTILE, *(f"group {i}" for i in range(60 - len(HOSTILE)))]
    sixty = made(names, 12000, "<b>race</b>", metrics=["disparate_impact"])
    return {
        "few": few.report(folder / "few.html"),
        "sixty": sixty.report(folder / "sixty.html"),
        "audits": (few, sixty),
    }


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} is on the path")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser, files):
    """Opens a page offline; every request but for the file itself, and every message of the console, fails the test."""
    opened, noise = [], []

    def open(name, **options):
        context = browser.new_context(offline=True, **options)
        opened.append(context)
        page = context.new_page()
        url = files[name].as_uri()
        page.on("request", lambda request: noise.append(request.url) if request.url.split("#")[0] != url else None)
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.goto(url)
        return page

    yield open
    for context in opened:
        context.close()
    assert noise == []


def column(page, name):
    """The cells of a column of the table of findings that are shown, from the top."""
    code = """([table, name]) => { const t = document.querySelector(table);
        const at = [...t.tHead.rows[0].cells].findIndex(c => c.textContent.trim() === name);
        return [...t.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[at].textContent.trim()); }"""
    return page.evaluate(code, [FINDINGS, name])


def test_a_column_sorts_both_ways_with_what_is_undefined_last(open_page):
    page = open_page("few")
    head = page.locator(f"{FINDINGS} th", has_text=re.compile("^value$"))
    head.get_by_role("button").click()
    up = column(page, "value")
    numbers = [float(v) for v in up if v != "undefined"]
    assert numbers == sorted(numbers)
    assert 0 < up.count("undefined") == len(up) - len(numbers)
    assert set(up[len(numbers) :]) == {"undefined"}
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    down = [float(v) for v in column(page, "value") if v != "undefined"]
    assert down == sorted(numbers, reverse=True)
    assert column(page, "value")[-1] == "undefined"
    page.get_by_role("button", name="metric", exact=True).last.click()
    assert head.get_attribute("aria-sort") is None
    assert column(page, "metric") == sorted(column(page, "metric"))


def test_findings_filter_by_words_and_verdict_and_say_how_many_are_left(open_page, files):
    page = open_page("few")
    found = files["audits"][0]
    assert len(column(page, "metric")) == len(found.findings)
    page.get_by_label("Verdict").select_option("FLAGGED")
    assert len(column(page, "metric")) == len(found.flagged) > 0
    assert page.get_by_role("status").text_content() == f"{len(found.flagged)} of {len(found.findings)} rows"
    page.get_by_label("Verdict").select_option("")
    page.get_by_label("Rows that contain").fill("disparate m")
    rows = list(zip(column(page, "metric"), column(page, "group"), strict=True))
    assert rows
    assert all("disparate" in metric for metric, _ in rows)
    page.get_by_label("Rows that contain").fill("")
    assert len(column(page, "metric")) == len(found.findings)


def test_parts_fold_and_unfold_and_print_unfolded(open_page):
    page = open_page("few")
    assert page.locator("details").count() > 0
    assert page.locator("details[open]").count() == 0
    page.get_by_role("button", name="Expand all").click()
    assert page.locator("details:not([open])").count() == 0
    page.get_by_role("button", name="Collapse all").click()
    page.locator("summary").first.click()
    assert page.locator("details[open]").count() == 1
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 1


def test_the_keyboard_alone_is_enough(open_page):
    page = open_page("few")
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent") == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate(f"{focused}.id") == "main"
    seen = {}
    for _ in range(200):
        page.keyboard.press("Tab")
        kind, outline = page.evaluate(
            f"""(() => {{ const e = {focused}, s = getComputedStyle(e);
                return [e.className + ' ' + e.tagName, s.outlineStyle + s.outlineWidth]; }})()"""
        )
        if kind.endswith("BODY"):
            break
        seen.setdefault(kind.split()[-1] if "scroll" not in kind else "region", outline)
        if kind.endswith("SUMMARY"):
            page.keyboard.press("Enter")
        if kind.endswith("BUTTON") and page.evaluate(f"{focused}.textContent") == "value" and "sorted" not in seen:
            page.keyboard.press("Enter")
            seen["sorted"] = page.evaluate(f"{focused}.closest('th').getAttribute('aria-sort')")
    assert {"region", "SUMMARY", "BUTTON", "INPUT", "SELECT"} <= set(seen)
    assert seen.pop("sorted") == "ascending"
    assert set(seen.values()) == {"solid3px"}  # focus is seen wherever it is
    assert page.locator("details[open]").count() == page.locator("details").count()


def test_without_javascript_everything_is_shown_and_buttons_are_absent(open_page, files):
    page = open_page("few", java_script_enabled=False)
    assert page.locator("button, input, select").count() == 0
    assert page.locator("details:not([open])").count() == 0
    rows = page.locator(f"{FINDINGS} tbody tr")
    assert rows.count() == len(files["audits"][0].findings)
    assert rows.last.is_visible()
    assert page.locator("table").last.is_visible()


def test_the_dark_scheme_is_dark_and_paper_is_white(open_page):
    light = "(() => getComputedStyle(document.querySelector('.sklearn-ethiclens')).backgroundColor)()"
    page = open_page("few", color_scheme="dark")
    assert page.evaluate(light) == "rgb(22, 25, 29)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(light) == "rgb(255, 255, 255)"
    page.emulate_media(media="screen", color_scheme="light")
    assert page.evaluate(light) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["few", "sixty"])
@pytest.mark.parametrize("width", [320, 360, 1280])
def test_the_page_never_scrolls_sideways_and_tables_do_in_their_region(open_page, name, width):
    page = open_page(name, viewport={"width": width, "height": 700})
    page.get_by_role("button", name="Expand all").click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    beyond = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(beyond) > 0
    outside = """w => [...document.querySelectorAll('h1, h2, p, dd, main li, summary')].filter(e => e.offsetParent
        && (e.getBoundingClientRect().right > w + 1 || e.scrollWidth > e.clientWidth + 1)).map(e => e.textContent)"""
    assert page.evaluate(outside, width) == []


def test_labels_and_marks_do_not_overlap(open_page):
    page = open_page("sixty", viewport={"width": 1280, "height": 900})
    page.get_by_role("button", name="Expand all").click()
    overlaps = """[...document.querySelectorAll('table tr')].filter(row => {
        const cells = [...row.cells].map(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getBoundingClientRect();
        });
        return cells.some((c, i) => i && c.width && cells[i - 1].width && cells[i - 1].right > c.left + 1);
    }).length"""
    assert page.evaluate(overlaps) == 0
    cut = """[...document.querySelectorAll('svg.axis')].filter(s => { const b = s.getBoundingClientRect();
        const t = [...s.querySelectorAll('text')].map(t => t.getBoundingClientRect());
        return t.some((r, i) => r.left < b.left - 1 || r.right > b.right + 1 || (i && t[i - 1].right > r.left)); }).length"""
    assert page.evaluate(cut) == 0


def test_labels_cannot_inject(open_page, files):
    page = open_page("sixty")
    assert page.evaluate("window.hit") is None
    assert page.locator("img, b, iframe, object, [onclick], [onerror]").count() == 0
    assert page.locator("script").count() == page.locator("style").count() == 1
    shown = set(column(page, "group"))
    assert set(HOSTILE) <= shown
    assert page.locator("h2", has_text="By <b>race</b>").count() == 1


def violations(page, **options):
    """What axe-core finds wrong, and where."""
    found = axe.Axe().run(page, options={**AXE, **options}).response
    assert found["testEngine"]["name"] == "axe-core"
    return [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found["violations"]]


@pytest.mark.parametrize("name", ["few", "sixty"])
def test_axe_finds_no_violation_in_light_and_dark(open_page, name):
    page = open_page(name)
    page.get_by_role("button", name="Expand all").click()
    # Rows of one table are alike, and axe takes half a minute for thousands: a handful of them, sorted, stand for all.
    page.get_by_label("Rows that contain").fill({"few": "precision", "sixty": "group 17"}[name])
    page.locator(f"{FINDINGS} th button").first.click()
    assert 2 < len(column(page, "metric")) < 130
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Collapse all").click()
    assert violations(page, runOnly=["color-contrast"]) == []


def test_printing_gives_a_pdf_of_several_pages(open_page):
    paper = open_page("few").pdf(prefer_css_page_size=True)
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 3


@pytest.mark.parametrize("which", [0, 1])
def test_the_page_and_the_fragment_are_valid_html5(files, which):
    found = files["audits"][which]
    html5lib.HTMLParser(strict=True).parse(found.report("html"))
    html5lib.HTMLParser(strict=True).parseFragment(found._repr_html_())


def test_a_notebook_shows_the_fragment_without_a_violation(browser, files, tmp_path):
    path = tmp_path / "notebook.html"
    body = f"<main><h1>Notebook</h1><h2>Cell</h2>{files['audits'][0]._repr_html_()}<p id=other>text</p></main>"
    path.write_text(f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>t</title>{body}", encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("div > details[open]").count() == 0
    page.locator("div > details > summary").last.click()
    assert page.locator("div > details").last.locator("table.forest").first.is_visible()
    assert page.evaluate("getComputedStyle(document.getElementById('other')).fontFamily") != page.evaluate(
        "getComputedStyle(document.querySelector('.sklearn-ethiclens p')).fontFamily"
    )
    assert violations(page) == []
    page.close()
