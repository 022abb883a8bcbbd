"""Where a tile lies in a tensor: masked windows, computed with Python's unbounded integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.errors import TileValueError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Window:
    """The part of a tile of `shape` that is inside a tensor: `tensor[source]` is `tile[inside]`.

    `source` is None if nothing is.
    """

    shape: tuple[int, ...]
    source: tuple[int | slice, ...] | None
    inside: tuple[slice, ...] = ()

    def read(self, tensor: Array, fill: Any) -> Array:
        """The tile, `fill` where it is outside the tensor."""
        tile = np.full(self.shape, fill, tensor.dtype)
        if self.source is not None:
            tile[self.inside] = tensor[self.source]
        return tile

    def write(self, tensor: Array, tile: Array) -> None:
        """Overwrite the part of the tensor that the tile covers."""
        if self.source is not None:
            tensor[self.source] = tile[self.inside]


def window(tensor: Sequence[int], tile: tuple[int, ...], coords: Sequence[int], attrs: Mapping[str, Any]) -> Window:
    """The window of a load or store; see `warpwave.tiles.language.memory` for coordinates."""
    source: list[int | slice] = []
    inside: list[slice] = []
    for axis, (size, coord) in enumerate(zip(tensor, coords, strict=True)):
        if axis not in attrs["axes"]:
            if not 0 <= coord < size:
                return Window(tile, None)
            source.append(coord)
            continue
        extent = tile[attrs["axes"].index(axis)]
        start = coord * extent if attrs["unit"] == "tile" else coord
        low, high = max(start, 0), min(start + extent, size)
        if low >= high:
            return Window(tile, None)
        source.append(slice(low, high))
        inside.append(slice(low - start, high - start))
    return Window(tile, tuple(source), tuple(inside))


def buffer_window(buffer: Sequence[int], tile: tuple[int, ...], offsets: Sequence[int]) -> Window:
    """The window of a shared buffer; it must lie inside."""
    ranges = list(zip(offsets, tile, buffer, strict=True))
    for offset, extent, size in ranges:
        if not 0 <= offset <= size - extent:
            raise TileValueError(f"window [{offset}:{offset + extent}] is outside a shared tile of extent {size}")
    source = tuple(slice(offset, offset + extent) for offset, extent, _ in ranges)
    return Window(tile, source, tuple(slice(None) for _ in tile))
