"""Explicit shared buffers, barriers, atomic additions, checks, and errors at the user's line."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

import warpwave as ww
from warpwave import rt, st
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.tests.harness import BOTH, agree, launch, program
from warpwave.backends.amd.tests.test_ops_tiles import blank, numbers
from warpwave.tiles.dtypes import bf16, f16, f32, i32
from warpwave.tiles.errors import CheckFailed, ResourceError, TileError, UnsupportedError
from warpwave.tiles.reference import execute
from warpwave.tiles.tests.reference_harness import captured
from warpwave.tiles.types import TileType


def exchanged(x, y, n):
    """Rows written to a buffer, read back elsewhere, overwritten in a loop."""
    buffer = ww.shared(TileType(f32, (16, 40), "shared"))
    ww.store(buffer, (0, 0), ww.load(x, (0, 0), TileType(f32, (16, 40))))
    total = ww.zeros(TileType(f32, (8, 40)))
    for i in ww.range(n):
        upper = ww.load(buffer, (8, 0), TileType(f32, (8, 40)), unit="element")
        lower = ww.load(buffer, (0, 0), TileType(f32, (8, 40)), unit="element")
        ww.store(buffer, (0, 0), upper + 1.0, unit="element")
        ww.store(buffer, (8, 0), lower * 2.0, unit="element")
        part = ww.load(buffer, (i, 3), TileType(f32, (5, 7)), unit="element")
        ww.store(buffer, (10, 30), part, unit="element")
        total = total + upper
    ww.store(y, (0, 0), ww.load(buffer))
    ww.store(y, (2, 0), total)


@pytest.mark.parametrize("waves", [1, 4])
def test_shared_buffers(waves):
    arguments = {"x": numbers(f32, 16, 40), "y": blank(f32, 24, 40), "n": 3}
    agree(captured(exchanged, arguments), arguments, waves=waves)


def through_global(x, y):
    """What one half of a block writes, all of it reads after a barrier."""
    ww.store(y, (0, 0), ww.load(x, (0, 0), TileType(f32, (16, 64))))
    ww.barrier()
    ww.store(y, (1, 0), ww.load(y, (0, 0), TileType(f32, (16, 64))).T[16:32, :].T[:, 0:16], axes=(0, 1))


def test_global_writes_are_visible_after_a_barrier():
    arguments = {"x": numbers(f32, 16, 64), "y": blank(f32, 32, 64)}
    agree(captured(through_global, arguments), arguments, waves=4)


def summed(x, out, total, *, W):
    i = ww.grid(x.shape[0])
    row = ww.load(x, (i, 0), TileType(x.dtype, (W,)), axes=(1,))
    ww.atomic_add(out, (0, 1), row, axes=(1,), unit="element")
    ww.atomic_add(total, (0,), ww.sum(row, axis=0), unit="element")


@pytest.mark.parametrize("dtype", [f32, i32, bf16, f16], ids=str)
def test_atomic_additions(dtype):
    """From several blocks, at odd elements of 16 bits, beyond the edge."""
    x = np.random.default_rng(0).integers(-8, 8, (5, 37)).astype(dtype.numpy)
    arguments = {
        "x": x,
        "out": numbers(dtype, 1, 30) if dtype == f32 else np.ones((1, 30), dtype.numpy),
        "total": blank(dtype, 1),
    }
    kernel = captured(summed, arguments, W=37)
    agree(kernel, arguments)


def refusing(x, y, *, limit):
    i = ww.grid(x.shape[0])
    ww.check(x.shape[1] == 8, "eight columns")
    row = ww.load(x, (i, 0), TileType(f32, (8,)), axes=(1,))
    ww.check(row < limit, "a number is too large")
    ww.check(i < 1000)
    ww.store(y, (i, 0), row, axes=(1,))


@pytest.mark.parametrize("target", BOTH)
def test_a_failing_check_names_the_line(target):
    x = np.zeros((3, 8), np.float32)
    arguments = {"x": x, "y": np.zeros_like(x)}
    built = program(captured(refusing, arguments, limit=5.0), target)
    launch(built, arguments)
    x[2, 3] = 7
    with pytest.raises(CheckFailed, match="a number is too large") as error:
        launch(built, arguments)
    assert error.value.loc.line == refusing.__code__.co_firstlineno + 4
    with pytest.raises(CheckFailed, match="eight columns"):
        launch(built, {"x": np.zeros((3, 9), np.float32), "y": np.zeros((3, 9), np.float32)})


def greedy(x, y):
    first = ww.load(x, (0, 0), TileType(f32, (256, 128), "shared"))
    second = ww.load(x, (0, 1), TileType(f32, (128, 256), "shared"))
    ww.store(y, (0, 0), first)
    ww.store(y, (0, 1), second)


@pytest.mark.parametrize("target", BOTH)
def test_too_much_shared_memory_is_an_error_that_names_the_tiles(target):
    arguments = {"x": numbers(f32, 256, 384), "y": blank(f32, 256, 384)}
    with pytest.raises(ResourceError, match=f"has {TARGETS[target].lds_bytes}") as error:
        program(captured(greedy, arguments), target)
    assert re.search(r"first +st<f32, 256x128> +131072", str(error.value))
    assert error.value.loc is not None


def test_an_unknown_option_is_an_error():
    arguments = {"x": numbers(f32, 8, 8), "y": blank(f32, 8, 8)}
    with pytest.raises(UnsupportedError, match="unknown option 'wave'"):
        program(captured(refusing, arguments, limit=1.0), "gfx942", wave=3)


def carrying(x, y, n):
    t = ww.load(x, (0, 0), TileType(f32, (8, 8), "shared"))
    for _ in ww.range(n):
        t = ww.load(x, (0, 0), TileType(f32, (8, 8), "shared"))
    ww.store(y, (0, 0), t)


def test_carrying_a_shared_tile_is_an_error_at_the_loop():
    arguments = {"x": numbers(f32, 8, 8), "y": blank(f32, 8, 8), "n": 2}
    with pytest.raises(TileError, match="carries the shared tile") as caught:
        agree(captured(carrying, arguments), arguments)
    assert caught.value.loc.line == carrying.__code__.co_firstlineno + 2


def talking(x, n):
    i, j = ww.grid(2, x.shape[0])
    row = ww.load(x, (j, 0), TileType(x.dtype, (6,)), axes=(1,))
    for k in ww.range(n):
        ww.print("row", k, row, row > 0)
    if i == 1:
        ww.print("tile", ww.load(x, (0, 0), TileType(x.dtype, (3, 2))))


@pytest.mark.parametrize("dtype", [f32, bf16, i32], ids=str)
def test_print_says_what_the_reference_says(dtype, capsys):
    arguments = {"x": numbers(dtype, 3, 6), "n": 2}
    kernel = captured(talking, arguments)
    execute(kernel, arguments)
    expected = capsys.readouterr().out
    for target in BOTH:
        launch(program(kernel, target, waves=2), arguments)
        assert capsys.readouterr().out == expected


def test_more_tensors_than_a_word_has_bits():
    names = [f"x{i}" for i in range(40)]
    lines = [f"def many({', '.join(names)}):\n"]
    lines += [f"    ww.store({n}, (0,), ww.load({n}, (0,)) + {i}.0)\n" for i, n in enumerate(names)]
    linecache.cache["many.py"] = (sum(map(len, lines)), None, lines, "many.py")
    scope = {"ww": ww}
    exec(compile("".join(lines), "many.py", "exec"), scope)
    arguments = {n: numbers(f32, 4, seed=i) for i, n in enumerate(names)}
    agree(captured(scope["many"], arguments), arguments, ["gfx950"])


def windows(x, y, o, *, row, col, unit):
    buffer = ww.shared(st[x.dtype, 64, 72])
    ww.store(buffer, None, ww.load(x, (0, 0), rt[x.dtype, 64, 72]))
    ww.store(buffer, (row, col), ww.load(y, (0, 0), rt[x.dtype, 16, 24]), unit=unit)
    ww.store(o, (0, 0), ww.load(buffer, (row, col), rt[x.dtype, 16, 24], unit=unit))
    ww.store(o, (1, 0), ww.load(buffer, (48, 40), rt[x.dtype, 16, 24], unit="element"))


@pytest.mark.parametrize(
    ("row", "col", "unit", "instruction"),
    [(1, 2, "tile", "ds_write_b128"), (3, 16, "element", "ds_write_b128"), (5, 4, "element", "ds_write_b64")],
)
def test_windows_are_written_as_wide_as_their_columns_allow(row, col, unit, instruction):
    arguments = {"x": numbers(bf16, 64, 72), "y": numbers(bf16, 16, 24, seed=2), "o": blank(bf16, 32, 24)}
    kernel = captured(windows, arguments, row=row, col=col, unit=unit)
    agree(kernel, arguments)
    assert instruction in program(kernel, "gfx950").asm


def test_windows_at_unknown_columns_are_written_by_elements():
    arguments = {"x": numbers(bf16, 64, 72), "y": numbers(bf16, 16, 24, seed=2), "o": blank(bf16, 32, 24), "at": 7}

    def kernel(x, y, o, at):
        buffer = ww.shared(st[x.dtype, 64, 72])
        ww.store(buffer, None, ww.load(x, (0, 0), rt[x.dtype, 64, 72]))
        ww.store(buffer, (at, at), ww.load(y, (0, 0), rt[x.dtype, 16, 24]), unit="element")
        ww.store(o, (0, 0), ww.load(buffer, (at, at), rt[x.dtype, 16, 24], unit="element"))
        ww.store(o, (1, 0), ww.load(buffer, (40, 40), rt[x.dtype, 16, 24], unit="element"))

    agree(captured(kernel, arguments), arguments)
