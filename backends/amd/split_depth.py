"""Cuts a product's pipeline into shallower steps, so that more of them fit LDS and loads stay in flight.

A loop that only multiplies the tiles it loads computes the same sum, in the same order, with half the depth
and twice the trips. Two stages leave nothing in flight while the newer one is awaited; four do.
"""

from __future__ import annotations

from warpwave.backends.amd.arch import Target
from warpwave.tiles.dtypes import i32
from warpwave.tiles.ir import Block, Builder, Kernel, Op, Value, walk
from warpwave.tiles.types import TileType

WANTED_STAGES = 4
LEAST_ROW_BYTES = 64  # shorter rows would waste the cache lines that a load touches


def split_depth(kernel: Kernel, target: Target, *, in_turns: bool = False) -> None:
    """Halve the depth of pipelines, in place, while that makes room for stages.

    Where groups of waves take turns, a step stays deep enough for the fastest 16-row instruction.
    """
    for block in [kernel.body, *(r for op in walk(kernel.body) for r in op.regions)]:
        for op in list(block.ops):
            if op.name == "for" and op.attrs["kind"] == "pipeline" and not op.attrs["stages"]:
                while _should_split(op, target, in_turns=in_turns):
                    _split(block, op)


def _loads(op: Op) -> list[Op]:
    return [o for o in op.regions[0].ops if o.name == "load" and o.attrs["type"].space == "shared"]


def _should_split(op: Op, target: Target, *, in_turns: bool) -> bool:
    loads = _loads(op)
    if not loads or not _is_plain_product(op, loads):
        return False
    stage = sum(load.attrs["type"].nbytes for load in loads)
    shallow = any(_depth(op, load) * load.attrs["type"].dtype.nbytes // 2 < LEAST_ROW_BYTES for load in loads)
    if in_turns:
        shallow |= any(_depth(op, load) // 2 < _fastest_depth(op, target) for load in loads)
    uneven = any(_depth(op, load) % 2 for load in loads)
    return not shallow and not uneven and stage * WANTED_STAGES > target.lds_bytes


def _fastest_depth(op: Op, target: Target) -> int:
    """Depth of the fastest instruction on blocks of 16 rows; 0 if there is none for these formats."""
    product = next(o for o in op.regions[0].ops if o.name == "mma")
    if not is_along_rows(product):
        return 0
    acc, a, b = (v.tile.dtype.name for v in product.operands)
    fits = [m for m in target.mfma if (m.a, m.b, m.acc, m.m) == (b, a, acc, 16)]
    return max(fits, key=lambda m: m.flops_per_clock).k if fits else 0


def is_along_rows(product: Op) -> bool:
    """Whether depth runs along the rows of both operands, so that they are read without being transposed."""
    return bool(not product.attrs["transpose_a"] and product.attrs["transpose_b"])


def _is_plain_product(op: Op, loads: list[Op]) -> bool:
    """The body is loads and one mma on them, and the counter is only the loads' depth coordinate."""
    (body,) = op.regions
    products = [o for o in body.ops if o.name == "mma"]
    if len(products) != 1 or len(loads) != 2 or len(body.ops) != len(loads) + 2:
        return False
    (product,) = products
    if [load.result for load in loads] not in (product.operands[1:], product.operands[:0:-1]):
        return False
    if body.terminator.operands != [product.result] or product.operands[0] is not body.args[1]:
        return False
    return all(_counter_is_depth(op, load) for load in loads)


def _depth_axis(op: Op, load: Op) -> int:
    """Axis of the loaded tile along which the product sums."""
    product = next(o for o in op.regions[0].ops if o.name == "mma")
    if product.operands[1] is load.result:
        return 0 if product.attrs["transpose_a"] else 1
    return 1 if product.attrs["transpose_b"] else 0


def _depth(op: Op, load: Op) -> int:
    tile: TileType = load.attrs["type"]
    return tile.shape[_depth_axis(op, load)]


def _counter_is_depth(op: Op, load: Op) -> bool:
    counter = op.regions[0].args[0]
    axis = load.attrs["axes"][_depth_axis(op, load)]
    coords = load.operands[2:]
    uses = [i for i, c in enumerate(coords) if c is counter]
    return load.attrs["unit"] == "tile" and uses == [axis] and load.operands[0] is not counter


def _split(block: Block, op: Op) -> None:
    """Half the depth, twice the bounds."""
    for load in _loads(op):
        tile: TileType = load.attrs["type"]
        axis = _depth_axis(op, load)
        shape = tuple(n // 2 if a == axis else n for a, n in enumerate(tile.shape))
        halved = tile.with_(shape=shape)
        load.attrs = {**load.attrs, "type": halved}
        load.result.type = halved
    doubled = Block()
    builder = Builder(doubled)
    builder.loc = op.loc
    two = builder.constant(2, i32)
    start, stop = (_times(builder, op.operands[i], two) for i in (0, 1))
    op.operands = [start, stop, *op.operands[2:]]
    at = block.ops.index(op)
    block.ops[at:at] = doubled.ops


def _times(builder: Builder, value: Value, factor: Value) -> Value:
    return builder.emit1("mul", [value, factor])
