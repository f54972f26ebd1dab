"""Short simulations: BCa of the disparate impact covers, and the four-fifths rule on its interval seldom flags in error."""

import numpy as np
import pytest

from sklearn_ethiclens import POLICIES, Tally, Verdict, audit_tally

N_SETS = 2000
REFERENCE_RATE, RATIO = 0.3, 0.8
ERROR = np.sqrt(0.025 * 0.975 / N_SETS)

# The judged ratio alone, without floors on odds: the rule of "ethiclens" for the disparate impact, as fast as it goes.
POLICY = POLICIES["ethiclens"].replace(rules=POLICIES["ethiclens"].rules[:1], n_resamples=500)


def simulate(n_group, ratio, n_sets, seed):
    """Return the findings of the disparate impact in data sets of a multinomial with a known ratio."""
    rng = np.random.default_rng(seed)
    share = np.array([0.2, 0.8])  # the reference is four times as large
    rate = REFERENCE_RATE * np.array([ratio, 1.0])
    cells = np.stack([share * (1 - rate), share * rate], axis=1).ravel()
    found = []
    for number, counts in enumerate(rng.multinomial(5 * n_group, cells, size=n_sets)):
        tally = Tally(("group",), (("a",), ("b",)), counts.reshape(2, 1, 2))
        audit = audit_tally(
            tally, reference="b", policy=POLICY, metrics=["disparate_impact"], random_state=seed * 100_000 + number
        )
        found.append(audit.findings[0])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n_group", [100, 300])
def test_bca_covers_and_false_flags_at_the_boundary_are_few(n_group):
    found = simulate(n_group, RATIO, N_SETS, seed=n_group)
    low, high = (np.array([getattr(f, end) for f in found]) for end in ("low", "high"))
    assert not np.isnan(low).any()
    coverage = np.mean((low <= RATIO) & (high >= RATIO))
    assert 0.93 <= coverage <= 0.975
    flags = np.mean([f.verdict is Verdict.FLAGGED for f in found])
    assert flags <= 0.025 + 2 * ERROR
    assert flags == np.mean((high < 0.8) & (np.array([min(f.n, f.n_reference) for f in found]) >= 100))
    # a point rule would flag about half
    assert np.mean([f.value < 0.8 for f in found]) > 0.4


def test_a_strong_disparity_is_flagged_and_parity_is_not():
    strong, equal = simulate(300, 0.4, 60, seed=1), simulate(300, 1.0, 60, seed=2)
    assert np.mean([f.verdict is Verdict.FLAGGED for f in strong]) > 0.9
    assert not any(f.verdict is Verdict.FLAGGED for f in equal)
