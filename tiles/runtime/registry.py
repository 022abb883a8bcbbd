"""Finds the backends that installed packages register in the entry-point group `warpwave.backends`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpwave.tiles.errors import TileError, TileTypeError, TileValueError, UnsupportedError
from warpwave.tiles.runtime.backend import Backend, Target

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "warpwave.backends"
SIMULATED = ":sim"


@dataclass(frozen=True)
class Plugin:
    """One registered backend. `backend` is None if it could not be loaded, then `problem` says why."""

    name: str
    owner: str
    backend: Backend | None
    problem: str = ""


class _Plugins(Mapping[str, Plugin]):
    """Backends by name, each imported when it is first asked for: a launch on one needs no other."""

    def __init__(self, points: Mapping[str, EntryPoint]) -> None:
        self._points = points
        self._loaded: dict[str, Plugin] = {}

    def __getitem__(self, name: str) -> Plugin:
        if name not in self._loaded:
            self._loaded[name] = _plugin(self._points[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._points))

    def __len__(self) -> int:
        return len(self._points)


def plugins() -> Mapping[str, Plugin]:
    """All registered backends by name; a broken one is there with its problem."""
    return _load()


@functools.cache
def _load() -> Mapping[str, Plugin]:
    found: dict[str, EntryPoint] = {}
    for point in _entry_points():
        other = found.setdefault(point.name, point)
        if other.value != point.value or _owner(other) != _owner(point):
            raise TileValueError(
                f"two packages register the backend {point.name!r}: {_owner(other)} ({other.value}) and "
                f"{_owner(point)} ({point.value})",
                hint=f"uninstall one: pip uninstall {_owner(point)}",
            )
    return _Plugins(found)


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and needed only when a kernel is launched

    return entry_points(group=GROUP)


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown package"


def _plugin(point: EntryPoint) -> Plugin:
    try:
        backend = point.load()
    except Exception as error:  # a third party's import may fail in any way, and must not take the others down
        return Plugin(point.name, _owner(point), None, f"{type(error).__name__}: {error}")
    if not isinstance(backend, Backend):
        return Plugin(point.name, _owner(point), None, f"{point.value} is no backend: {_missing(backend)}")
    if backend.name != point.name:
        return Plugin(point.name, _owner(point), None, f"it calls itself {backend.name!r}, not {point.name!r}")
    return Plugin(point.name, _owner(point), backend)


def _missing(backend: object) -> str:
    members = ("name", "targets", "target_for", "diagnose", "compile")
    return "it lacks " + ", ".join(m for m in members if not hasattr(backend, m))


def targets() -> list[Target]:
    """The targets of all backends that could be loaded."""
    return [t for p in plugins().values() if p.backend for t in p.backend.targets()]


def resolve(target: str) -> Backend:
    """The backend that compiles for `target`; an error with the nearest name otherwise.

    A target may end in ":sim", which asks the backend for its simulator.
    """
    if not isinstance(target, str):
        raise TileTypeError(f"a target is a name such as 'reference', got {target!r}")
    plugin = plugins().get(target.split(":")[0])
    if plugin is not None and plugin.backend is None:
        raise UnsupportedError(
            f"the backend {plugin.name!r} of {plugin.owner} could not be loaded: {plugin.problem}",
            hint="`warpwave doctor` says what is missing",
        )
    if plugin is not None and plugin.backend is not None:
        known = {t.name for t in plugin.backend.targets()}
        if target in known or target.removesuffix(SIMULATED) in known:
            return plugin.backend
    raise _unknown(target)


def _unknown(target: str) -> TileError:
    names = [t.name for t in targets()]
    if not names:
        return UnsupportedError(
            "no backend is installed",
            hint="warpwave was not installed from its source tree: pip install -e .",
        )
    near = difflib.get_close_matches(target, names, 1, 0.4)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return UnsupportedError(f"there is no target {target!r}", hint=f"{guess}installed: {', '.join(names)}")


def target_for(device: str) -> str:
    """The target for arrays on a device; UnsupportedError if no backend takes them."""
    for plugin in plugins().values():
        target = plugin.backend.target_for(device) if plugin.backend else None
        if target is not None:
            return target
    raise UnsupportedError(
        f"no installed backend takes arrays on {device}",
        hint=f"installed: {', '.join(plugins()) or 'none'}; `warpwave doctor` says what is missing",
    )
