"""Which of the kernel's blocks a CUDA block computes, in which order, and what coordinates they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.tiles.ir import Op

EVEN = "persistent: all blocks have equally long loops, so one that is done takes the next"
FOLDED = "persistent: the last coordinate says how long a block takes, so long ones are paired with short ones"


def lower_grid(lw: NvidiaLowering, op: Op) -> None:
    """This block's coordinates; neighbouring blocks of a product share what they read in the L2."""
    last = len(op.results) - 1
    sizes = [f"grid.sizes[{axis}]" for axis in range(last + 1)]
    if lw.plan.windowed:
        rows = _cluster_rows(lw, sizes[-2])
        plane, window = f"({rows} * {sizes[-1]})", lw.plan.window // lw.plan.cluster
        place = f"windowed_position(block_id % {plane}, {rows}, {sizes[-1]}, {window})"
        lw.body.line(f"int rest = block_id / {plane} * {plane} + {place};")
        sizes[-2] = rows
    else:
        lw.body.line("int rest = block_id;")
    for axis in reversed(range(last + 1)):
        name = lw.define(op.results[axis], op.results[axis].name)
        place = f"rest % {sizes[axis]}"
        if axis == last - 1 and lw.plan.cluster > 1:
            place = f"({place}) * {lw.plan.cluster} + (int)ptx::cluster_rank()"
        lw.body.line(f"const int {name} = {place};")
        if axis:
            lw.body.line(f"rest /= {sizes[axis]};")


def _cluster_rows(lw: NvidiaLowering, rows: str) -> str:
    """Rows of clusters in a grid of so many rows of blocks; the last cluster's last blocks may lie outside."""
    cluster = lw.plan.cluster
    return f"(({rows} + {cluster - 1}) / {cluster})" if cluster > 1 else rows


@contextmanager
def own_blocks(lw: NvidiaLowering) -> Iterator[None]:
    """Once, or for each block that falls to this one of a persistent grid."""
    if not lw.plan.persistent:
        lw.body.line("const int block_id = blockIdx.x;")
        yield
        return
    rank = next(len(op.results) for op in lw.kernel.body.ops if op.name == "grid")
    sizes = [f"grid.sizes[{axis}]" for axis in range(rank)]
    with (_folded if lw.plan.folded else _in_rounds)(lw, sizes):
        lw.enter_region()  # other warps may still read what the block before left in shared memory
        yield
        lw.enter_region()
        if not lw.plan.producer:
            lw.barrier()


@contextmanager
def _in_rounds(lw: NvidiaLowering, sizes: list[str]) -> Iterator[None]:
    """All resident blocks, or clusters of them, take the next ones together."""
    cluster = lw.plan.cluster
    if cluster > 1:
        sizes[-2] = _cluster_rows(lw, sizes[-2])
    lw.body.line(f"const int blocks = {' * '.join(sizes)};")
    share = f" / {cluster}" if cluster > 1 else ""
    with lw.body.block(f"for (int block_id = blockIdx.x{share}; block_id < blocks; block_id += gridDim.x{share})"):
        yield


@contextmanager
def _folded(lw: NvidiaLowering, sizes: list[str]) -> Iterator[None]:
    """Long blocks and short ones, so that all resident blocks are done at the same time (order.cuh)."""
    outer = " * ".join(sizes[:-1]) or "1"
    lw.body.line(f"const folded_blocks order({outer}, {sizes[-1]}, gridDim.x, blockIdx.x);")
    with lw.body.block("for (int turn = 0; turn < order.turns; ++turn)"):
        lw.body.line("const int block_id = order.block(turn);")
        lw.body.line("if (block_id < 0) continue;")
        yield
