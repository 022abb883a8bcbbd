"""Device time of PyTorch functions measured side by side, the L2 cache flushed before every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.runtime.timing import Time, side_by_side

FLUSH_BYTES = 256 << 20  # several times the L2


@dataclass(frozen=True)
class TorchWatch:
    """PyTorch's current stream as a `Stopwatch`."""

    torch: Any
    flush: Any

    def prepare(self) -> None:
        """Other data fill the L2."""
        self.flush.zero_()

    def mark(self) -> Any:
        """An event on the stream."""
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        """For the device."""
        self.torch.cuda.synchronize()

    def milliseconds(self, start: Any, end: Any) -> float:
        """Between two events."""
        return float(start.elapsed_time(end))


def measure(torch: Any, functions: Mapping[str, Callable[[], Any]], budget_ms: float) -> dict[str, Time]:
    """The time of each function; about `budget_ms` are spent on all of them together."""
    watch = TorchWatch(torch, torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda"))
    times = side_by_side(list(functions.values()), watch, budget_ms)
    return dict(zip(functions, times, strict=True))
