"""Checker and interpreter say the same of every mutant and of random schedules: two algorithms, one verdict.

The checker orders intervals between barriers; the interpreter runs waves with values. Ties, hazards and capacity
are not the interpreter's, and not mutated here.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.arch import GFX950
from warpwave.backends.amd.schedule.check import check_waves, check_workgroup, find_problems
from warpwave.backends.amd.schedule.form import Schedule
from warpwave.backends.amd.schedule.interleave import Half, Quadrants, interleave
from warpwave.backends.amd.schedule.lengths import sufficient_lengths
from warpwave.backends.amd.schedule.producers import producer_consumer

from .mutants import mutants
from .oracle import first_fault
from .published import SOUND
from .small import ping_pong, ring, staged
from .test_producers import loop

SMALL = {
    "ring": ring(),
    "tight ring": ring(slots=2, ahead=2),
    "guarded ring": ring(slots=2, ahead=1, guarded=True),
    "ping-pong": ping_pong(),
    "staged": staged(),
    "staged by the compiler": staged(tracked=True),
    "producers": producer_consumer(loop(vm=(1, 1), waves=2), 1),
}
A, B = (Half(tile, 2, 1, 4, 1, 1, 4096) for tile in "ab")
LARGE = {
    **SOUND,
    "interleave": interleave(Quadrants("gfx950", A, B, 2, 4, 4)),
    "interleave, b whole": interleave(Quadrants("gfx950", A, replace(B, loads=2, parts=1), 2, 4, 4)),
}
LONGEST = 9  # steps of a loop that the interpreter runs; no mutant has needed more than 6
RANDOM = settings(max_examples=40, deadline=None)


def verdicts(schedule: Schedule) -> tuple[str | None, str | None]:
    """The first problem of each; None where there is none."""
    judged = ("barriers", "landing", "overwrite", "value", "register", "pointer", "end")
    problem = next((p for p in find_problems(schedule, GFX950) if p.kind in judged), None)
    fault = first_fault(schedule, LONGEST, tries=0)
    return problem and str(problem), fault and str(fault)


def disagreements(pairs):
    for name, mutant in pairs:
        checked, ran = verdicts(mutant)
        if (checked is None) != (ran is None):
            yield name, checked, ran


@pytest.mark.parametrize("name", SMALL)
def test_small_schedules(name):
    """All mutants. Some are caught and some are harmless, or the test would say nothing."""
    assert verdicts(SMALL[name]) == (None, None)
    pairs = list(mutants(SMALL[name]))
    assert list(disagreements(pairs)) == []
    caught = [m for _, m in pairs if verdicts(m)[0]]
    assert len(caught) > len(pairs) // 3


@pytest.mark.parametrize("name", LARGE)
def test_large_schedules(name):
    """Every so many mutants of the large ones; all of them are a sweep."""
    pairs = list(mutants(LARGE[name]))
    assert list(disagreements(pairs[:: len(pairs) // 3])) == []


@pytest.mark.sweep
@pytest.mark.parametrize("name", LARGE)
def test_all_mutants_of_large_schedules(name):
    assert list(disagreements(mutants(LARGE[name]))) == []


@pytest.mark.parametrize("name", ["tight ring", "ping-pong", "staged"])
def test_weaker_waits_and_missing_barriers_are_caught(name):
    """None of these schedules has a wait or a barrier too many."""
    for what, mutant in mutants(SMALL[name]):
        if what.endswith(("no wait", "no barrier")) and "drain" not in what:
            assert verdicts(mutant)[0], what


@pytest.mark.parametrize("name", SMALL)
def test_longer_loops_bring_nothing_new(name):
    """What is found up to the length that the checker stops at is found for much longer loops, and no more."""
    for _, mutant in list(mutants(SMALL[name]))[::9]:
        most = 2 * sufficient_lengths(mutant).steps[-1] + 7
        longer = [p.kind for p in (*check_waves(mutant, GFX950, most), *check_workgroup(mutant, most))]
        assert set(longer) <= {p.kind for p in find_problems(mutant, GFX950)}


@st.composite
def disturbed(draw):
    """A small schedule with up to three mutations, one after the other."""
    schedule = draw(
        st.one_of(
            st.builds(
                ring, slots=st.integers(1, 4), ahead=st.integers(1, 3), vm=st.integers(1, 3), guarded=st.booleans()
            ),
            st.builds(ping_pong, ahead=st.integers(1, 3), vm=st.integers(1, 2)),
            st.builds(staged, tracked=st.booleans()),
        )
    )
    schedule = replace(schedule, period=draw(st.sampled_from([1, 1, 1, 2])), tail=draw(st.integers(0, 1)))
    ends = dict.fromkeys(range(schedule.tail, schedule.tail + schedule.period), schedule.epilogues[0])
    schedule = replace(schedule, epilogues=ends)
    for _ in range(draw(st.integers(0, 3))):
        choices = [mutant for _, mutant in mutants(schedule)]
        schedule = draw(st.sampled_from(choices))
    return schedule


@RANDOM
@given(disturbed())
def test_random_schedules(schedule):
    checked, ran = verdicts(schedule)
    assert (checked is None) == (ran is None), (checked, ran)


@pytest.mark.sweep
@settings(RANDOM, max_examples=20_000)
@given(disturbed())
def test_many_random_schedules(schedule):
    checked, ran = verdicts(schedule)
    assert (checked is None) == (ran is None), (checked, ran)
