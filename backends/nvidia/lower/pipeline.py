"""Pipelines: loads into shared memory run ahead of the iteration that uses them.

`multistage`: all warps start cp.async copies some iterations ahead (Ampere, or tensors that the bulk copy engine
does not take). `producer`: one warp keeps a ring of stages full with the bulk copy engine; the computing warps
wait for a stage's "full" barrier and hand it back through its "empty" barrier.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.shifted import UNIT, Shifted, shifted, staging_room
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.memory import Window, emit_load, is_zero_fill, open_window
from warpwave.tiles.simt.pipeline import Loop, StagedLoad, reserve, staged_loads
from warpwave.tiles.simt.shared import wide_layout, write_shared


def choose_stages(lw: NvidiaLowering, op: Op, loads: list[Op]) -> int:
    """As many stages as asked for, or as fit in a block's shared memory."""
    wanted: int = op.attrs["stages"] or lw.plan.stages
    one = sum(load.attrs["type"].nbytes for load in loads)
    reserve_bytes = 2048 + lw.scratch_bytes  # alignment, barriers
    fits: int = (lw.target.shared_per_block - lw.shared_bytes - reserve_bytes) // max(one, 1)
    return max(1, min(wanted, fits))


def lower_pipeline(lw: NvidiaLowering, op: Op) -> bool:
    """The loop, with its loads a few iterations ahead; False if none can run ahead."""
    loads = staged_loads(op.regions[0])
    if not loads:
        return False
    if lw.plan.producer:
        from warpwave.backends.nvidia.lower.consumer import consume

        consume(lw, op)
        return True
    stages = choose_stages(lw, op, loads)
    room = staging_room(lw, loads, stages)
    ring = [_reserve(lw, load, stages, more) for load, more in zip(loads, room or [0] * len(loads), strict=True)]
    lw.plan.reasons.append(f"{op.loc}: {len(loads)} loads ahead through {stages} stages by cp.async")
    loop = Loop(lw, op, ring, stages)
    _Multistage(lw, loop, shifted(lw, loop, room) if room else None).emit()
    return True


def _reserve(lw: NvidiaLowering, load: Op, stages: int, more: int) -> StagedLoad:
    """A ring, and so many bytes behind it."""
    ring = reserve(lw, load, stages)
    if more:
        lw.allocate(more)
    return ring


@dataclass(frozen=True)
class _Multistage:
    """`shifted` says how unaligned rows come to lie in the operands' tiles, if there is room for that."""

    lw: NvidiaLowering
    loop: Loop
    shifted: Shifted | None

    def emit(self) -> None:
        """Copies of stages - 1 iterations are in flight; one barrier an iteration, two if there is one stage."""
        loop, lw = self.loop, self.lw
        loop.declare()
        lw.body.line("{")
        lw.enter_region()
        lw.barrier()  # the ring may lie where others still read
        first, depth = f"{loop.stages - 1}", f"{loop.stages}"
        if self.shifted:
            first, depth = self.shifted.declare()
            self.shifted.prepare()
        with lw.body.block("const auto ahead = [&](int iteration, int stage) LAMBDA", "};"):
            loop.coordinates_at("iteration")
            for load in loop.ring:
                self._copy(load)
        if loop.stages > 1:
            with lw.body.block(f"for (int i = 0; i < {first}; ++i)"):
                lw.body.line(f"if (i < {loop.trips}) ahead(i, i);")
                lw.body.line("ptx::cp_async_commit();")
        if self.shifted:
            self.shifted.shift_first()
        counter = lw.fresh("iteration")
        with lw.body.block(f"for (int {counter} = 0; {counter} < {loop.trips}; ++{counter})"):
            self._arrive(counter, first, depth)
            lw.unfinished_reads = True
            if self.shifted:
                loop.iteration(counter, self.shifted.slot(counter), partial(self.shifted.shift_next, counter))
            else:
                loop.iteration(counter, "stage")
            lw.enter_region()
        lw.body.line("}")

    def _arrive(self, counter: str, first: str, depth: str) -> None:
        """This iteration's tiles are there for all warps, and a later one's are on their way."""
        loop, lw = self.loop, self.lw
        lw.body.line(f"const int stage = {counter} % {depth};")
        if loop.stages == 1:
            lw.barrier()
            lw.body.line(f"ahead({counter}, 0);")
            lw.body.line("ptx::cp_async_commit();")
            lw.body.line("ptx::cp_async_wait<0>();")
            lw.barrier()
            return
        wait = f"ptx::cp_async_wait<{loop.stages - 2}>();"
        lw.body.line(self.shifted.wait(wait) if self.shifted else wait)
        lw.barrier()
        lw.body.line(f"const int next = {counter} + {first};")
        lw.body.line(f"if (next < {loop.trips}) ahead(next, next % {depth});")
        lw.body.line("ptx::cp_async_commit();")

    def _copy(self, load: StagedLoad) -> None:
        """Start one tile's copies into `stage`; what cp.async cannot move goes through registers."""
        lw, tile = self.lw, load.tile
        tensor, fill, *coords = load.op.operands
        window = open_window(lw, tensor, coords, tile, load.op)
        target = load.at("stage")
        if self.shifted:
            with lw.body.block(f"if constexpr ({self.shifted.name})"):
                self.shifted.copy(load, window)
            lw.body.lines[-1] = lw.body.lines[-1] + " else"
        fits = is_zero_fill(lw, fill) and window.divisor * tile.dtype.nbytes % UNIT == 0
        fits = fits and tile.shape[-1] * tile.dtype.nbytes % UNIT == 0
        if fits:
            with lw.body.block(f"if constexpr ({lw.wide(tensor)})"):
                self._units(load, window)
            lw.body.lines[-1] = lw.body.lines[-1] + " else"
        with lw.body.block(""):
            layout = wide_layout(lw, tile)
            staged = lw.fresh("staged")
            lw.body.line(f"{lw.tile_type(tile.dtype, layout)} {staged};")
            emit_load(lw, window, layout, tile, staged, lw.name(fill))
            write_shared(lw, target, staged, layout, tile, ordered=True)

    def _units(self, load: StagedLoad, window: Window) -> None:
        """16 bytes for each thread and turn: none straddles the edge of the tensor."""
        lw, tile = self.lw, load.tile
        rows, cols = (1, *tile.shape)[-2:]
        per_unit = UNIT // tile.dtype.nbytes
        across, threads = cols // per_unit, lw.threads
        total = rows * across
        with lw.body.each(-(-total // threads)):
            lw.body.line(f"const int unit = i * {threads} + thread;")
            lw.body.line(f"const int row = unit / {across}, col = unit % {across} * {per_unit};")
            places = ("row", "col")[-tile.rank :]
            inside = " && ".join([window.valid, *(window.inside(axis, p) for axis, p in enumerate(places))])
            offset = " + ".join(f"{p} * {window.stride(axis)}" for axis, p in enumerate(places))
            lw.body.line(f"const bool inside = {inside};")
            source = f"{window.tensor}.at(inside ? {window.element} + {offset} : 0)"
            target = f"smem_at + {load.at('stage').address('row', 'col')}"
            copy = f"ptx::cp_async<{UNIT}>({target}, {source}, inside ? {UNIT} : 0);"
            lw.body.line(copy if total % threads == 0 else f"if (unit < {total}) {copy}")
