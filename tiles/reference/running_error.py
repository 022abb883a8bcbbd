"""Running error analysis: formulas in float64, each value with how far shorter arithmetic may be from it.

For code whose operations are known, but not their order nor what a compiler contracts: each operation loses at most
what the contract allows it (`accuracy`, `addition_loss`), or nothing. The oracle follows a kernel's own operations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, f32
from warpwave.tiles.reference.accuracy import CONTRACT
from warpwave.tiles.reference.formats import format_of

Array = npt.NDArray[Any]
OWN = 2.0**-50  # what float64 itself loses in one operation, with much to spare


@dataclass(frozen=True, eq=False)
class Approx:
    """A float64 value, and the distance that a computation may have from it.

    Arithmetic is that of `dtype`: each operation with another value or number is rounded once, or not at all.
    """

    value: Array
    error: Array
    dtype: DType = f32
    __array_ufunc__: ClassVar[None] = None  # an array's operators leave it to ours

    @classmethod
    def of(cls, x: Any, dtype: DType = f32) -> Approx:
        """An input, which is known exactly."""
        wide = np.asarray(x).astype(np.float64)
        return cls(wide, np.zeros_like(wide), dtype)

    @property
    def size(self) -> Array:
        """The largest magnitude that is possible."""
        return np.abs(self.value) + self.error

    def lossless(self, value: Array, error: Array) -> Approx:
        """A result that is not rounded."""
        return replace(self, value=value, error=error)

    def blurred(self, relative: float) -> Approx:
        """The same with a further relative error."""
        return self.lossless(self.value, self.error + relative * self.size)

    def rounded(self, dtype: DType | None = None) -> Approx:
        """Rounded to nearest in a dtype, in which what follows is computed."""
        fmt = format_of(dtype or self.dtype)
        error = self.error + (fmt.unit_roundoff + OWN) * self.size + fmt.tiny / 2
        return Approx(self.value, error, dtype or self.dtype)

    def moved(self, function: Any) -> Approx:
        """`function`, which only moves elements, or drops some."""
        return self.lossless(function(self.value), function(self.error))

    # -- arithmetic -----------------------------------------------------------------------------------

    def _other(self, other: Any) -> Approx:
        return other if isinstance(other, Approx) else Approx.of(other, self.dtype)

    def __neg__(self) -> Approx:
        return self.lossless(-self.value, self.error)

    def __abs__(self) -> Approx:
        return self.lossless(np.abs(self.value), self.error)

    def __add__(self, other: Any) -> Approx:
        b = self._other(other)
        return self.lossless(self.value + b.value, self.error + b.error).rounded()

    def __sub__(self, other: Any) -> Approx:
        return self + -self._other(other)

    def __mul__(self, other: Any) -> Approx:
        b = self._other(other)
        spread = self.error * np.abs(b.value) + b.error * self.size
        return self.lossless(self.value * b.value, spread).rounded()

    def __truediv__(self, other: Any) -> Approx:
        """A quotient; no divisor may come near 0."""
        b = self._other(other)
        value = self.value / b.value
        least = np.abs(b.value) - b.error
        if not (least > 0).all():
            raise ZeroDivisionError("a divisor may be 0 within its error")
        return self.lossless(value, (self.error + np.abs(value) * b.error) / least).rounded()

    def __radd__(self, other: Any) -> Approx:
        return self.__add__(other)

    def __rmul__(self, other: Any) -> Approx:
        return self.__mul__(other)

    def __rsub__(self, other: Any) -> Approx:
        return (-self).__add__(other)

    def __rtruediv__(self, other: Any) -> Approx:
        return self._other(other) / self

    def maximum(self, other: Any) -> Approx:
        """The larger; it loses nothing."""
        b = self._other(other)
        return self.lossless(np.maximum(self.value, b.value), np.maximum(self.error, b.error))

    # -- functions ------------------------------------------------------------------------------------

    def function(self, name: str, value: Array, spread: Array) -> Approx:
        """A function in f32; `spread` is what the argument's error makes of it. An ulp is at most two roundoffs."""
        allowance, fmt = CONTRACT.functions[name], format_of(f32)
        relative = allowance.ulps * 2 * fmt.unit_roundoff + OWN
        smallest = 2.0**fmt.min_exponent if allowance.flushes else fmt.tiny
        of_argument = allowance.argument_ulps * 2 * fmt.unit_roundoff * self.size
        return self.lossless(value, spread + relative * (np.abs(value) + spread) + of_argument + smallest)

    def exp(self) -> Approx:
        """e to this power."""
        value = np.exp(self.value)
        return self.function("exp", value, np.exp(self.value + self.error) - value)

    def exp2(self) -> Approx:
        """2 to this power."""
        value = np.exp2(self.value)
        return self.function("exp2", value, np.exp2(self.value + self.error) - value)

    def log(self) -> Approx:
        """The natural logarithm of what is certainly above 0."""
        return self.function("log", np.log(self.value), -np.log1p(-self.error / self.value))

    def log2(self) -> Approx:
        """The logarithm to base 2 of what is certainly above 0."""
        return self.function("log2", np.log2(self.value), -np.log1p(-self.error / self.value) / np.log(2))

    def sqrt(self) -> Approx:
        """The square root, correctly rounded; |sqrt(x + e) - sqrt(x)| is at most e / sqrt(x), and sqrt(e)."""
        value = np.sqrt(self.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.lossless(value, np.fmin(np.sqrt(self.error), self.error / value)).rounded()

    def rsqrt(self) -> Approx:
        """1 over the square root of what is certainly above 0."""
        least = self.value - self.error
        value = 1 / np.sqrt(self.value)
        return self.function("rsqrt", value, 1 / np.sqrt(least) - value)

    # -- sums -----------------------------------------------------------------------------------------

    def sum(self, axis: int, depth: int, *, keepdims: bool = False) -> Approx:
        """A sum of additions in any order, none of whose terms goes through more than `depth` of them (Higham, 4.2)."""
        value, error, size = (x.sum(axis, keepdims=keepdims) for x in (self.value, self.error, self.size))
        fmt = format_of(self.dtype)
        return self.lossless(value, error + gamma(depth, fmt.unit_roundoff + OWN) * size)

    def cumsum(self, axis: int, depth: int) -> Approx:
        """The sums of all prefixes."""
        value, error, size = (np.cumsum(x, axis) for x in (self.value, self.error, self.size))
        fmt = format_of(self.dtype)
        return self.lossless(value, error + gamma(depth, fmt.unit_roundoff + OWN) * size)


def gamma(additions: int, loss: float) -> float:
    """n v / (1 - n v): what n operations lose together, each at most v of its result (Higham, lemma 3.1)."""
    lost = additions * loss
    return lost / (1 - lost) if lost < 1 else float("inf")
