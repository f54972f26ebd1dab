"""The short form of the certification, and that it simulates what an audit does."""

import numpy as np
import pytest

from sklearn_ethiclens import METRICS, Tally, audit_tally
from tests.statistics import certification


def tally_of(counts):
    return Tally(("group",), (("group",), ("reference",)), counts)


@pytest.fixture(scope="module")
def short():
    return certification.short_form()


def test_intervals_by_metric_hold_their_level(short):
    covered = short[0]
    assert set(covered["metric"]) == set(certification.COVERED)
    assert certification.uncovered(covered).empty


def test_all_flags_of_a_calibrated_audit_together_are_seldom_false(short):
    flagged = short[1]
    assert certification.false_alarms(flagged).empty
    rates = flagged.set_index(["setting", "policy"])["either"]
    nine = next(name for name in flagged["setting"] if name.startswith("nine"))
    assert rates[nine, "ethiclens"] > 5 * max(rates[nine, "calibrated"], 0.02)  # as the page says plainly


def test_a_coverage_that_falls_short_is_noticed(short):
    covered = short[0].copy()
    covered.loc[covered.index[0], "coverage"] = 0.92
    assert len(certification.uncovered(covered)) == 1
    flagged = short[1].copy()
    flagged["either"] = 0.2
    assert len(certification.false_alarms(flagged)) == 2


def test_the_simulated_intervals_are_those_of_an_audit():
    _, injector = next(certification.populations())
    tables = injector.sample_tallies(500, 3, random_state=0)
    bootstrapped = certification.bootstrapped(tables, 300, certification.COVERED, seed=5)
    for name in certification.COVERED:
        low, high = certification.closed_bounds(name, tables)
        for number, counts in enumerate(tables):
            for method in ("auto", "bca", "percentile"):
                found = audit_tally(
                    tally_of(counts),
                    reference="reference",
                    metrics=[name],
                    method=method,
                    n_resamples=300,
                    policy="ll144",
                    random_state=5 + number,
                )
                (f,) = (f for f in found.findings if f.metric == name and f.group == "group")
                ends = bootstrapped[name][method] if method != "auto" else (low, high)
                np.testing.assert_allclose((f.low, f.high), (ends[0][number], ends[1][number]), atol=1e-12)


def test_the_settings_lie_at_the_limits():
    for setting in certification.settings():
        truth = setting.injector.truth
        others = [name for name in setting.injector.groups if name not in ("0", setting.reference or "0")]
        ratios = [truth.value("disparate_impact", name, "0") for name in others]
        gaps = [truth.value("equalized_odds_difference", name, "0") for name in others]
        if setting.true_flags:
            assert max(ratios) < 0.7
            assert min(gaps) > 0.15
        else:
            assert min(ratios) >= 0.8 - 1e-12
            assert max(gaps) <= 0.1 + 1e-12
            assert set(np.round(ratios, 9)) <= {0.8, 1.0}


def test_the_tables_are_put_between_the_marks(short, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{certification.BEGIN}\nold\n{certification.END}\nafter\n", encoding="utf-8")
    tables = certification.page_tables(*short, 500)
    certification.write(tables, page)
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert all(name in text for name in METRICS if name in certification.COVERED)
    certification.write(tables, page)
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.long
def test_the_long_form_holds():
    covered, flagged = certification.long_form()
    assert certification.uncovered(covered).empty
    assert certification.false_alarms(flagged).empty
