"""What `import sklearn_ethiclens` costs and touches, each measured in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

# What every user of the package has imported already; the import is measured against and on top of it.
BASELINE = "import sklearn, pandas, scipy.stats"

OPTIONAL_AT_IMPORT = {
    "click",
    "duckdb",
    "fairlearn",
    "folktables",
    "jinja2",
    "matplotlib",
    "polars",
    "pyarrow",
    "requests",
    "rich",
    "statsmodels",
    "typer",
    "weasyprint",
}


def run(code):
    """What the program prints as JSON, run without the coverage and bytecode settings of this process."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("COV_CORE", "COVERAGE", "PYTHON"))
    }
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=kept, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def loaded_by(statement):
    return set(
        run(f"{statement}\nimport json, sys\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))")
    )


def test_import_loads_nothing_optional():
    brought = loaded_by(f"{BASELINE}\nimport sklearn_ethiclens") - loaded_by(BASELINE)
    assert "sklearn_ethiclens" in brought
    assert brought & OPTIONAL_AT_IMPORT == set()


STATE = """
import json, logging, os, random, signal, sys, warnings
import numpy, pandas, sklearn, scipy.stats

def pandas_options(group, prefix=""):
    found = {}
    for name in dir(group):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(group, name)
        if type(value) is type(group):
            found.update(pandas_options(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = repr(value)
    return found

def state():
    return {
        "warnings.filters": [repr(entry) for entry in warnings.filters],
        "warnings.showwarning": repr(warnings.showwarning),
        "numpy errors": numpy.geterr(),
        "numpy print options": repr(numpy.get_printoptions()),
        "numpy random state": repr(numpy.random.get_state()),
        "random state": repr(random.getstate()),
        "scikit-learn": repr(sklearn.get_config()),
        "pandas": pandas_options(pandas.options),
        "logging": [logging.root.level, repr(logging.root.handlers)],
        "environment": dict(os.environ),
        "path": list(sys.path),
        "hooks": [repr(sys.excepthook), repr(sys.displayhook)],
        "signals": repr(signal.getsignal(signal.SIGINT)),
    }

before = state()
import sklearn_ethiclens
after = state()
print(json.dumps([len(before["pandas"]), [name for name in before if before[name] != after[name]]]))
"""


def test_import_changes_no_global_state():
    n_pandas_options, changed = run(STATE)
    assert n_pandas_options > 30  # the options were really read
    assert changed == []


def cpu_seconds_of(statement):
    return run(f"import time\nstarted = time.process_time()\n{statement}\nprint(time.process_time() - started)")


@pytest.mark.slow
def test_import_costs_at_most_1_3_times_its_foundations():
    """CPU time, not clock time; the best of several interleaved runs; a bad moment of the machine gets more runs."""
    ours = "import sklearn_ethiclens"
    for statement in (BASELINE, ours):  # writes bytecode, warms the file cache
        cpu_seconds_of(statement)
    times = {BASELINE: [], ours: []}
    for _ in range(3):
        for _ in range(5):
            for statement, measured in times.items():
                measured.append(cpu_seconds_of(statement))
        ratio = min(times[ours]) / min(times[BASELINE])
        if ratio <= 1.3:
            return
    pytest.fail(
        f"import sklearn_ethiclens costs {ratio:.2f} times importing scikit-learn, pandas and scipy.stats; at most 1.3"
    )
