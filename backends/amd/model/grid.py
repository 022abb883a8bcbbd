"""Modelled time of a tiled product on a chip: rounds of workgroups, each step of k as long as its slowest part.

A step of a workgroup takes the longest of its own work on the compute unit (matrix instructions, loads through the
vector cache, a fixed part) and of what its loads take to arrive, divided over the stages that are in flight. Then
the traffic of all compute units past L2 bounds it, softly (`Rates.overlap`). `docs/grid_model.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from warpwave.backends.amd.arch import Chip, Target
from warpwave.backends.amd.grid_order import GridOrder, choose_order
from warpwave.backends.amd.model.footprint import Rounds, rounds_of
from warpwave.backends.amd.model.traffic import TileGemm, Tiles, windowed
from warpwave.backends.amd.rates import CHIP_RATES, CU_RATES

SAMPLED_ROUNDS = 48  # of a longer launch, only so many rounds are looked at: those after the first few are alike
MFLOP_PER_TFLOP_US = 1e6


@dataclass(frozen=True)
class Work:
    """What a step costs a compute unit: microseconds fixed, and factors on the ideal matrix and load time."""

    fixed: float
    matrix: float
    loads: float


@dataclass(frozen=True)
class Rates:
    """What no published micro-figure says, so that it is calibrated: on whole-kernel times of one MI355X.

    `work` is by family of schedules. Times are microseconds. `heat` lengthens matrix work as more compute units
    are busy (the clock falls); `shared` is the exponent with which work grows with workgroups on a unit.
    """

    work: Mapping[str, Work]
    launch: float
    round: float
    heat: float
    shared: float
    hbm_efficiency: float
    stored: float
    overlap: float
    narrow_lds: float
    streaming: float


@dataclass(frozen=True)
class TileKernel:
    """How a kernel computes its tiles: family of schedules, stages in LDS, and what the tables know it by.

    `narrow_lds` says that LDS tiles are 16 rows of 64; `streaming`, that b is loaded past the caches' usual policy.
    `slower` multiplies the work on the compute unit; `overlapped` is whether transfers run under the work at all.
    """

    family: str
    stages: int
    most_resident: int = 2
    narrow_lds: bool = False
    streaming: bool = False
    slower: float = 1.0
    overlapped: bool = True

    def resident(self, problem: TileGemm, target: Target) -> int:
        """Workgroups that one compute unit holds."""
        rows = problem.block_m + problem.block_n
        return max(
            1, min(self.most_resident, target.groups_per_cu(self.stages * rows * problem.step * problem.itemsize))
        )


@dataclass(frozen=True)
class Phase:
    """Rounds that are alike, averaged: how many, workgroups in each, and bytes a step by level."""

    rounds: float
    active: float
    asked: float
    past_l2: float
    past_cache: float


@dataclass(frozen=True)
class Launch:
    """One launch of a tiled product on a chip: its traffic, from which any `Rates` give its time."""

    problem: TileGemm
    kernel: TileKernel
    target: Target
    chip: Chip
    order: GridOrder | None = None
    tiles: Tiles | None = field(default=None, repr=False)

    @cached_property
    def rounds(self) -> Rounds:
        """Traffic by round; of a long launch only the first rounds."""
        per_xcd = self.chip.cus_per_xcd * self.resident
        limit = SAMPLED_ROUNDS * per_xcd * self.chip.xcds if self.problem.splits == 1 else None
        order = self.order or choose_order(self.problem.rows, self.problem.cols, self.chip.xcds, self.chip.cus_per_xcd)
        tiles = self.tiles or windowed(self.problem, order, limit)
        return rounds_of(self.problem, tiles, self.chip.xcds, per_xcd, self.target.infinity_cache_bytes)

    @property
    def resident(self) -> int:
        """Workgroups on one compute unit."""
        return self.kernel.resident(self.problem, self.target)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Full rounds and the last, incomplete one."""
        capacity = self.chip.cus * self.resident
        full, rest = divmod(self.problem.workgroups, capacity)
        seen, found = self.rounds, []
        if full:
            found.append(self._mean(seen.only(seen.active == capacity), full))
        if rest:
            last = seen.only(seen.active == rest)
            found.append(self._mean(last, 1) if last.active.size else self._scaled(found[0], rest / capacity))
        return tuple(found)

    def _mean(self, rounds: Rounds, count: int) -> Phase:
        steps = self.problem.steps
        asked, past_l2, past_cache = (
            float(np.mean(x)) / steps for x in (rounds.asked, rounds.past_l2, rounds.past_cache)
        )
        return Phase(count, float(np.mean(rounds.active)), asked, past_l2, past_cache)

    @staticmethod
    def _scaled(full: Phase, share: float) -> Phase:
        return Phase(1, full.active * share, full.asked * share, full.past_l2 * share, full.past_cache * share)

    def microseconds(self, rates: Rates) -> float:
        """From launch to the last store."""
        body = sum(p.rounds * (self.problem.steps * self._step(p, rates) + rates.round) for p in self.phases)
        return rates.launch + body + self._epilogue(rates)

    def tflops(self, rates: Rates) -> float:
        """Of the product's own operations."""
        return self.problem.flops / self.microseconds(rates) / MFLOP_PER_TFLOP_US

    def _epilogue(self, rates: Rates) -> float:
        elements, bandwidth = self.problem.m * self.problem.n, self._hbm(rates)
        if self.problem.splits == 1:
            return rates.stored * elements * self.problem.itemsize / bandwidth
        partials = 2 * self.problem.splits * 4  # each split's f32 sums are written and read again
        return elements * (partials + self.problem.itemsize) / bandwidth

    def _hbm(self, rates: Rates) -> float:
        """Bytes a microsecond."""
        efficiency = rates.hbm_efficiency * (rates.streaming if self.kernel.streaming else 1)
        return self.chip.bandwidth * min(1.0, efficiency) * 1e6

    def _step(self, phase: Phase, rates: Rates) -> float:
        chip = CHIP_RATES[self.chip.name]
        work = self._work(phase, rates)
        fabric, hbm = phase.past_l2 / (chip.infinity_cache_tb * 1e6), phase.past_cache / self._hbm(rates)
        if not self.kernel.overlapped:
            return work + fabric + hbm
        transfer = max(fabric, hbm)
        missed = phase.past_cache / phase.past_l2
        latency = (chip.infinity_cache_ns + (chip.hbm_ns - chip.infinity_cache_ns) * missed) / 1e3
        core = max(work, (latency + transfer) / max(1, self.kernel.stages - 1))
        return _blended(core, transfer, rates.overlap)

    def _work(self, phase: Phase, rates: Rates) -> float:
        """Microseconds that the workgroups of a compute unit need for a step, if their data are there."""
        p, factors, clocks = self.problem, rates.work[self.kernel.family], self.chip.clock * 1e3
        rate = max(m.flops_per_clock for m in self.target.mfma if m.a == "bf16") * 2 / p.itemsize
        matrix = 2 * p.block_m * p.block_n * p.step / rate / clocks
        fill = CU_RATES[self.target.name].l2_bytes_per_xcd * self.chip.xcds / self.chip.cus
        loads = (p.block_m + p.block_n) * p.step * p.itemsize / fill / clocks
        busy, resident = min(1.0, phase.active / self.chip.cus), -(-phase.active // self.chip.cus)
        narrow = rates.narrow_lds if self.kernel.narrow_lds else 1.0
        once = factors.fixed + factors.matrix * matrix * (1 + rates.heat * busy) + factors.loads * loads * narrow
        return float(self.kernel.slower * once * resident**rates.shared)


def _blended(a: float, b: float, exponent: float) -> float:
    """A soft maximum: the p-norm."""
    larger = max(a, b)
    return float(larger * ((a / larger) ** exponent + (b / larger) ** exponent) ** (1 / exponent))
