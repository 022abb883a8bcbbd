"""Every kernel of the library on both targets: odd extents, views, no elements, and repeatable bits."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.tests.harness import BOTH, agree, launch, program
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.layernorm import dropout_residual_layernorm, layernorm
from warpwave.kernels.rmsnorm import rmsnorm
from warpwave.kernels.rotary import rotary
from warpwave.kernels.softmax import softmax
from warpwave.kernels.tests.checking import VIEWS
from warpwave.tiles.dtypes import DType, bf16, f16, f32, i8, i32

RNG = np.random.default_rng(7)


def normal(dtype: DType, *shape: int) -> np.ndarray:
    if dtype.is_int:
        return RNG.integers(-9, 9, shape).astype(dtype.numpy)
    return RNG.standard_normal(shape).astype(dtype.numpy)


def empty(dtype: DType, *shape: int) -> np.ndarray:
    return np.zeros(shape, dtype.numpy)


def reversed_(x: np.ndarray) -> np.ndarray:
    """The same values with negative strides."""
    return np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]


STORAGE = {**VIEWS, "reversed": reversed_, "plain": lambda x: x}


def check(kernel, arguments, targets=BOTH, **constants):
    """Against the oracle's bound."""
    built = kernel.compile(**arguments, **constants, target="reference")
    agree(built.ir, {n: arguments[n] for n in built.ir.param_names}, targets)


def gemm_arguments(dtype, out, m, n, k, *, ta=False, tb=False, batch=(), view="plain"):
    store = STORAGE[view]
    a = store(normal(dtype, *batch, *((k, m) if ta else (m, k))))
    b = store(normal(dtype, *batch, *((n, k) if tb else (k, n))))
    return {"a": a, "b": b, "c": store(empty(out, *batch, m, n))}


SMALL = {"BM": 64, "BN": 64, "BK": 32}


@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False)])
def test_gemm_of_odd_extents(ta, tb):
    built = {}
    for m, n, k in ((1, 1, 1), (67, 61, 71), (64, 128, 96), (5, 3, 0), (0, 4, 4)):
        arguments = gemm_arguments(bf16, f32, m, n, k, ta=ta, tb=tb)
        built = built or gemm.compile(**arguments, target="reference", transpose_a=ta, transpose_b=tb, **SMALL).ir
        agree(built, arguments)


@pytest.mark.parametrize("view", STORAGE)
def test_gemm_of_views_and_batches(view):
    check(gemm, gemm_arguments(f16, f16, 33, 47, 50, batch=(2,), view=view), **SMALL)


def test_gemm_with_bias_and_activation():
    arguments = gemm_arguments(bf16, bf16, 40, 72, 64, tb=True) | {"bias": normal(f32, 72)}
    check(gemm, arguments, transpose_b=True, activation=ww.gelu, **SMALL)
    check(gemm, gemm_arguments(i8, i32, 40, 72, 64, tb=True), transpose_b=True, **SMALL)


def attention_arguments(dtype, heads, groups, queries, keys, width, value_width, store=lambda x: x):
    return {
        "q": store(normal(dtype, 2, heads, queries, width)),
        "k": store(normal(dtype, 2, groups, keys, width)),
        "v": store(normal(dtype, 2, groups, keys, value_width)),
        "o": store(empty(dtype, 2, heads, queries, value_width)),
        "lse": empty(f32, 2, heads, queries),
    }


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    """One compiled kernel for sequences of all lengths: equal, longer keys, longer queries, one, none."""
    kernel = None
    lengths = ((70, 90), (50, 17), (1, 64), (64, 64), (3, 0), (0, 5))
    for queries, keys in lengths if causal else lengths[::2]:
        arguments = attention_arguments(bf16, 2, 1, queries, keys, 40, 33)
        kernel = kernel or attention.compile(**arguments, target="reference", causal=causal, D=64, BQ=64, BK=32).ir
        agree(kernel, arguments)


@pytest.mark.parametrize("view", ["reordered", "strided"])
def test_attention_of_views(view):
    check(attention, attention_arguments(f16, 2, 2, 33, 40, 32, 32, STORAGE[view]), causal=True, BQ=32, BK=32)


ROWS = ((1, 1), (5, 300), (7, 64), (3, 0), (0, 3))


@pytest.mark.parametrize(
    ("kernel", "dtype"), [(softmax, f32), (rmsnorm, bf16), (layernorm, bf16)], ids=lambda x: x.name
)
def test_rows(kernel, dtype):
    check_rows(kernel, dtype)


@pytest.mark.sweep
@pytest.mark.parametrize(("kernel", "dtype"), [(softmax, bf16), (rmsnorm, f32), (layernorm, f32)], ids=lambda x: x.name)
def test_rows_of_the_other_dtype(kernel, dtype):
    check_rows(kernel, dtype)


def check_rows(kernel, dtype):
    """In one piece and in several, with one compiled kernel each."""
    for constants in ({"BM": 4, "BN": 320}, {"BM": 2, "BN": 32}):
        built = None
        for shape in ROWS:
            arguments = {"x": normal(dtype, *shape), "y": empty(dtype, *shape)}
            built = built or kernel.compile(**arguments, target="reference", **constants).ir
            agree(built, arguments)


@pytest.mark.parametrize("view", STORAGE)
def test_rows_of_views(view):
    store = STORAGE[view]
    x, residual = store(normal(bf16, 2, 6, 48)), store(normal(bf16, 2, 6, 48))
    outputs = {n: store(empty(bf16, 2, 6, 48)) for n in ("y", "total")}
    check(rmsnorm, {"x": x, "residual": residual, "weight": normal(f32, 48), **outputs})


def test_layernorm_with_everything():
    affine = {n: normal(f32, 90) for n in ("weight", "bias")}
    statistics = {n: empty(f32, 6) for n in ("mean", "rstd")}
    check(layernorm, {"x": normal(bf16, 6, 90), "y": empty(bf16, 6, 90), **affine, **statistics})


@pytest.mark.parametrize("width", [90, 64])
def test_dropout_residual_layernorm(width):
    tensors = {n: normal(bf16, 6, width) for n in ("x", "residual", "y", "total")}
    affine = {n: normal(f32, width) for n in ("weight", "bias")}
    scalars = {"seed": 2**40 + 1, "offset": 7}
    check(dropout_residual_layernorm, {**tensors, **affine, **scalars}, p=0.3, BM=2, BN=64)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(interleaved):
    heads = {n: normal(bf16, 2, 3, 37, 48) for n in ("x", "y")}
    angles = {n: normal(f32, 37, 24) for n in ("cos", "sin")}
    check(rotary, {**heads, **angles}, interleaved=interleaved)


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("name", ["gemm", "attention", "layernorm"])
def test_bits_do_not_depend_on_how_waves_interleave(name, target):
    cases = {
        "gemm": (gemm, gemm_arguments(bf16, bf16, 100, 90, 130, tb=True), {"transpose_b": True, **SMALL}),
        "attention": (attention, attention_arguments(bf16, 2, 1, 70, 70, 64, 64), {"causal": True, "BQ": 64, "BK": 32}),
        "layernorm": (layernorm, {"x": normal(bf16, 8, 300), "y": empty(bf16, 8, 300)}, {"BM": 4, "BN": 320}),
    }
    kernel, arguments, constants = cases[name]
    ir = kernel.compile(**arguments, target="reference", **constants).ir
    built, given = program(ir, target), {n: arguments[n] for n in ir.param_names}
    first = launch(built, given)
    for seed in range(1, 10):
        again = launch(built, given, seed=seed)
        assert all(again[n].tobytes() == first[n].tobytes() for n in first), f"seed {seed}"


@pytest.mark.sweep
@pytest.mark.parametrize("kernel", [softmax, rmsnorm, layernorm, rotary, attention, gemm], ids=lambda k: k.name)
def test_samples(kernel):
    for sample in kernel.sample_inputs():
        check(kernel, sample)
