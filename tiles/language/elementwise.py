"""Elementwise ops, casts, and how operands of different type and shape are made to fit.

Promotion: Python numbers take the tile's dtype; bf16 or f16 with f32 gives f32; integers with f32, and
`/` on integers, give f32; i8 with i32 gives i32, with i64 i64. Everything else needs an explicit cast.
Each op on bf16 and f16 gives the exact result rounded once to nearest even.
"""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

import numpy as np

from warpwave.tiles.dtypes import DType, bool_, f32, i32, i64
from warpwave.tiles.errors import TileTypeError, TileValueError
from warpwave.tiles.ir.opdefs import NAN_RULES, ROUNDINGS
from warpwave.tiles.language import context
from warpwave.tiles.language.handles import Buffer, Tensor, Tile
from warpwave.tiles.types import TileType

Number = bool | int | float


def is_number(x: Any) -> bool:
    """Whether `x` is a compile-time number."""
    return isinstance(x, builtins.bool | builtins.int | builtins.float | np.integer | np.floating | np.bool_)


def constant(value: Any, dtype: DType) -> Tile:
    """A scalar constant of `dtype`; TileValueError if the format cannot hold the value."""
    plain = value.item() if isinstance(value, np.generic) else value
    check_representable(plain, dtype)
    return Tile(context.builder().constant(_to_kind(plain, dtype), dtype))


def _to_kind(value: Number, dtype: DType) -> Number:
    if dtype.is_float:
        return float(value)
    return builtins.bool(value) if dtype == bool_ else int(value)


def check_representable(value: Number, dtype: DType) -> None:
    """Raise unless `dtype` has this value, apart from the rounding of a finite float."""
    if dtype.is_int and (int(value) != value or not dtype.min <= value <= dtype.max):
        raise TileValueError(f"{value!r} does not fit {dtype} ({dtype.min} to {dtype.max})")
    if dtype.is_float and isinstance(value, float) and math.isinf(value) and not dtype.has_inf:
        raise TileValueError(
            f"{dtype} has no infinity", hint=f"use its largest finite value {dtype.max}, or cast to f32 first"
        )
    if dtype.is_float and math.isfinite(value) and not -_edge(dtype) < value < _edge(dtype):
        raise TileValueError(
            f"{value!r} is beyond {dtype}'s largest finite value {dtype.max}",
            hint="use that value, or cast to f32 first",
        )
    if dtype == bool_ and value not in (0, 1):
        raise TileValueError(f"{value!r} is not a bool")


@functools.lru_cache(maxsize=32)
def _edge(dtype: DType) -> float:
    """The smallest number that rounds to more than the largest finite one: half a unit in the last place above it."""
    exponent = math.frexp(dtype.max)[1] - 1
    return dtype.max + math.ldexp(1.0, exponent - dtype.mantissa - 1)


def natural_dtype(value: Any) -> DType:
    """The dtype of a Python number that meets no tile: bool, i32 (i64 if it does not fit), f32."""
    if isinstance(value, builtins.bool | np.bool_):
        return bool_
    if isinstance(value, int | np.integer):
        return i32 if i32.min <= value <= i32.max else i64
    return f32


def as_tile(x: Any, dtype: DType | None = None) -> Tile:
    """`x` as a register tile: numbers become constants, shared tiles are read into registers."""
    if isinstance(x, Tile):
        return to_register(x)
    if is_number(x):
        return constant(x, dtype or natural_dtype(x))
    if isinstance(x, Buffer):
        raise TileTypeError(f"{x} is a shared buffer, not a value", hint="read it with ww.load(buffer)")
    if isinstance(x, Tensor):
        raise TileTypeError(f"{x.name} is a global tensor, not a tile", hint=f"read it with ww.load({x.name}, ...)")
    hint = "data enter a kernel as arguments: pass it as a gl parameter" if isinstance(x, np.ndarray) else None
    raise TileTypeError(f"expected a tile, a run-time scalar or a number, got {type(x).__name__}", hint=hint)


def to_register(tile: Tile) -> Tile:
    """The tile in registers."""
    if tile.type.space == "register":
        return tile
    return Tile(context.builder().emit1("copy", [tile.value], space="register"))


def to_shared(tile: Tile) -> Tile:
    """The tile in shared memory, for instance to use it as an operand in another distribution."""
    if tile.type.space == "shared":
        return tile
    return Tile(context.builder().emit1("copy", [tile.value], space="shared"))


def promoted_dtype(a: DType, b: DType) -> DType:
    """The common dtype of two run-time operands, or TileTypeError."""
    if a == b:
        return a
    if a.is_float and b.is_float and not (a.is_fp8 or b.is_fp8) and f32 in (a, b):
        return f32
    if a.is_int and b.is_int:
        return a if a.bits > b.bits else b
    if f32 in (a, b) and (a.is_int or b.is_int):
        return f32
    raise TileTypeError(f"{a} and {b} do not mix", hint="convert one with ww.cast(x, dtype)")


def _common_dtype(operands: tuple[Any, ...]) -> DType:
    dtypes = [x.dtype for x in operands if isinstance(x, Tile)]
    if not dtypes:
        return _widest_number(operands)
    common = dtypes[0]
    for dtype in dtypes[1:]:
        common = promoted_dtype(common, dtype)
    if common.is_int and any(isinstance(x, float | np.floating) for x in operands):
        return f32
    return common


def _widest_number(operands: tuple[Any, ...]) -> DType:
    order = (bool_, i32, i64, f32)
    return max((natural_dtype(x) for x in operands if is_number(x)), key=order.index, default=f32)


def positive_axis(axis: Any, tile: TileType, what: str) -> int:
    """`axis` counted from the front; TileValueError if the tile has no such axis."""
    if isinstance(axis, builtins.bool) or not isinstance(axis, int) or not -tile.rank <= axis < tile.rank:
        hint = f"axes go from 0 to {tile.rank - 1}" if tile.rank else "a scalar has no axes"
        raise TileValueError(f"{what} along axis {axis!r} of {tile}", hint=hint)
    return axis % tile.rank


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape; scalars fit everything, extents of 1 repeat, a bare vector does not meet a tile."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        result = _broadcast_pair(result, shape)
    return result


def _broadcast_pair(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if not a or not b:
        return a or b
    if len(a) != len(b):
        vector, tile = sorted((a, b), key=lambda shape: len(shape))
        raise TileTypeError(
            f"a vector of {vector[0]} and a tile of shape {list(tile)} do not broadcast",
            hint="say which way it lies: v[:, None] is a column, v[None, :] a row",
        )
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        raise TileValueError(f"shapes {list(a)} and {list(b)} do not broadcast")
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Tile:
    """`x` repeated to `shape` (scalars, and extents of 1)."""
    tile = as_tile(x)
    if tile.shape == shape:
        return tile
    return Tile(context.builder().emit1("broadcast", [tile.value], shape=tuple(shape)))


def _fit(*operands: Any, dtype: DType | None = None) -> list[Tile]:
    dtype = dtype or _common_dtype(operands)
    tiles = [_convert(x, dtype) for x in operands]
    shape = broadcast_shapes(*(t.shape for t in tiles))
    return [broadcast_to(t, shape) for t in tiles]


def _convert(x: Any, dtype: DType) -> Tile:
    tile = as_tile(x, dtype if is_number(x) else None)
    return tile if tile.dtype == dtype else cast(tile, dtype)


def _emit(name: str, *operands: Any, dtype: DType | None = None, **attrs: Any) -> Tile:
    tiles = _fit(*operands, dtype=dtype)
    return Tile(context.builder().emit1(name, [t.value for t in tiles], **attrs))


# -- arithmetic ---------------------------------------------------------------------------------------


def add(a: Any, b: Any) -> Tile:
    """a + b."""
    return _emit("add", a, b)


def sub(a: Any, b: Any) -> Tile:
    """a - b."""
    return _emit("sub", a, b)


def mul(a: Any, b: Any) -> Tile:
    """a * b."""
    return _emit("mul", a, b)


def div(a: Any, b: Any) -> Tile:
    """a / b, correctly rounded; integers are converted to f32 first, as Python's `/` gives a float."""
    common = _common_dtype((a, b))
    return _emit("div", a, b, dtype=common if common.is_float else f32)


def floordiv(a: Any, b: Any) -> Tile:
    """a // b for integers, rounded down as in Python. The result for a run-time b = 0 is undefined."""
    _refuse_zero(b)
    return _emit("floordiv", a, b)


def mod(a: Any, b: Any) -> Tile:
    """a % b for integers, with the sign of b as in Python. The result for a run-time b = 0 is undefined."""
    _refuse_zero(b)
    return _emit("mod", a, b)


def _refuse_zero(b: Any) -> None:
    if is_number(b) and b == 0:
        raise TileValueError("integer division by zero")


def neg(x: Any) -> Tile:
    """-x."""
    return _emit("neg", x)


def abs(x: Any) -> Tile:
    """|x|; i32's most negative value maps to itself."""
    return _emit("abs", x)


def fma(a: Any, b: Any, c: Any) -> Tile:
    """a * b + c with one rounding. The language never contracts `a * b + c` by itself."""
    return _emit("fma", a, b, c)


def maximum(a: Any, b: Any, *, nan: str = "propagate") -> Tile:
    """Elementwise maximum. nan="propagate": NaN if either is; "ignore": the other one. max(-0, +0) = +0."""
    return _emit("max", a, b, nan=_nan_rule(nan))


def minimum(a: Any, b: Any, *, nan: str = "propagate") -> Tile:
    """Elementwise minimum. nan="propagate": NaN if either is; "ignore": the other one. min(-0, +0) = -0."""
    return _emit("min", a, b, nan=_nan_rule(nan))


def _nan_rule(nan: str) -> str:
    if nan not in NAN_RULES:
        raise TileValueError(f"nan= is one of {', '.join(NAN_RULES)}, got {nan!r}")
    return nan


def clamp(x: Any, low: Any, high: Any) -> Tile:
    """x limited to [low, high]; NaN stays NaN."""
    return minimum(maximum(x, low), high)


def relu(x: Any) -> Tile:
    """max(x, 0); NaN stays NaN."""
    return _emit("relu", x)


# -- comparison, logic and bits -----------------------------------------------------------------------


def eq(a: Any, b: Any) -> Tile:
    """a == b."""
    return _emit("eq", a, b)


def ne(a: Any, b: Any) -> Tile:
    """a != b."""
    return _emit("ne", a, b)


def lt(a: Any, b: Any) -> Tile:
    """a < b."""
    return _emit("lt", a, b)


def le(a: Any, b: Any) -> Tile:
    """a <= b."""
    return _emit("le", a, b)


def gt(a: Any, b: Any) -> Tile:
    """a > b."""
    return _emit("gt", a, b)


def ge(a: Any, b: Any) -> Tile:
    """a >= b."""
    return _emit("ge", a, b)


def isnan(x: Any) -> Tile:
    """Whether each element is NaN."""
    return _emit("isnan", x)


def where(condition: Any, a: Any, b: Any) -> Tile:
    """`a` where `condition` is true, else `b`; the three broadcast together."""
    chosen = _fit(a, b)
    shape = broadcast_shapes(as_tile(condition).shape, chosen[0].shape)
    operands = [broadcast_to(x, shape) for x in (as_tile(condition), *chosen)]
    return Tile(context.builder().emit1("select", [t.value for t in operands]))


def bit_and(a: Any, b: Any) -> Tile:
    """a & b for integers and bools."""
    return _emit("and", a, b)


def bit_or(a: Any, b: Any) -> Tile:
    """a | b for integers and bools."""
    return _emit("or", a, b)


def bit_xor(a: Any, b: Any) -> Tile:
    """a ^ b for integers and bools."""
    return _emit("xor", a, b)


def shl(a: Any, b: Any) -> Tile:
    """a << b; the result for a run-time b outside 0..bits-1 is undefined."""
    _check_shift(a, b)
    return _emit("shl", a, b)


def shr(a: Any, b: Any) -> Tile:
    """a >> b, keeping the sign; the result for a run-time b outside 0..bits-1 is undefined."""
    _check_shift(a, b)
    return _emit("shr", a, b)


def _check_shift(a: Any, b: Any) -> None:
    bits = _common_dtype((a, b)).bits
    if is_number(b) and not 0 <= b < bits:
        raise TileValueError(f"a shift by {b!r} of a {bits}-bit integer", hint=f"the amount is 0 to {bits - 1}")


def invert(x: Any) -> Tile:
    """~x for integers, logical not for bools."""
    return _emit("not", x)


# -- functions ----------------------------------------------------------------------------------------


def _float_unary(name: str, x: Any) -> Tile:
    tile = as_tile(x, f32 if is_number(x) else None)
    return _emit(name, cast(tile, f32) if tile.dtype.is_int else tile)


def exp(x: Any) -> Tile:
    """e ** x."""
    return _float_unary("exp", x)


def exp2(x: Any) -> Tile:
    """2 ** x."""
    return _float_unary("exp2", x)


def log(x: Any) -> Tile:
    """Natural logarithm: -inf at 0, NaN below."""
    return _float_unary("log", x)


def log2(x: Any) -> Tile:
    """Binary logarithm: -inf at 0, NaN below."""
    return _float_unary("log2", x)


def sqrt(x: Any) -> Tile:
    """Square root, correctly rounded."""
    return _float_unary("sqrt", x)


def rsqrt(x: Any) -> Tile:
    """1 / sqrt(x)."""
    return _float_unary("rsqrt", x)


def rcp(x: Any) -> Tile:
    """1 / x, within the contract's bound; `1 / x` is the correctly rounded quotient."""
    return _float_unary("rcp", x)


def tanh(x: Any) -> Tile:
    """Hyperbolic tangent."""
    return _float_unary("tanh", x)


def sigmoid(x: Any) -> Tile:
    """1 / (1 + exp(-x))."""
    return _float_unary("sigmoid", x)


def erf(x: Any) -> Tile:
    """The error function."""
    return _float_unary("erf", x)


def gelu(x: Any, *, approximate: bool = False) -> Tile:
    """x * Phi(x), with Phi the normal distribution; `approximate` is the usual tanh form. NaN at -inf (inf * 0)."""
    return _float_unary("gelu_tanh" if approximate else "gelu", x)


def silu(x: Any) -> Tile:
    """x * sigmoid(x). NaN at -inf (inf * 0)."""
    return _float_unary("silu", x)


def floor(x: Any) -> Tile:
    """Largest integer not above x, as a float."""
    return _float_unary("floor", x)


def ceil(x: Any) -> Tile:
    """Smallest integer not below x, as a float."""
    return _float_unary("ceil", x)


def round(x: Any) -> Tile:
    """Nearest integer as a float, halves to even as in Python."""
    return _float_unary("round", x)


def trunc(x: Any) -> Tile:
    """x without its fraction, as a float."""
    return _float_unary("trunc", x)


# -- conversion ---------------------------------------------------------------------------------------


def cast(x: Any, dtype: DType, *, rounding: str | None = None, saturate: bool | None = None) -> Tile:
    """Convert to `dtype`.

    `rounding`: "rne" nearest, ties to even (default; float to integer: "rtz"), "rtz" toward zero, "rta"
    nearest, ties away, "rtp" up, "rtn" down.
    `saturate` (default true for fp8 and for float to integer, else false): values beyond the largest
    finite one, and infinities, become it; NaN stays NaN, and 0 as an integer. Not saturating, a float
    format overflows to infinity, or to NaN where it has none, and an integer wraps. A finite value that
    is rounded away from infinity stops at the largest finite one, as in IEEE 754. To the dtype that the
    tile has already, only `saturate=True` changes anything.
    """
    tile = x if isinstance(x, Tile) else as_tile(x)
    if not isinstance(dtype, DType):
        raise TileTypeError(f"cast takes a dtype such as f32, got {dtype!r}")
    if tile.dtype == dtype and not (saturate and dtype.has_inf):
        return tile
    to_int = tile.dtype.is_float and dtype.is_int
    rounding = rounding or ("rtz" if to_int else "rne")
    if rounding not in ROUNDINGS:
        raise TileValueError(f"rounding is one of {', '.join(ROUNDINGS)}, got {rounding!r}")
    if saturate is None:
        saturate = dtype.is_fp8 or to_int
    if to_int and not saturate:
        raise TileValueError("a float cannot wrap into an integer", hint="leave saturate at its default")
    return Tile(context.builder().emit1("cast", [tile.value], dtype=dtype, rounding=rounding, saturate=saturate))


def bitcast(x: Any, dtype: DType) -> Tile:
    """The same bits read as `dtype` of the same width."""
    return Tile(context.builder().emit1("bitcast", [as_tile(x).value], dtype=dtype))
