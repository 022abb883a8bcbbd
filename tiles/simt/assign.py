"""Gives every register tile of a kernel its layout.

Values that an elementwise op, a loop or a branch ties together form a family with one layout. A family with a
product's accumulator takes the accumulator's, which the backend gives; what is derived from it (reductions,
rows, columns) follows; what is left over is laid out for wide memory accesses. Where two families meet that
could not be given fitting layouts, lowering converts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from warpwave.tiles.ir import Kernel, Op, Value, walk
from warpwave.tiles.simt.layout import (
    Layout,
    blocked_layout,
    doubled,
    drop_axis,
    flatten_axis,
    halved,
    insert_axis,
    joined,
    sliced,
    transposed,
)
from warpwave.tiles.types import TileType

# Ops whose operands and results all have one layout.
TIED = frozenset(
    [
        *("neg", "abs", "relu", "not", "isnan", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "rcp"),
        *("tanh", "sigmoid", "erf", "gelu", "gelu_tanh", "silu", "floor", "ceil", "round", "trunc"),
        *("add", "sub", "mul", "div", "floordiv", "mod", "max", "min", "and", "or", "xor", "shl", "shr"),
        *("eq", "ne", "lt", "le", "gt", "ge", "select", "fma", "cast", "bitcast", "distribute", "cumsum"),
    ]
)


def is_laid_out(value: Value) -> bool:
    """Whether this value has a layout: a register tile or vector."""
    return isinstance(value.type, TileType) and value.type.space == "register" and value.type.rank > 0


def ties(op: Op) -> Iterator[list[Value]]:
    """Groups of values that this op forces to have one layout."""
    if op.name in TIED:
        yield [*op.operands, *op.results]
    elif op.name == "mma":
        yield [op.operands[0], op.result]
    elif op.name == "for":
        (body,) = op.regions
        yield from map(list, zip(op.operands[3:], body.args[1:], body.terminator.operands, op.results, strict=True))
    elif op.name == "if":
        yield from map(list, zip(op.results, *(r.terminator.operands for r in op.regions), strict=True))
    elif op.name == "while":
        before, after = op.regions
        ends = before.terminator.operands[1:]
        yield from map(
            list, zip(op.operands, before.args, ends, after.args, after.terminator.operands, op.results, strict=True)
        )


def families(kernel: Kernel) -> dict[Value, set[Value]]:
    """For each laid-out value, the values that share its layout."""
    found: dict[Value, set[Value]] = {}
    for op in walk(kernel.body):
        for value in [*op.operands, *op.results, *(a for r in op.regions for a in r.args)]:
            if is_laid_out(value):
                found.setdefault(value, {value})
        for group in ties(op):
            members = [v for v in group if is_laid_out(v)]
            merged = set().union(*(found[v] for v in members if v in found), members)
            for value in merged:
                found[value] = merged
    return found


@dataclass
class Assigner:
    """Layouts given so far; what a layout implies for other values follows at once."""

    kernel: Kernel
    families: dict[Value, set[Value]] = field(init=False)
    layouts: dict[Value, Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.families = families(self.kernel)

    def give(self, value: Value, layout: Layout) -> None:
        """Lay out a value and its family, then what follows from it."""
        if is_laid_out(value):
            self.give_all([(value, layout)])

    def give_all(self, layouts: Iterable[tuple[Value, Layout]]) -> None:
        """Lay out several values and their families before what follows from any of them, which may reach another."""
        new = []
        for value, layout in layouts:
            if value not in self.layouts:
                self.layouts.update(dict.fromkeys(self.families[value], layout))
                new.append(value)
        for value in new:
            self._follow_family(value)

    def _follow_family(self, value: Value) -> None:
        for op in walk(self.kernel.body):
            if any(v in self.families[value] for v in [*op.operands, *op.results] if is_laid_out(v)):
                self._follow(op)

    def finish(self, lanes: int, waves: int) -> dict[Value, Layout]:
        """Lay out all that is left for wide memory accesses; tiles first, their vectors follow them."""
        for rank in (2, 1):
            for op in walk(self.kernel.body):
                for value in [*op.results, *(a for r in op.regions for a in r.args)]:
                    if is_laid_out(value) and value.tile.rank == rank and value not in self.layouts:
                        vector = _vector(self.families[value])
                        self.give(value, blocked_layout(value.tile.shape, lanes, waves, vector))
        return self.layouts

    def _follow(self, op: Op) -> None:
        """Derive the layout at one side of a shape-changing op from the other."""
        if op.name.startswith("reduce_") and op.operands[0] in self.layouts:
            self.give(op.result, drop_axis(self.layouts[op.operands[0]], op.attrs["axis"]))
        elif op.name == "expand_dims":
            self._follow_expand(op)
        elif op.name == "squeeze" and op.operands[0] in self.layouts:
            self.give(op.result, drop_axis(self.layouts[op.operands[0]], op.attrs["axis"]))
        elif op.name == "broadcast" and op.operands[0].tile.rank == 2 and op.result in self.layouts:
            self.give(op.operands[0], flattened(self.layouts[op.result], op.operands[0].tile.shape))
        elif op.name == "transpose" and is_laid_out(op.operands[0]):
            self._follow_transpose(op)
        elif op.name in ("slice", "concat", "interleave", "deinterleave") and is_laid_out(op.operands[0]):
            self._follow_part(op)

    def _follow_part(self, op: Op) -> None:
        """Sub-tiles and joins keep their elements in place where the layout allows it."""
        if any(v not in self.layouts for v in op.operands):
            return
        layouts = [self.layouts[v] for v in op.operands]
        derived: Layout | None
        if op.name == "slice":
            derived = sliced(layouts[0], op.attrs["offsets"], op.attrs["shape"])
        elif op.name == "deinterleave":
            derived = halved(layouts[0])
        elif op.name == "interleave":
            derived = doubled(layouts[0]) if layouts[0] == layouts[1] else None
        else:
            derived = joined(layouts, starts(op), op.attrs["axis"])
        if derived is not None:
            for result in op.results:
                self.give(result, derived)

    def _follow_expand(self, op: Op) -> None:
        source, axis = op.operands[0], op.attrs["axis"]
        if op.result in self.layouts:
            self.give(source, drop_axis(self.layouts[op.result], axis))
        elif source in self.layouts:
            self.give(op.result, insert_axis(self.layouts[source], axis))

    def _follow_transpose(self, op: Op) -> None:
        for one, other in ((op.operands[0], op.result), (op.result, op.operands[0])):
            if one in self.layouts:
                self.give(other, transposed(self.layouts[one]))


def starts(op: Op) -> list[int]:
    """Where each operand of a concat begins along its axis."""
    extents = [v.tile.shape[op.attrs["axis"]] for v in op.operands]
    return [sum(extents[:i]) for i in range(len(extents))]


def flattened(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """`layout` for a tile of the same rank that has extent 1 where `shape` has."""
    for axis, extent in enumerate(shape):
        if extent == 1:
            layout = flatten_axis(layout, axis)
    return layout


def _vector(family: set[Value]) -> int:
    """Elements of a 16-byte access of the narrowest type in the family."""
    return max(1, 16 // max(2, min(v.tile.dtype.nbytes for v in family)))
