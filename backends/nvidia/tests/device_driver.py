"""Kernels on the first CUDA device, each in a process that a failing kernel may take down with it.

Through ctypes and the driver alone: it shares no code with the runtime under test.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_TYPES = {"bf16": 9, "f16": 6, "f32": 7, "u8": 0}  # CUtensorMapDataType
_SWIZZLES = {32: 1, 64: 2, 128: 3}
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_TIMEOUT = 120.0


class DeviceFailure(RuntimeError):
    """A driver call failed, or a kernel did not end."""


@dataclass(frozen=True)
class At:
    """The address of an array, by its number."""

    array: int


@dataclass(frozen=True)
class Map:
    """A CUtensorMap of an array: extents, strides in bytes of all axes but the first, and the box; columns first."""

    array: int
    kind: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


@dataclass(frozen=True)
class Launch:
    """A kernel of a cubin; `parameters` are At, Map, ints, or floats (as doubles)."""

    cubin: bytes
    kernel: str
    grid: int
    threads: int
    shared: int
    parameters: tuple[Any, ...]


class Gpu:
    """Runs launches in a child process, and starts another after a failure."""

    def __init__(self) -> None:
        self._child: Any = None
        self._pipe: Any = None

    def run(self, launch: Launch, arrays: Sequence[Array]) -> list[Array]:
        """The arrays after the kernel."""
        if self._child is None:
            self._start()
        self._pipe.send((launch, [np.ascontiguousarray(a) for a in arrays]))
        return self._answer(launch.kernel)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()

    def _answer(self, kernel: str) -> Any:
        answer: Any = DeviceFailure(f"{kernel} did not end within {_TIMEOUT:g} s")
        if self._pipe.poll(_TIMEOUT):
            try:
                answer = self._pipe.recv()
            except EOFError:
                answer = DeviceFailure(f"the process of {kernel} died")
        if isinstance(answer, DeviceFailure):
            self._child.kill()
            self._child = None
            raise answer
        return answer


def capability() -> tuple[int, int] | None:
    """Compute capability of the first device, None if there is none. Makes no context."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if cuda.cuInit(0):
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return major.value, minor.value


# -- in the child --------------------------------------------------------------------------------------------


def _serve(pipe: Any) -> None:
    driver = _Driver()
    with contextlib.suppress(EOFError):
        while True:
            launch, arrays = pipe.recv()
            try:
                answer = driver.run(launch, arrays)
            except DeviceFailure as failure:
                pipe.send(DeviceFailure(f"{launch.kernel}: {failure}"))
                return
            pipe.send(answer)


class _Driver:
    """The first device, its primary context current on this thread."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.modules: dict[bytes, ctypes.c_void_p] = {}

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise DeviceFailure(f"{name}: {status} {(text.value or b'').decode()}")

    def run(self, launch: Launch, arrays: list[Array]) -> list[Array]:
        addresses = [self._copied(a) for a in arrays]
        values = [self._parameter(p, addresses) for p in launch.parameters]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        function = self._function(launch)
        self.call(
            "cuLaunchKernel", function, launch.grid, 1, 1, launch.threads, 1, 1, launch.shared, None, pointers, None
        )
        self.call("cuCtxSynchronize")
        results = [np.empty_like(a) for a in arrays]
        for result, address in zip(results, addresses, strict=True):
            self.call(
                "cuMemcpyDtoH_v2", result.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(result.nbytes)
            )
            self.call("cuMemFree_v2", address)
        return results

    def _copied(self, data: Array) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(data.nbytes, 16)))
        self.call("cuMemcpyHtoD_v2", address, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes))
        return address

    def _function(self, launch: Launch) -> ctypes.c_void_p:
        if launch.cubin not in self.modules:
            module = ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), launch.cubin)
            self.modules[launch.cubin] = module
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.modules[launch.cubin], launch.kernel.encode())
        if launch.shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, launch.shared)
        return function

    def _parameter(self, parameter: Any, addresses: list[ctypes.c_uint64]) -> Any:
        if isinstance(parameter, At):
            return addresses[parameter.array]
        if isinstance(parameter, Map):
            return ctypes.create_string_buffer(self._encoded(parameter, addresses[parameter.array]), 128)
        return ctypes.c_double(parameter) if isinstance(parameter, float) else ctypes.c_int(parameter)

    def _encoded(self, tensor: Map, address: ctypes.c_uint64) -> bytes:
        storage = ctypes.create_string_buffer(128 + 64)
        aligned = -(-ctypes.addressof(storage) // 64) * 64
        rank = len(tensor.dims)
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(aligned), _TYPES[tensor.kind], rank, ctypes.c_void_p(address.value),
            (ctypes.c_uint64 * rank)(*tensor.dims), (ctypes.c_uint64 * (rank - 1))(*tensor.strides),
            (ctypes.c_uint32 * rank)(*tensor.box), (ctypes.c_uint32 * rank)(*[1] * rank),
            0, _SWIZZLES[tensor.swizzle], 2, 0,
        )  # fmt: skip
        return ctypes.string_at(aligned, 128)
