"""Modelled time of a whole launch of recorded code: a compute unit's clocks at the grid's hit rates, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from warpwave.backends.amd.arch import Chip
from warpwave.backends.amd.grid_order import GridOrder
from warpwave.backends.amd.model.cu import Memory, chip_of, sustained_clock
from warpwave.backends.amd.model.grid import MFLOP_PER_TFLOP_US, Launch, Phase, TileKernel
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.backends.amd.model.timing import Recorded, Timing
from warpwave.backends.amd.model.traffic import TileGemm
from warpwave.tiles.errors import UnsupportedError


@dataclass(frozen=True)
class WholeLaunch:
    """A product of any size by code of which a shallow one was recorded.

    `recorded` holds the workgroups that share a compute unit, of a product with the same tiles that is `depth` deep;
    `iterations_per_k` is how many more times its hottest loop runs for each further element of depth.
    The clock is what the chip keeps up under so many matrix instructions with operands of `dtype`.
    """

    recorded: Recorded
    depth: int
    iterations_per_k: float
    problem: TileGemm
    dtype: str
    chip_name: str | None = None
    order: GridOrder | None = None

    @property
    def chip(self) -> Chip:
        """The chip; the target's fastest if none was named."""
        return chip_of(self.recorded.target.name, self.chip_name)

    @cached_property
    def grid(self) -> Launch:
        """The traffic of the whole grid."""
        resident = len(self.recorded.groups)
        return Launch(
            self.problem,
            TileKernel("multistage", 1, most_resident=resident),
            self.recorded.target,
            self.chip,
            self.order,
        )

    @cached_property
    def microseconds(self) -> float:
        """From launch to the end of the last round."""
        return CALIBRATED.launch + sum(phase.rounds * self._round(phase) for phase in self.grid.phases)

    @property
    def tflops(self) -> float:
        """Of the product's own operations."""
        return self.problem.flops / self.microseconds / MFLOP_PER_TFLOP_US

    @cached_property
    def matrix_busy(self) -> float:
        """Share of the loop in which the matrix cores work, in the first round."""
        loop = self._timed(self.grid.phases[0]).loop
        return loop.matrix_busy if loop else 0.0

    def _round(self, phase: Phase) -> float:
        timing = self._timed(phase)
        return timing.extrapolated(self._iterations(timing)) / (timing.clock * 1e3)

    def _timed(self, phase: Phase) -> Timing:
        """A replay at the clock that the chip keeps up with the matrix cores as busy as in the whole, deep product."""
        memory = Memory(1 - phase.past_l2 / phase.asked, 1 - phase.past_cache / phase.past_l2)
        full = self.recorded.timed(self.chip.name, clock=sustained_clock(self.chip, self.dtype), memory=memory)
        return self.recorded.timed(self.chip.name, clock=self._clock(full, phase), memory=memory)

    def _clock(self, timing: Timing, phase: Phase) -> float:
        iterations = self._iterations(timing)
        loop, total = timing.loop, timing.extrapolated(iterations)
        assert loop is not None
        working = min(1.0, phase.active / self.chip.cus)  # compute units without work draw little power
        return sustained_clock(self.chip, self.dtype, working * iterations * loop.clocks * loop.matrix_busy / total)

    def _iterations(self, timing: Timing) -> int:
        """Of the loop, in the deep product; steps before and after the loop are as many as in the recorded one."""
        if timing.loop is None:
            raise UnsupportedError("the recorded code has no loop, so nothing says what a deeper product takes")
        steps = self.problem.k // self.problem.splits
        return timing.loop.iterations + round((steps - self.depth) * self.iterations_per_k)
