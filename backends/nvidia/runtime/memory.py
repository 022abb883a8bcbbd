"""Device memory of a launch: buffers for its time, and copies of arrays that are in host memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from warpwave.backends.nvidia.runtime import driver
from warpwave.tiles.runtime.spans import ALIGNMENT, Moved, Span, moved, regions


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
        copies: list[Moved] = []
        for region in regions(spans, written):
            memory = stack.enter_context(allocated(region.nbytes + ALIGNMENT))
            start = memory + (region.address - memory) % ALIGNMENT
            driver.call("cuMemcpyHtoD", start, region.address, region.nbytes)
            copies.append(Moved(region, start))
        yield lambda memory: moved(memory, copies) or 0  # 0: an array without elements
        for copy in copies:
            if copy.region.written:
                driver.call("cuMemcpyDtoH", copy.region.address, copy.start, copy.region.nbytes)
