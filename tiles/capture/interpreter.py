"""Runs a kernel's Python once, with real compile-time values and handles for run-time ones.

Python code whose values are known runs as Python; an operation on a run-time value appends an op. Only
control flow on run-time values is treated specially (`regions`), so the meaning stays Python's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from warpwave.tiles.capture.dependencies import Dependencies
from warpwave.tiles.capture.scope import (
    UNBOUND,
    Frame,
    Poison,
    unbound_error,
    undefined_error,
)
from warpwave.tiles.errors import CaptureError, Loc, TileError
from warpwave.tiles.ir import Block, Builder
from warpwave.tiles.language.handles import Tile

MAX_DEPTH = 64


@dataclass(frozen=True)
class Flow:
    """How a block of statements ended: "next", "break", "continue" or "return" with a value."""

    kind: str
    value: Any = None


NEXT = Flow("next")


class Interpreter:
    """The state of one capture."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.frames: list[Frame] = []
        self.dependencies = Dependencies()
        self.region_depth = 0

    @property
    def frame(self) -> Frame:
        """The active function's frame."""
        return self.frames[-1]

    # -- locations ------------------------------------------------------------------------------------

    def loc(self, node: ast.AST) -> Loc:
        """Where `node` stands, with the calls that led there."""
        source = self.frame.source
        line, end_line = getattr(node, "lineno", source.node.lineno), getattr(node, "end_lineno", None)
        start = getattr(node, "col_offset", 0) + source.column
        end = getattr(node, "end_col_offset", None)
        end_column = end + source.column if end is not None and end_line == line else None
        return Loc(source.file, line, start, end_column, source.name, self.frame.call)

    @contextmanager
    def located(self, node: ast.AST) -> Iterator[None]:
        """Stamp errors that leave this block with the node's place; turn Python's own into CaptureError."""
        try:
            yield
        except Exception as error:
            self._raise_located(error, node)

    def _raise_located(self, error: Exception, node: ast.AST) -> NoReturn:
        if isinstance(error, TileError):
            if error.loc is None:
                error.loc = self.loc(node)
            raise error
        if isinstance(error, RecursionError):
            raise CaptureError("recursion in kernel code does not end", loc=self.loc(node)) from None
        message = f"{type(error).__name__} when this ran at capture: {error}"
        raise CaptureError(message, loc=self.loc(node)) from error

    # -- expressions and statements -------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Any:
        """The value of an expression."""
        from warpwave.tiles.capture.expressions import EXPRESSIONS

        try:
            handler = EXPRESSIONS.get(type(node))
            if handler is None:
                raise CaptureError(f"{_describe(node)} is not supported in kernel code")
            value = handler(self, node)
        except Exception as error:  # not `located`: a context manager for each node doubles the time of capture
            self._raise_located(error, node)
        if not isinstance(node, ast.Name | ast.Constant):
            self.mark(node)
        return value

    def mark(self, node: ast.AST) -> None:
        """Ops that follow belong to this node."""
        self.builder.loc = self.loc(node)

    def run(self, body: list[ast.stmt], after: tuple[ast.stmt, ...] = ()) -> Flow:
        """Execute statements; `after` are those that follow in the enclosing blocks of the function."""
        from warpwave.tiles.capture.statements import STATEMENTS, if_with_return

        for position, statement in enumerate(body):
            rest = (*body[position + 1 :], *after)
            with self.located(statement):
                self.mark(statement)
                handler = STATEMENTS.get(type(statement))
                if handler is None:
                    raise CaptureError(f"{_describe(statement)} is not supported in kernel code")
                flow = if_with_return(self, statement, rest) or handler(self, statement)
                self.dependencies.check_unchanged()
            if flow is not NEXT:
                return flow
        return NEXT

    # -- names ----------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Any:
        """The value of a name by Python's rules."""
        owner = self.frame.owner(name)
        if owner is None:
            return self._lookup_outside(name)
        value = owner.vars.get(name, UNBOUND)
        if value is UNBOUND:
            raise unbound_error(name)
        if isinstance(value, Poison):
            raise CaptureError(f"variable {name!r} {value.reason}", hint=value.hint)
        return value

    def _lookup_outside(self, name: str) -> Any:
        root = self.frame.root()
        if name in root.cells:
            return self.dependencies.cell(name, root.cells[name])
        if name in root.globals:
            return self.dependencies.item(name, root.globals)
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise undefined_error(name)

    def assign(self, name: str, value: Any) -> None:
        """Bind a name by Python's rules."""
        frame = self.frame
        if name in frame.outer_names:
            owner = frame.parent.owner(name) if frame.parent else None
            if owner is None:
                raise CaptureError(
                    f"kernel code cannot rebind {name!r}, which lives outside the kernel",
                    hint="return the value instead, or make it a local variable",
                )
            frame = owner
        if isinstance(value, Tile) and value.value.name is None:
            value.value.name = name
        frame.vars[name] = value

    @contextmanager
    def entering(self, frame: Frame) -> Iterator[Frame]:
        """Run a function's body in its frame."""
        if len(self.frames) >= MAX_DEPTH:
            raise CaptureError(f"helper calls are nested more than {MAX_DEPTH} deep", hint="is the recursion endless?")
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    @contextmanager
    def region(self, block: Block) -> Iterator[Block]:
        """Append to a region of run-time control flow."""
        self.region_depth += 1
        try:
            with self.builder.inside(block):
                yield block
        finally:
            self.region_depth -= 1


Handler = Callable[[Interpreter, Any], Any]


def _describe(node: ast.AST) -> str:
    words = {
        ast.Try: "try",
        ast.With: "with",
        ast.ClassDef: "a class definition",
        ast.Import: "import",
        ast.ImportFrom: "import",
        ast.Match: "match",
        ast.Await: "await",
        ast.Yield: "yield",
        ast.YieldFrom: "yield from",
        ast.AsyncFor: "async for",
        ast.AsyncWith: "async with",
        ast.AsyncFunctionDef: "an async function",
        ast.Global: "global",
    }
    return words.get(type(node), type(node).__name__)
