"""Micro-kernels whose clocks follow from the published rates by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from warpwave.backends.amd.model.timing import record

from .micro import instruction_times, program, span, timed

CHAIN = "v_mfma_f32_16x16x32_bf16 v[0:3], v[8:11], v[12:15], v[0:3]"
SMALL = "v_mfma_f32_16x16x16_bf16 v[0:3], v[8:9], v[10:11], v[0:3]"
LONG = "v_mfma_f32_32x32x16_bf16 v[32:47], v[8:11], v[12:15], v[32:47]"
WIDE = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3]"
F32 = "v_mfma_f32_16x16x4_f32 v[0:3], v8, v9, v[0:3]"


def body(*lines, times=1):
    return "\n".join(list(lines) * times)


@pytest.mark.parametrize(
    ("target", "line", "passes"),
    [
        ("gfx950", CHAIN, 4),
        ("gfx950", LONG, 8),
        ("gfx950", WIDE, 8),
        ("gfx950", F32, 8),
        ("gfx942", SMALL, 4),
        ("gfx942", F32, 8),
    ],
)
def test_matrix_instructions_that_accumulate_follow_each_other_after_their_passes(target, line, passes):
    timing = timed(body(line, times=40), target)
    assert span(timing, line.split()[0]) == 39 * 4 * passes


def test_independent_matrix_instructions_are_no_faster_than_the_core():
    lines = [f"v_mfma_f32_16x16x32_bf16 v[{r}:{r + 3}], v[8:11], v[12:15], v[{r}:{r + 3}]" for r in range(16, 48, 4)]
    timing = timed(body(*lines, times=10))
    assert span(timing, "v_mfma_f32_16x16x32_bf16") == 79 * 16


def test_a_factor_from_another_product_waits_for_the_whole_result():
    """CDNA4 hazard table: 8 wait states after 4 passes, so the next issues in the ninth slot after it."""
    timing = timed(body(CHAIN, "v_mfma_f32_16x16x32_bf16 v[4:7], v[0:3], v[12:15], v[4:7]"))
    assert span(timing, "v_mfma_f32_16x16x32_bf16") == 4 * 9


@pytest.mark.parametrize("waves", [1, 2, 4])
def test_vector_instructions_of_a_wave_take_a_slot_each(waves):
    timing = timed(body("v_add_f32_e32 v1, v1, v2", times=50), waves=waves)
    assert all(span(timing, "v_add_f32", w) == 49 * 4 for w in range(waves))


@pytest.mark.parametrize(("target", "clocks"), [("gfx942", 16), ("gfx950", 8)])
def test_transcendentals_run_at_quarter_rate_doubled_on_cdna4(target, clocks):
    timing = timed(body("v_exp_f32_e32 v1, v2", times=30), target)
    assert span(timing, "v_exp_f32") == 29 * clocks


def test_two_waves_of_a_simd_share_the_vector_port():
    """Eight waves go round four SIMDs: waves 0 and 4 issue vector instructions in turn."""
    timing = timed(body("s_barrier", *["v_add_f32_e32 v1, v1, v2"] * 50), waves=8)
    first, last = (instruction_times(timing, "v_add_f32", wave) for wave in (0, 4))
    assert max(first[-1], last[-1]) - min(first[0], last[0]) == 99 * 4


def test_two_waves_of_a_simd_share_the_matrix_core():
    timing = timed(body("s_barrier", *[CHAIN] * 20), waves=8)
    times = sorted(
        instruction_times(timing, "v_mfma_f32_16x16x32_bf16", 0)
        + instruction_times(timing, "v_mfma_f32_16x16x32_bf16", 4)
    )
    assert times[-1] - times[0] == 39 * 16


@pytest.mark.parametrize(("target", "line", "slots"), [("gfx950", CHAIN, 2), ("gfx942", SMALL, 1), ("gfx950", WIDE, 3)])
def test_vector_instructions_run_beside_a_matrix_instruction_after_its_operands_are_read(target, line, slots):
    """LLVM pull request 233721: one slot, and one more per 16 bytes of the wider operand."""
    timing = timed(body(line, "v_add_f32_e32 v60, v61, v62"), target)
    matrix, add = instruction_times(timing, line.split()[0])[0], instruction_times(timing, "v_add_f32")[0]
    assert add - matrix == 4 * slots


def test_packed_f32_waits_until_the_matrix_core_has_drained():
    """LLVM pull request 233721: three slots after the passes when an operand has 16 bytes."""
    timing = timed(body(CHAIN, "v_pk_mul_f32 v[60:61], v[62:63], v[64:65]"))
    matrix = instruction_times(timing, "v_mfma_f32_16x16x32_bf16")[0]
    assert instruction_times(timing, "v_pk_mul_f32")[0] - matrix == 4 * (4 + 3)


def test_vector_work_hides_under_the_matrix_work_of_the_same_wave():
    """Two adds in the two slots that are left of four."""
    timing = timed(body(CHAIN, "v_add_f32_e32 v60, v61, v62", "v_add_f32_e32 v63, v64, v65", times=20))
    assert span(timing, "v_mfma_f32_16x16x32_bf16") == 19 * 16


@pytest.mark.parametrize("states", [0, 3, 15])
def test_nops_take_their_states(states):
    timing = timed(body("s_nop 0", f"s_nop {states}", "s_mov_b32 s22, 0", "s_mov_b32 s23, 0"))
    nops, moves = instruction_times(timing, "s_nop"), instruction_times(timing, "s_mov_b32")
    assert moves[-2] - nops[-1] == 4 * (states + 1)


def test_a_dword_from_lds_takes_52_clocks():
    """mt4g, MI300X: the wait behind a read lets the next instruction pass 52 clocks after the read."""
    timing = timed(body("ds_read_b32 v60, v94", "s_waitcnt lgkmcnt(0)"), "gfx942")
    read, wait = instruction_times(timing, "ds_read_b32")[0], instruction_times(timing, "s_waitcnt")[-1]
    assert wait - read == 52


@pytest.mark.parametrize(
    ("target", "read", "waves", "clocks"),
    [
        ("gfx950", "ds_read_b128 v[60:63], v95", 1, 8),  # 1 KB through a port of 128 bytes
        ("gfx942", "ds_read_b128 v[60:63], v95", 1, 16),  # of 64
        ("gfx950", "ds_read_b128 v[60:63], v95", 2, 16),  # SIMDs 0 and 1 share a port
        ("gfx950", "ds_read_b128 v[60:63], v95", 4, 16),  # two ports: 256 bytes a clock
        ("gfx942", "ds_read_b128 v[60:63], v95", 4, 32),
    ],
)
def test_reads_of_lds_run_at_the_width_of_their_port(target, read, waves, clocks):
    """All waves read twelve times; their waits end one by one as the data comes."""
    timing = timed(body("s_barrier", *[read] * 12, "s_waitcnt lgkmcnt(0)"), target, waves)
    ends = [instruction_times(timing, "s_waitcnt", w)[-1] for w in range(waves)]
    starts = [instruction_times(timing, "ds_read_b128", w)[0] for w in range(waves)]
    assert max(ends) - min(starts) == pytest.approx(12 * clocks + 48 + 4, abs=8)


@pytest.mark.parametrize(("stride", "ways"), [(4, 1), (8, 1), (256, 32), (128, 16)])
def test_bank_conflicts_serialise(stride, ways):
    """b32 reads of 32 lanes at 64 banks: lanes `stride` bytes apart meet in a bank `ways` times."""
    address = f"v_mul_u32_u24_e32 v93, {stride}, v0"
    lines = ["v_and_b32_e32 v92, 31, v0", address.replace("v0", "v92"), *["ds_read_b32 v60, v93"] * 8]
    timing = timed(body(*lines, "s_waitcnt lgkmcnt(0)"))
    read, wait = instruction_times(timing, "ds_read_b32")[0], instruction_times(timing, "s_waitcnt")[-1]
    assert wait - read == pytest.approx(8 * max(4, 2 * ways) + 48, abs=8)


@pytest.mark.parametrize(("read", "clocks"), [("ds_read_b64 v[60:61], v95", 4), ("ds_read_b128 v[60:63], v95", 8)])
def test_a_port_serves_its_two_simds_at_128_bytes_a_clock(read, clocks):
    """AMD's Gluon tutorial: a b128 each 16 clocks and SIMD, a b64 each 8, when both SIMDs of the pair read."""
    timing = timed(body("s_barrier", *[read] * 14, "s_waitcnt lgkmcnt(0)"), waves=2)
    name = read.split()[0]
    starts, ends = (
        [instruction_times(timing, what, w)[-1 if what == "s_waitcnt" else 0] for w in (0, 1)]
        for what in (name, "s_waitcnt")
    )
    assert max(ends) - min(starts) == pytest.approx(28 * clocks + 52, abs=8)


def test_eight_reads_are_taken_at_once():
    """Eight wait between a pair of SIMDs and LDS; with four waves that read 32 dwords of one bank, none is served soon."""
    lines = ["v_and_b32_e32 v92, 31, v0", "v_mul_u32_u24_e32 v93, 256, v92", "s_barrier"]
    timing = timed(body(*lines, *["ds_read_b32 v60, v93"] * 6), waves=4)
    times = sorted(t for w in (0, 1) for t in instruction_times(timing, "ds_read_b32", w))
    assert times[7] - times[0] <= 8 * 4
    assert times[8] - times[7] >= 64


def test_loads_beyond_the_vector_cache_wait_for_room():
    """32 KB in flight and 12 in the queue; the cache takes 16 clocks for 16 bytes a lane (AMD's Gluon tutorial)."""
    lines = ["s_load_dwordx2 s[24:25], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)"]
    lines += ["global_load_dwordx4 v[4:7], v95, s[24:25]"] * 50
    run = record(program(body(*lines)), "k", (1,), (64,), [np.zeros(1024, np.uint8)])
    times = instruction_times(run.timed(latency=[1000.0, 1000.0, 1000.0]), "global_load_dwordx4")
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert gaps[:11] == [4] * 11  # the queue takes a dozen at once
    assert set(gaps[16:42]) == {16}  # then at the pace of the cache
    assert times[44] - times[43] > 100  # 32 in flight and 12 behind them: until the first returns
    assert times[44] - times[0] == pytest.approx(1000, abs=64)


def test_a_counted_wait_lets_the_younger_reads_float():
    lines = [f"ds_read_b128 v[{r}:{r + 3}], v95" for r in range(40, 88, 4)]
    waits = [timed(body(*lines, f"s_waitcnt lgkmcnt({left})", "s_waitcnt lgkmcnt(0)")) for left in (11, 6, 0)]
    ends = [instruction_times(t, "s_waitcnt")[-2] - instruction_times(t, "ds_read_b128")[0] for t in waits]
    assert ends[0] < ends[1] < ends[2]
    assert ends[2] - ends[1] == 6 * 8


def test_a_barrier_holds_all_until_the_last_and_then_releases_together():
    timing = timed(body("s_barrier", "s_barrier", "s_nop 0"), waves=4, barrier=8)
    after = [instruction_times(timing, "s_nop", w)[-1] for w in range(4)]
    last = max(instruction_times(timing, "s_barrier", w)[-1] for w in range(4))
    assert all(last + 8 <= t < last + 8 + 4 for t in after)


def test_the_wave_with_priority_goes_first():
    """Both waves of SIMD 0 are ready after the barrier; only wave 4 raises its priority."""
    lines = [
        "v_readfirstlane_b32 s30, v0",
        "s_nop 4",
        "s_cmp_lt_u32 s30, 256",
        "s_cbranch_scc1 .Llow",
        "s_setprio 3",
        ".Llow:",
    ]
    timing = timed(body(*lines, "s_barrier", *["v_add_f32_e32 v1, v1, v2"] * 30), waves=8)
    low, high = (instruction_times(timing, "v_add_f32", wave) for wave in (0, 4))
    assert high[-1] - high[0] == 29 * 4
    assert low[0] > high[-1]


def test_a_taken_branch_costs_what_the_table_says():
    lines = ["s_mov_b32 s22, 5", ".Lloop:", "s_sub_u32 s22, s22, 1", "s_cmp_lg_u32 s22, 0", "s_cbranch_scc1 .Lloop"]
    timing = timed(body(*lines), branch=32)
    times = instruction_times(timing, "s_sub_u32")
    assert {b - a for a, b in itertools.pairwise(times)} == {8 + 32}
    assert timing.loop is not None
    assert timing.loop.iterations == 5
    assert timing.loop.clocks == 40


def test_sixteen_waves_fill_four_slots_of_each_simd():
    timing = timed(body("s_barrier", *["v_add_f32_e32 v1, v1, v2"] * 10), waves=16)
    times = [t for w in range(0, 16, 4) for t in instruction_times(timing, "v_add_f32", w)]
    assert max(times) - min(times) == (4 * 10 - 1) * 4


def test_the_loop_is_found_with_its_steady_state():
    """Four waves, one a SIMD: 6 products of 16 clocks, 3 scalar slots of which the branch hides none."""
    lines = ["s_mov_b32 s22, 40", ".Lloop:", *[CHAIN] * 6]
    lines += ["s_sub_u32 s22, s22, 1", "s_cmp_lg_u32 s22, 0", "s_cbranch_scc1 .Lloop"]
    timing = timed(body(*lines), waves=4)
    loop = timing.loop
    assert loop is not None
    assert loop.iterations == 40
    assert loop.clocks == 5 * 16 + 4 + 4 + 4 + 32
    assert loop.matrix_busy == pytest.approx(96 / loop.clocks, abs=0.01)


def test_a_nested_loop_counts_as_the_inner_one():
    lines = ["s_mov_b32 s23, 3", ".Louter:", "s_mov_b32 s22, 20", ".Linner:", CHAIN, "s_sub_u32 s22, s22, 1"]
    lines += ["s_cmp_lg_u32 s22, 0", "s_cbranch_scc1 .Linner", "s_sub_u32 s23, s23, 1", "s_cmp_lg_u32 s23, 0"]
    timing = timed(body(*lines, "s_cbranch_scc1 .Louter"))
    assert timing.loop is not None
    assert timing.recorded.facts[timing.loop.branch]["text"].endswith(".Linner")
