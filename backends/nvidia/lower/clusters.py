"""Clusters of blocks that share an operand: each copies a part of it, to all of them (multicast).

The blocks of a cluster compute neighbouring rows of tiles. A load whose place does not depend on the row is the same
for all. A stage of a ring is empty when the computing warps of all blocks have handed it back.
"""

from __future__ import annotations

from collections.abc import Collection

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.rings import pipelines
from warpwave.tiles.ir import Op, Value, walk
from warpwave.tiles.simt.pipeline import staged_loads
from warpwave.tiles.simt.products import ancestors

SIZES = (2, 4)
ATOM_ROWS = 8  # a part of a tile consists of whole swizzle atoms


def can_share(lw: NvidiaLowering, cluster: int) -> bool:
    """Whether blocks can work in clusters: some load is common to all, and all loops are equally long in all."""
    if not (lw.plan.persistent and lw.plan.windowed) or any(
        op.name in ("check", "print", "atomic_add") for op in _behind_grid(lw)
    ):
        return False
    row = _row(lw)
    loops = list(pipelines(lw.kernel.body))
    if any(depends(lw, loop.operands[:3], row) for loop in loops):
        return False
    return any(_is_common(lw, load, cluster) for loop in loops for load in staged_loads(loop.regions[0]))


def is_common(lw: NvidiaLowering, load: Op) -> bool:
    """Whether all blocks of a cluster load the same tile, which can be divided among them."""
    return _is_common(lw, load, lw.plan.cluster)


def _is_common(lw: NvidiaLowering, load: Op, cluster: int) -> bool:
    divides = load.attrs["type"].shape[0] % (cluster * ATOM_ROWS) == 0
    return divides and not depends(lw, load.operands[2:], _row(lw))


def depends(lw: NvidiaLowering, values: Collection[Value], on: Value) -> bool:
    """Whether any of these is computed from a value."""
    return on in ancestors(values, lw.definitions)


def _row(lw: NvidiaLowering) -> Value:
    grid = next(op for op in lw.kernel.body.ops if op.name == "grid")
    return grid.results[-2]


def _behind_grid(lw: NvidiaLowering) -> list[Op]:
    ops = lw.kernel.body.ops
    place = next((i for i, op in enumerate(ops) if op.name == "grid"), 0)
    return [inner for op in ops[place:] for inner in (op, *(o for r in op.regions for o in walk(r)))]
