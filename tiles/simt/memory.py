"""Global memory: coordinates to addresses, masked loads and stores, atomic adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.alignment import origin_divisor
from warpwave.tiles.simt.context import Lowering, both, declare_place, vector_width
from warpwave.tiles.simt.layout import Layout, is_run
from warpwave.tiles.simt.writer import ctype
from warpwave.tiles.types import TileType


@dataclass(frozen=True)
class Window:
    """A tile's place in a tensor, as C names: its resource, extents and strides by tile axis, and validity."""

    tensor: str
    dtype: DType
    axes: tuple[int, ...]
    origins: tuple[str, ...]
    element: str
    valid: str
    wide: str
    strides: tuple[str, ...]
    divisor: int  # of the first column's place in the tensor's rows, as far as is known

    def inside(self, axis: int, coordinate: str) -> str:
        """Whether a coordinate within the tile is inside the tensor; negative origins wrap to large ones."""
        return f"((u32){self.origins[axis]} + (u32){coordinate} < (u32){self.tensor}.extents[{self.axes[axis]}])"

    def holds(self, axis: int, extent: int) -> str:
        """Whether a whole tile extent is inside the tensor."""
        origin = self.origins[axis]
        return f"{origin} >= 0 && (u32){origin} + {extent}u <= (u32){self.tensor}.extents[{self.axes[axis]}]"

    def stride(self, axis: int) -> str:
        """Elements from one coordinate to the next."""
        return self.strides[axis]


def open_window(lw: Lowering, tensor: Value, coords: Sequence[Value], tile: TileType, op: Op) -> Window:
    """Compute the origin once: 64-bit offset, clipped 32-bit coordinates, and a buffer resource at the origin."""
    name, axes = lw.name(tensor), op.attrs["axes"]
    own = lw.fresh("window")
    terms, conditions = [], []
    origins = []
    for axis, coord in enumerate(coords):
        text = f"(long){lw.name(coord)}"
        if axis in axes:
            scale = tile.shape[axes.index(axis)] if op.attrs["unit"] == "tile" else 1
            origin = f"{own}_{axis}"
            lw.body.line(f"const int {origin} = scaled_coordinate({lw.name(coord)}, {scale});")
            origins.append(origin)
            terms.append(f"{origin} * {_stride(lw, tensor, axis)}")
        else:
            conditions.append(f"(u64)({text}) < (u64){name}.extents[{axis}]")
            terms.append(f"{text} * {name}.strides[{axis}]")
    valid, element = "true", " + ".join(terms) or "0L"
    if conditions:
        valid = f"{own}_valid"
        lw.body.line(f"const bool {valid} = {' && '.join(conditions)};")
        element = f"{valid} ? {element} : 0L"
    lw.body.line(f"const long {own}_element = {element};")
    dtype = tensor.tensor.dtype
    strides = tuple(_stride(lw, tensor, axis) for axis in axes)
    names = f"{own}_element", valid, lw.wide(tensor)
    return Window(name, dtype, tuple(axes), tuple(origins), *names, strides, origin_divisor(lw, op, coords, tile))


def _stride(lw: Lowering, tensor: Value, axis: int) -> str:
    """Elements from one coordinate to the next; 1 along the rows of a tensor with wide rows."""
    stride = f"{lw.name(tensor)}.strides[{axis}]"
    return f"({lw.wide(tensor)} ? 1L : {stride})" if axis == tensor.tensor.rank - 1 else stride


def run_length(layout: Layout, dtype: DType) -> int:
    """Consecutive items that are neighbours along the last axis and fit one 16-byte access."""
    width = vector_width(dtype, layout)
    length = width & -width
    while length > 1 and not is_run(layout, length):
        length //= 2
    return min(length, 16 // dtype.nbytes)


def wide_run(window: Window, layout: Layout, tile: TileType) -> int:
    """Elements of one access to a tensor with wide rows: none straddles the edge of the tensor or of the tile."""
    return math.gcd(run_length(layout, tile.dtype), window.divisor, tile.shape[-1])


@dataclass(frozen=True)
class _Element:
    """An item's place in a window: whether it is inside both the tensor and the tile, and its address.

    That is also `base`, the same for all lanes of a wave, and `offset` elements from there.
    """

    inside: str
    pointer: str
    base: str
    offset: str


def _element(lw: Lowering, window: Window, layout: Layout, shape: Sequence[int], item: str) -> _Element:
    """Declare an item's place in the tile."""
    places = declare_place(lw, layout, item)
    conditions, steps, shared = [window.valid], [], []
    for axis, (place, extent) in enumerate(zip(places, shape, strict=True)):
        conditions.append(window.inside(axis, place))
        if layout.extent[axis] > extent:
            conditions.append(f"{place} < {extent}")
        steps.append(f"{place} * {window.stride(axis)}")
        shared.append(not any(part[axis] for part in layout.lanes))
    pointer = f"{window.tensor}.at({' + '.join([window.element, *steps])})"
    own = [step for step, is_shared in zip(steps, shared, strict=True) if is_shared]
    base = f"{window.tensor}.at({' + '.join([window.element, *own])})"
    offset = " + ".join(step for step, is_shared in zip(steps, shared, strict=True) if not is_shared)
    return _Element(both(*conditions), pointer, base, offset or "0")


def lower_load(lw: Lowering, op: Op) -> None:
    """A tile of a tensor into registers."""
    tensor, fill, *coords = op.operands
    tile: TileType = op.attrs["type"]
    if tile.space == "shared":
        from warpwave.tiles.simt.shared import load_shared

        return load_shared(lw, op)
    window = open_window(lw, tensor, coords, tile, op)
    if tile.is_scalar:
        name = lw.define(op.result)
        pointer = f"{window.tensor}.at({window.element})"
        lw.body.line(f"const {ctype(tile.dtype)} {name} = {window.valid} ? *{pointer} : {lw.name(fill)};")
        return None
    layout = lw.layout(op.result)
    name = lw.declare(op.result)
    emit_load(lw, window, layout, tile, name, lw.name(fill))
    return None


def emit_load(lw: Lowering, window: Window, layout: Layout, tile: TileType, name: str, fill: str) -> None:
    """Fill a declared register tile from a window."""
    run = wide_run(window, layout, tile)
    count = len(layout.items)
    if run > 1:
        with lw.body.block(f"if constexpr ({window.wide})"):
            _vector_loads(lw, window, layout, tile, name, fill, run)
        lw.body.lines[-1] = lw.body.lines[-1] + " else"
    with lw.body.each(count):
        element = _element(lw, window, layout, tile.shape, "i")
        lw.body.line(f"{name}.set(i, load_if<{ctype(tile.dtype)}>({element.inside}, {element.pointer}, {fill}));")


def _vector_loads(lw: Lowering, window: Window, layout: Layout, tile: TileType, name: str, fill: str, run: int) -> None:
    kind = ctype(tile.dtype)
    with lw.body.each(len(layout.items) // run):
        element = _element(lw, window, layout, tile.shape, f"i * {run}")
        lw.body.line(f"const vec<{kind}, {run}> x = {_wide_load(lw, element, layout, kind, run, fill)};")
        set_run(lw, name, layout, tile.dtype, run)


def _wide_load(lw: Lowering, element: _Element, layout: Layout, kind: str, run: int, fill: str) -> str:
    if lw.by_offsets(layout):
        return f"load_at_if<{kind}, {run}>({element.inside}, {element.base}, (int)({element.offset}), {fill})"
    return f"load_vector_if<{kind}, {run}>({element.inside}, {element.pointer}, {fill})"


def _wide_store(lw: Lowering, element: _Element, layout: Layout, primary: str) -> str:
    condition = both(primary, element.inside)
    if lw.by_offsets(layout):
        return f"store_at_if({condition}, {element.base}, (int)({element.offset}), x);"
    return f"if ({condition}) store_vector({element.pointer}, x);"


def set_run(lw: Lowering, name: str, layout: Layout, dtype: DType, run: int) -> None:
    """Run i of a tile is the vector `x`; a whole hardware vector is not taken apart."""
    if run == 1:
        lw.body.line(f"{name}.set(i, x);")
    elif run == vector_width(dtype, layout):
        lw.body.line(f"{name}.v[i] = x;")
    else:
        lw.body.line(f"EACH(e, {run}) {name}.set(i * {run} + e, x[e]);")


def declare_run(lw: Lowering, name: str, layout: Layout, dtype: DType, run: int) -> None:
    """Declare the vector `x`, run i of a tile."""
    if run == vector_width(dtype, layout):
        lw.body.line(f"const auto x = {name}.v[i];")
    else:
        lw.body.line(f"vec<{ctype(dtype)}, {run}> x;")
        lw.body.line(f"EACH(e, {run}) x[e] = {name}.get(i * {run} + e);")


def lower_store(lw: Lowering, op: Op) -> None:
    """A register tile to a tensor; what lies outside is not written."""
    tensor, value, *coords = op.operands
    tile = value.tile
    if tile.space == "shared":
        from warpwave.tiles.simt.shared import read_to_registers

        value = read_to_registers(lw, value)
    window = open_window(lw, tensor, coords, tile, op)
    if tile.is_scalar:
        pointer = f"{window.tensor}.at({window.element})"
        lw.body.line(f"if ({window.valid} && thread == 0) *{pointer} = {lw.name(value)};")
        return
    layout, name = lw.layout(value), lw.name(value)
    primary = lw.primary(layout)
    run = wide_run(window, layout, tile)
    if run > 1:
        with lw.body.block(f"if constexpr ({window.wide})"), lw.body.each(len(layout.items) // run):
            element = _element(lw, window, layout, tile.shape, f"i * {run}")
            declare_run(lw, name, layout, tile.dtype, run)
            lw.body.line(_wide_store(lw, element, layout, primary))
        lw.body.lines[-1] = lw.body.lines[-1] + " else"
    with lw.body.each(len(layout.items)):
        element = _element(lw, window, layout, tile.shape, "i")
        lw.body.line(f"if ({both(primary, element.inside)}) *{element.pointer} = {name}.get(i);")


def lower_atomic_add(lw: Lowering, op: Op) -> None:
    """Each element once, at device scope."""
    tensor, value, *coords = op.operands
    tile = value.tile
    window = open_window(lw, tensor, coords, tile, op)
    if tile.is_scalar:
        pointer = f"{window.tensor}.at({window.element})"
        lw.body.line(f"if ({window.valid} && thread == 0) atomic_add({pointer}, {lw.name(value)});")
        return
    layout = lw.layout(value)
    with lw.body.each(len(layout.items)):
        element = _element(lw, window, layout, tile.shape, "i")
        condition = both(lw.primary(layout), element.inside)
        lw.body.line(f"if ({condition}) atomic_add({element.pointer}, {lw.name(value)}.get(i));")


def lower_dim(lw: Lowering, op: Op) -> None:
    """An extent, straight from the argument."""
    lw.names[op.result] = f"{lw.name(op.operands[0])}.extents[{op.attrs['axis']}]"


def is_zero_fill(lw: Lowering, fill: Value) -> bool:
    """Whether elements outside read as +0, which is what hardware that checks bounds gives there."""
    made = lw.definitions.get(fill)
    return made is not None and made.name == "constant" and str(float(made.attrs["value"])) == "0.0"
