"""Audits by other libraries beside ours: the same numbers, and the time each takes, as ratios measured in one run.

    python tests/benchmarks/bench_peers.py [--rows 1000 10000 100000 332900 1600000]

reads ``acs-income-test.parquet`` (332,900 rows; samples of it, or tiled) from ``$SKLEARN_ETHICLENS_DATA``. A library that is
not installed is named and skipped; fairlearn and scipy always are.

Ours is the audit of ``bench_audit.py``: 7 metrics of each group and 8 metrics of each comparison (SEX, RAC1P, SEX x RAC1P), each
with a BCa interval of 1,000 replicates: 411 of them where all 29 groups occur. Of the others

* fairlearn gives the 7 metrics by group (``MetricFrame``), without intervals, and with ``n_boot``: percentile intervals of the
  values by group. Replicates are scaled: a few are timed, the same call with one replicate is taken off, and the rest
  is multiplied up to 1,000;
* AIF360 gives 8 numbers of each comparison (``ClassificationMetric``), without intervals;
* aequitas gives its table by group and its disparities, without intervals or tests;
* holisticai gives its table of each comparison (``classification_bias_metrics``), without intervals;
* scipy gives the BCa interval of ONE disparate impact (``stats.bootstrap``, 1,000 replicates), beside our audit of that one; its
  jackknife looks at n x n values, so it ends at 10,000 rows. Ours is our audit of that one disparate impact.

First, selection rates, true positive rates and disparate impacts are compared: equal to 1e-9 wherever ours are defined, or this
script fails. Times are CPU seconds on one thread, medians where a call is short; ours is measured before and after.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from _timing import cpu, once
from bench_audit import GROUP, PAIR, PLAN, fairlearn_points, load, run
from threadpoolctl import threadpool_limits

from sklearn_ethiclens import audit

N_RESAMPLES = 1000
SIZES = [1_000, 10_000, 100_000, 332_900, 1_600_000]
# Above so many rows a call is left out: it would take hours, or for scipy more memory than there is.
MOST_ROWS = {"fairlearn": 332_900, "fairlearn, n_boot": 100_000, "scipy": 10_000}
SHORT = 1.0  # seconds; what takes less is measured three times

Values = dict[tuple[str, Any, str], float]  # (attribute, group, metric) -> value


def rows(n_rows: int) -> pd.DataFrame:
    """Return so many rows, of whole numbers."""
    frame = load().astype("int64")
    if n_rows <= len(frame):
        return frame.sample(n_rows, random_state=0).reset_index(drop=True)
    return pd.concat([frame] * -(-n_rows // len(frame)), ignore_index=True).iloc[:n_rows]


def attribute_name(attributes: Any) -> str:
    """Return one name for an attribute or several."""
    return attributes if isinstance(attributes, str) else " & ".join(attributes)


def our_values(result: Any) -> tuple[Values, dict[str, Any], list[tuple[str, Any]]]:
    """Return our values, the reference of each attribute, and the comparisons."""
    values, references, comparisons = {}, {}, []
    for finding in result.findings:
        name = attribute_name(finding.attribute)
        values[name, finding.group, finding.metric] = finding.value
        if finding.metric == "disparate_impact":
            references[name] = finding.reference
            comparisons.append((name, finding.group))
    return values, references, comparisons


# -------------------------------------------------------------------------------------------------------------- libraries
def as_dict(name: str, group: Any) -> list[dict[str, float]]:
    """Return a group as AIF360 names it."""
    parts = group if isinstance(group, tuple) else (group,)
    return [{column: float(value) for column, value in zip(name.split(" & "), parts, strict=True)}]


def in_group(frame: pd.DataFrame, name: str, group: Any) -> np.ndarray:
    """Return which rows are of a group."""
    parts = group if isinstance(group, tuple) else (group,)
    inside = [frame[column].to_numpy() == value for column, value in zip(name.split(" & "), parts, strict=True)]
    return np.logical_and.reduce(inside)


def by_fairlearn(frame: pd.DataFrame, references: dict[str, Any], comparisons: list[tuple[str, Any]]) -> Values:
    """Return the rates that fairlearn finds."""
    values = {}
    for attributes, table in zip(PLAN, fairlearn_points(frame), strict=True):
        for group, row in table.iterrows():
            values[attribute_name(attributes), group, "selection_rate"] = row["selection_rate"]
            values[attribute_name(attributes), group, "true_positive_rate"] = row["tpr"]
    for name, group in comparisons:
        rates = [values[name, one, "selection_rate"] for one in (group, references[name])]
        values[name, group, "disparate_impact"] = rates[0] / rates[1]
    return values


def by_aif360(frame: pd.DataFrame, references: dict[str, Any], comparisons: list[tuple[str, Any]]) -> Values:
    """Return eight numbers of each comparison by AIF360; rates of the group, and the ratio."""
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    labels = BinaryLabelDataset(
        df=frame[["SEX", "RAC1P", "y"]].astype(float),
        label_names=["y"],
        protected_attribute_names=["SEX", "RAC1P"],
        favorable_label=1.0,
        unfavorable_label=0.0,
    )
    decisions = labels.copy()
    decisions.labels = frame[["yhat"]].to_numpy(float)
    values = {}
    for name, group in comparisons:
        metric = ClassificationMetric(
            labels,
            decisions,
            unprivileged_groups=as_dict(name, group),
            privileged_groups=as_dict(name, references[name]),
        )
        values[name, group, "disparate_impact"] = metric.disparate_impact()
        values[name, group, "selection_rate"] = metric.selection_rate(privileged=False)
        values[name, group, "true_positive_rate"] = metric.true_positive_rate(privileged=False)
        metric.statistical_parity_difference()
        metric.equal_opportunity_difference()
        metric.false_positive_rate_difference()
        metric.average_odds_difference()
        metric.accuracy(privileged=False)
    return values


def by_aequitas(frame: pd.DataFrame, references: dict[str, Any], comparisons: list[tuple[str, Any]]) -> Values:
    """Return the rates and ratios of aequitas."""
    from aequitas.bias import Bias
    from aequitas.group import Group

    table = pd.DataFrame({"label_value": frame["y"], "score": frame["yhat"]})
    for attributes in PLAN:
        parts = [frame[column].astype(str) for column in attributes]
        table[attribute_name(attributes)] = parts[0] if len(parts) == 1 else parts[0] + " & " + parts[1]
    names = [attribute_name(attributes) for attributes in PLAN]

    def text(group: Any) -> str:
        return " & ".join(map(str, group)) if isinstance(group, tuple) else str(group)

    counted, _ = Group().get_crosstabs(table, attr_cols=names)
    found = Bias().get_disparity_predefined_groups(
        counted,
        original_df=table,
        ref_groups_dict={name: text(references[name]) for name in names},
        check_significance=False,
        mask_significance=False,
    )
    found = found.set_index(["attribute_name", "attribute_value"])
    values = {}
    for name, group in comparisons:
        row = found.loc[name, text(group)]
        values[name, group, "selection_rate"] = row["pprev"]
        values[name, group, "true_positive_rate"] = row["tpr"]
        values[name, group, "disparate_impact"] = row["pprev_disparity"]
    return values


def by_holisticai(frame: pd.DataFrame, references: dict[str, Any], comparisons: list[tuple[str, Any]]) -> Values:
    """Return the ratios of holisticai; its table has no rates of single groups, and it fails where a group lacks a label."""
    from holisticai.bias.metrics import classification_bias_metrics

    y, decisions = frame["y"].to_numpy(), frame["yhat"].to_numpy()
    values = {}
    for name, group in comparisons:
        groups = [in_group(frame, name, one) for one in (group, references[name])]
        if any(len(set(labels[inside])) < 2 for inside in groups for labels in (y, decisions)):
            continue
        table = classification_bias_metrics(*groups, decisions, y, metric_type="both")
        values[name, group, "disparate_impact"] = table.loc["Disparate Impact", "Value"]
    return values


PEERS: dict[str, Callable[..., Values]] = {
    "fairlearn": by_fairlearn,
    "aif360": by_aif360,
    "aequitas": by_aequitas,
    "holisticai": by_holisticai,
}


def compare(name: str, theirs: Values, ours: Values) -> int:
    """Return how many values are equal; raise where one differs."""
    shared = [key for key in theirs if key in ours and np.isfinite(ours[key])]
    for key in shared:
        if not np.isclose(theirs[key], ours[key], rtol=1e-9, atol=1e-12):
            raise AssertionError(f"{name} finds {theirs[key]} for {key}, ours is {ours[key]}.")
    return len(shared)


# ------------------------------------------------------------------------------------------------------------ intervals
def scipy_interval(frame: pd.DataFrame) -> tuple[float, float]:
    """Return scipy's BCa interval of the disparate impact of SEX, 2 against 1."""
    from scipy.stats import bootstrap

    def ratio(women: Any, decisions: Any, axis: int = -1) -> Any:
        n_women = women.sum(axis)
        taken = (women * decisions).sum(axis)
        return (taken / n_women) / ((decisions.sum(axis) - taken) / (women.shape[axis] - n_women))

    women, decisions = (frame["SEX"].to_numpy() == 2).astype(np.int32), frame["yhat"].to_numpy(np.int32)
    found = bootstrap(
        (women, decisions), ratio, paired=True, vectorized=True, n_resamples=N_RESAMPLES, batch=100, method="BCa", rng=0
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def our_interval(frame: pd.DataFrame) -> tuple[float, float]:
    """Return ours of the same."""
    result = audit(
        frame["y"],
        frame["yhat"],
        sensitive_features=frame["SEX"],
        reference={"SEX": 1},
        metrics=["disparate_impact"],
        method="bca",
        n_resamples=N_RESAMPLES,
    )
    (finding,) = [f for f in result.findings if f.metric == "disparate_impact"]
    return finding.low, finding.high


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its CPU time: a median of three more if it is short."""
    found: list[Any] = []
    first = once(lambda: found.append(function()))
    return found[0], first if first > SHORT else median([once(function) for _ in range(3)])


def boot_time(frame: pd.DataFrame) -> float:
    """Return the time of 1,000 replicates by fairlearn, scaled from a few."""
    few = 4 if len(frame) <= 10_000 else 2
    quantiles = {"ci_quantiles": [0.025, 0.975], "random_state": 0}
    one = once(lambda: fairlearn_points(frame, n_boot=1, **quantiles))
    several = once(lambda: fairlearn_points(frame, n_boot=few, **quantiles))
    return (several - one) / (few - 1) * N_RESAMPLES


def measure(n_rows: int, installed: dict[str, str]) -> None:
    """Print what each takes for so many rows."""
    frame = rows(n_rows)
    ours, references, comparisons = our_values(run(frame, GROUP + PAIR, N_RESAMPLES))
    before = cpu(lambda: run(frame, GROUP + PAIR, N_RESAMPLES))
    found: list[tuple[str, float | None, str]] = []
    for name, values in PEERS.items():
        if name not in installed:
            continue
        if n_rows > MOST_ROWS.get(name, n_rows):
            found.append((f"{name}, no intervals", None, "not run: would take minutes"))
            continue
        theirs, seconds = timed(lambda: values(frame, references, comparisons))  # noqa: B023
        found.append((f"{name}, no intervals", seconds, f"{compare(name, theirs, ours)} values equal ours"))
    if n_rows <= MOST_ROWS["fairlearn, n_boot"]:
        found.append(("fairlearn, n_boot=1000, percentile", boot_time(frame), "scaled"))
    after = cpu(lambda: run(frame, GROUP + PAIR, N_RESAMPLES))
    base = (before + after) / 2
    print(f"\n{n_rows:,} rows: {len(comparisons)} comparisons; {'CPU, s':>14s} {'/ ours':>10s}")
    print(f"{'ours, with all BCa intervals':38s} {base:10.3f} {1:10.1f}   {1e3 * before:.0f} and {1e3 * after:.0f} ms")
    for name, time_, words in found:
        numbers = f"{'':10s} {'':10s}" if time_ is None else f"{time_:10.3f} {time_ / base:10.1f}"
        print(f"{name:38s} {numbers}   {words}", flush=True)
    if n_rows <= MOST_ROWS["scipy"]:
        theirs, seconds = timed(lambda: scipy_interval(frame))
        mine, own = our_interval(frame), cpu(lambda: our_interval(frame))
        print(f"{'ours, one BCa interval':38s} {own:10.3f} {own / base:10.1f}   [{mine[0]:.3f}, {mine[1]:.3f}]")
        words = f"[{theirs[0]:.3f}, {theirs[1]:.3f}]; {seconds / own:.1f} times ours of the one"
        print(f"{'scipy, one BCa interval':38s} {seconds:10.3f} {seconds / base:10.1f}   {words}", flush=True)
        width = mine[1] - mine[0]  # of 1,000 replicates a limit has a standard error of about 3 % of the width
        assert np.allclose(theirs, mine, rtol=0, atol=0.2 * width), (theirs, mine)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().rows
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    installed = {}
    for name in (*PEERS, "scipy"):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            print(f"{name}: not installed")
    print(", ".join(f"{name} {found}" for name, found in installed.items()))
    with threadpool_limits(1):
        for n_rows in sizes:
            measure(n_rows, installed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
