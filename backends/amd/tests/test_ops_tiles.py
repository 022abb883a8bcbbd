"""Ops on whole tiles of awkward shapes: rearrangements, reductions, running sums, random numbers, loads and stores."""

from __future__ import annotations

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.tests.harness import agree, launch, program
from warpwave.tiles.dtypes import ALL, DType, bf16, bool_, f16, f32, fp8e4m3, fp8e5m2fnuz, i8, i32, i64
from warpwave.tiles.language.elementwise import broadcast_to
from warpwave.tiles.tests.reference_harness import captured
from warpwave.tiles.types import TileType

SHAPES = ((1, 1), (1, 37), (37, 1), (7, 5), (16, 64), (33, 66), (64, 48), (3, 300))
VECTORS = (1, 13, 64, 200)


def sweep(*values):
    """A parameter for the long runs only."""
    return pytest.param(*values, marks=pytest.mark.sweep)


def numbers(dtype: DType, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == bool_:
        return rng.random(shape) < 0.5
    if dtype.is_int:
        return rng.integers(dtype.min // 2, dtype.max // 2, shape, dtype=np.int64).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(dtype.numpy)


def blank(dtype: DType, *shape: int) -> np.ndarray:
    return np.zeros(shape, dtype.numpy)


# -- rearrangements ------------------------------------------------------------------------------------


def rearranged(x, t, rows, cols, back, wide, parts, pairs, split, *, R, C):
    """Transpose, reduce to a row and a column and repeat them, join and cut, deal out columns."""
    tile = ww.load(x, (0, 0), TileType(x.dtype, (R, C)))
    ww.store(t, (0, 0), tile.T)
    column, row = tile[:, 0:1], tile[0:1, :]
    ww.store(rows, (0, 0), broadcast_to(row, (R, C)))
    ww.store(cols, (0, 0), broadcast_to(column, (R, C)))
    ww.store(back, (0, 0), tile.T.T)
    ww.store(wide, (0, 0), ww.concat([tile, row, tile], axis=0))
    ww.store(parts, (0, 0), ww.concat([tile[R // 2 :, :], tile[: (R + 1) // 2, :]], axis=0)[:R, C // 3 :])
    both = ww.interleave(tile, broadcast_to(column, (R, C)))
    ww.store(pairs, (0, 0), both)
    even, odd = ww.deinterleave(ww.concat([tile, tile], axis=1))
    ww.store(split, (0, 0), even)
    ww.store(split, (1, 0), odd)


@pytest.mark.parametrize("shape", [*SHAPES[1::2], *(sweep(s) for s in SHAPES[::2])], ids=str)
@pytest.mark.parametrize("dtype", [bf16, sweep(f32), sweep(i64)], ids=str)
def test_rearrangements(dtype, shape):
    r, c = shape
    agree_rearranged(dtype, r, c)


@pytest.mark.parametrize("dtype", [fp8e4m3, fp8e5m2fnuz, i8, bool_, i64], ids=str)
def test_rearrangements_of_every_size_of_element(dtype):
    agree_rearranged(dtype, 9, 34)


def agree_rearranged(dtype, r, c):
    shapes = {
        "x": (r, c), "t": (c, r), "rows": (r, c), "cols": (r, c), "back": (r, c),
        "wide": (2 * r + 1, c), "parts": (r, c - c // 3), "pairs": (r, 2 * c), "split": (2 * r, c),
    }  # fmt: skip
    arguments = {n: numbers(dtype, *s) if n == "x" else blank(dtype, *s) for n, s in shapes.items()}
    agree(captured(rearranged, arguments, R=r, C=c), arguments)


# -- reductions ----------------------------------------------------------------------------------------

REDUCTIONS = [
    ww.sum,
    ww.prod,
    ww.max,
    ww.min,
    lambda x, axis: ww.max(x, axis=axis, nan="ignore"),
    lambda x, axis: ww.min(x, axis=axis, nan="ignore"),
]
SUMS = [(reverse, exclusive) for reverse in (False, True) for exclusive in (False, True)]


def reduced(x, along_rows, along_columns, everything, running, *, R, C):
    """All reductions along both axes and over all elements, and all running sums."""
    tile = ww.load(x, (0, 0), TileType(x.dtype, (R, C)))
    for i, reduction in enumerate(REDUCTIONS):
        ww.store(along_rows, (i, 0), reduction(tile, axis=0), axes=(1,))
        ww.store(along_columns, (i, 0), reduction(tile, axis=1), axes=(1,))
        ww.store(everything, (i,), reduction(reduction(tile, axis=1), axis=0), unit="element")
    for i, (reverse, exclusive) in enumerate(SUMS):
        for axis in (0, 1):
            ww.store(running, (2 * i + axis, 0), ww.cumsum(tile, axis=axis, reverse=reverse, exclusive=exclusive))


def reduction_arguments(x):
    dtype, (r, c) = x.dtype.type, x.shape
    n = len(REDUCTIONS)
    return {
        "x": x,
        "along_rows": np.zeros((n, c), dtype),
        "along_columns": np.zeros((n, r), dtype),
        "everything": np.zeros(n, dtype),
        "running": np.zeros((2 * len(SUMS) * r, c), dtype),
    }


REDUCED = [(f32, (7, 5)), (f32, (1, 37)), (f32, (1, 1)), (bf16, (20, 48)), (f16, (37, 1))]
REDUCED += [(i8, (16, 64)), (i32, (3, 200)), (i64, (9, 34))]


@pytest.mark.parametrize(("dtype", "shape"), REDUCED, ids=str)
def test_reductions(dtype, shape):
    arguments = reduction_arguments(numbers(dtype, *shape))
    agree(captured(reduced, arguments, R=shape[0], C=shape[1]), arguments)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [f32, f16, bf16, i64, i32, i8], ids=str)
def test_reductions_of_all_shapes(dtype, shape):
    arguments = reduction_arguments(numbers(dtype, *shape))
    agree(captured(reduced, arguments, R=shape[0], C=shape[1]), arguments)


@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
def test_reductions_of_nan_infinities_and_zeros(dtype):
    x = numbers(dtype, 12, 34)
    x[1, :] = np.nan
    x[2, 5], x[3, 7], x[4, 9], x[5, 3], x[5, 4] = np.nan, np.inf, -np.inf, np.inf, -np.inf
    x[6, :], x[7, :] = 0.0, -0.0
    x[7, 20] = 0.0
    arguments = reduction_arguments(x)
    agree(captured(extremes_of, arguments, R=12, C=34), arguments)


def extremes_of(x, along_rows, along_columns, everything, running, *, R, C):
    """Only the largest and smallest: what a sum of infinities is, is not in question here."""
    tile = ww.load(x, (0, 0), TileType(x.dtype, (R, C)))
    for i, reduction in enumerate(REDUCTIONS[2:]):
        ww.store(along_rows, (i, 0), reduction(tile, axis=0), axes=(1,))
        ww.store(along_columns, (i, 0), reduction(tile, axis=1), axes=(1,))


def vectors(x, out, total, *, N):
    """Reductions and running sums of vectors."""
    v = ww.load(x, (0,), TileType(x.dtype, (N,)))
    ww.store(total, (0,), ww.sum(v, axis=0), unit="element")
    ww.store(total, (1,), ww.max(v, axis=0), unit="element")
    ww.store(out, (0, 0), ww.cumsum(v), axes=(1,))
    ww.store(out, (1, 0), ww.cumsum(v, reverse=True, exclusive=True), axes=(1,))


@pytest.mark.parametrize("n", VECTORS)
def test_vectors(n):
    arguments = {"x": numbers(f32, n), "out": blank(f32, 2, n), "total": blank(f32, 2)}
    agree(captured(vectors, arguments, N=n), arguments)


# -- random numbers ------------------------------------------------------------------------------------


def random(bits, uniform, row, seed, offset, first, *, R, C):
    ww.store(bits, (0, 0), ww.random_bits(TileType(i32, (R, C)), seed, offset, row=first, col=first + 1))
    ww.store(uniform, (0, 0), ww.random_uniform(TileType(f32, (R, C)), seed, offset, row=first, col=3))
    ww.store(row, (0,), ww.random_bits(TileType(i32, (C,)), seed, 5, col=first))


@pytest.mark.parametrize(("seed", "offset", "first"), [(0, 0, 0), (2**40 + 1, -1, 2**31 - 20), (-1, 2**62, -7)])
def test_random_bits(seed, offset, first):
    arguments = {"bits": blank(i32, 9, 33), "uniform": blank(f32, 9, 33), "row": blank(i32, 33)}
    scalars = {"seed": np.int64(seed), "offset": np.int64(offset), "first": first}
    agree(
        captured(random, {**arguments, "seed": 2**40, "offset": 2**40, "first": 1}, R=9, C=33), {**arguments, **scalars}
    )


# -- loads and stores ----------------------------------------------------------------------------------


def moved(x, y, z, one, side, row, *, R, C):
    """Tiles that overhang on every side, elements, rows and columns of a tensor of three dimensions, scalars."""
    b, i, j = ww.grid(x.shape[0], ww.cdiv(x.rows, R), ww.cdiv(x.cols, C))
    tile = ww.load(x, (b, i * R - 2, j * C + 1), TileType(x.dtype, (R, C)), unit="element", fill=1)
    ww.store(y, (b, i, j), tile)
    across = ww.load(x, (0, i, j), TileType(x.dtype, (R, C)), axes=(0, 2), unit="tile")
    ww.store(z, (i, b * R - 1, j * C), across, axes=(1, 2), unit="element")
    ww.store(one, (b, i, j), ww.load(x, (b, i - 1, j)), axes=())
    beside = ww.load(x, (0, i, j * 5), TileType(x.dtype, (2, R)), axes=(0, 1))
    ww.store(side, (b, i, j), beside, axes=(1, 2))
    ww.store(row, (b, i, j), ww.load(x, (b, i, 1), TileType(x.dtype, (R,)), axes=(1,)), axes=(2,))


def moving_arguments(dtype, cols):
    x, y, z = numbers(dtype, 3, 11, cols), blank(dtype, 3, 11, cols), blank(dtype, 3, 20, 64)
    return {
        "x": x,
        "y": y,
        "z": z,
        "one": blank(dtype, 3, 3, 5),
        "side": blank(dtype, 3, 6, 20),
        "row": blank(dtype, 3, 3, 20),
    }


USUAL = (f32, f16, fp8e4m3, i8, i64)


@pytest.mark.parametrize("dtype", [*USUAL, *(sweep(d) for d in ALL if d not in (*USUAL, bool_))], ids=str)
def test_loads_and_stores(dtype):
    arguments = moving_arguments(dtype, 80)
    kernel = captured(moved, arguments, R=4, C=16)
    agree(kernel, arguments)
    if dtype in (f32, i8):
        agree(kernel, moving_arguments(dtype, 71))


def narrower(x, y, z, *, C):
    """Tiles whose width is no whole number of 16-byte units, in tensors with wide rows."""
    i = ww.grid(ww.cdiv(x.cols, C))
    ww.store(y, (0, i), ww.load(x, (0, i), TileType(x.dtype, (8, C))))
    ww.store(z, (i, 0), ww.load(x, (0, 0), TileType(x.dtype, (8, C), "shared")))


@pytest.mark.parametrize("dtype", [f32, f16, i8], ids=str)
def test_tiles_narrower_than_their_tensor(dtype):
    arguments = {"x": numbers(dtype, 8, 112), "y": blank(dtype, 8, 112), "z": blank(dtype, 32, 64)}
    agree(captured(narrower, arguments, C=37), arguments)


def copied(x, y, *, R, C, shared):
    i, j = ww.grid(ww.cdiv(x.rows, R), ww.cdiv(x.cols, C))
    tile = ww.load(x, (i, j), TileType(x.dtype, (R, C), "shared") if shared else TileType(x.dtype, (R, C)))
    ww.store(y, (i, j), tile)


def views(x: np.ndarray):
    """The same numbers in other memory: contiguous, transposed, reversed, every other element, rows apart."""
    store = np.zeros((2 * x.shape[0], 2 * x.shape[1]), x.dtype)
    apart, odd = np.zeros((x.shape[0], x.shape[1] + 32 // x.itemsize), x.dtype), np.zeros(x.size + 1, x.dtype)
    return {
        "plain": x.copy(),
        "transposed": np.ascontiguousarray(x.T).T,
        "reversed": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "strided": np.copyto(store[::2, ::2], x) or store[::2, ::2],
        "apart": np.copyto(apart[:, : x.shape[1]], x) or apart[:, : x.shape[1]],
        "unaligned": np.copyto(odd[1:].reshape(x.shape), x) or odd[1:].reshape(x.shape),
        "repeated": np.broadcast_to(x[:1], x.shape),
    }


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dtype", [f32, bf16, i8], ids=str)
def test_strides_of_inputs_and_outputs(dtype, shared):
    x = numbers(dtype, 35, 64)
    for name, view in views(x).items():
        out = views(np.zeros_like(x))[name if name != "repeated" else "plain"]
        arguments = {"x": view, "y": out}
        agree(captured(copied, arguments, R=16, C=48, shared=shared), arguments)


@pytest.mark.parametrize("shared", [False, True])
def test_offsets_beyond_32_bits(shared):
    """Rows 2 GiB apart, in memory that is never touched between them."""
    pitch = 2**31 + 64
    memory = np.zeros(2 * pitch + 64, np.uint8)
    x = np.ndarray((3, 64), np.int8, memory, 0, (pitch, 1))
    x[...] = numbers(i8, 3, 64)
    arguments = {"x": x, "y": blank(i8, 3, 64)}
    built = program(captured(copied, arguments, R=2, C=64, shared=shared), "gfx950")
    np.testing.assert_array_equal(launch(built, arguments)["y"], x)
