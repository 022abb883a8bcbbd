"""The 4-wave interleave: sound for every shape of it, its waits no stricter than needed, and its registers."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.arch import GFX950
from warpwave.backends.amd.schedule.allocate import allocate, parse_ranges, ranges_text
from warpwave.backends.amd.schedule.check import find_problems
from warpwave.backends.amd.schedule.form import (
    Barrier,
    Compute,
    Group,
    Held,
    Idle,
    LoadDirect,
    Part,
    Pointer,
    Read,
    RegisterTile,
    SharedTile,
    Wait,
)
from warpwave.backends.amd.schedule.interleave import Half, Quadrants, flight, interleave, one_by_one
from warpwave.tiles.errors import ResourceError, TileValueError

from .mutants import mutants
from .oracle import first_fault
from .small import assembly


def quadrants(blocks=4, depth=2, reads=1, loads=4, slots=2, passes=4, parts=(2, 2)):
    """By default 256 x 256 x 64 of bf16; `parts` in which a and b are loaded."""
    whole = (2 // n for n in parts)
    a, b = (
        Half(t, blocks, depth, 4 * reads, reads, loads * w, 8192 * w, 2 // w) for t, w in zip("ab", whole, strict=True)
    )
    return Quadrants("gfx950", a, b, slots, passes, 4, reserve=56)


SMALL = quadrants(blocks=2, depth=1, loads=1)


def ops(schedule, kind):
    return [op for cluster in schedule.body for op in cluster.ops if isinstance(op, kind)]


def test_a_step_of_bf16():
    """Per step of 64: what one wave must do for 128 x 128 of the result, three waits and two barriers."""
    schedule = interleave(quadrants())
    counts = {kind: len(ops(schedule, kind)) / schedule.period for kind in (Compute, Read, LoadDirect, Wait, Barrier)}
    assert counts == {Compute: 128, Read: 32, LoadDirect: 16, Wait: 3, Barrier: 2}
    assert [(w.vm, w.lgkm) for w in ops(schedule, Wait)] == [(16, 0), (None, 0), (16, 0)] * 2


def test_memory_instructions_stand_alone_between_products():
    """Never two in a row, and M0 is set before the product before a load."""
    for cluster in interleave(quadrants()).body:
        kinds = [type(op) for op in cluster.ops]
        memory = [kind in (Read, LoadDirect) for kind in kinds]
        assert not any(one and two for one, two in pairwise(memory))
        assert (Pointer, LoadDirect) not in pairwise(kinds)
        assert Idle not in kinds


def test_loads_without_room_stand_in_a_row_after_their_pointer():
    """128 x 128 x 128 of fp8: four products a quadrant, four reads and two loads."""
    cluster = interleave(quadrants(blocks=2, depth=1, reads=2, loads=2, passes=8)).body[0]
    kinds = [type(op) for op in cluster.ops[2:]]
    assert kinds == [
        *(Compute, Read, Pointer, Idle, LoadDirect),
        *(Compute, Read),
        *(Compute, Read, Read, LoadDirect),
        *(Compute,),
    ]


def test_each_load_finds_m0_where_it_writes():
    """Set for another part or step, or not at all, or so late that the load is the next instruction."""
    schedule = allocate(interleave(SMALL), GFX950)
    pointers = [(what, m) for what, m in mutants(schedule) if what.endswith(("pointer", "other part"))]
    assert len(pointers) == 2 * sum(isinstance(op, Pointer) for op in everything(schedule))
    for what, mutant in pointers[:: len(pointers) // 4]:
        assert {p.kind for p in find_problems(mutant, GFX950)} >= {"pointer"}, what
    before = [Pointer(Part("a", 0, 0)), LoadDirect(Part("a", 0, 0), 1, pointer=0)]
    for between, kinds in (((), ["hazard"]), ((Idle(1),), []), ((Wait(vm=0),), ["hazard"])):
        ops = (before[0], *between, before[1], Wait(vm=0))
        alone = replace(assembly((RegisterTile("x", 4),)), shared=(SharedTile("a", 1, 1, 1024),))
        alone = replace(alone, prologue=(replace(alone.prologue[0], ops=ops),))
        assert [p.kind for p in find_problems(alone, GFX950)] == kinds


def test_what_is_said_of_a_wrong_pointer():
    schedule = allocate(interleave(SMALL), GFX950)
    mutant = next(m for what, m in mutants(schedule) if what.startswith("body") and what.endswith("no pointer"))
    first = next(p for p in find_problems(mutant, GFX950) if p.kind == "pointer")
    assert re.search(
        r"loads a\[0\] of step \d by M0, which points to piece 0 of a\[1\] of step 1 since fill", str(first)
    )
    assert "M0 set to piece 0 of that part before the load" in str(first)


def everything(schedule):
    phases = (schedule.prologue, schedule.body, *schedule.epilogues.values())
    return [op for clusters in phases for cluster in clusters for op in cluster.ops]


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    blocks=st.sampled_from([2, 2, 3]),
    depth=st.integers(1, 2),
    reads=st.integers(1, 2),
    loads=st.integers(1, 5),
    slots=st.integers(2, 3),
    passes=st.sampled_from([4, 8, 16]),
    parts=st.sampled_from([(2, 1), (1, 2), (1, 1), (2, 2)]),
)
def test_every_one_is_sound(blocks, depth, reads, loads, slots, passes, parts):
    loop = quadrants(blocks, depth, reads, loads, slots, passes, parts)
    schedule = allocate(interleave(loop), GFX950)
    assert list(find_problems(schedule, GFX950)) == []
    assert first_fault(schedule, 2 * slots + 1, tries=0) is None
    single = replace(one_by_one(loop), registers=schedule.registers)
    assert list(find_problems(single, GFX950)) == []
    assert first_fault(single, 3, tries=0) is None


def test_tiles_that_are_loaded_whole_are_in_flight_for_less_long():
    """Of 2048 clocks a step: the last of b's eight loads is the second of six in quadrant 3."""
    assert flight(quadrants()) == 2048
    assert flight(quadrants(parts=(2, 1))) == 512 * 8 // 3
    assert flight(quadrants(parts=(1, 1))) == 1024
    assert flight(quadrants(parts=(1, 1), slots=3)) == 1024 + 2048


@pytest.mark.parametrize("parts", [(2, 2), (2, 1)])
def test_each_wait_is_as_weak_as_it_can_be(parts):
    schedule = interleave(quadrants(blocks=2, depth=1, loads=1, parts=parts))
    for at, cluster in enumerate(schedule.body[: len(schedule.body) // 2]):
        for number, op in enumerate(cluster.ops):
            if isinstance(op, Wait) and op.vm is not None:
                weaker = (*cluster.ops[:number], replace(op, vm=op.vm + 1), *cluster.ops[number + 1 :])
                body = (*schedule.body[:at], replace(cluster, ops=weaker), *schedule.body[at + 1 :])
                assert any(p.kind == "landing" for p in find_problems(replace(schedule, body=body), GFX950))


# -- registers ----------------------------------------------------------------------------------------


def test_registers_of_the_bf16_product():
    """All accumulators in the 256 accumulation registers, fragments at the top of the others."""
    found = {tile.name: ranges_text(tile.pinned) for tile in allocate(interleave(quadrants()), GFX950).registers}
    assert found == {
        "c00": "a0-a63",
        "c01": "a64-a127",
        "c10": "a128-a191",
        "c11": "a192-a255",
        "a0": "v224-v255",
        "a1": "v192-v223",
        "b0": "v160-v191",
        "b1": "v128-v159",
    }


def test_tiles_that_are_not_needed_together_share_registers():
    tiles = tuple(RegisterTile(name, 200) for name in ("x", "y", "z"))
    one, two = (Compute("use", (Held(name, Part("t")),), (Held("z"),), "vector", 1, 4) for name in ("x", "y"))
    fill_x, fill_y = (Compute("fill", (), (Held(name, Part("t")),), "vector", 1, 4) for name in ("x", "y"))
    alone = replace(assembly((*tiles[:2], RegisterTile("z", 50)), fill_x, one, fill_y, two), reserve=6)
    found = {tile.name: tile.pinned for tile in allocate(alone, GFX950).registers}
    assert found["x"] == found["y"]
    assert list(find_problems(allocate(alone, GFX950), GFX950)) == []
    together = replace(alone, prologue=(replace(alone.prologue[0], ops=(fill_x, fill_y, one, two)),))
    with pytest.raises(
        ResourceError, match=r"no 200 registers in a row are left for [xy] on gfx950; the first 6 are for"
    ):
        allocate(together, GFX950)


def test_what_vector_instructions_use_is_in_vector_registers():
    """Even where a matrix instruction has written it."""
    tiles = (RegisterTile("p", 100), RegisterTile("q", 100), RegisterTile("f", 4))
    matrix = [Compute("m", (Held("f"),), (Held(name),), "matrix", 1, 16, 4) for name in "pq"]
    vector = Compute("v", (Held("p"),), (Held("p"),), "vector", 1, 4)
    found = {tile.name: tile.pinned[0][0] for tile in allocate(assembly(tiles, *matrix, vector), GFX950).registers}
    assert found["p"] < 256 <= found["q"]


def test_tiles_are_pinned_by_hand():
    by_hand = parse_ranges("c00=a192-a255, a0=v64-v79+v96-v111")
    found = {t.name: ranges_text(t.pinned) for t in allocate(interleave(quadrants()), GFX950, by_hand).registers}
    assert found["c00"] == "a192-a255"
    assert found["a0"] == "v64-v79, v96-v111"
    assert found["c01"] == "a0-a63"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a0=v128-v159,b0=v130-v161", "gives (a0|b0) and (a0|b0) the same registers"),
        ("a0=v64-v79", "gives a0 16 registers"),
        ("a0=v64-v95+v80-v95", "gives a0 32 registers"),
        ("a0=v0-v31", "gives a0 registers among the first 56"),
    ],
)
def test_pins_that_cannot_be(text, words):
    with pytest.raises(TileValueError, match=words):
        allocate(interleave(quadrants()), GFX950, parse_ranges(text))


def test_registers_that_clash_are_found_by_the_checker():
    schedule = allocate(interleave(quadrants()), GFX950)
    place = {tile.name: tile.pinned for tile in schedule.registers}
    both = tuple(replace(t, pinned=place["a0"]) if t.name == "b0" else t for t in schedule.registers)
    problems = list(find_problems(replace(schedule, registers=both), GFX950))
    assert any(p.missing == "one live value for each register" for p in problems)


def test_fragments_of_two_pieces_are_pinned_as_a_row():
    """An fp8 fragment is brought by two reads of four registers, and is one operand of eight."""
    with pytest.raises(TileValueError, match="is no row of whole pieces of a0, 8 registers each"):
        allocate(interleave(quadrants(depth=1, reads=2)), GFX950, parse_ranges("a0=v64-v67+v72-v99"))


@pytest.mark.parametrize("text", ["a0", "a0=", "=a0-a3", "a0=v3-v1", "a0=v1-a3", "a0=v0-v256", "a0=x0-x3"])
def test_ranges_that_are_none(text):
    with pytest.raises(TileValueError, match="which is no range of registers"):
        parse_ranges(text)


@pytest.mark.parametrize("text", ["a0=v65-v96", "a0=v64-v78+v80-v96"])
def test_pieces_are_rows(text):
    with pytest.raises(TileValueError, match="is no row of whole pieces of a0, 4 registers each"):
        allocate(interleave(quadrants()), GFX950, parse_ranges(text))


def test_eight_waves_have_no_accumulation_registers_to_spare():
    """With two waves a SIMD, 256 registers of a lane are all there are."""
    eight = replace(interleave(SMALL), groups=(Group("all", 8),))
    assert all(last < 256 for tile in allocate(eight, GFX950).registers for _, last in tile.pinned)
