"""A replay as a trace for chrome://tracing and ui.perfetto.dev: a track for each wave, one for each matrix core."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpwave.backends.amd.rates import SLOT

if TYPE_CHECKING:
    from warpwave.backends.amd.model.timing import Timing

_MATRIX_TRACKS = 1000  # track numbers of the matrix cores begin here


def chrome_trace(timing: Timing, start: int = 0, stop: int | None = None) -> dict[str, Any]:
    """The trace between two clocks as plain data. A viewer's nanosecond is a clock of the compute unit."""
    stop = timing.clocks if stop is None else stop
    events = [*_names(timing), *_waves(timing, start, stop)]
    about = {"chip": timing.chip.name, "GHz": timing.clock, "kernel": timing.recorded.report.kernel, "modelled": True}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


def write_chrome_trace(timing: Timing, path: str | Path, start: int = 0, stop: int | None = None) -> None:
    """The same into a file."""
    Path(path).write_text(json.dumps(chrome_trace(timing, start, stop)))


def _names(timing: Timing) -> Iterator[dict[str, Any]]:
    waves = timing.recorded.waves
    for number, (group, simd, _) in enumerate(waves):
        yield _name(number, f"wave {number} (group {timing.recorded.groups[group]}, SIMD {simd})")
    for simd in sorted({simd for _, simd, _ in waves}):
        yield _name(_MATRIX_TRACKS + simd, f"matrix core of SIMD {simd}")


def _name(track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": track, "name": "thread_name", "args": {"name": name}}


def _waves(timing: Timing, start: int, stop: int) -> Iterator[dict[str, Any]]:
    facts = timing.recorded.facts
    for number, (_, simd, _) in enumerate(timing.recorded.waves):
        issue, inst = timing.issue(number).astype(np.int64), timing.recorded.steps(number)["inst"]
        until = np.append(issue[1:], issue[-1:] + SLOT)
        for step in np.flatnonzero((issue >= start) & (issue < stop)):
            fact, at = facts[inst[step]], int(issue[step])
            yield _event(number, fact, at, int(until[step]) - at)
            if fact["passes"]:
                yield _event(_MATRIX_TRACKS + simd, fact, at, SLOT * fact["passes"])


def _event(track: int, fact: dict[str, Any], at: int, clocks: int) -> dict[str, Any]:
    args = {"text": fact["text"], "source": fact["source"]}
    return {"ph": "X", "pid": 0, "tid": track, "name": fact["name"], "ts": at / 1e3, "dur": clocks / 1e3, "args": args}
