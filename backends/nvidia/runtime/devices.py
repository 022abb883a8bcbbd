"""Which NVIDIA GPUs this process can use, and which of them a launch goes to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property

from warpwave.backends.nvidia.arch import TARGETS, Target, target_of
from warpwave.backends.nvidia.runtime import driver
from warpwave.tiles.errors import LaunchError, UnsupportedError
from warpwave.tiles.runtime.arrays import Array

DLPACK_CUDA = ("dlpack2", "dlpack13")  # kDLCUDA, kDLCUDAManaged
PTX = "WARPWAVE_NVIDIA_PTX"  # 1 in the environment: code of older targets may run on newer devices, as PTX
Argument = Array | int | float | bool


@dataclass(frozen=True)
class Device:
    """One GPU: its CUDA ordinal, compute capability and name, and what launches need to know of it."""

    ordinal: int
    capability: tuple[int, int]
    name: str
    multiprocessors: int
    shared_per_block: int

    def __str__(self) -> str:
        return f"device {self.ordinal} ({self.name}, compute capability {self.capability[0]}.{self.capability[1]})"

    @property
    def target(self) -> Target | None:
        """The target whose code it executes."""
        return target_of(self.capability)

    def executes(self, target: Target) -> bool:
        """Whether a kernel for `target` can run here: as machine code, or as PTX if the environment asks for that."""
        return self.capability in target.runs_on or (
            os.environ.get(PTX) == "1" and target.has_portable_ptx and self.capability > target.capability
        )

    @cached_property
    def context(self) -> int:
        """The primary context, which CUDA's runtime, PyTorch and CuPy use too; never released."""
        return int(driver.call("cuDevicePrimaryCtxRetain", driver.call("cuDeviceGet", self.ordinal)))


@cache
def devices() -> tuple[Device, ...]:
    """All devices that CUDA shows; none where there is no driver or no cuda-bindings."""
    if not driver.is_installed() or not driver.may_have_devices():
        return ()
    try:
        driver.call("cuInit", 0)
        count = driver.call("cuDeviceGetCount")
    except (driver.CudaError, RuntimeError, ImportError):  # no device, no driver library, one that is too old
        return ()
    return tuple(_describe(ordinal) for ordinal in range(count))


def _describe(ordinal: int) -> Device:
    device = driver.call("cuDeviceGet", ordinal)
    names = driver.module().CUdevice_attribute
    prefix = "CU_DEVICE_ATTRIBUTE_"
    major, minor, multiprocessors, shared = (
        driver.call("cuDeviceGetAttribute", getattr(names, prefix + attribute), device)
        for attribute in (
            "COMPUTE_CAPABILITY_MAJOR",
            "COMPUTE_CAPABILITY_MINOR",
            "MULTIPROCESSOR_COUNT",
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
        )
    )
    name = driver.call("cuDeviceGetName", 256, device)
    return Device(ordinal, (major, minor), name.split(b"\0")[0].decode(), multiprocessors, shared)


def device_at(place: str) -> Device | None:
    """The device of arrays with this `Array.device`; None if it is no NVIDIA GPU's.

    LaunchError if it should be one but CUDA does not show it.
    """
    kind, _, ordinal = place.partition(":")
    if kind not in DLPACK_CUDA:
        return None
    found = devices()
    if int(ordinal) >= len(found):
        installed = driver.is_installed()
        here = f"CUDA shows {len(found)} devices" if installed else "cuda-bindings is not installed"
        raise LaunchError(
            f"an array is on CUDA device {ordinal}, but {here}", hint=None if installed else driver.REMEDY
        )
    return found[int(ordinal)]


def choose(arguments: Mapping[str, Argument], target: Target, kernel: str) -> Device:
    """Where a launch for `target` runs: the arrays' device, else the current or first device that can run it."""
    place = next((a.device for a in arguments.values() if isinstance(a, Array) and not a.on_host), None)
    device = _any_of(target) if place is None else device_at(place)
    if device is None and place is None:
        raise UnsupportedError(
            f"kernel {kernel} is built for {target.full_name}, which no device here can run", hint=_hint(target)
        )
    if device is None:
        raise LaunchError(
            f"kernel {kernel} was compiled for {target.full_name}, its arrays are on {place}",
            hint="move them to an NVIDIA GPU or to host memory, or leave target= out",
        )
    if not device.executes(target):
        other = f"compile it for target='{device.target.full_name}', or leave" if device.target else "leave"
        raise LaunchError(
            f"kernel {kernel} was compiled for {target.full_name}, its arrays are on {device}",
            hint=f"{other} target= out",
        )
    return device


def _hint(target: Target) -> str:
    if not driver.is_installed():
        return driver.REMEDY
    shown = ", ".join(map(str, devices())) or "none"
    return f"it needs one of {', '.join(c.name for c in target.chips)}; devices that CUDA shows: {shown}"


def _any_of(target: Target) -> Device | None:
    """The calling thread's current device if it can run the target's code, else the first that can."""
    fitting = [d for d in devices() if d.executes(target)]
    if not fitting:
        return None
    context = driver.call("cuCtxGetCurrent")
    current = int(driver.call("cuCtxGetDevice")) if int(context) else -1
    return next((d for d in fitting if d.ordinal == current), fitting[0])


def target_for(place: str) -> str | None:
    """The target for arrays on a device, None if it is no NVIDIA GPU's; UnsupportedError for one without a target."""
    device = device_at(place)
    if device is None:
        return None
    if device.target is None:
        raise UnsupportedError(
            f"{device} is not supported", hint=f"supported are {', '.join(t.full_name for t in TARGETS.values())}"
        )
    return device.target.full_name


def is_current(device: Device) -> bool:
    """Whether a device's primary context is the calling thread's current one."""
    code, context = driver.module().cuCtxGetCurrent()
    return not code and int(context) == device.context


@contextmanager
def current(device: Device) -> Iterator[None]:
    """Make a device's primary context the calling thread's current one, as launches and allocations need it."""
    before = driver.call("cuCtxGetCurrent")
    driver.call("cuCtxSetCurrent", device.context)
    try:
        yield
    finally:
        driver.call("cuCtxSetCurrent", before)
