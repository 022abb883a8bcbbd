"""From one layout to another, through shared memory where lanes have to exchange elements."""

from __future__ import annotations

from collections.abc import Sequence

from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Value
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.simt.layout import Layout
from warpwave.tiles.simt.writer import ctype

Place = tuple[int, ...]


def convert(lw: Lowering, value: Value, layout: Layout) -> str:
    """The C name of `value` in `layout`: itself, its items in another order, or a copy through shared memory."""
    have = lw.layout(value)
    if have == layout:
        return lw.name(value)
    name = lw.fresh("laid")
    dtype = value.tile.dtype
    lw.body.line(f"{lw.tile_type(dtype, layout)} {name};")
    if (have.lanes, have.waves) == (layout.lanes, layout.waves) and set(layout.items) <= set(have.items):
        index = {item: i for i, item in enumerate(have.items)}
        numbers = [index[item] for item in layout.items]
        with lw.body.each(len(numbers)):
            lw.body.line(f"{name}.set(i, {lw.name(value)}.get({lw.table(numbers)}[i]));")
        return name
    extent = tuple(max(a, b) for a, b in zip(have.extent, layout.extent, strict=True))
    pitch = _pitch(extent, dtype)
    lw.scratch(pitch * extent[0])
    zero = (0,) * have.rank
    lw.barrier()
    _write(lw, lw.name(value), have, dtype, pitch, zero, 1, value.tile.shape)
    lw.barrier()
    _read(lw, name, layout, dtype, pitch, zero, 1, value.tile.shape)
    return name


def through_shared(
    lw: Lowering, sources: Sequence[tuple[Value, Place, int]], result: Value, origin: Place, step: int = 1
) -> None:
    """Declare `result` as the window at `origin` of what `sources` write: each (value, place, column step)."""
    dtype = result.tile.dtype
    extent = [1] * result.tile.rank
    for value, place, stride in sources:
        for axis, (at, size) in enumerate(zip(place, value.tile.shape, strict=True)):
            scale = stride if axis == result.tile.rank - 1 else 1
            extent[axis] = max(extent[axis], at + (size - 1) * scale + 1)
    pitch = _pitch(tuple(extent), dtype)
    lw.scratch(pitch * extent[0])
    lw.barrier()
    for value, place, stride in sources:
        _write(lw, lw.name(value), lw.layout(value), dtype, pitch, place, stride, value.tile.shape)
    lw.barrier()
    name = lw.declare(result)
    _read(lw, name, lw.layout(result), dtype, pitch, origin, step, result.tile.shape)


def _pitch(extent: Place, dtype: DType) -> int:
    """Bytes from row to row: one word more than the data, so that columns do not share a bank."""
    if len(extent) == 1:
        return dtype.nbytes
    word = max(4, dtype.nbytes)
    return (-(-extent[1] * dtype.nbytes // word) + 1) * word


def _address(lw: Lowering, layout: Layout, dtype: DType, pitch: int, place: Place, step: int) -> str:
    at = lw.coordinates(layout)
    if layout.rank == 1:
        return f"({at.at(0)} * {step} + {place[0]}) * {dtype.nbytes}"
    return f"({at.at(0)} + {place[0]}) * {pitch} + ({at.at(1)} * {step} + {place[1]}) * {dtype.nbytes}"


def inside(lw: Lowering, layout: Layout, shape: Place, item: str = "i") -> str:
    """Condition that an item is an element of the tile, not padding; "true" where all items are."""
    at = lw.coordinates(layout)
    terms = [
        f"{at.at(axis, item)} < {extent}"
        for axis, (extent, covered) in enumerate(zip(shape, layout.extent, strict=True))
        if covered > extent
    ]
    return " && ".join(terms) or "true"


def _write(
    lw: Lowering, name: str, layout: Layout, dtype: DType, pitch: int, place: Place, step: int, shape: Place
) -> None:
    """Store all elements once: copies and padding are left out."""
    condition = " && ".join(c for c in (lw.primary(layout), inside(lw, layout, shape)) if c != "true") or "true"
    with lw.body.each(len(layout.items)):
        store = f"*({ctype(dtype)} *)(scratch + {_address(lw, layout, dtype, pitch, place, step)}) = {name}.get(i);"
        lw.body.line(store if condition == "true" else f"if ({condition}) {store}")


def _read(
    lw: Lowering, name: str, layout: Layout, dtype: DType, pitch: int, place: Place, step: int, shape: Place
) -> None:
    condition = inside(lw, layout, shape)
    with lw.body.each(len(layout.items)):
        load = f"*(const {ctype(dtype)} *)(scratch + {_address(lw, layout, dtype, pitch, place, step)})"
        lw.body.line(
            f"{name}.set(i, {load if condition == 'true' else f'{condition} ? {load} : zero<{ctype(dtype)}>()'});"
        )
