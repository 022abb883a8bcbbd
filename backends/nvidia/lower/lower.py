"""From a kernel's IR to CUDA C++: dispatch over ops, and the text around the body."""

from __future__ import annotations

from collections.abc import Callable

from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.assign import assign_layouts
from warpwave.backends.nvidia.lower import text
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.fma import lower_fma
from warpwave.backends.nvidia.lower.mma import lower_mma
from warpwave.backends.nvidia.lower.wgmma import lower_wgmma
from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.plan import make_plan
from warpwave.tiles.errors import ResourceError
from warpwave.tiles.ir import Kernel, Op, clone
from warpwave.tiles.simt.alignment import definitions
from warpwave.tiles.simt.ops import COMMON

ENGINES = {"wgmma": lower_wgmma, "mma": lower_mma, "fma": lower_fma}


def _lower_product(lw: NvidiaLowering, op: Op) -> None:
    ENGINES[lw.plan.products[op].engine](lw, op)


def _lower_barrier(lw: NvidiaLowering, _: Op) -> None:
    """It also orders global memory within the block."""
    lw.barrier()


def _lower_grid(lw: NvidiaLowering, op: Op) -> None:
    """This block's coordinates; neighbouring blocks of a product share what they read in the L2."""
    last = len(op.results) - 1
    sizes = [f"grid.sizes[{axis}]" for axis in range(last + 1)]
    if lw.plan.windowed:
        plane = f"({sizes[-2]} * {sizes[-1]})"
        window = f"windowed_position(block_id % {plane}, {sizes[-2]}, {sizes[-1]}, {text.WINDOW})"
        lw.body.line(f"int rest = block_id / {plane} * {plane} + {window};")
    else:
        lw.body.line("int rest = block_id;")
    for axis in reversed(range(last + 1)):
        name = lw.define(op.results[axis], op.results[axis].name)
        lw.body.line(f"const int {name} = rest % {sizes[axis]};")
        if axis:
            lw.body.line(f"rest /= {sizes[axis]};")


LOWER: dict[str, Callable[[NvidiaLowering, Op], None]] = {
    **COMMON,
    "mma": _lower_product,
    "grid": _lower_grid,
    "barrier": _lower_barrier,
}


def lower_op(lw: NvidiaLowering, op: Op) -> None:
    """Emit one op."""
    lw.body.loc = op.loc
    if op.regions:
        with lw.shared_scope():
            LOWER[op.name](lw, op)
    else:
        LOWER[op.name](lw, op)


def lower(kernel: Kernel, target: Target, options: dict[str, object]) -> Lowered:
    """The whole kernel as CUDA C++ for one target."""
    kernel = clone(kernel)
    plan = make_plan(kernel, target, options)
    lw = NvidiaLowering(kernel, target, plan, assign_layouts(kernel, plan), definitions(kernel))
    for name, value in zip(kernel.param_names, kernel.params, strict=True):
        lw.names[value] = name + "_"
    grid = next((op for op in kernel.body.ops if op.name == "grid"), None)
    before_grid = kernel.body.ops[: kernel.body.ops.index(grid)] if grid else []
    for op in kernel.body.ops:
        if op.name != "check" or op not in before_grid:  # launch conditions are the host's
            lower_op(lw, op)
    lw.drain()
    shared_bytes = lw.peak_shared_bytes + lw.scratch_bytes
    if shared_bytes > target.shared_per_block:
        raise _too_much_shared(lw, shared_bytes)
    source, located = (text.kernel_text(lw, body) for body in (lw.body.text(), lw.body.located_text()))
    return Lowered(
        source,
        located,
        kernel.name,
        plan.threads,
        shared_bytes,
        1,
        False,
        tuple(lw.maps),
        tuple(plan.reasons),
        tuple(lw.checks),
        tuple(lw.prints),
    )


def _too_much_shared(lw: NvidiaLowering, total: int) -> ResourceError:
    users = [f"  {v.name or v.type}: {v.tile.nbytes} bytes ({v.type})" for v in lw.shared]
    users.append(f"  scratch for conversions and reductions: {lw.scratch_bytes} bytes")
    return ResourceError(
        f"{total} bytes of shared memory, {lw.target.full_name} has {lw.target.shared_per_block} for a block:\n"
        + "\n".join(users),
        loc=lw.kernel.loc,
        hint="use smaller tiles",
    )
