"""Casts of bounded numbers. Floats are held as float64, integers and bools in their storage type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.dtypes import DType, bool_
from warpwave.tiles.reference import formats
from warpwave.tiles.reference.bounded import Bounded, certain
from warpwave.tiles.reference.intervals import compare

Array = npt.NDArray[Any]


def as_numbers(x: Array, dtype: DType) -> Array:
    """Elements in storage type as the oracle holds them."""
    return formats.widen(x) if dtype.is_float else x


def full_range(x: Bounded, unsure: Array, dtype: DType) -> Bounded:
    """An integer tile whose `unsure` elements may have any value."""
    if not unsure.any():
        return certain(x.value)
    low, high = (np.where(unsure, limit, x.value).astype(dtype.numpy) for limit in (dtype.min, dtype.max))
    return Bounded(x.value, low, high)


def cast(x: Bounded, source: DType, target: DType, rounding: str, saturate: bool) -> Bounded:
    """The language's cast; see `warpwave.tiles.language.elementwise.cast`."""
    if target == bool_:
        return compare("ne", x, certain(np.zeros((), x.value.dtype)))
    if target.is_float:
        numbers = x if source.is_float else x.map(formats.integer_to_odd)
        return numbers.rounded(target, rounding, saturate=saturate)
    if source.is_float:
        return x.map(lambda part: formats.float_to_integer(part, target, rounding))
    converted = x.map(lambda part: formats.cast(part, source, target, rounding, saturate))
    if saturate or x.exact or source == bool_:
        return converted
    outside = (x.low < target.min) | (x.high > target.max)
    return _with_range(converted, x.unsure & outside, target)


def _with_range(x: Bounded, any_value: Array, dtype: DType) -> Bounded:
    low, high = np.where(any_value, dtype.min, x.low), np.where(any_value, dtype.max, x.high)
    return Bounded(x.value, low.astype(dtype.numpy), high.astype(dtype.numpy))


def bitcast(x: Bounded, source: DType, target: DType) -> Bounded:
    """The same bits; nothing is known of those of an unsure element or of a NaN."""
    stored = formats.store_as(x.value, source) if source.is_float else x.value
    bits = np.ascontiguousarray(stored).view(target.numpy).reshape(stored.shape)
    unknown = x.unsure | np.isnan(x.value) if source.is_float else x.unsure
    if not target.is_float:
        return full_range(certain(bits), unknown, target)
    value = formats.widen(bits)
    if not unknown.any():
        return certain(value)
    return Bounded(value, np.where(unknown, -np.inf, value), np.where(unknown, np.inf, value))
