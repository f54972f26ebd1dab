"""What sample weights cost an audit, as a ratio measured in one run.

    python tests/benchmarks/bench_weights.py

reads ``acs-income-test.parquet`` (332,900 rows) from ``$SKLEARN_ETHICLENS_DATA`` and draws lognormal weights. The work: all
metrics with their intervals, by sex, by race and by both. Times are CPU seconds; the unweighted audit is measured before and
after the weighted one, each time the median of several calls. Weights that are all kept (``exact_weights``) are timed too,
with no limit: they cost a bootstrap of rows.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from _timing import cpu

from sklearn_ethiclens import audit

LIMIT = 3.0  # the weighted audit over the unweighted one


def load() -> pd.DataFrame:
    """Return labels, decisions that predict fairly well, groups and weights."""
    frame = pd.read_parquet(Path(os.environ["SKLEARN_ETHICLENS_DATA"]) / "acs-income-test.parquet")
    logit = 0.3 * (frame["SCHL"] - 19) + 0.05 * (frame["WKHP"] - 40) + 0.02 * (frame["AGEP"] - 45)
    return pd.DataFrame(
        {
            "sex": frame["SEX"],
            "race": frame["RAC1P"],
            "y": frame["PINCP"].astype("int64"),
            "yhat": (logit >= 0).astype("int64"),
            "weight": np.random.default_rng(0).lognormal(0.0, 0.7, len(frame)),
        }
    )


def main() -> int:
    """Print the ratios; return 1 where the limit is passed."""
    frame = load()

    def run(**options: Any) -> Any:
        groups = frame[["sex", "race"]]
        return audit(frame["y"], frame["yhat"], sensitive_features=groups, intersections="all", **options)

    weight = frame["weight"]
    before = cpu(run)
    weighted = cpu(lambda: run(sample_weight=weight))
    after = cpu(run)
    exact = cpu(lambda: run(sample_weight=weight, exact_weights=True), repeats=1)
    plain = median([before, after])
    print(
        f"unweighted {1000 * before:.0f} and {1000 * after:.0f} ms, weighted {1000 * weighted:.0f} ms: {weighted / plain:.2f}x"
    )
    print(f"all weights kept: {1000 * exact:.0f} ms, {exact / plain:.0f}x")
    return int(weighted > LIMIT * plain)


if __name__ == "__main__":
    sys.exit(main())
