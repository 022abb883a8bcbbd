"""A run spread over machines by Ray: each case goes to a node that has the target's kind of GPU.

A node says what it has when it joins: `ray start --address=... --resources='{"gfx950": 8}'`. The kind is the part of
the target's name after the colon. Finished cases are in the driver's journal, so a lost worker costs only the case
that it was at, which is run again elsewhere; one that kills its worker every time is an error of that case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from warpwave.conformance.records.environment import environment
from warpwave.conformance.records.journal import Journal
from warpwave.conformance.records.record import Record, Result
from warpwave.conformance.runners.outcome import Outcome, Status
from warpwave.conformance.runners.run_case import run_case
from warpwave.conformance.session import Plan, Watch, missing, record_of
from warpwave.conformance.suite import make_case
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.runtime import registry

Work = Callable[[str, str], Result]
ATTEMPTS = 3
IN_FLIGHT = 256


def kind_of(target: str) -> str:
    """The Ray resource that a node for this target has: `gfx950` for `amd:gfx950:sim`."""
    return target.removesuffix(registry.SIMULATED).rpartition(":")[2]


def run_one(case: str, target: str) -> Result:
    """One case on one target, where this is called."""
    (outcome,) = run_case(make_case(case), [target])
    return Result.of(outcome)


def run_fleet(
    plan: Plan, journal: Journal, watch: Watch = lambda _: None, *, address: str | None = None, work: Work = run_one
) -> Record:
    """Run what the journal does not hold yet on a cluster; `address` is Ray's, None for one on this machine."""
    ray = _ray()
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    check_kinds(ray, plan)
    submit = _submitter(ray, work)
    waiting = ((case, target) for case, targets in missing(plan, journal) for target in targets)
    running: dict[Any, tuple[str, str]] = {}
    end = time.monotonic() + plan.time_limit
    _fill(running, waiting, submit, end)
    while running:
        done, _ = ray.wait(list(running), num_returns=1)
        case, target = running.pop(done[0])
        result = _result(ray, done[0], case, target)
        journal.add(result)
        watch([result.outcome])
        _fill(running, waiting, submit, end)
    record = record_of(plan, journal)
    return Record(record.run, _environments(ray, plan), record.results, record.cases, record.complete)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UnsupportedError("a fleet needs Ray", hint="pip install 'warpwave[ray]'") from error
    return ray


def check_kinds(ray: Any, plan: Plan) -> None:
    """Tasks for a kind that no node has would wait for ever."""
    there = ray.cluster_resources()
    absent = [t for t in plan.targets if not needs(t).keys() <= there.keys()]
    if absent:
        kinds = ", ".join(kind_of(t) for t in absent)
        raise UnsupportedError(
            f"no node of the cluster has {kinds}, for {', '.join(absent)}",
            hint=f"join one with: ray start --address=... --resources='{{\"{kind_of(absent[0])}\": 1}}'",
        )


def needs(target: str) -> dict[str, float]:
    """What a task for a target asks of its node: one of its kind, nothing if it runs anywhere."""
    return {kind_of(target): 1} if ":" in target else {}


def _submitter(ray: Any, work: Work) -> Callable[[str, str], Any]:
    remote = ray.remote(max_retries=ATTEMPTS - 1)(work)
    return lambda case, target: remote.options(resources=needs(target)).remote(case, target)


def _fill(
    running: dict[Any, tuple[str, str]],
    waiting: Iterator[tuple[str, str]],
    submit: Callable[[str, str], Any],
    end: float,
) -> None:
    while len(running) < IN_FLIGHT and time.monotonic() < end:
        item = next(waiting, None)
        if item is None:
            return
        running[submit(*item)] = item


def _result(ray: Any, done: Any, case: str, target: str) -> Result:
    try:
        result: Result = ray.get(done)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        return Result(Outcome(case, target, Status.ERROR, problem=f"lost after {ATTEMPTS} attempts: {reason}"))
    return result


def _environments(ray: Any, plan: Plan) -> dict[str, str]:
    """Of a node of each kind; what differs between kinds carries the target's name."""
    found: dict[str, str] = {}
    remote = ray.remote(environment)
    for target in plan.targets:
        there = ray.get(remote.options(resources=needs(target)).remote([target]))
        for key, value in there.items():
            clash = found.get(key, value) != value
            found[f"{key} ({target})" if clash else key] = value
    return found
