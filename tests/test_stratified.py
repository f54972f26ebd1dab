"""Mantel-Haenszel estimates, the CMH test and the Breslow-Day test: worked numbers, statsmodels, laws, coverage."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from sklearn_ethiclens.inference import (
    breslow_day_test,
    chi2_test,
    cmh_test,
    katz_interval,
    mantel_haenszel_difference,
    mantel_haenszel_odds_ratio,
    mantel_haenszel_ratio,
    mcnemar_test,
)

POOLED = [mantel_haenszel_ratio, mantel_haenszel_difference, mantel_haenszel_odds_ratio]
ALL = [*POOLED, cmh_test, breslow_day_test]
# Students admitted to six departments, women and men (Bickel, Hammel and O'Connell 1975).
BERKELEY = (
    [89, 17, 202, 131, 94, 24],
    [108, 25, 593, 375, 393, 341],
    [512, 353, 120, 138, 53, 22],
    [825, 560, 325, 417, 191, 373],
)


@st.composite
def strata(draw, least=1):
    """Counts of one to five strata whose groups have at least ``least`` rows."""
    n_strata = draw(st.integers(1, 5))
    columns = []
    for _ in range(n_strata):
        n, m = draw(st.integers(least, 40)), draw(st.integers(least, 40))
        columns.append((draw(st.integers(0, n)), n, draw(st.integers(0, m)), m))
    return tuple(np.array(column, dtype=float) for column in zip(*columns, strict=True))


def tables(counts):
    """Return counts as statsmodels takes them: (2, 2, n_strata), the group first, events first."""
    x, n, y, m = (np.asarray(part, dtype=float) for part in counts)
    return np.array([[x, n - x], [y, m - y]])


# ------------------------------------------------------------------------------------------------------ worked numbers
def test_berkeley_turns_from_two_thirds_to_above_one():
    ratio = mantel_haenszel_ratio(*BERKELEY)
    crude = (sum(BERKELEY[0]) / sum(BERKELEY[1])) / (sum(BERKELEY[2]) / sum(BERKELEY[3]))
    assert crude == pytest.approx(0.6818, abs=1e-4)
    assert ratio.estimate == pytest.approx(1.0583, abs=1e-4)
    assert ratio.low < 1 < ratio.high
    # mantelhaen.test(UCBAdmissions) in R: X-squared = 1.4269 (1.5246 without correction), common odds ratio 0.9046968 of men.
    assert cmh_test(*BERKELEY).statistic == pytest.approx(1.5246, abs=1e-4)
    assert cmh_test(*BERKELEY, correction=True).statistic == pytest.approx(1.4269, abs=1e-4)
    assert mantel_haenszel_odds_ratio(*BERKELEY).estimate == pytest.approx(1 / 0.9046968, abs=1e-6)


def test_difference_by_hand():
    # weights 5 and 24; -.2 and 0. slope = sum((n^2 y - m^2 x + n m (m - n) / 2) / N^2) / 29^2
    slope = ((100 * 4 - 100 * 2) / 400 + (3600 * 20 - 1600 * 30 + 2400 * -20 / 2) / 1e4) / 29**2
    level = ((2 * 6 + 4 * 8) / 40 + (30 * 20 + 20 * 30) / 200) / 29**2
    found = mantel_haenszel_difference([2, 30], [10, 60], [4, 20], [10, 40])
    assert found.estimate == pytest.approx(-1 / 29)
    assert found.standard_error == pytest.approx(np.sqrt(-slope / 29 + level))
    for end in (found.low, found.high):
        assert (found.estimate - end) ** 2 == pytest.approx(1.959963984540054**2 * (slope * end + level))


# -------------------------------------------------------------------------------------------------------------- oracles
@given(counts=strata())
def test_agrees_with_statsmodels(counts):
    stratified = pytest.importorskip("statsmodels.stats.contingency_tables").StratifiedTable
    x, n, y, m = counts
    events, total = x + y, n + m
    assume(((events > 0) & (events < total)).all())  # statsmodels counts the others among the degrees of freedom
    theirs = stratified(tables(counts))
    odds = mantel_haenszel_odds_ratio(*counts)
    above, below = (x * (m - y) / total).sum(), (y * (n - x) / total).sum()
    assume(above > 0 and below > 0)
    assume(abs(above / below - 1) > 1e-6)  # where statsmodels divides 0 by 0
    assert_allclose(odds.estimate, theirs.oddsratio_pooled)
    assert_allclose(odds.standard_error, theirs.logodds_pooled_se)
    assert_allclose([odds.low, odds.high], theirs.oddsratio_pooled_confint())
    if (y > 0).any():
        assert_allclose(mantel_haenszel_ratio(*counts).estimate, theirs.riskratio_pooled)
    null = theirs.test_null_odds()
    assert_allclose([cmh_test(*counts).statistic, cmh_test(*counts).pvalue], [null.statistic, null.pvalue], atol=1e-12)
    if x.size > 1:
        for correction in (False, True):
            found, equal = breslow_day_test(*counts, correction=correction), theirs.test_equal_odds(adjust=correction)
            assert_allclose(found.statistic, equal.statistic, rtol=1e-6, atol=1e-9)
            assert_allclose(found.pvalue, equal.pvalue, rtol=1e-6, atol=1e-9)


def test_correction_agrees_with_statsmodels():
    stratified = pytest.importorskip("statsmodels.stats.contingency_tables").StratifiedTable
    theirs = stratified(tables(BERKELEY)).test_null_odds(correction=True)
    ours = cmh_test(*BERKELEY, correction=True)
    assert_allclose([ours.statistic, ours.pvalue], [theirs.statistic, theirs.pvalue])


def test_margin_agrees_with_all_tables_of_one_stratum():
    # 3 of 8 against 2 of 4: with these margins the group has 1 to 5 events, 10/3 expected.
    assert cmh_test([3], [8], [2], [4]).margin == pytest.approx(5 - 10 / 3)


# ------------------------------------------------------------------------------------------------------- one stratum
@given(counts=strata())
def test_one_stratum_is_katz(counts):
    x, n, y, m = (part[:1] for part in counts)
    assume(x > 0 and y > 0 and not (x == n and y == m))
    found, katz = mantel_haenszel_ratio(x, n, y, m), katz_interval(x, n, y, m)
    assert_allclose(found.estimate, (x / n / (y / m))[0])
    assert_allclose([found.low, found.high], [katz.low[0], katz.high[0]])


@given(counts=strata())
def test_one_stratum_of_equal_sizes_has_the_wald_error(counts):
    x, n, y, _ = (part[:1] for part in counts)
    y = np.minimum(y, n)
    p, q = x / n, y / n
    assume(0 < p < 1 or 0 < q < 1 or p != q)
    found = mantel_haenszel_difference(x, n, y, n)
    assert_allclose(found.estimate, (p - q)[0], atol=1e-12)
    assert_allclose(found.standard_error, np.sqrt((p * (1 - p) + q * (1 - q)) / n)[0], atol=1e-7)


@given(counts=strata())
def test_one_stratum_is_the_chi_square_test_but_for_one_row(counts):
    x, n, y, m = (part[:1] for part in counts)
    total = (n + m)[0]
    assume(0 < (x + y)[0] < total)
    chi2 = chi2_test(np.stack([x, y], -1)[0], np.stack([n, m], -1)[0]).statistic
    assert_allclose(cmh_test(x, n, y, m).statistic, chi2 * (total - 1) / total, atol=1e-10)


def test_pairs_as_strata_are_mcnemar():
    b, c, same = 14, 5, 20  # pairs where only the group has the event, only the reference, both or neither
    x = np.r_[np.ones(b), np.zeros(c), np.ones(same // 2), np.zeros(same // 2)]
    y = np.r_[np.zeros(b), np.ones(c), np.ones(same // 2), np.zeros(same // 2)]
    one, n = np.ones_like(x), x.size
    assert cmh_test(x, one, y, one).statistic == pytest.approx(mcnemar_test(b, c).statistic)
    found = mantel_haenszel_difference(x, one, y, one)
    assert found.estimate == pytest.approx((b - c) / n)
    assert found.standard_error == pytest.approx(np.sqrt((b + c) - (b - c) ** 2 / n) / n)  # the error of paired rates
    assert mantel_haenszel_odds_ratio(x, one, y, one).estimate == pytest.approx(b / c)


# ------------------------------------------------------------------------------------------------------------------ laws
@given(counts=strata())
def test_ratios_invert_and_differences_turn_when_groups_swap(counts):
    x, n, y, m = counts
    assume((x > 0).any() and (y > 0).any())
    there, back = mantel_haenszel_ratio(x, n, y, m), mantel_haenszel_ratio(y, m, x, n)
    assert_allclose([there.estimate, there.low, there.high], [1 / back.estimate, 1 / back.high, 1 / back.low])
    there, back = mantel_haenszel_difference(x, n, y, m), mantel_haenszel_difference(y, m, x, n)
    assert_allclose([there.estimate, there.low, there.high], [-back.estimate, -back.high, -back.low], atol=1e-12)
    assert_allclose(cmh_test(x, n, y, m).statistic, cmh_test(y, m, x, n).statistic, atol=1e-10)


@pytest.mark.parametrize("function", ALL)
@settings(max_examples=40)
@given(counts=strata())
def test_the_order_of_strata_does_not_matter(function, counts):
    assert_allclose(function(*counts), function(*(part[::-1] for part in counts)), atol=1e-9)


@pytest.mark.parametrize("function", ALL)
@settings(max_examples=40)
@given(counts=strata(), rows=st.integers(0, 30), side=st.booleans())
def test_a_stratum_of_one_side_changes_nothing(function, counts, rows, side):
    events = rows // 3
    further = (events, rows, 0, 0) if side else (0, 0, events, rows)
    longer = tuple(np.append(part, value) for part, value in zip(counts, further, strict=True))
    assert_allclose(function(*longer), function(*counts), atol=1e-9)


@pytest.mark.parametrize("function", ALL)
def test_vectorised_over_leading_axes(function):
    rng = np.random.default_rng(0)
    n, m = rng.integers(1, 30, (4, 3, 5)), rng.integers(1, 30, (4, 3, 5))
    x, y = rng.binomial(n, 0.4), rng.binomial(m, 0.5)
    found = function(x, n, y, m)
    for at in np.ndindex(4, 3):
        one = function(x[at], n[at], y[at], m[at])
        assert_allclose([part[at] for part in found], one, rtol=1e-12)


@given(counts=strata())
def test_estimates_stay_in_range_and_in_their_interval(counts):
    for function, low, high in zip(POOLED, (0, -1, 0), (np.inf, 1, np.inf), strict=True):
        found = function(*counts)
        if not np.isnan(found.estimate):
            assert low <= found.estimate <= high
        if not np.isnan(found.low):
            assert low - 1e-12 <= found.low <= found.estimate + 1e-12 <= found.high + 2e-12 <= high + 3e-12


# ------------------------------------------------------------------------------------------------------------- undefined
@pytest.mark.parametrize("function", ALL)
def test_without_a_stratum_of_both_groups_all_is_undefined(function):
    found = function([3, 0], [5, 0], [0, 2], [0, 4])
    assert np.isnan(found.statistic if function in (cmh_test, breslow_day_test) else found.estimate)
    assert np.isnan(found.pvalue if function in (cmh_test, breslow_day_test) else found.low)
    assert (found.dof if function is breslow_day_test else found.n_strata) == 0


def test_without_an_event_there_is_no_ratio_and_no_evidence():
    counts = [0, 0], [5, 8], [0, 0], [6, 9]
    assert np.isnan(mantel_haenszel_ratio(*counts).estimate)
    difference = mantel_haenszel_difference(*counts)
    assert difference.estimate == 0
    assert np.isnan(difference.low)
    assert np.isnan(difference.high)
    assert cmh_test(*counts)[:2] == (0, 1)
    assert np.isnan(breslow_day_test(*counts).pvalue)


def test_all_events_give_a_ratio_of_one_without_interval():
    found = mantel_haenszel_ratio([5], [5], [6], [6])
    assert found.estimate == 1
    assert np.isnan(found.low)
    assert np.isnan(found.standard_error)


def test_no_event_of_the_group_gives_zero_without_interval():
    for function in (mantel_haenszel_ratio, mantel_haenszel_odds_ratio):
        found = function([0], [10], [3], [10])
        assert found.estimate == 0
        assert np.isnan(found.low)


def test_full_separation_has_an_interval_of_honest_width():
    found = mantel_haenszel_difference([0, 0], [10, 10], [10, 10], [10, 10])
    assert found.estimate == -1
    assert found.standard_error == 0
    assert found.low == -1
    assert -0.95 < found.high < -0.7


@pytest.mark.parametrize("function", ALL)
def test_nan_in_nan_out(function):
    found = function([3.0, np.nan], [5.0, np.nan], [2.0, 2.0], [4.0, 4.0])
    assert np.isnan(found[0])
    assert np.isnan(found[1] if function is cmh_test else found[2])


@pytest.mark.parametrize("function", ALL)
def test_counts_are_checked(function):
    with pytest.raises(ValueError, match="count must not exceed nobs"):
        function([6], [5], [1], [2])
    with pytest.raises(ValueError, match="nobs_reference must be finite and not negative"):
        function([1], [5], [1], [-2])


# ------------------------------------------------------------------------------------------------------------ simulation
def draws(n_sets, sizes, sizes_reference, rates_reference, ratio=1.0, seed=0):
    rng = np.random.default_rng(seed)
    sizes, sizes_reference = np.asarray(sizes), np.asarray(sizes_reference)
    shape = (n_sets, sizes.size)
    x = rng.binomial(sizes, np.asarray(rates_reference) * ratio, shape)
    y = rng.binomial(sizes_reference, rates_reference, shape)
    return x, sizes, y, sizes_reference


LARGE = ([60, 90, 30, 200], [200, 50, 120, 100], [0.2, 0.5, 0.7, 0.1])
SPARSE = ([3] * 60, [5] * 60, [0.2, 0.4, 0.6] * 20)


@pytest.mark.parametrize("design", [LARGE, SPARSE], ids=["few large strata", "many small strata"])
def test_coverage(design):
    n_sets, ratio = 4000, 0.75
    counts = draws(n_sets, *design, ratio=ratio)
    found = mantel_haenszel_ratio(*counts)
    covered = (found.low <= ratio) & (ratio <= found.high)
    assert covered.mean() == pytest.approx(0.95, abs=0.012)
    # rates that differ by a factor have no common difference; a common difference needs a draw of its own
    sizes, sizes_reference, rates = map(np.asarray, design)
    rng = np.random.default_rng(1)
    x, y = rng.binomial(sizes, rates + 0.1, (n_sets, sizes.size)), counts[2]
    found = mantel_haenszel_difference(x, sizes, y, sizes_reference)
    assert ((found.low <= 0.1) & (0.1 <= found.high)).mean() == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("design", [LARGE, SPARSE], ids=["few large strata", "many small strata"])
def test_size_of_the_cmh_test(design):
    counts = draws(4000, *design)
    plain, corrected = cmh_test(*counts).pvalue, cmh_test(*counts, correction=True).pvalue
    assert (plain <= 0.05).mean() == pytest.approx(0.05, abs=0.012)
    assert (corrected >= plain).all()


def test_size_of_the_breslow_day_test():
    found = breslow_day_test(*draws(4000, *LARGE))
    assert (found.pvalue <= 0.05).mean() == pytest.approx(0.05, abs=0.012)
    assert stats.kstest(found.statistic, "chi2", args=(3,)).pvalue > 1e-3


def test_effective_counts_below_one_row_on_each_side_test_no_more_than_they_hold():
    """Of whole counts there are two at least; total / (total - 1), 2 there, stays 2 below and never turns negative."""
    one = cmh_test([1], [1], [0], [1])
    assert one.statistic == pytest.approx((1 - 0.5) ** 2 / (1 * 1 * 1 * 1 / (2**2 * 1)))
    half = cmh_test([0.5], [0.5], [0], [0.5])
    assert half.statistic == pytest.approx((0.5 - 0.25) ** 2 / (0.5**4 / (1 * 0.5)))
    assert 0 < half.statistic < one.statistic
