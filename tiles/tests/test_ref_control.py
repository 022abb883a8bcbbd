"""Control flow, shared buffers, debugging aids, the grid and errors of the interpreter."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import warpwave as ww
from warpwave.tiles.dtypes import bf16, f32, i32
from warpwave.tiles.errors import CheckFailed, InternalError, TileValueError
from warpwave.tiles.ir import Block, Kernel, Op, Value
from warpwave.tiles.reference import BACKEND, execute
from warpwave.tiles.runtime.backend import Backend, Program
from warpwave.tiles.tests.reference_harness import captured, run
from warpwave.tiles.types import TileType


def collatz(n, out):
    ww.grid(1)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    ww.store(out, (0,), steps)


def test_while_and_if():
    out = np.zeros(1, np.int32)
    for n, steps in ((1, 0), (6, 8), (27, 111)):
        run(collatz, {"n": n, "out": out})
        assert out[0] == steps


def fibonacci(n, out):
    ww.grid(1)
    a, b = 0, 1
    for i in range(n):
        ww.store(out, (i,), a)
        a, b = b, a + b


def test_loop_carries_are_swapped_as_in_python():
    out = np.zeros(10, np.int32)
    run(fibonacci, {"n": 10, "out": out})
    np.testing.assert_array_equal(out, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])


def triangle(out, start, stop):
    ww.grid(1)
    total, others = ww.zeros(ww.rv[i32, 4]), 0
    for i in ww.range(start, stop, -2):
        if i % 3 == 0:
            total = total + i
        else:
            others += 1
    ww.store(out, (0,), total - others)


@pytest.mark.parametrize(("start", "stop"), [(10, -3), (0, 0), (5, 9), (9, -9)])
def test_descending_loops(start, stop):
    out = np.zeros(4, np.int32)
    run(triangle, {"out": out, "start": start, "stop": stop})
    assert out.tolist() == [sum(i if i % 3 == 0 else -1 for i in range(start, stop, -2))] * 4


def mark(out):
    a, b, c, d = ww.grid(out.batch, out.depth, out.rows, out.cols)
    ww.store(out, (a, b, c, d), a * 1000 + b * 100 + c * 10 + d)


def test_grid_of_four_dimensions_in_any_order():
    shape = (2, 3, 4, 5)
    expected = np.add.reduce([i * s for i, s in zip(np.indices(shape), (1000, 100, 10, 1), strict=True)])
    shuffled = np.random.default_rng(0).permutation
    for order in (None, reversed, shuffled):
        out = np.full(shape, -1, np.int32)
        execute(captured(mark, {"out": out}), {"out": out}, block_order=order)
        np.testing.assert_array_equal(out, expected)


def test_a_dimension_of_zero_launches_nothing():
    out = np.zeros((2, 0, 4, 5), np.int32)
    run(mark, {"out": out})


def backwards(out, n):
    ww.grid(n)
    ww.store(out, (0,), 1)


def test_a_negative_grid_is_an_error():
    with pytest.raises(TileValueError, match="a grid of -1 blocks") as info:
        run(backwards, {"out": np.zeros(1, np.int32), "n": -1})
    assert info.value.loc.line == inspect.getsourcelines(backwards)[1] + 1


# -- shared buffers -----------------------------------------------------------------------------------


def through_shared(x, out, *, B=4):
    m = ww.grid(ww.cdiv(x.rows, B))
    buffer = ww.shared(ww.st[x.dtype, B, 2 * B])
    left, right = ww.load(x, (m, 0), ww.rt[x.dtype, B, B]), ww.load(x, (m, 1), ww.rt[x.dtype, B, B])
    ww.store(buffer, (0, 1), left)
    ww.store(buffer, (0, 0), right)
    ww.barrier()
    ww.store(out, (m, 0), ww.load(buffer))


def test_windows_of_a_shared_buffer():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    out = np.zeros_like(x)
    run(through_shared, {"x": x, "out": out})
    np.testing.assert_array_equal(out, np.concatenate([x[:, 4:], x[:, :4]], axis=1))


def reads_too_early(out, n):
    m = ww.grid(n)
    buffer = ww.shared(ww.sv[f32, 8])
    if m == 0:
        ww.store(buffer, (0,), ww.zeros(ww.rv[f32, 8]))
    ww.store(out, (0,), ww.load(buffer))


def test_uninitialised_shared_memory_is_found_in_each_block():
    out = np.zeros(8, np.float32)
    run(reads_too_early, {"out": out, "n": 1})
    with pytest.raises(TileValueError, match="never written") as info:
        run(reads_too_early, {"out": out, "n": 2})
    assert info.value.loc.line == inspect.getsourcelines(reads_too_early)[1] + 5


def moving_window(out, i):
    ww.grid(1)
    buffer = ww.shared(ww.sv[i32, 8])
    ww.store(buffer, (0,), ww.iota(ww.rv[i32, 8]))
    ww.store(out, (0,), ww.load(buffer, (i,), ww.rv[i32, 2]))


def test_runtime_windows_are_checked():
    out = np.zeros(2, np.int32)
    run(moving_window, {"out": out, "i": 3})
    np.testing.assert_array_equal(out, [6, 7])
    for i in (-1, 4):
        with pytest.raises(TileValueError, match="outside a shared tile of extent 8"):
            run(moving_window, {"out": out, "i": i})


# -- debugging ----------------------------------------------------------------------------------------


def talks(x, n):
    _, b = ww.grid(1, n)
    ww.print("value", ww.load(x, (b,)))
    ww.check(ww.load(x, (b,)) < 2, "too large")


def test_print_and_check(capsys):
    x = np.float32([0.5, 1.5, 2.5])
    run(talks, {"x": x, "n": 2})
    assert capsys.readouterr().out.splitlines() == ["block (0, 0) value 0.5", "block (0, 1) value 1.5"]
    with pytest.raises(CheckFailed, match=r"check failed in block \(0, 2\): too large") as info:
        run(talks, {"x": x, "n": 3})
    assert info.value.loc.line == inspect.getsourcelines(talks)[1] + 3
    assert "ww.check(ww.load(x, (b,)) < 2" in str(info.value)


def test_a_defect_inside_an_op_names_the_op():
    broken = Op("iota", [], {}, [Value(TileType(i32, (2,)))], [], None)
    with pytest.raises(InternalError, match="`iota` failed: KeyError: 'shape'"):
        execute(Kernel("k", [], {}, Block([], [broken]), None), {})


# -- backend ------------------------------------------------------------------------------------------


def double(x, out):
    m = ww.grid(ww.cdiv(x.cols, 4))
    ww.store(out, (m,), ww.load(x, (m,), ww.rv[x.dtype, 4]) * 2)


def test_the_backend_meets_its_protocol_and_runs_in_place():
    from warpwave.tiles.runtime.arrays import Array

    assert isinstance(BACKEND, Backend)
    assert BACKEND.target_for("cpu:0") == "reference"
    assert BACKEND.target_for("cuda:0") is None
    assert [t.name for t in BACKEND.targets()] == ["reference"]
    assert all(d.ok for d in BACKEND.diagnose())
    storage = np.zeros((9, 2), bf16.numpy)
    x, out = np.arange(9).astype(bf16.numpy), storage[::-1, 1]
    program = BACKEND.compile(captured(double, {"x": x, "out": out}), "reference", {})
    assert isinstance(program, Program)
    assert "mul" in program.source
    assert not program.asm
    assert not program.resources
    assert "NumPy" in program.explain()
    host = {n: Array(bf16, a.shape, (1,), "cpu:0", 0, a, a) for n, a in (("x", x), ("out", out))}
    program.run(host)
    np.testing.assert_array_equal(storage[:, 1].astype(np.float32), 2 * np.arange(9)[::-1])
    np.testing.assert_array_equal(storage[:, 0].astype(np.float32), 0)
