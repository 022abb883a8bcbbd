"""Programs with loops and branches that naive tracing gets wrong: each gives exactly CPython's answer."""

# ruff: noqa: SIM108, SIM103 -- the long forms and the late binding are what is tested

from __future__ import annotations

import pytest

import warpwave as ww
from warpwave import f32, rt
from warpwave.tiles.tests.programs import check_agreement, registry

PROGRAMS, agrees = registry()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gives_pythons_answer(program):
    check_agreement(program)


# -- rebinding and carrying -----------------------------------------------------------------------


@agrees
def accumulate(n, out):
    s = 0
    for i in range(n):
        s = s + i
    ww.store(out, 0, s)


@agrees
def zero_trip_keeps_the_value(n, x, out):
    y = x
    for _ in range(n - 2):
        y = y * 2.0
    ww.store(out, 0, y)


@agrees
def swap_scalars(n, out):
    p, q = 1, 2
    for _ in range(n):
        p, q = q, p
    ww.store(out, 0, p)
    ww.store(out, 1, q)


@agrees
def swap_tiles(n, t, tout):
    p = ww.load(t, (0, 0), rt[f32, 4, 4])
    q = p * 2.0
    for _ in range(n):
        p, q = q, p
    ww.store(tout, (0, 0), p - q)


@agrees
def rotate_three(n, out):
    p, q, r = 1, 2, 3
    for _ in range(n):
        p, q, r = q, r, p
    ww.store(out, 0, 100 * p + 10 * q + r)


@agrees
def fibonacci(n, out):
    p, q = 0, 1
    for i in range(n):
        ww.store(out, i, p)
        p, q = q, p + q
    ww.store(out, 20, p)


@agrees
def early_value_used_after_the_loop(n, x, out):
    y = x
    first = y
    for _ in range(n):
        y = y + 1.0
    ww.store(out, 0, first)
    ww.store(out, 1, y)


@agrees
def previous_value_one_iteration_behind(n, out):
    last, now = -1, 0
    for i in range(n):
        last = now
        now = now + i
    ww.store(out, 0, last)
    ww.store(out, 1, now)


@agrees
def conditional_update_in_loop(n, a, out):
    best = -100
    where = -1
    for i in range(n):
        v = ww.load(a, i)
        if v > best:
            best = v
            where = i
    ww.store(out, 0, best)
    ww.store(out, 1, where)


@agrees
def branch_without_else(n, x, out):
    y = x
    if n > 1:
        y = y + 10.0
    ww.store(out, 0, y)


@agrees
def elif_chain(n, out):
    if n < 0:
        k = -1
    elif n == 0:
        k = 0
    elif n < 3:
        k = 1
    else:
        k = 2
    ww.store(out, 0, k)


@agrees
def condition_reads_what_the_branch_changed(n, out):
    m = n
    if m > 1:
        m = 0
    if m > 1:
        m = 100
    ww.store(out, 0, m)


@agrees
def nested_loops_share_an_accumulator(n, out):
    s = 0
    for i in range(n):
        for j in range(i):
            s = s + i * j
        s = s + 1
    ww.store(out, 0, s)


@agrees
def inner_result_resets_each_outer_iteration(n, out):
    total = 0
    for i in range(n):
        row = 0
        for j in range(i + 1):
            row += j
        total += row * row
    ww.store(out, 0, total)


@agrees
def carried_swap_in_nested_loops(n, out):
    p, q = 1, 10
    for i in range(n):
        for _ in range(i):
            p, q = q, p + 1
        p, q = q, p
    ww.store(out, 0, p)
    ww.store(out, 1, q)


@agrees
def shadowed_loop_variable(n, out):
    s = 0
    for i in range(n):
        for j in range(2):
            k = i * 2 + j
            i = k
        s += i
    ww.store(out, 0, s)


@agrees
def rebinding_the_loop_variable_does_not_change_the_loop(n, out):
    count = 0
    for i in range(n):
        i = i + 5
        count += i
    ww.store(out, 0, count)


@agrees
def bounds_are_read_once(n, out):
    m = n
    count = 0
    for _ in range(m):
        m = m + 1
        count += 1
    ww.store(out, 0, count)
    ww.store(out, 1, m)


@agrees
def negative_step(n, out):
    s = 0
    for i in range(n, -3, -2):
        s = s * 3 + i
    ww.store(out, 0, s)


@agrees
def positive_step_and_start(n, out):
    s = 0
    for i in range(-2, n, 3):
        s = s * 3 + i
    ww.store(out, 0, s)


@agrees
def static_loop_inside_runtime_loop(n, out):
    s = 0
    for i in range(n):
        for k in (1, 2, 3):
            s = s + i * k
    ww.store(out, 0, s)


@agrees
def runtime_loop_inside_static_loop(n, out):
    s = 0
    for k in range(3):
        for i in range(n):
            s = s * 2 + i * k
    ww.store(out, 0, s)
    ww.store(out, 1, k)


@agrees
def static_loop_with_break_and_else(n, out):
    for k in [1, 2, 3]:
        if k == 2:
            break
        ww.store(out, k, n)
    else:
        ww.store(out, 10, 1)
    for k in [4, 5]:
        if k == 4:
            continue
        ww.store(out, k, n)
    else:
        ww.store(out, 11, 1)


@agrees
def else_of_a_static_loop_returns_early(n, out):
    for k in [1, 2]:
        ww.store(out, k, k)
    else:
        if n > 1:
            ww.store(out, 3, 33)
            return
    ww.store(out, 4, 44)


@agrees
def else_of_a_static_while_returns_early(n, out):
    k = 0
    while k < 2:
        k += 1
    else:
        if n > 1:
            ww.store(out, 3, 33)
            return
    ww.store(out, 4, 44)


# -- numbers known at capture that become run-time ------------------------------------------------


@agrees
def static_number_becomes_runtime(n, out):
    k = 1
    for _ in range(n):
        k *= 2
    ww.store(out, 0, k)


@agrees
def int_becomes_float_in_the_loop(n, out):
    y = 0
    for _ in range(n):
        y = y + 0.5
    ww.store(out, 0, y)


@agrees
def int_in_one_branch_float_in_the_other(n, out):
    y = 1 if n > 0 else 2.5
    ww.store(out, 0, y)


@agrees
def flag_set_in_the_loop(n, a, out):
    found = False
    for i in range(n):
        if ww.load(a, i) == 4:
            found = True
    if found:
        ww.store(out, 0, 1)
    else:
        ww.store(out, 0, 0)


@agrees
def static_value_unchanged_by_both_branches(n, out):
    k = 4
    if n > 0:
        k = 4
    values = [10, 20, 30, 40, 50]
    ww.store(out, 0, values[k])


@agrees
def negative_zero_survives(n, x, out):
    z = 0.0
    y = -0.0
    ww.store(out, 2, y * x)
    ww.store(out, 3, z * x)
    if n > 1:
        z, y = y, z
    ww.store(out, 0, y)
    ww.store(out, 1, z)


# -- while ----------------------------------------------------------------------------------------


@agrees
def while_runtime(n, out):
    k, steps = n, 0
    while k > 0:
        k = k // 2
        steps += 1
    ww.store(out, 0, steps)


@agrees
def while_mixed_condition(n, x, out):
    limit = 3
    y = x
    steps = 0
    while steps < limit and y < 6.0:
        y = y * 2.0 + 3.0
        steps += 1
    ww.store(out, 0, y)
    ww.store(out, 1, steps)


@agrees
def while_static(n, out):
    k = 0
    while k < 3:
        ww.store(out, k, n + k)
        k += 1
    else:
        ww.store(out, 9, k)


@agrees
def while_static_break(n, out):
    k = 0
    while True:
        k += 1
        if k == 4:
            break
    ww.store(out, 0, k)


@agrees
def collatz(n, out):
    k, steps = n, 0
    while k > 1:
        if k % 2 == 0:
            k = k // 2
        else:
            k = 3 * k + 1
        steps += 1
    ww.store(out, 0, steps)


@agrees
def while_condition_with_a_helper(n, out):
    k = 0
    while below(k, n):
        k += 2
    ww.store(out, 0, k)


def below(p, q):
    if p < q:
        return True
    return False


@agrees
def while_condition_known_after_a_call(n, out):
    budget = [3, 2, 1, 0]
    while budget.pop():
        ww.store(out, len(budget), n)
    ww.store(out, 8, len(budget))
