"""The rates of one compute unit of a chip at a clock, in the form that the replay takes; the clock under load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.backends.amd.arch import TARGETS, WAVE, Chip, Target
from warpwave.backends.amd.rates import CHIP_RATES, CU_RATES, SLOT, SUSTAINED
from warpwave.tiles.errors import UnsupportedError


@dataclass(frozen=True)
class Memory:
    """Which fraction of the requests L2 serves, and which of those that it misses the Infinity Cache serves.

    `loaded`: all other compute units ask for as much, which leaves each less than its share of L2's peak.
    """

    l2: float = 1.0
    infinity_cache: float = 1.0
    loaded: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.l2 <= 1 and 0 <= self.infinity_cache <= 1):
            raise ValueError(f"hit rates are between 0 and 1, not {self.l2} and {self.infinity_cache}")

    @property
    def served(self) -> list[float]:
        """Fractions of all requests by L2, Infinity Cache and HBM."""
        missed = 1 - self.l2
        return [self.l2, missed * self.infinity_cache, missed * (1 - self.infinity_cache)]


def chip_of(target: str, name: str | None) -> Chip:
    """A chip of the target by name; the target's fastest when none is given."""
    chips = {chip.name: chip for chip in TARGETS[target].chips}
    if name is None:
        return max(chips.values(), key=lambda chip: (chip.clock, chip.bandwidth))
    if name not in chips:
        raise UnsupportedError(f"{name} is no {target} chip", hint=f"the model knows {', '.join(chips)}")
    return chips[name]


def sustained_clock(chip: Chip, dtype: str, busy: float = 1.0) -> float:
    """GHz that the chip keeps up when its matrix cores work `busy` of the time on operands of this dtype.

    The peak for a dtype of which nothing is published.
    """
    factor = CHIP_RATES[chip.name].sustained.get("fp8" if dtype.startswith(("fp8", "bf8")) else dtype)
    if factor is None:
        return chip.clock
    shares, clocks = zip(*SUSTAINED, strict=True)
    return min(chip.clock, factor * float(np.interp(busy, shares, clocks)))


def replay_rates(target: Target, chip: Chip, clock: float, memory: Memory) -> dict[str, Any]:
    """Everything that the replay asks for, in clocks of `clock` GHz."""
    cu, far = CU_RATES[target.name], CHIP_RATES[chip.name]
    latency = [float(cu.l2_latency), far.infinity_cache_ns * clock, far.hbm_ns * clock]
    share = cu.l2_bytes_per_xcd * chip.xcds / chip.cus
    beyond = (tb * 1e3 / clock / chip.cus for tb in (far.infinity_cache_tb, chip.bandwidth))
    return {
        "matrix_result": _matrix_results(target),
        "other_matrix_result": 2,  # f32 and f64 forms: passes + 2 (ISA guides, hazard tables)
        "trans": cu.transcendental,
        "barrier": cu.barrier,
        "branch": cu.taken_branch,
        "lds_latency": cu.lds_dword - 4 * WAVE // cu.lds_bus,
        "lds_in": cu.lds_bus,
        "lds_out": cu.lds_bus,
        "lds_queue": cu.lds_queue,
        "lds_fill": cu.lds_fill,
        "scalar_latency": cu.scalar_latency,
        "l1_latency": cu.l1_latency,
        "l1_dword": cu.l1_dword,
        "l1_wider": cu.l1_wider,
        "memory_queue": cu.memory_queue,
        "memory_flight": cu.memory_flight,
        "latency": latency,
        "bandwidth": [min(share, cu.loaded_bytes) if memory.loaded else share, *beyond],
        "served": memory.served,
    }


def _matrix_results(target: Target) -> list[int]:
    """Clocks from issue to use by passes: the wait states that the hardware asks for, and the slot after them."""
    states = target.hazards.matrix_to_vector
    return [SLOT * (states[passes] + 1) if passes in states else 0 for passes in range(17)]
