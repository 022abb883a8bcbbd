"""Each pass on a small kernel: the text before and after."""

from __future__ import annotations

import textwrap

import pytest

import warpwave as ww
from warpwave import f32, i32, rt
from warpwave.tiles.capture.capture import trace
from warpwave.tiles.dtypes import DType, bool_, i8, i64
from warpwave.tiles.ir import Block, Builder, Kernel, Value, print_kernel, verify
from warpwave.tiles.passes import (
    drop_dead_carries,
    eliminate_dead_ops,
    fold_constants,
    hoist_invariants,
    merge_common_ops,
)
from warpwave.tiles.tests.programs import PARAMETERS
from warpwave.tiles.types import scalar


def text_after(program, *passes):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    kernel = trace(program, {n: PARAMETERS[n] for n in names}, {}).kernel
    for run in passes:
        run(kernel)
        verify(kernel)
    return print_kernel(kernel)


def expect(actual, expected):
    assert actual == textwrap.dedent(expected).lstrip("\n")


# -- printed form -------------------------------------------------------------------------------------


def test_printed_form():
    def program(n, t, out):
        acc = ww.zeros(rt[f32, 4, 4])
        for k in ww.pipeline(n, stages=2):
            tile = ww.load(t, (0, k), rt[f32, 4, 4])
            acc = ww.maximum(acc, tile) if n > 3 else acc
        while n > 0:
            n = n - 1
        ww.print("n", n)
        ww.store(out, 0, ww.sum(acc))

    expect(
        text_after(program),
        """
        kernel @program(%n: i32, %t: gl<f32, 2d>, %out: gl<f32, 1d>) {
          %0 = constant 0.0 : f32
          %acc = broadcast %0 {shape=[4, 4]} : rt<f32, 4x4>
          %1 = constant 0 : i32
          %2 = constant 1 : i32
          %acc_3 = pipeline %k = %1 to %n step %2 stages=2 carry(%acc_1 = %acc) : rt<f32, 4x4> {
            %3 = constant 0.0 : f32
            %4 = constant 0 : i32
            %tile = load %t, %3, %4, %k {type=rt<f32, 4x4>, axes=[0, 1], unit='tile'} : rt<f32, 4x4>
            %5 = constant 3 : i32
            %6 = gt %n, %5 : bool
            %acc_2 = if %6 : rt<f32, 4x4> {
              %7 = max %acc_1, %tile {nan='propagate'} : rt<f32, 4x4>
              yield %7
            } else {
              yield %acc_1
            }
            yield %acc_2
          }
          %n_4 = while carry(%n_1 = %n) : i32 {
            %8 = constant 0 : i32
            %9 = gt %n_1, %8 : bool
            condition %9, %n_1
          } do (%n_2) {
            %10 = constant 1 : i32
            %n_3 = sub %n_2, %10 : i32
            yield %n_3
          }
          print %n_4 {message='n'}
          %11 = reduce_sum %acc_3 {axis=1} : rv<f32, 4>
          %12 = reduce_sum %11 {axis=0} : f32
          %13 = constant 0 : i32
          store %out, %12, %13 {axes=[], unit='tile'}
        }
        """,
    )


def test_names_are_unique_and_follow_the_variables():
    def program(n, out):
        v = n + 1
        w = v
        v = v + 2
        v = v + w
        ww.store(out, 0, v)

    text = text_after(program)
    assert "%v = add %n, %0" in text
    assert "%v_1 = add %v, " in text
    assert "%v_2 = add %v_1, %v" in text


# -- fold_constants -----------------------------------------------------------------------------------


def folded(name, values, dtype, **attrs):
    """What an op on constants folds to, or None."""
    body = Block()
    builder = Builder(body)
    operands = [builder.constant(v, bool_ if isinstance(v, bool) else dtype) for v in values]
    result = builder.emit1(name, operands, **attrs)
    kernel = Kernel("k", [], {}, body, None)
    fold_constants(kernel)
    verify(kernel)
    op = next(o for o in body.ops if result in o.results)
    return op.attrs["value"] if op.name == "constant" else None


LOWEST = -(2**31)


@pytest.mark.parametrize(
    ("name", "values", "dtype", "expected"),
    [
        ("add", (2**31 - 1, 1), i32, LOWEST),
        ("sub", (LOWEST, 1), i32, 2**31 - 1),
        ("mul", (65536, 65536), i32, 0),
        ("mul", (65536, 65536), i64, 2**32),
        ("mul", (100, 3), i8, 44),
        ("neg", (LOWEST,), i32, LOWEST),
        ("floordiv", (LOWEST, -1), i32, LOWEST),
        ("floordiv", (-7, 2), i32, -4),
        ("floordiv", (7, -2), i32, -4),
        ("mod", (-7, 3), i32, 2),
        ("mod", (7, -3), i32, -2),
        ("floordiv", (3, 0), i32, None),
        ("mod", (3, 0), i32, None),
        ("lt", (-1, 1), i32, True),
        ("eq", (True, False), bool_, False),
        ("select", (True, 3, 4), i32, 3),
        ("add", (0.1, 0.2), f32, None),
        ("lt", (0.0, 1.0), f32, None),
        ("eq", (float("nan"), float("nan")), f32, None),
    ],
)
def test_folds_as_it_would_run(name, values, dtype: DType, expected):
    assert folded(name, values, dtype) == expected


@pytest.mark.parametrize(("name", "neutral"), [("add", 0), ("sub", 0), ("mul", 1), ("floordiv", 1)])
def test_neutral_element(name, neutral):
    n = Value(scalar(i32))
    builder = Builder(Block([n]))
    result = builder.emit1(name, [n, builder.constant(neutral, i32)])
    builder.emit("print", [result], message="")
    fold_constants(Kernel("k", ["n"], {}, builder.body, None))
    assert builder.body.ops[-1].operands == [n]


def test_float_zero_is_not_neutral():
    x = Value(scalar(f32))
    builder = Builder(Block([x]))  # -0.0 + 0.0 is 0.0
    result = builder.emit1("add", [x, builder.constant(0.0, f32)])
    builder.emit("print", [result], message="")
    fold_constants(Kernel("k", ["x"], {}, builder.body, None))
    assert builder.body.ops[-1].operands == [result]


# -- merge_common_ops ---------------------------------------------------------------------------------


def test_merges_what_dominates_only():
    def program(n, out):
        if n > 0:
            ww.store(out, 0, n * 3)
        else:
            ww.store(out, 1, n * 3)
        ww.store(out, 2, n * 3)
        ww.store(out, 3, n * 3)

    assert text_after(program).count("mul ") == 4
    assert text_after(program, merge_common_ops).count("mul ") == 3


def test_loads_are_not_merged_across_a_store():
    def program(n, out):
        a = ww.load(out, 0)
        ww.store(out, 0, a + 1.0)
        b = ww.load(out, 0)
        ww.store(out, 1, a + b)

    assert text_after(program, merge_common_ops).count("= load ") == 2


def test_constants_of_other_bits_or_type_stay_apart():
    builder = Builder(Block())
    values = [(0.0, f32), (-0.0, f32), (float("nan"), f32), (0, i32), (0, i64), (False, bool_), (0.0, f32)]
    constants = [builder.constant(v, d) for v, d in values]
    builder.emit("print", constants, message="")
    merge_common_ops(Kernel("k", [], {}, builder.body, None))
    assert [op.name for op in builder.body.ops].count("constant") == 6
    assert builder.body.ops[-1].operands[-1] is constants[0]


# -- drop_dead_carries and eliminate_dead_ops ---------------------------------------------------------


def test_drops_carries():
    def program(n, out):
        used, unused, unchanged = 0, 0, n
        p, q = 1, 2
        for i in range(n):
            used = used + unchanged
            unused = unused + i
            p, q = q, p
            unchanged = unchanged
        ww.store(out, 0, used + p)

    text = text_after(program, drop_dead_carries, eliminate_dead_ops)
    assert "unused" not in text
    head = next(line for line in text.splitlines() if " for " in line)
    assert head.count(" = ") == 5  # results, counter, p, q, used
    assert head.endswith(": i32, i32, i32 {")


def test_drops_carries_of_while_and_if():
    def program(n, out):
        k, total, same = n, 0, n * 5
        while k > 0:
            k = k - 1
            total = total + k
            same = same + 0
        if n > 1:
            a, b = 1, same
        else:
            a, b = 2, same
        ww.store(out, 0, a + b)

    text = text_after(program, fold_constants, drop_dead_carries, eliminate_dead_ops)
    assert "total" not in text
    assert text.count("carry(%k = %n)") == 1
    assert "if %" in text
    assert text.count("yield %") == 3  # k, and a in both branches


def test_effects_keep_what_they_need():
    def program(n, out):
        for i in range(n):
            dead = i * 7  # noqa: F841
        for i in range(n):
            ww.check(i * 5 > -1, "kept")
        while n < 0:
            n = n - 1
        if n > 5:
            ww.barrier()
        ww.load(out, 0)

    text = text_after(program, drop_dead_carries, eliminate_dead_ops)
    assert text.count("for %") == 1
    assert "check" in text
    assert "while" in text  # it might not end
    assert "barrier" in text
    assert "load" not in text
    assert "constant 7" not in text


# -- hoist_invariants ---------------------------------------------------------------------------------


def test_hoists_scalars_out_of_all_loops():
    def program(n, x, t, out):
        for i in range(n):
            for j in range(n):
                ww.store(out, i + j, (n * 3) // n + j)
                ww.store(out, i, ww.sum(ww.load(t, (0, 0), rt[f32, 4, 4]) * x))

    lines = text_after(program, hoist_invariants).splitlines()
    first_loop = next(i for i, line in enumerate(lines) if "for %" in line)
    before, inside = "\n".join(lines[:first_loop]), "\n".join(lines[first_loop:])
    assert "mul %n, " in before
    assert "constant" not in inside
    assert "floordiv" in inside  # it might not run at all, and then not divide by zero
    assert "load" in inside
    assert "mul %" in inside  # the product of tiles stays
    assert "add %i, %j" in inside


def test_does_not_hoist_out_of_a_branch():
    def program(n, out):
        for i in range(n):
            if i > 3:
                ww.store(out, 0, n * 3)

    lines = text_after(program, hoist_invariants).splitlines()
    branch = next(i for i, line in enumerate(lines) if line.strip().startswith("if %"))
    assert any("mul %n" in line for line in lines[branch:])
