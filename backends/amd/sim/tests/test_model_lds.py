"""LDS instructions that move data between lanes, transposing reads, and direct global-to-LDS loads."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _memory
from ._asm import Kernel
from ._compile import TARGETS
from ._legal import legal
from ._operands import Case, Operands, kernel
from ._operands import simulate as run_cases

EXEC = (0xFFFFFFFFFFFFFFFF, 0x00FF0F0F33335555)
LANE = np.arange(64)


def lane_operands(target: str, addresses: np.ndarray) -> Operands:
    rng = np.random.default_rng(3)
    vectors = rng.integers(0, 2**32, (addresses.shape[0], 8, 64), dtype=np.uint32)
    vectors[:, 1] = addresses
    scalars = rng.integers(0, 2**32, (addresses.shape[0], 16), dtype=np.uint32)
    return Operands(vectors, scalars, target)


def run_lane_op(text: str, operands: Operands, mask: int) -> np.ndarray:
    case = Case(f"{text}\ns_waitcnt lgkmcnt(0)", exec=mask)
    program = sim.load(kernel([case], operands).text(), target=operands.target)
    return run_cases(program, [case], operands)[0][0]


def enabled(mask: int) -> np.ndarray:
    return (np.uint64(mask) >> LANE.astype(np.uint64)) & np.uint64(1) == 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mask", EXEC)
@pytest.mark.parametrize("offset", [0, 4, 60])
def test_bpermute_pulls_and_disabled_sources_give_zero(target, mask, offset):
    rng = np.random.default_rng(0)
    operands = lane_operands(target, rng.integers(0, 2**20, (3, 64)).astype(np.uint32))
    got = run_lane_op(f"ds_bpermute_b32 v128, v9, v8 offset:{offset}", operands, mask)
    source = (operands.vectors[:, 1] + offset) // 4 % 64
    value = np.take_along_axis(operands.vectors[:, 0], source.astype(int), axis=1)
    pulled = np.where(enabled(mask)[source.astype(int)], value, 0)
    np.testing.assert_array_equal(got, np.where(enabled(mask), pulled, operands.vectors[:, 7]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mask", EXEC)
def test_permute_pushes_and_the_last_lane_wins(target, mask):
    rng = np.random.default_rng(1)
    operands = lane_operands(target, (rng.integers(0, 100, (3, 64)) * 4).astype(np.uint32))
    got = run_lane_op("ds_permute_b32 v128, v9, v8 offset:8", operands, mask)
    want = np.zeros((3, 64), np.uint32)
    for group in range(3):
        for lane in np.flatnonzero(enabled(mask)):
            want[group, (operands.vectors[group, 1, lane] + 8) // 4 % 64] = operands.vectors[group, 0, lane]
    np.testing.assert_array_equal(got, np.where(enabled(mask), want, operands.vectors[:, 7]))


def swizzle_source(pattern: int) -> np.ndarray:
    """ISA, DS_SWIZZLE_B32: bit 15 quad permutation, else and/or/xor masks; 0xC000 rotate, 0xE000 FFT."""
    if pattern >= 0xE000:
        mask = pattern & 0x1F
        reverse = np.array([int(f"{i:05b}"[::-1], 2) for i in range(32)])[LANE % 32]
        return LANE // 32 * 32 + (reverse >> bin(mask).count("1") | LANE % 32 & mask)
    if pattern >= 0xC000:
        amount, mask = pattern >> 5 & 0x1F, pattern & 0x1F
        shifted = LANE % 32 - amount if pattern & 0x400 else LANE % 32 + amount
        return LANE // 32 * 32 + ((LANE % 32) & mask | (shifted & ~mask & 31))
    if pattern & 0x8000:
        return LANE // 4 * 4 + (pattern >> (2 * (LANE % 4)) & 3)
    and_mask, or_mask, xor_mask = pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31
    return LANE // 32 * 32 + ((LANE % 32 & and_mask | or_mask) ^ xor_mask)


QUAD = [0x8000 | q for q in range(256)]
BITS = [a | o << 5 | x << 10 for a in (31, 0, 30, 16, 7) for o in (0, 1, 9, 31) for x in (0, 1, 2, 4, 8, 16, 31)]
ROTATE = [0xC000 | d << 10 | n << 5 | m for d in (0, 1) for n in (0, 1, 7, 31) for m in (0, 0x1C, 0x10)]
FFT = [0xE000 | mask for mask in (0, 0x10, 0x18, 0x1C, 0x1E, 0x1F)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("patterns", [QUAD, BITS, ROTATE, FFT], ids=["quad", "bits", "rotate", "fft"])
def test_swizzle(target, patterns):
    operands = lane_operands(target, np.zeros((1, 64), np.uint32))
    cases = [Case(f"ds_swizzle_b32 v128, v8 offset:{p:#x}\ns_waitcnt lgkmcnt(0)") for p in patterns]
    program = sim.load(kernel(cases, operands).text(), target=target)
    for pattern, got in zip(patterns, run_cases(program, cases, operands), strict=True):
        want = operands.vectors[0, 0, swizzle_source(pattern)]
        np.testing.assert_array_equal(got[0, 0], want, err_msg=hex(pattern))


@pytest.mark.parametrize("target", TARGETS)
def test_swizzle_reads_zero_from_disabled_lanes(target):
    operands = lane_operands(target, np.zeros((2, 64), np.uint32))
    got = run_lane_op("ds_swizzle_b32 v128, v8 offset:0x041f", operands, EXEC[1])
    source = swizzle_source(0x041F)
    want = np.where(enabled(EXEC[1])[source], operands.vectors[:, 0, source], 0)
    np.testing.assert_array_equal(got, np.where(enabled(EXEC[1]), want, operands.vectors[:, 7]))


TRANSPOSES = {"ds_read_b64_tr_b16": (16, 8), "ds_read_b64_tr_b8": (8, 8), "ds_read_b64_tr_b4": (4, 8),
              "ds_read_b96_tr_b6": (6, 12)}  # fmt: skip


def _elements(raw: np.ndarray, width: int) -> np.ndarray:
    """raw[..., bytes] as a row of little-endian `width`-bit elements."""
    bits = np.unpackbits(raw, axis=-1, bitorder="little")
    weights = 1 << np.arange(width)
    return (bits.reshape(*raw.shape[:-1], -1, width) * weights).sum(axis=-1)


def _pack(elements: np.ndarray, width: int) -> np.ndarray:
    bits = (elements[..., None] >> np.arange(width)) & 1
    packed = np.packbits(bits.reshape(*elements.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)


@pytest.mark.parametrize("name", TRANSPOSES)
def test_transposing_read(name):
    """out[lane j of 16][i] = CAT[16 i + j], CAT the group's data in lane order (amd.md 2.2)."""
    width, size = TRANSPOSES[name]
    registers = size // 4
    last = 127 + registers
    access = _memory.Access(f"{name} v[128:{last}], v8 offset:16", _memory.Load(size), "lds", (16,))
    data = _memory.make(5, shared=False)
    program = sim.load(_memory.kernel_text([access], "gfx950", data.groups), target="gfx950")
    _, results = _memory.simulate(program, [access], data)
    group = np.arange(data.groups)[:, None, None]
    raw = data.memory[group, (data.offsets[..., None] + 16 + np.arange(size)).astype(int)]
    rows = _elements(raw, width).reshape(data.groups, 4, -1, 16)
    want = _pack(rows.swapaxes(2, 3).reshape(data.groups, 64, -1), width)
    np.testing.assert_array_equal(results[:, 0, :, :registers], want)


def test_transposing_reads_are_refused_on_cdna3():
    text = Kernel(["ds_read_b64_tr_b16 v[2:3], v0"], "gfx942", lds=512).text()
    with pytest.raises(sim.LoadError):
        sim.load(text, target="gfx942")


DMA_SIZES = {"ubyte": (1, False), "sbyte": (1, True), "ushort": (2, False), "sshort": (2, True), "dword": (4, False),
             "dwordx3": (12, False), "dwordx4": (16, False)}  # fmt: skip
DMA_FORMS = {
    "global": "global_load_lds_{n} v8, s[4:5] offset:{o}",
    "vector": "global_load_lds_{n} v[10:11], off offset:{o}",
    "buffer": "buffer_load_{n} v8, s[20:23], 0 offen offset:{o} lds",
}


def dma_kernel(name: str, form: str, target: str, mask: int, offset: int) -> str:
    """Fill LDS with a pattern, load into it directly, and copy it out."""
    instruction = DMA_FORMS[form].format(n=name, o=offset)
    body = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_load_dwordx2 s[8:9], s[0:1], 0x10",
        "v_lshlrev_b32_e32 v0, 2, v0",
        "v_mov_b32_e32 v9, 0",
        "v_mov_b32_e32 v1, 0xabababab",
        *(f"ds_write_b32 v0, v1 offset:{256 * i}" for i in range(8)),
        "s_waitcnt lgkmcnt(0)",
        "global_load_dword v8, v0, s[6:7]",
        "s_waitcnt vmcnt(0)",
        "v_lshl_add_u64 v[10:11], s[4:5], 0, v[8:9]",
        "s_mov_b32 s20, s4",
        "s_and_b32 s21, s5, 0xffff",
        "s_movk_i32 s22, 0x2000",
        "s_mov_b32 s23, 0x27000",
        "s_movk_i32 m0, 0x100",
        f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}",
        f"s_mov_b32 exec_hi, {mask >> 32:#x}",
        "s_nop 4",
        instruction,
        "s_mov_b64 exec, -1",
        "s_waitcnt vmcnt(0)",
    ]
    for i in range(8):
        body += [f"ds_read_b32 v2, v0 offset:{256 * i}", "s_waitcnt lgkmcnt(0)"]
        body += [f"global_store_dword v0, v2, s[8:9] offset:{256 * i}"]
    return Kernel(body, target, buffers=3, lds=2048).text()


def dma_answer(name: str, source: np.ndarray, offsets: np.ndarray, mask: int, offset: int) -> np.ndarray:
    """LDS = M0 + instruction offset + lane * 4 (or 16): narrow loads fill a dword, x3 leaves a hole."""
    size, signed = DMA_SIZES[name]
    lds = np.full(2048, 0xAB, np.uint8)
    for lane in np.flatnonzero(enabled(mask)):
        raw = source[offsets[lane] + offset :][:size]
        if size < 4:
            value = int.from_bytes(raw.tobytes(), "little", signed=signed) & 0xFFFFFFFF
            raw = np.frombuffer(value.to_bytes(4, "little"), np.uint8)
        start = 0x100 + offset + lane * (16 if size > 4 else 4)
        lds[start : start + len(raw)] = raw
    return lds


DMA_CASES = [(n, f, t) for t in TARGETS for n in DMA_SIZES for f in DMA_FORMS
             if legal([DMA_FORMS[f].format(n=n, o=16)], t)[0]]  # fmt: skip


@pytest.mark.parametrize(("name", "form", "target"), DMA_CASES)
@pytest.mark.parametrize("mask", EXEC)
@pytest.mark.parametrize("offset", [0, 16])
def test_direct_load_to_lds(name, form, target, mask, offset):
    rng = np.random.default_rng(7)
    source = rng.integers(0, 256, 8192).astype(np.uint8)
    offsets = (rng.permutation(64) * 64).astype(np.uint32)
    out = np.zeros(2048, np.uint8)
    program = sim.load(dma_kernel(name, form, target, mask, offset), target=target)
    program.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[source, offsets, out])
    np.testing.assert_array_equal(out, dma_answer(name, source, offsets, mask, offset))


def test_wide_direct_loads_exist_on_cdna4_only():
    wide = {(n, t) for n, _, t in DMA_CASES if n in ("dwordx3", "dwordx4")}
    assert wide == {("dwordx3", "gfx950"), ("dwordx4", "gfx950")}
