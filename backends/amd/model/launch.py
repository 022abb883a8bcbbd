"""Modelled time of a whole launch of any kernel: rounds of workgroups, a few of them replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwave.backends.amd.arguments import Argument
from warpwave.backends.amd.model.cu import Memory, chip_of
from warpwave.backends.amd.model.rates import CALIBRATED
from warpwave.tiles import disk_cache
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.runtime.backend import Measurement

if TYPE_CHECKING:
    from warpwave.backends.amd.program import AmdProgram

# What L2 and the Infinity Cache serve is not known of any kernel; products of 2048 to 16384 get about this much.
L2, INFINITY_CACHE = 0.8, 0.9
_BACKEND = Path(__file__).parents[1]


def launch_time(program: AmdProgram, arguments: Mapping[str, Argument]) -> Measurement:
    """What a launch would take on the target's fastest chip; outputs of the blocks that are executed are written."""
    blocks = program.packer.geometry(arguments).blocks
    chip = chip_of(program.target.name, None)
    if not blocks:
        raise UnsupportedError("a launch of no blocks takes no time")
    memory = Memory(L2, INFINITY_CACHE, loaded=blocks >= chip.cus)
    how: dict[str, Any] = {"dtype": _matrix_dtype(program.kernel), "memory": memory, "chip": chip.name}
    first = program.time(arguments, **how)
    together = len(first.recorded.groups) * chip.cus
    rounds = -(-blocks // together)
    times = [first.seconds]
    for number in _sampled(rounds)[1:]:
        groups = [g + number * together for g in first.recorded.groups if g + number * together < blocks]
        times.append(program.time(arguments, groups=groups, **how).seconds)
    return Measurement(CALIBRATED.launch * 1e-6 + rounds * sum(times) / len(times), f"modelled on {chip.name}")


def _sampled(rounds: int) -> Sequence[int]:
    """Rounds that stand for all: blocks may have unequal work."""
    return sorted({0, rounds // 2, rounds - 1}) if rounds > 1 else [0]


def _matrix_dtype(kernel: Kernel) -> str:
    """The operands whose matrix instructions set the clock; empty for none."""
    return next((op.operands[1].tile.dtype.name for op in walk(kernel.body) if op.name == "mma"), "")


@cache
def version() -> str:
    """Differs with every source file that modelled times depend on."""
    return disk_cache.digest_of([*_BACKEND.glob("model/*.py"), _BACKEND / "rates.py", _BACKEND / "arch.py"])
