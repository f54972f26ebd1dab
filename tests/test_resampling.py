"""Bootstrap of cells: it is the bootstrap of rows, its jackknife is exact, and seeds alone decide the result."""

import importlib.util
import inspect
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtri

from sklearn_ethiclens import METRICS, Tally, audit, audit_tally
from sklearn_ethiclens.exceptions import DegenerateIntervalWarning, UndefinedMetricWarning
from sklearn_ethiclens.inference import bootstrap_bounds, bootstrap_interval
from sklearn_ethiclens.inference._resampling import (
    STREAM,
    acceleration,
    as_seed,
    collect_cells,
    draw_cells,
    leave_one_out,
    pair_leave_one_out,
)
from sklearn_ethiclens.metrics._rates import divide
from tests._shared import data_file

PAIRS = [
    "disparate_impact",
    "statistical_parity_difference",
    "true_positive_rate_difference",
    "equalized_odds_difference",
    "average_odds_difference",
    "precision_difference",
    "accuracy_ratio",
    "theil_index_difference",
]


def random_rows(n, seed=0, shares=(0.5, 0.3, 0.2)):
    rng = np.random.default_rng(seed)
    group = rng.choice(len(shares), n, p=shares)
    truth = (rng.random(n) < np.array([0.5, 0.4, 0.6])[group]).astype(int)
    decision = (rng.random(n) < np.array([[0.2, 0.7], [0.15, 0.6], [0.3, 0.55]])[group, truth]).astype(int)
    return group, truth, decision


def table_of(group, truth, decision):
    counts = np.zeros((group.max() + 1, 2, 2), int)
    np.add.at(counts, (group, truth, decision), 1)
    return counts


def pair_statistic(name, first=1, second=0):
    metric = METRICS[name]
    return lambda counts: metric(counts[..., first, :, :], counts[..., second, :, :])


def share(counts):
    return divide(counts[..., 1], counts.sum(-1))


def tally_of(counts):
    names = [f"g{i:02}" for i in range(len(counts))]
    return Tally(("group",), tuple((name,) for name in names), counts)


def quiet_audit(*args, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", DegenerateIntervalWarning)
        return audit_tally(*args, **keywords)


# ------------------------------------------------------------------------------------------------ cells against rows
@pytest.mark.parametrize("name", PAIRS)
def test_acceleration_from_cells_is_that_of_the_row_jackknife(name):
    group, truth, decision = random_rows(600)
    counts = table_of(group, truth, decision)
    statistic = pair_statistic(name)
    rows = np.repeat(counts[None].astype(float), 600, axis=0)
    rows[np.arange(600), group, truth, decision] -= 1
    left_out = np.array([statistic(table) for table in rows])
    influence = left_out.mean() - left_out
    expected = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)

    deleted, weights = leave_one_out(counts, 600)
    index, weights = pair_leave_one_out(weights, np.array([1]), 0)
    values = METRICS[name](deleted[index[0]], deleted[index[1]])
    assert weights.sum() == 600
    assert acceleration(values, weights)[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", PAIRS)
def test_bca_of_cells_is_that_of_rows_by_scipy(name):
    group, truth, decision = random_rows(600, seed=1)
    counts = table_of(group, truth, decision)
    statistic, code = pair_statistic(name), (group * 2 + truth) * 2 + decision

    def of_codes(codes):
        return statistic(np.bincount(codes, minlength=12).reshape(3, 2, 2))

    seed = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"  # scipy before 1.15
    generator = {seed: np.random.default_rng(0)}
    theirs = stats.bootstrap((code,), of_codes, vectorized=False, n_resamples=2000, method="BCa", **generator)
    ours = bootstrap_interval(counts, statistic, n_resamples=20_000, random_state=0)
    # the Monte-Carlo error of an end of 2,000 replicates at the 2.5% point: sqrt(p (1 - p) / B) / density ~ .06 sd
    error = 5 * 0.06 * theirs.standard_error
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=error)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=error)


def test_replicates_of_cells_have_the_distribution_of_replicates_of_rows():
    n, n_resamples = 3000, 4000
    group, truth, decision = random_rows(n, seed=2)
    code, rng = (group * 2 + truth) * 2 + decision, np.random.default_rng(3)
    rows = np.stack([np.bincount(code[rng.integers(0, n, n)], minlength=12) for _ in range(n_resamples)])
    cells = draw_cells(np.bincount(code, minlength=12), n_resamples, seed=4).T
    assert (cells.sum(1) == n).all()
    names = [*PAIRS, "base_rate_ratio", "equal_opportunity_difference", "f1_difference", "composite_bias_score"]
    assert len(names) >= 10
    for name in names:
        statistic = pair_statistic(name)
        one, other = (statistic(drawn.reshape(-1, 3, 2, 2)) for drawn in (rows, cells))
        assert stats.ks_2samp(one, other).pvalue > 1e-4, name
    for name in ("theil_index", "balanced_accuracy", "selection_rate"):
        one, other = (METRICS[name](drawn.reshape(-1, 3, 2, 2)[:, 2]) for drawn in (rows, cells))
        assert stats.ks_2samp(one, other).pvalue > 1e-4, name


# ----------------------------------------------------------------------------------------- the laboratory's prototype
LAB_GROUPS = {
    "selection_rate": "selection_rate",
    "true_positive_rate": "tpr",
    "false_positive_rate": "fpr",
    "precision": "ppv",
    "accuracy": "accuracy",
    "base_rate": "base_rate",
    "theil_index": "theil",
}
LAB_PAIRS = {
    "disparate_impact": "disparate_impact",
    "statistical_parity_difference": "statistical_parity_difference",
    "true_positive_rate_difference": "equal_opportunity_difference",
    "false_positive_rate_difference": "fpr_difference",
    "equalized_odds_difference": "equalized_odds_difference",
    "precision_difference": "predictive_parity_difference",
    "accuracy_difference": "accuracy_difference",
    "theil_index_difference": "theil_difference",
}


@pytest.fixture(scope="module")
def laboratory():
    path = data_file("acs-income-test.parquet").parent.parent / "lab" / "cellboot.py"
    if not Path(path).is_file():
        pytest.skip(f"{path} is missing")
    spec = importlib.util.spec_from_file_location("cellboot", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["cellboot"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["cellboot"]


def compare_with_laboratory(lab, columns, truth, decision, method):
    plan = [*((name,) for name in columns), tuple(columns)]
    tally = Tally.from_predictions(truth, decision, sensitive_features=columns)
    reference = {names: tally.marginal(names).groups[0] for names in plan}
    named = {names if len(names) > 1 else names[0]: g if len(g) > 1 else g[0] for names, g in reference.items()}
    found = quiet_audit(tally, intersections=[plan[-1]], reference=named, method=method, n_resamples=2000)
    mine = {(f.attribute, f.metric, f.group): f for f in found.findings}
    given = {names: g if len(g) > 1 else g[0] for names, g in reference.items()}
    blocks = lab.audit(lab.encode(columns, truth, decision), plan, n_boot=2000, method=method, reference=given, seed=0)
    compared = 0
    for block in blocks:
        attribute = block.attrs if len(block.attrs) > 1 else block.attrs[0]
        labels = [g if isinstance(g, tuple) else (g,) for g in block.groups]
        labels = [tuple(v.item() if isinstance(v, np.generic) else v for v in g) for g in labels]
        labels = [g if len(g) > 1 else g[0] for g in labels]
        sides = [
            (LAB_GROUPS, lab.GROUP_METRICS, labels, block.group_est, block.group_ci, block.group_valid),
            (
                LAB_PAIRS,
                lab.PAIR_METRICS,
                [labels[i] for i in block.pair_idx],
                block.pair_est,
                block.pair_ci,
                block.pair_valid,
            ),
        ]
        for mapping, order, who, estimates, bounds, valid in sides:
            for ours, theirs in mapping.items():
                row = order.index(theirs)
                for i, label in enumerate(who):
                    f = mine[attribute, ours, label]
                    if np.isnan(f.low):
                        assert valid[row, i] < 0.95 or not np.isfinite(estimates[row, i])
                        continue
                    expected = [estimates[row, i], bounds[0, row, i], bounds[1, row, i]]
                    np.testing.assert_allclose([f.value, f.low, f.high], expected, rtol=0, atol=1e-9, err_msg=str(f))
                    compared += 1
    return compared


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_intervals_are_those_of_the_laboratory_on_census_data(laboratory, method):
    pytest.importorskip("pyarrow")
    frame = pd.read_parquet(data_file("acs-income-test.parquet")).head(20_000)
    truth, decision = frame["PINCP"].to_numpy().astype(int), (frame["SCHL"] >= 21).to_numpy().astype(int)
    columns = {name: frame[name].astype(int).to_numpy() for name in ("SEX", "RAC1P")}
    assert compare_with_laboratory(laboratory, columns, truth, decision, method) > 300


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_of_the_laboratory_on_random_data(laboratory, seed):
    group, truth, decision = random_rows(2000, seed)
    other = np.random.default_rng(seed).choice(["x", "y"], 2000).astype(object)
    assert compare_with_laboratory(laboratory, {"a": group, "b": other}, truth, decision, "bca") > 100


# ------------------------------------------------------------------------------------------- two ways to one interval
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_an_audit_gives_the_intervals_of_the_general_bootstrap(method):
    counts = table_of(*random_rows(900, seed=5))
    tally = tally_of(counts)
    found = quiet_audit(tally, reference="g00", method=method, n_resamples=600, random_state=7)
    checked = 0
    for f in found.findings:
        metric = METRICS[f.metric]
        if metric.kind == "overall":
            assert np.isnan(f.low)
            continue
        at = int(f.group[1:])
        statistic = (
            pair_statistic(f.metric, at, 0) if metric.kind == "pair" else lambda c, m=metric, i=at: m(c[..., i, :, :])
        )
        interval = bootstrap_interval(counts, statistic, method=method, n_resamples=600, random_state=7)
        assert f.low == pytest.approx(interval.low, abs=1e-9), f
        assert f.high == pytest.approx(interval.high, abs=1e-9), f
        checked += 1
    assert checked > 100


def test_without_labels_the_intervals_are_those_of_the_general_bootstrap():
    counts = np.array([[[60, 40]], [[30, 45]]])
    found = audit_tally(tally_of(counts), reference="g00", n_resamples=600)
    interval = bootstrap_interval(counts, pair_statistic("disparate_impact"), n_resamples=600)
    di = next(f for f in found.findings if f.metric == "disparate_impact")
    assert (di.low, di.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_a_marginal_is_resampled_as_if_it_were_audited_alone_in_distribution():
    group, truth, decision = random_rows(3000, seed=6)
    other = np.random.default_rng(0).integers(0, 3, 3000)
    both = audit(truth, decision, sensitive_features={"a": group, "b": other}, n_resamples=4000)
    alone = audit(truth, decision, sensitive_features={"a": group}, n_resamples=4000, random_state=1)
    pick = {f.group: (f.low, f.high) for f in alone.findings if f.metric == "disparate_impact"}
    for f in both.findings:
        if f.metric == "disparate_impact" and f.attribute == "a":
            assert (f.low, f.high) == pytest.approx(pick[f.group], abs=0.02)


# --------------------------------------------------------------------------------------------------------------- parts
def test_leave_one_out_takes_a_row_from_each_cell_and_says_how_many_stand_for_it():
    deleted, weights = leave_one_out(np.array([[[3, 0], [2, 1]], [[1, 1], [1, 1]]]), 10)
    assert weights.tolist() == [[3, 0, 2, 1, 4], [1, 1, 1, 1, 6]]
    assert deleted[0].reshape(5, 4).tolist() == [
        [2, 0, 2, 1],
        [3, 0, 2, 1],
        [3, 0, 1, 1],
        [3, 0, 2, 0],
        [3, 0, 2, 1],
    ]


def test_deletions_of_a_pair_stand_for_all_rows():
    counts = table_of(*random_rows(500))
    _, weights = leave_one_out(counts, 500)
    _, both = pair_leave_one_out(weights, np.array([1, 2]), 0)
    assert both.shape == (2, 9)
    assert both.sum(1).tolist() == [500, 500]
    assert (both >= 0).all()


def test_acceleration_of_what_does_not_move_is_zero():
    assert acceleration(np.full((2, 3), 0.7), np.ones((2, 3))).tolist() == [0, 0]
    assert acceleration(np.full((1, 3), np.nan), np.ones((1, 3))).tolist() == [0]
    assert acceleration(np.array([[1.0, 2.0]]), np.zeros((1, 2))).tolist() == [0]


def test_acceleration_leaves_undefined_values_out():
    values, weights = np.array([[1.0, 2.0, 4.0, np.nan]]), np.array([[5.0, 3.0, 1.0, 2.0]])
    assert acceleration(values, weights) == acceleration(values[:, :3], weights[:, :3])


def test_acceleration_does_not_depend_on_the_unit():
    values, weights = np.array([[1.0, 2.0, 4.0]]), np.array([[5.0, 3.0, 1.0]])
    for unit in (1e-150, 1e-9, 1e150):
        assert acceleration(values * unit, weights) == pytest.approx(acceleration(values, weights), rel=1e-9)


def test_cells_are_collected_into_their_tables():
    cells = np.arange(8.0).reshape(4, 2)
    out = collect_cells(cells, np.array([0, 1, 1, 1]), np.array([1, 0, 1, 1]), n_tables=2, n_slots=2)
    assert out.shape == (2, 2, 2)
    assert out[1, 0].tolist() == [0, 1]
    assert out[0, 1].tolist() == [2, 3]
    assert out[1, 1].tolist() == [4 + 6, 5 + 7]
    assert out[0, 0].tolist() == [0, 0]


def test_bca_worked_by_hand():
    # replicates 1..99, estimate 40: 39 below and one equal (half) -> z0 = ndtri(39.5 / 99), no acceleration
    replicates = np.arange(1.0, 100.0)[None]
    bounds = bootstrap_bounds(np.array([40.0]), replicates.copy(), np.ones((1, 2)), np.ones((1, 2)))
    z0 = ndtri(39.5 / 99)
    low, high = (stats.norm.cdf(2 * z0 + ndtri(p)) * 98 + 1 for p in (0.025, 0.975))
    assert (bounds.low[0], bounds.high[0]) == pytest.approx((low, high), rel=1e-12)
    percentile = bootstrap_bounds(np.array([40.0]), replicates.copy(), method="percentile")
    assert (percentile.low[0], percentile.high[0]) == pytest.approx(np.quantile(replicates, [0.025, 0.975]))


def test_bca_needs_the_jackknife():
    with pytest.raises(ValueError, match="BCa needs the leave-one-out values"):
        bootstrap_bounds(np.array([0.5]), np.full((1, 200), 0.5))


# ------------------------------------------------------------------------------------------ degenerate and undefined
@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize("counts", [[0, 30], [30, 0], [1, 0], [0, 1], [5000, 0]])
def test_replicates_all_equal_are_marked_degenerate(counts, method):
    interval = bootstrap_interval(counts, share, method=method, n_resamples=200)
    assert interval.degenerate
    assert interval.low == interval.high == counts[1] / sum(counts)


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_over_five_percent_undefined_gives_no_interval(method):
    def given_some(counts):  # undefined where the first cell is empty: probability (1 - p)**n
        return np.where(counts[..., 0] > 0, share(counts), np.nan)

    interval = bootstrap_interval([2, 18], given_some, method=method)  # .9**20 = .12
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)
    assert interval.valid_share == pytest.approx(1 - 0.9**20, abs=0.03)
    assert not interval.degenerate
    interval = bootstrap_interval([4, 16], given_some, method=method)  # .8**20 = .012
    assert interval.low < 0.8 < interval.high
    assert 0.95 < interval.valid_share < 1


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_a_statistic_that_is_never_defined_has_no_interval(method):
    interval = bootstrap_interval([5, 5], lambda c: np.full(c.shape[:-1], np.nan), method=method)
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)
    assert interval.valid_share == 0
    assert not interval.degenerate


@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize("estimate", [0.5, np.nan])
def test_replicates_all_undefined_beside_defined_ones_have_no_interval(estimate, method):
    replicates = np.stack([np.full(300, np.nan), np.linspace(0, 1, 300), np.full(300, 0.5)])
    jackknife = np.array([[np.nan, np.nan], [0.4, 0.6], [0.5, 0.5]])
    bounds = bootstrap_bounds(
        np.array([estimate, 0.5, 0.5]), replicates, jackknife, np.full((3, 2), 5.0), method=method
    )
    assert np.isnan(bounds.low).tolist() == [True, False, False]
    assert np.isnan(bounds.high).tolist() == [True, False, False]
    assert bounds.valid_share.tolist() == [0, 1, 1]
    assert bounds.degenerate.tolist() == [False, False, True]


@pytest.mark.parametrize("empty", [[[0, 5], [0, 60]], [[40, 0], [20, 0]], [[60, 40], [0, 0]]])
def test_an_audit_with_an_empty_denominator_has_no_interval_there(empty):
    counts = np.array([empty, [[100, 50], [40, 100]]])
    with pytest.warns(UndefinedMetricWarning, match="undefined, shown as NaN"):
        found = audit_tally(tally_of(counts), n_resamples=200)
    for f in found.findings:
        if np.isnan(f.value):
            assert np.isnan(f.low)
            assert np.isnan(f.high)
            assert f.reason


def test_a_group_of_one_row_is_audited():
    counts = np.array([[[0, 0], [0, 1]], [[100, 50], [40, 100]]])
    with pytest.warns(UndefinedMetricWarning):
        found = audit_tally(tally_of(counts), n_resamples=200)
    rate = next(f for f in found.findings if f.metric == "selection_rate" and f.group == "g00")
    assert rate.value == 1.0
    assert (rate.low, rate.high) == (1.0, 1.0)  # in e^-1 of the replicates it is empty, in all others 1
    assert "no proof of certainty" in rate.reason
    assert "replicates" in rate.reason


def test_billions_of_rows_are_resampled_at_the_cost_of_cells():
    interval = bootstrap_interval([600_000_000, 400_000_000], share)
    half_width = 1.96 * np.sqrt(0.4 * 0.6 / 1e9)
    assert interval.high - 0.4 == pytest.approx(half_width, rel=0.1)
    assert 0.4 - interval.low == pytest.approx(half_width, rel=0.1)
    counts = np.array([[[10**9, 10**8], [10**8, 10**9]], [[10**9, 2 * 10**8], [10**8, 10**9]]])
    found = audit_tally(tally_of(counts), n_resamples=200)
    signed = [f for f in found.findings if METRICS[f.metric].kind == "pair" and METRICS[f.metric].low != 0]
    assert all(f.low <= f.value <= f.high for f in signed)
    assert max(f.high - f.low for f in signed) < 1e-3


def test_an_interval_at_a_lower_level_is_narrower():
    wide, narrow = (bootstrap_interval([60, 40], share, confidence_level=level) for level in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.confidence_level == 0.99


# --------------------------------------------------------------------------------------------------------------- seeds
def test_the_first_thousand_replicates_are_one_stream():
    counts = np.array([30, 50, 20, 0])[:3]
    long = draw_cells(counts, 3500, seed=9)
    for n_resamples in (100, 999, 1000, 1001, 2000):
        short = draw_cells(counts, n_resamples, seed=9)
        assert np.array_equal(short, long[:, :n_resamples])
    assert not np.array_equal(long[:, :STREAM], long[:, STREAM : 2 * STREAM])


def test_replicates_do_not_depend_on_the_block_they_are_drawn_in():
    counts = np.random.default_rng(0).integers(1, 5, 5000)  # blocks of 419 replicates
    one, other = draw_cells(counts, 1300, seed=1), draw_cells(counts, 1000, seed=1)
    assert np.array_equal(one[:, :1000], other)
    assert (one.sum(0) == counts.sum()).all()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_nothing(n_jobs):
    counts = np.array([30, 50, 20])
    assert np.array_equal(draw_cells(counts, 4100, 3, n_jobs=n_jobs), draw_cells(counts, 4100, 3))
    tally = tally_of(table_of(*random_rows(400)))
    one, two = (audit_tally(tally, n_resamples=2500, n_jobs=n).to_json() for n in (1, n_jobs))
    assert one == two


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_intervals():
    tally = tally_of(table_of(*random_rows(400)))
    one, same, other = (audit_tally(tally, n_resamples=300, random_state=seed) for seed in (3, 3, 4))
    assert one.to_json() == same.to_json()
    assert [f.value for f in one.findings if f.value == f.value] == [
        f.value for f in other.findings if f.value == f.value
    ]
    assert [f.low for f in one.findings if f.low == f.low] != [f.low for f in other.findings if f.low == f.low]


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.random.default_rng(5),
        lambda: np.random.RandomState(5),
        lambda: None,
        lambda: np.int64(5),
        lambda: 2**70,
    ],
    ids=["generator", "random_state", "none", "numpy", "large"],
)
def test_the_seed_that_was_used_is_kept_and_repeats_the_audit(make):
    tally = tally_of(table_of(*random_rows(300)))
    found = audit_tally(tally, n_resamples=200, random_state=make(), metrics=["disparate_impact"])
    seed = found.parameters["random_state"]
    assert type(seed) is int
    again = audit_tally(tally, n_resamples=200, random_state=seed, metrics=["disparate_impact"])
    assert again.to_json() == found.to_json()


def test_a_generator_moves_on_and_none_differs_each_time():
    generator = np.random.default_rng(0)
    assert as_seed(generator) != as_seed(generator)
    assert as_seed(np.random.default_rng(0)) == as_seed(np.random.default_rng(0))
    assert as_seed(np.random.RandomState(0)) == as_seed(np.random.RandomState(0))
    assert as_seed(None) != as_seed(None)
    assert as_seed(7) == 7


def test_the_global_seed_is_neither_read_nor_moved():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    bootstrap_interval([60, 40], share, n_resamples=200)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


# ------------------------------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize("bad", [-1, 1.0, True, "0", [1], np.float64(3)])
def test_a_random_state_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="random_state must be"):
        audit_tally(tally_of(np.full((2, 2, 2), 30)), random_state=bad)


@pytest.mark.parametrize("bad", [99, 0, -5, 1000.0, True, "1000", None])
def test_too_few_replicates_are_refused(bad):
    with pytest.raises(ValueError, match=r"n_resamples must be a whole number of at least \d+; got"):
        bootstrap_interval([60, 40], share, n_resamples=bad)


@pytest.mark.parametrize("bad", [0, 1, -0.5, 95, float("nan")])
def test_a_confidence_level_outside_zero_and_one_is_refused(bad):
    with pytest.raises(ValueError, match="confidence_level"):
        bootstrap_interval([60, 40], share, confidence_level=bad)


@pytest.mark.parametrize("bad", ["BCA", "basic", None, 3])
def test_an_interval_method_there_is_not_is_refused(bad):
    with pytest.raises(ValueError, match=r"method must be one of \('bca', 'percentile'\); got"):
        bootstrap_interval([60, 40], share, method=bad)


@pytest.mark.parametrize("bad", [[], [0, 0], [5, -1], [np.nan, 3.0], [2.5, 3.0]])
def test_counts_that_are_no_table_of_rows_are_refused(bad):
    with pytest.raises(ValueError, match="counts must be"):
        bootstrap_interval(bad, share)


@pytest.mark.parametrize("bad", [-1, "a", None, np.random.default_rng(0)])
def test_the_general_bootstrap_takes_the_same_random_states_as_an_audit(bad):
    if bad in (-1, "a"):
        with pytest.raises(ValueError, match="random_state must be"):
            bootstrap_interval([60, 40], share, random_state=bad)
    else:
        assert 0.4 in bootstrap_interval([60, 40], share, random_state=bad)
