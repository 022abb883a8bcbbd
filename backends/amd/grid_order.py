"""In which order workgroups visit the tile grid, so that chiplets (XCDs) share what their L2 holds.

The hardware deals workgroup ids round robin over XCDs. Stage one gives each XCD runs of consecutive tiles;
stage two walks the grid in windows that are a few rows tall (HipKittens, arXiv 2511.08083, section 3.4). Both
are bijections for every size; the last, incomplete group keeps the hardware's order.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GridOrder:
    """A traversal: `chunk` consecutive tiles per XCD, `window` rows per window."""

    xcds: int
    chunk: int
    window: int


def chiplet_transform(block: int, size: int, xcds: int, chunk: int) -> int:
    """Position in the traversal of hardware workgroup id `block` of `size`: runs of `chunk` on each XCD."""
    group = xcds * chunk
    if block >= size // group * group:
        return block
    xcd, turn = block % xcds, block // xcds
    return turn // chunk * group + xcd * chunk + turn % chunk


def windowed_tile(position: int, rows: int, cols: int, window: int) -> tuple[int, int]:
    """Tile (row, col) at a position: windows of `window` rows, each walked column by column."""
    first = position // (window * cols) * window
    height = min(rows - first, window)
    rest = position % (window * cols)
    return first + rest % height, rest // height


def tile_of(block: int, rows: int, cols: int, order: GridOrder) -> tuple[int, int]:
    """The tile that workgroup `block` works on."""
    position = chiplet_transform(block, rows * cols, order.xcds, order.chunk)
    return windowed_tile(position, rows, cols, order.window)


def choose_order(rows: int, cols: int, xcds: int, per_xcd: int) -> GridOrder:
    """Windows and chunks for a grid, by what the grid model (`model.grid`) finds best over many shapes.

    The `per_xcd` tiles that an XCD works on at a time are a block eight rows tall. Where two windows divide into
    whole such blocks for four XCDs each, the XCDs together cover sixteen rows, which is squarer and so asks less
    of memory. A chunk above size / xcds would leave no full group, and so remap nothing.
    """
    window = min(8, rows)
    half = window * cols // 4
    wide = half > per_xcd and window * cols % (4 * per_xcd) == 0
    return GridOrder(xcds, max(1, min(half if wide else per_xcd, rows * cols // xcds)), window)


def contiguous_transform(block: int, size: int, xcds: int) -> int:
    """Position of hardware workgroup id `block` when each XCD gets one contiguous run, for any size.

    For attention: order the work by K/V head first. Workgroups that share a K/V head then meet on one XCD,
    but for the heads at the borders of runs, which no equal division can avoid.
    """
    xcd, turn = block % xcds, block // xcds
    return xcd * (size // xcds) + min(xcd, size % xcds) + turn
