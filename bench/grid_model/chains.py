"""Warpwave's own attention forward as machine code, and what each schedule's code of it would take, modelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from warpwave.backends.amd.model.cu import Memory, chip_of, sustained_clock
from warpwave.backends.amd.model.schedules import DEPTH, Chain
from warpwave.backends.amd.plan import MULTISTAGE, PING_PONG
from warpwave.backends.amd.program import AmdProgram
from warpwave.backends.amd.resources import fits
from warpwave.bench.grid_model.replays import fitting
from warpwave.kernels.attention import attention
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import borrow

SCHEDULES = (MULTISTAGE, PING_PONG)
# Queries, keys of a step and width: what LDS and registers hold, and half the queries, of which two workgroups fit.
TILES = {
    "gfx942": ((256, 32, 128), (128, 32, 128), (64, 32, 128), (256, 32, 64), (128, 64, 64)),
    "gfx950": ((256, 64, 128), (128, 64, 128), (256, 128, 64), (256, 64, 64), (128, 128, 64), (128, 64, 64)),
}
LENGTHS = (1024, 2048)  # keys; what differs is the loop's, so that longer ones follow
ALONE = Memory(l2=0.9, infinity_cache=0.9)  # heads run one after another on an XCD, whose L2 holds their keys [assumed]
FULL = Memory(l2=0.9, infinity_cache=0.9, loaded=True)
BF16 = ml_dtypes.bfloat16


def chains() -> Iterator[tuple[Chain, str]]:
    """What is modelled: each target's tiles, all keys or those up to a diagonal, by each schedule."""
    for target, tiles in TILES.items():
        for masked in (False, True):
            for tile in tiles:
                for schedule in SCHEDULES:
                    yield Chain(target, BF16(0).itemsize, masked, tile), schedule


def row(chain: Chain, schedule: str) -> dict[str, Any] | None:
    """Clocks of a block of queries that sees DEPTH keys; None where the schedule does not apply."""
    program = _built(chain, schedule)
    if program is None or (schedule != MULTISTAGE and program.resources["spills"]):
        return None
    clock = sustained_clock(chip_of(chain.target, None), "bf16")

    def line(groups: int, memory: Memory) -> tuple[int, int]:
        timings = [_recorded(program, chain, keys, groups).timed(clock=clock, memory=memory) for keys in LENGTHS]
        (less, more), (short, long) = ((t.clocks / groups for t in timings), LENGTHS)
        slope = (more - less) / (long - short)
        return round(less - slope * short), round(less + slope * (DEPTH - short))

    together = max(1, min(2, fitting(_recorded(program, chain, chain.tile[0], 1))))
    alone, full = line(1, ALONE), line(together, FULL)
    return {
        "target": chain.target,
        "itemsize": chain.itemsize,
        "masked": chain.masked,
        "tile": list(chain.tile),
        "schedule": schedule,
        "alone": alone[1],
        "full": full[1],
        "begun": [alone[0], full[0]],
        "resident": together if fits(program.resources) else 0,
    }


def _arrays(chain: Chain, keys: int, groups: int) -> dict[str, Any]:
    rows, _, width = chain.tile
    q, k = np.zeros((1, groups, rows, width), BF16), np.zeros((1, 1, keys, width), BF16)
    return {"q": q, "k": k, "v": k.copy(), "o": q.copy(), "lse": np.zeros(q.shape[:-1], np.float32)}


def _built(chain: Chain, schedule: str) -> AmdProgram | None:
    rows, step, width = chain.tile
    tiles = {"BQ": rows, "BK": step, "D": width}
    options = {"schedule": schedule, "allow_spills": True}
    arrays = _arrays(chain, step, 1)
    try:
        found = attention.compile(
            **arrays, causal=chain.masked, target=f"amd:{chain.target}:sim", options=options, **tiles
        )
    except TileError:
        return None
    assert isinstance(found.program, AmdProgram)
    return found.program


def _recorded(program: AmdProgram, chain: Chain, keys: int, groups: int) -> Any:
    arrays = {name: borrow(array) for name, array in _arrays(chain, keys, groups).items()}
    return program.time(arrays, groups=list(range(groups))).recorded
