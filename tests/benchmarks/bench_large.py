"""The audit of 100 million rows that lie on disk: time beside what polars itself needs to count them, and peak memory.

    python tests/benchmarks/bench_large.py [--rows 100_000_000] [--folder FOLDER]

writes 20 Parquet files of small whole numbers (two attributes of 2 and 9 values, labels, decisions, and a column of floats
that no audit needs), one after another, and prints the disk they use: about 5 bytes a row. They are left in FOLDER, to be used
again, if one is given; else they go to a temporary folder and are removed. Ours is
``audit_tally(Tally.from_frame(polars.scan_parquet(FOLDER), ...))``, with 2,000 replicates; the base is the group-by of the same
four columns by polars, streamed. Polars uses all cores in both, so wall and CPU seconds are shown; the limit is on the CPU ratio,
of medians of calls made in turns in one process. Peak memory is that of a process that does one thing, imports included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from _timing import peak_memory

from sklearn_ethiclens import Tally, audit_tally

FILES = 20
COLUMNS = ["sex", "race", "y", "yhat"]
NAMES: dict[str, Any] = {"y_true": "y", "y_pred": "yhat", "sensitive_features": ["sex", "race"]}
CPU_LIMIT, MEMORY_LIMIT = 1.5, 2048.0  # times polars' own; MiB
TURNS = 3


def write(folder: Path, n_rows: int) -> None:
    """Write the files that are not there yet; each is drawn on its own, so that never more than one is in memory."""
    race = np.array([0.7, 0.1, 0.06, 0.05, 0.04, 0.02, 0.01, 0.01, 0.01])
    for i in range(FILES):
        path = folder / f"part-{n_rows}-{i:02d}.parquet"
        n = n_rows // FILES + (i < n_rows % FILES)
        if path.exists():
            continue
        rng = np.random.default_rng([n_rows, i])
        sex, of_race = rng.integers(1, 3, n, dtype=np.int8), rng.choice(9, n, p=race).astype(np.int8)
        score = rng.random(n, dtype=np.float32) - np.float32(0.05) * sex - np.float32(0.02) * of_race
        y = (score + rng.random(n, dtype=np.float32) > 0.9).astype(np.int8)
        columns = {"sex": sex, "race": of_race, "y": y, "yhat": (score > 0.4).astype(np.int8), "score": score}
        unfinished = path.with_suffix(".part")
        pl.DataFrame(columns).write_parquet(unfinished)
        unfinished.rename(path)


def scan(paths: list[Path]) -> pl.LazyFrame:
    """Return the files as one lazy frame."""
    return pl.scan_parquet(paths)


def of_polars(paths: list[Path]) -> pl.DataFrame:
    """Count by polars alone."""
    return scan(paths).group_by(COLUMNS).len().collect(engine="streaming")


def of_frame(paths: list[Path]) -> Tally:
    """Audit the lazy frame."""
    tally = Tally.from_frame(scan(paths), **NAMES)
    audit_tally(tally, intersections="all")
    return tally


def of_shards(paths: list[Path]) -> Tally:
    """Audit the files, counted one after another."""
    tally = Tally.from_shards(paths, verbose=0, **NAMES)
    audit_tally(tally, intersections="all")
    return tally


WORK: dict[str, Callable[[list[Path]], Any]] = {
    "polars: group_by, len": of_polars,
    "Tally.from_frame, audit_tally": of_frame,
    "Tally.from_shards, audit_tally": of_shards,
}


def peak(name: str, folder: Path, n_rows: int) -> float:
    """Return the peak resident memory, in MiB, of a process that does one work once."""
    command = [sys.executable, __file__, "--rows", str(n_rows), "--folder", str(folder), "--alone", name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(paths: list[Path], folder: Path, n_rows: int) -> int:
    """Print the table; return 1 where a limit is passed."""
    tally = of_frame(paths[:1])
    wall: dict[str, list[float]] = {name: [] for name in WORK}
    used: dict[str, list[float]] = {name: [] for name in WORK}
    for _ in range(TURNS):
        for name, work in WORK.items():
            start, before = time.perf_counter(), time.process_time()
            found = work(paths)
            used[name].append(time.process_time() - before)
            wall[name].append(time.perf_counter() - start)
            if isinstance(found, Tally):
                assert found.n_rows == n_rows
                assert found.groups == tally.groups
    base = next(iter(WORK))
    failed = False
    print(f"{'':32s} {'wall, s':>8s} {'CPU, s':>8s} {'wall ratio':>11s} {'CPU ratio':>10s} {'peak MiB':>9s}")
    for name in WORK:
        ratio, memory = median(used[name]) / median(used[base]), peak(name, folder, n_rows)
        times = f"{median(wall[name]):8.2f} {median(used[name]):8.2f} {median(wall[name]) / median(wall[base]):11.2f}"
        print(f"{name:32s} {times} {ratio:10.2f} {memory:9.0f}", flush=True)
        if name.startswith("Tally.from_frame"):
            failed = ratio > CPU_LIMIT or memory > MEMORY_LIMIT
    print(f"limits, for Tally.from_frame: CPU ratio <= {CPU_LIMIT}, peak <= {MEMORY_LIMIT:.0f} MiB")
    return int(failed)


def main() -> int:
    """Write the files if need be, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--alone", choices=WORK, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.alone is None:
            write(folder, options.rows)
        paths = sorted(folder.glob(f"part-{options.rows}-*.parquet"))
        if options.alone is not None:
            WORK[options.alone](paths)
            print(peak_memory())
            return 0
        size = sum(path.stat().st_size for path in paths)
        print(f"{options.rows:,} rows in {len(paths)} files, {size / 1e6:.0f} MB on disk; polars {pl.__version__}")
        return measure(paths, folder, options.rows)


if __name__ == "__main__":
    sys.exit(main())
