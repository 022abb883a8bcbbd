"""The launch grid, loops, barriers and debugging aids."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.dtypes import bool_, i32, i64
from warpwave.tiles.errors import CaptureError, TileTypeError, TileValueError
from warpwave.tiles.ir import host_values
from warpwave.tiles.language import context
from warpwave.tiles.language.creation import iota
from warpwave.tiles.language.elementwise import as_tile, cast, is_number, where
from warpwave.tiles.language.handles import Tile
from warpwave.tiles.types import rv

ACCESSES = ("load", "store", "atomic_add", "shared_alloc", "shared_read", "shared_write", "barrier")


@dataclass(frozen=True)
class RuntimeRange:
    """The iterable of a run-time loop; only a `for` statement of a kernel can go through it."""

    start: Tile
    stop: Tile
    step: Tile
    kind: str = "loop"
    stages: int | None = None

    def __iter__(self) -> Iterator[Any]:
        raise CaptureError(
            "a run-time loop must be the iterable of a `for` statement in kernel code",
            hint="enumerate, zip, list and comprehensions need a compile-time range",
        )


def grid(*sizes: Any) -> Any:
    """This block's coordinates in a grid of up to 4 dimensions; sizes are integers or i32 scalars.

    One call per kernel, before any load or store. In which order blocks run is the backend's choice; a
    kernel must not depend on it. A size of 0 launches nothing.
    """
    if not 1 <= len(sizes) <= 4:
        raise TileValueError(f"a grid has 1 to 4 dimensions, got {len(sizes)}")
    builder = context.builder()
    if "grid" in builder.emitted:
        raise TileValueError("ww.grid is called a second time", hint="pass the coordinates on instead")
    if builder.block is not builder.body:
        raise TileValueError("ww.grid is called under a run-time condition or loop", hint="call it first of all")
    if not builder.emitted.isdisjoint(ACCESSES):
        raise TileValueError("ww.grid is called after a load or store", hint="call it first of all")
    values = [index(size, "a grid size").value for size in sizes]
    if not host_values(builder.body).issuperset(values):
        raise TileValueError(
            "a grid size depends on more than arguments, tensor extents and constants",
            hint="compute it with arithmetic, min, max and ww.where; `if` on run-time values is too late",
        )
    results = tuple(Tile(v) for v in builder.emit("grid", values))
    return results if len(results) > 1 else results[0]


def index(x: Any, what: str) -> Tile:
    """`x` as an i32 scalar."""
    tile = as_tile(x)
    if tile.shape or not tile.dtype.is_int:
        raise TileTypeError(f"{what} must be an integer, got {tile.type}")
    if tile.dtype == i64:
        raise TileTypeError(f"{what} must be an i32, got {tile.type}", hint="convert with ww.cast(x, i32) if it fits")
    return cast(tile, i32)


def cdiv(a: Any, b: Any) -> Any:
    """a / b rounded up, for integers known now or at run time."""
    return -(-a // b)


def make_range(args: tuple[Any, ...], kind: str = "loop", stages: int | None = None) -> RuntimeRange:
    """A run-time range from range()'s arguments."""
    if not 1 <= len(args) <= 3:
        raise TileTypeError(f"a range takes 1 to 3 arguments, got {len(args)}")
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    if not is_number(step) or step == 0:
        raise CaptureError(
            "the step of a run-time loop must be a compile-time integer other than 0",
            hint="loop over a plain range and multiply",
        )
    first, last, by = (index(x, "a loop bound") for x in (start, stop, step))
    return RuntimeRange(first, last, by, kind, stages)


def range(*args: Any) -> RuntimeRange:
    """A loop that stays a loop in the compiled kernel, even if its bounds are known at capture."""
    return make_range(args)


def pipeline(*args: Any, stages: int | None = None) -> RuntimeRange:
    """A loop whose loads into shared tiles run ahead of their use; `pipeline(n)` or `pipeline(start, stop)`.

    How far ahead is the backend's choice unless `stages` says how many iterations' tiles are held at once.
    Loads may have any coordinates, so also those of an earlier or later iteration.
    """
    if stages is not None and (not isinstance(stages, int) or stages < 1):
        raise TileValueError(f"stages is a positive compile-time integer, got {stages!r}")
    return make_range(args, "pipeline", stages)


def barrier() -> None:
    """All threads of the block arrive before any continues; global writes before it are visible after it."""
    context.builder().emit("barrier")


def print(message: str, *values: Any) -> None:
    """Print `message` and run-time values when the kernel runs (debugging)."""
    if not isinstance(message, str):
        raise TileTypeError(f"ww.print starts with a text, got {message!r}")
    context.builder().emit("print", [as_tile(v).value for v in values], message=message)


def check(condition: Any, message: str = "") -> None:
    """Stop the kernel with an error at this line unless all of `condition` is true (debugging)."""
    builder = context.builder()
    if isinstance(condition, builtins.bool):
        if condition:
            return
        if builder.block is builder.body:
            raise TileValueError(f"check failed at compile time: {message}")
    tile = as_tile(condition)
    if tile.dtype != bool_:
        raise TileTypeError(f"ww.check takes a comparison, got {tile.type}")
    builder.emit("check", [tile.value], message=message)


def causal_mask(scores: Tile, *, row: Any, col: Any, fill: Any = float("-inf")) -> Tile:
    """`scores` with elements right of the diagonal replaced by `fill`.

    (`row`, `col`) is the position of the tile's first element; an element stays where its column is not
    above its row. Bottom-right alignment for attention: row = first query + (keys - queries).
    """
    tile = as_tile(scores)
    if tile.type.rank != 2:
        raise TileTypeError(f"causal_mask takes a 2-D tile, got {tile.type}")
    rows = iota(rv[i32, tile.shape[0]]) + row
    cols = iota(rv[i32, tile.shape[1]]) + col
    return where(rows[:, None] >= cols[None, :], tile, fill)
