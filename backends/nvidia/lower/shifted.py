"""Loads ahead of matrices whose rows are contiguous, but not 16-byte aligned.

cp.async moves 16 bytes only from multiples of 16. So the aligned units that cover a row's part of a tile go to a
staging ring, one unit more than the part has. The warps shift the next iteration's tiles into their places, by two
aligned reads of shared memory, funnel shifts and one aligned write for each unit, while this iteration's products run.
Places are the first two slots of the loads' rings, staging slots lie behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.backends.nvidia.arch import WARP
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.tiles.ir import Op, Value
from warpwave.tiles.simt.alignment import origin_divisor
from warpwave.tiles.simt.memory import Window, is_zero_fill, open_window
from warpwave.tiles.simt.pipeline import Loop, StagedLoad
from warpwave.tiles.types import TileType

UNIT = 16  # bytes of one cp.async
PLACES = 2  # slots of operands: one is read while the other is filled
RESERVE = 2048  # bytes for alignment and barriers
OUTSIDE = 1 << 20  # more bytes than a tile's row has


@dataclass(frozen=True)
class Shifted:
    """The way of unaligned rows in one loop, through `stages` staging slots. `name` is a C bool: is it taken?"""

    lw: NvidiaLowering
    loop: Loop
    stages: int
    name: str

    def slot(self, counter: str) -> str:
        """C expression of the ring's slot that an iteration reads."""
        return f"({self.name} ? {counter} % {PLACES} : stage)"

    def declare(self) -> tuple[str, str]:
        """Decide by the tensors; C names of the iterations that are copied at first, and of the slots in use."""
        lw, stages = self.lw, self.loop.stages
        tensors = list(dict.fromkeys(load.op.operands[0] for load in self.loop.ring))
        wide = " && ".join(lw.wide(t) for t in tensors)
        rows = " && ".join(lw.rows(t) for t in tensors)
        lw.body.line(f"constexpr bool {self.name} = !({wide}) && {rows};")
        first, depth = lw.fresh("first"), lw.fresh("depth")
        lw.body.line(f"constexpr int {first} = {self.name} ? {self.stages} : {stages - 1};")
        lw.body.line(f"constexpr int {depth} = {self.name} ? {self.stages} : {stages};")
        return first, depth

    def wait(self, otherwise: str) -> str:
        """Until the next iteration's stage has landed, or, aligned, this one's."""
        return f"if constexpr ({self.name}) ptx::cp_async_wait<{self.stages - 2}>(); else {otherwise}"

    def prepare(self) -> None:
        """What stays from iteration to iteration: where units begin, of loads whose rows do."""
        for number, load in enumerate(self.loop.ring):
            if not self._stays(load):
                continue
            count = self._units(load)
            self.lw.body.line(f"u64 start{number}_{self.name}[{count}];")
            self.lw.body.line(f"int before{number}_{self.name}[{count}];")
            with self.lw.body.block(f"if constexpr ({self.name})"):
                window = self._window(load, first_column=True)
                with self.lw.body.each(count):
                    self._unit(load, window)
                    self.lw.body.line(f"start{number}_{self.name}[i] = start;")
                    self.lw.body.line(f"before{number}_{self.name}[i] = before;")

    def copy(self, load: StagedLoad, window: Window) -> None:
        """Start the copies of a tile's units; what lies beyond the row's end or outside the tensor becomes zero."""
        lw, tile = self.lw, load.tile
        size, origin = tile.dtype.nbytes, window.origins[1]
        total = tile.shape[0] * _units_of_row(tile)
        most = tile.shape[1] + UNIT // size  # so that only a row's end is no whole unit
        inside = f"min({window.tensor}.extents[{window.axes[1]}] - {origin}, {most}) * {size}"
        left = lw.fresh("left")
        lw.body.line(f"const int {left} = {origin} >= 0 ? {inside} : {-OUTSIDE};")
        with lw.body.each(self._units(load)):
            start, before = "start", "before"
            if self._stays(load):
                number = self.loop.ring.index(load)
                start, before = (f"{name}{number}_{self.name}[i]" for name in (start, before))
            else:
                self._unit(load, window)
            lw.body.line(f"const int unit = i * {lw.threads} + thread;")
            target = f"smem + {self._staging(load, 'stage')} + unit * {UNIT}"
            source = f"{start} + (long){origin} * {size}, {left} + {before}"
            copy = f"copy_unit({target}, {source}, {window.tensor}.data);"
            lw.body.line(copy if total % lw.threads == 0 else f"if (unit < {total}) {copy}")

    def _unit(self, load: StagedLoad, window: Window) -> None:
        """Unit i of this thread: `start` is its address in the tensor's first column; of `before` bytes more than the
        row's part of the tile has, it takes up to 16."""
        lw, across = self.lw, _units_of_row(load.tile)
        lw.body.line(f"const int row = (i * {lw.threads} + thread) / {across};")
        lw.body.line(f"const int place = (i * {lw.threads} + thread) % {across} * {UNIT};")
        lw.body.line(f"const u64 first = {_row_start(window)}, start = first / {UNIT} * {UNIT} + place;")
        valid = f"{window.valid} && {window.inside(0, 'row')}"
        lw.body.line(f"const int before = {valid} ? (int)(first % {UNIT}) - place : {-OUTSIDE};")

    def _units(self, load: StagedLoad) -> int:
        """Units of a thread."""
        return -(-load.tile.shape[0] * _units_of_row(load.tile) // self.lw.threads)

    def _stays(self, load: StagedLoad) -> bool:
        """Whether a load's rows are the same in all iterations."""
        body = self.loop.body
        inside = {r for op in body.ops for r in op.results} | set(body.args)
        return not inside & set(load.op.operands[2:-1])

    def _window(self, load: StagedLoad, *, first_column: bool) -> Window:
        tensor, _, *coords = load.op.operands
        if first_column:
            zero = Value(coords[-1].type)
            self.lw.names[zero] = "0"
            coords[-1] = zero
        return open_window(self.lw, tensor, coords, load.tile, load.op)

    def shift_first(self) -> None:
        """Before the loop: the first iteration's tiles."""
        with self.lw.body.block(f"if constexpr ({self.name})"):
            self.lw.body.line(f"ptx::cp_async_wait<{self.stages - 1}>();")
            self.lw.emit_barrier()
            self._shift("0")

    def shift_next(self, counter: str) -> None:
        """The next iteration's tiles, which have landed for all warps since the last barrier."""
        with self.lw.body.block(f"if constexpr ({self.name})"):
            self._shift(f"({counter} + 1)")

    def _shift(self, iteration: str) -> None:
        names = dict(self.lw.names)
        with self.lw.body.block(f"if ({iteration} < {self.loop.trips})"):
            self.loop.coordinates_at(iteration)
            for load in self.loop.ring:
                self._move(load, iteration)
        self.lw.names = names  # the coordinates of this iteration are known by the others again

    def _move(self, load: StagedLoad, iteration: str) -> None:
        """A warp has rows that are equally aligned, so that all its lanes shift alike."""
        lw, tile = self.lw, load.tile
        window = self._window(load, first_column=False)
        share = _share(lw, tile)
        assert share is not None
        per_unit = UNIT // tile.dtype.nbytes
        condition = f"warp_id < {share.warps}" if share.warps < lw.waves else "true"
        with lw.body.each(share.turns, "turn"), lw.body.block(f"if ({condition})"):
            lw.body.line(f"const int residue = warp_id % {share.period} + turn * {share.warps};")
            lw.body.line(f"const int place = lane % {share.across};")
            lw.body.line(f"const int start = lane / {share.across} + warp_id / {share.period} * {share.rows_at_once};")
            lw.body.line("int row = residue;")
            lw.body.line(f"const int skipped = (int)({_row_start(window)} % {UNIT});")
            step = share.rows_at_once * share.parts
            at = f"(i * {step} + start) * {per_unit} + residue"
            staged = f"{self._staging(load, f'{iteration} % {self.stages}')} + row * {_pitch(tile)} + place * {UNIT}"
            target = load.at(f"{iteration} % {PLACES}").address("row", f"place * {per_unit}")
            lw.body.line(f"shift_units<{share.count}>(skipped,")
            lw.body.line(f"  [&](int i) {{ row = {at}; return (const uint4 *)(smem + {staged}); }},")
            lw.body.line(f"  [&](int i) {{ row = {at}; return (uint4 *)(smem + {target}); }});")

    def _staging(self, load: StagedLoad, slot: str) -> str:
        """Byte offset of a staging slot."""
        return f"{load.shared.base + PLACES * load.stage_bytes} + ({slot}) * {_staged_bytes(load.op)}"


def staging_room(lw: NvidiaLowering, loads: Sequence[Op], stages: int) -> list[int] | None:
    """Bytes that each load needs behind its ring for two staging slots; None if loads are not suited, or no room."""
    if stages < PLACES or not all(_suits(lw, load) for load in loads):
        return None
    sizes = [load.attrs["type"].nbytes for load in loads]
    more = [max(0, 2 * _staged_bytes(o) - (stages - PLACES) * n) for o, n in zip(loads, sizes, strict=True)]
    total = lw.shared_bytes + stages * sum(sizes) + sum(more) + lw.scratch_bytes + RESERVE
    return more if total <= lw.target.shared_per_block else None


def shifted(lw: NvidiaLowering, loop: Loop, room: Sequence[int]) -> Shifted:
    """The way of unaligned rows of a loop, with so many bytes behind each ring."""
    behind = [(loop.stages - PLACES) * load.stage_bytes + more for load, more in zip(loop.ring, room, strict=True)]
    stages = min(size // _staged_bytes(load.op) for size, load in zip(behind, loop.ring, strict=True))
    return Shifted(lw, loop, stages, lw.fresh("shifted"))


def _suits(lw: NvidiaLowering, load: Op) -> bool:
    """A matrix along the tensor's last axis with zeros outside, in whole units of each row, that warps can share."""
    tile: TileType = load.attrs["type"]
    _, fill, *coords = load.operands
    if tile.rank != 2 or not is_zero_fill(lw, fill) or _row_bytes(tile) % UNIT:
        return False
    if not _is_never_negative(lw, coords[-1]):  # units are copied up to a row's end, but not from before its start
        return False
    return origin_divisor(lw, load, coords, tile) * tile.dtype.nbytes % UNIT == 0 and _share(lw, tile) is not None


def _is_never_negative(lw: NvidiaLowering, value: Value) -> bool:
    """Whether that is plain: constants, grid coordinates and counters of loops that go up, their sums and products."""
    made = lw.definitions.get(value)
    if made is None:
        return False
    if made.name == "for":
        start, _, step, *_ = made.operands
        return made.regions[0].args[0] is value and all(_is_never_negative(lw, v) for v in (start, step))
    if made.name == "constant":
        return bool(made.attrs["value"] >= 0)
    parts = made.name in ("add", "mul", "min") and all(_is_never_negative(lw, v) for v in made.operands)
    return parts or made.name == "grid"


@dataclass(frozen=True)
class Share:
    """How warps share the units of a tile: rows that differ by a multiple of `period` in number are equally aligned.

    `warps` of them take part, each with `turns` residues of the row's number, one of `parts` of their rows, and in it
    `count` units a lane: `across` lanes have one row.
    """

    period: int
    warps: int
    turns: int
    parts: int
    across: int
    count: int

    @property
    def rows_at_once(self) -> int:
        """Rows of one residue that a warp moves with one instruction."""
        return WARP // self.across


def _share(lw: NvidiaLowering, tile: TileType) -> Share | None:
    """None if the tile does not come out even."""
    across, period = _row_bytes(tile) // UNIT, UNIT // tile.dtype.nbytes
    parts = max(1, lw.waves // period)
    warps = min(1 << (lw.waves.bit_length() - 1), period * parts)
    if WARP % across or tile.shape[0] % (period * (WARP // across) * parts):
        return None
    count = tile.shape[0] // (period * (WARP // across) * parts)
    return Share(period, warps, max(1, period // warps), parts, across, count)


def _row_bytes(tile: TileType) -> int:
    return tile.shape[1] * tile.dtype.nbytes


def _units_of_row(tile: TileType) -> int:
    """One more than its part of a tile has."""
    return _row_bytes(tile) // UNIT + 1


def _pitch(tile: TileType) -> int:
    return UNIT * _units_of_row(tile)


def _staged_bytes(load: Op) -> int:
    tile: TileType = load.attrs["type"]
    return tile.shape[0] * _pitch(tile)


def _row_start(window: Window) -> str:
    """C expression of the address of `row`'s first element, in the tensor's first column."""
    place = f"{window.element} - {window.origins[1]} + row * {window.stride(0)}"
    return f"(u64){window.tensor}.at({place})"
