from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f16, f32
from warpwave.kernels import formulas
from warpwave.kernels.attention import attention
from warpwave.kernels.tests import plain
from warpwave.kernels.tests.checking import FLOATS, VIEWS, assert_close, bits, blank, launch, normal

SMALL = {"BQ": 32, "BK": 16}


def inputs(seed, queries, keys, width, heads=(2, 2), batch=1, dtype=bf16, scale=1.0, value_width=None):
    rng = np.random.default_rng(seed)
    q = normal(rng, dtype, batch, heads[0], queries, width, scale=scale)
    k = normal(rng, dtype, batch, heads[1], keys, width, scale=scale)
    return q, k, normal(rng, dtype, batch, heads[1], keys, value_width or width)


def run(q, k, v, out=f32, **constants):
    o, lse = blank(out, *q.shape[:3], v.shape[3]), blank(f32, *q.shape[:3])
    launch(attention, {"q": q, "k": k, "v": v, "o": o, "lse": lse}, **{**SMALL, **constants})
    return o, lse


def assert_attends(o, lse, q, k, v, *, causal=False, scale=None):
    exact = plain.attention(q, k, v, causal=causal, scale=scale)
    allowed = formulas.attention(q, k, v, causal=causal, scale=scale)
    for got, want, found in zip((o, lse), exact, allowed, strict=True):
        assert_close(got, want, found)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [32, 40, 64, 80, 96, 128, 192, 256])
def test_case_88_head_dimensions(width, causal):
    q, k, v = inputs(width, 70, 90, width)
    assert_attends(*run(q, k, v, causal=causal), q, k, v, causal=causal)


@pytest.mark.parametrize("width", [1, 7, 33])
def test_odd_head_dimensions(width):
    q, k, v = inputs(width, 40, 40, width)
    assert_attends(*run(q, k, v), q, k, v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1), (17, 1), (1, 100), (31, 33), (32, 32), (33, 31), (64, 64), (97, 50)], ids=str
)
def test_any_numbers_of_queries_and_keys(shape, causal):
    q, k, v = inputs(shape[0], *shape, 32)
    assert_attends(*run(q, k, v, causal=causal), q, k, v, causal=causal)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_dtypes(dtype, causal):
    q, k, v = inputs(3, 50, 60, 64, dtype=dtype)
    o, lse = run(q, k, v, out=dtype, causal=causal)
    assert_attends(o, lse, q, k, v, causal=causal)


@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (6, 2), (8, 1), (9, 3), (16, 2)], ids=str)
def test_grouped_heads_at_any_ratio(heads):
    q, k, v = inputs(4, 40, 50, 32, heads, batch=2)
    assert_attends(*run(q, k, v), q, k, v)


@pytest.mark.parametrize("length", [128, 300, 513, 913, 1000])
@pytest.mark.parametrize("causal", [False, True])
def test_case_65_91_sequences_off_the_tile_with_default_tiles(length, causal):
    q, k, v = inputs(length, length, length, 64, heads=(1, 1))
    o, lse = blank(bf16, *q.shape), blank(f32, *q.shape[:3])
    launch(attention, {"q": q, "k": k, "v": v, "o": o, "lse": lse}, causal=causal)
    assert_attends(o, lse, q, k, v, causal=causal)


def test_case_85_more_queries_than_keys_are_aligned_at_the_last():
    q, k, v = inputs(85, 2048, 1024, 32, heads=(1, 1))
    o, lse = run(q, k, v, causal=True, BQ=128, BK=64)
    assert bits(o[:, :, :1024]) == bits(np.zeros((1, 1, 1024, 32), np.float32))
    assert (lse[:, :, :1024] == -np.inf).all()
    assert np.isfinite(lse[:, :, 1024:]).all()
    assert_attends(o, lse, q, k, v, causal=True)


@pytest.mark.parametrize("queries", [33, 40, 47, 48, 49, 80])
def test_case_86_fully_masked_rows_wherever_they_end_in_a_tile(queries):
    q, k, v = inputs(86, queries, 16, 32)
    o, lse = run(q, k, v, causal=True)
    blind = queries - 16
    assert (o[:, :, :blind] == 0).all()
    assert (lse[:, :, :blind] == -np.inf).all()
    assert_attends(o, lse, q, k, v, causal=True)


@pytest.mark.parametrize("causal", [False, True])
def test_case_80_no_keys_gives_zeros(causal):
    q, k, v = inputs(0, 20, 0, 32)
    o, lse = run(q, k, v, causal=causal)
    assert (o == 0).all()
    assert (lse == -np.inf).all()


@pytest.mark.parametrize(("batch", "heads", "queries"), [(0, (2, 2), 5), (2, (0, 0), 5), (2, (2, 2), 0)])
def test_case_81_nothing_to_do(batch, heads, queries):
    q, k, v = inputs(0, queries, 7, 32, heads, batch)
    assert run(q, k, v)[0].size == 0


def test_case_35_slots_past_the_length_may_hold_nan():
    q, k, v = inputs(35, 20, 32, 32)
    clean = run(q, k[:, :, :17].copy(), v[:, :, :17].copy())
    k[:, :, 17:], v[:, :, 17:] = np.nan, np.nan
    for got, expected in zip(run(q, k[:, :, :17], v[:, :, :17]), clean, strict=True):
        assert bits(got) == bits(expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_storage_does_not_change_a_bit(view, causal):
    q, k, v = inputs(5, 45, 52, 40)
    o, lse = VIEWS[view](blank(f32, *q.shape)), VIEWS[view](blank(f32, *q.shape[:3]))
    tensors = {"q": VIEWS[view](q), "k": VIEWS[view](k), "v": VIEWS[view](v), "o": o, "lse": lse}
    launch(attention, tensors, causal=causal, **SMALL)
    expected = run(q, k, v, causal=causal)
    assert (bits(o), bits(lse)) == (bits(expected[0]), bits(expected[1]))


def test_case_75_k_and_v_of_different_strides_and_heads_inside_the_sequence():
    q, k, v = inputs(75, 40, 50, 32, heads=(4, 2))
    gapped = np.full((1, 2, 100, 32), np.nan, k.dtype)[:, :, ::2]
    gapped[...] = k
    bnhd = np.ascontiguousarray(q.swapaxes(1, 2)).swapaxes(1, 2)
    o = np.empty((1, 40, 4, 32), np.float32).swapaxes(1, 2)
    launch(attention, {"q": bnhd, "k": gapped, "v": v, "o": o}, **SMALL)
    assert bits(o) == bits(run(q, k, v)[0])


def test_case_16_probabilities_are_rounded_to_nearest():
    """With v = 1 the output is the mean rounding of the probabilities; toward zero it would be 2.7e-3 low."""
    q, k, v = inputs(16, 128, 512, 64, heads=(1, 1))
    o, _ = run(q, k, np.ones_like(v), BK=64)
    assert abs((o.astype(np.float64) - 1).mean()) < 1e-4


def test_values_may_be_of_another_width():
    q, k, v = inputs(6, 40, 50, 48, value_width=80)
    assert_attends(*run(q, k, v), q, k, v)


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.7])
def test_explicit_scale(scale):
    q, k, v = inputs(7, 40, 50, 32)
    assert_attends(*run(q, k, v, scale=scale), q, k, v, scale=scale)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [30.0, 1000.0])
def test_late_and_huge_maxima(size, causal):
    """Each later key scores higher by a lot, so that every tile rescales what came before, down to nothing."""
    q, k, v = inputs(8, 100, 100, 32, dtype=f32)
    q[...] = 1
    k[...] = (size * np.arange(100) / 100)[None, None, :, None]
    assert_attends(*run(q, k, v, causal=causal), q, k, v, causal=causal)
    k = k[:, :, ::-1].copy()
    assert_attends(*run(q, k, v, causal=causal), q, k, v, causal=causal)


def test_one_huge_key_in_the_last_tile():
    q, k, v = inputs(9, 40, 100, 32)
    k[:, :, 97] = q[:, :, 3] * 200
    assert_attends(*run(q, k, v), q, k, v)


@pytest.mark.parametrize("causal", [False, True])
def test_a_nan_query_stays_in_its_row(causal):
    q, k, v = inputs(10, 40, 50, 32)
    clean, _ = run(q, k, v, causal=causal)
    q[0, 1, 7] = np.nan
    o, lse = run(q, k, v, causal=causal)
    assert np.isnan(o[0, 1, 7]).all()
    assert np.isnan(lse[0, 1, 7])
    o[0, 1, 7] = clean[0, 1, 7]
    assert bits(o) == bits(clean)


def test_a_nan_key_reaches_exactly_the_queries_that_see_it():
    q, k, v = inputs(11, 60, 60, 32, heads=(1, 1))
    k[0, 0, 25, 3] = np.nan
    o, lse = run(q, k, v, causal=True)
    assert np.isfinite(o[0, 0, :25]).all()
    assert np.isnan(o[0, 0, 25:]).all()
    assert np.isnan(lse[0, 0, 25:]).all()


def test_without_lse_the_output_is_the_same():
    q, k, v = inputs(12, 40, 50, 32)
    o = blank(f32, *q.shape)
    launch(attention, {"q": q, "k": k, "v": v, "o": o}, **SMALL)
    assert bits(o) == bits(run(q, k, v)[0])


def test_scaling_v_by_a_power_of_two_scales_the_output_exactly():
    q, k, v = inputs(13, 40, 50, 32, dtype=f16)
    assert bits(run(q, k, v * np.float16(8))[0]) == bits(run(q, k, v)[0] * 8)


def test_permuting_queries_heads_and_batches_permutes_the_output():
    rng = np.random.default_rng(14)
    q, k, v = inputs(14, 40, 50, 32, heads=(3, 3), batch=3)
    rows, heads, batches = rng.permutation(40), rng.permutation(3), rng.permutation(3)
    o, lse = run(q, k, v)
    assert bits(run(q[:, :, rows], k, v)[0]) == bits(o[:, :, rows])
    assert bits(run(q[:, heads], k[:, heads], v[:, heads])[1]) == bits(lse[:, heads])
    assert bits(run(q[batches], k[batches], v[batches])[0]) == bits(o[batches])


def test_repeats_are_equal():
    q, k, v = inputs(15, 40, 50, 32)
    assert bits(run(q, k, v)[0]) == bits(run(q, k, v)[0])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tiles", [(16, 16), (16, 64), (48, 32), (128, 128)], ids=str)
def test_tiles_of_other_sizes_stay_within_the_bound(tiles, causal):
    q, k, v = inputs(16, 90, 70, 32)
    o, lse = run(q, k, v, causal=causal, BQ=tiles[0], BK=tiles[1], D=64)
    assert_attends(o, lse, q, k, v, causal=causal)


def test_causal_attention_of_a_prefix_is_a_prefix():
    q, k, v = inputs(17, 64, 64, 32)
    whole, _ = run(q, k, v, causal=True)
    part, _ = run(q[:, :, :32], k[:, :, :32], v[:, :, :32], causal=True)
    assert bits(part) == bits(whole[:, :, :32])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 3, 8, 32), (1, 2, 8, 32), (1, 2, 8, 32)), "no multiple of the number of key heads"),
        (((1, 2, 8, 32), (1, 2, 8, 16), (1, 2, 8, 32)), "head dimension of q and k"),
        (((1, 2, 8, 32), (1, 2, 8, 32), (1, 2, 9, 32)), "number of keys"),
        (((2, 2, 8, 32), (1, 2, 8, 32), (1, 2, 8, 32)), "batch"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_shapes_that_do_not_fit_are_refused(shapes, message):
    q, k, v = (blank(bf16, *s) for s in shapes)
    with pytest.raises(ww.CheckFailed, match=message):
        run(q, k, v)


def test_a_head_wider_than_the_tile_is_refused():
    q, k, v = inputs(18, 8, 8, 96)
    with pytest.raises(ww.CheckFailed, match="more than the tile width D=64"):
        run(q, k, v, D=64)


def test_a_negative_scale_is_refused():
    q, k, v = inputs(19, 8, 8, 32)
    with pytest.raises(ww.CaptureError, match="scale must be positive"):
        run(q, k, v, scale=-1.0)
