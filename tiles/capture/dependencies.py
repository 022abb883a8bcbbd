"""What a captured kernel took from outside: so that a changed global recompiles, and is never changed by capture."""

from __future__ import annotations

import collections
import functools
import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import CaptureError


@dataclass(frozen=True)
class Dependency:
    """One value read from outside the kernel: how to read it again, and what it was.

    `fixed` is the value itself if it cannot change, so that finding it again is enough. `same` is a quick test which,
    if it holds for what is read now, means that nothing has changed. `owner` is what holds the value: a namespace, a
    cell, a module or another object, or the function whose parts these are.
    """

    name: str
    read: Callable[[], Any]
    frozen: Any
    fixed: Any = None
    same: Callable[[Any], bool] | None = None
    owner: Any = None

    @property
    def namespace(self) -> dict[str, Any] | None:
        """Where the name is looked up, if the owner is nothing but that: a module's attributes are its globals."""
        owner = self.owner
        return vars(owner) if type(owner) is types.ModuleType else owner if type(owner) is dict else None

    @property
    def function(self) -> types.FunctionType | None:
        """The function whose parts these are, if they are."""
        return self.owner if type(self.owner) is types.FunctionType and self.name == "()" else None

    def unchanged(self) -> bool:
        """Whether reading it now gives what capture saw."""
        try:
            value = self.read()
            if (value is self.fixed and value is not None) or (self.same is not None and self.same(value)):
                return True
            return bool(freeze(value) == self.frozen)
        except Exception:  # reading may run a property's code: whatever fails now is not what capture saw
            return False


class _Absent:
    """Stands for a variable that is not there."""


class Dependencies:
    """The outside values of one capture, each recorded once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], Dependency] = {}
        self._watched: list[Dependency] = []
        self._keep: list[Any] = []
        self.closed = True  # nothing else decided what the kernel became

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

    def absent(self, name: str, namespace: dict[str, Any]) -> None:
        """A built-in's name that no global variable hides."""
        self._record(namespace, name, lambda: namespace.get(name, ABSENT), ABSENT)

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a Python object, such as a module's constant or a configuration's field."""
        value = getattr(owner, name)
        if isinstance(owner, types.ModuleType) and _is_language(owner.__name__):
            return value
        return self._record(owner, name, lambda: getattr(owner, name), value)

    def function(self, function: types.FunctionType) -> None:
        """A helper: its code and defaults."""
        self._record(function, "()", functools.partial(function_parts, function), function_parts(function))

    def read_again(self, owner: Any, name: str) -> Any:
        """Record what another capture read from an owner; the value that is there now."""
        if isinstance(owner, types.CellType):
            return self.cell(name, owner)
        if isinstance(owner, types.FunctionType) and name == "()":
            self.function(owner)
            return owner
        if not isinstance(owner, dict):
            return self.attribute(owner, name)
        if name in owner:
            return self.item(name, owner)
        self.absent(name, owner)
        return ABSENT

    def constant(self, name: str, value: Any) -> None:
        """A compile-time constant of the kernel, which its caller owns."""
        self._watch(Dependency(name, lambda: value, freeze(value)), value)

    def check_unchanged(self) -> None:
        """CaptureError if kernel code changed a list, dict, set or array that lives outside the kernel."""
        for dependency in self._watched:
            if not dependency.unchanged():
                raise CaptureError(
                    f"{dependency.name!r} lives outside the kernel or in an object, and was changed by kernel code",
                    hint="a kernel is captured once and run many times: copy it first, or build a new one",
                )

    def _record(
        self,
        owner: Any,
        name: str,
        read: Callable[[], Any],
        value: Any,
    ) -> Any:
        key = (id(owner), name)
        if key not in self._seen:
            self._keep.append(owner)  # an id is only unique while its object lives
            fixed = value if _is_fixed(value) else None
            self._seen[key] = Dependency(name, read, freeze(value), fixed, _same_contents(value), owner)
            self._watch(self._seen[key], value)
        return value

    def _watch(self, dependency: Dependency, value: Any) -> None:
        if _is_mutable(value):
            self._watched.append(dependency)


ABSENT = _Absent()


def _is_language(module: str) -> bool:
    return module == "warpwave" or (module.startswith("warpwave.tiles") and ".tests" not in module)


_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
function_parts = operator.attrgetter(*_PARTS)


def _is_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_is_mutable(v) for v in value)
    return isinstance(value, list | dict | set | bytearray | collections.deque | np.ndarray)


def _is_fixed(value: Any) -> bool:
    """Whether finding the same object again is enough.

    So it is for all whose picture is their identity, and for functions: if a helper is called, its code and defaults
    are a dependency of their own.
    """
    if isinstance(value, tuple | frozenset):
        return all(_is_fixed(v) for v in value)
    fresh = types.MethodType | types.BuiltinMethodType  # made anew each time they are read
    return not _is_mutable(value) and not isinstance(value, fresh | np.generic)


def _same_contents(value: Any) -> Callable[[Any], bool] | None:
    """For a list or dict of fixed things: it is the same object, and holds the same objects."""
    kind = type(value)
    contents = [*value, *value.values()] if kind is dict else [*value] if kind is list else []
    if not contents or not all(map(_is_fixed, contents)):
        return None
    holds = _dict_holds if kind is dict else _list_holds
    return functools.partial(holds, value, contents, [*map(id, contents)])


def _dict_holds(container: dict[Any, Any], kept_alive: list[Any], ids: list[int], other: Any) -> bool:
    return other is container and [*map(id, container), *map(id, container.values())] == ids


def _list_holds(container: list[Any], kept_alive: list[Any], ids: list[int], other: Any) -> bool:
    return other is container and [*map(id, container)] == ids


def all_same(dependencies: Sequence[Dependency]) -> Callable[[], bool]:
    """What says that all these are the same objects as before; if it does not, they may still be equal.

    Every launch asks, and there are many: compiled into one expression they cost a third of a loop.
    """
    held: dict[str, Any] = {}

    def hold(value: Any) -> str:
        name = f"v{len(held)}"
        held[name] = value
        return name

    tests = [_test(dependency, hold) for dependency in dependencies]
    found: Callable[[], bool] = eval(f"lambda: {' and '.join(tests) or True}", held)
    return found


def _test(dependency: Dependency, hold: Callable[[Any], str]) -> str:
    """A Python expression; it may raise if something is gone."""
    name, fixed, namespace = dependency.name, dependency.fixed, dependency.namespace
    if dependency.function is not None and fixed is not None:
        function = hold(dependency.function)
        return " and ".join(f"{function}.{part} is {hold(value)}" for part, value in zip(_PARTS, fixed, strict=True))
    if namespace is None or name not in namespace:
        absent = namespace is not None and fixed is ABSENT
        return f"{name!r} not in {hold(namespace)}" if absent else f"{hold(dependency.unchanged)}()"
    if fixed is not None:
        return f"{hold(namespace)}[{name!r}] is {hold(fixed)}"
    if dependency.same is not None:
        return f"{hold(dependency.same)}({hold(namespace)}[{name!r}])"
    return f"{hold(dependency.unchanged)}()"


# -- comparing values ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Identity:
    """Compares as the object itself, and keeps it alive, since an id may come again."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def freeze(value: Any) -> Any:
    """A comparable picture of a value: contents of containers, code of functions, identity of the rest.

    Every launch compares pictures, so the common kinds come first.
    """
    kind = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return (kind.__name__, value)
    if kind is types.ModuleType or kind is DType:
        return ("object", Identity(value))
    if kind is types.FunctionType and _is_language(value.__module__ or ""):
        return ("object", Identity(value))
    if isinstance(value, np.ndarray | np.generic):
        return _freeze_array(np.asarray(value))
    if isinstance(value, float):
        return ("float", value.hex() if value == value else "nan")
    if isinstance(value, int | str | bytes | bytearray):
        return (type(value).__name__, bytes(value) if isinstance(value, bytearray) else value)
    if isinstance(value, list | tuple | collections.deque):
        return (type(value).__name__, tuple(freeze(v) for v in value))
    if isinstance(value, dict):
        return ("dict", tuple((freeze(k), freeze(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(freeze(v) for v in value))
    if isinstance(value, types.MethodType):
        return ("method", Identity(value.__self__), Identity(value.__func__))
    if isinstance(value, types.BuiltinMethodType):
        return ("method", Identity(value.__self__), value.__name__)
    if isinstance(value, types.FunctionType):
        return ("function", Identity(value), *(freeze(p) for p in function_parts(value)))
    return ("object", Identity(value))


def _freeze_array(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.hasobject:
        return ("array", array.dtype.str, array.shape, freeze(array.tolist()))
    return ("array", array.dtype.str, array.shape, array.tobytes())
