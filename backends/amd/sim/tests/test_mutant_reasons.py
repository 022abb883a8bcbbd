"""The arguments by which mutants count as equivalent: their arithmetic, and that they do not hold where they must not."""

from __future__ import annotations

import random

import numpy as np
import pytest

from warpwave.backends.amd import sim

from . import _mutants
from ._asm import Kernel
from ._definitions import constant
from ._drivers import load_all
from ._listing import listing
from ._reasons import general_reason

F32 = np.float32
TARGET = "gfx950"


def _float(bits: int) -> np.float32:
    return np.array([bits], np.uint32).view(F32)[0]


def _reciprocals(d: np.ndarray) -> list[np.ndarray]:
    """Every f32 that a v_rcp with an error below one unit may give."""
    exact = 1.0 / d.astype(F32).astype(np.float64)
    nearest = exact.astype(F32)
    other = np.nextafter(nearest, np.where(nearest < exact, np.inf, 0).astype(F32))
    return [nearest, np.where(nearest == exact, nearest, other)]


def _newton(z: np.ndarray, d: np.ndarray) -> np.ndarray:
    low, word = np.uint64(0xFFFFFFFF), np.uint64(32)
    residual = (z * ((np.uint64(1 << 32) - d) & low)) & low
    return (z + ((z * residual) >> word)) & low


@pytest.mark.parametrize("kind", ["small", "any"])
def test_below_2_to_31_a_quotient_is_at_most_one_too_small(kind):
    """LLVM's 32-bit division: z = 2**32 / d from v_rcp_iflag_f32 and one Newton step, q = mulhi(x, z).

    With e = 2**32 - z * d, q is short by less than x * e / (d * 2**32) + 1, so e < 2 d is what is needed.
    """
    d = np.arange(1, 1 << 20) if kind == "small" else np.random.default_rng(0).integers(1, 1 << 32, 1 << 20)
    d = d.astype(np.uint64)
    for reciprocal in _reciprocals(d):
        z = _newton((reciprocal * _float(0x4F7FFFFE)).astype(np.uint64), d)
        error = np.int64(1 << 32) - (z * d).astype(np.int64)
        assert (error >= 0).all()
        assert (error < 2 * d.astype(np.int64)).all()


def test_below_2_to_63_a_long_quotient_is_at_most_one_too_small():
    """The same of LLVM's 64-bit division: v_rcp_f32 of the f32 nearest to d, split into words, two Newton steps."""
    random.seed(0)
    for _ in range(3000):
        d = random.randrange(1 << 32, 1 << random.randrange(33, 65))
        high = F32(np.float64(F32(d >> 32)) * 2.0**32 + np.float64(F32(d & 0xFFFFFFFF)))
        scaled = F32(F32(1 / np.float64(high)) * _float(0x5F7FFFFC))
        words = np.trunc(F32(scaled * _float(0x2F800000)))
        z = int(words) << 32 | int(np.float64(words) * -(2.0**32) + np.float64(scaled))
        for _ in range(2):
            z += z * (-d * z % 2**64) >> 64
        assert 0 <= 2**64 - z * d < 2 * d


def _reciprocal_mutants() -> tuple[_mutants.Subject, list[_mutants.Mutant]]:
    """The sign changes in the quotient of division.hip that are equivalent where the numerator is 1."""
    subject = _mutants.Subject(next(d for d in load_all() if d.kernel == "division"), TARGET)
    code = subject.code.code
    scale = next(i for i, x in enumerate(code) if x.text.startswith("v_div_scale_f32") and "vcc" in x.text)
    numerator = code[scale].parsed.operands[0]
    found = []
    for mutant in _mutants.mutants(subject.code, TARGET):
        item = code[mutant.index]
        uses = mutant.index > scale and numerator in item.parsed.operands[1:]
        signed = item.name.startswith("v_mul_f32") or (mutant.new or "").endswith(f"-{numerator}")
        if mutant.kind == "flip neg" and uses and signed:
            found.append(mutant)
    return subject, found


def _quotients(subject: _mutants.Subject, text: str, first: int, count: int) -> np.ndarray:
    """1 / d of the denominators in [1, 2) with these significands, by a version of the kernel."""
    d = (np.arange(first, first + count, dtype=np.uint32) + np.uint32(0x3F800000)).view(F32)
    ones, q, r, p = np.ones(count, F32), np.zeros(count, F32), np.zeros(count, F32), np.zeros(count)
    args = [q, p, r, ones, d, np.ones(count), np.ones(count), np.int32(count)]
    sim.load(text, TARGET).launch(subject.kernel, (count // 64,), (64,), args)
    return q


def _same_reciprocals(first: int, count: int) -> None:
    subject, found = _reciprocal_mutants()
    assert len(found) == 4
    want = 1 / (np.arange(first, first + count, dtype=np.uint32) + np.uint32(0x3F800000)).view(F32)
    for text in [subject.text, *(subject.code.replaced(m.index, m.new) for m in found)]:
        np.testing.assert_array_equal(_quotients(subject, text, first, count), want)


@pytest.mark.parametrize("first", [0, 0x400000, 0x800000 - 4096])
def test_signs_within_a_reciprocal_do_not_matter(first):
    _same_reciprocals(first, 4096)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_signs_within_a_reciprocal_do_not_matter_for_any_significand(part):
    _same_reciprocals(part << 20, 1 << 20)


def _reason(kind: str, body: list[str], old: str, new: str | None) -> str | None:
    code = listing(Kernel(body, TARGET).text(), "k")
    index = next(i for i, item in enumerate(code.code) if item.text == old)
    return general_reason(code, _mutants.Mutant(kind, index, old, new))


NESTED = ["s_and_saveexec_b64 s[2:3], vcc", "s_and_saveexec_b64 s[8:9], s[6:7]", "v_mov_b32_e32 v2, v1"]
OUTER = "s_or_b64 exec, exec, s[2:3]"
STORE = "global_store_dword v1, v2, s[4:5]"


def test_a_dropped_restore_needs_an_outer_one_before_any_lane_matters():
    inner = "s_or_b64 exec, exec, s[8:9]"
    assert _reason("drop restore", [*NESTED, inner, OUTER, STORE], inner, None)
    assert _reason("drop restore", [*NESTED, inner, "s_nop 0"], inner, None)
    assert not _reason("drop restore", [*NESTED, inner, STORE, OUTER, STORE], inner, None)
    assert not _reason("drop restore", [*NESTED, inner, "s_mov_b64 s[20:21], exec", OUTER, STORE], inner, None)
    swapped = [*NESTED, OUTER, inner, STORE]
    assert not _reason("drop restore", swapped, OUTER, None)


def _sdwa(base: str, dst: str, src0: str, src1: str) -> str:
    return f"{base}_sdwa v2, v3, v4 dst_sel:{dst} dst_unused:UNUSED_PAD src0_sel:{src0} src1_sel:{src1}"


@pytest.mark.parametrize(("base", "selectors", "changed", "holds"), [
    ("v_lshlrev_b32", ("DWORD", "DWORD", "BYTE_0"), ("DWORD", "WORD_0", "BYTE_0"), True),
    ("v_lshlrev_b32", ("DWORD", "DWORD", "DWORD"), ("DWORD", "DWORD", "WORD_0"), False),
    ("v_lshlrev_b32", ("DWORD", "DWORD", "BYTE_0"), ("WORD_0", "DWORD", "BYTE_0"), False),
    ("v_and_b32", ("DWORD", "BYTE_3", "DWORD"), ("DWORD", "BYTE_3", "WORD_0"), True),
    ("v_and_b32", ("DWORD", "BYTE_3", "DWORD"), ("WORD_0", "BYTE_3", "DWORD"), True),
    ("v_and_b32", ("DWORD", "DWORD", "DWORD"), ("DWORD", "DWORD", "WORD_0"), False),
    ("v_xor_b32", ("DWORD", "WORD_1", "BYTE_3"), ("WORD_0", "WORD_1", "BYTE_3"), True),
    ("v_xor_b32", ("DWORD", "DWORD", "BYTE_3"), ("WORD_0", "DWORD", "BYTE_3"), False),
    ("v_or_b32", ("WORD_1", "DWORD", "DWORD"), ("WORD_1", "WORD_0", "DWORD"), True),
    ("v_or_b32", ("DWORD", "WORD_0", "DWORD"), ("DWORD", "WORD_1", "DWORD"), False),
    ("v_add_u32", ("DWORD", "WORD_0", "WORD_0"), ("WORD_0", "WORD_0", "WORD_0"), False),
])  # fmt: skip
def test_selectors_that_cannot_matter(base, selectors, changed, holds):
    old, new = _sdwa(base, *selectors), _sdwa(base, *changed)
    assert bool(_reason("change SDWA", [old], old, new)) == holds


def test_a_shift_by_a_known_count_bounds_the_result():
    old, new = (_sdwa("v_lshlrev_b32", dst, "DWORD", "BYTE_0") for dst in ("DWORD", "WORD_0"))
    assert _reason("change SDWA", ["v_mov_b32_e32 v3, 8", old], old, new)
    assert not _reason("change SDWA", ["v_mov_b32_e32 v3, 9", old], old, new)
    branch = ["v_mov_b32_e32 v3, 8", "s_cbranch_scc1 .Lx", "v_mov_b32_e32 v3, 9", ".Lx:", old]
    assert not _reason("change SDWA", branch, old, new)


def test_constants_reach_through_branches():
    body = ["v_mov_b32_e32 v3, 8", "s_cbranch_scc1 .Lx", "v_mov_b32_e32 v4, 9", ".Lx:", "v_add_u32_e32 v5, v3, v4"]
    code = listing(Kernel(body, TARGET).text(), "k")
    add = len(code.code) - 2
    assert code.code[add].name == "v_add_u32_e32"
    assert (constant(code, add, "v3"), constant(code, add, "v4")) == (8, 9)
    again = listing(Kernel(["v_mov_b32_e32 v4, 7", *body], TARGET).text(), "k")
    assert constant(again, add + 1, "v4") is None


CHAIN = [f"v_add_f32_dpp v3, v3, v3 row_shr:{n} row_mask:0xf bank_mask:0xf bound_ctrl:1" for n in (2, 4, 8)]
CHAIN += [f"v_add_f32_dpp v3, v3, v3 row_bcast:{n} row_mask:0xf bank_mask:0xf bound_ctrl:1" for n in (15, 31)]


@pytest.mark.parametrize(("lane", "holds"), [("63", True), ("v", False)])
def test_lanes_that_a_reduction_does_not_read(lane, holds):
    """The first lane of a row has no source for row_shr:1, and is not read again on the way to lane 63."""
    first = "v_add_f32_dpp v3, v5, v5 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1"
    last = "v_readlane_b32 s7, v3, 63" if lane == "63" else STORE
    old, new = first, first.replace(" bound_ctrl:1", "")
    assert bool(_reason("drop bound_ctrl", [first, *CHAIN, last], old, new)) == holds
    short = [first, "v_add_f32_dpp v3, v3, v3 row_shr:15 row_mask:0xf bank_mask:0xf bound_ctrl:1", last]
    assert not _reason("drop bound_ctrl", short, old, new)


def test_square_roots_one_unit_off_are_corrected_by_compiled_code():
    """The kernels keep their results on hardware whose v_sqrt_f32 is not rounded rightly."""
    subject = _mutants.Subject(next(d for d in load_all() if d.kernel == "division"), TARGET)
    for ulps in (-1, 1):
        text = _mutants.off_by(subject.text, ulps)
        assert text.count("s_nop") == subject.text.count("s_nop") + 1
        assert subject.right(1, ulps) == subject.right(1)
