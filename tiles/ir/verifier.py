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
    names = kernel.param_names
    if len(names) != len(kernel.params) or len(set(names)) != len(names):
        raise InternalError(f"kernel {kernel.name}: parameters ({', '.join(names)}) for {len(kernel.params)} arguments")
    _Verifier().block(kernel.body, set(), top=True)
    grids = [op for op in kernel.body.ops if op.name == "grid"]
    if len(grids) > 1:
        _fail(grids[1], "a second grid in one kernel")
    if grids:
        _check_grid(kernel, grids[0])


def _fail(op: Op, why: str) -> NoReturn:
    raise InternalError(f"invalid IR at `{op.name}`: {why}", loc=op.loc)


class _Verifier:
    """Walks a kernel; `defined` holds every value seen, as each is defined once in the whole kernel."""

    def __init__(self) -> None:
        self.defined: set[Value] = set()

    def block(self, block: Block, visible: set[Value], *, top: bool = False) -> None:
        """`visible` are the values of the enclosing blocks that this one may use."""
        visible = visible | set(block.args)
        self.defined.update(block.args)
        for position, op in enumerate(block.ops):
            if op.name not in OPS:
                _fail(op, "unknown op")
            if op.name in TERMINATORS and (top or position != len(block.ops) - 1):
                _fail(op, "a terminator may only end a region")
            if op.name == "grid" and not top:
                _fail(op, "grid belongs to the kernel's top level")
            _check_operands(op, visible)
            _check_types(op)
            for region in op.regions:
                self.region(op, region, visible)
            self.define(op, op.results)
            visible.update(op.results)

    def region(self, op: Op, region: Block, visible: set[Value]) -> None:
        """One region of `for`, `while` or `if`."""
        carried = [v.type for v in op.results]
        is_condition = op.name == "while" and region is op.regions[0]
        expected_args = {"for": [scalar(i32), *carried], "while": carried, "if": []}[op.name]
        _compare_types(op, "region arguments", [v.type for v in region.args], expected_args)
        self.define(op, region.args)
        self.block(region, visible)
        expected = "condition" if is_condition else "yield"
        if not region.ops or region.terminator.name != expected:
            _fail(op, f"a region does not end with {expected}")
        expected_end = [scalar(bool_), *carried] if is_condition else carried
        _compare_types(op, "terminator operands", [v.type for v in region.terminator.operands], expected_end)

    def define(self, op: Op, values: list[Value]) -> None:
        """New values."""
        for value in values:
            if value in self.defined:
                _fail(op, f"a value ({value.type}) is defined twice")
            self.defined.add(value)


def _check_operands(op: Op, visible: set[Value]) -> None:
    for index, operand in enumerate(op.operands):
        if operand not in visible:
            _fail(op, f"operand {index} ({operand.type}) is used before or outside its definition")


def _check_types(op: Op) -> None:
    definition = OPS[op.name]
    if len(op.regions) != definition.regions:
        _fail(op, f"{len(op.regions)} regions instead of {definition.regions}")
    try:
        expected = definition.result_types([v.type for v in op.operands], op.attrs)
    except TileError as error:
        _fail(op, error.message)
    _compare_types(op, "results", [v.type for v in op.results], expected)


def _compare_types(op: Op, what: str, actual: list[Type], expected: list[Type]) -> None:
    if actual != expected:
        _fail(op, f"{what} have types ({_list(actual)}) instead of ({_list(expected)})")


def _list(types: list[Type]) -> str:
    return ", ".join(map(str, types))


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
