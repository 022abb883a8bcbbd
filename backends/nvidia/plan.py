"""The choices made for one kernel and target, as data: warps, how they split tiles, instructions, the schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from warpwave.backends.nvidia.arch import WARP, Target
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, Op, walk
from warpwave.tiles.simt.assign import families
from warpwave.tiles.simt.products import (
    Families,
    asked_split,
    constraint,
    is_rowwise,
    is_tile_grid,
    products,
    register_tiles,
    uneven_axes,
)
from warpwave.tiles.types import TileType

OPTIONS = ("warps", "stages", "schedule", "window", "overlap", "cluster", "turns", "lag", "blocks")
SCHEDULES = ("auto", "multistage", "producer")
WANTED_STAGES = 4
LONE_STAGES = 8  # of a producer's ring, if nothing but products keeps the computing warps busy
LAG = 2
TURNS_HELD = 128  # registers that products may hold where three warpgroups take turns, which costs a few
# Registers a thread for accumulators and register operands, by warps: the rest is for everything else.
MOST_HELD = {1: 160, 4: 160, 8: 200, 12: 140, 16: 100}
# Warps of a multiprocessor that hide each other's latency where memory is the limit, with 64 registers a thread; for
# tiles of so many elements a thread (bench/notes/h200.md).
RESIDENT_WARPS, MOST_ITEMS = 32, 32
WINDOW = 16  # rows of blocks that are walked column by column

Engine = Literal["wgmma", "mma", "fma"]


@dataclass(frozen=True)
class Product:
    """One mma op: which instruction computes it, and how warps split the accumulator's rows and columns."""

    engine: Engine
    over: tuple[int, int]


@dataclass
class Plan:
    """All choices, with a reason for each (`explain`).

    `warps` compute. `producer`: one warp more, in a warpgroup of its own, only moves tiles to shared memory;
    `idle`: that warpgroup exists, but has nothing to do.
    `persistent`: as many blocks as fit at once, each of which computes several of the kernel's.
    `folded`: a block's last coordinate says how long it takes; each gets long and short ones.
    `cluster`: blocks that share what they load.
    `overlap`: a chained product runs one iteration late, under the arithmetic of the next.
    `turns`: warpgroups with a late product issue products in turns.
    `single_stages`: of tiles that are loaded once for each block.
    `blocks`: of this kernel that share a multiprocessor.
    `lag`: steps that the second of two warpgroups stays behind the first.
    `resident`: blocks of a multiprocessor that the assembler shall leave registers for, if it need not spill for it.
    `windowed`: blocks visit the last two grid dimensions in windows, for the L2.
    """

    warps: int
    stages: int
    producer: bool = False
    idle: bool = False
    windowed: bool = False
    window: int = WINDOW
    overlap: bool = True
    turns: bool = False
    lag: int = 0
    single_stages: int = 1
    blocks: int = 1
    cluster: int = 1
    persistent: bool = False
    resident: int = 1
    folded: bool = False
    products: dict[Op, Product] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    @property
    def uses_wgmma(self) -> bool:
        """Whether products read shared memory asynchronously."""
        return any(product.engine == "wgmma" for product in self.products.values())

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARP * (self.warps + 4 * (self.producer or self.idle))


def make_plan(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> Plan:
    """Choose warps, warp grids and instructions; the schedule is settled when pipelines are known."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        hint = f"options are {', '.join(OPTIONS)}"
        raise UnsupportedError(f"unknown option {unknown[0]!r} for {target.full_name}", loc=kernel.loc, hint=hint)
    if options.get("schedule", "auto") not in SCHEDULES:
        hint = f"schedules are {', '.join(SCHEDULES)}"
        raise UnsupportedError(f"unknown schedule {options['schedule']!r}", loc=kernel.loc, hint=hint)
    _expect_possible(kernel, options)
    plan = Plan(0, options.get("stages") or WANTED_STAGES, window=options.get("window") or WINDOW)
    plan.overlap = bool(options.get("overlap", True))
    plan.lag = int(options.get("lag", LAG))
    plan.blocks = int(options.get("blocks", 1))
    shared, found = families(kernel), products(kernel)
    plan.warps = _choose_warps(kernel, found, options, plan)
    if plan.threads > target.max_threads:
        message = f"{plan.warps} warps, a block of {target.full_name} has at most {target.max_threads // WARP}"
        raise UnsupportedError(message, loc=kernel.loc, hint="pass fewer warps=, or split over= into fewer parts")
    few = plan.warps == 12 and _held_registers(found) <= TURNS_HELD * plan.warps
    plan.turns = bool(options.get("turns", few)) and _writes_no_shared_memory(kernel)
    grouped = "wgmma" in target.has and plan.warps % 4 == 0 and _suit_warpgroups(kernel, found, shared)
    for op in found:
        engine = _engine(op, target, grouped)
        over = _over(kernel, op, plan.warps, engine, shared)
        plan.products[op] = Product(engine, over)
        rows, cols = op.result.tile.shape
        plan.reasons.append(f"{op.loc}: {engine}, warps {over[0]} x {over[1]} over {rows} x {cols}")
    plan.windowed = is_tile_grid(kernel, shared)
    uneven = uneven_axes(kernel)
    plan.folded = grouped and not plan.windowed and uneven == {_last_axis(kernel)}
    plan.persistent = grouped and (plan.folded or uneven == set())
    if plan.windowed:
        plan.reasons.append("blocks in windows over the tile grid, which share what they read in the L2")
    if not found:
        _ask_for_residents(kernel, target, plan)
    return plan


def _expect_possible(kernel: Kernel, options: Mapping[str, Any]) -> None:
    for name, least in (("lag", 0), ("blocks", 1), ("window", 1), ("cluster", 1)):
        if int(options.get(name, least)) < least:
            hint = f"{name} is at least {least}"
            raise UnsupportedError(f"there is no {name}={options[name]}", loc=kernel.loc, hint=hint)


def _writes_no_shared_memory(kernel: Kernel) -> bool:
    """Whether in its loops warps never wait for each other's writes, as one that waits for its turn could not."""
    inside = [o for op in walk(kernel.body) if op.name == "for" for o in walk(op.regions[0])]
    products = [o for o in inside if o.name == "mma"]
    written = any(
        isinstance(v.type, TileType) and v.type.space == "shared" and o.name != "load"
        for o in inside
        for v in o.results
    )
    moved = any(o.operands[2].tile.space == "register" for o in products) or any(
        o.operands[1].tile.space == "register" and o.operands[1].tile.dtype.bits != 16 for o in products
    )
    return not written and not moved and not any(o.name == "barrier" or o.name.startswith("shared_") for o in inside)


def ring_stages(plan: Plan, options: Mapping[str, Any]) -> int:
    """Stages that a producer's ring should have: asked for, or enough to hide the memory's latency."""
    return options.get("stages") or (LONE_STAGES if len(plan.products) == 1 else plan.stages)


def _last_axis(kernel: Kernel) -> int:
    return next((len(op.results) - 1 for op in kernel.body.ops if op.name == "grid"), -1)


def _choose_warps(kernel: Kernel, found: list[Op], options: Mapping[str, Any], plan: Plan) -> int:
    if options.get("warps"):
        plan.reasons.append(f"{options['warps']} warps: asked for")
        return int(options["warps"])
    if not found:
        largest = max((_elements(t) for t in register_tiles(kernel)), default=1)
        warps = min(8, max(1, 1 << max(0, (largest // 512).bit_length() - 1)))
        plan.reasons.append(f"{warps} warps: the largest register tile has {largest} elements, about 16 a thread")
        return warps
    asked = asked_split(kernel, found, families(kernel))
    if asked is not None:
        plan.reasons.append(f"{math.prod(asked)} warps: over={asked}")
        return math.prod(asked)
    largest = max(_elements(op.result.tile) for op in found)
    rows = max(op.result.tile.shape[0] for op in found)
    held = _held_registers(found)
    single = any(op.operands[1].tile.dtype.name == "f32" and op.attrs["precision"] != "tf32" for op in found)
    choices = (12,) if rows == 192 else (1, 4, 8, 16)[single:]
    share = 4 if single else 1  # without matrix instructions operands are held in registers, too
    # A lone product of 64 rows is one warpgroup's: split columns would be read at half the rate.
    least = 64 if len(found) == 1 and rows == 64 else 32
    enough = (w for w in choices if held * share <= MOST_HELD[w] * w and (w > 4 or largest <= least * WARP * w))
    warps = next(enough, choices[-1])
    plan.reasons.append(f"{warps} warps: products hold {held // warps} registers a thread at once")
    return warps


def _ask_for_residents(kernel: Kernel, target: Target, plan: Plan) -> None:
    largest = max((_elements(t) for t in register_tiles(kernel)), default=1)
    wanted = min(RESIDENT_WARPS // plan.warps, target.max_blocks_per_sm)
    if wanted > 1 and largest <= MOST_ITEMS * WARP * plan.warps:
        plan.resident = wanted
        plan.reasons.append(f"registers for {wanted} blocks a multiprocessor, if none spill for it")


def _elements(tile: TileType) -> int:
    return tile.nbytes // tile.dtype.nbytes


def _held_registers(found: list[Op]) -> int:
    """Registers a thread that accumulators and register operands of different products need, if one warp had all."""
    tiles = {op.result.tile for op in found}
    tiles |= {op.operands[1].tile for op in found if op.operands[1].tile.space == "register"}
    return sum(tile.nbytes // 4 for tile in tiles) // WARP


def _suit_warpgroups(kernel: Kernel, found: list[Op], shared: Families) -> bool:
    """Whether wgmma computes all products, split as `over=` says."""
    split = [over for op in found if (over := constraint(kernel, op, shared)) is not None]
    return bool(found) and all(map(_suits_warpgroups, found)) and all(over[0] % 4 == 0 for over in split)


def _suits_warpgroups(op: Op) -> bool:
    """Whether wgmma computes the product as it stands: whole instructions, and operands in an order that it reads.

    Only 16-bit operands may have k across the rows in shared memory (PTX ISA, wgmma.mma_async).
    """
    a, b = op.operands[1].tile, op.operands[2].tile
    rows, cols = op.result.tile.shape
    depth = a.shape[0 if op.attrs["transpose_a"] else 1]
    if a.dtype.name not in ("f16", "bf16", "fp8e4m3", "fp8e5m2", "i8") or rows % 64 or cols % 16:
        return False
    wide = a.dtype.bits == 16
    along_k = not op.attrs["transpose_a"] and op.attrs["transpose_b"]
    return depth * a.dtype.nbytes % 32 == 0 and (wide or along_k) and b.dtype.bits == a.dtype.bits


def _engine(op: Op, target: Target, grouped: bool) -> Engine:
    a, b, acc = op.operands[1].tile.dtype, op.operands[2].tile.dtype, op.result.tile.dtype
    if grouped:
        return "wgmma"
    if a.name == "f32":
        return "mma" if op.attrs["precision"] == "tf32" else "fma"
    known = any((m.a, m.b, m.acc, m.m) == (a.name, b.name, acc.name, 16) for m in target.mma)
    return "mma" if known else "fma"


def _over(kernel: Kernel, op: Op, warps: int, engine: Engine, shared: Families) -> tuple[int, int]:
    rows, cols = op.result.tile.shape
    asked = constraint(kernel, op, shared)
    if asked is not None:
        if asked[0] * asked[1] != warps:
            raise UnsupportedError(
                f"over={asked} does not split {rows} x {cols} over {warps} warps",
                loc=op.loc,
                hint=f"pass warps={asked[0] * asked[1]} to compile(), or drop over=",
            )
        return asked
    if engine == "wgmma":
        groups = warps // 4
        down = next(g for g in range(min(groups, rows // 64), 0, -1) if groups % g == 0 and rows // 64 % g == 0)
        across = groups // down
        return 4 * down, across if cols % (16 * across) == 0 else 1
    if is_rowwise(kernel, op, shared):
        split = min(warps, 1 << max(0, (rows // 16).bit_length() - 1))
        return split, warps // split
    split = 1 << ((warps.bit_length() - 1) // 2)
    return split, warps // split
