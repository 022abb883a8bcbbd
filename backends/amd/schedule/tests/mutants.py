"""Schedules with one thing weakened: a wait, a barrier, the slot or step of an access, the order of two ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    LoadDirect,
    LoadRegisters,
    Op,
    Part,
    Pointer,
    Put,
    Read,
    Schedule,
    Wait,
)

ACCESS = LoadDirect | LoadRegisters | Put | Read
MOVED = ACCESS | Pointer | Wait | Barrier
Edit = tuple[str, tuple[Op, ...]]  # what is done, and what then stands for the op


def mutants(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """Each with its name."""
    yield from _of_ops(schedule, _weakened)
    yield from _of_clusters(schedule)


def _weakened(op: Op) -> Iterator[Edit]:
    if isinstance(op, Wait):
        yield "no wait", ()
        for counter, value in (("vm", op.vm), ("lgkm", op.lgkm)):
            if value is not None:
                yield f"{counter} {value + 1}", (replace(op, **{counter: value + 1}),)
    elif isinstance(op, Barrier):
        yield "no barrier", ()
    elif isinstance(op, Pointer):
        yield "no pointer", ()
        yield "next step", (replace(op, value=replace(op.value, step=op.value.step + 1)),)
        yield "other part", (replace(op, value=replace(op.value, part=1 - op.value.part)),)
    elif isinstance(op, ACCESS):
        for shift in (-1, 1):
            step = op.value.step + shift
            yield f"step {shift:+}", (replace(op, value=replace(op.value, step=step)),)
            if not isinstance(op, LoadDirect) or op.pointer is None:  # else M0 says which slot
                yield f"slot {shift:+}", (replace(op, value=_in_slot(op.value, shift)),)
        yield "left out", ()


def _in_slot(value: Part, shift: int) -> Part:
    return replace(value, slot_of=value.step + shift)


def _of_ops(schedule: Schedule, edits: Callable[[Op], Iterator[Edit]]) -> Iterator[tuple[str, Schedule]]:
    parts = {tile.name: tile.parts for tile in schedule.shared}
    for where, clusters, put_back in _phases(schedule):
        for c, cluster in enumerate(clusters):
            for i, op in enumerate(cluster.ops):
                for what, instead in edits(op):
                    if any(isinstance(new, Pointer) and new.value.part >= parts[new.value.tile] for new in instead):
                        continue  # a tile that is whole has no other part
                    ops = (*cluster.ops[:i], *instead, *cluster.ops[i + 1 :])
                    changed = (*clusters[:c], replace(cluster, ops=ops), *clusters[c + 1 :])
                    yield f"{where} {cluster.name}[{i}] {what}", put_back(changed)


def _of_clusters(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """Memory ops of a cluster in the other order of neighbours; an extra barrier of one group for all."""
    for where, clusters, put_back in _phases(schedule):
        for c, cluster in enumerate(clusters):
            for i in range(len(cluster.ops) - 1):
                one, two = cluster.ops[i : i + 2]
                if not isinstance(one, MOVED) and not isinstance(two, MOVED):
                    continue
                ops = (*cluster.ops[:i], two, one, *cluster.ops[i + 2 :])
                changed = (*clusters[:c], replace(cluster, ops=ops), *clusters[c + 1 :])
                yield f"{where} {cluster.name}[{i}] swapped with the next", put_back(changed)
            if cluster.only:
                changed = (*clusters[:c], replace(cluster, only=()), *clusters[c + 1 :])
                yield f"{where} {cluster.name} for all", put_back(changed)


def _phases(
    schedule: Schedule,
) -> Iterator[tuple[str, tuple[Cluster, ...], Callable[[tuple[Cluster, ...]], Schedule]]]:
    yield "prologue", schedule.prologue, lambda changed: replace(schedule, prologue=changed)
    yield "body", schedule.body, lambda changed: replace(schedule, body=changed)
    for left, clusters in schedule.epilogues.items():
        yield (
            f"epilogue {left}",
            clusters,
            lambda changed, left=left: replace(schedule, epilogues={**schedule.epilogues, left: changed}),
        )
