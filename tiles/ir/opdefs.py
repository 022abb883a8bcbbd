"""The table of all ops: their attributes, type rule, purity and one-line meaning.

A type rule takes the operand types and attributes and returns the result types, or raises a TileError
that says what does not fit. The builder calls it to create an op, the verifier to check one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warpwave.tiles.dtypes import DType, bool_, f32, i32, i64
from warpwave.tiles.errors import TileTypeError, TileValueError
from warpwave.tiles.types import TensorType, TileType, Type, scalar

Attrs = Mapping[str, Any]
Rule = Callable[[Sequence[Type], Attrs], list[Type]]
Effect = Literal["none", "read", "write"]


@dataclass(frozen=True)
class OpDef:
    """One op. Effect `none`: may be moved, merged or dropped; `read`: dropped only; `write`: kept in order.

    `operands` names the operands; a last one that ends in `*` stands for any number of them.
    """

    name: str
    summary: str
    operands: tuple[str, ...]
    rule: Rule
    attrs: tuple[str, ...] = ()
    effect: Effect = "none"
    regions: int = 0

    def result_types(self, operands: Sequence[Type], attrs: Attrs) -> list[Type]:
        """The types of the results; TileError if operands or attributes do not fit."""
        if len(operands) != self.required and (len(operands) < self.required or self.required == len(self.operands)):
            raise TileTypeError(f"{len(operands)} operands instead of ({', '.join(self.operands)})")
        if len(attrs) != len(self.attrs) or any(name not in attrs for name in self.attrs):
            missing = [n for n in self.attrs if n not in attrs]
            unknown = [n for n in attrs if n not in self.attrs]
            what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
            raise TileTypeError(f"attribute {what}")
        return self.rule(operands, attrs)

    @functools.cached_property
    def required(self) -> int:
        """The least number of operands."""
        return sum(not o.endswith("*") for o in self.operands)


OPS: dict[str, OpDef] = {}


def _define(
    names: str, operands: str, rule: Rule, summary: str, attrs: str = "", *, effect: Effect = "none", regions: int = 0
) -> None:
    for name in names.split():
        OPS[name] = OpDef(name, summary, tuple(operands.split()), rule, tuple(attrs.split()), effect, regions)


def _tile(type_: Type, what: str = "operand") -> TileType:
    if not isinstance(type_, TileType) or type_.space == "buffer":
        raise TileTypeError(f"{what} must be a tile, vector or scalar, got {type_}")
    return type_


def _register(type_: Type, what: str = "operand") -> TileType:
    tile = _tile(type_, what)
    if tile.space != "register":
        raise TileTypeError(f"{what} must be in registers, got {tile}")
    return tile


def _scalar_int(type_: Type, what: str) -> TileType:
    tile = _tile(type_, what)
    if not tile.is_scalar or not tile.dtype.is_int:
        raise TileTypeError(f"{what} must be an integer scalar, got {tile}")
    return tile


def _tensor(type_: Type) -> TensorType:
    if not isinstance(type_, TensorType):
        raise TileTypeError(f"expected a global tensor, got {type_}")
    return type_


def _need(ok: bool, message: str, hint: str | None = None) -> None:
    if not ok:
        raise TileTypeError(message, hint=hint)


def _need_kind(dtype: DType, kinds: str) -> None:
    hint = "convert it with ww.cast(x, f32)" if dtype.is_fp8 else f"it takes {' or '.join(kinds.split())} operands"
    _need(dtype.kind in kinds.split() and not dtype.is_fp8, f"this op is not defined for {dtype}", hint)


def _same(types: Sequence[Type]) -> TileType:
    tiles = [_register(t) for t in types]
    if any(t != tiles[0] for t in tiles[1:]):
        raise TileTypeError(f"operands differ: {', '.join(map(str, tiles))}")
    return tiles[0]


# -- constants and shapes -----------------------------------------------------------------------------


def _constant(_: Sequence[Type], attrs: Attrs) -> list[Type]:
    value, dtype = attrs["value"], attrs["dtype"]
    fits = type(value) is {"float": float, "int": int, "bool": bool}[dtype.kind]
    if not fits or (dtype.is_int and not dtype.min <= value <= dtype.max):
        raise TileTypeError(f"{value!r} is no constant of {dtype}")
    return [scalar(dtype)]


def _iota(_: Sequence[Type], attrs: Attrs) -> list[Type]:
    shape, axis = attrs["shape"], attrs["axis"]
    _need(0 <= axis < len(shape), f"iota axis {axis} is outside shape {list(shape)}")
    return [TileType(i32, shape)]


def _expand_dims(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, axis = _register(types[0]), attrs["axis"]
    _need(tile.rank == 1 and axis in (0, 1), f"expand_dims makes a vector a row or column, got {tile}, axis {axis}")
    shape = (1, *tile.shape) if axis == 0 else (*tile.shape, 1)
    return [tile.with_(shape=shape)]


def _squeeze(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, axis = _register(types[0]), attrs["axis"]
    _need(
        tile.rank == 2 and axis in (0, 1) and tile.shape[axis] == 1,
        f"squeeze drops an axis of extent 1, got {tile}, axis {axis}",
    )
    return [tile.with_(shape=tile.shape[:axis] + tile.shape[axis + 1 :])]


def _broadcast(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, shape = _register(types[0]), attrs["shape"]
    fits = tile.is_scalar or (
        tile.rank == len(shape) and all(a in (b, 1) for a, b in zip(tile.shape, shape, strict=True))
    )
    if not fits:
        raise TileValueError(f"cannot broadcast {tile} to shape {list(shape)}")
    return [tile.with_(shape=shape)]


def _transpose(types: Sequence[Type], _: Attrs) -> list[Type]:
    tile = _tile(types[0])
    _need(tile.rank == 2, f"transpose takes a 2-D tile, got {tile}")
    return [tile.with_(shape=tile.shape[::-1])]


def _slice(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, offsets, shape = _tile(types[0]), attrs["offsets"], attrs["shape"]
    _need(len(offsets) == len(shape) == tile.rank, f"slice needs one range per dimension of {tile}")
    for offset, size, extent in zip(offsets, shape, tile.shape, strict=True):
        if not (offset >= 0 and size >= 1 and offset + size <= extent):
            raise TileValueError(f"slice [{offset}:{offset + size}] is outside an extent of {extent} of {tile}")
    return [tile.with_(shape=tuple(shape))]


def _concat(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    _need(len(types) >= 1, "concat takes at least one tile")
    tiles, axis = [_register(t) for t in types], attrs["axis"]
    first = tiles[0]
    _need(0 <= axis < first.rank, f"concat axis {axis} is outside {first}")
    for tile in tiles:
        rest = tile.shape[:axis] + tile.shape[axis + 1 :]
        same = tile.rank == first.rank and rest == first.shape[:axis] + first.shape[axis + 1 :]
        _need(same and tile.dtype == first.dtype, f"cannot concatenate {tile} to {first} along axis {axis}")
    shape = list(first.shape)
    shape[axis] = sum(t.shape[axis] for t in tiles)
    return [first.with_(shape=tuple(shape))]


def _deinterleave(types: Sequence[Type], _: Attrs) -> list[Type]:
    tile = _register(types[0])
    _need(tile.rank >= 1 and tile.shape[-1] % 2 == 0, f"deinterleave needs an even last extent, got {tile}")
    half = tile.with_(shape=(*tile.shape[:-1], tile.shape[-1] // 2))
    return [half, half]


def _interleave(types: Sequence[Type], _: Attrs) -> list[Type]:
    tile = _same(types)
    _need(tile.rank >= 1, "interleave takes vectors or tiles")
    return [tile.with_(shape=(*tile.shape[:-1], tile.shape[-1] * 2))]


def _copy(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile = _tile(types[0])
    _need(not tile.is_scalar and attrs["space"] in ("register", "shared"), f"copy moves a tile, got {tile}")
    return [tile.with_(space=attrs["space"])]


def _distribute(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, over = _register(types[0]), attrs["over"]
    _need(len(over) == tile.rank and all(n >= 1 for n in over), f"over={over} needs one count per dimension of {tile}")
    return [tile]


_define("constant", "", _constant, "a compile-time number", "value dtype")
_define("iota", "", _iota, "i32 element index along `axis`", "shape axis")
_define("expand_dims", "x", _expand_dims, "vector to row (axis 0) or column (axis 1)", "axis")
_define("squeeze", "x", _squeeze, "drop an axis of extent 1", "axis")
_define("broadcast", "x", _broadcast, "repeat extents of 1, or a scalar, to `shape`", "shape")
_define("transpose", "x", _transpose, "swap rows and columns")
_define("slice", "x", _slice, "sub-tile at static `offsets` of extent `shape`", "offsets shape")
_define("concat", "x*", _concat, "join tiles along `axis`", "axis")
_define("deinterleave", "x", _deinterleave, "even and odd elements of the last axis")
_define("interleave", "even odd", _interleave, "alternate two tiles along the last axis")
_define("copy", "x", _copy, "the same tile in registers or in shared memory", "space")
_define("distribute", "x", _distribute, "constrain how many warps or waves split each dimension", "over")


# -- elementwise --------------------------------------------------------------------------------------


def _unary(kinds: str) -> Rule:
    def rule(types: Sequence[Type], _: Attrs) -> list[Type]:
        tile = _register(types[0])
        _need_kind(tile.dtype, kinds)
        return [tile]

    return rule


def _binary(kinds: str) -> Rule:
    def rule(types: Sequence[Type], attrs: Attrs) -> list[Type]:
        tile = _same(types)
        _check_nan_rule(attrs)
        _need_kind(tile.dtype, kinds)
        return [tile]

    return rule


NAN_RULES = ("propagate", "ignore")


def _check_nan_rule(attrs: Attrs) -> None:
    nan = attrs.get("nan", "ignore")
    _need(nan in NAN_RULES, f"nan is one of {', '.join(NAN_RULES)}, got {nan!r}")


def _isnan(types: Sequence[Type], _: Attrs) -> list[Type]:
    tile = _register(types[0])
    _need(tile.dtype.is_float, f"this op is not defined for {tile.dtype}")
    return [tile.with_(dtype=bool_)]


def _compare(types: Sequence[Type], _: Attrs) -> list[Type]:
    return [_same(types).with_(dtype=bool_)]


def _select(types: Sequence[Type], _: Attrs) -> list[Type]:
    condition, value = _register(types[0], "condition"), _same(types[1:])
    _need(condition.dtype == bool_ and condition.shape == value.shape, f"where: {condition} does not fit {value}")
    return [value]


def _fma(types: Sequence[Type], _: Attrs) -> list[Type]:
    tile = _same(types)
    _need(tile.dtype.is_float and not tile.dtype.is_fp8, f"fma is for f32, f16 and bf16, got {tile.dtype}")
    return [tile]


ROUNDINGS = ("rne", "rtz", "rta", "rtp", "rtn")


def _cast(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile = _tile(types[0])
    _need(attrs["rounding"] in ROUNDINGS, f"rounding is one of {', '.join(ROUNDINGS)}, got {attrs['rounding']!r}")
    return [tile.with_(dtype=attrs["dtype"])]


def _bitcast(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, dtype = _register(types[0]), attrs["dtype"]
    _need(tile.dtype.bits == dtype.bits and bool_ not in (tile.dtype, dtype), f"cannot bitcast {tile.dtype} to {dtype}")
    return [tile.with_(dtype=dtype)]


UNARY_FLOAT = "exp exp2 log log2 sqrt rsqrt rcp tanh sigmoid erf gelu gelu_tanh silu floor ceil round trunc"
_define(UNARY_FLOAT, "x", _unary("float"), "elementwise float function")
_define("neg abs relu", "x", _unary("float int"), "elementwise function")
_define("not", "x", _unary("int bool"), "bitwise or logical complement")
_define("isnan", "x", _isnan, "whether NaN")
_define("add sub mul", "a b", _binary("float int"), "elementwise arithmetic; integers wrap")
_define("div", "a b", _binary("float"), "correctly rounded quotient")
_define("floordiv mod", "a b", _binary("int"), "quotient rounded down and its remainder, as in Python")
_define("max min", "a b", _binary("float int"), "elementwise extreme; attribute `nan` as in reductions", "nan")
_define("and or xor", "a b", _binary("int bool"), "bitwise or logical operation")
_define("shl shr", "x amount", _binary("int"), "shift; shr keeps the sign")
_define("eq ne lt le gt ge", "a b", _compare, "comparison; false with NaN, except ne")
_define("select", "condition a b", _select, "second operand where the first is true, else third")
_define("fma", "a b c", _fma, "a*b + c, rounded once")
_define("cast", "x", _cast, "convert to `dtype`; see language.cast", "dtype rounding saturate")
_define("bitcast", "x", _bitcast, "the same bits as another type of equal width", "dtype")


# -- reductions ---------------------------------------------------------------------------------------


def _reduce(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile, axis = _register(types[0]), attrs["axis"]
    _check_nan_rule(attrs)
    _need(0 <= axis < tile.rank, f"reduction axis {axis} is outside {tile}")
    _need(tile.dtype.kind != "bool" and not tile.dtype.is_fp8, f"reductions are not defined for {tile.dtype}")
    return [tile.with_(shape=tile.shape[:axis] + tile.shape[axis + 1 :])]


def _cumsum(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    _reduce(types, attrs)
    return [types[0]]


_define("reduce_max reduce_min", "x", _reduce, "extreme along `axis`; NaN propagates or is ignored", "axis nan")
_define("reduce_sum reduce_prod", "x", _reduce, "sum or product along `axis`, in f32 for small floats", "axis")
_define("cumsum", "x", _cumsum, "running sum along `axis`", "axis reverse exclusive")


# -- matrix product -----------------------------------------------------------------------------------


PRECISIONS = ("ieee", "tf32")


def _mma(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    acc, a, b = _register(types[0], "accumulator"), _tile(types[1]), _tile(types[2])
    _need(acc.rank == a.rank == b.rank == 2, f"mma takes 2-D tiles, got {acc}, {a}, {b}")
    m, ka = a.shape[::-1] if attrs["transpose_a"] else a.shape
    kb, n = b.shape[::-1] if attrs["transpose_b"] else b.shape
    if ka != kb or acc.shape != (m, n):
        raise TileValueError(
            f"mma shapes do not fit: accumulator {acc}, a {a}{' transposed' * attrs['transpose_a']}, "
            f"b {b}{' transposed' * attrs['transpose_b']}"
        )
    check_mma_dtypes(acc.dtype, a.dtype, b.dtype)
    precision = attrs["precision"]
    _need(precision in PRECISIONS, f"precision is one of {', '.join(PRECISIONS)}, got {precision!r}")
    return [acc]


def check_mma_dtypes(acc: DType, a: DType, b: DType) -> None:
    """Raise unless this is a matrix product of the language: f32 += floats of one kind, i32 += i8."""
    integer = acc == i32 and a.name == b.name == "i8"
    same_family = a == b or (a.is_fp8 and b.is_fp8 and a.name.endswith("fnuz") == b.name.endswith("fnuz"))
    floating = acc == f32 and a.is_float and b.is_float and same_family
    _need(
        integer or floating,
        f"no matrix product {acc} += {a} x {b}: floats of one format (or two fp8 formats of one family) "
        "accumulate in f32, i8 in i32",
    )


_define("mma", "acc a b", _mma, "acc + a @ b, either operand transposed", "transpose_a transpose_b precision")


# -- random numbers -----------------------------------------------------------------------------------


def _random_bits(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    for type_, dtype, what in zip(types, (i64, i64, i32, i32), ("seed", "offset", "row", "col"), strict=True):
        _need(type_ == scalar(dtype), f"random_bits: {what} must be an {dtype} scalar, got {type_}")
    _need(len(attrs["shape"]) in (1, 2), "random_bits makes vectors and tiles")
    return [TileType(i32, attrs["shape"])]


_define(
    "random_bits",
    "seed offset row col",
    _random_bits,
    "Philox4x32-10 word of each element; see language.random",
    "shape",
)


# -- memory -------------------------------------------------------------------------------------------


def _dim(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tensor = _tensor(types[0])
    _need(0 <= attrs["axis"] < tensor.rank, f"axis {attrs['axis']} is outside {tensor}")
    return [scalar(i32)]


def _check_access(tensor: TensorType, coords: Sequence[Type], tile: TileType, attrs: Attrs) -> None:
    axes = attrs["axes"]
    _need(len(coords) == tensor.rank, f"{tensor} takes {tensor.rank} coordinate(s), got {len(coords)}")
    for coord in coords:
        _scalar_int(coord, "a coordinate")
    _need(len(axes) == tile.rank and list(axes) == sorted(set(axes)), f"axes {axes} do not fit {tile}")
    _need(all(0 <= a < tensor.rank for a in axes), f"axes {axes} are outside {tensor}")
    _need(attrs["unit"] in ("tile", "element"), f"unit is 'tile' or 'element', got {attrs['unit']!r}")


def _load(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tensor, fill, coords = _tensor(types[0]), _tile(types[1]), types[2:]
    tile = _tile(attrs["type"], "the type")
    _check_access(tensor, coords, tile, attrs)
    _need(tile.dtype == tensor.dtype, f"cannot load {tile} from {tensor}: dtypes differ")
    _need(fill == scalar(tensor.dtype), f"the fill value must be a {tensor.dtype} scalar, got {fill}")
    return [tile]


def _store(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tensor, tile, coords = _tensor(types[0]), _tile(types[1]), types[2:]
    _check_access(tensor, coords, tile, attrs)
    _need(tile.dtype == tensor.dtype, f"cannot store {tile} to {tensor}: dtypes differ")
    return []


def _atomic_add(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    dtype = _tensor(types[0]).dtype
    _need(dtype.name in ("f32", "i32", "bf16", "f16"), f"atomic add is not defined for {dtype}")
    return _store(types, attrs)


def _buffer(type_: Type) -> TileType:
    if not isinstance(type_, TileType) or type_.space != "buffer":
        raise TileTypeError(f"expected a tile of ww.shared, got {type_}")
    return type_


def _check_window(buffer: TileType, offsets: Sequence[Type], tile: TileType) -> None:
    _need(buffer.dtype == tile.dtype, f"dtypes differ: {buffer} and {tile}")
    _need(len(offsets) == buffer.rank == tile.rank, f"{tile} needs one offset per dimension of {buffer}")
    for offset in offsets:
        _scalar_int(offset, "an offset")


def _shared_alloc(_: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile = _tile(attrs["type"], "the type")
    _need(tile.space == "shared", f"a buffer is made from a shared tile type, got {tile}")
    return [tile.with_(space="buffer")]


def _shared_read(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    tile = _tile(attrs["type"], "the type")
    _check_window(_buffer(types[0]), types[1:], tile)
    return [tile]


def _shared_write(types: Sequence[Type], _: Attrs) -> list[Type]:
    _check_window(_buffer(types[0]), types[2:], _register(types[1]))
    return []


_define("dim", "tensor", _dim, "extent of a tensor along `axis`, in elements", "axis")
_define(
    "load",
    "tensor fill coordinate*",
    _load,
    "tile of a tensor; out-of-range elements read `fill`",
    "type axes unit",
    effect="read",
)
_define(
    "store",
    "tensor tile coordinate*",
    _store,
    "write a tile; out-of-range elements are not written",
    "axes unit",
    effect="write",
)
_define(
    "atomic_add",
    "tensor tile coordinate*",
    _atomic_add,
    "add a tile to memory, element by element",
    "axes unit",
    effect="write",
)
_define("shared_alloc", "", _shared_alloc, "a mutable shared tile, uninitialised", "type", effect="write")
_define("shared_read", "buffer offset*", _shared_read, "read a window of a shared tile", "type", effect="read")
_define("shared_write", "buffer tile offset*", _shared_write, "overwrite a window of a shared tile", effect="write")


# -- control and debugging ----------------------------------------------------------------------------


def _grid(types: Sequence[Type], _: Attrs) -> list[Type]:
    _need(1 <= len(types) <= 4, f"a grid has 1 to 4 dimensions, got {len(types)}")
    for type_ in types:
        _need(type_ == scalar(i32), f"grid sizes are i32 scalars, got {type_}")
    return [scalar(i32)] * len(types)


def _check_op(types: Sequence[Type], _: Attrs) -> list[Type]:
    _need(_register(types[0]).dtype == bool_, f"check takes a bool, got {types[0]}")
    return []


def _nothing(_: Sequence[Type], __: Attrs) -> list[Type]:
    return []


def _for(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    for type_, what in zip(types[:3], ("start", "stop", "step"), strict=True):
        _need(type_ == scalar(i32), f"loop {what} must be an i32 scalar, got {type_}")
    kind, stages = attrs["kind"], attrs["stages"]
    _need(kind in ("loop", "pipeline"), f"unknown loop kind {kind!r}")
    _need(stages is None or (kind == "pipeline" and stages >= 1), f"a {kind} cannot have {stages} stages")
    return list(types[3:])


def _if(types: Sequence[Type], attrs: Attrs) -> list[Type]:
    _need(types[0] == scalar(bool_), f"an if condition is a bool scalar, got {types[0]}")
    return list(attrs["types"])


def _while(types: Sequence[Type], _: Attrs) -> list[Type]:
    return list(types)


_define("grid", "size*", _grid, "this block's coordinates in a grid of the given sizes", effect="write")
_define("barrier", "", _nothing, "all threads of the block arrive before any goes on", effect="write")
_define("print", "value*", _nothing, "print values with a prefix (debugging)", "message", effect="write")
_define("check", "condition", _check_op, "stop with `message` unless all true (debugging)", "message", effect="write")
_define(
    "for",
    "start stop step carried*",
    _for,
    "counted loop or pipeline with carried values",
    "kind stages",
    effect="write",
    regions=1,
)
_define("if", "condition", _if, "one of two regions", "types", effect="write", regions=2)
_define(
    "while",
    "carried*",
    _while,
    "first region decides, second computes the next carried values",
    effect="write",
    regions=2,
)
_define("yield", "value*", _nothing, "ends a region with its values", effect="write")
_define("condition", "condition value*", _nothing, "ends a while's first region: go on?", effect="write")

TERMINATORS = ("yield", "condition")
