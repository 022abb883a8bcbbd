"""A kernel as one text that differs wherever anything built from it may differ: the key of backends' caches.

The printed form is for people and leaves out what a generated source still shows: names, and lines of the user.
"""

from __future__ import annotations

from typing import Any

from warpwave.tiles.errors import Loc
from warpwave.tiles.ir.core import Block, Kernel, Op, Value


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
        self._locs: dict[Loc, int] = {}

    def loc(self, loc: Loc | None) -> int:
        """The number of a location, which is written out when it appears first."""
        if loc is None:
            return -1
        if loc not in self._locs:
            caller = self.loc(loc.caller)
            place = (loc.file, loc.line, loc.column, loc.end_column, loc.function, caller)
            self._locs[loc] = len(self._locs)
            self.lines.append(f"@{self._locs[loc]} {place!r}")
        return self._locs[loc]

    def block(self, block: Block) -> None:
        """Arguments, ops and what ends the block."""
        self.lines.append(f"{{{self._defined(block.args)}")
        for op in block.ops:
            self._op(op)
        self.lines.append("}")

    def _defined(self, values: list[Value]) -> str:
        for value in values:
            self._values[value] = len(self._values)
        return ",".join([f"{v.name}:{v.type}" for v in values])

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
