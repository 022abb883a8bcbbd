"""Tiles that a loop loads at a constant distance from trip to trip: addresses without arithmetic in the loop.

Such a load keeps a pointer to its next tile, and for each of a lane's accesses an offset from there that the
loop does not change. Along axes that stay in place, what lies outside the tensor is left out by that offset;
along axes that move, the first trips whose tiles are wholly inside are counted before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.context import Lowering, both
from warpwave.tiles.simt.memory import Window, open_window
from warpwave.tiles.types import TileType

OUTSIDE = "0x7ffffff0"  # an offset that no buffer holds: reads zeros


@dataclass(frozen=True)
class MovingLoad:
    """A load of a loop, as C names: `next` points to its next tile, `advance` bytes before the one after.

    `steps[axis]` is what a trip adds to the tensor's coordinate, "0" where it stays and None where that is
    not the same for all trips. `first` is the window of the first trip.
    """

    op: Op
    steps: tuple[str | None, ...]
    first: Window
    next: str
    advance: str

    @property
    def tile(self) -> TileType:
        """The loaded tile's type."""
        tile: TileType = self.op.attrs["type"]
        return tile

    @property
    def tensor(self) -> Value:
        """The tensor that it loads from."""
        return self.op.operands[0]

    def stays(self, tile_axis: int) -> bool:
        """Whether the tile's place along one of its own axes is the same for all trips."""
        return self.steps[self.first.axes[tile_axis]] == "0"

    def inside_moving(self, window: Window, places: Sequence[str]) -> str:
        """Condition that an element of a trip's window is in the tensor along the axes that move."""
        return both(window.valid, *(window.inside(axis, p) for axis, p in enumerate(places) if not self.stays(axis)))

    def inside_staying(self, lw: Lowering, places: Sequence[str]) -> str:
        """Condition that an element is in the tensor along the axes that stay, those beside the tile included."""
        beside = [axis for axis, step in enumerate(self.steps) if step == "0" and axis not in self.first.axes]
        extents = f"{self.first.tensor}.extents"
        return both(
            *(f"(u64)(long){lw.name(self.op.operands[2 + axis])} < (u64){extents}[{axis}]" for axis in beside),
            *(self.first.inside(axis, place) for axis, place in enumerate(places) if self.stays(axis)),
        )


def step_of(lw: Lowering, loop: Op, value: Value) -> str | None:
    """What a trip of the loop adds to a scalar, as a C expression; None if that differs from trip to trip."""
    (body,) = loop.regions
    if value is body.args[0]:
        return f"(long){lw.name(loop.operands[2])}"
    op = lw.definitions.get(value)
    if op is None or op not in body.ops:
        return None if value in body.args else "0"
    steps = [step_of(lw, loop, operand) for operand in op.operands]
    if None in steps:
        return None
    if all(step == "0" for step in steps):
        return "0"
    return _combined(lw, op, [str(step) for step in steps])


def _combined(lw: Lowering, op: Op, steps: list[str]) -> str | None:
    if op.name in ("add", "sub"):
        return f"({steps[0]} {'+' if op.name == 'add' else '-'} {steps[1]})"
    if op.name == "neg":
        return f"(-{steps[0]})"
    if op.name == "cast" and op.operands[0].tile.dtype.is_int and op.result.tile.dtype.is_int:
        return steps[0]
    if op.name == "mul" and "0" in steps:
        factor = op.operands[steps.index("0")]
        if factor.type.is_scalar and not _is_inside(lw, factor):  # type: ignore[union-attr]
            return f"({steps[1 - steps.index('0')]} * {lw.name(factor)})"
    return None


def _is_inside(lw: Lowering, value: Value) -> bool:
    """Whether a value has no name yet outside the loop."""
    return value not in lw.names


def open_moving(lw: Lowering, loop: Op, op: Op, before: int) -> MovingLoad:
    """Declare the pointer, `before` bytes ahead of the first tile, and its advance.

    The coordinates of the first trip have names.
    """
    tensor, _, *coords = op.operands
    tile: TileType = op.attrs["type"]
    first = open_window(lw, tensor, coords, tile, op)
    steps = []
    for axis, coord in enumerate(coords):
        step = step_of(lw, loop, coord)
        scaled = op.attrs["unit"] == "tile" and axis in first.axes and step not in (None, "0")
        steps.append(f"({step} * {tile.shape[first.axes.index(axis)]})" if scaled else step)
    moved = [f"{step} * {_stride(first, axis)}" for axis, step in enumerate(steps) if step not in (None, "0")]
    load = MovingLoad(op, tuple(steps), first, lw.fresh("next"), lw.fresh("advance"))
    start = f"same_for_all((u64){first.tensor}.at({first.element}) - {before})"
    lw.body.line(f"auto {load.next} = (const GLOBAL char *){start};")
    advance = f"({' + '.join(moved) or '0L'}) * {tile.dtype.nbytes}"
    lw.body.line(f"const long {load.advance} = same_for_all((u64)({advance}));")
    return load


def _stride(window: Window, axis: int) -> str:
    if axis in window.axes:
        return window.stride(window.axes.index(axis))
    return f"{window.tensor}.strides[{axis}]"


def count_whole(lw: Lowering, loads: Sequence[MovingLoad], trips: str, ahead: int) -> str:
    """Declare how many of the first trips find all tiles whole along the axes that move."""
    name = lw.fresh("whole")
    lw.body.line(f"int {name} = {trips};")
    for load in loads:
        for axis, step in enumerate(load.steps):
            if step is None:
                lw.body.line(f"{name} = 0;")
            elif step != "0":
                origin, extent = _origin(lw, load, axis)
                tensor_extent = f"{load.first.tensor}.extents[{axis}]"
                lw.body.line(f"{name} = whole_trips({name}, {origin}, {step}, {extent}, {tensor_extent});")
        lw.body.line(f"if ((u64){load.advance} >= 0x7fffffffu / {ahead}) {name} = 0;")
    return name


def _origin(lw: Lowering, load: MovingLoad, axis: int) -> tuple[str, int]:
    """Where the first trip's tile begins along an axis of the tensor, and its extent."""
    if axis in load.first.axes:
        tile_axis = load.first.axes.index(axis)
        return load.first.origins[tile_axis], load.tile.shape[tile_axis]
    return lw.name(load.op.operands[2 + axis]), 1
