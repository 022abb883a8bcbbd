"""Run-time state of the capture: frames with Python's name rules, functions defined inside kernels."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from warpwave.tiles.capture.source import Names, Source
from warpwave.tiles.errors import CaptureError, Loc


class _Unbound:
    """Marks a local name that has no value yet."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = _Unbound()


@dataclass(frozen=True, eq=False)
class Poison:
    """Stands for a value that is not known after run-time control flow; using it in any way is an error."""

    reason: str
    hint: str | None = None

    def error(self, what: str) -> CaptureError:
        """The error for a use."""
        return CaptureError(f"{what} {self.reason}", hint=self.hint)

    def _refuse(self, *_: Any) -> NoReturn:
        raise self.error("an item of a list, tuple or dict")

    __bool__ = __iter__ = __len__ = __call__ = __str__ = __format__ = __eq__ = __lt__ = __gt__ = _refuse
    __hash__ = None  # type: ignore[assignment]


@dataclass(eq=False)
class Frame:
    """One active function: its local variables and where its other names come from."""

    source: Source
    names: Names
    globals: dict[str, Any]
    cells: dict[str, types.CellType] = field(default_factory=dict)
    parent: Frame | None = None
    vars: dict[str, Any] = field(default_factory=dict)
    call: Loc | None = None
    loops: int = 0
    is_comprehension: bool = False
    locs: dict[ast.AST, Loc] = field(default_factory=dict)

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """While a loop's body runs in this frame."""
        self.loops += 1
        try:
            yield
        finally:
            self.loops -= 1

    def owner(self, name: str) -> Frame | None:
        """The frame of this chain that holds `name` as a local; None if it lives outside the kernel."""
        frame: Frame | None = self
        while frame is not None and name not in frame.names.global_:
            if name in frame.names.local:
                return frame
            frame = frame.parent
        return None

    def cell(self, name: str) -> types.CellType | None:
        """The variable of the real closure around the kernel or helper that `name` means, or None."""
        frame = self
        while name not in frame.names.global_:
            if frame.parent is None:
                return frame.cells.get(name)
            frame = frame.parent
        return None


@dataclass(eq=False, repr=False)
class InterpretedFunction:
    """A function or lambda defined inside a kernel; it closes over its frame by reference, as in Python."""

    source: Source
    signature: inspect.Signature
    frame: Frame
    invoke: Callable[[InterpretedFunction, tuple[Any, ...], dict[str, Any]], Any]

    def __repr__(self) -> str:
        return f"the function {self.source.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Lets native code (map, sorted's key) call it."""
        return self.invoke(self, args, kwargs)


@dataclass(eq=False)
class InterpretedGenerator:
    """A generator expression: as lazy as Python's, and it knows how far it has got."""

    items: Iterator[Any]
    steps: int = 0

    def __iter__(self) -> InterpretedGenerator:
        return self

    def __next__(self) -> Any:
        self.steps += 1
        return next(self.items)
