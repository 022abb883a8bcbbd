"""Layouts and shared tiles against the formulas that ThunderKittens and the PTX manual publish."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from warpwave.backends.nvidia.layout import accumulator_layout, operand_layout, wgmma_columns
from warpwave.backends.nvidia.lower.place import SWIZZLES, swizzle_bytes
from warpwave.tiles.dtypes import bf16, f32, i8
from warpwave.tiles.simt.context import SharedTile


def row_l(lane, k, half):
    """Row and column inside a 16 x 16 base tile of ThunderKittens' row_l (thunderkittens.md 2.1)."""
    return lane // 4 + 8 * (k % 2), 2 * (lane % 4) + 8 * (k // 2) + half


GROUPS = [(64, (4, 1)), (128, (8, 1)), (128, (4, 2)), (192, (12, 1)), (256, (8, 1))]


@pytest.mark.parametrize(
    ("rows", "over", "cols"),
    [(rows, over, cols) for rows, over in GROUPS for cols in (16, 32, 96, 256) if cols % (16 * over[1]) == 0],
)
def test_warpgroup_accumulators_are_row_l_tiles(rows, over, cols):
    warps = over[0] * over[1]
    layout = accumulator_layout((rows, cols), warps, over, warpgroups=True)
    seen = layout.coordinates.reshape(-1, 2)
    assert sorted(map(tuple, seen.tolist())) == list(itertools.product(range(rows), range(cols)))
    per_group = rows // (over[0] // 4)
    share = cols // over[1]
    for warp in range(warps):
        across, group = warp // over[0], warp % over[0] // 4
        for lane in (0, 5, 31):
            places = iter(layout.coordinates[warp, lane].tolist())
            for block in range(per_group // 64):
                for tile in range(share // 16):
                    for k in (0, 1, 2, 3):
                        for half in (0, 1):
                            row, col = row_l(lane, k, half)
                            top = group * per_group + block * 64 + warp % 4 * 16
                            assert next(places) == [top + row, across * share + tile * 16 + col]


@pytest.mark.parametrize("shape", [(16, 16), (17, 9), (64, 48), (100, 33)])
@pytest.mark.parametrize("warps", [1, 2, 4, 8])
def test_warp_accumulators_hold_every_element(shape, warps):
    layout = accumulator_layout(shape, warps, (warps, 1), warpgroups=False)
    held = {tuple(c) for c in layout.coordinates.reshape(-1, 2).tolist()}
    assert held >= set(itertools.product(range(shape[0]), range(shape[1])))
    assert layout.width == 4


@pytest.mark.parametrize("depth", [16, 40, 128])
def test_operands_in_registers_share_the_accumulators_rows(depth):
    accumulator = accumulator_layout((128, 64), 8, (8, 1), warpgroups=True)
    operand = operand_layout(depth, accumulator)
    for warp in range(8):
        rows = set(accumulator.coordinates[warp, :, :, 0].ravel().tolist())
        assert set(operand.coordinates[warp, :, :, 0].ravel().tolist()) == rows
    # Eight items in a row are the four registers of mma.m16n8k16's first operand (PTX ISA, fragments of A).
    for lane, register, half in itertools.product(range(32), range(4), range(2)):
        row, col = operand.coordinates[0, lane, 2 * register + half]
        assert (row, col) == (lane // 4 + 8 * (register % 2), 2 * (lane % 4) + 8 * (register // 2) + half)


@pytest.mark.parametrize("cols", range(16, 513, 16))
def test_one_instruction_takes_as_many_columns_as_it_can(cols):
    columns = wgmma_columns(cols)
    assert cols % columns == 0
    assert columns <= 256
    assert columns % 16 == 0
    assert all(cols % wider for wider in range(columns + 16, 257, 16))


@pytest.mark.parametrize(("dtype", "cols", "panel"), [(bf16, 64, 128), (bf16, 32, 64), (bf16, 48, 32), (bf16, 192, 128),
                                                       (f32, 16, 64), (f32, 32, 128), (i8, 32, 32), (i8, 128, 128)])  # fmt: skip
def test_shared_tiles_lie_as_published(dtype, cols, panel):
    """thunderkittens.md 2.3: panels of P columns; the 16-byte unit is xored with bits of the address above 128."""
    rows, size = 24, dtype.nbytes
    assert swizzle_bytes(cols * size) == panel
    tile = SharedTile(0, panel, SWIZZLES[panel], dtype, (rows, cols), panels=rows * panel)
    row, col = np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij")
    text = tile.within("row", "col").replace("/", "//")
    found = eval(text, {"row": row, "col": col})
    per_panel = panel // size
    linear = size * ((col // per_panel) * rows * per_panel + row * per_panel + col % per_panel)
    assert np.array_equal(found, linear ^ (((linear % (8 * panel)) >> 7) << 4))
