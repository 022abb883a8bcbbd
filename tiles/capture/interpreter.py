"""Runs a kernel's Python once, with real compile-time values and handles for run-time ones.

Python code whose values are known runs as Python; an operation on a run-time value appends an op. Only
control flow on run-time values is treated specially (`regions`), so the meaning stays Python's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from warpwave.tiles.capture.dependencies import Dependencies
from warpwave.tiles.capture.scope import UNBOUND, Frame, Poison
from warpwave.tiles.capture.state import Joined, Snapshot
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

ExpressionHandler = Callable[["Interpreter", Any], Any]
StatementHandler = Callable[["Interpreter", Any, tuple[ast.stmt, ...]], Flow]


class Interpreter:
    """The state of one capture. The handlers say how each kind of syntax node is executed."""

    def __init__(
        self,
        builder: Builder,
        statements: Mapping[type[ast.stmt], StatementHandler],
        expressions: Mapping[type[ast.expr], ExpressionHandler],
    ) -> None:
        self.builder = builder
        self.statements = statements
        self.expressions = expressions
        self.frames: list[Frame] = []
        self.dependencies = Dependencies()
        self.joined = Joined()
        self.regions: list[Snapshot] = []

    @property
    def frame(self) -> Frame:
        """The active function's frame."""
        return self.frames[-1]

    # -- locations ------------------------------------------------------------------------------------

    def loc(self, node: ast.AST) -> Loc:
        """Where `node` stands, with the calls that led there."""
        known = self.frame.locs.get(node)
        if known is None:
            known = self.frame.locs[node] = self._make_loc(node)
        return known

    def _make_loc(self, node: ast.AST) -> Loc:
        source = self.frame.source
        place: Any = node if hasattr(node, "lineno") else source.node
        ends_here = place.end_lineno == place.lineno and not isinstance(place, ast.FunctionDef)
        end_column = place.end_col_offset if ends_here else None
        return Loc(source.file, place.lineno, place.col_offset, end_column, source.name, self.frame.call)

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
        try:
            handler = self.expressions.get(type(node))
            if handler is None:
                raise unsupported(node)
            value = handler(self, node)
            if isinstance(value, Poison):
                raise value.error("this item")
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
        for position, statement in enumerate(body):
            with self.located(statement):
                self.mark(statement)
                handler = self.statements.get(type(statement))
                if handler is None:
                    raise unsupported(statement)
                flow = handler(self, statement, (*body[position + 1 :], *after))
                self._check_state(statement)
            if flow is not NEXT:
                return flow
        return NEXT

    def _check_state(self, statement: ast.stmt) -> None:
        """Refuse a change that cannot be honoured at the statement that made it, or note it if it can be undone."""
        self.dependencies.check_unchanged()
        self.joined.check()
        if self.regions:
            self.regions[-1].note_shapes(self.loc(statement))

    # -- names ----------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Any:
        """The value of a name by Python's rules."""
        owner = self.frame.owner(name)
        if owner is None:
            return self._lookup_outside(name)
        value = owner.vars.get(name, UNBOUND)
        if value is UNBOUND:
            hint = "if an earlier iteration assigns it, assign it before the run-time loop" if self.regions else None
            raise CaptureError(f"local variable {name!r} is used before it is assigned", hint=hint)
        if isinstance(value, Poison):
            raise value.error(f"variable {name!r}")
        return value

    def _lookup_outside(self, name: str) -> Any:
        frame = self.frame
        cell = frame.cell(name)
        if cell is not None:
            return self.dependencies.cell(name, cell)
        if name in frame.globals:
            return self.dependencies.item(name, frame.globals)
        if hasattr(builtins, name):
            self.dependencies.absent(name, frame.globals)
            return getattr(builtins, name)
        raise CaptureError(f"name {name!r} is not defined")

    def assign(self, name: str, value: Any) -> None:
        """Bind a name by Python's rules."""
        frame = self.binding_frame(name)
        if isinstance(value, Tile) and value.value.name is None:
            value.value.name = name
        frame.vars[name] = value

    def binding_frame(self, name: str) -> Frame:
        """The frame in which this function may bind `name`."""
        frame = self.frame
        if name in frame.names.local:
            return frame
        owner = frame.owner(name)
        if owner is None:
            raise CaptureError(
                f"kernel code cannot rebind {name!r}, which lives outside the kernel",
                hint="return the value instead, or make it a local variable",
            )
        return owner

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
    def region(self, block: Block, snapshot: Snapshot) -> Iterator[Block]:
        """Append to a region of run-time control flow, which started with the state of `snapshot`."""
        self.regions.append(snapshot)
        try:
            with self.builder.inside(block):
                yield block
        finally:
            self.regions.pop()


def unsupported(node: ast.AST) -> CaptureError:
    """The refusal of a construct that kernels do not have."""
    word, hint = _UNSUPPORTED.get(type(node), (type(node).__name__, None))
    return CaptureError(f"{word} is not supported in kernel code", hint=hint)


_YIELD = "return a tuple or list instead"
_ASYNC = "a kernel is one plain function; loads in ww.pipeline run ahead by themselves"
_UNSUPPORTED: dict[type[ast.AST], tuple[str, str | None]] = {
    ast.Try: ("try", "nothing is raised at run time; test the condition with if, or use ww.check"),
    ast.With: ("with", "call functions, or use plain if and for"),
    ast.ClassDef: ("a class definition", "define the class outside the kernel"),
    ast.Import: ("import", "import at the top of the module"),
    ast.ImportFrom: ("import", "import at the top of the module"),
    ast.Match: ("match", "use if and elif"),
    ast.Await: ("await", _ASYNC),
    ast.AsyncFor: ("async for", _ASYNC),
    ast.AsyncWith: ("async with", _ASYNC),
    ast.AsyncFunctionDef: ("an async function", _ASYNC),
    ast.Yield: ("yield", _YIELD),
    ast.YieldFrom: ("yield from", _YIELD),
}
