"""Speed and memory of the individual level, as ratios measured in one run.

    python tests/benchmarks/bench_individual.py

At 8,000 rows the same question is answered in two other ways, both from n x n arrays. "Loop" is how it is usually done: an
array of distances and one of differences of the scores, then a Python loop over the n (n - 1) / 2 pairs that collects the
similar or matched ones (for neighbours, a loop over rows). To keep this short the loop runs over every fourth row and is scaled
by the number of pairs; making the arrays and the threshold is timed in full. "cdist" is the best that can be done with the same
arrays: numpy without a loop over pairs. Times are CPU seconds on one thread, medians of three (of the loop: one run). At 100,000
rows a process of its own, with two threads, reports its peak memory.
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
from _timing import once, peak_memory
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


# ------------------------------------------------------------------------------------------------------- the usual way
Step = Callable[[int], None]
Found = list[Any]


def loop_pairs(frame: pd.DataFrame, y: Any, groups: Any) -> tuple[Step, Found]:
    """Consistency over similar pairs: the step that collects a row's pairs with later rows, and the differences it finds."""
    distance, difference = square(frame), np.abs(y[:, None] - y)
    threshold = np.percentile(distance[np.triu_indices(len(y), 1)], 10)
    found: Found = []

    def step(i: int) -> None:
        for j in range(i + 1, len(y)):
            if distance[i, j] <= threshold:
                found.append(difference[i, j])

    return step, found


def loop_matched(frame: pd.DataFrame, y: Any, groups: Any) -> tuple[Step, Found]:
    """All pairs across groups within the thresholds: the step over a row, and the pairs it finds."""
    distance, difference = square(frame), np.abs(y[:, None] - y)
    threshold = np.percentile(distance[groups[:, None] < groups], 10)
    found: Found = []

    def step(i: int) -> None:
        for j in range(i + 1, len(y)):
            if groups[i] != groups[j] and distance[i, j] < threshold and difference[i, j] > 0.1:
                found.append((i, j, distance[i, j]))

    return step, found


def loop_neighbours(frame: pd.DataFrame, y: Any, groups: Any, k: int = 5) -> tuple[Step, Found]:
    """Consistency over neighbours: the step over a row, and the differences it finds."""
    distance = square(frame)
    np.fill_diagonal(distance, np.inf)
    found: Found = []

    def step(i: int) -> None:
        nearest = np.argsort(distance[i])[:k]
        found.append(abs(y[i] - y[nearest].mean()))

    return step, found


LOOPS = {"similar pairs": loop_pairs, "neighbours": loop_neighbours, "matched pairs": loop_matched}
EVERY = 4


def cpu_of_loop(work: str, frame: pd.DataFrame, y: Any, groups: Any, n_rows: int | None = None) -> float:
    """Return the CPU time of a loop, its steps timed on every fourth row and scaled by their share of the work.

    With ``n_rows``, the loop is over that many rows only; the arrays are of all.
    """
    start = time.process_time()
    step, _ = LOOPS[work](frame, y, groups)
    ready = time.process_time()
    rows = np.arange(0, len(y), EVERY)
    for i in rows:
        step(int(i))
    partners = np.ones(len(y)) if work == "neighbours" else np.arange(len(y))[::-1]
    all_steps = (time.process_time() - ready) * float(partners.sum() / partners[rows].sum())
    return ready - start + all_steps * (n_rows or len(y)) / len(y)


def check() -> None:
    """Raise unless the loop and the matrix give the same answers: what is timed must be the same question."""
    for kind in ("correlated", "mixed"):
        X, y, s = data(kind, 200)
        answers = {}
        for work, loop in LOOPS.items():
            step, found = loop(X, y, s)
            for i in range(len(y)):
                step(i)
            answers[work] = len(found) if work == "matched pairs" else 1 - np.mean(found)
        assert answers["matched pairs"] == square_matched(X, y, s)
        assert np.isclose(answers["similar pairs"], square_pairs(X, y))
        assert np.isclose(answers["neighbours"], square_neighbours(X, y))
        assert np.isclose(answers["neighbours"], float(consistency_score(X, y)))
        assert np.isclose(answers["similar pairs"], float(consistency_score(X, y, method="similar_pairs")))


# ---------------------------------------------------------------------------------------------------------------- times
LARGE_WORK: dict[str, Callable[[Any, Any, Any], Any]] = {
    "similar pairs": lambda X, y, s: consistency_score(X, y, method="similar_pairs", n_jobs=2, verbose=0),
    "neighbours": lambda X, y, s: consistency_score(X, y, n_jobs=2, verbose=0),
    "matched pairs": lambda X, y, s: matched_pairs(X, y, s, n_jobs=2, verbose=0),
}


def large(kind: str, work: str) -> None:
    """Print the seconds and the peak MB of one call at 100,000 rows: run in a process of its own."""
    X, y, groups = data(kind, LARGE)
    start, used = time.perf_counter(), time.process_time()
    LARGE_WORK[work](X, y, groups)
    print(time.perf_counter() - start, time.process_time() - used, peak_memory())


def main() -> None:
    """Print the tables."""
    check()
    print(f"{SMALL:,} rows, CPU seconds, one thread; the loop is timed on every {EVERY}th row and scaled.")
    print("Wanted: loop/ours >= 20.")
    print(f"{'':39s} {'loop':>7s} {'cdist':>7s} {'ours':>7s} {'loop/ours':>9s} {'cdist/ours':>10s}")
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
            ours, matrices = (median(once(call) for _ in range(3)) for call in (blocks, matrix))
            loop = cpu_of_loop(words.split(" of ")[0], X, y, s, 1000 if words.endswith("1,000 rows") else None)
            print(
                f"{kind:12s} {words:26s} {loop:7.2f} {matrices:7.2f} {ours:7.3f} {loop / ours:9.1f} {matrices / ours:10.1f}",
                flush=True,
            )
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
