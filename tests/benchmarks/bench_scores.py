"""What metrics of scores add to an audit, as a ratio measured in one run.

    python tests/benchmarks/bench_scores.py

reads ``acs-income-test.parquet`` (332,900 rows) from ``$SKLEARN_ETHICLENS_DATA`` and makes a score of a few columns. The
work: calibration error and area under the curve of 9 races with their intervals, against nine calls of scikit-learn's
``roc_auc_score`` without any. Times are CPU seconds; the baseline is measured before and after ours, each time the median
of several calls. What counts is the time that ``y_score`` adds to the same audit; the whole is printed too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _timing import cpu
from sklearn.metrics import roc_auc_score

from sklearn_ethiclens import SCORE_METRICS, audit

LIMIT = 1.5  # added time over nine calls of roc_auc_score
METRICS = ["selection_rate", "disparate_impact", "equalized_odds_difference"]
SCORES = ["expected_calibration_error", "roc_auc"]


def load() -> pd.DataFrame:
    """Return labels, groups, a score with four decimals that predicts fairly well, and its decisions."""
    frame = pd.read_parquet(Path(os.environ["SKLEARN_ETHICLENS_DATA"]) / "acs-income-test.parquet")
    logit = 0.3 * (frame["SCHL"] - 19) + 0.05 * (frame["WKHP"] - 40) + 0.02 * (frame["AGEP"] - 45)
    score = (1 / (1 + np.exp(-logit.clip(-8, 8)))).round(4).clip(0.0001, 0.9999)
    noise = np.random.default_rng(0).uniform(-0.0001, 0.0001, len(frame))
    return pd.DataFrame(
        {
            "race": frame["RAC1P"],
            "y": frame["PINCP"].astype("int64"),
            "yhat": (score >= 0.5).astype("int64"),
            "score": (score + noise).clip(0.0, 1.0),
        }
    )


def main() -> int:
    """Print the ratios; return 1 where the limit is passed."""
    frame = load()
    by_race = [frame.loc[frame["race"] == race, ["y", "score"]] for race in sorted(frame["race"].unique())]
    assert len(by_race) == 9

    def baseline() -> list[float]:
        return [roc_auc_score(part["y"], part["score"]) for part in by_race]

    def run(metrics: list[str], scored: bool) -> Any:
        return audit(
            frame["y"],
            frame["yhat"],
            sensitive_features=frame[["race"]],
            y_score=frame["score"] if scored else None,
            metrics=metrics,
        )

    found = [f.value for f in run([*METRICS, *SCORES], True).findings if f.metric == "roc_auc"]
    assert np.allclose(found, baseline(), rtol=0, atol=1e-12)
    before = cpu(baseline)
    plain = cpu(lambda: run(METRICS, False))
    with_scores = cpu(lambda: run([*METRICS, *SCORES], True))
    everything = cpu(lambda: run([*METRICS, *SCORE_METRICS], True))
    after = cpu(baseline)
    nine = (before + after) / 2
    added = with_scores - plain
    print(f"nine roc_auc_score without intervals: {1e3 * before:.0f} and {1e3 * after:.0f} ms")
    print(f"audit without scores: {1e3 * plain:.0f} ms; with them: {1e3 * with_scores:.0f} ms")
    print(
        f"calibration error and AUC with intervals add {1e3 * added:.0f} ms: {added / nine:.2f} times (limit {LIMIT})"
    )
    print(f"the whole audit with them: {with_scores / nine:.2f} times")
    print(f"all metrics of scores add {1e3 * (everything - plain):.0f} ms: {(everything - plain) / nine:.2f} times")
    return int(added > LIMIT * nine)


if __name__ == "__main__":
    sys.exit(main())
