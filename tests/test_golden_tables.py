"""The golden tables, every column of every row, against full audits of the rows they were made from."""

import json
import math
from functools import cache

import pandas as pd
import pytest

from sklearn_ethiclens import METRICS, audit, inference, metrics
from tests._shared import case, data_file
from tests.test_reference_cases import FOUR_FIFTHS, GAPS, OVERALL, PAIRS, RATES, rows_of

FOLDER = data_file("README.md").parents[1] / "cases" / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))
ALL_GROUPS = "(all groups)"


@cache
def audited(name):
    """Return the full audit of the rows of a golden table, and its reference group."""
    given = case(name)["input"]
    y_true, y_pred, groups = rows_of(given)
    found = audit(y_true, y_pred, sensitive_features=groups, reference=given["reference"], n_resamples=100)
    return found, given["reference"]


def rows_of_audit(found, reference):
    """Return the columns of a golden table by group, read off an audit and its table of rates."""
    (attribute,) = found.tally.attributes
    cells = found.tally.frame().set_index(attribute)
    rates = found.rates()
    rows = {group: dict(row) for group, row in cells.iterrows()}
    short = {metric: column for column, metric in (RATES | PAIRS).items()}
    for f in found.findings:
        if METRICS[f.metric].kind == "group" and f.metric in short:
            rows[f.group][short[f.metric]] = f.value
        elif f.metric in short:
            rows[f.group][f"{short[f.metric]}_vs_ref"] = f.value
    selected = rates[rates["rate"] == "selection_rate"].set_index("group")
    for group in rows:
        assert selected.loc[group, "value"] == rows[group]["selection_rate"]
        if group == reference:
            continue
        counts = [selected.loc[g, column] for g in (group, reference) for column in ("count", "denominator")]
        z, pvalue = inference.two_proportion_ztest(*counts)
        rows[group] |= {
            "z_pooled_vs_ref": float(z),
            "p_value_vs_ref": float(pvalue),
            "fisher_p_vs_ref": float(inference.fisher_exact_test(*counts)),
            "cohens_h_vs_ref": float(
                inference.cohens_h(selected.loc[group, "value"], selected.loc[reference, "value"])
            ),
        }
    return rows


def all_groups_row(found):
    """Return the row of all groups, in fairlearn's sense."""
    short = {metric: column for column, metric in OVERALL.items()}
    values = {f.metric: f.value for f in found.findings if METRICS[f.metric].kind == "overall"}
    row = {short[name]: value for name, value in values.items() if name in short}
    row["equalized_odds_difference"] = metrics.calculate_equalized_odds_difference(*(values[gap] for gap in GAPS))
    return row


def golden(name):
    table = pd.read_csv(FOLDER / f"{name}.csv").set_index("group")
    return table, table.index.drop(ALL_GROUPS)


@pytest.mark.parametrize("name", NAMES)
def test_every_column_of_every_group(name):
    expected, groups = golden(name)
    found, reference = audited(name)
    rows = rows_of_audit(found, reference)
    assert set(rows) == set(groups)
    wrong, compared = [], 0
    for group in groups:
        for column, value in expected.loc[group].items():
            if pd.isna(value):
                # The reference is compared with nobody, and what is of all groups is in a row of its own.
                assert group == reference or not column.endswith("_vs_ref")
                continue
            if column == "impact_ratio":
                best = max(row["selection_rate"] for row in rows.values())
                assert best == rows[reference]["selection_rate"]
                rows[group][column] = rows[group].get("di_vs_ref", 1.0)
            compared += 1
            if not math.isclose(rows[group][column], value, rel_tol=0, abs_tol=1e-9):
                wrong.append(f"{group} {column}: {rows[group][column]!r}, expected {value!r}")
    assert not wrong, "\n".join(wrong)
    assert compared >= 7


@pytest.mark.parametrize("name", NAMES)
def test_the_row_of_all_groups(name):
    table, groups = golden(name)
    expected = table.loc[ALL_GROUPS].dropna()
    found, _ = audited(name)
    row = all_groups_row(found)
    if "most_selected" in expected:
        selected = found.disparities().set_index("metric").loc["selection_rate"]
        row["most_selected"] = selected["max_group"]
        values = {f.group: f.value for f in found.findings if f.metric == "disparate_impact"}
        beyond = [group for group, value in values.items() if FOUR_FIFTHS.judge(value, value, value)[0] == "FLAGGED"]
        row["four_fifths_below"] = json.dumps(beyond)
    assert len(expected) >= 2
    for column, value in expected.items():
        assert row[column] == (value if isinstance(value, str) else pytest.approx(value, rel=0, abs=1e-9)), column


@pytest.mark.parametrize("name", NAMES)
def test_the_pvalue_of_a_finding_is_that_of_its_table(name):
    """The audit tests with Fisher where an expected cell is below 5, and says so; elsewhere the golden p-value stands."""
    expected, groups = golden(name)
    found, reference = audited(name)
    tested = {f.group: f for f in found.findings if f.metric == "statistical_parity_difference"}
    assert tested.keys() == set(groups) - {reference}
    for group, finding in tested.items():
        if finding.test == "z":
            assert finding.pvalue == pytest.approx(expected.loc[group, "p_value_vs_ref"], rel=1e-6)
        else:
            rows = rows_of_audit(found, reference)
            assert finding.test == "fisher"
            assert finding.pvalue == pytest.approx(rows[group]["fisher_p_vs_ref"], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_fairlearn_gives_the_same_rates(name):
    found, _ = audited(name)
    assert found.cross_check()["largest_deviation"].max() < 1e-9


def test_every_golden_table_has_its_case():
    assert len(NAMES) == 9
    assert all(case(name)["id"] == name for name in NAMES)
