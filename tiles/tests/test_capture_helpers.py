"""Helpers, closures, methods and callbacks in kernel code: each program gives exactly CPython's answer."""

# ruff: noqa: RET504, B023 -- the long forms and the late binding are what is tested

from __future__ import annotations

import functools

import pytest

import warpwave as ww
from warpwave import f32, rt
from warpwave.tiles.tests.programs import check_agreement, registry

PROGRAMS, agrees = registry()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gives_pythons_answer(program):
    check_agreement(program)


# -- helpers --------------------------------------------------------------------------------------


@agrees
def helper_rebinds_its_own_names(n, x, out):
    y = x
    z = twice_plus(y, n)
    ww.store(out, 0, y)
    ww.store(out, 1, z)


def twice_plus(y, n):
    for _ in range(n):
        y = y * 2.0
    y = y + 1.0
    return y


@agrees
def early_return_in_helper(n, out):
    ww.store(out, 0, sign(n))
    ww.store(out, 1, sign(n - 2))


def sign(v):
    if v > 0:
        return 1
    if v < 0:
        return -1
    return 0


@agrees
def early_return_in_kernel(n, out):
    ww.store(out, 0, 1)
    if n > 1:
        ww.store(out, 1, 2)
        return
    ww.store(out, 2, 3)
    if n < 0:
        return
    ww.store(out, 3, 4)


@agrees
def return_in_nested_ifs(n, x, out):
    ww.store(out, 0, nested_returns(n, x))


def nested_returns(n, x):
    y = x
    if n > 0:
        y = y + 1.0
        if n > 2:
            if x > 0.0:
                return y * 10.0
            y = y + 100.0
        elif n == 1:
            return y
        y = y + 1000.0
    return y


@agrees
def helper_with_return_called_in_a_loop(n, out):
    s = 0
    for i in range(n):
        s += sign(i - 2) * (i + 1)
    ww.store(out, 0, s)


@agrees
def tuple_returned_from_branches(n, out):
    p, (q, r) = pick(n)
    ww.store(out, 0, p)
    ww.store(out, 1, q)
    ww.store(out, 2, r)


def pick(n):
    if n > 1:
        return 1, (n, 2.0)
    return n, (5, 3.0)


@agrees
def nonlocal_counter(n, out):
    count = 0

    def bump(by=1):
        nonlocal count
        count += by
        return count

    for i in range(n):
        bump()
        if i > 1:
            bump(10)
    ww.store(out, 0, bump(100))
    ww.store(out, 1, count)


@agrees
def late_binding_closure(n, out):
    k = 1

    def times(v):
        return v * k

    k = 5
    ww.store(out, 0, times(n))
    for i in range(n):
        k = k + i
    ww.store(out, 1, times(n))


@agrees
def lambdas_made_in_a_loop_bind_late(n, out):
    fs = [lambda v: v * k for k in (1, 2, 3)]
    gs = [lambda v, k=k: v * k for k in (1, 2, 3)]
    for i, f in enumerate([*fs, *gs]):
        ww.store(out, i, f(n))


@agrees
def defaults_are_evaluated_once(n, out):
    k = n

    def f(v=k + 1):
        return v

    k = 50
    ww.store(out, 0, f())
    ww.store(out, 1, k)


@agrees
def mutable_default_is_shared_by_calls(n, out):
    def remember(v, seen=[]):  # noqa: B006
        seen.append(v)
        return len(seen)

    remember(n)
    remember(n)
    ww.store(out, 0, remember(n))


@agrees
def star_and_keyword_arguments(n, out):
    def f(p, /, q, *rest, k=2, **more):
        return p + 10 * q + 100 * len(rest) + 1000 * k + sum(more.values())

    ww.store(out, 0, f(n, 2))
    ww.store(out, 1, f(n, *[3, 4, 5], k=n, z=n))
    ww.store(out, 2, f(n, **{"q": 7, "k": 1}))


@agrees
def partial_application(n, out):
    f = functools.partial(affine, 2, c=n)
    g = functools.partial(f, 5)
    ww.store(out, 0, f(n))
    ww.store(out, 1, g(c=1))


def affine(a, b, c=0):
    if c > 1:
        return a * b + c
    return a * b - c


@agrees
def static_recursion(n, x, out):
    ww.store(out, 0, power(x, 5))


def power(x, k):
    if k == 0:
        return 1.0
    half = power(x, k // 2)
    return half * half * x if k % 2 else half * half


class Polynomial:
    def __init__(self, *coefficients):
        self.coefficients = coefficients

    def at(self, x):
        y = 0.0
        for c in self.coefficients:
            y = y * x + c
        return y

    def __call__(self, x):
        if x > 0.0:
            return self.at(x)
        return 0.0

    @property
    def degree(self):
        return len(self.coefficients) - 1

    @staticmethod
    def half(v):
        return v * 0.5

    @classmethod
    def line(cls, slope):
        return cls(slope, 0.0)


CUBIC = Polynomial(1.0, 0.0, -2.0, 4.0)


@agrees
def methods_of_user_objects(n, x, out):
    ww.store(out, 0, CUBIC.at(x))
    ww.store(out, 1, CUBIC(x))
    ww.store(out, 2, CUBIC.degree)
    ww.store(out, 3, CUBIC.half(x))
    ww.store(out, 4, Polynomial.line(3.0).at(x))


@agrees
def callbacks_of_native_functions(n, x, out):
    ys = list(map(clipped, [x, 2.0 * x, 0.25]))
    for i, y in enumerate(ys):
        ww.store(out, i, y)
    ww.store(out, 5, functools.reduce(larger, ys))
    ww.store(out, 6, sum(clipped(y) for y in ys))


def clipped(v):
    if v > 1.0:
        return 1.0
    return v


def larger(p, q):
    return p if p > q else q


SQUARES = {"square": lambda v: v * v, "step": lambda v: 1.0 if v > 0.0 else 0.0}


@agrees
def lambdas_of_the_module(n, x, out):
    ww.store(out, 0, SQUARES["square"](x))
    ww.store(out, 1, SQUARES["step"](x))


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


@doubled
def plus_if_positive(v, by=1):
    if v > 0:
        return v + by
    return v


@functools.cache
def cached_zero():
    return ww.zeros(rt[f32, 4, 4])


@agrees
def decorated_helpers(n, t, out, tout):
    ww.store(out, 0, plus_if_positive(n))
    ww.store(out, 1, plus_if_positive(n, by=3))
    acc = cached_zero()
    for _ in range(n):
        acc = acc + cached_zero() + 1.0
    ww.store(tout, (0, 0), acc + cached_zero())
