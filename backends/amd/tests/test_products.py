"""Matrix products: transpositions, operands in registers and shared memory, odd extents, dtypes, waves, constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.lower.lower import lower
from warpwave.backends.amd.plan import make_plan
from warpwave.backends.amd.tests.harness import BOTH, agree, launch, program
from warpwave.backends.amd.tests.test_ops_tiles import blank, numbers
from warpwave.tiles.dtypes import bf16, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, fp8e5m2fnuz, i8, i32
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.tests.reference_harness import captured
from warpwave.tiles.types import TileType

PRODUCTS = {
    (False, False): ww.mma_AB,
    (False, True): ww.mma_ABt,
    (True, False): ww.mma_AtB,
    (True, True): ww.mma_AtBt,
}


def product(a, b, c, *, M, N, K, ta, tb, a_space, b_space):
    """c += a @ b in one block."""
    at = ww.load(a, (0, 0), TileType(a.dtype, (K, M) if ta else (M, K), a_space))
    bt = ww.load(b, (0, 0), TileType(b.dtype, (N, K) if tb else (K, N), b_space))
    acc = ww.load(c, (0, 0), TileType(c.dtype, (M, N)))
    ww.store(c, (0, 0), PRODUCTS[ta, tb](acc, at, bt))


def check_product(a, b, m, n, k, *, ta=False, tb=False, spaces=("shared", "shared"), targets=BOTH, **options):
    acc = i32 if a.is_int else f32
    arguments = {
        "a": numbers(a, *((k, m) if ta else (m, k)), seed=1),
        "b": numbers(b, *((n, k) if tb else (k, n)), seed=2),
        "c": numbers(acc, m, n, seed=3),
    }
    sizes = {"M": m, "N": n, "K": k, "ta": ta, "tb": tb, "a_space": spaces[0], "b_space": spaces[1]}
    agree(captured(product, arguments, **sizes), arguments, targets, **options)


SPACES = [("shared", "shared"), ("register", "shared"), ("shared", "register"), ("register", "register")]


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("spaces", SPACES[::3], ids="-".join)
def test_transpositions_of_bf16(ta, tb, spaces):
    check_product(bf16, bf16, 64, 48, 40, ta=ta, tb=tb, spaces=spaces)


@pytest.mark.sweep
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("spaces", SPACES, ids="-".join)
@pytest.mark.parametrize("dtype", [f32, f16, bf16, i8, fp8e4m3], ids=str)
@pytest.mark.parametrize("size", [(64, 64, 64), (70, 33, 45), (16, 16, 16), (1, 1, 1), (128, 32, 96)], ids=str)
def test_transpositions(dtype, size, ta, tb, spaces):
    targets = BOTH if dtype != fp8e4m3 else ["gfx950"]
    check_product(dtype, dtype, *size, ta=ta, tb=tb, spaces=spaces, targets=targets)


@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False)])
@pytest.mark.parametrize("dtype", [f16, f32, i8], ids=str)
def test_dtypes(dtype, ta, tb):
    check_product(dtype, dtype, 48, 64, 72, ta=ta, tb=tb)


OCP, FNUZ = (fp8e4m3, fp8e5m2), (fp8e4m3fnuz, fp8e5m2fnuz)


@pytest.mark.parametrize(
    ("a", "b", "target"),
    [
        (OCP[0], OCP[0], "gfx950"),
        (OCP[1], OCP[0], "gfx950"),
        (FNUZ[0], FNUZ[1], "gfx942"),
        (FNUZ[1], FNUZ[1], "gfx942"),
        (OCP[0], OCP[1], "gfx942"),  # the other target's formats, as f16
        (FNUZ[0], FNUZ[1], "gfx950"),
    ],
    ids=str,
)
def test_fp8(a, b, target):
    check_product(a, b, 48, 32, 160, tb=True, targets=[target])
    check_product(a, b, 16, 64, 40, spaces=("register", "shared"), targets=[target])


@pytest.mark.parametrize(("dtype", "target"), [(d, "gfx942") for d in OCP] + [(d, "gfx950") for d in FNUZ], ids=str)
def test_every_value_of_a_format_without_instructions(dtype, target):
    """All 256 codes times the identity: the values themselves, NaN and infinities included."""
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16).view(dtype.numpy)
    arguments = {"a": np.eye(16, dtype=np.float32).astype(dtype.numpy), "b": codes, "c": np.zeros((16, 16), np.float32)}
    sizes = {"M": 16, "N": 16, "K": 16, "ta": False, "tb": False, "a_space": "shared", "b_space": "shared"}
    got = launch(program(captured(product, arguments, **sizes), target), arguments)["c"]
    finite = np.isfinite(codes.astype(np.float32)).all(axis=0)  # 0 * NaN and 0 * infinity spoil a whole column
    np.testing.assert_array_equal(got[:, finite], codes.astype(np.float32)[:, finite])
    assert np.isnan(got[:, ~finite]).all()


@pytest.mark.parametrize("size", [(1, 1, 1), (17, 19, 23), (130, 5, 7), (32, 32, 200)], ids=str)
def test_odd_extents(size):
    check_product(bf16, bf16, *size, tb=True)
    check_product(f32, f32, *size, targets=["gfx942"])


@pytest.mark.parametrize("waves", [1, 2, 8])
def test_numbers_of_waves(waves):
    check_product(bf16, bf16, 64, 96, 32, tb=True, waves=waves)


def test_an_unknown_format_is_an_error_at_the_line():
    arguments = {"a": numbers(f16, 16, 16), "b": numbers(f16, 16, 16), "c": numbers(f32, 16, 16)}
    sizes = {"M": 16, "N": 16, "K": 16, "ta": False, "tb": False, "a_space": "shared", "b_space": "shared"}
    without = replace(TARGETS["gfx942"], mfma=())
    with pytest.raises(UnsupportedError, match="no matrix instruction for f16 x f16") as error:
        lower(captured(product, arguments, **sizes), without, {})
    assert error.value.loc.file.endswith("test_products.py")


def chained(q, k, v, o, *, M, N, D):
    """o = relu(q @ k^T) @ v: the first product's accumulator is the second's operand."""
    scores = ww.mma_ABt(ww.zeros(TileType(f32, (M, N))), ww.load(q, (0, 0), TileType(q.dtype, (M, D), "shared")),
                        ww.load(k, (0, 0), TileType(k.dtype, (N, D), "shared")))  # fmt: skip
    weights = ww.cast(ww.relu(scores), v.dtype)
    out = ww.mma_AB(ww.zeros(TileType(f32, (M, D))), weights, ww.load(v, (0, 0), TileType(v.dtype, (N, D), "shared")))
    ww.store(o, (0, 0), out)


@pytest.mark.parametrize("sizes", [(64, 32, 64), (32, 24, 40), (128, 64, 32)], ids=str)
@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
def test_chained_products(dtype, sizes):
    m, n, d = sizes
    arguments = {
        "q": numbers(dtype, m, d),
        "k": numbers(dtype, n, d, seed=1),
        "v": numbers(dtype, n, d, seed=2),
        "o": blank(f32, m, d),
    }
    agree(captured(chained, arguments, M=m, N=n, D=d), arguments)


def constrained(a, b, c, *, over):
    acc = ww.zeros(TileType(f32, (64, 64)), over=over)
    at, bt = (ww.load(x, (0, 0), TileType(x.dtype, (64, 64), "shared")) for x in (a, b))
    ww.store(c, (0, 0), ww.mma_ABt(acc, at, bt))


def constrained_arguments():
    return {"a": numbers(bf16, 64, 64), "b": numbers(bf16, 64, 64, seed=1), "c": blank(f32, 64, 64)}


@pytest.mark.parametrize("over", [(4, 1), (1, 4), (2, 2)], ids=str)
def test_over_says_how_waves_split_the_accumulator(over):
    kernel = captured(constrained, constrained_arguments(), over=over)
    agree(kernel, constrained_arguments(), waves=4)
    (choice,) = make_plan(kernel, TARGETS["gfx942"], {"waves": 4}).mmas.values()
    assert choice.over == over


@pytest.mark.parametrize("over", [(1, 1), (2, 1), (1, 2), (2, 4), (3, 1)], ids=str)
def test_over_says_how_many_waves_there_are_if_the_options_do_not(over):
    kernel = captured(constrained, constrained_arguments(), over=over)
    plan = make_plan(kernel, TARGETS["gfx942"], {})
    assert (plan.waves, plan.reasons[0]) == (over[0] * over[1], f"{over[0] * over[1]} waves: over={over}")
    if over == (2, 1):
        agree(kernel, constrained_arguments())


def test_over_that_is_not_the_number_of_waves_is_an_error_at_the_line():
    kernel = captured(constrained, constrained_arguments(), over=(3, 1))
    with pytest.raises(UnsupportedError, match="asks for 3 waves") as error:
        program(kernel, "gfx942", waves=4)
    assert error.value.loc is not None


@pytest.mark.parametrize(("over", "options"), [((8, 4), {}), ((2, 2), {"waves": 32})])
def test_more_waves_than_a_workgroup_has_are_refused(over, options):
    kernel = captured(constrained, constrained_arguments(), over=over)
    with pytest.raises(UnsupportedError, match="32 waves, a workgroup of gfx950 has at most 16"):
        make_plan(kernel, TARGETS["gfx950"], options)


def test_int8_products_wrap():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (32, 64)).astype(np.int8) for _ in range(2))
    c = np.full((32, 32), np.iinfo(np.int32).max - 5, np.int32)
    sizes = {"M": 32, "N": 32, "K": 64, "ta": False, "tb": True, "a_space": "shared", "b_space": "shared"}
    arguments = {"a": a, "b": b, "c": c}
    agree(captured(product, arguments, **sizes), arguments)
