"""Launching again what differs in addresses and numbers only: everything else is in place, for each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime import devices, driver
from warpwave.backends.nvidia.runtime.aligned_copies import Copier
from warpwave.backends.nvidia.runtime.functions import launch_config
from warpwave.backends.nvidia.runtime.masks import UNIT
from warpwave.backends.nvidia.runtime.packing import Buffer, Layout
from warpwave.backends.nvidia.runtime.plan import Plan
from warpwave.backends.nvidia.runtime.tensor_maps import NBYTES

REMEMBERED = 256  # sets of addresses
Number = int | float | bool


@dataclass(frozen=True)
class Ready:
    """One thread's buffer for parameters, and the driver call that starts the kernel on them, but for the stream."""

    buffer: Buffer
    start: Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True)
class Relaunch:
    """A plan for arrays whose addresses are multiples of 16.

    `words` is where addresses go, `writers` write the scalars, `needed` are the places and values of those that the
    grid depends on. `stream` gives the current stream of the arrays' library.
    """

    plan: Plan
    lowered: Lowered
    layout: Layout
    words: Sequence[int]
    writers: Sequence[Callable[[memoryview, Number], None]]
    needed: Sequence[tuple[int, Number]]
    stream: Callable[[], int]
    explained: Callable[[driver.CudaError, devices.Device], driver.CudaError]
    _images: dict[tuple[int, ...], bytes] = field(default_factory=dict)
    _local: threading.local = field(default_factory=threading.local)

    def __call__(self, addresses: Sequence[int], numbers: Sequence[Number]) -> bool:
        """Start; False, and nothing is done, if these addresses or numbers ask for another plan."""
        for place, value in self.needed:
            if numbers[place] != value:
                return False
        if self.plan.copier:
            return self._after_copies(self.plan.copier, addresses, numbers)
        return self._start(addresses, numbers, self.stream)

    def _after_copies(self, copier: Copier, addresses: Sequence[int], numbers: Sequence[Number]) -> bool:
        """With the copies' addresses instead, which are of the stream."""
        if any(address % UNIT for address in addresses):
            return False
        stream, device = self.stream(), self.plan.device
        try:
            with devices.current(device), copier.copied(addresses, device.ordinal, stream) as copied:
                return self._start(copied, numbers, lambda: stream)
        except driver.CudaError as error:
            raise error if error.loc else self.explained(error, device) from None

    def _start(self, addresses: Sequence[int], numbers: Sequence[Number], stream: Callable[[], int]) -> bool:
        ready: Ready = getattr(self._local, "ready", None) or self._prepare()
        memory, image = ready.buffer.bytes, self._images.get(tuple(addresses)) or self._image(tuple(addresses))
        if image is None:
            return False
        memory[:] = image
        for write, number in zip(self.writers, numbers):  # noqa: B905 (strict costs as much as the loop)
            write(memory, number)
        (code,) = ready.start(stream())
        if code:
            self._start_on_device(ready, code)
        return True

    def _image(self, addresses: tuple[int, ...]) -> bytes | None:
        """The parameters for these addresses but for numbers; None if one is not a multiple of 16.

        Programs use the same few sets of addresses again and again.
        """
        if any(address % UNIT for address in addresses):
            return None
        memory = bytearray(self.plan.memory.ljust(Buffer.size_of(self.layout), b"\0"))
        words = memoryview(memory).cast("Q")
        for word, address in zip(self.words, addresses, strict=True):
            words[word] = address
        try:
            for slot in self.plan.maps:
                memory[slot.offset : slot.offset + NBYTES] = slot.encoded(addresses[slot.tensor])
        except driver.CudaError as error:
            raise self.explained(error, self.plan.device) from None
        if len(self._images) >= REMEMBERED:
            self._images.clear()
        return self._images.setdefault(addresses, bytes(memory))

    def _start_on_device(self, ready: Ready, code: Any) -> None:
        """After a refused launch: if that was for want of the device's context, again with it.

        The driver refuses kernels of a context that is not current; asking it before each launch costs more.
        """
        if not devices.is_current(self.plan.device):
            with devices.current(self.plan.device):
                (code,) = ready.start(self.stream())
        if code:
            raise self.explained(driver.failure(code, "cuLaunchKernel"), self.plan.device)

    def _prepare(self) -> Ready:
        """This thread's buffer; there is no status word and there are no prints."""
        buffer = Buffer(self.layout)
        ready = self._local.ready = Ready(buffer, self._starter(buffer))
        return ready

    def _starter(self, buffer: Buffer) -> Callable[[int], tuple[Any, ...]]:
        cuda, lowered, plan = driver.module(), self.lowered, self.plan
        assert plan.function is not None
        handle, pointers = plan.function.handle, buffer.pointers
        if lowered.cluster > 1 or plan.copier:
            config = launch_config(lowered, after_copies=plan.copier is not None)
            config.gridDimX, launch_ex = plan.blocks, cuda.cuLaunchKernelEx

            def start_configured(stream: int) -> tuple[Any, ...]:
                config.hStream = stream
                result: tuple[Any, ...] = launch_ex(config, handle, pointers, 0)
                return result

            return start_configured
        launch, blocks, threads, shared = cuda.cuLaunchKernel, plan.blocks, lowered.threads, lowered.shared_bytes

        def start(stream: int) -> tuple[Any, ...]:
            result: tuple[Any, ...] = launch(handle, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, 0)
            return result

        return start
