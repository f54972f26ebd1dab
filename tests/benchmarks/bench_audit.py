"""Speed and memory of an audit, as ratios measured in one run.

    python tests/benchmarks/bench_audit.py

reads ``acs-income-test.parquet`` (332,900 rows) and the laboratory prototype beside it from ``$SKLEARN_ETHICLENS_DATA``.
The work: 411 intervals (7 metrics of 29 groups, 8 metrics of 26 comparisons; SEX, RAC1P, SEX x RAC1P), 2,000 replicates.
Times are CPU seconds, medians; each baseline is measured before and after ours.
"""

from __future__ import annotations

import os
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from _timing import cpu

from sklearn_ethiclens import METRICS, audit

GROUP = "selection_rate true_positive_rate false_positive_rate precision accuracy base_rate theil_index".split()
PAIR = (
    "disparate_impact statistical_parity_difference true_positive_rate_difference false_positive_rate_difference "
    "equalized_odds_difference precision_difference accuracy_difference theil_index_difference"
).split()
PLAN = [("SEX",), ("RAC1P",), ("SEX", "RAC1P")]


def peak(function: Callable[[], Any]) -> float:
    """Return the extra peak memory of a call, in MB (numpy reports its arrays to tracemalloc)."""
    function()
    tracemalloc.start()
    function()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def load() -> pd.DataFrame:
    """Return the columns of the work: the file's own types, a rule's decisions."""
    frame = pd.read_parquet(Path(os.environ["SKLEARN_ETHICLENS_DATA"]) / "acs-income-test.parquet")
    decision = ((frame["SCHL"] >= 21) & (frame["WKHP"] >= 40)).astype("int64")
    return pd.DataFrame(
        {"SEX": frame["SEX"], "RAC1P": frame["RAC1P"], "y": frame["PINCP"].astype("int64"), "yhat": decision}
    )


def run(frame: pd.DataFrame, metrics: list[str] | None, n_resamples: int = 2000, **options: Any) -> Any:
    """Return our audit of the work."""
    return audit(
        frame["y"],
        frame["yhat"],
        sensitive_features=frame[["SEX", "RAC1P"]],
        intersections=[("SEX", "RAC1P")],
        metrics=metrics,
        n_resamples=n_resamples,
        **options,
    )


def fairlearn_points(frame: pd.DataFrame, **options: Any) -> list[pd.DataFrame]:
    """Return the seven group metrics by fairlearn, one frame an attribute; without intervals unless ``options`` ask for them."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
    from sklearn.metrics import accuracy_score, precision_score

    def base_rate(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(y_true))

    def theil(y_true: Any, y_pred: Any) -> float:
        benefit = np.asarray(y_pred) - np.asarray(y_true) + 1
        share = benefit[benefit > 0] / benefit.mean()
        return float(np.sum(share * np.log(share)) / benefit.size)

    functions = {
        "selection_rate": selection_rate,
        "tpr": true_positive_rate,
        "fpr": false_positive_rate,
        "precision": lambda t, p: precision_score(t, p, zero_division=0),
        "accuracy": accuracy_score,
        "base_rate": base_rate,
        "theil": theil,
    }
    tables = []
    for attributes in PLAN:
        features = frame[list(attributes)].astype(int)
        of_attributes = MetricFrame(
            metrics=functions, y_true=frame["y"], y_pred=frame["yhat"], sensitive_features=features, **options
        )
        tables.append(of_attributes.by_group)
    return tables


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    frame = load()
    data = Path(os.environ["SKLEARN_ETHICLENS_DATA"])
    sys.path.insert(0, str(data.parent / "lab"))
    import cellboot

    def prototype() -> None:
        table = cellboot.encode({"SEX": frame["SEX"].astype(int), "RAC1P": frame["RAC1P"]}, frame["y"], frame["yhat"])
        cellboot.audit(table, PLAN, 2000)

    assert len(run(frame, GROUP + PAIR).findings) == 7 * 29 + 8 * 26
    catalogue = len([f for f in run(frame, None).findings if METRICS[f.metric].kind != "overall"])
    lab, grouped = [cpu(prototype)], [cpu(lambda: frame.groupby(["SEX", "RAC1P", "y", "yhat"]).size())]
    ours, whole = cpu(lambda: run(frame, GROUP + PAIR)), cpu(lambda: run(frame, None))
    lab.append(cpu(prototype))
    grouped.append(cpu(lambda: frame.groupby(["SEX", "RAC1P", "y", "yhat"]).size()))
    tiled = pd.concat([frame] * 5, ignore_index=True).iloc[:1_600_000]
    big = cpu(lambda: run(tiled, GROUP + PAIR), 5)
    small = cpu(lambda: run(frame, GROUP + PAIR), 5)
    closed = cpu(lambda: run(frame, GROUP + PAIR, method="auto"), 5)
    together = cpu(lambda: run(frame, GROUP + PAIR, policy="calibrated"), 5)
    peer = cpu(lambda: fairlearn_points(frame), 1)
    rows = [
        ("audit of the 411 / prototype", ours / median(lab), "<= 3"),
        ("audit of the 411 / one pandas groupby.size", ours / median(grouped), "<= 6"),
        (f"audit of the catalogue ({catalogue} values) / prototype's 411", whole / median(lab), "<= 8"),
        ("audit of the 411: 1.6 million rows / 332,900", big / small, "<= 2"),
        ('audit of the 411: method="auto" / BCa', closed / small, "<= 1"),
        ('audit of the 411: policy "calibrated" / "ethiclens"', together / small, ""),
        ("fairlearn, 7 metrics, no intervals / audit of the 411", peer / small, ">= 100"),
        (
            "extra peak MB, 411, 10,000 replicates, 332,900 rows",
            peak(lambda: run(frame, GROUP + PAIR, 10_000)),
            "<= 80",
        ),
        ("extra peak MB, 411, 10,000 replicates, 1.6 million", peak(lambda: run(tiled, GROUP + PAIR, 10_000)), "<= 80"),
        ("extra peak MB, catalogue, 10,000 replicates", peak(lambda: run(frame, None, 10_000)), "<= 200"),
    ]
    print(
        f"CPU seconds: ours {ours:.3f}, catalogue {whole:.3f}, prototype {median(lab):.3f}, groupby {median(grouped):.3f}"
    )
    for words, value, limit in rows:
        print(f"{words:60s} {value:8.2f}   {limit}")


if __name__ == "__main__":
    main()
