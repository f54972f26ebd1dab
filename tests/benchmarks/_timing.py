"""How the benchmarks time: CPU seconds, medians, and what is compared is measured in one process, in turns where it matters."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any


def once(function: Callable[[], Any]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def cpu(function: Callable[[], Any], repeats: int = 7) -> float:
    """Return the median CPU time of a call, after one that does not count."""
    function()
    return median(once(function) for _ in range(repeats))


def in_turns(calls: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Return the CPU times of each call, made in turns, after one turn that does not count.

    Whatever slows the machine for a while slows all of them.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(turns + 1):
        for name, call in calls.items():
            seconds = once(call)
            if turn:
                times[name].append(seconds)
    return times


def peak_memory() -> float:
    """Return the peak resident memory of this process, in MiB.

    As Linux has it in /proc: what ``getrusage`` returns there is never less than the memory of the process that started this
    one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
