"""The oracle: a kernel's results in float64, each with the bound that the numerics contract allows around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir import Kernel, Op
from warpwave.tiles.reference import whole_numbers
from warpwave.tiles.reference.accumulation import (
    Running,
    Whole,
    addition_loss,
    matrix_product,
    multiplied,
    summed,
    tf32_operand,
)
from warpwave.tiles.reference.accuracy import CONTRACT, Numerics
from warpwave.tiles.reference.bounded import Bounded, certain, settle
from warpwave.tiles.reference.contract import Contract, reduce_extreme
from warpwave.tiles.reference.conversion import as_numbers, bitcast, cast
from warpwave.tiles.reference.formats import format_of
from warpwave.tiles.reference.interpreter import Argument, BlockOrder, Interpreter
from warpwave.tiles.reference.intervals import compare, elementwise, extremes, select
from warpwave.tiles.reference.oracle_storage import OracleStorage
from warpwave.tiles.reference.shapes import REARRANGE

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Estimate:
    """What an output may hold: `value` and `bound` in float64, one per element.

    A result agrees if it is within `bound` of `value`, or NaN or the same infinity as `value`; a bound of inf
    says that nothing is known. `undecided` is where a run-time condition could not be decided within the
    bounds, so that all outputs have a bound of inf.
    """

    value: Array
    bound: Array
    undecided: Loc | None = None

    def __iter__(self) -> Iterator[Array]:
        yield self.value
        yield self.bound

    def agrees(self, actual: Array) -> Array:
        """Which elements of a result are as the contract allows."""
        with np.errstate(invalid="ignore"):
            got = np.asarray(actual).astype(np.float64)
            near = np.abs(got - self.value) <= self.bound
        same = (got == self.value) | (np.isnan(got) & np.isnan(self.value))
        return np.asarray(near | same | np.isinf(self.bound))


def oracle(
    kernel: Kernel,
    arguments: Mapping[str, Argument],
    *,
    block_order: BlockOrder | None = None,
    numerics: Numerics = CONTRACT,
) -> dict[str, Estimate]:
    """What each output may hold after `kernel` has run on `arguments`, which are left as they are."""
    domain = Oracle(numerics)
    interpreter = Interpreter(kernel, domain, arguments)
    interpreter.run(block_order)
    return {name: domain.estimate(interpreter.tensors[name]) for name in kernel.outputs}


class Oracle:
    """The domain of bounded numbers."""

    def __init__(self, numerics: Numerics = CONTRACT) -> None:
        self.numerics = numerics
        self.undecided: Loc | None = None
        self.tensors: list[OracleStorage] = []
        self.contract = Contract()

    def estimate(self, storage: Any) -> Estimate:
        """The result that a tensor holds."""
        value, radius = storage.result()
        bound = radius if self.undecided is None else np.full_like(radius, np.inf)
        return Estimate(value, bound, self.undecided)

    def scalar(self, value: bool | int | float, dtype: DType) -> Bounded:
        """A constant, rounded to `dtype`."""
        return certain(as_numbers(self.contract.scalar(value, dtype), dtype))

    def tensor(self, array: Array, dtype: DType) -> OracleStorage:
        """A tensor argument, copied when it is first written; the same array twice is one storage."""
        for other in self.tensors:
            if other.is_view_of(array):
                return other
        flushes = self.numerics.atomics_flush and dtype.name == "f32"
        storage = OracleStorage(array, dtype, self.tensors, atomics_flush=flushes)
        self.tensors.append(storage)
        return storage

    def buffer(self, shape: tuple[int, ...], dtype: DType) -> OracleStorage:
        """A shared buffer."""
        return OracleStorage(np.zeros(shape, dtype.numpy), dtype, [])

    def compute(self, op: Op, operands: Sequence[Bounded]) -> list[Bounded]:
        """The results of an op without effects or regions."""
        if op.name in REARRANGE:
            return _rearranged(op, operands)
        if op.name in OPS:
            return [OPS[op.name](op, *operands)]
        dtype = op.operands[0].tile.dtype if op.operands else None
        if dtype is None or not dtype.is_float:
            return [ON_INTEGERS.get(op.name, whole_numbers.compute)(op, *operands)]
        if op.name in ACCUMULATING:
            return [ACCUMULATING[op.name](op, self.numerics, *operands)]
        return [elementwise(op.name, dtype, operands, self.numerics.functions)]

    def integer(self, value: Bounded, op: Op) -> int:
        """An integer scalar; if it is unsure, what follows is a guess."""
        if value.unsure.any():
            self.undecided = self.undecided or op.loc
        return int(value.value)

    def truth(self, value: Bounded, op: Op) -> bool:
        """Whether all is true; a `check` passes if it may, anything else unsure makes what follows a guess."""
        if value.low.all() or not value.high.all():
            return bool(value.low.all())
        if op.name == "check":
            return True
        self.undecided = self.undecided or op.loc
        return bool(value.value.all())

    def show(self, message: str, values: Sequence[Bounded]) -> None:
        """Nothing: only the run in the contract's own numbers prints."""


def _rearranged(op: Op, operands: Sequence[Bounded]) -> list[Bounded]:
    move = REARRANGE[op.name]
    values = move(op.attrs, *(x.value for x in operands))
    if all(x.exact for x in operands):
        return [certain(v) for v in values]
    lows = move(op.attrs, *(x.low for x in operands))
    highs = move(op.attrs, *(x.high for x in operands))
    return [Bounded(*parts) for parts in zip(values, lows, highs, strict=True)]


def _compare(op: Op, a: Bounded, b: Bounded) -> Bounded:
    return compare(op.name, a, b)


def _select(_: Op, condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    return select(condition, a, b)


def _isnan(_: Op, x: Bounded) -> Bounded:
    nan = np.isnan(x.low)
    return certain(nan) if x.exact else Bounded(nan, nan, nan | x.anything)


def _extreme(op: Op, a: Bounded, b: Bounded) -> Bounded:
    if not op.result.tile.dtype.is_float:
        return whole_numbers.compute(op, a, b)
    return extremes(op.name, op.attrs["nan"], a, b)


def _reduce_extreme(op: Op, x: Bounded) -> Bounded:
    axis, name = op.attrs["axis"], op.name.removeprefix("reduce_")
    if not op.result.tile.dtype.is_float:
        return x.map(lambda part: np.asarray(getattr(part, name)(axis=axis)))
    rule = op.attrs["nan"]
    result = x.map(lambda part: reduce_extreme(name, part, axis, rule))
    if x.exact or rule == "ignore":
        return result
    return settle(result.value, result.low, result.high, x.anything.any(axis=axis) & ~np.isnan(result.low))


def _sum(op: Op, numerics: Numerics, x: Bounded) -> Bounded:
    along = Whole(op.attrs["axis"], x.value.shape[op.attrs["axis"]])
    return summed(x, along, addition_loss(f32, numerics.addition_roundoffs)).rounded(op.result.tile.dtype)


def _cumsum(op: Op, numerics: Numerics, x: Bounded) -> Bounded:
    along = Running(op.attrs, x.value.shape)
    return summed(x, along, addition_loss(f32, numerics.addition_roundoffs)).rounded(op.result.tile.dtype)


def _prod(op: Op, numerics: Numerics, x: Bounded) -> Bounded:
    loss = addition_loss(f32, numerics.addition_roundoffs)
    return multiplied(x, op.attrs["axis"], loss).rounded(op.result.tile.dtype)


def _mma(op: Op, numerics: Numerics, acc: Bounded, a: Bounded, b: Bounded) -> Bounded:
    dtypes = [v.tile.dtype for v in op.operands[1:]]
    if op.attrs["precision"] == "tf32" and dtypes[0] == f32:
        a, b = tf32_operand(a, numerics.tf32_error), tf32_operand(b, numerics.tf32_error)
    left = a.map(np.transpose) if op.attrs["transpose_a"] else a
    right = b.map(np.transpose) if op.attrs["transpose_b"] else b
    usual = addition_loss(f32, numerics.addition_roundoffs)
    loss = max(numerics.product_losses.get(dtype.name, usual) for dtype in dtypes)
    smallest = [_smallest_aligned(dtype, numerics) for dtype in dtypes]
    return matrix_product(acc, left, right, loss, (smallest[0], smallest[1]))


def _smallest_aligned(dtype: DType, numerics: Numerics) -> float:
    return 2.0 ** format_of(dtype).min_exponent if dtype.name in numerics.unnormalised else 0.0


def _cast(op: Op, x: Bounded) -> Bounded:
    source, target = op.operands[0].tile.dtype, op.result.tile.dtype
    return cast(x, source, target, op.attrs["rounding"], op.attrs["saturate"])


def _bitcast(op: Op, x: Bounded) -> Bounded:
    return bitcast(x, op.operands[0].tile.dtype, op.result.tile.dtype)


OPS: dict[str, Callable[..., Bounded]] = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _compare),
    "select": _select,
    "isnan": _isnan,
    "max": _extreme,
    "min": _extreme,
    "cast": _cast,
    "bitcast": _bitcast,
    "reduce_max": _reduce_extreme,
    "reduce_min": _reduce_extreme,
}

ACCUMULATING: dict[str, Callable[..., Bounded]] = {
    "reduce_sum": _sum,
    "reduce_prod": _prod,
    "cumsum": _cumsum,
    "mma": _mma,
}

ON_INTEGERS: dict[str, Callable[..., Bounded]] = {
    "reduce_sum": whole_numbers.sums,
    "reduce_prod": whole_numbers.sums,
    "cumsum": whole_numbers.sums,
    "mma": whole_numbers.matrix_product,
}
