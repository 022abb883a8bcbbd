"""Modelled time of workgroups on one compute unit: recorded steps, replayed against the rates of a chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwave.backends.amd import sim
from warpwave.backends.amd.arch import TARGETS, Chip, Target
from warpwave.backends.amd.model.cu import Memory, chip_of, replay_rates, sustained_clock
from warpwave.backends.amd.model.loops import Loop, hottest_loop
from warpwave.backends.amd.rates import SLOT
from warpwave.backends.amd.sim import _timing
from warpwave.tiles.errors import UnsupportedError

_STEP = np.dtype([("inst", "<u4"), ("lds_clocks", "<u4"), ("lines", "<u4"), ("bytes", "<u4")])
STALLS: tuple[str, ...] = tuple(_timing.stall_names())


@dataclass(frozen=True)
class Recorded:
    """The steps of the workgroups that share a compute unit; `timed` replays them as often as asked."""

    report: sim.Report
    target: Target
    facts: Sequence[dict[str, Any]] = field(repr=False)

    @property
    def groups(self) -> tuple[int, ...]:
        """Linear workgroups, in the order in which they came to the compute unit."""
        return tuple(group for group, _ in self.report.recordings)

    @cached_property
    def waves(self) -> list[tuple[int, int, bytes]]:
        """(workgroup, SIMD, steps) of each wave: waves go round the SIMDs in turn."""
        flat = [(place, steps) for place, (_, waves) in enumerate(self.report.recordings) for steps in waves]
        return [(place, number % self.target.simds_per_cu, steps) for number, (place, steps) in enumerate(flat)]

    def steps(self, wave: int) -> NDArray[Any]:
        """What a wave executed: instruction, LDS clocks, lines, bytes."""
        return np.frombuffer(self.waves[wave][2], _STEP)

    def timed(
        self,
        chip: str | None = None,
        *,
        clock: float | None = None,
        dtype: str = "",
        memory: Memory | None = None,
        **changed: Any,
    ) -> Timing:
        """Replay on a chip (the target's fastest when not named) at `clock` GHz.

        Without a clock it is the chip's peak, or with `dtype` what the chip keeps up under matrix instructions with
        such operands, as busy as this replay finds the cores. `memory` says how often L2 and the Infinity Cache
        hit. `changed` overrides rates by name, for what-if questions: see `model.cu.replay_rates`.
        """
        where, memory = chip_of(self.target.name, chip), memory or Memory()
        if clock or not dtype:
            return self._replayed(where, clock or where.clock, memory, changed)
        full = self._replayed(where, sustained_clock(where, dtype), memory, changed)
        settled = sustained_clock(where, dtype, full.utilisation["matrix"])
        return self._replayed(where, settled, memory, changed)

    def _replayed(self, chip: Chip, clock: float, memory: Memory, changed: dict[str, Any]) -> Timing:
        rates = replay_rates(self.target, chip, clock, memory)
        unknown = changed.keys() - rates.keys()
        if unknown:
            raise UnsupportedError(f"there is no rate {min(unknown)!r}", hint=f"the rates are {', '.join(rates)}")
        return Timing(self, chip, clock, _timing.replay(list(self.facts), self.waves, rates | changed))


@dataclass(frozen=True)
class Timing:
    """One replay. Clocks are of the chip's core clock; all of it is modelled, nothing is measured."""

    recorded: Recorded
    chip: Chip
    clock: float
    _raw: dict[str, Any] = field(repr=False)

    @property
    def clocks(self) -> int:
        """From the start of the first wave to the end of the last."""
        return int(self._raw["clocks"])

    @property
    def seconds(self) -> float:
        """The same as time."""
        return self.clocks / (self.clock * 1e9)

    def tflops(self, flops: float) -> float:
        """Rate of the whole chip if every compute unit does what this one does, of which `flops` is the work."""
        return flops * self.chip.cus / self.seconds / 1e12

    @property
    def issued(self) -> dict[str, int]:
        """Instructions by port."""
        return dict(self._raw["issued"])

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """Which share of the time each part was busy."""
        raw, simds = self._raw, self.recorded.target.simds_per_cu
        total = max(self.clocks, 1)
        slots = sum(count for port, count in raw["issued"].items() if port != "control")
        busy = {
            "matrix": raw["matrix_busy"] / simds,
            "vector": raw["vector_busy"] / simds,
            "scalar": raw["issued"]["scalar"] * SLOT / simds,
            "issue": slots * SLOT / simds,
            "lds banks": raw["lds_busy"],
            "lds return": raw["lds_port_busy"] / 2,
            "vector memory": raw["memory_busy"],
        }
        return {name: clocks / total for name, clocks in busy.items()}

    @property
    def bytes_per_clock(self) -> float:
        """Bytes that vector memory instructions moved, per clock."""
        return float(self._raw["memory_bytes"]) / max(self.clocks, 1)

    def issue(self, wave: int) -> NDArray[np.uint64]:
        """The clock at which each step of a wave was issued."""
        return np.frombuffer(self._raw["issue"][wave], np.uint64)

    @cached_property
    def _stalls(self) -> NDArray[np.uint64]:
        return np.frombuffer(self._raw["stalls"], np.uint64).reshape(-1, len(STALLS))

    def stalls(self) -> dict[str, int]:
        """Clocks that waves waited, by reason, most first; summed over the waves."""
        totals = dict(zip(STALLS, self._stalls.sum(axis=0).tolist(), strict=True))
        return dict(sorted(((k, v) for k, v in totals.items() if v), key=lambda item: -item[1]))

    def stalls_by_line(self) -> dict[str, dict[str, int]]:
        """The same by source line (by instruction text where the code has no line table), worst first."""
        lines: dict[str, NDArray[np.uint64]] = {}
        for facts, stalled in zip(self.recorded.facts, self._stalls, strict=True):
            if stalled.any():
                where = facts["source"] or facts["text"]
                lines[where] = lines.get(where, np.zeros(len(STALLS), np.uint64)) + stalled
        ordered = sorted(lines.items(), key=lambda item: -int(item[1].sum()))
        return {line: {s: int(c) for s, c in zip(STALLS, row, strict=True) if c} for line, row in ordered}

    @cached_property
    def loop(self) -> Loop | None:
        """The hottest loop and its steady state; None for code without a loop."""
        return hottest_loop(self)

    def extrapolated(self, iterations: int) -> float:
        """Clocks of a run with this many iterations of the hottest loop, prologue and epilogue as in this one."""
        if self.loop is None:
            raise UnsupportedError("the kernel has no loop to extrapolate")
        return self.clocks + (iterations - self.loop.iterations) * self.loop.clocks

    def __str__(self) -> str:
        """A table of the main figures."""
        return "\n".join(_lines(self))


def _lines(t: Timing) -> list[str]:
    recorded = t.recorded
    waves = f"{len(recorded.waves)} waves of {len(recorded.groups)} workgroups on one compute unit"
    lines = [f"{recorded.report.kernel} on {t.chip.name} at {t.clock:g} GHz, {waves} (modelled)"]
    lines.append(f"  clocks              {t.clocks:,} = {t.seconds * 1e6:.2f} us")
    if t.loop:
        lines.append(f"  hottest loop        {t.loop.clocks:,.1f} clocks an iteration, {t.loop.iterations} iterations")
    lines += [f"  {name:<20}{share:.1%} busy" for name, share in t.utilisation.items() if share]
    waited = sum(t.stalls().values())
    lines += [f"  waits: {name:<13}{clocks / waited:.1%}" for name, clocks in t.stalls().items()]
    return lines


def record(
    program: sim.Program,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    *,
    groups: Sequence[int] | None = None,
    **how: Any,
) -> Recorded:
    """Execute the workgroups that share a compute unit, and only these.

    `groups` are linear workgroup numbers; left out, as many as fit one compute unit, spread as the dispatcher
    spreads them. `how` goes to `sim.Program.launch`.
    """
    return record_with(lambda chosen: program.launch(kernel, grid, block, args, record=chosen, **how), program, groups)


def record_with(
    run: Callable[[Sequence[int]], sim.Report | None], program: sim.Program, groups: Sequence[int] | None
) -> Recorded:
    """The same with a function that launches `program` and records the workgroups it is given."""
    target = TARGETS[program.target]
    chosen = [0] if groups is None else list(groups)
    report = run(chosen)
    if report is None:
        raise UnsupportedError("a launch of no workgroups takes no time on a compute unit")
    shared = sharing(report, target) if groups is None else chosen
    if shared != chosen:
        report = run(shared)
        assert report is not None
    return Recorded(report, target, program.facts)


def sharing(report: sim.Report, target: Target) -> list[int]:
    """Workgroups that meet on the first compute unit: as many as registers and LDS admit, a chip's CUs apart."""
    total = report.grid[0] * report.grid[1] * report.grid[2]
    fit = max(1, report.occupancy * target.simds_per_cu // report.waves_per_group)
    cus = target.chips[0].cus
    resident = min(fit, -(-total // cus))
    return [place * cus for place in range(resident)]
