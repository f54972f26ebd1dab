"""Tests of equal rates and adjusted p-values: worked numbers, other libraries, laws, exact size."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from sklearn_ethiclens.inference._tests import (
    adjust_pvalues,
    chi2_test,
    cohens_h,
    fisher_exact_test,
    two_proportion_test,
    two_proportion_ztest,
)
from tests._shared import cases

TABLES = [(2, 10, 15, 25), (3, 4, 1, 4), (0, 10, 3, 20), (10, 10, 15, 20), (81, 263, 40, 90), (1, 1, 0, 1)]
METHODS = {"bonferroni": "bonferroni", "holm": "holm", "bh": "fdr_bh", "by": "fdr_by"}
PVALUES = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=12)


@st.composite
def tables(draw, largest=60):
    n, m = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    return draw(st.integers(0, n)), n, draw(st.integers(0, m)), m


# --------------------------------------------------------------------------------------------------- worked numbers


def test_reference_cases_of_two_proportions():
    for case in cases("two_proportions"):
        table = [case["input"][name] for name in ("k1", "n1", "k2", "n2")]
        statistic, pvalue = two_proportion_ztest(*table)
        found = {
            "z_pooled": statistic,
            "p_value": pvalue,
            "fisher_p": fisher_exact_test(*table),
            "cohens_h": cohens_h(table[0] / table[1], table[2] / table[3]),
        }
        for name, value in found.items():
            assert value == pytest.approx(case["expect"][name], abs=1e-9), (case["id"], name)
        for name, (printed, rounding) in case["published"].items():
            assert abs(found[name] - printed) <= rounding, (case["id"], name)


def test_reference_cases_of_effect_size():
    for case in cases("effect_size"):
        for p, q in case["input"]["pairs"]:
            name = f"h[{p}|{q}]"
            assert cohens_h(p, q) == pytest.approx(case["expect"][name], abs=case["tol"]["abs"])
            printed, rounding = case["published"][name]
            assert abs(cohens_h(p, q) - printed) <= rounding


def test_reference_cases_of_multiplicity():
    for case in cases("multiplicity"):
        for method in METHODS:
            adjusted = adjust_pvalues(case["input"]["p"], method)
            for index, value in enumerate(adjusted):
                name = f"{method}[{index}]"
                assert value == pytest.approx(case["expect"][name], abs=case["tol"]["abs"]), name


def test_two_standard_deviations_by_hand():
    # 2 of 10 against 15 of 25: pooled 17/35, variance 17/35 x 18/35 x (1/10 + 1/25), z = -0.4 / 0.18701
    assert two_proportion_ztest(2, 10, 15, 25).statistic == pytest.approx(-0.4 / 0.187007, abs=1e-4)


def test_equal_rates_at_the_edge_are_no_evidence():
    for x, y in [(0, 0), (10, 20)]:
        assert two_proportion_ztest(x, 10, y, 20) == (0.0, 1.0)
        assert fisher_exact_test(x, 10, y, 20) == 1.0
        assert two_proportion_test(x, 10, y, 20) == (0.0, 1.0, "fisher")


def test_expected_cells_choose_the_test():
    # 10 of 20 and 10 of 20: 10 expected everywhere. 0 of 10 and 10 of 10: exactly 5. 0 of 9 and 9 of 9: 4.5.
    result = two_proportion_test([10, 0, 0], [20, 10, 9], [10, 10, 9], [20, 10, 9])
    assert result.test.tolist() == ["z", "z", "fisher"]
    # The cells seen do not matter: 0 of 100 against 30 of 100 has 15 expected.
    assert two_proportion_test(0, 100, 30, 100).test == "z"


def test_chi_square_of_four_groups_by_hand():
    # Pooled rate 100/200; cells differ from 25 by 5, 5, 5, 5: 8 x 25/25.
    result = chi2_test([30, 20, 30, 20], [50, 50, 50, 50])
    assert result == pytest.approx((8.0, 3, stats.chi2.sf(8, 3)))


def test_holm_by_hand_is_monotone_and_capped():
    assert adjust_pvalues([0.02, 0.6, 0.021, 0.9]).tolist() == pytest.approx([0.08, 1.0, 0.08, 1.0])


# -------------------------------------------------------------------------------------------------- other libraries


@pytest.mark.parametrize("table", TABLES)
def test_pairs_agree_with_scipy_and_statsmodels(table):
    x, n, y, m = table
    assert two_proportion_ztest(*table) == pytest.approx(proportions_ztest([x, y], [n, m]), rel=1e-10)
    assert fisher_exact_test(*table) == pytest.approx(stats.fisher_exact([[x, n - x], [y, m - y]])[1], rel=1e-10)


@pytest.mark.parametrize(("x", "n", "share"), [(4, 5, 0.25), (0, 8, 0.5), (3, 20, 0.015625), (9, 9, 0.875)])
def test_against_a_million_million_rows_fishers_test_is_the_binomial_test_of_their_rate(x, n, share):
    m = 2**40  # drawing without replacement from so many is drawing with it, up to n^2 / m
    assert fisher_exact_test(x, n, int(share * m), m) == pytest.approx(stats.binomtest(x, n, share).pvalue, rel=1e-9)


def test_fishers_test_of_huge_tables_leaves_out_only_what_no_number_is_small_enough_for():
    half, more = 2**30, 2**30 + 60_000  # near the normal law: z = 1.83
    _, pvalue = two_proportion_ztest(half, 2 * half, more, 2 * half)
    assert fisher_exact_test(half, 2 * half, more, 2 * half) == pytest.approx(pvalue, rel=1e-3)
    assert fisher_exact_test(5000, 5000, 5000, 2**40) == 0.0


def test_chi_square_agrees_with_scipy_and_leaves_empty_groups_out():
    count, nobs = np.array([12, 0, 30, 7, 0]), np.array([40, 0, 55, 31, 9])
    table = np.array([count, nobs - count])[:, nobs > 0]
    expected = stats.chi2_contingency(table, correction=False)
    assert chi2_test(count, nobs) == pytest.approx((expected.statistic, expected.dof, expected.pvalue), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_adjusted_pvalues_agree_with_statsmodels(method, size):
    pvalues = np.random.default_rng(size).uniform(size=size) ** 3
    pvalues[size // 2] = pvalues[0]  # a tie
    with_gap = np.insert(pvalues, 1, math.nan)
    adjusted = adjust_pvalues(with_gap, method)
    assert np.isnan(adjusted).tolist() == np.isnan(with_gap).tolist()
    expected = multipletests(pvalues, method=METHODS[method])[1]
    np.testing.assert_allclose(np.delete(adjusted, 1), expected, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------- laws


@given(tables())
def test_sign_turns_and_pvalue_stays_when_reference_swaps(table):
    x, n, y, m = table
    one, other = two_proportion_test(x, n, y, m), two_proportion_test(y, m, x, n)
    assert other.statistic == pytest.approx(-one.statistic, abs=1e-12)
    assert other.pvalue == pytest.approx(one.pvalue, rel=1e-9)
    assert other.test == one.test


@given(tables())
def test_chi_square_of_two_groups_is_the_squared_z(table):
    x, n, y, m = table
    statistic, dof, pvalue = chi2_test([x, y], [n, m])
    assert dof == 1
    if 0 < x + y < n + m:
        z = two_proportion_ztest(x, n, y, m)
        assert (statistic, pvalue) == pytest.approx((z.statistic**2, z.pvalue), rel=1e-8, abs=1e-12)
    else:
        assert math.isnan(statistic)
        assert math.isnan(pvalue)


@given(PVALUES, st.sampled_from([*METHODS, None]))
def test_adjusting_never_lowers_and_keeps_the_order(pvalues, method):
    pvalues = np.array(pvalues, dtype=float)
    adjusted = adjust_pvalues(pvalues, method)
    family = ~np.isnan(pvalues)
    assert (adjusted[family] >= pvalues[family] * (1 - 1e-12)).all()
    assert (adjusted[family] <= 1).all()
    order = np.argsort(pvalues[family])
    assert (np.diff(adjusted[family][order]) >= 0).all()


@given(st.floats(0, 1), st.floats(0, 1))
def test_effect_size_is_antisymmetric_and_bounded(p, q):
    assert cohens_h(p, q) == -cohens_h(q, p)
    assert abs(cohens_h(p, q)) <= math.pi


@settings(max_examples=20)
@given(st.lists(tables(20), min_size=1, max_size=8))
def test_arrays_agree_with_single_tables(many):
    columns = np.array(many).T
    statistic, pvalue, test = two_proportion_test(*columns)
    exact = fisher_exact_test(*columns)
    for index, table in enumerate(many):
        assert (statistic[index], pvalue[index], test[index]) == two_proportion_test(*table)
        assert exact[index] == fisher_exact_test(*table)


def test_shapes_are_kept():
    result = two_proportion_test([[1], [2]], 10, [3, 4, 5], [20, 30, 40])
    assert result.statistic.shape == result.pvalue.shape == result.test.shape == (2, 3)
    assert chi2_test(np.ones((4, 3)), np.full((4, 3), 5)).pvalue.shape == (4,)
    assert adjust_pvalues(np.full((2, 3), 0.5)).shape == (2, 3)
    assert adjust_pvalues([]).shape == (0,)


def test_adjusting_leaves_its_argument_alone():
    pvalues = np.array([0.01, 0.02])
    adjust_pvalues(pvalues, None)[0] = 1
    adjust_pvalues(pvalues)
    assert pvalues.tolist() == [0.01, 0.02]


def test_effective_counts_are_rounded_for_the_exact_test():
    assert fisher_exact_test(3.2, 4.1, 0.9, 3.8) == fisher_exact_test(3, 4, 1, 4)
    # 0.3 rows round to none.
    result = two_proportion_test(0.1, 0.3, 5, 10)
    assert math.isnan(result.pvalue)
    assert result.test is None


# ------------------------------------------------------------------------------------------------- undefined, wrong


@pytest.mark.parametrize("table", [(0, 0, 3, 5), (3, 5, 0, 0), (0, 0, 0, 0), (math.nan, 5, 3, 5), (0, 5, 0, math.nan)])
def test_pair_without_denominator_or_with_nan_is_nan(table):
    statistic, pvalue, test = two_proportion_test(*table)
    assert np.isnan([statistic, pvalue, fisher_exact_test(*table), *two_proportion_ztest(*table)]).all()
    assert test is None


@pytest.mark.parametrize(
    ("count", "nobs"),
    [([3], [5]), ([3, 0], [5, 0]), ([0, 0], [0, 0]), ([0, 0], [5, 5]), ([5, 5], [5, 5]), ([1, math.nan], [5, 5])],
)
def test_chi_square_without_two_groups_or_with_one_outcome_is_nan(count, nobs):
    statistic, _, pvalue = chi2_test(count, nobs)
    assert math.isnan(statistic)
    assert math.isnan(pvalue)


@pytest.mark.parametrize("test", [two_proportion_ztest, fisher_exact_test, two_proportion_test])
def test_impossible_counts_are_named(test):
    with pytest.raises(ValueError, match="count_reference must not exceed nobs_reference; got 6 of 5"):
        test(1, 5, 6, 5)


def test_unknown_adjustment_and_impossible_pvalues_are_named():
    with pytest.raises(
        ValueError, match=r"method must be one of \['holm', 'bh', 'by', 'bonferroni', None\]; got 'fdr'"
    ):
        adjust_pvalues([0.1], "fdr")
    with pytest.raises(ValueError, match=r"pvalues must lie in \[0, 1\]; got 5. Did you mean 0.05\?"):
        adjust_pvalues([5])
    with pytest.raises(ValueError, match=r"p_reference must lie in \[0, 1\]; got -0.1"):
        cohens_h(0.1, -0.1)


# -------------------------------------------------------------------------------------------------------- exact size


@pytest.mark.parametrize(("n", "m", "rate"), [(20, 80, 0.3), (30, 120, 0.05), (50, 50, 0.5), (100, 100, 0.1)])
def test_size_is_near_its_level_and_never_far_above(n, m, rate):
    x, y = (column.ravel() for column in np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij"))
    weight = stats.binom.pmf(x, n, rate) * stats.binom.pmf(y, m, rate)
    likely = weight > 1e-7
    x, y, weight = x[likely], y[likely], weight[likely]
    size = weight[two_proportion_test(x, n, y, m).pvalue <= 0.05].sum()
    assert 0.005 <= size <= 0.06
