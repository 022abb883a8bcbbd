"""What the kernels share: tile sizes from extents, launch conditions, and grids over rows of tensors of any rank."""

from __future__ import annotations

from typing import Any

import warpwave as ww

ROW_TILE = 16384  # elements of a tile of whole rows: a quarter of the registers of a multiprocessor or compute unit


def fitting(extent: int | None, low: int, high: int) -> int:
    """The smallest power-of-two multiple of `low` that holds `extent`, at most `high`; `high` if it is not known."""
    size = low
    while size < high and (extent is None or size < extent):
        size *= 2
    return min(size, high)


def row_width(extent: int | None) -> int:
    """Columns of a tile that holds whole rows of `extent` elements, or as much of them as registers allow."""
    if extent is None or extent > ROW_TILE:
        return ROW_TILE // 4
    return fitting(extent, 16, 1024) if extent <= 1024 else -(-extent // 1024) * 1024


def row_count(rows: int | None, cols: int | None) -> int:
    """Rows of such a tile: the power of two up to 64 that `rows` need and registers allow."""
    allowed = min(ROW_TILE // row_width(cols), 64)
    return fitting(rows, 1, 1 << (allowed.bit_length() - 1))


ROW_WIDTH = ww.derived(lambda x: row_width(x.shape[-1]))
ROW_COUNT = ww.derived(lambda x: row_count(x.shape[-2], x.shape[-1]))


def expect_equal(what: str, *extents: Any) -> None:
    """A launch condition: the extents agree. Before `ww.grid` it is checked once, by whoever launches."""
    for extent in extents[1:]:
        ww.check(extents[0] == extent, f"the tensors disagree about the {what}")


def expect_same_shape(*tensors: Any) -> None:
    """A launch condition: tensors of one rank and shape."""
    assert len({t.ndim for t in tensors}) == 1, f"{', '.join(t.name for t in tensors)} differ in rank"
    names = " and ".join(t.name for t in tensors)
    for axis, extents in enumerate(zip(*(t.shape for t in tensors), strict=True)):
        expect_equal(f"extent of axis {axis} of {names}", *extents)


def row_blocks(x: Any, rows: int) -> Any:
    """The grid of blocks of `rows` rows of `x`: coordinates of the leading dimensions, then of the block."""
    place = ww.grid(*x.shape[:-2], ww.cdiv(x.rows, rows))
    return place if isinstance(place, tuple) else (place,)


def row_number(x: Any, lead: Any, row: Any) -> Any:
    """The number of a row of `x` among the rows of all its leading coordinates."""
    stride = x.rows
    for index, extent in reversed(list(zip(lead, x.shape[:-2], strict=True))):
        row = row + index * stride
        stride = stride * extent
    return row
