"""Power, sample size, smallest detectable gap, half-width: pinned numbers, R, laws, exact enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sklearn_ethiclens.inference._power import (
    half_width,
    minimum_detectable_difference,
    power_label,
    power_two_proportions,
    sample_size_rate,
    sample_size_two_proportions,
)
from sklearn_ethiclens.inference._tests import two_proportion_ztest
from tests._shared import cases

RATES = st.floats(0, 1)
ROWS = st.integers(2, 100_000)

# --------------------------------------------------------------------------------------------------- pinned numbers


def test_reference_cases():
    for case in cases("power"):
        inputs, expect, tol = case["input"], case["expect"], case["tol"]["abs"]
        if "h" in inputs:  # any two rates with this h: 1/2 below, sin(pi/4 + h/2)**2 above
            rate = math.sin(math.pi / 4 + inputs["h"] / 2) ** 2
            options = {name: inputs[name] for name in ("alpha", "alternative", "method")}
            found = {"power": power_two_proportions(rate, 0.5, inputs["n1"], inputs["n2"], **options)}
        else:
            n = sample_size_two_proportions(inputs["p1"], inputs["p2"], power=inputs["power"], alpha=inputs["alpha"])
            found = {"n_per_group": n, "n_per_group_ceil": math.ceil(n)}
        for name, value in found.items():
            assert value == pytest.approx(expect[name], abs=tol), (case["id"], name)
        for name, (printed, rounding) in case["published"].items():
            assert abs(found[name] - printed) <= rounding, (case["id"], name)


def test_ten_points_at_one_half_need_388_rows_a_group():
    # Lehr's rule of thumb, 16 x 0.25 / 0.01 = 400, is close; 100 (a factor 4 lost) is not.
    assert math.ceil(sample_size_two_proportions(0.5, 0.6)) == 388
    assert power_two_proportions(0.6, 0.5, 388, 388) == pytest.approx(0.8, abs=0.001)
    assert power_two_proportions(0.6, 0.5, 100, 100) < 0.3


def test_thirty_five_rows_against_165_see_ten_points_one_time_in_five():
    assert power_two_proportions(0.5, 0.6, 35, 165) == pytest.approx(0.2, abs=0.02)


def test_half_widths_at_one_half():
    # 0.97998 / sqrt(n)
    assert half_width([200, 100, 30]).round(3).tolist() == [0.069, 0.098, 0.179]
    assert np.ceil(sample_size_rate([0.02, 0.05, 0.10])).tolist() == [2401, 385, 97]


def test_power_by_hand_with_unequal_groups():
    # 100 rows at 0.5 against 300 at 0.3: pooled 0.35, null error sqrt(0.2275 (1/100 + 1/300)) = 0.055076, true error
    # sqrt(0.25/100 + 0.21/300) = 0.056569; (0.2 - 1.959964 x 0.055076) / 0.056569 = 1.62730
    assert power_two_proportions(0.5, 0.3, 100, 300) == pytest.approx(stats.norm.cdf(1.62730), abs=1e-5)


@pytest.mark.parametrize(("p", "q", "n", "m"), [(0.6, 0.5, 100, 100), (0.3, 0.5, 50, 200), (0.2, 0.1, 150, 300)])
def test_power_agrees_with_exact_enumeration(p, q, n, m):
    x, y = np.arange(n + 1)[:, np.newaxis], np.arange(m + 1)
    weight = stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
    exact = weight[two_proportion_ztest(x, n, y, m).pvalue <= 0.05].sum()
    assert power_two_proportions(p, q, n, m) == pytest.approx(exact, abs=0.02)


# ------------------------------------------------------------------------------------------------------------- laws


@given(RATES, ROWS, ROWS, st.sampled_from(["pooled_z", "arcsine"]), st.sampled_from(["two-sided", "larger"]))
def test_power_at_equal_rates_is_the_level(p, n, m, method, alternative):
    power = power_two_proportions(p, p, n, m, alpha=0.1, method=method, alternative=alternative)
    assert power == pytest.approx(0.1, abs=1e-9) or (method == "pooled_z" and p * (1 - p) < 1e-12)


@given(RATES, RATES, ROWS, ROWS, st.sampled_from(["pooled_z", "arcsine"]))
def test_power_stays_when_reference_swaps_and_for_the_complement(p, q, n, m, method):
    power = power_two_proportions(p, q, n, m, method=method)
    assert 0 <= power <= 1
    assert power_two_proportions(q, p, m, n, method=method) == pytest.approx(power, abs=1e-9)


def power_in_its_direction(p, q, n, m):
    """Without the far tail of the two-sided test, on which no sample size may rest."""
    if p < q:
        p, q = 1 - p, 1 - q
    return power_two_proportions(p, q, n, m, alpha=0.025, alternative="larger")


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.25, 4), st.floats(0.3, 0.99))
def test_sample_size_has_the_power_it_was_asked_for(p, q, ratio, power):
    if abs(p - q) > 0.001:
        n = sample_size_two_proportions(p, q, ratio=ratio, power=power)
        assert power_in_its_direction(p, q, n, ratio * n) == pytest.approx(power, abs=1e-9)


@given(RATES, ROWS, ROWS, st.floats(0.5, 0.99))
def test_detectable_gap_has_the_power_it_was_asked_for(q, n, m, power):
    gap = minimum_detectable_difference(q, n, m, power=power)
    if math.isnan(gap):
        assert power_in_its_direction(0.0 if q > 0.5 else 1.0, q, n, m) < power
    else:
        towards = q - gap if q > 0.5 else q + gap
        assert 0 < gap <= 1
        assert power_in_its_direction(np.clip(towards, 0, 1), q, n, m) == pytest.approx(power, abs=1e-6)
        away = q + gap if q > 0.5 else q - gap
        if 0 <= away <= 1:
            assert power_in_its_direction(away, q, n, m) >= power - 1e-9


@given(RATES, st.integers(2, 5000), st.integers(2, 5000))
def test_detectable_gap_falls_with_either_number_of_rows(q, n, m):
    for more in ((2 * n, m), (n, 2 * m)):
        before, after = minimum_detectable_difference(q, n, m), minimum_detectable_difference(q, *more)
        assert math.isnan(before) or after <= before + 1e-12


@given(st.floats(0.001, 0.5), st.floats(0.001, 0.999))
def test_sample_size_of_a_rate_has_the_half_width_it_was_asked_for(width, p):
    n = sample_size_rate(width, p=p, confidence_level=0.9)
    assert half_width(n, p=p, confidence_level=0.9) == pytest.approx(width, rel=1e-9)


def test_detectable_gap_is_the_same_on_both_sides_of_one_half():
    one, other = minimum_detectable_difference([0.2, 0.8], 50, 200)
    assert one == pytest.approx(other, abs=1e-12)


def test_larger_looks_up_only():
    assert power_two_proportions(0.4, 0.5, 400, 400, alternative="larger") < 1e-4
    assert power_two_proportions(0.6, 0.5, 400, 400, alternative="larger") > 0.8


def test_arrays_broadcast():
    assert power_two_proportions([[0.5], [0.6]], 0.4, [10, 20, 30], 100).shape == (2, 3)
    assert sample_size_two_proportions([0.5, 0.6], 0.4, power=[[0.5], [0.8]]).shape == (2, 2)
    assert minimum_detectable_difference([[0.5], [0.6]], [10, 20, 30], 100).shape == (2, 3)


# --------------------------------------------------------------------------------------------- edges, labels, wrong


def test_nothing_left_to_chance():
    assert power_two_proportions([1, 0, 0], [0, 0, 1], 50, 50).tolist() == [1, 0, 1]
    assert sample_size_two_proportions(0.3, 0.3) == math.inf


def test_no_rows_or_nan_is_nan():
    assert np.isnan(power_two_proportions([0.5, 0.5, math.nan], 0.4, [0, 5, 5], [5, 0, 5])).all()
    assert np.isnan(minimum_detectable_difference([0.5, 0.5, math.nan], [0, 500, 500], [500, 0, 500])).all()
    assert math.isnan(half_width(0))


def test_two_rows_detect_no_gap():
    assert math.isnan(minimum_detectable_difference(0.5, 2, 2))


def test_power_in_words():
    words = power_label([0, 0.499, 0.5, 0.699, 0.7, 1, math.nan]).tolist()
    assert words == ["insufficient"] * 2 + ["marginal"] * 2 + ["adequate"] * 2 + ["insufficient"]
    assert power_label(0.5) == "marginal"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 5}, r"alpha must lie in \(0, 1\); got 5. Did you mean 0.05\?"),
        ({"alternative": "smaller"}, r"alternative must be one of \['two-sided', 'larger'\]; got 'smaller'"),
        ({"method": "exact"}, r"method must be one of \['pooled_z', 'arcsine'\]; got 'exact'"),
        ({"p": 60}, r"p must lie in \[0, 1\]; got 60. Did you mean 0.6\?"),
        ({"nobs": -1}, "nobs must be finite and not negative; got -1"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    arguments = {"p": 0.6, "p_reference": 0.5, "nobs": 10, "nobs_reference": 10} | options
    with pytest.raises(ValueError, match=message):
        power_two_proportions(**arguments)


def test_wrong_power_is_named():
    with pytest.raises(ValueError, match=r"power must lie in \(0, 1\); got 80. Did you mean 0.8\?"):
        sample_size_two_proportions(0.5, 0.6, power=80)
