"""Arrays in the memory of a HIP device, exported through DLPack as PyTorch-ROCm exports its own."""

from __future__ import annotations

import ctypes

import numpy as np

from warpwave.tiles.dtypes import BY_NUMPY
from warpwave.tiles.runtime.dlpack import DTYPES, _Tensor

ROCM = 10  # kDLROCM
CODES = {dtype: code for code, dtype in DTYPES.items()}


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class DeviceArray:
    """A view of device memory; `streams` records what consumers asked for."""

    def __init__(self, hip, pointer, dtype, shape, strides, device=0, offset=0) -> None:
        self.hip, self.pointer, self.dtype, self.device = hip, int(pointer), np.dtype(dtype), device
        self.shape, self.strides, self.offset = tuple(shape), tuple(strides), offset
        self.streams: list[int | None] = []
        self._exports: list[_Managed] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return ROCM, self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        rank = len(self.shape)
        code, bits = CODES[BY_NUMPY[self.dtype]]
        managed = _Managed()
        tensor = managed.tensor
        tensor.data, tensor.byte_offset, tensor.ndim = self.pointer, self.offset * self.dtype.itemsize, rank
        tensor.device.type, tensor.device.index = ROCM, self.device
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code, bits, 1
        managed.shape_memory = (ctypes.c_int64 * max(rank, 1))(*self.shape)
        managed.strides_memory = (ctypes.c_int64 * max(rank, 1))(*self.strides)
        tensor.shape = ctypes.cast(managed.shape_memory, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(managed.strides_memory, ctypes.POINTER(ctypes.c_int64))
        self._exports.append(managed)
        return _new_capsule(ctypes.addressof(managed), b"dltensor", None)

    def numpy(self) -> np.ndarray:
        """A copy of its elements on the host; what was never written is 0."""
        low = self.offset + sum(min(0, s * (n - 1)) for s, n in zip(self.strides, self.shape, strict=True))
        high = self.offset + sum(max(0, s * (n - 1)) for s, n in zip(self.strides, self.shape, strict=True)) + 1
        raw = np.zeros(high - low, self.dtype)
        kind = self.hip.hipMemcpyKind.hipMemcpyDeviceToHost
        assert not self.hip.hipMemcpy(raw, self.pointer + low * self.dtype.itemsize, raw.nbytes, kind)[0]
        size = self.dtype.itemsize
        byte_strides = [s * size for s in self.strides]
        return np.ndarray(self.shape, self.dtype, raw, (self.offset - low) * size, byte_strides).copy()


def on_device(hip, array: np.ndarray, device=0) -> DeviceArray:
    """A device copy with the strides of a NumPy array, whatever lies between its elements included."""
    low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, array.itemsize)
    _, before = hip.hipGetDevice()
    hip.hipSetDevice(device)
    code, pointer = hip.hipMalloc(high - low)
    assert not code
    if array.size:
        raw = (ctypes.c_uint8 * (high - low)).from_address(low)
        kind = hip.hipMemcpyKind.hipMemcpyHostToDevice
        assert not hip.hipMemcpy(pointer, np.ctypeslib.as_array(raw), high - low, kind)[0]
    hip.hipSetDevice(before)
    origin = (array.ctypes.data - low) // array.itemsize if array.size else 0
    strides = [s // array.itemsize for s in array.strides]
    return DeviceArray(hip, pointer, array.dtype, array.shape, strides, device, origin)
