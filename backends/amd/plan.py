"""The choices made for one kernel and target, as data: waves, how they split tiles, MFMA shapes, pipeline depth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwave.backends.amd.arch import Mfma, Target
from warpwave.backends.amd.schedule.form import Schedule
from warpwave.backends.amd.split_depth import WANTED_STAGES, is_along_rows
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, Op
from warpwave.tiles.simt.assign import families
from warpwave.tiles.simt.products import (
    Families,
    asked_split,
    constraint,
    is_rowwise,
    is_tile_grid,
    products,
    register_tiles,
)
from warpwave.tiles.types import TileType

OPTIONS = ("waves", "stages", "schedule", "pin", "producers")
MULTISTAGE, PING_PONG, INTERLEAVE = "multistage", "ping-pong", "interleave"
PRODUCER_CONSUMER = "producer-consumer"
BY_GENERATOR = (PING_PONG, INTERLEAVE, PRODUCER_CONSUMER)  # for products in pipelined loops only
SCHEDULES = ("auto", MULTISTAGE, *BY_GENERATOR)
MOST_HELD = 160  # registers a lane for accumulators and register operands; the rest is for everything else


@dataclass(frozen=True)
class MmaPlan:
    """One mma op: its instruction, and how waves split the accumulator's rows and columns."""

    mfma: Mfma
    over: tuple[int, int]


@dataclass
class Plan:
    """All choices, with a reason for each (`explain`).

    `schedule`: how loads and products of pipelines are placed in time (SCHEDULES).
    `asked_stages`: whether the user chose the stages, which are else fewer for a long body in turns.
    `producers`: waves beside the others that only load.
    `pin`: registers that the user gives to tiles of an interleave, as "NAME=a0-a63, ...".
    `schedules`: those that were generated for its loops, once they are lowered.
    `windowed`: blocks visit the last two grid dimensions in windows; else each XCD gets one run of blocks.
    """

    waves: int
    stages: int
    windowed: bool = False
    schedule: str = MULTISTAGE
    pin: str = ""
    producers: int = 0
    asked_stages: bool = False
    mmas: dict[Op, MmaPlan] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)

    @property
    def threads(self) -> int:
        """Work-items of a workgroup."""
        return 64 * self.all_waves

    @property
    def all_waves(self) -> int:
        """Waves of a workgroup, with those that only load."""
        return self.waves + self.producers


def make_plan(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Plan:
    """Choose waves, wave grids, matrix instructions and pipeline depth."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise UnsupportedError(
            f"unknown option {unknown[0]!r} for {target.name}", loc=kernel.loc, hint=f"options are {', '.join(OPTIONS)}"
        )
    plan = Plan(0, options.get("stages") or WANTED_STAGES, schedule=_schedule(kernel, options))
    plan.pin = _pins(kernel, options, plan.schedule)
    plan.producers = _producers(kernel, options, plan.schedule)
    plan.asked_stages = bool(options.get("stages"))
    plan.waves = _choose_waves(kernel, options, plan)
    if plan.all_waves > target.max_waves_per_group:
        message = f"{plan.all_waves} waves, a workgroup of {target.name} has at most {target.max_waves_per_group}"
        raise UnsupportedError(message, loc=kernel.loc, hint="pass fewer waves=, or split over= into fewer parts")
    shared = families(kernel)
    for op in products(kernel):
        plan.mmas[op] = _plan_mma(kernel, op, target, plan, shared)
    plan.windowed = is_tile_grid(kernel, shared)
    plan.reasons.append(
        "blocks in windows over the tile grid, a run of them on each XCD"
        if plan.windowed
        else "one run of consecutive blocks on each XCD"
    )
    return plan


def _schedule(kernel: Kernel, options: Mapping[str, Any]) -> str:
    asked = str(options.get("schedule") or "auto")
    if asked not in SCHEDULES:
        hint = f"schedules are {', '.join(SCHEDULES)}"
        raise UnsupportedError(f"unknown schedule {asked!r}", loc=kernel.loc, hint=hint)
    return MULTISTAGE if asked == "auto" else asked  # `choosing` has settled it where there is a choice


def _pins(kernel: Kernel, options: Mapping[str, Any], schedule: str) -> str:
    if options.get("pin") and schedule != INTERLEAVE:
        hint = f"pass schedule={INTERLEAVE!r} as well, or drop pin="
        raise UnsupportedError(f"schedule {schedule!r} leaves registers to the compiler", loc=kernel.loc, hint=hint)
    return str(options.get("pin") or "")


def _producers(kernel: Kernel, options: Mapping[str, Any], schedule: str) -> int:
    asked = options.get("producers")
    if schedule == PRODUCER_CONSUMER:
        if asked is not None and int(asked) < 1:
            raise UnsupportedError(f"{asked} producers", loc=kernel.loc, hint="pass 1 or more, or drop producers=")
        return int(asked or 4)
    if asked is not None:
        hint = f"pass schedule={PRODUCER_CONSUMER!r} as well, or drop producers="
        raise UnsupportedError(f"schedule {schedule!r} has no producers", loc=kernel.loc, hint=hint)
    return 0


def _elements(tile: TileType) -> int:
    return tile.nbytes // tile.dtype.nbytes


def _choose_waves(kernel: Kernel, options: Mapping[str, Any], plan: Plan) -> int:
    if options.get("waves"):
        plan.reasons.append(f"{options['waves']} waves: asked for")
        return int(options["waves"])
    found = products(kernel)
    if found and plan.schedule == PING_PONG:
        plan.reasons.append("8 waves: two groups of four, one wave of each on a SIMD")
        return 8
    if found and plan.schedule == PRODUCER_CONSUMER:
        plan.reasons.append(f"8 waves that multiply and {plan.producers} that load")
        return 8
    if found and plan.schedule == INTERLEAVE:
        plan.reasons.append("4 waves: one on each SIMD, with all of its registers")
        return 4
    if found:
        asked = asked_split(kernel, found, families(kernel))
        if asked is not None:
            plan.reasons.append(f"{math.prod(asked)} waves: over={asked}")
            return math.prod(asked)
        largest = max(_elements(op.result.tile) for op in found)
        held = _held_registers(found)
        waves = 8 if held > MOST_HELD * 4 or largest > 128 * 128 else 4 if largest > 32 * 32 else 1
        plan.reasons.append(f"{waves} waves: products hold {held // waves} registers a lane at once")
        return waves
    largest = max((_elements(t) for t in register_tiles(kernel)), default=1)
    waves = min(8, max(1, 1 << max(0, (largest // 1024).bit_length() - 1)))
    plan.reasons.append(f"{waves} waves: the largest register tile has {largest} elements, about 16 a lane")
    return waves


def _held_registers(found: list[Op]) -> int:
    """Registers a lane that accumulators and register operands of different products need, if one wave had all."""
    tiles = {op.result.tile for op in found}
    tiles |= {op.operands[1].tile for op in found if op.operands[1].tile.space == "register"}
    return sum(tile.nbytes // 4 for tile in tiles) // 64


def _plan_mma(kernel: Kernel, op: Op, target: Target, plan: Plan, shared: Families) -> MmaPlan:
    a, b, acc = op.operands[1].tile, op.operands[2].tile, op.result.tile
    rows, cols = acc.shape
    fits = _instructions(target, b.dtype.name, a.dtype.name, acc.dtype.name)
    if not fits and a.dtype.is_fp8 and b.dtype.is_fp8:
        fits = _instructions(target, "f16", "f16", acc.dtype.name)
        plan.reasons.append(
            f"{op.loc}: {a.dtype} and {b.dtype} as f16, which holds them exactly: no instruction has them"
        )
    if not fits:
        raise _no_instruction(op, target)
    over = _over(kernel, op, plan.waves, rows, shared)
    size = _block_size(kernel, op, plan, over, rows, cols)
    depth = a.shape[0 if op.attrs["transpose_a"] else 1]
    of_size = [m for m in fits if m.m == size]
    fastest = max(of_size, key=lambda m: (m.k <= _ceil_to(depth, 16), m.flops_per_clock, m.k))
    plan.reasons.append(f"{op.loc}: {fastest.mnemonic}, waves {over[0]} x {over[1]} over {rows} x {cols}")
    return MmaPlan(fastest, over)


def _block_size(kernel: Kernel, op: Op, plan: Plan, over: tuple[int, int], rows: int, cols: int) -> int:
    """16 for a single product in turns: 1.22 times faster than 32 on MI355X (HipKittens' ping-pong measurements).

    Transposing reads of 16 rows take registers for twice as many addresses, which only an interleave has.
    """
    in_turns = plan.schedule in BY_GENERATOR and len(products(kernel)) == 1
    in_turns = in_turns and (plan.schedule == INTERLEAVE or is_along_rows(op))
    return 32 if not in_turns and _covers(rows, over[0], 32) and _covers(cols, over[1], 32) else 16


def _instructions(target: Target, first: str, second: str, acc: str) -> list[Mfma]:
    return [m for m in target.mfma if (m.a, m.b, m.acc) == (first, second, acc)]


def _ceil_to(x: int, step: int) -> int:
    return -(-x // step) * step


def _covers(extent: int, waves: int, size: int) -> bool:
    """Whether blocks of `size` give each wave the same work without more padding than blocks of 16 would."""
    return extent % size == 0 and extent // size >= waves


def _over(kernel: Kernel, op: Op, waves: int, rows: int, shared: Families) -> tuple[int, int]:
    asked = constraint(kernel, op, shared)
    if asked is not None:
        if asked[0] * asked[1] != waves:
            raise UnsupportedError(
                f"over={asked} asks for {asked[0] * asked[1]} waves, the kernel has {waves}",
                loc=op.loc,
                hint=f"pass waves={asked[0] * asked[1]} to compile(), or drop over=",
            )
        return asked
    if is_rowwise(kernel, op, shared):
        split = min(waves, 1 << max(0, (rows // 16).bit_length() - 1))
        return split, waves // split
    if waves & (waves - 1):
        return _squarest(waves, rows, op.result.tile.shape[1])
    split = 1 << ((waves.bit_length() - 1) // 2)
    return split, waves // split


def _squarest(waves: int, rows: int, cols: int) -> tuple[int, int]:
    """The split of so many waves, no power of two, that leaves each the squarest share."""
    splits = [(n, waves // n) for n in range(1, waves + 1) if waves % n == 0]
    return min(splits, key=lambda s: abs(math.log2(rows / s[0]) - math.log2(cols / s[1])))


def _no_instruction(op: Op, target: Target) -> UnsupportedError:
    a, b = op.operands[1].tile.dtype, op.operands[2].tile.dtype
    have = sorted({f"{m.b} x {m.a}" for m in target.mfma})
    return UnsupportedError(
        f"{target.name} has no matrix instruction for {a} x {b}",
        loc=op.loc,
        hint=f"it has {', '.join(have)}",
    )
