"""What a kernel reports: the number of a failed check, and the words of `ww.print`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime import driver
from warpwave.backends.nvidia.runtime.driver import loading_allowed
from warpwave.backends.nvidia.runtime.memory import allocated
from warpwave.tiles.errors import CheckFailed, UnsupportedError
from warpwave.tiles.simt.printing import CAPACITY, show_prints

STATUS_BYTES = 4
PRINTS_AT = 8  # in a launch's memory for reports


@dataclass(frozen=True)
class Feedback:
    """One kernel's reports. Under graph capture nothing can be waited for: a check that fails in a replay of the graph
    is raised by the kernel's next ordinary launch on the device.
    """

    lowered: Lowered
    _captured: dict[int, int] = field(default_factory=dict)  # address of the status word of graphs, by device
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_silent(self) -> bool:
        """Whether the kernel has nothing to report, so that its launches need no memory and no waiting."""
        return not self.lowered.checks and not self.lowered.prints

    @contextmanager
    def addresses(self, ordinal: int, stream: int, rank: int) -> Iterator[tuple[int, int]]:
        """Status and print buffers for the launch in the block; then wait for it, print, and raise CheckFailed."""
        if int(driver.call("cuStreamIsCapturing", stream)):
            yield self._status_of_graphs(ordinal), 0
            return
        words = self.no_reports()
        with allocated(words.nbytes) as memory:
            driver.call("cuMemcpyHtoD", memory, words.ctypes.data, words.nbytes)
            yield memory, memory + PRINTS_AT
            driver.call("cuStreamSynchronize", stream)
            driver.call("cuMemcpyDtoH", words.ctypes.data, memory, words.nbytes)
        if self.lowered.prints:
            show_prints(self.lowered.prints, rank, words[1:])
        self._raise(int(words[0]) & 0xFFFFFFFF)
        self._raise(self._take_captured(ordinal), " in a replay of a captured graph")

    def no_reports(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """What is in a launch's memory for reports before it: the status, then the prints if there are any."""
        words = np.zeros(1 + (CAPACITY if self.lowered.prints else 0), np.uint64)
        words[1:2] = 1  # the prints' first word counts the words in use, itself among them
        return words

    def raise_failed(self, memory: int) -> None:
        """CheckFailed if the status there says so."""
        word = np.zeros(1, np.uint32)
        driver.call("cuMemcpyDtoH", word.ctypes.data, memory, word.nbytes)
        self._raise(int(word[0]))

    def _raise(self, number: int, where: str = "") -> None:
        if number:
            op = self.lowered.checks[number - 1]
            raise CheckFailed((op.attrs["message"] or "check failed") + where, loc=op.loc)

    def _status_of_graphs(self, ordinal: int) -> int:
        """A status word that lives on, since graphs are replayed later."""
        if self.lowered.prints:
            op = self.lowered.prints[0]
            raise UnsupportedError("ww.print cannot be shown from a captured graph", loc=op.loc, hint="remove it")
        with self._lock, loading_allowed():
            if ordinal not in self._captured:
                address = int(driver.call("cuMemAlloc", STATUS_BYTES))
                _on_own_stream("cuMemsetD32Async", address, 0, 1)
                self._captured[ordinal] = address
            return self._captured[ordinal]

    def _take_captured(self, ordinal: int) -> int:
        address = self._captured.get(ordinal)
        if address is None:
            return 0
        word = np.zeros(1, np.uint32)
        driver.call("cuMemcpyDtoH", word.ctypes.data, address, word.nbytes)
        if word[0]:
            _on_own_stream("cuMemsetD32Async", address, 0, 1)
        return int(word[0])


def _on_own_stream(name: str, *arguments: int) -> None:
    """A call on a stream of its own and waited for: one that is captured, or waits for it, must not be touched."""
    flags = driver.module().CUstream_flags.CU_STREAM_NON_BLOCKING
    stream = driver.call("cuStreamCreate", flags)
    try:
        driver.call(name, *arguments, stream)
        driver.call("cuStreamSynchronize", stream)
    finally:
        driver.call("cuStreamDestroy", stream)
