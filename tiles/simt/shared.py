"""Tiles in shared memory: loads into them, copies to and from registers, explicit buffers."""

from __future__ import annotations

from collections.abc import Sequence

from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.alignment import divisor
from warpwave.tiles.simt.context import Lowering, Move, SharedTile, declare_place
from warpwave.tiles.simt.convert import inside
from warpwave.tiles.simt.layout import Coord, Layout, blocked_layout, transposing_layout
from warpwave.tiles.simt.memory import declare_run, emit_load, open_window, run_length, set_run
from warpwave.tiles.simt.writer import ctype
from warpwave.tiles.types import TileType


def wide_layout(lw: Lowering, tile: TileType) -> Layout:
    """The layout in which a tile is moved 16 bytes at a time."""
    return blocked_layout(tile.shape, lw.machine.lanes, lw.waves, max(1, 16 // tile.dtype.nbytes))


def staging_layout(lw: Lowering, shared: SharedTile, tile: TileType) -> Layout:
    """The layout in which a tile waits in registers on its way to shared memory."""
    if shared.block is None:
        return wide_layout(lw, tile)
    shape = tile.shape[0], tile.shape[1]
    return transposing_layout(shape, tile.dtype.nbytes, shared.block, lw.machine.lanes, lw.waves)


def load_shared(lw: Lowering, op: Op) -> None:
    """Global to shared memory through registers."""
    tensor, fill, *coords = op.operands
    tile: TileType = op.attrs["type"]
    shared = lw.place_shared(op.result)
    layout = staging_layout(lw, shared, tile)
    window = open_window(lw, tensor, coords, tile, op)
    staged = lw.fresh("staged")
    lw.body.line(f"{lw.tile_type(tile.dtype, layout)} {staged};")
    emit_load(lw, window, layout, tile, staged, lw.name(fill))
    write_shared(lw, shared, staged, layout, tile)


def write_shared(
    lw: Lowering, shared: SharedTile, name: str, layout: Layout, tile: TileType, *, ordered: bool = False
) -> None:
    """A register tile into a shared tile of its shape; `ordered` if the caller has placed the barriers."""
    if not ordered:
        lw.before_shared_write(shared.region)
    if shared.block:
        return _write_columns(lw, shared, name, layout, tile, shared.block)
    run = _shared_run(shared, layout, tile)
    lw.moves.append(Move("write", shared, layout, run, lw.body.loc))
    conditions = [c for c in (lw.primary(layout), inside(lw, layout, tile.shape, f"i * {run}")) if c != "true"]
    kind = ctype(tile.dtype)
    with lw.body.each(len(layout.items) // run):
        place = _address(lw, shared, layout, f"i * {run}")
        if run == 1:
            text = f"*({kind} *)({lw.machine.memory} + {place}) = {name}.get(i);"
        else:
            declare_run(lw, name, layout, tile.dtype, run)
            text = f"*(vec<{kind}, {run}> *)({lw.machine.memory} + {place}) = x;"
        lw.body.line(f"if ({' && '.join(conditions)}) {text}" if conditions else text)
    return None


def _write_columns(lw: Lowering, shared: SharedTile, name: str, layout: Layout, tile: TileType, block: Coord) -> None:
    """Each column of a lane's blocks is a vector in shared memory."""
    kind, size = ctype(tile.dtype), block[0] * block[1]
    with lw.body.each(len(layout.items) // size), lw.body.each(block[1], "j"):
        conditions = [c for c in (lw.primary(layout), inside(lw, layout, tile.shape, f"i * {size}")) if c != "true"]
        place = _address(lw, shared, layout, f"i * {size} + j")
        lw.body.line(f"const auto x = column<{kind}, {block[0]}>({name}, i * {size} + j, {block[1]});")
        text = f"*(vec<{kind}, {block[0]}> *)({lw.machine.memory} + {place}) = x;"
        lw.body.line(f"if ({' && '.join(conditions)}) {text}" if conditions else text)


def _shared_run(shared: SharedTile, layout: Layout, tile: TileType) -> int:
    """Elements of one LDS access: whole runs only, that no swizzle or edge cuts."""
    run = run_length(layout, tile.dtype)
    while run > 1 and (tile.shape[-1] % run or shared.pitch % (run * tile.dtype.nbytes) or shared.multiple % run):
        run //= 2
    return run


def _address(lw: Lowering, shared: SharedTile, layout: Layout, item: str) -> str:
    row, col = ("0", *declare_place(lw, layout, item))[-2:]
    return shared.address(row, col)


def read_shared(lw: Lowering, shared: SharedTile, name: str, layout: Layout, tile: TileType) -> None:
    """A shared tile into a declared register tile."""
    lw.before_shared_read(shared.region)
    run = _shared_run(shared, layout, tile)
    lw.moves.append(Move("read", shared, layout, run, lw.body.loc))
    kind = ctype(tile.dtype)
    condition = inside(lw, layout, tile.shape, f"i * {run}")
    with lw.body.each(len(layout.items) // run):
        place = _address(lw, shared, layout, f"i * {run}")
        if condition != "true":
            lw.body.line(f"const int place = {condition} ? {place} : {shared.offset};")
            place = "place"
        lw.body.line(f"const auto x = *(const vec<{kind}, {run}> *)({lw.machine.memory} + {place});")
        set_run(lw, name, layout, tile.dtype, run)


def read_to_registers(lw: Lowering, value: Value) -> Value:
    """A shared tile as a register value of its own, laid out for wide accesses."""
    tile = value.tile.with_(space="register")
    own = Value(tile)
    lw.layouts[own] = wide_layout(lw, tile)
    name = lw.declare(own)
    read_shared(lw, lw.shared[value], name, lw.layout(own), tile)
    return own


def to_shared(lw: Lowering, value: Value) -> SharedTile:
    """A register tile in shared memory, for a product that cannot take it from registers."""
    shared = lw.place_shared(value)
    write_shared(lw, shared, lw.name(value), lw.layout(value), value.tile)
    return shared


def lower_copy(lw: Lowering, op: Op) -> None:
    """Between registers and shared memory."""
    source = op.operands[0]
    if op.attrs["space"] == "register":
        name = lw.declare(op.result)
        read_shared(lw, lw.shared[source], name, lw.layout(op.result), op.result.tile)
        return
    shared = lw.place_shared(op.result)
    write_shared(lw, shared, lw.name(source), lw.layout(source), source.tile)


def lower_shared_alloc(lw: Lowering, op: Op) -> None:
    """Reserve an explicit buffer."""
    lw.place_shared(op.result)


def _window(lw: Lowering, buffer: Value, offsets: Sequence[Value], tile: TileType) -> SharedTile:
    """A window of a buffer as a shared tile; a swizzle-free buffer is addressed by adding the offset."""
    shared = lw.shared[buffer]
    size = tile.dtype.nbytes
    names = [lw.name(v) for v in offsets]
    row, col = names if len(names) == 2 else ("0", names[0])
    shift = f"(({row}) * {shared.pitch} + ({col}) * {size})"
    multiple = divisor(lw, offsets[-1])
    return SharedTile(shared.base, shared.pitch, (), tile.dtype, tile.shape, shift, multiple=multiple)


def lower_shared_write(lw: Lowering, op: Op) -> None:
    """Overwrite a window of a buffer."""
    buffer, value, *offsets = op.operands
    write_shared(lw, _window(lw, buffer, offsets, value.tile), lw.name(value), lw.layout(value), value.tile)


def lower_shared_read(lw: Lowering, op: Op) -> None:
    """Read a window of a buffer into registers, or as a shared tile of its own."""
    buffer, *offsets = op.operands
    tile: TileType = op.attrs["type"]
    window = _window(lw, buffer, offsets, tile)
    own = op.result
    if tile.space == "shared":
        own = Value(tile.with_(space="register"))
        lw.layouts[own] = wide_layout(lw, tile)
    name = lw.declare(own)
    read_shared(lw, window, name, lw.layout(own), tile)
    if tile.space == "shared":
        write_shared(lw, lw.place_shared(op.result), name, lw.layout(own), tile)
