"""Reductions, running sums and matrix products.

Sums and products of bf16, f16 and f32 run in f32 (any order) and are rounded once; integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpwave.tiles.dtypes import i32
from warpwave.tiles.errors import TileTypeError, TileValueError
from warpwave.tiles.ir.opdefs import PRECISIONS
from warpwave.tiles.language import context
from warpwave.tiles.language.elementwise import _nan_rule, as_tile, maximum, minimum, positive_axis
from warpwave.tiles.language.handles import Buffer, Tile


def _reduce(name: str, x: Any, axis: int | None, keepdims: bool, **attrs: Any) -> Tile:
    tile = as_tile(x)
    if not tile.shape:
        raise TileTypeError(f"{name} reduces a tile or vector, got the scalar {tile.type}")
    if keepdims and (axis is None or tile.type.rank == 1):
        raise TileTypeError(
            f"{name}: keepdims needs a 2-D tile and an axis", hint="drop keepdims; a scalar fits any tile"
        )
    if axis is None:
        for _ in range(tile.type.rank):
            tile = Tile(context.builder().emit1(name, [tile.value], axis=tile.type.rank - 1, **attrs))
        return tile
    position = positive_axis(axis, tile.type, name)
    result = Tile(context.builder().emit1(name, [tile.value], axis=position, **attrs))
    if not keepdims:
        return result
    return Tile(context.builder().emit1("expand_dims", [result.value], axis=position))


def _extreme(name: str, pairwise: Callable[..., Tile], args: tuple[Any, ...], options: dict[str, Any]) -> Tile:
    """Python's max(a, b, ...) compares values; max(tile, axis=...) reduces."""
    nan = _nan_rule(options.get("nan", "propagate"))
    if len(args) == 1:
        return _reduce(name, args[0], options.get("axis"), options.get("keepdims", False), nan=nan)
    if not args or options.get("axis") is not None or options.get("keepdims"):
        raise TileTypeError(f"{name} takes one tile and an axis, or several tiles and no axis")
    result = args[0]
    for other in args[1:]:
        result = pairwise(result, other, nan=nan)
    return as_tile(result)


def max(*args: Any, axis: int | None = None, keepdims: bool = False, nan: str = "propagate") -> Tile:
    """Largest element along `axis` (all axes if None); with several arguments, their elementwise maximum.

    nan="propagate" gives NaN if there is one, "ignore" skips NaN (-inf if there is nothing else).
    """
    return _extreme("reduce_max", maximum, args, {"axis": axis, "keepdims": keepdims, "nan": nan})


def min(*args: Any, axis: int | None = None, keepdims: bool = False, nan: str = "propagate") -> Tile:
    """Smallest element along `axis`; see `max`."""
    return _extreme("reduce_min", minimum, args, {"axis": axis, "keepdims": keepdims, "nan": nan})


def sum(x: Tile, axis: int | None = None, *, keepdims: bool = False) -> Tile:
    """Sum along `axis` (all axes if None)."""
    return _reduce("reduce_sum", x, axis, keepdims)


def prod(x: Tile, axis: int | None = None, *, keepdims: bool = False) -> Tile:
    """Product along `axis` (all axes if None)."""
    return _reduce("reduce_prod", x, axis, keepdims)


def cumsum(x: Tile, axis: int = -1, *, reverse: bool = False, exclusive: bool = False) -> Tile:
    """Running sum along `axis`; `exclusive` leaves each element itself out, `reverse` runs from the end."""
    tile = as_tile(x)
    attrs = {"axis": positive_axis(axis, tile.type, "cumsum"), "reverse": reverse, "exclusive": exclusive}
    return Tile(context.builder().emit1("cumsum", [tile.value], **attrs))


# -- matrix products ----------------------------------------------------------------------------------


def _mma(acc: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool, precision: str) -> Tile:
    if precision not in PRECISIONS:
        raise TileValueError(f"precision is one of {', '.join(PRECISIONS)}, got {precision!r}")
    operands = [as_tile(acc), _operand(a), _operand(b)]
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b, "precision": precision}
    return Tile(context.builder().emit1("mma", [t.value for t in operands], **attrs))


def _operand(x: Any) -> Tile:
    """An mma operand may stay in shared memory; a buffer is read as it stands now."""
    if isinstance(x, Buffer):
        builder = context.builder()
        origin = [builder.constant(0, i32) for _ in x.shape]
        return Tile(builder.emit1("shared_read", [x.value, *origin], type=x.type.with_(space="shared")))
    return x if isinstance(x, Tile) else as_tile(x)


def mma_AB(acc: Tile, a: Tile, b: Tile, *, precision: str = "ieee") -> Tile:
    """acc[M, N] + a[M, K] @ b[K, N].

    Floats (a and b of one format) accumulate in f32, i8 in i32. f32 operands are used in full unless
    precision="tf32" allows their rounding to 10 fraction bits.
    """
    return _mma(acc, a, b, False, False, precision)


def mma_ABt(acc: Tile, a: Tile, b: Tile, *, precision: str = "ieee") -> Tile:
    """acc[M, N] + a[M, K] @ b[N, K].T; see mma_AB."""
    return _mma(acc, a, b, False, True, precision)


def mma_AtB(acc: Tile, a: Tile, b: Tile, *, precision: str = "ieee") -> Tile:
    """acc[M, N] + a[K, M].T @ b[K, N]; see mma_AB."""
    return _mma(acc, a, b, True, False, precision)


def mma_AtBt(acc: Tile, a: Tile, b: Tile, *, precision: str = "ieee") -> Tile:
    """acc[M, N] + a[K, M].T @ b[N, K].T; see mma_AB."""
    return _mma(acc, a, b, True, True, precision)
