"""The contract speaks of every op on every dtype that it takes, and the oracle does what the contract says."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.conformance.clauses import CLAUSES, clause_of, dtypes_of, example
from warpwave.tiles.dtypes import BY_NAME, bool_, f32, i8
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.ir.opdefs import OPS
from warpwave.tiles.reference import Oracle
from warpwave.tiles.reference.bounded import certain
from warpwave.tiles.reference.conversion import as_numbers

COMPUTED = [op for op in OPS if OPS[op].effect == "none" and op not in ("constant", "dim")]


@pytest.mark.parametrize("op", OPS)
def test_every_op_has_one_clause_for_each_dtype(op):
    """A new op or dtype fails here until the contract speaks of it."""
    dtypes = list(dtypes_of(op))
    assert dtypes
    for dtype in dtypes:
        assert clause_of(op, dtype).reason


def test_clauses_speak_only_of_ops_that_exist():
    assert {op for clause in CLAUSES for op in clause.ops.split()} == set(OPS)


def test_ops_of_a_clause_take_the_same_dtypes():
    """The page lists those of the first; where they differ it says so instead."""
    for clause in (c for c in CLAUSES if c.kinds != "float int bool"):
        taken = {tuple(d.name for d in dtypes_of(op) if clause.covers(op, d)) for op in clause.ops.split()}
        assert len(taken) == 1, clause.ops


def test_a_missing_clause_is_found():
    with pytest.raises(LookupError, match="0 clauses of the contract speak of exp on i8"):
        clause_of("exp", i8)


@pytest.mark.parametrize(
    ("op", "names"),
    [
        ("exp", "f32 f16 bf16"),
        ("shl", "i64 i32 i8"),
        ("mma", "f32 f16 bf16 fp8e4m3 fp8e5m2 fp8e4m3fnuz fp8e5m2fnuz i8"),
        ("atomic_add", "f32 f16 bf16 i32"),
        ("random_bits", "i32"),
        ("and", "i64 i32 i8 bool"),
    ],
)
def test_the_dtypes_of_an_op(op, names):
    assert [d.name for d in dtypes_of(op)] == names.split()


def numbers(type_, rng):
    """Elements that no function gives exactly, but for bools."""
    if type_.dtype.is_float:
        return as_numbers(rng.uniform(0.3, 0.7, type_.shape).astype(type_.dtype.numpy), type_.dtype)
    if type_.dtype == bool_:
        return rng.integers(0, 2, type_.shape).astype(bool)
    return rng.integers(1, 7, type_.shape).astype(type_.dtype.numpy)


@pytest.mark.parametrize("op", COMPUTED)
def test_the_oracle_is_exact_where_the_contract_is(op):
    """And allows an error where the contract states a bound."""
    rng = np.random.default_rng(0)
    for dtype in dtypes_of(op):
        use = example(op, dtype)
        results = [Value(t) for t in OPS[op].result_types(use.operands, use.attrs)]
        node = Op(op, [Value(t) for t in use.operands], use.attrs, results, [], None)
        operands = [certain(numbers(t, rng)) for t in use.operands]
        unsure = any(r.unsure.any() for r in Oracle().compute(node, operands))
        if dtype == f32 or clause_of(op, dtype).exact:  # few numbers of a short format may all be certain
            assert unsure != clause_of(op, dtype).exact, dtype


def test_the_examples_are_of_every_dtype():
    seen = {dtype.name for op in OPS for dtype in dtypes_of(op)}
    assert seen == set(BY_NAME)
    assert example("mma", f32).operands[0].dtype == f32
