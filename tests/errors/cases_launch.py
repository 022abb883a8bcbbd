"""Mistakes in calling a kernel. Each function makes the mistake it is named after; `# here` marks where it shows."""

from __future__ import annotations

import numpy as np

import warpwave as ww
from warpwave import bf16, f32, gl, i32, rt
from warpwave.tiles.runtime.arrays import Array


def zeros(dtype=np.float32, shape=(4, 4)):
    return np.zeros(shape, dtype)


def wrong_dtype():
    @ww.kernel
    def k(a: gl[bf16]):  # here
        pass

    k(zeros())


def dtype_outside_the_language():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(zeros(np.float64))


def foreign_byte_order():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(zeros(">f4"))


def too_many_dimensions():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(zeros(shape=(1,) * 5))


def not_an_array():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k([1.0, 2.0])


def text_for_an_array():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k("f32[4,4]")


def misspelt_spec():
    ww.spec("bf17[4,4]")


def spec_where_data_is_needed():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(ww.spec("f32[4,4]"), target="reference")


def missing_argument():
    @ww.kernel
    def k(a: gl, c: gl):  # here
        pass

    k(zeros())


def too_many_arguments():
    @ww.kernel
    def k(a: gl, *, B=4):  # here
        pass

    k(zeros(), 4)


def unknown_constant():
    @ww.kernel
    def k(a: gl, *, BM=4):  # here
        pass

    k(zeros(), BN=4)


def missing_constant():
    @ww.kernel
    def k(a: gl, *, BM):  # here
        pass

    k(zeros())


def tensor_must_be_there():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(None)


def scalar_of_another_kind():
    @ww.kernel
    def k(a: gl, n: i32):  # here
        pass

    k(zeros(), 2.5)


def scalar_too_large():
    @ww.kernel
    def k(a: gl, n: i32):  # here
        pass

    k(zeros(), 2**31)


def extent_too_large():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k.compile(ww.spec("i8[4294967296,2]"), target="reference")


def strides_between_elements():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(np.zeros(4, np.dtype([("x", np.int8), ("y", np.float32)]))["y"])


def output_is_read_only():
    @ww.kernel
    def k(c: gl):  # here
        ww.store(c, (0, 0), ww.zeros(rt[f32, 4, 4]))

    c = zeros()
    c.flags.writeable = False
    k(c)


def output_overlaps_itself():
    @ww.kernel
    def k(c: gl):  # here
        ww.store(c, (0, 0), ww.zeros(rt[f32, 4, 4]))

    k(np.lib.stride_tricks.as_strided(zeros(), (4, 4), (0, 4)))


def arrays_on_different_devices():
    @ww.kernel
    def k(a: gl, c: gl):  # here
        pass

    k(zeros(), Array(f32, (4, 4), (4, 1), "dlpack99:1", 64, None))


def device_without_backend():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(Array(f32, (4, 4), (4, 1), "dlpack99:1", 64, None))


def tensor_that_needs_a_gradient():
    class Tensor:
        requires_grad = True

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    @ww.kernel
    def k(a: gl):  # here
        pass

    k(Tensor())


def no_target():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k.compile(ww.spec("f32[4,4]"))


def unknown_target():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(zeros(), target="referense")


def unknown_option():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k(zeros(), target="reference", options={"schedule": "fast"})


def run_with_other_types():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k.compile(zeros(), target="reference").run(zeros(np.float16))


def run_with_a_constant():
    @ww.kernel
    def k(a: gl, *, B=4):  # here
        pass

    k.compile(zeros(), target="reference").run(zeros(), B=8)


def condition_of_the_launch():
    @ww.kernel
    def k(a: gl, c: gl):
        ww.check(a.rows == c.rows, "a and c differ in rows")  # here
        m = ww.grid(c.rows)
        ww.store(c, (m, 0), ww.load(a, (m, 0), rt[f32, 4, 4]))

    k(zeros(), zeros(shape=(0, 4)))


def check_in_a_kernel():
    @ww.kernel
    def k(c: gl):
        m = ww.grid(c.rows)
        ww.check(m < 2, "row below 2")  # here

    k(zeros())


def unwritten_shared_memory():
    @ww.kernel
    def k(c: gl):
        buffer = ww.shared(ww.st[f32, 4, 4])
        ww.store(c, (0, 0), ww.load(buffer))  # here

    k(zeros())


def no_sample_inputs():
    @ww.kernel
    def k(a: gl):  # here
        pass

    k.sample_inputs()
