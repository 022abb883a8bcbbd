"""What launches take on an AMD GPU, by HIP events on the stream that the launches themselves would go to."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from warpwave.backends.amd.arguments import Argument
from warpwave.backends.amd.runtime import devices, hip
from warpwave.backends.amd.runtime.devices import DLPACK_ROCM, Device
from warpwave.backends.amd.runtime.streams import stream_for
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Measurement
from warpwave.tiles.runtime.trials import Attempt, captured, compare, turn

if TYPE_CHECKING:
    from warpwave.backends.amd.program import AmdProgram


@dataclass(frozen=True)
class Events:
    """A stream of the current device, as `trials.Queue`. Its last-level cache is the Infinity Cache."""

    device: Device
    stream: int
    cache_bytes: int
    _made: list[Any] = field(default_factory=list)

    @property
    def place(self) -> str:
        """As arrays on it say."""
        return f"{DLPACK_ROCM}:{self.device.ordinal}"

    def allocate(self, nbytes: int) -> int:
        """Memory, outside of any library's pool."""
        return int(hip.call("hipMalloc", nbytes))

    def free(self, address: int) -> None:
        """After a fault this fails too, and the fault is what matters."""
        hip.module().hipFree(address)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """In the order of the stream."""
        hip.call("hipMemcpyAsync", target, source, nbytes, hip.module().hipMemcpyKind.hipMemcpyDefault, self.stream)

    def fill(self, address: int, nbytes: int) -> None:
        """In the order of the stream."""
        hip.call("hipMemsetAsync", address, 0, nbytes, self.stream)

    def mark(self) -> Any:
        """An event."""
        event = hip.call("hipEventCreate")
        self._made.append(event)
        hip.call("hipEventRecord", event, self.stream)
        return event

    def wait(self) -> None:
        """For the stream."""
        hip.call("hipStreamSynchronize", self.stream)

    def milliseconds(self, start: Any, end: Any) -> float:
        """Between two events."""
        return float(hip.call("hipEventElapsedTime", start, end))

    def close(self) -> None:
        """Give the events back."""
        for event in self._made:
            hip.module().hipEventDestroy(event)


def measure(
    programs: Sequence[AmdProgram], device: Device, arguments: Mapping[str, Argument]
) -> list[Measurement | TileError]:
    """See `tiles.runtime.backend.MeasuresTime`."""
    stream = stream_for([a for a in arguments.values() if isinstance(a, Array)], device.ordinal)
    outputs = {name for program in programs for name in program.kernel.outputs}
    queue = Events(device, stream, programs[0].target.infinity_cache_bytes)
    no_reports = [program.launcher.feedback.no_reports() for program in programs]
    candidates = [functools.partial(_attempt, program, queue) for program in programs]
    with _turn(queue):
        return compare(candidates, arguments, outputs, no_reports, queue, f"measured on {device.name}")


def _attempt(program: AmdProgram, queue: Events, arguments: Mapping[str, Argument], reports: int) -> Attempt:
    def report() -> None:
        status = np.zeros(1, np.uint64)
        queue.copy(status.ctypes.data, reports, status.nbytes)
        queue.wait()
        program.raise_failed_check(int(status[0]) & 0xFFFFFFFF)

    return Attempt(program.launcher.attempt(queue.device, arguments, queue.stream, reports), report)


@contextmanager
def _turn(queue: Events) -> Iterator[None]:
    """A device for oneself, as far as tuning goes."""
    with turn(queue), devices.current(queue.device):
        captures = not hip.is_simulated()  # simulated streams do not
        if captures and hip.call("hipStreamIsCapturing", queue.stream):
            raise captured()
        try:
            yield
        finally:
            queue.close()
