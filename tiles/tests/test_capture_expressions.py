"""Expressions with run-time operands, and combinations: each program gives exactly CPython's answer."""

# ruff: noqa: SIM108 -- the long forms and the late binding are what is tested

from __future__ import annotations

import pytest

import warpwave as ww
from warpwave import f32, i32, rt
from warpwave.tiles.tests.programs import check_agreement, registry

PROGRAMS, agrees = registry()
SCALE = 3
TABLE = [2, 5, 7]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gives_pythons_answer(program):
    check_agreement(program)


# -- expressions ----------------------------------------------------------------------------------


@agrees
def short_circuit(n, a, out):
    ok = n >= 0 and ww.load(a, n) > 0
    ww.store(out, 0, 1 if ok else 0)
    either = n < 0 or ww.load(a, n) > 3
    ww.store(out, 1, 1 if either else 0)
    ww.store(out, 2, n or 55)
    ww.store(out, 3, n and 77)


@agrees
def short_circuit_skips_effects(n, out):
    def note(k, value):
        ww.store(out, k, 1)
        return value

    if n > 0 and note(0, n > 1) and note(1, n > 2):
        ww.store(out, 10, 1)
    if n > 0 or note(2, n < 0):
        ww.store(out, 11, 1)
    if not (n > 1 and note(3, True)):
        ww.store(out, 12, 1)


@agrees
def truth_of_mixed_operands(n, x, out):
    if n and x > 0.0:
        ww.store(out, 0, 1)
    if n or x:
        ww.store(out, 1, 1)
    while n and x > 100.0:
        n = n - 1
    ww.store(out, 2, 1 if (n and True) else 2)


@agrees
def chained_comparison(n, out):
    ww.store(out, 0, 1 if 0 < n < 3 else 0)
    ww.store(out, 1, 1 if 0 <= n <= 2 != n else 0)


@agrees
def chained_comparison_skips_effects(n, out):
    def note(k, value):
        ww.store(out, k, 1)
        return value

    ww.store(out, 5, 1 if 0 < n < note(0, 3) else 0)
    ww.store(out, 6, 1 if n < note(1, 2) < note(2, n + 1) else 0)


@agrees
def conditional_expression_skips_effects(n, out):
    def note(k, value):
        ww.store(out, k, 1)
        return value

    y = note(0, 10) if n > 1 else note(1, 20)
    ww.store(out, 5, y)


@agrees
def walrus(n, a, out):
    if (v := ww.load(a, n)) > 2:
        ww.store(out, 0, v)
    ww.store(out, 1, v)
    total = sum([(last := k) * n for k in (1, 2, 3)])
    ww.store(out, 2, total)
    ww.store(out, 3, last)


@agrees
def comprehension_has_its_own_scope(n, out):
    k = 7
    values = [k * n for k in (1, 2, 3) if k != 2]
    table = {k: [k + j for j in range(k)] for k in (1, 2)}
    ww.store(out, 0, k)
    ww.store(out, 1, values[1])
    ww.store(out, 2, table[2][1])
    ww.store(out, 3, len({k % 2 for k in range(5)}))


@agrees
def generator_expressions_are_lazy(n, out):
    k = 1
    g = (k * v for v in [n, 2, 3])
    k = 10
    ww.store(out, 0, sum(g))
    ww.store(out, 1, sum(g))


@agrees
def builtins_on_runtime_values(n, x, out):
    ww.store(out, 0, min(n, 2))
    ww.store(out, 1, max(n, 1, 3))
    ww.store(out, 2, abs(n))
    ww.store(out, 3, int(x * 1.25))
    ww.store(out, 4, float(n) / 4.0)
    ww.store(out, 5, 1 if bool(n) else 0)
    ww.store(out, 6, round(x))
    ww.store(out, 7, sum([n, 2, n]))
    ww.store(out, 8, len([n, n]))
    q, r = divmod(n, 3)
    ww.store(out, 9, q * 10 + r)
    ww.store(out, 10, max([n, 2]))
    ww.store(out, 11, pow(n, 2))
    ww.store(out, 12, int(n > 1))


@agrees
def floor_division_and_modulo_signs(n, out):
    for k, d in enumerate((3, -3, 2, -1)):
        ww.store(out, 4 * k, (n - 3) // d)
        ww.store(out, 4 * k + 1, (n - 3) % d)
    ww.store(out, 20, -7 // (n + 2))
    ww.store(out, 21, 7 % (-n - 2))


@agrees
def integer_division_gives_a_float(n, out):
    ww.store(out, 0, n / 4)
    ww.store(out, 1, 3 / (n + 4))


@agrees
def shifts_and_bits(n, out):
    ww.store(out, 0, n << 2)
    ww.store(out, 1, n >> 1)
    ww.store(out, 2, n & 3 | 8)
    ww.store(out, 3, ~n ^ 5)
    ww.store(out, 4, 1 << (n & 3))
    ww.store(out, 5, 256 >> (n & 3))


@agrees
def membership_and_identity(n, out):
    nothing = None
    ww.store(out, 0, 1 if nothing is None else 0)
    ww.store(out, 1, 1 if n is not None else 0)
    ww.store(out, 2, 1 if 3 in TABLE else 0)
    ww.store(out, 3, 1 if "a" in {"a": n} else 0)


@agrees
def fstrings_of_static_values(n, out):
    table = {f"{k:02d}{'x'!r}": k * n for k in range(3)}
    ww.store(out, 0, table["02'x'"])


# -- several things at once -----------------------------------------------------------------------


@agrees
def pipeline_with_carried_tiles(n, t, tout):
    acc = ww.zeros(rt[f32, 4, 4])
    tile = ww.load(t, (0, 0), rt[f32, 4, 4])
    for i in ww.pipeline(n):
        following = ww.load(t, (0, 0), rt[f32, 4, 4]) + ww.cast(i, f32)
        acc = acc + tile
        tile = following
    ww.store(tout, (0, 0), acc)


@agrees
def sorting_network(n, a, out):
    xs = [ww.load(a, i) for i in range(4)]
    for i in range(3):
        for j in range(3 - i):
            if xs[j] > xs[j + 1]:
                xs[j], xs[j + 1] = xs[j + 1], xs[j]
    for i in range(4):
        ww.store(out, i, xs[i])


@agrees
def branch_in_loop_in_branch(n, x, out):
    y = x
    k = 0
    if n > 0:
        for i in range(n):
            if i % 2 == 0:
                y = y + 1.0
            else:
                k, y = k + i, y * 2.0
    else:
        k = -1
    ww.store(out, 0, y)
    ww.store(out, 1, k)


@agrees
def module_constants(n, out):
    ww.store(out, 0, n * SCALE + TABLE[1])


@agrees
def global_statement_reads_the_module(n, out):
    SCALE = 100

    def read():
        global SCALE
        return SCALE

    ww.store(out, 0, n * read() + SCALE)


@agrees
def variable_assigned_in_both_branches_only(n, out):
    if n > 1:
        y = n * 2
    else:
        y = -n
    ww.store(out, 0, y)


@agrees
def variable_of_a_loop_used_inside_it(n, out):
    for i in range(n):
        y = i * 2
        if y > 2:
            z = y
        else:
            z = -y
        ww.store(out, i, z)


@agrees
def stores_in_order(n, out):
    for i in range(n):
        ww.store(out, 0, i)
        if i == 2:
            ww.store(out, 0, 50)
    ww.store(out, 1, n)


@agrees
def load_after_store_sees_it(n, out):
    ww.store(out, 0, 1)
    for i in range(n):
        v = ww.load(out, 0)
        ww.store(out, 0, v + v + i)
    ww.store(out, 1, ww.load(out, 0) + ww.load(out, 0))


@agrees
def annotated_and_typed_names(n, out):
    y: int = n
    z: i32
    z = y + 1
    ww.store(out, 0, z)


@agrees
def static_asserts_and_checks(n, out):
    assert SCALE == 3, "never"
    ww.check(n > -100, "never")
    if n > 100:
        ww.check(False, "never reached")
    ww.store(out, 0, n)
