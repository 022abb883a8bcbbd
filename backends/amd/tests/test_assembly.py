"""Hot loops and instruction mixes against hand-counted listings and against what the simulator executes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.annotate import annotated, user_place
from warpwave.backends.amd.arch import GFX942, GFX950
from warpwave.backends.amd.assembly import Instruction, mix, parse
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.build import code_object
from warpwave.backends.amd.resources import hot_loop, occupancy
from warpwave.backends.amd.runtime.tests.kernels import affine
from warpwave.kernels.gemm import gemm
from warpwave.tiles.runtime.arrays import borrow

NESTED = """
f:
	s_load_dwordx2 s[0:1], s[0:1], 0x0
.LBB0_1:                                ; outer
	v_mov_b32_e32 v0, 0
.LBB0_2:                                ; inner, twice as long through .LBB0_4
	ds_read_b128 v[0:3], v9
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], v[0:15]
	s_cbranch_vccz .LBB0_4
; %bb.3:
	buffer_load_dwordx4 v1, s[4:7], 0 offen lds
	buffer_load_dwordx4 v[2:5], v1, s[4:7], 0 offen
	v_accvgpr_read_b32 v1, a0
.LBB0_4:
	s_add_u32 s2, s2, 1
	s_cbranch_scc1 .LBB0_2
; %bb.5:
	s_cbranch_scc0 .LBB0_1
; %bb.6:
	s_endpgm
.Lfunc_end0:
"""


def test_innermost_loop_of_a_listing():
    assert hot_loop(NESTED) == {
        "each_iteration": {"mfma": 1, "ds_read": 1, "waits": 1, "branches": 2, "salu": 1},
        "conditional": {"accvgpr_moves": 1, "direct_to_lds": 1, "vmem_load": 1},
    }
    flow = parse(NESTED)
    assert [len(loop.blocks) for loop in flow.loops] == [5, 3]
    assert len(flow.innermost) == 1


def test_two_back_edges_to_one_header_are_one_loop():
    text = "f:\n.A:\n\tv_add_f32 v0, v0, v0\n\ts_cbranch_vccnz .A\n\tv_mul_f32 v0, v0, v0\n\ts_branch .A\n"
    assert hot_loop(text) == {"each_iteration": {"valu": 1, "branches": 1}, "conditional": {"valu": 1, "branches": 1}}


def test_the_loop_with_most_matrix_instructions_is_the_hot_one():
    loop = ".{0}:\n{1}\ts_cbranch_scc1 .{0}\n"
    busy = "\tv_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]\n"
    text = (
        "f:\n" + loop.format("A", "\tglobal_load_dword v0, v[1:2], off\n" * 9) + loop.format("B", busy) + "\ts_endpgm\n"
    )
    assert hot_loop(text)["each_iteration"] == {"mfma": 1, "branches": 1}
    assert hot_loop(text.replace(busy, ""))["each_iteration"] == {"vmem_load": 9, "branches": 1}


def test_of_loops_with_equal_matrix_work_the_one_without_masks_is_the_hot_one():
    loop = ".{0}:\n\tv_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]\n{1}\ts_cbranch_scc1 .{0}\n"
    masked, whole = loop.format("A", "\tv_cndmask_b32 v0, v0, v1, vcc\n" * 3), loop.format("B", "")
    for text in (masked + whole, whole + masked):
        assert hot_loop(f"f:\n{text}\ts_endpgm\n")["each_iteration"] == {"mfma": 1, "branches": 1}


def test_code_without_loops():
    assert hot_loop("f:\n\ts_endpgm\n") == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", "mfma"),
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "mfma"),
        ("v_accvgpr_write_b32 a0, v0", "accvgpr_moves"),
        ("v_exp_f32_e32 v0, v1", "valu"),
        ("ds_read_b64_tr_b16 v[0:1], v2", "ds_read"),
        ("ds_write_b128 v0, v[1:4]", "ds_write"),
        ("ds_bpermute_b32 v0, v1, v2", "ds_other"),
        ("global_load_lds_dwordx4 v[0:1], off", "direct_to_lds"),
        ("buffer_load_dword v0, s[0:3], 0 offen offset:16 lds", "direct_to_lds"),
        ("buffer_load_dword v0, v1, s[0:3], 0 offen", "vmem_load"),
        ("scratch_store_dword off, v0, s33", "vmem_store"),
        ("global_atomic_add_f32 v[0:1], v2, off", "vmem_atomic"),
        ("buffer_inv sc1", "vmem_other"),
        ("s_load_dwordx4 s[0:3], s[4:5], 0x0", "smem"),
        ("s_waitcnt vmcnt(0)", "waits"),
        ("s_barrier", "barriers"),
        ("s_nop 1", "nops"),
        ("s_cbranch_execz .LBB0_1", "branches"),
        ("s_mul_i32 s0, s1, s2", "salu"),
    ],
)
def test_classes(text, kind):
    mnemonic, _, operands = text.partition(" ")
    assert mix([Instruction(mnemonic, operands, 0)]) == {kind: 1}


def launch(depth):
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-3, 4, (64, depth)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    kernel = gemm.compile(a, b, c, transpose_b=True, BM=64, BN=64, BK=64, target="reference").ir
    program = BACKEND.compile(kernel, "amd:gfx950:sim", {})
    return program, program.simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})


def test_what_the_simulator_executes_lies_between_the_counts():
    """Two launches that differ by whole rounds of the hot loop only."""
    (program, short), (_, long) = launch(1024), launch(2048)
    executed = Counter[str]()
    for sign, report in ((-1, short), (1, long)):
        for line in report.listing_lines:
            mnemonic, _, operands = line.text.partition(" ")
            executed[Instruction(mnemonic, operands, 0).kind] += sign * line.executed
    mixes = program.resources["hot_loop"]
    always, sometimes = mixes["each_iteration"], mixes["conditional"]
    rounds = executed["mfma"] / always["mfma"]
    assert rounds == int(rounds) > 0
    for kind in {*always, *sometimes}:
        low = always.get(kind, 0) * rounds
        assert low <= executed[kind] <= low + sometimes.get(kind, 0) * rounds, kind
    assert {kind for kind, count in executed.items() if count} <= {*always, *sometimes}


def test_resources_of_a_kernel_of_known_size():
    spec = ww.spec("f32[?,?]")
    used = affine.compile(spec, spec, ww.spec("f32"), target="amd:gfx942").resources
    assert used["spills"] == used["scratch_bytes"] == used["agprs"] == 0
    assert used["hot_loop"] == {}
    assert used["waves_per_simd"] == 8


@pytest.mark.parametrize(
    ("target", "registers", "shared", "waves", "expected"),
    [
        (GFX950, 128, 0, 4, 4),  # 512 registers a lane
        (GFX950, 129, 0, 4, 3),
        (GFX950, 64, 0, 4, 8),
        (GFX950, 64, 160 * 1024, 8, 2),  # one workgroup's 8 waves on 4 SIMDs
        (GFX950, 64, 80 * 1024, 4, 2),
        (GFX942, 64, 33 * 1024, 4, 1),
        (GFX942, 512, 0, 4, 1),
        (GFX942, 16, 16 * 1024, 1, 1),
    ],
)
def test_occupancy(target, registers, shared, waves, expected):
    assert occupancy(target, registers, shared, waves) == expected


# -- annotation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("\t.loc\t0 535 22 prologue_end           ; kernel.hip:535:22", None),
        ("\t.loc\t1 54 30 is_stmt 0               ; /a b/k.py:54:30", ("/a b/k.py", 54)),
        ("\t.loc\t0 5 1 ; kernel.hip:5:1 @[ /x/k.py:51:23 @[ /x/k.py:7:2 ] ]", ("/x/k.py", 51)),
        ("\t.loc\t1 0 53 ; /x/k.py:0:53", None),
    ],
)
def test_places_in_line_tables(text, place):
    assert user_place(text) == place


def test_annotated_assembly_shows_the_users_lines_and_is_the_same_code():
    spec = ww.spec("f32[?,?]")
    program = affine.compile(spec, spec, ww.spec("f32"), target="amd:gfx950").program
    file = str(Path(affine.function.__code__.co_filename))
    comments = [line for line in program.asm.splitlines() if line.startswith(f"; {file}:")]
    assert any("ww.store(y, (i, j), ww.load(x, (i, j), rt[f32, B, B]) * factor + 1.0)" in line for line in comments)
    assert all(re.match(r"; .*\.py:\d+: \S", line) for line in comments)
    plain = program.asm_for(2**32 - 1)
    assert annotated(plain) == program.asm
    assert code_object(program.asm, "gfx950") == code_object(plain, "gfx950")
