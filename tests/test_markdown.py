"""Markdown, model card and datasheet: read back as Markdown readers do; and the schema of stored audits."""

import copy
import itertools
import json

import jsonschema
import numpy as np
import pytest
from markdown_it import MarkdownIt

from sklearn_ethiclens import POLICIES, Audit, Tally, audit_tally
from sklearn_ethiclens.report import render, schema
from sklearn_ethiclens.report._cards import TO_FILL_IN, model_card_sections
from sklearn_ethiclens.report._markdown import escape, lay_out
from sklearn_ethiclens.report._words import Facts, Items, Paragraph, Section, Table, number
from tests.test_report import made

HOSTILE = [
    "<b>x</b>",
    "a|b",
    "*y*",
    "@all $z$",
    "[l](http://e.x)",
    "`c`",
    "# h",
    "1. one",
    "- two",
    "~~s~~",
    "&amp;",
    "![i](j)",
]
MODEL_CARD = [  # Mitchell et al. 2019, in their order
    "Model Details",
    "Intended Use",
    "Factors",
    "Metrics",
    "Evaluation Data",
    "Training Data",
    "Quantitative Analyses",
    "Ethical Considerations",
    "Caveats and Recommendations",
]
DATASHEET = [  # Gebru et al. 2021, in their order
    "Motivation",
    "Composition",
    "Collection Process",
    "Preprocessing, Cleaning, Labeling",
    "Uses",
    "Distribution",
    "Maintenance",
]


def tokens(text):
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(text)


def plain(inline):
    """The text of an inline token as a reader sees it; anything but text, breaks and bold is a leak."""
    words = []
    for child in inline.children:
        assert child.type in (
            "text",
            "softbreak",
            "html_inline",
            "strong_open",
            "strong_close",
            "em_open",
            "em_close",
            "text_special",
        ), child
        if child.type == "html_inline":
            assert child.content == "<br>"
            words.append("\n")
        elif child.type in ("text", "text_special"):
            words.append(child.content)
    return "".join(words)


def cells(text):
    """All cells of all tables."""
    found = tokens(text)
    return [plain(t) for before, t in itertools.pairwise(found) if before.type in ("td_open", "th_open")]


def headings(text, tag):
    found = tokens(text)
    return [plain(t) for before, t in itertools.pairwise(found) if before.type == "heading_open" and before.tag == tag]


@pytest.fixture(scope="module")
def two_groups():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(3000) < 0.4, "F", "M")
    y = rng.integers(0, 2, 3000)
    return made(y, (rng.random(3000) < np.where(group == "F", 0.3, 0.5)).astype(int), {"sex": group})


@pytest.mark.parametrize("label", HOSTILE)
def test_a_label_is_shown_as_typed_wherever_it_stands(label):
    table = Table(("who", "n"), (("", ((label, "1"),)), (label, (("x", label),))))
    shown = lay_out([Section(label, (Paragraph(label), Items((label,)), Facts(((label, label),)), table))], level=1)
    found = [plain(t) for t in tokens(shown) if t.type == "inline"]
    assert found == [label, label, label, f"{label}: {label}", "who", "n", label, "1", label, "who", "n", "x", label]
    assert "@" not in shown
    assert "<b>" not in shown


def test_escaping_is_by_the_character():
    assert escape("a_b") == "a\\_b"
    assert escape("3. x") == "3\\. x"
    assert escape("3.5") == "3.5"


def test_the_verdict_stands_in_the_open_and_the_rest_is_folded(two_groups):
    shown = render(two_groups, "markdown")
    assert shown.startswith("## Audit: FLAGGED (FAIL)\n")
    assert shown.count("<details>") == shown.count("</details>") == shown.count("<summary>") > 3
    assert "<details>" not in shown.partition("<details>")[0]
    assert "<details>" not in render(two_groups, "markdown", folded=False)


def test_values_and_verdicts_are_those_of_the_findings(two_groups):
    found = cells(render(two_groups, "markdown"))
    for f in two_groups.judged:
        at = found.index(f.metric)
        assert found[at + 1] == f"{number(f.value)} [{number(f.low)}, {number(f.high)}]"
        assert found[at + 3] == str(f.verdict)


def test_level_is_that_of_a_heading(two_groups):
    assert headings(render(two_groups, "markdown", level=3, folded=False), "h4")[0] == "By sex"
    with pytest.raises(ValueError, match="level must be"):
        render(two_groups, "markdown", level=6)


def test_model_card_has_the_sections_of_mitchell_et_al(two_groups):
    card = render(two_groups, "model_card")
    assert headings(card, "h1") == ["Model card"]
    assert headings(card, "h2") == MODEL_CARD
    assert card.count(TO_FILL_IN) == 3  # no model was named, and nobody can know the use and the training data
    named = render(two_groups.annotate(model="LogisticRegression()"), "model_card")
    assert named.count(TO_FILL_IN) == 2


def test_model_card_names_what_is_to_be_done(two_groups):
    text = model_card_sections(two_groups)["Caveats and Recommendations"]
    assert f"{len(two_groups.flagged)} of {len(two_groups.judged)} judged comparisons are flagged" in text
    unjudged = model_card_sections(two_groups.rejudge("ll144"))["Caveats and Recommendations"]
    assert "Nothing was judged" in unjudged
    assert "flagged" not in unjudged


def test_a_card_of_skops_gets_what_is_known_and_keeps_the_rest(two_groups):
    skops_card = pytest.importorskip("skops.card", reason="skops is not installed")
    card = skops_card.Card(None, template=None)
    card.add(**{"Intended Use": "Loans up to 5,000.", "Metrics": "to be replaced"})
    assert two_groups.add_to_card(card) is card
    shown = card.render()
    assert "Loans up to 5,000." in shown
    assert "to be replaced" not in shown
    assert TO_FILL_IN not in shown
    known = model_card_sections(two_groups)
    for name, text in known.items():
        if text != TO_FILL_IN:
            assert card.select(name).content == text


def test_what_is_no_card_is_refused(two_groups):
    with pytest.raises(TypeError, match=r"skops\.card\.Card; got str"):
        two_groups.add_to_card("card.md")


def test_datasheet_counts_rows_labels_and_the_missing():
    groups = {"sex": ["F"] * 40 + ["M"] * 50 + [None] * 10, "<i>": ["a"] * 100}
    found = made([1, 0] * 50, [1, 1, 0, 0] * 25, groups)
    sheet = render(found.annotate(sha256="0" * 64), "datasheet")
    assert headings(sheet, "h2") == DATASHEET
    assert "sex: 10 of 100 rows have no value." in sheet
    shown = cells(sheet)
    assert shown[shown.index("F") : shown.index("F") + 4] == ["F", "40", "0.500", "0.500"]
    assert shown[shown.index("(missing)") : shown.index("(missing)") + 2] == ["(missing)", "10"]
    assert found.provenance["data"]["tally_sha256"] in sheet
    assert "0" * 64 in sheet


def test_datasheet_says_where_there_are_no_labels():
    found = made(None, [1, 0] * 50, {"sex": ["F", "M"] * 50})
    sheet = render(found, "datasheet")
    assert "a decision and no true label" in sheet
    assert "base rate" not in sheet


# --------------------------------------------------------------------------------------------------------------- schema
def check(found):
    data = json.loads(found.to_json())
    jsonschema.Draft202012Validator(schema()).validate(data)
    return data


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_audits_of_every_policy_keep_the_schema(policy):
    rng = np.random.default_rng(1)
    groups = {"sex": rng.choice(["F", "M"], 400), "age": rng.choice([1, 2.5], 400)}
    y, y_pred = rng.integers(0, 2, (2, 400))
    check(made(y, y_pred, groups, policy=policy, intersections="all"))


def test_strange_audits_keep_the_schema(two_groups):
    rng = np.random.default_rng(2)
    y, y_pred = rng.integers(0, 2, (2, 300))
    dates = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")[rng.integers(0, 2, 300)]
    one = {"g": ["a"] * 300}
    weight = rng.lognormal(size=300)
    check(made(None, y_pred, {"g": dates}))
    check(made(y, y_pred, one))
    check(made(y, y_pred, {"g": rng.choice([np.inf, 0.5], 300)}, y_score=rng.random(300)))
    check(made(y, y_pred, {"g": rng.choice(["a", "b"], 300)}, sample_weight=weight))
    check(made(y, y_pred, {"g": rng.choice(["a", "b"], 300)}, control_features={"c": rng.choice(["u", "v"], 300)}))
    check(
        made(y, y_pred, {"g": rng.choice(["a", "b"], 300), "h": rng.choice([True, False], 300)}, intersections="scan")
    )
    stored = check(two_groups)
    assert Audit.from_json(json.dumps(stored)) == two_groups


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "FINE"),
        (("findings", 0, "pvalue"), 1.5),
        (("findings", 0, "n"), -1),
        (("findings", 0, "extra"), 1),
        (("tally", "counts"), [[1, 2]]),
        (("status",), None),
        (("schema",), "sklearn-ethiclens/audit/2"),
    ],
)
def test_the_schema_refuses_what_is_wrong(two_groups, path, value):
    data = copy.deepcopy(json.loads(two_groups.to_json()))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(data)


def test_an_audit_of_counts_keeps_the_schema():
    tally = Tally.from_counts({"F": {"n": 500, "selected": 150}, "M": {"n": 500, "selected": 250}}, attribute="sex")
    check(audit_tally(tally))
