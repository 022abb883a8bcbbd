"""Loops and branches as themselves; debugging checks through a status word."""

from __future__ import annotations

from collections.abc import Sequence

from warpwave.tiles.ir import Block, Op, Value
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.simt.convert import convert, inside


def declare_carried(lw: Lowering, op: Op, sources: Sequence[Value]) -> None:
    """Declare variables for values that a loop carries, holding their first values."""
    for target, source in zip(op.results, sources, strict=True):
        if target.tile.space != "register":
            raise lw.unsupported(op, f"a loop that carries the shared tile {target.type}", "carry a register tile")
        start = _in_layout(lw, source, target)
        name = lw.declare(target)
        lw.body.line(f"{name} = {start};")


def _in_layout(lw: Lowering, source: Value, target: Value) -> str:
    return lw.name(source) if target.tile.is_scalar else convert(lw, source, lw.layout(target))


def assign_all(lw: Lowering, names: Sequence[str], targets: Sequence[Value], sources: Sequence[Value]) -> None:
    """All at once, as Python's tuple assignment: what is still to be read is copied first."""
    values = [_in_layout(lw, s, t) for s, t in zip(sources, targets, strict=True)]
    copies = {}
    for i, value in enumerate(values):
        if value in names and names.index(value) < i:
            copies[i] = lw.fresh("kept")
            lw.body.line(f"const auto {copies[i]} = {value};")
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        if name != value:
            lw.body.line(f"{name} = {copies.get(i, value)};")


def lower_block(lw: Lowering, block: Block) -> None:
    """All ops of a region but its terminator."""
    for op in block.ops:
        if op.name not in ("yield", "condition"):
            lw.lower_op(op)


def lower_for(lw: Lowering, op: Op) -> None:
    """A counted loop; a step may be negative."""
    (body,) = op.regions
    if op.attrs["kind"] == "pipeline" and lw.lower_pipeline(op):
        return
    start, stop, step = (lw.name(v) for v in op.operands[:3])
    declare_carried(lw, op, op.operands[3:])
    names = [lw.name(v) for v in op.results]
    for arg, name in zip(body.args[1:], names, strict=True):
        lw.names[arg] = name
    counter = lw.define(body.args[0], body.args[0].name)
    lw.enter_region()
    # 64 bits, so that the last step past the end cannot wrap
    with lw.body.block(
        f"for (long {counter}_ = {start}; {step} > 0 ? {counter}_ < {stop} : {counter}_ > {stop}; {counter}_ += {step})"
    ):
        lw.body.line(f"const int {counter} = (int){counter}_;")
        lower_block(lw, body)
        assign_all(lw, names, op.results, body.terminator.operands)
        lw.enter_region()


def lower_if(lw: Lowering, op: Op) -> None:
    """Both regions; conditions are uniform over the workgroup."""
    names = [lw.declare(v) for v in op.results]
    lw.enter_region()
    then, other = op.regions
    with lw.body.block(f"if (uniform({lw.name(op.operands[0])}))"):
        lower_block(lw, then)
        assign_all(lw, names, op.results, then.terminator.operands)
        lw.enter_region()
    if len(other.ops) > 1 or names:
        with lw.body.block("else"):
            lower_block(lw, other)
            assign_all(lw, names, op.results, other.terminator.operands)
            lw.enter_region()


def lower_while(lw: Lowering, op: Op) -> None:
    """The first region decides, the second makes the next values."""
    before, after = op.regions
    declare_carried(lw, op, op.operands)
    names = [lw.name(v) for v in op.results]
    for region in (before, after):
        for arg, name in zip(region.args, names, strict=True):
            lw.names[arg] = name
    lw.enter_region()
    with lw.body.block("for (;;)"):
        lower_block(lw, before)
        condition, *passed = before.terminator.operands
        assign_all(lw, names, op.results, passed)
        lw.body.line(f"if (!uniform({lw.name(condition)})) break;")
        lower_block(lw, after)
        assign_all(lw, names, op.results, after.terminator.operands)
        lw.enter_region()


def lower_barrier(lw: Lowering, _: Op) -> None:
    """An explicit barrier also orders global memory within the workgroup."""
    lw.body.line("global_barrier();")
    lw.unseen_writes.clear()
    lw.unfinished_reads = False


def lower_check(lw: Lowering, op: Op) -> None:
    """The first failing check leaves its number; the host raises at its line."""
    lw.checks.append(op)
    number = len(lw.checks)
    condition = op.operands[0]
    if condition.tile.is_scalar:
        lw.body.line(f"if (!{lw.name(condition)} && thread == 0) fail(status, {number});")
        return
    layout = lw.layout(condition)
    real = inside(lw, layout, condition.tile.shape)
    with lw.body.each(len(layout.items)):
        lw.body.line(f"if ({real} && !{lw.name(condition)}.get(i)) fail(status, {number});")
