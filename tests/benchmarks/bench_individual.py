"""Speed and memory of the individual level, as ratios measured in one run.

    python tests/benchmarks/bench_individual.py

At 8,000 rows the same question is answered with an n x n matrix: scipy's ``cdist``, then numpy without a loop over pairs. Times
are CPU seconds on one thread, medians of three. At 100,000 rows a process of its own, with two threads, reports its peak memory.
Data of 10 features: independent normal ones, where no row is near another (the worst there is for any search), and
ones that lie near four dimensions, as features of people do; with three of them categories, for "mixed".
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from sklearn_ethiclens.individual import consistency_score, matched_pairs

SMALL, LARGE = 8_000, 100_000
GIB = 1024.0


def data(kind: str, n: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return features, scores and groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    if kind != "independent":
        X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 10)) + 0.3 * X
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
    if kind == "mixed":
        for name, levels in (("x7", 2), ("x8", 5), ("x9", 9)):
            frame[name] = pd.qcut(frame[name], levels, labels=False).map(lambda level: f"level {level}")
    score = np.clip(1 / (1 + np.exp(-X[:, 0])) + 0.1 * rng.normal(size=n), 0, 1)
    return frame, score, rng.integers(0, 2, n)


def square(frame: pd.DataFrame) -> Any:
    """Return Gower's distances as a matrix: one cdist of scaled numbers and halved one-hot columns."""
    numbers = frame.select_dtypes("number")
    columns = [((numbers - numbers.min()) / (numbers.max() - numbers.min())).to_numpy()]
    columns += [pd.get_dummies(frame[name]).to_numpy(float) / 2 for name in frame.columns.difference(numbers.columns)]
    points = np.hstack(columns)
    distance = cdist(points, points, "cityblock")
    distance /= frame.shape[1]
    return distance


def square_neighbours(frame: pd.DataFrame, y: Any, k: int = 5) -> float:
    """Consistency over neighbours from the matrix."""
    distance = square(frame)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argpartition(distance, k, axis=1)[:, :k]
    return float(1 - np.abs(y - y[nearest].mean(1)).mean())


def square_pairs(frame: pd.DataFrame, y: Any) -> float:
    """Consistency over similar pairs from the matrix."""
    upper = np.triu_indices(len(y), 1)
    distance, difference = square(frame)[upper], np.abs(y[:, None] - y)[upper]
    return float(1 - difference[distance <= np.percentile(distance, 10)].mean())


def square_matched(frame: pd.DataFrame, y: Any, groups: Any) -> int:
    """All pairs across groups within the thresholds, from the matrix."""
    distance, difference = square(frame), np.abs(y[:, None] - y)
    cross = groups[:, None] < groups
    threshold = np.percentile(distance[cross], 10)
    first, second = np.nonzero(cross & (distance < threshold) & (difference > 0.1))
    return len(pd.DataFrame({"a": first, "b": second, "distance": distance[first, second]}))


def cpu(function: Callable[[], Any], repeats: int = 3) -> float:
    """Return the median CPU time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return median(times)


LARGE_WORK: dict[str, Callable[[Any, Any, Any], Any]] = {
    "similar pairs": lambda X, y, s: consistency_score(X, y, method="similar_pairs", n_jobs=2, verbose=0),
    "neighbours": lambda X, y, s: consistency_score(X, y, n_jobs=2, verbose=0),
    "matched pairs": lambda X, y, s: matched_pairs(X, y, s, n_jobs=2, verbose=0),
}


def large(kind: str, work: str) -> None:
    """Print the seconds and the peak MB of one call at 100,000 rows: run in a process of its own."""
    import resource

    X, y, groups = data(kind, LARGE)
    start, used = time.perf_counter(), time.process_time()
    LARGE_WORK[work](X, y, groups)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - start, time.process_time() - used, peak)


def main() -> None:
    """Print the tables."""
    print(f"{SMALL:,} rows, CPU seconds, one thread: n x n, ours, ratio (wanted: >= 20)")
    for kind in ("independent", "correlated", "mixed"):
        X, y, s = data(kind, SMALL)
        rows: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
            (
                "similar pairs",
                lambda X=X, y=y: square_pairs(X, y),
                lambda X=X, y=y: consistency_score(X, y, method="similar_pairs"),
            ),
            ("neighbours", lambda X=X, y=y: square_neighbours(X, y), lambda X=X, y=y: consistency_score(X, y)),
            (
                "neighbours of 1,000 rows",
                lambda X=X, y=y: square_neighbours(X, y),
                lambda X=X, y=y: consistency_score(X, y, max_samples=1000),
            ),
            (
                "matched pairs",
                lambda X=X, y=y, s=s: square_matched(X, y, s),
                lambda X=X, y=y, s=s: matched_pairs(X, y, s),
            ),
        ]
        for words, matrix, blocks in rows:
            ours, theirs = cpu(blocks), cpu(matrix)
            print(f"{kind:12s} {words:26s} {theirs:7.2f} {ours:7.3f} {theirs / ours:7.1f}", flush=True)
    print(f"{LARGE:,} rows, two threads: seconds, CPU seconds, peak MB (wanted: <= {2 * GIB:.0f})")
    for kind in ("correlated", "mixed", "independent"):
        for work in LARGE_WORK:
            done = subprocess.run(
                [sys.executable, __file__, kind, work], capture_output=True, text=True, check=True
            ).stdout.split()
            seconds, used, peak = map(float, done)
            print(f"{kind:12s} {work:26s} {seconds:7.1f} {used:7.1f} {peak:7.0f}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        large(*sys.argv[1:]) if len(sys.argv) > 1 else main()
