"""Inputs in awkward storage, and comparison within a stated error."""

from __future__ import annotations

import numpy as np

import warpwave as ww
from warpwave.kernels.tests.plain import wide
from warpwave.tiles.dtypes import BY_NUMPY
from warpwave.tiles.reference.running_error import Approx


def normal(rng, dtype, *shape, scale=1.0):
    if dtype.is_int:
        return rng.integers(-128, 128, shape).astype(dtype.numpy)
    return (scale * rng.standard_normal(shape)).astype(dtype.numpy)


def blank(dtype, *shape):
    """Memory for an output, filled with what must not survive."""
    return np.full(shape, -77 if dtype.is_int else np.nan, np.float64).astype(dtype.numpy)


def padded(x, pad=3):
    """The same values as a view into a larger array whose other elements are NaN (or -77)."""
    store = np.full([n + 2 * pad for n in x.shape], -77 if x.dtype.kind == "i" else np.nan).astype(x.dtype)
    view = store[tuple(slice(pad, pad + n) for n in x.shape)]
    view[...] = x
    return view


def reordered(x):
    """The same values with the dimensions stored in reverse order."""
    return np.ascontiguousarray(x.T).T


def strided(x):
    """The same values as every second element of a NaN-filled array."""
    store = np.full([2 * n for n in x.shape], -77 if x.dtype.kind == "i" else np.nan).astype(x.dtype)
    view = store[tuple(slice(None, None, 2) for _ in x.shape)]
    view[...] = x
    return view


VIEWS = {"padded": padded, "reordered": reordered, "strided": strided}


def bits(x):
    """Contents as bytes, for exact comparison."""
    return np.ascontiguousarray(x).tobytes()


def assert_close(got, exact, allowed: Approx):
    """`got` is what the formula may give, rounded to its dtype; NaN and infinities are in the same places."""
    exact, value = np.broadcast_to(wide(exact), got.shape), wide(got)
    regular = np.isfinite(exact)
    np.testing.assert_array_equal(value[~regular], exact[~regular])
    error = np.broadcast_to(allowed.rounded(BY_NUMPY[got.dtype]).error, got.shape)
    with np.errstate(invalid="ignore"):
        excess = np.where(regular, np.abs(value - exact) - error, 0)
    assert not np.isnan(excess).any(), f"NaN at {np.argwhere(np.isnan(excess))[:3].tolist()}"
    worst = np.unravel_index(excess.argmax(), got.shape) if got.size else None
    assert worst is None or excess[worst] <= 0, f"at {worst}: got {value[worst]}, exact {exact[worst]}"


def launch(kernel, arguments, **constants):
    kernel(**arguments, target="reference", **constants)


FLOATS = (ww.f32, ww.f16, ww.bf16)
