"""Device memory of a launch: buffers for its time, and copies of arrays that are in host memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from warpwave.backends.nvidia.runtime import driver
from warpwave.backends.nvidia.runtime.driver import loading_allowed
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
def for_launch(nbytes: int, ordinal: int, stream: int) -> Iterator[int]:
    """Memory for work that is put on a stream within the block; what comes later on the stream gets it again.

    A stream that is captured gets memory of the graph's own, which may be replayed beside the stream.
    """
    if int(driver.call("cuStreamIsCapturing", stream)):
        pointer = _from_pool(nbytes, ordinal, stream)
        try:
            yield pointer
        finally:
            driver.call("cuMemFreeAsync", pointer, stream)
        return
    workspace = _workspace(ordinal, int(driver.call("cuStreamGetId", stream)))  # handles are used again, these are not
    with workspace.lock:  # another thread's work on the stream comes before this or behind it
        yield workspace.at_least(nbytes, ordinal, stream)


@dataclass
class _Workspace:
    """A stream's memory, as much as a launch on it has needed: to get and return it each time takes the GPU 1 us."""

    address: int = 0
    nbytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at_least(self, nbytes: int, ordinal: int, stream: int) -> int:
        if self.nbytes < nbytes:
            if self.address:
                address, self.address, self.nbytes = self.address, 0, 0
                driver.call("cuMemFreeAsync", address, stream)
            self.address = _from_pool(nbytes, ordinal, stream)
            self.nbytes = nbytes
        return self.address


_workspaces: dict[tuple[int, int], _Workspace] = {}


def _workspace(ordinal: int, stream_id: int) -> _Workspace:
    """A stream's own; setdefault gives all threads the same one."""
    return _workspaces.get((ordinal, stream_id)) or _workspaces.setdefault((ordinal, stream_id), _Workspace())


def _from_pool(nbytes: int, ordinal: int, stream: int) -> int:
    try:
        return int(driver.call("cuMemAllocFromPoolAsync", nbytes, _pool(ordinal), stream))
    except driver.CudaError as error:
        error.message += f": {nbytes} bytes for aligned copies of operands"
        error.hint = "pass tensors whose rows begin at multiples of 16 bytes, or free memory that a library holds"
        raise


@cache
def _pool(ordinal: int) -> Any:
    """A device's memory for launches. It keeps what it has: the driver's own pool gives it back whenever one waits."""
    cuda = driver.module()
    properties, location = cuda.CUmemPoolProps(), cuda.CUmemLocation()
    location.type, location.id = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal
    properties.allocType = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location = location
    with loading_allowed():
        pool = driver.call("cuMemPoolCreate", properties)
        threshold = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        driver.call("cuMemPoolSetAttribute", pool, threshold, cuda.cuuint64_t(2**64 - 1))
    return pool


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
