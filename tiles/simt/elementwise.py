"""Elementwise ops, casts, and ops that only rename or repeat registers."""

from __future__ import annotations

import math
from collections.abc import Container

from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.alignment import divisor, run_of_equal_results
from warpwave.tiles.simt.assign import TIED, flattened, starts
from warpwave.tiles.simt.context import Lowering
from warpwave.tiles.simt.convert import convert, through_shared
from warpwave.tiles.simt.layout import (
    Layout,
    doubled,
    drop_axis,
    halved,
    insert_axis,
    is_run,
    item_map,
    joined,
    sliced,
    transposed,
)
from warpwave.tiles.simt.writer import ctype, literal
from warpwave.tiles.simt.zeros import visible_zeros

BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# On whole vectors of f32: some targets have packed instructions for them.
PACKED = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "fma": "fma_({}, {}, {})"}
# Of those that are lowered here, the ones that a wave may compute in portions.
ITEM_BY_ITEM = TIED - {"distribute", "cumsum", *COMPARE}
WORDS = 4  # of a block of random bits; its counter is the column divided by this
MOST_BLOCKS = 4  # that are computed side by side
UNSIGNED = {8: "u8", 32: "u32", 64: "u64"}


def wide(x: str, dtype: DType) -> str:
    """A float of any format as f32."""
    return x if dtype.name == "f32" else f"f32_from_{dtype.name}({x})"


def narrow(x: str, dtype: DType) -> str:
    """An f32 result rounded to the tile's format."""
    return x if dtype.name == "f32" else f"to<{ctype(dtype)}>({x})"


def expression(op: Op, args: list[str]) -> str:
    """The C expression of an elementwise op on one element."""
    operand, result = op.operands[0].tile.dtype, op.results[0].tile.dtype
    if op.name == "cast":
        return _cast(args[0], operand, result, op.attrs["rounding"], op.attrs["saturate"])
    if op.name == "bitcast":
        return f"bits<{ctype(result)}>({args[0]})"
    if op.name == "select":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if op.name in COMPARE:
        left, right = (wide(a, operand) if operand.is_float else a for a in args)
        return f"({left} {COMPARE[op.name]} {right})"
    if operand.is_float:
        return _float_expression(op, [wide(a, operand) for a in args], args, result)
    return _integer_expression(op, args, operand)


def _float_expression(op: Op, args: list[str], raw: list[str], dtype: DType) -> str:
    name = op.name
    if name == "isnan":
        return f"({args[0]} != {args[0]})"
    if name in ("neg", "abs") and dtype.name == "f32":  # the sign bit alone; becomes an operand's modifier
        return f"(-{raw[0]})" if name == "neg" else f"abs_({raw[0]})"
    if name in ("neg", "abs"):  # exact on the bits of every format
        sign = 1 << (dtype.bits - 1)
        unsigned = "u32" if dtype.bits == 32 else "u16"
        change = f"^ {sign}u" if name == "neg" else f"& {sign - 1}u"
        return f"bits<{ctype(dtype)}>(({unsigned})(bits<{unsigned}>({raw[0]}) {change}))"
    if dtype.name == "f16" and name in BINARY:
        return f"({raw[0]} {BINARY[name]} {raw[1]})"
    if name == "fma":
        return _fma(args, raw, dtype)
    if name in BINARY:
        text = f"{args[0]} {BINARY[name]} {args[1]}"
    elif name in ("max", "min"):
        suffix = "imum" if op.attrs["nan"] == "propagate" else "imum_number"
        text = f"{name}{suffix}({args[0]}, {args[1]})"
    elif name == "relu":
        text = f"maximum({args[0]}, 0.0f)"
    else:
        text = f"{name}_({args[0]})"
    return narrow(f"({text})", dtype)


def _fma(args: list[str], raw: list[str], dtype: DType) -> str:
    if dtype.name in ("f32", "f16"):
        return f"fma_({', '.join(raw)})"
    # rounded to odd first, so that the format's own rounding is the only one
    return narrow(f"fma_odd({', '.join(args)})", dtype)


def _integer_expression(op: Op, args: list[str], dtype: DType) -> str:
    name, kind = op.name, ctype(dtype)
    unsigned = UNSIGNED[dtype.bits]
    if name == "not":
        return f"(!{args[0]})" if dtype.name == "bool" else f"({kind})(~{args[0]})"
    if name in ("add", "sub", "mul"):
        return f"({kind})(({unsigned}){args[0]} {BINARY[name]} ({unsigned}){args[1]})"
    if name in BINARY:
        return f"({kind})({args[0]} {BINARY[name]} {args[1]})"
    if name == "neg":
        return f"({kind})(({unsigned})0 - ({unsigned}){args[0]})"
    if name == "abs":
        return f"({kind})({args[0]} < 0 ? ({unsigned})0 - ({unsigned}){args[0]} : ({unsigned}){args[0]})"
    if name == "relu":
        return f"larger<{kind}>({args[0]}, 0)"
    calls = {"floordiv": "floor_div", "mod": "floor_mod", "max": "larger", "min": "smaller"}
    if name in calls:
        return f"{calls[name]}<{kind}>({args[0]}, {args[1]})"
    shift = "<<" if name == "shl" else ">>"
    left = f"({unsigned}){args[0]}" if name == "shl" else args[0]
    return f"({kind})({left} {shift} ({args[1]} & {dtype.bits - 1}))"


def _cast(x: str, source: DType, target: DType, rounding: str, saturate: bool) -> str:
    flags = f"<{rounding}, {str(saturate).lower()}>"
    if target.name == "bool":
        return f"({wide(x, source) if source.is_float else x} != 0)"
    if target.is_float and source.is_float:
        return f"{target.name}_from{flags}({wide(x, source)})"
    if target.is_float:
        exact = source.name in ("bool", "i8")
        if exact or (target.name == "f32" and rounding == "rne"):
            return f"{target.name}_from{flags}((float){x})"
        if target.name == "f32":
            return f"f32_from_integer<{rounding}>({x})"
        return f"{target.name}_from{flags}(odd_from_integer({x}))"
    if source.is_float:
        return f"integer_from<{ctype(target)}, {rounding}>({wide(x, source)})"
    return f"saturated<{ctype(target)}>({x})" if saturate and source.name != "bool" else f"({ctype(target)}){x}"


def lower_elementwise(lw: Lowering, op: Op) -> None:
    """One scalar expression, or a loop over the items of a tile."""
    result, zeros = op.results[0], visible_zeros(op, lw.numbers, lw.definitions)
    if result.tile.is_scalar:
        text = expression(op, _hidden(lw, [lw.name(v) for v in op.operands], zeros))
        lw.body.line(f"const {ctype(result.tile.dtype)} {lw.define(result)} = {text};")
        return
    layout = lw.layout(result)
    args = [convert(lw, v, layout) for v in op.operands]
    name = lw.declare(result)
    if lw.packs and op.name in PACKED and result.tile.dtype.name == "f32" and layout.width > 1:
        with lw.each_item(len(layout.items) // layout.width):
            vectors = _hidden(lw, [f"{a}.v[i]" for a in args], zeros)
            lw.body.line(f"{name}.v[i] = {PACKED[op.name].format(*vectors)};")
        return
    item = _first_alike(lw, op, layout) if op.name in COMPARE else "i"
    with lw.each_item(len(layout.items)):
        lw.set_item(name, expression(op, _hidden(lw, [f"{a}.get({item})" for a in args], zeros)), result)


def _hidden(lw: Lowering, texts: list[str], positions: Container[int]) -> list[str]:
    return [lw.hidden(text) if position in positions else text for position, text in enumerate(texts)]


def is_item_by_item(lw: Lowering, op: Op) -> bool:
    """Whether an item of the op's result needs nothing but the same items of its operands."""
    if op.name not in ITEM_BY_ITEM or op.result.tile.is_scalar:
        return False
    tiles = [v for v in op.operands if not v.tile.is_scalar]
    return all(v in lw.layouts and lw.layout(v) == lw.layout(op.result) for v in tiles)


def _first_alike(lw: Lowering, op: Op, layout: Layout) -> str:
    """Which item's comparison decides for item i: the first one's for all that are alike, so that there is one."""
    run, tensors = run_of_equal_results(lw, op)
    while run > 1 and not is_run(layout, run):
        run //= 2
    if run == 1:
        return "i"
    first = f"i / {run} * {run}"
    supposed = " && ".join(sorted(map(lw.wide, tensors)))
    return f"{supposed} ? {first} : i" if supposed else first


def lower_constant(lw: Lowering, op: Op) -> None:
    """Constants are written where they are used."""
    lw.names[op.result] = literal(op.attrs["value"], op.attrs["dtype"])


def lower_iota(lw: Lowering, op: Op) -> None:
    """Element indices."""
    layout = lw.layout(op.result)
    name = lw.declare(op.result)
    with lw.body.each(len(layout.items)):
        lw.body.line(f"{name}.set(i, {lw.coordinates(layout).at(op.attrs['axis'])});")


def lower_broadcast(lw: Lowering, op: Op) -> None:
    """A scalar to all items, or an extent of 1 to the items along it."""
    source, layout = op.operands[0], lw.layout(op.result)
    if source.tile.is_scalar:
        name = lw.declare(op.result)
        with lw.body.each(len(layout.items)):
            lw.body.line(f"{name}.set(i, {lw.name(source)});")
        return
    narrow_layout = flattened(layout, source.tile.shape)
    arg = convert(lw, source, narrow_layout)
    numbers = _flat_map(narrow_layout, layout, source.tile.shape)
    name = lw.declare(op.result)
    with lw.body.each(len(layout.items)):
        lw.body.line(f"{name}.set(i, {arg}.get({lw.table(numbers)}[i]));")


def _flat_map(source: Layout, target: Layout, shape: tuple[int, ...]) -> list[int]:
    axes = [axis for axis, extent in enumerate(shape) if extent == 1]
    index = {item: i for i, item in enumerate(source.items)}
    return [index[tuple(0 if a in axes else c for a, c in enumerate(item))] for item in target.items]


def _renamed(lw: Lowering, op: Op, source: Value, needed: Layout, numbers: list[int]) -> None:
    """The result's items are items of the operand, once that is laid out as needed."""
    arg = convert(lw, source, needed)
    name = lw.declare(op.result)
    with lw.body.each(len(numbers)):
        lw.body.line(f"{name}.set(i, {arg}.get({lw.table(numbers)}[i]));")


def lower_expand_dims(lw: Lowering, op: Op) -> None:
    """A vector as a row or column."""
    layout, axis = lw.layout(op.result), op.attrs["axis"]
    source = drop_axis(layout, axis)
    _renamed(lw, op, op.operands[0], source, item_map(source, layout, axis))


def lower_squeeze(lw: Lowering, op: Op) -> None:
    """A row or column as a vector."""
    layout, axis = lw.layout(op.result), op.attrs["axis"]
    source = insert_axis(layout, axis)
    _renamed(lw, op, op.operands[0], source, list(range(len(layout.items))))


def lower_transpose(lw: Lowering, op: Op) -> None:
    """Rows and columns swap names; a shared tile is read the other way round."""
    layout = lw.layout(op.result)
    source = transposed(layout)
    _renamed(lw, op, op.operands[0], source, list(range(len(layout.items))))


def lower_slice(lw: Lowering, op: Op) -> None:
    """A window of a register tile."""
    source, layout = op.operands[0], lw.layout(op.result)
    offsets = op.attrs["offsets"]
    in_place = sliced(lw.layout(source), offsets, op.attrs["shape"])
    if in_place is not None and in_place.same_map(layout):
        numbers = _shifted_map(lw.layout(source), layout, offsets)
        _renamed(lw, op, source, lw.layout(source), numbers)
    else:
        through_shared(lw, [(source, (0,) * len(offsets), 1)], op.result, offsets)


def _shifted_map(source: Layout, target: Layout, offsets: tuple[int, ...]) -> list[int]:
    index = {item: i for i, item in enumerate(source.items)}
    return [index[tuple(c + o for c, o in zip(item, offsets, strict=True))] for item in target.items]


def lower_concat(lw: Lowering, op: Op) -> None:
    """Tiles side by side."""
    axis, layout = op.attrs["axis"], lw.layout(op.result)
    begins = starts(op)
    in_place = joined([lw.layout(v) for v in op.operands], begins, axis)
    if in_place is None or not in_place.same_map(layout):
        places = [tuple(b if a == axis else 0 for a in range(layout.rank)) for b in begins]
        sources = [(v, p, 1) for v, p in zip(op.operands, places, strict=True)]
        return through_shared(lw, sources, op.result, (0,) * layout.rank)
    name, at = lw.declare(op.result), 0
    for value in op.operands:
        count = len(lw.layout(value).items)
        with lw.body.each(count):
            lw.body.line(f"{name}.set({at} + i, {lw.name(value)}.get(i));")
        at += count
    return None


def lower_deinterleave(lw: Lowering, op: Op) -> None:
    """Even and odd columns."""
    source = op.operands[0]
    in_place = halved(lw.layout(source))
    for odd, result in enumerate(op.results):
        layout = lw.layout(result)
        if in_place is not None and in_place.same_map(layout):
            numbers = _pair_map(lw.layout(source), layout, odd)
            arg = lw.name(source)
            name = lw.declare(result)
            with lw.body.each(len(numbers)):
                lw.body.line(f"{name}.set(i, {arg}.get({lw.table(numbers)}[i]));")
        else:
            origin = (*((0,) * (layout.rank - 1)), odd)
            through_shared(lw, [(source, (0,) * layout.rank, 1)], result, origin, step=2)


def _pair_map(source: Layout, target: Layout, odd: int) -> list[int]:
    index = {item: i for i, item in enumerate(source.items)}
    return [index[(*item[:-1], 2 * item[-1] + odd)] for item in target.items]


def lower_interleave(lw: Lowering, op: Op) -> None:
    """Alternate the columns of two tiles."""
    layout = lw.layout(op.result)
    even, odd = op.operands
    if lw.layout(even) == lw.layout(odd) and doubled(lw.layout(even)).same_map(layout):
        name = lw.declare(op.result)
        with lw.body.each(len(layout.items) // 2):
            lw.body.line(f"{name}.set(2 * i, {lw.name(even)}.get(i));")
            lw.body.line(f"{name}.set(2 * i + 1, {lw.name(odd)}.get(i));")
        return
    zero = (0,) * layout.rank
    through_shared(lw, [(even, zero, 2), (odd, (*zero[:-1], 1), 2)], op.result, zero)


def lower_distribute(lw: Lowering, op: Op) -> None:
    """The constraint was used when layouts were assigned; the value is the operand."""
    lw.names[op.result] = convert(lw, op.operands[0], lw.layout(op.result))


def lower_random_bits(lw: Lowering, op: Op) -> None:
    """Philox words by position."""
    seed, offset, row, col = (lw.name(v) for v in op.operands)
    layout = lw.layout(op.result)
    at = lw.coordinates(layout)
    name = lw.declare(op.result)
    rows = f"(u32){row} + {at.at(0)}" if layout.rank == 2 else f"(u32){row}"
    if is_run(layout, WORDS) and divisor(lw, op.operands[3]) % WORDS == 0:
        count = len(layout.items) // WORDS
        together = math.gcd(count, MOST_BLOCKS)
        with lw.body.each(count // together):
            item = f"(i * {together} + b) * {WORDS}"
            place = at.at(layout.rank - 1, item)
            rows = rows.replace("[i]", f"[{item}]")
            lw.body.line(f"u32 columns[{together}], rows[{together}];")
            lw.body.line(f"EACH(b, {together}) columns[b] = (u32)(((long){col} + {place}) >> 2), rows[b] = {rows};")
            lw.body.line(f"vec<u32, {WORDS}> words[{together}];")
            lw.body.line(f"philox_blocks(words, columns, rows, {offset}, {seed});")
            lw.body.line(f"EACH(b, {together}) EACH(e, {WORDS}) {name}.set({item} + e, (int)words[b][e]);")
        return
    with lw.body.each(len(layout.items)):
        lw.body.line(f"const long c = (long){col} + {at.at(layout.rank - 1)};")
        lw.body.line(f"{name}.set(i, (int)philox((u32)(c >> 2), {rows}, {offset}, {seed}, c & 3));")
