"""Which AMD GPUs this process can use, and which of them a launch goes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from warpwave.backends.amd.runtime import hip
from warpwave.tiles.errors import LaunchError, UnsupportedError
from warpwave.tiles.runtime.arrays import Array

DLPACK_ROCM = "dlpack10"  # kDLROCM
Argument = Array | int | float | bool


@dataclass(frozen=True)
class Device:
    """One GPU: its HIP ordinal, the instruction set that it runs, and its name."""

    ordinal: int
    arch: str
    name: str

    def __str__(self) -> str:
        return f"device {self.ordinal} ({self.name}, {self.arch})"


@cache
def devices() -> tuple[Device, ...]:
    """All devices that HIP shows; none where there is no driver or no hip-python."""
    if not hip.is_installed() or not hip.may_have_devices():
        return ()
    try:
        count = hip.call("hipGetDeviceCount")
    except (hip.HipError, RuntimeError, ImportError):  # no device, no HIP library, one that lacks functions
        return ()
    return tuple(_describe(ordinal) for ordinal in range(count))


def _describe(ordinal: int) -> Device:
    properties = hip.call("hipGetDeviceProperties", ordinal)
    arch = hip.as_text(properties.gcnArchName).split(":")[0]  # "gfx942:sramecc+:xnack-"
    return Device(ordinal, arch, hip.as_text(properties.name))


def device_at(place: str) -> Device | None:
    """The device of arrays with this `Array.device`; None if it is no AMD GPU's.

    LaunchError if it should be one but HIP does not show it.
    """
    kind, _, ordinal = place.partition(":")
    if kind != DLPACK_ROCM:
        return None
    found = devices()
    if int(ordinal) >= len(found):
        here = "hip-python is not installed" if not hip.is_installed() else f"HIP shows {len(found)} devices"
        raise LaunchError(f"an array is on AMD device {ordinal}, but {here}", hint=hip.REMEDY)
    return found[int(ordinal)]


def choose(arguments: Mapping[str, Argument], arch: str, kernel: str) -> Device | None:
    """Where a launch for `arch` runs: the arrays' device, else a device of this kind, else None: nowhere here."""
    place = next((a.device for a in arguments.values() if isinstance(a, Array) and not a.on_host), None)
    if place is None:
        return _any_of(arch)
    device = device_at(place)
    if device is None:
        raise LaunchError(
            f"kernel {kernel} was compiled for {arch}, its arrays are on {place}",
            hint="move them to an AMD GPU or to host memory, or leave target= out",
        )
    if device.arch != arch:
        raise LaunchError(
            f"kernel {kernel} was compiled for {arch}, its arrays are on {device}",
            hint=f"compile it for target='amd:{device.arch}', or leave target= out",
        )
    return device


def _any_of(arch: str) -> Device | None:
    """The calling thread's current device if it is of this kind, else the first that is."""
    fitting = [d for d in devices() if d.arch == arch]
    if not fitting:
        return None
    current = hip.call("hipGetDevice")
    return next((d for d in fitting if d.ordinal == current), fitting[0])


def target_of(place: str, known: tuple[str, ...]) -> str | None:
    """The target for arrays on a device, None if it is no AMD GPU's; UnsupportedError for another kind of one."""
    device = device_at(place)
    if device is None:
        return None
    if device.arch not in known:
        raise UnsupportedError(
            f"{device} is not supported", hint=f"supported are {', '.join(known)}; or copy the arrays to the host"
        )
    return f"amd:{device.arch}"


@contextmanager
def current(device: Device) -> Iterator[None]:
    """Make a device the calling thread's current one, as HIP's launches and allocations need it."""
    before = hip.call("hipGetDevice")
    if before == device.ordinal:
        yield
        return
    hip.call("hipSetDevice", device.ordinal)
    try:
        yield
    finally:
        hip.call("hipSetDevice", before)
