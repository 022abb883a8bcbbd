"""Known gaps of other simulators (AMD's audit of rocjitsu, our probes): right here, or refused with a reason.

Gaps about single instructions (rounding modes, NaN, clamp, packed atomics, swizzle modes, permlane and EXEC,
fp8 halves, fma_mix, SMFMAC index sets, 1/(2 pi)) are in test_gaps_audit.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _compile
from ._asm import Kernel
from ._compile import TARGETS
from ._drivers import load_all
from ._snippets import refused, run

pytestmark = pytest.mark.parametrize("target", TARGETS)
STORE = ["global_store_dword v1, v5, s[6:7]"]
LOAD = "global_load_dword v5, v1, s[4:5]"


def test_vector_load_used_before_its_wait(target):
    error = refused("waits", [LOAD, "v_add_u32_e32 v5, 1, v5", *STORE], target)
    assert "v5" in str(error)
    assert "vmcnt" in str(error)


def test_a_wait_that_leaves_one_load_too_many(target):
    body = [LOAD, "global_load_dword v6, v1, s[4:5] offset:4", "s_waitcnt vmcnt(1)"]
    refused("waits", [*body, "v_mov_b32_e32 v5, v6", *STORE], target)
    got = run([*body, *STORE], target)
    assert got[3] == 3 * 0x01000193


def test_scalar_loads_return_out_of_order(target):
    """With two scalar loads outstanding only lgkmcnt(0) proves the first."""
    body = ["s_load_dword s20, s[4:5], 0x0", "s_load_dword s21, s[4:5], 0x40", "s_waitcnt lgkmcnt(1)"]
    refused("waits", [*body, "v_mov_b32_e32 v5, s20", *STORE], target)


def test_lds_read_used_before_its_wait(target):
    body = ["ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "ds_read_b32 v5, v0"]
    refused("waits", [*body, *STORE], target, lds=256)


def test_overwriting_a_register_that_a_load_will_write(target):
    refused("waits", [LOAD, "v_mov_b32_e32 v5, 1", "s_waitcnt vmcnt(0)", *STORE], target)


def test_global_reads_and_writes_out_of_bounds(target):
    far = "v_add_u32_e32 v2, 0x2000, v1"
    error = refused("bounds", [far, "global_load_dword v5, v2, s[4:5]", "s_waitcnt vmcnt(0)"], target)
    assert error.address is not None
    refused("bounds", [far, "v_mov_b32_e32 v5, 1", "global_store_dword v2, v5, s[6:7]"], target)
    refused("bounds", ["global_load_dword v5, v1, s[4:5] offset:-4", "s_waitcnt vmcnt(0)"], target)


def test_lds_out_of_the_workgroups_own_allocation(target):
    refused("bounds", ["v_add_u32_e32 v2, 4, v0", "ds_write_b32 v2, v1"], target, lds=256)
    refused("bounds", ["ds_read_b32 v5, v0", "s_waitcnt lgkmcnt(0)", *STORE], target, lds=0)


def test_scratch_out_of_bounds(target):
    body = ["v_mov_b32_e32 v2, 0x40", "scratch_store_dword v2, v1, off"]
    refused("bounds", body, target, scratch=64)


@pytest.mark.parametrize("register", ["v9", "s40", "a3"])
def test_uninitialised_registers_reach_no_result(target, register):
    move = f"v_accvgpr_read_b32 v5, {register}" if register[0] == "a" else f"v_mov_b32_e32 v5, {register}"
    refused("uninit", [move, "s_nop 1", *STORE], target, agprs=8)


def test_uninitialised_lds_and_scratch_reach_no_result(target):
    refused("uninit", ["ds_read_b32 v5, v0", "s_waitcnt lgkmcnt(0)", *STORE], target, lds=256)
    refused("uninit", ["scratch_load_dword v5, off, off", "s_waitcnt vmcnt(0)", *STORE], target, scratch=64)


def test_uninitialised_register_as_address_or_branch(target):
    refused("uninit", ["global_load_dword v5, v9, s[4:5]", "s_waitcnt vmcnt(0)"], target)
    refused("uninit", ["s_cmp_eq_u32 s40, 0", "s_cbranch_scc1 .Lx", "s_nop 0", ".Lx:"], target)


def test_an_unknown_instruction_stops_with_its_text(target):
    with pytest.raises((sim.LoadError, sim.SimError), match="v_frobnicate"):
        run(["v_frobnicate_b32 v5, v1", *STORE], target)


def test_an_instruction_of_the_other_gpu_is_unknown(target):
    other = {"gfx942": "v_prng_b32_e32 v5, v1", "gfx950": "v_mfma_f32_16x16x8_xf32 v[8:11], v[0:1], v[2:3], 0"}
    with pytest.raises((sim.LoadError, sim.SimError)):
        run([other[target]], target)


@pytest.mark.parametrize(("what", "body"), [
    ("vgprs", ["v_mov_b32_e32 v40, 1"]),
    ("sgprs", ["s_mov_b32 s90, 1"]),
    ("agprs", ["v_accvgpr_write_b32 a9, 1"]),
])  # fmt: skip
def test_registers_beyond_the_descriptors_allocation(target, what, body):
    limits = {"vgprs": {"vgprs": 16}, "sgprs": {"sgprs": 16}, "agprs": {"vgprs": 16, "agprs": 8}}[what]
    with pytest.raises((sim.LoadError, sim.SimError)) as caught:
        run(body, target, **limits)
    assert getattr(caught.value, "kind", "resources") == "resources"


def test_code_without_agprs_may_use_the_whole_allocation_as_vgprs(target):
    """Both files are one allocation, as hand-written kernels know; where AGPRs are used, they begin at accum_offset."""
    out = run(["v_mov_b32_e32 v60, 7", "global_store_dword v1, v60, s[6:7]"], target, vgprs=16, agprs=48)
    assert (out[:64] == 7).all()
    refused("resources", ["v_mov_b32_e32 v64, 7"], target, vgprs=16, agprs=48)
    refused("resources", ["v_mov_b32_e32 v60, 7", "v_accvgpr_write_b32 a3, v60"], target, vgprs=16, agprs=48)


def test_more_lds_than_the_cu_has(target):
    size = {"gfx942": 65536, "gfx950": 163840}[target]
    run(["s_nop 0"], target, lds=size)
    with pytest.raises((sim.LoadError, sim.SimError)):
        run(["s_nop 0"], target, lds=size + 512)


RAW_BUFFER = ["s_mov_b32 s20, s4", "s_and_b32 s21, s5, 0xffff", "s_mov_b32 s22, 100", "s_mov_b32 s23, 0x27000"]


def test_raw_buffer_reads_beyond_the_records_give_zero(target):
    body = [*RAW_BUFFER, "buffer_load_dword v5, v1, s[20:23], 0 offen", "s_waitcnt vmcnt(0)", *STORE]
    got = run(body, target)[:64]
    lane = np.arange(64, dtype=np.uint32)
    np.testing.assert_array_equal(got, np.where(lane < 25, lane * np.uint32(0x01000193), 0))


def test_raw_buffer_bounds_count_each_dword_and_not_soffset(target):
    """x4 reads are checked dword by dword; the scalar offset is not part of the check (ISA, range checking)."""
    body = [*RAW_BUFFER, "s_movk_i32 s12, 0x40", "v_lshlrev_b32_e32 v3, 2, v0"]
    load = ["buffer_load_dwordx4 v[8:11], v3, s[20:23], s12 offen", "s_waitcnt vmcnt(0)"]
    store = ["v_lshlrev_b32_e32 v4, 2, v1", "global_store_dwordx4 v4, v[8:11], s[6:7]"]
    got = run([*body, *load, *store], target)[:256]
    index = np.arange(256, dtype=np.uint32)
    want = np.where(index * 4 < 100, (index + 16) * np.uint32(0x01000193), 0).astype(np.uint32)
    np.testing.assert_array_equal(got, want)


def test_raw_buffer_writes_beyond_the_records_are_dropped(target):
    body = ["s_mov_b32 s20, s6", "s_and_b32 s21, s7, 0xffff", *RAW_BUFFER[2:], "v_mov_b32_e32 v5, 7"]
    got = run([*body, "buffer_store_dword v5, v1, s[20:23], 0 offen"], target)
    np.testing.assert_array_equal(got[:64], np.where(np.arange(64) < 25, 7, 0))


def test_structured_buffer_checks_the_index(target):
    """stride 8, 10 records: the index decides, whatever the offset within the record."""
    body = ["s_mov_b32 s20, s4", "s_and_b32 s21, s5, 0xffff", "s_or_b32 s21, s21, 0x80000", "s_mov_b32 s22, 10"]
    body += ["s_mov_b32 s23, 0x27000", "v_lshrrev_b32_e32 v3, 2, v0"]
    load = ["buffer_load_dword v5, v3, s[20:23], 0 idxen offset:4", "s_waitcnt vmcnt(0)"]
    got = run([*body, *load, *STORE], target)[:64]
    lane = np.arange(64, dtype=np.uint32)
    np.testing.assert_array_equal(got, np.where(lane < 10, (2 * lane + 1) * np.uint32(0x01000193), 0))


@pytest.mark.parametrize("enabled", [1, 2, 3])
def test_workgroup_ids_are_per_dimension(target, enabled):
    """A lone workgroup_id_x must be x, not a linear number."""
    body = ["s_lshl_b32 s12, s2, 8"]
    body += ["s_lshl_b32 s13, s3, 10", "s_add_u32 s12, s12, s13"] if enabled > 1 else []
    body += ["s_lshl_b32 s13, s14, 11", "s_add_u32 s12, s12, s13"] if enabled > 2 else []
    third = ["s_mov_b32 s14, s4"] if enabled > 2 else []
    body = [*third, *body, "s_load_dwordx2 s[6:7], s[0:1], 0x8", "s_waitcnt lgkmcnt(0)"]
    body += ["v_lshl_add_u32 v1, v0, 2, s12", "v_mov_b32_e32 v5, 1"]
    atomic = "global_atomic_add v1, v5, s[6:7]"
    got = run([*body, atomic], target, grid=(3, 2, 2), start=False, workgroup_ids=enabled)
    want = np.zeros((2, 2, 4, 64), np.uint32)
    want[: 2 if enabled > 2 else 1, : 2 if enabled > 1 else 1, :3] = 12 // (3 * min(2 ** (enabled - 1), 4))
    counts = got[: want.size].reshape(want.shape)
    np.testing.assert_array_equal(counts[:, :, :3], want[:, :, :3])


def test_a_wave_that_spins_while_another_waits(target):
    body = ["s_cmp_eq_u32 s3, 0", "s_cbranch_scc1 .Lbarrier", ".Lspin:", "s_branch .Lspin", ".Lbarrier:"]
    with pytest.raises(sim.SimError) as caught:
        run([*body, "s_barrier"], target, waves=2, max_instructions=100_000)
    assert caught.value.kind in ("limit", "deadlock")


def test_finished_waves_do_not_count_at_barriers(target):
    body = ["s_cmp_eq_u32 s3, 0", "s_cbranch_scc1 .Ldone", "s_barrier", ".Ldone:", "v_mov_b32_e32 v5, 1", *STORE]
    assert (run(body, target, waves=2)[:128] == 1).all()


EXCHANGE = ["v_mov_b32_e32 v3, 0", "ds_write_b32 v1, v3", "s_waitcnt lgkmcnt(0)", "s_barrier"]
EXCHANGE += ["v_xor_b32_e32 v2, 0x100, v1", "ds_write_b32 v1, v1"]


def test_lds_exchange_without_a_barrier(target):
    read = ["ds_read_b32 v5, v2", "s_waitcnt lgkmcnt(0)"]
    wait = "s_waitcnt lgkmcnt(0)"
    error = refused("lds_race", [*EXCHANGE, wait, *read, *STORE], target, waves=2, lds=512)
    assert error.other
    got = run([*EXCHANGE, wait, "s_barrier", *read, *STORE], target, waves=2, lds=512)
    np.testing.assert_array_equal(got[:128], (np.arange(128) * 4) ^ 0x100)


def test_write_after_read_without_a_barrier(target):
    body = [*EXCHANGE, "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b32 v5, v2", "s_waitcnt lgkmcnt(0)"]
    again = ["ds_write_b32 v1, v5", *STORE]
    refused("lds_race", [*body, *again], target, waves=2, lds=512)
    run([*body, "s_barrier", *again], target, waves=2, lds=512)


FLAT = [
    "s_mov_b64 s[16:17], src_shared_base",
    "v_mov_b32_e32 v9, s17",
    "v_mov_b32_e32 v8, v1",
    "v_mov_b32_e32 v11, s17",
]


@pytest.mark.parametrize("barrier", [False, True])
def test_lds_through_flat_addresses_without_a_barrier(target, barrier):
    body = [
        *EXCHANGE[:4],
        *FLAT,
        "v_xor_b32_e32 v10, 0x100, v1",
        "flat_store_dword v[8:9], v1",
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
    ]
    rest = ["flat_load_dword v5, v[10:11]", "s_waitcnt vmcnt(0) lgkmcnt(0)", *STORE]
    if barrier:
        got = run([*body, "s_barrier", *rest], target, waves=2, lds=512)
        np.testing.assert_array_equal(got[:128], (np.arange(128) * 4) ^ 0x100)
    else:
        refused("lds_race", [*body, *rest], target, waves=2, lds=512)


DIRECT = ["s_lshl_b32 s12, s3, 8", "s_mov_b32 m0, s12", "s_nop 0", "global_load_lds_dword v1, s[4:5]"]
READ_OTHER = ["v_xor_b32_e32 v2, 0x100, v1", "ds_read_b32 v5, v2", "s_waitcnt lgkmcnt(0)", *STORE]


def test_direct_load_waited_for_before_the_barrier(target):
    got = run([*DIRECT, "s_waitcnt vmcnt(0)", "s_barrier", *READ_OTHER], target, waves=2, lds=512)
    index = (np.arange(128, dtype=np.uint32)) ^ 64
    np.testing.assert_array_equal(got[:128], index * np.uint32(0x01000193))


def test_direct_load_waited_for_after_the_barrier(target):
    """Wrong on silicon in every one of 16384 cases (simulators.md 1); other tools miss it."""
    for seed in range(6):
        body = [*DIRECT, "s_barrier", "s_waitcnt vmcnt(0)", *READ_OTHER]
        with pytest.raises(sim.SimError) as caught:
            run(body, target, waves=2, lds=512, seed=seed)
        assert caught.value.kind in ("lds_race", "waits")


def test_own_direct_load_read_before_its_wait(target):
    body = [*DIRECT, "ds_read_b32 v5, v1", "s_waitcnt vmcnt(0) lgkmcnt(0)", *STORE]
    with pytest.raises(sim.SimError) as caught:
        run(body, target, waves=2, lds=512)
    assert caught.value.kind in ("lds_race", "waits")


def test_global_race_between_waves_and_between_workgroups(target):
    body = ["v_mov_b32_e32 v5, s3", "global_store_dword v0, v5, s[6:7]"]
    refused("global_race", body, target, waves=2)
    body = ["v_mov_b32_e32 v5, s2", "global_store_dword v1, v5, s[6:7]"]
    with pytest.raises(sim.SimError) as caught:
        run(["s_mov_b32 s15, s2", *body], target, grid=(2, 1, 1))
    assert caught.value.kind == "global_race"


def test_global_exchange_through_a_barrier_is_fine(target):
    """Vector memory of one CU is in order: what compilers emit for a workgroup-scope release."""
    body = ["v_mov_b32_e32 v5, v1", "global_store_dword v1, v5, s[6:7]", "s_waitcnt vmcnt(0)", "s_barrier"]
    body += ["v_xor_b32_e32 v2, 0x100, v1", "global_load_dword v6, v2, s[6:7]", "s_waitcnt vmcnt(0)"]
    got = run([*body, "global_store_dword v1, v6, s[6:7] offset:1024"], target, waves=2)
    np.testing.assert_array_equal(got[256:384], (np.arange(128) * 4) ^ 0x100)


def test_misaligned_accesses(target):
    refused("align", ["v_add_u32_e32 v2, 2, v0", "ds_read_b32 v5, v2", "s_waitcnt lgkmcnt(0)"], target, lds=512)
    refused(
        "align", ["v_lshlrev_b32_e32 v2, 1, v0", "ds_read_b128 v[8:11], v2", "s_waitcnt lgkmcnt(0)"], target, lds=2048
    )


def test_a_read_only_buffer_is_not_written(target):
    source = np.zeros(64, np.uint32)
    source.flags.writeable = False
    body = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_lshlrev_b32_e32 v1, 2, v0", "s_waitcnt lgkmcnt(0)"]
    program = sim.load(Kernel([*body, "global_store_dword v1, v1, s[4:5]"], target).text(), target=target)
    with pytest.raises(sim.SimError) as caught:
        program.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[source])
    assert caught.value.kind == "readonly"


def test_each_check_can_be_relaxed_by_name(target):
    body = ["v_mov_b32_e32 v5, s3", "global_store_dword v0, v5, s[6:7]"]
    assert set(run(body, target, waves=2, relax={"global_race"})[:64]) <= {0, 1}
    with pytest.raises((ValueError, sim.LoadError)):
        run(body, target, waves=2, relax={"no_such_check"})


def test_the_corpus_ballot_races_when_two_waves_are_active(target):
    """A violation that is real: every wavefront stores its mask to the workgroup's first places."""
    item = next(d for d in load_all() if d.kernel == "ballot")
    program = sim.load(item.text(target), target=target)
    x, out = np.ones(256, np.float32), np.zeros(256, np.uint64)
    with pytest.raises(sim.SimError) as caught:
        program.launch(
            _compile.kernel_name(item.text(target), "ballot"),
            grid=(1, 1, 1), block=(256, 1, 1), args=[out, x, np.int32(256)],
        )  # fmt: skip
    assert caught.value.kind == "global_race"


def test_same_seed_same_run(target):
    item = next(d for d in load_all() if d.kernel == "atomics_lds")
    program = sim.load(item.text(target), target=target)
    name = _compile.kernel_name(item.text(target), item.kernel)
    x = np.random.default_rng(0).integers(0, 2**30, 256).astype(np.uint32)

    def order(seed: int) -> list[int]:
        hist, total, old = np.zeros(64, np.uint32), np.zeros(1, np.float32), np.zeros(256, np.int32)
        program.launch(name, grid=(1, 1, 1), block=(256, 1, 1), args=[hist, total, old, x], seed=seed)
        return old.tolist()

    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in range(8)}) > 1


HALF_DEFINED = [
    "v_mad_u64_u32 v[8:9], s[20:21], s2, v1, v[10:11]",
    "v_lshl_add_u64 v[8:9], v[10:11], 1, v[10:11]",
    "v_lshlrev_b64 v[8:9], 3, v[10:11]",
]


@pytest.mark.parametrize("wide", HALF_DEFINED)
def test_an_undefined_high_half_does_not_spoil_the_low_one(target, wide):
    """Compilers leave the high half of a 64-bit addend undefined when only the low result is used."""
    body = ["v_mov_b32_e32 v10, 7", wide, "v_mov_b32_e32 v5, v8", *STORE]
    assert (run(["s_mov_b32 s2, 3", *body], target)[:64] != 0).any()
    refused("uninit", ["s_mov_b32 s2, 3", *body[:2], "v_mov_b32_e32 v5, v9", *STORE], target)


def test_masking_an_undefined_register_defines_the_masked_bits(target):
    body = ["v_and_b32_e32 v5, 0, v20", "v_lshl_or_b32 v5, v1, 0, v5", *STORE]
    np.testing.assert_array_equal(run(body, target)[:64], np.arange(64) * 4)
