"""Device time of functions measured side by side: one run of each in turn, every run from the same state.

Side by side because clocks drift by several percent within minutes: times are only worth comparing if they were taken
in the same seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

WARM_UP, FEWEST, MOST = 3, 9, 100
OVERHEAD_MS = 0.1  # of preparing a run and two marks


class Stopwatch(Protocol):
    """A device's queue of work, with marks in time between its entries."""

    def prepare(self) -> None:
        """Enqueue what puts memory and caches into the state that every run starts from."""
        ...

    def mark(self) -> Any:
        """Enqueue a mark."""
        ...

    def wait(self) -> None:
        """Until everything is done that was enqueued."""
        ...

    def milliseconds(self, start: Any, end: Any) -> float:
        """Between two marks that were reached."""
        ...


@dataclass(frozen=True)
class Time:
    """Milliseconds of one function: median, and the 10th and 90th percentile."""

    median: float
    low: float
    high: float
    runs: int


def side_by_side(functions: Sequence[Callable[[], Any]], watch: Stopwatch, budget_ms: float) -> list[Time]:
    """The time of each function, which enqueues its work; about `budget_ms` are spent on all of them together."""
    for function in functions:
        for _ in range(WARM_UP):
            watch.prepare()
            function()
    watch.wait()
    once = sum(_timed(watch, [f], 3)[0][1] + OVERHEAD_MS for f in functions)
    runs = max(FEWEST, min(MOST, int(budget_ms / once)))
    return [_summary(own) for own in _timed(watch, functions, runs)]


def _timed(watch: Stopwatch, functions: Sequence[Callable[[], Any]], runs: int) -> list[list[float]]:
    """Milliseconds of `runs` runs of each function, sorted."""
    marks = []
    for _ in range(runs):
        for function in functions:
            watch.prepare()
            start = watch.mark()
            function()
            marks.append((start, watch.mark()))
    watch.wait()
    times = [watch.milliseconds(start, end) for start, end in marks]
    return [sorted(times[i :: len(functions)]) for i in range(len(functions))]


def _summary(times: list[float]) -> Time:
    return Time(statistics.median(times), times[len(times) // 10], times[-1 - len(times) // 10], len(times))
