"""Philox4x32-10, the counter-based generator of Salmon et al. (SC'11), vectorised over counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = 0x9E3779B9, 0xBB67AE85
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
ROUNDS = 10


def philox4x32(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[Words, Words, Words, Words]:
    """The four 32-bit words of each counter; counters broadcast."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(c, np.uint64) for c in counter))
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = _MULTIPLIER_0 * c0, _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & 0xFFFFFFFF, (k1 + _WEYL_1) & 0xFFFFFFFF
    return c0, c1, c2, c3


def random_bits(shape: tuple[int, ...], seed: int, offset: int, row: int, col: int) -> npt.NDArray[np.int32]:
    """The i32 words of a tile whose first element is (row, col) of the array; see `language.random`."""
    rows = row + np.arange(shape[0] if len(shape) == 2 else 1, dtype=np.int64)
    cols = col + np.arange(shape[-1], dtype=np.int64)
    mask = 0xFFFFFFFF
    blocks = np.unique(cols // 4)
    counter = (blocks[None, :] & mask, rows[:, None] & mask, offset & mask, (offset >> 32) & mask)
    words = np.stack(philox4x32(counter, (seed & mask, (seed >> 32) & mask)))
    picked = words[cols % 4, :, cols // 4 - blocks[0]].T
    return picked.astype(np.uint32).view(np.int32).reshape(shape)
