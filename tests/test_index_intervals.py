"""Intervals of the F measure and the Theil index: worked numbers, laws, coverage where resampling fails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_ethiclens import METRICS
from sklearn_ethiclens.inference import (
    f1_interval,
    mover_difference_interval,
    mover_ratio_interval,
    newcombe_interval,
    theil_interval,
    wilson_interval,
)
from sklearn_ethiclens.inference._intervals import Bounds

COUNTS = st.integers(0, 200)


def theil(fp, fn, n):
    return METRICS["theil_index"](np.moveaxis(np.array([[n - fp - fn, fp], [fn, 0 * fn]]), (0, 1), (-2, -1)))


def test_f1_is_a_function_of_the_share_of_true_positives_among_what_is_no_true_negative():
    share = wilson_interval(30, 50)
    assert f1_interval(30, 20) == pytest.approx([2 * end / (1 + end) for end in share], abs=1e-12)


def test_without_false_positives_the_theil_index_is_minus_the_log_of_the_mean_benefit():
    # With no false positive a = 0 the index is -ln(1 - b); the share of false positives may still be above 0.
    low, high = theil_interval(0, 30, 100)
    b = wilson_interval(30, 100)
    assert low == pytest.approx(-np.log(1 - b.low), abs=1e-12)
    assert high > -np.log(1 - b.high)


def test_a_ratio_of_certain_numbers_is_certain():
    assert mover_ratio_interval(0.6, Bounds(0.6, 0.6), 0.5, Bounds(0.5, 0.5)) == pytest.approx((1.2, 1.2))


def test_a_difference_of_rates_is_newcombes():
    a, b = wilson_interval(40, 100), wilson_interval(60, 100)
    assert mover_difference_interval(0.4, a, 0.6, b) == pytest.approx(newcombe_interval(40, 100, 60, 100))


@pytest.mark.parametrize("reference", [0.0, np.nan])
def test_a_ratio_to_nothing_has_no_interval(reference):
    bounds = mover_ratio_interval(0.5, Bounds(0.4, 0.6), reference, Bounds(0.0, 0.1))
    assert np.isnan(bounds).all()


def test_where_the_index_is_undefined_there_is_no_interval():
    assert np.isnan(theil_interval(0, 0, 0)).all()
    assert np.isnan(theil_interval(0, 10, 10)).all()
    assert np.isnan(f1_interval(0, 0)).all()


@given(COUNTS, COUNTS, COUNTS)
def test_values_lie_in_their_intervals(fp, fn, correct):
    n = fp + fn + correct
    low, high = theil_interval(fp, fn, n)
    if n and fn < n:
        assert 0 <= low <= theil(fp, fn, n) + 1e-12
        assert high >= theil(fp, fn, n) - 1e-12
    low, high = f1_interval(correct, fp + fn)
    if n:
        assert low - 1e-12 <= 2 * correct / (2 * correct + fp + fn) <= high + 1e-12


@given(COUNTS, st.integers(1, 200), COUNTS, st.integers(1, 200))
def test_a_ratio_inverts_when_the_groups_swap(x, n, y, m):
    a, b = min(x, n) / n, min(y, m) / m
    first, second = wilson_interval(min(x, n), n), wilson_interval(min(y, m), m)
    if a > 0 and b > 0:
        there, back = mover_ratio_interval(a, first, b, second), mover_ratio_interval(b, second, a, first)
        assert there.low <= a / b * (1 + 1e-9)
        assert there.high >= a / b * (1 - 1e-9)
        assert there.low * back.high == pytest.approx(1, rel=1e-6) or not np.isfinite(back.high) or there.low < 1e-6


@pytest.mark.parametrize(
    ("a", "b"), [(0.02, 0.05), (0.1, 0.1), (0.3, 0.05), (0.38, 0.02), (0.45, 0.1), (0.6, 0.2), (0.0, 0.2)]
)
@pytest.mark.parametrize("n", [30, 100, 1000])
def test_the_theil_index_is_covered_also_around_its_turning_point(a, b, n):
    sets = 20_000
    fp, fn, _ = np.random.default_rng(n).multinomial(n, [a, b, 1 - a - b], size=sets).T
    low, high = theil_interval(fp, fn, n)
    truth = 2 * np.log(2) * a / (1 + a - b) - np.log(1 + a - b)
    known = ~np.isnan(low)
    covered = np.mean((low[known] <= truth + 1e-12) & (truth - 1e-12 <= high[known]))
    assert covered >= 0.94 - 2 * np.sqrt(0.95 * 0.05 / sets)


def test_differences_of_the_indices_are_covered_with_thirty_rows():
    rng, sets = np.random.default_rng(0), 20_000
    first = rng.multinomial(30, [0.5, 0.15, 0.15, 0.2], size=sets).T  # tn, fp, fn, tp
    second = rng.multinomial(120, [0.6, 0.05, 0.1, 0.25], size=sets).T
    for name, interval in (
        ("f1", lambda t: f1_interval(t[3], t[1] + t[2])),
        ("theil_index", lambda t: theil_interval(t[1], t[2], t.sum(0))),
    ):
        metric = METRICS[name]

        def value(t, metric=metric):
            return metric(np.moveaxis(np.array([[t[0], t[1]], [t[2], t[3]]]), (0, 1), (-2, -1)))

        truth = value(np.array([0.5, 0.15, 0.15, 0.2])) - value(np.array([0.6, 0.05, 0.1, 0.25]))
        low, high = mover_difference_interval(value(first), interval(first), value(second), interval(second))
        assert np.mean((low <= truth) & (truth <= high)) >= 0.94
