"""Every kind of problem on a schedule of a few ops, and that nothing is found in sound ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warpwave.backends.amd.arch import GFX942, GFX950
from warpwave.backends.amd.schedule.check import check_schedule, find_problems
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Cluster,
    Compute,
    Group,
    Held,
    Idle,
    LoadDirect,
    LoadRegisters,
    Part,
    Put,
    Read,
    RegisterTile,
    Scalar,
    Store,
    Wait,
)

from .oracle import first_fault
from .small import DATA, assembly, ping_pong, ring, staged, use


def problems(schedule, target=GFX950):
    return list(find_problems(schedule, target))


def kinds(schedule, target=GFX950):
    return {p.kind for p in problems(schedule, target)}


def with_body(schedule, *ops):
    return replace(schedule, body=(Cluster("all", ops),))


SOUND = {
    "ring": ring(),
    "two slots": ring(slots=2, ahead=1),
    "many slots": ring(slots=5, ahead=2, vm=3),
    "ping-pong": ping_pong(),
    "staged": staged(),
    "staged by the compiler": staged(tracked=True),
}


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found_in_what_is_sound(name):
    check_schedule(SOUND[name], GFX942 if "staged" in name else GFX950)
    assert first_fault(SOUND[name], 9) is None


def test_more_ahead_than_there_are_slots():
    found = problems(ring(slots=1, ahead=2))[0]
    assert (found.kind, found.where) == ("overwrite", "first[1] of prologue, group all")
    assert "overwrites A[0] of step 0 with A[0] of step 1 although the read by fetch[0] of body" in found.access
    assert first_fault(ring(slots=1, ahead=2), 9)


def test_loads_left_out_at_the_end_are_not_counted():
    """A wait for all but so many is too weak when fewer are issued."""
    schedule = ring(guarded=True)
    assert {(p.kind, p.where) for p in problems(schedule)} == {("landing", "fetch[0] of body, group all")}
    assert first_fault(schedule, 9)
    strict = replace(schedule, body=(Cluster("land", (Wait(vm=0), Barrier())), *schedule.body[1:]))
    assert not problems(strict)
    assert first_fault(strict, 9) is None


def test_unequal_barriers():
    schedule = ping_pong()
    uneven = replace(schedule, epilogues={0: schedule.epilogues[0][:1]})
    (found,) = problems(uneven)
    assert (found.kind, found.first_steps) == ("barriers", 0)
    assert found.access == "group lead to 1 and group lag to 2 barriers come"


def test_a_load_that_lands_after_the_loop():
    found = problems(replace(ring(), epilogues={0: ()}))
    assert {(p.kind, p.tile, p.missing) for p in found} == {("end", "A", "a wait for vmcnt")}
    assert "A[0] of step 0 is in flight at the end" in {p.access for p in found}


def test_one_wave_needs_no_barriers():
    alone = ring(waves=1)
    free = replace(
        alone,
        body=tuple(replace(c, ops=tuple(op for op in c.ops if not isinstance(op, Barrier))) for c in alone.body),
    )
    assert not problems(free)
    assert "landing" in kinds(replace(free, groups=(Group("all", 2),)))


def test_a_part_that_is_there_once_for_the_whole_loop():
    """It is loaded before the loop and read in every step."""
    base = ring()
    once = Part("A", 0, once=True)
    schedule = replace(
        base,
        prologue=(Cluster("first", (LoadDirect(once, 2), Wait(vm=0), Barrier())),),
        body=(
            Cluster("use", (Read(once, "a", 4), Wait(lgkm=0, ties=("a",)), replace(use(), reads=(Held("a", once),)))),
        ),
    )
    assert not problems(schedule)
    assert first_fault(schedule, 6) is None


# -- registers ----------------------------------------------------------------------------------------


def test_a_use_before_the_wait():
    base = ring()
    early = (Wait(vm=2), Barrier(), Read(DATA, "a", 4), use(), Wait(lgkm=0, ties=("a",)), Barrier())
    found = problems(with_body(base, *early, LoadDirect(Part("A", 0, 2), 2)))
    assert {(p.kind, p.tile, p.missing) for p in found} == {("register", "a", "a wait for lgkmcnt between them")}
    assert "uses a for A[0] of step 0 before the read by all[2] of body, group all has finished" in found[0].access


def test_a_stale_value():
    base = ring()
    stale = (*(op for c in base.body[:3] for op in c.ops), use(-1))
    found = problems(with_body(base, *stale))
    assert {p.kind for p in found} == {"value"}
    assert "uses a for A[0] of step -1, which holds A[0] of step 0" in found[0].access


def test_tracked_reads_wait_at_their_use_and_not_before():
    """The compiler waits before the product, which is too late for an overwrite after the barrier before it."""
    base = ring(slots=2, ahead=1)
    read = Read(DATA, "a", 4, tracked=True)
    late = (Wait(vm=0), Barrier(), read, Barrier(), LoadDirect(Part("A", 0, 1), 2), use())
    assert not problems(with_body(base, *late)), "the other slot is overwritten, whose read was used a step ago"
    same_slot = (Wait(vm=0), Barrier(), read, Barrier(), LoadDirect(Part("A", 0, 1, slot_of=0), 2), use())
    assert "overwrite" in kinds(with_body(base, *same_slot))


def test_pinned_tiles_that_share_registers():
    a, b = RegisterTile("a", 4, pinned=((0, 3),)), RegisterTile("b", 4, pinned=((2, 5),))
    c = RegisterTile("c", 4, pinned=((256, 259),))

    def vector(name, reads, writes):
        return Compute(name, tuple(map(Held, reads)), tuple(map(Held, writes)), "vector", 4, 16)

    fine = assembly((a, b, c), vector("1", "c", "a"), vector("2", "a", "c"), vector("3", "c", "b"))
    assert not problems(fine)
    clash = assembly((a, b, c), vector("1", "c", "a"), vector("2", "c", "b"), vector("3", "a", "c"))
    (found,) = problems(clash)
    assert (found.kind, found.tile, found.missing) == ("register", "a", "one live value for each register")
    assert found.access == "uses a, but v2 holds b since all[1] of prologue, group all"


def test_a_write_under_a_load_into_the_same_register():
    a, b = RegisterTile("a", 4, pinned=((0, 3),)), RegisterTile("b", 4, pinned=((3, 6),))
    fill = Compute("fill", (), (Held("b"),), "vector", 4, 16)
    load = LoadRegisters(Part("A"), "a", 1)
    (found,) = [p for p in problems(assembly((a, b), load, fill, Wait(vm=0))) if p.kind == "register"]
    assert "writes b while the load by all[0] of prologue, group all into v3 is in flight" in found.access
    assert not problems(assembly((a, b), load, Wait(vm=0), fill))


def test_a_wait_for_the_counter_of_what_is_older_is_enough():
    """Loads of one counter land in order."""
    tiles = (RegisterTile("a", 4), RegisterTile("b", 4), RegisterTile("c", 4))
    loads = [LoadRegisters(Part("A", i), name, 1) for i, name in enumerate("ab")]
    first = Compute("c", (Held("a", Part("A", 0)),), (Held("c"),), "vector", 1, 4)
    second = Compute("c", (Held("b", Part("A", 1)),), (Held("c"),), "vector", 1, 4)
    assert not problems(assembly(tiles, *loads, Wait(vm=1), first, Wait(vm=0), second))
    assert kinds(assembly(tiles, *loads, Wait(vm=1), second, Wait(vm=0))) == {"register"}


def test_stores_count_like_loads():
    tiles = (RegisterTile("a", 4), RegisterTile("c", 4))
    load, store = LoadRegisters(Part("A"), "a", 1), Store(Held("c"), 2)
    take = Compute("c", (Held("a", Part("A")),), (Held("c"),), "vector", 1, 4)
    assert not problems(assembly(tiles, load, store, Wait(vm=2), take))
    assert kinds(assembly(tiles, load, store, Wait(vm=3), take, Wait(vm=0))) == {"register"}


# -- hazards ------------------------------------------------------------------------------------------

MATRIX = Compute("m", (Held("a"),), (Held("c"),), "matrix", 1, 16, passes=4)
TILES = (RegisterTile("a", 4), RegisterTile("c", 4), RegisterTile("d", 4))
READS = Compute("v", (Held("c"),), (Held("d"),), "vector", 1, 4)
AS_FACTOR = Compute("n", (Held("c"),), (Held("d"),), "matrix", 1, 16, passes=4)
AGAIN = Compute("o", (Held("a"),), (Held("c"),), "matrix", 1, 16, passes=4)
EXP = Compute("e", (Held("d"),), (Held("a"),), "transcendental", 1, 8)
AFTER_EXP = Compute("f", (Held("a"),), (Held("d"),), "vector", 1, 4)


@pytest.mark.parametrize(
    ("first", "then", "states"),
    [
        (MATRIX, READS, (7, 8)),
        (MATRIX, AS_FACTOR, (7, 8)),
        (MATRIX, Store(Held("c"), 1), (7, 8)),
        (MATRIX, AGAIN, (0, 0)),
        (replace(MATRIX, passes=8), AGAIN, (9, 10)),
        (replace(MATRIX, passes=16), READS, (19, 20)),
        (AFTER_EXP, replace(AS_FACTOR, reads=(Held("d"),)), (2, 2)),
        (EXP, AFTER_EXP, (1, 1)),
    ],
    ids=["to vector", "to factor", "to store", "same", "other passes", "16 passes", "vector to matrix", "exp"],
)
@pytest.mark.parametrize("target", [GFX942, GFX950], ids=lambda t: t.name)
def test_wait_states(first, then, states, target):
    needed = states[target is GFX950]
    idle = [Idle(needed)] if needed else []
    assert not problems(assembly(TILES, first, *idle, then), target)
    if needed:
        (found,) = problems(assembly(TILES, first, Idle(needed - 1), then), target)
        assert (found.kind, found.missing) == ("hazard", "1 wait states between them")
        filled = [Scalar("bump", needed - 1), Barrier(), Idle(1)]
        assert not problems(assembly(TILES, first, *filled, then), target), "instructions are wait states, barriers not"


def test_the_compiler_takes_care_of_hazards_in_source():
    assert not problems(replace(assembly(TILES, MATRIX, READS), emission="source"))


# -- form and capacity --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (LoadDirect(Part("X"), 1), "uses the shared tile X"),
        (LoadDirect(Part("A", 1), 1), "uses part 1 of A, which has 1"),
        (LoadDirect(DATA, 1, (3,)), "uses pieces (3,) of A, which has 1"),
        (Read(DATA, "x", 1), "uses the register tile x"),
        (Put("x", DATA, 1), "uses the register tile x"),
        (Wait(vm=64), "waits for vmcnt(64), which holds 0 to 63"),
        (Wait(lgkm=16), "waits for lgkmcnt(16), which holds 0 to 15"),
        (Wait(ties=("x",)), "ties the register tile x"),
        (replace(use(), passes=3), "is a matrix op of 3 passes"),
    ],
)
def test_what_is_not_there(op, words):
    found = problems(with_body(ring(), op))
    assert (found[0].kind, found[0].access) == ("form", words)


def test_a_cluster_of_no_group():
    found = problems(replace(ring(), body=(Cluster("odd", (), only=("third",)),)))
    assert found[0].access == "is only of group third"


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        (RegisterTile("a", 16, 3), "16 registers in 3 pieces"),
        (RegisterTile("a", 16, pinned=((0, 7),)), "a has 16 registers and is pinned to 8"),
        (RegisterTile("a", 16, pinned=((500, 515),)), "a is pinned beyond a255"),
    ],
)
def test_impossible_registers(tile, words):
    assert words in [p.access for p in problems(replace(ring(), registers=(tile, RegisterTile("c", 16))))]


def test_too_much_lds():
    big = replace(ring(), shared=(replace(ring().shared[0], nbytes=60 << 10),))
    (found,) = problems(big)
    assert (found.kind, found.missing) == ("capacity", "20480 of 163840 bytes of LDS")


def test_registers_count_while_they_are_needed():
    tiles = (RegisterTile("a", 300), RegisterTile("c", 200))
    (found,) = problems(replace(ring(), registers=tiles, reserve=20))
    assert found.kind == "capacity"
    assert found.access == "a, c need 500 registers at once and 20 are for the rest"
    assert found.missing == "8 of the 512 registers a lane has"
    assert not problems(replace(ring(), registers=tiles, reserve=12))


def test_a_step_count_without_epilogue_is_not_covered():
    pairs = replace(ring(), period=2, tail=2, epilogues={2: ()})
    assert [n for n in range(8) if pairs.covers(n)] == [2, 4, 6]
    assert pairs.rounds(6) == 2
