"""Small sound schedules, made by rules that a reader can check: what the tests weaken."""

from __future__ import annotations

from dataclasses import replace

from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Group,
    Held,
    LoadDirect,
    LoadRegisters,
    Op,
    Part,
    Put,
    Read,
    RegisterTile,
    Schedule,
    SharedTile,
    Wait,
)

DATA = Part("A", 0, 0)


def use(step: int = 0) -> Compute:
    return Compute("c += a", (Held("a", Part("A", 0, step)),), (Held("c"),), "matrix", 4, 64, passes=4)


def ring(slots: int = 3, ahead: int = 2, vm: int = 2, *, waves: int = 4, guarded: bool = False) -> Schedule:
    """Direct loads `ahead` steps before their use: landed, read, and no longer needed, each known by a barrier."""
    loads = tuple(LoadDirect(Part("A", 0, i), vm, guarded=guarded) for i in range(ahead))
    body = (
        Cluster("land", (Wait(vm=vm * (ahead - 1)), Barrier()), "memory"),
        Cluster("fetch", (Read(DATA, "a", 4), Wait(lgkm=0, ties=("a",)), Barrier()), "memory"),
        Cluster("next", (LoadDirect(Part("A", 0, ahead), vm, guarded=guarded),), "memory"),
        Cluster("use", (use(),), "compute"),
    )
    return Schedule(
        name="ring",
        target="gfx950",
        groups=(Group("all", waves),),
        shared=(SharedTile("A", 1, slots, 1024),),
        registers=(RegisterTile("a", 16), RegisterTile("c", 16)),
        prologue=(Cluster("first", loads, "memory"),),
        body=body,
        epilogues={0: (Cluster("drain", (Wait(vm=0),)),)},
    )


def ping_pong(ahead: int = 2, vm: int = 2) -> Schedule:
    """The same for two groups one cluster apart: what a cluster waits for is read two clusters later."""
    loads = tuple(LoadDirect(Part("A", 0, i), vm) for i in range(ahead))
    landed = Wait(vm=vm * (ahead - 1))
    memory = (Read(DATA, "a", 4), LoadDirect(Part("A", 0, ahead), vm), Wait(landed.vm, 0, ("a",)), Barrier())
    return replace(
        ring(slots=ahead + 1),
        name="ping-pong",
        groups=(Group("lead", 4), Group("lag", 4)),
        prologue=(Cluster("first", (*loads, landed, Barrier())), Cluster("skew", (Barrier(),), only=("lag",))),
        body=(Cluster("M", memory, "memory"), Cluster("C", (use(), Barrier()), "compute")),
        epilogues={0: (Cluster("drain", (Wait(vm=0),)), Cluster("skew", (Barrier(),), only=("lead",)))},
    )


def staged(*, tracked: bool = False) -> Schedule:
    """Loads through registers, two slots, one step ahead."""
    ties: tuple[str, ...] = () if tracked else ("s",)
    wait: tuple[Op, ...] = () if tracked else (Wait(vm=0, ties=ties),)

    def fetch(step: int) -> LoadRegisters:
        return LoadRegisters(Part("A", 0, step), "s", 2, tracked=tracked)

    def put(step: int) -> tuple[Op, ...]:
        return (*wait, Put("s", Part("A", 0, step), 2), Wait(lgkm=0), Barrier())

    read = (Read(DATA, "a", 4), Wait(lgkm=0, ties=("a",)), use())
    return Schedule(
        name="staged",
        target="gfx942",
        groups=(Group("all", 4),),
        shared=(SharedTile("A", 1, 2, 1024),),
        registers=(RegisterTile("a", 16), RegisterTile("s", 16), RegisterTile("c", 16)),
        prologue=(Cluster("first", (fetch(0), *put(0), fetch(1))),),
        body=(Cluster("use", read, "compute"), Cluster("publish", (*put(1), fetch(2)), "memory")),
        epilogues={0: (Cluster("drain", (Wait(vm=0),)),)},
    )


def assembly(registers: tuple[RegisterTile, ...], *ops: Op) -> Schedule:
    """A prologue of these ops, whose hazards are the schedule's own."""
    return Schedule(
        name="assembly",
        target="gfx950",
        groups=(Group("all", 4),),
        shared=(),
        registers=registers,
        prologue=(Cluster("all", ops),),
        body=(),
        epilogues={0: ()},
        emission="assembly",
    )
