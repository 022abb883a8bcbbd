"""A kernel as JSON text and back, without its compile-time constants, which are Python objects of the caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from warpwave.tiles.dtypes import BY_NAME, DType
from warpwave.tiles.errors import Loc
from warpwave.tiles.ir.core import Block, Kernel, Op, Value
from warpwave.tiles.types import TensorType, TileType, Type


def to_json(kernel: Kernel) -> str:
    """The text that `from_json` reads; TypeError for an attribute of a kind that no op has."""
    writer = _Writer()
    body = writer.block(kernel.body)
    place = writer.loc(kernel.loc)
    return json.dumps([kernel.name, kernel.param_names, writer.types.items, writer.locs.items, body, place])


def from_json(text: str, constants: Mapping[str, Any]) -> Kernel:
    """The kernel that was written, with these constants."""
    name, params, types, locs, body, place = json.loads(text)
    reader = _Reader(types, locs)
    return Kernel(name, params, dict(constants), reader.block(body), reader.loc(place))


def loc_to_json(loc: Loc | None) -> Any:
    """A place in the user's source as lists, dicts, texts and numbers."""
    return None if loc is None else {**vars(loc), "caller": loc_to_json(loc.caller)}


def loc_from_json(found: Any) -> Loc | None:
    """The place that was written."""
    return None if found is None else Loc(**{**found, "caller": loc_from_json(found["caller"])})


class _Table:
    """Gives things that are written out once a number each."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, thing: Any, written: Any) -> int:
        """The number of a thing, which is written when it comes for the first time."""
        if thing not in self._numbers:
            self._numbers[thing] = len(self.items)
            self.items.append(written)
        return self._numbers[thing]


class _Writer:
    """Values have numbers in the order of their definitions, types and locations in that of their first use."""

    def __init__(self) -> None:
        self.types, self.locs = _Table(), _Table()
        self._values: dict[Value, int] = {}

    def loc(self, loc: Loc | None) -> int | None:
        """A location's number."""
        if loc is None:
            return None
        place = [loc.file, loc.line, loc.column, loc.end_column, loc.function, self.loc(loc.caller)]
        return self.locs.number(loc, place)

    def block(self, block: Block) -> list[Any]:
        """Arguments and ops."""
        return [self._defined(block.args), [self._op(op) for op in block.ops]]

    def _op(self, op: Op) -> list[Any]:
        operands = [self._values[v] for v in op.operands]
        attrs = {name: _attr(value) for name, value in op.attrs.items()}
        regions = [self.block(region) for region in op.regions]
        return [op.name, operands, attrs, self._defined(op.results), regions, self.loc(op.loc)]

    def _defined(self, values: list[Value]) -> list[Any]:
        for value in values:
            self._values[value] = len(self._values)
        return [[self.types.number(v.type, _type(v.type)), v.name] for v in values]


class _Reader:
    """The tables of one text, and the values as they are defined."""

    def __init__(self, types: list[Any], locs: list[Any]) -> None:
        self._types = [_type_from(found) for found in types]
        self._locs: list[Loc] = []
        for file, line, column, end_column, function, caller in locs:  # a caller comes before what it calls
            self._locs.append(Loc(file, line, column, end_column, function, self.loc(caller)))
        self._values: list[Value] = []

    def loc(self, number: int | None) -> Loc | None:
        """The location of this number."""
        return None if number is None else self._locs[number]

    def block(self, found: list[Any]) -> Block:
        """A block with what is inside it."""
        args, ops = found
        return Block(self._defined(args), [self._op(op) for op in ops])

    def _op(self, found: list[Any]) -> Op:
        name, operands, attrs, results, regions, place = found
        values = [self._values[i] for i in operands]
        inner = [self.block(region) for region in regions]
        kinds = {key: _attr_from(value) for key, value in attrs.items()}
        return Op(name, values, kinds, self._defined(results), inner, self.loc(place))

    def _defined(self, found: list[Any]) -> list[Value]:
        values = [Value(self._types[number], name) for number, name in found]
        self._values += values
        return values


# -- types and attributes -----------------------------------------------------------------------------


def _type(type_: Type) -> list[Any]:
    if isinstance(type_, TensorType):
        return [type_.dtype.name, type_.rank]
    return [type_.dtype.name, list(type_.shape), type_.space]


def _type_from(found: list[Any]) -> Type:
    dtype, *rest = found
    return TensorType(BY_NAME[dtype], rest[0]) if len(rest) == 1 else TileType(BY_NAME[dtype], tuple(rest[0]), rest[1])


def _attr(value: Any) -> Any:
    """Numbers and texts as they are, tuples as lists, the rest with a word for what it is."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return [_attr(v) for v in value]
    if type(value) is DType and BY_NAME.get(value.name) is value:
        return {"dtype": value.name}
    if isinstance(value, TileType | TensorType):
        return {"type": _type(value)}
    raise TypeError(f"an attribute of type {type(value).__name__} cannot be written")


def _attr_from(found: Any) -> Any:
    if isinstance(found, list):
        return tuple([_attr_from(v) for v in found])
    if isinstance(found, dict):
        ((kind, written),) = found.items()
        return BY_NAME[written] if kind == "dtype" else _type_from(written)
    return found
