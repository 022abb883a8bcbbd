"""Running error analysis against NumPy's own f32, f16 and bf16 arithmetic, and against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from warpwave.tiles.dtypes import bf16, f16, f32
from warpwave.tiles.reference.running_error import Approx, gamma

U = 2.0**-24


def numbers(*shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, shape))).astype(dtype)


def share(got, found):
    """The largest error as a share of what is allowed."""
    return (np.abs(got.astype(np.float64) - found.value) / found.error).max()


@pytest.mark.parametrize("dtype", [f32, f16], ids=str)
@pytest.mark.parametrize("name", ["__add__", "__sub__", "__mul__", "__truediv__"])
def test_one_operation_loses_one_rounding_and_no_less_is_allowed(name, dtype):
    a, b = (numbers(50_000, seed=s, dtype=dtype.numpy) for s in (1, 2))
    b = np.copysign(np.maximum(np.abs(b), dtype.numpy.type(0.0625)), b)
    found = getattr(Approx.of(a, dtype), name)(b)
    assert 0.9 < share(getattr(a, name)(b), found) <= 1


@pytest.mark.parametrize("order", ["as written", "fused"])
def test_a_long_formula_whatever_is_contracted(order):
    x, y, z = (numbers(4000, seed=s) for s in (3, 4, 5))
    found = (Approx.of(x) * y + z) * x - Approx.of(z) / (abs(Approx.of(y)) + 1)
    first = x * y + z if order == "as written" else (x.astype(np.float64) * y + z).astype(np.float32)
    got = first * x - z / (np.abs(y) + np.float32(1))
    assert 0.1 < share(got, found) <= 1


def test_conversions_round_once_subnormals_included():
    x = np.concatenate([numbers(20_000), numbers(20_000) * np.float32(2.0**-24)])
    for dtype in (f16, bf16):
        assert 0.95 < share(x.astype(dtype.numpy), Approx.of(x).rounded(dtype)) <= 1


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "rsqrt", "sqrt"])
def test_functions_of_what_is_known_only_nearly(name):
    """Moved arguments and results moved by what a function may lose stay inside; far beyond they do not."""
    x = np.abs(numbers(5000)).astype(np.float64) + 0.01
    shift = 1e-4 * x
    found = getattr(Approx(x, shift), name)()
    exact = {"rsqrt": lambda v: 1 / np.sqrt(v)}.get(name) or getattr(np, name)
    for side in (-1, 1):
        moved = exact(x + side * shift)
        assert (np.abs(moved * (1 + side * U) - found.value) <= found.error).all()
    assert (np.abs(exact(x + 3 * shift) - found.value) > found.error).mean() > 0.9


def test_sums_by_their_deepest_chain():
    x = numbers(64, 256)
    tree = x.copy()
    while tree.shape[1] > 1:
        tree = tree[:, ::2] + tree[:, 1::2]
    assert share(tree, Approx.of(x).sum(1, 8, keepdims=True)) <= 1
    chain = np.add.accumulate(x, axis=1, dtype=np.float32)
    assert share(chain[:, -1], Approx.of(x).sum(1, 255)) <= 1
    assert share(chain, Approx.of(x).cumsum(1, 255)) <= 1
    one_lost = x[:, :-1].astype(np.float64).sum(1)
    assert (np.abs(one_lost - x.astype(np.float64).sum(1)) > Approx.of(x).sum(1, 8).error).mean() > 0.9


def test_maxima_and_moves_lose_nothing():
    a, b = Approx.of(numbers(9)).blurred(2.0**-10), numbers(9, seed=1)
    assert (a.maximum(b).error <= a.error).all()
    assert (Approx.of(b).maximum(0).error == 0).all()
    assert a.moved(lambda x: x[::-1]).error.tolist() == a.error[::-1].tolist()


def test_arrays_leave_their_operators_to_it():
    x = numbers(5)
    for found in (x + Approx.of(x), x * Approx.of(x), 1 - Approx.of(x), x / Approx.of(x)):
        assert isinstance(found, Approx)
    assert (2 - Approx.of(x)).value.tolist() == (2 - x.astype(np.float64)).tolist()


def test_a_divisor_that_may_be_0_is_an_error():
    with pytest.raises(ZeroDivisionError):
        1 / Approx(np.ones(2), np.array([0.5, 1.0]))


def test_gamma_is_highams():
    assert gamma(100, U) == float(100 * Fraction(1, 2**24) / (1 - 100 * Fraction(1, 2**24)))
    assert gamma(2**24, U) == float("inf")
