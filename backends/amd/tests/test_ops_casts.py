"""Conversions in every rounding and saturation: all codes of short formats, and all midpoints of targets."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.tests.harness import BOTH, agree_ops
from warpwave.backends.amd.tests.test_ops_elementwise import FP8, all_codes, integers, random_bits, specials
from warpwave.tiles.dtypes import ALL, DType, bf16, bool_, f16, f32, i8, i32, i64

ROUNDINGS = ("rne", "rtz", "rta", "rtp", "rtn")
FLOATS = (f32, f16, bf16, *FP8)
SHORT = (f16, bf16, *FP8)
INTEGERS = (i8, i32, i64)


def cast(target: DType, rounding: str, saturate: bool):
    return lambda x: ww.cast(x, target, rounding=rounding, saturate=saturate)


def all_ways(target: DType):
    """The conversions to a float format."""
    return [
        (f"to {target} {rounding}{' saturating' * saturate}", cast(target, rounding, saturate))
        for rounding in ROUNDINGS
        for saturate in (False, True)
    ]


def borders(target: DType, step: int = 1) -> np.ndarray:
    """Numbers of the format, midpoints between neighbours, and their f32 neighbours."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        codes = all_codes(target)[: 1 << (target.bits - 1)].astype(np.float64)
    codes = np.unique(codes[np.isfinite(codes)])
    picked = codes[np.unique(np.concatenate([np.arange(0, len(codes), step), [1, 2, len(codes) - 2, len(codes) - 1]]))]
    above = codes[np.minimum(np.searchsorted(codes, picked) + 1, len(codes) - 1)]
    beyond = codes[-1] + (codes[-1] - codes[-2]) * np.array([0.5, 1, 2])
    middle = np.concatenate([picked, (picked + above) / 2, beyond])
    with np.errstate(all="ignore"):
        middle = middle.astype(np.float32)
    near = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-1))])
    return np.concatenate([near, -near])


def f32_inputs(target: DType, step: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.concatenate([borders(target, step), specials(f32), random_bits(rng, f32, 300)])


@pytest.mark.parametrize(
    ("target", "arch"),
    [
        (bf16, "gfx942"),
        (bf16, "gfx950"),
        (f16, "gfx950"),
        (FP8[0], "gfx942"),
        (FP8[1], "gfx950"),
        (FP8[2], "gfx942"),
        (FP8[3], "gfx942"),
    ],
    ids=str,
)
def test_from_f32_in_every_rounding(target, arch):
    agree_ops(all_ways(target), [f32_inputs(target, 1 if target.is_fp8 else 61)], [arch])


@pytest.mark.sweep
@pytest.mark.parametrize("arch", BOTH)
@pytest.mark.parametrize("target", SHORT, ids=str)
def test_from_f32_at_every_midpoint(target, arch):
    agree_ops(all_ways(target), [f32_inputs(target, 1)], [arch], block=256)


def defaults(source: DType):
    """The default conversions from a dtype to all others."""
    return [(f"to {d}", lambda x, d=d: ww.cast(x, d)) for d in ALL if d != source]


@pytest.mark.parametrize("source", FP8, ids=str)
def test_from_every_code_of_fp8(source):
    agree_ops(defaults(source), [all_codes(source)])


@pytest.mark.parametrize("source", [f16, bf16], ids=str)
def test_from_16_bits(source):
    agree_ops(defaults(source), [np.concatenate([all_codes(source)[::41], specials(source)])])


@pytest.mark.sweep
@pytest.mark.parametrize("source", [f16, bf16], ids=str)
def test_from_every_code_of_16_bits(source):
    agree_ops(defaults(source), [all_codes(source)], block=256)


@pytest.mark.sweep
@pytest.mark.parametrize("source", SHORT, ids=str)
@pytest.mark.parametrize("target", SHORT, ids=str)
def test_between_short_formats_in_every_rounding(source, target):
    if source != target:
        agree_ops(all_ways(target), [all_codes(source)], block=256)


def test_floats_to_integers():
    halves = np.arange(-300, 300) / 2
    edges = [float(d.max) + o for d in INTEGERS for o in (-1.5, -1, -0.5, 0, 0.5, 1)] + [
        2.0**31,
        2.0**63,
        2.0**62,
        1e30,
    ]
    numbers = np.concatenate([halves, edges, [-x for x in edges]]).astype(np.float32)
    near = np.concatenate([np.nextafter(numbers, np.float32(np.inf)), np.nextafter(numbers, np.float32(-np.inf))])
    cases = [(f"to {d} {r}", lambda x, d=d, r=r: ww.cast(x, d, rounding=r)) for d in INTEGERS for r in ROUNDINGS]
    agree_ops([*cases, ("to bool", lambda x: ww.cast(x, bool_))], [np.concatenate([numbers, near, specials(f32)])])


def near_powers(dtype: DType) -> np.ndarray:
    """Integers around which floats have their midpoints."""
    exact = [2**e + o for e in range(dtype.bits - 1) for o in (-1, 0, 1)]
    exact += [(2**e * (2**11 + 1)) + o for e in range(dtype.bits - 13) for o in (-1, 0, 1)]
    exact += [(2**e * (2**25 + k)) + o for e in range(dtype.bits - 27) for o in (-1, 0, 1) for k in (1, 2, 3)]
    return np.array([s * x for x in exact if x <= dtype.max for s in (1, -1)], dtype.numpy)


@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_from_integers(source):
    x = np.concatenate([integers(source), near_powers(source)])
    ways = [(f"to f32 {r}", lambda x, r=r: ww.cast(x, f32, rounding=r)) for r in ROUNDINGS]
    ways += [case for target in (f16, bf16) for case in all_ways(target)[::2]]
    ways += [
        (f"to {d} {s}", lambda x, d=d, s=s: ww.cast(x, d, saturate=s))
        for d in INTEGERS
        if d != source
        for s in (False, True)
    ]
    agree_ops([*ways, *((f"to {d}", lambda x, d=d: ww.cast(x, d)) for d in (*FP8, bool_))], [x])
