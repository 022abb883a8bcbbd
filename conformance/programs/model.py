"""A tile program as data: tensors, helper functions and a body of statements, all frozen values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwave.tiles.dtypes import DType


@dataclass(frozen=True)
class Var:
    """A variable of the kernel: a tile, vector (one extent) or scalar (none) in registers."""

    name: str
    dtype: DType
    shape: tuple[int, ...] = ()

    @property
    def literal(self) -> str:
        """An expression of this type that reads nothing, for a shorter program."""
        number = {"float": "1.0", "int": "1", "bool": "True"}[self.dtype.kind]
        return f"ww.full({tile_type(self.dtype, self.shape)}, {number})" if self.shape else number


def tile_type(dtype: DType, shape: tuple[int, ...], space: str = "r") -> str:
    """`rt[f32, 8, 16]`, `sv[bf16, 8]`: the source text of a type."""
    kind = {1: "v", 2: "t"}[len(shape)]
    return f"{space}{kind}[{', '.join([name_of(dtype), *map(str, shape)])}]"


def name_of(dtype: DType) -> str:
    """The dtype as it is written in a kernel."""
    return "bool_" if dtype.kind == "bool" else dtype.name


@dataclass(frozen=True)
class Let:
    """`target = text`, with the variables it reads in place of {0}, {1}, ...; it may rebind an older name."""

    target: Var
    text: str
    reads: tuple[Var, ...] = ()


@dataclass(frozen=True)
class Do:
    """A statement without a result: a store, an atomic addition, a barrier. `tensor` is what it writes."""

    text: str
    reads: tuple[Var, ...] = ()
    tensor: str = ""


@dataclass(frozen=True)
class Buffer:
    """`name = ww.shared(type)` and the store that fills it; statements that read it name it in their text."""

    name: str
    type: str
    fill: Var


@dataclass(frozen=True)
class Block:
    """`head:` and an indented body; `orelse` is the body of an else. What `carries` is rebound inside."""

    head: str
    body: tuple[Statement, ...]
    reads: tuple[Var, ...] = ()
    orelse: tuple[Statement, ...] = ()
    before: tuple[str, ...] = ()


Statement = Let | Do | Buffer | Block


@dataclass(frozen=True)
class Helper:
    """A plain function that the kernel calls: parameter names, body, and the variable it returns."""

    name: str
    parameters: tuple[Var, ...]
    body: tuple[Statement, ...]
    result: Var


@dataclass(frozen=True)
class Tensor:
    """A tensor parameter. `layout` says how it lies in memory, `values` what it holds (see values.py)."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    layout: str = "rows"
    values: str = "normal"
    output: bool = False


@dataclass(frozen=True)
class Program:
    """A whole program. `seed` is of its inputs."""

    seed: int
    tensors: tuple[Tensor, ...]
    prologue: tuple[str, ...]
    body: tuple[Statement, ...]
    helpers: tuple[Helper, ...] = ()
    features: frozenset[str] = field(default_factory=frozenset)

    def tensor(self, name: str) -> Tensor:
        """The tensor of this name."""
        return next(t for t in self.tensors if t.name == name)

    @property
    def size(self) -> int:
        """How long it is, for shrinking: statements, then elements."""
        return sum(1 for h in self.helpers for _ in walk(h.body)) + sum(1 for _ in walk(self.body))


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, outer ones first."""
    for statement in body:
        yield statement
        if isinstance(statement, Block):
            yield from walk(statement.body)
            yield from walk(statement.orelse)


def reads_of(statement: Statement) -> tuple[Var, ...]:
    """The variables that a statement itself reads."""
    return (statement.fill,) if isinstance(statement, Buffer) else statement.reads
