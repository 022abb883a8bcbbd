from __future__ import annotations

import pytest

import warpwave as ww
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.kernels.shapes import ROW_TILE, fitting, row_width
from warpwave.kernels.softmax import softmax


@pytest.mark.parametrize(
    ("extent", "expected"), [(0, 16), (1, 16), (16, 16), (17, 32), (63, 64), (64, 64), (65, 64), (None, 64)]
)
def test_fitting(extent, expected):
    assert fitting(extent, 16, 64) == expected


def test_a_row_fits_its_tile_up_to_the_limit_and_wastes_less_than_half():
    for extent in range(1, ROW_TILE + 1):
        assert extent <= row_width(extent) <= max(16, 2 * extent - 1)
    assert row_width(ROW_TILE + 1) < ROW_TILE


def constants(kernel, *specs):
    return kernel.compile(*map(ww.spec, specs), target="reference").constants


@pytest.mark.parametrize(
    "extents", [(1, 1), (7, 100), (4096, 128), (64, 4096), (8, 8192), (3, 16384), (3, 99999)], ids=str
)
def test_tiles_of_rows_stay_within_the_limit(extents):
    text = f"bf16[{extents[0]},{extents[1]}]"
    chosen = constants(softmax, text, text)
    assert ROW_TILE // 4 <= chosen["BM"] * chosen["BN"] <= ROW_TILE or chosen["BM"] in (fitting(extents[0], 1, 64), 64)
    assert chosen["BM"] * chosen["BN"] <= ROW_TILE


def test_an_unknown_extent_gets_the_largest_tile():
    assert constants(gemm, "bf16[?,64]", "bf16[64,?]", "bf16[?,?]")["BM"] == 256


def test_small_problems_get_small_tiles():
    chosen = constants(gemm, "bf16[1,64]", "bf16[64,100]", "bf16[1,100]")
    assert (chosen["BM"], chosen["BN"]) == (64, 128)
    heads = ["bf16[1,2,1,40]", *["bf16[1,2,500,40]"] * 2, "bf16[1,2,1,40]"]
    chosen = constants(attention, *heads)
    assert (chosen["BQ"], chosen["D"]) == (64, 64)
