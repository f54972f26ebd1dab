"""Intervals for rates, differences and ratios: worked numbers, other libraries, laws, exact coverage."""

import importlib.util
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from sklearn_ethiclens.inference._intervals import (
    Interval,
    check_fraction,
    check_rate,
    clopper_pearson_interval,
    katz_interval,
    koopman_interval,
    miettinen_nurminen_difference_interval,
    miettinen_nurminen_ratio_interval,
    newcombe_interval,
    wald_difference_interval,
    wilson_interval,
)
from tests._shared import VARIABLE, cases

RATE = [wilson_interval, clopper_pearson_interval]
DIFFERENCE = [newcombe_interval, miettinen_nurminen_difference_interval, wald_difference_interval]
SCORE_RATIO = [koopman_interval, miettinen_nurminen_ratio_interval]
RATIO = [*SCORE_RATIO, katz_interval]
METHODS = {
    "wilson": wilson_interval,
    "newcombe": newcombe_interval,
    "wald": wald_difference_interval,
    "katz": katz_interval,
    "koopman": koopman_interval,
}

# From the smallest tables to a national survey; 0 and n of n included.
TABLES = [
    (8, 15, 4, 15),
    (1, 1, 0, 1),
    (0, 10, 3, 20),
    (3, 10, 0, 20),
    (10, 10, 15, 20),
    (9, 30, 120, 120),
    (1, 109, 0, 372),
    (81, 263, 1, 4),
    (12_345, 30_000, 150_000, 332_900),
    (1, 332_900, 332_899, 332_900),
]


@st.composite
def tables(draw, largest=500):
    n, m = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    return draw(st.integers(0, n)), n, draw(st.integers(0, m)), m


def prototype():
    """The laboratory's closed forms, written apart from this package."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder).parent / "lab" / "closed.py" if folder else None
    if path is None or not path.is_file():
        pytest.skip(f"the prototype {path or 'lab/closed.py'} is missing")
    spec = importlib.util.spec_from_file_location("closed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_tables(seed, size):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 200, size), rng.integers(1, 400, size)
    p, q = rng.choice([0, 0.02, 0.1, 0.5, 0.9, 1], (2, size))
    return rng.binomial(n, p), n, rng.binomial(m, q), m


# --------------------------------------------------------------------------------------------------- worked numbers


@pytest.mark.parametrize("kind", ["ci_single", "ci_diff", "ci_ratio"])
def test_reference_cases(kind):
    for case in cases(kind):
        counts, expect, tol = case["input"], case["expect"], case["tol"]
        names = ["x", "n"] if kind == "ci_single" else ["x1", "n1", "x2", "n2"]
        found = METHODS[counts["method"]](*(counts[name] for name in names), confidence_level=counts["level"])
        for end in ("low", "high"):
            value = getattr(found, end)
            assert value == pytest.approx(expect[end], abs=tol["abs"], rel=tol["rel"]), (case["id"], end)
            printed, rounding = case["published"][end]
            assert abs(value - printed) <= rounding, (case["id"], end)


def test_wilson_by_hand():
    # 1 of 4, z**2 = 3.8415: centre (1 + 1.9207) / 7.8415 = 0.37247, half 1.96 sqrt(3/4 + 0.96036) / 7.8415 = 0.32688
    assert wilson_interval(1, 4) == pytest.approx((0.04559, 0.69936), abs=1e-5)


def test_score_ratio_by_hand_when_the_group_has_no_event():
    # 0 of n against n of n, ratio 1/2: the log-likelihood n log(1 - q/2) + n log(q) has slope -n/(2 - q) + n/q,
    # which is 0 at q = 1. So p = 1/2, q = 1, and the statistic is (0 - 1/2)**2 / (1/2 x 1/2 / n) = n.
    # At the level where z**2 = n the upper end is therefore 1/2.
    n = 4
    level = 2 * stats.norm.cdf(math.sqrt(n)) - 1
    assert koopman_interval(0, n, n, n, confidence_level=level) == pytest.approx((0, 0.5), abs=1e-12)


@pytest.mark.parametrize("n", [1, 5, 1000])
def test_score_ratio_by_hand_when_both_rates_are_one(n):
    z2 = stats.norm.ppf(0.975) ** 2
    assert koopman_interval(n, n, 2 * n, 2 * n) == pytest.approx((n / (n + z2), 1 + z2 / (2 * n)), rel=1e-12)


@pytest.mark.parametrize("method", SCORE_RATIO)
def test_score_ratio_with_zero_counts(method):
    low, high = method([0, 5, 0, 5], [10, 10, 10, 10], [5, 0, 0, 5], [10, 10, 10, 10])
    assert low[[0, 2]].tolist() == [0, 0]
    assert high[[1, 2]].tolist() == [math.inf, math.inf]
    assert low[1] == pytest.approx(1 / high[0], rel=1e-12)
    assert 0 < low[1] < math.inf


def test_group_without_one_selected_of_thousands_is_surely_below_four_fifths():
    assert miettinen_nurminen_ratio_interval(0, 5000, 1000, 5000).high < 0.01


def test_katz_says_nothing_where_its_formula_does():
    zeros = ([0, 5, 0, 10], [10] * 4, [5, 0, 0, 20], [20] * 4)
    assert np.isnan(katz_interval(*zeros)).all()
    low, high = katz_interval(*zeros, correction="walter")
    # 0.5 of 10.5 against 5.5 of 20.5
    factor = math.exp(stats.norm.ppf(0.975) * math.sqrt(1 / 0.5 - 1 / 10.5 + 1 / 5.5 - 1 / 20.5))
    ratio = (0.5 / 10.5) / (5.5 / 20.5)
    assert (low[0], high[0]) == pytest.approx((ratio / factor, ratio * factor), rel=1e-12)
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()


def test_walter_leaves_other_tables_alone():
    assert katz_interval(8, 15, 4, 15, correction="walter") == katz_interval(8, 15, 4, 15)


# -------------------------------------------------------------------------------------------------- other libraries


@pytest.mark.parametrize(("method", "name"), [(wilson_interval, "wilson"), (clopper_pearson_interval, "exact")])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_rates_agree_with_scipy(method, name, level):
    for count, nobs in [(0, 1), (1, 1), (0, 20), (20, 20), (81, 263), (1, 3000)]:
        expected = stats.binomtest(count, nobs).proportion_ci(level, method=name)
        assert method(count, nobs, confidence_level=level) == pytest.approx(tuple(expected), abs=1e-10)


def test_katz_agrees_with_scipy():
    for count, nobs, count_reference, nobs_reference in TABLES:
        if count == 0 or count_reference == 0:
            continue
        expected = stats.contingency.relative_risk(count, nobs, count_reference, nobs_reference)
        found = katz_interval(count, nobs, count_reference, nobs_reference, confidence_level=0.9)
        assert found == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (miettinen_nurminen_ratio_interval, {"compare": "ratio", "method": "score", "correction": True}),
        (koopman_interval, {"compare": "ratio", "method": "score", "correction": False}),
        (newcombe_interval, {"compare": "diff", "method": "newcomb"}),
        (wald_difference_interval, {"compare": "diff", "method": "wald"}),
    ],
)
def test_pairs_agree_with_statsmodels(method, options):
    for table in [(20, 50, 10, 60), (7, 34, 1, 34), (81, 263, 40, 90), (30, 200, 45, 100)]:
        expected = confint_proportions_2indep(*table, **options)
        assert method(*table) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_score_intervals_agree_with_r():
    # PropCIs 0.3: diffscoreci(7, 34, 1, 34, 0.95), riskscoreci(7, 34, 1, 34, 0.95). statsmodels up to 0.15 misses the
    # first by 0.002, for a slip in its constrained rates (statsmodels issue 10269).
    assert miettinen_nurminen_difference_interval(7, 34, 1, 34) == pytest.approx((0.0270416, 0.3452912), abs=6e-8)
    assert koopman_interval(7, 34, 1, 34) == pytest.approx((1.220853, 42.575718), abs=6e-7)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_pairs_agree_with_the_prototype(level):
    closed = prototype()
    # Where both rates are 1 the prototype's first midpoint is 0/0.
    drawn = random_tables(0, 5000)
    full = (drawn[0] == drawn[1]) & (drawn[2] == drawn[3])
    x, n, y, m = (column[~full] for column in drawn)
    with np.errstate(all="ignore"):
        expected = {
            wilson_interval: closed.wilson(x, n, 1 - level),
            newcombe_interval: closed.newcombe(x, n, y, m, 1 - level),
            wald_difference_interval: closed.wald2(x, n, y, m, 1 - level),
            miettinen_nurminen_ratio_interval: closed.mn_ratio(x, n, y, m, 1 - level),
        }
        katz = closed.katz(x, n, y, m, 1 - level)
    for method, ends in expected.items():
        counts = (x, n) if method is wilson_interval else (x, n, y, m)
        for found, wanted in zip(method(*counts, confidence_level=level), ends, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-12, err_msg=method.__name__)
    np.testing.assert_allclose(katz_interval(x, n, y, m, confidence_level=level, correction="walter"), katz, rtol=1e-10)


def score_statistic(x, n, y, m, compare, value):
    """Uncorrected score statistic, with the constrained rates found by bisection of the score in the reference rate."""
    factor, shift = (value, 0.0) if compare == "ratio" else (np.ones_like(value), value)
    low = np.maximum(0, -shift) * np.ones_like(value)
    high = np.minimum(1, (1 - shift) / factor)
    with np.errstate(all="ignore"):
        for _ in range(200):
            q = (low + high) / 2
            p = factor * q + shift
            slope = factor * (np.where(x > 0, x / p, 0) - np.where(x < n, (n - x) / (1 - p), 0))
            slope = slope + np.where(y > 0, y / q, 0) - np.where(y < m, (m - y) / (1 - q), 0)
            low, high = np.where(slope > 0, q, low), np.where(slope > 0, high, q)
        gap = x / n - (factor * y / m + shift)
        return gap / np.sqrt(p * (1 - p) / n + factor**2 * q * (1 - q) / m)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    ("method", "compare"), [(koopman_interval, "ratio"), (miettinen_nurminen_difference_interval, "difference")]
)
def test_score_statistic_reaches_its_quantile_at_both_ends(method, compare, level):
    x, n, y, m = (column.astype(float) for column in random_tables(1, 2000))
    z = stats.norm.ppf((1 + level) / 2) * (
        np.sqrt((n + m) / (n + m - 1)) if compare == "difference" else np.ones(len(n))
    )
    low, high = method(x, n, y, m, confidence_level=level)
    for end, sign in ((low, 1), (high, -1)):
        inner = (end > 0) & np.isfinite(end) if compare == "ratio" else np.abs(end) < 1
        columns = [column[inner] for column in (x, n, y, m)]
        statistic = score_statistic(*columns, compare, end[inner])
        # Near a rate of 0 or 1 the bisection itself keeps few digits.
        np.testing.assert_allclose(statistic, sign * z[inner], rtol=1e-5)


# ------------------------------------------------------------------------------------------------------------- laws


@given(tables(), st.sampled_from(DIFFERENCE))
def test_difference_changes_sign_when_reference_swaps(table, method):
    x, n, y, m = table
    low, high = method(x, n, y, m)
    assert method(y, m, x, n) == pytest.approx((-high, -low), abs=1e-12)


@given(tables(), st.sampled_from(DIFFERENCE))
def test_difference_changes_sign_with_the_complement(table, method):
    x, n, y, m = table
    low, high = method(x, n, y, m)
    assert method(n - x, n, m - y, m) == pytest.approx((-high, -low), abs=1e-9)


@given(tables(), st.sampled_from(SCORE_RATIO))
def test_ratio_inverts_when_reference_swaps(table, method):
    x, n, y, m = table
    low, high = method(x, n, y, m)
    assert method(y, m, x, n) == pytest.approx((1 / high, 1 / low if low > 0 else math.inf), rel=1e-12)


@given(tables())
def test_katz_inverts_when_reference_swaps(table):
    x, n, y, m = table
    low, high = katz_interval(x, n, y, m, correction="walter")
    assert katz_interval(y, m, x, n, correction="walter") == pytest.approx((1 / high, 1 / low), rel=1e-12)


@given(tables(), st.sampled_from([*DIFFERENCE, *RATIO]))
def test_pair_contains_its_estimate(table, method):
    x, n, y, m = table
    low, high = method(x, n, y, m)
    if method in DIFFERENCE:
        assert low - 1e-12 <= x / n - y / m <= high + 1e-12
    elif y > 0 and not math.isnan(low):
        assert low * (1 - 1e-12) <= (x / n) / (y / m) <= high * (1 + 1e-12)


@given(tables(), st.sampled_from(RATE))
def test_rate_contains_its_estimate_and_stays_a_rate(table, method):
    low, high = method(*table[:2])
    assert 0 <= low <= table[0] / table[1] + 1e-12
    assert table[0] / table[1] - 1e-12 <= high <= 1


@given(tables(), st.sampled_from([*DIFFERENCE, *RATIO]), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_higher_confidence_contains_lower(table, method, one, two):
    wide, narrow = (method(*table, confidence_level=level) for level in (max(one, two), min(one, two)))
    if not math.isnan(wide.low):
        assert wide.low <= narrow.low + 1e-9 * abs(narrow.low) + 1e-12
        assert wide.high == narrow.high or wide.high >= narrow.high - 1e-9 * abs(narrow.high) - 1e-12


@given(tables(), st.sampled_from([*DIFFERENCE[:2], *SCORE_RATIO]))
def test_ends_rise_with_the_count(table, method):
    _, n, y, m = table
    low, high = method(np.arange(n + 1), n, y, m)
    assert (low[1:] >= low[:-1] * (1 - 1e-12) - 1e-12).all()
    assert (high[1:] >= high[:-1] * (1 - 1e-12) - 1e-12).all()


@given(tables(), st.floats(0.0, 1.0), st.sampled_from(SCORE_RATIO + DIFFERENCE[:2]))
def test_effective_counts_lie_between_whole_ones(table, share, method):
    x, n, y, m = table
    below, above = max(x - 1, 0), x
    between = below + share * (above - below)
    low, high = method([below, between, above], n, y, m)
    assert low[0] - 1e-9 <= low[1] <= low[2] + 1e-9
    assert math.isinf(high[1]) or high[0] * (1 - 1e-9) - 1e-9 <= high[1] <= high[2] * (1 + 1e-9) + 1e-9


@settings(max_examples=50)
@given(st.sampled_from(SCORE_RATIO + DIFFERENCE[:2]), st.integers(1, 300), st.integers(1, 300), st.floats(1e-15, 1e-6))
def test_score_interval_is_continuous_at_the_edges(method, n, m, crumb):
    for x, y in ((0, m), (n, m), (n, 0)):
        nudged = (abs(x - crumb), n, y, m) if x == 0 else (x - crumb, n, y, m)
        for at_edge, near in zip(method(x, n, y, m), method(*nudged), strict=True):
            assert near == pytest.approx(at_edge, rel=1e-4, abs=1e-4)


# ------------------------------------------------------------------------------------------------- undefined, wrong


@pytest.mark.parametrize("method", [*DIFFERENCE, *RATIO])
@pytest.mark.parametrize("table", [(0, 0, 3, 5), (3, 5, 0, 0), (0, 0, 0, 0), (np.nan, 5, 3, 5), (0, 5, np.nan, 5)])
def test_pair_without_denominator_or_with_nan_is_nan(method, table):
    assert np.isnan(method(*table)).all()


@pytest.mark.parametrize("method", RATE)
@pytest.mark.parametrize("table", [(0, 0), (np.nan, 5), (0, np.nan), (np.nan, np.nan)])
def test_rate_without_denominator_or_with_nan_is_nan(method, table):
    assert np.isnan(method(*table)).all()


@pytest.mark.parametrize("method", [miettinen_nurminen_ratio_interval, miettinen_nurminen_difference_interval])
def test_one_effective_row_is_too_few_for_the_corrected_variance(method):
    assert np.isnan(method(0.1, 0.5, 0.2, 0.5)).all()


@pytest.mark.parametrize("method", [*DIFFERENCE, *RATIO])
def test_arrays_broadcast_and_agree_with_scalars(method):
    low, high = method([[1], [2]], 10, [3, 4, 5], [20, 30, 40])
    assert low.shape == high.shape == (2, 3)
    assert (low[1, 2], high[1, 2]) == method(2, 10, 5, 40)
    assert isinstance(method(2, 10, 5, 40).low, float)


@pytest.mark.parametrize("method", [*DIFFERENCE, *RATIO])
def test_levels_broadcast(method):
    low, _ = method(2, 10, 5, 40, confidence_level=[0.9, 0.95])
    assert low[1] == method(2, 10, 5, 40, confidence_level=0.95).low


@pytest.mark.parametrize(
    ("arguments", "level", "message"),
    [
        ((1, 2, 1, 2), 95, r"confidence_level must lie in \(0, 1\); got 95. Did you mean 0.95\?"),
        ((1, 2, 1, 2), 1, r"confidence_level must lie in \(0, 1\); got 1.$"),
        ((1, 2, 1, 2), math.nan, r"confidence_level must lie in \(0, 1\); got nan"),
        ((3, 2, 1, 2), 0.95, r"count must not exceed nobs; got 3 of 2"),
        ((1, 2, 3, 2), 0.95, r"count_reference must not exceed nobs_reference; got 3 of 2"),
        ((-1, 2, 1, 2), 0.95, r"count must be finite and not negative; got -1"),
        ((1, 2, 1, math.inf), 0.95, r"nobs_reference must be finite and not negative; got inf"),
    ],
)
@pytest.mark.parametrize("method", [*DIFFERENCE, *RATIO])
def test_wrong_arguments_are_named(method, arguments, level, message):
    with pytest.raises(ValueError, match=message):
        method(*arguments, confidence_level=level)


def test_unknown_correction_is_named():
    with pytest.raises(ValueError, match=r"correction must be one of \[None, 'walter'\]; got 'yates'"):
        katz_interval(1, 2, 1, 2, correction="yates")


def test_rounding_of_weights_does_not_pass_for_a_wrong_count():
    total = sum([0.1] * 10)  # 0.9999999999999999
    assert wilson_interval(1.0, total).high == 1


def test_interval_knows_what_it_contains():
    interval = Interval(0.2, 0.5, "bca", 0.95, valid_share=0.99)
    assert 0.2 in interval
    assert 0.51 not in interval
    assert interval.width == pytest.approx(0.3)
    nothing = Interval(math.nan, math.nan, "bca", 0.95, degenerate=True)
    assert 0.2 not in nothing
    assert math.isnan(nothing.width)


# --------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize(("nobs", "rate"), [(30, 0.3), (100, 0.1), (100, 0.5), (300, 0.05)])
def test_wilson_covers(nobs, rate):
    count = np.arange(nobs + 1)
    low, high = wilson_interval(count, nobs)
    assert 0.925 <= stats.binom.pmf(count, nobs, rate)[(low <= rate) & (rate <= high)].sum() <= 0.975


@pytest.mark.parametrize(("nobs", "rate"), [(5, 0.5), (30, 0.3), (100, 0.01), (300, 0.05)])
def test_clopper_pearson_never_covers_too_little(nobs, rate):
    count = np.arange(nobs + 1)
    low, high = clopper_pearson_interval(count, nobs)
    assert stats.binom.pmf(count, nobs, rate)[(low <= rate) & (rate <= high)].sum() >= 0.95


@pytest.mark.parametrize("method", [*SCORE_RATIO, newcombe_interval, miettinen_nurminen_difference_interval])
@pytest.mark.parametrize("sizes", [(20, 80), (30, 120), (100, 400), (100, 100)])
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.24, 0.3), (0.1, 0.1), (0.04, 0.05)])
def test_pair_covers_exactly_enumerated(method, sizes, rates):
    (n, m), (p, q) = sizes, rates
    x, y = np.arange(n + 1)[:, np.newaxis], np.arange(m + 1)
    low, high = method(x, n, y, m)
    truth = p / q if method in SCORE_RATIO else p - q
    weight = stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
    assert 0.93 <= weight[(low <= truth) & (truth <= high)].sum() <= 0.975


def test_wald_is_too_short_where_its_docstring_says():
    x, y = np.arange(31)[:, np.newaxis], np.arange(121)
    low, high = wald_difference_interval(x, 30, y, 120)
    weight = stats.binom.pmf(x, 30, 0.05) * stats.binom.pmf(y, 120, 0.05)
    assert weight[(low <= 0) & (high >= 0)].sum() == pytest.approx(0.81, abs=0.005)


def test_four_fifths_rule_flags_at_most_its_share():
    # The rule "upper end below 0.80" at a true ratio of 0.80: nominal 2.5%.
    for n, m, q in [(30, 120, 0.05), (100, 400, 0.3), (300, 1200, 0.1)]:
        x, y = np.arange(n + 1)[:, np.newaxis], np.arange(m + 1)
        high = miettinen_nurminen_ratio_interval(x, n, y, m).high
        weight = stats.binom.pmf(x, n, 0.8 * q) * stats.binom.pmf(y, m, q)
        assert weight[high < 0.8].sum() <= 0.0275


@pytest.mark.parametrize("value", ["x", None, [1, [2]]])
@pytest.mark.parametrize("check", [check_fraction, check_rate])
def test_what_is_no_number_is_refused_by_the_name_of_its_argument(check, value):
    with pytest.raises(TypeError, match=r"^confidence_level must be a number in [\[(]0, 1[\])]; got "):
        check(value, "confidence_level")
