"""The kernels of the probes: one op on a vector, or on the rows of a matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import warpwave as ww
from warpwave.tiles.dtypes import DType


@ww.kernel
def dot(a: ww.gl, b: ww.gl, c: ww.gl, out: ww.gl, *, N=64, K=32, precision="ieee"):
    """out[i] = c[i] + sum over k of a[i, k] * b[i, k], as the diagonal of one matrix product.

    64 rows, so that targets with an instruction for whole warpgroups use it.
    """
    left = ww.load(a, (0, 0), ww.rt[a.dtype, N, K])
    right = ww.load(b, (0, 0), ww.rt[b.dtype, N, K])
    start = ww.load(c, (0,), ww.rv[ww.f32, N])
    acc = ww.zeros(ww.rt[ww.f32, N, N]) + start[:, None]
    product = ww.mma_ABt(acc, left, right, precision=precision)
    rows, cols = ww.iota(ww.rt[ww.i32, N, N], 0), ww.iota(ww.rt[ww.i32, N, N], 1)
    # every other element is -inf, so that the maximum of a row is its diagonal, NaN included
    diagonal = ww.where(rows == cols, product, ww.full(ww.rt[ww.f32, N, N], float("-inf")))
    ww.store(out, (0,), ww.max(diagonal, axis=1))


@ww.kernel
def unary(x: ww.gl, out: ww.gl, *, op, N=64):
    """out = op(x)."""
    ww.store(out, (0,), op(ww.load(x, (0,), ww.rv[x.dtype, N])))


@ww.kernel
def binary(x: ww.gl, y: ww.gl, out: ww.gl, *, op, N=64):
    """out = op(x, y)."""
    ww.store(out, (0,), op(ww.load(x, (0,), ww.rv[x.dtype, N]), ww.load(y, (0,), ww.rv[y.dtype, N])))


@ww.kernel
def atomic_add(x: ww.gl, out: ww.gl, *, N=64):
    """out += x, twice."""
    values = ww.load(x, (0,), ww.rv[x.dtype, N])
    ww.atomic_add(out, (0,), values)
    ww.atomic_add(out, (0,), values)


def div(x: Any, y: Any) -> Any:
    """The quotient."""
    return x / y


def floordiv(x: Any, y: Any) -> Any:
    """The quotient of integers, rounded down."""
    return x // y


def scale_and_shift(x: Any, y: Any) -> Any:
    """0 for x = -0.25, y = 0.75 unless a product and a sum are fused: then below 0, and its root NaN."""
    return ww.sqrt((x / y) * y + 0.25)


@functools.cache
def cast_to(dtype: DType, saturate: bool | None = None) -> Callable[[Any], Any]:
    """A cast in the default rounding."""

    def cast(x: Any) -> Any:
        return ww.cast(x, dtype) if saturate is None else ww.cast(x, dtype, saturate=saturate)

    return cast
