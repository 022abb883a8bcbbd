"""Checks that a kernel obeys the IR's rules; a failure is a defect of whoever built or changed the IR."""

from __future__ import annotations

from typing import NoReturn

from warpwave.tiles.dtypes import bool_, i32
from warpwave.tiles.errors import InternalError, TileError
from warpwave.tiles.ir.core import Block, Kernel, Op, Value
from warpwave.tiles.ir.opdefs import OPS, TERMINATORS
from warpwave.tiles.types import TileType, Type, scalar


def verify(kernel: Kernel) -> None:
    """Raise InternalError, with the op and the user's location, at the first broken rule."""
    if len(kernel.param_names) != len(kernel.params):
        raise InternalError(f"kernel {kernel.name}: {len(kernel.param_names)} names for {len(kernel.params)} arguments")
    grids = [op for op in kernel.body.ops if op.name == "grid"]
    if len(grids) > 1:
        _fail(grids[1], "a second grid in one kernel")
    _block(kernel.body, set(), top=True)
    if grids:
        _check_grid(kernel, grids[0])


def _fail(op: Op, why: str) -> NoReturn:
    raise InternalError(f"invalid IR at `{op.name}`: {why}", loc=op.loc)


def _block(block: Block, visible: set[Value], *, top: bool = False) -> None:
    visible = visible | set(block.args)
    for position, op in enumerate(block.ops):
        if op.name not in OPS:
            _fail(op, "unknown op")
        _operands(op, visible)
        if op.name in TERMINATORS and (top or position != len(block.ops) - 1):
            _fail(op, "a terminator may only end a region")
        if op.name == "grid" and not top:
            _fail(op, "grid belongs to the kernel's top level")
        _op(op)
        for region in op.regions:
            _region(op, region, visible)
        _define_results(op, visible)


def _operands(op: Op, visible: set[Value]) -> None:
    for index, operand in enumerate(op.operands):
        if operand not in visible:
            _fail(op, f"operand {index} ({operand.type}) is used before or outside its definition")


def _define_results(op: Op, visible: set[Value]) -> None:
    for result in op.results:
        if result in visible:
            _fail(op, "a value is defined twice")
        visible.add(result)


def _op(op: Op) -> None:
    definition = OPS[op.name]
    missing = [a for a in definition.attrs if a not in op.attrs]
    if missing:
        _fail(op, f"attribute {missing[0]!r} is missing")
    if len(op.regions) != definition.regions:
        _fail(op, f"{len(op.regions)} regions instead of {definition.regions}")
    try:
        expected = definition.rule([v.type for v in op.operands], op.attrs)
    except TileError as error:
        _fail(op, error.message)
    _types(op, "results", [v.type for v in op.results], expected)


def _types(op: Op, what: str, actual: list[Type], expected: list[Type]) -> None:
    if actual != expected:
        _fail(op, f"{what} have types ({_list(actual)}) instead of ({_list(expected)})")


def _list(types: list[Type]) -> str:
    return ", ".join(map(str, types))


def _region(op: Op, region: Block, visible: set[Value]) -> None:
    _block(region, visible)
    if not region.ops or region.terminator.name not in TERMINATORS:
        _fail(op, "a region does not end with a terminator")
    carried = [v.type for v in op.results]
    expected_args = {"for": [scalar(i32), *carried], "while": carried, "if": []}[op.name]
    _types(op, "region arguments", [v.type for v in region.args], expected_args)
    end = region.terminator
    is_condition = op.name == "while" and region is op.regions[0]
    if (end.name == "condition") != is_condition:
        _fail(op, f"region ends with {end.name}")
    expected_end = [scalar(bool_), *carried] if is_condition else carried
    _types(op, "terminator operands", [v.type for v in end.operands], expected_end)


def _check_grid(kernel: Kernel, grid: Op) -> None:
    """Grid sizes are computed on the host, so they may depend on arguments and arithmetic only."""
    before = Block(kernel.params, kernel.body.ops[: kernel.body.ops.index(grid)])
    if not host_values(before).issuperset(grid.operands):
        _fail(grid, "a grid size depends on more than arguments, tensor extents and constants")


def host_values(body: Block) -> set[Value]:
    """The scalars of a kernel's body that follow from its arguments by arithmetic alone."""
    known = set(body.args)
    for op in body.ops:
        scalars = all(isinstance(v.type, TileType) and v.type.is_scalar for v in op.results)
        if scalars and OPS[op.name].effect == "none" and known.issuperset(op.operands):
            known.update(op.results)
    return known
