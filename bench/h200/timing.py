"""Device time of functions measured side by side: one run of each in turn, the L2 cache flushed before every run.

Side by side because clocks drift by several percent within minutes (facts of h200.md): a ratio is only worth
something if both were measured in the same seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

FLUSH_BYTES = 256 << 20  # several times the L2
WARM_UP, FEWEST, MOST = 3, 9, 100
OVERHEAD_MS = 0.1  # of a flush and two events


@dataclass(frozen=True)
class Time:
    """Milliseconds of one function: median, and the 10th and 90th percentile."""

    median: float
    low: float
    high: float
    runs: int


def measure(torch: Any, functions: Mapping[str, Callable[[], Any]], budget_ms: float) -> dict[str, Time]:
    """The time of each function; about `budget_ms` are spent on all of them together."""
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    for function in functions.values():
        for _ in range(WARM_UP):
            function()
    torch.cuda.synchronize()
    once = sum(_timed(torch, flush, [f], 3)[0][1] + OVERHEAD_MS for f in functions.values())
    runs = max(FEWEST, min(MOST, int(budget_ms / once)))
    samples = _timed(torch, flush, list(functions.values()), runs)
    return {name: _summary(own) for name, own in zip(functions, samples, strict=True)}


def _timed(torch: Any, flush: Any, functions: list[Callable[[], Any]], runs: int) -> list[list[float]]:
    """Milliseconds of `runs` runs of each function, sorted."""
    events = []
    for _ in range(runs):
        for function in functions:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            function()
            end.record()
            events.append((start, end))
    torch.cuda.synchronize()
    times = [start.elapsed_time(end) for start, end in events]
    return [sorted(times[i :: len(functions)]) for i in range(len(functions))]


def _summary(times: list[float]) -> Time:
    return Time(statistics.median(times), times[len(times) // 10], times[-1 - len(times) // 10], len(times))
