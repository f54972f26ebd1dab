"""What counting rows costs, beside one ``numpy.bincount`` of codes that are ready, as ratios measured in one run.

    python tests/benchmarks/bench_encode.py

reads ``acs-income-test.parquet`` (332,900 rows; tiled to 1.6 million) from ``$SKLEARN_ETHICLENS_DATA``. The work:
``Tally.from_predictions`` of two attributes (2 and 9 values), labels and decisions, checks and all. The base: one pass of
``numpy.bincount`` over an int64 column that already holds the cell of each row. Times are CPU seconds on one thread (polars
and pyarrow are given one too), the least of calls made in turns with the base: what else the machine does, in its caches above
all, only ever adds. The limit is for whole numbers as numpy and pandas have them by default, int64; text has none, since each
value must be hashed. The 2-d array has its rows together, so that each column is read with gaps.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _timing import in_turns

from sklearn_ethiclens import Tally

LIMIT = 6.0
TURNS = 15
ATTRIBUTES = ["SEX", "RAC1P"]
RACES = ["White", "Black", "American Indian", "Alaska Native", "Tribes", "Asian", "Pacific", "Other", "Two or more"]


def load(n_rows: int) -> pd.DataFrame:
    """Return attributes, labels and the decisions of a rule, all as int64."""
    frame = pd.read_parquet(Path(os.environ["SKLEARN_ETHICLENS_DATA"]) / "acs-income-test.parquet")
    decision = (frame["SCHL"] >= 21) & (frame["WKHP"] >= 40)
    columns = {"SEX": frame["SEX"], "RAC1P": frame["RAC1P"], "y": frame["PINCP"], "yhat": decision}
    repeats = -(-n_rows // len(frame))
    return pd.DataFrame({name: np.tile(c.to_numpy(np.int64), repeats)[:n_rows] for name, c in columns.items()})


def count(columns: Any, attributes: Any = None) -> Callable[[], Tally]:
    """Return a call that counts the rows of columns."""
    features = {name: columns[name] for name in ATTRIBUTES} if attributes is None else attributes
    return lambda: Tally.from_predictions(columns["y"], columns["yhat"], sensitive_features=features)


def ways(frame: pd.DataFrame) -> dict[str, tuple[Callable[[], Tally], bool]]:
    """Return by name what is timed, and whether the limit is for it."""
    arrays = {name: frame[name].to_numpy().copy() for name in frame}
    small = frame.astype("int8")
    binary = pd.DataFrame({"SEX": frame["SEX"] == 2, "RAC1P": frame["RAC1P"] > 0, "y": frame["y"] == 1})
    binary["yhat"] = frame["yhat"] == 1
    words = {
        "SEX": np.array(["man", "woman"], dtype=object)[arrays["SEX"] - 1],
        "RAC1P": np.array(RACES, dtype=object)[arrays["RAC1P"]],
    }
    text = pd.DataFrame(words, dtype="str" if pd.__version__ >= "3" else object)
    category = pd.DataFrame(words).astype("category")
    calls = {
        "numpy int64": (count(arrays), True),
        "pandas int64": (count(frame, frame[ATTRIBUTES]), True),
        "numpy int64, attributes as a 2-d array": (
            count(arrays, np.column_stack([arrays[name] for name in ATTRIBUTES])),
            False,
        ),
        "numpy int8": (count({name: a.astype(np.int8) for name, a in arrays.items()}), False),
        "pandas int8": (count(small, small[ATTRIBUTES]), False),
        "pandas bool": (count(binary, binary[ATTRIBUTES]), False),
        "pandas float64": (count(frame.astype(float), frame[ATTRIBUTES].astype(float)), False),
        "pandas category (of text), int64 labels": (count(frame, category), False),
        "pandas category (of text), int8 labels": (count(small, category), False),
        "numpy text (object), int64 labels": (count(arrays, words), False),
        f"pandas text ({text.dtypes.iloc[0]}), int64 labels": (count(frame, text), False),
    }
    if find_spec("pyarrow"):
        arrow = text.astype("string[pyarrow]")
        calls["pandas text (string[pyarrow]), int64 labels"] = count(frame, arrow), False
    if find_spec("polars"):
        import polars as pl

        numbers = pl.DataFrame(arrays)
        strings = pl.DataFrame({name: pl.Series(column.tolist(), dtype=pl.String) for name, column in words.items()})
        groups = strings.select(pl.all().cast(pl.Categorical))
        fixed = strings.select(pl.col("SEX").cast(pl.Enum(["man", "woman"])), pl.col("RAC1P").cast(pl.Enum(RACES)))
        calls["polars int64"] = count(numbers, numbers.select(ATTRIBUTES)), False
        calls["polars String, int64 labels"] = count(numbers, strings), False
        calls["polars Categorical, int64 labels"] = count(numbers, groups), False
        calls["polars Enum, int64 labels"] = count(numbers, fixed), False
    return calls


def main() -> int:
    """Print the table; return 1 where the limit is passed."""
    if find_spec("pyarrow"):
        import pyarrow

        pyarrow.set_cpu_count(1)
    failed = 0
    print(f"{'columns':46s} {'rows':>9s} {'ms':>8s} {'ns/row':>7s} {'ratio':>7s}   limit")
    for n_rows in (332_900, 1_600_000):
        frame = load(n_rows)
        cells = (((frame["SEX"] - 1) * 9 + frame["RAC1P"]) * 2 + frame["y"]) * 2 + frame["yhat"]
        code = cells.to_numpy().copy()
        for name, (call, limited) in ways(frame).items():
            assert int(call().counts.sum()) == n_rows
            times = in_turns({"base": lambda: np.bincount(code), "ours": call}, TURNS)  # noqa: B023
            base, ours = min(times["base"]), min(times["ours"])
            ratio, limit = ours / base, f"<= {LIMIT:g}" if limited else ""
            failed |= limited and ratio > LIMIT
            print(
                f"{name:46s} {n_rows:9,d} {1e3 * ours:8.2f} {1e9 * ours / n_rows:7.2f} {ratio:7.2f}   {limit}",
                flush=True,
            )
        print(f"{'(one numpy.bincount)':46s} {n_rows:9,d} {1e3 * base:8.2f} {1e9 * base / n_rows:7.2f} {1:7.2f}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
