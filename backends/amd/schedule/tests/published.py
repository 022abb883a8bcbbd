"""HipKittens' published schedules in our form (facts: its bf16 and fp8 GEMM and attention forward for MI355X).

Each comes as published, hazards included, and with the smallest change that makes it sound. Waits tie what they
release, which the published ones do not; `untied` takes that away again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Fence,
    Group,
    Held,
    LoadDirect,
    Op,
    Part,
    Priority,
    Read,
    RegisterTile,
    Schedule,
    SharedTile,
    Wait,
)

HALF = 16 << 10  # bytes of a half tile: 128 x 64 bf16, 128 x 128 fp8, and of a tile of 64 keys
PING_PONG = (Group("lead", 4), Group("lag", 4))
BARRIER = (Barrier(),)


def load(tile: str, part: int, step: int, vm: int = 2) -> LoadDirect:
    return LoadDirect(Part(tile, part, step), vm)


def read(tile: str, part: int, step: int, register: str, lgkm: int) -> Read:
    return Read(Part(tile, part, step), register, lgkm)


def product(c: str, a: tuple[str, int], b: tuple[str, int], step: int) -> Compute:
    """One burst of 16 matrix instructions; a and b are register and part."""
    reads = (Held(a[0], Part("A", a[1], step)), Held(b[0], Part("B", b[1], step)))
    return Compute(f"{c} += {a[0]} {b[0]}", reads, (Held(c),), "matrix", 16, 16 * 16, passes=4)


def memory(name: str, *ops: Op) -> Cluster:
    return Cluster(name, (*ops, *BARRIER), "memory")


def compute(name: str, *ops: Op) -> Cluster:
    return Cluster(name, (*ops, *BARRIER), "compute")


def skew(group: str) -> Cluster:
    return Cluster("skew", BARRIER, only=(group,))


def burst(*ops: Compute, wait: tuple[str, ...] = (), fenced: bool = False) -> tuple[Op, ...]:
    """A compute cluster's ops; `wait` are the registers that its wait releases."""
    waits = (Wait(lgkm=0, ties=wait),) if wait else ()
    return (*waits, Priority(1), *ops, Priority(0), *((Fence(),) if fenced else ()))


# -- GEMM, 8 waves ------------------------------------------------------------------------------------


def gemm_8_wave(*, early_b0: bool = True) -> Schedule:
    """bf16, 256 x 256 x 64. `early_b0` is as published: the even tile's last cluster reads B0 of the next tile."""
    return Schedule(
        name="HipKittens bf16 GEMM, 8 waves",
        target="gfx950",
        groups=PING_PONG,
        shared=(SharedTile("A", 2, 2, HALF), SharedTile("B", 2, 2, HALF)),
        registers=gemm_registers(a=32, b=16, c=32),
        prologue=gemm_prologue(first=(("B", 0), ("A", 0), ("B", 1))),
        body=(*gemm_tile(0, early_b0, "out"), *gemm_tile(1, early_b0, "in")),
        epilogues={2: (*gemm_last_tiles(early=False), skew("lead"))},
        period=2,
        tail=2,
    )


def gemm_8_wave_fp8(*, a_first: bool = True, early_b0: bool = True) -> Schedule:
    """fp8, 256 x 256 x 128. As published M1 overwrites A0 first, and the second-last tile reads B0 early."""
    order = (("A", 0), ("B", 0), ("B", 1)) if a_first else (("B", 0), ("A", 0), ("B", 1))
    return Schedule(
        name="HipKittens fp8 GEMM, 8 waves",
        target="gfx950",
        groups=PING_PONG,
        shared=(SharedTile("A", 2, 2, HALF), SharedTile("B", 2, 2, HALF)),
        registers=gemm_registers(a=32, b=16, c=32),
        prologue=gemm_prologue(first=order),
        body=gemm_tile(0, False, "", order),
        epilogues={2: (*gemm_last_tiles(early=early_b0), skew("lead"))},
        tail=2,
    )


def gemm_registers(a: int, b: int, c: int) -> tuple[RegisterTile, ...]:
    sizes = {"a": a, "b0": b, "b1": b, "c00": c, "c01": c, "c10": c, "c11": c}
    return tuple(RegisterTile(name, count) for name, count in sizes.items())


def gemm_prologue(first: Sequence[tuple[str, int]]) -> tuple[Cluster, ...]:
    """Both stages but for A1 of the second."""
    loads = [load(tile, part, 0) for tile, part in (*first, ("A", 1))]
    ahead = [load(tile, part, 1) for tile, part in first]
    return (
        Cluster("P0", tuple(loads), "memory"),
        skew("lag"),
        memory("P1", Wait(vm=4)),
        memory("P2", *ahead, Wait(vm=6)),
    )


def gemm_tile(
    t: int, early: bool, parity: str, order: Sequence[tuple[str, int]] = (("B", 0), ("A", 0), ("B", 1))
) -> tuple[Cluster, ...]:
    """K tile t of a round. With `early`, B0 is read a tile ahead by the tile that is even ("out"), for the odd."""
    reads_b0 = [] if early and parity == "in" else [read("B", 0, t, "b0", 4)]
    ahead = [read("B", 0, t + 1, "b0", 4)] if early and parity == "out" else []
    m1, m2, m3 = (load(tile, part, t + 2) for tile, part in order)
    released = ("a", "b0")
    return (
        memory(f"M0.{t}", *reads_b0, read("A", 0, t, "a", 8), load("A", 1, t + 1), Wait(lgkm=8)),
        compute(f"C0.{t}", *burst(product("c00", ("a", 0), ("b0", 0), t), wait=released, fenced=True)),
        memory(f"M1.{t}", read("B", 1, t, "b1", 4), m1),
        compute(f"C1.{t}", *burst(product("c01", ("a", 0), ("b1", 1), t), wait=("b1",))),
        memory(f"M2.{t}", read("A", 1, t, "a", 8), m2),
        compute(f"C2.{t}", *burst(product("c10", ("a", 1), ("b0", 0), t), wait=("a",), fenced=True)),
        memory(f"M3.{t}", *ahead, m3, Wait(vm=6)),
        compute(f"C3.{t}", *burst(product("c11", ("a", 1), ("b1", 1), t))),
    )


def gemm_last_tiles(*, early: bool) -> tuple[Cluster, ...]:
    """The last two K tiles, whose loads are all issued but for one."""
    ahead = [read("B", 0, 1, "b0", 4)] if early else []
    again = [] if early else [read("B", 0, 1, "b0", 4)]
    last = (product("c10", ("a", 1), ("b0", 0), 1), product("c11", ("a", 1), ("b1", 1), 1))
    return (
        memory("E0", read("B", 0, 0, "b0", 4), read("A", 0, 0, "a", 8), load("A", 1, 1), Wait(lgkm=8)),
        compute("E1", *burst(product("c00", ("a", 0), ("b0", 0), 0), wait=("a", "b0"))),
        memory("E2", read("B", 1, 0, "b1", 4)),
        compute("E3", *burst(product("c01", ("a", 0), ("b1", 1), 0), wait=("b1",))),
        memory("E4", read("A", 1, 0, "a", 8)),
        compute("E5", *burst(product("c10", ("a", 1), ("b0", 0), 0), wait=("a",))),
        memory("E6", *ahead, Wait(vm=4)),
        compute("E7", *burst(product("c11", ("a", 1), ("b1", 1), 0))),
        memory("E8", *again, read("A", 0, 1, "a", 8), Wait(vm=2)),
        compute("E9", *burst(product("c00", ("a", 0), ("b0", 0), 1), wait=("a", "b0"))),
        memory("E10", read("B", 1, 1, "b1", 4), Wait(vm=0)),
        compute("E11", *burst(product("c01", ("a", 0), ("b1", 1), 1), wait=("b1",))),
        memory("E12", read("A", 1, 1, "a", 8)),
        compute("E13", *burst(*last, wait=("a",))),
    )


# -- GEMM, 4 waves ------------------------------------------------------------------------------------


def gemm_4_wave(*, late_wait: bool = True) -> Schedule:
    """fp8, 256 x 256 x 128. `late_wait` is as published: cluster 2 waits for its reads after its barrier."""
    tiles = [RegisterTile(name, 32, 8) for name in ("a0", "a1", "b0", "b1")]
    tiles += [RegisterTile(name, 64, 16) for name in ("c00", "c01", "c10", "c11")]
    return Schedule(
        name="HipKittens fp8 GEMM, 4 waves",
        target="gfx950",
        groups=(Group("all", 4),),
        shared=(SharedTile("A", 2, 2, HALF, pieces=4), SharedTile("B", 2, 2, HALF, pieces=4)),
        registers=tuple(tiles),
        prologue=quadrant_prologue(),
        body=quadrants(0, late_wait, loads=True),
        epilogues={2: (*quadrants(0, late_wait, vm=8), *quadrants(1, late_wait, vm=None, first=0))},
        tail=2,
        reserve=40,
    )


def quadrant_prologue() -> tuple[Cluster, ...]:
    order = (("A", 0), ("B", 0), ("B", 1), ("A", 1))
    loads = [load(tile, part, step, 4) for step in (0, 1) for tile, part in order]
    reads_a = [Read(Part("A", 0, 0), "a0", 1, (i,)) for i in range(8)]
    reads_b = [Read(Part("B", 0, 0), "b0", 1, (i,)) for i in range(8)]
    return (memory("P0", *loads, Wait(vm=28)), memory("P1", *reads_a, Wait(vm=24)), Cluster("P2", tuple(reads_b)))


def quadrants(t: int, late: bool, *, loads: bool = False, vm: int | None = 16, first: int = 16) -> tuple[Cluster, ...]:
    """One K tile; without `vm` it is the last one, after which nothing is read ahead."""
    ahead = vm is not None
    third = (Wait(vm=vm), *late_order(late)) if ahead else late_order(late)
    plan = (
        ((Wait(vm=first), Wait(lgkm=0, ties=("a0", "b0")), *BARRIER), ("a0", "b0"), ("b1", "B", 1, t), ("A", 0)),
        ((Wait(lgkm=0, ties=("b1",)),), ("a0", "b1"), ("a1", "A", 1, t), ("B", 0)),
        (third, ("a1", "b0"), ("a0", "A", 0, t + 1) if ahead else None, ("B", 1)),
        ((), ("a1", "b1"), ("b0", "B", 0, t + 1) if ahead else None, ("A", 1)),
    )
    return tuple(
        Cluster(f"Q{i}.{t}", (*waits, *interleaved(factors, reads, part if loads else None, t)), "compute")
        for i, (waits, factors, reads, part) in enumerate(plan)
    )


def late_order(late: bool) -> tuple[Op, ...]:
    wait = Wait(lgkm=0, ties=("a1",))
    return (*BARRIER, wait) if late else (wait, *BARRIER)


def interleaved(
    factors: tuple[str, str], reads: tuple[str, str, int, int] | None, part: tuple[str, int] | None, t: int
) -> tuple[Op, ...]:
    """16 matrix instructions with 4 loads and 8 reads between them, one by one."""
    products = [single(*factors, i, t) for i in range(16)]
    others: list[Op] = []
    for i in range(8):
        if part and i % 2 == 0:
            others.append(LoadDirect(Part(*part, t + 2), 1, (i // 2,)))
        if reads:
            register, tile, number, step = reads
            others.append(Read(Part(tile, number, step), register, 1, (i,)))
    ops: list[Op] = []
    for i, one in enumerate(products):
        ops += [one, *others[i : i + 1], Fence()]
    return tuple(ops)


def single(a: str, b: str, i: int, t: int) -> Compute:
    """The i-th of 4 x 4 blocks of a quadrant."""
    quadrant = f"c{a[1]}{b[1]}"
    rows = Held(a, Part("A", int(a[1]), t), (2 * (i // 4), 2 * (i // 4) + 1))
    cols = Held(b, Part("B", int(b[1]), t), (2 * (i % 4), 2 * (i % 4) + 1))
    return Compute(f"{quadrant}.{i}", (rows, cols), (Held(quadrant, None, (i,)),), "matrix", 1, 32, passes=8)


# -- attention forward --------------------------------------------------------------------------------


def attention() -> Schedule:
    """D = 128, 8 waves of 32 queries, tiles of 64 keys; softmax of one group under the products of the other."""
    sizes = {"q": 32, "k": 64, "v": 64, "s0": 32, "s1": 32, "p": 16, "o": 64, "m": 1, "l": 1}
    first = (product_qk(0), *softmax_head(0))
    return Schedule(
        name="HipKittens attention forward",
        target="gfx950",
        groups=PING_PONG,
        shared=(SharedTile("K", 1, 2, HALF), SharedTile("V", 1, 2, HALF)),
        registers=tuple(RegisterTile(name, n, 2 if name in ("s0", "s1") else 1) for name, n in sizes.items()),
        prologue=(
            memory("P0", load("K", 0, 0), Wait(vm=0)),
            memory("P1", load("K", 0, 1), load("V", 0, 0), *keys(0), Wait(vm=2)),
            Cluster("P2", first, "compute"),
            skew("lag"),
            memory("P3", *keys(1), load("K", 0, 2), load("V", 0, 1), Wait(vm=4)),
        ),
        body=(*attention_tile(0, 4), *attention_tile(1, 4)),
        epilogues={4: (*attention_end(), skew("lead"))},
        period=2,
        tail=4,
    )


def attention_tile(i: int, left: int) -> tuple[Cluster, ...]:
    """Tile i of a round; `left` of the loop's tiles from i on bound what is loaded and computed."""
    more_k, more_v = [load("K", 0, i + 3)] * (left > 3), [load("V", 0, i + 2)] * (left > 2)
    scores = (product_qk(i + 1),) if left > 1 else ()
    head = softmax_head(i + 1) if left > 1 else ()
    next_k = keys(i + 2) if left > 2 else ()
    newest = {4: (4, 4), 3: (2, 2), 2: (0, 0), 1: (0, 0)}[left]
    return (
        compute(f"C0.{i}", *scores, *softmax_tail(i)),
        memory(f"C1.{i}", *more_k, Read(Part("V", 0, i), "v", 32), Wait(lgkm=0, ties=("v",)), Wait(vm=newest[0])),
        compute(f"C2.{i}", Priority(1), product_pv(i), *head, Priority(0)),
        memory(f"C3.{i}", *more_v, *next_k, Wait(vm=newest[1])),
    )


def attention_end() -> tuple[Cluster, ...]:
    """The last four tiles."""
    return tuple(cluster for i in range(4) for cluster in attention_tile(i, 4 - i))


def keys(i: int) -> tuple[Op, ...]:
    return Read(Part("K", 0, i), "k", 16), Wait(lgkm=0, ties=("k",))


def product_qk(i: int) -> Compute:
    scores = (Held(f"s{i % 2}", Part("S", 0, i)),)
    return Compute(f"S({i})", (Held("q"), Held("k", Part("K", 0, i))), scores, "matrix", 16, 512, 8, fresh=True)


def product_pv(i: int) -> Compute:
    reads = (Held("p", Part("P", 0, i)), Held("v", Part("V", 0, i)))
    return Compute(f"O += P V({i})", reads, (Held("o"),), "matrix", 16, 512, 8)


def softmax_head(i: int) -> tuple[Compute, ...]:
    """The maximum, the difference from it, and the first half of the exponentials."""
    scores, name = Part("S", 0, i), f"s{i % 2}"
    top = Compute(f"max({i})", (Held(name, scores), Held("m")), (Held("m"),), "vector", 16, 64)
    shifted = (Held(name, Part("D", 0, i)),)
    minus = Compute(f"minus({i})", (Held(name, scores), Held("m")), shifted, "vector", 25, 100)
    return top, minus, exponential(i, 0)


def exponential(i: int, half: int) -> Compute:
    name = f"s{i % 2}"
    reads, writes = Held(name, Part("D", 0, i), (half,)), Held(name, Part("E", 0, i), (half,))
    return Compute(f"exp({i}).{half}", (reads,), (writes,), "transcendental", 16, 128)


def softmax_tail(i: int) -> tuple[Compute, ...]:
    """The second half of the exponentials, the sum, and the conversion."""
    whole = Held(f"s{i % 2}", Part("E", 0, i))
    total = Compute(f"sum({i})", (whole, Held("l")), (Held("l"),), "vector", 36, 144)
    convert = Compute(f"convert({i})", (whole,), (Held("p", Part("P", 0, i)),), "vector", 16, 64)
    return exponential(i, 1), total, convert


# -- variants -----------------------------------------------------------------------------------------


def untied(schedule: Schedule) -> Schedule:
    """The same with bare waits."""

    def bare(clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
        return tuple(
            replace(c, ops=tuple(replace(op, ties=()) if isinstance(op, Wait) else op for op in c.ops))
            for c in clusters
        )

    ends = {left: bare(clusters) for left, clusters in schedule.epilogues.items()}
    return replace(schedule, prologue=bare(schedule.prologue), body=bare(schedule.body), epilogues=ends)


PUBLISHED = {
    "bf16-8-wave": gemm_8_wave(),
    "fp8-8-wave": gemm_8_wave_fp8(),
    "fp8-4-wave": gemm_4_wave(),
    "attention": attention(),
}
SOUND = {
    "bf16-8-wave": gemm_8_wave(early_b0=False),
    "fp8-8-wave": gemm_8_wave_fp8(a_first=False, early_b0=False),
    "fp8-4-wave": gemm_4_wave(late_wait=False),
    "attention": attention(),
}
