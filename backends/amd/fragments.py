"""Which element of a matrix product each lane holds: closed-form maps of MFMA operands and accumulators.

The general rule is section 7.1.4 of the CDNA3 and CDNA4 ISA guides. All maps are integer arrays, indexed by
lane and by item (the position among the values that a lane holds, packed little-endian in its registers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.backends.amd.arch import WAVE, Mfma

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class Fragment:
    """`rows[lane, item]`, `cols[lane, item]` (and `block`, for instructions that do several products)."""

    rows: Ints
    cols: Ints
    block: Ints

    @property
    def items(self) -> int:
        """Values that a lane holds."""
        return int(self.rows.shape[1])


def _lanes_and_items(items: int) -> tuple[Ints, Ints]:
    lane, item = np.meshgrid(np.arange(WAVE), np.arange(items), indexing="ij")
    return lane.astype(np.int64), item.astype(np.int64)


def operand_a(mfma: Mfma) -> Fragment:
    """A[i, k]: rows are i, columns are k."""
    index, k, block = _operand(mfma, mfma.m)
    return Fragment(index, k, block)


def operand_b(mfma: Mfma) -> Fragment:
    """B[k, j]: rows are k, columns are j."""
    index, k, block = _operand(mfma, mfma.n)
    return Fragment(k, index, block)


def _operand(mfma: Mfma, extent: int) -> tuple[Ints, Ints, Ints]:
    """lane = index + extent * (block + blocks * (k / per_lane)), item = k % per_lane.

    With two runs (8-bit f8f6f4 operands), a lane's first half of items comes from the first half of k.
    """
    per_lane = mfma.k * extent * mfma.blocks // WAVE
    lane, item = _lanes_and_items(per_lane)
    index = lane % extent
    block = lane // extent % mfma.blocks
    group = lane // extent // mfma.blocks
    run = per_lane // mfma.runs
    k = item // run * (mfma.k // mfma.runs) + group * run + item % run
    return index, k, block


def accumulator(mfma: Mfma) -> Fragment:
    """C[i, j] and D[i, j]: rows are i, columns are j."""
    h = 4  # consecutive rows that a lane holds; f64 forms would have 1
    blocks_per_item = -(-WAVE * h // (mfma.n * mfma.m))
    row_groups = WAVE // blocks_per_item // mfma.n
    repeats = mfma.m // (h * row_groups)
    lane, item = _lanes_and_items(mfma.m * mfma.n * mfma.blocks // WAVE)
    cols = lane % mfma.n
    upper = lane // mfma.n
    rows = item % h + h * (upper % row_groups) + h * row_groups * (item // h % repeats)
    block = upper // row_groups + blocks_per_item * (item // h // repeats)
    return Fragment(rows, cols, block)
