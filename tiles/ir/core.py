"""The IR: typed values in single-assignment form, ops with attributes and regions, a kernel around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwave.tiles.errors import Loc
from warpwave.tiles.types import TensorType, TileType, Type


@dataclass(eq=False)
class Value:
    """A typed value, defined once: by an op's result or as an argument of a block or of the kernel."""

    type: Type
    name: str | None = None

    @property
    def tile(self) -> TileType:
        """The type, for a value known to be a tile or scalar."""
        assert isinstance(self.type, TileType), f"expected a tile, got {self.type}"
        return self.type

    @property
    def tensor(self) -> TensorType:
        """The type, for a value known to be a global tensor."""
        assert isinstance(self.type, TensorType), f"expected a tensor, got {self.type}"
        return self.type


@dataclass(eq=False)
class Block:
    """A straight list of ops with arguments; the last op of a region's block is its terminator."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    @property
    def terminator(self) -> Op:
        """The last op."""
        return self.ops[-1]


@dataclass(eq=False)
class Op:
    """One operation. `name` is a key of `opdefs.OPS`, which states operands, attributes and results."""

    name: str
    operands: list[Value]
    attrs: Mapping[str, Any]
    results: list[Value]
    regions: list[Block]
    loc: Loc | None

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(eq=False)
class Kernel:
    """A captured kernel: parameters (tensors and scalars), the compile-time constants, and the body.

    `param_names[i]` names `body.args[i]`. `outputs` are the parameters that the body writes.
    """

    name: str
    param_names: list[str]
    constants: dict[str, Any]
    body: Block
    loc: Loc | None

    @property
    def params(self) -> list[Value]:
        """The kernel's arguments as values."""
        return self.body.args

    @property
    def outputs(self) -> list[str]:
        """Names of the parameters that the kernel stores to, in parameter order."""
        written = {op.operands[0] for op in walk(self.body) if op.name in ("store", "atomic_add")}
        return [name for name, arg in zip(self.param_names, self.params, strict=True) if arg in written]

    @property
    def inputs(self) -> list[str]:
        """Names of the tensor parameters that the kernel reads, in parameter order."""
        read = {op.operands[0] for op in walk(self.body) if op.name in ("load", "atomic_add")}
        return [name for name, arg in zip(self.param_names, self.params, strict=True) if arg in read]

    def __str__(self) -> str:
        from warpwave.tiles.ir.printer import print_kernel

        return print_kernel(self)


def walk(block: Block) -> Iterator[Op]:
    """All ops of a block and of the regions inside it, in program order, each op before its regions."""
    for op in block.ops:
        yield op
        for region in op.regions:
            yield from walk(region)
