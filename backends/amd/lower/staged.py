"""Pipelines whose next tiles wait in registers: written to the other stage at the start of the next iteration."""

from __future__ import annotations

from dataclasses import dataclass

from warpwave.backends.amd.lower.moving import OUTSIDE, MovingLoad, count_whole, open_moving
from warpwave.backends.amd.lower.stages import AmdLoop
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.context import Lowering, both, declare_place
from warpwave.tiles.simt.layout import Layout
from warpwave.tiles.simt.memory import Window, emit_load, is_zero_fill, open_window, set_run, wide_run
from warpwave.tiles.simt.pipeline import StagedLoad
from warpwave.tiles.simt.shared import staging_layout, write_shared
from warpwave.tiles.simt.writer import ctype


@dataclass(frozen=True)
class Waiting:
    """A tile on its way: `name` holds it in registers, `offsets` of a lane's runs count from the moving pointer.

    `possible` is a constant C condition that runs can be loaded so at all.
    """

    staged: StagedLoad
    layout: Layout
    moving: MovingLoad
    run: int
    name: str
    offsets: str
    possible: str

    @property
    def count(self) -> int:
        """Runs of a lane."""
        return len(self.layout.items) // self.run


class StagedLoop(AmdLoop):
    """Loads through registers."""

    def emit(self) -> None:
        """The next iteration's tiles wait in registers while this one is computed."""
        lw = self.lw
        self.coordinates_at("0")
        tiles = [declare_waiting(lw, self.op, load) for load in self.ring]
        whole = count_whole(lw, [tile.moving for tile in tiles], self.trips, self.stages)
        lw.body.line(f"if (!({' && '.join(tile.possible for tile in tiles)})) {whole} = 0;")
        with lw.body.block("const auto fetch = [&](int iteration) LAMBDA", "};"):
            with lw.body.block(f"if (__builtin_expect(iteration < {whole}, 1))"):
                for tile in tiles:
                    load_whole(lw, tile, tile.moving.next)
            with lw.body.block("else"):
                self.coordinates_at("iteration")
                for tile in tiles:
                    tensor, fill, *coords = tile.staged.op.operands
                    window = open_window(lw, tensor, coords, tile.staged.tile, tile.staged.op)
                    emit_load(lw, window, tile.layout, tile.staged.tile, tile.name, lw.name(fill))
            for tile in tiles:
                lw.body.line(f"{tile.moving.next} += {tile.moving.advance};")
        with lw.body.block("const auto publish = [&](int stage) LAMBDA", "};"):
            for tile in tiles:
                write_shared(lw, tile.staged.at("stage"), tile.name, tile.layout, tile.staged.tile, ordered=True)
        lw.enter_region()
        lw.barrier()
        lw.body.line(f"if ({self.trips} > 0) fetch(0);")
        counter = lw.fresh("iteration")
        if self.stages > 1:
            self._emit_double(counter, tiles, whole)
        else:
            self._emit_single(counter)

    def _emit_double(self, counter: str, tiles: list[Waiting], whole: str) -> None:
        """Two or more stages: write the next one while nobody reads it, one barrier an iteration."""
        lw = self.lw
        lw.body.line(f"if ({self.trips} > 0) publish(0);")
        lw.body.line(f"if ({self.trips} > 1) fetch(1);")
        lw.body.line(f"int {counter} = 0;")
        if self.has_small_body:
            self._whole_rounds(counter, tiles, whole)
        with self.remaining(counter, repeated=self.repeats_body):
            lw.barrier()
            with lw.body.block(f"if ({counter} + 1 < {self.trips})"):
                lw.body.line(f"publish((stage + 1) % {self.stages});")
                lw.body.line(f"if ({counter} + 2 < {self.trips}) fetch({counter} + 2);")
            self.iteration(counter, "stage")

    def _whole_rounds(self, counter: str, tiles: list[Waiting], whole: str) -> None:
        """Rounds through all stages that load whole tiles only: no condition is left in them."""
        lw = self.lw
        with lw.body.block(f"while ({counter} + {self.stages + 1} < {whole})"):
            with lw.body.each(self.stages, "stage"):
                lw.barrier()
                lw.body.line(f"publish((stage + 1) % {self.stages});")
                for tile in tiles:
                    load_whole(lw, tile, tile.moving.next, f"stage * (int){tile.moving.advance}")
                self.iteration(f"{counter} + stage", "stage")
                lw.enter_region()
            for tile in tiles:
                lw.body.line(f"{tile.moving.next} += {self.stages} * {tile.moving.advance};")
            lw.body.line(f"{counter} += {self.stages};")

    def _emit_single(self, counter: str) -> None:
        """One stage: everybody has read before it is overwritten, and has written before it is read."""
        lw = self.lw
        lw.body.line(f"int {counter} = 0;")
        with self.remaining(counter):
            lw.barrier()
            lw.body.line("publish(stage);")
            lw.barrier()
            lw.body.line(f"if ({counter} + 1 < {self.trips}) fetch({counter} + 1);")
            self.iteration(counter, "stage")


def declare_waiting(lw: Lowering, loop: Op, staged: StagedLoad) -> Waiting:
    """Declare a tile's registers, its pointer and each lane's offsets from there."""
    shape, dtype = staged.tile.shape, staged.tile.dtype
    tensor, fill, *_ = staged.op.operands
    layout = staging_layout(lw, staged.shared, staged.tile)
    moving = open_moving(lw, loop, staged.op, 0)
    run = wide_run(moving.first, layout, staged.tile)
    words = str(run * dtype.nbytes % 4 == 0 and is_zero_fill(lw, fill)).lower()
    names = lw.fresh("staged"), lw.fresh("offset"), f"({lw.wide(tensor)} && {words})"
    tile = Waiting(staged, layout, moving, run, *names)
    lw.body.line(f"{lw.tile_type(dtype, layout)} {tile.name};")
    lw.body.line(f"int {tile.offsets}[{tile.count}];")
    with lw.body.each(tile.count):
        places = declare_place(lw, layout, f"i * {run}")
        padded = zip(places, shape, layout.extent, strict=True)
        in_tile = [f"{place} < {extent}" for place, extent, covered in padded if covered > extent]
        inside = both(moving.inside_staying(lw, places), *in_tile)
        element = " + ".join(f"{place} * (int){moving.first.stride(a)}" for a, place in enumerate(places))
        lw.body.line(f"{tile.offsets}[i] = {inside} ? ({element}) * {dtype.nbytes} : {OUTSIDE};")
    return tile


def load_whole(lw: Lowering, tile: Waiting, source: str, moved: str = "0") -> None:
    """All runs of a tile that is inside the tensor along the axes that move, `moved` bytes from `source`."""
    with lw.body.block(f"if constexpr ({tile.possible})"):
        lw.body.line(f"const auto from = buffer({source});")
        with lw.body.each(tile.count):
            _load_run(lw, tile, f"{tile.offsets}[i]", moved)


def load_part(lw: Lowering, tile: Waiting, window: Window, source: str, condition: str) -> None:
    """All runs of a tile that may be partly outside; zeros where it is, and everywhere unless `condition`."""
    lw.body.line(f"const auto from = buffer({source});")
    with lw.body.each(tile.count):
        places = declare_place(lw, tile.layout, f"i * {tile.run}")
        inside = both(condition, tile.moving.inside_moving(window, places))
        _load_run(lw, tile, f"{inside} ? {tile.offsets}[i] : {OUTSIDE}", "0")


def _load_run(lw: Lowering, tile: Waiting, offset: str, moved: str) -> None:
    dtype = tile.staged.tile.dtype
    lw.body.line(f"const auto x = load_buffer<{ctype(dtype)}, {tile.run}>(from, {offset}, {moved});")
    set_run(lw, tile.name, tile.layout, dtype, tile.run)
