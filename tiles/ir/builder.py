"""Appends checked ops to the block at hand and stamps them with the user's location."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import Loc, TileValueError
from warpwave.tiles.ir.core import Block, Op, Value
from warpwave.tiles.ir.opdefs import OPS

MAX_OPS = 200_000


class Builder:
    """Builds one kernel's ops. `loc` is the user's location for the ops that follow.

    `body` is the kernel's outermost block, `emitted` the names of all ops so far.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.body = block
        self.emitted: set[str] = set()
        self.count = 0
        self.loc: Loc | None = None

    def emit(
        self, name: str, operands: Sequence[Value] = (), regions: Sequence[Block] = (), **attrs: Any
    ) -> list[Value]:
        """Append op `name`; its type rule gives the results or raises what does not fit."""
        results = [Value(t) for t in OPS[name].result_types([v.type for v in operands], attrs)]
        self.emitted.add(name)
        self.count += 1
        if self.count > MAX_OPS:
            raise TileValueError(
                f"the kernel needs more than {MAX_OPS} ops",
                hint="unroll less: ww.range keeps a loop; nested early returns copy what follows them",
            )
        self.block.ops.append(Op(name, list(operands), attrs, results, list(regions), self.loc))
        return results

    def emit1(self, name: str, operands: Sequence[Value] = (), **attrs: Any) -> Value:
        """Append an op that has one result."""
        (result,) = self.emit(name, operands, **attrs)
        return result

    def constant(self, value: bool | int | float, dtype: DType) -> Value:
        """A scalar constant."""
        return self.emit1("constant", value=value, dtype=dtype)

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to another block, e.g. a region's, for the duration."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer
