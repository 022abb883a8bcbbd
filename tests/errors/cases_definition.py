"""Mistakes in a kernel's `def` line."""

from __future__ import annotations

import warpwave as ww
from warpwave import bf16, f32, gl, rt


def parameter_without_annotation():
    @ww.kernel
    def k(a, *, B=4):  # here
        pass


def annotation_that_does_not_evaluate():
    @ww.kernel
    def k(a: nothing):  # noqa: F821  # here
        pass


def annotation_of_another_kind():
    @ww.kernel
    def k(a: str):  # here
        pass


def tile_as_a_parameter():
    @ww.kernel
    def k(a: rt[f32, 4, 4]):  # here
        pass


def small_float_as_a_scalar():
    @ww.kernel
    def k(a: bf16):  # here
        pass


def star_parameter():
    @ww.kernel
    def k(*tensors: gl):  # here
        pass


def reserved_name():
    @ww.kernel
    def k(target: gl):  # here
        pass


def default_of_a_tensor():
    @ww.kernel
    def k(a: gl = 3):  # here
        pass


def not_a_function():
    ww.kernel(3)


def nothing_to_tune():
    ww.autotune([])


def tuning_what_is_no_kernel():
    ww.autotune([ww.Config(BM=16)])(nothing_to_tune)


def tuning_a_constant_that_is_not_there():
    @ww.autotune([ww.Config(BN=16)])
    @ww.kernel
    def k(a: gl, *, BM=16):  # here
        pass


def source_not_on_file():
    names = {"ww": ww, "gl": gl}
    exec("def k(a: gl):\n    pass", names)
    ww.kernel(names["k"]).compile(ww.spec("f32[4]"), target="reference")
