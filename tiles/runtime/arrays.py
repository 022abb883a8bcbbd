"""Arrays of any library as one view: dtype, shape, strides, device and address, without copying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.dtypes import ALL, BY_NUMPY, DType
from warpwave.tiles.errors import TileTypeError

HOST = "cpu:0"


@dataclass(frozen=True)
class Array:
    """A borrowed array. `strides` count elements and may be negative or 0.

    `device` is "cpu:0", else "dlpack<type>:<index>" with the device type code of DLPack's
    `DLDeviceType`; backends know their codes. `host` is a NumPy view where the CPU can reach the memory.
    `owner` keeps the memory alive: hold the Array as long as `address` or `host` is used.
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    address: int
    owner: Any
    host: np.ndarray[Any, Any] | None = None
    writable: bool = True

    @property
    def on_host(self) -> bool:
        """Whether this is ordinary memory of the CPU."""
        return self.device == HOST

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


def borrow(obj: Any) -> Array:
    """A view of a NumPy array, or of any object with `__dlpack__` (PyTorch, CuPy, JAX and others).

    TileTypeError for what is no array or has no dtype of the language.
    """
    if isinstance(obj, Array):
        return obj
    if isinstance(obj, np.ndarray):
        return _borrow_numpy(obj)
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        from warpwave.tiles.runtime.dlpack import import_dlpack

        return import_dlpack(obj)
    raise TileTypeError(
        f"{type(obj).__name__} is no array",
        hint="pass a NumPy array or an array with __dlpack__ (PyTorch, CuPy, JAX)",
    )


def is_array(obj: Any) -> bool:
    """Whether `borrow` accepts this kind of object."""
    return isinstance(obj, Array | np.ndarray) or hasattr(obj, "__dlpack__")


def _borrow_numpy(array: np.ndarray[Any, Any]) -> Array:
    dtype = BY_NUMPY.get(array.dtype)
    if dtype is None:
        raise unsupported_dtype(str(array.dtype), swapped=not array.dtype.isnative)
    size = array.itemsize
    strides = tuple([s // size for s in array.strides])
    if any([s % size for s in array.strides]):  # a list is quicker than a generator for a few strides
        raise TileTypeError(
            f"strides of {array.strides} bytes are not whole elements of {dtype.nbytes} bytes",
            hint="copy it with numpy.ascontiguousarray",
        )
    return Array(dtype, array.shape, strides, HOST, array.ctypes.data, array, array, array.flags.writeable)


def unsupported_dtype(name: str, *, swapped: bool = False) -> TileTypeError:
    """The error for an element type that the language does not have."""
    if swapped:
        return TileTypeError(f"dtype {name} is not in native byte order", hint="convert it with .astype first")
    known = ", ".join(d.name for d in ALL)
    return TileTypeError(f"dtype {name} is not an element type of the language", hint=f"there are {known}")


def may_overlap_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may share an address, so that writing the array has no defined result.

    Exact for nested strides (all views that slicing, transposing and broadcasting give) and for up to
    65536 elements; a larger array with interleaved strides counts as overlapping.
    """
    dims = sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n != 1)
    if any(n == 0 for _, n in dims):
        return False
    reach, nested = 0, True
    for stride, extent in dims:
        nested = nested and stride > reach
        reach += stride * (extent - 1)
    return not nested and not _all_distinct(dims)


def _all_distinct(dims: list[tuple[int, int]]) -> bool:
    count = 1
    for _, extent in dims:
        count *= extent
    if any(stride == 0 for stride, _ in dims) or count > 65536:
        return False
    offsets = np.zeros(1, np.int64)
    for stride, extent in dims:
        offsets = (offsets[:, None] + stride * np.arange(extent)).reshape(-1)
    return bool(len(np.unique(offsets)) == count)
