"""Compiled kernels visit every block of their grid once, in whichever order, through the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave import bf16, f32, gl, i32, rt, st


@ww.kernel
def visits(order: gl[i32]):
    m, n = ww.grid(order.rows, order.cols)
    ww.store(order, (m, n), m * order.cols + n)


@ww.kernel
def tiny_product(a: gl[bf16], b: gl[bf16], c: gl[f32]):
    m, n = ww.grid(ww.cdiv(c.rows, 16), ww.cdiv(c.cols, 16))
    acc = ww.zeros(rt[f32, 16, 16])
    for k in ww.pipeline(ww.cdiv(a.cols, 16)):
        acc = ww.mma_ABt(acc, ww.load(a, (m, k), st[bf16, 16, 16]), ww.load(b, (n, k), st[bf16, 16, 16]))
    ww.store(c, (m, n), acc)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 3), (8, 8), (9, 10), (3, 65)])
def test_every_block_of_a_grid_runs_once(shape):
    order = np.full(shape, -1, np.int32)
    visits(order, target="amd:gfx950")
    assert (order == np.arange(order.size).reshape(shape)).all()


@pytest.mark.parametrize("tiles", [(1, 1), (2, 9), (9, 2), (7, 11)])
def test_a_product_visits_every_tile_whatever_the_window(tiles):
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (tiles[0] * 16, 16)).astype(bf16.numpy)
    b = rng.integers(-2, 3, (tiles[1] * 16, 16)).astype(bf16.numpy)
    c = np.full((len(a), len(b)), np.nan, np.float32)
    tiny_product(a, b, c, target="amd:gfx950")
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


def test_the_source_uses_the_window_for_products_only():
    spec = [ww.spec("bf16[64,64]"), ww.spec("bf16[64,64]"), ww.spec("f32[64,64]")]
    assert "windowed_position(ordered" in tiny_product.compile(*spec, target="amd:gfx950").source
    other = visits.compile(ww.spec("i32[4,4]"), target="amd:gfx950")
    assert "int rest = contiguous_transform(" in other.source
