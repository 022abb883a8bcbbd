"""What a run-time region (loop body or branch) changed: snapshots of all reachable Python state.

A region's code runs once at capture, but stands for zero, one or many executions. Whatever it changes has
to become a value of the region, or to be refused. Changes are found by comparing all variables and
containers that kernel code can reach before and after, so that a change by a helper, a closure or an alias
is seen as well as a plain assignment.
"""

from __future__ import annotations

import collections
import functools
import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.capture.scope import UNBOUND, Frame, InterpretedFunction, InterpretedGenerator
from warpwave.tiles.dtypes import DType
from warpwave.tiles.errors import CaptureError, Loc
from warpwave.tiles.language.handles import Buffer, Tensor, Tile
from warpwave.tiles.types import TileType

_PLAIN = (
    *(Tile, Tensor, Buffer, DType, TileType, type, types.ModuleType, types.FunctionType),
    *(bool, int, float, str, bytes, type(None)),
)


Contents = Mapping[int, Any]  # what lists and dicts held at some time, by id


@dataclass(frozen=True)
class Slot:
    """A place that holds a value: a variable of a frame or an item of a list or dict."""

    holder_id: int
    key: Any


@dataclass
class _Saved:
    """A frame, list or dict whose items may change: `target` is what stores them."""

    holder: Any
    target: Any
    content: Any

    @property
    def is_untouched(self) -> bool:
        if len(self.target) != len(self.content):
            return False
        return all(map(operator.is_, _items(self.target), _items(self.content)))

    def restore(self) -> None:
        if self.is_untouched:  # an outside container is not written to, as other threads may read it
            return
        if isinstance(self.target, list):
            self.target[:] = self.content
            return
        if list(self.target) != list(self.content):  # a loop over a dict goes on only if its keys stay in place
            self.target.clear()
        self.target.update(self.content)


def _items(container: Any) -> list[Any]:
    return [x for pair in container.items() for x in pair] if isinstance(container, dict) else container


@dataclass
class _Watched:
    """A mutable object whose changes cannot be carried: `picture` is what it looked like."""

    holder: Any
    picture: Any


class Snapshot:
    """The contents of every frame and container reachable from `frames`."""

    def __init__(self, frames: list[Frame]) -> None:
        self._saved: dict[int, _Saved] = {}
        self._watched: dict[int, _Watched] = {}
        self._places: dict[int, Loc] = {}
        stack: list[Any] = list(frames)
        while stack:
            self._visit(stack.pop(), stack)

    def _visit(self, obj: Any, stack: list[Any]) -> None:
        if isinstance(obj, _PLAIN) or id(obj) in self._saved or id(obj) in self._watched:
            return
        if isinstance(obj, Frame):
            self._saved[id(obj)] = _Saved(obj, obj.vars, dict(obj.vars))
            stack += [obj.parent, *obj.vars.values()]
        elif isinstance(obj, list | dict):
            self._saved[id(obj)] = _Saved(obj, obj, obj.copy())
            stack += obj.values() if isinstance(obj, dict) else obj
        elif isinstance(obj, tuple | frozenset):
            stack += obj
        else:
            self._watched[id(obj)] = _Watched(obj, picture(obj))
            stack += _references(obj)

    def holds(self, obj: Any) -> bool:
        """Whether a list or dict is reachable."""
        return id(obj) in self._saved

    def contents_before(self) -> Contents:
        """What the reachable lists and dicts held when this was taken."""
        return {i: s.content for i, s in self._saved.items() if not isinstance(s.holder, Frame)}

    def contents_now(self) -> Contents:
        """What those lists and dicts hold now, to be looked up after a `restore`."""
        return {i: s.target.copy() for i, s in self._saved.items() if s.holder is s.target and not s.is_untouched}

    def restore(self) -> None:
        """Put every frame and container back to its saved contents."""
        for saved in self._saved.values():
            saved.restore()

    def before(self, slot: Slot) -> Any:
        """The saved value of a slot, UNBOUND if there was none."""
        content = self._saved[slot.holder_id].content
        return content.get(slot.key, UNBOUND) if isinstance(content, dict) else content[slot.key]

    def current(self, slot: Slot) -> Any:
        """The value of a slot now."""
        target = self._saved[slot.holder_id].target
        return target.get(slot.key, UNBOUND) if isinstance(target, dict) else target[slot.key]

    def assign(self, slot: Slot, value: Any) -> None:
        """Set a slot now (UNBOUND removes a variable)."""
        target = self._saved[slot.holder_id].target
        if value is UNBOUND:
            target.pop(slot.key, None)
        else:
            target[slot.key] = value

    def changes(self) -> list[Slot]:
        """Slots whose value is not what was saved; CaptureError for a change that cannot be carried."""
        self.check_shapes()
        found: list[Slot] = []
        for holder_id, saved in self._saved.items():
            if saved.is_untouched:
                continue
            keys = _keys(saved)
            found += [s for k in keys if not same(self.before(s := Slot(holder_id, k)), self.current(s))]
        return found

    def note_shapes(self, loc: Loc) -> None:
        """Remember the statement at which a container or object changed as it must not have by the end."""
        changed = self._changed_shapes()
        self._places = {i: self._places.get(i, loc) for i in changed}

    def check_shapes(self) -> None:
        """CaptureError for a container that changed its size or keys, or an object that changed."""
        for i, error in self._changed_shapes().items():
            error.loc = self._places.get(i)
            raise error

    def _changed_shapes(self) -> dict[int, CaptureError]:
        saved = {i: s.holder for i, s in self._saved.items() if not isinstance(s.holder, Frame) and _shape_changed(s)}
        changed = {i: w.holder for i, w in self._watched.items() if not _same_picture(picture(w.holder), w.picture)}
        errors = {i: self._shape_error(holder) for i, holder in saved.items()}
        return {**errors, **{i: self._change_error(holder) for i, holder in changed.items()}}

    def _shape_error(self, container: Any) -> CaptureError:
        return CaptureError(
            f"{self._name_of(container)} changes its size or keys inside a run-time loop or branch",
            hint="its shape is part of the compiled kernel: build it before, or loop over a compile-time range",
        )

    def _change_error(self, obj: Any) -> CaptureError:
        what = "is advanced" if hasattr(type(obj), "__next__") else "is changed"
        return CaptureError(
            f"{self._name_of(obj)} {what} inside a run-time loop or branch",
            hint="only variables and items of lists and dicts can change there",
        )

    def _name_of(self, obj: Any) -> str:
        kind = type(obj).__name__
        for saved in self._saved.values():
            if isinstance(saved.holder, Frame):
                for name, value in saved.content.items():
                    if value is obj:
                        return f"{kind} {name!r}"
        return f"a {kind}"


def _keys(saved: _Saved) -> list[Any]:
    if isinstance(saved.target, list):
        return list(range(len(saved.target)))
    keys = list(dict.fromkeys([*saved.content, *saved.target]))
    return sorted(keys) if isinstance(saved.holder, Frame) else keys


def _shape_changed(saved: _Saved) -> bool:
    if len(saved.target) != len(saved.content):
        return True
    return isinstance(saved.target, dict) and list(saved.target) != list(saved.content)


# -- objects whose changes are refused ----------------------------------------------------------------


def _references(obj: Any) -> list[Any]:
    """What an object leads to."""
    if isinstance(obj, InterpretedFunction):
        return [obj.frame, *(p.default for p in obj.signature.parameters.values())]
    if isinstance(obj, functools.partial):
        return [obj.func, obj.args, obj.keywords]
    if isinstance(obj, types.MethodType | types.BuiltinMethodType):
        return [obj.__self__]
    if isinstance(obj, set | collections.deque):
        return list(obj)
    return list(_attributes(obj).values())


def _attributes(obj: Any) -> dict[str, Any]:
    found = dict(getattr(obj, "__dict__", {}))
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(obj, name) and not name.startswith("__"):
                found[name] = getattr(obj, name)
    return found


def picture(obj: Any) -> Any:
    """What an object looks like now: compared item by item, by identity."""
    if isinstance(obj, set | collections.deque):
        return list(obj)
    if isinstance(obj, bytearray | memoryview):
        return [hash(bytes(obj))]
    if isinstance(obj, np.ndarray):
        return [hash(obj.tobytes())] if not obj.dtype.hasobject else obj.ravel().tolist()
    if isinstance(obj, InterpretedFunction | functools.partial):
        return []
    progress = [_progress(obj)] if hasattr(type(obj), "__next__") else []
    return progress + [x for pair in _attributes(obj).items() for x in pair]


def _same_picture(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _progress(iterator: Any) -> int:
    """A number that changes when an iterator is advanced; 0 where Python does not tell."""
    if isinstance(iterator, InterpretedGenerator):
        return iterator.steps
    if isinstance(iterator, types.GeneratorType):
        return -1 if iterator.gi_frame is None else iterator.gi_frame.f_lasti
    hint = operator.length_hint(iterator, -1)
    return hash(_reduced(iterator)) if hint < 0 else hint


def _reduced(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_reduced(item) for item in x)
    if isinstance(x, int):
        return x
    if not hasattr(type(x), "__next__"):
        return id(x)
    hint = operator.length_hint(x, -1)
    if hint >= 0:
        return hint
    reduce: Callable[[], Any] | None = getattr(x, "__reduce__", None)
    try:
        return _reduced(reduce()[1:]) if reduce else 0
    except TypeError:
        return 0


# -- lists and dicts that are one of two --------------------------------------------------------------


class Joined:
    """Lists and dicts that run-time control flow made one of two objects, while another name still leads to one.

    Which one it is, is not known, so they can be read and copied, but a change in place is refused.
    """

    def __init__(self) -> None:
        self._saved: dict[int, _Saved] = {}

    def add(self, container: Any) -> None:
        """From now on `container` may not change."""
        self._saved[id(container)] = _Saved(container, container, container.copy())

    def holds(self, container: Any) -> bool:
        """Whether `container` is one of these."""
        return id(container) in self._saved

    def check(self) -> None:
        """CaptureError if one has changed."""
        for saved in self._saved.values():
            if not saved.is_untouched:
                kind = type(saved.holder).__name__
                raise CaptureError(
                    f"this {kind} cannot be changed in place: it is one of two {kind}s, depending on a run-time "
                    "condition or loop, and another name leads to one of them",
                    hint=f"copy it first, e.g. x = {kind}(x), or give each name its own {kind}",
                )


def same(a: Any, b: Any) -> bool:
    """Whether two Python values are interchangeable: one object, equal numbers or texts, tuples of such."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return a.hex() == b.hex() if a == a and b == b else a != a and b != b
    return isinstance(a, bool | int | str | bytes) and bool(a == b)
