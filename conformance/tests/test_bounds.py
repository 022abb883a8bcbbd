"""What the contract allows a target covers what the models of its matrix instructions do, on hostile numbers."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.conformance.contract import TARGETS, allowed, numerics_of
from warpwave.conformance.models import MODELS, model_of, multiply_accumulate
from warpwave.tiles.capture import capture
from warpwave.tiles.dtypes import BY_NAME, f32
from warpwave.tiles.reference import CONTRACT, oracle
from warpwave.tiles.reference.comparison import widen
from warpwave.tiles.types import TensorType, TileType

PRODUCTS = [
    (target.name, instruction, a, b)
    for target in TARGETS.values()
    for dtype, instruction in target.products.items()
    for a, b in [(m.a, m.b) for m in MODELS[instruction].values() if m.a == dtype != "tf32"]
]
KINDS = ("normal", "wide", "tiny", "huge and tiny", "cancel", "raw", "one large")


def product(a, b, c, d, *, M, N, K):
    acc = ww.load(c, (0, 0), TileType(f32, (M, N)))
    left = ww.load(a, (0, 0), TileType(a.dtype, (M, K)))
    right = ww.load(b, (0, 0), TileType(b.dtype, (K, N)))
    ww.store(d, (0, 0), ww.mma_AB(acc, left, right))


def operand(name: str, shape: tuple[int, int], kind: str, rng: np.random.Generator) -> np.ndarray:
    """Finite numbers of a kind that units find hard."""
    dtype = BY_NAME[name]
    smallest = 2.0 ** -{"f16": 14, "bf16": 126, "f32": 126}.get(name, 6)
    x = rng.standard_normal(shape)
    if kind == "wide":
        x *= np.exp2(rng.integers(-6, 7, shape))
    if kind == "tiny":
        x *= smallest
    if kind == "huge and tiny":
        x = np.where(rng.random(shape) < 0.5, x * smallest, x * np.minimum(dtype.max / 8, 2.0**60))
    if kind == "one large":
        x *= np.where(rng.random(shape) < 0.1, min(dtype.max / 8, 2.0**20), 1.0)
    if kind == "cancel":
        x[..., 1::2] = -x[..., : x.shape[-1] // 2 * 2 : 2]
    if kind == "raw":
        x = widen(rng.integers(0, 1 << dtype.bits, shape).astype(f"u{dtype.nbytes}").view(dtype.numpy))
        x = np.where(np.isfinite(x) & (np.abs(x) < 2.0**60), x, 1.0)
    return np.clip(x, -dtype.max, dtype.max).astype(dtype.numpy)


@pytest.mark.parametrize(("target", "instruction", "a", "b"), PRODUCTS, ids=str)
def test_models_stay_within_the_bounds(target, instruction, a, b):
    model = model_of(instruction, a, b)
    types = {n: TensorType(BY_NAME[d], 2) for n, d in zip("abcd", (a, b, "f32", "f32"), strict=True)}
    for depth in (1, 3, 17, 64):
        kernel = capture(product, types, {"M": 8, "N": 8, "K": depth}).kernel
        for number, kind in enumerate(KINDS):
            rng = np.random.default_rng((depth, number))
            left, right = operand(a, (8, depth), kind, rng), operand(b, (depth, 8), kind, rng)
            acc = operand("f32", (8, 8), "normal" if number % 2 else kind, rng)
            arguments = {"a": left, "b": right, "c": acc, "d": np.zeros((8, 8), np.float32)}
            got = multiply_accumulate(model, *(x.view(f"u{x.itemsize}") for x in (left, right, acc))).view(np.float32)
            estimate = allowed(kernel, arguments, target)["d"]
            bad = ~estimate.agrees(got)
            assert not bad.any(), f"K={depth} {kind}: {_show(got, estimate, bad)}"


def _show(got, estimate, bad):
    at = tuple(np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size}; got {got[at]!r}, allowed {estimate.value[at]!r} +- {estimate.bound[at]!r}"


@pytest.mark.parametrize("instruction", ["cdna3 mfma", "hopper wgmma"])
def test_a_subnormal_with_a_large_factor_needs_its_own_allowance(instruction):
    """2^-24 * 2^15 is 2^-9, but aligned as if it were 2^1: what is far below that is lost."""
    left, right = np.array([[2.0**-24, 1.5 * 2.0**-14]], np.float16), np.array([[2.0**15], [2.0**-11]], np.float16)
    arguments = {"a": left, "b": right, "c": np.zeros((1, 1), np.float32), "d": np.zeros((1, 1), np.float32)}
    types = {n: TensorType(BY_NAME[d], 2) for n, d in zip("abcd", ("f16", "f16", "f32", "f32"), strict=True)}
    kernel = capture(product, types, {"M": 1, "N": 1, "K": 2}).kernel
    model = model_of(instruction, "f16")
    got = multiply_accumulate(model, *(arguments[n].view(f"u{arguments[n].itemsize}") for n in "abc")).view(np.float32)
    assert got[0, 0] != left.astype(np.float64) @ right.astype(np.float64)
    assert not oracle(kernel, arguments)["d"].agrees(got).any()
    assert allowed(kernel, arguments, "amd:gfx942")["d"].agrees(got).all()


def test_simulated_targets_are_the_same_and_others_general():
    assert numerics_of("amd:gfx942:sim") is numerics_of("amd:gfx942")
    assert numerics_of("toy:one") == CONTRACT
