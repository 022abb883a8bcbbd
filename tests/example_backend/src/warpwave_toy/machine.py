"""Executes the IR: a scalar is a Python number, a vector a list, a tile a list of lists."""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from warpwave.tiles.ir import Block, Kernel, Op, Value
from warpwave.tiles.runtime.arrays import Array


def nested(shape: tuple[int, ...], element: Callable[[tuple[int, ...]], Any]) -> Any:
    """A nested list of this shape whose elements are given by index."""
    if not shape:
        return element(())
    return [nested(shape[1:], lambda rest, i=i: element((i, *rest))) for i in range(shape[0])]


def at(tile: Any, index: tuple[int, ...]) -> Any:
    """The element at an index."""
    for i in index:
        tile = tile[i]
    return tile


def rounded(value: Any, dtype: Any) -> Any:
    """A Python number as the dtype holds it."""
    if dtype.name == "f32":
        return struct.unpack("f", struct.pack("f", value))[0]
    if dtype.name == "i32":
        return (int(value) + 2**31) % 2**32 - 2**31
    return bool(value)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "select": lambda condition, a, b: a if condition else b,
    "cast": lambda x: x,
}


class Machine:
    """One launch."""

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Array | int | float | bool]) -> None:
        self.kernel = kernel
        self.values: dict[Value, Any] = dict(
            zip(kernel.params, (arguments[n] for n in kernel.param_names), strict=True)
        )
        self.coordinates: tuple[int, ...] = ()

    def run(self) -> None:
        """Run every block of the grid, in row-major order."""
        for self.coordinates in self.blocks():
            self.block(self.kernel.body)

    def blocks(self) -> Iterator[tuple[int, ...]]:
        """The coordinates of all blocks; what precedes the grid op is evaluated to know its sizes."""
        for op in self.kernel.body.ops:
            if op.name == "grid":
                sizes = [self.values[v] for v in op.operands]
                return itertools.product(*map(range, sizes))
            self.op(op)
        return iter([()])

    def block(self, block: Block) -> list[Any]:
        """Execute ops in order; the values of the terminating yield."""
        for op in block.ops:
            if op.name == "yield":
                return [self.values[v] for v in op.operands]
            self.op(op)
        return []

    def op(self, op: Op) -> None:
        """Execute one op."""
        operands = [self.values[v] for v in op.operands]
        results = OPS[op.name](self, op, *operands)
        self.values.update(zip(op.results, results, strict=True))


def _elementwise(_: Machine, op: Op, *operands: Any) -> list[Any]:
    shape, dtype = op.result.tile.shape, op.result.tile.dtype
    function = ELEMENTWISE[op.name]
    return [nested(shape, lambda i: rounded(function(*(at(x, i) for x in operands)), dtype))]


def _constant(_: Machine, op: Op) -> list[Any]:
    return [rounded(op.attrs["value"], op.attrs["dtype"])]


def _grid(machine: Machine, _: Op, *__: int) -> list[Any]:
    return list(machine.coordinates)


def _dim(_: Machine, op: Op, tensor: Array) -> list[Any]:
    return [tensor.shape[op.attrs["axis"]]]


def _iota(_: Machine, op: Op) -> list[Any]:
    return [nested(op.attrs["shape"], lambda i: i[op.attrs["axis"]])]


def _broadcast(_: Machine, op: Op, x: Any) -> list[Any]:
    source, shape = op.operands[0].tile.shape, op.attrs["shape"]
    if not source:
        return [nested(shape, lambda i: x)]
    return [nested(shape, lambda i: at(x, tuple(0 if n == 1 else k for k, n in zip(i, source, strict=True))))]


def _expand_dims(_: Machine, op: Op, x: list[Any]) -> list[Any]:
    return [[x] if op.attrs["axis"] == 0 else [[element] for element in x]]


def _element_index(op: Op, tensor: Array, coords: tuple[int, ...], shape: tuple[int, ...]) -> Callable[..., Any]:
    """From an index in the tile to one in the tensor, None outside."""
    axes = op.attrs["axes"]

    def locate(index: tuple[int, ...]) -> tuple[int, ...] | None:
        place = list(coords)
        for axis, i, extent in zip(axes, index, shape, strict=True):
            place[axis] = coords[axis] * (extent if op.attrs["unit"] == "tile" else 1) + i
        inside = all(0 <= p < n for p, n in zip(place, tensor.shape, strict=True))
        return tuple(place) if inside else None

    return locate


def _load(_: Machine, op: Op, tensor: Array, fill: Any, *coords: int) -> list[Any]:
    shape = op.result.tile.shape
    locate = _element_index(op, tensor, coords, shape)

    def element(index: tuple[int, ...]) -> Any:
        place = locate(index)
        return fill if place is None else tensor.host[place].item()

    return [nested(shape, element)]


def _store(_: Machine, op: Op, tensor: Array, tile: Any, *coords: int) -> list[Any]:
    shape = op.operands[1].tile.shape
    locate = _element_index(op, tensor, coords, shape)
    for index in itertools.product(*map(range, shape)):
        place = locate(index)
        if place is not None:
            tensor.host[place] = at(tile, index)
    return []


def _for(machine: Machine, op: Op, start: int, stop: int, step: int, *carried: Any) -> list[Any]:
    (body,) = op.regions
    state = list(carried)
    for counter in range(start, stop, step):
        machine.values.update(zip(body.args, [counter, *state], strict=True))
        state = machine.block(body)
    return state


def _if(machine: Machine, op: Op, condition: bool) -> list[Any]:
    return machine.block(op.regions[0 if condition else 1])


def _yield(_: Machine, __: Op, *___: Any) -> list[Any]:
    raise AssertionError("a yield ends its block")


OPS: dict[str, Callable[..., list[Any]]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "constant": _constant,
    "grid": _grid,
    "dim": _dim,
    "iota": _iota,
    "broadcast": _broadcast,
    "expand_dims": _expand_dims,
    "load": _load,
    "store": _store,
    "for": _for,
    "if": _if,
    "yield": _yield,
}
