"""What each schedule's code would take for the tiles of a kernel, modelled: what `schedule="auto"` goes by.

    python -m warpwave.bench.grid_model.schedules [--only {products,chains}] [--out FILE.json]

The machine code of Warpwave's own GEMM and attention is executed by the simulator for one compute unit and replayed by
the timing model: one workgroup alone, and as many as a compute unit holds while all others load as well. With --only
the other rows stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.model.choice import SIZES
from warpwave.backends.amd.model.cu import Memory, chip_of, sustained_clock
from warpwave.backends.amd.model.schedules import DEPTH, FIGURES
from warpwave.backends.amd.model.traffic import TileGemm
from warpwave.backends.amd.plan import INTERLEAVE, MULTISTAGE, PING_PONG
from warpwave.backends.amd.tuned import DEPTH_BYTES
from warpwave.bench.grid_model import chains
from warpwave.bench.grid_model.replays import DTYPES, built, fitting, recorded

SCHEDULES = (MULTISTAGE, PING_PONG, INTERLEAVE)
RECORDED = 32  # steps; the rest of DEPTH goes on as the loop's steady state
ALONE = Memory(l2=0.8, infinity_cache=0.9)  # about what the grid model finds for products of 2048 to 16384
FULL = Memory(l2=0.8, infinity_cache=0.9, loaded=True)


def row(target: str, dtype: str, tile: tuple[int, int], schedule: str, *, transpose_b: bool) -> dict[str, Any] | None:
    """Clocks of a tile of the result that is DEPTH deep; None where the schedule does not apply."""
    itemsize = DTYPES[target][dtype](0).itemsize
    step = DEPTH_BYTES[target] // itemsize
    problem = TileGemm(*tile, RECORDED * step, *tile, step, itemsize)
    program = built(target, dtype, problem, schedule, transpose_b=transpose_b, spills=True)
    if program is None or (schedule != MULTISTAGE and program.resources["spills"]):
        return None
    clock = sustained_clock(chip_of(target, None), dtype)

    def clocks(groups: int, memory: Memory) -> float:
        found = recorded(program, dtype, problem, problem.k, groups, transpose_b=transpose_b)
        timing = found.timed(clock=clock, memory=memory)
        assert timing.loop is not None
        further = (DEPTH - problem.k) / problem.k * timing.loop.iterations
        return timing.extrapolated(timing.loop.iterations + round(further)) / groups

    alone = recorded(program, dtype, problem, problem.k, 1, transpose_b=transpose_b)
    return {
        "target": target,
        "itemsize": itemsize,
        "along_rows": transpose_b,
        "tile": list(tile),
        "schedule": schedule,
        "alone": round(clocks(1, ALONE)),
        "full": round(clocks(max(1, min(2, fitting(alone))), FULL)),
    }


def products() -> Iterator[dict[str, Any]]:
    """Single products: all targets, dtypes, orders of the operands and tiles."""
    for target in TARGETS:
        for dtype in DTYPES[target]:
            for along in (True, False):
                for tile in SIZES:
                    for schedule in SCHEDULES:
                        found = row(target, dtype, tile, schedule, transpose_b=along)
                        if found is not None:
                            yield found


def chained() -> Iterator[dict[str, Any]]:
    """Chains of two products."""
    return (found for chain, schedule in chains.chains() if (found := chains.row(chain, schedule)) is not None)


KINDS = {"products": products, "chains": chained}


def rows(only: str = "") -> Iterator[dict[str, Any]]:
    """Those of one kind, or all; of the others what is kept."""
    for kind, made in KINDS.items():
        if only in ("", kind):
            yield from made()
        else:
            yield from (kept for kept in json.loads(FIGURES.read_text()) if ("masked" in kept) == (kind == "chains"))


def main() -> None:
    """Model all rows and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=KINDS, default="")
    parser.add_argument("--out", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    found = []
    for each in rows(arguments.only):
        found.append(each)
        print(json.dumps(each), flush=True)
    arguments.out.write_text("[\n" + ",\n".join(json.dumps(each) for each in found) + "\n]\n")


if __name__ == "__main__":
    main()
