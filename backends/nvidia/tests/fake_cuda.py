"""A CUDA driver for machines without one: host memory as device memory, and a record of every call.

It stands in for `cuda.bindings.driver`, whose enumerations and structures it uses; only the functions are replaced.
Kernels do not run: a launch is recorded with its parameters, and `on_launch` may do what the kernel would.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings import driver as real

OK = real.CUresult.CUDA_SUCCESS


@dataclass
class Launch:
    """One recorded launch; `parameters` are the addresses that the caller passed."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    context: int
    parameters: list[bytes] = field(default_factory=list)
    cluster: int = 1
    early: bool = False  # may begin before the kernel in front of it has ended
    name: str = ""


@dataclass
class Gpu:
    capability: tuple[int, int] = (9, 0)
    name: str = "NVIDIA H200"
    multiprocessors: int = 132
    shared: int = 232448
    l2: int = 1 << 12  # little, since filling it takes time here


@dataclass
class Refused:
    """A call that fails with a code."""

    code: Any


class FakeCuda:
    """`sizes` are the byte sizes of the kernel's parameters, which the real driver knows from the code."""

    def __init__(self, gpus: list[Gpu] | None = None, sizes: list[int] | None = None) -> None:
        self.gpus = gpus or [Gpu()]
        self.sizes = sizes or []
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.launches: list[Launch] = []
        self.on_launch: Callable[[Launch], None] = lambda launch: None
        self.failing: dict[str, Any] = {}
        self.capturing: set[int] = set()
        self.resident = 2
        self.contexts: dict[int, int] = {}  # of functions
        self.memory: dict[int, Any] = {}
        self.names: dict[int, str] = {}  # of functions
        self.own_sizes = {"copy_rows": [704]}  # of kernels that are not the test's
        self.now = 0.0  # ms, which `on_launch` may move on
        self.events: dict[int, float] = {}
        self._context = threading.local()
        self._modes = threading.local()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or not hasattr(type(self), f"do_{name}"):
            return getattr(real, name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            if name in self.failing:
                return (self.failing[name],)
            result = getattr(self, f"do_{name}")(*arguments)
            if isinstance(result, Refused):
                return (result.code,)
            return (OK, *result) if isinstance(result, tuple) else (OK,) if result is None else (OK, result)

        return call

    def called(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.calls if called == name]

    # -- devices and contexts

    def do_cuInit(self, flags):
        return None

    def do_cuDeviceGetCount(self):
        return len(self.gpus)

    def do_cuDeviceGet(self, ordinal):
        return ordinal

    def do_cuDeviceGetName(self, size, device):
        return self.gpus[device].name.encode().ljust(size, b"\0")

    def do_cuDeviceGetAttribute(self, attribute, device):
        gpu = self.gpus[device]
        return {
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": gpu.capability[0],
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": gpu.capability[1],
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": gpu.multiprocessors,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": gpu.shared,
            "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE": gpu.l2,
        }[attribute.name]

    def do_cuDevicePrimaryCtxRetain(self, device):
        return 0xC0 + device

    def do_cuCtxGetCurrent(self):
        return getattr(self._context, "value", 0)

    def do_cuCtxSetCurrent(self, context):
        self._context.value = int(context)

    def do_cuCtxGetDevice(self):
        return self.do_cuCtxGetCurrent() - 0xC0

    # -- code

    def do_cuModuleLoadData(self, image):
        assert isinstance(image, bytes)
        module = 0x1000 + len(self.called("cuModuleLoadData"))
        self.contexts[module + 0x1000] = self.do_cuCtxGetCurrent()
        return module

    def do_cuModuleGetFunction(self, module, name):
        self.names[module + 0x1000] = name.decode()
        return module + 0x1000

    def do_cuFuncSetAttribute(self, function, attribute, value):
        return None

    def do_cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function, threads, shared):
        return self.resident

    def do_cuOccupancyMaxActiveClusters(self, function, config):
        return self.resident

    def do_cuThreadExchangeStreamCaptureMode(self, mode):
        before = getattr(self._modes, "value", real.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
        self._modes.value = mode
        return before

    # -- memory and streams

    def do_cuMemAlloc(self, nbytes):
        memory = (ctypes.c_char * (nbytes + 256))()
        address = -(-ctypes.addressof(memory) // 256) * 256
        self.memory[address] = memory
        return address

    def do_cuMemFree(self, address):
        del self.memory[address]

    def do_cuStreamGetId(self, stream):
        return stream + 0x1D00

    def do_cuMemPoolCreate(self, properties):
        return 0x9001 + int(properties.location.id)

    def do_cuMemPoolSetAttribute(self, pool, attribute, value):
        return None

    def do_cuMemAllocFromPoolAsync(self, nbytes, pool, stream):
        return self.do_cuMemAlloc(nbytes)

    def do_cuMemFreeAsync(self, address, stream):
        self.do_cuMemFree(address)

    def do_cuMemcpyHtoD(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)

    do_cuMemcpyDtoH = do_cuMemcpyHtoD

    def do_cuMemcpyAsync(self, target, source, nbytes, stream):
        assert stream not in self.capturing
        ctypes.memmove(target, source, nbytes)

    def do_cuMemsetD32Async(self, address, value, count, stream):
        assert stream not in self.capturing
        ctypes.memset(address, value, 4 * count)

    def do_cuEventCreate(self, flags):
        event = len(self.called("cuEventCreate"))
        self.events[event] = -1.0
        return event

    def do_cuEventRecord(self, event, stream):
        assert stream not in self.capturing
        self.events[event] = self.now

    def do_cuEventElapsedTime(self, start, end):
        return self.events[end] - self.events[start]

    def do_cuEventDestroy(self, event):
        del self.events[event]

    def do_cuStreamCreate(self, flags):
        return 0x5712EA

    def do_cuStreamDestroy(self, stream):
        return None

    def do_cuStreamSynchronize(self, stream):
        assert stream not in self.capturing

    def do_cuStreamIsCapturing(self, stream):
        return int(stream in self.capturing)

    def do_cuTensorMapEncodeTiled(self, *arguments):
        encoded = real.CUtensorMap()
        address = int(arguments[2])
        ctypes.memmove(int(encoded.getPtr()), address.to_bytes(8, "little") * 16, 128)
        return encoded

    # -- launches: a kernel of another context than the current one is refused, as the driver does

    def do_cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert extra == 0
        launch = Launch(function, (gx, gy, gz), (bx, by, bz), shared, stream, self.do_cuCtxGetCurrent())
        return self._started(launch, parameters)

    def do_cuLaunchKernelEx(self, config, function, parameters, extra):
        assert config.numAttrs == len(config.attrs)
        values = {attribute.id.name: attribute.value for attribute in config.attrs}
        cluster = values.pop("CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", None)
        early = values.pop("CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION", None)
        assert not values
        launch = Launch(
            function,
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            config.sharedMemBytes,
            int(config.hStream),
            self.do_cuCtxGetCurrent(),
            cluster=cluster.clusterDim.x if cluster else 1,
            early=bool(early and early.programmaticStreamSerializationAllowed),
        )
        return self._started(launch, parameters)

    def _started(self, launch: Launch, parameters: int) -> Refused | None:
        if self.contexts[launch.function] != launch.context:
            codes = real.CUresult
            return Refused(codes.CUDA_ERROR_INVALID_HANDLE if launch.context else codes.CUDA_ERROR_INVALID_CONTEXT)
        launch.name = self.names[launch.function]
        sizes = self.own_sizes.get(launch.name, self.sizes)
        pointers = (ctypes.c_void_p * len(sizes)).from_address(parameters)
        launch.parameters = [ctypes.string_at(p, size) for p, size in zip(pointers, sizes, strict=True)]
        self.launches.append(launch)
        self.on_launch(launch)
        return None
