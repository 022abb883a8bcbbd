"""Tiles made from nothing, and rearrangements of tiles."""

from __future__ import annotations

from typing import Any

from warpwave.tiles.dtypes import i32
from warpwave.tiles.errors import TileTypeError
from warpwave.tiles.language import context
from warpwave.tiles.language.elementwise import as_tile, constant, is_number, positive_axis
from warpwave.tiles.language.handles import Tile
from warpwave.tiles.types import TileType


def _type_of(type_: Any, what: str) -> TileType:
    if not isinstance(type_, TileType):
        raise TileTypeError(f"{what} takes a tile type such as rt[f32, 64, 64], got {type_!r}")
    if type_.space != "register":
        raise TileTypeError(f"{what} makes a register tile, got {type_}", hint="use rt[...] or rv[...]")
    return type_


def full(type_: TileType, value: Any, *, over: tuple[int, ...] | None = None) -> Tile:
    """A register tile or vector of `type_` filled with a number or run-time scalar."""
    tile_type = _type_of(type_, "full")
    scalar = constant(value, tile_type.dtype) if is_number(value) else as_tile(value)
    if scalar.shape or scalar.dtype != tile_type.dtype:
        raise TileTypeError(f"full {tile_type} takes a {tile_type.dtype} scalar, got {scalar.type}")
    tile = Tile(context.builder().emit1("broadcast", [scalar.value], shape=tile_type.shape))
    return distribute(tile, over) if over else tile


def zeros(type_: TileType, *, over: tuple[int, ...] | None = None) -> Tile:
    """A register tile or vector of zeros. `over=(wm, wn)` constrains its distribution."""
    return full(type_, 0, over=over)


def ones(type_: TileType) -> Tile:
    """A register tile or vector of ones."""
    return full(type_, 1)


def iota(type_: TileType, axis: int = 0) -> Tile:
    """i32 element indices along `axis`: `iota(rv[i32, 64])` counts 0 to 63."""
    tile_type = _type_of(type_, "iota")
    if tile_type.dtype != i32:
        raise TileTypeError(f"iota gives i32, got {tile_type}", hint="convert with ww.cast(x, dtype)")
    return Tile(context.builder().emit1("iota", shape=tile_type.shape, axis=positive_axis(axis, tile_type, "iota")))


def distribute(x: Tile, over: tuple[int, ...]) -> Tile:
    """Constrain how many warps (waves) split each dimension of `x`; the values do not change."""
    return Tile(context.builder().emit1("distribute", [as_tile(x).value], over=tuple(over)))


def transpose(x: Tile) -> Tile:
    """Rows and columns swapped."""
    if not isinstance(x, Tile):
        raise TileTypeError(f"transpose takes a tile, got {x!r}")
    return x.T


def concat(tiles: list[Tile] | tuple[Tile, ...], axis: int) -> Tile:
    """Tiles joined along `axis`."""
    if not tiles:
        raise TileTypeError("concat takes at least one tile")
    parts = [as_tile(t) for t in tiles]
    position = positive_axis(axis, parts[0].type, "concat")
    return Tile(context.builder().emit1("concat", [p.value for p in parts], axis=position))


def deinterleave(x: Tile) -> tuple[Tile, Tile]:
    """The even and the odd elements of the last axis, as two tiles of half the width."""
    even, odd = context.builder().emit("deinterleave", [as_tile(x).value])
    return Tile(even), Tile(odd)


def interleave(even: Tile, odd: Tile) -> Tile:
    """The inverse of deinterleave."""
    return Tile(context.builder().emit1("interleave", [as_tile(even).value, as_tile(odd).value]))
