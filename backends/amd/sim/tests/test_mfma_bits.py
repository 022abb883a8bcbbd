"""Matrix instructions as they are executed, bit for bit: registers of random codes against the independent models.

`mma_model` is the published algorithm; f32 forms are chains of fused multiply-adds, i8 forms wrap.
"""

from __future__ import annotations

import numpy as np
import pytest

from . import mma_model
from .model import mfma
from .test_arith_mfma import _accumulators, _codes, _same
from .test_model_mfma import FORMAT_PAIRS, LEGAL, SCALE_A, A, B, C, Inputs, instruction

KINDS = ("normal", "wide", "cancel", "tiny", "special", "raw")
ENOUGH = 120_000  # outputs of one instruction in the long run
DENSE = [(n, t) for n, t in LEGAL if "smfmac" not in n and "_f64_" not in n]
SPARSE = [(n, t) for n, t in LEGAL if "smfmac_f32" in n]
F8F6F4 = ("v_mfma_f32_32x32x64_f8f6f4", "v_mfma_f32_16x16x128_f8f6f4")
SMALL = ("fp8", "bf8")


class Bits(Inputs):
    """Registers that hold random codes of one kind; C holds f32, or integers."""

    def __init__(self, shape: mfma.Shape, target: str, kind: str, groups: int, seed: int) -> None:
        super().__init__(shape, target, groups, seed)
        self.kind = kind
        self.code_a, self.code_b = (
            self._elements(e, n) for e, n in ((shape.a, shape.a_items), (shape.b, shape.b_items))
        )
        size = (groups, 64, shape.m * shape.n * shape.blocks // 64)
        self.code_c = _accumulators(self.rng, self.code_a, size, "raw" if shape.result == "i32" else kind)

    def format(self, element: str) -> str:
        """The model's name of an element type."""
        fnuz = "fnuz" if self.target == "gfx942" else "ocp"
        return f"{element}_{fnuz}" if element in SMALL else element

    def _elements(self, element: str, items: int) -> np.ndarray:
        size = (self.groups, 64, items)
        if element == "i8":
            return self.rng.integers(0, 256, size).astype(np.uint64)
        return np.asarray(_codes(self.rng, self.format(element), size, self.kind)).astype(np.uint64)

    def operands(self):
        operands = super().operands()
        for first, codes, kind in ((A, self.code_a, self.shape.a), (B, self.code_b, self.shape.b)):
            words = mfma.pack(codes, kind)
            operands.vectors[:, first - 8 : first - 8 + words.shape[1]] = words
        words = np.ascontiguousarray(self.code_c.swapaxes(1, 2)).astype(np.uint32)
        operands.vectors[:, C - 8 : C - 8 + words.shape[1]] = words
        return operands

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A (tiles, M, K), B (tiles, K, N) and C (tiles, M, N) as codes."""
        shape = self.shape
        a = mfma.gather(shape, self.code_a, True).reshape(-1, shape.m, shape.k)
        b = mfma.gather(shape, self.code_b, False).reshape(-1, shape.n, shape.k)
        c = mfma.collect(shape, self.code_c).reshape(-1, shape.m, shape.n)
        return a.astype(np.int64), b.astype(np.int64).swapaxes(1, 2), c.astype(np.uint32)

    def wanted(self, **scales: np.ndarray) -> np.ndarray:
        """D as words[G, register, lane]."""
        shape, (a, b, c) = self.shape, self.matrices()
        if shape.a == "i8":
            d = (a.astype(np.uint8).view(np.int8).astype(np.int64) @ b.astype(np.uint8).view(np.int8) + c).astype(
                np.uint32
            )
        elif shape.a == "f32":
            d = fused_chain(a, b, c)
        else:
            d = mma_model.multiply_accumulate(self.format(shape.a), self.format(shape.b), a, b, c, **scales)
        values = mfma.scatter(shape, d.reshape(self.groups, shape.blocks, shape.m, shape.n))
        return values.swapaxes(1, 2).astype(np.uint32)


class SparseBits(Bits):
    """A stores half of each row; the elements of B that it meets are gathered for each row.

    That the *stored* products, in ascending k, are what is added in groups is an assumption (arith/mfma.hpp).
    """

    def places(self) -> np.ndarray:
        """The k of the B elements [lane, item]: a lane holds runs of 16 bytes, one of each group of lanes in turn."""
        shape = self.shape
        run = min(128 // mfma.WIDTH[shape.b], shape.b_items)
        group, item = np.arange(64)[:, None] // shape.n, np.arange(shape.b_items)[None]
        return run * group + item % run + run * (64 // shape.n) * (item // run)

    def wanted(self, **scales: np.ndarray) -> np.ndarray:
        shape, places, lane = self.shape, self.places(), np.arange(64)
        item = np.arange(shape.a_items)
        met = 4 * (item // 2) + (self.index[:, :, None] >> (2 * item).astype(np.uint32) & 3).astype(int)
        dense = np.zeros((self.groups, shape.m, shape.k), np.int64)
        stored = np.zeros(dense.shape, bool)
        for first, values in ((dense, self.code_a), (stored, True)):
            first[np.arange(self.groups)[:, None, None], lane[None, :, None] % shape.m, places[lane[:, None], met]] = (
                values
            )
        k = np.nonzero(stored)[2].reshape(self.groups, shape.m, -1)
        a = np.take_along_axis(dense, k, 2).reshape(self.groups * shape.m, 1, -1)
        b = np.zeros((self.groups, shape.n, shape.k), np.int64)
        b[:, lane[:, None] % shape.n, places] = self.code_b
        met_b = np.stack([b[g][:, k[g]] for g in range(self.groups)]).transpose(0, 2, 3, 1)
        c = mfma.collect(shape, self.code_c).reshape(-1, 1, shape.n).astype(np.uint32)
        types = self.format(shape.a), self.format(shape.b)
        d = mma_model.multiply_accumulate(*types, a, met_b.reshape(len(a), -1, shape.n), c)
        return mfma.scatter(shape, d.reshape(self.groups, 1, shape.m, shape.n)).swapaxes(1, 2).astype(np.uint32)


def fused_chain(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """One fused multiply-add per k, in ascending order."""
    total = c.view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        left, right = (x.astype(np.uint32).view(np.float32).astype(np.float64) for x in (a, b))
    for k in range(a.shape[2]):
        total = fma(left[:, :, k, None], right[:, k, None, :], total)
    return total.view(np.uint32)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """f32 from f32 factors: the sum in f64 is rounded to odd first, so that rounding again is harmless."""
    with np.errstate(all="ignore"):
        p, c = a * b, c.astype(np.float64)
        s = p + c
        back = s - p
        error = (p - (s - back)) + (c - back)
        odd = s.view(np.int64) & 1 == 1
        inexact = np.isfinite(s) & (error != 0) & ~odd
        away = (error > 0) == (s > 0)
        s = np.where(inexact, (s.view(np.int64) + np.where(away, 1, -1)).view(np.float64), s)
        return s.astype(np.float32)


def _check(name: str, target: str, kind: str, groups: int, seed: int) -> None:
    bits = (SparseBits if "smfmac" in name else Bits)(mfma.shape(name), target, kind, groups, seed)
    got, want = bits.run(instruction(bits.shape)), bits.wanted()
    same = got == want if bits.shape.result == "i32" else _same(got, want)
    assert same.all(), f"{kind}: {np.count_nonzero(~same)} of {same.size} results differ"


def _scaled(name: str, formats: tuple[str, str], kind: str, groups: int, seed: int) -> None:
    bits = Bits(mfma.shape(name, formats), "gfx950", kind, groups, seed)
    codes = " ".join(f"{k}:{mfma.F8F6F4.index(f)}" for k, f in zip(("cbsz", "blgp"), formats, strict=True))
    plain = bits.run(instruction(bits.shape, tail=codes))
    assert _same(plain, bits.wanted()).all(), f"{kind}, not scaled"
    case = instruction(bits.shape, tail="@")
    scaled = case.text.replace("v_mfma_", "v_mfma_scale_", 1).replace(
        " @", f", v{SCALE_A}, v{SCALE_A + 1} op_sel_hi:[0,0,0] {codes}"
    )
    got = bits.run(type(case)(scaled, case.vectors, setup=case.setup, old=False))
    blocks, m = bits.shape.k // 32, bits.shape.m  # lane = row + rows * block (ISA 7.2.1)
    a, b = (s[..., 0].reshape(-1, blocks, m) for s in (bits.scale_a, bits.scale_b))
    assert _same(got, bits.wanted(a_scale=a.swapaxes(1, 2), b_scale=b)).all(), f"{kind}, scaled"


@pytest.mark.parametrize(("name", "target"), DENSE + SPARSE, ids=["-".join(d) for d in DENSE + SPARSE])
def test_instruction(name, target):
    for seed, kind in enumerate(KINDS):
        _check(name, target, kind, 1, seed)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "target"), DENSE + SPARSE, ids=["-".join(d) for d in DENSE + SPARSE])
def test_instruction_at_length(name, target):
    shape = mfma.shape(name)
    groups = -(-ENOUGH // (shape.m * shape.n * shape.blocks * len(KINDS)))
    for seed, kind in enumerate(KINDS):
        _check(name, target, kind, groups, 100 + seed)


@pytest.mark.parametrize("name", F8F6F4)
@pytest.mark.parametrize("formats", FORMAT_PAIRS, ids="-".join)
def test_formats_and_scales(name, formats):
    for seed, kind in enumerate(("normal", "raw")):
        _scaled(name, formats, kind, 1, seed)


@pytest.mark.sweep
@pytest.mark.parametrize("name", F8F6F4)
@pytest.mark.parametrize("formats", FORMAT_PAIRS, ids="-".join)
def test_formats_and_scales_at_length(name, formats):
    for seed, kind in enumerate(KINDS):
        _scaled(name, formats, kind, 40, 100 + seed)


def test_the_fused_operation_rounds_once():
    """Against exact rationals, where rounding twice would differ: the f64 sum lies on the middle of two f32."""
    a, b = np.float64(np.float32(1 + 2.0**-12)), np.float64(np.float32(1 + 2.0**-12))
    for tiny, want in ((2.0**-80, 1 + 2.0**-11 + 2.0**-23), (-(2.0**-80), 1 + 2.0**-11)):
        # a * b = 1 + 2**-11 + 2**-24, the middle; the addend decides
        assert fma(np.array([a]), np.array([b]), np.array([tiny], np.float32))[0] == np.float32(want)
