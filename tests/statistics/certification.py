"""Coverage and false alarms of every interval method and every policy, on data whose bias is known exactly.

    python -m tests.statistics.certification           # the long form: checks the limits, writes docs/statistics.md
    python -m tests.statistics.certification --short   # the form that runs with the tests; writes nothing

Samples are counts drawn by ``BiasInjector``; a data set is one multinomial over group, label and decision, so group sizes
are random. Rates are given with their Monte-Carlo standard error. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_ethiclens import METRICS, POLICIES, BiasInjector, Tally, Verdict, audit_tally
from sklearn_ethiclens._calibrated import closed_form, has_closed_form
from sklearn_ethiclens.exceptions import SampleSizeWarning
from sklearn_ethiclens.inference._resampling import (
    bootstrap_bounds,
    collect_cells,
    draw_cells,
    leave_one_out,
    pair_leave_one_out,
)
from sklearn_ethiclens.metrics._rates import Confusion

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
SIZES = (30, 100, 300, 1_000, 10_000)  # rows a group is expected to have; the reference has four times as many
RATES, RATIOS = (0.05, 0.1, 0.3, 0.5), (0.6, 0.8, 1.0)
COVERED = (
    "selection_rate",
    "true_positive_rate",
    "balanced_accuracy",
    "disparate_impact",
    "statistical_parity_difference",
    "true_positive_rate_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "average_odds_difference",
    "average_odds_error",
    "theil_index",
    "theil_index_difference",
    "f1",
    "f1_difference",
    "f1_ratio",
)
FLAG_LIMIT = 0.033  # of the calibrated policy, nominal .025


# ----------------------------------------------------------------------------------------------------------- populations
def populations() -> Iterator[tuple[str, BiasInjector]]:
    """Return populations of a group and a reference four times as large, by selection rate and ratio."""
    for rate in RATES:
        for ratio in RATIOS:
            yield (
                f"reference rate {rate:g}, ratio {ratio:g}",
                BiasInjector(
                    {"group": 0.2, "reference": 0.8},
                    base_rate=0.3,
                    selection_rate=rate,
                    disparate_impact={"group": ratio},
                    reference="reference",
                    n_features=0,
                ),
            )


def at_the_boundary(shares: Sequence[float], references: int = 1) -> BiasInjector:
    """Return a population where every later group has a ratio of .80 and gaps of .10 in TPR and in FPR to the first ones."""
    groups = {f"{i}": share / sum(shares) for i, share in enumerate(shares)}

    def rates(first: float, other: float) -> dict[str, float]:
        return {name: first if i < references else other for i, name in enumerate(groups)}

    # .3 x .7 + .7 x .15 = .315; .8 x .315 = .252 = p x .6 + (1 - p) x .05 at p = .202 / .55
    return BiasInjector(
        groups,
        base_rate=rates(0.3, 0.202 / 0.55),
        true_positive_rate=rates(0.7, 0.6),
        false_positive_rate=rates(0.15, 0.05),
        reference="0",
        n_features=0,
    )


def alike(shares: Sequence[float]) -> BiasInjector:
    """Return a population whose groups do not differ, with selection rate .20."""
    groups = {f"{i}": share / sum(shares) for i, share in enumerate(shares)}
    return BiasInjector(groups, base_rate=0.3, true_positive_rate=0.5, selection_rate=0.2, reference="0", n_features=0)


@dataclass(frozen=True)
class Setting:
    """Audits whose every flag would be false, or, with ``wrong``, right."""

    name: str
    injector: BiasInjector
    n_rows: int
    reference: str | None = "0"
    true_flags: bool = False


_ACS = (
    0.62,
    0.045,
    0.006,
    0.0003,
    0.002,
    0.16,
    0.003,
    0.12,
    0.0437,
)  # shares like those of the nine races of the census


def settings() -> tuple[Setting, ...]:
    """Return the settings in which flags are counted."""
    one, nine = at_the_boundary([0.8, 0.2]), at_the_boundary([2000] + [300] * 8)
    strong = BiasInjector(
        {"0": 0.8, "1": 0.2},
        base_rate=0.3,
        true_positive_rate={"0": 0.7, "1": 0.5},
        false_positive_rate={"0": 0.15, "1": 0.08},
        reference="0",
        n_features=0,
    )
    return (
        Setting("one comparison, 30 rows a group", one, 150),
        Setting("one comparison, 100 rows a group", one, 500),
        Setting("one comparison, 300 rows a group", one, 1_500),
        Setting("one comparison, 1,000 rows a group", one, 5_000),
        Setting("nine groups, 8 x 300 against 2,000", nine, 4_400),
        Setting("nine groups, census shares, 10,000 rows", at_the_boundary(_ACS), 10_000),
        Setting("nine groups, census shares, 100,000 rows", at_the_boundary(_ACS), 100_000),
        Setting(
            "reference chosen: two tie for it, seven at the limits",
            at_the_boundary([1000] * 2 + [500] * 7, 2),
            5_500,
            None,
        ),
        Setting("reference chosen: all alike, 5,000 and 8 x 120", alike([5000] + [120] * 8), 5_960, None),
        Setting("power: ratio .65, gaps .20 and .07, 300 rows a group", strong, 1_500, "0", True),
        Setting("power: ratio .65, gaps .20 and .07, 1,000 rows a group", strong, 5_000, "0", True),
    )


# --------------------------------------------------------------------------------------------------------------- coverage
def closed_bounds(name: str, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the closed-form intervals of group 0 (against group 1) of many data sets, as an audit gives them."""
    metric = METRICS[name]
    confusion = Confusion(np.moveaxis(tables, 0, 1).astype(float))
    at = None if metric.kind == "group" else 1
    bounds, _ = closed_form(metric, confusion, np.array([0]), at, LEVEL)
    return bounds.low[0], bounds.high[0]


def bootstrapped(tables: np.ndarray, n_resamples: int, names: Iterable[str], seed: int) -> dict[str, dict[str, tuple]]:
    """Return percentile and BCa intervals of group 0 (against group 1), each data set with a stream of its own."""
    parts: dict[str, list[tuple]] = {name: [] for name in names}
    for number, counts in enumerate(tables):
        table, slot = np.nonzero(counts.reshape(2, 4))
        drawn = draw_cells(counts.reshape(2, 4)[table, slot], n_resamples, seed + number)
        replicates = np.moveaxis(collect_cells(drawn, table, slot, 2, 4).reshape(2, 2, 2, -1), (0, 1), (-2, -1))
        deleted, weight = leave_one_out(counts, int(counts.sum()))
        index, both = pair_leave_one_out(weight, np.array([0]), 1)
        for name, part in parts.items():
            function, kind = METRICS[name].function, METRICS[name].kind
            if kind == "group":
                part.append((function(Confusion(replicates[0])), function(Confusion(deleted[0])), weight[0]))
            else:
                left = [Confusion(deleted[place]) for place in index]
                value = function(Confusion(replicates[0]), Confusion(replicates[1]))
                part.append((value, function(*left)[0], both[0]))
    found: dict[str, dict[str, tuple]] = {}
    for name, part in parts.items():
        estimates = _estimates(name, tables)
        values, left, weights = (np.stack(column) for column in zip(*part, strict=True))
        for method in ("percentile", "bca"):
            bounds = bootstrap_bounds(estimates, values.copy(), left, weights, confidence_level=LEVEL, method=method)
            found.setdefault(name, {})[method] = bounds.low, bounds.high
    return found


def _estimates(name: str, tables: np.ndarray) -> np.ndarray:
    metric = METRICS[name]
    sides = [Confusion(tables[:, side].astype(float)) for side in ((0,) if metric.kind == "group" else (0, 1))]
    return np.asarray(metric.function(*sides))


def coverage(
    n_closed: int, n_bootstrap: int, n_resamples: int, sizes: Iterable[int] = SIZES, n_jobs: int = 2
) -> pd.DataFrame:
    """Return one row a method, metric, size and population: coverage, and how often each end misses."""
    tasks = [
        (number, size, label, injector) for number, (label, injector) in enumerate(populations()) for size in sizes
    ]
    rows = Parallel(n_jobs=n_jobs)(
        delayed(_covered)(1000 * number + size, size, label, injector, n_closed, n_bootstrap, n_resamples)
        for number, size, label, injector in tasks
    )
    return pd.DataFrame([row for part in rows for row in part])


@np.errstate(divide="ignore", invalid="ignore")
def _covered(
    seed: int, size: int, label: str, injector: BiasInjector, n_closed: int, n_bootstrap: int, n_resamples: int
) -> list[dict]:
    truth = injector.truth
    tables = injector.sample_tallies(5 * size, n_closed, random_state=seed)
    bounds = {("auto", name): closed_bounds(name, tables) for name in COVERED if has_closed_form(METRICS[name])}
    estimates = {("auto", name): _estimates(name, tables) for name in COVERED}
    if n_bootstrap:
        few = tables[:n_bootstrap]
        for name, methods in bootstrapped(few, n_resamples, COVERED, seed).items():
            for method, ends in methods.items():
                bounds[method, name] = ends
                estimates[method, name] = _estimates(name, few)
    rows = []
    for (method, name), (low, high) in bounds.items():
        group = METRICS[name].kind == "group"
        true = truth.value(name, "group", None if group else "reference")
        judged = ~np.isnan(estimates[method, name]) & ~np.isnan(low)
        below, above = np.mean(high[judged] < true - 1e-12), np.mean(low[judged] > true + 1e-12)
        rows.append(
            {
                "method": method,
                "metric": name,
                "rows a group": size,
                "population": label,
                "truth": true,
                "coverage": 1 - below - above,
                "upper end below": below,
                "lower end above": above,
                "width": float(np.median(high[judged] - low[judged])),
                "data sets": int(judged.sum()),
            }
        )
    return rows


def uncovered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``auto`` whose coverage is below nominal - .01 - 2 Monte-Carlo errors."""
    error = np.sqrt(LEVEL * (1 - LEVEL) / frame["data sets"])
    return frame[(frame["method"] == "auto") & (frame["coverage"] < LEVEL - 0.01 - 2 * error)]


# ------------------------------------------------------------------------------------------------------------------ flags
def flags(
    policies: dict[str, int], n_resamples: int | None = None, chosen: Iterable[Setting] | None = None, n_jobs: int = 2
) -> pd.DataFrame:
    """Return one row a setting and policy: the shares of audits with a flag, by ratio, by error rates and by either."""
    rows = []
    for number, setting in enumerate(chosen or settings()):
        for name, n_sets in policies.items():
            blocks = np.array_split(np.arange(n_sets), max(1, n_sets // 250))
            parts = Parallel(n_jobs=n_jobs)(
                delayed(_flagged)(setting, name, block, number, n_resamples) for block in blocks
            )
            found = np.concatenate(parts)
            shares = found.mean(0)
            rows.append(
                {
                    "setting": setting.name,
                    "policy": name,
                    "ratio": shares[0],
                    "error rates": shares[1],
                    "either": shares[2],
                    "cleared": shares[3],
                    "data sets": n_sets,
                    "right": setting.true_flags,
                }
            )
    return pd.DataFrame(rows)


def _flagged(setting: Setting, policy: str, block: np.ndarray, number: int, n_resamples: int | None) -> np.ndarray:
    injector = setting.injector
    groups = injector.sample_tally(10).attributes, tuple((f"{i}",) for i in range(len(injector.groups)))
    drawn = injector.sample_tallies(setting.n_rows, block.size, random_state=10_000 * (number + 1) + int(block[0]))
    found = []
    for seed, counts in zip(block.tolist(), drawn, strict=True):
        tally = Tally(groups[0], groups[1], counts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            warnings.simplefilter("ignore", SampleSizeWarning)
            audit = audit_tally(
                tally,
                policy=policy,
                reference=setting.reference,
                metrics=["disparate_impact"],
                n_resamples=n_resamples,
                random_state=seed,
            )
        flagged = {METRICS[f.metric].scale for f in audit.flagged}
        cleared = any(f.verdict is Verdict.CLEARED for f in audit.judged)
        found.append(("ratio" in flagged, "difference" in flagged, bool(flagged), cleared))
    return np.array(found, dtype=float)


def false_alarms(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the settings in which the calibrated policy flags more often than it may."""
    limit = FLAG_LIMIT + 2 * np.sqrt(0.025 * 0.975 / frame["data sets"])
    return frame[(frame["policy"] == "calibrated") & ~frame["right"] & (frame["either"] > limit)]


# ------------------------------------------------------------------------------------------------------------------- page
def page_tables(covered: pd.DataFrame, flagged: pd.DataFrame, n_resamples: int) -> str:
    """Return the tables in Markdown."""
    lines = ["### Coverage of 95% intervals", ""]
    sizes = sorted(covered["rows a group"].unique())
    for method in ("auto", "bca", "percentile"):
        part = covered[covered["method"] == method]
        if part.empty:
            continue
        sets = int(part["data sets"].max())
        error = np.sqrt(LEVEL * (1 - LEVEL) / sets)
        extra = "" if method == "auto" else f", {n_resamples:,} replicates"
        lines += [
            f"`{method}`: mean (minimum) over {part['population'].nunique()} populations, {sets:,} data sets each{extra}; "
            f"Monte-Carlo error {100 * error:.2f} points.",
            "",
            "| metric | " + " | ".join(f"{size:,} rows a group" for size in sizes) + " |",
            "|---" * (len(sizes) + 1) + "|",
        ]
        for metric in part["metric"].unique():
            cells = [part[(part["metric"] == metric) & (part["rows a group"] == size)]["coverage"] for size in sizes]
            lines.append(f"| {metric} | " + " | ".join(f"{c.mean():.3f} ({c.min():.3f})" for c in cells) + " |")
        lines.append("")
    lines += _miss_table(covered, sizes)
    lines += ["### Flags", "", *_flag_table(flagged)]
    return "\n".join(lines)


def _miss_table(covered: pd.DataFrame, sizes: Sequence[int]) -> list[str]:
    """Return how often the equalized-odds interval ends too low or begins too high: the ends that clear and flag."""
    part = covered[(covered["metric"] == "equalized_odds_difference") & (covered["truth"] > 0)]
    lines = [
        "Largest share over these populations of equalized-odds intervals (true value above 0) that lie wholly above the "
        "truth, and wholly below it (nominal .025 each):",
        "",
        "| method | " + " | ".join(f"{size:,} rows a group" for size in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for method in part["method"].unique():
        own = part[part["method"] == method].groupby("rows a group")[["lower end above", "upper end below"]].max()
        cells = [f"{own.loc[size].iloc[0]:.3f}, {own.loc[size].iloc[1]:.3f}" for size in sizes]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _flag_table(flagged: pd.DataFrame) -> list[str]:
    lines = []
    for right in (False, True):
        part = flagged[flagged["right"] == right]
        if part.empty:
            continue
        policies = list(part["policy"].unique())
        sets = {name: int(part.loc[part["policy"] == name, "data sets"].iloc[0]) for name in policies}
        what = "right: the power" if right else "false"
        lines += [
            f"Share of audits with a flag, which is {what}: any flag (ratio, error rates). Data sets: "
            + ", ".join(f"{name} {n:,}" for name, n in sets.items())
            + ".",
            "",
            "| setting | " + " | ".join(policies) + " |",
            "|---" * (len(policies) + 1) + "|",
        ]
        for setting in part["setting"].unique():
            cells = []
            for name in policies:
                row = part[(part["setting"] == setting) & (part["policy"] == name)].iloc[0]
                cells.append(f"{100 * row['either']:.1f}% ({100 * row['ratio']:.1f}, {100 * row['error rates']:.1f})")
            lines.append(f"| {setting} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def write(tables: str, page: Path = PAGE) -> None:
    """Put the tables where the page keeps them."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{tables.rstrip()}\n\n{END}{after}", encoding="utf-8")


def long_form() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames of the long form."""
    covered = coverage(100_000, 2_000, 1_000)
    others = {name: 300 for name in POLICIES if name not in ("calibrated", "ethiclens", "ll144")}
    flagged = flags({"calibrated": 10_000, "ethiclens": 1_000, **others})
    return covered, flagged


def short_form() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames of the short form."""
    chosen = [s for i, s in enumerate(settings()) if i in (1, 4, 9)]
    return coverage(3_000, 0, 0, (30, 300), n_jobs=1), flags(
        {"calibrated": 200, "ethiclens": 100}, 500, chosen, n_jobs=1
    )


def main() -> None:
    """Run a form, check it, print the tables and, in the long form, write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    started = time.perf_counter()
    covered, flagged = short_form() if short else long_form()
    tables = page_tables(covered, flagged, 1_000)
    print(tables)
    print(f"{time.perf_counter() - started:.0f} s")
    for problem in (uncovered(covered), false_alarms(flagged)):
        if len(problem):
            raise SystemExit(f"limits passed:\n{problem.to_string()}")
    if not short:
        write(tables)


if __name__ == "__main__":
    main()
