"""From a kernel's IR to CUDA C++: dispatch over ops, and the text around the body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warpwave.backends.nvidia.arch import WARP, Target
from warpwave.backends.nvidia.assign import assign_layouts
from warpwave.backends.nvidia.lower import text
from warpwave.backends.nvidia.lower.blocks import EVEN, FOLDED, lower_grid, own_blocks
from warpwave.backends.nvidia.lower.clusters import SIZES, can_share
from warpwave.backends.nvidia.lower.consumer import consume_once, hand_back_singles
from warpwave.backends.nvidia.lower.context import NvidiaLowering
from warpwave.backends.nvidia.lower.fma import lower_fma
from warpwave.backends.nvidia.lower.mma import lower_mma
from warpwave.backends.nvidia.lower.outbox import (
    lower_posted_store,
    outbox_bytes,
    posted_stores,
    reuse_rings,
    stores_come_last,
)
from warpwave.backends.nvidia.lower.producer import declare_places, init_rings, meet_cluster, produce
from warpwave.backends.nvidia.lower.readable import constant
from warpwave.backends.nvidia.lower.rings import (
    can_produce,
    declare_rings,
    is_scalar_op,
    make_rings,
    map_name,
    single_loads,
)
from warpwave.backends.nvidia.lower.scattered import is_scattered, lower_scattered_store
from warpwave.backends.nvidia.lower.turns import begin_turns, can_take_turns
from warpwave.backends.nvidia.lower.wgmma import lower_wgmma
from warpwave.backends.nvidia.lowered import MASKED, Lowered
from warpwave.backends.nvidia.plan import Plan, make_plan, ring_stages
from warpwave.backends.nvidia.shared_operands import share_operands
from warpwave.tiles.errors import ResourceError, UnsupportedError
from warpwave.tiles.ir import OPS, Block, Kernel, Op, clone, walk
from warpwave.tiles.simt.alignment import definitions
from warpwave.tiles.simt.indices import separate_indices
from warpwave.tiles.simt.memory import lower_store
from warpwave.tiles.simt.ops import COMMON
from warpwave.tiles.simt.writer import Writer

PRODUCER_REGISTERS = 24  # what one thread that issues copies needs; the computing warps get the rest

ENGINES = {"wgmma": lower_wgmma, "mma": lower_mma, "fma": lower_fma}


def _lower_product(lw: NvidiaLowering, op: Op) -> None:
    ENGINES[lw.plan.products[op].engine](lw, op)


def _lower_constant(lw: NvidiaLowering, op: Op) -> None:
    """Constants are written where they are used."""
    lw.names[op.result] = constant(op.attrs["value"], op.attrs["dtype"])


def _lower_barrier(lw: NvidiaLowering, _: Op) -> None:
    """It also orders global memory within the block."""
    lw.barrier()


def _lower_store(lw: NvidiaLowering, op: Op) -> None:
    if op in lw.posted:
        lower_posted_store(lw, op)
    elif is_scattered(lw, op):
        lower_scattered_store(lw, op)
    else:
        lower_store(lw, op)


LOWER: dict[str, Callable[[NvidiaLowering, Op], None]] = {
    **COMMON,
    "constant": _lower_constant,
    "mma": _lower_product,
    "grid": lower_grid,
    "barrier": _lower_barrier,
    "store": _lower_store,
}


def lower_op(lw: NvidiaLowering, op: Op) -> None:
    """Emit one op."""
    lw.body.loc = op.loc
    if op.regions:
        with lw.shared_scope():
            LOWER[op.name](lw, op)
    else:
        LOWER[op.name](lw, op)


def lower(kernel: Kernel, target: Target, options: dict[str, object]) -> Lowered:
    """The whole kernel as CUDA C++ for one target.

    Where a producer warp can feed the pipelines there are two texts, one with it and one for tensors that the bulk
    copy engine does not take; the runtime says which by the masks.
    """
    plain = _lowering(kernel, target, make_plan(kernel, target, options))
    schedule = options.get("schedule", "auto")
    bulk = "tma" in target.has and plain.plan.uses_wgmma and schedule != "multistage" and can_produce(plain)
    if schedule == "producer" and not bulk:
        raise UnsupportedError(
            f"no producer warp can feed this kernel on {target.full_name}",
            loc=kernel.loc,
            hint="its pipelines must load matrices along the tensors' last axis, at coordinates that need no tiles",
        )
    if not bulk:
        _fit(plain, _emit)
        return _lowered([plain])
    special = _lowering(kernel, target, replace(plain.plan, producer=True, stages=ring_stages(plain.plan, options)))
    plain.plan.idle, plain.plan.stages = True, special.plan.stages
    wanted = next((size for size in SIZES if options.get("cluster") == size), 1)
    if can_share(special, wanted):
        special.plan.cluster = plain.plan.cluster = wanted
    _fit(special, _emit_specialised)
    _fit(plain, _emit)
    return _lowered([special, plain])


def emit(kernel: Kernel, target: Target, options: dict[str, object]) -> NvidiaLowering:
    """All but the text, of the way without a producer: for what errors and drawings say about tiles."""
    plain = _lowering(kernel, target, make_plan(kernel, target, options))
    _fit(plain, _emit)
    return plain


def _lowering(kernel: Kernel, target: Target, plan: Plan) -> NvidiaLowering:
    """A lowering of a copy of the kernel; the plan is about the original's ops, in the same order."""
    copy = clone(kernel)
    products = dict(zip((op for op in walk(copy.body) if op.name == "mma"), plan.products.values(), strict=True))
    plan = replace(plan, products=products)
    separate_indices(copy)
    share_operands(copy, [op for op, chosen in products.items() if chosen.engine == "wgmma"])
    return NvidiaLowering(copy, target.shared_by(plan.blocks), plan, assign_layouts(copy, plan), definitions(copy))


def _fit(lw: NvidiaLowering, emit: Callable[[NvidiaLowering, int], None]) -> None:
    """Emit with as many stages as fit in shared memory."""
    stages = lw.plan.stages
    while stages > 0:
        for single in (2, 1) if lw.plan.persistent and lw.plan.producer and single_loads(lw) else (1,):
            lw.plan.single_stages = single
            lw.restart()
            emit(lw, stages)
            lw.drain()
            total = lw.peak_shared_bytes + lw.scratch_bytes
            if total <= lw.target.shared_per_block:
                lw.plan.reasons.append(f"{total} bytes of shared memory, at most {stages} stages of a ring")
                if single > 1:
                    lw.plan.reasons.append("the next block's first tiles arrive while this one is computed")
                return
        stages -= _stages_too_many(lw, total - lw.target.shared_per_block, stages)
    raise _too_much_shared(lw, total)


def _stages_too_many(lw: NvidiaLowering, excess: int, stages: int) -> int:
    """So many stages fewer may fit: at least one, so that this ends."""
    rings = [ring for ring in dict.fromkeys(lw.rings.values()) if ring.stages == stages]
    stage = sum(sum(ring.stage_bytes) for ring in rings)
    return max(1, -(-excess // stage)) if stage else 1


def _split_at_grid(lw: NvidiaLowering) -> tuple[list[Op], list[Op]]:
    """What does not depend on the block, without launch conditions, which are the host's; and the rest.

    Scalars behind the grid that do not depend on it are computed once.
    """
    ops = lw.kernel.body.ops
    place = next((i for i, op in enumerate(ops) if op.name == "grid"), 0)
    before, rest = [op for op in ops[:place] if op.name != "check"], ops[place : place + 1]
    known = {*lw.kernel.params, *(r for op in before for r in op.results)}
    for op in ops[place + 1 :]:
        if is_scalar_op(op) and OPS[op.name].effect == "none" and known.issuperset(op.operands):
            before.append(op)
            known.update(op.results)
        else:
            rest.append(op)
    return before, rest


def _emit(lw: NvidiaLowering, stages: int) -> None:
    """All warps do everything."""
    lw.plan.stages = stages
    before, rest = _split_at_grid(lw)
    for op in before:
        lw.lower_op(op)
    if lw.plan.idle:
        lw.body.line(f"if (warp_id >= {lw.waves}) return;")
    with own_blocks(lw):
        for op in rest:
            lw.lower_op(op)


def _emit_specialised(lw: NvidiaLowering, stages: int) -> None:
    """A producer's branch and the computing warps'."""
    lw.posted = posted_stores(lw)
    if lw.posted and not stores_come_last(lw):
        lw.outbox = lw.allocate(outbox_bytes(lw), 1024)
    lw.rings = make_rings(lw, stages)
    if lw.posted and stores_come_last(lw):
        lw.outbox = reuse_rings(lw)
    declare_rings(lw)
    start = len(lw.body.lines)
    init_rings(lw)
    before, rest = _split_at_grid(lw)
    for op in before:
        lw.lower_op(op)
    keep = lw.prologue
    with lw.body.block(f"if (warp_id >= {lw.waves})"):
        lw.body.line(f"warpgroup::decrease_registers<{PRODUCER_REGISTERS}>();" if lw.waves >= 8 else "")
        with lw.body.block(f"if (warp_id == {lw.waves} && lane == 0)"):
            declare_places(lw)
            with own_blocks(lw):
                produce(lw, Block([], rest))
    _prefetch_maps(lw, start)
    with lw.body.block("else"):
        registers = _computing_registers(lw)
        lw.body.line(f"warpgroup::increase_registers<{registers}>();" if lw.waves >= 8 else "")
        lw.plan.turns = lw.plan.turns and can_take_turns(lw)
        if lw.plan.turns:
            begin_turns(lw)
        place = len(lw.body.lines)
        lw.prologue = Writer(lw.body.depth)
        declare_places(lw)
        with own_blocks(lw):
            for place_in_block, op in enumerate(rest):
                if op.name == "load" and op in lw.rings:
                    consume_once(lw, op)
                else:
                    lw.lower_op(op)
                hand_back_singles(lw, rest, place_in_block)
        if lw.posted:
            lw.body.line("if (lane == 0) tma::store_async_read_wait();")
        lw.body.lines[place:place] = lw.prologue.lines  # only these warps need lanes' coordinates
        lw.body.locs[place:place] = lw.prologue.locs
        lw.prologue = keep
    if lw.plan.cluster > 1:
        meet_cluster(lw)


def _prefetch_maps(lw: NvidiaLowering, place: int) -> None:
    """The producer's tensor maps come while barriers are set up: the first copies need not wait for them."""
    for number in range(len(lw.maps)):
        lw.body.lines.insert(place, f"  if (thread == {lw.waves * WARP}) ptx::prefetch_map(&{map_name(lw, number)});")
        lw.body.locs.insert(place, None)


def _computing_registers(lw: NvidiaLowering) -> int:
    """Registers of a computing thread: all that the block was launched with, but for the producer's warpgroup.

    What the multiprocessor has beyond that the block never gets: `setmaxnreg` would wait for ever.
    """
    threads, granule = lw.plan.threads, lw.target.register_granule
    launched = lw.target.registers_of_a_thread(threads) * threads
    computing = lw.waves * WARP
    return min(240, (launched - PRODUCER_REGISTERS * (threads - computing)) // computing // granule * granule)


def _lowered(lowerings: Sequence[NvidiaLowering]) -> Lowered:
    first = lowerings[0]
    source, located = (text.kernel_text(lowerings, located=located) for located in (False, True))
    return Lowered(
        source,
        located,
        first.kernel.name,
        first.plan.threads,
        max(lw.peak_shared_bytes + lw.scratch_bytes for lw in lowerings),
        first.plan.cluster,
        first.plan.persistent,
        tuple(m for lw in lowerings for m in lw.maps),
        _reasons(*lowerings),
        tuple(first.checks),
        tuple(first.prints),
        _copied(first),
    )


def _copied(lw: NvidiaLowering) -> tuple[str, ...]:
    """What the producer reads, of which the runtime may make copies; nothing if that can be no copy of all of it.

    One tensor that the engine does not take is enough for the other text, which does not wait for copies.
    """
    replaceable = set(text.tensors_of(lw.kernel)[:MASKED]) - set(lw.kernel.outputs)
    return tuple(n for n in lw.kernel.param_names if n in lw.bulk) if lw.bulk <= replaceable else ()


def _reasons(first: NvidiaLowering, *others: NvidiaLowering) -> tuple[str, ...]:
    reasons = list(first.plan.reasons)
    if first.plan.persistent:
        reasons.append(FOLDED if first.plan.folded else EVEN)
    if first.posted:
        reasons.append(f"{len(first.posted)} stores by the bulk copy engine, under what comes after them")
    if _copied(first):
        reasons.append("operands whose rows the engine cannot read are copied to aligned ones first")
    for other in others:
        extra = [r for r in other.plan.reasons if r not in reasons]
        reasons += [f"for tensors that the engine does not take: {r}" for r in extra]
    return tuple(reasons)


def _too_much_shared(lw: NvidiaLowering, total: int) -> ResourceError:
    users = [f"  {v.name or v.type}: {v.tile.nbytes} bytes ({v.type})" for v in lw.shared]
    users.append(f"  scratch for conversions and reductions: {lw.scratch_bytes} bytes")
    return ResourceError(
        f"{total} bytes of shared memory, {lw.target.full_name} has {lw.target.shared_per_block} for a block:\n"
        + "\n".join(users),
        loc=lw.kernel.loc,
        hint="use smaller tiles",
    )
