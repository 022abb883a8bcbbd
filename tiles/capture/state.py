"""What a run-time region (loop body or branch) changed: snapshots of all reachable Python state.

A region's code runs once at capture, but stands for zero, one or many executions. Whatever it changes has
to become a value of the region, or to be refused. Changes are found by comparing all variables and
containers that kernel code can reach before and after, so that a change by a helper, a closure or an alias
is seen as well as a plain assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpwave.tiles.capture.scope import UNBOUND, Frame, InterpretedFunction
from warpwave.tiles.errors import CaptureError

Holder = Frame | list[Any] | dict[Any, Any]


@dataclass(frozen=True)
class Slot:
    """A place that holds a value: a variable of a frame or an item of a list or dict."""

    holder_id: int
    key: Any


@dataclass
class _Saved:
    holder: Any
    content: Any


class Snapshot:
    """The contents of every frame and container reachable from `frames`."""

    def __init__(self, frames: list[Frame]) -> None:
        self._saved: dict[int, _Saved] = {}
        stack: list[Any] = list(frames)
        while stack:
            self._visit(stack.pop(), stack)

    def _visit(self, obj: Any, stack: list[Any]) -> None:
        if isinstance(obj, InterpretedFunction):
            stack.append(obj.frame)
        elif isinstance(obj, tuple):
            stack.extend(obj)
        elif isinstance(obj, Frame | list | dict | set) and id(obj) not in self._saved:
            content = dict(obj.vars) if isinstance(obj, Frame) else obj.copy()
            self._saved[id(obj)] = _Saved(obj, content)
            if isinstance(obj, Frame) and obj.parent is not None:
                stack.append(obj.parent)
            stack.extend(content.values() if isinstance(content, dict) else content)

    def restore(self) -> None:
        """Put every frame and container back to its saved contents."""
        for saved in self._saved.values():
            target = saved.holder.vars if isinstance(saved.holder, Frame) else saved.holder
            target.clear()
            if isinstance(target, list):
                target.extend(saved.content)
            else:
                target.update(saved.content)

    def before(self, slot: Slot) -> Any:
        """The saved value of a slot, UNBOUND if there was none."""
        content = self._saved[slot.holder_id].content
        return content.get(slot.key, UNBOUND) if isinstance(content, dict) else content[slot.key]

    def current(self, slot: Slot) -> Any:
        """The value of a slot now."""
        holder = self._saved[slot.holder_id].holder
        if isinstance(holder, Frame):
            return holder.vars.get(slot.key, UNBOUND)
        return holder[slot.key]

    def assign(self, slot: Slot, value: Any) -> None:
        """Set a slot now (UNBOUND removes a variable)."""
        holder = self._saved[slot.holder_id].holder
        target = holder.vars if isinstance(holder, Frame) else holder
        if value is UNBOUND:
            target.pop(slot.key, None)
        else:
            target[slot.key] = value

    def describe(self, slot: Slot) -> str:
        """How to name the slot to the user."""
        holder = self._saved[slot.holder_id].holder
        if isinstance(holder, Frame):
            return f"variable {slot.key!r}"
        owner = self._name_of(holder)
        return f"item {slot.key!r} of {owner}"

    def changes(self) -> list[Slot]:
        """Slots whose value is not what was saved; CaptureError for a container that changed its shape."""
        found: list[Slot] = []
        for holder_id, saved in self._saved.items():
            if isinstance(saved.holder, Frame):
                keys = saved.content.keys() | saved.holder.vars.keys()
                found += [s for k in sorted(keys) if self._changed(s := Slot(holder_id, k))]
            else:
                found += self._container_changes(holder_id, saved)
        return found

    def _container_changes(self, holder_id: int, saved: _Saved) -> list[Slot]:
        holder, content = saved.holder, saved.content
        same_shape = len(holder) == len(content)
        if isinstance(holder, set):
            same_shape = holder == content
        elif isinstance(holder, dict):
            same_shape = list(holder) == list(content)
        if not same_shape:
            raise CaptureError(
                f"{self._name_of(holder)} changes its size or keys inside a run-time loop or branch",
                hint="its shape is part of the compiled kernel: build it before, or loop over a compile-time range",
            )
        if isinstance(holder, set):
            return []
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        return [s for k in keys if self._changed(s := Slot(holder_id, k))]

    def _changed(self, slot: Slot) -> bool:
        return not same(self.before(slot), self.current(slot))

    def _name_of(self, container: Any) -> str:
        kind = type(container).__name__
        for saved in self._saved.values():
            if isinstance(saved.holder, Frame):
                for name, value in saved.content.items():
                    if value is container:
                        return f"{kind} {name!r}"
        return f"a {kind}"


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
