"""What the workgroups of a tiled product read, and in which order the hardware starts them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpwave.backends.amd.grid_order import GridOrder

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TileGemm:
    """c[m, n] = a[m, k] b[n, k]^T in blocks of `block_m` x `block_n`, `step` of k at a time, `itemsize` bytes.

    With `splits` > 1 each tile of c is computed by that many workgroups, each on its share of k.
    """

    m: int
    n: int
    k: int
    block_m: int
    block_n: int
    step: int = 64
    itemsize: int = 2
    splits: int = 1

    @property
    def rows(self) -> int:
        """Tile rows of c."""
        return -(-self.m // self.block_m)

    @property
    def cols(self) -> int:
        """Tile columns of c."""
        return -(-self.n // self.block_n)

    @property
    def tiles(self) -> int:
        """Tiles of c."""
        return self.rows * self.cols

    @property
    def workgroups(self) -> int:
        """Workgroups of the launch."""
        return self.tiles * self.splits

    @property
    def steps(self) -> int:
        """Steps over k that one workgroup makes."""
        return -(-self.k // (self.step * self.splits))

    @property
    def flops(self) -> int:
        """Operations of the product itself, without those on padding."""
        return 2 * self.m * self.n * self.k

    def heights(self) -> Ints:
        """Rows of a that exist in each tile row: loads out of range move no bytes."""
        return _extents(self.m, self.block_m)

    def widths(self) -> Ints:
        """Rows of b that exist in each tile column."""
        return _extents(self.n, self.block_n)


def _extents(size: int, block: int) -> Ints:
    starts = np.arange(0, size, block)
    return np.minimum(size - starts, block)


@dataclass(frozen=True)
class Tiles:
    """The tile of each workgroup id, for one split of k; splits follow one another."""

    rows: Ints
    cols: Ints


def windowed(problem: TileGemm, order: GridOrder, limit: int | None = None) -> Tiles:
    """Runs of `chunk` tiles on each XCD, windows of `window` rows: `grid_order.tile_of` for all ids at once.

    Only the first `limit` ids where one is given.
    """
    count = problem.tiles if limit is None else min(limit, problem.tiles)
    ids = np.arange(count)
    group = order.xcds * order.chunk
    turn = ids // order.xcds
    moved = turn // order.chunk * group + ids % order.xcds * order.chunk + turn % order.chunk
    return _in_windows(problem, order.window, np.where(ids < problem.tiles // group * group, moved, ids))


def row_major(problem: TileGemm) -> Tiles:
    """Tiles row by row, as ids count: no regard for XCDs."""
    ids = np.arange(problem.tiles)
    return Tiles(ids // problem.cols, ids % problem.cols)


def contiguous(problem: TileGemm, xcds: int, window: int) -> Tiles:
    """Each XCD gets one contiguous run of the windowed traversal (`grid_order.contiguous_transform`)."""
    xcd, turn = np.arange(problem.tiles) % xcds, np.arange(problem.tiles) // xcds
    share, rest = divmod(problem.tiles, xcds)
    return _in_windows(problem, window, xcd * share + np.minimum(xcd, rest) + turn)


def _in_windows(problem: TileGemm, window: int, positions: Ints) -> Tiles:
    per_window = window * problem.cols
    first = positions // per_window * window
    height = np.minimum(problem.rows - first, window)
    rest = positions % per_window
    return Tiles(first + rest % height, rest // height)
