"""What the tensors of a program hold: named distributions, ordinary and adversarial, exact by seed.

Only raw words of NumPy's Philox bit generator are used (its stream is fixed, the distributions of
`numpy.random.Generator` are not), and only arithmetic that is exact or correctly rounded, so that two machines
with different NumPy versions build the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType

Array = npt.NDArray[Any]
Uniform = npt.NDArray[np.float64]


class Words:
    """A stream of random numbers in [0, 1), from a key of two integers."""

    def __init__(self, seed: int, index: int) -> None:
        self._bits = np.random.Philox(key=np.array([seed % 2**64, index], np.uint64))

    def raw(self, count: int) -> npt.NDArray[np.uint64]:
        """64 random bits each."""
        return np.asarray(self._bits.random_raw(count), np.uint64)

    def uniform(self, shape: tuple[int, ...]) -> Uniform:
        """Multiples of 2^-53 in [0, 1)."""
        size = int(np.prod(shape, dtype=np.int64))
        return np.asarray((self.raw(size) >> np.uint64(11)) * 2.0**-53, np.float64).reshape(shape)

    def normal(self, shape: tuple[int, ...]) -> Uniform:
        """A bell-shaped number in (-3.5, 3.5) of variance 1: four uniform ones added."""
        parts = self.uniform((4, *shape))
        return np.asarray((parts[0] + parts[1] + parts[2] + parts[3] - 2.0) * 1.75, np.float64)


def fill(values: str, dtype: DType, shape: tuple[int, ...], seed: int, index: int) -> Array:
    """A tensor's elements."""
    words = Words(seed, index)
    if dtype.kind == "bool":
        return words.uniform(shape) < {"zeros": 0.0, "ones": 1.0}.get(values, 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.kind == "int":
            return INTEGERS[values](words, shape, dtype).astype(dtype.numpy)
        return FLOATS[values](words, shape, dtype).astype(np.float32).astype(dtype.numpy)


def _cancelling(words: Words, shape: tuple[int, ...], _: DType) -> Uniform:
    """Neighbours that nearly cancel, so that what remains is in the last bits."""
    x = words.normal(shape)
    odd = np.arange(shape[-1]) % 2 == 1 if shape else np.zeros((), bool)
    near = -np.roll(x, 1, axis=-1) * (1 + 2.0**-11 * words.uniform(shape)) if shape else x
    return np.where(odd, near, x)


def _mixed(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """Huge and tiny numbers side by side, within the format."""
    reach = {"f32": 60, "bf16": 60, "f16": 13}.get(dtype.name, 5)
    return words.normal(shape) * np.exp2(np.floor((words.uniform(shape) - 0.5) * 2 * reach))


def _late_maximum(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """Rows that grow to their end: a running maximum is replaced in every step."""
    ramp = np.arange(shape[-1]) * (8.0 / max(shape[-1], 1)) if shape else 0.0
    return words.normal(shape) + ramp + np.where(words.uniform(shape) > 0.95, 20.0 if dtype.bits > 8 else 2.0, 0.0)


def _special(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """Ordinary numbers with zeros of both signs, infinities, NaN, the largest and the smallest numbers among them."""
    largest, smallest = float(dtype.max), _smallest(dtype)
    choices = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, largest, -largest, smallest, -smallest, 1.0])
    which = (words.uniform(shape) * len(choices)).astype(int)
    return np.where(words.uniform(shape) < 0.15, choices[which], words.normal(shape))


def _smallest(dtype: DType) -> float:
    exponents = {"f32": -149, "bf16": -133, "f16": -24, "fp8e4m3": -9, "fp8e5m2": -16}
    return float(2.0 ** exponents.get(dtype.name, -10))


def _denormal(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """Subnormal numbers and a few just above them."""
    steps = np.floor(words.normal(shape) * 2.0 ** min(dtype.mantissa, 20))
    return steps * _smallest(dtype)


def _masked_rows(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """Some rows are all -inf (the lowest number where there is no infinity)."""
    low = -np.inf if dtype.has_inf else float(dtype.min)
    rows = words.uniform((*shape[:-1], 1)) if shape else words.uniform(shape)
    return np.where(rows < 0.3, low, words.normal(shape))


def _ties(words: Words, shape: tuple[int, ...], _: DType) -> Uniform:
    """Odd multiples of a half: halfway cases for rounding to integers and to short formats."""
    return (np.floor(words.uniform(shape) * 512) - 256) * 0.5


def _positive(words: Words, shape: tuple[int, ...], _: DType) -> Uniform:
    return words.uniform(shape) * 4 + 2.0**-6


def _everything(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """A row of each distribution in turn, and rows of random bits."""
    makers = [maker for name, maker in FLOATS.items() if name != "everything"]
    rows = [maker(words, shape, dtype)[i :: len(makers) + 1] for i, maker in enumerate([*makers, _any_bits])]
    result = np.empty(shape)
    for i, part in enumerate(rows):
        result[i :: len(rows)] = part
    return result


def _any_bits(words: Words, shape: tuple[int, ...], dtype: DType) -> Uniform:
    """Every bit pattern of the format is as likely as any other."""
    size = int(np.prod(shape, dtype=np.int64))
    bits = (words.raw(size) >> np.uint64(64 - dtype.bits)).astype(f"u{dtype.nbytes}")
    return bits.view(dtype.numpy).reshape(shape).astype(np.float64)


def _constant(value: float) -> Callable[[Words, tuple[int, ...], DType], Uniform]:
    return lambda _, shape, __: np.full(shape, value)


FLOATS: dict[str, Callable[[Words, tuple[int, ...], DType], Uniform]] = {
    "normal": lambda words, shape, _: words.normal(shape),
    "positive": _positive,
    "zeros": _constant(0.0),
    "ones": _constant(1.0),
    "ties": _ties,
    "cancelling": _cancelling,
    "mixed": _mixed,
    "late maximum": _late_maximum,
    "special": _special,
    "denormal": _denormal,
    "masked rows": _masked_rows,
    "any bits": _any_bits,
    "everything": _everything,
}


def _small_integers(words: Words, shape: tuple[int, ...], _: DType) -> Array:
    return np.asarray(np.floor(words.uniform(shape) * 17).astype(np.int64) - 8)


def _all_integers(words: Words, shape: tuple[int, ...], dtype: DType) -> Array:
    size = int(np.prod(shape, dtype=np.int64))
    return np.asarray(words.raw(size).view(np.int64).reshape(shape) >> (64 - dtype.bits))


def _edge_integers(words: Words, shape: tuple[int, ...], dtype: DType) -> Array:
    edges = np.array([0, 1, -1, int(dtype.max), int(dtype.min), 2, 7, int(dtype.max) - 1], np.int64)
    return np.asarray(edges[(words.uniform(shape) * len(edges)).astype(int)])


INTEGERS: dict[str, Callable[[Words, tuple[int, ...], DType], Array]] = {
    "normal": _small_integers,
    "zeros": lambda _, shape, __: np.zeros(shape, np.int64),
    "ones": lambda _, shape, __: np.ones(shape, np.int64),
    "whole range": _all_integers,
    "edges": _edge_integers,
    "everything": lambda words, shape, dtype: np.where(
        words.uniform(shape) < 0.5, _all_integers(words, shape, dtype), _edge_integers(words, shape, dtype)
    ),
}
COMMON = ("normal", "positive", "late maximum")
RARE = ("cancelling", "mixed", "special", "denormal", "masked rows", "ties", "zeros", "ones")
