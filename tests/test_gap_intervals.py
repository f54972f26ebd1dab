"""Intervals of several independent rates at once: worked numbers, laws, and coverage where the bootstrap fails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_ethiclens.inference import newcombe_interval, wilson_interval
from sklearn_ethiclens.inference._gap_intervals import (
    absolute_bounds,
    largest_gap_interval,
    mean_gap_interval,
    mean_rate_interval,
)

SIZES = st.integers(1, 400)


def draws(n_sets, rates, sizes, seed):
    return np.random.default_rng(seed).binomial(
        np.array(sizes)[:, None], np.array(rates)[:, None], (len(rates), n_sets)
    )


# ------------------------------------------------------------------------------------------------------ worked numbers
def test_two_gaps_that_may_both_be_the_largest_have_sidak_lower_ends_and_plain_upper_ends():
    # TPR 60/100 against 70/100, FPR 25/100 against 15/100. One-sided .025 for two: 1 - sqrt(.975) = .012579.
    count, nobs, reference, of = [[60], [25]], [[100], [100]], [[70], [15]], [[100], [100]]
    low, high = largest_gap_interval(count, nobs, reference, of)
    tpr = newcombe_interval(60, 100, 70, 100)
    fpr = newcombe_interval(25, 100, 15, 100)
    assert high[0] == max(-tpr.low, fpr.high)
    sidak = 1 - 2 * (1 - np.sqrt(0.975))
    expected = [
        max(0, -newcombe_interval(60, 100, 70, 100, confidence_level=sidak).high),
        max(0, newcombe_interval(25, 100, 15, 100, confidence_level=sidak).low),
    ]
    assert low[0] == pytest.approx(max(expected), abs=1e-12)


def test_a_gap_that_cannot_be_the_largest_costs_nothing():
    # TPR .2 against .8, FPR equal: the FPR gap ends far below where the TPR gap begins.
    low, high = largest_gap_interval([[200], [100]], [[1000], [1000]], [[800], [100]], [[1000], [1000]])
    plain = newcombe_interval(200, 1000, 800, 1000)
    assert (low[0], high[0]) == (-plain.high, -plain.low)


def test_the_level_is_that_of_one_gap_when_there_is_one():
    low, high = largest_gap_interval([[30]], [[90]], [[10]], [[80]], confidence_level=0.9)
    assert (low[0], high[0]) == tuple(newcombe_interval(30, 90, 10, 80, confidence_level=0.9))


def test_a_mean_of_equal_gaps_is_shorter_by_the_root_of_two():
    plain = newcombe_interval(40, 100, 60, 100)
    low, high = mean_gap_interval([[40], [40]], [[100], [100]], [[60], [60]], [[100], [100]])
    assert low[0] == pytest.approx(-0.2 - (-0.2 - plain.low) / np.sqrt(2), abs=1e-12)
    assert high[0] == pytest.approx(-0.2 + (plain.high + 0.2) / np.sqrt(2), abs=1e-12)


def test_signed_gaps_cancel_in_a_mean_and_absolute_ones_do_not():
    signed = mean_gap_interval([[40], [60]], [[100], [100]], [[60], [40]], [[100], [100]])
    absolute = mean_gap_interval([[40], [60]], [[100], [100]], [[60], [40]], [[100], [100]], absolute=True)
    assert signed.low[0] < 0 < signed.high[0]
    assert 0 < absolute.low[0] < 0.2 < absolute.high[0]


def test_a_mean_of_rates_of_one_group_is_shorter_than_each():
    plain = wilson_interval(50, 100)
    low, high = mean_rate_interval([[50], [50]], [[100], [100]])
    assert high[0] - low[0] == pytest.approx((plain.high - plain.low) / np.sqrt(2), abs=1e-12)


# ---------------------------------------------------------------------------------------------------------------- laws
@given(st.lists(st.tuples(SIZES, SIZES, st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=4))
def test_the_largest_gap_lies_in_its_interval_and_swapping_the_groups_changes_nothing(rates):
    n1, n2 = (np.array([r[i] for r in rates])[:, None] for i in (0, 1))
    x1, x2 = (np.floor(n * np.array([r[i] for r in rates])[:, None]) for n, i in ((n1, 2), (n2, 3)))
    low, high = largest_gap_interval(x1, n1, x2, n2)
    value = np.abs(x1 / n1 - x2 / n2).max(0)
    assert 0 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1
    np.testing.assert_allclose(largest_gap_interval(x2, n2, x1, n1), (low, high), atol=1e-12)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_the_absolute_interval_holds_the_absolute_value_of_everything_inside(low, width):
    high = min(1.0, low + width)
    bounds = absolute_bounds(low, high)
    inside = np.abs(np.linspace(low, high, 11))
    assert bounds.low <= inside.min() + 1e-12
    assert bounds.high >= inside.max() - 1e-12


@pytest.mark.parametrize("function", [largest_gap_interval, mean_gap_interval])
def test_an_empty_denominator_leaves_no_interval(function):
    low, high = function([[0], [5]], [[0], [10]], [[3], [5]], [[10], [10]])
    assert np.isnan(low).all()
    assert np.isnan(high).all()


# ------------------------------------------------------------------------------------------------------------ coverage
@pytest.mark.parametrize(
    ("tpr_gap", "fpr_gap", "most_low"),
    [(0.10, 0.10, 0.033), (0.10, 0.0, 0.029), (0.08, 0.08, 0.029), (0.15, 0.05, 0.029)],
)
@pytest.mark.parametrize("n", [100, 1000])
def test_equalized_odds_is_missed_at_its_rate_where_both_gaps_bind(tpr_gap, fpr_gap, most_low, n):
    sets, truth = 20_000, max(tpr_gap, fpr_gap)
    sizes = (round(0.3 * n), round(1.2 * n), round(0.7 * n), round(2.8 * n))
    tp, tp_ref, fp, fp_ref = draws(sets, (0.7 - tpr_gap, 0.7, 0.15 + fpr_gap, 0.15), sizes, seed=n)
    nobs = [np.full(sets, size) for size in sizes]
    low, high = largest_gap_interval([tp, fp], [nobs[0], nobs[2]], [tp_ref, fp_ref], [nobs[1], nobs[3]])
    error = np.sqrt(0.025 * 0.975 / sets)
    assert np.mean(low > truth) <= most_low + 2 * error
    assert np.mean(high < truth) <= 0.029 + 2 * error


@pytest.mark.parametrize("absolute", [False, True])
def test_means_of_gaps_cover(absolute):
    sets, sizes = 20_000, (60, 240, 140, 560)
    tp, tp_ref, fp, fp_ref = draws(sets, (0.6, 0.7, 0.25, 0.15), sizes, seed=1)
    nobs = [np.full(sets, size) for size in sizes]
    bounds = mean_gap_interval([tp, fp], [nobs[0], nobs[2]], [tp_ref, fp_ref], [nobs[1], nobs[3]], absolute=absolute)
    truth = 0.10 if absolute else 0.0
    coverage = np.mean((bounds.low <= truth) & (truth <= bounds.high))
    assert 0.945 <= coverage <= (1.0 if absolute else 0.957)
