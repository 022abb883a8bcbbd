"""Lists, dicts, tuples and dataclasses under run-time control flow: each program gives exactly CPython's answer."""

from __future__ import annotations

import copy
import dataclasses
from typing import NamedTuple

import pytest

import warpwave as ww
from warpwave import f32, rt
from warpwave.tiles.tests.programs import check_agreement, registry

PROGRAMS, agrees = registry()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gives_pythons_answer(program):
    check_agreement(program)


# -- containers -----------------------------------------------------------------------------------


@agrees
def list_items_in_a_loop(n, out):
    xs = [0, 1, 2]
    for i in range(n):
        xs[0] = xs[1] + i
        xs[1], xs[2] = xs[2], xs[0]
    for k in range(3):
        ww.store(out, k, xs[k])


@agrees
def list_items_in_a_branch(n, x, out):
    xs = [x, x + 1.0]
    if n > 1:
        xs[0] = xs[1]
    else:
        xs[1] = 0.0
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])


@agrees
def dict_values_in_a_loop(n, out):
    d = {"p": 0, "q": 1}
    for i in range(n):
        d["p"] += d["q"]
        d["q"] = i
    ww.store(out, 0, d["p"])
    ww.store(out, 1, d["q"])


@agrees
def aliased_list(n, out):
    xs = [0, 0]
    ys = xs
    for i in range(n):
        ys[0] += i
        xs[1] += ys[0]
    ww.store(out, 0, xs[0])
    ww.store(out, 1, ys[1])


@agrees
def nested_list_changed_by_a_helper(n, out):
    state = {"rows": [[0], [1]]}

    def step(i):
        state["rows"][1][0] += i
        state["rows"][0][0] = state["rows"][1][0] * 2

    for i in range(n):
        if i != 1:
            step(i)
    ww.store(out, 0, state["rows"][0][0])
    ww.store(out, 1, state["rows"][1][0])


@agrees
def list_rebuilt_in_a_loop(n, out):
    xs = [n, 1]
    for i in range(n):
        xs = [xs[1], xs[0] + i]
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])


@agrees
def list_rebuilt_while_another_name_keeps_the_old(n, out):
    xs = [n, 1]
    old = xs
    for i in range(n):
        xs = [v + i for v in xs]
    ww.store(out, 0, xs[0] + 100 * old[0])
    ww.store(out, 1, xs[1] + 100 * old[1])


@agrees
def list_rebuilt_then_changed(n, out):
    xs = [n, 1]
    for i in range(n):
        xs = [v + i for v in xs]
        xs[0] = xs[0] * 2
    xs[1] = 7
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])


@agrees
def list_chosen_by_a_branch(n, out):
    xs = [1, 2] if n > 1 else [n, 4]
    xs[0] = xs[0] + 10
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])


@agrees
def list_replaced_in_one_branch_and_changed_in_the_other(n, out):
    xs = [1, n]
    k = 5
    if n > 1:
        xs = [k, 9]
    else:
        xs[0], k = k, xs[0]
    ww.store(out, 0, xs[0])
    ww.store(out, 1, k)


@agrees
def list_changed_and_then_replaced_in_a_loop(n, out):
    xs = [1, n]
    for i in range(n):
        if i == 1:
            xs = [xs[1], i]
        elif i > 2:
            xs = [xs[0] + 1, 0]
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])


@agrees
def dict_changed_in_a_branch_while_a_loop_goes_through_it(n, out):
    d = {"a": 1, "b": 2, "c": 3}
    del d["a"]
    d["z"] = 4
    s = 0
    for k in d:
        if n > 1:
            d[k] = d[k] + n
        s += d[k]
    ww.store(out, 0, s)


@agrees
def slice_of_a_list_assigned_in_a_loop(n, out):
    xs = [n, 1, 2]
    for i in range(n):
        xs[0:2] = [xs[1], xs[0] + i]
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])


@agrees
def queue_of_fixed_length(n, t, tout):
    tiles = [ww.load(t, (0, 0), rt[f32, 4, 4]), ww.zeros(rt[f32, 4, 4])]
    for _ in range(n):
        first = tiles.pop(0)
        tiles.append(first + 1.0)
    ww.store(tout, (0, 0), tiles[0] - tiles[1])


@agrees
def append_in_a_static_loop(n, out):
    xs = []
    for k in range(3):
        xs.append(n * k)
    xs += [n]
    xs.extend([1, 2])
    xs.reverse()
    del xs[0]
    for i, v in enumerate(xs):
        ww.store(out, i, v)


@agrees
def list_made_inside_the_loop(n, out):
    s = 0
    for i in range(n):
        xs = [i]
        xs.append(i * 2)
        xs[0] += 1
        s += xs[0] * xs.pop()
    ww.store(out, 0, s)


@agrees
def augmented_assignment_of_lists_and_tiles(n, t, out, tout):
    xs = [1]
    ys = xs
    xs += [2]
    p = ww.load(t, (0, 0), rt[f32, 4, 4])
    q = p
    p += 1.0
    ww.store(out, 0, len(ys))
    ww.store(tout, (0, 0), p * q)


@agrees
def augmented_item_reads_before_the_right_side(n, out):
    xs = [n, 0]

    def reset():
        xs[0] = 100
        return 1

    xs[0] += reset()
    ww.store(out, 0, xs[0])


@agrees
def tuple_state(n, x, out):
    state = (x, (0, 1.0))
    for i in range(n):
        y, (count, z) = state
        state = (y * 0.5, (count + i, z + y))
    ww.store(out, 0, state[0])
    ww.store(out, 1, state[1][0])
    ww.store(out, 2, state[1][1])


class Pair(NamedTuple):
    left: object
    right: object

    def swapped(self):
        return Pair(self.right, self.left)


@dataclasses.dataclass(frozen=True)
class Running:
    total: object
    count: object = 0

    def with_(self, value):
        if value > 0:
            return dataclasses.replace(self, total=self.total + value, count=self.count + 1)
        return self


@agrees
def named_tuple_state(n, x, out):
    pair = Pair(x, 1.0)
    for i in range(n):
        pair = pair.swapped() if i == 5 else Pair(pair.left * 2.0, pair.right + i)
    ww.store(out, 0, pair.left)
    ww.store(out, 1, pair.right)


@agrees
def frozen_dataclass_state(n, a, out):
    state = Running(0)
    for i in range(n):
        state = state.with_(ww.load(a, i))
    ww.store(out, 0, state.total)
    ww.store(out, 1, state.count)


@agrees
def copies_of_structures(n, x, out):
    xs = [x, [n]]
    ys = copy.deepcopy(xs)
    zs = copy.copy(xs)
    zs[1][0] = 5
    ww.store(out, 0, xs[1][0])
    ww.store(out, 1, ys[1][0])
    ww.store(out, 2, zs[0] + ys[0])


@agrees
def star_unpacking(n, out):
    first, *middle, last = [n, 1, 2, 3]
    (p, q), *rest = [(n, 5), 6]
    ww.store(out, 0, first + last)
    ww.store(out, 1, sum(middle))
    ww.store(out, 2, p * q + len(rest))


@agrees
def chained_assignment_and_item_targets(n, out):
    xs = [0, 0]
    i = xs[0] = n
    xs[1], i = i + 1, 5
    ww.store(out, 0, xs[0])
    ww.store(out, 1, xs[1])
    ww.store(out, 2, i)


@agrees
def deleting(n, out):
    k = n
    m = k + 1
    del k
    for i in range(n):
        tmp = m + i
        m = tmp
        del tmp
    ww.store(out, 0, m)


@agrees
def iterators_before_the_loop(n, out):
    it = iter([1, 2, 3])
    first = next(it)
    s = 0
    for i in range(n):
        s += first * i
    ww.store(out, 0, s)
    ww.store(out, 1, next(it))


@agrees
def zip_enumerate_reversed_of_static(n, out):
    for i, (p, q) in enumerate(zip([1, 2, 3], reversed([n, 5, 6]), strict=True)):
        ww.store(out, i, p * q)
