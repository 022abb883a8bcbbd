"""Undefined bytes through moves, selections and logic, with SDWA, DPP and op_sel.

The oracle runs the instruction's Python model with many fillings of the undefined bytes: a byte of the result is
undefined exactly where fillings differ.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._asm import Kernel
from ._compile import TARGETS
from ._operands import Case, Operands, expected
from .model.table import table

SDWA = "dst_sel:{0} dst_unused:{1} src0_sel:{2}"
MOVES = [
    SDWA.format(to, unused, source)
    for to, unused, source in [
        ("DWORD", "UNUSED_PAD", "WORD_0"),
        ("DWORD", "UNUSED_PAD", "BYTE_3"),
        ("WORD_1", "UNUSED_PRESERVE", "WORD_0"),
        ("WORD_0", "UNUSED_PAD", "WORD_1"),
        ("BYTE_2", "UNUSED_PRESERVE", "BYTE_0"),
        ("BYTE_1", "UNUSED_PAD", "DWORD"),
        ("BYTE_1", "UNUSED_SEXT", "BYTE_3"),
        ("WORD_0", "UNUSED_SEXT", "WORD_1"),
    ]
]
PAIRS = [
    "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD",
    "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
    "dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:BYTE_2",
    "dst_sel:BYTE_3 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
]
# V_PERM: bytes of both sources, signs, 0x00 and 0xff.
PERMUTATIONS = ("0x0c050400", "0x07060302", "0x0d0b0a01", "0x08030c0d")
LOGIC = ("v_and_b32", "v_or_b32", "v_xor_b32")
CASES = [f"v_mov_b32_sdwa v128, v8 {m}" for m in MOVES]
CASES += ["v_mov_b32_sdwa v128, sext(v8) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1"]
CASES += [f"{name}_sdwa v128, v8, v9 {p}" for name in LOGIC for p in PAIRS]
CASES += [f"v_and_b32_sdwa v128, v8, sext(v9) {PAIRS[1]}"]
CASES += [f"v_cndmask_b32_sdwa v128, v8, v9, vcc {p}" for p in PAIRS]
CASES += ["v_cndmask_b32_e32 v128, v8, v9, vcc", "v_cndmask_b32_e64 v128, v8, 1.0, vcc"]
CASES += [f"{name}_e32 v128, {c}, v9" for name in LOGIC for c in ("0xffff0000", "0x00ff00ff", "-1", "0", "v8")]
CASES += ["v_not_b32_e32 v128, v8", "v_bfi_b32 v128, s24, v8, v9 @0x00ff00ff", "v_and_or_b32 v128, v8, s24, v9 @0xff"]
CASES += ["v_mov_b32_dpp v128, v8 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"]
CASES += ["v_mov_b32_dpp v128, v8 row_shl:3 row_mask:0xf bank_mask:0xf bound_ctrl:0"]
CASES += ["v_mov_b32_dpp v128, v8 row_shr:2 row_mask:0xf bank_mask:0xf"]
CASES += ["v_pack_b32_f16 v128, v8, v9", "v_pack_b32_f16 v128, v8, v9 op_sel:[1,0,0]"]
CASES += [
    "v_lshlrev_b32_e32 v128, 8, v8",
    *(f"v_perm_b32 v128, v8, v9, s24 @{s}" for s in PERMUTATIONS),
    "v_alignbit_b32 v128, v8, v9, 16",
]

FILLINGS = 40


def fillings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values of v8, v9 and the old v128 [filling, register, lane, byte], and which of their bytes are undefined."""
    values = rng.integers(0, 256, (3, 64, 4), np.uint8)
    undefined = rng.integers(0, 4, (3, 64, 4)) == 0
    undefined[:, rng.permutation(64)[:24]] = False
    fill = rng.integers(0, 256, (FILLINGS, 3, 64, 4), np.uint8)
    fill[0], fill[1] = 0, 255
    return np.where(undefined, fill, values), undefined


def words(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint32)[..., 0]


def mask_lines(mask: np.ndarray, *lines: str) -> list[str]:
    bits = sum(1 << int(lane) for lane in np.flatnonzero(mask))
    return [f"s_mov_b32 exec_lo, {bits & 0xFFFFFFFF:#x}", f"s_mov_b32 exec_hi, {bits >> 32:#x}", *lines]


def load_partly(undefined: np.ndarray) -> list[str]:
    """v8, v9, v128 from memory of which only the defined bytes were ever written."""
    lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_load_dwordx2 s[8:9], s[0:1], 0x10", "v_lshlrev_b32_e32 v0, 2, v0"]
    lines += ["s_waitcnt lgkmcnt(0)"]
    for register in range(3):
        at = f"offset:{256 * register}"
        lines += [f"global_load_dword v1, v0, s[4:5] {at}", "s_waitcnt vmcnt(0)"]
        for byte in range(4):
            lines += [f"v_lshrrev_b32_e32 v2, {8 * byte}, v1"]
            store = f"global_store_byte v0, v2, s[6:7] offset:{256 * register + byte}"
            lines += [*mask_lines(~undefined[register, :, byte], store), "s_mov_b64 exec, -1"]
    lines += ["s_waitcnt vmcnt(0)"]
    for register, name in enumerate(("v8", "v9", "v128")):
        lines += [f"global_load_dword {name}, v0, s[6:7] offset:{256 * register}"]
    return [*lines, "s_waitcnt vmcnt(0)", "s_mov_b32 vcc_lo, 0x9a3c5e71", "s_mov_b32 vcc_hi, 0x4d2b6f83", "s_nop 4"]


def run(text: str, scalar: int, target: str, values, undefined, stores: list[np.ndarray]) -> np.ndarray:
    """The bytes of v128 in the lanes of `stores` (by byte); others stay 0."""
    lines = [*load_partly(undefined), f"s_mov_b32 s24, {scalar:#x}", text, "s_nop 4"]
    for byte, lanes in enumerate(stores):
        lines += [f"v_lshrrev_b32_e32 v3, {8 * byte}, v128"]
        lines += [*mask_lines(lanes, f"global_store_byte v0, v3, s[8:9] offset:{byte}"), "s_mov_b64 exec, -1"]
    out = np.zeros((64, 4), np.uint8)
    program = sim.load(Kernel(lines, target, buffers=3).text(), target=target)
    arguments = [words(values[0]), sim.undefined(192, np.uint32), out.view(np.uint32).reshape(-1)]
    program.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=arguments)
    return out


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_a_byte_is_undefined_exactly_where_fillings_differ(case, target):
    text, _, number = case.partition(" @")
    scalar = int(number or "0", 0)
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    values, undefined = fillings(rng)
    if "pack" in text:
        values[..., 1::2] &= 0x7B  # no NaN, which packing may quiet
    scalars = np.zeros((FILLINGS, 16), np.uint32)
    scalars[:, 0], scalars[:, 8], scalars[:, 9] = scalar, 0x9A3C5E71, 0x4D2B6F83
    model = expected(Case(text), Operands(words(values), scalars, target), table(target))[0]
    result = np.ascontiguousarray(model)[..., None].view(np.uint8)  # [filling, lane, byte]
    varies = (result != result[0]).any(axis=0)
    got = run(text, scalar, target, values, undefined, [~varies[:, byte] for byte in range(4)])
    np.testing.assert_array_equal(got, np.where(varies, 0, result[0]))
    for byte in np.flatnonzero(varies.any(axis=0)):
        stores = [np.full(64, b == byte) for b in range(4)]
        with pytest.raises(sim.SimError) as stopped:
            run(text, scalar, target, values, undefined, stores)
        assert stopped.value.kind == "uninit"
        assert [stopped.value.lanes >> lane & 1 for lane in range(64)] == list(varies[:, byte])


def test_selected_halves_of_f16_sources():
    """The other half of a source of 16-bit arithmetic may hold anything, but not the selected one."""
    define = ["v_mov_b32_sdwa v8, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0"]
    for text, fine in {
        "v_fma_f16 v10, v8, v8, v8 op_sel:[1,1,1,0]": True,
        "v_fma_f16 v10, v8, v8, v8 op_sel:[1,0,1,0]": False,
        "v_mad_u32_u16 v10, v8, v8, v0 op_sel:[1,1,0,0]": True,
        "v_mad_u32_u16 v10, v8, v8, v0": False,
    }.items():
        lines = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_lshlrev_b32_e32 v0, 2, v0", *define, "s_nop 1", text]
        lines += ["s_waitcnt lgkmcnt(0)", "global_store_short v0, v10, s[4:5]"]
        program = sim.load(Kernel(lines, "gfx950").text(), target="gfx950")
        run_it = lambda program=program: program.launch("k", (1, 1, 1), (64, 1, 1), [np.zeros(64, np.uint32)])  # noqa: E731
        if fine:
            run_it()
        else:
            with pytest.raises(sim.SimError, match="undefined"):
                run_it()
