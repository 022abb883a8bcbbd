"""Computes scalar integer and bool ops on constants, and simplifies integer arithmetic with 0 and 1."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from warpwave.tiles.dtypes import DType, bool_
from warpwave.tiles.ir import Block, Kernel, Op, Value
from warpwave.tiles.passes.rewrite import replace_uses
from warpwave.tiles.types import TileType

_FOLD: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": lambda a, b: max(a, b),
    "min": lambda a, b: min(a, b),
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "select": lambda c, a, b: a if c else b,
}
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}  # x op neutral is x
_COMMUTES = ("add", "mul")


def fold_constants(kernel: Kernel) -> None:
    """Fold integer and bool scalars; floats stay as written, so that no rounding changes."""
    constants: dict[Value, Any] = {}
    replacements: dict[Value, Value] = {}
    _fold(kernel.body, constants, replacements)
    replace_uses(kernel.body, replacements)


def _fold(block: Block, constants: dict[Value, Any], replacements: dict[Value, Value]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        op.operands = [replacements.get(v, v) for v in op.operands]
        simpler = _neutral(op, constants)
        if simpler is not None:
            replacements[op.result] = simpler
            continue
        _evaluate(op, constants)
        kept.append(op)
        for region in op.regions:
            _fold(region, constants, replacements)
    block.ops = kept


def _evaluate(op: Op, constants: dict[Value, Any]) -> None:
    """Turn `op` into a constant if it can be known."""
    if len(op.results) != 1 or not isinstance(op.result.type, TileType):
        return
    dtype, known = op.result.type.dtype, all(v in constants for v in op.operands)
    if op.name == "constant" and not dtype.is_float:
        constants[op.result] = op.attrs["value"]
    elif op.name in _FOLD and known and op.operands and op.result.type.is_scalar and not dtype.is_float:
        values = [constants[v] for v in op.operands]
        if op.name in ("floordiv", "mod") and values[1] == 0:
            return
        value = wrap(_FOLD[op.name](*values), dtype)
        op.name, op.operands, op.attrs = "constant", [], {"value": value, "dtype": dtype}
        constants[op.result] = value


def wrap(value: Any, dtype: DType) -> Any:
    """An integer in two's complement of the dtype's width."""
    if dtype == bool_:
        return bool(value)
    span = 1 << dtype.bits
    return (int(value) + span // 2) % span - span // 2


def _neutral(op: Op, constants: dict[Value, Any]) -> Value | None:
    if op.name not in _NEUTRAL or not isinstance(op.result.type, TileType) or not op.result.type.dtype.is_int:
        return None
    left, right = op.operands
    if constants.get(right) == _NEUTRAL[op.name]:
        return left
    if op.name in _COMMUTES and constants.get(left) == _NEUTRAL[op.name]:
        return right
    return None
