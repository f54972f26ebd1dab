"""Run the checks of this repository: all of them, or those named.

    python tools/check.py                # everything, as CI does
    python tools/check.py lint types     # some of it
    python tools/check.py --list

Needs the development environment: pip install -e ".[dev]". This is the one list of checks: .ci/run
and the docs refer to it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


# Each step yields the arguments of the Python interpreter of this environment.


def lint(_scratch):
    yield ["-m", "ruff", "check", "."]


def format(_scratch):
    yield ["-m", "ruff", "format", "--check", "."]


def types(_scratch):
    yield ["-m", "mypy"]


def examples(_scratch):
    for path in sorted(ROOT.glob("examples/plot_*.py")):
        yield ["-W", "error", str(path)]


def docs(scratch):
    yield ["-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{scratch}/doctrees", "docs", f"{scratch}/html"]


def tests(_scratch):
    yield ["-m", "pytest", "-n", "auto"]


def coverage(_scratch):
    # The tests again, measured: a third slower, so on request.
    yield ["-m", "pytest", "-n", "auto", "--cov", "--cov-report=term"]


def benchmarks(_scratch):
    # They compare times, so they run on request, with nothing else beside them.
    for path in sorted(ROOT.glob("tests/benchmarks/bench_*.py")):
        yield [str(path)]


# The tests come last, so that pytest's closing line ends the output.
STEPS = {step.__name__: step for step in (lint, format, types, examples, docs, tests, coverage, benchmarks)}
ON_REQUEST = {"coverage", "benchmarks"}


def run(name):
    """Whether every command of the step succeeded; its output goes to the terminal."""
    started = time.perf_counter()
    print(f"== {name}", flush=True)
    passed = True
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as scratch:
        for arguments in STEPS[name](scratch):
            result = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
            passed &= result.returncode == 0
    print(f"== {name} {'passed' if passed else 'FAILED'} in {time.perf_counter() - started:.1f} s", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = [name for name in STEPS if name not in ON_REQUEST]
    parser.add_argument(
        "steps", nargs="*", metavar="STEP", help=f"any of {', '.join(STEPS)}; default: {', '.join(default)}"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the steps and stop")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.steps if name not in STEPS]
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}; the steps are {', '.join(STEPS)}")
    if arguments.list:
        print("\n".join(STEPS))
        return 0
    failed = [name for name in arguments.steps or default if not run(name)]
    if failed:
        print(f"FAILED: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
