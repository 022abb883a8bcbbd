"""What takes registers on AMD targets besides the tiles that are alive: see `tiles.simt.usage`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from warpwave.backends.amd.arch import DIRECT
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Op, walk
from warpwave.tiles.simt import usage
from warpwave.tiles.simt.drawn import name_of
from warpwave.tiles.simt.pipeline import staged_loads
from warpwave.tiles.simt.usage import Use, shared_in_use, table

__all__ = ["Use", "registers_in_use", "shared_in_use", "table"]


def registers_in_use(lw: AmdLowering) -> tuple[list[Use], Loc | None]:
    """The tiles that are alive where most registers are or on their way into them, largest first, and that place."""
    alive, op = usage.registers_in_use(lw)
    alive += _on_their_way(lw, op)
    return sorted(alive, key=lambda use: -use.amount), op.loc if op else None


def _on_their_way(lw: AmdLowering, op: Op | None) -> Iterator[Use]:
    """Tiles of the next iteration, which wait in registers where the target cannot load into LDS directly."""
    if DIRECT in lw.target.direct_to_lds_widths:
        return
    for loop in walk(lw.kernel.body):
        if loop.name == "for" and op is not None and op in set(walk(loop.regions[0])):
            for load in staged_loads(loop.regions[0]):
                held = math.ceil(load.attrs["type"].nbytes / lw.threads / 4)
                yield Use(f"next {name_of(load.result, lw)}", str(load.attrs["type"]), held, load.loc)
