"""Arrays that lie in memory in unusual ways, with a guard around them that shows stray writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
LAYOUTS = ("rows", "columns", "sliced", "reversed", "padded", "offset")
ALIGNMENT = 64


def memory(layout: str, values: Array) -> Array:
    """A copy of `values` that lies in memory as `layout` says."""
    view: Array = MAKERS[layout](values)
    view[...] = values
    return view


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any], skip: int = 0) -> Array:
    """Zeros whose first element is `skip` elements after an aligned address, so that runs repeat exactly."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.zeros(size + 2 * ALIGNMENT + skip * dtype.itemsize, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT + skip * dtype.itemsize
    return raw[start : start + size].view(dtype).reshape(shape)


def _columns(x: Array) -> Array:
    return _aligned(x.shape[::-1], x.dtype).T


def _sliced(x: Array) -> Array:
    return _aligned((*x.shape[:-1], x.shape[-1] * 2), x.dtype)[..., ::2]


def _reversed(x: Array) -> Array:
    return _aligned(x.shape, x.dtype)[::-1]


def _padded(x: Array) -> Array:
    return _aligned((*x.shape[:-1], x.shape[-1] + 3), x.dtype)[..., 1:-2]


MAKERS: dict[str, Callable[[Array], Array]] = {
    "rows": lambda x: _aligned(x.shape, x.dtype),
    "columns": _columns,
    "sliced": _sliced,
    "reversed": _reversed,
    "padded": _padded,
    "offset": lambda x: _aligned(x.shape, x.dtype, skip=1),
}
