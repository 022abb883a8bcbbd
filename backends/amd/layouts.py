"""Every tile of a kernel with its place, for `warpwave show --layout`: lanes, LDS banks, and bank conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from warpwave.backends.amd.arch import DIRECT, WAVE, LdsAccess, Target
from warpwave.backends.amd.compilation import settled
from warpwave.backends.amd.lds import Read
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.lower import emit
from warpwave.backends.amd.lower.place import operand_reads
from warpwave.tiles.drawing.data import IDLE, Access, Placement, TileLayout
from warpwave.tiles.ir import Kernel, Op, Value, walk
from warpwave.tiles.simt.context import Move, SharedTile
from warpwave.tiles.simt.drawn import drawn_tiles, offsets_in, stored_at, swizzle_text, tile_offsets


def tile_layouts(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> list[TileLayout]:
    """Register and shared tiles in program order, those that are laid out alike under one name once."""
    lw = emit(kernel, target, settled(kernel, target, options))
    return drawn_tiles(lw, f"amd:{target.name}", "wave", lambda value, shared: _placement(lw, value, shared))


def _placement(lw: AmdLowering, value: Value, shared: SharedTile) -> Placement:
    accesses = [*_operands(lw, value, shared), *_moves(lw, value, shared)]
    banks = max((a.banks for a in accesses), default=lw.target.lds["ds_read_b128"].banks)
    text = swizzle_text(shared)
    if any(not operand_reads(lw, op, value, transposed=shared.block is not None) for op in _products(lw, value)):
        text += "; reads of products that run across rows are not shown"
    return Placement(tile_offsets(shared), banks, text, tuple(accesses))


def _products(lw: AmdLowering, value: Value) -> list[Op]:
    """The products that read a tile."""
    return [op for op in walk(lw.kernel.body) if op.name == "mma" and value in op.operands[1:]]


def _operands(lw: AmdLowering, value: Value, shared: SharedTile) -> Iterator[Access]:
    """Reads by matrix products."""
    for op in _products(lw, value):
        what = f"operand of the product in line {_line(op)}"
        for read in _different(operand_reads(lw, op, value, transposed=shared.block is not None)):
            offsets = stored_at(shared, read.rows, read.cols)
            yield _access(read.access, read.access.instruction, what, offsets)


def _different(reads: list[Read]) -> list[Read]:
    """Without reads of the same lanes' elements."""
    return list({(r.access.instruction, r.rows.tobytes(), r.cols.tobytes()): r for r in reads}.values())


def _line(op: Op) -> object:
    return op.loc.line if op.loc else "?"


def _moves(lw: AmdLowering, value: Value, shared: SharedTile) -> Iterator[Access]:
    """Reads and writes of register tiles, each by its worst instruction."""
    definition = lw.definitions.get(value)
    ahead = definition is not None and definition.name == "load" and DIRECT in lw.target.direct_to_lds_widths
    seen: set[tuple[object, ...]] = set()
    for move in lw.moves:
        key = (move.kind, move.layout, move.run)
        if move.shared.base != shared.base or move.shared.dtype != shared.dtype or shared.block or key in seen:
            continue
        seen.add(key)
        what = "read into registers" if move.kind == "read" else "written from registers"
        if ahead and move.kind == "write" and shared.shift != "0":
            what += " where rows are not of whole 16 bytes; else it is loaded directly"
        yield _worst(lw.target, move, shared, what)


def _worst(target: Target, move: Move, shared: SharedTile, what: str) -> Access:
    coordinates = move.layout.coordinates[:, :, :: move.run]
    rows = coordinates[..., 0] if move.layout.rank == 2 else np.zeros_like(coordinates[..., 0])
    cols = coordinates[..., -1]
    extent = (1, *shared.shape)[-2:]
    # Lanes beyond the tile write nothing and read its first element.
    outside = IDLE if move.kind == "write" else 0
    places = np.where((rows < extent[0]) & (cols < extent[1]), offsets_in(shared, rows, cols), outside)
    offsets = places.transpose(0, 2, 1).reshape(-1, WAVE)
    nbytes = move.run * shared.dtype.nbytes
    access = target.lds[f"ds_{move.kind}_b{max(32, 8 * nbytes)}"]
    accesses = [_access(access, _instruction(move.kind, nbytes), what, lane_offsets) for lane_offsets in offsets]
    return max(accesses, key=lambda a: a.conflicts)


def _instruction(kind: str, nbytes: int) -> str:
    """A part of a word is read by ds_read_u8 and ds_read_u16, written by ds_write_b8 and ds_write_b16."""
    return f"ds_{kind}_{'u' if kind == 'read' and nbytes < 4 else 'b'}{8 * nbytes}"


def _access(access: LdsAccess, instruction: str, what: str, offsets: np.ndarray[Any, np.dtype[np.int64]]) -> Access:
    return Access(instruction, what, offsets, access.phases, access.width, access.banks)
