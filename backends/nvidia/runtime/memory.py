"""Device memory of a launch: buffers for its time, and copies of arrays that are in host memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from warpwave.backends.nvidia.runtime import driver
from warpwave.tiles.runtime.spans import Region, Span, regions

ALIGNMENT = 256  # copies keep addresses modulo this, so that what is aligned on the host is on the device


@contextmanager
def allocated(nbytes: int) -> Iterator[int]:
    """Device memory for the time of the block."""
    pointer = driver.call("cuMemAlloc", nbytes)
    try:
        yield int(pointer)
    finally:
        driver.call("cuMemFree", pointer)


@contextmanager
def on_device(spans: Sequence[Span], written: Sequence[bool]) -> Iterator[Callable[[Span], int]]:
    """Copies of host arrays on the current device: yields a function from a span to its address there.

    What was written is copied back if the block ends well, when the block's own work is done.
    """
    with ExitStack() as stack:
        placed: list[tuple[Region, int]] = []
        for region in regions(spans, written):
            memory = stack.enter_context(allocated(region.nbytes + ALIGNMENT))
            start = memory + (region.address - memory) % ALIGNMENT
            driver.call("cuMemcpyHtoD", start, region.address, region.nbytes)
            placed.append((region, start))
        yield lambda memory: _device_address(memory, placed)
        for region, start in placed:
            if region.written:
                driver.call("cuMemcpyDtoH", region.address, start, region.nbytes)


def _device_address(memory: Span, placed: Sequence[tuple[Region, int]]) -> int:
    for region, start in placed:
        if region.address <= memory.address < region.address + region.nbytes:
            return start + memory.address - region.address
    return 0  # an array without elements
