"""What fairness scorers cost in a search, as ratios measured in one run.

    python tests/benchmarks/bench_scorers.py

reads ``compas-two-years.csv`` from ``$SKLEARN_ETHICLENS_DATA``. The work: ``GridSearchCV`` of six candidates, five folds, a
logistic regression after a column transformer that drops race, on 6,150 rows. Wall time, the median of alternating runs.
"""

from __future__ import annotations

import os
import time
import warnings
from statistics import median
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_ethiclens import fairness_scorers, fetch_compas, make_fairness_scorer

METRICS = [
    "disparate_impact",
    "statistical_parity_difference",
    "equalized_odds_difference",
    "predictive_parity_difference",
]
REPEATS = 5


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    data = fetch_compas(data_home=os.environ["SKLEARN_ETHICLENS_DATA"], download_if_missing=False)
    frame = data.data.dropna(subset=["length_of_stay"])
    frame = frame[frame["race"].isin(["African-American", "Caucasian", "Hispanic"])]
    target = data.target.loc[frame.index]
    numbers = ["age", "priors_count", "length_of_stay", "juv_fel_count", "juv_misd_count"]
    model = make_pipeline(
        make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), ["c_charge_degree"])),
        LogisticRegression(),
    )
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(frame, target))
    options = {"sensitive_features": "race", "outcome": "adverse"}

    def search(scoring: Any, refit: Any) -> float:
        grid = {"logisticregression__C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]}
        start = time.perf_counter()
        GridSearchCV(model, grid, scoring=scoring, refit=refit, cv=folds, error_score="raise").fit(frame, target)
        return time.perf_counter() - start

    single = {name: make_fairness_scorer(name, **options) for name in METRICS}
    by_series = {**options, "sensitive_features": frame["race"]}
    work = {
        "accuracy alone": ("accuracy", True),
        "fairness_scorers of four metrics + accuracy": (fairness_scorers(METRICS, **options), "accuracy"),
        "the same by an index-aligned Series": (fairness_scorers(METRICS, **by_series), "accuracy"),
        "the same, pooled=True": (fairness_scorers(METRICS, pooled=True, **by_series), "accuracy"),
        "a dict of four single scorers + accuracy": ({"accuracy": "accuracy", **single}, "accuracy"),
        "estimate='worst' of one metric + accuracy": (
            fairness_scorers(METRICS[2:3], estimate="worst", **options),
            "accuracy",
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for scoring, refit in work.values():
        search(scoring, refit)
    for _ in range(REPEATS):
        for name, (scoring, refit) in work.items():
            times[name].append(search(scoring, refit))
    base = "accuracy alone"
    # Ratios within one round, so that a busy machine slows both sides of a ratio.
    ratios = {name: median(t / b for t, b in zip(times[name], times[base], strict=True)) for name in work}
    limits = {"fairness_scorers of four metrics + accuracy": "<= 1.3"}
    print(f"{len(frame)} rows; accuracy alone: {median(times[base]):.2f} s, median of {REPEATS}")
    for name, ratio in ratios.items():
        print(f"{name:50s} {ratio:6.2f}   {limits.get(name, '')}")


if __name__ == "__main__":
    main()
