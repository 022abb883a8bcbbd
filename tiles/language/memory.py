"""Loads, stores, atomic adds and shared buffers.

Coordinates are given one per dimension of the tensor. Along the dimensions that the tile spans (`axes`,
by default the last ones) they count in tiles, or in elements with unit="element"; along all others they
count in elements. Offsets are computed in 64 bits. Elements outside the tensor, negative coordinates
included, read as `fill` and are never written.
"""

from __future__ import annotations

from typing import Any

from warpwave.tiles.dtypes import DType, i32
from warpwave.tiles.errors import TileTypeError, TileValueError
from warpwave.tiles.language import context
from warpwave.tiles.language.elementwise import as_tile, cast, constant, is_number
from warpwave.tiles.language.handles import Buffer, Tensor, Tile
from warpwave.tiles.types import TileType, scalar

UNITS = ("tile", "element")


def load(
    src: Tensor | Buffer | Tile,
    coord: Any = None,
    type: TileType | None = None,
    *,
    axes: tuple[int, ...] | None = None,
    unit: str = "tile",
    fill: Any = 0,
) -> Tile:
    """Read a tile of a global tensor, a window of a shared buffer, or a shared tile into registers.

    Without `type`, a global tensor gives the scalar at `coord` and a buffer all of itself. A register tile
    of another dtype than the tensor's is converted. Inside `ww.pipeline`, loads into shared tiles run
    ahead of the iteration that uses them.
    """
    if isinstance(src, Tile):
        if coord is not None or type is not None:
            raise TileTypeError("load of a tile takes no coordinate or type", hint="slice it: t[0:16, :]")
        return as_tile(src)
    if isinstance(src, Buffer):
        _refuse_options("load from", axes=axes, fill=fill or None)
        return _load_buffer(src, coord, type, _unit(unit))
    if not isinstance(src, Tensor):
        raise TileTypeError(f"load reads a global tensor or a shared tile, got {src!r}")
    wanted = type if type is not None else scalar(src.dtype)
    stored = _stored_type(src, wanted)
    spanned = _axes(src, wanted, axes)
    operands = [src.value, _fill(fill, src.dtype).value, *(c.value for c in _coords(src, coord))]
    tile = Tile(context.builder().emit1("load", operands, type=stored, axes=spanned, unit=_unit(unit)))
    return cast(tile, wanted.dtype)


def store(
    dst: Tensor | Buffer,
    coord: Any,
    tile: Any,
    *,
    axes: tuple[int, ...] | None = None,
    unit: str = "tile",
    rounding: str | None = None,
    saturate: bool | None = None,
) -> None:
    """Write `tile` to a global tensor or shared buffer; it is converted to the dtype there (see `cast`)."""
    if not isinstance(dst, Tensor | Buffer):
        raise TileTypeError(f"store writes a global tensor or a ww.shared buffer, got {dst!r}")
    value = cast(_stored_value(tile, dst.dtype), dst.dtype, rounding=rounding, saturate=saturate)
    if isinstance(dst, Buffer):
        _refuse_options("store to", axes=axes)
        return _store_buffer(dst, coord, value, _unit(unit))
    _emit_write("store", dst, coord, value, axes, unit)
    return None


def atomic_add(dst: Tensor, coord: Any, tile: Any, *, axes: tuple[int, ...] | None = None, unit: str = "tile") -> None:
    """Add `tile` to a global tensor, each element atomically on the device; the order is not defined.

    The tensor is f32, i32, bf16 or f16; the tile is converted to its dtype first.
    """
    if not isinstance(dst, Tensor):
        raise TileTypeError(f"atomic_add adds to a global tensor, got {dst!r}")
    _emit_write("atomic_add", dst, coord, cast(_stored_value(tile, dst.dtype), dst.dtype), axes, unit)


def shared(type: TileType) -> Buffer:
    """A mutable shared tile, `ww.shared(st[bf16, 64, 64])`; reading what was never written is an error.

    Accesses take effect in program order for the whole block: the backend places the barriers they need.
    """
    if not isinstance(type, TileType) or type.space != "shared":
        raise TileTypeError(f"shared takes st[...] or sv[...], got {type!r}")
    return Buffer(context.builder().emit1("shared_alloc", type=type))


def _stored_value(tile: Any, dtype: DType) -> Tile:
    return constant(tile, dtype) if is_number(tile) else as_tile(tile)


def _emit_write(name: str, dst: Tensor, coord: Any, value: Tile, axes: Any, unit: str) -> None:
    spanned = _axes(dst, value.type, axes)
    operands = [dst.value, value.value, *(c.value for c in _coords(dst, coord))]
    context.builder().emit(name, operands, axes=spanned, unit=_unit(unit))


def _stored_type(src: Tensor, wanted: TileType) -> TileType:
    if not isinstance(wanted, TileType) or wanted.space == "buffer":
        raise TileTypeError(f"load takes a tile type such as st[{src.dtype}, 64, 64], got {wanted!r}")
    if wanted.space == "shared" and wanted.dtype != src.dtype:
        raise TileTypeError(
            f"a load into shared memory cannot convert {src.name}'s {src.dtype} to {wanted.dtype}",
            hint=f"load st[{src.dtype}, ...], or load into registers (rt), which converts",
        )
    return wanted.with_(dtype=src.dtype)


def _fill(fill: Any, dtype: DType) -> Tile:
    return constant(fill, dtype) if is_number(fill) else cast(as_tile(fill), dtype)


def _axes(tensor: Tensor, tile: TileType, axes: tuple[int, ...] | None) -> tuple[int, ...]:
    if axes is None:
        if tensor.ndim < tile.rank:
            raise TileTypeError(
                f"{tensor.name} has {tensor.ndim} dimension(s), too few for {tile}",
                hint="use rv[...] or sv[...] for a 1-D tensor",
            )
        return tuple(range(tensor.ndim - tile.rank, tensor.ndim))
    for axis in axes:
        if not -tensor.ndim <= axis < tensor.ndim:
            raise TileValueError(f"axis {axis} of {tensor.name}, which has {tensor.ndim} dimension(s)")
    return tuple(a % tensor.ndim for a in axes)


def _refuse_options(what: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise TileTypeError(f"{name}= has no meaning in a {what} a shared buffer")


def _unit(unit: str) -> str:
    if unit not in UNITS:
        raise TileValueError(f"unit is one of {', '.join(UNITS)}, got {unit!r}")
    return unit


def _coords(tensor: Tensor, coord: Any) -> list[Tile]:
    items = coord if isinstance(coord, tuple | list) else (coord,)
    if coord is None or len(items) != tensor.ndim:
        count = 0 if coord is None else len(items)
        raise TileTypeError(
            f"{tensor.name} has {tensor.ndim} dimension(s) and needs as many coordinates, got {count}",
            hint="leading dimensions are counted in elements, the tile's own in tiles",
        )
    return [_integer(item, f"a coordinate of {tensor.name}") for item in items]


def _integer(item: Any, what: str) -> Tile:
    tile = as_tile(item)
    if tile.shape or not tile.dtype.is_int:
        raise TileTypeError(f"{what} must be an integer scalar, got {tile.type}")
    return tile


def _load_buffer(src: Buffer, coord: Any, type: TileType | None, unit: str) -> Tile:
    wanted = type if type is not None else src.type.with_(space="register")
    stored = wanted.with_(dtype=src.dtype)
    offsets = _offsets(src, coord, wanted, unit)
    tile = context.builder().emit1("shared_read", [src.value, *(o.value for o in offsets)], type=stored)
    return cast(Tile(tile), wanted.dtype)


def _store_buffer(dst: Buffer, coord: Any, value: Tile, unit: str) -> None:
    offsets = _offsets(dst, coord, value.type, unit)
    context.builder().emit("shared_write", [dst.value, value.value, *(o.value for o in offsets)])


def _offsets(buffer: Buffer, coord: Any, window: TileType, unit: str) -> list[Tile]:
    """Element offsets of a window that is addressed in units of itself, or in elements."""
    if window.rank != buffer.type.rank or any(w > b for w, b in zip(window.shape, buffer.shape, strict=True)):
        raise TileValueError(f"{window} is no window of {buffer}")
    items = (0,) * window.rank if coord is None else coord if isinstance(coord, tuple | list) else (coord,)
    if len(items) != window.rank:
        raise TileTypeError(f"{buffer} needs {window.rank} coordinate(s), got {len(items)}")
    steps = window.shape if unit == "tile" else (1,) * window.rank
    return [_offset(buffer, window, axis, items[axis], steps[axis]) for axis in range(window.rank)]


def _offset(buffer: Buffer, window: TileType, axis: int, item: Any, step: int) -> Tile:
    if not is_number(item):
        return cast(_integer(item, "an offset"), i32) * step
    extent, limit = window.shape[axis], buffer.shape[axis]
    if not 0 <= item * step <= limit - extent:
        raise TileValueError(f"window {item} of extent {extent} is outside {buffer}")
    return constant(item * step, i32)
