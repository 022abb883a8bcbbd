"""What launches take on an NVIDIA GPU, by CUDA events on the stream that the launches themselves would go to."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpwave.backends.nvidia.runtime import devices, driver
from warpwave.backends.nvidia.runtime.devices import DLPACK_CUDA, Device
from warpwave.backends.nvidia.runtime.driver import loading_allowed
from warpwave.backends.nvidia.runtime.packing import Argument
from warpwave.backends.nvidia.runtime.streams import stream_for
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Measurement
from warpwave.tiles.runtime.trials import captured, compare, turn

if TYPE_CHECKING:
    from warpwave.backends.nvidia.program import NvidiaProgram


@dataclass(frozen=True)
class Events:
    """A stream of a device whose context is current, as `trials.Queue`."""

    device: Device
    stream: int
    _made: list[Any] = field(default_factory=list)

    @property
    def place(self) -> str:
        """As arrays on it say."""
        return f"{DLPACK_CUDA[0]}:{self.device.ordinal}"

    @property
    def cache_bytes(self) -> int:
        """Its L2 cache."""
        attribute = driver.module().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        return int(driver.call("cuDeviceGetAttribute", attribute, driver.call("cuDeviceGet", self.device.ordinal)))

    def allocate(self, nbytes: int) -> int:
        """Memory, outside of any library's pool."""
        return int(driver.call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        """After a fault this fails too, and the fault is what matters."""
        driver.module().cuMemFree(address)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """In the order of the stream."""
        driver.call("cuMemcpyAsync", target, source, nbytes, self.stream)

    def fill(self, address: int, nbytes: int) -> None:
        """In the order of the stream."""
        driver.call("cuMemsetD32Async", address, 0, nbytes // 4, self.stream)

    def mark(self) -> Any:
        """An event."""
        event = driver.call("cuEventCreate", driver.module().CUevent_flags.CU_EVENT_DEFAULT)
        self._made.append(event)
        driver.call("cuEventRecord", event, self.stream)
        return event

    def wait(self) -> None:
        """For the stream."""
        driver.call("cuStreamSynchronize", self.stream)

    def milliseconds(self, start: Any, end: Any) -> float:
        """Between two events."""
        return float(driver.call("cuEventElapsedTime", start, end))

    def close(self) -> None:
        """Give the events back."""
        for event in self._made:
            driver.module().cuEventDestroy(event)


def measure(programs: Sequence[NvidiaProgram], arguments: Mapping[str, Argument]) -> list[Measurement | TileError]:
    """See `tiles.runtime.backend.MeasuresTime`."""
    first = programs[0]
    device = devices.choose(arguments, first.target, first.kernel.name)
    stream = stream_for([a for a in arguments.values() if isinstance(a, Array) and not a.on_host], device.ordinal)
    outputs = {name for program in programs for name in program.kernel.outputs}
    launchers, queue = [program.launcher for program in programs], Events(device, stream)
    no_reports = [launcher.feedback.no_reports() for launcher in launchers]
    candidates = [functools.partial(launcher.attempt, stream) for launcher in launchers]
    with _turn(queue):
        return compare(candidates, arguments, outputs, no_reports, queue, f"measured on {device.name}")


@contextmanager
def _turn(queue: Events) -> Iterator[None]:
    """A device for oneself, as far as tuning goes; other threads may capture graphs meanwhile."""
    with turn(queue), devices.current(queue.device), loading_allowed():
        if int(driver.call("cuStreamIsCapturing", queue.stream)):
            raise captured()
        try:
            yield
        finally:
            queue.close()
