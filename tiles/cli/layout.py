"""`warpwave show --layout`: lists the tiles of a kernel, or draws where one of them lies."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwave.tiles.drawing import TileLayout, draw
from warpwave.tiles.errors import TileValueError, UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime import registry


def show_layout(kernel: Kernel, target: str, wanted: str, output: str | None, options: Mapping[str, Any]) -> str:
    """What to print: the list of tiles, or where the picture of the wanted one was written."""
    layouts = _layouts(kernel, target, options)
    if not wanted:
        return "\n".join([*map(_describe, layouts), "", "draw one: --layout NAME -o FILE.svg"])
    layout = _chosen(layouts, wanted, kernel.name)
    if output is None:
        return _describe(layout)
    draw(layout, Path(output))
    return f"{_describe(layout)}\nwritten to {output}"


def _layouts(kernel: Kernel, target: str, options: Mapping[str, Any]) -> Sequence[TileLayout]:
    backend = registry.resolve(target)
    if not hasattr(backend, "layouts"):
        raise UnsupportedError(f"{target} says nothing about layouts", hint="choose another --target")
    layouts: Sequence[TileLayout] = backend.layouts(kernel, target, options)
    return layouts


def _describe(layout: TileLayout) -> str:
    """One line: name and place, and what the picture would show."""
    if layout.lanes is not None:
        groups, lanes, items, _ = layout.lanes.coordinates.shape
        return f"{layout.label}: {items} elements a lane, {groups} {layout.lanes.group}s of {lanes}"
    assert layout.placement is not None
    accesses = layout.placement.accesses
    if not accesses:  # of which nothing is known, conflicts included
        return f"{layout.label}: {layout.placement.swizzle}"
    lost = sum(access.conflicts for access in accesses)
    costs = [f"{a.instruction} {a.clocks} clocks" for a in accesses]
    verdict = "no bank conflicts" if not lost else f"{lost} clocks of bank conflicts"
    return f"{layout.label}: {layout.placement.swizzle}; {', '.join([*costs, verdict])}"


def _chosen(layouts: Sequence[TileLayout], wanted: str, kernel: str) -> TileLayout:
    """The tile of this name; NAME:LINE or NAME:space where there are several."""
    name, _, narrowed = wanted.partition(":")
    named = [x for x in layouts if x.name == name]
    if not named:
        names = sorted({x.name for x in layouts})
        near = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"its tiles are {', '.join(names) or 'none'}"
        raise TileValueError(f"kernel {kernel} has no tile {name!r}", hint=hint)
    fitting = [x for x in named if not narrowed or narrowed in (x.type.space, str(x.loc.line) if x.loc else "")]
    if len(fitting) != 1:
        listed = "\n".join(f"  {x.label} ({x.type.space})" for x in named)
        raise TileValueError(
            f"{len(fitting) or 'no'} tiles are called {wanted!r}:\n{listed}",
            hint=f"write --layout {name}:LINE or --layout {name}:{named[0].type.space}",
        )
    return fitting[0]
