"""Each hazard of amd.md 4: one state too few is refused, the stated number is enough, on both targets."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._asm import Kernel
from ._compile import TARGETS

# Every register that a rule reads is written first, far enough before.
DEFINE = [f"v_mov_b32_e32 v{i}, 1.0" for i in range(2, 64)]
DEFINE += [f"v_accvgpr_write_b32 a{i}, 0" for i in range(32)]
DEFINE += [f"s_mov_b32 s{i}, 5" for i in range(20, 40)]
DEFINE += ["s_mov_b64 vcc, exec", "v_mov_b32_e32 v60, 0", "v_mov_b32_e32 v61, 0", "s_nop 15", "s_nop 15"]
D4, D16 = "v[8:11]", "v[8:23]"

M2 = "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[40:41], v[42:43], v[44:47]"
M4 = "v_mfma_f32_16x16x16_f16 v[8:11], v[40:41], v[42:43], v[44:47]"
M8 = "v_mfma_f32_32x32x8_f16 v[8:23], v[40:41], v[42:43], 0"
M16 = "v_mfma_f32_32x32x4_2b_f16 a[0:31], v[40:41], v[42:43], 0"
S8 = "v_mfma_f32_16x16x4_f32 v[8:11], v40, v42, v[44:47]"
S16 = "v_mfma_f32_32x32x2_f32 v[8:23], v40, v42, 0"
DG16 = "v_mfma_f64_16x16x4_f64 v[8:15], v[40:41], v[42:43], 0"
DG4 = "v_mfma_f64_4x4x4_4b_f64 v[8:9], v[40:41], v[42:43], 0"
READ, WRITE = "v_add_f32_e32 v30, v8, v9", "v_mov_b32_e32 v9, 0"
STORE = "global_store_dword v61, v8, s[6:7]"
AS_A = "v_mfma_f32_16x16x16_f16 v[24:27], v[8:9], v[42:43], 0"
OVERLAP_4 = "v_mfma_f32_16x16x16_f16 v[24:27], v[40:41], v[42:43], v[10:13]"
OVERLAP_8 = "v_mfma_f32_16x16x16_f16 v[24:27], v[40:41], v[42:43], v[8:11]"
SAME_4 = "v_mfma_f32_16x16x16_f16 v[8:11], v[40:41], v[42:43], v[8:11]"
SAME_2 = "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[40:41], v[42:43], v[8:11]"

# (why, producer, consumer, states on gfx942, states on gfx950)
RULES = [
    ("xdl2 to valu", M2, READ, 5, 5),
    ("xdl4 to valu", M4, READ, 7, 8),
    ("xdl8 to valu", M8, READ, 11, 12),
    ("xdl16 to valu", M16, "v_accvgpr_read_b32 v30, a8", 19, 20),
    ("xdl4 overwritten by valu", M4, WRITE, 7, 8),
    ("xdl4 to store", M4, STORE, 7, 8),
    ("xdl8 to store", M8, STORE, 11, 12),
    ("xdl4 to A", M4, AS_A, 7, 8),
    ("xdl8 to A", M8, AS_A, 11, 12),
    ("xdl2 to same C", M2, SAME_2, 2, 2),
    ("xdl4 to same C", M4, SAME_4, 0, 0),
    ("xdl4 to overlapping C", M4, OVERLAP_4, 5, 6),
    ("xdl8 to overlapping C", M8, OVERLAP_8, 9, 10),
    ("xdl C overwritten", M4, "v_mov_b32_e32 v44, 0", 3, 3),
    ("sgemm8 to valu", S8, READ, 10, 10),
    ("sgemm16 to valu", S16, READ, 18, 18),
    ("sgemm8 to A", S8, AS_A, 10, 10),
    ("sgemm8 to xdl C", S8, OVERLAP_4, 0, 0),
    ("dgemm16 to valu", DG16, READ, 11, 19),
    ("dgemm16 to store", DG16, STORE, 18, 18),
    ("dgemm4 to valu", DG4, READ, 6, 6),
    ("dgemm4 to store", DG4, STORE, 9, 9),
    ("valu to mfma", "v_mov_b32_e32 v40, 1.0", M4, 2, 2),
    ("valu to dpp", "v_mov_b32_e32 v8, 1", "v_mov_b32_dpp v30, v8 row_shr:1 row_mask:0xf bank_mask:0xf", 2, 2),
    ("valu to readfirstlane", "v_mov_b32_e32 v8, 1", "v_readfirstlane_b32 s20, v8", 1, 1),
    ("valu to readlane", "v_mov_b32_e32 v8, 1", "v_readlane_b32 s20, v8, 3", 1, 1),
    ("cmp to cndmask", "v_cmp_eq_u32_e32 vcc, v2, v3", "v_cndmask_b32_e32 v30, v2, v3, vcc", 2, 2),
    ("readlane to valu", "v_readlane_b32 s20, v2, 3", "v_add_u32_e32 v30, s20, v2", 2, 2),
    ("readlane to lane select", "v_readlane_b32 s20, v60, 3", "v_readlane_b32 s21, v3, s20", 4, 4),
    ("readlane to saddr", "v_readlane_b32 s7, v62, 3", "global_load_dword v30, v61, s[6:7]", 5, 5),
    ("vcc to div_fmas", "v_cmp_eq_u32_e32 vcc, v2, v3", "v_div_fmas_f32 v30, v2, v3, v4", 4, 4),
    ("exec to readlane", "v_cmpx_eq_u32_e32 vcc, v2, v2", "v_readfirstlane_b32 s20, v3", 4, 4),
    ("exec to dpp", "v_cmpx_eq_u32_e32 vcc, v2, v2",
     "v_mov_b32_dpp v30, v3 row_shr:1 row_mask:0xf bank_mask:0xf", 5, 5),
    ("exec to mfma", "v_cmpx_eq_u32_e32 vcc, v2, v2", M4, 4, 4),
    ("trans to valu", "v_exp_f32_e32 v8, v2", READ, 1, 1),
    ("trans to trans", "v_exp_f32_e32 v8, v2", "v_log_f32_e32 v30, v8", 0, 0),
    ("sdwa part to valu", "v_mov_b32_sdwa v8, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", READ, 1, 1),
    ("fp8 half to valu", "v_cvt_pk_fp8_f32 v8, v2, v3 op_sel:[0,0,1]", READ, 1, 1),
    ("store data overwritten", "global_store_dwordx4 v61, v[8:11], s[6:7]", WRITE, 2, 2),
    ("narrow store data overwritten", "global_store_dword v61, v9, s[6:7]", WRITE, 0, 0),
    ("m0 to direct load", "s_mov_b32 m0, 0", "global_load_lds_dword v61, s[6:7]", 1, 1),
    ("setreg to getreg", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0", "s_getreg_b32 s20, hwreg(HW_REG_MODE)",
     2, 2),
]  # fmt: skip
CDNA4_RULES = [
    ("valu to permlane swap", "v_mov_b32_e32 v8, 1", "v_permlane32_swap_b32_e32 v8, v9", 2),
    ("fp4 byte to valu", "v_cvt_scalef32_pk_fp4_f32 v8, v2, v3, 1.0", READ, 1),
    ("xdl8 double K to valu", "v_mfma_f32_32x32x16_f16 v[8:23], v[40:43], v[44:47], 0", READ, 12),
    ("xdl4 f4 to valu", "v_mfma_f32_16x16x128_f8f6f4 v[8:11], v[40:43], v[44:47], 0 cbsz:4 blgp:4", READ, 8),
    ("xdl8 f8 to valu", "v_mfma_f32_16x16x128_f8f6f4 v[8:11], v[32:39], v[40:47], 0", READ, 12),
]
CASES = [(why, p, c, s, t) for why, p, c, *states in RULES for t, s in zip(TARGETS, states, strict=True)]
CASES += [(why, p, c, s, "gfx950") for why, p, c, s in CDNA4_RULES]


def execute(middle: list[str], target: str) -> None:
    """Everything defined, the instructions, and time for all of them to finish."""
    head = ["s_load_dwordx2 s[6:7], s[0:1], 0x0", "v_mov_b32_e32 v61, 0", "s_waitcnt lgkmcnt(0)", *DEFINE]
    head += ["v_mov_b32_e32 v62, s7", "s_nop 15"]
    body = [*head, *middle, "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_nop 15", "s_nop 15"]
    text = Kernel(body, target, agprs=32, lds=512).text()
    sim.load(text, target=target).launch(
        "k", grid=(1, 1, 1), block=(64, 1, 1), args=[np.zeros(256, np.uint32)], relax={"global_race"}
    )


def attempt(producer: str, consumer: str, states: int, target: str) -> None:
    nops = [f"s_nop {min(states, 16) - 1}"] if states else []
    nops += [f"s_nop {states - 17}"] if states > 16 else []
    execute([producer, *nops, consumer], target)


@pytest.mark.parametrize(("why", "producer", "consumer", "states", "target"), CASES,
                         ids=[f"{c[0]}-{c[4]}".replace(" ", "_") for c in CASES])  # fmt: skip
def test_wait_states(why, producer, consumer, states, target):
    attempt(producer, consumer, states, target)
    if states:
        with pytest.raises(sim.SimError) as caught:
            attempt(producer, consumer, states - 1, target)
        assert caught.value.kind == "hazards", str(caught.value)


# Each adds to the one before, two registers down: the third reads what the second wrote over the first's result.
STAIRS = [
    "v_mfma_f32_16x16x16_f16 v[22:25], v[40:41], v[42:43], v[22:25]",
    "v_mfma_f32_16x16x16_f16 v[20:23], v[40:41], v[42:43], v[22:25]",
    "v_mfma_f32_16x16x16_f16 v[18:21], v[40:41], v[42:43], v[20:23]",
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_newer_matrix_result_hides_the_older_one_below_it(target):
    execute(STAIRS, target)


@pytest.mark.parametrize("target", TARGETS)
def test_what_no_newer_result_covers_still_counts_from_the_older_one(target):
    beside = "v_mfma_f32_16x16x16_f16 v[10:13], v[40:41], v[42:43], 0"  # over half of M4's result
    with pytest.raises(sim.SimError) as caught:
        execute([M4, beside, "s_nop 3", "v_mfma_f32_16x16x16_f16 v[24:27], v[8:9], v[42:43], 0"], target)
    assert caught.value.kind == "hazards"
    assert M4 in str(caught.value)
