"""Arrays in host memory on a device: copied in before a launch, what the kernel wrote copied out after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from warpwave.backends.amd.runtime import hip
from warpwave.tiles.runtime.spans import ALIGNMENT, Moved, Span, moved, regions


@contextmanager
def allocated(nbytes: int) -> Iterator[int]:
    """Device memory for the time of the block."""
    pointer = hip.call("hipMalloc", nbytes)
    try:
        yield int(pointer)
    finally:
        hip.module().hipFree(pointer)  # after a fault this fails too, and the fault is what matters


@contextmanager
def on_device(spans: Sequence[Span], written: Sequence[bool]) -> Iterator[Callable[[Span], int]]:
    """Copies of host arrays on the current device: yields the device address of each span.

    What was written is copied back if the block ends well. Everything is done when the block is left.
    """
    kind = hip.module().hipMemcpyKind
    with ExitStack() as stack:
        copies: list[Moved] = []
        for region in regions(spans, written):
            memory = stack.enter_context(allocated(region.nbytes + ALIGNMENT))
            start = memory + (region.address - memory) % ALIGNMENT
            hip.call("hipMemcpy", start, region.address, region.nbytes, kind.hipMemcpyHostToDevice)
            copies.append(Moved(region, start))
        yield lambda memory: moved(memory, copies) or 0  # 0: an array without elements
        for copy in copies:
            if copy.region.written:
                region = copy.region
                hip.call("hipMemcpy", region.address, copy.start, region.nbytes, kind.hipMemcpyDeviceToHost)
