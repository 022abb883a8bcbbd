"""The numerics contract as a domain: values are NumPy arrays in each dtype's storage type.

Every op on a float format is computed in float64 and rounded once to nearest even, except that sums and
products of reductions and matrix products are first rounded to f32, the format they accumulate in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.ir import Op
from warpwave.tiles.reference.formats import cast, narrow, round_to, widen
from warpwave.tiles.reference.functions import COMPARE, FLOAT, INTEGER, extreme
from warpwave.tiles.reference.memory import Window
from warpwave.tiles.reference.philox import random_bits
from warpwave.tiles.reference.shapes import REARRANGE

Array = npt.NDArray[Any]


class ContractStorage:
    """A tensor argument or shared buffer: a NumPy view of it."""

    def __init__(self, data: Array, dtype: DType) -> None:
        self.data = data
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return self.data.shape

    def read(self, window: Window, fill: Array) -> Array:
        """The tile under the window, `fill` outside."""
        return window.read(self.data, fill)

    def write(self, window: Window, tile: Array) -> None:
        """Overwrite the elements under the window."""
        window.write(self.data, tile)

    def add(self, window: Window, tile: Array) -> None:
        """Add to the elements under the window, each sum rounded to the tensor's dtype."""
        before = window.read(self.data, np.zeros((), self.data.dtype))
        window.write(self.data, arithmetic("add", self.dtype, [before, tile]))


class Contract:
    """Values are arrays in the storage type of their dtype."""

    def scalar(self, value: bool | int | float, dtype: DType) -> Array:
        """A constant, rounded to `dtype`."""
        return narrow(np.asarray(value, np.float64), dtype) if dtype.is_float else np.asarray(value, dtype.numpy)

    def tensor(self, array: Array, dtype: DType) -> ContractStorage:
        """A tensor argument, accessed in place."""
        return ContractStorage(array, dtype)

    def buffer(self, shape: tuple[int, ...], dtype: DType) -> ContractStorage:
        """A shared buffer."""
        return ContractStorage(np.zeros(shape, dtype.numpy), dtype)

    def compute(self, op: Op, operands: Sequence[Array]) -> list[Array]:
        """The results of an op without effects or regions."""
        if op.name in REARRANGE:
            return REARRANGE[op.name](op.attrs, *operands)
        result = OPS[op.name](op, *operands) if op.name in OPS else _elementwise(op, *operands)
        return [np.asarray(result, op.result.tile.dtype.numpy)]

    def integer(self, value: Array, op: Op) -> int:
        """An integer scalar."""
        return int(value)

    def truth(self, value: Array, op: Op) -> bool:
        """Whether all of a bool value is true."""
        return bool(value.all())

    def show(self, message: str, values: Sequence[Array]) -> None:
        """Print values for the user."""
        print(message, *(np.array2string(v) for v in values))


def arithmetic(name: str, dtype: DType, operands: Sequence[Array]) -> Array:
    """An elementwise op on operands of `dtype`, with a result of `dtype`."""
    if not dtype.is_float:
        return np.asarray(INTEGER[name](*operands), dtype.numpy)
    return narrow(FLOAT[name](*(widen(x) for x in operands)), dtype)


def _elementwise(op: Op, *operands: Array) -> Array:
    return arithmetic(op.name, op.operands[0].tile.dtype, operands)


def _comparable(op: Op, x: Array) -> Array:
    return widen(x) if op.operands[0].tile.dtype.is_float else x


def _compare(op: Op, a: Array, b: Array) -> Array:
    return COMPARE[op.name](_comparable(op, a), _comparable(op, b))


def _extreme(op: Op, a: Array, b: Array) -> Array:
    if not op.result.tile.dtype.is_float:
        return INTEGER[op.name](a, b)
    return extreme(op.name, op.attrs["nan"])(widen(a), widen(b)).astype(op.result.tile.dtype.numpy)


def _reduce_extreme(op: Op, x: Array) -> Array:
    axis, name = op.attrs["axis"], op.name.removeprefix("reduce_")
    if not op.result.tile.dtype.is_float:
        return np.asarray(getattr(x, name)(axis=axis))
    return reduce_extreme(name, widen(x), axis, op.attrs["nan"]).astype(op.result.tile.dtype.numpy)


def reduce_extreme(name: str, x: Array, axis: int, nan: str) -> Array:
    """Largest or smallest float along `axis` under a NaN rule, with -0 below +0."""
    nothing = -np.inf if name == "max" else np.inf
    if nan == "ignore":
        x = np.where(np.isnan(x), nothing, x)
    result = np.asarray(getattr(x, name)(axis=axis))
    negative = np.signbit(x) | (x != 0)
    all_negative = negative.all(axis=axis)
    any_negative = ((x == 0) & np.signbit(x)).any(axis=axis)
    zero = np.where(all_negative if name == "max" else any_negative, -0.0, 0.0)
    return np.where(result == 0, zero, result)


def total(x: Array, axis: int, dtype: Any = np.float64) -> Array:
    """The sum along an axis. NumPy begins a sum of floats with +0, which makes one of -0 alone +0."""
    return np.asarray(x.sum(axis=axis, dtype=dtype, initial=-0.0 if np.dtype(dtype).kind == "f" else 0))


def _reduce(function: Callable[..., Any]) -> Callable[[Op, Array], Array]:
    def reduced(op: Op, x: Array) -> Array:
        dtype, axis = op.result.tile.dtype, op.attrs["axis"]
        if not dtype.is_float:
            return np.asarray(function(x, axis=axis, dtype=dtype.numpy))
        return narrow(round_to(np.asarray(function(widen(x), axis=axis)), f32), dtype)

    return reduced


def _cumsum(op: Op, x: Array) -> Array:
    dtype = op.result.tile.dtype
    if not dtype.is_float:
        return running_sum(x, op.attrs, dtype.numpy)
    return narrow(round_to(running_sum(widen(x), op.attrs, np.dtype(np.float64)), f32), dtype)


def running_sum(x: Array, attrs: Any, dtype: np.dtype[Any]) -> Array:
    """The inclusive or exclusive running sum along an axis, from the start or the end."""
    axis = attrs["axis"]
    x = np.flip(x, axis) if attrs["reverse"] else x
    if attrs["exclusive"]:
        first = np.zeros_like(np.take(x, [0], axis))
        x = np.concatenate([first, np.delete(x, -1, axis)], axis)
    result = np.cumsum(x, axis=axis, dtype=dtype)
    return np.flip(result, axis) if attrs["reverse"] else result


def mma_operands(op: Op, a: Array, b: Array) -> tuple[Array, Array]:
    """The operands of a matrix product as they are multiplied: a[M, K] and b[K, N]."""
    return (a.T if op.attrs["transpose_a"] else a), (b.T if op.attrs["transpose_b"] else b)


def _mma(op: Op, acc: Array, a: Array, b: Array) -> Array:
    """float64 holds every product exactly (integers: also every sum), and the sum is rounded to f32 once."""
    left, right = mma_operands(op, widen(a), widen(b))
    product = left @ right
    if op.result.tile.dtype.is_int:
        return np.asarray((acc + product.astype(np.int64)).astype(np.int32))
    return narrow(widen(acc) + product, f32)


def _random_bits(op: Op, seed: Array, offset: Array, row: Array, col: Array) -> Array:
    return random_bits(op.attrs["shape"], int(seed), int(offset), int(row), int(col))


def _select(_: Op, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


def _iota(op: Op) -> Array:
    shape, axis = op.attrs["shape"], op.attrs["axis"]
    return np.asarray(np.indices(shape, np.int32)[axis])


def _cast(op: Op, x: Array) -> Array:
    source, target = op.operands[0].tile.dtype, op.result.tile.dtype
    return cast(x, source, target, op.attrs["rounding"], op.attrs["saturate"])


def _bitcast(op: Op, x: Array) -> Array:
    return np.asarray(np.ascontiguousarray(x).view(op.attrs["dtype"].numpy).reshape(x.shape))


OPS: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(COMPARE, _compare),
    "iota": _iota,
    "isnan": lambda _, x: np.isnan(widen(x)),
    "select": _select,
    "max": _extreme,
    "min": _extreme,
    "cast": _cast,
    "bitcast": _bitcast,
    "reduce_max": _reduce_extreme,
    "reduce_min": _reduce_extreme,
    "reduce_sum": _reduce(total),
    "reduce_prod": _reduce(np.prod),
    "cumsum": _cumsum,
    "mma": _mma,
    "random_bits": _random_bits,
}
