"""Generated ping-pong schedules: proven sound for every loop, and as good as can be expected for known ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.arch import GFX942, GFX950
from warpwave.backends.amd.schedule.check import check_schedule, find_problems
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Compute,
    Fence,
    LoadDirect,
    LoadRegisters,
    Priority,
    Put,
    Read,
    Wait,
)
from warpwave.backends.amd.schedule.pingpong import LONG, flight, ping_pong
from warpwave.backends.amd.schedule.pipelined import Burst, Fragment, PipelinedLoop, Source


def product(sources, over=(1, 1), *, target="gfx950", cycles=512, registers=(32, 16), reads=(8, 4)):
    """A loop over one product of tiles a and b, used in `over` parts."""
    a = [Fragment("a", i, registers[0] // over[0], reads[0] // over[0]) for i in range(over[0])]
    b = [Fragment("b", j, registers[1] // over[1], reads[1] // over[1]) for j in range(over[1])]
    share = cycles // (over[0] * over[1])
    bursts = tuple(
        Burst(Compute(f"product {i} {j}", (), (), "matrix", share // 16, share, 4), (a[i], b[j]))
        for i in range(over[0])
        for j in range(over[1])
    )
    return PipelinedLoop(target, 8, sources, bursts)


def direct(over=(1, 1), slots=4):
    return Source("a", over[0], slots, 16384 // over[0], 4 // over[0]), Source("b", over[1], slots, 16384, 4 // over[1])


STAGED = Source("a", 1, 2, 16384, 2, puts=2, registers=8), Source("b", 1, 2, 16384, 2, puts=2, registers=8)
QUARTERS = product(direct((2, 2), 2), (2, 2), cycles=1024, registers=(64, 32), reads=(16, 8))


def of(schedule, kind):
    return [op for cluster in schedule.body for op in cluster.ops if isinstance(op, kind)]


def memory(schedule):
    return [cluster for cluster in schedule.body if cluster.kind == "memory"]


def test_one_burst_a_step():
    schedule = ping_pong(product(direct()))
    check_schedule(schedule, GFX950)
    issued = [type(op) for op in memory(schedule)[0].ops if not isinstance(op, Fence | Priority)]
    assert issued == [Read, Read, LoadDirect, LoadDirect, Wait]
    assert of(schedule, Wait) == [Wait(vm=16, lgkm=0)]  # two steps of two tiles of four instructions stay in flight
    assert {op.value.step for op in of(schedule, Read)} == {1}
    assert {op.value.step for op in of(schedule, LoadDirect)} == {4}


def test_quarters_spread_reads_and_keep_twelve_loads_in_flight():
    """HipKittens' order of reads is 12, 4, 8, 4 and it leaves 6 in flight."""
    check_schedule(ping_pong(QUARTERS), GFX950)
    clusters = memory(ping_pong(QUARTERS))
    assert [sum(op.lgkm for op in c.ops if isinstance(op, Read)) for c in clusters] == [4, 8, 4, 8]
    assert [sum(op.vm for op in c.ops if isinstance(op, LoadDirect)) for c in clusters] == [2, 2, 2, 2]
    assert of(ping_pong(QUARTERS), Wait) == [Wait(vm=12, lgkm=0)] * 4


def test_fragments_that_no_burst_needs_together_share_registers():
    names = QUARTERS.buffers
    a0, a1, b0, b1 = (Fragment(t, i, 32 if t == "a" else 16, 8 if t == "a" else 4) for t in "ab" for i in (0, 1))
    assert names[a0] == names[a1]
    assert len({names[a0], names[b0], names[b1]}) == 3
    assert QUARTERS.registers == 32 + 16 + 16


def test_tiles_through_registers_are_written_before_they_are_loaded_again():
    schedule = ping_pong(product(STAGED, target="gfx942"))
    check_schedule(schedule, GFX942)
    assert [type(op) for op in memory(schedule)[0].ops if isinstance(op, Put | LoadRegisters)] == [
        Put,
        Put,
        LoadRegisters,
        LoadRegisters,
    ]
    assert of(schedule, Wait) == [Wait(vm=0), Wait(lgkm=0)]


def test_time_in_flight():
    """A load of step 4 goes out in step 0's memory cluster and is awaited in step 2's: two rounds of both groups."""
    assert flight(product(direct())) == 2 * 2 * 512
    assert flight(product(direct(slots=2), cycles=1024)) == 0
    assert flight(QUARTERS) == 6 * 2 * 256


def chain(late):
    """Attention's loop: a product, vector work, and a product with its result, `late` by a step or not."""
    k, v = (Fragment(name, 0, 32, 16, tracked=name == "k") for name in "kv")
    first, second = (Compute(f"product {i} 0 0", (), (), "matrix", 8, 256, 8) for i in (0, 1))
    work = [Compute(name, (), (), "vector", 60, 400) for name in ("before 1", "after")]
    bursts = Burst(first, (k,)), Burst(second, (v,), (work[0],), late)
    return PipelinedLoop("gfx950", 8, tuple(Source(n, 1, 2, 8192, 1) for n in "kv"), bursts, (work[1],))


def test_a_late_product_reads_the_tile_of_the_step_before():
    schedule = ping_pong(chain(late=1))
    check_schedule(schedule, GFX950)
    assert [(op.value.tile, op.value.step) for op in of(schedule, Read)] == [("v", -1), ("k", 1)]
    assert [(op.value.tile, op.value.step) for op in of(schedule, LoadDirect)] == [("k", 2), ("v", 1)]
    assert [wait.ties for wait in of(schedule, Wait)] == [("fragments 0",), ()]
    last = [type(op) for op in schedule.epilogues[0][-1].ops if not isinstance(op, Fence)]
    assert last == [Read, Wait, Compute]
    check_schedule(ping_pong(chain(late=0)), GFX950)


def chain_ahead():
    """The same in halves: of the first product, the first half is a step ahead, so that all vector work comes after it."""
    halves = {name: [Fragment(name, i, 16, 8, tracked=name == "k") for i in range(2)] for name in "kv"}
    order = ("k", 1, 0), ("v", 0, 1), ("v", 1, 1), ("k", 0, -1)
    work = Compute("vector", (), (), "vector", 30, 200)
    bursts = tuple(
        Burst(
            Compute(f"{tile} {i}", (), (), "matrix", 8, 256, 8), (halves[tile][i],), (work,) * (at > 0), late, (work,)
        )
        for at, (tile, i, late) in enumerate(order)
    )
    return PipelinedLoop("gfx950", 8, tuple(Source(n, 2, 2, 4096, 1) for n in "kv"), bursts, (work,))


def test_what_is_a_step_ahead_is_done_for_the_first_step_before_the_loop():
    schedule = ping_pong(chain_ahead())
    check_schedule(schedule, GFX950)
    reads = [(op.value.tile, op.value.part, op.value.step) for op in of(schedule, Read)]
    assert reads == [("v", 0, -1), ("v", 1, -1), ("k", 0, 1), ("k", 1, 1)]
    (first,) = (op for c in schedule.prologue for op in c.ops if isinstance(op, Compute))
    assert [(held.value.tile, held.value.part, held.value.step) for held in first.reads] == [("k", 0, 0)]
    assert all([type(op) for op in c.ops].count(Compute) == 2 for c in schedule.body if c.kind == "compute")


def levels(schedule):
    """Of a wave's priority, at all work and accesses of a round after the first, by unit or kind of op."""
    level, found = 0, {}
    for op in [op for cluster in schedule.body * 2 for op in cluster.ops]:
        if isinstance(op, Priority):
            level = op.level
        elif isinstance(op, Compute | Read | LoadDirect):
            found.setdefault(op.unit if isinstance(op, Compute) else "access", []).append(level)
    return {kind: set(seen[len(seen) // 2 :]) for kind, seen in found.items()}


@pytest.mark.parametrize("late", [0, 1])
def test_bursts_have_priority_over_vector_work_and_accesses_over_bursts(late):
    assert levels(ping_pong(chain(late))) == {"matrix": {1}, "vector": {0}, "access": {0}}
    assert levels(ping_pong(QUARTERS)) == {"matrix": {0}, "access": {1}}


def test_priority_comes_before_the_barrier_that_a_burst_waits_for():
    """What a wave does between barrier and burst, a step's beginning, would else be held up by the other group."""
    for cluster in memory(ping_pong(chain(1))):
        assert cluster.ops[-2:] == (Priority(1), Barrier())


def test_a_product_goes_round_its_loop_before_the_barrier():
    """What a step begins with would else keep its first burst waiting. Short bursts leave no time for that before."""
    schedule = ping_pong(product(direct((2, 2), 2), (2, 2), cycles=2048, registers=(64, 32), reads=(16, 8)))
    check_schedule(schedule, GFX950)
    assert [type(op) for op in schedule.body[0].ops] == [Fence, Barrier]
    assert [cluster.kind for cluster in schedule.body[1:]] == ["compute", "memory"] * 4
    assert not any(isinstance(op, Barrier) for op in schedule.body[-1].ops)
    assert len(of(schedule, Barrier)) == len(of(ping_pong(QUARTERS), Barrier)) == 8
    assert all(isinstance(cluster.ops[-1], Barrier) for cluster in ping_pong(QUARTERS).body)


@st.composite
def loops(draw):
    """Chains of products of their own tiles, in parts, with vector work between them."""
    slots, through = draw(st.integers(2, 4)), draw(st.booleans())
    sources, bursts, late = [], [], draw(st.integers(0, 1))
    count, cycles = draw(st.integers(1, 3)), draw(st.sampled_from([64, LONG]))
    for number in range(count):
        rows, cols = (1, 1) if through else (draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2])))
        vm, puts = draw(st.integers(1, 3)), draw(st.integers(1, 3)) if through else 0
        for name, parts in ((f"a{number}", rows), (f"b{number}", cols)):
            sources.append(Source(name, parts, slots, 512, vm, puts, 2 * puts))
        before = (Compute(f"before {number}", (), (), "vector", 8, 32),) if number and draw(st.booleans()) else ()
        for i in range(rows):
            for j in range(cols):
                tracked = draw(st.booleans())
                uses = Fragment(f"a{number}", i, 4, 2), Fragment(f"b{number}", j, 2, 1, tracked)
                work = Compute(f"product {number} {i} {j}", (), (), "matrix", 4, cycles, 4)
                bursts.append(Burst(work, uses, before if i == j == 0 else (), late if number == count - 1 else 0))
    return PipelinedLoop("gfx942" if through else "gfx950", 8, tuple(sources), tuple(bursts))


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])  # shrinking takes minutes
@given(loops())
def test_every_generated_schedule_is_sound(loop):
    schedule = ping_pong(loop)
    assert list(find_problems(schedule, GFX942 if loop.target == "gfx942" else GFX950)) == []
    waits = [op for op in of(schedule, Wait) if op.vm is not None]
    assert all(0 <= wait.vm <= GFX950.max_vmcnt for wait in waits)


@pytest.mark.parametrize("loop", [product(direct()), QUARTERS, chain_ahead()])
def test_a_weaker_wait_is_noticed(loop):
    """Each wait for loads is as weak as it can be."""
    schedule = ping_pong(loop)
    for at, cluster in enumerate(schedule.body):
        for index, op in enumerate(cluster.ops):
            if isinstance(op, Wait):
                weaker = replace(
                    cluster, ops=(*cluster.ops[:index], replace(op, vm=op.vm + 1), *cluster.ops[index + 1 :])
                )
                body = (*schedule.body[:at], weaker, *schedule.body[at + 1 :])
                assert list(find_problems(replace(schedule, body=body), GFX950))
