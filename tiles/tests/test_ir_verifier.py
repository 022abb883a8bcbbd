"""Each rule of the IR, broken once by hand: the verifier names the op, the reason and the user's line."""

from __future__ import annotations

import pytest

from warpwave.tiles.dtypes import bool_, f32, i32
from warpwave.tiles.errors import InternalError, Loc
from warpwave.tiles.ir import Block, Builder, Kernel, Op, Value, verify
from warpwave.tiles.types import TensorType, TileType, scalar

TILE = TileType(f32, (4, 8))


class Example:
    """A small valid kernel with one of everything that rules speak of, to be broken."""

    def __init__(self):
        self.tensor, self.n = Value(TensorType(f32, 2)), Value(scalar(i32))
        self.body = Block([self.tensor, self.n])
        self.builder = builder = Builder(self.body)
        builder.loc = Loc("kernel.py", 7, 4, 9)
        builder.emit("grid", [self.n])
        self.zero = builder.constant(0, i32)
        self.fill = builder.constant(0.0, f32)
        load = {"type": TILE, "axes": (0, 1), "unit": "tile"}
        self.tile = builder.emit1("load", [self.tensor, self.fill, self.zero, self.zero], **load)
        self.loop_body = self.region([scalar(i32), TILE], lambda args: builder.emit("yield", [args[1]]))
        bounds = [self.zero, self.n, self.n]
        (self.result,) = builder.emit("for", [*bounds, self.tile], [self.loop_body], kind="loop", stages=None)
        self.loop = self.body.ops[-1]
        self.flag = builder.emit1("lt", [self.n, self.zero])
        self.then = self.region([], lambda _: builder.emit("yield", [self.zero]))
        self.other = self.region([], lambda _: builder.emit("yield", [self.n]))
        builder.emit("if", [self.flag], [self.then, self.other], types=(scalar(i32),))
        self.branch = self.body.ops[-1]
        self.test = self.region([scalar(i32)], lambda args: builder.emit("condition", [self.flag, *args]))
        self.again = self.region([scalar(i32)], lambda args: builder.emit("yield", args))
        builder.emit("while", [self.n], [self.test, self.again])
        self.repeat = self.body.ops[-1]
        builder.emit("store", [self.tensor, self.result, self.zero, self.zero], axes=(0, 1), unit="tile")
        self.store = self.body.ops[-1]
        self.kernel = Kernel("example", ["x", "n"], {}, self.body, None)

    def region(self, types, fill):
        block = Block([Value(t) for t in types])
        with self.builder.inside(block):
            fill(block.args)
        return block


def test_the_example_is_valid():
    verify(Example().kernel)


def _names_do_not_match(e):
    e.kernel.param_names.pop()


def _two_parameters_of_one_name(e):
    e.kernel.param_names[1] = "x"


def _unknown_op(e):
    e.body.ops.append(Op("frobnicate", [], {}, [], [], None))


def _used_before_its_definition(e):
    e.body.ops.insert(0, e.body.ops.pop())


def _used_outside_its_region(e):
    e.store.operands[1] = e.loop_body.args[1]


def _used_in_the_other_branch(e):
    with e.builder.inside(Block()) as block:
        value = e.builder.constant(3, i32)
    e.then.ops[:0] = block.ops
    e.other.terminator.operands[0] = value


def _defined_twice(e):
    e.body.ops.append(Op("constant", [], {"value": 0, "dtype": i32}, [e.zero], [], None))


def _defined_in_two_branches(e):
    with e.builder.inside(Block()) as block:
        e.builder.constant(3, i32)
    e.then.ops[:0] = block.ops
    e.other.ops[:0] = block.ops


def _argument_of_two_regions(e):
    e.again.args = e.test.args
    e.again.terminator.operands = list(e.test.args)


def _terminator_at_the_top(e):
    e.builder.emit("yield", [])


def _terminator_in_the_middle(e):
    e.then.ops *= 2


def _no_terminator(e):
    e.then.ops.clear()


def _condition_ends_a_branch(e):
    e.then.ops = [Op("condition", [e.flag, e.zero], {}, [], [], None)]


def _yield_ends_a_condition(e):
    e.test.ops = [Op("yield", list(e.test.args), {}, [], [], None)]


def _yields_another_type(e):
    e.then.terminator.operands[0] = e.flag


def _yields_too_few(e):
    e.loop_body.terminator.operands.clear()


def _region_argument_of_another_type(e):
    e.loop_body.args[1].type = scalar(f32)


def _branch_with_arguments(e):
    e.then.args = [Value(scalar(i32))]


def _condition_without_a_bool(e):
    e.test.terminator.operands[0] = e.test.args[0]


def _one_region_too_few(e):
    e.branch.regions.pop()


def _result_of_another_type(e):
    e.tile.type = TileType(f32, (8, 4))


def _missing_attribute(e):
    e.store.attrs = {"axes": (0, 1)}


def _unknown_attribute(e):
    e.store.attrs = {**e.store.attrs, "swizzle": 3}


def _too_few_operands(e):
    e.body.ops.append(Op("add", [e.zero], {}, [Value(scalar(i32))], [], None))


def _too_many_operands(e):
    e.body.ops.append(Op("add", [e.zero] * 3, {}, [Value(scalar(i32))], [], None))


def _operands_differ(e):
    e.body.ops.append(Op("add", [e.zero, e.fill], {}, [Value(scalar(i32))], [], None))


def _second_grid(e):
    e.builder.emit("grid", [e.n])


def _grid_in_a_region(e):
    e.then.ops.insert(0, Op("grid", [e.n], {}, [Value(scalar(i32))], [], None))


def _grid_from_a_branch(e):
    e.body.ops.append(e.body.ops.pop(0))
    e.body.ops[-1].operands[0] = e.branch.results[0]


def _wrong_constant(e):
    e.body.ops[1].attrs = {"value": 0.5, "dtype": i32}


BREAKS = {
    _names_do_not_match: "kernel example: parameters (x) for 2 arguments",
    _two_parameters_of_one_name: "kernel example: parameters (x, x) for 2 arguments",
    _unknown_op: "`frobnicate`: unknown op",
    _used_before_its_definition: "`store`: operand 1 (rt<f32, 4x8>) is used before or outside its definition",
    _used_outside_its_region: "`store`: operand 1 (rt<f32, 4x8>) is used before or outside its definition",
    _used_in_the_other_branch: "`yield`: operand 0 (i32) is used before or outside its definition",
    _defined_twice: "`constant`: a value (i32) is defined twice",
    _defined_in_two_branches: "`constant`: a value (i32) is defined twice",
    _argument_of_two_regions: "`while`: a value (i32) is defined twice",
    _terminator_at_the_top: "`yield`: a terminator may only end a region",
    _terminator_in_the_middle: "`yield`: a terminator may only end a region",
    _no_terminator: "`if`: a region does not end with yield",
    _condition_ends_a_branch: "`if`: a region does not end with yield",
    _yield_ends_a_condition: "`while`: a region does not end with condition",
    _yields_another_type: "`if`: terminator operands have types (bool) instead of (i32)",
    _yields_too_few: "`for`: terminator operands have types () instead of (rt<f32, 4x8>)",
    _region_argument_of_another_type: "`for`: region arguments have types (i32, f32) instead of (i32, rt<f32, 4x8>)",
    _branch_with_arguments: "`if`: region arguments have types (i32) instead of ()",
    _condition_without_a_bool: "`while`: terminator operands have types (i32, i32) instead of (bool, i32)",
    _one_region_too_few: "`if`: 1 regions instead of 2",
    _result_of_another_type: "`load`: results have types (rt<f32, 8x4>) instead of (rt<f32, 4x8>)",
    _missing_attribute: "`store`: attribute 'unit' is missing",
    _unknown_attribute: "`store`: attribute 'swizzle' is unknown",
    _too_few_operands: "`add`: 1 operands instead of (a, b)",
    _too_many_operands: "`add`: 3 operands instead of (a, b)",
    _operands_differ: "`add`: operands differ: i32, f32",
    _second_grid: "`grid`: a second grid in one kernel",
    _grid_in_a_region: "`grid`: grid belongs to the kernel's top level",
    _grid_from_a_branch: "`grid`: a grid size depends on more than arguments, tensor extents and constants",
    _wrong_constant: "`constant`: 0.5 is no constant of i32",
}


@pytest.mark.parametrize(("breaks", "message"), BREAKS.items(), ids=[f.__name__[1:] for f in BREAKS])
def test_broken_rule(breaks, message):
    example = Example()
    breaks(example)
    with pytest.raises(InternalError) as caught:
        verify(example.kernel)
    assert message in caught.value.message


def test_the_error_points_at_the_users_line():
    example = Example()
    _unknown_attribute(example)
    with pytest.raises(InternalError, match=r'File "kernel.py", line 7'):
        verify(example.kernel)


def test_bool_is_not_an_i32():
    example = Example()
    example.loop.operands[1] = example.builder.constant(True, bool_)
    with pytest.raises(InternalError):
        verify(example.kernel)
