"""Launches one built kernel on devices: modules loaded once for each, arguments packed, faults explained."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpwave.backends.amd.arguments import Argument, Geometry, Packer, absolute, values
from warpwave.backends.amd.runtime import devices, hip
from warpwave.backends.amd.runtime.devices import Device
from warpwave.backends.amd.runtime.host_arrays import allocated, on_device
from warpwave.backends.amd.runtime.relaunch import relaunch
from warpwave.backends.amd.runtime.streams import stream_for
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.cache import OnceCache

MAX_WORK_ITEMS = 2**32 - 1  # of one HIP launch
# hipModuleLaunchKernel's `extra`: HIP_LAUNCH_PARAM_BUFFER_POINTER, ..._BUFFER_SIZE, ..._END
_POINTER, _SIZE, _END = 1, 2, 3


@dataclass(frozen=True)
class Feedback:
    """What a kernel can report: a failed check's number, and words of `ww.print` (0 for none)."""

    checks: bool = False
    print_words: int = 0

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to report."""
        return not self.checks and not self.print_words

    def no_reports(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """What is in a launch's memory for reports before it: the failed check, then the prints."""
        words = np.zeros(1 + self.print_words, np.uint64)
        words[1:2] = 1  # the prints' first word counts words in use, and itself
        return words

    def addresses(self, memory: int) -> Sequence[int]:
        """The kernel's last arguments, if reports go to this memory."""
        return (memory, memory + 8) if self.print_words else (memory,)


@dataclass(frozen=True)
class Reported:
    """What a launch reported."""

    status: int = 0
    prints: np.ndarray[Any, np.dtype[np.uint64]] | None = None


@dataclass
class Launcher:
    """One kernel on all devices. `code_for(wide)` is the code object of a variant."""

    kernel: Kernel
    arch: str
    threads: int
    packer: Packer
    code_for: Callable[[int], bytes]
    feedback: Feedback
    _functions: OnceCache[Any] = field(default_factory=lambda: OnceCache(lambda _: True))
    _local: threading.local = field(default_factory=threading.local)

    def launch(self, device: Device, arguments: Mapping[str, Argument], geometry: Geometry) -> Reported:
        """Start the kernel on the arguments' stream.

        It returns when the kernel is done if arrays are on the host, if the kernel reports something, or if
        HIP_LAUNCH_BLOCKING is set; otherwise at once.
        """
        self._refuse_too_many(geometry)
        with self.explained(device), devices.current(device):
            function = self._function(device, geometry.wide)
            arrays = [a for a in arguments.values() if isinstance(a, Array)]
            start = _Start(self, function, geometry, stream_for(arrays, device.ordinal), list(arguments.values()))
            if any([a.on_host for a in arrays]):
                return self._from_host(start, arguments)
            return start.with_feedback(start.bases())

    def _refuse_too_many(self, geometry: Geometry) -> None:
        if geometry.blocks * self.threads > MAX_WORK_ITEMS:
            raise UnsupportedError(
                f"{geometry.blocks} blocks of {self.threads} work-items, a HIP launch has at most {MAX_WORK_ITEMS}",
                loc=self.kernel.loc,
                hint="use larger tiles, or launch parts of the problem",
            )

    def _from_host(self, start: _Start, arguments: Mapping[str, Argument]) -> Reported:
        outputs, spans = set(self.kernel.outputs), absolute(arguments, start.geometry.spans)
        pairs = [(s, name in outputs) for name, s in zip(arguments, spans, strict=True) if s]
        with on_device([s for s, _ in pairs], [w for _, w in pairs]) as address:
            reported = start.with_feedback([address(s) if s else 0 for s in spans])
            hip.call("hipStreamSynchronize", start.stream)
        return reported

    def _function(self, device: Device, wide: int) -> Any:
        """The kernel's handle, for the current device; its module stays loaded."""
        return self._functions.get((device.ordinal, wide), lambda: self._load(wide))

    def _load(self, wide: int) -> Any:
        module = hip.call("hipModuleLoadData", self.code_for(wide))
        return hip.call("hipModuleGetFunction", module, self.kernel.name.encode())

    @contextmanager
    def explained(self, device: Device) -> Iterator[None]:
        """HIP's errors name the kernel and point at it."""
        try:
            yield
        except hip.HipError as error:
            self.explain(error, device)
            raise

    def explain(self, error: hip.HipError, device: Device) -> None:
        """Name the kernel and its place."""
        error.message = f"kernel {self.kernel.name} for {self.arch} on {device}: {error.message}"
        error.loc = error.loc or self.kernel.loc

    def again(
        self, device: Device, arguments: Mapping[str, Argument], geometry: Geometry
    ) -> Callable[[Sequence[int], Sequence[int | float | bool]], bool] | None:
        """What launches on other arrays like these; None where a launch is more than packing."""
        if not self.feedback.is_silent or self.packer.numbers_decide or not geometry.blocks:
            return None
        with self.explained(device), devices.current(device):
            function = self._function(device, geometry.wide)
        return relaunch(self, device, function, geometry, list(arguments.values()))

    def attempt(
        self, device: Device, arguments: Mapping[str, Argument], stream: int, reports: int
    ) -> Callable[[], None]:
        """What starts the kernel as often as one likes on a stream of the current device; nobody waits for its reports.

        `reports` is where they go: `Feedback.no_reports()` in the device's memory.
        """
        geometry = self.packer.geometry(arguments)
        if not geometry.blocks:
            raise UnsupportedError("a launch of no blocks takes no time", loc=self.kernel.loc)
        self._refuse_too_many(geometry)
        with self.explained(device):
            function = self._function(device, geometry.wide)
        ready = _Start(self, function, geometry, stream, list(arguments.values()))
        bases = ready.bases()
        feedback = self.feedback.addresses(0 if self.feedback.is_silent else reports)

        def start() -> None:
            with self.explained(device):
                ready.start(bases, feedback)

        return start

    def start(self, function: Any, geometry: Geometry, packed: Sequence[int | float], stream: int) -> None:
        """Hand a launch to HIP, on the current device."""
        buffer = self._buffer()
        self.packer.layout.pack_into(buffer.memory, 0, *packed)
        grid, block = (geometry.blocks, 1, 1), (self.threads, 1, 1)
        hip.call("hipModuleLaunchKernel", function, *grid, *block, 0, stream, None, buffer.extra)
        if os.environ.get("HIP_LAUNCH_BLOCKING", "0") != "0":
            hip.call("hipStreamSynchronize", stream)

    def _buffer(self) -> _ArgumentBuffer:
        """This thread's memory for packed arguments; HIP copies them when it takes a launch."""
        if not hasattr(self._local, "buffer"):
            self._local.buffer = _ArgumentBuffer(self.packer.layout.size)
        buffer: _ArgumentBuffer = self._local.buffer
        return buffer


class _ArgumentBuffer:
    """Memory for packed arguments, and the `extra` list of hipModuleLaunchKernel that points to it."""

    def __init__(self, size: int) -> None:
        self.memory = ctypes.create_string_buffer(size)
        self._size = ctypes.c_size_t(size)
        addresses = ctypes.addressof(self.memory), ctypes.addressof(self._size)
        self.extra = (ctypes.c_void_p * 5)(_POINTER, addresses[0], _SIZE, addresses[1], _END)


@dataclass(frozen=True)
class _Start:
    """One launch, ready but for the addresses of its arrays."""

    launcher: Launcher
    function: Any
    geometry: Geometry
    stream: int
    arguments: Sequence[Argument]

    def bases(self) -> list[int]:
        """Where the kernel's memory begins for each argument, 0 for numbers."""
        pairs = zip(self.arguments, self.geometry.spans, strict=True)
        return [a.address + s.address if s else 0 for a, s in pairs]  # type: ignore[union-attr]

    def with_feedback(self, bases: Sequence[int]) -> Reported:
        """Launch; wait for the kernel's report if it makes one."""
        feedback = self.launcher.feedback
        if feedback.is_silent:
            self.start(bases, feedback.addresses(0))
            return Reported()
        words = feedback.no_reports()
        kind = hip.module().hipMemcpyKind
        with allocated(words.nbytes) as memory:
            hip.call("hipMemcpy", memory, words, words.nbytes, kind.hipMemcpyHostToDevice)
            self.start(bases, feedback.addresses(memory))
            hip.call("hipStreamSynchronize", self.stream)
            hip.call("hipMemcpy", words, memory, words.nbytes, kind.hipMemcpyDeviceToHost)
        return Reported(int(words[0]) & 0xFFFFFFFF, words[1:] if feedback.print_words else None)

    def start(self, bases: Sequence[int], feedback: Sequence[int]) -> None:
        """Launch; nobody waits."""
        packed = [*values(self.arguments, bases, self.geometry.spans), *self.geometry.tail, *feedback]
        self.launcher.start(self.function, self.geometry, packed, self.stream)
