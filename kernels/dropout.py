"""Dropout whose mask follows from a seed, an offset and the element's place alone."""

from __future__ import annotations

from typing import Any

import warpwave as ww
from warpwave import i32, rt


def dropout(tile: Any, p: float, seed: Any, offset: Any, *, row: Any, col: Any) -> Any:
    """For use in kernels: each element of a 2-D tile dropped with probability `p`, else times 1 / (1 - p).

    (`row`, `col`) is the place of the tile's first element in the whole array. An element is dropped if its
    32 random bits (`ww.random_bits`), as a signed number, are less than round(p * 2**32) - 2**31. So the
    mask is one of the array, whatever the tiles, the target and the kernel (forward or backward).
    """
    assert 0 <= p <= 1, f"p is a probability, got {p}"
    first_kept = int(p * 2**32 + 0.5) - 2**31
    if first_kept == -(2**31):
        return tile
    if first_kept == 2**31:
        return ww.zeros(rt[tile.dtype, tile.shape[0], tile.shape[1]])
    bits = ww.random_bits(rt[i32, tile.shape[0], tile.shape[1]], seed, offset, row=row, col=col)
    return ww.where(bits >= first_kept, tile * (1.0 / (1.0 - p)), 0.0)
