"""The type rule of every op: operands and attributes that it takes, with the result, and some that it refuses."""

from __future__ import annotations

import re

import pytest

from warpwave.tiles.dtypes import bf16, bool_, f16, f32, fp8e4m3, fp8e4m3fnuz, fp8e5m2, i8, i32, i64
from warpwave.tiles.errors import TileError
from warpwave.tiles.ir.opdefs import OPS, UNARY_FLOAT
from warpwave.tiles.types import TensorType, TileType

ACCEPTED = []
REFUSED = []


def accept(names, operands, results, **attrs):
    for name in names.split():
        ACCEPTED.append(pytest.param(name, operands, attrs, results, id=f"{name}-{len(ACCEPTED)}"))


def refuse(names, operands, reason, **attrs):
    for name in names.split():
        REFUSED.append(pytest.param(name, operands, attrs, reason, id=f"{name}-{len(REFUSED)}"))


def s(dtype):
    return TileType(dtype, ())


def r(dtype, *shape):
    return TileType(dtype, shape)


def sh(dtype, *shape):
    return TileType(dtype, shape, "shared")


def buf(dtype, *shape):
    return TileType(dtype, shape, "buffer")


GL = TensorType(f32, 2)
GL3 = TensorType(bf16, 3)

# -- constants and shapes
accept("constant", [], [s(i32)], value=-3, dtype=i32)
accept("constant", [], [s(bool_)], value=True, dtype=bool_)
accept("constant", [], [s(bf16)], value=float("nan"), dtype=bf16)
refuse("constant", [], "1 is no constant of f32", value=1, dtype=f32)
refuse("constant", [], "True is no constant of i32", value=True, dtype=i32)
refuse("constant", [], "2147483648 is no constant of i32", value=2**31, dtype=i32)
accept("iota", [], [r(i32, 4, 8)], shape=(4, 8), axis=1)
refuse("iota", [], "iota axis 1 is outside shape [4]", shape=(4,), axis=1)
accept("expand_dims", [r(f32, 4)], [r(f32, 4, 1)], axis=1)
accept("expand_dims", [r(f32, 4)], [r(f32, 1, 4)], axis=0)
refuse("expand_dims", [r(f32, 4, 4)], "makes a vector a row or column", axis=0)
refuse("expand_dims", [r(f32, 4)], "axis 2", axis=2)
accept("squeeze", [r(f32, 4, 1)], [r(f32, 4)], axis=1)
refuse("squeeze", [r(f32, 4, 1)], "drops an axis of extent 1", axis=0)
refuse("squeeze", [r(f32, 4, 1)], "axis 2", axis=2)
accept("broadcast", [s(f32)], [r(f32, 4, 8)], shape=(4, 8))
accept("broadcast", [r(i8, 1, 8)], [r(i8, 4, 8)], shape=(4, 8))
refuse("broadcast", [r(f32, 2, 8)], "cannot broadcast rt<f32, 2x8> to shape [4, 8]", shape=(4, 8))
refuse("broadcast", [r(f32, 8)], "cannot broadcast", shape=(4, 8))
accept("transpose", [sh(f16, 4, 8)], [sh(f16, 8, 4)])
refuse("transpose", [r(f16, 4)], "transpose takes a 2-D tile")
accept("slice", [sh(f16, 8, 8)], [sh(f16, 2, 8)], offsets=(6, 0), shape=(2, 8))
refuse("slice", [r(f16, 8, 8)], "slice [6:9] is outside an extent of 8", offsets=(6, 0), shape=(3, 8))
refuse("slice", [r(f16, 8, 8)], "slice [-1:1] is outside", offsets=(-1, 0), shape=(2, 8))
refuse("slice", [r(f16, 8, 8)], "one range per dimension", offsets=(0,), shape=(2,))
accept("concat", [r(f32, 2, 4), r(f32, 3, 4)], [r(f32, 5, 4)], axis=0)
refuse("concat", [r(f32, 2, 4), r(f32, 3, 4)], "cannot concatenate", axis=1)
refuse("concat", [r(f32, 2, 4), r(f16, 2, 4)], "cannot concatenate", axis=0)
refuse("concat", [], "at least one tile", axis=0)
refuse("concat", [s(f32)], "concat axis 0 is outside", axis=0)
accept("deinterleave", [r(f32, 4, 8)], [r(f32, 4, 4), r(f32, 4, 4)])
refuse("deinterleave", [r(f32, 4, 7)], "even last extent")
accept("interleave", [r(f32, 4), r(f32, 4)], [r(f32, 8)])
refuse("interleave", [r(f32, 4), r(f32, 5)], "operands differ")
refuse("interleave", [s(f32), s(f32)], "takes vectors or tiles")
accept("copy", [r(f32, 4, 4)], [sh(f32, 4, 4)], space="shared")
accept("copy", [sh(f32, 4)], [r(f32, 4)], space="register")
refuse("copy", [s(f32)], "copy moves a tile", space="shared")
refuse("copy", [buf(f32, 4)], "must be a tile", space="register")
accept("distribute", [r(f32, 4, 4)], [r(f32, 4, 4)], over=(2, 1))
refuse("distribute", [r(f32, 4, 4)], "one count per dimension", over=(2,))
refuse("distribute", [r(f32, 4, 4)], "one count per dimension", over=(0, 1))

# -- elementwise
accept(UNARY_FLOAT, [r(bf16, 4)], [r(bf16, 4)])
refuse(UNARY_FLOAT, [r(i32, 4)], "not defined for i32")
refuse(UNARY_FLOAT, [r(fp8e4m3, 4)], "not defined for fp8e4m3")
refuse(UNARY_FLOAT, [sh(f32, 4)], "must be in registers")
accept("neg abs relu", [r(i8, 4, 4)], [r(i8, 4, 4)])
refuse("neg abs relu", [s(bool_)], "not defined for bool")
accept("not", [s(bool_)], [s(bool_)])
refuse("not", [s(f32)], "not defined for f32")
accept("isnan", [r(fp8e5m2, 4)], [r(bool_, 4)])
refuse("isnan", [r(i32, 4)], "not defined for i32")
accept("add sub mul", [r(f16, 4), r(f16, 4)], [r(f16, 4)])
accept("add sub mul", [s(i64), s(i64)], [s(i64)])
refuse("add sub mul", [s(bool_), s(bool_)], "not defined for bool")
refuse("add sub mul", [r(f16, 4), r(f32, 4)], "operands differ")
refuse("add sub mul", [r(f16, 4), r(f16, 1)], "operands differ")
refuse("add sub mul", [s(f32)], "1 operands instead of (a, b)")
accept("div", [r(f32, 4), r(f32, 4)], [r(f32, 4)])
refuse("div", [s(i32), s(i32)], "not defined for i32")
accept("floordiv mod", [s(i32), s(i32)], [s(i32)])
refuse("floordiv mod", [s(f32), s(f32)], "not defined for f32")
accept("max min", [r(bf16, 4), r(bf16, 4)], [r(bf16, 4)], nan="ignore")
refuse("max min", [s(f32), s(f32)], "nan is one of propagate, ignore, got 'skip'", nan="skip")
refuse("max min", [s(bool_), s(bool_)], "not defined for bool", nan="ignore")
accept("and or xor", [r(bool_, 4), r(bool_, 4)], [r(bool_, 4)])
refuse("and or xor", [s(f32), s(f32)], "not defined for f32")
accept("shl shr", [s(i32), s(i32)], [s(i32)])
refuse("shl shr", [s(bool_), s(bool_)], "not defined for bool")
accept("eq ne lt le gt ge", [r(fp8e4m3, 4), r(fp8e4m3, 4)], [r(bool_, 4)])
refuse("eq ne lt le gt ge", [s(i32), s(f32)], "operands differ")
accept("select", [r(bool_, 4), r(f32, 4), r(f32, 4)], [r(f32, 4)])
refuse("select", [s(bool_), r(f32, 4), r(f32, 4)], "does not fit")
refuse("select", [r(i32, 4), r(f32, 4), r(f32, 4)], "does not fit")
accept("fma", [s(f32)] * 3, [s(f32)])
refuse("fma", [s(i32)] * 3, "fma is for f32, f16 and bf16")
accept("cast", [sh(f32, 4, 4)], [sh(fp8e4m3, 4, 4)], dtype=fp8e4m3, rounding="rne", saturate=True)
refuse("cast", [s(f32)], "rounding is one of", dtype=f16, rounding="up", saturate=False)
refuse("cast", [buf(f32, 4)], "must be a tile", dtype=f16, rounding="rne", saturate=False)
accept("bitcast", [s(f32)], [s(i32)], dtype=i32)
refuse("bitcast", [s(f32)], "cannot bitcast f32 to i64", dtype=i64)
refuse("bitcast", [s(i8)], "cannot bitcast i8 to bool", dtype=bool_)

# -- reductions, matrix products, random numbers
accept("reduce_max reduce_min", [r(f32, 4, 8)], [r(f32, 4)], axis=1, nan="propagate")
refuse("reduce_max reduce_min", [r(f32, 4)], "reduction axis 1 is outside", axis=1, nan="propagate")
refuse("reduce_max reduce_min", [r(f32, 4)], "nan is one of", axis=0, nan=None)
accept("reduce_sum reduce_prod", [r(bf16, 4)], [s(bf16)], axis=0)
refuse("reduce_sum reduce_prod", [r(bool_, 4)], "not defined for bool", axis=0)
refuse("reduce_sum reduce_prod", [s(f32)], "is outside f32", axis=0)
accept("cumsum", [r(i32, 4, 8)], [r(i32, 4, 8)], axis=0, reverse=True, exclusive=False)
refuse("cumsum", [r(i32, 4, 8)], "axis 2 is outside", axis=2, reverse=True, exclusive=False)
MMA = {"transpose_a": False, "transpose_b": True, "precision": "ieee"}
accept("mma", [r(f32, 4, 8), sh(bf16, 4, 16), sh(bf16, 8, 16)], [r(f32, 4, 8)], **MMA)
accept("mma", [r(i32, 4, 8), r(i8, 4, 16), r(i8, 8, 16)], [r(i32, 4, 8)], **MMA)
accept("mma", [r(f32, 4, 8), r(fp8e4m3, 4, 16), r(fp8e5m2, 8, 16)], [r(f32, 4, 8)], **MMA)
refuse("mma", [r(f32, 4, 8), r(fp8e4m3, 4, 16), r(fp8e4m3fnuz, 8, 16)], "no matrix product", **MMA)
refuse("mma", [r(f32, 4, 8), r(f16, 4, 16), r(bf16, 8, 16)], "no matrix product", **MMA)
refuse("mma", [r(f16, 4, 8), r(f16, 4, 16), r(f16, 8, 16)], "no matrix product", **MMA)
refuse("mma", [r(f32, 4, 8), r(f16, 4, 16), r(f16, 16, 8)], "mma shapes do not fit", **MMA)
refuse("mma", [r(f32, 4), r(f16, 4, 16), r(f16, 16, 8)], "mma takes 2-D tiles", **MMA)
refuse("mma", [sh(f32, 4, 8), r(f16, 4, 16), r(f16, 8, 16)], "accumulator must be in registers", **MMA)
refuse("mma", [r(f32, 4, 8), r(f32, 4, 16), r(f32, 8, 16)], "precision is one of", **{**MMA, "precision": "fast"})
accept("random_bits", [s(i64), s(i64), s(i32), s(i32)], [r(i32, 4, 8)], shape=(4, 8))
refuse("random_bits", [s(i32), s(i64), s(i32), s(i32)], "seed must be an i64 scalar", shape=(4, 8))
refuse("random_bits", [s(i64), s(i64), s(i32), s(i32)], "makes vectors and tiles", shape=())

# -- memory
accept("dim", [GL], [s(i32)], axis=1)
refuse("dim", [GL], "axis 2 is outside", axis=2)
refuse("dim", [s(f32)], "expected a global tensor", axis=0)
LOAD = {"type": sh(bf16, 4, 8), "axes": (1, 2), "unit": "tile"}
accept("load", [GL3, s(bf16), s(i32), s(i64), s(i32)], [sh(bf16, 4, 8)], **LOAD)
refuse("load", [GL3, s(bf16), s(i32), s(i32)], "takes 3 coordinate(s), got 2", **LOAD)
refuse("load", [GL3, s(bf16), s(i32), s(f32), s(i32)], "a coordinate must be an integer scalar", **LOAD)
refuse("load", [GL3, s(f32), s(i32), s(i32), s(i32)], "fill value must be a bf16 scalar", **LOAD)
refuse("load", [GL3, s(bf16)] + [s(i32)] * 3, "axes (2, 1) do not fit", **{**LOAD, "axes": (2, 1)})
refuse("load", [GL3, s(bf16)] + [s(i32)] * 3, "axes (1, 3) are outside", **{**LOAD, "axes": (1, 3)})
refuse("load", [GL3, s(bf16)] + [s(i32)] * 3, "dtypes differ", **{**LOAD, "type": r(f32, 4, 8)})
refuse("load", [GL3, s(bf16)] + [s(i32)] * 3, "unit is 'tile' or 'element'", **{**LOAD, "unit": "row"})
refuse("load", [GL3, s(bf16)] + [s(i32)] * 3, "the type must be a tile", **{**LOAD, "type": buf(bf16, 4, 8)})
STORE = {"axes": (0, 1), "unit": "element"}
accept("store atomic_add", [GL, r(f32, 4, 8), s(i32), s(i32)], [], **STORE)
refuse("store atomic_add", [GL, r(f32, 4), s(i32), s(i32)], "axes (0, 1) do not fit", **STORE)
refuse("store", [GL, r(f16, 4, 8), s(i32), s(i32)], "cannot store rt<f16, 4x8>", **STORE)
refuse("atomic_add", [TensorType(i8, 2), r(i8, 4, 8), s(i32), s(i32)], "not defined for i8", **STORE)
accept("shared_alloc", [], [buf(f32, 4, 8)], type=sh(f32, 4, 8))
refuse("shared_alloc", [], "made from a shared tile type", type=r(f32, 4, 8))
accept("shared_read", [buf(f32, 4, 8), s(i32), s(i32)], [r(f32, 2, 8)], type=r(f32, 2, 8))
refuse("shared_read", [buf(f32, 4, 8), s(i32), s(i32)], "dtypes differ", type=r(f16, 2, 8))
refuse("shared_read", [sh(f32, 4, 8), s(i32), s(i32)], "expected a tile of ww.shared", type=r(f32, 2, 8))
accept("shared_write", [buf(f32, 4, 8), r(f32, 2, 8), s(i32), s(i32)], [])
refuse("shared_write", [buf(f32, 4, 8), r(f32, 2, 8), s(i32)], "one offset per dimension")
refuse("shared_write", [buf(f32, 4, 8), sh(f32, 2, 8), s(i32), s(i32)], "must be in registers")

# -- control
accept("grid", [s(i32), s(i32)], [s(i32), s(i32)])
refuse("grid", [s(i64)], "grid sizes are i32 scalars")
refuse("grid", [], "1 to 4 dimensions, got 0")
accept("barrier", [], [])
refuse("barrier", [s(i32)], "1 operands instead of ()")
accept("print", [r(f32, 4), s(bool_)], [], message="x")
refuse("print", [], "attribute 'message' is missing")
accept("check", [r(bool_, 4)], [], message="x")
refuse("check", [s(i32)], "check takes a bool", message="x")
FOR = {"kind": "pipeline", "stages": 3}
accept("for", [s(i32)] * 3 + [r(f32, 4), s(bool_)], [r(f32, 4), s(bool_)], **FOR)
refuse("for", [s(i32), s(i64), s(i32)], "loop stop must be an i32 scalar", **FOR)
refuse("for", [s(i32)] * 2, "2 operands instead of (start, stop, step, carried*)", **FOR)
refuse("for", [s(i32)] * 3, "unknown loop kind 'sometimes'", kind="sometimes", stages=None)
refuse("for", [s(i32)] * 3, "a loop cannot have 2 stages", kind="loop", stages=2)
refuse("for", [s(i32)] * 3, "a pipeline cannot have 0 stages", kind="pipeline", stages=0)
accept("if", [s(bool_)], [r(f32, 4)], types=(r(f32, 4),))
refuse("if", [r(bool_, 4)], "an if condition is a bool scalar", types=())
accept("while", [s(i32), r(f32, 4)], [s(i32), r(f32, 4)])
refuse("while", [s(i32)], "attribute 'types' is unknown", types=())
accept("yield", [s(i32)], [])
refuse("yield", [s(i32)], "attribute 'value' is unknown", value=1)
accept("condition", [s(bool_), s(i32)], [])
refuse("condition", [], "0 operands instead of (condition, value*)")


@pytest.mark.parametrize(("name", "operands", "attrs", "results"), ACCEPTED)
def test_accepted(name, operands, attrs, results):
    assert OPS[name].result_types(operands, attrs) == results


@pytest.mark.parametrize(("name", "operands", "attrs", "reason"), REFUSED)
def test_refused(name, operands, attrs, reason):
    with pytest.raises(TileError, match=re.escape(reason)):
        OPS[name].result_types(operands, attrs)


@pytest.mark.parametrize("table", ["ACCEPTED", "REFUSED"])
def test_every_op_has_a_case(table):
    assert {case.values[0] for case in globals()[table]} == set(OPS)


@pytest.mark.parametrize(("name", "operands", "attrs", "results"), ACCEPTED)
def test_every_attribute_is_required(name, operands, attrs, results):
    for missing in attrs:
        with pytest.raises(TileError, match=f"attribute '{missing}' is missing"):
            OPS[name].result_types(operands, {k: v for k, v in attrs.items() if k != missing})


def test_every_op_says_what_it_does():
    assert all(op.summary and op.name for op in OPS.values())
