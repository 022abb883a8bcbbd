"""The hottest loop of a replay: iterations, and clocks of one in the steady state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpwave.backends.amd.rates import SLOT

if TYPE_CHECKING:
    from warpwave.backends.amd.model.timing import Timing


@dataclass(frozen=True)
class Loop:
    """A loop by its backward branch. `clocks` is the mean over the middle half of its iterations."""

    branch: int  # index of the instruction
    iterations: int
    clocks: float
    matrix_busy: float  # share of these clocks in which the matrix cores worked


def hottest_loop(timing: Timing) -> Loop | None:
    """The innermost backward branch in which the first wave spends most of its time."""
    recorded = timing.recorded
    inst, issue = recorded.steps(0)["inst"].astype(np.int64), timing.issue(0).astype(np.int64)
    back = np.flatnonzero(np.diff(inst) < 0)
    if not len(back):
        return None
    branches, counts = np.unique(inst[back], return_counts=True)
    spent = [_span(issue, inst, branch) for branch in branches]
    best = int(np.argmax(spent))
    branch, taken = int(branches[best]), int(counts[best])
    passes = np.flatnonzero(inst == branch)
    first, last = _middle(len(passes))
    begin, end = int(issue[passes[first]]), int(issue[passes[last]])
    clocks = (end - begin) / max(last - first, 1)
    return Loop(branch, taken + 1, clocks, _matrix_busy(timing, begin, end))


def _span(issue: NDArray[Any], inst: NDArray[Any], branch: int) -> int:
    """Clocks between the first and the last pass of a branch, less those in which an outer loop ran around it."""
    at = np.flatnonzero(inst == branch)
    if len(at) < 2:
        return 0
    length = np.diff(at)
    inner = length <= np.median(length) * 2
    return int(np.diff(issue[at])[inner].sum())


def _middle(passes: int) -> tuple[int, int]:
    """Half of the passes, without the ramps at both ends."""
    quarter = passes // 4
    return (quarter, passes - 1 - quarter) if passes - 1 - 2 * quarter > 0 else (0, passes - 1)


def _matrix_busy(timing: Timing, begin: int, end: int) -> float:
    """Share of the clocks between two times in which the matrix cores work."""
    recorded = timing.recorded
    clocks = SLOT * np.array([facts["passes"] for facts in recorded.facts])
    busy = 0
    for wave in range(len(recorded.waves)):
        first, last = np.searchsorted(timing.issue(wave), (begin, end))
        busy += int(clocks[recorded.steps(wave)["inst"][first:last]].sum())
    return busy / (recorded.target.simds_per_cu * max(end - begin, 1))
