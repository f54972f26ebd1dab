"""Beyond some thousand joint cells each attribute is drawn on its own: the same law, another stream."""

import numpy as np
import pandas as pd
import pytest

from sklearn_ethiclens import Tally, audit_tally
from sklearn_ethiclens._assess import _JOINT_CELLS

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
