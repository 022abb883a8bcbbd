"""Ordering between workgroups and waves: what counts as a race, and what correct code may do."""

from __future__ import annotations

import numpy as np
import pytest

from ._compile import TARGETS
from ._snippets import refused, run

pytestmark = pytest.mark.parametrize("target", TARGETS)

# Workgroup s2 writes its value to dword s2 of the result, then raises a counter; the last one adds them up.
PUBLISH = [
    "s_mov_b64 s[20:21], exec",
    "s_mov_b64 exec, 1",
    "s_add_u32 s12, s2, 5",
    "s_lshl_b32 s13, s2, 2",
    "v_mov_b32_e32 v5, s12",
    "v_mov_b32_e32 v6, s13",
    "global_store_dword v6, v5, s[6:7]",
    "s_waitcnt vmcnt(0)",
]
COUNT = [
    "v_mov_b32_e32 v7, 0",
    "v_mov_b32_e32 v8, 1",
    "global_atomic_add v9, v7, v8, s[6:7] offset:1024 sc0",
    "s_waitcnt vmcnt(0)",
    "v_readfirstlane_b32 s14, v9",
    "s_cmp_lg_u32 s14, 3",
    "s_cbranch_scc1 .Ldone",
]
COLLECT = [
    "v_mov_b32_e32 v10, 0",
    *(
        line
        for i in range(4)
        for line in (
            f"global_load_dword v11, v7, s[6:7] offset:{4 * i}",
            "s_waitcnt vmcnt(0)",
            "v_add_u32_e32 v10, v10, v11",
        )
    ),
    "global_store_dword v7, v10, s[6:7] offset:1028",
    ".Ldone:",
]


@pytest.mark.parametrize("seed", range(6))
def test_the_last_workgroup_may_read_what_the_others_published(target, seed):
    got = run([*PUBLISH, *COUNT, *COLLECT], target, grid=(4, 1, 1), seed=seed)
    assert got[257] == 5 + 6 + 7 + 8


@pytest.mark.parametrize("seed", range(6))
def test_without_the_counter_the_same_reads_race(target, seed):
    choose = ["v_mov_b32_e32 v7, 0", "s_cmp_lg_u32 s2, 3", "s_cbranch_scc1 .Ldone"]
    refused("global_race", [*PUBLISH, *choose, *COLLECT], target, grid=(4, 1, 1), seed=seed)


@pytest.mark.parametrize("seed", range(4))
def test_a_workgroup_may_wait_for_a_flag_of_a_later_one(target, seed):
    """Workgroup 0 spins on a flag that workgroup 1 raises: needs workgroups in flight together."""
    body = ["s_mov_b64 exec, 1", "v_mov_b32_e32 v7, 0", "s_cmp_eq_u32 s2, 0", "s_cbranch_scc1 .Lspin"]
    raise_flag = [
        "v_mov_b32_e32 v5, 42",
        "global_store_dword v7, v5, s[6:7]",
        "s_waitcnt vmcnt(0)",
        "v_mov_b32_e32 v6, 1",
    ]
    raise_flag += ["global_store_dword v7, v6, s[6:7] offset:64 sc1", "s_branch .Ldone"]
    spin = [
        ".Lspin:",
        "global_load_dword v8, v7, s[6:7] offset:64 sc1",
        "s_waitcnt vmcnt(0)",
        "v_readfirstlane_b32 s14, v8",
    ]
    spin += ["s_cmp_eq_u32 s14, 0", "s_cbranch_scc1 .Lspin", "global_load_dword v9, v7, s[6:7]", "s_waitcnt vmcnt(0)"]
    got = run(
        [*body, *raise_flag, *spin, "global_store_dword v7, v9, s[6:7] offset:128", ".Ldone:"],
        target,
        grid=(2, 1, 1),
        seed=seed,
    )
    assert got[32] == 42


def test_a_flag_that_nobody_raises_is_a_deadlock(target):
    spin = ["v_mov_b32_e32 v7, 0", ".Lspin:", "global_load_dword v8, v7, s[6:7] sc1", "s_waitcnt vmcnt(0)"]
    spin += ["v_readfirstlane_b32 s14, v8", "s_cmp_eq_u32 s14, 0", "s_cbranch_scc1 .Lspin"]
    refused("deadlock", spin, target)


def test_neighbouring_bytes_of_two_workgroups_do_not_race(target):
    body = ["v_lshlrev_b32_e32 v3, 2, v1", "s_lshl_b32 s12, s2, 1", "v_add_u32_e32 v3, s12, v3", "v_mov_b32_e32 v5, s2"]
    got = run([*body, "global_store_short v3, v5, s[6:7]"], target, grid=(2, 1, 1))
    assert (got[: 4 * 64 : 4] == 0x10000).all()


@pytest.mark.parametrize("seed", range(4))
def test_float_atomics_add_in_a_repeatable_order(target, seed):
    body = ["v_cvt_f32_u32_e32 v5, v1", "v_rcp_f32_e32 v5, v5", "v_mov_b32_e32 v6, 0", "s_add_u32 s12, s2, 1"]
    body += ["v_cvt_f32_u32_e32 v7, s12", "v_mul_f32_e32 v5, v5, v7", "v_add_f32_e32 v5, 0.1, v7"]
    atomic = "global_atomic_add_f32 v6, v5, s[6:7]"
    first = run([*body, atomic], target, grid=(64, 1, 1), seed=seed)[0]
    assert first == run([*body, atomic], target, grid=(64, 1, 1), seed=seed)[0]


HALF = ["v_lshlrev_b32_e32 v2, 1, v1", "s_lshl_b32 s12, s3, 1"]


def test_waves_may_write_the_two_halves_of_a_dword(target):
    body = [
        "v_add_u32_e32 v2, s12, v0",
        "v_mov_b32_e32 v5, s3",
        "ds_write_b16 v2, v5",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
    ]
    read = ["ds_read_b32 v6, v0", "s_waitcnt lgkmcnt(0)", "global_store_dword v1, v6, s[6:7]"]
    got = run([HALF[1], *body, *read], target, waves=2, lds=256)
    assert (got[:128] == 0x10000).all()


def test_a_read_that_is_still_outstanding_at_the_barrier_races_with_the_next_write(target):
    fill = [
        "ds_write_b32 v1, v1",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
        "v_xor_b32_e32 v2, 0x100, v1",
        "ds_read_b32 v5, v2",
    ]
    late = ["s_barrier", "ds_write_b32 v1, v0", "s_waitcnt lgkmcnt(0)"]
    refused("lds_race", [*fill, *late], target, waves=2, lds=512)
    run([*fill, "s_waitcnt lgkmcnt(0)", *late], target, waves=2, lds=512)


def test_barriers_pair_by_round_and_not_by_place(target):
    """Wave 1 starts one round ahead; both reach four barriers, at different instructions."""
    body = [
        "s_cmp_eq_u32 s3, 0",
        "s_cbranch_scc1 .Lpair",
        "s_barrier",
        ".Lpair:",
        "ds_write_b32 v1, v1",
        "s_waitcnt lgkmcnt(0)",
    ]
    body += ["s_barrier", "s_barrier", "v_xor_b32_e32 v2, 0x100, v1", "ds_read_b32 v5, v2", "s_waitcnt lgkmcnt(0)"]
    body += ["s_cmp_lg_u32 s3, 0", "s_cbranch_scc1 .Lend", "s_barrier", ".Lend:", "s_barrier"]
    got = run([*body, "global_store_dword v1, v5, s[6:7]"], target, waves=2, lds=512)
    np.testing.assert_array_equal(got[:128], (np.arange(128) * 4) ^ 0x100)


def test_a_wave_that_leaves_out_a_later_barrier(target):
    body = ["s_barrier", "s_cmp_eq_u32 s3, 0", "s_cbranch_scc1 .Lend", "s_barrier", ".Lend:"]
    refused("barriers", body, target, waves=2)
    run(body, target, waves=2, relax=["barriers"])
