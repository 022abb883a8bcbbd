"""Run-time state of the capture: frames with Python's name rules, functions defined inside kernels."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from warpwave.tiles.capture.source import Source
from warpwave.tiles.errors import CaptureError, Loc


class _Unbound:
    """Marks a local name that has no value yet."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = _Unbound()


@dataclass(frozen=True)
class Poison:
    """Stands for a variable whose value is not known after run-time control flow; reading it is an error."""

    reason: str
    hint: str | None = None


@dataclass(eq=False)
class Frame:
    """One active function: its local variables and where its other names come from."""

    source: Source
    local_names: frozenset[str]
    globals: dict[str, Any]
    cells: dict[str, types.CellType] = field(default_factory=dict)
    parent: Frame | None = None
    outer_names: frozenset[str] = frozenset()
    vars: dict[str, Any] = field(default_factory=dict)
    call: Loc | None = None
    loops: int = 0

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """While a loop's body runs in this frame."""
        self.loops += 1
        try:
            yield
        finally:
            self.loops -= 1

    def owner(self, name: str) -> Frame | None:
        """The frame of this chain that holds `name` as a local, or None."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.local_names:
                return frame
            frame = frame.parent
        return None

    def root(self) -> Frame:
        """The outermost enclosing frame, which knows the real closure."""
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


def unbound_error(name: str) -> CaptureError:
    """What Python would raise as UnboundLocalError."""
    return CaptureError(f"local variable {name!r} is used before it is assigned")


def undefined_error(name: str) -> CaptureError:
    """What Python would raise as NameError."""
    hint = None
    if hasattr(builtins, name):
        hint = f"{name} is a Python built-in that was deleted"
    return CaptureError(f"name {name!r} is not defined", hint=hint)


@dataclass(eq=False)
class InterpretedFunction:
    """A function or lambda defined inside a kernel; it closes over its frame by reference, as in Python."""

    source: Source
    signature: inspect.Signature
    frame: Frame
    invoke: Callable[[InterpretedFunction, tuple[Any, ...], dict[str, Any]], Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Lets native code (map, sorted's key) call it."""
        return self.invoke(self, args, kwargs)
