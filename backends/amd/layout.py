"""Layouts of MFMA accumulators and operands."""

from __future__ import annotations

from warpwave.backends.amd.arch import WAVE, Mfma
from warpwave.tiles.simt.layout import Coord, Layout, real_digits, round_up, wave_split

LANE_BITS = WAVE.bit_length() - 1


def accumulator_layout(shape: tuple[int, int], waves: int, over: tuple[int, int], size: int) -> Layout:
    """The accumulator of mma for an `size` x `size` MFMA with its operands exchanged.

    The product is computed as (B^T A^T)^T, so that a lane holds consecutive columns of one row: whole
    vectors for stores and for the next product, and row reductions stay mostly within a lane.
    """
    blocks_m, blocks_n = round_up(shape[0], size) // size, round_up(shape[1], size) // size
    wm, wn = wave_split(waves, blocks_m, blocks_n, over)
    rows, cols = round_up(blocks_m, wm) // wm, round_up(blocks_n, wn) // wn
    bits = size.bit_length() - 1
    lanes = tuple((1 << b, 0) for b in range(bits)) + tuple((0, 4 << b) for b in range(LANE_BITS - bits))
    per_block = size * size // WAVE
    column = [i % 4 + (i // 4) * (4 * WAVE // size) for i in range(per_block)]
    items = tuple((m * size, n * size + c) for m in range(rows) for n in range(cols) for c in column)
    digits = ((wm, (rows * size, 0)), (wn, (0, cols * size)), (waves // (wm * wn), (0, 0)))
    return Layout(lanes, real_digits(digits), items, per_block)


def steps_together(mfma: Mfma, depth: int, nbytes: int) -> int:
    """Instructions whose operands a lane reads at a time, 16 bytes if the depth divides into such steps.

    Only which depth a lane stands for changes by this, for both operands alike.
    """
    if mfma.runs > 1:
        return 1
    together = 1
    while 2 * together * nbytes * mfma.k * mfma.m // WAVE <= 16 and depth % (2 * together * mfma.k) == 0:
        together *= 2
    return together


def operand_layout(shape: Coord, accumulator: Layout, mfma: Mfma, nbytes: int) -> Layout:
    """The first operand of mma in registers, A[m, k]: rows split over waves as the accumulator's are."""
    size = mfma.m
    run = mfma.k * size // WAVE * steps_together(mfma, shape[1], nbytes)
    bits = size.bit_length() - 1
    lanes = tuple((1 << b, 0) for b in range(bits)) + tuple((0, run << b) for b in range(LANE_BITS - bits))
    rows = sorted({item[0] for item in accumulator.items})
    span = run * WAVE // size
    steps = range(0, round_up(shape[1], mfma.k), span)
    items = tuple((r, s + e) for r in rows for s in steps for e in range(run))
    waves = tuple((n, (p[0], 0)) for n, p in accumulator.waves)
    return Layout(lanes, waves, items, run)
