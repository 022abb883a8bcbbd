"""Which of the kernel's blocks a CUDA block computes, in which order, and what coordinates they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.tiles.ir import Op

EVEN = "persistent: all blocks have equally long loops, so one that is done takes the next"
FOLDED = "persistent: the last coordinate says how long a block takes, so long ones are paired with short ones"


def lower_grid(lw: NvidiaLowering, op: Op) -> None:
    """This block's coordinates, with few divisions: until they are known nothing can be loaded."""
    names = [lw.define(value, value.name) for value in op.results]
    sizes = _sizes(lw)
    if lw.plan.windowed:
        *names, outer, inner = names
        _windowed(lw, sizes, outer, inner)
    elif lw.plan.folded:
        *names, inner = names
        lw.body.line(f"const int {inner} = block.inner;")
        lw.body.line("int rest = block.outer;")
    else:
        lw.body.line("int rest = block_id;")
    for axis in reversed(range(1, len(names))):
        lw.body.line(f"const int {names[axis]} = rest % {sizes[axis]};")
        lw.body.line(f"rest /= {sizes[axis]};")
    if names:
        lw.body.line(f"const int {names[0]} = rest;")


def _windowed(lw: NvidiaLowering, sizes: list[str], outer: str, inner: str) -> None:
    """The last two coordinates: neighbouring blocks of a product share what they read in the L2."""
    rows, cols = sizes[-2:]
    cluster = lw.plan.cluster
    position = "block_id"
    if len(sizes) > 2:
        lw.body.line(f"const int plane = {rows} * {cols};")
        lw.body.line("int rest = block_id / plane;")
        position = "block_id - rest * plane"
    lw.body.line(
        f"const grid_place place = windowed_place({position}, {rows}, {cols}, {max(1, lw.plan.window // cluster)});"
    )
    first = f"place.outer * {cluster} + (int)ptx::cluster_rank()" if cluster > 1 else "place.outer"
    lw.body.line(f"const int {outer} = {first};")
    lw.body.line(f"const int {inner} = place.inner;")


def _sizes(lw: NvidiaLowering) -> list[str]:
    """C expressions of the grid's sizes; clusters of rows count once, and the last one's last rows may lie outside."""
    rank = next(len(op.results) for op in lw.kernel.body.ops if op.name == "grid")
    sizes, cluster = [f"grid.sizes[{axis}]" for axis in range(rank)], lw.plan.cluster
    if cluster > 1:
        sizes[-2] = f"(({sizes[-2]} + {cluster - 1}) / {cluster})"
    return sizes


@contextmanager
def own_blocks(lw: NvidiaLowering) -> Iterator[None]:
    """Once, or for each block that falls to this one of a persistent grid."""
    if not lw.plan.persistent:
        lw.body.line("const int block_id = blockIdx.x;")
        yield
        return
    with _folded(lw) if lw.plan.folded else _in_rounds(lw):
        lw.enter_region()  # other warps may still read what the block before left in shared memory
        yield
        lw.enter_region()
        if not lw.plan.producer:
            lw.barrier()


@contextmanager
def _in_rounds(lw: NvidiaLowering) -> Iterator[None]:
    """All resident blocks, or clusters of them, take the next ones together."""
    cluster = lw.plan.cluster
    lw.body.line(f"const int blocks = {' * '.join(_sizes(lw))};")
    share = f" / {cluster}" if cluster > 1 else ""
    with lw.body.block(f"for (int block_id = blockIdx.x{share}; block_id < blocks; block_id += gridDim.x{share})"):
        yield


@contextmanager
def _folded(lw: NvidiaLowering) -> Iterator[None]:
    """Long blocks and short ones, so that all resident blocks are done at the same time (order.cuh)."""
    *outer, inner = _sizes(lw)
    lw.body.line(f"const folded_blocks order({' * '.join(outer) or '1'}, {inner}, gridDim.x, blockIdx.x);")
    with lw.body.block("for (int turn = 0; turn < order.turns; ++turn)"):
        lw.body.line("const grid_place block = order.block(turn);")
        lw.body.line("if (block.inner < 0) continue;")
        yield
