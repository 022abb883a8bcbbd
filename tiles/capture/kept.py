"""Captured kernels kept on disk: found again by their source and arguments, if all they took from outside is as it was.

A file holds the IR and, in order, each value that the capture read from outside: how to reach it from the kernel's
function, and its picture. A kernel that ran anything else than helpers, the language and Python's own functions is not
kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from warpwave.tiles import disk_cache
from warpwave.tiles.capture.capture import Captured, capture
from warpwave.tiles.capture.dependencies import ABSENT, Dependencies
from warpwave.tiles.capture.portable import NotPortable, digest, is_ours, picture, source_picture, was_captured_from
from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir.serial import from_json, to_json
from warpwave.tiles.types import Type

_TILES = Path(__file__).parents[1]


def kept_or_captured(
    function: types.FunctionType, params: Mapping[str, Type | None], constants: Mapping[str, Any]
) -> Captured:
    """What `capture` gives, from the disk if it was kept there and would be the same now."""
    path = None if disk_cache.is_bypassed() else _place(function, params, constants)
    if path is None:
        return capture(function, params, constants)
    found = _load(path, function, constants)
    if found is None:
        found = capture(function, params, constants)
        _save(path, function, constants, found)
    return found


def _place(
    function: types.FunctionType, params: Mapping[str, Type | None], constants: Mapping[str, Any]
) -> Path | None:
    """The file for these arguments; None if a constant of the kernel means nothing to another process."""
    try:
        parts = [
            source_picture(function),
            [[name, picture(type_, [])] for name, type_ in params.items()],
            [[name, picture(value, [])] for name, value in constants.items()],
            _SURROUNDINGS,
        ]
    except NotPortable:
        return None
    return disk_cache.folder("captured") / f"{digest(json.dumps(parts))}.json"


def _surroundings() -> list[Any]:
    """Python, NumPy, and the files of the language as the file system knows them: reading them would take longer."""
    own: list[Any] = []
    for folder in ("", "capture", "ir", "language", "passes"):
        for entry in sorted(os.scandir(_TILES / folder), key=lambda e: e.name):
            if entry.name.endswith(".py"):
                s = entry.stat()
                own.append([entry.path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino])
    return [sys.version, np.__version__, own]


_SURROUNDINGS = _surroundings()  # now, as the files may change while this process runs on with what it imported


# -- reads --------------------------------------------------------------------------------------------


class _Reachable:
    """What can be found again from a kernel's function and constants: each thing by the steps that lead to it.

    Things are numbered: the function, the constants, then every value that was read.
    """

    def __init__(self, function: types.FunctionType, constants: Mapping[str, Any]) -> None:
        self.things: list[Any] = []
        self._steps: dict[int, list[Any]] = {}
        for thing in (function, *constants.values()):
            self.add(thing)

    def add(self, thing: Any) -> None:
        """The next thing; a function leads to its variables."""
        number = len(self.things)
        self.things.append(thing)
        if isinstance(thing, types.FunctionType):
            self._steps.setdefault(id(thing), ["itself", number])
            self._steps.setdefault(id(thing.__globals__), ["globals", number])
            for i, cell in enumerate(thing.__closure__ or ()):
                self._steps.setdefault(id(cell), ["cell", number, i])
        elif isinstance(thing, types.ModuleType):
            self._steps.setdefault(id(thing), ["itself", number])

    def steps_to(self, owner: Any) -> list[Any]:
        """How to reach the owner of a value."""
        steps = self._steps.get(id(owner))
        if steps is None:
            raise NotPortable(f"a {type(owner).__name__} that no variable leads to")
        return steps

    def owner(self, kind: str, number: int, *index: int) -> Any:
        """What these steps lead to."""
        thing = self.things[number]
        if kind == "globals":
            return thing.__globals__
        return thing.__closure__[index[0]] if kind == "cell" else thing


def _reads(captured: Captured, reachable: _Reachable) -> Iterator[list[Any]]:
    """Each value from outside: steps to its owner, its name there, and its picture."""
    for dependency in captured.dependencies:
        if is_ours(dependency.owner):
            continue  # what our own objects hold follows from the language
        if not dependency.unchanged():
            raise NotPortable("a variable that another thread has changed")
        value = dependency.owner if dependency.function is not None else dependency.read()
        yield [reachable.steps_to(dependency.owner), dependency.name, _checked(value)]
        reachable.add(value)


def _checked(value: Any) -> Any:
    """A value's picture, if this process saw its functions as the picture says."""
    helpers: list[types.FunctionType] = []
    pictured = _picture(value, helpers)
    if not all(was_captured_from(helper, source_picture(helper)) for helper in helpers):
        raise NotPortable("a function whose file has changed")
    return pictured


def _picture(value: Any, helpers: list[types.FunctionType]) -> Any:
    return ["absent"] if value is ABSENT else picture(value, helpers)


def _load(path: Path, function: types.FunctionType, constants: Mapping[str, Any]) -> Captured | None:
    """The kept kernel, if all that it took from outside is still there and the same."""
    try:
        found = json.loads(path.read_text())
        reads, kernel = found["reads"], found["kernel"]
    except (OSError, ValueError, KeyError):  # not kept, or nothing that can be read
        return None
    reachable, seen = _Reachable(function, constants), Dependencies()
    for steps, name, pictured in reads:
        try:
            value = seen.read_again(reachable.owner(*steps), name)
            if _picture(value, []) != pictured:
                return None
        except Exception:  # a variable is gone, or holds something else
            return None
        reachable.add(value)
    return Captured(from_json(kernel, constants), tuple(seen.all()), closed=True)


def _save(path: Path, function: types.FunctionType, constants: Mapping[str, Any], captured: Captured) -> None:
    """Keep a kernel, if nothing decided what it became but values that have pictures."""
    if not captured.closed:
        return
    try:
        if not was_captured_from(function, source_picture(function)):
            return
        for value in constants.values():
            _checked(value)
        reads = list(_reads(captured, _Reachable(function, constants)))
    except NotPortable:
        return
    data = json.dumps({"reads": reads, "kernel": to_json(captured.kernel)}).encode()
    with contextlib.suppress(UnsupportedError):  # a folder that cannot be written costs the next process a capture
        disk_cache.write_whole(path, data)
