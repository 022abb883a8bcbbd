"""Sub-dword selection (SDWA) and lane movement (DPP), from the ISA's SDWA and DPP field tables."""

from __future__ import annotations

import numpy as np

SELECT = {f"BYTE_{n}": (8 * n, 8) for n in range(4)} | {f"WORD_{n}": (16 * n, 16) for n in range(2)}
SELECT["DWORD"] = (0, 32)


def sdwa_select(raw: np.ndarray, selector: str, sext: bool) -> np.ndarray:
    """The chosen byte or word, zero or sign extended."""
    shift, width = SELECT[selector]
    part = (raw.astype(np.uint64) >> np.uint64(shift)) & np.uint64((1 << width) - 1)
    if sext:
        sign = np.uint64(1 << (width - 1))
        part = (part ^ sign) - sign
    return (part & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def sdwa_write(old: np.ndarray, result: np.ndarray, modifiers: dict[str, str]) -> np.ndarray:
    """Place the result's low bits; the other bits are zero, the sign, or kept (dst_unused)."""
    shift, width = SELECT[modifiers.get("dst_sel", "DWORD")]
    mask = ((1 << width) - 1) << shift
    placed = ((result.astype(np.uint64) << np.uint64(shift)) & np.uint64(mask)).astype(np.uint32)
    unused = modifiers.get("dst_unused", "UNUSED_PAD")
    if unused == "UNUSED_PRESERVE":
        return placed | (old & np.uint32(~mask & 0xFFFFFFFF))
    if unused == "UNUSED_SEXT":
        above = np.uint32((0xFFFFFFFF << (shift + width)) & 0xFFFFFFFF)
        negative = (result >> np.uint32(width - 1)) & 1 == 1
        return np.where(negative, placed | above, placed)
    return placed


def _rows(lane: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Source lanes that must stay in the 16-lane row."""
    valid = (moved >= 0) & (moved < 16)
    return lane // 16 * 16 + np.clip(moved, 0, 15), valid


def dpp_lanes(modifiers: dict[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """For each lane: which lane it reads, and whether that lane exists."""
    lane = np.arange(64)
    row = lane % 16
    always = np.ones(64, bool)
    if "quad_perm" in modifiers:
        order = np.array([int(x) for x in modifiers["quad_perm"].strip("[]").split(",")])
        return lane // 4 * 4 + order[lane % 4], always
    moves = {
        "row_shl": lambda n: _rows(lane, row + n),
        "row_shr": lambda n: _rows(lane, row - n),
        "row_ror": lambda n: (lane // 16 * 16 + (row - n) % 16, always),
        "wave_shl": lambda n: (np.minimum(lane + n, 63), lane + n < 64),
        "wave_shr": lambda n: (np.maximum(lane - n, 0), lane - n >= 0),
        "wave_rol": lambda n: ((lane + n) % 64, always),
        "wave_ror": lambda n: ((lane - n) % 64, always),
        "row_mirror": lambda _: (lane // 16 * 16 + 15 - row, always),
        "row_half_mirror": lambda _: (lane // 8 * 8 + 7 - lane % 8, always),
        # Lane 15 of each row goes to the whole next row; lane 31 to rows 2 and 3.
        "row_bcast:15": lambda _: (np.maximum(lane // 16 * 16 - 1, 0), lane >= 16),
        "row_bcast:31": lambda _: (np.full(64, 31), lane >= 32),
        "row_newbcast": lambda n: (lane // 16 * 16 + n, always),
    }
    for name, value in modifiers.items():
        move = moves.get(name) or moves.get(f"{name}:{value}")
        if move:
            return move(int(value, 0))
    raise ValueError(f"no DPP control among {modifiers}")
