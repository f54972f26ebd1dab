"""Cost of a counterfactual audit beside the bare predictions it needs, as a ratio measured in one run.

    python tests/benchmarks/bench_probe.py

reads ``acs-income-test.parquet`` (332,900 rows) from ``$SKLEARN_ETHICLENS_DATA``. The model is a histogram gradient booster
on its 10 features, in one thread (beside other work its threads wait busily, which would count as work); the attribute is
RAC1P with 9 values. Times are CPU seconds; baselines and ours alternate.

* bare, all rows: ``predict_proba`` of the rows as they are and with each of the 9 values set, frames made beforehand;
* bare, changed rows: the same, but of each value only the rows that do not have it. No audit can ask for less.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pandas as pd
from _timing import in_turns
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from sklearn_ethiclens.counterfactual import CounterfactualProbe

REPEATS = 3


def main() -> None:
    """Print the table."""
    frame = pd.read_parquet(Path(os.environ["SKLEARN_ETHICLENS_DATA"]) / "acs-income-test.parquet")
    y = frame.pop("PINCP").astype(int)
    X = frame[["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"]]
    model = HistGradientBoostingClassifier(random_state=0).fit(X.iloc[::10], y.iloc[::10])
    values = sorted(X["RAC1P"].unique())
    everything = [X, *(X.assign(RAC1P=value) for value in values)]
    changed = [X, *(X[X["RAC1P"] != value].assign(RAC1P=value) for value in values)]
    probe = CounterfactualProbe("RAC1P", random_state=0).fit(X)

    def bare(frames: list[pd.DataFrame]) -> None:
        for one in frames:
            model.predict_proba(one)

    work = {
        "bare, all rows": lambda: bare(everything),
        "bare, changed rows": lambda: bare(changed),
        "probe.audit": lambda: probe.audit(model, X),
        "probe.fit": lambda: CounterfactualProbe("RAC1P", random_state=0).fit(X),
    }
    spent = {name: median(values) for name, values in in_turns(work, REPEATS).items()}
    print(f"{len(X)} rows, {len(values)} values; CPU seconds: " + ", ".join(f"{k} {v:.2f}" for k, v in spent.items()))
    for name, limit in (("bare, all rows", "<= 1.1"), ("bare, changed rows", "")):
        print(f"{'probe.audit / ' + name:60s} {spent['probe.audit'] / spent[name]:8.3f}   {limit}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
