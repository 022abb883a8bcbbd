"""Reading of DLPack capsules, including the small float formats that NumPy's own importer refuses.

Layout and codes: dmlc/dlpack, include/dlpack/dlpack.h, version 1.1.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from warpwave.tiles import dtypes
from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import TileTypeError
from warpwave.tiles.runtime.arrays import HOST, Array, unsupported_dtype

MAX_VERSION = (1, 1)
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
NO_SYNC = -1  # the stream argument that asks the producer not to synchronise

# DLDeviceType: kDLCPU, and the two page-locked kinds of host memory, which the CPU reads like its own.
HOST_DEVICE_TYPES = (1, 3, 11)

# (DLDataTypeCode, bits) -> dtype
DTYPES: dict[tuple[int, int], DType] = {
    (0, 8): dtypes.i8,
    (0, 32): dtypes.i32,
    (0, 64): dtypes.i64,
    (2, 16): dtypes.f16,
    (2, 32): dtypes.f32,
    (4, 16): dtypes.bf16,
    (6, 8): dtypes.bool_,
    (10, 8): dtypes.fp8e4m3,
    (11, 8): dtypes.fp8e4m3fnuz,
    (12, 8): dtypes.fp8e5m2,
    (13, 8): dtypes.fp8e5m2fnuz,
}

# PyTorch's names of formats that its releases export as themselves, as bytes, or not at all: read as bytes.
_TORCH_BYTES: dict[str, DType] = {
    "torch.float8_e4m3fn": dtypes.fp8e4m3,
    "torch.float8_e5m2": dtypes.fp8e5m2,
    "torch.float8_e4m3fnuz": dtypes.fp8e4m3fnuz,
    "torch.float8_e5m2fnuz": dtypes.fp8e5m2fnuz,
}

_CODE_NAMES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype = ctypes.c_char_p
_name_of.argtypes = (ctypes.py_object,)


def import_dlpack(obj: Any) -> Array:
    """A view of an object that exports itself through DLPack.

    The capsule is not consumed but kept as the view's owner: its destructor frees the export.
    """
    small = _TORCH_BYTES.get(str(getattr(obj, "dtype", "")))
    capsule = _export(obj.view(sys.modules["torch"].uint8) if small else obj)
    tensor, flags = _read(capsule)
    dtype = small or _dtype(tensor.dtype)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = _strides(tensor, shape)
    address = (tensor.data or 0) + tensor.byte_offset
    device_type = tensor.device.type
    on_host = device_type in HOST_DEVICE_TYPES
    device = HOST if on_host else f"dlpack{device_type}:{tensor.device.index}"
    host = host_view(dtype, shape, strides, address) if on_host else None
    return Array(dtype, shape, strides, device, address, (capsule, obj), host, not flags & READ_ONLY)


def _export(obj: Any) -> Any:
    device_type = int(obj.__dlpack_device__()[0])
    # The consumer of device memory is a backend, which orders its own stream; the CPU has none.
    stream = {} if device_type in HOST_DEVICE_TYPES else {"stream": NO_SYNC}
    try:
        try:
            return obj.__dlpack__(max_version=MAX_VERSION, **stream)
        except TypeError:  # an exporter from before DLPack 1.0
            return obj.__dlpack__(**stream)
    except Exception as error:
        hint = "pass tensor.detach()" if getattr(obj, "requires_grad", False) else None
        raise TileTypeError(f"{type(obj).__name__} cannot be exported through DLPack: {error}", hint=hint) from error


def _read(capsule: Any) -> tuple[_Tensor, int]:
    name = _name_of(capsule)
    if name == b"dltensor_versioned":
        versioned = _Versioned.from_address(_pointer_of(capsule, name))
        if versioned.major != MAX_VERSION[0]:
            raise TileTypeError(f"DLPack version {versioned.major}.{versioned.minor} is not understood")
        return versioned.tensor, versioned.flags
    if name == b"dltensor":
        return _Tensor.from_address(_pointer_of(capsule, name)), 0
    raise TileTypeError(f"not a DLPack capsule: {name!r}")


def _dtype(found: _DataType) -> DType:
    dtype = DTYPES.get((found.code, found.bits)) if found.lanes == 1 else None
    if dtype is None:
        lanes = f"x{found.lanes}" if found.lanes != 1 else ""
        raise unsupported_dtype(
            f"{_CODE_NAMES.get(found.code, f'DLPack code {found.code} of bits ')}{found.bits}{lanes}"
        )
    return dtype


def _strides(tensor: _Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    if tensor.strides:
        return tuple(tensor.strides[i] for i in range(tensor.ndim))
    strides, step = [], 1  # no strides means row-major
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def host_view(dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], address: int) -> np.ndarray[Any, Any]:
    """A NumPy array over memory at `address`, which someone else keeps alive; strides count elements."""
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    reach = [s * (n - 1) for s, n in zip(strides, shape, strict=True)]
    first, last = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    size = dtype.nbytes
    memory = (ctypes.c_char * ((last - first + 1) * size)).from_address(address + first * size)
    return np.ndarray(shape, dtype.numpy, memoryview(memory), -first * size, [s * size for s in strides])
