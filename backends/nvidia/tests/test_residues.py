"""Rows that are not 16-byte aligned through maps by residues: boxes as the copy engine moves them, emulated in numpy."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpwave as ww
from warpwave import bf16, f32
from warpwave.backends.nvidia.build import BY_RESIDUES
from warpwave.backends.nvidia.layout import accumulator_layout, by_residues
from warpwave.backends.nvidia.lowered import RESIDUES, Lowered, TensorMap
from warpwave.backends.nvidia.runtime import masks
from warpwave.backends.nvidia.runtime.masks import View
from warpwave.backends.nvidia.runtime.plan import variant
from warpwave.backends.nvidia.runtime.tensor_maps import map_parameters
from warpwave.kernels.gemm import gemm

SPEC = TensorMap("x", (0, 1), RESIDUES, 64, 128, 0)


class Matrix:
    """A matrix of 16-bit numbers at an address of a memory, which begins at a multiple of 16 bytes."""

    def __init__(self, values, pad, start):
        self.rows, self.cols = values.shape
        self.stride, self.start = self.cols + pad, start
        self.memory = np.full(start + self.rows * self.stride + 64, -1.0)
        for row in range(self.rows):
            at = start + row * self.stride
            self.memory[at : at + self.cols] = values[row]

    def box(self, residue, column, row):
        """The memory places of the 8 x 64 elements of a box, and which of them lie inside the map."""
        spec = TensorMap("x", (0, 1), RESIDUES, 64, 128, residue)
        found = map_parameters(spec, bf16, (self.rows, self.cols), (self.stride, 1), self.start * 2 % 16)
        assert found.strides[0] % 16 == 0
        assert found.box == (64, 8)
        base = (self.start + residue * self.stride) * 2 // 16 * 16 // 2
        columns, rows = column + np.arange(64), row + np.arange(8)
        inside = ((columns >= 0) & (columns < found.dims[0]))[None] & ((rows >= 0) & (rows < found.dims[1]))[:, None]
        return base + rows[:, None] * (found.strides[0] // 2) + columns[None], inside

    def first_column(self, residue):
        """As the device function of that name."""
        return (self.start + residue * self.stride) % 8

    def loaded(self, row, col, rows):
        """A tile in shared memory: `rows` rows of 64 elements, as the producer's copies put them."""
        tile = np.zeros((rows, 64))
        for chunk, residue in itertools.product(range(rows // 64), range(RESIDUES)):
            places, inside = self.box(residue, col + self.first_column(residue), row // 8 + chunk * 8)
            part = np.where(inside, self.memory[np.where(inside, places, 0)], 0.0)
            tile[chunk * 64 + residue * 8 :][:8] = part
        return tile


matrices = st.tuples(
    st.integers(8, 200), st.integers(1, 150), st.integers(0, 9), st.integers(0, 20), st.integers(0, 99)
)


@settings(max_examples=60)
@given(matrices)
def test_boxes_bring_each_row_of_the_tile_once_and_zeros_beyond_the_matrix(case):
    rows, cols, pad, start, seed = case
    values = np.random.default_rng(seed).integers(1, 100, (rows, cols)).astype(float)
    matrix = Matrix(values, pad, start)
    padded = np.zeros((256, 256))
    padded[:rows, :cols] = values
    for row, col in itertools.product(range(0, rows, 64), range(0, cols, 64)):
        tile = matrix.loaded(row, col, 64)
        for m in range(64):
            assert (tile[m] == padded[row + m % 8 * 8 + m // 8, col : col + 64]).all()


@pytest.mark.parametrize(("rows", "cols", "over"), [(64, 64, (4, 1)), (64, 128, (4, 2)), (128, 192, (8, 1))])
def test_accumulators_belong_where_their_layout_says(rows, cols, over):
    """A product of two tiles that came by residues, element by element."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, (rows, 64)).astype(float), rng.integers(0, 9, (cols, 64)).astype(float)
    exact = a @ b.T
    left, right = Matrix(a, 3, 5).loaded(0, 0, rows), Matrix(b, 1, 2).loaded(0, 0, cols)
    computed = left @ right.T
    natural = accumulator_layout((rows, cols), over[0] * over[1], over, warpgroups=True)
    places, own = natural.coordinates.reshape(-1, 2), by_residues(natural).coordinates.reshape(-1, 2)
    assert (computed[tuple(places.T)] == exact[tuple(own.T)]).all()
    assert len(np.unique(own, axis=0)) == rows * cols


def test_stores_put_each_element_in_its_place_and_nothing_elsewhere():
    """The buffers of four warps as `fill_by_residues` fills them, through the boxes of `send_by_residues`."""
    values = np.arange(61 * 51, dtype=float).reshape(61, 51) + 1
    target = Matrix(np.zeros_like(values), 2, 3)
    padded = np.full((64, 64), np.nan)
    padded[:61, :51] = values
    layout = by_residues(accumulator_layout((64, 64), 4, (4, 1), warpgroups=True))
    for warp in range(4):
        buffer = np.full((16, 64), np.nan)
        for lane, h, e, q in itertools.product(range(32), range(2), range(2), range(8)):
            item = q * 4 + h * 2 + e
            unit = ((lane & 3) * 2 + e) ^ (lane >> 2)
            row = lane >> 2
            column = (unit ^ row) * 8 + q  # the engine undoes the swizzle
            buffer[h * 8 + row, column] = padded[tuple(layout.coordinates[warp, lane, item])]
        for h in range(2):
            residue = warp * 2 + h
            places, inside = target.box(residue, target.first_column(residue), 0)
            target.memory[places[inside]] = buffer[h * 8 : h * 8 + 8][inside]
    assert np.array_equal(target.memory, Matrix(values, 2, 3).memory)


def view(shape, stride, misalignment=0, nbytes=2):
    return View(nbytes, shape, (*([shape[-2] * stride] if len(shape) == 3 else []), stride, 1), misalignment)


@pytest.mark.parametrize(
    ("tensor", "fits"),
    [
        (view((1000, 1001), 1001), True),
        (view((1000, 1001), 1001, misalignment=6), True),
        (view((8, 3), 3), True),
        (view((7, 1001), 1001), False),
        (view((1000, 1001), 1001, nbytes=1), False),
        (view((1000, 1001), 1001, nbytes=4), False),
        (view((1000, 1001), 1001, misalignment=3), False),
        (view((1000, 1001), -1001), False),
        (view((4, 1000, 1001), 1001), True),  # 1000 odd rows are a multiple of 16 bytes
        (view((4, 999, 1001), 1001), False),
        (View(2, (1000, 1001), (2002, 2), 0), False),
    ],
)
def test_tensors_for_maps_by_residues(tensor, fits):
    assert masks.fits_maps_by_residues(tensor, len(tensor.shape) - 2) == fits


def test_maps_by_residues_are_used_where_the_plain_ones_do_not_fit_and_all_of_these_do():
    maps = [TensorMap(name, (0, 1), 64, 64, 128) for name in "abc"]
    maps += [TensorMap(name, (0, 1), 8, 64, 128, residue) for name in "abc" for residue in range(8)]
    lowered = Lowered("", "", "k", 384, 0, 1, True, tuple(maps), (), (), ())
    even, odd, short = view((64, 64), 64), view((64, 63), 63), view((7, 63), 63)

    def tma(a, b, c):
        return variant(lowered, {"a": a, "b": b, "c": c})[1]

    assert tma(even, even, even) == 0b111
    assert tma(odd, odd, odd) == tma(even, odd, even) == tma(even, even, odd) == 0b111 | BY_RESIDUES
    assert tma(even, odd, short) == 0b001
    assert tma(even, even, short) == 0b011


def spec(rows, cols, dtype=bf16):
    return ww.ArraySpec(dtype, (rows, cols))


@pytest.fixture(scope="module")
def product():
    return gemm.compile(spec(1000, 1001), spec(999, 1001), spec(1000, 999), transpose_b=True, target="nvidia:sm90a")


def test_products_of_rows_have_a_text_for_odd_ones(product):
    assert "for tensors whose rows are not 16-byte aligned: " in product.program.explain()
    (text,) = re.findall(r"#elif defined BY_RESIDUES.*?#else", product.source, re.S)
    assert "ptx::wgmma<" in text
    assert text.count("ptx::tensor_load(") == 2
    assert "ptx::tensor_store(" in text
    residues = [m.residue for m in product.program.lowered.maps]
    assert residues == [None] * 3 + list(range(8)) * 3


def test_the_text_for_odd_rows_has_no_spills(product):
    log = product.program.built(0, 7 | BY_RESIDUES).log
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "setmaxnreg" not in log  # the assembler says when it ignores one


@pytest.mark.parametrize(
    ("arguments", "constants"),
    [
        ((spec(256, 129), spec(129, 256), spec(256, 256)), {}),  # k runs down the columns of b
        ((spec(256, 129, f32), spec(256, 129, f32), spec(256, 256)), {"transpose_b": True, "precision": "tf32"}),
        ((spec(256, 129), spec(256, 129), spec(256, 256)), {"transpose_b": True, "BM": 128, "BN": 96}),
    ],
)
def test_other_products_have_none(arguments, constants):
    options = {"allow_spills": True}  # nothing is built
    program = gemm.compile(*arguments, target="nvidia:sm90a", options=options, **constants).program
    assert all(m.residue is None for m in program.lowered.maps)
