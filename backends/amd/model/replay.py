"""Replay of a tiled product's loads through the L2 of each XCD and the Infinity Cache, block by block.

Workgroup ids go round robin over XCDs; on each XCD the next one starts where a compute unit is free. A workgroup
loads its block of a and of b at every step over k. Blocks are what the caches hold: their lines live together.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass

from warpwave.backends.amd.model.cache import LruCache
from warpwave.backends.amd.model.traffic import TileGemm, Tiles

BETWEEN = 0.5  # steps from the end of a workgroup to the first load of the next on the same compute unit


@dataclass(frozen=True)
class Caches:
    """The chip: XCDs, workgroups that an XCD holds at a time, bytes of each L2 and of the Infinity Cache."""

    xcds: int
    per_xcd: int
    l2_bytes: int
    cache_bytes: int


@dataclass(frozen=True)
class HitRates:
    """Shares of bytes: asked of L2 and there; asked of the Infinity Cache (which L2 lacked) and there."""

    l2: float
    cache: float


def replay(problem: TileGemm, tiles: Tiles, caches: Caches, *, jitter: float = 0.0, seed: int = 0) -> HitRates:
    """Hit rates of a run. `jitter` is the standard deviation of a step's duration, in steps."""
    l2 = [LruCache(caches.l2_bytes) for _ in range(caches.xcds)]
    last = LruCache(caches.cache_bytes)
    heights, widths = problem.heights().tolist(), problem.widths().tolist()
    rows, cols = tiles.rows.tolist(), tiles.cols.tolist()
    line = problem.step * problem.itemsize
    for xcd, group, step in _in_time(problem, caches, jitter, random.Random(seed)):
        split, tile = divmod(group, problem.tiles)
        row, col = rows[tile], cols[tile]
        for block, size in (((0, split, row, step), heights[row]), ((1, split, col, step), widths[col])):
            if not l2[xcd].access(block, size * line):
                last.access(block, size * line)
    hits, missed = sum(c.hit_bytes for c in l2), sum(c.missed_bytes for c in l2)
    return HitRates(hits / (hits + missed), last.hit_rate)


def _in_time(problem: TileGemm, caches: Caches, jitter: float, chance: random.Random) -> Iterator[tuple[int, int, int]]:
    """(XCD, workgroup, step) in the order in which the steps begin."""
    waiting = [iter(range(xcd, problem.workgroups, caches.xcds)) for xcd in range(caches.xcds)]
    due: list[tuple[float, int, int, int]] = []
    for turn in range(caches.per_xcd):
        for xcd, groups in enumerate(waiting):
            group = next(groups, None)
            if group is not None:
                due.append((turn * 1e-6, xcd, group, 0))
    heapq.heapify(due)
    while due:
        now, xcd, group, step = heapq.heappop(due)
        if step < problem.steps:
            yield xcd, group, step
            heapq.heappush(due, (now + 1 + jitter * chance.gauss(0, 1), xcd, group, step + 1))
            continue
        following = next(waiting[xcd], None)
        if following is not None:
            heapq.heappush(due, (now + BETWEEN, xcd, following, 0))
