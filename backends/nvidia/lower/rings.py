"""Rings of stages that a producer warp fills with the bulk copy engine: which pipelines have one, and its layout."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields

from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.place import NamedTile, st_type
from warpwave.backends.nvidia.lowered import TensorMap
from warpwave.tiles.ir import OPS, Block, Op, Value, walk
from warpwave.tiles.simt.alignment import origin_divisor
from warpwave.tiles.simt.context import SharedTile
from warpwave.tiles.simt.memory import is_zero_fill
from warpwave.tiles.simt.pipeline import Loop, StagedLoad, feeding, staged_loads
from warpwave.tiles.simt.products import ancestors
from warpwave.tiles.types import TileType

BARRIER_BYTES = 16  # a full and an empty mbarrier
Group = tuple[int, ...]


@dataclass(frozen=True)
class Ring:
    """The stages of one or more pipelines that load equal tiles. Loads that are used together share semaphores.

    C names: `arrays` of the tiles, and for each group how those of its `semaphores` begin, and `places`: the names of
    its current stage and phase.
    """

    semaphores: tuple[str, ...]
    tiles: tuple[SharedTile, ...]
    arrays: tuple[str, ...]
    places: tuple[tuple[str, str], ...]
    stage_bytes: tuple[int, ...]
    groups: tuple[Group, ...]  # indices of loads
    stages: int
    barriers: int  # byte offset

    def stage(self, group: int) -> str:
        """C name of the current stage of a group."""
        return self.places[group][0]

    def phase(self, group: int) -> str:
        """C name of the parity of a group's current round through the ring."""
        return self.places[group][1]

    def full(self, group: int, stage: str = "") -> str:
        """C expression of the semaphore that says that a stage is filled."""
        return f"{self.semaphores[group]}_arrived[{stage or self.stage(group)}]"

    def empty(self, group: int, stage: str = "") -> str:
        """C expression of the semaphore that says that a stage may be overwritten."""
        return f"{self.semaphores[group]}_finished[{stage or self.stage(group)}]"

    def before(self, group: int) -> str:
        """C expression of the stage before a group's current one."""
        return f"({self.stage(group)} + {self.stages - 1}) % {self.stages}"

    def group_of(self, load: int) -> int:
        """The group of a load."""
        return next(n for n, group in enumerate(self.groups) if load in group)

    def loads(self, ops: list[Op]) -> list[StagedLoad]:
        """The loads of one pipeline with their places in the ring."""
        return [StagedLoad(o, t, n) for o, t, n in zip(ops, self.tiles, self.stage_bytes, strict=True)]


def pipelines(block: Block) -> Iterator[Op]:
    """Loops with loads that run ahead."""
    for op in walk(block):
        if op.name == "for" and op.attrs["kind"] == "pipeline" and staged_loads(op.regions[0]):
            yield op


def single_loads(lw: NvidiaLowering) -> list[Op]:
    """Loads into shared memory that happen once for each block, at coordinates that the producer knows."""
    ops = lw.kernel.body.ops
    found = [op for op in ops if op.name == "load" and op.attrs["type"].space == "shared" and _is_bulk(lw, op)]
    made = {r: op for op in ops for r in op.results}
    return [op for op in found if _is_scalar_slice(op.operands[1:], made)]


def _is_scalar_slice(values: Sequence[Value], made: Mapping[Value, Op]) -> bool:
    """Whether all of these come from scalars alone, without effects."""
    makers = {made[v] for v in ancestors(values, made) if v in made}
    return all(op.name == "grid" or is_scalar_op(op) for op in makers)


def is_scalar_op(op: Op) -> bool:
    """Whether the producer can execute an op as it stands: scalars only, and nothing is written."""
    scalars = all(isinstance(r.type, TileType) and r.type.is_scalar for r in op.results)
    return scalars and not op.regions and OPS[op.name].effect != "write"


def can_produce(lw: NvidiaLowering) -> bool:
    """Whether a warp of its own can do all loads that run ahead."""
    loops = list(pipelines(lw.kernel.body))
    bulk = all(_is_bulk(lw, load) for loop in loops for load in staged_loads(loop.regions[0]))
    return bool(loops) and bulk and producer_slice(lw.kernel.body) is not None


def _is_bulk(lw: NvidiaLowering, load: Op) -> bool:
    """A matrix whose columns lie along the tensor's last axis, with zeros outside the tensor."""
    tile: TileType = load.attrs["type"]
    tensor, fill, *coords = load.operands
    matrix = tile.rank == 2 and is_zero_fill(lw, fill) and has_map(lw, tensor)
    return matrix and begins_aligned(lw, load, coords, tile)


def has_map(lw: NvidiaLowering, tensor: Value) -> bool:
    """Whether a tensor has few enough axes for a tensor map."""
    assert lw.target.tensor_maps is not None
    return tensor.tensor.rank <= lw.target.tensor_maps.max_rank


def begins_aligned(lw: NvidiaLowering, op: Op, coords: Sequence[Value], tile: TileType) -> bool:
    """Whether a tile's rows lie along the tensor's and begin where the engine can: at multiples of 16 bytes."""
    assert lw.target.tensor_maps is not None
    along = op.attrs["axes"][-1] == len(coords) - 1
    return along and origin_divisor(lw, op, coords, tile) * tile.dtype.nbytes % lw.target.tensor_maps.alignment == 0


@dataclass(frozen=True)
class ProducerSlice:
    """The ops of a block that the producer executes too, in order, and the values that they need from outside."""

    ops: list[Op]
    needed: set[Value]


def producer_slice(block: Block, singles: Collection[Op] = ()) -> ProducerSlice | None:
    """What leads to loads that run ahead and to `singles`; None if the producer would need tiles or carried values."""
    kept: list[Op] = []
    needed: set[Value] = set()
    for op in reversed(block.ops):
        inner = set(op.operands) if op in singles else _needed_inside(op)
        if inner is None:
            return None
        if not inner and any(r in needed for r in op.results):
            if op.name != "grid" and not is_scalar_op(op):
                return None
            inner = set(op.operands)
        elif not inner:
            continue
        needed |= inner
        kept.append(op)
    return ProducerSlice(kept[::-1], needed - {r for op in block.ops for r in op.results})


def _needed_inside(op: Op) -> set[Value] | None:
    """What the producer needs from outside an op that contains pipelines; empty if it contains none."""
    if _is_pipeline(op):
        return _needed_by_loads(op)
    if not any(True for region in op.regions for _ in pipelines(region)):
        return set()
    if op.name == "while":
        return None
    needed = set(op.operands[:1] if op.name == "if" else op.operands[:3])
    for region in op.regions:
        inner = producer_slice(region)
        if inner is None or inner.needed & set(region.args[1:]):
            return None
        needed |= inner.needed - set(region.args)
    return needed


def _needed_by_loads(pipeline: Op) -> set[Value] | None:
    """The bounds, and what the loads' coordinates come from."""
    (body,) = pipeline.regions
    if any(True for _ in pipelines(body)):
        return None
    loads = staged_loads(body)
    inside = set(body.args) | {r for op in body.ops for r in op.results}
    used = {v for op in [*loads, *feeding(body, loads)] for v in op.operands}
    return {*pipeline.operands[:3], *(used - inside)}


def _is_pipeline(op: Op) -> bool:
    return op.name == "for" and op.attrs["kind"] == "pipeline" and bool(staged_loads(op.regions[0]))


def make_rings(lw: NvidiaLowering, stages: int) -> dict[Op, Ring]:
    """A ring for each pipeline; pipelines that load equal tiles, one after the other, share one."""
    shared: dict[tuple[object, ...], Ring] = {}
    rings: dict[Op, Ring] = {}
    for loop in pipelines(lw.kernel.body):
        loads = staged_loads(loop.regions[0])
        groups = _groups(loop, loads)
        key = (groups, loop.attrs["stages"], *(load.attrs["type"] for load in loads))
        if key not in shared:
            shared[key] = _make_ring(lw, loads, groups, loop.attrs["stages"] or stages)
        rings[loop] = shared[key]
    for load in single_loads(lw):
        rings[load] = _make_ring(lw, [load], ((0,),), lw.plan.single_stages)
    return rings


def _make_ring(lw: NvidiaLowering, loads: list[Op], groups: tuple[Group, ...], stages: int) -> Ring:
    tiles, sizes = [], []
    for load in loads:
        tile = lw.place_shared(load.result)
        size = lw.shared_bytes - tile.base
        lw.allocate(size * (stages - 1))
        tiles.append(tile)
        sizes.append(size)
    barriers = lw.allocate(BARRIER_BYTES * len(groups) * stages)
    arrays = tuple(lw.own_name(_called(lw, load)) for load in loads)
    called = ["_".join(arrays[i].removesuffix("_tile") for i in group) for group in groups]
    if len(groups) == 1 and len(loads) > 1:
        called = ["inputs"]  # the usual ring of a product's two operands
    called = [lw.own_name(c) for c in called]
    places = tuple(("stage", "phase") if c == "inputs" else (f"{c}_stage", f"{c}_phase") for c in called)
    return Ring(tuple(called), tuple(tiles), arrays, places, tuple(sizes), groups, stages, barriers)


def _called(lw: NvidiaLowering, load: Op) -> str:
    """What a load's tiles are called: as the user does, or after the tensor."""
    name = load.result.name or lw.kernel.param_names[lw.kernel.params.index(load.operands[0])]
    return name if name.endswith("_tile") else f"{name}_tile"


def declare_rings(lw: NvidiaLowering) -> None:
    """The rings' tiles and semaphores, as objects of shared memory."""
    for ring in dict.fromkeys(lw.rings.values()):
        for tile, array, size in zip(ring.tiles, ring.arrays, ring.stage_bytes, strict=True):
            kind = st_type(tile, size)
            if kind:
                lw.body.line(f"constexpr shared_tiles<{kind}, {tile.base}> {array};")
        stride = BARRIER_BYTES * len(ring.groups)
        for number, name in enumerate(ring.semaphores):
            place = ring.barriers + number * BARRIER_BYTES
            lw.body.line(f"constexpr ring_semaphores<{place}, {stride}> {name}_arrived;")
            lw.body.line(f"constexpr ring_semaphores<{place + BARRIER_BYTES // 2}, {stride}> {name}_finished;")


def _groups(loop: Op, loads: list[Op]) -> tuple[Group, ...]:
    """Loads whose first and last users are the same."""
    spans: dict[tuple[int, ...], list[int]] = {}
    for index, load in enumerate(loads):
        places = users(loop.regions[0], load)
        spans.setdefault((min(places), max(places)), []).append(index)
    return tuple(tuple(group) for group in spans.values())


def users(body: Block, load: Op) -> list[int]:
    """Places in the body of the ops that use a load's tile."""
    found = [i for i, op in enumerate(body.ops) if reads(op, load.result)]
    return found or [body.ops.index(load)]


def reads(op: Op, value: Value) -> bool:
    """Whether an op, or one inside it, takes a value."""
    return value in op.operands or any(value in inner.operands for region in op.regions for inner in walk(region))


def map_of(lw: NvidiaLowering, load: Op, tile: SharedTile, rows: int) -> int:
    """The number of the tensor map for a load's tiles, of which one block copies so many rows."""
    name = lw.kernel.param_names[lw.kernel.params.index(load.operands[0])]
    cols = load.attrs["type"].shape[1]
    row_axis, col_axis = load.attrs["axes"]
    lw.bulk.add(name)
    return map_number(lw, TensorMap(name, (row_axis, col_axis), min(rows, box_rows(lw)), cols, tile.pitch))


def map_number(lw: NvidiaLowering, wanted: TensorMap) -> int:
    """The place of a tensor map among the kernel's parameters."""
    if wanted not in lw.maps:
        lw.maps.append(wanted)
    return lw.maps.index(wanted)


def map_name(lw: NvidiaLowering, number: int) -> str:
    """The C name of a tensor map."""
    return map_names(lw.maps)[number]


def map_names(maps: Sequence[TensorMap]) -> list[str]:
    """C names of tensor maps: after the tensor, with a number from its second one on."""
    before = [sum(other.param == m.param for other in maps[:place]) for place, m in enumerate(maps)]
    return [f"{m.param}_map{count + 1 if count else ''}" for m, count in zip(maps, before, strict=True)]


def tile_place(lw: NvidiaLowering, op: Op, coords: Sequence[Value]) -> list[str]:
    """A tile's coordinates in the order of ThunderKittens: those of other axes, then row and column."""
    axes = op.attrs["axes"]
    order = [axis for axis in range(len(coords)) if axis not in axes] + list(axes)
    return [lw.name(coords[axis]) for axis in order]


def box_rows(lw: NvidiaLowering) -> int:
    """The most rows that the bulk copy engine moves at once."""
    assert lw.target.tensor_maps is not None
    return lw.target.tensor_maps.max_box


def box_place(lw: NvidiaLowering, op: Op, coords: Sequence[Value], origins: Sequence[str], row: str, col: str) -> str:
    """Coordinates of a box for the bulk copy engine, innermost first: `row` and `col` count from the tile's origin."""
    others = [f"scaled_coordinate({lw.name(c)}, 1)" for axis, c in enumerate(coords) if axis not in op.attrs["axes"]]
    return ", ".join([f"{origins[1]} + {col}", f"{origins[0]} + {row}", *others[::-1]])


def at_stage(ring: Ring, load: int) -> NamedTile:
    """A load's tile in its group's current stage."""
    tile, size, stage = ring.tiles[load], ring.stage_bytes[load], ring.stage(ring.group_of(load))
    name = f"{ring.arrays[load]}[{stage}]" if st_type(tile, size) else ""
    fields = {f.name: getattr(tile, f.name) for f in dataclass_fields(tile)}
    return NamedTile(**{**fields, "shift": f"{stage} * {size}"}, name=name)


class RingLoop(Loop):
    """A pipeline whose counter is written without what adds nothing."""

    def count(self, iteration: str) -> None:
        """Define the loop counter of an iteration."""
        start, _, step = self.bounds
        name = self.lw.define(self.body.args[0], self.body.args[0].name)
        steps = f"({iteration}) * {step}" if not iteration.isidentifier() else f"{iteration} * {step}"
        steps = iteration if step == "1" else steps
        self.lw.body.line(f"const int {name} = {steps if start == '0' else f'{start} + {steps}'};")
