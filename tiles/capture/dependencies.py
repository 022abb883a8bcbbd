"""What a captured kernel took from outside: so that a changed global recompiles, and is never changed by capture."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.errors import CaptureError


@dataclass(frozen=True)
class Dependency:
    """One value read from outside the kernel: how to read it again, and what it was."""

    name: str
    read: Callable[[], Any]
    frozen: Any

    def unchanged(self) -> bool:
        """Whether reading it now gives what capture saw."""
        try:
            return bool(freeze(self.read()) == self.frozen)
        except (KeyError, ValueError, AttributeError):
            return False


class Dependencies:
    """The outside values of one capture, each recorded once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], Dependency] = {}
        self._watched: list[Dependency] = []
        self._keep: list[Any] = []

    def all(self) -> list[Dependency]:
        """Everything recorded."""
        return list(self._seen.values())

    def cell(self, name: str, cell: types.CellType) -> Any:
        """A closure variable."""
        try:
            value = cell.cell_contents
        except ValueError:
            raise CaptureError(f"closure variable {name!r} has no value yet") from None
        return self._record(cell, name, lambda: cell.cell_contents, value)

    def item(self, name: str, namespace: dict[str, Any]) -> Any:
        """A global variable."""
        return self._record(namespace, name, lambda: namespace[name], namespace[name])

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a Python object, such as a module's constant or a configuration's field."""
        return self._record(owner, name, lambda: getattr(owner, name), getattr(owner, name))

    def check_unchanged(self) -> None:
        """CaptureError if kernel code changed a list, dict or set that lives outside the kernel."""
        for dependency in self._watched:
            if not dependency.unchanged():
                raise CaptureError(
                    f"{dependency.name!r} lives outside the kernel and was changed by kernel code",
                    hint="a kernel is captured once and run many times: copy it first, or build a new one",
                )

    def _record(self, owner: Any, name: str, read: Callable[[], Any], value: Any) -> Any:
        key = (id(owner), name)
        if key not in self._seen:
            self._keep.append(owner)  # an id is only unique while its object lives
            self._seen[key] = Dependency(name, read, freeze(value))
            if isinstance(value, list | dict | set):
                self._watched.append(self._seen[key])
        return value


def freeze(value: Any) -> Any:
    """A comparable picture of a value: contents of containers, code of functions, identity of the rest."""
    if isinstance(value, float):
        return ("float", value.hex() if value == value else "nan")
    if isinstance(value, bool | int | str | bytes | None):
        return (type(value).__name__, value)
    if isinstance(value, list | tuple):
        return (type(value).__name__, tuple(freeze(v) for v in value))
    if isinstance(value, dict):
        return ("dict", tuple((freeze(k), freeze(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(freeze(v) for v in value))
    if isinstance(value, types.MethodType | types.BuiltinMethodType):
        return ("method", value.__name__)
    if isinstance(value, types.FunctionType):
        return ("function", id(value), id(value.__code__), freeze(value.__defaults__))
    return ("object", id(value))
