"""Candidates timed on a device: on copies of what they write, from memory and caches that are the same for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from warpwave.tiles.errors import CheckFailed, LaunchError, ResourceError, TileError, UnsupportedError
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Measurement, Number
from warpwave.tiles.runtime.spans import ALIGNMENT, Moved, Span, moved, regions, span
from warpwave.tiles.runtime.timing import side_by_side

BUDGET_MS = 20.0  # of device time, for each candidate
CACHES = 4  # times the last-level cache is written between runs: what a run left there is surely gone


class Queue(Protocol):
    """A device's stream of work. Addresses are integers."""

    @property
    def place(self) -> str:
        """The `Array.device` of its memory."""
        ...

    @property
    def cache_bytes(self) -> int:
        """The size of its last-level cache."""
        ...

    def allocate(self, nbytes: int) -> int:
        """Device memory."""
        ...

    def free(self, address: int) -> None:
        """Give it back."""
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Enqueue a copy between memory of the device or of the host."""
        ...

    def fill(self, address: int, nbytes: int) -> None:
        """Enqueue writing all of some memory."""
        ...

    def mark(self) -> Any:
        """Enqueue a mark in time."""
        ...

    def wait(self) -> None:
        """Until everything is done that was enqueued."""
        ...

    def milliseconds(self, start: Any, end: Any) -> float:
        """Between two marks that were reached."""
        ...


_turns: dict[str, threading.Lock] = {}


def turn(queue: Queue) -> threading.Lock:
    """Held by the thread that measures on the queue's device; others wait, and do not disturb it."""
    return _turns.setdefault(queue.place, threading.Lock())


def captured() -> LaunchError:
    """The error for a stream that captures a graph."""
    return LaunchError(
        "a stream that captures a graph cannot be waited for, and the time of its work not be taken",
        hint="launch it once before the capture, with arrays like these; or name its constants in the call",
    )


@dataclass(frozen=True)
class Attempt:
    """A candidate: `start` enqueues a run, `report` raises what a finished run has to say."""

    start: Callable[[], None]
    report: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class StandIns:
    """Arguments for trials: what is written, or in host memory, is a copy; `written` are the copies of the former."""

    arguments: dict[str, Array | Number]
    written: Sequence[Moved]

    def restore(self, queue: Queue) -> None:
        """Enqueue what makes everything that is written as it was."""
        for copy in self.written:
            queue.copy(copy.start, copy.region.address, copy.region.nbytes)


@contextmanager
def allocated(queue: Queue, nbytes: int) -> Iterator[int]:
    """Device memory for the time of the block."""
    try:
        address = queue.allocate(nbytes)
    except LaunchError as error:
        error.message += f": {nbytes >> 20} MiB to measure with, for copies of what is written and to clear caches"
        error.hint = "measure with smaller arrays, free memory that a library holds, or name the constants in the call"
        raise
    try:
        yield address
    finally:
        queue.free(address)


@contextmanager
def stand_ins(arguments: Mapping[str, Array | Number], outputs: Container[str], queue: Queue) -> Iterator[StandIns]:
    """Arguments on the device whose outputs nobody sees; arrays that share memory still do."""
    with ExitStack() as stack:
        hosted = [name for name, a in arguments.items() if isinstance(a, Array) and a.on_host]
        here, _ = _copied(arguments, hosted, queue, stack)
        found, written = _copied(here, outputs, queue, stack)
        yield StandIns(found, written)


def _copied(
    arguments: Mapping[str, Array | Number], names: Container[str], queue: Queue, stack: ExitStack
) -> tuple[dict[str, Array | Number], list[Moved]]:
    """The arguments with some arrays moved to copies of their memory, and these copies."""
    spans = {name: span(a) for name, a in arguments.items() if isinstance(a, Array)}
    copies = []
    for region in regions(list(spans.values()), [name in names for name in spans]):
        if region.written:
            memory = stack.enter_context(allocated(queue, region.nbytes + ALIGNMENT))
            copies.append(Moved(region, memory + (region.address - memory) % ALIGNMENT))
            queue.copy(copies[-1].start, region.address, region.nbytes)
    found = {name: _at(a, spans[name], copies, queue) if isinstance(a, Array) else a for name, a in arguments.items()}
    return found, copies


def _at(array: Array, memory: Span, copies: Sequence[Moved], queue: Queue) -> Array:
    start = moved(memory, copies)
    if start is None:
        return array if memory.nbytes else replace(array, device=queue.place, host=None)
    return replace(array, address=start + memory.offset, device=queue.place, host=None)


@dataclass(frozen=True)
class _Watch:
    """The queue as a stopwatch; before a run, copies are restored and the caches filled with other data."""

    queue: Queue
    stand_ins: StandIns
    other: int

    def prepare(self) -> None:
        self.stand_ins.restore(self.queue)
        self.queue.fill(self.other, CACHES * self.queue.cache_bytes)

    def mark(self) -> Any:
        return self.queue.mark()

    def wait(self) -> None:
        self.queue.wait()

    def milliseconds(self, start: Any, end: Any) -> float:
        return self.queue.milliseconds(start, end)


Candidate = Callable[[Mapping[str, Array | Number], int], Attempt]


def compare(
    candidates: Sequence[Candidate],
    arguments: Mapping[str, Array | Number],
    outputs: Container[str],
    no_reports: Sequence[npt.NDArray[np.uint64]],
    queue: Queue,
    how: str,
) -> list[Measurement | TileError]:
    """The time of each candidate, which is made from stand-ins for the arguments and from an address for its reports.

    What is there before a run is one of `no_reports`, the longest.
    """
    words = max(no_reports, key=len)
    with stand_ins(arguments, outputs, queue) as copies, allocated(queue, words.nbytes) as reports:

        def maker(candidate: Candidate) -> Callable[[], Attempt]:
            def make() -> Attempt:
                queue.copy(reports, words.ctypes.data, words.nbytes)
                return candidate(copies.arguments, reports)

            return make

        return race([maker(candidate) for candidate in candidates], copies, queue, how)


def race(
    makers: Sequence[Callable[[], Attempt]], stand_ins: StandIns, queue: Queue, how: str
) -> list[Measurement | TileError]:
    """The median time of each candidate, or why it cannot run; a fault of the device is raised."""
    tried = [_tried(make, stand_ins, queue) for make in makers]
    running = [attempt.start for attempt in tried if isinstance(attempt, Attempt)]
    if not running:
        return [a for a in tried if isinstance(a, TileError)]
    with allocated(queue, CACHES * queue.cache_bytes) as other:
        watch = _Watch(queue, stand_ins, other)
        times = iter(side_by_side(running, watch, BUDGET_MS * len(running)))
    return [a if isinstance(a, TileError) else Measurement(next(times).median * 1e-3, how) for a in tried]


def _tried(make: Callable[[], Attempt], stand_ins: StandIns, queue: Queue) -> Attempt | TileError:
    """A candidate that ran once; what it said if it cannot, on the arguments as they were."""
    stand_ins.restore(queue)
    try:
        attempt = make()
        attempt.start()
    except (CheckFailed, LaunchError, ResourceError, UnsupportedError) as error:
        queue.wait()  # raises if it was a fault, after which nothing runs
        return error
    queue.wait()
    try:
        attempt.report()
    except CheckFailed as error:
        return error
    return attempt
