"""The 4-wave interleave: what its loop executes, any interleaving of waves, every length, and where it does not apply."""

from __future__ import annotations

import mmap
import re
from functools import lru_cache

import ml_dtypes
import numpy as np
import pytest

from warpwave.backends.amd.backend import BACKEND
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.errors import TileValueError, UnsupportedError
from warpwave.tiles.runtime.arrays import borrow

DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "fp8e4m3": ml_dtypes.float8_e4m3fn,
    "fp8e5m2": ml_dtypes.float8_e5m2,
}
DEPTH = {"bf16": 64, "fp8e4m3": 128}


def captured(dtype, *, other=None, transpose_a=False, transpose_b=True, bm=256, bn=256, bk=None):
    a, b = (np.zeros((512, 512), DTYPES[d]) for d in (dtype, other or dtype))
    sizes = {"BM": bm, "BN": bn, "BK": bk or DEPTH[dtype]}
    c = np.zeros((512, 512), np.float32)
    orders = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    return gemm.compile(a, b, c, target="reference", **orders, **sizes).ir


@lru_cache
def program(dtype, pin=""):
    return BACKEND.compile(captured(dtype), "amd:gfx950", {"schedule": "interleave", "pin": pin})


def launch(built, dtype, shape, *, other=None, transposed=(False, True), **how):
    """Run on small integers, whose sums are exact."""
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-3, 4, (k, m) if transposed[0] else (m, k)).astype(DTYPES[dtype])
    b = rng.integers(-3, 4, (n, k) if transposed[1] else (k, n)).astype(DTYPES[other or dtype])
    c = np.zeros((m, n), np.float32)
    report = built.simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)}, **how)
    left, right = (x.astype(np.float32) for x in (a.T if transposed[0] else a, b.T if transposed[1] else b))
    np.testing.assert_array_equal(c, left @ right)
    return report


@pytest.mark.parametrize("dtype", DEPTH)
def test_the_hot_loop(dtype):
    """Two steps of 256 x 256: nothing but products, memory, three waits and two barriers a step, and their scalars."""
    built = program(dtype)
    loop = built.resources["hot_loop"]
    products = 2 * 8 * 8 * DEPTH[dtype] // {"bf16": 32, "fp8e4m3": 128}[dtype]
    assert loop["each_iteration"] == {
        "mfma": products,
        "ds_read": 64,
        "direct_to_lds": 32,
        "waits": 6,
        "barriers": 4,
        "branches": 1,
        "salu": 14,
    }
    assert loop["conditional"] == {}
    assert {built.resources[name] for name in ("spills", "sgpr_spills", "scratch_bytes")} == {0}
    assert built.resources["agprs"] == 256


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8])
def test_every_length(steps):
    """Fewer steps than slots, and a last one that is not whole, go one by one, the rest through the block."""
    launch(program("bf16"), "bf16", (256, 256, 64 * steps))
    launch(program("bf16"), "bf16", (256, 256, 64 * steps - 24))


def test_a_last_step_that_is_not_whole_leaves_the_others_to_the_block():
    """Instructions of a step in the block against those of one by itself, whose loads cost vector work."""
    seven, ragged, eight = (
        launch(program("bf16"), "bf16", (256, 256, 64 * steps - short)).by_class()["vector"]
        for steps, short in ((7, 0), (8, 24), (8, 0))
    )
    assert seven == eight < ragged < 2 * eight


def test_rows_so_far_apart_that_the_running_offset_leaves_the_buffer():
    """256 rows of 8 MB: the range of a buffer is 2 GB, of which the last steps' scalar offset is a part as well."""
    pitch, depth = (8 << 20) + 4096, 1024
    memory = mmap.mmap(-1, 256 * pitch)
    a = np.ndarray((256, depth), DTYPES["bf16"], memory, 0, (pitch, 2))
    rng = np.random.default_rng(1)
    a[...] = rng.integers(-3, 4, a.shape)
    b, c = rng.integers(-3, 4, (256, depth)).astype(a.dtype), np.zeros((256, 256), np.float32)
    report = program("bf16").simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    near = launch(program("bf16"), "bf16", (256, 256, depth))
    assert report.by_class()["vector"] > 2 * near.by_class()["vector"]  # one by one


def test_edges_of_the_result():
    launch(program("bf16"), "bf16", (300, 130, 256))


@pytest.mark.parametrize("dtype", DEPTH)
def test_any_interleaving_of_waves(dtype):
    """Strict simulation, in which direct loads land as late as their waits allow."""
    for seed in range(1, 6):
        launch(program(dtype), dtype, (256, 256, 5 * DEPTH[dtype]), seed=seed)


@pytest.mark.parametrize(("dtype", "other"), [("fp8e5m2", "fp8e4m3")])
def test_formats_that_differ(dtype, other):
    """Each operand's format is told to the instruction."""
    built = BACKEND.compile(
        captured(dtype, other=other, bm=256, bn=256, bk=128), "amd:gfx950", {"schedule": "interleave"}
    )
    launch(built, dtype, (256, 256, 640), other=other)


SMALLER = [(128, 128), *(pytest.param(tile, marks=pytest.mark.sweep) for tile in ((128, 256), (256, 128)))]


@pytest.mark.parametrize("tile", SMALLER)
def test_quadrants_with_few_products_for_their_loads(tile):
    """Four or eight products of fp8 for two or four loads, and M0 where each load needs it."""
    built = BACKEND.compile(
        captured("fp8e4m3", bm=tile[0], bn=tile[1], bk=128), "amd:gfx950", {"schedule": "interleave"}
    )
    for seed, depth in enumerate((256, 5 * 128, 3 * 128 + 48)):
        launch(built, "fp8e4m3", (*tile, depth), seed=seed)


COLUMNS = [
    ("bf16", (256, 256, 64), (False, False), True),
    ("bf16", (128, 128, 64), (True, False), False),
    ("bf16", (256, 256, 64), (True, True), False),
    ("bf16", (128, 128, 64), (True, True), False),
    ("fp8e4m3", (256, 256, 128), (False, False), False),
]


@pytest.mark.parametrize(
    ("dtype", "tile", "transposed"),
    [pytest.param(*case, marks=() if default else pytest.mark.sweep) for *case, default in COLUMNS],
)
def test_operands_whose_depth_runs_across_rows(dtype, tile, transposed):
    """Transposing reads of tiles that are loaded whole; products wait for nothing but the three waits of a step."""
    sizes = dict(zip(("bm", "bn", "bk"), tile, strict=True), transpose_a=transposed[0], transpose_b=transposed[1])
    built = BACKEND.compile(captured(dtype, **sizes), "amd:gfx950", {"schedule": "interleave"})
    mix = built.resources["hot_loop"]["each_iteration"]
    steps = mix["barriers"] / 2
    assert (mix["waits"] / steps, "valu" in mix, "accvgpr_moves" in mix) == (3, False, False)
    for seed, depth in enumerate((5 * tile[2], 3 * tile[2] + 16)):
        launch(built, dtype, (tile[0] + 16, tile[1], depth), transposed=transposed, seed=seed)


def test_other_tiles():
    """Three slots of 128 x 256; more would not be within reach of one address."""
    built = BACKEND.compile(captured("f16", bm=128, bk=64), "amd:gfx950", {"schedule": "interleave"})
    for steps in (2, 3, 4, 5, 7):
        launch(built, "f16", (128, 256, 64 * steps), seed=steps)


def test_no_bank_conflicts():
    report = launch(program("bf16"), "bf16", (256, 256, 512))
    assert report.bank_conflicts == 0


def test_registers_are_those_that_explain_names():
    built = program("bf16")
    assert "c00 a0-a63" in built.explain()
    registers = {match[1] for match in re.finditer(r"ds_read_b128 v\[(\d+):", built.asm)}
    assert registers == {str(n) for n in range(128, 256, 4)}


def test_tiles_pinned_by_hand():
    built = program("bf16", "c00=a192-a255,a0=v64-v79+v96-v111")
    assert "c00 a192-a255" in built.explain()
    launch(built, "bf16", (256, 256, 192))


@pytest.mark.parametrize(
    ("options", "sizes", "words"),
    [
        ({"waves": 8}, {}, "it needs 4 waves, there are 8"),
        ({}, {"transpose_a": True, "transpose_b": False}, "tiles that are loaded whole would be in flight for 1024"),
        ({}, {"bn": 128, "transpose_b": False}, "tiles that are loaded whole would be in flight for 768 clocks"),
        ({}, {"bm": 64, "bn": 64}, "its quadrants have too few matrix instructions"),
        ({"stages": 1}, {}, "only one step's tiles fit the LDS"),
    ],
)
def test_where_it_does_not_apply(options, sizes, words):
    with pytest.raises(UnsupportedError, match=f"schedule='interleave' does not apply to this loop: {words}") as caught:
        BACKEND.compile(captured("bf16", **sizes), "amd:gfx950", {"schedule": "interleave", **options})
    assert caught.value.hint
    assert caught.value.loc


def test_other_loops_and_targets():
    with pytest.raises(UnsupportedError, match="gfx942 cannot load 16 bytes a lane straight to LDS"):
        BACKEND.compile(captured("bf16", bk=32), "amd:gfx942", {"schedule": "interleave"})
    q = np.zeros((1, 1, 256, 64), DTYPES["bf16"])
    built = attention.compile(q, q, q, q, target="reference").ir
    with pytest.raises(UnsupportedError, match="its body is more than one product of two loaded tiles"):
        BACKEND.compile(built, "amd:gfx950", {"schedule": "interleave"})


@pytest.mark.parametrize(
    ("pin", "words"),
    [
        ("x=a0-a63", "pin= names 'x', which nothing has"),
        ("c00=a0", "pin= has 'c00=a0', which is no range of registers"),
    ],
)
def test_pins_of_nothing(pin, words):
    with pytest.raises(TileValueError, match=words):
        BACKEND.compile(captured("bf16"), "amd:gfx950", {"schedule": "interleave", "pin": pin})


def test_pins_need_the_schedule():
    with pytest.raises(UnsupportedError, match="schedule 'multistage' leaves registers to the compiler"):
        BACKEND.compile(captured("bf16"), "amd:gfx950", {"pin": "c00=a0-a63"})
