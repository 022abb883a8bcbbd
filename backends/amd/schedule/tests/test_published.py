"""HipKittens' schedules: what is sound passes, and each hazard known from reading them is found and named."""

from __future__ import annotations

import pytest

from warpwave.backends.amd.arch import GFX950
from warpwave.backends.amd.schedule.check import check_schedule, find_problems
from warpwave.backends.amd.schedule.problems import ScheduleError

from .oracle import first_fault
from .published import PUBLISHED, SOUND, gemm_8_wave, gemm_8_wave_fp8, untied


def problems(schedule):
    return [(p.kind, p.tile, p.where.split(",")[0]) for p in find_problems(schedule, GFX950)]


@pytest.mark.parametrize("name", SOUND)
def test_sound_ones_pass(name):
    check_schedule(SOUND[name], GFX950)


def test_a_read_before_the_wait_that_lands_it():
    """bf16 GEMM: the even tile's M3 reads B0 of the next tile before its own vm(6) and barrier."""
    found = list(find_problems(PUBLISHED["bf16-8-wave"], GFX950))
    assert {(p.kind, p.tile, p.where) for p in found} == {
        ("landing", "B", f"M3.0[0] of body, group {group}") for group in ("lead", "lag")
    }
    assert str(found[0]) == (
        "M3.0[0] of body, group lead: reads B[0] of step 1 although the load by P2[0] of prologue, group lag need not "
        "have landed; missing: a barrier between the end of that load, known only at M3.0[2] of body, group lag, and "
        "the read"
    )


def test_the_same_in_the_epilogue_of_the_fp8_gemm():
    found = problems(gemm_8_wave_fp8(a_first=False, early_b0=True))
    assert set(found) == {("landing", "B", "E6[0] of epilogue")}


def test_an_overwrite_of_what_the_other_group_may_still_read():
    """fp8 GEMM: M1 overwrites A0 while the lagging group is only sure to have read B0."""
    found = list(find_problems(gemm_8_wave_fp8(a_first=True, early_b0=False), GFX950))
    assert [(p.kind, p.tile) for p in found] == [("overwrite", "A")]
    assert str(found[0]) == (
        "M1.0[1] of body, group lead: overwrites A[0] of step 0 with A[0] of step 2 although the read by M0.0[1] of "
        "body, group lag need not have finished; missing: a barrier between the end of that read, known only at "
        "C0.0[0] of body, group lag, and the overwrite"
    )


def test_an_overwrite_after_a_barrier_that_comes_too_early():
    """4-wave fp8 GEMM: the last barrier before cluster 3 is before the wait that ends all reads of A1."""
    found = list(find_problems(PUBLISHED["fp8-4-wave"], GFX950))
    assert [(p.kind, p.tile, p.where) for p in found] == [("overwrite", "A", "Q3.0[1] of body, group all")]
    assert "the read by Q1.0" in found[0].access
    assert "known only at Q2.0[2] of body" in found[0].missing


@pytest.mark.parametrize("name", ["bf16-8-wave", "attention"])
def test_waits_that_tie_nothing(name):
    """A bare s_waitcnt does not keep the compiler from moving a product above it."""
    found = list(find_problems(untied(SOUND[name]), GFX950))
    assert {p.kind for p in found} == {"tie"}
    assert all(f"{p.tile} as an operand of the wait" == p.missing for p in found)
    assert {"a", "b0", "b1"} <= {p.tile for p in found} or {"k", "v"} == {p.tile for p in found}


@pytest.mark.parametrize("name", PUBLISHED)
def test_values_go_wrong_exactly_where_a_hazard_is(name):
    """The interpreter sees the same: the published order fails for the three GEMMs, attention and all others do not."""
    assert (first_fault(PUBLISHED[name], 6, tries=0) is None) == (name == "attention")
    assert first_fault(SOUND[name], 6, tries=1) is None


def test_the_message_of_the_build():
    with pytest.raises(ScheduleError) as caught:
        check_schedule(gemm_8_wave(), GFX950)
    text = str(caught.value)
    assert text.startswith(
        "schedule HipKittens bf16 GEMM, 8 waves for gfx950 is unsound:\n  M3.0[0] of body, group lead"
    )
    assert "(from 4 steps on)" in text
    assert "hint: " in text
