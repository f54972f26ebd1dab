"""Sample weights: what a tally keeps of them, and that values, intervals, tests and verdicts allow for them.

Oracles: fairlearn's ``MetricFrame`` with ``sample_params``, statsmodels' weighted means, a bootstrap of rows, and the
audit of the same rows without weights.
"""

import json
import pickle
import sys
from decimal import Decimal
from itertools import pairwise

import fairlearn.metrics as fl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, precision_score
from statsmodels.stats.weightstats import DescrStatsW

from sklearn_ethiclens import Audit, FairnessAuditor, Tally, audit, audit_tally
from sklearn_ethiclens._weights import CellWeights, WeightSums
from sklearn_ethiclens.cli import main
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.inference._index_intervals import theil_effective_size
from sklearn_ethiclens.inference._resampling import (
    acceleration,
    draw_cells,
    leave_one_out,
    weigh_draws,
    weighted_leave_one_out,
)
from sklearn_ethiclens.metrics._rates import RATES, WeightedReplicates, confusion_of

N = 1500
FEW = {"n_resamples": 400}


def rows(seed=0, n=N):
    """Labels, decisions, two attributes and lognormal weights that go with the decision."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["F", "M"], n)
    race = generator.choice(["a", "b", "c"], n, p=[0.62, 0.36, 0.02])
    y = (generator.random(n) < 0.45).astype(int)
    p = (generator.random(n) < 0.25 + 0.3 * y + 0.15 * (sex == "M")).astype(int)
    weight = generator.lognormal(0.0, 0.7, n) * (1 + p)
    return y, p, pd.DataFrame({"sex": sex, "race": race}), weight


Y, P, GROUPS, WEIGHT = rows()


def tally_of(y=Y, p=P, groups=GROUPS, weight=WEIGHT, **options):
    return Tally.from_predictions(y, p, sensitive_features=groups, sample_weight=weight, **options)


def same_numbers(one, other):
    """Assert that two audits have the same findings, but for rounding."""
    numbers = ["value", "low", "high", "pvalue", "pvalue_adjusted", "power", "minimum_detectable", "limit_pvalue"]
    words = ["attribute", "group", "reference", "metric", "test", "n", "n_reference", "verdict", "method"]
    mine, theirs = one.frame(), other.frame()
    np.testing.assert_allclose(mine[numbers].astype(float), theirs[numbers].astype(float), rtol=1e-7, atol=1e-9)
    pd.testing.assert_frame_equal(mine[words], theirs[words])
    assert mine["denominators"].tolist() == theirs["denominators"].tolist()


# -------------------------------------------------------------------------------------------------------------- tally
def test_cells_hold_sums_of_powers_of_the_weights():
    tally = tally_of()
    assert tally.counts.dtype == np.float64
    assert tally.rows.dtype == np.int64
    assert tally.n_rows == N
    for i, (sex, race) in enumerate(tally.groups):
        for truth in (0, 1):
            for decision in (0, 1):
                own = WEIGHT[(GROUPS["sex"] == sex) & (GROUPS["race"] == race) & (truth == Y) & (decision == P)]
                cell = i, truth, decision
                assert tally.rows[cell] == own.size
                found = [tally.counts[cell], tally.weights.squares[cell], tally.weights.cubes[cell]]
                np.testing.assert_allclose(found, [np.sum(own**k) for k in (1, 2, 3)], rtol=1e-12)
                kept = tally.weights.kept[np.ravel_multi_index(cell, tally.counts.shape)]
                if own.size < 30:
                    np.testing.assert_array_equal(kept, np.sort(own))
                else:
                    assert kept is None
    assert {len(part) for part in tally.weights.kept if part is not None}  # both kinds of cells occur
    assert None in tally.weights.kept


def test_sums_are_exact_to_rounding_however_far_weights_lie_apart():
    weight = 10.0 ** np.linspace(-12, 12, N)
    tally = tally_of(weight=weight)
    for k, found in ((1, tally.counts), (2, tally.weights.squares), (3, tally.weights.cubes)):
        for decision in (0, 1):
            own = weight[(GROUPS["race"] == "c") & (decision == P)]
            mine = found[[group[1] == "c" for group in tally.groups]][..., decision].sum()
            assert mine == pytest.approx(np.sum(own**k), rel=1e-12)


@pytest.mark.parametrize("exact", [False, True])
def test_sums_do_not_depend_on_the_order_of_the_rows(exact):
    order = np.random.default_rng(4).permutation(N)
    mixed = tally_of(Y[order], P[order], GROUPS.iloc[order], WEIGHT[order], exact_weights=exact)
    assert mixed.digest() == tally_of(exact_weights=exact).digest()


@pytest.mark.parametrize("exact", [False, True])
def test_marginal_is_the_tally_of_fewer_columns(exact):
    marginal = tally_of(exact_weights=exact).marginal(["race"])
    alone = tally_of(groups=GROUPS[["race"]], exact_weights=exact)
    np.testing.assert_array_equal(marginal.rows, alone.rows)
    for name in ("sums", "squares", "cubes"):
        np.testing.assert_allclose(getattr(marginal.weights, name), getattr(alone.weights, name), rtol=1e-12)
    for mine, theirs in zip(marginal.weights.kept, alone.weights.kept, strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs)
    assert all(part is not None for part in marginal.weights.kept) is exact


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, N), max_size=4), seed=st.integers(0, 99))
def test_sums_of_parts_are_those_of_all_rows(cuts, seed):
    generator = np.random.default_rng(seed)
    cell, shape = generator.choice(12, N, p=np.r_[np.full(10, 0.0985), 0.01, 0.005]), (3, 2, 2)
    weight = WEIGHT * (generator.random(N) > 0.05)
    total, own = WeightSums.empty(0), generator.permutation(12)  # parts number cells as they please, as files do
    for start, stop in pairwise([0, *sorted(cuts), N]):
        part = WeightSums.from_rows(weight[start:stop], own[cell[start:stop]], 12)
        total.add(part, np.argsort(own), 12)
    mine = CellWeights.from_sums(total, np.arange(12), shape)
    theirs = CellWeights.from_rows(weight[weight > 0], cell[weight > 0], shape)
    np.testing.assert_array_equal(mine.rows, theirs.rows)
    for name in ("sums", "squares", "cubes"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-12)
    for one, other in zip(mine.kept, theirs.kept, strict=True):
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(1, N - 1))
def test_tallies_of_disjoint_rows_add(cut):
    parts = [tally_of(Y[part], P[part], GROUPS[part], WEIGHT[part]) for part in (slice(cut), slice(cut, None))]
    whole, total = tally_of(), sum(parts)
    assert total.groups == whole.groups
    np.testing.assert_array_equal(total.rows, whole.rows)
    for name in ("sums", "squares", "cubes"):
        np.testing.assert_allclose(getattr(total.weights, name), getattr(whole.weights, name), rtol=1e-12)
    for mine, theirs in zip(total.weights.kept, whole.weights.kept, strict=True):
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs)


def test_weighted_and_unweighted_rows_do_not_add():
    with pytest.raises(ValueError, match="only if their weighting agree; got True and False"):
        tally_of() + tally_of(weight=None)


def test_tally_survives_storing():
    for tally in (tally_of(), tally_of(exact_weights=True), tally_of(y=None)):
        stored = Tally.from_dict(json.loads(json.dumps(tally.to_dict())))
        for again in (stored, pickle.loads(pickle.dumps(tally))):
            assert again == tally
            assert again.digest() == tally.digest()
    assert tally_of().digest() != tally_of(weight=np.where(np.arange(N) == 7, 9.0, WEIGHT)).digest()
    assert tally_of() != tally_of(weight=None)


def test_an_unweighted_tally_is_stored_as_before():
    assert "weights" not in tally_of(weight=None).to_dict()
    assert tally_of(weight=None).counts.dtype == np.int64
    plain = tally_of(weight=None)
    assert plain.rows is plain.counts


def test_frame_shows_rows_and_weights():
    frame = tally_of(groups=GROUPS["sex"]).frame().set_index("sex")
    women = GROUPS["sex"] == "F"
    assert frame.loc["F", "n"] == women.sum()
    assert frame.loc["F", "tp"] == (women & (Y == 1) & (P == 1)).sum()
    assert frame.loc["F", "weight"] == pytest.approx(WEIGHT[women].sum())
    assert frame.loc["F", "weight_fn"] == pytest.approx(WEIGHT[women & (Y == 1) & (P == 0)].sum())
    assert list(tally_of(y=None).frame())[2:] == ["n", "selected", "weight", "weight_selected"]


def test_rows_of_weight_zero_carry_nothing_and_are_told():
    zero = np.arange(N) % 10 == 0
    groups = GROUPS.copy()
    groups.loc[0, "race"] = "none"  # a group of its own, without weight
    left = audit(Y, P, sensitive_features=groups, sample_weight=np.where(zero, 0.0, WEIGHT), **FEW)
    gone = audit(Y[~zero], P[~zero], sensitive_features=GROUPS[~zero], sample_weight=WEIGHT[~zero], **FEW)
    same_numbers(left, gone)
    assert left.tally.n_rows == N - N // 10
    assert "150 rows have a weight of 0 and no part in anything." in left.section("weights").lines
    assert not any("weight of 0" in line for line in gone.section("weights").lines)


def test_weights_of_many_kinds_of_columns():
    expected = tally_of()
    for weight in (WEIGHT.tolist(), pd.Series(WEIGHT), pd.Series(WEIGHT, dtype="Float64"), WEIGHT[:, None]):
        assert tally_of(weight=weight) == expected
    assert tally_of(weight=np.full(N, 2, dtype=np.int32)).counts.sum() == 2 * N
    assert tally_of(weight=[Decimal("0.25")] * N) == tally_of(weight=[0.25] * N)


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["polars", "pyarrow"])
def test_weights_of_other_engines(engine):
    module = pytest.importorskip(engine)
    column = module.Series(WEIGHT) if engine == "polars" else module.chunked_array([WEIGHT[:10], WEIGHT[10:]])
    assert tally_of(weight=column) == tally_of()
    values = [None, *WEIGHT[1:].tolist()]
    gappy = module.Series(values) if engine == "polars" else module.array(values)
    with pytest.raises(ValueError, match=r"got 1 missing \(NaN\) of 1500 rows"):
        tally_of(weight=gappy)


def _with(value, count=2):
    return np.where(np.arange(N) < count, value, WEIGHT)


@pytest.mark.parametrize(
    ("weight", "error", "match"),
    [
        (WEIGHT[:-1], ValueError, "one entry per row; got .*sample_weight 1499"),
        (np.column_stack([WEIGHT, WEIGHT]), ValueError, "sample_weight must be one weight per row; got 2 columns"),
        (2.0, TypeError, "sample_weight must be a column with one value per row; got float"),
        ("weight", TypeError, "sample_weight must be a column of values, one per row; got 'weight'"),
        (_with(-1.0), ValueError, "sample_weight must be finite and at least 0; got 2 negative of 1500 rows"),
        (_with(np.nan, 3), ValueError, r"got 3 missing \(NaN\) of 1500 rows. Drop these rows"),
        (pd.Series(_with(np.inf)), ValueError, "got 2 infinite of 1500 rows"),
        (np.zeros(N), ValueError, "must be above 0 in some row; got 0 in all 1500"),
        (["a"] * N, TypeError, "must hold one number per row; got values such as 'a'"),
        (np.full(N, True), TypeError, "must hold one number per row; got values such as True"),
        (_with(1e95), ValueError, "must lie between 1e-90 and 1e[+]90 where it is not 0"),
        (pd.Series(WEIGHT, index=np.arange(N) + 1), ValueError, "the index of .* differs from that of"),
    ],
)
def test_weights_that_are_none_are_refused_by_name(weight, error, match):
    with pytest.raises(error, match=match):
        tally_of(weight=weight)


def test_weights_that_do_not_fit_the_counts_are_refused():
    weights = tally_of().weights
    with pytest.raises(ValueError, match="weights must be of the cells that are counted"):
        Tally(("sex", "race"), tally_of().groups, 2 * tally_of().counts, weights=weights)
    with pytest.raises(ValueError, match="counts must be whole numbers of rows; give weights too"):
        Tally(("sex", "race"), tally_of().groups, tally_of().counts)
    with pytest.raises(ValueError, match="below 30 rows must be kept; a cell of 1 has none"):
        CellWeights(np.ones((1, 1, 2)), np.ones((1, 1, 2)), np.ones((1, 1, 2)), np.ones((1, 1, 2)), (None, None))
    with pytest.raises(ValueError, match="the 1 weights of a cell in ascending order"):
        CellWeights(*[np.ones((1, 1, 2))] * 4, (np.ones(1), np.ones(2)))
    with pytest.raises(ValueError, match="have one shape"):
        CellWeights(*[np.ones((1, 1, 2))] * 3, np.ones((1, 2, 2)), (np.ones(1), np.ones(1)))
    with pytest.raises(ValueError, match="cubes of weights must be finite, above 0 in cells with rows"):
        CellWeights(*[np.ones((1, 1, 2))] * 3, np.zeros((1, 1, 2)), (np.ones(1), np.ones(1)))
    with pytest.raises(ValueError, match="one entry for each of 2 cells; got 1"):
        CellWeights(*[np.ones((1, 1, 2))] * 4, (np.ones(1),))


# ---------------------------------------------------------------------------------------------------- weighted rates
def test_rates_are_those_of_fairlearn_with_sample_params():
    result = audit(Y, P, sensitive_features=GROUPS, sample_weight=WEIGHT, intersections="all", **FEW)
    functions = {
        "selection_rate": fl.selection_rate,
        "true_positive_rate": fl.true_positive_rate,
        "false_positive_rate": fl.false_positive_rate,
        "precision": precision_score,
        "accuracy": accuracy_score,
    }
    frame = fl.MetricFrame(
        metrics=functions,
        y_true=Y,
        y_pred=P,
        sensitive_features=GROUPS["sex"],
        sample_params={name: {"sample_weight": WEIGHT} for name in functions},
    )
    found = result.rates().query("attribute == 'sex'").pivot(index="group", columns="rate", values="value")
    np.testing.assert_allclose(found[[*functions]], frame.by_group[[*functions]].astype(float), rtol=0, atol=1e-12)
    difference = fl.demographic_parity_difference(
        Y, P, sensitive_features=GROUPS["sex"], sample_weight=WEIGHT, method="between_groups"
    )
    (spd,) = (f for f in result.findings if (f.metric, f.attribute) == ("statistical_parity_difference", "sex"))
    assert abs(spd.value) == pytest.approx(difference, abs=1e-12)
    assert result.cross_check()["largest_deviation"].max() < 1e-12


def test_rates_and_effective_rows_agree_with_statsmodels():
    # DescrStatsW: weighted mean and sum of weights; the variance is the linearised one of a ratio, as sandwich estimators
    # have it: sum of w**2 (x - mean)**2 over the square of the sum of weights.
    result = audit(Y, P, sensitive_features=GROUPS["sex"], sample_weight=WEIGHT, **FEW)
    for row in result.rates().query("rate == 'selection_rate'").itertuples():
        own = (GROUPS["sex"] == row.group).to_numpy()
        d = DescrStatsW(P[own], weights=WEIGHT[own])
        assert row.value == pytest.approx(d.mean, abs=1e-12)
        variance = (WEIGHT[own] ** 2 * (P[own] - d.mean) ** 2).sum() / d.sum_weights**2
        assert row.effective == pytest.approx(d.mean * (1 - d.mean) / variance, rel=1e-10)
    section = result.section("weights").frame().set_index("group")
    for group, part in pd.DataFrame({"sex": GROUPS["sex"], "w": WEIGHT}).groupby("sex"):
        assert section.loc[group, "rows"] == len(part)
        assert section.loc[group, "sum of weights"] == pytest.approx(part["w"].sum())
        assert section.loc[group, "effective rows"] == pytest.approx(part["w"].sum() ** 2 / (part["w"] ** 2).sum())


def test_effective_counts_worked_by_hand():
    # Weights 3, 1 of two selected rows and 2, 2 of two others: p = 4/8; v = (1/4 (9 + 1) + 1/4 (4 + 4)) / 64 = 4.5/64;
    # effective rows = (1/4) / v = 16/4.5 = 3.5556, half of them selected.
    tally = tally_of(None, [1, 1, 0, 0], ["g"] * 4, [3, 1, 2, 2])
    count, nobs = confusion_of(tally).proportion("selection_rate")
    assert nobs[0] == pytest.approx(16 / 4.5)
    assert count[0] == pytest.approx(8 / 4.5)
    # All selected: no variance of first order; Kish, (3 + 1)**2 / (9 + 1) = 1.6.
    count, nobs = confusion_of(tally_of(None, [1, 1], ["g", "g"], [3, 1])).proportion("selection_rate")
    assert (count[0], nobs[0]) == (pytest.approx(1.6), pytest.approx(1.6))


def test_replicates_keep_the_effective_size_for_each_unit_of_weight():
    sample = confusion_of(tally_of(groups=GROUPS["sex"]))
    doubled = WeightedReplicates(np.stack([sample._counts, 2 * sample._counts], axis=1), sample)
    for rate in ("selection_rate", "true_positive_rate", "precision"):
        count, nobs = doubled.proportion(rate)
        expected, total = sample.proportion(rate)
        np.testing.assert_allclose(count, expected[:, None] * [1, 2], rtol=1e-12)
        np.testing.assert_allclose(nobs, total[:, None] * [1, 2], rtol=1e-12)


def test_theil_effective_size_is_that_of_its_linearised_variance():
    tally = tally_of(groups=["all"] * N)
    table = confusion_of(tally)
    size = theil_effective_size(*(np.stack([table.count(n), table.squares_of(n)]) for n in ("fp", "fn", "total")))
    benefit = P - Y + 1

    def theil(weight):
        ratio = benefit / np.average(benefit, weights=weight)
        return np.average(ratio * np.log(np.where(ratio > 0, ratio, 1)), weights=weight)

    step, total = 1e-4, WEIGHT.sum()
    moves = {}
    for value in (0, 1, 2):  # what a unit of weight more on a row of each benefit does to the index
        more = step * (np.arange(N) == np.flatnonzero(benefit == value)[0])
        moves[value] = (theil(WEIGHT + more) - theil(WEIGHT - more)) / (2 * step)
    influence = np.vectorize(moves.get)(benefit)
    of_one_row = np.average((total * influence) ** 2, weights=WEIGHT)
    assert size[0] == pytest.approx(of_one_row / (WEIGHT**2 * influence**2).sum(), rel=1e-5)


# ------------------------------------------------------------------------------------------- equal weights are none
@pytest.mark.parametrize("constant", [2.0, 0.1, 1234.5])
@pytest.mark.parametrize(
    ("policy", "method"), [("ethiclens", None), ("calibrated", None), ("four_fifths", "percentile")]
)
def test_equal_weights_give_the_unweighted_intervals_and_verdicts(constant, policy, method):
    options = {"sensitive_features": GROUPS, "intersections": "all", "policy": policy, "method": method, **FEW}
    plain = audit(Y, P, **options)
    same_numbers(audit(Y, P, sample_weight=np.full(N, constant), **options), plain)


def test_equal_weights_draw_what_rows_draw():
    counts = np.array([40, 3, 200, 17])
    draws = draw_cells(counts, 1500, 5)
    weights = np.array([2.0, 3.0, 4.0, 5.0])
    kept = [None, np.full(3, 3.0), None, np.full(17, 5.0)]
    weighted = weigh_draws(draws.copy(), counts, weights * counts, weights**2 * counts, kept, 5)
    np.testing.assert_array_equal(weighted, draws * weights[:, None])


def test_equal_weights_leave_acceleration_and_deletions_as_they_are():
    tables = tally_of(weight=None).rows
    deleted, stands_for = leave_one_out(tables, N)
    mine, moments = weighted_leave_one_out(tables, 3.0 * tables, 9.0 * tables, 27.0 * tables)
    np.testing.assert_allclose(mine, 3 * deleted, rtol=1e-12)
    np.testing.assert_allclose(moments, np.stack([stands_for] * 3), rtol=1e-12)
    values = deleted[..., 1].sum(-1) / deleted.sum((-1, -2))
    np.testing.assert_allclose(
        acceleration(values, moments[0], moments[1:]), acceleration(values, stands_for), rtol=1e-9, atol=1e-15
    )


def test_a_common_factor_of_the_weights_changes_no_finding():
    options = {"sensitive_features": GROUPS, "policy": "calibrated", **FEW}
    same_numbers(
        audit(Y, P, sample_weight=4 * WEIGHT, **options),
        audit(Y, P, sample_weight=WEIGHT, **options),
    )


# -------------------------------------------------------------------------------------------------------- resampling
def test_draws_do_not_depend_on_threads():
    one = audit(Y, P, sensitive_features=GROUPS, sample_weight=WEIGHT, n_resamples=2500)
    two = audit(Y, P, sensitive_features=GROUPS, sample_weight=WEIGHT, n_resamples=2500, n_jobs=2)
    assert one.to_json() == two.to_json()


@pytest.mark.parametrize("exact", [False, True])
def test_draws_are_those_of_rows(exact):
    # The distribution of a weighted ratio, from cells and from rows with numpy.
    y, p, groups, weight = rows(3, 300)
    tally = Tally.from_predictions(y, p, sensitive_features=groups["sex"], sample_weight=weight, exact_weights=exact)
    n_resamples = 12_000
    flat = tally.rows.ravel()
    draws = weigh_draws(
        draw_cells(flat, n_resamples, 1),
        flat,
        tally.counts.ravel(),
        tally.weights.squares.ravel(),
        tally.weights.kept,
        1,
    ).reshape(2, 2, 2, -1)
    cells = draws[:, :, 1].sum(1) / draws.sum((1, 2))
    generator = np.random.default_rng(1)
    index = generator.integers(0, 300, (n_resamples, 300))
    drawn_weight, women, selected = weight[index], (groups["sex"] == "F").to_numpy()[index], p[index]
    of_rows = [(drawn_weight * selected * own).sum(1) / (drawn_weight * own).sum(1) for own in (women, ~women)]
    for mine, theirs in (
        (cells[0], of_rows[0]),
        (cells[1], of_rows[1]),
        (cells[0] / cells[1], of_rows[0] / of_rows[1]),
    ):
        assert stats.ks_2samp(mine, theirs).pvalue > 0.01
        assert mine.std() == pytest.approx(theirs.std(), rel=0.04)


def test_gamma_totals_have_the_mean_and_variance_of_sums_of_draws():
    generator = np.random.default_rng(2)
    weight = generator.lognormal(0, 1, 500)
    counts = np.array([500])
    sums, squares = np.array([weight.sum()]), np.array([(weight**2).sum()])
    totals = weigh_draws(np.full((1, 40_000), 60.0), counts, sums, squares, [None], 0)[0]
    exact = weigh_draws(np.full((1, 40_000), 60.0), counts, sums, squares, [np.sort(weight)], 0)[0]
    error = np.sqrt(60) * weight.std() / 200
    for drawn in (totals, exact):
        assert drawn.mean() == pytest.approx(60 * weight.mean(), abs=4 * error)
        assert drawn.std() == pytest.approx(np.sqrt(60) * weight.std(), rel=0.04)
    assert (weigh_draws(np.zeros((1, 10)), counts, sums, squares, [None], 0) == 0).all()


def test_acceleration_is_that_of_influences_times_weights():
    # By rows: the influence of a row on a weighted rate is w (x - p), and a = sum l**3 / (6 (sum l**2)**1.5).
    tally = tally_of(groups=["all"] * N)
    weights = tally.weights
    deleted, moments = weighted_leave_one_out(weights.rows, weights.sums, weights.squares, weights.cubes)
    values = deleted[..., 1].sum(-1) / deleted.sum((-1, -2))
    influence = WEIGHT * (P - np.average(P, weights=WEIGHT))
    expected = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    assert acceleration(values, moments[0], moments[1:])[0] == pytest.approx(expected, rel=0.02)
    assert expected != pytest.approx(acceleration(values, moments[0])[0], rel=0.2)  # which weights have changed


def coverage(method, informative, n_sets, seed):
    """Share of sets whose interval of the disparate impact, true value 0.8, holds it."""
    generator = np.random.default_rng(seed)
    held = []
    groups = np.repeat(["a", "b"], [150, 500])
    for _ in range(n_sets):
        # Population rates .4 and .5. Informative weights: positives are sampled at half the rate of the others, and weigh
        # twice as much; the sampled rates are then q with 2q / (2q + 1 - q) = rate.
        rates = np.array([0.4, 0.5])
        sampled = rates / (2 - rates) if informative else rates
        p = (generator.random(groups.size) < np.where(groups == "a", *sampled)).astype(int)
        weight = generator.lognormal(0, 0.6, groups.size) * (1 + informative * p)
        found = audit(
            None,
            p,
            sensitive_features=groups,
            sample_weight=weight,
            reference="b",
            method=method,
            n_resamples=400 if method == "bca" else 100,
            metrics=["disparate_impact"],
        )
        (f,) = (f for f in found.findings if f.metric == "disparate_impact")
        held.append(f.low <= 0.8 <= f.high)
    return np.mean(held)


@pytest.mark.long
@pytest.mark.parametrize("informative", [0, 1])
@pytest.mark.parametrize("method", ["auto", "bca"])
def test_weighted_ratio_holds_its_level_in_short(method, informative):
    assert 0.92 <= coverage(method, informative, 400, 11) <= 0.98  # standard error 0.011


@pytest.mark.long
@pytest.mark.parametrize("informative", [0, 1])
@pytest.mark.parametrize("method", ["auto", "bca"])
def test_weighted_ratio_holds_its_level(method, informative):
    assert 0.94 <= coverage(method, informative, 4000, 12) <= 0.965  # standard error 0.0034


def test_unequal_weights_widen_intervals_and_weaken_tests():
    _, p, groups, _ = rows(5)
    weight = np.random.default_rng(5).lognormal(0, 1, N)  # of nothing: the rates stay about the same
    options = {"sensitive_features": groups["sex"], "metrics": ["selection_rate"], "method": "auto", **FEW}
    wide, narrow = (audit(None, p, sample_weight=w, **options).rates() for w in (weight, None))
    assert (wide["high"] - wide["low"] > 1.2 * (narrow["high"] - narrow["low"])).all()


# -------------------------------------------------------------------------------------------------------------- audit
def test_floors_and_sizes_are_of_rows():
    groups = np.repeat(["big", "small"], [400, 20])
    p = np.tile([0, 1], 210)
    weight = np.where(groups == "small", 1000.0, 0.01)
    found = audit(None, p, sensitive_features=groups, sample_weight=weight, reference="big", **FEW)
    (di,) = (f for f in found.findings if f.metric == "disparate_impact")
    assert (di.n, di.n_reference, di.denominators["total"]) == (20, 400, (20, 400))
    assert str(di.verdict) == "INSUFFICIENT_DATA"
    assert "20 rows (floor" in di.reason


def test_tests_of_effective_counts_are_z_and_never_fisher():
    groups = np.repeat(["a", "b"], [300, 40])
    p = np.r_[np.tile([1] + [0] * 19, 15), np.tile([1] + [0] * 19, 2)]
    weight = np.tile([1.0, 1.0, 2.0, 2.0, 1.5], 68)
    plain, weighted = (audit(None, p, sensitive_features=groups, sample_weight=w, **FEW) for w in (None, weight))
    tests = [{f.test for f in a.findings if f.metric == "disparate_impact"} for a in (plain, weighted)]
    assert tests == [{"fisher"}, {"z"}]


def test_undefined_rates_are_those_of_rows():
    y, p, groups = [1, 0, 1, 0, 1, 1], [1, 0, 0, 1, 1, 1], ["a", "a", "a", "a", "b", "b"]
    with pytest.warns(UndefinedMetricWarning, match="no negative y_true"):
        found = audit(y, p, sensitive_features=groups, sample_weight=[1, 2, 3, 4, 5, 6], **FEW)
    (fpr,) = (f for f in found.findings if f.metric == "false_positive_rate" and f.group == "b")
    assert np.isnan(fpr.value)


def test_report_says_that_rates_are_weighted_in_every_format():
    result = audit(Y, P, sensitive_features=GROUPS, sample_weight=WEIGHT, intersections="all", **FEW)
    for text in (result.report("text"), result.report("html")):
        assert f"{N} rows, weighted (sum of weights" in " ".join(text.split())
        assert "Rates are weighted;" in text
        assert "effective rows" in text
    stored = json.loads(result.to_json())
    assert stored["provenance"]["data"]["sum_of_weights"] == pytest.approx(WEIGHT.sum())
    assert any(section["key"] == "weights" for section in stored["sections"])
    plain = audit(Y, P, sensitive_features=GROUPS, **FEW)
    assert "weight" not in plain.report("text")
    assert "weight" not in plain.to_json()


def test_audit_survives_storing_and_is_judged_again_as_before():
    result = audit(Y, P, sensitive_features=GROUPS, sample_weight=WEIGHT, intersections="all", **FEW)
    again = Audit.from_json(result.to_json())
    assert again == result
    assert again.rejudge(result.policy) == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert audit_tally(result.tally, intersections="all", **FEW) == result


def test_exact_weights_give_the_same_values_and_nearly_the_same_intervals():
    near, exact = (
        audit(Y, P, sensitive_features=GROUPS["sex"], sample_weight=WEIGHT, exact_weights=exact).frame()
        for exact in (False, True)
    )
    np.testing.assert_allclose(near["value"], exact["value"], rtol=1e-12)
    width = near["high"] - near["low"]
    shown = width.notna() & (width > 0)
    assert (((exact["high"] - exact["low"]) / width)[shown].between(0.85, 1.15)).all()


def test_weighted_rates_without_labels():
    result = audit(None, P, sensitive_features=GROUPS["sex"], sample_weight=WEIGHT, **FEW)
    by_group = result.rates().set_index("group")["value"]
    for sex in ("F", "M"):
        own = GROUPS["sex"] == sex
        assert by_group[sex] == pytest.approx(np.average(P[own], weights=WEIGHT[own]))


def test_the_rate_names_have_effective_counts():
    table = confusion_of(tally_of())
    for rate in [name for name in RATES if name != "f1"]:  # which is no proportion of rows
        count, nobs = table.proportion(rate)
        defined = ~np.isnan(table.rate(rate))
        np.testing.assert_allclose((count / nobs)[defined], table.rate(rate)[defined], rtol=1e-9)
        taken = table.take([0, 2]).proportion(rate)
        np.testing.assert_array_equal(taken[0], count[[0, 2]])
        np.testing.assert_array_equal(taken[1], nobs[[0, 2]])


# ------------------------------------------------------------------------------------------------------ other doors
def test_auditor_audits_with_weights_of_the_rows_held_out():
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=N) + Y, "sex": (GROUPS["sex"] == "F").astype(int)})
    auditor = FairnessAuditor(LogisticRegression(), sensitive_features="sex", cv=None, **FEW)
    auditor.fit(X[:700], Y[:700])
    late = slice(700, None)
    result = auditor.audit(X[late], Y[late], sample_weight=pd.Series(WEIGHT, index=X.index)[late])
    direct = Tally.from_predictions(
        Y[late], auditor.predict(X[late]), sensitive_features=X["sex"][late], sample_weight=WEIGHT[late]
    )
    assert result.tally == direct
    with pytest.raises(ValueError, match="the index of sample_weight differs from that of X"):
        auditor.audit(X[late], Y[late], sample_weight=pd.Series(WEIGHT[:800]))
    with pytest.raises(ValueError, match="sample_weight 2"):
        auditor.audit(X[late], Y[late], sample_weight=[1.0, 2.0])


def command(monkeypatch, capsys, *words):
    """Call the entry point as a shell does; give back the exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    return end.value.code or 0, out, err


def test_command_line_weighs_rows_of_a_file(monkeypatch, capsys, tmp_path):
    path, made = tmp_path / "rows.csv", tmp_path / "audit.json"
    GROUPS.assign(y=Y, p=P, w=WEIGHT).to_csv(path, index=False)
    words = ("audit", path, "--y-true", "y", "--y-pred", "p", "--sensitive", "sex,race", "--n-resamples", 400)
    code, out, _ = command(
        monkeypatch, capsys, *words, "--weight", "w", "--json", made, "--fail-on", "none", "--verify"
    )
    assert code == 0
    assert "weighted (sum of weights" in " ".join(out.split())
    stored = Audit.from_json(made.read_text(encoding="utf-8"))
    expected = audit(Y, P, sensitive_features=GROUPS, sample_weight=WEIGHT, **FEW)
    np.testing.assert_allclose(stored.frame()["low"], expected.frame()["low"], rtol=1e-9)
    code, _, err = command(monkeypatch, capsys, *words, "--weight", "p2")
    assert code == 2
    assert "p2" in err
    code, _, err = command(monkeypatch, capsys, *words, "--weight", "sex")
    assert code == 2
    assert "sample_weight must hold one number per row" in err
    code, _, err = command(monkeypatch, capsys, "audit", "german-credit", "--weight", "w")
    assert code == 2
    assert err.startswith("error: german-credit has no column 'w'; it has ['checking_status', ")
    code, _, err = command(monkeypatch, capsys, "audit", "german-credit", "--weight", "purpose")
    assert code == 2
    assert "sample_weight must hold one number per row" in err
