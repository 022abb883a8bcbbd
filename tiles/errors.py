"""Source locations and the errors of the language; every message can point at the user's line."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Loc:
    """A place in the user's source, with the call chain of inlined helpers that led there.

    Lines count from 1 and columns from 0, as in Python's `ast`.
    """

    file: str
    line: int
    column: int = 0
    end_column: int | None = None
    function: str = ""
    caller: Loc | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class TileError(Exception):
    """Root of all errors that the language raises on purpose.

    `message` says what is wrong and why, `hint` how to get out of it, `loc` where in the user's source.
    """

    def __init__(self, message: str, *, loc: Loc | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.loc = loc

    def __str__(self) -> str:
        parts = [self.message]
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        loc = self.loc
        while loc is not None:
            parts.append(_render(loc))
            loc = loc.caller
        return "\n".join(parts)


class CaptureError(TileError):
    """The kernel's Python cannot be honoured with its exact meaning."""


class TileTypeError(TileError):
    """Wrong dtype, rank or memory space of an operand or argument."""


class TileValueError(TileError):
    """Wrong shape, coordinate, constant or other value."""


class UnsupportedError(TileError):
    """Valid, but not on this target or with what is installed."""


class ResourceError(TileError):
    """The built kernel needs more of something than the target has."""


class LaunchError(TileError):
    """A launch failed: device, stream or run-time fault."""


class CheckFailed(TileError):
    """A `ww.check` inside a kernel was false."""


class InternalError(TileError):
    """A defect of Warpwave itself: the IR broke one of its own rules."""


def _render(loc: Loc) -> str:
    where = f'  File "{loc.file}", line {loc.line}' + (f", in {loc.function}" if loc.function else "")
    text = linecache.getline(loc.file, loc.line).rstrip("\n")
    if not text.strip():
        return where
    stripped = text.lstrip()
    indent = len(text) - len(stripped)
    # ast columns count UTF-8 bytes, the caret needs characters.
    start = len(text.encode()[: loc.column].decode(errors="ignore"))
    end_column = loc.end_column if loc.end_column is not None else loc.column + 1
    end = min(len(text.encode()[:end_column].decode(errors="ignore")), len(text))
    caret = " " * max(start - indent, 0) + "^" * max(end - start, 1)
    return f"{where}\n    {stripped}\n    {caret}"
