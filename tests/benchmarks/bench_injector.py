"""Cost of drawing rows and tallies of known bias, as ratios measured in one run.

    python tests/benchmarks/bench_injector.py

Rows: ``BiasInjector.sample`` of one million against ``sklearn.datasets.make_classification`` of the same shape, with and
without frames. Tallies: ``sample_tallies`` against counting as many samples of rows. Times are CPU seconds on one thread,
medians of three, ours and theirs in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from _timing import once
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from sklearn_ethiclens import BiasInjector, Tally

N = 1_000_000
REPEATS = 3


def injector(**params: Any) -> BiasInjector:
    """Return a population of six groups with proxies."""
    return BiasInjector(
        {"sex": ["F", "M"], "race": {"x": 0.2, "y": 0.3, "z": 0.5}},
        base_rate=0.4,
        selection_rate=0.5,
        disparate_impact=0.8,
        reference=("M", "z"),
        proxy_strength=0.3,
        **params,
    )


def in_turn(*functions: Callable[[], Any]) -> list[float]:
    """Return the median time of each, measured in turn."""
    times = [[once(function) for function in functions] for _ in range(REPEATS)]
    return [median(column) for column in zip(*times, strict=True)]


def main() -> None:
    """Print the tables."""
    print(f"{N:,} rows, CPU seconds: make_classification, sample, sample without frames, ratios (wanted: <= 3)")
    for n_features in (4, 20, 50):
        made = injector(n_features=n_features)
        theirs, frames, arrays = in_turn(
            lambda n_features=n_features: make_classification(N, n_features, random_state=0),
            lambda made=made: made.sample(N),
            lambda made=made: made.sample(N, as_frame=False),
        )
        ratios = f"{frames / theirs:6.2f} {arrays / theirs:6.2f}"
        print(f"{n_features:3d} features {theirs:8.2f} {frames:8.2f} {arrays:8.2f} {ratios}", flush=True)

    made, n_rows, n_sets = injector(n_features=0), 10_000, 50

    def count_rows() -> None:
        for seed in range(n_sets):
            rows = made.sample(n_rows, random_state=seed)
            Tally.from_predictions(rows.y, rows.y_pred, sensitive_features=rows.sensitive_features)

    rows, tallies = in_turn(count_rows, lambda: made.sample_tallies(n_rows, n_sets))
    print(
        f"{n_sets} samples of {n_rows:,} rows, counted: {rows:.3f}; as tallies: {tallies:.5f}; ratio {rows / tallies:.0f}"
    )
    truth = median(once(lambda: made.truth.frame()) for _ in range(REPEATS))
    print(f"truth of {len(made.population)} groups, every metric: {truth:.3f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
