from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpwave as ww
from warpwave.tiles.reference.philox import philox4x32
from warpwave.tiles.tests.reference_harness import evaluate, run
from warpwave.tiles.types import TileType

# Counter, key and result of philox4x32-10 from `kat_vectors` of Random123 1.14 (D. E. Shaw Research).
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_known_answers(counter, key, expected):
    assert tuple(int(w) for w in philox4x32(counter, key)) == expected


def scalar_philox(counter, key):
    """One counter, written out with Python integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def word(seed, offset, row, col):
    low = 0xFFFFFFFF
    counter = (col // 4 & low, row & low, offset & low, offset >> 32 & low)
    return scalar_philox(counter, (seed & low, seed >> 32 & low))[col % 4]


def random_bits(shape, seed, offset, row, col):
    """The op with constant operands; the empty placeholder only gives the kernel an argument."""
    type_ = TileType(ww.i32, shape)
    return evaluate(lambda _: ww.random_bits(type_, seed, offset, row=row, col=col), np.zeros(1, np.int32))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**64 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 2**31 - 10),
    st.integers(-3, 2**31 - 10),
)
def test_bits_of_every_element_follow_the_definition(seed, offset, row, col):
    got = random_bits((2, 7), seed, offset, row, col).view(np.uint32)
    assert [[int(x) for x in r] for r in got] == [
        [word(seed, offset, row + r, col + c) for c in range(7)] for r in range(2)
    ]


@pytest.mark.parametrize("tile", [(1, 1), (4, 8), (5, 3), (8, 13), (16, 26)])
def test_bits_do_not_depend_on_the_tile_shape(tile):
    whole = random_bits((16, 26), 42, 7, 0, 0)
    for r in range(0, 16, tile[0]):
        for c in range(0, 26, tile[1]):
            part = random_bits(tile, 42, 7, r, c)
            rows, cols = min(tile[0], 16 - r), min(tile[1], 26 - c)
            np.testing.assert_array_equal(part[:rows, :cols], whole[r : r + rows, c : c + cols])


def test_a_vector_is_one_row():
    np.testing.assert_array_equal(random_bits((9,), 1, 2, 5, 3), random_bits((1, 9), 1, 2, 5, 3)[0])


def dropout(x, out, seed, *, B):
    (m,) = (ww.grid(ww.cdiv(x.cols, B)),)
    keep = ww.random_uniform(ww.rv[ww.f32, B], seed, row=0, col=m * B) >= 0.5
    ww.store(out, (m,), ww.where(keep, ww.load(x, (m,), ww.rv[ww.f32, B]), 0.0))


@pytest.mark.parametrize("seed", [1, 2**40 + 3])
def test_dropout_mask_of_any_block_size(seed):
    x = np.ones(37, np.float32)
    results = []
    for block in (4, 16, 64):
        out = np.zeros_like(x)
        run(dropout, {"x": x, "out": out, "seed": seed}, B=block)
        results.append(out)
    assert 5 < results[0].sum() < 32
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_uniform_is_the_upper_24_bits():
    raw = random_bits((64, 64), 9, 0, 0, 0).view(np.uint32)
    type_ = TileType(ww.f32, (64, 64))
    uniform = evaluate(lambda _: ww.random_uniform(type_, 9), np.zeros(1, np.int32))
    np.testing.assert_array_equal(uniform, ((raw >> 8) * 2.0**-24).astype(np.float32))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.02
