"""AMD's audit of rocjitsu for CDNA4, and what tinygrad's emulator gets wrong, entry by entry: right here, or refused.

The exhaustive tests of the same instructions are in the test_model_* files; these say what the gap was.
"""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _compile
from ._compile import TARGETS
from ._drivers import load_all, run_driver
from ._snippets import refused, run

both = pytest.mark.parametrize("target", TARGETS)
STORE = "global_store_dword v1, v5, s[6:7]"
LANE = np.arange(64, dtype=np.uint32)


def lanes(body: list[str], target: str, **options) -> list[int]:
    """v5 of the lanes of one wave."""
    return run([*body, STORE], target, **options)[:64].tolist()


def one(body: list[str], target: str, **options) -> int:
    """v5, which every lane has the same of."""
    (value,) = set(lanes(body, target, **options))
    return value


def move(register: str, value: int) -> str:
    return f"v_mov_b32_e32 {register}, {value:#x}"


def mode(first: int, count: int, value: int) -> str:
    return f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, {first}, {count}), {value}"


@both
@pytest.mark.parametrize(("rounding", "sum_"), [(0, 0x3F800000), (1, 0x3F800001), (2, 0x3F800000), (3, 0x3F800000)])
def test_valu_rounding_mode(target, rounding, sum_):
    body = [move("v6", 0x3F800000), move("v7", 0x30800000), mode(0, 2, rounding), "v_add_f32_e32 v5, v6, v7"]
    assert one(body, target) == sum_


@both
@pytest.mark.parametrize(("denormals", "sum_"), [(0, 0), (3, 0x00000003)])
def test_valu_denormal_mode(target, denormals, sum_):
    body = [move("v6", 1), move("v7", 2), mode(4, 2, denormals), "v_add_f32_e32 v5, v6, v7"]
    assert one(body, target) == sum_


@both
@pytest.mark.parametrize(("name", "a", "b", "result"), [
    ("v_min_f32", 0, 0x80000000, 0x80000000),
    ("v_max_f32", 0x80000000, 0, 0),
    ("v_min_f32", 0x7FC00000, 0x3F800000, 0x3F800000),
    ("v_max_f32", 0xC0000000, 0x7FC00000, 0xC0000000),
])  # fmt: skip
def test_minimum_and_maximum_of_nan_and_zeros(target, name, a, b, result):
    assert one([move("v6", a), move("v7", b), f"{name}_e32 v5, v6, v7"], target) == result


@both
@pytest.mark.parametrize(("plain", "result"), [(True, 0x40000000), (False, 0x40800000)])
def test_output_modifiers_need_their_mode(target, plain, result):
    """They count only with output denormals and IEEE off."""
    off = [] if plain else [mode(4, 2, 0), "s_nop 1", mode(9, 1, 0)]
    assert one([move("v6", 0x3F800000), *off, "v_add_f32_e64 v5, v6, v6 mul:2"], target) == result


@both
def test_clamping_a_nan_gives_zero(target):
    assert one([move("v6", 0x7FC00000), "v_add_f32_e64 v5, v6, v6 clamp"], target) == 0


@both
def test_fraction_stays_below_one(target):
    assert one([move("v6", 0xB0800000), "v_fract_f32_e32 v5, v6"], target) == 0x3F7FFFFF


@both
def test_mixed_precision_is_fused(target):
    """(1 + 2**-23)**2 - (1 + 2**-22) is 2**-46 when it is rounded once, else 0."""
    body = [move("v6", 0x3F800001), move("v7", 0xBF800002), "v_fma_mix_f32 v5, v6, v6, v7"]
    assert one(body, target) == (127 - 46) << 23


@both
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_packed_atomics_add_two_halves(target, kind):
    half = {"bf16": 0x3F803F80, "f16": 0x3C003C00}[kind]
    double = {"bf16": 0x40004000, "f16": 0x40004000}[kind]
    add = f"global_atomic_pk_add_{kind} v1, v6, s[6:7]"
    assert set(run([move("v6", half), add, add], target)[:64].tolist()) == {double}


@both
def test_swizzle_patterns_that_are_not_masks(target):
    """The FFT pattern reverses the five bits of a lane number, and a quad pattern is within four lanes."""
    start = ["v_mbcnt_lo_u32_b32 v6, -1, 0", "v_mbcnt_hi_u32_b32 v6, -1, v6"]
    got = lanes([*start, "ds_swizzle_b32 v5, v6 offset:0xe000", "s_waitcnt lgkmcnt(0)"], target)
    assert got == [int(f"{i % 32:05b}"[::-1], 2) + i // 32 * 32 for i in range(64)]
    got = lanes([*start, "ds_swizzle_b32 v5, v6 offset:0x801b", "s_waitcnt lgkmcnt(0)"], target)
    assert got == [i ^ 3 for i in range(64)]


@both
def test_two_reads_and_writes_at_equal_offsets(target):
    body = ["v_add_u32_e32 v6, 7, v1", "v_add_u32_e32 v7, 9, v1", "v_lshlrev_b32_e32 v9, 2, v0"]
    write = "ds_write2_b32 v9, v6, v7 offset0:1 offset1:1"
    read = "ds_read2_b32 v[10:11], v9 offset0:1 offset1:1"
    wait = "s_waitcnt lgkmcnt(0)"
    got = lanes([*body, write, wait, read, wait, "v_sub_u32_e32 v5, v10, v11"], target, lds=2048)
    assert got == [0] * 64
    got = lanes([*body, write, wait, read, wait, "v_mov_b32_e32 v5, v10"], target, lds=2048)
    assert got == [4 * i + 9 for i in range(64)]


SWAP = ["v_mov_b32_e32 v5, v1", "v_add_u32_e32 v6, 0x400, v1", "s_mov_b64 exec, 0xffff", "s_nop 1"]
SWAP += ["v_permlane16_swap_b32_e32 v5, v6", "s_mov_b64 exec, -1", "s_nop 1"]


def test_permlane_swaps_leave_disabled_lanes_alone():
    got = lanes(SWAP, "gfx950")
    assert got[16:] == [4 * i for i in range(16, 64)]
    with pytest.raises((sim.LoadError, sim.SimError)):
        run(SWAP, "gfx942")


@both
@pytest.mark.parametrize(("half", "kept"), [("", 0x12340000), (" op_sel:[0,0,1]", 0x00005678)])
def test_packing_two_fp8_keeps_the_other_half(target, half, kept):
    body = [move("v5", 0x12345678), move("v6", 0x3F800000), f"v_cvt_pk_fp8_f32 v5, v6, v6{half}"]
    one_ = {"gfx942": 0x40, "gfx950": 0x38}[target]
    assert one([*body, "s_nop 1"], target) == kept | one_ * 0x0101 << (16 if half else 0)


@both
def test_readfirstlane_without_lanes_reads_lane_zero(target):
    body = ["v_add_u32_e32 v6, 5, v1", "s_mov_b64 exec, 0", "s_nop 3", "v_readfirstlane_b32 s20, v6"]
    assert one([*body, "s_mov_b64 exec, -1", "s_nop 0", "v_mov_b32_e32 v5, s20"], target) == 5


@both
def test_sparse_products_select_their_set_of_indices(target):
    """ABID 1 takes the second byte of the index register, where ABID 0 takes the first."""

    def result(index: int, abid: int) -> list[int]:
        body = [f"v_mov_b32_e32 v{r}, 0" for r in range(20, 24)] + [f"v_cvt_f32_u32_e32 v{r}, v1" for r in range(8, 14)]
        body += [f"v_cvt_pkrtz_f16_f32 v{r}, v{r}, v1" for r in range(8, 14)]
        body += ["v_lshlrev_b32_e32 v12, 4, v12", move("v30", index), "s_nop 1"]
        product = f"v_smfmac_f32_16x16x32_f16 v[20:23], v[8:9], v[10:13], v30 abid:{abid}".replace(" abid:0", "")
        return lanes([*body, product, *["s_nop 15"] * 2, "v_mov_b32_e32 v5, v21"], target)

    assert result(0x0000004E, 0) == result(0x00004EE4, 1) != result(0x00004EE4, 0)


@both
def test_one_over_two_pi_is_the_isas_double(target):
    body = ["v_mul_f64 v[6:7], 1.0, 0.15915494309189532"]
    assert one([*body, "v_mov_b32_e32 v5, v6"], target) == 0x6DC9C882
    assert one([*body, "v_mov_b32_e32 v5, v7"], target) == 0x3FC45F30


@both
def test_m0_does_not_bound_lds_and_the_allocation_does(target):
    """Neither what M0 holds nor the granule of the allocation (512 or 1280 bytes) decides."""
    body = ["s_mov_b32 m0, 0", "ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "ds_read_b32 v5, v0"]
    assert lanes([*body, "s_waitcnt lgkmcnt(0)"], target, lds=256) == (LANE * 4).tolist()
    refused("bounds", ["v_add_u32_e32 v2, 8, v0", "ds_write_b32 v2, v1"], target, lds=260)


@both
def test_a_swizzled_buffer_is_refused(target):
    body = ["s_mov_b32 s20, s4", "s_and_b32 s21, s5, 0xffff", "s_or_b32 s21, s21, 0x80100000", "s_mov_b32 s22, 64"]
    body += ["s_mov_b32 s23, 0x27000", "v_lshrrev_b32_e32 v3, 2, v0"]
    load = ["buffer_load_dword v5, v3, s[20:23], 0 idxen offset:4", "s_waitcnt vmcnt(0)"]
    assert "swizzled buffer" in str(refused("unsupported", [*body, *load], target))


@both
def test_two_waves_write_the_same_lds_bytes(target):
    refused("lds_race", ["ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)"], target, waves=2, lds=256)


@both
@pytest.mark.parametrize("access", ["global_load_dword v5, v[8:9], off", "global_store_dword v[8:9], v1, off"])
def test_addresses_that_belong_to_no_buffer(target, access):
    body = ["v_mov_b32_e32 v8, 0", "v_mov_b32_e32 v9, 0", access, "s_waitcnt vmcnt(0)"]
    assert "no buffer" in str(refused("bounds", body, target))


@both
def test_results_do_not_depend_on_host_threads(target):
    item = next(d for d in load_all() if d.kernel == "gemm_bf16")
    program = sim.load(item.text(target), target=target)
    name = _compile.kernel_name(item.text(target), item.kernel)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 1 << 14, (256, 64)).astype(np.uint16) for _ in range(2))
    results = []
    for threads in (1, 2, 4):
        c = np.zeros((256, 256), np.float32)
        args = [c, a, b, np.int32(256), np.int32(256), np.int32(64)]
        report = program.launch(name, (2, 2), (256,), args, threads=threads)
        results.append((c.tobytes(), report.instructions, report.by_mnemonic()))
    assert results[0] == results[1] == results[2]
    assert not run_driver(item, target, program, threads=3)


@both
def test_row_broadcasts_read_the_last_lane_of_the_row_before(target):
    body = ["v_mov_b32_e32 v5, 0", "s_nop 1", "v_mov_b32_dpp v5, v1 row_bcast:15 row_mask:0xa bank_mask:0xf"]
    assert lanes(body, target) == [4 * (i // 16 * 16 - 1) if i // 16 % 2 else 0 for i in range(64)]


@both
def test_fp8_has_the_format_of_the_target(target):
    code, want = 0x40, {"gfx942": 0x3F800000, "gfx950": 0x40000000}[target]
    assert one([move("v6", code), "v_cvt_f32_fp8_e32 v5, v6"], target) == want
    nan = {"gfx942": 0x80, "gfx950": 0x7F}[target]  # FNUZ has no negative zero: its code is the only NaN
    assert one([move("v6", nan), "v_cvt_f32_fp8_e32 v5, v6"], target) & 0x7FC00000 == 0x7FC00000


MFMA = "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[20:23]"


def _product(target: str, a: int, b: int, c: int, before: list[str], name: str = MFMA) -> int:
    body = [move(f"v{r}", v) for r, v in ((8, a), (9, a), (10, b), (11, b), (20, c), (21, c), (22, c), (23, c))]
    return one([*body, *before, "s_nop 1", name, *["s_nop 15"] * 2, "v_mov_b32_e32 v5, v20"], target)


@both
def test_matrix_products_keep_f16_denormals(target):
    """Sixteen products of 2**-24 (the least f16) and 1."""
    assert _product(target, 0x00010001, 0x3C003C00, 0, []) == (127 - 20) << 23


@both
@pytest.mark.parametrize("rounding", range(4))
def test_matrix_products_ignore_the_rounding_mode(target, rounding):
    before = [mode(0, 2, rounding)]
    assert _product(target, 0x00010001, 0x3C003C00, 0x43000001, before) == _product(
        target, 0x00010001, 0x3C003C00, 0x43000001, []
    )


@both
@pytest.mark.parametrize(("denormals", "sum_"), [(3, 4), (0, 0)])
def test_f32_matrix_products_follow_the_denormal_mode_of_inputs(target, denormals, sum_):
    name = "v_mfma_f32_16x16x4_f32 v[20:23], v8, v10, v[20:23]"
    assert _product(target, 1, 0x3F800000, 0, [mode(4, 2, denormals)], name) == sum_
