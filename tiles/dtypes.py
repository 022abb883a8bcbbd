"""The element types of the language: frozen values, one per format, with their NumPy storage type."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

Kind = Literal["float", "int", "bool"]


@dataclass(frozen=True)
class DType:
    """One element type.

    `bits` is the storage size. `mantissa` counts the explicit fraction bits of a float format (0 for
    others). `numpy` is the storage type used by the reference and by host arrays.
    """

    name: str
    kind: Kind
    bits: int
    numpy: np.dtype[Any]
    mantissa: int = 0

    def __repr__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point format."""
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Whether this is an integer format (bool excluded)."""
        return self.kind == "int"

    @property
    def is_fp8(self) -> bool:
        """Whether this is one of the 8-bit float formats."""
        return self.kind == "float" and self.bits == 8

    @property
    def nbytes(self) -> int:
        """Storage size of one element in bytes."""
        return self.numpy.itemsize

    @property
    def max(self) -> float | int:
        """Largest finite value."""
        return _limit(self, "max")

    @property
    def min(self) -> float | int:
        """Most negative finite value."""
        return _limit(self, "min")

    @property
    def has_inf(self) -> bool:
        """Whether the format can hold an infinity (the e4m3 forms and the FNUZ forms cannot)."""
        return self.kind == "float" and bool(np.isinf(np.array(np.inf, np.float32).astype(self.numpy)))


@functools.lru_cache(maxsize=64)
def _limit(dtype: DType, which: str) -> float | int:
    if dtype.kind == "bool":
        return which == "max"
    if dtype.kind == "int":
        return int(getattr(np.iinfo(dtype.numpy), which))
    return float(getattr(ml_dtypes.finfo(dtype.numpy), which))  # type: ignore[no-untyped-call]


f32 = DType("f32", "float", 32, np.dtype(np.float32), 23)
f16 = DType("f16", "float", 16, np.dtype(np.float16), 10)
bf16 = DType("bf16", "float", 16, np.dtype(ml_dtypes.bfloat16), 7)
fp8e4m3 = DType("fp8e4m3", "float", 8, np.dtype(ml_dtypes.float8_e4m3fn), 3)
fp8e5m2 = DType("fp8e5m2", "float", 8, np.dtype(ml_dtypes.float8_e5m2), 2)
fp8e4m3fnuz = DType("fp8e4m3fnuz", "float", 8, np.dtype(ml_dtypes.float8_e4m3fnuz), 3)
fp8e5m2fnuz = DType("fp8e5m2fnuz", "float", 8, np.dtype(ml_dtypes.float8_e5m2fnuz), 2)
i64 = DType("i64", "int", 64, np.dtype(np.int64))
i32 = DType("i32", "int", 32, np.dtype(np.int32))
i8 = DType("i8", "int", 8, np.dtype(np.int8))
bool_ = DType("bool", "bool", 8, np.dtype(np.bool_))

ALL = (f32, f16, bf16, fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz, i64, i32, i8, bool_)
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_NUMPY = {dtype.numpy: dtype for dtype in ALL}
