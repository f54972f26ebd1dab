"""Counting where the data lie: the same file through every engine gives the same tally, at these times.

    python tests/benchmarks/bench_frames.py

reads ``acs-income-test.parquet`` (332,900 rows) from ``$SKLEARN_ETHICLENS_DATA``, adds the decisions of a rule and writes
the four columns that are needed, as whole numbers, to a temporary Parquet file. ``Tally.from_frame`` counts it through each
engine; the base is ``Tally.from_predictions`` of the same columns, in memory. Engines named "from the file" read it in each
call. CPU and wall seconds are medians of calls, after one that does not count; the base is measured first and last. Engines use
the cores they find, and pyspark works in a process of its own, so that only its wall time means something. An engine that is not
installed is named. Every digest must equal the base's, or this script fails.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from sklearn_ethiclens import Tally

REPEATS = 5
NAMES: dict[str, Any] = {"y_true": "y", "y_pred": "yhat", "sensitive_features": ["SEX", "RAC1P"]}


def load() -> pd.DataFrame:
    """Return attributes, labels and the decisions of a rule, all as int64."""
    frame = pd.read_parquet(Path(os.environ["SKLEARN_ETHICLENS_DATA"]) / "acs-income-test.parquet")
    decision = (frame["SCHL"] >= 21) & (frame["WKHP"] >= 40)
    columns = {"SEX": frame["SEX"], "RAC1P": frame["RAC1P"], "y": frame["PINCP"], "yhat": decision}
    return pd.DataFrame(columns).astype("int64")


@contextmanager
def of_pyspark(path: str) -> Iterator[Callable[[], Any]]:
    """Start Spark on this machine; stop it in the end."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield lambda: spark.read.parquet(path)
    finally:
        spark.stop()


@contextmanager
def engine(name: str, path: str) -> Iterator[Callable[[], Any]]:
    """Give the call that returns the frame of an engine."""
    if name == "pandas, in memory":
        frame = pd.read_parquet(path)
        yield lambda: frame
    elif name == "polars, in memory":
        import polars

        table = polars.read_parquet(path)
        yield lambda: table
    elif name == "polars lazy, from the file":
        import polars

        yield lambda: polars.scan_parquet(path)
    elif name == "pyarrow, in memory":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        yield lambda: table
    elif name == "duckdb, from the file":
        import duckdb

        yield lambda: duckdb.read_parquet(path)
    elif name == "dask, from the file":
        import dask.dataframe

        yield lambda: dask.dataframe.read_parquet(path)
    else:
        with of_pyspark(path) as read:
            yield read


ENGINES = {
    "pandas, in memory": "pandas",
    "polars, in memory": "polars",
    "polars lazy, from the file": "polars",
    "pyarrow, in memory": "pyarrow",
    "duckdb, from the file": "duckdb",
    "dask, from the file": "dask",
    "pyspark, from the file": "pyspark",
}


def timed(function: Callable[[], Any]) -> tuple[float, float]:
    """Return the medians of CPU and wall seconds of a call, after one that does not count."""
    function()
    used, wall = [], []
    for _ in range(REPEATS):
        start, before = time.perf_counter(), time.process_time()
        function()
        used.append(time.process_time() - before)
        wall.append(time.perf_counter() - start)
    return median(used), median(wall)


def main() -> int:
    """Print the table; return 1 where a digest differs."""
    warnings.simplefilter("ignore")
    rows = load()

    def in_memory() -> Tally:
        return Tally.from_predictions(rows["y"], rows["yhat"], sensitive_features=rows[["SEX", "RAC1P"]])

    expected, failed = in_memory().digest(), False
    base, found = timed(in_memory), []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "rows.parquet"))
        rows.to_parquet(path, index=False)
        for name, package in ENGINES.items():
            if find_spec(package) is None:
                print(f"{name}: {package} is not installed")
                continue
            with engine(name, path) as read:
                digest = Tally.from_frame(read(), **NAMES).digest()
                found.append((name, *timed(lambda: Tally.from_frame(read(), **NAMES)), digest))
    last = timed(in_memory)
    used, wall = (base[0] + last[0]) / 2, (base[1] + last[1]) / 2
    print(f"{'':34s} {'CPU, ms':>8s} {'wall, ms':>9s} {'CPU ratio':>10s} {'wall ratio':>11s}   digest")
    for name, cpu, seconds, digest in [("from_predictions, in memory", used, wall, expected), *found]:
        words = "equal" if digest == expected else f"DIFFERS: {digest[:12]}"
        failed |= digest != expected
        print(f"{name:34s} {1e3 * cpu:8.1f} {1e3 * seconds:9.1f} {cpu / used:10.1f} {seconds / wall:11.1f}   {words}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
