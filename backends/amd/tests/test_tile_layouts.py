"""`warpwave show --layout` on AMD: lanes, bank maps and conflicts against formulas and against simulated launches."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave import f32, gl, rt, st
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.backend import BACKEND
from warpwave.backends.amd.layouts import tile_layouts
from warpwave.kernels.attention import attention
from warpwave.kernels.gemm import gemm
from warpwave.tiles.cli import main
from warpwave.tiles.drawing.lane_map import holders
from warpwave.tiles.dtypes import bf16, fp8e4m3
from warpwave.tiles.runtime.arrays import borrow
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.drawn import offsets_in, tile_offsets

ROOT = Path(__file__).parents[3]


def layouts_of(kernel, arguments, target, options=None, **constants):
    ir = kernel.compile(*arguments, target="reference", **constants).ir
    return {layout.name: layout for layout in tile_layouts(ir, TARGETS[target], options or {})}


GEMM = (ww.spec("bf16[?,?]"), ww.spec("bf16[?,?]"), ww.spec("f32[?,?]"))


@pytest.mark.parametrize(("schedule", "rows"), [("multistage", 32), ("auto", 16)])
def test_accumulator_of_a_product(schedule, rows):
    """D^T of a 32 x 32 or 16 x 16 instruction: lane = row + rows (column / 4), four columns in a row (CDNA4 ISA, 7.1.4)."""
    sizes, options = {"transpose_b": True, "BM": 256, "BN": 256, "BK": 64}, {"schedule": schedule}
    layout = layouts_of(gemm, GEMM, "gfx950", options, **sizes)["acc"]
    found = holders(layout.lanes, (256, 256))
    row, col = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    assert (found.lane == row % rows + rows * (col // 4 % (64 // rows))).all()
    assert (found.item % 4 == col % 4).all()
    assert (found.copies == 1).all()
    assert len(np.unique(found.wave)) == 8


@pytest.mark.parametrize(("target", "clocks"), [("gfx950", 4), ("gfx942", 8)])
def test_reads_of_a_product_cost_what_the_simulator_counts(target, clocks):
    sizes = {"transpose_b": True, "BM": 64, "BN": 64, "BK": 64}
    drawn = layouts_of(gemm, GEMM, target, **sizes)["a_tile"].placement.accesses[0]
    assert (drawn.instruction, drawn.clocks, drawn.conflicts) == ("ds_read_b128", clocks, 0)
    a, b = (np.ones((64, 256)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    kernel = gemm.compile(a, b, c, target="reference", **sizes).ir
    report = BACKEND.compile(kernel, f"amd:{target}", {}).simulate({"a": borrow(a), "b": borrow(b), "c": borrow(c)})
    reads = [x for x in report.listing_lines if x.text.startswith("ds_read_b128") and x.executed]
    assert {x.lds_cycles / x.executed for x in reads} == {clocks}


@ww.kernel
def through_shared(x: gl[f32], y: gl[f32]):
    ww.grid(1)
    tile = ww.load(x, (0, 0), st[f32, 32, 64])
    ww.store(y, (0, 0), ww.transpose(tile + 1.0))


@pytest.mark.parametrize("target", TARGETS)
def test_moves_cost_what_the_simulator_counts(target):
    specs = (ww.spec("f32[?,?]"), ww.spec("f32[?,?]"))
    layout = layouts_of(through_shared, specs, target)["tile"]
    x, y = np.zeros((32, 64), np.float32), np.zeros((64, 32), np.float32)
    program = through_shared.compile(x, y, target=f"amd:{target}:sim").program
    report = program.simulate({"x": borrow(x), "y": borrow(y)})
    assert {a.what for a in layout.placement.accesses} == {"read into registers", "written from registers"}
    for access in layout.placement.accesses:
        same = [i for i in report.listing_lines if i.text.startswith(access.instruction) and i.executed]
        assert max(i.lds_cycles / i.executed for i in same) == access.clocks


@pytest.mark.parametrize("dtype", [bf16, fp8e4m3, f32])
@pytest.mark.parametrize("panels", [0, 4096])
@pytest.mark.parametrize("block", [None, (4, 8)])
@pytest.mark.parametrize("masks", [(), (0, 16, 32, 0, 64)])
def test_offsets_are_those_of_the_generated_code(dtype, panels, block, masks):
    """The C expression means the same in Python, but for its division."""
    shared = SharedTile(0, 128, masks, dtype, (32, 32), panels=panels, block=block)
    rows, cols = np.meshgrid(np.arange(32), np.arange(32), indexing="ij")
    text = shared.within("row", "col").replace("/", "//")
    assert (offsets_in(shared, rows, cols) == eval(text, {"row": rows, "col": cols})).all()
    assert len(np.unique(tile_offsets(shared))) == 32 * 32


def test_every_tile_of_attention_can_be_listed(capsys):
    arguments = ["show", f"{ROOT}/kernels/attention.py:attention", *["bf16[1,1,64,64]"] * 4, "--target", "amd:gfx950"]
    assert main([*arguments, "--layout"]) == 0
    listed = capsys.readouterr().out
    assert "k_tile: st<bf16, 64x64>, line 56: rows of 128 bytes" in listed
    assert "out: rt<f32, 64x64>" in listed
    assert attention.name == "attention"


def test_pictures_from_the_command_line(tmp_path, capsys):
    shapes = ["bf16[256,256]", "bf16[256,256]", "f32[256,256]"]
    arguments = [
        "show",
        f"{ROOT}/kernels/gemm.py:gemm",
        *shapes,
        "--target",
        "amd:gfx950",
        "--const",
        "transpose_b=True",
    ]
    for name in ("acc", "a_tile"):
        for suffix in ("svg", "png"):
            path = tmp_path / f"{name}.{suffix}"
            assert main([*arguments, "--layout", name, "-o", str(path)]) == 0
            assert path.stat().st_size > 10_000
    assert "no bank conflicts\nwritten to" in capsys.readouterr().out
    assert main([*arguments, "--layout", "a_tle"]) == 2
    assert "did you mean a_tile?" in capsys.readouterr().err
    assert main([*arguments, "--layout", "acc", "-o", str(tmp_path / "x.gif")]) == 2
    assert ".svg or .png" in capsys.readouterr().err


@ww.kernel
def too_large(x: gl[f32], *, B=512):
    ww.grid(1)
    buffer = ww.shared(st[f32, B, B])
    held = ww.load(x, (0, 0), rt[f32, B, B])
    ww.store(buffer, (0, 0), held)
    for _ in range(2):
        held = held + ww.load(buffer, (0, 0), rt[f32, B, B])
    held = ww.cast(held, bf16)
    ww.store(x, (0, 0), ww.cast(held, f32))


def test_kernels_that_do_not_fit_can_be_looked_at(capsys):
    """Nothing is built for a layout. Several tiles of one name are told apart by line."""
    arguments = ["show", f"{__file__}:too_large", "f32[?,?]", "--target", "amd:gfx950", "--layout"]
    assert main(arguments) == 0
    listed = capsys.readouterr().out
    assert "shared_alloc: buf_st<f32, 512x512>" in listed  # capture names no buffers
    assert main([*arguments, "held"]) == 2
    message = capsys.readouterr().err
    first, second = re.findall(r"held: rt<\w+, 512x512>, line (\d+)", message)
    assert first != second
    assert main([*arguments, f"held:{first}"]) == 0
    assert "512 elements a lane, 8 waves of 64" in capsys.readouterr().out


PICTURED = (f"{ROOT}/docs/pictures/product.py:product", "bf16[512,512]", "bf16[512,512]", "f32[512,512]")


@pytest.mark.parametrize("name", ["acc", "at"])
def test_the_pictures_of_the_documentation_are_fresh(name, tmp_path):
    arguments = ["show", *PICTURED, "--target", "amd:gfx950", "--layout", name, "-o"]
    path = tmp_path / "picture.svg"
    assert main([*arguments, str(path)]) == 0
    kept = ROOT / f"docs/pictures/{name}.svg"
    assert path.read_text() == kept.read_text(), f"run: warpwave {' '.join(arguments)} {kept}"


def test_targets_without_layouts_say_so(capsys):
    assert main(["show", f"{ROOT}/kernels/softmax.py:softmax", "f32[8,8]", "f32[8,8]", "--layout"]) == 2
    assert "reference says nothing about layouts" in capsys.readouterr().err
