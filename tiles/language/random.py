"""Counter-based random numbers with defined bits, the same on every target and for every tile shape.

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): element (row, col)
takes word col % 4 of the block with counter (col // 4, row, offset low, offset high) and key
(seed low, seed high), low words first.
"""

from __future__ import annotations

from typing import Any

from warpwave.tiles.dtypes import DType, f32, i32, i64
from warpwave.tiles.errors import TileTypeError
from warpwave.tiles.language import context
from warpwave.tiles.language.elementwise import as_tile, cast, constant, is_number
from warpwave.tiles.language.handles import Tile
from warpwave.tiles.types import TileType


def random_bits(type: TileType, seed: Any, offset: Any = 0, *, row: Any = 0, col: Any = 0) -> Tile:
    """32 random bits for each element of an rt[i32, R, C] tile or rv[i32, C] vector, as i32.

    `seed` and `offset` are 64-bit integers; (`row`, `col`) is the position of the tile's first element in
    the array that the numbers belong to, so that bits do not depend on how the array is cut into tiles.
    """
    if not isinstance(type, TileType) or type.dtype != i32 or type.space != "register" or not type.shape:
        raise TileTypeError(f"random_bits gives rt[i32, R, C] or rv[i32, C], got {type!r}")
    operands = [_integer(seed, i64), _integer(offset, i64), _integer(row, i32), _integer(col, i32)]
    return Tile(context.builder().emit1("random_bits", [t.value for t in operands], shape=type.shape))


def random_uniform(type: TileType, seed: Any, offset: Any = 0, *, row: Any = 0, col: Any = 0) -> Tile:
    """f32 numbers in [0, 1): the upper 24 of `random_bits`, times 2 ** -24."""
    if not isinstance(type, TileType) or type.dtype != f32:
        raise TileTypeError(f"random_uniform gives rt[f32, R, C] or rv[f32, C], got {type!r}")
    bits = random_bits(type.with_(dtype=i32), seed, offset, row=row, col=col)
    return cast((bits >> 8) & 0xFFFFFF, f32) * 2.0**-24


def _integer(x: Any, dtype: DType) -> Tile:
    if is_number(x):
        return constant(_signed(x), dtype) if dtype == i64 else constant(x, dtype)
    tile = as_tile(x)
    if tile.shape or not tile.dtype.is_int:
        raise TileTypeError(f"random numbers take integer scalars, got {tile.type}")
    return cast(tile, dtype)


def _signed(x: int) -> int:
    """A seed may be written as an unsigned 64-bit number."""
    return x - 2**64 if 2**63 <= x < 2**64 else x
