"""Misuse of the language's ops is refused at the line marked `# here`, with the reason and the way out."""

# ruff: noqa: B007, F841 -- wrong programs are what is tested

from __future__ import annotations

import pytest

import warpwave as ww
from warpwave import bf16, f32, i32, i64, rt, rv
from warpwave.tiles.tests.programs import check_refusal, refusals

CASES, refused = refusals()


@refused("'@' is not|@ is not an op", "ww.mma_AB")
def matmul(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    z = y @ y  # here


@refused("2 \\*\\* a run-time value", "ww.exp2")
def power_of_runtime(n, out):
    k = 2**n  # here


@refused("\\*\\* 3 is not an op", "only \\*\\* 2".replace("\\", ""))
def cube(n, out):
    k = n**3  # here


@refused("read a global tensor|does not read", "ww.load")
def index_a_tensor(n, a, out):
    k = a[n]  # here


@refused("does not write a global tensor", "ww.store")
def assign_to_a_tensor(n, out):
    out[0] = n  # here


@refused("cannot assign to elements", "ww.where")
def assign_to_a_tile(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    y[0, 0] = 1.0  # here


@refused("has no attribute 'foo'", None)
def unknown_attribute(n, a, out):
    k = a.foo  # here


@refused("do not mix", "ww.cast")
def mixed_types(n, out):
    k = ww.cast(n, bf16) + n  # here


@refused("does not fit i8|300 does not fit", None)
def number_out_of_range(n, out):
    k = ww.cast(n, ww.i8) + 300  # here


@refused("do not broadcast", "v\\[:, None\\]".replace("\\", ""))
def vector_meets_tile(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    z = y + ww.zeros(rv[f32, 4])  # here


@refused("division by zero", None)
def divide_by_zero(n, out):
    k = n // 0  # here


@refused("shift", None)
def shift_too_far(n, out):
    k = n << 32  # here


@refused("axis 3", None)
def iota_axis(n, out):
    k = ww.iota(rt[i32, 4, 4], axis=3)  # here


@refused("must be an i32|i64", "ww.cast")
def wide_loop_bound(n, out):
    for i in range(ww.cast(n, i64)):  # here
        pass


@refused("after a load or store", "first")
def grid_size_from_a_load(n, a, out):
    i = ww.grid(ww.load(a, 0))  # here


@refused("more than arguments, tensor extents", "ww.where")
def grid_size_from_a_branch(n, a, out):
    i = ww.grid(n if n > 3 else 5)  # here


@refused("under a run-time condition", "first")
def grid_under_a_condition(n, out):
    if n > 0:
        i = ww.grid(n)  # here


@refused("called a second time", None)
def two_grids(n, out):
    i = ww.grid(n)
    j = ww.grid(n)  # here


@pytest.mark.parametrize(("program", "reason", "hint"), CASES)
def test_refused_with_reason_and_way_out(program, reason, hint):
    check_refusal(program, reason, hint)
