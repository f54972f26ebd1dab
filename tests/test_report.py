"""The scorecard: what it shows is what was found, as typed, and it fits."""

import re
import warnings

import numpy as np
import pytest

from sklearn_ethiclens import POLICIES, Tally, audit, audit_tally
from sklearn_ethiclens._findings import Section as FurtherSection
from sklearn_ethiclens.report import FORMATS, render
from sklearn_ethiclens.report._text import lay_out
from sklearn_ethiclens.report._words import Facts, Items, Paragraph, Section, Table, number, pvalue, some

LONG = "x" * 80


def made(y_true, y_pred, groups, **options):
    """An audit of few replicates; warnings of small groups are not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit(y_true, y_pred, sensitive_features=groups, **{"n_resamples": 200, **options})


def drawn(n_groups=2, n=2000, seed=0, names=None):
    """Labels, decisions and groups; every third group is selected half as often."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_groups, n)
    y_true = (rng.random(n) < 0.5).astype(int)
    y_pred = (rng.random(n) < np.where(code % 3 == 1, 0.3, 0.6)).astype(int)
    labels = np.array(names or [f"g{i}" for i in range(n_groups)], dtype=object)
    return y_true, y_pred, {"group": labels[code]}


def flat(text):
    """Text with all breaks and runs of spaces made one space, as a reader joins it."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def o19():
    """Field report O19: a rate of zero, an undefined rate, and markup in labels."""
    groups = {"g": ["<=25", "<=25", ">25", ">25", "<b>x</b>", "<b>x</b>"]}
    return made([1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], groups)


def test_labels_are_shown_as_typed_with_their_rows(o19):
    lines = o19.report("text").splitlines()
    for name in ("<=25", ">25", "<b>x</b>"):
        at = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
        assert lines[at + 1].split()[0] == "n=2"


def test_zero_is_shown_as_zero_and_undefined_as_undefined(o19):
    text = o19.report("text")
    assert re.search(r"^  <=25 +0\.500 +1\.000 \(1\) ", text, re.M)
    assert re.search(r"^  >25 +0\.000 +0\.000 \(1\) ", text, re.M)
    assert re.search(r"^  <b>x</b> +0\.000 +undefined ", text, re.M)
    assert "true_positive_rate undefined (no positives): <b>x</b>." in flat(o19.report("text"))


def test_html_escapes_labels(o19):
    html = o19.report("html")
    assert "&lt;=25" in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<b>" not in html
    assert "undefined<br><small>(no positives)</small>" in html
    assert "<b>" not in o19._repr_html_()
    assert "&lt;b&gt;x&lt;/b&gt;" in o19._repr_html_()


@pytest.mark.parametrize("name", ["[bold]x", "[/]", "[red]y[/red]", ":smile:", "a\\[b", "{{ 7 * 7 }}", "'", "é 男 ü"])
def test_markup_of_any_kind_is_not_read(name):
    y_true, y_pred, groups = drawn(names=[name, "other"])
    found = made(y_true, y_pred, groups, metrics=["disparate_impact"])
    assert re.search(rf"^  {re.escape(name)} +0\.\d", found.report("text"), re.M)
    assert "49" not in re.findall(r"<td>(.*?)<br>", found.report("html"))


def test_control_characters_are_shown_by_their_code():
    y_true, y_pred, groups = drawn(names=["a\x1b[2Jb", "c\u202ed\n"])
    text = made(y_true, y_pred, groups, metrics=["disparate_impact"]).report("text")
    assert "a\\x1b[2Jb" in text
    assert "c\\u202ed\\n" in text
    assert "\x1b" not in text


def long_and_many():
    names = [f"[b]{i} {LONG}" if i % 7 == 0 else f"{LONG}{i}" if i % 7 == 1 else f"group {i}" for i in range(60)]
    return drawn(60, n=12000, names=names)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("outcome", ["favorable", "adverse"])
@pytest.mark.parametrize("width", [72, 80, 100])
def test_lines_fit_the_width(policy, outcome, width):
    y_true, y_pred, groups = drawn(3, names=["F", "M", LONG])
    found = made(y_true, y_pred, groups, policy=policy, outcome=outcome, metrics=METRICS_SHOWN)
    assert max(map(len, found.report("text", width=width).splitlines())) <= width


METRICS_SHOWN = [
    "disparate_impact",
    "equalized_odds_difference",
    "true_positive_rate_difference",
    "precision_difference",
]


@pytest.mark.parametrize("policy", POLICIES)
def test_sixty_groups_with_long_labels_fit_and_none_is_lost(policy):
    y_true, y_pred, groups = long_and_many()
    found = made(y_true, y_pred, groups, policy=policy, outcome="adverse", metrics=METRICS_SHOWN)
    text = found.report("text")
    assert max(map(len, text.splitlines())) <= 80
    shown = [int(n) for n in re.findall(r"^  n=(\d+)", text, re.M)]
    assert (len(shown), sum(shown)) == (60, 12000)


def test_many_comparisons_leave_out_companions_and_say_so():
    y_true, y_pred, groups = drawn(20, n=8000)
    found = made(y_true, y_pred, groups, metrics=METRICS_SHOWN)
    text = flat(found.report("text"))
    assert "descriptive values of comparisons without a flagged finding are not shown" in text
    for f in found.judged:
        assert f"{f.metric} {number(f.value)}" in text


def test_large_denominators_fit():
    rng = np.random.default_rng(0)
    n = 1_700_000
    groups = {"race": rng.permutation(np.arange(n) % 2)}
    found = made(rng.integers(0, 2, n), rng.integers(0, 2, n), groups, outcome="adverse", metrics=["disparate_impact"])
    assert max(map(len, found.report("text").splitlines())) <= 80


@pytest.mark.parametrize("policy", POLICIES)
def test_verdicts_and_numbers_are_those_of_the_findings(policy):
    found = made(*drawn(3), policy=policy)
    text = found.report("text")
    for f in found.judged:
        ends = "" if np.isnan(f.low) else rf" \[{number(f.low)}, {number(f.high)}\]"
        row = rf"{f.metric} +{number(f.value)}{ends} +{re.escape(pvalue(f.pvalue_adjusted))} *{f.verdict}"
        assert re.search(row, text), (row, text)
    first = text.splitlines()[0]
    assert first == f"Audit: {f'{found.verdict} ({found.status})' if found.verdict else 'NOT JUDGED'}"
    for f in found.conditions:
        assert f.reason in flat(text)


def test_every_judged_finding_that_is_not_cleared_has_its_reason():
    y_true, y_pred, groups = drawn(3, n=300)
    found = made(y_true, y_pred, groups)
    text = flat(found.report("text"))
    assert found.conditions
    for f in found.conditions:
        assert f"{f.verdict} {f.metric} of {f.group} against {f.reference}" in text or f.reason in text


def test_point_policies_say_that_they_ignore_uncertainty():
    for name, policy in POLICIES.items():
        text = made(*drawn(), policy=name, metrics=["disparate_impact"]).report("text")
        assert ("ignores uncertainty" in text) == policy.ignores_uncertainty


def test_a_chosen_reference_is_said_and_a_given_one_too():
    data = drawn()
    chosen = flat(made(*data).report("text"))
    assert "Reference: g0, chosen by the policy: the highest rate of the favourable decision above the floor." in chosen
    assert "inflates flags" in chosen
    given = made(*data, reference="g1").report("text")
    assert "Reference: g1 (given)." in given
    assert "inflates" not in given
    assert "the group where it is highest" in flat(made(*data, policy="glassalpha").report("text"))
    assert "the first in sort order" in flat(made(*data, policy="assessor").report("text"))
    assert "the largest group, since none meets" in flat(made(*drawn(n=60)).report("text"))


def test_the_event_is_named():
    y_true, y_pred, groups = drawn()
    favorable = flat(made(y_true, y_pred, groups).report("text"))
    assert "receiving 1 is the favourable decision" in favorable
    adverse = flat(made(y_true, y_pred, groups, outcome="adverse").report("text"))
    assert "receiving 1 is adverse. Ratios judged are of NOT receiving 1" in adverse
    assert "selection_rate_ratio" in adverse
    words = np.array(["no", "yes"])
    named = made(words[y_true], words[y_pred], groups, pos_label="yes").report("text")
    assert "receiving 'yes' is the favourable decision" in flat(named)


def test_selection_and_favourable_rates_stand_side_by_side_under_adverse():
    text = made(*drawn(), outcome="adverse").report("text")
    assert re.search(r"selection +favourable +TPR +FPR +precision", text)
    assert "(adverse)" in text


def test_companions_stand_beside_the_judged_metrics():
    text = made(*drawn()).report("text")
    names = re.findall(r"^  ([a-z_]+_[a-z_]+) +-?\d", text, re.M)
    assert names == [
        "disparate_impact",
        "equalized_odds_difference",
        "statistical_parity_difference",
        "true_positive_rate_difference",
        "false_positive_rate_difference",
        "precision_difference",
    ]


def test_differing_base_rates_name_the_parities_that_cannot_hold_together():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 2000)
    y_true = (rng.random(2000) < np.where(code == 1, 0.7, 0.3)).astype(int)
    text = flat(made(y_true, y_true, {"g": code}).report("text"))
    rates = [y_true[code == g].mean() for g in (0, 1)]
    assert f"Base rates differ: {rates[0]:.3f} in 0 against {rates[1]:.3f} in 1" in text
    assert "Chouldechova 2017" in text
    assert "Base rates differ" not in made(*drawn()).report("text")


def test_composite_has_its_band_and_its_caveat_or_why_it_is_withheld():
    found = made(*drawn())
    text = flat(found.report("text"))
    assert (
        f"Composite bias score {number(found.composite.value)}, {found.composite.band} (group: g1 against g0)" in text
    )
    assert "no legal standard" in text
    assert f"Minimum disparate impact {number(found.minimum_disparate_impact.value)}" in text
    small = flat(made(*drawn(n=60)).report("text"))
    assert "Composite bias score withheld: " in small
    assert "Minimum disparate impact withheld: " in small


def test_flags_at_the_top_are_those_farthest_beyond_their_limits():
    # .30 / .60 is log(.5) / log(.8) = 3.1 times the limit, .44 / .60 is 1.4, .45 / .60 is 1.3.
    shares = {"a": 0.60, "b": 0.45, "c": 0.30, **{f"d{i}": 0.44 for i in range(6)}}
    counts = {g: {"n": 4000, "selected": round(4000 * share)} for g, share in shares.items()}
    found = audit_tally(Tally.from_counts(counts), reference="a")
    text = flat(found.report("text"))
    assert len(found.flagged) == 8
    first = text.index("Flagged group: c against a: disparate_impact 0.500")
    assert first < text.index("Flagged group: d0 against a: disparate_impact 0.733")
    assert "Flagged group: b against a" not in text
    assert "and 2 more, none farther beyond its limit" in text


def test_summary_and_base_rates_say_what_they_are_of_where_there_is_more():
    rng = np.random.default_rng(1)
    sex, race = rng.integers(0, 2, (2, 4000))
    y = (rng.random(4000) < np.where(sex == 1, 0.7, 0.3)).astype(int)
    one, all_ = (
        flat(made(y, y, {"sex": sex, "race": race}, intersections=combined).report("text"))
        for combined in (None, [("sex", "race")])
    )
    assert "against 1), intersections apart." in all_
    assert "intersections apart" not in one
    assert f"Base rates differ: sex: {y[sex == 0].mean():.3f} in 0 against {y[sex == 1].mean():.3f} in 1" in one


def test_size_notes_and_power_stand_apart():
    text = made(*drawn(n=120), policy="glassalpha").report("text")
    assert "\nSize of groups\n" in text
    assert "fewer than 100 rows, limited power" in flat(text)
    assert "\nPower\n" in text
    assert "power below .5 for a 10-point gap" in flat(text)
    assert "\nPower\n" not in made(*drawn(n=40000)).report("text")


def test_unlabelled_audit_shows_selection_rates_only():
    _, y_pred, groups = drawn()
    text = made(None, y_pred, groups).report("text")
    assert "TPR" not in text.split("By group")[1].split("Summary")[0]
    assert re.search(r"equalized_odds_difference +no labels +INSUFFICIENT_DATA", text)
    assert "precision_difference" not in text


def test_single_group_and_intersections():
    y_true, y_pred, groups = drawn(4)
    assert "One group only, a: nothing can be compared." in made(y_true, y_pred, {"g": ["a"] * 2000}).report("text")
    both = {**groups, "half": np.arange(2000) % 2}
    text = made(y_true, y_pred, both, intersections="all").report("text")
    assert "\nBy group & half\n" in text
    assert re.search(r"^  g1 & 0 against ", text, re.M)


def test_policy_without_rules_lists_what_it_leaves_out():
    names = np.array(["a"] * 1000 + ["b"] * 985 + ["tiny"] * 15, dtype=object)
    y_pred = np.arange(2000) % 3 == 0
    found = made(None, y_pred, {"g": names}, policy="ll144")
    text = flat(found.report("text"))
    assert text.startswith("Audit: NOT JUDGED Result no verdict, by design")
    assert re.search(r"disparate_impact \d\.\d{3} \[.*?\] \S+ descriptive", text)
    reason = next(f.reason for f in found.findings if f.metric == "disparate_impact" and f.group == "tiny")
    assert f"left out tiny: {reason.removeprefix('left out: ')}" in text
    assert "tiny against" not in text


def test_missing_groups_are_shown_as_a_bucket():
    y_true, y_pred, groups = drawn()
    groups["group"][:100] = None
    assert re.search(r"^  \(missing\) ", made(y_true, y_pred, groups).report("text"), re.M)


def test_same_audit_same_text_whatever_the_environment(monkeypatch):
    found = made(*drawn())
    text = found.report("text")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "JUPYTER_COLUMNS"):
        monkeypatch.setenv(name, "40")
    assert found.report("text") == text == str(found)
    assert "\x1b" not in text


def test_color_is_on_verdicts_only_on_request():
    found = made(*drawn())
    colored = found.report("text", color=True)
    assert "\x1b[" in colored
    assert flat(re.sub(r"\x1b\[[0-9;]*m", "", colored)) == flat(found.report("text"))


def test_html_says_what_the_text_says():
    found = made(*drawn(3)).annotate(name="R & D", model="m", notes=["a note"], sha256="0" * 64)
    html, text = found.report("html"), flat(found.report("text"))
    assert "Audit of R &amp; D: " in html
    assert "Audit of R & D: " in text
    for f in found.judged:
        assert f'<td class="number">{number(f.value)} [{number(f.low)}, {number(f.high)}]</td>' in html
        assert f'<span class="badge {f.verdict.lower()}">{f.verdict.replace("_", " ")}</span>' in html
    assert "a note" in html
    assert "a note" in text


def test_stored_audit_says_the_same():
    found = made(*drawn())
    assert type(found).from_json(found.to_json()).report() == found.report()


def test_unknown_format_lists_the_formats():
    found = made(*drawn())
    with pytest.raises(ValueError, match="format must be one of"):
        found.report("docx")
    assert list(FORMATS) == ["text", "html", "pdf", "markdown", "model_card", "datasheet"]
    assert render(found) == found.report("text")


def test_small_numbers_are_never_shown_as_zero():
    assert number(0.0) == "0.000"
    assert number(0.0004) == "4e-04"
    assert number(-0.0004) == "-4e-04"
    assert number(float("inf")) == "inf"
    assert pvalue(float("nan")) == ""
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"


def test_layout_of_each_part():
    parts = (Facts((("key", "text"),)), Table(("h", "i"), (("", (("a", "b"),)),)), Items(("one",)), Paragraph("end"))
    assert lay_out([Section("Title", parts)]) == ("Title\n  key  text\n\n  h  i\n  ----\n  a  b\n\n  - one\n  end\n")


# ------------------------------------------------------------------------------------------------- further sections
WIDE = ("attribute", "from", "to", "n", *(f"a rate of kind {i}" for i in range(12)), "why")
NAN = float("nan")


def with_further(section):
    return made(*drawn(), metrics=["disparate_impact"]).with_section(section)


def further_of(audit, title="Further"):
    """The part of the text between a further section's title and the next heading."""
    return audit.report("text").split(f"\n{title}\n")[1].split("\nWhat this does not show\n")[0]


def test_a_further_section_is_shown_in_every_format_with_its_cells_as_typed():
    rows = (("a", 0.25, None, 3), ("<b>", NAN, ("F", "30+"), 1200), ("[red]x[/red]", -1.5, True, 0))
    found = with_further(
        FurtherSection("key", "Further", ("A sentence.", "B < c."), ("who", "share", "also", "n"), rows)
    )
    assert further_of(found) == (
        "  A sentence.\n  B < c.\n\n"
        "  who           share      also     n\n"
        "  --------------------------------------\n"
        "  a             0.250      -        3\n"
        "  <b>           undefined  F & 30+  1200\n"
        "  [red]x[/red]  -1.500     True     0\n"
    )
    html = found.report("html")
    assert "<h2>Further</h2>\n<p>A sentence.</p>\n<p>B &lt; c.</p>\n" in html
    assert "<caption><span>Further: 3 rows</span></caption>\n" in html
    assert '<thead><tr><th scope="col">who</th><th scope="col">share</th>' in html
    assert re.search(
        r'<tr><th scope="row"><bdi>&lt;b&gt;</bdi></th><td class="number">undefined</td><td><bdi>F &amp; 30\+</bdi></td>'
        r'<td class="number">1200</td></tr>',
        html,
    )
    assert "<b>" not in html
    assert type(found).from_json(found.to_json()).report("html") == html


def test_sections_keep_their_order_and_stand_before_the_limits():
    found = with_further(FurtherSection("one", "First one")).with_section(
        FurtherSection("two", "Second one", ("Said.",))
    )
    text = found.report("text")
    heads = [text.index(f"\n{title}\n") for title in ("Summary", "First one", "Second one", "What this does not show")]
    assert heads == sorted(heads)
    assert "First one" not in made(*drawn()).report("text")


def test_rows_of_the_same_word_stand_in_one_block():
    rows = (("sex", "F", 0.1), ("sex", "M", 0.2), ("race", "F", 0.3))
    found = with_further(FurtherSection("key", "Further", (), ("attribute", "group", "rate"), rows))
    assert further_of(found) == (
        "  group  rate\n  ------------\n  attribute: sex\n  F      0.100\n  M      0.200\n\n  attribute: race\n  F      0.300\n"
    )
    assert '<tr><th scope="rowgroup" colspan="2">attribute: sex</th></tr>' in found.report("html")
    apart = with_further(
        FurtherSection("key", "Further", (), ("attribute", "group", "rate"), (rows[0], rows[2], rows[1]))
    )
    assert "attribute: sex" not in apart.report("text")


def test_a_table_without_rows_says_so():
    found = with_further(FurtherSection("key", "Further", (), ("group", "rate"), ()))
    assert further_of(found) == "  The table has no rows.\n"
    assert "<p>The table has no rows.</p>" in found.report("html")


@pytest.mark.parametrize("width", [72, 80, 100])
@pytest.mark.parametrize("labels", [["F", "M"], [LONG, f"[b]{LONG}"], ["男" * 40, "女"], [1, 2]])
def test_wide_tables_go_on_below_beside_the_same_keys(width, labels):
    row = [0.123 + i for i in range(12)]
    rows = tuple(("sex", labels[i], labels[1 - i], 1000 + i, *row, "a reason of several words") for i in (0, 1))
    found = with_further(FurtherSection("key", "Further", (), WIDE, rows))
    text = found.report("text", width=width)
    assert max(map(len, text.splitlines())) <= width
    shown = text.split("\nFurther\n")[1].split("\nWhat this")[0]
    panels = shown.split("attribute: sex")
    assert len(panels) > 2
    for panel in panels[1:]:
        assert "1000" in panel
        assert "1001" in panel
    for value in row:
        assert shown.count(number(value)) == 2
    assert flat(shown).count("kind") == 12


def test_a_long_sentence_in_a_cell_leaves_the_table_whole():
    rows = (("a", "word " * 40 + ".", 0.5), ("b", "other " * 40 + ".", 0.25))
    found = with_further(FurtherSection("key", "Further", (), ("group", "why", "rate"), rows))
    assert max(map(len, found.report("text").splitlines())) <= 80
    assert [flat(further_of(found)).count(word) for word in ("word ", "other ", "0.500", "0.250")] == [40, 40, 1, 1]


def test_control_characters_in_a_further_section_are_shown_by_their_code():
    found = with_further(FurtherSection("key", "Fur\x1bther", ("a\x1bb",), ("g\n", "n"), (("c\u202ed", 1),)))
    for text in (found.report("text"), found.report("html")):
        for shown in ("Fur\\x1bther", "a\\x1bb", "g\\n", "c\\u202ed"):
            assert shown in text
        assert "\x1b" not in text


def test_judging_again_keeps_further_sections():
    section = FurtherSection("key", "Further", ("Said.",), ("group", "rate"), (("a", NAN),))
    again = with_further(section).rejudge("four_fifths")
    assert [s.title for s in again.sections] == ["Further"]
    assert "undefined" in further_of(again)
