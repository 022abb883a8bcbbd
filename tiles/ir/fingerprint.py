"""A kernel as one text that differs wherever anything built from it may differ: the key of backends' caches.

The printed form is for people and leaves out what a generated source still shows: names, and lines of the user.
"""

from __future__ import annotations

from typing import Any

from warpwave.tiles.errors import Loc
from warpwave.tiles.ir.core import Block, Kernel, Op, Value
from warpwave.tiles.types import Type


def fingerprint(kernel: Kernel) -> str:
    """Name, parameters, and each op with its attributes, types, names and source location.

    Equal for two captures of the same code, in other processes too. Kernels that differ in any of these differ.
    """
    writer = _Writer()
    writer.block(kernel.body)
    head = (kernel.name, tuple(kernel.param_names), writer.loc(kernel.loc))
    return "\n".join([repr(head), *writer.lines])


class _Writer:
    """Numbers values and locations in the order in which they appear."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values: dict[Value, int] = {}
        self._places: dict[tuple[Any, ...], int] = {}
        # By identity, as comparing locations and naming types again and again would take most of the time.
        self._locs: dict[int, int] = {}
        self._types: dict[int, str] = {}

    def loc(self, loc: Loc | None) -> int:
        """The number of a location, which is written out when it appears first."""
        if loc is None:
            return -1
        number = self._locs.get(id(loc))
        if number is None:
            place = (loc.file, loc.line, loc.column, loc.end_column, loc.function, self.loc(loc.caller))
            number = self._locs[id(loc)] = self._number(place)
        return number

    def _number(self, place: tuple[Any, ...]) -> int:
        if place not in self._places:
            self._places[place] = len(self._places)
            self.lines.append(f"@{self._places[place]} {place!r}")
        return self._places[place]

    def block(self, block: Block) -> None:
        """Arguments, ops and what ends the block."""
        self.lines.append(f"{{{self._defined(block.args)}")
        for op in block.ops:
            self._op(op)
        self.lines.append("}")

    def _defined(self, values: list[Value]) -> str:
        for value in values:
            self._values[value] = len(self._values)
        return ",".join([f"{v.name}:{self._type(v.type)}" for v in values])

    def _type(self, type_: Type) -> str:
        text = self._types.get(id(type_))
        if text is None:
            text = self._types[id(type_)] = str(type_)
        return text

    def _op(self, op: Op) -> None:
        operands = [self._values[v] for v in op.operands]
        attrs = [(name, _attr(op.attrs[name])) for name in sorted(op.attrs)]
        place = self.loc(op.loc)
        self.lines.append(f"{op.name}{operands}{attrs}@{place}->{self._defined(op.results)}")
        for region in op.regions:
            self.block(region)


def _attr(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({','.join([_attr(v) for v in value])})"
    return f"{type(value).__name__} {value!r}"
