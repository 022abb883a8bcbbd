"""Scalar loads of every width and address form, and the buffer forms with their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._asm import Kernel
from ._compile import TARGETS
from ._legal import legal

WIDTHS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
OFFSETS = {"0x0": 0, "0x44": 0x44, "-0x20": -0x20, "s12": 0x60, "s12 offset:0x14": 0x74}


def body(instruction: str, count: int) -> list[str]:
    """s[4:5] points 256 bytes into the data; s12 is an offset; s[24:..] gets the result."""
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_movk_i32 s12, 0x60",
        "v_lshlrev_b32_e32 v0, 2, v0",
        "s_waitcnt lgkmcnt(0)",
        "s_add_u32 s4, s4, 0x100",
        "s_addc_u32 s5, s5, 0",
        "s_mov_b32 s16, s4",
        "s_and_b32 s17, s5, 0xffff",
        "s_movk_i32 s18, 0x80",
        "s_mov_b32 s19, 0x27000",
        instruction,
        "s_waitcnt lgkmcnt(0)",
    ]
    for i in range(count):
        lines += [f"v_mov_b32_e32 v1, s{24 + i}", f"global_store_dword v0, v1, s[6:7] offset:{256 * (i % 8)}"]
        if i == 7:
            lines += ["s_add_u32 s6, s6, 0x800", "s_addc_u32 s7, s7, 0"]
    return lines


def run(instruction: str, count: int, target: str, data: np.ndarray) -> np.ndarray:
    out = np.zeros((count, 64), np.uint32)
    program = sim.load(Kernel(body(instruction, count), target, buffers=2).text(), target=target)
    program.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[data, out])
    assert (out == out[:, :1]).all()
    return out[:, 0]


def destination(count: int) -> str:
    return f"s[24:{23 + count}]" if count > 1 else "s24"


FORMS = [(w, o, t) for t in TARGETS for w in WIDTHS for o in OFFSETS
         if legal([f"s_load_{w} {destination(WIDTHS[w])}, s[4:5], {o}"], t)[0]]  # fmt: skip


@pytest.mark.parametrize(("width", "offset", "target"), FORMS)
def test_scalar_load(width, offset, target):
    data = np.random.default_rng(0).integers(0, 2**32, 128, dtype=np.uint32)
    count = WIDTHS[width]
    got = run(f"s_load_{width} {destination(count)}, s[4:5], {offset}", count, target, data)
    first = (256 + OFFSETS[offset]) // 4
    np.testing.assert_array_equal(got, data[first : first + count])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("offset", ["0x0", "0x44", "s12", "0x78"])
def test_scalar_buffer_load_clamps_to_the_record_count(width, offset, target):
    """Dwords at or beyond num_records (0x80 bytes) read as zero (ISA, scalar memory range checks)."""
    data = np.random.default_rng(0).integers(1, 2**32, 128, dtype=np.uint32)
    count = WIDTHS[width]
    got = run(f"s_buffer_load_{width} {destination(count)}, s[16:19], {offset}", count, target, data)
    start = OFFSETS.get(offset, 0x78) // 4
    index = start + np.arange(count)
    np.testing.assert_array_equal(got, np.where(index < 32, data[64 + index], 0))


def test_every_width_has_a_form():
    assert {w for w, _, _ in FORMS} == set(WIDTHS)
