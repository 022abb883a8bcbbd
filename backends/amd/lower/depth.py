"""Which depth each lane and item of a product's operands stands for.

Both operands of an instruction must agree, nothing else is fixed. Where an operand's registers come from an
earlier accumulator, the other is read in that order, so that nothing is shuffled. Otherwise a lane's items of
neighbouring steps are neighbours in depth, so that they are read 16 bytes at a time.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warpwave.backends.amd.arch import WAVE, Mfma, Target
from warpwave.backends.amd.layout import LANE_BITS, steps_together
from warpwave.tiles.dtypes import DType
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.context import lane_terms
from warpwave.tiles.simt.layout import Ints, Layout

if TYPE_CHECKING:
    from warpwave.backends.amd.lower.context import AmdLowering


@dataclass(frozen=True)
class DepthOrder:
    """Depth of a lane's item in a step: the sum of `lane_parts` over the lane's bits, plus `items[step][item]`.

    `together` steps are read at a time: their items are `merged`.
    """

    lane_parts: tuple[int, ...]
    items: tuple[tuple[int, ...], ...]
    together: int = 1

    @property
    def lane(self) -> str:
        """C expression of the lane's part."""
        return " + ".join(lane_terms(self.lane_parts)) or "0"

    @property
    def of_lanes(self) -> Ints:
        """The lanes' parts as numbers."""
        lane = np.arange(WAVE)
        return np.asarray(sum((lane >> b & 1) * part for b, part in enumerate(self.lane_parts)), np.int64)

    @property
    def flat(self) -> list[int]:
        """All items of all steps."""
        return [k for step in self.items for k in step]

    @property
    def reach(self) -> int:
        """One more than the largest depth."""
        return max(max(step) for step in self.items) + sum(self.lane_parts) + 1

    @property
    def merged(self) -> tuple[tuple[int, ...], ...]:
        """Items of the steps that are read at a time, one after the other."""
        n = self.together
        return tuple(sum(self.items[i : i + n], ()) for i in range(0, len(self.items), n))

    def constant_bits(self, run: int) -> int:
        """Mask of the bits in which the depth of a lane's reads of `run` items differs."""
        return functools.reduce(operator.or_, (group[e] for group in self.merged for e in range(0, len(group), run)))

    def run(self, dtype: DType) -> int:
        """Items that are consecutive in depth: elements of one LDS access."""
        run = min(len(self.merged[0]), 16 // dtype.nbytes)
        while run > 1 and not _are_runs(self.merged, run):
            run //= 2
        return run


def _are_runs(groups: tuple[tuple[int, ...], ...], run: int) -> bool:
    for group in groups:
        for start in range(0, len(group), run):
            first = group[start]
            if first % run or any(group[start + i] != first + i for i in range(run)):
                return False
    return True


def natural_order(mfma: Mfma, depth: int, dtype: DType) -> DepthOrder:
    """The instruction's own order, with a lane's items of steps that are read together side by side."""
    per_lane, together = mfma.k * mfma.m // WAVE, steps_together(mfma, depth, dtype.nbytes)
    run = per_lane // mfma.runs
    bits = mfma.m.bit_length() - 1
    parts = [0] * bits + [run * together << b for b in range(LANE_BITS - bits)]
    one = [e // run * (mfma.k // mfma.runs) + e % run for e in range(per_lane)]
    count = -(-depth // mfma.k)
    first = [i // together * together * mfma.k + i % together * per_lane for i in range(count)]
    return DepthOrder(tuple(parts), tuple(tuple(f + e for e in one) for f in first), together)


def register_order(mfma: Mfma, layout: Layout, accumulator: Layout, dtype: DType) -> DepthOrder | None:
    """The order in which a register operand's items stand for depth; None if it does not fit the instruction."""
    bits = mfma.m.bit_length() - 1
    per_lane = mfma.k * mfma.m // WAVE
    rows_fit = all(p == (1 << b, 0) for b, p in enumerate(layout.lanes[:bits]))
    cols_only = all(p[0] == 0 for p in layout.lanes[bits:])
    waves_fit = [(n, (p[0], 0)) for n, p in accumulator.waves] == list(layout.waves)
    rows = list(dict.fromkeys(i[0] for i in layout.items))
    if not (rows_fit and cols_only and waves_fit) or rows != list(dict.fromkeys(i[0] for i in accumulator.items)):
        return None
    per_row = [[i[1] for i in layout.items if i[0] == r] for r in rows]
    by_row = [i[0] for i in layout.items] == [r for r in rows for _ in per_row[0]]
    if not by_row or any(cols != per_row[0] for cols in per_row) or len(per_row[0]) % per_lane:
        return None
    cols = per_row[0]
    steps = tuple(tuple(cols[s : s + per_lane]) for s in range(0, len(cols), per_lane))
    order = DepthOrder(tuple(p[1] for p in layout.lanes), steps)
    return _with_steps_together(order, dtype)


def _with_steps_together(order: DepthOrder, dtype: DType) -> DepthOrder:
    """As many steps together as make longer runs."""
    best = order
    while True:
        wider = DepthOrder(order.lane_parts, order.items, 2 * best.together)
        if len(order.items) % wider.together or wider.run(dtype) <= best.run(dtype):
            return best
        best = wider


def can_transpose(target: Target, order: DepthOrder, dtype: DType) -> bool:
    """Whether transposing reads serve where depth runs across rows: it has runs of what such a read gives a lane."""
    return f"ds_read_b64_tr_b{dtype.bits}" in target.lds and order.run(dtype) % (8 // dtype.nbytes) == 0


def depth_order(lw: AmdLowering, op: Op) -> tuple[DepthOrder, bool]:
    """The order for a product, and whether its first operand is used from registers as it lies there."""
    a = op.operands[1]
    mfma = lw.plan.mmas[op].mfma
    if a.tile.space == "register" and not op.attrs["transpose_a"]:
        order = register_order(mfma, lw.layout(a), lw.layout(op.result), op.operands[2].tile.dtype)
        if order is not None:
            return order, True
    depth = a.tile.shape[0 if op.attrs["transpose_a"] else 1]
    return natural_order(mfma, depth, a.tile.dtype), False
