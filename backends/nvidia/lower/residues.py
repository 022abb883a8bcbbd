"""Tiles of tensors whose rows are not 16-byte aligned, by the bulk copy engine, which demands that of every stride.

Rows of 2-byte elements whose numbers differ by 8 are equally aligned. So each of the 8 residues of the row number has
a map of its own, whose rows lie 8 rows of the tensor apart, a multiple of 16 bytes. 64 rows of a tile arrive as 8
boxes of 8 rows: row m in shared memory is row m % 8 * 8 + m / 8 of the 64. Both operands of a product lie so; the
accumulator's layout says where its elements belong (`layout.by_residues`), and its stores take the same way back.
"""

from __future__ import annotations

from dataclasses import replace

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.rings import box_place, pipelines, single_loads
from warpwave.backends.nvidia.lowered import RESIDUES, TensorMap
from warpwave.tiles.ir import Op, Value, walk
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.memory import open_window
from warpwave.tiles.simt.pipeline import StagedLoad, staged_loads
from warpwave.tiles.types import TileType

CHUNK = RESIDUES * RESIDUES  # rows that are permuted among themselves
PANEL = 64  # columns of a box, 128 bytes
BOX_BYTES = RESIDUES * PANEL * 2


def can_load_by_residues(lw: NvidiaLowering) -> bool:
    """Whether all tiles that the producer loads are operands of products that see only rows of them."""
    loads = [load for loop in pipelines(lw.kernel.body) for load in staged_loads(loop.regions[0])] + single_loads(lw)
    products = [op for op in walk(lw.kernel.body) if op.name == "mma"]
    tiles = {load.result for load in loads}
    return all(map(_fits, loads)) and all(_reads_rows(lw, op, tiles) for op in products) and not _other_uses(lw, tiles)


def _fits(load: Op) -> bool:
    tile = load.attrs["type"]
    rows, cols = tile.shape
    return tile.dtype.bits == 16 and rows % CHUNK == 0 and cols % PANEL == 0 and load.attrs["unit"] == "tile"


def _reads_rows(lw: NvidiaLowering, op: Op, tiles: set[Value]) -> bool:
    """Whether a product's operands are such tiles, with k along the rows, and each warpgroup has whole chunks."""
    parts = [part for _, part in lw.layout(op.result).waves[1:]]
    whole = all(extent % CHUNK == 0 for part in (*parts, op.result.tile.shape) for extent in part)
    return whole and set(op.operands[1:3]) <= tiles and bool(op.attrs["transpose_b"]) and not op.attrs["transpose_a"]


def _other_uses(lw: NvidiaLowering, tiles: set[Value]) -> bool:
    return any(op.name != "mma" and tiles & set(op.operands) for op in walk(lw.kernel.body))


def map_group(lw: NvidiaLowering, op: Op) -> str:
    """C name of the maps of a tensor's residues."""
    name = lw.kernel.param_names[lw.kernel.params.index(op.operands[0])]
    first = TensorMap(name, tuple(op.attrs["axes"]), RESIDUES, PANEL, 2 * PANEL, 0)
    if first not in lw.maps:
        lw.maps += [replace(first, residue=residue) for residue in range(RESIDUES)]
    return group_name(lw.maps.index(first))


def group_name(place: int) -> str:
    """C name of the parameter that begins with the map at this place."""
    return f"maps_by_residues_{place // RESIDUES}"


def copy_by_residues(lw: NvidiaLowering, load: StagedLoad, target: SharedTile, barrier: str) -> None:
    """This producer warp's residues: one instruction for each, each panel and 64 rows."""
    rows, cols = load.tile.shape
    own = RESIDUES // lw.plan.producers
    with lw.body.each(cols // PANEL, "panel"), lw.body.each(rows // CHUNK, "chunk"), lw.body.each(own, "r"):
        lw.body.line(f"const int residue = (warp_id - {lw.waves}) * {own} + r;")
        _place(lw, load.op, load.tile, f"chunk * {RESIDUES}", f"panel * {PANEL}")
        at = f"smem_at + {target.offset} + panel * {load.shared.panels} + chunk * {CHUNK * 2 * PANEL}"
        lw.body.line(
            f"ptx::tensor_load({at} + residue * {BOX_BYTES}, &{map_group(lw, load.op)}.of[residue], {barrier}, place);"
        )


def fill_by_residues(lw: NvidiaLowering, source: str, cols: int) -> None:
    """A warp's 16 rows of a panel into `buffer`, two residues of 8 rows each: a lane has 8 columns of them in turn."""
    with lw.body.each(2, "h"), lw.body.each(2, "e"):
        lw.body.line("vec<u16, 8> x;")
        lw.body.line(f"EACH(q, 8) x[q] = bits<u16>({source}.get(m * {cols // 2} + panel * 32 + q * 4 + h * 2 + e));")
        unit = "((lane & 3) * 2 + e ^ lane >> 2)"  # where the swizzle of 128 bytes puts it
        lw.body.line(
            f"*(vec<u16, 8> *)(smem + (buffer - smem_at) + h * {BOX_BYTES} + (lane >> 2) * 128 + {unit} * 16) = x;"
        )


def send_by_residues(lw: NvidiaLowering, op: Op, row: str, col: str) -> None:
    """Start the copies of a buffer, whose first row of 64 and first column are given."""
    with lw.body.each(2, "h"):
        lw.body.line("const int residue = warp_id % 4 * 2 + h;")
        _place(lw, op, op.operands[1].tile, f"({row}) / {RESIDUES}", col)
        lw.body.line(f"ptx::tensor_store(&{map_group(lw, op)}.of[residue], buffer + h * {BOX_BYTES}, place);")


def _place(lw: NvidiaLowering, op: Op, tile: TileType, row: str, col: str) -> None:
    """The coordinates of a box: `row` counts rows of the residue, `col` columns, both from the tile's origin."""
    tensor, coords = op.operands[0], op.operands[2:]
    window = open_window(lw, tensor, coords, tile, op)
    first = f"first_column({window.tensor}, {window.axes[0]}, residue)"
    origins = (f"{window.origins[0]} / {RESIDUES}", window.origins[1])
    lw.body.line(f"const int place[] = {{{box_place(lw, op, coords, origins, row, f'{first} + {col}')}}};")
