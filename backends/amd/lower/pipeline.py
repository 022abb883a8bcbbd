"""Pipelines: loads into shared memory run ahead of the iteration that uses them.

Where the target can load 16 bytes a lane straight into LDS, tiles of the next iterations are in flight while
this one is computed; a counted wait and one barrier make a stage readable. Elsewhere the next tiles wait in
registers and are written to the other stage at the start of the next iteration. Both orders hold for every
wave interleaving: a stage is overwritten only after a barrier that follows its last read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.place import place_shared
from warpwave.tiles.ir import OPS, Block, Op, Value
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.control import assign_all, declare_carried, lower_block
from warpwave.tiles.simt.memory import emit_load, open_window
from warpwave.tiles.simt.shared import wide_layout, write_shared
from warpwave.tiles.types import TileType

DIRECT = 16  # bytes a lane of the widest direct load
SMALL_BODY = 4  # ops; a longer body is not repeated for each stage
OUTSIDE = "0x7ffffff0"  # an offset that no buffer holds: reads zeros


@dataclass(frozen=True)
class Places:
    """C arrays over a lane's direct loads: tile row, tile column, byte offset in the tensor."""

    rows: str
    cols: str
    offsets: str


@dataclass(frozen=True)
class StagedLoad:
    """One load of the loop that runs ahead, and its ring of shared tiles."""

    op: Op
    shared: SharedTile
    stage_bytes: int

    @property
    def tile(self) -> TileType:
        """The loaded tile's type."""
        tile: TileType = self.op.attrs["type"]
        return tile

    def at(self, stage: str) -> SharedTile:
        """The shared tile of a stage (a C expression)."""
        return replace(self.shared, shift=f"({stage}) * {self.stage_bytes}")


def staged_loads(body: Block) -> list[Op]:
    """Loads into shared memory whose coordinates are known before the iteration: functions of the counter."""
    known = set(body.args[:1])
    inside = {r for op in body.ops for r in op.results} | set(body.args)
    found = []
    for op in body.ops:
        ready = all(v in known or v not in inside for v in op.operands)
        if op.name == "load" and op.attrs["type"].space == "shared" and ready:
            found.append(op)
        elif OPS[op.name].effect == "none" and ready and all(r.type.is_scalar for r in op.results):  # type: ignore[union-attr]
            known.update(op.results)
    return found


def _feeding(body: Block, loads: list[Op]) -> list[Op]:
    """Scalar ops of the body that the loads' coordinates need, in order."""
    needed = {v for op in loads for v in op.operands}
    chosen = []
    for op in reversed(body.ops):
        if op not in loads and any(r in needed for r in op.results):
            chosen.append(op)
            needed.update(op.operands)
    return chosen[::-1]


def choose_stages(lw: AmdLowering, op: Op, loads: list[Op]) -> int:
    """As many stages as asked for, or as fit this workgroup's share of the LDS.

    The share leaves room for workgroups that together give each SIMD two waves.
    """
    wanted: int = op.attrs["stages"] or lw.plan.stages
    one = sum(load.attrs["type"].nbytes for load in loads)
    share = lw.target.lds_bytes * min(1.0, lw.plan.waves / (2 * lw.target.simds_per_cu))
    fits = int(share - lw.shared_bytes - lw.scratch_bytes) // max(one, 1)
    stages: int = max(1, min(wanted, fits))
    return stages


def lower_pipeline(lw: AmdLowering, op: Op) -> None:
    """The loop, with its loads a few iterations ahead."""
    (body,) = op.regions
    loads = staged_loads(body)
    stages = choose_stages(lw, op, loads)
    direct = DIRECT in lw.target.direct_to_lds_widths and stages > 1
    ring = [_reserve(lw, load, stages) for load in loads]
    lw.plan.reasons.append(
        f"{op.loc}: {len(loads)} loads ahead through {stages} stages, "
        + ("direct to LDS" if direct else "staged in registers")
    )
    start, stop, step = (lw.name(v) for v in op.operands[:3])
    declare_carried(lw, op, op.operands[3:])
    names = [lw.name(v) for v in op.results]
    for arg, name in zip(body.args[1:], names, strict=True):
        lw.names[arg] = name
    loop = _Loop(lw, op, ring, stages, start, stop, step, names)
    lw.body.line("{")
    if direct:
        loop.emit_direct()
    else:
        loop.emit_staged()
    lw.body.line("}")


def _reserve(lw: AmdLowering, load: Op, stages: int) -> StagedLoad:
    before = lw.shared_bytes
    shared = place_shared(lw, load.result)
    stage_bytes = lw.shared_bytes - before
    lw.allocate(stage_bytes * (stages - 1))
    return StagedLoad(load, shared, stage_bytes)


@dataclass
class _Loop:
    lw: AmdLowering
    op: Op
    ring: list[StagedLoad]
    stages: int
    start: str
    stop: str
    step: str
    names: list[str]

    @property
    def body(self) -> Block:
        return self.op.regions[0]

    def _rest(self) -> Block:
        """The body without the loads that run ahead."""
        ahead = {load.op for load in self.ring}
        return Block(self.body.args, [op for op in self.body.ops if op not in ahead])

    def _coordinates_at(self, iteration: str) -> None:
        """Define the loop counter of an iteration, and what the loads' coordinates need of it."""
        lw, counter = self.lw, self.body.args[0]
        name = lw.define(counter, counter.name)
        lw.body.line(f"const int {name} = {self.start} + ({iteration}) * {self.step};")
        for op in _feeding(self.body, [load.op for load in self.ring]):
            lw.lower_op(op)

    def _iteration(self, counter: str) -> None:
        """This iteration's computation, on its stage."""
        lw = self.lw
        name = lw.define(self.body.args[0], self.body.args[0].name)
        lw.body.line(f"const int {name} = {self.start} + {counter} * {self.step};")
        for load in self.ring:
            lw.shared[load.op.result] = load.at("stage")
        lower_block(lw, self._rest())
        assign_all(lw, self.names, self.op.results, self.body.terminator.operands)

    # -- straight to LDS ------------------------------------------------------------------------------

    def emit_direct(self) -> None:
        """Stages - 1 iterations are in flight; one barrier an iteration."""
        lw, ahead = self.lw, self.stages - 1
        # a wave that has nothing to fetch in the last round issues one load less: count what all waves issue
        instructions = sum(load.stage_bytes // (64 * DIRECT * lw.plan.waves) for load in self.ring)
        lw.body.line(f"const int trips = trip_count({self.start}, {self.stop}, {self.step});")
        places = [self._direct_places(load) for load in self.ring]
        lw.enter_region()
        lw.barrier()  # the ring may lie where others still read
        with lw.body.block("const auto ahead = [&](int iteration, int stage) LAMBDA", "};"):
            self._coordinates_at("iteration")
            for load, place in zip(self.ring, places, strict=True):
                self._direct_load(load, place)
        with lw.body.each(ahead):
            lw.body.line("if (i < trips) ahead(i, i);")
        counter, newer = lw.fresh("iteration"), ahead - 1
        lw.body.line(f"int {counter} = 0;")
        if self._is_small():
            with self._whole_rounds(counter, ahead):
                lw.body.line(f"wait_vector_memory<{newer * instructions}>();")
                lw.barrier()
                lw.body.line(f"ahead({counter} + {ahead}, (stage + {ahead}) % {self.stages});")
                self._iteration(counter)
        with self._remaining(counter):
            lw.body.line(f"if ({counter} + {newer} < trips) wait_vector_memory<{newer * instructions}>();")
            if newer:
                lw.body.line("else wait_vector_memory<0>();")
            lw.barrier()
            lw.body.line(
                f"if ({counter} + {ahead} < trips) ahead({counter} + {ahead}, (stage + {ahead}) % {self.stages});"
            )
            self._iteration(counter)

    def _is_small(self) -> bool:
        """Whether the body may be repeated for each stage: then a stage's addresses are constants of the code."""
        return len(self._rest().ops) <= SMALL_BODY

    @contextmanager
    def _whole_rounds(self, counter: str, ahead: int) -> Iterator[None]:
        """Rounds through all stages in which every load ahead exists: no condition is left in them."""
        lw = self.lw
        condition = f"{counter} + {self.stages - 1 + ahead} < trips"
        with lw.body.block(f"while ({condition})"), lw.body.each(self.stages, "stage"):
            lw.unfinished_reads = True
            yield
            lw.enter_region()
            lw.body.line(f"++{counter};")

    @contextmanager
    def _remaining(self, counter: str) -> Iterator[None]:
        """One iteration at a time; the stage is computed."""
        lw = self.lw
        with lw.body.block(f"for (; {counter} < trips; ++{counter})"):
            lw.body.line(f"const int stage = {counter} % {self.stages};")
            lw.unfinished_reads = True
            yield
            lw.enter_region()

    def _direct_places(self, load: StagedLoad) -> Places:
        """Declare what each of a lane's direct loads fetches: row, column, and byte offset in the tensor."""
        lw, shared = self.lw, load.shared
        tile_rows, tile_cols = (1, *load.tile.shape)[-2:]
        count, size = _direct_count(lw, load), shared.dtype.nbytes
        places = Places(lw.fresh("row"), lw.fresh("col"), lw.fresh("offset"))
        lw.body.line(f"int {places.rows}[{count}], {places.cols}[{count}], {places.offsets}[{count}];")
        stride = f"{lw.name(load.op.operands[0])}.strides[{load.op.attrs['axes'][0]}]" if load.tile.rank == 2 else "0"
        masks = [f"((row >> {b} & 1) * {m})" for b, m in enumerate(shared.masks) if m]
        with lw.body.each(count):
            lw.body.line(f"const int place = ((i * {lw.plan.waves} + wave) * 64 + lane) * {DIRECT};")
            lw.body.line(f"const int row = place / {shared.pitch};")
            unswizzled = f"(place ^ ({' ^ '.join(masks)}))" if masks else "place"
            lw.body.line(f"const int col = {unswizzled} % {shared.pitch} / {size};")
            lw.body.line(f"{places.rows}[i] = row, {places.cols}[i] = col;")
            inside = f"row < {tile_rows} && col < {tile_cols}"
            lw.body.line(f"{places.offsets}[i] = {inside} ? (row * (int){stride} + col) * {size} : {OUTSIDE};")
        return places

    def _direct_load(self, load: StagedLoad, places: Places) -> None:
        """Issue one tile's loads into `stage`; tensors with narrow rows go through registers."""
        lw = self.lw
        tensor, fill, *coords = load.op.operands
        window = open_window(lw, tensor, coords, load.tile, load.op)
        target = load.at("stage")
        whole_chunks = str(window.divisor * load.tile.dtype.nbytes % DIRECT == 0).lower()
        with lw.body.block(f"if constexpr ({lw.wide(tensor)} && {_is_zero_fill(lw, fill)} && {whole_chunks})"):
            lw.body.line(f"const auto source = buffer({window.tensor}.at({window.element}));")
            whole = [window.valid, *(window.holds(axis, n) for axis, n in enumerate(load.tile.shape))]
            with lw.body.block(f"if (__builtin_expect({' && '.join(whole)}, 1))"):
                self._issue(load, target, f"{places.offsets}[i]")
            with lw.body.block("else"):
                inside = [window.valid, window.inside(load.tile.rank - 1, f"only_here({places.cols}[i])")]
                if load.tile.rank == 2:
                    inside.append(window.inside(0, f"only_here({places.rows}[i])"))
                self._issue(load, target, f"{' && '.join(inside)} ? {places.offsets}[i] : {OUTSIDE}")
        with lw.body.block("else"):
            self._through_registers(load, window, target, lw.name(fill))

    def _issue(self, load: StagedLoad, target: SharedTile, offset: str) -> None:
        """One direct load for each 16 bytes of the tile that a lane brings in."""
        lw = self.lw
        with lw.body.each(_direct_count(lw, load)):
            lw.body.line(f"const int slot = (i * {lw.plan.waves} + wave) * {64 * DIRECT};")
            issue = f"load_to_lds(source, lds + {target.offset} + slot, {offset});"
            partial = load.stage_bytes % (64 * DIRECT * lw.plan.waves) != 0
            lw.body.line(f"if (slot + lane * {DIRECT} < {load.stage_bytes}) {issue}" if partial else issue)

    def _through_registers(self, load: StagedLoad, window: object, target: SharedTile, fill: str) -> None:
        lw, tile = self.lw, load.tile
        layout = wide_layout(lw, tile)
        staged = lw.fresh("staged")
        lw.body.line(f"{lw.tile_type(tile.dtype, layout)} {staged};")
        emit_load(lw, window, layout, tile, staged, fill)  # type: ignore[arg-type]
        write_shared(lw, target, staged, layout, tile, ordered=True)

    # -- through registers ----------------------------------------------------------------------------

    def emit_staged(self) -> None:
        """The next iteration's tiles wait in registers while this one is computed."""
        lw = self.lw
        lw.body.line(f"const int trips = trip_count({self.start}, {self.stop}, {self.step});")
        layouts = [wide_layout(lw, x.tile) for x in self.ring]
        staged = [lw.fresh("staged") for _ in self.ring]
        for load, layout, name in zip(self.ring, layouts, staged, strict=True):
            lw.body.line(f"{lw.tile_type(load.tile.dtype, layout)} {name};")
        with lw.body.block("const auto fetch = [&](int iteration) LAMBDA", "};"):
            self._coordinates_at("iteration")
            for load, layout, name in zip(self.ring, layouts, staged, strict=True):
                tensor, fill, *coords = load.op.operands
                window = open_window(lw, tensor, coords, load.tile, load.op)
                emit_load(lw, window, layout, load.tile, name, lw.name(fill))
        with lw.body.block("const auto publish = [&](int stage) LAMBDA", "};"):
            for load, layout, name in zip(self.ring, layouts, staged, strict=True):
                write_shared(lw, load.at("stage"), name, layout, load.tile, ordered=True)
        lw.enter_region()
        lw.barrier()
        lw.body.line("if (trips > 0) fetch(0);")
        counter = lw.fresh("iteration")
        if self.stages > 1:
            self._emit_double(counter)
        else:
            self._emit_single(counter)

    def _emit_double(self, counter: str) -> None:
        """Two or more stages: write the next one while nobody reads it, one barrier an iteration."""
        lw = self.lw
        lw.body.line("if (trips > 0) publish(0);")
        lw.body.line("if (trips > 1) fetch(1);")
        lw.body.line(f"int {counter} = 0;")
        with self._remaining(counter):
            lw.barrier()
            with lw.body.block(f"if ({counter} + 1 < trips)"):
                lw.body.line(f"publish(({counter} + 1) % {self.stages});")
                lw.body.line(f"if ({counter} + 2 < trips) fetch({counter} + 2);")
            self._iteration(counter)

    def _emit_single(self, counter: str) -> None:
        """One stage: everybody has read before it is overwritten, and has written before it is read."""
        lw = self.lw
        lw.body.line(f"int {counter} = 0;")
        with self._remaining(counter):
            lw.barrier()
            lw.body.line("publish(stage);")
            lw.barrier()
            lw.body.line(f"if ({counter} + 1 < trips) fetch({counter} + 1);")
            self._iteration(counter)


def _direct_count(lw: AmdLowering, load: StagedLoad) -> int:
    return -(-load.stage_bytes // (64 * DIRECT * lw.plan.waves))


def _is_zero_fill(lw: AmdLowering, fill: Value) -> str:
    """Direct loads put zeros where they read outside."""
    name = lw.name(fill)
    return "true" if name in ("0", "0L", "0x0.0p+0f") or name.endswith(("(0x0.0p+0f)", ")0")) else "false"
