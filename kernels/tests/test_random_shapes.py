"""Random shapes, tiles and storage, beyond those that other tests name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from warpwave import bf16, f16, f32
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.layernorm import layernorm
from warpwave.kernels.rmsnorm import rmsnorm
from warpwave.kernels.softmax import softmax
from warpwave.kernels.tests.checking import VIEWS, assert_close, blank, launch, normal
from warpwave.kernels.tests.test_attention import assert_attends
from warpwave.kernels.tests.test_gemm import exact, operands
from warpwave.kernels.tests.test_norms import assert_layer, assert_rms
from warpwave.kernels.tests.test_softmax import assert_softmax

EXTENTS = some.integers(0, 70)
TILES = some.sampled_from([8, 24, 32, 64])
DTYPES = some.sampled_from([f32, f16, bf16])
STORAGE = some.sampled_from([lambda x: x, *VIEWS.values()])
SEEDS = some.integers(0, 2**32 - 1)


def check_gemm(seed, mnk, tiles, flags, dtype, storage):
    m, n, k = mnk
    flags = dict(zip(("transpose_a", "transpose_b"), flags, strict=True))
    a, b = operands(np.random.default_rng(seed), m, n, k, dtype, **flags)
    c = storage(blank(f32, m, n))
    constants = dict(zip(("BM", "BN", "BK"), tiles, strict=True))
    launch(gemm, {"a": storage(a), "b": storage(b), "c": c}, **constants, **flags)
    assert_close(c, *exact(a, b, **flags))


def check_attention(seed, lengths, heads, widths, tiles, causal, dtype, storage):
    rng, (queries, keys), (groups, group) = np.random.default_rng(seed), lengths, heads
    q = normal(rng, dtype, 1, groups * group, queries, widths[0])
    k, v = normal(rng, dtype, 1, groups, keys, widths[0]), normal(rng, dtype, 1, groups, keys, widths[1])
    o, lse = storage(blank(f32, *q.shape[:3], widths[1])), blank(f32, *q.shape[:3])
    tensors = {"q": storage(q), "k": storage(k), "v": storage(v), "o": o, "lse": lse}
    launch(attention, tensors, causal=causal, BQ=tiles[0], BK=tiles[1])
    assert_attends(o, lse, q, k, v, causal=causal)


def check_rows(seed, shape, tiles, dtype, storage):
    x = normal(np.random.default_rng(seed), dtype, *shape)
    for kernel, check in ((softmax, assert_softmax), (rmsnorm, assert_rms), (layernorm, assert_layer)):
        y = storage(blank(f32, *shape))
        launch(kernel, {"x": storage(x), "y": y}, BM=tiles[0], BN=tiles[1])
        check(y, x)


PROPERTIES = {
    "gemm": (
        check_gemm,
        (
            SEEDS,
            some.tuples(EXTENTS, EXTENTS, EXTENTS),
            some.tuples(TILES, TILES, TILES),
            some.tuples(some.booleans(), some.booleans()),
            DTYPES,
            STORAGE,
        ),
    ),
    "attention": (
        check_attention,
        (
            SEEDS,
            some.tuples(EXTENTS, EXTENTS),
            some.tuples(some.integers(1, 3), some.integers(1, 3)),
            some.tuples(some.integers(1, 40), some.integers(1, 40)),
            some.tuples(TILES, TILES),
            some.booleans(),
            DTYPES,
            STORAGE,
        ),
    ),
    "rows": (
        check_rows,
        (SEEDS, some.tuples(some.integers(0, 9), some.integers(1, 90)), some.tuples(TILES, TILES), DTYPES, STORAGE),
    ),
}


def run_property(name, examples):
    check, strategies = PROPERTIES[name]
    settings(max_examples=examples, deadline=None, derandomize=True, database=None)(given(*strategies)(check))()


@pytest.mark.parametrize("name", PROPERTIES)
def test_random_launches(name):
    run_property(name, 25)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PROPERTIES)
def test_many_random_launches(name):
    run_property(name, 600)
