"""The suite notices a wrong engine: deliberately wrong variants, each a line changed, are caught by it as it stands.

python -m pytest -m long tests/statistics/test_mutations.py
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
ASSESS, CALIBRATED = "_assess.py", "_calibrated.py"
RESAMPLING, TESTS = "inference/_resampling.py", "inference/_tests.py"


class Mutation(NamedTuple):
    """A wrong variant: one text of one module changed for another."""

    name: str
    module: str
    right: str
    wrong: str


MUTATIONS = (
    Mutation(
        "the reference is swapped with the group",
        ASSESS,
        "metric.function(self.confusion.take(others), self.confusion.take([at]))",
        "metric.function(self.confusion.take([at]), self.confusion.take(others))",
    ),
    Mutation(
        "ties count whole in the bias correction",
        RESAMPLING,
        "(lower + upper) / (2.0 * counted)",
        "upper / (1.0 * counted)",
    ),
    Mutation(
        "the percentile interval stands for BCa",
        ASSESS,
        'method="percentile" if self.policy.method == "percentile" else "bca"',
        'method="percentile"',
    ),
    Mutation(
        "floors are ignored",
        ASSESS,
        "short |= (count[groups] < floor) | (at is not None and bool(count[at] < floor))",
        "short |= count[groups] < 0",
    ),
    Mutation(
        "floors count for the group alone",
        ASSESS,
        "(count[groups] < floor) | (at is not None and bool(count[at] < floor))",
        "(count[groups] < floor)",
    ),
    Mutation(
        "verdicts come from the point",
        ASSESS,
        "reason = rule.judge(values[i], *ends, significant=significant)",
        "reason = rule.judge(values[i], *[values[i]] * 2, significant=significant)",
    ),
    Mutation(
        "what is undefined is 0",
        "metrics/_rates.py",
        "self._kept[key] = np.true_divide(self.count(rate.numerator), self.count(rate.denominator))",
        "self._kept[key] = np.nan_to_num(np.true_divide(self.count(rate.numerator), self.count(rate.denominator)))",
    ),
    Mutation(
        "the jackknife forgets how many rows a deletion stands for",
        RESAMPLING,
        "weights[:, :n_cells] = flat[:, 0]",
        "weights[:, :n_cells] = flat[:, 0] > 0",
    ),
    Mutation(
        "an adverse decision is judged as a favourable one",
        "metrics/_rates.py",
        'self.count("selected" if self.outcome == "favorable" else "rejected")',
        'self.count("selected")',
    ),
    Mutation(
        "replicates are not centred at the estimate",
        CALIBRATED,
        "value -= estimate  # in place",
        "value -= 0 * estimate  # in place",
    ),
    Mutation(
        "the lower end of the largest gap is not corrected",
        "inference/_gap_intervals.py",
        "corrected = single(1 - 2 * tail).low",
        "corrected = low",
    ),
    Mutation(
        "only the first attribute's comparisons are adjusted for",
        CALIBRATED,
        "rows = [row for one in evidence for row in one.rows]",
        "rows = [row for one in evidence[:1] for row in one.rows] + [0 * row for one in evidence[1:] for row in one.rows]",
    ),
    Mutation(
        "a reference chosen from the data counts as given",
        ASSESS,
        "if self._eligible[g] and g != self._at[name]]",
        "if False]",
    ),
    Mutation(
        "missing groups are merged with a group",
        "_validation.py",
        "MISSING = ",
        "MISSING = 'nan' or ",
    ),
)

SUITE = (
    "test_calibrated.py",
    "test_gap_intervals.py",
    "test_metrics.py",
    "test_resampling.py",
    "test_audit.py",
    "test_field_reports.py",
    "test_golden_tables.py",
    "test_reference_cases.py",
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_every_variant_changes_the_engine_as_it_is(mutation):
    source = (ROOT / "sklearn_ethiclens" / mutation.module).read_text(encoding="utf-8")
    assert source.count(mutation.right) == 1
    compile(source.replace(mutation.right, mutation.wrong), mutation.module, "exec")


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_every_variant_is_caught(mutation, tmp_path):
    for folder in ("sklearn_ethiclens", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module = tmp_path / "sklearn_ethiclens" / mutation.module
    source = module.read_text(encoding="utf-8")
    module.write_text(source.replace(mutation.right, mutation.wrong), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *(f"tests/{name}" for name in SUITE),
    ]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout[-3000:] + result.stderr[-3000:]
    assert "failed" in result.stdout.splitlines()[-1]
