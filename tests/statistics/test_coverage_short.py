"""Short simulations: BCa of the disparate impact covers, and the four-fifths rule on its interval seldom flags in error."""

import numpy as np
import pytest

from sklearn_ethiclens import METRICS, POLICIES, Tally, Verdict, audit_tally
from sklearn_ethiclens.inference import bootstrap_bounds
from sklearn_ethiclens.inference._resampling import draw_cells, leave_one_out, pair_leave_one_out

N_SETS = 3000
N_RESAMPLES = 500
REFERENCE_RATE = 0.3
ERROR = np.sqrt(0.025 * 0.975 / N_SETS)
RATIO = METRICS["disparate_impact"]

# The rule of "ethiclens" for the disparate impact alone; equalized odds needs labels.
POLICY = POLICIES["ethiclens"].replace(rules=POLICIES["ethiclens"].rules[:1], n_resamples=N_RESAMPLES)


def data_sets(n_group, ratio, n_sets, seed):
    """Tables of shape (n_sets, 2, 1, 2): group and a reference four times as large, drawn from one multinomial."""
    rate = REFERENCE_RATE * np.array([ratio, 1.0])
    cells = np.array([0.2, 0.8])[:, None] * np.stack([1 - rate, rate], axis=1)
    return np.random.default_rng(seed).multinomial(5 * n_group, cells.ravel(), size=n_sets).reshape(-1, 2, 1, 2)


def intervals(tables):
    """The engine's intervals of all data sets at once, each with its number as its seed."""
    replicates, jackknife, weights = [], [], []
    for seed, counts in enumerate(tables):
        drawn = draw_cells(counts.ravel(), N_RESAMPLES, seed).T.reshape(-1, 2, 1, 2)
        replicates.append(RATIO(drawn[:, 0], drawn[:, 1]))
        deleted, weight = leave_one_out(counts, counts.sum())
        index, weight = pair_leave_one_out(weight, np.array([0]), 1)
        jackknife.append(RATIO(deleted[index[0]], deleted[index[1]])[0])
        weights.append(weight[0])
    estimates = RATIO(tables[:, 0], tables[:, 1])
    return estimates, bootstrap_bounds(estimates, np.stack(replicates), np.stack(jackknife), np.stack(weights))


def audited(counts, seed):
    tally = Tally(("group",), (("a",), ("b",)), counts)
    found = audit_tally(tally, reference="b", policy=POLICY, metrics=["disparate_impact"], random_state=seed)
    return found.findings[0]


def test_an_audit_gives_the_intervals_that_are_simulated_here():
    tables = data_sets(100, 0.8, 40, seed=0)
    estimates, bounds = intervals(tables)
    for seed, counts in enumerate(tables):
        finding = audited(counts, seed)
        expected = estimates[seed], bounds.low[seed], bounds.high[seed]
        np.testing.assert_allclose((finding.value, finding.low, finding.high), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_group", [100, 300])
def test_bca_covers_and_false_flags_at_the_boundary_are_few(n_group):
    tables = data_sets(n_group, 0.8, N_SETS, seed=n_group)
    estimates, bounds = intervals(tables)
    assert not np.isnan(bounds.low).any()
    coverage = np.mean((bounds.low <= 0.8) & (bounds.high >= 0.8))
    assert 0.93 <= coverage <= 0.975
    ends = zip(estimates, bounds.low, bounds.high, strict=True)
    flags = np.mean([POLICY.rules[0].judge(*one)[0] is Verdict.FLAGGED for one in ends])
    assert flags <= 0.025 + 2 * ERROR
    assert np.mean(estimates < 0.8) > 0.4  # the point alone would flag about half


def test_a_strong_disparity_is_flagged_and_parity_is_not():
    strong, equal = data_sets(300, 0.4, 40, seed=1), data_sets(300, 1.0, 40, seed=2)
    assert np.mean([audited(counts, seed).verdict is Verdict.FLAGGED for seed, counts in enumerate(strong)]) > 0.9
    assert not any(audited(counts, seed).verdict is Verdict.FLAGGED for seed, counts in enumerate(equal))
