"""Rows that are not 16-byte aligned: the text for them, and on a GPU (`pytest -m gpu`) what it computes."""

from __future__ import annotations

import itertools
import re

import pytest

import warpwave as ww
from warpwave.backends.nvidia.runtime import devices
from warpwave.backends.nvidia.runtime.masks import ALL
from warpwave.kernels.gemm import gemm

ROWS_ONLY = ALL & ~0xFFFFFFFF  # no tensor is wide, all have contiguous rows


@pytest.mark.parametrize("target", ["nvidia:sm90a", "nvidia:sm80"])
def test_unaligned_rows_are_copied_ahead_in_whole_units(target):
    x = ww.spec("bf16[1000,1001]")
    program = gemm.compile(x, x, x, transpose_b=True, target=target).program
    assert "constexpr bool shifted_" in program.source
    odd, wide = (program.built(mask, 0) for mask in (ROWS_ONLY, ALL))
    assert "0 bytes spill stores, 0 bytes spill loads" in odd.log
    assert "shf.r" in odd.ptx
    assert "shf.r" not in wide.ptx
    assert odd.ptx.count("cp.async.cg.shared.global") > 0


def test_every_tensor_of_the_loop_must_have_contiguous_rows():
    x = ww.spec("bf16[1000,1001]")
    program = gemm.compile(x, x, x, transpose_b=True, target="nvidia:sm80").program
    assert "shf.r" not in program.built(ROWS_ONLY & ~(1 << 33), 0).ptx  # b has none


def test_without_room_for_staging_there_is_none():
    x = ww.spec("bf16[1000,1001]")
    constants = {"BM": 128, "BN": 128, "BK": 64, "transpose_b": True}
    program = gemm.compile(x, x, x, target="nvidia:sm89", options={"allow_spills": True}, **constants).program
    assert "shift_units" not in program.source


def test_staging_lies_behind_the_operands_places():
    """Two places of operands, then the staging slots; more room than the ring has is taken for two of them."""
    x = ww.spec("bf16[1000,1001]")
    options = {"stages": 4, "allow_spills": True}
    constants = {"BM": 128, "BN": 128, "BK": 64, "transpose_b": True}
    source = gemm.compile(x, x, x, target="nvidia:sm80", options=options, **constants).program.source
    depth = int(re.search(r"constexpr int depth_\d+ = shifted_\d+ \? (\d+) : 4;", source)[1])
    copies = re.findall(r"copy_unit\(smem \+ (\d+) \+ \(stage\) \* (\d+) \+ unit \* 16,", source)
    slots = [(int(base), int(size)) for base, size in copies]
    tile, staged = 128 * 64 * 2, 128 * 144
    more = 2 * staged - 2 * tile
    assert slots == [(2 * tile, staged), (4 * tile + more + 2 * tile, staged)]
    assert depth == 2


def test_copies_are_whole_units_or_none():
    """cp.async of a part of a unit names memory beyond the part, which compute-sanitizer reports at an array's end."""
    x = ww.spec("bf16[1000,1001]")
    program = gemm.compile(x, x, x, transpose_b=True, target="nvidia:sm80").program
    assert "cp_async<16>(smem_at" in program.source  # aligned rows: whole by their nature
    (text,) = re.findall(r"if constexpr \(shifted_\d+\) \{\s+const int left.*?\} else", program.source, re.S)[:1]
    assert "copy_unit(" in text
    assert "cp_async<16>" not in text


# -- on a GPU -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    if not devices.devices():
        pytest.skip("no NVIDIA GPU here")
    return pytest.importorskip("torch")


def matrix(torch, rows, cols, start, dtype):
    """A matrix at an odd place between NaN."""
    around = torch.full((rows * cols + 64,), float("nan"), device="cuda", dtype=torch.float32).to(dtype)
    inside = around[start : start + rows * cols].view(rows, cols)
    inside.copy_(torch.randint(-4, 5, (rows, cols), device="cuda").to(dtype))
    return inside


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("transpose_a", "transpose_b"), list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("shape", [(1000, 999, 1001), (7, 9, 3), (130, 257, 65), (64, 128, 640)])
def test_products_of_unaligned_rows_are_exact_on_small_integers(torch, shape, transpose_a, transpose_b):
    m, n, k = shape
    for start in (0, 1, 5):
        a = matrix(torch, *((k, m) if transpose_a else (m, k)), start, torch.bfloat16)
        b = matrix(torch, *((n, k) if transpose_b else (k, n)), start + 3, torch.bfloat16)
        c = torch.full((m, n), float("nan"), device="cuda")
        gemm(a, b, c, transpose_a=transpose_a, transpose_b=transpose_b)
        exact = (a.T if transpose_a else a).double() @ (b.T if transpose_b else b).double()
        assert bool((c.double() == exact).all())


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", [0, 1, 2, 3, 7, 13])
def test_bytes_are_shifted_too(torch, start):
    a, b = (matrix(torch, 100, 77, start + i, torch.float8_e4m3fn) for i in (0, 5))
    c = torch.empty(100, 100, device="cuda")
    gemm(a, b, c, transpose_b=True)
    assert bool((c.double() == a.double() @ b.double().T).all())
