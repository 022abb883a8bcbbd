"""What the kernels share: launch conditions on extents, and grids over rows of tensors of any rank."""

from __future__ import annotations

from typing import Any

import warpwave as ww


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
