"""Integers and bools of the oracle: certain ones by the contract's own ops, unsure ones by their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, bool_
from warpwave.tiles.ir import Op
from warpwave.tiles.reference import contract
from warpwave.tiles.reference.bounded import Bounded, any_of, certain
from warpwave.tiles.reference.conversion import full_range
from warpwave.tiles.reference.functions import INTEGER

Array = npt.NDArray[Any]

_INCREASING = ("add", "max", "min", "relu")
_FALLING_LAST = ("sub", "neg")  # they fall with the last operand and rise with the others


def compute(op: Op, *operands: Bounded) -> Bounded:
    """An elementwise op, or one that makes a tile from scalars."""
    (value,) = contract.Contract().compute(op, [x.value for x in operands])
    if all(x.exact for x in operands):
        return certain(value)
    unsure = np.broadcast_to(any_of([x.unsure for x in operands]), value.shape)
    dtype = op.result.tile.dtype
    if dtype == bool_:
        return _logic(op, value, unsure, operands)
    if dtype.bits > 32 or op.name not in _INCREASING + _FALLING_LAST:
        return full_range(certain(value), unsure, dtype)
    return _within(op, value, unsure, operands, dtype)


def _logic(op: Op, value: Array, unsure: Array, operands: Sequence[Bounded]) -> Bounded:
    if op.name in ("and", "or"):
        low, high = (INTEGER[op.name](*(getattr(x, part) for x in operands)) for part in ("low", "high"))
        return Bounded(value, low, high)
    return Bounded(value, value & ~unsure, value | unsure)


def _within(op: Op, value: Array, unsure: Array, operands: Sequence[Bounded], dtype: DType) -> Bounded:
    *first, last = operands
    ends = (last.high, last.low) if op.name in _FALLING_LAST else (last.low, last.high)
    low = INTEGER[op.name](*(x.low.astype(np.int64) for x in first), ends[0].astype(np.int64))
    high = INTEGER[op.name](*(x.high.astype(np.int64) for x in first), ends[1].astype(np.int64))
    wraps = unsure & ((low < dtype.min) | (high > dtype.max))
    low = np.where(wraps, dtype.min, np.where(unsure, low, value))
    high = np.where(wraps, dtype.max, np.where(unsure, high, value))
    return Bounded(value, low.astype(dtype.numpy), high.astype(dtype.numpy))


def sums(op: Op, x: Bounded) -> Bounded:
    """A sum, product or running sum: any value where an unsure element has a part in it."""
    (value,) = contract.Contract().compute(op, [x.value])
    unsure = np.broadcast_to(x.unsure.any(axis=op.attrs["axis"], keepdims=op.name == "cumsum"), value.shape)
    return full_range(certain(value), unsure, op.result.tile.dtype)


def matrix_product(op: Op, acc: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """An i8 product: any value where an unsure element has a part in it."""
    (value,) = contract.Contract().compute(op, [acc.value, a.value, b.value])
    left, right = contract.mma_operands(op, a.unsure, b.unsure)
    unsure = acc.unsure | left.any(axis=1, keepdims=True) | right.any(axis=0, keepdims=True)
    return full_range(certain(value), unsure, op.result.tile.dtype)
