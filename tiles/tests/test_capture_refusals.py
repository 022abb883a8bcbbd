"""What cannot be honoured is refused: at the line marked `# here`, with a reason, a caret and the way out."""

# ruff: noqa: B007, B023, B010, F401, F821, F841, E731, PLE1132, PT012, UP031 -- wrong programs are what is tested

from __future__ import annotations

import collections
import functools
import math
import random
import time

import numpy as np
import pytest

import warpwave as ww
from warpwave import f32, rt, rv
from warpwave.tiles.tests.programs import check_refusal, refusals

CASES, refused = refusals()
OUTSIDE = [1, 2]
NESTED = ([1, 2], 3)
ARRAY = np.array([1, 2, 3])


# -- values that are not known after run-time control flow --------------------------------------------


@refused("variable 'y' is assigned only inside a run-time loop", "before the loop")
def defined_only_in_a_loop(n, out):
    for i in range(n):
        y = i
    ww.store(out, 0, y)  # here


@refused("variable 'i' is assigned only inside a run-time loop", "before the loop")
def loop_variable_after_the_loop(n, out):
    for i in range(n):
        ww.store(out, i, i)
    ww.store(out, 0, i)  # here


@refused("variable 'i' is assigned only inside", "before the loop")
def loop_variable_that_had_a_value(n, out):
    i = 5
    for i in range(n):
        ww.store(out, i, i)
    ww.store(out, 0, i)  # here


@refused("variable 'y' has a value in only one branch", "both branches")
def defined_in_one_branch(n, out):
    if n > 0:
        y = n
    ww.store(out, 0, y)  # here


@refused("'prev' is used before it is assigned", "before the run-time loop")
def value_of_the_previous_iteration_without_a_first(n, out):
    for i in range(n):
        if i > 0:
            ww.store(out, i, prev)  # here
        prev = i


@refused("variable 's' changes its type in a run-time loop", "one type")
def shape_changes_in_the_loop(n, t, out):
    s = ww.load(t, (0, 0), rt[f32, 4, 4])
    for _ in range(n):
        s = ww.sum(s, axis=0)  # here


@refused("variable 's' changes its type in a run-time loop.*a run-time i32 on one path and a run-time f32", "one type")
def int_becomes_float_tile(n, x, out):
    s = n
    for _ in range(n):
        s = s * x  # here
    ww.store(out, 0, s)


@refused("variable 'm' changes its type", "one type")
def none_becomes_a_value(n, x, out):
    m = None
    for _ in range(n):
        m = x if m is None else m + x  # here


@refused("variable 'y' differs after a run-time if", "one type")
def type_depends_on_the_branch(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    if n > 0:
        y = ww.sum(y, axis=1)
    ww.store(out, 0, ww.sum(y))  # here


@refused("variable 'k' differs after a run-time if", "one type")
def bool_or_number(n, out):
    k = True
    if n > 0:
        k = 3
    ww.store(out, 0, k)  # here


@refused("variable 'g' changes its type in a run-time loop: it is the function f", "one type")
def function_made_in_a_loop(n, out):
    def f():
        return 7

    g = f
    for i in range(n):
        g = lambda: i
    ww.store(out, 0, g())  # here


@refused("value of this expression depends on a run-time condition", None)
def expression_of_two_types(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    z = y if n > 0 else ww.sum(y)  # here


@refused("an item of this|this item differs after a run-time if", None)
def item_of_a_list_of_two_types(n, t, out):
    xs = [ww.load(t, (0, 0), rt[f32, 4, 4]), 2]
    if n > 0:
        xs[0] = 1.0
    if xs[0]:  # here
        ww.store(out, 0, 1)


@refused("an item of a list, tuple or dict differs", None)
def list_with_an_unknown_item_in_native_code(n, t, out):
    xs = [ww.load(t, (0, 0), rt[f32, 4, 4]), 2]
    if n > 0:
        xs[0] = 1.0
    k = any(xs)  # here


@refused("what is returned depends on a run-time condition", "one type")
def returns_of_two_types(n, t, out):
    def f():
        if n > 0:  # here
            return 1
        return ww.load(t, (0, 0), rt[f32, 4, 4])

    f()


@refused("returns a value", "ww.store")
def kernel_returns(n, out):  # here
    return n


# -- control flow -------------------------------------------------------------------------------------


@refused("break inside a run-time loop", "while loop")
def break_in_runtime_loop(n, out):
    for i in range(n):
        if i > 3:
            break  # here


@refused("continue inside a run-time loop", "under an if")
def continue_in_runtime_loop(n, out):
    for i in range(n):
        if i > 3:
            continue  # here
        ww.store(out, i, i)


@refused("return inside a run-time loop", "after the loop")
def return_in_runtime_loop(n, out):
    while n > 0:
        for _ in (1, 2):
            return  # here


@refused("break under a run-time condition", "else")
def break_of_a_static_loop(n, out):
    for k in (1, 2, 3):
        if n > k:
            break  # here


@refused("else after a run-time loop", "after the loop")
def else_of_a_runtime_loop(n, out):
    for i in range(n):
        pass
    else:
        ww.store(out, 0, 1)  # here


@refused("condition of a run-time while changes a variable", "body")
def walrus_in_a_while_condition(n, a, out):
    k = 0
    while (k := ww.load(a, k)) > 0:  # here
        ww.store(out, k, k)


@refused("a compile-time while runs more than", "ever false")
def endless_while(n, out):
    while True:  # here
        pass


@refused("unrolled more than", "ww.range")
def huge_static_loop(n, out):
    for k in [0] * 10_000:  # here
        pass


@refused("nested more than|does not end", None)
def endless_recursion(n, out):
    def f(k):
        if n > k:
            return f(k + 1)  # here
        return k

    f(0)


@refused("one simple loop variable", "body")
def tuple_target(n, out):
    for i, j in ww.range(n):  # here
        pass


@refused("step of a run-time loop must be a compile-time", "multiply")
def runtime_step(n, out):
    for i in range(0, 10, n):  # here
        pass


@refused("step of a run-time loop", None)
def zero_step(n, out):
    for i in range(0, n, 0):  # here
        pass


@refused("must be the iterable of a `for`", "compile-time range")
def enumerate_runtime_range(n, out):
    for i, k in enumerate(range(n)):  # here
        pass


@refused("must be the iterable of a `for`", None)
def comprehension_over_runtime_range(n, out):
    xs = [i for i in range(n)]  # here


@refused("run-time condition in a comprehension", "ww.where")
def comprehension_condition(n, out):
    xs = [
        k
        for k in (1, 2)
        if k > n  # here
    ]


@refused("cannot iterate over i32", "range")
def iterate_a_tile(n, out):
    for v in n:  # here
        pass


@refused("raise under a run-time condition or loop: bad 7", "ww.check")
def raise_under_a_condition(n, out):
    if n > 3:
        raise ValueError(f"bad {3 + 4}")  # here


@refused("the kernel raised at capture: wrong", None)
def raise_at_capture(n, out):
    raise ValueError("wrong")  # here


@refused("assert needs a compile-time condition", "ww.check")
def runtime_assert(n, out):
    assert n > 3  # here


@refused("sizes must match", None)
def static_assert(n, out):
    assert len(OUTSIDE) == 5, "sizes must match"  # here


# -- statements that kernels do not have --------------------------------------------------------------


@refused("try is not supported", "ww.check")
def has_try(n, out):
    try:  # here
        ww.store(out, 0, n)
    finally:
        pass


@refused("with is not supported", None)
def has_with(n, out):
    with open("x"):  # here
        pass


@refused("import is not supported", "top of the module")
def has_import(n, out):
    import os  # here


@refused("class definition is not supported", "outside")
def has_class(n, out):
    class C:  # here
        pass


@refused("match is not supported", "elif")
def has_match(n, out):
    match n:  # here
        case 1:
            pass


@refused("yield is not supported", "tuple or list")
def has_yield(n, out):
    yield n  # here


@refused("is a generator", "list")
def local_generator(n, out):
    def g():
        yield 1

    list(g())  # here


@refused("async function is not supported", None)
def has_async(n, out):
    async def f():  # here
        pass


@refused("cannot be decorated", "outside")
def local_decorator(n, out):
    @functools.cache
    def f():  # here
        pass


# -- state outside, and state that changes in a region ------------------------------------------------


@refused("cannot rebind 'OUTSIDE'", "return the value")
def global_write(n, out):
    global OUTSIDE
    OUTSIDE = 3  # here


@refused("'OUTSIDE' lives outside the kernel.*was changed", "copy it first")
def outside_list_changes(n, out):
    OUTSIDE.append(3)  # here


@refused("'NESTED' lives outside the kernel.*was changed", "copy it first")
def list_in_an_outside_tuple_changes(n, out):
    xs = NESTED[0]
    xs[0] = n  # here


@refused("items of lists and dicts only, not of a ndarray", "compile-time constants")
def outside_array_item(n, out):
    ARRAY[0] = 5  # here


@refused("'ARRAY' lives outside the kernel.*was changed", "copy it first")
def outside_array_in_place(n, out):
    xs = ARRAY
    xs += 1  # here


class Counter:
    def __init__(self):
        self.count = 0
        self.seen = []

    def bump(self):
        self.count += 1

    def __iadd__(self, value):
        self.count += value
        return self


SHARED = Counter()


@refused("'seen' lives outside the kernel or in an object", "copy it first")
def list_of_an_object_changes(n, out):
    SHARED.seen.append(n)  # here


@refused("attribute 'count' of a Python object", "local variables")
def attribute_assignment(n, out):
    SHARED.count = n  # here


@refused("attribute 'count'", "local variables")
def attribute_update(n, out):
    SHARED.count += n  # here


@refused("Counter 'c' is changed inside a run-time loop", "lists and dicts")
def object_changed_by_a_native_method(n, out):
    c = Counter()
    for _ in range(n):
        c += 1  # here


@refused("list 'xs' changes its size", "build it before")
def append_in_a_runtime_loop(n, out):
    xs = []
    for i in range(n):
        xs.append(i)  # here


@refused("dict 'd' changes its size or keys", "build it before")
def new_key_in_a_branch(n, out):
    d = {}
    if n > 0:
        d["x"] = n  # here


@refused("set 's' is changed", "lists and dicts")
def set_changes_in_a_branch(n, out):
    s = {1}
    if n > 0:
        s.add(2)  # here


@refused("deque 'q' is changed", "lists and dicts")
def deque_changes_in_a_loop(n, out):
    q = collections.deque([1, 2])
    for _ in range(n):
        q.rotate()  # here


@refused("ndarray 'xs' is changed", "lists and dicts")
def array_changes_in_a_loop(n, out):
    xs = np.zeros(3)
    for _ in range(n):
        xs += 1  # here


@refused("list_iterator 'it' is advanced", None)
def iterator_advances_in_a_loop(n, out):
    it = iter([1, 2, 3])
    for i in range(n):
        ww.store(out, i, next(it))  # here


@refused("enumerate 'it' is advanced", None)
def enumerate_advances_in_a_branch(n, out):
    it = enumerate([1, 2, 3])
    if n > 0:
        next(it)  # here


@refused("InterpretedGenerator 'it' is advanced", None)
def generator_advances_in_a_loop(n, out):
    it = (v for v in [1, 2, 3])
    for i in range(n):
        ww.store(out, i, next(it))  # here


@refused("a list changes its size", "build it before")
def mutable_default_grows_in_a_loop(n, out):
    def remember(v, seen=[]):  # noqa: B006
        seen.append(v)  # here

    for i in range(n):
        remember(i)


@refused("this list cannot be changed in place", "copy it first")
def list_that_is_one_of_two(n, out):
    xs, ys = [1, 2], [3, 4]
    zs = xs if n > 0 else ys
    zs[0] = 5  # here


@refused("this list cannot be changed in place", "copy it first")
def original_of_a_list_that_is_one_of_two(n, out):
    xs, ys = [1, 2], [3, 4]
    zs = xs if n > 0 else ys
    xs[0] = 5  # here


@refused("this list cannot be changed in place", "copy it first")
def swapped_lists_change(n, out):
    xs, ys = [1, 2], [3, 4]
    for i in range(n):
        xs, ys = ys, xs
        xs[0] = i  # here


@refused("this list cannot be changed in place", "copy it first")
def list_that_another_name_may_share_since_the_last_iteration(n, out):
    xs, ys = [1, n], [3, 4]
    for i in range(n):
        xs[0] = xs[1]  # here
        xs = [i, xs[0]]
        if i > 2:
            xs = ys
        else:
            ys = list(xs)
    ww.store(out, 0, ys[0])


@refused("`is` between run-time values", "==")
def identity_of_runtime_values(n, x, out):
    y = n
    if y is n:  # here
        ww.store(out, 0, 1)


@refused("`is` between run-time values", "is None")
def identity_with_a_literal(n, out):
    flag = n > 0
    if flag is True:  # here
        ww.store(out, 0, 1)


# -- run-time values where Python needs to know -------------------------------------------------------


@refused("truth of a tile .* is ambiguous", "ww.where")
def truth_of_a_tile(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    if y > 0.0:  # here
        pass


@refused("truth of <out: gl<f32, 1d>> is ambiguous", "is not None")
def truth_of_a_tensor(n, out):
    if out:  # here
        pass


@refused("indexing or counting", "compile-time integers")
def index_a_list(n, out):
    xs = [1, 2, 3]
    ww.store(out, 0, xs[n])  # here


@refused("unhashable", None)
def key_of_a_dict(n, out):
    d = {n: 1}  # here


@refused("the truth of a run-time value", None)
def membership_of_a_runtime_value(n, out):
    if n in [1, 2]:  # here
        pass


@refused("len\\(\\) of a run-time value", ".shape")
def len_of_a_tile(n, out):
    k = len(n)  # here


@refused("the text of a run-time value", "ww.print")
def fstring(n, out):
    ww.print(f"n is {n}")  # here


@refused("the text of a run-time value", "ww.print")
def fstring_repr(n, out):
    ww.print(f"n is {n!r}")  # here


@refused("no text at capture", "ww.print")
def string_of(n, out):
    k = str(n)  # here


@refused("the text of a run-time value", "ww.print")
def percent_format(n, out):
    ww.print("n is %s" % n)  # here


@refused("print\\(\\) runs once, at capture", "ww.print")
def python_print(n, out):
    print(n)  # here


@refused("would print once, at capture", "ww.print")
def python_print_in_a_loop(n, out):
    for _ in range(n):
        print("hello")  # here


@refused("isinstance\\(\\) cannot tell", "dtype")
def isinstance_int(n, out):
    k = 0
    for _ in range(n):
        if isinstance(k, int):  # here
            k = k + 1


@refused("type\\(\\) of a run-time value", "dtype")
def type_of(n, out):
    k = type(n)  # here


@refused("math.sqrt cannot work on a run-time value", "ww.exp")
def math_function(n, x, out):
    y = math.sqrt(x)  # here


@refused("would run once, at capture", "ww.random_uniform")
def random_number(n, out):
    y = random.random()  # here


@refused("would run once, at capture", "argument")
def clock(n, out):
    y = time.time()  # here


@refused("globals\\(\\) is not supported", None)
def reads_globals(n, out):
    k = globals()  # here


@refused("setattr\\(\\) is not supported", None)
def uses_setattr(n, out):
    setattr(SHARED, "count", n)  # here


@refused("min\\(\\) of a tile", "ww.minimum")
def min_of_tiles(n, t, out):
    y = ww.load(t, (0, 0), rt[f32, 4, 4])
    z = min(y, 0.0)  # here


@refused("int\\(\\) takes one number", "ww.cast")
def int_of_a_tile(n, t, out):
    y = int(ww.load(t, (0, 0), rt[f32, 4, 4]))  # here


@refused("keyword argument 'v' is given twice", None)
def keyword_twice(n, out):
    def f(v):
        return v

    f(v=1, **{"v": 2})  # here


@refused("TypeError when this ran at capture: missing a required argument: 'v'", None)
def missing_argument(n, out):
    def f(v):
        return v

    f()  # here


@refused("cannot unpack 3 values into 2 targets", None)
def unpack_wrong(n, out):
    p, q = [n, 1, 2]  # here


@refused("KeyError when this ran at capture", None)
def python_error(n, out):
    k = {"a": 1}["b"]  # here


@refused("name 'undefined_name' is not defined", None)
def unknown_name(n, out):
    k = undefined_name + n  # here


@refused("local variable 'k' is used before it is assigned", None)
def unbound_local(n, out):
    ww.store(out, 0, k)  # here
    k = 1


# -- helpers ------------------------------------------------------------------------------------------


def failing_helper(v):
    return v + ww.zeros(rv[f32, 4])[0]


def test_error_in_a_helper_shows_the_call_chain():
    def program(n, out):
        def inner(v):
            return failing_helper(v)

        ww.store(out, 0, inner(n))

    with pytest.raises(ww.TileError) as caught:
        from warpwave.tiles.tests.programs import captured

        captured(program)
    text = str(caught.value)
    assert text.count("File ") == 3
    places = [text.index("in failing_helper"), text.index("in inner"), text.index("in program")]
    assert places == sorted(places)


def test_outside_state_is_as_before_after_a_refusal():
    assert SHARED.count == 0
    assert NESTED[1] == 3


@pytest.mark.parametrize(("program", "reason", "hint"), CASES)
def test_refused_with_reason_and_way_out(program, reason, hint):
    check_refusal(program, reason, hint)
