"""Where and how a tile lies in shared memory: the swizzled panels of kittens::st for what products read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpwave.tiles.ir import Value, walk
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.layout import round_up

if TYPE_CHECKING:
    from warpwave.backends.nvidia.lower.context import NvidiaLowering

ALIGNMENT = 1024  # of a swizzled tile: the swizzle is of absolute addresses (PTX ISA, wgmma; thunderkittens.md 2.3)
STEP_BYTES = 32  # of k in one matrix instruction
# Xor masks per row bit for panels of that many bytes: 16-byte units change places within 8 rows.
SWIZZLES = {128: (16, 32, 64), 64: (0, 16, 32), 32: (0, 0, 16)}
ALIASES = {"bf16": "st_bf", "f16": "st_hf", "f32": "st_fl", "fp8e4m3": "st_fp8e4m3", "fp8e5m2": "st_fp8e5m2"}


@dataclass(frozen=True)
class NamedTile(SharedTile):
    """A tile in shared memory; `name` is the C expression of it as an object, empty if it is no kittens::st."""

    name: str = ""


def st_type(tile: SharedTile, nbytes: int = 0, extent: tuple[int, int] | None = None) -> str:
    """The type of kittens that lies in memory like this tile; empty if there is none.

    `nbytes` is how many bytes it has, if that matters, `extent` its rows and columns with what products read beyond it.
    """
    size, (rows, cols) = tile.dtype.nbytes, extent or (1, *tile.shape)[-2:]
    kind = ALIASES.get(tile.dtype.name) or {"i8": "st<signed char"}.get(tile.dtype.name)
    whole = rows % 16 == 0 and cols % (32 if size == 1 else 16) == 0 and tile.panels == rows * tile.pitch
    if not kind or not whole or (nbytes and nbytes != rows * cols * size):
        return ""
    usual = swizzle_bytes(cols * size) if size < 4 else 128 if cols * size % 128 == 0 else 64
    return f"{kind}{', ' if '<' in kind else '<'}{rows}, {cols}>" if tile.pitch == usual else ""


def swizzle_bytes(row_bytes: int) -> int:
    """Width of a panel: the widest that divides the row."""
    return next(s for s in SWIZZLES if row_bytes % s == 0)


def place_shared(lw: NvidiaLowering, value: Value) -> SharedTile:
    """Reserve shared memory for a tile: in swizzled panels, or plainly if it is a vector or a mutable buffer."""
    tile = value.tile
    size = tile.dtype.nbytes
    if tile.rank < 2 or tile.space == "buffer":
        rows, cols = (1, *tile.shape)[-2:]
        pitch = round_up(cols * size, 16)
        shared = SharedTile(lw.allocate(pitch * rows), pitch, (), tile.dtype, tile.shape)
    else:
        rows, cols = padded_extent(lw, value)
        row_bytes = round_up(cols * size, 32)
        panel = swizzle_bytes(row_bytes)
        rows = round_up(rows, 8)
        base = lw.allocate(rows * row_bytes, ALIGNMENT)
        shared = SharedTile(base, panel, SWIZZLES[panel], tile.dtype, tile.shape, panels=rows * panel)
    lw.shared[value] = shared
    return shared


def padded_extent(lw: NvidiaLowering, value: Value) -> tuple[int, int]:
    """Rows and columns that products read, padding of the last matrix instruction included."""
    rows, cols = value.tile.shape
    for op in walk(lw.kernel.body):
        if op.name != "mma" or value not in op.operands[1:]:
            continue
        is_a = value is op.operands[1]
        across = lw.layout(op.result).extent[0 if is_a else 1]
        depth_axis = int(not op.attrs["transpose_a"]) if is_a else int(op.attrs["transpose_b"])
        depth = round_up(value.tile.shape[depth_axis] * value.tile.dtype.nbytes, STEP_BYTES) // value.tile.dtype.nbytes
        wanted = (depth, across) if depth_axis == 0 else (across, depth)
        rows, cols = max(rows, wanted[0]), max(cols, wanted[1])
    return rows, cols
