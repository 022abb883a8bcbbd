"""The same values elsewhere in memory: other strides, surrounded by bytes that no kernel may read or write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Layout = Literal["tight", "wide rows", "columns first", "every other", "offset"]
LAYOUTS: tuple[Layout, ...] = ("wide rows", "columns first", "every other", "offset")
ALIGNMENT = 256  # as allocators give it, so that only the layout decides what a kernel may do
GUARD = 64  # elements before and after


@dataclass(frozen=True)
class Placed:
    """`view` holds the values; `pads` marks the elements of its `buffer` that are not part of it."""

    view: Array
    buffer: Array
    before: Array

    @property
    def pads_are_intact(self) -> bool:
        """Whether nothing around the values has changed since they were placed."""
        kept = self.before.copy()
        _within(kept, self.buffer, self.view)[...] = self.view
        return bool((kept.view(np.uint8) == self.buffer.view(np.uint8)).all())


def place(values: Array, layout: Layout, fill: float) -> Placed:
    """`values` in a layout, in a buffer filled with `fill` (for integers and bools: all ones)."""
    padded = _padded_shape(values.shape, layout)
    size = int(np.prod(padded)) + 2 * GUARD
    buffer = _aligned(size, values.dtype)
    buffer.view(np.uint8)[...] = 0xFF
    if values.dtype.kind not in "iub":
        buffer[...] = np.array(fill).astype(values.dtype)
    inner = buffer[GUARD + (layout == "offset") : size - GUARD + (layout == "offset")]
    view = _cut(inner, padded, values.shape, layout)
    view[...] = values
    return Placed(view, buffer, buffer.copy())


def _aligned(size: int, dtype: np.dtype[Any]) -> Array:
    raw = np.zeros(size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -(raw.ctypes.data + GUARD * dtype.itemsize) % ALIGNMENT
    return raw[start : start + size * dtype.itemsize].view(dtype)


def _padded_shape(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    if not shape or layout in ("tight", "offset"):
        return shape
    if layout == "columns first":
        return shape[::-1]
    if layout == "every other":
        return (*shape[:-1], 2 * shape[-1])
    return (*shape[:-1], shape[-1] + 16)


def _cut(inner: Array, padded: tuple[int, ...], shape: tuple[int, ...], layout: Layout) -> Array:
    whole = inner[: int(np.prod(padded))].reshape(padded)
    if not shape or layout in ("tight", "offset"):
        return whole
    if layout == "columns first":
        return whole.T
    return whole[..., ::2] if layout == "every other" else whole[..., : shape[-1]]


def _within(copy: Array, buffer: Array, view: Array) -> Array:
    """The elements of a copy of the buffer that `view` is in the buffer."""
    start = (view.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]) // buffer.itemsize
    return np.ndarray(view.shape, view.dtype, copy, start * buffer.itemsize, view.strides)
