"""Pipelines whose next tiles wait in registers: written to the other stage at the start of the next iteration."""

from __future__ import annotations

from warpwave.backends.amd.lower.stages import AmdLoop
from warpwave.tiles.simt.memory import emit_load, open_window
from warpwave.tiles.simt.shared import staging_layout, write_shared


class StagedLoop(AmdLoop):
    """Loads through registers."""

    def emit(self) -> None:
        """The next iteration's tiles wait in registers while this one is computed."""
        lw = self.lw
        layouts = [staging_layout(lw, load.shared, load.tile) for load in self.ring]
        staged = [lw.fresh("staged") for _ in self.ring]
        for load, layout, name in zip(self.ring, layouts, staged, strict=True):
            lw.body.line(f"{lw.tile_type(load.tile.dtype, layout)} {name};")
        with lw.body.block("const auto fetch = [&](int iteration) LAMBDA", "};"):
            self.coordinates_at("iteration")
            for load, layout, name in zip(self.ring, layouts, staged, strict=True):
                tensor, fill, *coords = load.op.operands
                window = open_window(lw, tensor, coords, load.tile, load.op)
                emit_load(lw, window, layout, load.tile, name, lw.name(fill))
        with lw.body.block("const auto publish = [&](int stage) LAMBDA", "};"):
            for load, layout, name in zip(self.ring, layouts, staged, strict=True):
                write_shared(lw, load.at("stage"), name, layout, load.tile, ordered=True)
        lw.enter_region()
        lw.barrier()
        lw.body.line(f"if ({self.trips} > 0) fetch(0);")
        counter = lw.fresh("iteration")
        if self.stages > 1:
            self._emit_double(counter)
        else:
            self._emit_single(counter)

    def _emit_double(self, counter: str) -> None:
        """Two or more stages: write the next one while nobody reads it, one barrier an iteration."""
        lw = self.lw
        lw.body.line(f"if ({self.trips} > 0) publish(0);")
        lw.body.line(f"if ({self.trips} > 1) fetch(1);")
        lw.body.line(f"int {counter} = 0;")
        with self.remaining(counter):
            lw.barrier()
            with lw.body.block(f"if ({counter} + 1 < {self.trips})"):
                lw.body.line(f"publish(({counter} + 1) % {self.stages});")
                lw.body.line(f"if ({counter} + 2 < {self.trips}) fetch({counter} + 2);")
            self.iteration(counter, "stage")

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
