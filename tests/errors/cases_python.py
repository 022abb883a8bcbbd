"""Python that a kernel cannot honour."""

from __future__ import annotations

import math

import numpy as np

import warpwave as ww
from warpwave import bf16, f32, gl, i32, rt, rv

SPEC = ww.spec("f32[4,4]")
OUTSIDE = [1]


def capture(function):
    ww.kernel(function).compile(SPEC, target="reference")


def truth_of_a_tile():
    def k(a: gl):
        tile = ww.load(a, (0, 0), rt[f32, 4, 4])
        if tile > 0:  # here
            ww.store(a, (0, 0), tile)

    capture(k)


def iterating_a_tile():
    def k(a: gl):
        for row in ww.load(a, (0, 0), rt[f32, 4, 4]):  # here
            ww.store(a, (0, 0), row)

    capture(k)


def length_of_a_tile():
    def k(a: gl):
        len(ww.load(a, (0, 0), rt[f32, 4, 4]))  # here

    capture(k)


def assigning_an_element():
    def k(a: gl):
        tile = ww.zeros(rt[f32, 4, 4])
        tile[0, 0] = 1.0  # here
        ww.store(a, (0, 0), tile)

    capture(k)


def indexing_a_tensor():
    def k(a: gl):
        ww.store(a, (0, 0), a[0, 0])  # here

    capture(k)


def numpy_on_a_tile():
    def k(a: gl):
        ww.store(a, (0, 0), math.exp(ww.load(a, (0, 0))))  # here

    capture(k)


def print_of_a_tile():
    def k(a: gl):
        print(a.rows)  # here

    capture(k)


def break_under_a_run_time_condition():
    def k(a: gl):
        for i in range(a.rows):
            if a.cols > i:
                break  # here

    capture(k)


def return_in_a_run_time_loop():
    def helper(a):
        for i in range(a.rows):
            return i  # here
        return 0

    def k(a: gl):
        ww.store(a, (0, 0), ww.full(rt[f32, 4, 4], ww.cast(helper(a), f32)))

    capture(k)


def loop_variable_of_another_type():
    def k(a: gl):
        x = ww.zeros(rt[f32, 4, 4])
        for _ in range(a.rows):
            x = ww.cast(x, bf16)  # here
        ww.store(a, (0, 0), x)

    capture(k)


def branch_that_leaves_a_name_unbound():
    def k(a: gl):
        if a.rows > 2:
            x = 1.0
        ww.store(a, (0, 0), ww.full(rt[f32, 4, 4], x))  # here

    capture(k)


def list_that_grows_in_a_run_time_loop():
    def k(a: gl):
        rows = []
        for i in range(a.rows):
            rows.append(i)  # here

    capture(k)


def changing_what_lives_outside():
    def k(a: gl):
        OUTSIDE.append(2)  # here

    capture(k)


def used_before_assignment():
    def k(a: gl):
        ww.store(a, (0, 0), tile)  # noqa: F821  # here
        tile = ww.zeros(rt[f32, 4, 4])  # noqa: F841

    capture(k)


def name_that_does_not_exist():
    def k(a: gl):
        ww.store(a, (0, 0), missing)  # noqa: F821  # here

    capture(k)


def statement_outside_the_language():
    def k(a: gl):
        with open("x"):  # here
            pass

    capture(k)


def kernel_that_returns():
    def k(a: gl):  # here
        return a.rows

    capture(k)


def kernel_in_a_kernel():
    @ww.kernel
    def inner(a: gl):
        pass

    def k(a: gl):
        inner(a)  # here

    capture(k)


def op_outside_a_kernel():
    ww.zeros(rt[f32, 4, 4])


def python_error():
    def k(a: gl):
        ww.store(a, (0, 0), {}["missing"])  # here

    capture(k)


def endless_unrolling():
    def k(a: gl):
        for _ in range(10**6):  # here
            pass

    capture(k)


def run_time_extent_of_a_tile():
    def k(a: gl):
        ww.store(a, (0, 0), ww.zeros(rt[f32, a.rows, 4]))  # here

    capture(k)


def run_time_slice():
    def k(a: gl):
        tile = ww.zeros(rt[f32, 8, 8])
        ww.store(a, (0, 0), tile[a.rows : a.rows + 4, :])  # here

    capture(k)


def bools_of_a_mask():
    def k(a: gl):
        index = ww.iota(rv[i32, 4])
        if index > 1 and a.rows > 2:  # here
            pass

    capture(k)


def numpy_array_as_a_tile():
    values = np.ones((4, 4), np.float32)

    def k(a: gl):
        ww.store(a, (0, 0), ww.zeros(rt[f32, 4, 4]) + values)  # here

    capture(k)
