from __future__ import annotations

import warpwave as ww
from warpwave import f32, gl, rt
from warpwave.tiles.capture import capture
from warpwave.tiles.ir import walk
from warpwave.tiles.types import TensorType


def twice(x: gl[f32], y: gl[f32]):
    a = ww.load(x, (0, 0), rt[f32, 16, 16])
    ww.store(y, (0, 0), (a + 1.0) * (a + 1.0))


def around_a_loop(x: gl[f32], y: gl[f32]):
    total = ww.zeros(rt[f32, 16, 16])
    for k in ww.range(x.cols):
        total = total + ww.load(x, (0, k), rt[f32, 16, 16])
    ww.store(y, (0, 0), ww.where(total > 5.0, 0.0, total))


def names(function):
    tensor = TensorType(f32, 2)
    captured = capture(function, {"x": tensor, "y": tensor}, {})
    return captured.kernel, [op.name for op in walk(captured.kernel.body)]


def test_equal_ops_in_one_block_become_one():
    assert names(twice)[1].count("add") == 1


def test_a_tile_of_zeros_is_made_again_after_a_loop_rather_than_held_through_it():
    kernel, _ = names(around_a_loop)
    loop = next(op for op in kernel.body.ops if op.name == "for")
    select = next(op for op in kernel.body.ops if op.name == "select")
    assert select.operands[1] is not loop.operands[3]
