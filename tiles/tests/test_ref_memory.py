"""Loads, stores and atomic adds against brute force: masks, coordinates, axes, units, strides, far offsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import warpwave as ww
from warpwave.tiles.dtypes import BY_NUMPY, bf16, f16, f32, i32
from warpwave.tiles.errors import TileTypeError, TileValueError
from warpwave.tiles.ir import Block, Builder, Kernel, Value, verify
from warpwave.tiles.language import context, memory
from warpwave.tiles.language.handles import Tensor
from warpwave.tiles.reference import execute
from warpwave.tiles.tests.reference_harness import captured, run
from warpwave.tiles.types import TensorType, TileType


def access_kernel(tensor, tile_shape, coord, axes, unit, fill, write):
    """Loads a tile into `out`, or stores or adds `out` at the coordinates."""
    dtype = BY_NUMPY[tensor.dtype]
    src, out = Value(TensorType(dtype, tensor.ndim), "x"), Value(TensorType(dtype, len(tile_shape)), "out")
    body = Block([src, out])
    with context.capturing(Builder(body)):
        handle, other = Tensor(src, "x"), Tensor(out, "out")
        type_, origin = TileType(dtype, tile_shape), (0,) * len(tile_shape)
        if write is None:
            tile = memory.load(handle, coord, type_, axes=axes, unit=unit, fill=fill)
            memory.store(other, origin, tile)
        else:
            write(handle, coord, memory.load(other, origin, type_), axes=axes, unit=unit)
    kernel = Kernel("access", ["x", "out"], {}, body, None)
    verify(kernel)
    return kernel


def places(tensor_shape, tile_shape, coord, axes, unit):
    """Every element of the tile with the position in the tensor that it stands for, in or out of range."""
    for index in itertools.product(*(range(n) for n in tile_shape)):
        position = list(coord)
        for i, axis in zip(index, axes, strict=True):
            base = coord[axis] * tile_shape[axes.index(axis)] if unit == "tile" else coord[axis]
            position[axis] = base + i
        inside = all(0 <= p < n for p, n in zip(position, tensor_shape, strict=True))
        yield index, tuple(position), inside


@st.composite
def accesses(draw):
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.sampled_from([1, 2, 3, 5])) for _ in range(rank))
    axes = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=2))))
    tile = tuple(draw(st.sampled_from([1, 2, 3, 4, 7])) for _ in axes)
    coord = tuple(draw(st.integers(-3, 6)) for _ in range(rank))
    return shape, tile, coord, axes, draw(st.sampled_from(["tile", "element"]))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(accesses(), st.sampled_from([0, -7]))
def test_loads_equal_brute_force(access, fill):
    shape, tile, coord, axes, unit = access
    x = np.random.default_rng(0).permutation(int(np.prod(shape))).reshape(shape).astype(np.int32)
    out = np.full(tile, 12345, np.int32)
    execute(access_kernel(x, tile, coord, axes, unit, fill, None), {"x": x, "out": out})
    for index, position, inside in places(shape, tile, coord, axes, unit):
        assert out[index] == (x[position] if inside else fill)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(accesses(), st.sampled_from(["store", "atomic_add"]))
def test_stores_and_atomic_adds_touch_nothing_else(access, name):
    shape, tile, coord, axes, unit = access
    x = np.random.default_rng(0).integers(0, 100, shape).astype(np.int32)
    guarded = np.full([n + 2 for n in shape], -1, np.int32)
    view = guarded[tuple(slice(1, -1) for _ in shape)]
    view[...] = x
    out = np.random.default_rng(1).integers(1000, 2000, tile).astype(np.int32)
    write = memory.store if name == "store" else memory.atomic_add
    execute(access_kernel(view, tile, coord, axes, unit, 0, write), {"x": view, "out": out})
    expected = guarded.copy()
    inner = expected[tuple(slice(1, -1) for _ in shape)]
    inner[...] = x
    for index, position, inside in places(shape, tile, coord, axes, unit):
        if inside:
            inner[position] = out[index] + (x[position] if name == "atomic_add" else 0)
    np.testing.assert_array_equal(guarded, expected)


def copy(x, out, *, B=4):
    m, n = ww.grid(ww.cdiv(out.rows, B), ww.cdiv(out.cols, B))
    ww.store(out, (m, n), ww.load(x, (m, n), ww.rt[x.dtype, B, B]))


VIEWS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T.copy().T,
    "every second": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "offset": lambda x: np.pad(x, 3)[3:-3, 3:-3],
    "broadcast row": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", [f32, bf16], ids=str)
def test_layouts_do_not_matter(view, dtype):
    x = np.random.default_rng(0).normal(size=(7, 10)).astype(np.float32).astype(dtype.numpy)
    seen = VIEWS[view](x)
    out = VIEWS["every second"](np.zeros_like(x))
    assert not out.flags.c_contiguous
    run(copy, {"x": seen, "out": out})
    np.testing.assert_array_equal(out.astype(np.float32), seen.astype(np.float32))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_zero_sizes_launch_nothing(shape):
    run(copy, {"x": np.zeros(shape, np.float32), "out": np.zeros(shape, np.float32)})


def row_of(x, out, b, r):
    ww.grid(1)
    ww.store(out, (0,), ww.load(x, (b, r, 0), ww.rv[x.dtype, 4]))


def test_offsets_past_2_to_the_31_elements():
    """A view whose rows all lie in 32 bytes, but whose last offset is 2,508,718,080 elements away."""
    storage = np.zeros(16, np.float32)
    storage[8:12] = [1, 2, 3, 4]
    x = as_strided(storage[8:], (3_000_000_000, 5, 4), (0, 0, 4), writeable=False)
    out = np.zeros(4, np.float32)
    run(row_of, {"x": x, "out": out, "b": 2_999_999_999, "r": 4})
    np.testing.assert_array_equal(out, [1, 2, 3, 4])
    run(row_of, {"x": x, "out": out, "b": 3_000_000_000, "r": 4})
    np.testing.assert_array_equal(out, 0)


def last_tile(x, out, n):
    ww.grid(1)
    ww.store(out, (0,), ww.load(x, (n,), ww.rv[x.dtype, 8192]))


def test_tile_coordinates_times_extent_do_not_wrap(tmp_path):
    """A sparse file of 2**32 + 5 bytes: the last tile begins at 2**32, which 32 bits would take for 0."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**32 + 5)
    x = np.memmap(path, np.int8, "r+")
    x[:5], x[-5:] = 9, [1, 2, 3, 4, 5]
    out = np.full(8192, 7, np.int8)
    run(last_tile, {"x": np.asarray(x), "out": out, "n": 2**32 // 8192})
    np.testing.assert_array_equal(out[:5], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(out[5:], 0)


@pytest.mark.parametrize("dtype", [f32, f16, bf16, i32], ids=str)
def test_atomic_add_rounds_each_sum_to_the_tensor(dtype):
    def add_twice(x, out):
        ww.grid(3)
        ww.atomic_add(out, (0,), ww.load(x, (0,), ww.rv[x.dtype, 8]))

    x = np.array([1, 0.001, -3, 5, 7], np.float32).astype(dtype.numpy)
    out = np.array([256, 1, 2, 3, 0], np.float32).astype(dtype.numpy)
    expected = out.copy()
    for _ in range(3):
        expected = (expected.astype(np.float64) + x.astype(np.float64)).astype(np.float32).astype(dtype.numpy)
    run(add_twice, {"x": x, "out": out})
    np.testing.assert_array_equal(out, expected)


def test_loads_in_a_fill_that_is_a_runtime_value():
    def shifted(x, out, fill):
        ww.grid(1)
        ww.store(out, (0,), ww.load(x, (-2,), ww.rv[f32, 6], unit="element", fill=fill))

    out = np.zeros(6, np.float32)
    run(shifted, {"x": np.float32([1, 2, 3]), "out": out, "fill": -1.5})
    np.testing.assert_array_equal(out, [-1.5, -1.5, 1, 2, 3, -1.5])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": np.zeros((3, 3), np.float32)}, TileTypeError, r"takes \(x, out\), got \(x\)"),
        ({"x": np.zeros(3, np.float32), "out": np.zeros((3, 3), np.float32)}, TileTypeError, "x must be gl<f32, 2d>"),
        (
            {"x": np.zeros((3, 3)), "out": np.zeros((3, 3), np.float32)},
            TileTypeError,
            "x must be gl<f32, 2d>, got float64",
        ),
        ({"x": [[1.0]], "out": np.zeros((3, 3), np.float32)}, TileTypeError, "x must be a NumPy array, got list"),
        (
            {"x": np.zeros((3, 3), np.float32), "out": np.broadcast_to(np.float32(0), (3, 3))},
            TileValueError,
            "out is written by the kernel but is read-only",
        ),
    ],
)
def test_wrong_arguments(arguments, error, message):
    good = {"x": np.zeros((3, 3), np.float32), "out": np.zeros((3, 3), np.float32)}
    kernel = captured(copy, good, B=4)
    with pytest.raises(error, match=message):
        execute(kernel, arguments)
