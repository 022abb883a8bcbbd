"""Pipelines: loads into shared memory run ahead of the iteration that uses them.

Where the target can load 16 bytes a lane straight into LDS, tiles of the next iterations are in flight while
this one is computed (`direct`). Elsewhere the next tiles wait in registers (`staged`).
"""

from __future__ import annotations

from warpwave.backends.amd.arch import DIRECT
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.lower.direct import DirectLoop
from warpwave.backends.amd.lower.interleaved import InterleavedLoop
from warpwave.backends.amd.lower.producers import ProducerLoop
from warpwave.backends.amd.lower.scheduled import ScheduledLoop
from warpwave.backends.amd.lower.staged import StagedLoop
from warpwave.backends.amd.lower.stages import MOST_COPIES, AmdLoop, is_small
from warpwave.backends.amd.plan import INTERLEAVE, PING_PONG, PRODUCER_CONSUMER
from warpwave.tiles.ir import Op
from warpwave.tiles.simt.pipeline import reserve, staged_loads


def choose_stages(lw: AmdLowering, op: Op, loads: list[Op]) -> int:
    """As many stages as asked for, or as fit this workgroup's share of the LDS.

    The share leaves room for workgroups that together give each SIMD two waves, but where one wave has all registers.
    """
    wanted: int = op.attrs["stages"] or lw.plan.stages
    one = sum(load.attrs["type"].nbytes for load in loads)
    each = 1 if lw.plan.schedule == INTERLEAVE else 2
    share = lw.target.lds_bytes * min(1.0, lw.plan.waves / (each * lw.target.simds_per_cu))
    fits = int(share - lw.shared_bytes - lw.scratch_bytes) // max(one, 1)
    if lw.plan.schedule == INTERLEAVE:  # whose code has one address for all of a ring
        reach = lw.target.lds_offset_bytes
        fits = min(fits, reach // max((load.attrs["type"].nbytes for load in loads), default=reach))
    stages: int = max(1, min(wanted, fits))
    return stages


def lower_pipeline(lw: AmdLowering, op: Op) -> None:
    """The loop, with its loads a few iterations ahead."""
    loads = staged_loads(op.regions[0])
    in_turns = lw.plan.schedule == PING_PONG and any(o.name == "mma" for o in op.regions[0].ops)
    stages = choose_stages(lw, op, loads)
    if in_turns and not op.attrs["stages"] and not lw.plan.asked_stages and not is_small(op, loads):
        stages = min(stages, MOST_COPIES)
    direct = DIRECT in lw.target.direct_to_lds_widths and stages > 1
    ring = [reserve(lw, load, stages) for load in loads]
    lw.plan.reasons.append(
        f"{op.loc}: {len(loads)} loads ahead through {stages} stages, "
        + ("direct to LDS" if direct else "staged in registers")
    )
    kind: type[AmdLoop] = DirectLoop if direct else StagedLoop
    if in_turns:
        kind = ScheduledLoop
    elif lw.plan.schedule == INTERLEAVE and any(o.name == "mma" for o in op.regions[0].ops):
        kind = InterleavedLoop
    elif lw.plan.schedule == PRODUCER_CONSUMER and any(o.name == "mma" for o in op.regions[0].ops):
        kind = ProducerLoop
    loop = kind(lw, op, ring, stages)
    loop.declare()
    with lw.body.block(""):
        loop.emit()
