"""Speed and memory of an audit of many groups, as ratios to the laboratory prototype measured in one run.

    python tests/benchmarks/bench_many_cells.py

The work: an intersection of four attributes with 5,000 groups and all four outcomes in each (20,000 cells); 7 metrics of
groups and 8 of comparisons, 2,000 replicates; about 300 rows a group, and about 40. The prototype is ``../lab/cellboot.py``
beside ``$SKLEARN_ETHICLENS_DATA``; without it only our own figures are printed. Each job runs in a process of its own:
CPU seconds, and what the process grew by. With 300 rows a group each is run five times in turn, and the
least counts: what else the machine does only adds.

"intervals" does what the prototype does, and tests of equal rates, power, and the four attributes by themselves. The others
also judge all comparisons, with tests that are adjusted for one another; where the reference is not given they allow for
its choice. All of these leave what they found in columns, as the prototype does; "read" makes the 75,000 findings of them, as
whoever looks at ``audit.findings`` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _timing import peak_memory

from sklearn_ethiclens import Tally, audit_tally
from sklearn_ethiclens.policy import Policy

GROUP = "selection_rate true_positive_rate false_positive_rate precision accuracy base_rate theil_index".split()
PAIR = (
    "disparate_impact statistical_parity_difference true_positive_rate_difference false_positive_rate_difference "
    "equalized_odds_difference precision_difference accuracy_difference theil_index_difference"
).split()
NAMES, SIZES = ("a", "b", "c", "d"), (10, 10, 10, 5)
UNJUDGED = Policy("unjudged", "nothing is judged")
ROWS = (300, 40)  # about so many a group
RATIO_LIMITS = {
    "intervals": 1 / 3,
    "bca given": 0.4,  # which also judges
    "auto given": 1 / 3,
}  # of CPU time to the prototype's, at 300 rows
REPEATS = 5
MEMORY_LIMIT = 600  # MB, of the 15 metrics


def lab() -> Path | None:
    """Return the folder of the prototype, or None."""
    data = os.environ.get("SKLEARN_ETHICLENS_DATA")
    folder = None if data is None else Path(data).parent / "lab"
    return folder if folder is not None and (folder / "cellboot.py").exists() else None


def cells(rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the groups' codes and their counts (tn, fp, fn, tp), all above 0; rates differ by group."""
    rng = np.random.default_rng(0)
    codes = np.array(list(product(*map(range, SIZES))))
    base, hit, false = (rng.beta(a, b, len(codes)) for a, b in ((8, 12), (12, 6), (5, 15)))
    shares = np.stack([(1 - base) * (1 - false), (1 - base) * false, base * (1 - hit), base * hit], axis=1)
    return codes, 1 + rng.poisson(rows * shares)


def prototype(rows: int, scheme: str) -> Callable[[], Any]:
    """Return the prototype's audit."""
    sys.path.insert(0, str(lab()))
    import cellboot

    codes, counts = cells(rows)
    table = cellboot.CellTable(
        NAMES,
        tuple(np.arange(size) for size in SIZES),
        np.repeat(codes, 4, axis=0),
        np.tile(np.arange(4), len(codes)),
        counts.ravel().astype(np.int64),
    )
    return lambda: cellboot.audit(table, [NAMES], 2000, scheme=scheme)


def ours(
    rows: int, method: str, metrics: list[str] | None, given: bool, policy: str | Policy = "ethiclens"
) -> Callable[[], Any]:
    """Return our audit; ``given`` gives the reference that the prototype takes, the largest group."""
    codes, counts = cells(rows)
    tally = Tally(NAMES, tuple(map(tuple, codes.tolist())), counts.reshape(-1, 2, 2))
    largest = tally.groups[int(counts.sum(axis=1).argmax())]
    options: dict[str, Any] = {"reference": {NAMES: largest}} if given else {}
    return lambda: audit_tally(
        tally, policy=policy, metrics=metrics, intersections=[NAMES], n_resamples=2000, method=method, **options
    )


def read(audit: Callable[[], Any]) -> Callable[[], Any]:
    """Return an audit whose findings are read."""
    return lambda: audit().findings


JOBS: dict[str, Callable[[int], Callable[[], Any]]] = {
    "prototype": lambda rows: prototype(rows, "multinomial"),
    "prototype, Poisson": lambda rows: prototype(rows, "poisson"),
    "intervals": lambda rows: ours(rows, "bca", GROUP + PAIR, True, UNJUDGED),
    "bca given": lambda rows: ours(rows, "bca", GROUP + PAIR, True),
    "bca given, read": lambda rows: read(ours(rows, "bca", GROUP + PAIR, True)),
    "auto given": lambda rows: ours(rows, "auto", GROUP + PAIR, True),
    "bca": lambda rows: ours(rows, "bca", GROUP + PAIR, False),
    "auto": lambda rows: ours(rows, "auto", GROUP + PAIR, False),
    "bca, catalogue": lambda rows: ours(rows, "bca", None, False),
    "auto, catalogue": lambda rows: ours(rows, "auto", None, False),
}


def run(name: str, rows: int) -> None:
    """Run one job and print its CPU seconds and the MB that the process grew by."""
    warnings.simplefilter("ignore")
    job = JOBS[name](rows)
    before, start = peak_memory(), time.process_time()
    job()
    print(json.dumps([time.process_time() - start, peak_memory() - before]))


def measure(name: str, rows: int) -> list[float]:
    """Return CPU seconds and MB of a job in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--run", name, str(rows)], check=True, capture_output=True, text=True
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Print the table; return 1 where a limit is passed."""
    if lab() is None:
        print("no prototype: $SKLEARN_ETHICLENS_DATA is not set, or has no ../lab/cellboot.py beside it; no ratios")
    passed = False
    print(f"{'rows':>5} {'job':22s} {'CPU s':>8} {'ratio':>7} {'MB':>7}   limits")
    for rows in ROWS:
        names = [name for name in JOBS if not name.startswith("prototype") or lab() is not None]
        repeats = REPEATS if rows == ROWS[0] else 1
        runs = [{name: measure(name, rows) for name in names} for _ in range(repeats)]  # each job in turn
        found = {name: np.min([run[name] for run in runs], axis=0) for name in names}
        base = found["prototype"][0] if lab() is not None else np.nan
        for name, (taken, grown) in found.items():
            limit = RATIO_LIMITS.get(name) if rows == ROWS[0] else None
            bounded = not name.startswith("prototype") and "catalogue" not in name
            said = [] if limit is None else [f"ratio <= {limit:.3g}"]
            said += [f"MB <= {MEMORY_LIMIT}"] * bounded
            passed |= (limit is not None and taken / base > limit) or (bounded and grown > MEMORY_LIMIT)
            print(f"{rows:5d} {name:22s} {taken:8.2f} {taken / base:7.2f} {grown:7.0f}   {', '.join(said)}", flush=True)
    return int(passed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
