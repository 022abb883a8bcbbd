"""Cases over processes. A case that hangs or kills its process is an error of that case only.

Processes are started afresh (spawned), since a forked one could not use a GPU that its parent has touched.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from warpwave.conformance.runners.outcome import Outcome, Status

Item = tuple[str, Sequence[str]]
STARTED, DONE, LAST = "started", "done", "done, and this process ends"
CASE_SECONDS = 300.0
START_SECONDS = 120.0
GRACE_SECONDS = 20.0


@dataclass
class Worker:
    """A process and what it is at. `done` are the outcomes of its case so far."""

    process: Any
    pipe: Connection
    case: str = ""
    deadline: float = 0.0
    done: list[Outcome] = field(default_factory=list)


@dataclass(frozen=True)
class Limits:
    """How long a case may take once it has started, and when no further case is begun (a `time.monotonic()`).

    Cases that are still running GRACE_SECONDS after that are given up, as if they had not been begun.
    """

    case_seconds: float = CASE_SECONDS
    end: float = float("inf")


def run_parallel(cases: Iterable[Item], jobs: int, limits: Limits | None = None) -> Iterator[list[Outcome]]:
    """The outcomes of each case (its text, and the targets to run it on), in the order in which they are done."""
    limits = limits or Limits()
    waiting, workers = iter(cases), [_start() for _ in range(jobs)]
    targets: dict[str, Sequence[str]] = {}
    try:
        idle = list(workers)
        while True:
            for worker in idle:
                _give(worker, waiting, targets, limits)
            idle = []
            busy = [w for w in workers if w.case]
            if not busy or time.monotonic() > limits.end + GRACE_SECONDS:
                return
            ready = wait([w.pipe for w in busy], timeout=1.0)
            for worker in busy:
                if worker.pipe in ready:
                    finished = _receive(worker, targets, limits)
                elif time.monotonic() > worker.deadline:
                    finished = _lost(worker, targets, f"it took more than {limits.case_seconds:.0f} s")
                else:
                    continue
                if finished:
                    outcomes, worker.done, worker.case = worker.done, [], ""
                    idle.append(worker)
                    yield outcomes
    finally:
        for worker in workers:
            worker.process.terminate()
            worker.process.join()


def _start() -> Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()
    return Worker(process, here)


def _give(worker: Worker, waiting: Iterator[Item], targets: dict[str, Sequence[str]], limits: Limits) -> None:
    item = next(waiting, None) if time.monotonic() < limits.end else None
    if item is None:
        return
    worker.case, targets[item[0]] = item[0], item[1]
    worker.deadline = time.monotonic() + START_SECONDS
    worker.pipe.send(item)


def _receive(worker: Worker, targets: dict[str, Sequence[str]], limits: Limits) -> bool:
    """Take what a worker says; true if its case is finished."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        return _lost(worker, targets, f"its process ended with status {worker.process.exitcode}")
    if isinstance(message, Outcome):
        worker.done.append(message)
        return False
    if message == STARTED:
        worker.deadline = time.monotonic() + limits.case_seconds
        return False
    if message == LAST:
        worker.process.join()
        _renew(worker)
    return True


def _lost(worker: Worker, targets: dict[str, Sequence[str]], why: str) -> bool:
    """What the case was at is an error, later targets too; a new process takes the place of the old."""
    seen = {o.target for o in worker.done}
    worker.done += [Outcome(worker.case, t, Status.ERROR, problem=why) for t in targets[worker.case] if t not in seen]
    worker.process.kill()
    worker.process.join()
    _renew(worker)
    return True


def _renew(worker: Worker) -> None:
    fresh = _start()
    worker.process, worker.pipe = fresh.process, fresh.pipe


def _serve(pipe: Connection) -> None:
    """A worker: cases in, outcomes out. After an error on a device it ends, as the device's context may be lost."""
    from warpwave.conformance.runners.device import device_of
    from warpwave.conformance.runners.run_case import run_case
    from warpwave.conformance.suite import make_case

    os.environ.setdefault("WARPWAVE_FIT_SECONDS", "0")  # a kernel that does not fit: do not search one that would
    while True:
        try:
            id_, targets = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(STARTED)
        lost = False
        for outcome in run_case(make_case(id_), targets):
            lost = lost or (outcome.status is Status.ERROR and device_of(outcome.target) is not None)
            pipe.send(outcome)
        pipe.send(LAST if lost else DONE)
        if lost:
            return
