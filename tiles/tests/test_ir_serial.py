"""Kernels as text and back: nothing is lost."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings

from warpwave.tiles import ir
from warpwave.tiles.dtypes import ALL, f32
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir.fingerprint import fingerprint
from warpwave.tiles.ir.serial import from_json, loc_from_json, loc_to_json, to_json
from warpwave.tiles.tests import (
    test_capture_containers,
    test_capture_expressions,
    test_capture_helpers,
    test_capture_programs,
)
from warpwave.tiles.tests.programs import captured
from warpwave.tiles.tests.random_programs import load_program, programs
from warpwave.tiles.types import TensorType, TileType

MODULES = (test_capture_containers, test_capture_expressions, test_capture_helpers, test_capture_programs)
PROGRAMS = [program for module in MODULES for program in module.PROGRAMS]


def check_round_trip(kernel):
    """Also by the printer, which was written for people and knows nothing of the text."""
    again = from_json(to_json(kernel), kernel.constants)
    ir.verify(again)
    assert fingerprint(again) == fingerprint(kernel)
    assert str(again) == str(kernel)
    assert again.constants == kernel.constants
    assert [op.loc for op in ir.walk(again.body)] == [op.loc for op in ir.walk(kernel.body)]
    for op, other in zip(ir.walk(kernel.body), ir.walk(again.body), strict=True):
        assert list(map(repr, other.attrs.items())) == list(map(repr, op.attrs.items()))
        assert [type(a) for a in other.attrs.values()] == [type(a) for a in op.attrs.values()]


def test_programs_survive_being_written():
    assert len(PROGRAMS) > 100
    for program in PROGRAMS:
        check_round_trip(captured(program).kernel)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_random_programs_survive_being_written(text):
    check_round_trip(captured(load_program(text)).kernel)


def one_op(**attrs):
    op = ir.Op("constant", [], attrs, [ir.Value(TileType(f32, ()), "a")], [], None)
    return ir.Kernel("k", ["x"], {}, ir.Block([ir.Value(TensorType(f32, 2), None)], [op]), None)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, math.inf, -math.inf, 5e-324, 0.1, 2**63 - 1, True, "", "text", None, (), ((1, 2.0), "a"), *ALL]
)
def test_attributes_keep_their_bits_and_kinds(value):
    kernel = one_op(value=value, type=TileType(f32, (3, 4), "shared"), tensor=TensorType(f32, 3))
    (op,) = from_json(to_json(kernel), {}).body.ops
    assert repr(op.attrs) == repr(kernel.body.ops[0].attrs)
    assert math.isnan(from_json(to_json(one_op(value=math.nan)), {}).body.ops[0].attrs["value"])


@pytest.mark.parametrize("value", [[1], {1: 2}, 1j, object(), b"x"], ids=range(5))
def test_other_attributes_are_refused(value):
    with pytest.raises(TypeError, match="cannot be written"):
        to_json(one_op(value=value))


def test_locations_with_callers():
    loc = Loc("a.py", 3, 1, 9, "helper", Loc("b.py", 7, 0, None, "", Loc("c.py", 1)))
    assert loc_from_json(loc_to_json(loc)) == loc
    assert loc_from_json(loc_to_json(None)) is None
