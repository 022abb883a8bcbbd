"""Tiles that do not fit together."""

from __future__ import annotations

import warpwave as ww
from warpwave import bf16, f16, f32, fp8e4m3, gl, i8, i32, rt, rv, st

SPEC = ww.spec("f32[4,4]")


def capture(function, spec=SPEC):
    ww.kernel(function).compile(spec, target="reference")


def dtypes_that_do_not_mix():
    def k(a: gl):
        ww.zeros(rt[bf16, 4, 4]) + ww.zeros(rt[f16, 4, 4])  # here

    capture(k)


def arithmetic_on_fp8():
    def k(a: gl):
        ww.zeros(rt[fp8e4m3, 4, 4]) * 2  # here

    capture(k)


def infinity_that_the_format_lacks():
    def k(a: gl):
        ww.load(a, (0, 0), rt[fp8e4m3, 4, 4], fill=float("-inf"))  # here

    capture(k, ww.spec("fp8e4m3[4,4]"))


def number_that_does_not_fit():
    def k(a: gl):
        ww.full(rt[i8, 4, 4], 200)  # here

    capture(k)


def shapes_that_do_not_broadcast():
    def k(a: gl):
        ww.zeros(rt[f32, 4, 4]) + ww.zeros(rt[f32, 8, 4])  # here

    capture(k)


def vector_without_direction():
    def k(a: gl):
        ww.zeros(rt[f32, 4, 4]) + ww.zeros(rv[f32, 4])  # here

    capture(k)


def product_of_wrong_shapes():
    def k(a: gl):
        ww.mma_AB(ww.zeros(rt[f32, 16, 16]), ww.zeros(rt[bf16, 16, 32]), ww.zeros(rt[bf16, 16, 32]))  # here

    capture(k)


def product_of_wrong_dtypes():
    def k(a: gl):
        ww.mma_AB(ww.zeros(rt[f32, 16, 16]), ww.zeros(rt[bf16, 16, 16]), ww.zeros(rt[f16, 16, 16]))  # here

    capture(k)


def accumulator_too_narrow():
    def k(a: gl):
        ww.mma_AB(ww.zeros(rt[bf16, 16, 16]), ww.zeros(rt[bf16, 16, 16]), ww.zeros(rt[bf16, 16, 16]))  # here

    capture(k)


def empty_extent():
    def k(a: gl):
        ww.zeros(rt[f32, 0, 4])  # here

    capture(k)


def extents_of_the_wrong_number():
    def k(a: gl):
        ww.zeros(rt[f32, 4])  # here

    capture(k)


def reduction_along_no_axis():
    def k(a: gl):
        ww.sum(ww.zeros(rt[f32, 4, 4]), axis=2)  # here

    capture(k)


def slice_outside():
    def k(a: gl):
        ww.zeros(rt[f32, 4, 4])[2:6, :]  # here

    capture(k)


def distribution_of_the_wrong_rank():
    def k(a: gl):
        ww.zeros(rt[f32, 64, 64], over=(2,))  # here

    capture(k)


def unknown_rounding():
    def k(a: gl):
        ww.cast(ww.zeros(rt[f32, 4, 4]), bf16, rounding="up")  # here

    capture(k)


def wrapping_a_float():
    def k(a: gl):
        ww.cast(ww.zeros(rt[f32, 4, 4]), i32, saturate=False)  # here

    capture(k)


def tensor_used_as_a_tile():
    def k(a: gl):
        ww.exp(a)  # here

    capture(k)


def too_few_coordinates():
    def k(a: gl):
        ww.load(a, (0,), rt[f32, 4, 4])  # here

    capture(k)


def tile_of_a_vector_tensor():
    def k(a: gl):
        ww.load(a, (0,), rt[f32, 4, 4])  # here

    capture(k, ww.spec("f32[16]"))


def conversion_into_shared_memory():
    def k(a: gl):
        ww.load(a, (0, 0), st[bf16, 4, 4])  # here

    capture(k)


def fractional_coordinate():
    def k(a: gl):
        ww.load(a, (0, 0.5), rt[f32, 4, 4])  # here

    capture(k)


def atomic_add_of_bytes():
    def k(a: gl):
        ww.atomic_add(a, (0, 0), ww.zeros(rt[i8, 4, 4]))  # here

    capture(k, ww.spec("i8[4,4]"))


def grid_of_five_dimensions():
    def k(a: gl):
        ww.grid(1, 1, 1, 1, 1)  # here

    capture(k)


def grid_called_twice():
    def k(a: gl):
        ww.grid(1)
        ww.grid(1)  # here

    capture(k)


def grid_under_a_condition():
    def k(a: gl):
        if a.rows > 2:
            ww.grid(1)  # here

    capture(k)


def grid_after_a_load():
    def k(a: gl):
        x = ww.load(a, (0, 0))
        i = ww.grid(1)  # here
        ww.store(a, (i, 0), x)

    capture(k)
