"""Producers and consumers: proven sound for every ring, and nothing in the schedule is there in vain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.arch import GFX950
from warpwave.backends.amd.schedule.check import check_schedule, find_problems
from warpwave.backends.amd.schedule.form import Barrier, Compute, LoadDirect, RegisterTile, Wait
from warpwave.backends.amd.schedule.pipelined import Burst, Fragment, PipelinedLoop, Source
from warpwave.backends.amd.schedule.producers import CONSUMERS, PRODUCERS, producer_consumer
from warpwave.tiles.errors import InternalError

from .mutants import mutants


def loop(slots=3, vm=(2, 4), *, waves=8, puts=0):
    """A product of two tiles in one burst."""
    sources = tuple(Source(t, 1, slots, 16384, n, puts) for t, n in zip("ab", vm, strict=True))
    fragments = tuple(Fragment(t, 0, 16, 4) for t in "ab")
    work = Compute("product 0 0 0", (), (), "matrix", 16, 256, 4)
    return PipelinedLoop("gfx950", waves, sources, (Burst(work, fragments),), held=(RegisterTile("product 0", 64),))


@given(st.integers(2, 5), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 2, 4]))
@settings(max_examples=20, deadline=None)
def test_any_ring_and_any_number_of_loads(slots, a, b, producers):
    check_schedule(producer_consumer(loop(slots, (a, b)), producers), GFX950)


def test_a_step_of_either_role():
    produce, consume = producer_consumer(loop(), 4).body
    assert (produce.only, consume.only) == ((PRODUCERS,), (CONSUMERS,))
    assert [op.value.step for op in produce.ops if isinstance(op, LoadDirect)] == [2, 2]
    assert [op for op in produce.ops if isinstance(op, Wait)] == [Wait(vm=6)]  # a step of six loads stays in flight
    assert [sum(isinstance(op, Barrier) for op in c.ops) for c in (produce, consume)] == [1, 1]


def test_weaker_waits_and_missing_barriers_are_caught():
    """But for what orders the loop with what comes before and after, and the wait for reads that are used by then."""
    for what, mutant in mutants(producer_consumer(loop(), 4)):
        weaker = what.endswith(("no wait", "no barrier")) or " vm " in what
        around = what.startswith("prologue nobody") or what.endswith("flight[1] no barrier")
        if weaker and not around and not what.startswith("body consume[5]"):
            assert list(find_problems(mutant, GFX950)), what


def test_it_is_for_whole_tiles_that_go_straight_to_lds():
    with pytest.raises(InternalError, match="straight to LDS"):
        producer_consumer(loop(puts=2), 4)
