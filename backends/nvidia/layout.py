"""Layouts of tensor-core accumulators and register operands (PTX ISA, "Matrix Fragments for mma" and "wgmma").

A warp holds blocks of 16 rows by 8 columns: lane l has rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next.
Two neighbouring blocks are at the same time the fragment of a 16-bit first operand: ThunderKittens' row_l.
"""

from __future__ import annotations

from warpwave.tiles.simt.layout import Coord, Layout, real_digits, round_up, wave_split

ROWS, COLS = 16, 16  # of a base tile
WARPGROUP_ROWS = 64
LANES: tuple[Coord, ...] = ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))


def accumulator_layout(shape: tuple[int, int], warps: int, over: tuple[int, int], *, warpgroups: bool) -> Layout:
    """The accumulator of a product, split over a grid of `over` warps; `warpgroups`: as wgmma splits it.

    wgmma gives the four warps of a warpgroup neighbouring blocks of 16 rows; a warpgroup's 64 rows repeat.
    """
    blocks_m, blocks_n = -(-shape[0] // ROWS), -(-shape[1] // COLS)
    wm, wn = over if warpgroups else wave_split(warps, blocks_m, blocks_n, over)
    rows, cols = round_up(blocks_m, wm) // wm, round_up(blocks_n, wn) // wn
    if warpgroups:
        assert wm % 4 == 0, f"{wm} warps along the rows are no warpgroups"
        step = WARPGROUP_ROWS
        digits: tuple[tuple[int, Coord], ...] = ((4, (ROWS, 0)), (wm // 4, (rows * WARPGROUP_ROWS, 0)))
    else:
        step, digits = ROWS, ((wm, (rows * ROWS, 0)),)
    waves = (*digits, (wn, (0, cols * COLS)), (warps // (wm * wn), (0, 0)))
    width = wgmma_columns(cols * COLS) // 2 if warpgroups else 4  # the registers of one instruction's result
    return Layout(LANES, real_digits(waves), accumulator_items(rows, step, cols), width)


def wgmma_columns(cols: int) -> int:
    """Columns of one wgmma for a warpgroup's share of so many: the most that the hardware takes, in equal parts."""
    return next(n for n in range(min(cols, 256) // 16 * 16, 0, -16) if cols % n == 0)


def accumulator_items(rows: int, step: int, cols: int) -> tuple[Coord, ...]:
    """The items of a lane: blocks of 16 rows `step` rows apart, each of `cols` times 16 columns."""
    return tuple(
        (m * step + h, n * 8 + e) for m in range(rows) for n in range(2 * cols) for h in (0, 8) for e in (0, 1)
    )


def operand_layout(depth: int, accumulator: Layout) -> Layout:
    """A 16-bit first operand in registers: rows as the accumulator's, k along the columns."""
    bases = [m for m in dict.fromkeys(item[0] for item in accumulator.items) if m % ROWS == 0]
    step = bases[1] - bases[0] if len(bases) > 1 else ROWS
    waves = tuple((n, (p[0], 0)) for n, p in accumulator.waves)
    return Layout(LANES, real_digits(waves), accumulator_items(len(bases), step, -(-depth // COLS)), 8)
