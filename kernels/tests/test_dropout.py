from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, cdiv, f32, gl, i64, rt
from warpwave.kernels import formulas
from warpwave.kernels.dropout import dropout
from warpwave.kernels.layernorm import dropout_residual_layernorm
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import VIEWS, assert_close, bits, blank, launch, normal
from warpwave.tiles.reference.running_error import Approx

SMALL = {"BM": 4, "BN": 64}
SEED, OFFSET = 0x1234_5678_9ABC_DEF, 2**33 + 5


def run(x, residual, out=f32, weight=None, bias=None, seed=SEED, offset=OFFSET, **constants):
    y, total = blank(out, *x.shape), blank(out, *x.shape)
    tensors = {"x": x, "residual": residual, "y": y, "total": total, "weight": weight, "bias": bias}
    launch(dropout_residual_layernorm, {**tensors, "seed": seed, "offset": offset}, **{**SMALL, **constants})
    return y, total


def mask_of(shape, p, **options):
    """Where ones survive."""
    ones = np.ones(shape, np.float32)
    _, total = run(ones, np.zeros_like(ones), p=p, **options)
    return total != 0


def exact_total(x, residual, p):
    kept = plain.kept(int(np.prod(x.shape[:-1])), x.shape[-1], p, SEED, OFFSET).reshape(x.shape)
    return np.where(kept, plain.wide(x) / (1 - p), 0) + plain.wide(residual)


def test_philox_oracle_against_the_published_vectors():
    """Known answers of Random123's kat_vectors file."""
    ones = 0xFFFFFFFF
    assert plain.philox4x32_10((0,) * 4, (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert plain.philox4x32_10((ones,) * 4, (ones, ones)) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    counter, key = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert plain.philox4x32_10(counter, key) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


@pytest.mark.parametrize("shape", [(1, 1), (5, 63), (9, 65), (3, 130), (2, 3, 70)], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.48])
def test_sum_and_norm_at_any_shape(shape, p):
    rng = np.random.default_rng(shape[-1])
    x, residual = normal(rng, bf16, *shape), normal(rng, bf16, *shape)
    weight, bias = normal(rng, bf16, shape[-1]), normal(rng, f32, shape[-1])
    y, total = run(x, residual, f32, weight, bias, p=p)
    exact = exact_total(x, residual, p)
    scaled = Approx.of(np.where(exact == plain.wide(residual), 0, x)) * Approx.of(1 / (1 - p)).rounded()
    assert_close(total, exact, scaled + residual)
    assert_close(y, plain.layernorm(total, weight, bias), formulas.layernorm(total, weight, bias))


def test_the_norm_is_that_of_the_rounded_sum():
    rng = np.random.default_rng(1)
    x, residual = normal(rng, bf16, 8, 40), normal(rng, bf16, 8, 40)
    y, total = run(x, residual, bf16, p=0.0)
    assert bits(total) == bits((x.astype(np.float32) + residual.astype(np.float32)).astype(bf16.numpy))
    assert_close(y, plain.layernorm(total), formulas.layernorm(total))


def test_the_mask_is_the_definitions():
    for p in (0.1, 0.5, 0.9):
        assert (mask_of((6, 150), p) == plain.kept(6, 150, p, SEED, OFFSET)).all()


def test_p_0_keeps_and_p_1_drops_everything_nan_included():
    x = np.full((3, 70), np.nan, np.float32)
    residual = normal(np.random.default_rng(2), f32, 3, 70)
    assert mask_of((3, 70), 0.0).all()
    assert bits(run(x, residual, p=1.0)[1]) == bits(residual)
    assert bits(run(residual, residual, p=0.0)[1]) == bits(residual + residual)


def test_p_next_to_1_keeps_almost_nothing_and_scales_it():
    p = 1 - 2.0**-9
    ones = np.ones((16, 256), np.float32)
    _, total = run(ones, np.zeros_like(ones), p=p)
    assert set(np.unique(total)) == {0.0, 512.0}
    assert (total != 0).sum() == plain.kept(16, 256, p, SEED, OFFSET).sum() > 0


def test_the_kept_fraction_is_near_its_expectation():
    kept = mask_of((64, 512), 0.3, BM=64, BN=512).mean()
    assert abs(kept - 0.7) < 4 * np.sqrt(0.21 / (64 * 512))


@ww.kernel
def backward_of_dropout(grad: gl, out: gl, seed: i64, offset: i64, *, p=0.5, BM=8, BN=32):
    i, j = ww.grid(cdiv(grad.rows, BM), cdiv(grad.cols, BN))
    tile = ww.load(grad, (i, j), rt[f32, BM, BN])
    ww.store(out, (i, j), dropout(tile, p, seed, offset, row=i * BM, col=j * BN))


def test_case_39_another_kernel_with_other_tiles_drops_the_same_elements():
    shape, p = (21, 150), 0.48
    mask = mask_of(shape, p)
    for height, width in ((8, 32), (1, 16), (32, 256)):
        out = blank(f32, *shape)
        arguments = {"grad": np.ones(shape, np.float32), "out": out, "seed": SEED, "offset": OFFSET}
        launch(backward_of_dropout, arguments, p=p, BM=height, BN=width)
        assert ((out != 0) == mask).all()
        assert (mask_of(shape, p, BM=height, BN=width) == mask).all()


def test_case_39_a_hundred_repeats_are_equal():
    first = mask_of((4, 30), 0.48)
    assert all((mask_of((4, 30), 0.48) == first).all() for _ in range(100))


@pytest.mark.parametrize(
    ("name", "value"), [("seed", SEED + 1), ("seed", SEED + 2**40), ("offset", OFFSET + 1), ("offset", OFFSET + 2**40)]
)
def test_case_40_every_bit_of_seed_and_offset_counts(name, value):
    p, shape = 0.5, (16, 64)
    differs = mask_of(shape, p) != mask_of(shape, p, **{name: value})
    assert 0.35 < differs.mean() < 0.65


def test_rows_are_counted_over_leading_dimensions():
    assert (mask_of((3, 5, 70), 0.5).reshape(15, 70) == mask_of((15, 70), 0.5)).all()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [30, 150])
def test_storage_does_not_change_a_bit(view, width):
    rng = np.random.default_rng(3)
    x, residual = normal(rng, bf16, 7, width), normal(rng, bf16, 7, width)
    for got, expected in zip(run(VIEWS[view](x), VIEWS[view](residual), p=0.2), run(x, residual, p=0.2), strict=True):
        assert bits(got) == bits(expected)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)], ids=str)
def test_case_81_nothing_to_do(shape):
    assert run(blank(f32, *shape), blank(f32, *shape), p=0.5)[0].shape == shape


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_a_p_that_is_no_probability_is_refused(p):
    with pytest.raises(ww.CaptureError, match="p is a probability"):
        run(blank(f32, 2, 2), blank(f32, 2, 2), p=p)
