"""Pipelines whose loads go straight to LDS, 16 bytes a lane: stages - 1 iterations of them are in flight.

A counted wait and one barrier make a stage readable; a stage is overwritten only after a barrier that follows
its last read, for every interleaving of waves. Of a wave's loads of one tile, up to four share a value of M0
and differ by the instruction's own offset, which counts for both the LDS and the memory address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from warpwave.backends.amd.arch import DIRECT, WAVE
from warpwave.backends.amd.lower.moving import OUTSIDE, MovingLoad, count_whole, open_moving
from warpwave.backends.amd.lower.stages import AmdLoop
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.context import Lowering, SharedTile
from warpwave.tiles.simt.memory import Window, emit_load, is_zero_fill, open_window
from warpwave.tiles.simt.pipeline import StagedLoad
from warpwave.tiles.simt.shared import wide_layout, write_shared

ROUND = WAVE * DIRECT  # bytes of one instruction
MAX_SHARED_M0 = 4  # instructions whose offsets fit the 12 bits of the instruction


@dataclass(frozen=True)
class Fetch:
    """One tile's direct loads: `rows`, `cols` and `offsets` are C arrays over a lane's instructions.

    `possible` is a constant C condition that the tile can be loaded this way at all. Of a tile in `parts`, one part
    takes every parts-th run of `chunk` bytes, from run `part` on.
    """

    staged: StagedLoad
    moving: MovingLoad
    rows: str
    cols: str
    offsets: str
    possible: str
    waves: int
    part: int = 0
    parts: int = 1
    chunk: int = 0

    def of_part(self, part: int, fresh: Callable[[str], str]) -> Fetch:
        """The loads of one part."""
        return replace(self, rows=fresh("row"), cols=fresh("col"), offsets=fresh("offset"), part=part)

    @property
    def count(self) -> int:
        """Instructions of a wave."""
        return -(-self.staged.stage_bytes // (ROUND * self.waves * self.parts))

    @property
    def is_even(self) -> bool:
        """Whether all waves issue the same number of whole instructions."""
        return self.staged.stage_bytes % (ROUND * self.waves * self.parts) == 0

    def instruction_offset(self, i: int) -> int:
        """What the instruction adds to both addresses."""
        return i % MAX_SHARED_M0 * ROUND if self.is_even else 0

    @property
    def before(self) -> int:
        """Bytes between the pointer and the tile, so that no lane's offset gets negative."""
        return max(self.instruction_offset(i) for i in range(self.count))

    def slot(self, i: str) -> str:
        """C expression of the first byte that an instruction writes, in the tile."""
        if self.parts > 1:  # a wave's instructions lie in one run
            skipped = f"(wave * {self.count * ROUND} / {self.chunk} * {self.parts - 1} + {self.part}) * {self.chunk}"
            return f"({skipped} + (wave * {self.count} + {i}) * {ROUND})"
        if self.is_even:
            return f"(wave * {self.count} + {i}) * {ROUND}"
        return f"({i} * {self.waves} + wave) * {ROUND}"


class DirectLoop(AmdLoop):
    """Loads straight to LDS. One that `recomputes` its offsets in each step holds no registers for them."""

    recomputes = False

    def emit(self) -> None:
        """The prologue, rounds through all stages where the body is short, and what remains one by one."""
        lw, ahead = self.lw, self.stages - 1
        self.coordinates_at("0")
        fetches = [open_fetch(lw, self.op, load) for load in self.ring]
        if not self.recomputes:
            for fetch in fetches:
                declare_places(lw, fetch)
        whole = count_whole(lw, [f.moving for f in fetches], self.trips, self.stages)
        lw.body.line(f"if (!({' && '.join(f.possible for f in fetches)})) {whole} = 0;")
        lw.enter_region()
        lw.barrier()  # the ring may lie where others still read
        self._define_ahead(fetches, whole)
        with lw.body.each(ahead):
            lw.body.line(f"if (i < {self.trips}) ahead(i, i);")
        counter = lw.fresh("iteration")
        lw.body.line(f"int {counter} = 0;")
        if self.has_small_body and not self.recomputes:
            self._whole_rounds(counter, fetches, whole)
        with self.remaining(counter, repeated=self.repeats_body):
            self._wait(fetches, f"{counter} + {ahead - 1} < {self.trips}")
            next_one = f"{counter} + {ahead}"
            lw.body.line(f"if ({next_one} < {self.trips}) ahead({next_one}, (stage + {ahead}) % {self.stages});")
            self.iteration(counter, "stage")

    def _whole_rounds(self, counter: str, fetches: list[Fetch], whole: str) -> None:
        """Rounds through all stages that fetch whole tiles only: no condition is left in them.

        A stage's addresses in LDS are constants of the code, and its tiles' distance from the pointer is a
        scalar that the loop does not change.
        """
        lw, ahead = self.lw, self.stages - 1
        condition = f"{counter} + {self.stages - 1 + ahead} < {whole}"
        with lw.body.block(f"while ({condition})"):
            with lw.body.each(self.stages, "stage"):
                lw.unfinished_reads = True
                self._wait(fetches)
                for fetch in fetches:
                    target = fetch.staged.at(f"(stage + {ahead}) % {self.stages}")
                    issue_loads(lw, fetch, target, fetch.moving.next, f"stage * (int){fetch.moving.advance}")
                self.iteration(f"{counter} + stage", "stage")
                lw.enter_region()
            for fetch in fetches:
                lw.body.line(f"{fetch.moving.next} += {self.stages} * {fetch.moving.advance};")
            lw.body.line(f"{counter} += {self.stages};")

    def _wait(self, fetches: list[Fetch], newer_exists: str = "") -> None:
        """Until this iteration's tiles are in LDS for all waves; loads of newer iterations stay in flight."""
        lw = self.lw
        # a wave that has nothing to fetch in the last round issues one load less: count what all waves issue
        instructions = sum(f.staged.stage_bytes // (ROUND * f.waves) for f in fetches)
        newer = (self.stages - 2) * instructions
        if newer_exists and newer:
            lw.body.line(f"if ({newer_exists}) stage_barrier<{newer}>();")
            lw.body.line("else stage_barrier<0>();")
        else:
            lw.body.line(f"stage_barrier<{newer}>();")
        lw.passed_barrier()

    # -- one tile -------------------------------------------------------------------------------------

    def _define_ahead(self, fetches: list[Fetch], whole: str) -> None:
        """A function that issues the loads of the iteration that comes next, into a stage."""
        lw = self.lw
        with lw.body.block("const auto ahead = [&](int iteration, int stage) LAMBDA", "};"):
            if self.recomputes:
                lw.body.line("const int here = lane_again();")
                for fetch in fetches:
                    declare_places(lw, fetch, "here")
            with lw.body.block(f"if (__builtin_expect(iteration < {whole}, 1))"):
                for fetch in fetches:
                    issue_loads(lw, fetch, fetch.staged.at("stage"), fetch.moving.next, "0")
            with lw.body.block("else"):
                self.coordinates_at("iteration")
                for fetch in fetches:
                    self.fetch_part(fetch)
            for fetch in fetches:
                lw.body.line(f"{fetch.moving.next} += {fetch.moving.advance};")

    def fetch_part(self, fetch: Fetch) -> None:
        """A tile that may be partly outside, or of a tensor with narrow rows, at the iteration's coordinates."""
        lw, staged = self.lw, fetch.staged
        tensor, fill, *coords = staged.op.operands
        window = open_window(lw, tensor, coords, staged.tile, staged.op)
        target = staged.at("stage")
        with lw.body.block(f"if constexpr ({fetch.possible})"):
            source = lw.fresh("source")
            lw.body.line(
                f"const auto {source} = (const GLOBAL char *){window.tensor}.at({window.element}) - {fetch.before};"
            )
            places = [f"only_here({name}[{{i}}])" for name in (fetch.rows, fetch.cols)[-staged.tile.rank :]]
            issue_loads(lw, fetch, target, source, "0", fetch.moving.inside_moving(window, places))
        with lw.body.block("else"):
            self._through_registers(staged, window, target, lw.name(fill))

    def _through_registers(self, load: StagedLoad, window: Window, target: SharedTile, fill: str) -> None:
        lw, tile = self.lw, load.tile
        layout = wide_layout(lw, tile)
        staged = lw.fresh("staged")
        lw.body.line(f"{lw.tile_type(tile.dtype, layout)} {staged};")
        emit_load(lw, window, layout, tile, staged, fill)
        write_shared(lw, target, staged, layout, tile, ordered=True)


def open_fetch(lw: Lowering, loop: Op, staged: StagedLoad, parts: int = 1, chunk: int = 0, waves: int = 0) -> Fetch:
    """Declare the pointer of a tile, whose direct loads are in `parts` and by so many `waves` (0: all)."""
    tensor, fill, *_ = staged.op.operands
    names = lw.fresh("row"), lw.fresh("col"), lw.fresh("offset")
    sketch = Fetch(staged, None, *names, "", waves or lw.waves, parts=parts, chunk=chunk)  # type: ignore[arg-type]
    moving = open_moving(lw, loop, staged.op, sketch.before)
    whole_chunks = moving.first.divisor * staged.tile.dtype.nbytes % DIRECT == 0
    possible = f"({lw.wide(tensor)} && {str(is_zero_fill(lw, fill) and whole_chunks).lower()})"
    return replace(sketch, moving=moving, possible=possible)


def declare_places(lw: Lowering, fetch: Fetch, lane: str = "lane") -> None:
    """What each of a lane's instructions fetches: row, column, and offset from the pointer."""
    staged, size = fetch.staged, fetch.staged.shared.dtype.nbytes
    tile_rows, tile_cols = (1, *staged.tile.shape)[-2:]
    stride = fetch.moving.first.stride(0) if staged.tile.rank == 2 else "0"
    declare_rows(lw, fetch, fetch.rows, fetch.cols, lane)
    lw.body.line(f"int {fetch.offsets}[{fetch.count}];")
    with lw.body.each(fetch.count):
        lw.body.line(f"const int row = {fetch.rows}[i], col = {fetch.cols}[i];")
        inside = f"row < {tile_rows} && col < {tile_cols}"
        places = ("row", "col")[-staged.tile.rank :]
        inside += f" && {fetch.moving.inside_staying(lw, places)}"
        shift = f"{fetch.before} - i % {MAX_SHARED_M0} * {ROUND}" if fetch.is_even else "0"
        lw.body.line(f"{fetch.offsets}[i] = {inside} ? (row * (int){stride} + col) * {size} + {shift} : {OUTSIDE};")


def declare_rows(lw: Lowering, fetch: Fetch, rows: str, cols: str, lane: str) -> None:
    """Declare arrays with the row and column that each of a lane's instructions fetches."""
    shared = fetch.staged.shared
    lw.body.line(f"int {rows}[{fetch.count}], {cols}[{fetch.count}];")
    with lw.body.each(fetch.count):
        lw.body.line(f"int place = {fetch.slot('i')} + {lane} * {DIRECT};")
        for bit, mask in reversed(list(enumerate(shared.masks))):  # a mask moves what is below its row bit
            if mask:
                lw.body.line(f"place ^= (place / {shared.pitch} >> {bit} & 1) * {mask};")
        lw.body.line(f"{rows}[i] = place / {shared.pitch}, {cols}[i] = place % {shared.pitch} / {shared.dtype.nbytes};")


def issue_loads(
    lw: Lowering, fetch: Fetch, target: SharedTile, source: str, soffset: str, condition: str = "true"
) -> None:
    """One direct load for each 16 bytes of the tile that a lane brings in; `condition` is of each {i}."""
    staged = fetch.staged
    with lw.body.block(""):
        lw.body.line(f"const auto from = buffer({source});")
        for i in range(fetch.count):
            offset = f"{fetch.offsets}[{i}]"
            if condition != "true":
                offset = f"{condition.format(i=i)} ? {offset} : {OUTSIDE}"
            added = fetch.instruction_offset(i)
            first = i - i % MAX_SHARED_M0 if fetch.is_even else i
            to = f"lds + {target.offset} + {fetch.slot(str(first))}"
            issue = f"load_to_lds<{added}>(from, {to}, {offset}, {soffset});"
            partial = f"if ({fetch.slot(str(i))} + lane * {DIRECT} < {staged.stage_bytes}) "
            lw.body.line(issue if fetch.is_even else partial + issue)
