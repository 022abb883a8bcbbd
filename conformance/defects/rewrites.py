"""Wrong translations of ops, as changes to the IR that a backend gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from warpwave.conformance.defects.defect import Rewrite
from warpwave.tiles.dtypes import DType, bf16, f32, i32
from warpwave.tiles.ir import Block, Kernel, Op, Value
from warpwave.tiles.types import scalar

Change = Callable[[Op, Block], bool]  # changes an op of a block; whether it did


def blocks(block: Block) -> Iterator[Block]:
    """A block and all inside it."""
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from blocks(region)


def each(names: str, change: Change) -> Rewrite:
    """`change` on every op of these names."""

    def rewrite(kernel: Kernel) -> int:
        wanted = names.split()
        found = [(op, block) for block in blocks(kernel.body) for op in block.ops if op.name in wanted]
        return sum(change(op, block) for op, block in found)

    return rewrite


def renamed(**names: str) -> Rewrite:
    """Other ops with the same operands."""

    def change(op: Op, _: Block) -> bool:
        op.name = names[op.name]
        return True

    return each(" ".join(names), change)


def with_attrs(names: str, **attrs: Callable[[Any], Any]) -> Rewrite:
    """Ops with other attributes, computed from the right ones."""

    def change(op: Op, _: Block) -> bool:
        wrong = {**op.attrs, **{name: make(op.attrs[name]) for name, make in attrs.items() if name in op.attrs}}
        changed = wrong != op.attrs
        op.attrs = wrong
        return changed

    return each(names, change)


def swapped(name: str, i: int, j: int) -> Rewrite:
    """Two operands of one type exchanged."""

    def change(op: Op, _: Block) -> bool:
        a, b = op.operands[i], op.operands[j]
        op.operands[i], op.operands[j] = (b, a) if a.type == b.type else (a, b)
        return a is not b and a.type == b.type

    return each(name, change)


def insert_before(op: Op, block: Block, name: str, operands: list[Value], type_: Any, **attrs: Any) -> Value:
    """A new op in front of another; its result."""
    result = Value(type_)
    block.ops.insert(block.ops.index(op), Op(name, operands, attrs, [result], [], op.loc))
    return result


def number(op: Op, block: Block, value: float, dtype: DType) -> Value:
    """A constant in front of an op."""
    return insert_before(op, block, "constant", [], scalar(dtype), value=value, dtype=dtype)


def fill_ignored(op: Op, block: Block) -> bool:
    """A load that gives 0 outside the tensor, whatever it should."""
    dtype = op.operands[1].tile.dtype
    op.operands[1] = number(op, block, {"float": 0.0, "int": 0, "bool": False}[dtype.kind], dtype)
    return True


def trip_lost(operand: int, by: int) -> Change:
    """A loop that starts one later, or stops one earlier."""

    def change(op: Op, block: Block) -> bool:
        one = number(op, block, by, i32)
        op.operands[operand] = insert_before(op, block, "add", [op.operands[operand], one], scalar(i32))
        return True

    return change


def stale_carry(op: Op, _: Block) -> bool:
    """A loop that forgets what it computed for its first carried tile."""
    (body,) = op.regions
    carried = [i for i, v in enumerate(body.terminator.operands) if not v.tile.is_scalar]
    if not carried:
        return False
    before = body.args[len(body.args) - len(body.terminator.operands) + carried[0]]
    changed = body.terminator.operands[carried[0]] is not before
    body.terminator.operands[carried[0]] = before
    return changed


def accumulator_lost(op: Op, block: Block) -> bool:
    """A product that starts from 0."""
    type_ = op.operands[0].tile
    zero = number(op, block, 0.0 if type_.dtype.is_float else 0, type_.dtype)
    op.operands[0] = insert_before(op, block, "broadcast", [zero], type_, shape=type_.shape)
    return True


def operands_shortened(op: Op, block: Block) -> bool:
    """A product of f32 that rounds its operands to bf16."""
    if op.operands[1].tile.dtype != f32:
        return False
    for index in (1, 2):
        value = op.operands[index]
        if value.tile.space != "register":
            value = insert_before(op, block, "copy", [value], value.tile.with_(space="register"), space="register")
        short = insert_before(op, block, "cast", [value], value.tile.with_(dtype=bf16), dtype=bf16, rounding="rne",
                              saturate=False)  # fmt: skip
        op.operands[index] = insert_before(op, block, "cast", [short], value.tile, dtype=f32, rounding="rne",
                                           saturate=False)  # fmt: skip
    return True


def transpose_flipped(op: Op, _: Block) -> bool:
    """A product that reads a square operand the wrong way round."""
    shape = op.operands[2].tile.shape
    if shape[0] != shape[1]:
        return False
    op.attrs = {**op.attrs, "transpose_b": not op.attrs["transpose_b"]}
    return True


def branches_swapped(op: Op, _: Block) -> bool:
    """An if that takes the other branch."""
    op.regions.reverse()
    return True


def results_swapped(op: Op, _: Block) -> bool:
    """Two results exchanged."""
    op.results.reverse()
    return True


def window_moved(op: Op, _: Block) -> bool:
    """A slice that begins one element too early or too late."""
    offsets, shape, extents = list(op.attrs["offsets"]), op.attrs["shape"], op.operands[0].tile.shape
    for axis in reversed(range(len(offsets))):
        room = extents[axis] - shape[axis] - offsets[axis]
        if room > 0 or offsets[axis] > 0:
            offsets[axis] += 1 if room > 0 else -1
            op.attrs = {**op.attrs, "offsets": tuple(offsets)}
            return True
    return False


def quotient_by_reciprocal(op: Op, block: Block) -> bool:
    """A division as a product with the reciprocal: two roundings."""
    op.operands[1] = insert_before(op, block, "rcp", [op.operands[1]], op.operands[1].type)
    op.name = "mul"
    return True


def sum_in_short_format(op: Op, block: Block) -> bool:
    """A sum of f32 whose terms are rounded to bf16 first."""
    tile = op.operands[0].tile
    if tile.dtype != f32:
        return False
    short = insert_before(op, block, "cast", [op.operands[0]], tile.with_(dtype=bf16), dtype=bf16, rounding="rne",
                          saturate=False)  # fmt: skip
    op.operands[0] = insert_before(op, block, "cast", [short], tile, dtype=f32, rounding="rne", saturate=False)
    return True


def fused(op: Op, block: Block) -> bool:
    """a * b + c with one rounding."""
    for product, other in ((0, 1), (1, 0)):
        made = next((o for o in block.ops if op.operands[product] in o.results), None)
        if made is not None and made.name == "mul" and op.operands[0].tile.dtype == f32:
            op.name, op.operands = "fma", [*made.operands, op.operands[other]]
            return True
    return False


def not_added(op: Op, _: Block) -> bool:
    """An atomic addition that overwrites."""
    op.name = "store"
    return True


def counted_from_one(op: Op, block: Block) -> bool:
    """Element indices that begin at 1."""
    type_, right = op.result.tile, op.result
    op.results = [Value(type_)]
    at = block.ops.index(op) + 1
    one, ones = Value(scalar(i32)), Value(type_)
    block.ops[at:at] = [
        Op("constant", [], {"value": 1, "dtype": i32}, [one], [], op.loc),
        Op("broadcast", [one], {"shape": type_.shape}, [ones], [], op.loc),
        Op("add", [op.result, ones], {}, [right], [], op.loc),
    ]
    return True
