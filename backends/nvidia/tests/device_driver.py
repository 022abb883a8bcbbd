"""The CUDA driver through ctypes: memory, modules, launches and tensor maps for the tests on a device.

It needs nothing but the driver itself, and shares no code with the runtime under test.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES = {"bf16": 9, "f16": 6, "f32": 7, "u8": 0}  # CUtensorMapDataType
_SWIZZLES = {32: 1, 64: 2, 128: 3}
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Device:
    """The first device, its primary context current on this thread."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.capability = (major.value, minor.value)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {status} {(text.value or b'').decode()}")

    def module(self, cubin: bytes) -> Module:
        return Module(self, cubin)

    def buffer(self, data: npt.NDArray[Any]) -> Buffer:
        return Buffer(self, np.ascontiguousarray(data))


class Buffer:
    """Device memory that starts as a copy of an array."""

    def __init__(self, device: Device, data: npt.NDArray[Any]) -> None:
        self.device, self.shape, self.dtype = device, data.shape, data.dtype
        self.address = ctypes.c_uint64()
        device.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(data.nbytes, 16)))
        device.call("cuMemcpyHtoD_v2", self.address, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes))

    def read(self) -> npt.NDArray[Any]:
        data = np.empty(self.shape, self.dtype)
        self.device.call("cuCtxSynchronize")
        size = ctypes.c_size_t(data.nbytes)
        self.device.call("cuMemcpyDtoH_v2", data.ctypes.data_as(ctypes.c_void_p), self.address, size)
        return data

    def __del__(self) -> None:
        self.device.cuda.cuMemFree_v2(self.address)


class TensorMap:
    """A CUtensorMap: extents, strides in bytes of all axes but the first, and the box; columns first."""

    def __init__(
        self, buffer: Buffer, kind: str, dims: Sequence[int], strides: Sequence[int], box: Sequence[int], swizzle: int
    ) -> None:
        self.buffer = buffer  # the map is of its memory
        storage = ctypes.create_string_buffer(128 + 64)
        at = -(-ctypes.addressof(storage) // 64) * 64
        ones = (ctypes.c_uint32 * len(dims))(*[1] * len(dims))
        buffer.device.call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(at), _TYPES[kind], len(dims), ctypes.c_void_p(buffer.address.value),
            (ctypes.c_uint64 * len(dims))(*dims), (ctypes.c_uint64 * len(strides))(*strides),
            (ctypes.c_uint32 * len(box))(*box), ones, 0, _SWIZZLES[swizzle], 2, 0,
        )  # fmt: skip
        self.bytes = ctypes.string_at(at, 128)


class Module:
    """A loaded cubin."""

    def __init__(self, device: Device, cubin: bytes) -> None:
        self.device = device
        self.handle = ctypes.c_void_p()
        device.call("cuModuleLoadData", ctypes.byref(self.handle), cubin)

    def launch(self, name: str, grid: int, threads: int, *arguments: Any, shared: int = 0) -> None:
        """Arguments are buffers, tensor maps, ints or floats (as doubles)."""
        function = ctypes.c_void_p()
        self.device.call("cuModuleGetFunction", ctypes.byref(function), self.handle, name.encode())
        if shared > 48 * 1024:
            self.device.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared)
        values = [_parameter(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        self.device.call("cuLaunchKernel", function, grid, 1, 1, threads, 1, 1, shared, None, pointers, None)
        self.device.call("cuCtxSynchronize")


def _parameter(argument: Any) -> Any:
    if isinstance(argument, Buffer):
        return argument.address
    if isinstance(argument, TensorMap):
        return ctypes.create_string_buffer(argument.bytes, 128)
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int(argument)
