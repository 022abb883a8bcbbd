"""Layouts, exhaustively: each element has one holder, derived layouts hold what they say, assignments fit kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from warpwave.backends.amd.arch import TARGETS, WAVE
from warpwave.backends.amd.assign import assign_layouts
from warpwave.backends.amd.fragments import accumulator
from warpwave.backends.amd.layout import accumulator_layout, operand_layout
from warpwave.backends.amd.plan import make_plan
from warpwave.backends.amd.tests.test_ops_tiles import blank, numbers, rearranged
from warpwave.tiles.dtypes import bf16
from warpwave.tiles.ir import walk
from warpwave.tiles.simt.layout import (
    Layout,
    blocked_layout,
    doubled,
    drop_axis,
    flatten_axis,
    halved,
    insert_axis,
    item_map,
    joined,
    sliced,
    transposed,
    transposing_layout,
)
from warpwave.tiles.tests.reference_harness import captured

EXTENTS = (1, 2, 3, 7, 16, 33, 64, 100)


def primary(layout: Layout) -> np.ndarray:
    """[wave, lane]: whether this is the first of its copies, from the description of bits and digits."""
    wave, lane = np.meshgrid(np.arange(layout.wave_count), np.arange(WAVE), indexing="ij")
    first = np.ones(wave.shape, bool)
    for bit, part in enumerate(layout.lanes):
        if not any(part):
            first &= (lane >> bit & 1) == 0
    for count, part in layout.waves:
        if count > 1 and not any(part):
            first &= wave % count == 0
        wave = wave // count
    return first


def holders(layout: Layout, shape: tuple[int, ...]) -> np.ndarray:
    """How many lanes that are not copies hold each element of the tile."""
    at = layout.coordinates
    real = primary(layout)[:, :, None] & (at >= 0).all(-1) & (at < np.array(shape)).all(-1)
    count = np.zeros(shape, int)
    np.add.at(count, tuple(at[real].T), 1)
    return count


def assert_covers(layout: Layout, shape: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(holders(layout, shape), 1)
    assert len(layout.lanes) == 6
    assert len(layout.items) % layout.width == 0 or layout.width == 1


@pytest.mark.parametrize("waves", [1, 2, 8])
def test_blocked_layouts_cover_every_shape_once(waves):
    for rows, cols, vector in itertools.product(EXTENTS, EXTENTS, (1, 4, 8, 16)):
        layout = blocked_layout((rows, cols), WAVE, waves, vector)
        assert layout.wave_count == waves
        assert_covers(layout, (rows, cols))
        assert_covers(blocked_layout((cols,), WAVE, waves, vector), (cols,))


@pytest.mark.parametrize(("nbytes", "block"), [(1, (4, 8)), (2, (4, 4)), (4, (2, 2))])
@pytest.mark.parametrize("waves", [1, 4, 8])
def test_transposing_layouts_cover_every_shape_once(waves, nbytes, block):
    for rows, cols in itertools.product((1, 2, 3, 8, 16), (1, 2, 5, 16, 32)):
        shape = rows * block[0], cols * block[1]
        layout = transposing_layout(shape, nbytes, block, WAVE, waves)
        assert layout.wave_count == waves
        assert_covers(layout, shape)
        steps = [(i, j) for i in range(block[0]) for j in range(block[1])]
        for start in range(0, len(layout.items), len(steps)):  # a lane holds whole blocks, row by row
            row, col = layout.items[start]
            assert list(layout.items[start : start + len(steps)]) == [(row + i, col + j) for i, j in steps]


OVER = {1: [(1, 1)], 4: [(2, 2), (4, 1), (1, 4)], 8: [(2, 4), (8, 1)]}


@pytest.mark.parametrize(("waves", "over"), [(w, o) for w, all_ in OVER.items() for o in all_])
@pytest.mark.parametrize("size", [16, 32])
def test_accumulators_and_operands_cover_their_tiles_once(size, waves, over):
    mfma = next(m for m in TARGETS["gfx950"].mfma if (m.m, m.a, m.blocks) == (size, "bf16", 1))
    for rows, cols in itertools.product((1, 16, 33, 128), repeat=2):
        layout = accumulator_layout((rows, cols), waves, over, size)
        assert_covers(layout, (rows, cols))
        for depth in (1, 16, 40):
            assert_covers(operand_layout((rows, depth), layout, mfma, 2), (rows, depth))


@pytest.mark.parametrize("size", [16, 32])
def test_accumulators_are_the_instructions_transposed(size):
    mfma = next(m for m in TARGETS["gfx942"].mfma if (m.m, m.a, m.blocks) == (size, "f16", 1))
    one, layout = accumulator(mfma), accumulator_layout((size, size), 1, (1, 1), size)
    np.testing.assert_array_equal(layout.coordinates[0, :, :, 0], one.cols)
    np.testing.assert_array_equal(layout.coordinates[0, :, :, 1], one.rows)


def samples():
    """Layouts of all kinds, each with the shape of a tile."""
    for shape in ((16, 64), (33, 66), (64, 32), (7, 5), (128, 128), (3, 300)):
        for waves, vector in ((1, 1), (4, 8), (2, 4)):
            yield blocked_layout(shape, WAVE, waves, vector), shape
        yield accumulator_layout(shape, 4, (2, 2), 16), shape
        yield accumulator_layout(shape, 4, (4, 1), 32), shape


@pytest.mark.parametrize(("layout", "shape"), list(samples()))
def test_derived_layouts_cover_what_they_are_derived_for(layout, shape):
    rows, cols = shape
    assert_covers(transposed(layout), (cols, rows))
    for axis in (0, 1):
        vector = drop_axis(layout, axis)
        assert_covers(vector, shape[:axis] + shape[axis + 1 :])
        assert_covers(insert_axis(vector, axis), tuple(1 if a == axis else n for a, n in enumerate(shape)))
        assert_covers(flatten_axis(layout, axis), tuple(1 if a == axis else n for a, n in enumerate(shape)))
        mapped = [vector.items[i] for i in item_map(vector, layout, axis)]
        assert mapped == [item[:axis] + item[axis + 1 :] for item in layout.items]
    if cols % 2 == 0 and (half := halved(layout)) is not None:
        assert_covers(half, (rows, cols // 2))
        assert_covers(doubled(half), shape)
    assert_covers(doubled(layout), (rows, 2 * cols))


@pytest.mark.parametrize(("layout", "shape"), list(samples()))
def test_slices_and_joins_in_place_hold_their_elements(layout, shape):
    rng, found = np.random.default_rng(0), 0
    for _ in range(60):
        offsets = tuple(int(rng.integers(0, n) // 4 * 4) for n in shape)
        extents = tuple(int(rng.integers(1, n - o + 1)) for n, o in zip(shape, offsets, strict=True))
        part = sliced(layout, offsets, extents)
        if part is not None:
            found += 1
            assert_covers(part, extents)
            assert {tuple(np.add(i, offsets)) for i in part.items} <= set(layout.items)
    assert sliced(layout, (0, 0), shape) is not None or layout.extent != shape
    for axis in (0, 1):
        whole = joined([layout, layout], [0, shape[axis]], axis)
        if whole is not None:
            assert_covers(whole, tuple(2 * n if a == axis else n for a, n in enumerate(shape)))
        else:
            assert layout.extent[axis] > shape[axis]


@pytest.mark.parametrize("shape", [(33, 66), (7, 5), (64, 48), (3, 300)], ids=str)
def test_assigned_layouts_cover_their_values(shape):
    r, c = shape
    shapes = [(r, c), (c, r), (r, c), (r, c), (r, c), (2 * r + 1, c), (r, c - c // 3), (r, 2 * c), (2 * r, c)]
    names = ("x", "t", "rows", "cols", "back", "wide", "parts", "pairs", "split")
    arguments = {n: numbers(bf16, *s) if n == "x" else blank(bf16, *s) for n, s in zip(names, shapes, strict=True)}
    kernel = captured(rearranged, arguments, R=r, C=c)
    for target in TARGETS.values():
        layouts = assign_layouts(kernel, make_plan(kernel, target, {}))
        for op in walk(kernel.body):
            for value in op.results:
                if value in layouts:
                    assert_covers(layouts[value], value.tile.shape)
