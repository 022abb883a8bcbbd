"""Arrays in host memory on a device: copied in before a launch, what the kernel wrote copied out after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from warpwave.backends.amd.runtime import hip
from warpwave.tiles.runtime.spans import Region, Span, regions

ALIGNMENT = 256  # copies keep addresses modulo this, so that what is aligned on the host is on the device


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
        placed: list[tuple[Region, int]] = []
        for region in regions(spans, written):
            memory = stack.enter_context(allocated(region.nbytes + ALIGNMENT))
            start = memory + (region.address - memory) % ALIGNMENT
            hip.call("hipMemcpy", start, region.address, region.nbytes, kind.hipMemcpyHostToDevice)
            placed.append((region, start))
        yield lambda memory: _device_address(memory, placed)
        for region, start in placed:
            if region.written:
                hip.call("hipMemcpy", region.address, start, region.nbytes, kind.hipMemcpyDeviceToHost)


def _device_address(memory: Span, placed: Sequence[tuple[Region, int]]) -> int:
    for region, start in placed:
        if region.address <= memory.address < region.address + region.nbytes:
            return start + memory.address - region.address
    return 0  # an array without elements
