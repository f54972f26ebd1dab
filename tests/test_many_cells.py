"""Beyond some thousand joint cells each attribute is drawn on its own, as Poisson cells, a block of groups at a time."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sklearn_ethiclens import METRICS as CATALOGUE
from sklearn_ethiclens import Policy, Tally, audit_tally
from sklearn_ethiclens._assess import _JOINT_CELLS
from sklearn_ethiclens.inference import _poisson
from sklearn_ethiclens.inference._poisson import PoissonTables
from sklearn_ethiclens.inference._resampling import draw_cells
from sklearn_ethiclens.metrics._rates import Confusion

METRICS = ["selection_rate", "disparate_impact", "true_positive_rate_difference"]


@pytest.fixture(scope="module")
def tally():
    rng = np.random.default_rng(0)
    n = 40_000
    frame = pd.DataFrame({name: rng.integers(0, 14, n) for name in ("a", "b", "c")})
    truth = rng.random(n) < 0.5
    made = Tally.from_predictions(
        truth.astype(int), (rng.random(n) < 0.3 + 0.3 * truth).astype(int), sensitive_features=frame
    )
    assert np.count_nonzero(made.counts) > _JOINT_CELLS
    return made


def test_intervals_of_a_margin_are_those_of_its_own_tally_up_to_the_draw(tally):
    whole = audit_tally(tally, metrics=METRICS, n_resamples=2000)
    alone = audit_tally(tally.marginal(["b"]), metrics=METRICS, n_resamples=2000)
    found = {(f.metric, f.group): f for f in whole.findings if f.attribute == "b"}
    assert len(found) == len(alone.findings)
    for f in alone.findings:
        mine = found[f.metric, f.group]
        assert mine.value == f.value
        width = f.high - f.low
        assert mine.low == pytest.approx(f.low, abs=0.12 * width)
        assert mine.high == pytest.approx(f.high, abs=0.12 * width)


def test_many_cells_give_the_same_bytes_for_any_number_of_threads(tally):
    one = audit_tally(tally, metrics=METRICS, n_resamples=1500)
    two = audit_tally(tally, metrics=METRICS, n_resamples=1500, n_jobs=2)
    assert one.to_json() == two.to_json()
    assert one.to_json() != audit_tally(tally, metrics=METRICS, n_resamples=1500, random_state=1).to_json()


# ---------------------------------------------------------------------------------------------------------- the draw
@pytest.mark.parametrize("mean", [1, 3, 40, 1000, 1024, 1025, 5000])
def test_cells_have_the_poisson_distribution(mean):
    drawn = PoissonTables(np.full((20, 4), mean), 2500, seed=mean).draw(0).ravel()
    assert (drawn == np.floor(drawn)).all()
    edges = np.unique(stats.poisson.ppf(np.linspace(0, 1, 26)[1:-1], mean))
    expected = np.diff([0, *stats.poisson.cdf(edges, mean), 1])
    seen = np.bincount(np.searchsorted(edges, drawn), minlength=edges.size + 1)
    assert stats.chisquare(seen, expected * drawn.size).pvalue > 1e-3
    tail = stats.poisson.isf([1e-3, 1e-4], mean)
    assert stats.binomtest(int((drawn > tail[0]).sum()), drawn.size, stats.poisson.sf(tail[0], mean)).pvalue > 1e-3
    assert stats.binomtest(int((drawn > tail[1]).sum()), drawn.size, stats.poisson.sf(tail[1], mean)).pvalue > 1e-3


def test_a_table_decides_as_the_distribution_function_does():
    class Fixed:
        bit_generator = property(lambda self: self)

        def random_raw(self, shape):  # every place of the table once, in each row
            return np.tile((np.arange(4 * shape[1], dtype=np.uint16) << 4).view(np.uint64), (shape[0], 1))

        def random(self, size):
            return np.full(size, 0.25)

    means = np.array([1, 0, 17, 2000, 1024, 17])  # nothing is drawn of no rows, and numpy draws of a large mean
    cells, chosen = np.zeros((6, 4096), dtype=np.int16), np.array([0, 2, 4, 5])
    PoissonTables(means[:, None], 4096, 0)._look_up(cells, means, chosen, Fixed())
    for mean, cell in zip(means[chosen], cells[chosen], strict=True):
        np.testing.assert_array_equal(cell, stats.poisson.ppf((np.arange(4096) + 0.25) / 4096, mean))
    assert not cells[[1, 3]].any()


def test_metrics_of_poisson_cells_have_the_law_of_a_multinomial_draw():
    table, n_resamples = np.array([[40, 12, 9, 30], [60, 8, 20, 55]]), 4000
    multinomial = draw_cells(table.ravel(), n_resamples, 1).reshape(2, 2, 2, -1)
    poisson = np.moveaxis(PoissonTables(table, n_resamples, 2).draw(0), 0, 1).reshape(2, 2, 2, -1)
    assert poisson.sum((0, 1, 2)).std() == pytest.approx(np.sqrt(table.sum()), rel=0.05)  # the total is random
    one, two = (Confusion(np.moveaxis(drawn, -1, 1)) for drawn in (multinomial, poisson))
    smallest = 1.0
    for metric in CATALOGUE.values():
        if metric.kind == "overall":
            continue
        parts = [(c.take([0]), c.take([1])) if metric.kind == "pair" else (c,) for c in (one, two)]
        first, second = (np.atleast_2d(metric.function(*part)) for part in parts)
        smallest = min(smallest, *(stats.ks_2samp(*rows).pvalue for rows in zip(first, second, strict=True)))
    assert smallest > 1e-3  # of some 60 tests, most of them of the same rates


def test_a_stream_gives_the_same_whenever_it_is_drawn_and_whether_or_not_it_is_kept(monkeypatch):
    counts = np.random.default_rng(0).integers(0, 50, (150, 4))
    kept, again = PoissonTables(counts, 300, 7), PoissonTables(counts, 300, 7)
    monkeypatch.setattr(_poisson, "_KEPT", 0)
    fresh = PoissonTables(counts, 300, 7)
    forwards = [kept.draw(i) for i in range(3)]
    backwards = [again.draw(i) for i in (2, 1, 0)][::-1]
    for i in range(3):
        for other in (backwards[i], kept.draw(i), fresh.draw(i), fresh.draw(i)):
            np.testing.assert_array_equal(forwards[i], other)
    assert [part.shape[1] for part in forwards] == [64, 64, 22]
    assert (np.concatenate(forwards, axis=1)[counts.T == 0] == 0).all()
    assert not np.array_equal(forwards[0], PoissonTables(counts, 300, 8).draw(0))


# ------------------------------------------------------------------------------------------------------------- memory
def test_memory_does_not_follow_the_number_of_metrics_and_groups():
    rng = np.random.default_rng(1)
    groups = tuple((i // 50, i % 50) for i in range(1100))
    tally = Tally(("a", "b"), groups, rng.integers(5, 60, (1100, 2, 2)))
    names = [name for name, metric in CATALOGUE.items() if metric.kind == "group"]
    plain = Policy("plain", "no rules")
    tracemalloc.start()
    audit_tally(tally, metrics=names, intersections=[("a", "b")], n_resamples=2000, policy=plain)
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    assert most < 200  # the draws and 15 metrics of all groups at once would be 330 MB


def test_equal_weights_of_many_cells_change_nothing():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({name: rng.integers(0, 14, 12_000) for name in ("a", "b", "c")})
    truth, decision = rng.integers(0, 2, (2, 12_000))
    made = [
        Tally.from_predictions(truth, decision, sensitive_features=frame, **weights)
        for weights in ({}, {"sample_weight": np.full(12_000, 2.0)}, {"sample_weight": rng.gamma(2.0, size=12_000)})
    ]
    assert np.count_nonzero(made[0].counts) > _JOINT_CELLS
    plain, equal, other = (audit_tally(one, metrics=METRICS, n_resamples=500) for one in made)
    for f, g in zip(plain.findings, equal.findings, strict=True):
        assert (g.value, g.low, g.high) == pytest.approx((f.value, f.low, f.high), nan_ok=True)
    wider = [(g.high - g.low) / (f.high - f.low) for f, g in zip(plain.findings, other.findings, strict=True)]
    assert 1.1 < np.median(wider) < 1.35  # 1 + the squared coefficient of variation, 1/2: its root is 1.22
