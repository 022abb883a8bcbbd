"""What holds for every replay: bounds by busy parts, times that add up, slower parts never make a wave faster."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwave.backends.amd.model.chrome import chrome_trace, write_chrome_trace
from warpwave.backends.amd.model.cu import Memory, chip_of, sustained_clock
from warpwave.backends.amd.model.timing import STALLS, record
from warpwave.backends.amd.sim import LoadError
from warpwave.tiles.errors import UnsupportedError

from .micro import program, recorded, timed

LINES = [
    "v_mfma_f32_16x16x32_bf16 v[0:3], v[8:11], v[12:15], v[0:3]",
    "v_mfma_f32_32x32x16_bf16 v[32:47], v[8:11], v[12:15], v[32:47]",
    "v_add_f32_e32 v60, v61, v62",
    "v_add_f32_e32 v61, v60, v60",
    "v_exp_f32_e32 v63, v64",
    "v_pk_mul_f32 v[66:67], v[68:69], v[70:71]",
    "ds_read_b128 v[72:75], v95",
    "ds_write_b32 v94, v1",
    "s_waitcnt lgkmcnt(0)",
    "s_waitcnt lgkmcnt(2)",
    "s_nop 3",
    "s_setprio 1",
    "s_mov_b32 s22, 3",
]
CONTROL = ("s_waitcnt", "s_barrier", "s_nop", "s_setprio", "s_endpgm")  # the sequencer's own: they take no slot
SLOWER = ["trans", "barrier", "branch", "lds_latency", "scalar_latency"]
bodies = st.lists(st.sampled_from(LINES), min_size=1, max_size=40).map("\n".join)


def total(timing):
    return sum(timing.issued.values())


@settings(max_examples=25, deadline=None)
@given(body=bodies, waves=st.sampled_from([1, 3, 8]))
def test_times_add_up_and_respect_the_parts(body, waves):
    run = recorded(body, waves=waves)
    timing = run.timed()
    assert total(timing) == sum(len(run.steps(w)) for w in range(waves))
    assert all(share <= 1 for share in timing.utilisation.values())
    by_wave = [timing.issue(w).astype(np.int64) for w in range(waves)]
    slots = [np.array([run.facts[i]["name"] not in CONTROL for i in run.steps(w)["inst"]]) for w in range(waves)]
    assert all((np.diff(t[in_slot]) >= 4).all() for t, in_slot in zip(by_wave, slots, strict=True))
    waited = sum(int(t[-1] - t[0]) - 4 * int(s[:-1].sum()) for t, s in zip(by_wave, slots, strict=True))
    assert waited <= sum(timing.stalls().values()) <= waited + sum(int(t[0]) for t in by_wave)
    assert sum(sum(s.values()) for s in timing.stalls_by_line().values()) == sum(timing.stalls().values())
    assert set(timing.stalls()) <= set(STALLS)


@settings(max_examples=25, deadline=None)
@given(body=bodies, name=st.sampled_from(SLOWER), factor=st.integers(2, 5))
def test_a_slower_part_never_makes_a_wave_faster(body, name, factor):
    run = recorded(body)
    usual = run.timed()
    rate = {"trans": 8, "barrier": 8, "branch": 32, "lds_latency": 48, "scalar_latency": 48}[name]
    assert run.timed(**{name: rate * factor}).clocks >= usual.clocks


@settings(max_examples=15, deadline=None)
@given(body=bodies)
def test_a_second_wave_on_the_simd_never_ends_the_first_one_sooner_than_the_parts_allow(body):
    alone, shared = recorded(body).timed(), recorded(body, waves=8).timed()
    assert shared.clocks >= alone.clocks
    matrix = alone.utilisation["matrix"] * alone.clocks * 4  # clocks of the one core that it used
    assert shared.clocks >= 2 * matrix


def test_replays_repeat():
    run = recorded("\n".join(LINES), waves=8)
    assert run.timed().clocks == run.timed().clocks


def test_the_trace_holds_every_instruction_and_the_matrix_cores(tmp_path):
    run = recorded("\n".join(LINES), waves=2)
    timing = run.timed()
    events = chrome_trace(timing)["traceEvents"]
    on_waves = [e for e in events if e["ph"] == "X" and e["tid"] < 1000]
    assert len(on_waves) == total(timing)
    on_cores = sum(e["dur"] for e in events if e["ph"] == "X" and e["tid"] >= 1000)
    assert on_cores == pytest.approx(2 * (16 + 32) / 1e3)
    write_chrome_trace(timing, tmp_path / "t.json", start=0, stop=100)
    assert all(e["ts"] < 0.1 for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X")


def test_memory_is_slower_the_further_it_is():
    code = "v_mov_b32_e32 v1, 0\ns_load_dwordx2 s[24:25], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n"
    code += "global_load_dwordx4 v[4:7], v95, s[24:25]\ns_waitcnt vmcnt(0)"
    run = record(program(code), "k", (1,), (64,), [np.zeros(4096, np.uint8)])
    near, middle, far = (run.timed("MI355X", memory=m).clocks for m in (Memory(), Memory(0, 1), Memory(0, 0)))
    assert near < middle < far
    assert far - near == pytest.approx(500 * 2.4 - 288, abs=130)  # HBM 500 ns, L2 288 clocks, and their bandwidths


def test_a_clock_is_known_by_chip_and_dtype():
    chip = chip_of("gfx950", "MI355X")
    assert sustained_clock(chip, "f16") < sustained_clock(chip, "bf16") < chip.clock
    assert sustained_clock(chip, "fp8e4m3") == sustained_clock(chip, "bf8")
    assert sustained_clock(chip, "f32") == chip.clock
    assert sustained_clock(chip, "f16", 1.0) < sustained_clock(chip, "f16", 0.5) < sustained_clock(chip, "f16", 0.2)


def test_the_clock_that_a_dtype_keeps_up_settles_with_the_work():
    busy = recorded("s_barrier\n" + "\n".join([LINES[0]] * 200), waves=4)
    idle = recorded("s_barrier\n" + "\n".join([LINES[2]] * 200), waves=4)
    assert busy.timed(dtype="bf16").clock < idle.timed(dtype="bf16").clock == idle.timed().clock


def test_mistakes_are_named():
    run = recorded("s_nop 0")
    with pytest.raises(UnsupportedError, match="MI300X is no gfx950 chip"):
        run.timed("MI300X")
    with pytest.raises(UnsupportedError, match="no rate 'speed'"):
        run.timed(speed=3)
    with pytest.raises(UnsupportedError, match="no loop"):
        run.timed().extrapolated(10)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Memory(l2=1.5)
    with pytest.raises(LoadError, match="workgroups 0 to 0"):
        program("s_nop 0").launch("k", (1,), (64,), [], record=[1])
    with pytest.raises(LoadError, match="twice"):
        program("s_nop 0").launch("k", (2,), (64,), [], record=[1, 1])


def test_recording_runs_only_the_workgroups_named_and_changes_no_counts():
    code = program("s_nop 0")
    plain, some = code.launch("k", (5,), (64,), []), code.launch("k", (5,), (64,), [], record=[3, 1])
    assert (plain.workgroups, some.workgroups) == (5, 2)
    assert [group for group, _ in some.recordings] == [3, 1]
    assert plain.instructions * 2 == some.instructions * 5
    assert "recordings" not in some.to_dict()


def test_extrapolation_continues_the_steady_state():
    loop = "s_mov_b32 s22, {n}\n.Lloop:\n" + "\n".join([LINES[0]] * 6)
    loop += "\ns_sub_u32 s22, s22, 1\ns_cmp_lg_u32 s22, 0\ns_cbranch_scc1 .Lloop"
    short, long = (timed(loop.format(n=n)) for n in (8, 60))
    assert short.extrapolated(60) == pytest.approx(long.clocks, abs=16)


def test_workgroups_that_share_a_compute_unit_share_its_matrix_cores_but_no_barrier():
    """Two workgroups of four waves, one wave of each on every SIMD: twice the work, the cores never idle between."""
    code = program("s_barrier\n" + "\n".join([LINES[0]] * 50))
    one, two = (record(code, "k", (2,), (256,), [], groups=g).timed() for g in ([0], [0, 1]))
    assert [simd for _, simd, _ in two.recorded.waves] == [0, 1, 2, 3] * 2
    assert two.clocks - one.clocks == pytest.approx(50 * 16, abs=400)  # the second group's start is hidden or not
    assert two.utilisation["matrix"] > one.utilisation["matrix"]


def test_as_many_workgroups_as_fit_are_recorded_when_none_are_named():
    """96 registers a wave: five waves a SIMD; 32 KB of 160 KB: five workgroups; 600 workgroups on 256 units: three."""
    recorded_groups = record(program("s_nop 0"), "k", (600,), (256,), []).groups
    assert recorded_groups == (0, 256, 512)
    assert record(program("s_nop 0"), "k", (10,), (256,), []).groups == (0,)
