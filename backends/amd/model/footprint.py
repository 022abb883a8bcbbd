"""Traffic of a tiled product in closed form: workgroups that run at the same time advance in step.

In one round every CU holds its workgroups, and all make the same step over k together. An L2 then fetches each
block that its XCD's workgroups want once, and the Infinity Cache each block that any XCD wants once, unless
the block is still there from a round before. `replay` makes the same count access by access.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpwave.backends.amd.model.traffic import Ints, TileGemm, Tiles

Bytes = NDArray[np.float64]


@dataclass(frozen=True)
class Rounds:
    """Bytes that the workgroups of each round ask for (`asked`), that L2 lacks, and that the Infinity Cache lacks.

    `active` counts the workgroups of each round.
    """

    active: Ints
    asked: Bytes
    past_l2: Bytes
    past_cache: Bytes

    def only(self, chosen: NDArray[np.bool_]) -> Rounds:
        """Some of the rounds."""
        return Rounds(self.active[chosen], self.asked[chosen], self.past_l2[chosen], self.past_cache[chosen])

    @property
    def l2_hit(self) -> float:
        """Share of the asked bytes that L2 has."""
        return 1 - float(self.past_l2.sum() / self.asked.sum())

    @property
    def cache_hit(self) -> float:
        """Share of the bytes L2 lacks that the Infinity Cache has."""
        return 1 - float(self.past_cache.sum() / self.past_l2.sum())


@dataclass(frozen=True)
class _Operand:
    """One operand's accesses: for each workgroup its panel (a tile row of a or column of b, whole k of a split)."""

    panels: Ints
    sizes: Bytes  # bytes of each panel


def rounds_of(problem: TileGemm, tiles: Tiles, xcds: int, per_xcd: int, cache_bytes: int) -> Rounds:
    """Traffic by round of `per_xcd` workgroups on each of `xcds` XCDs; workgroup ids go round robin over XCDs."""
    ids = np.arange(len(tiles.rows) * problem.splits)
    at, turn = ids % xcds, ids // xcds // per_xcd
    operands = _operands(problem, tiles)
    count = int(turn.max()) + 1
    asked = sum(_by_round(turn, op.sizes[op.panels], count) for op in operands)
    past_l2 = sum(_distinct(turn, at * len(op.sizes) + op.panels, op, count, xcds) for op in operands)
    panels = np.concatenate([operands[0].panels, operands[1].panels + len(operands[0].sizes)])
    sizes = np.concatenate([op.sizes for op in operands])
    past_cache = _past_cache(np.concatenate([turn, turn]), panels, sizes, cache_bytes)
    return Rounds(np.bincount(turn, minlength=count), np.asarray(asked), np.asarray(past_l2), past_cache)


def _operands(problem: TileGemm, tiles: Tiles) -> tuple[_Operand, _Operand]:
    split = np.repeat(np.arange(problem.splits), len(tiles.rows))
    depth = np.float64(problem.k * problem.itemsize / problem.splits)
    rows = np.tile(tiles.rows, problem.splits) + split * problem.rows
    cols = np.tile(tiles.cols, problem.splits) + split * problem.cols
    heights: Bytes = np.tile(problem.heights().astype(np.float64), problem.splits) * depth
    widths: Bytes = np.tile(problem.widths().astype(np.float64), problem.splits) * depth
    return _Operand(rows, heights), _Operand(cols, widths)


def _by_round(turn: Ints, sizes: Bytes, count: int) -> Bytes:
    total: Bytes = np.bincount(turn, weights=sizes, minlength=count).astype(np.float64)
    return total


def _distinct(turn: Ints, keys: Ints, op: _Operand, count: int, xcds: int) -> Bytes:
    """Bytes of the distinct keys of each round, each counted once."""
    span = len(op.sizes) * xcds
    seen = np.unique(turn * span + keys)
    return _by_round(seen // span, op.sizes[seen % len(op.sizes)], count)


def _past_cache(turn: Ints, panels: Ints, sizes: Bytes, capacity: int) -> Bytes:
    """Bytes of each round that the Infinity Cache does not hold from rounds before (least recently used leaves).

    Between a panel's uses in two rounds, the blocks of all panels used since then went through the cache.
    """
    seen = np.unique(turn * len(sizes) + panels)
    starts = np.searchsorted(seen // len(sizes), np.arange(int(turn.max()) + 2))
    last = np.full(len(sizes), -1)
    missed = np.zeros(len(starts) - 1)
    for index in range(len(missed)):
        now = seen[starts[index] : starts[index + 1]] % len(sizes)
        missed[index] = sizes[now[~_kept(last, now, sizes, capacity)]].sum()
        last[now] = index
    return missed


def _kept(last: Ints, now: Ints, sizes: Bytes, capacity: int) -> NDArray[np.bool_]:
    """Which panels of this round are still there: the bytes used since their last use fit the cache.

    Half of the round of that last use and half of this round lie between two uses of a block on average.
    """
    used = np.flatnonzero(last >= 0)
    by_age = used[np.argsort(last[used])[::-1]]
    newer = np.concatenate([[0.0], np.cumsum(sizes[by_age])])
    ages = -last[by_age]
    before = newer[np.searchsorted(ages, -last[now], side="left")]
    within = newer[np.searchsorted(ages, -last[now], side="right")]
    between = (before + within) / 2 + sizes[now].sum() / 2
    kept: NDArray[np.bool_] = (last[now] >= 0) & (between <= capacity)
    return kept
