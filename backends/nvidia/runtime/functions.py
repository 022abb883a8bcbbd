"""A kernel's code on a device: loaded once for each device and variant, with the attributes that its launch needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime import driver
from warpwave.backends.nvidia.runtime.devices import Device
from warpwave.backends.nvidia.runtime.driver import loading_allowed
from warpwave.tiles.errors import ResourceError
from warpwave.tiles.runtime.cache import OnceCache

DEFAULT_SHARED = 48 << 10  # more dynamic shared memory must be asked for
PORTABLE_CLUSTER = 8


@dataclass(frozen=True)
class Function:
    """A loaded kernel. `resident` is how many of its blocks the device runs at a time."""

    handle: Any
    resident: int


@dataclass(frozen=True)
class Functions:
    """One kernel's variants on all devices. `code_for(wide, tma, device)` is the code of a variant: a cubin, or PTX."""

    lowered: Lowered
    code_for: Callable[[int, int, Device], bytes]
    _loaded: OnceCache[Function] = field(default_factory=lambda: OnceCache(lambda _: True))

    def get(self, device: Device, wide: int, tma: int) -> Function:
        """The function for a device whose context is current; its module stays loaded."""
        return self._loaded.get((device.ordinal, wide, tma), lambda: self._load(device, wide, tma))

    def _load(self, device: Device, wide: int, tma: int) -> Function:
        shared = self.lowered.shared_bytes
        if shared > device.shared_per_block:
            raise ResourceError(
                f"kernel {self.lowered.entry} uses {shared} bytes of shared memory a block, {device} has "
                f"{device.shared_per_block}",
                hint="use smaller tiles or fewer stages",
            )
        code = self.code_for(wide, tma, device)
        with loading_allowed():
            module = driver.call("cuModuleLoadData", code)
            handle = driver.call("cuModuleGetFunction", module, self.lowered.entry.encode())
            self._set_attributes(handle)
            return Function(handle, self._resident(handle, device))

    def _set_attributes(self, handle: Any) -> None:
        names = driver.module().CUfunction_attribute
        if self.lowered.shared_bytes > DEFAULT_SHARED:
            attribute = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.call("cuFuncSetAttribute", handle, attribute, self.lowered.shared_bytes)
        if self.lowered.cluster > PORTABLE_CLUSTER:
            attribute = names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            driver.call("cuFuncSetAttribute", handle, attribute, 1)

    def _resident(self, handle: Any, device: Device) -> int:
        lowered = self.lowered
        if lowered.cluster > 1:
            config = launch_config(lowered)
            config.gridDimX = lowered.cluster
            return int(driver.call("cuOccupancyMaxActiveClusters", handle, config)) * lowered.cluster
        blocks = driver.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", handle, lowered.threads, lowered.shared_bytes
        )
        return int(blocks) * device.multiprocessors


def launch_config(lowered: Lowered, *, after_copies: bool = False) -> Any:
    """The configuration of a launch but for its grid and stream; each thread needs its own.

    With `after_copies` its blocks may begin before the stream's last kernel has ended, and wait for it themselves.
    """
    cuda = driver.module()
    attributes = []
    if lowered.cluster > 1:
        value = cuda.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = lowered.cluster, 1, 1
        attributes.append(_attribute("CLUSTER_DIMENSION", value))
    if after_copies:
        value = cuda.CUlaunchAttributeValue()
        value.programmaticStreamSerializationAllowed = 1
        attributes.append(_attribute("PROGRAMMATIC_STREAM_SERIALIZATION", value))
    config = cuda.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX, config.blockDimY, config.blockDimZ = lowered.threads, 1, 1
    config.sharedMemBytes = lowered.shared_bytes
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


def _attribute(name: str, value: Any) -> Any:
    cuda = driver.module()
    attribute = cuda.CUlaunchAttribute()
    attribute.id = getattr(cuda.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    attribute.value = value
    return attribute
