"""Each kernel within the numerics contract, whose oracle is near the plain float64 answer."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f16, f32, fp8e4m3, fp8e5m2fnuz, i8, i32
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.layernorm import dropout_residual_layernorm, layernorm
from warpwave.kernels.rmsnorm import rmsnorm
from warpwave.kernels.rotary import rotary
from warpwave.kernels.softmax import softmax
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import FLOATS, blank, launch, normal
from warpwave.tiles.reference import oracle


def assert_within_contract(kernel, arguments, expected, *, relative, **constants):
    """The result is within the oracle's bound; bound and distance to `expected` are small beside an output's size."""
    present = {n: a for n, a in arguments.items() if a is not None}
    estimates = oracle(kernel.compile(**arguments, target="reference", **constants).ir, present)
    launch(kernel, arguments, **constants)
    for name, exact in expected.items():
        estimate, finite = estimates[name], np.isfinite(exact)
        assert estimate.undecided is None
        assert estimate.agrees(arguments[name]).all(), f"{name}: the result leaves the bound"
        np.testing.assert_array_equal(estimate.value[~finite], exact[~finite])
        allowed = relative * np.abs(exact[finite]).max(initial=1e-30)
        assert estimate.bound[finite].max(initial=0) <= allowed, f"{name}: the bound says too little"
        distance = np.abs(estimate.value[finite] - exact[finite]) - estimate.bound[finite]
        assert distance.max(initial=0) <= allowed, f"{name}: the oracle is far from the plain answer"


@pytest.mark.parametrize("activation", [None, ww.relu, ww.gelu, ww.silu], ids=["none", "relu", "gelu", "silu"])
@pytest.mark.parametrize("dtype", [*FLOATS, fp8e4m3, fp8e5m2fnuz], ids=str)
def test_gemm(dtype, activation):
    rng = np.random.default_rng(1)
    a, b, bias = normal(rng, dtype, 35, 40), normal(rng, dtype, 50, 40), normal(rng, f32, 50)
    exact = plain.wide(a) @ plain.wide(b).T + bias
    if activation is not None:
        exact = getattr(plain, activation.__name__)(exact)
    arguments = {"a": a, "b": b, "c": blank(bf16, 35, 50), "bias": bias}
    constants = {"transpose_b": True, "activation": activation, "BM": 32, "BN": 32, "BK": 16}
    assert_within_contract(gemm, arguments, {"c": exact}, relative=2.0**-8, **constants)


def test_gemm_of_integers_has_no_error():
    rng = np.random.default_rng(2)
    a, b = normal(rng, i8, 20, 70), normal(rng, i8, 70, 30)
    exact = plain.wide(a) @ plain.wide(b)
    assert_within_contract(gemm, {"a": a, "b": b, "c": blank(i32, 20, 30)}, {"c": exact}, relative=0.0, BM=32, BN=32)


@pytest.mark.parametrize("width", [60, 150])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax(dtype, width):
    x = normal(np.random.default_rng(3), dtype, 7, width, scale=3)
    arguments = {"x": x, "y": blank(f32, 7, width)}
    assert_within_contract(softmax, arguments, {"y": plain.softmax(x)}, relative=1e-4, BM=4, BN=64)


@pytest.mark.parametrize("width", [60, 150])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_norms(dtype, width):
    rng = np.random.default_rng(4)
    x, weight, bias = normal(rng, dtype, 7, width), normal(rng, dtype, width), normal(rng, dtype, width)
    arguments = {"x": x, "y": blank(f32, 7, width), "weight": weight}
    assert_within_contract(rmsnorm, arguments, {"y": plain.rmsnorm(x, weight)}, relative=1e-4, BM=4, BN=64)
    exact = plain.layernorm(x, weight, bias)
    assert_within_contract(layernorm, {**arguments, "bias": bias}, {"y": exact}, relative=1e-4, BM=4, BN=64)


@pytest.mark.parametrize("width", [60, 150])
def test_dropout_residual_layernorm(width):
    rng, p = np.random.default_rng(5), 0.3
    x, residual = normal(rng, bf16, 7, width), normal(rng, bf16, 7, width)
    total = np.where(plain.kept(7, width, p, 11, 12), plain.wide(x) / (1 - p), 0) + plain.wide(residual)
    tensors = {"x": x, "residual": residual, "y": blank(f32, 7, width), "total": blank(f32, 7, width)}
    expected = {"total": total, "y": plain.layernorm(total)}
    arguments = {**tensors, "seed": 11, "offset": 12}
    assert_within_contract(dropout_residual_layernorm, arguments, expected, relative=1e-4, p=p, BM=4, BN=64)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rotary(dtype, interleaved):
    rng = np.random.default_rng(6)
    x, cos, sin = normal(rng, dtype, 1, 4, 33, 40), normal(rng, dtype, 33, 20), normal(rng, dtype, 33, 20)
    exact = plain.rotate(x, cos, sin, interleaved)
    arguments = {"x": x, "y": blank(f32, *x.shape), "cos": cos, "sin": sin}
    assert_within_contract(rotary, arguments, {"y": exact}, relative=1e-6, interleaved=interleaved)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries", [30, 70])
@pytest.mark.parametrize("dtype", [f32, f16, bf16], ids=str)
def test_attention(dtype, queries, causal):
    rng = np.random.default_rng(7)
    q, k, v = normal(rng, dtype, 1, 4, queries, 32), normal(rng, dtype, 1, 2, 50, 32), normal(rng, dtype, 1, 2, 50, 32)
    o, lse = plain.attention(q, k, v, causal=causal)
    arguments = {"q": q, "k": k, "v": v, "o": blank(f32, *o.shape), "lse": blank(f32, *lse.shape)}
    relative = {"f32": 1e-3, "f16": 2e-3, "bf16": 1e-2}[dtype.name]
    expected = {"o": o, "lse": lse}
    assert_within_contract(attention, arguments, expected, relative=relative, causal=causal, BQ=32, BK=16)


@pytest.mark.parametrize(
    "kernel", [gemm, softmax, rmsnorm, layernorm, dropout_residual_layernorm, rotary, attention], ids=lambda k: k.name
)
def test_sample_inputs_run(kernel):
    samples = kernel.sample_inputs()
    assert samples
    for sample in samples:
        kernel(**sample, target="reference")
