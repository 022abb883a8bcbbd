"""Warpwave's own GEMM on MI355X, modelled: its machine code on one compute unit, and the grid's caches.

    python -m warpwave.bench.grid_model.own [--out FILE.json]

Beside it HipKittens' published figures of the same problems: measured, with a launch from Python in every iteration,
which dominates up to 2048. The two columns are no comparison of kernels. Nothing of ours was run on a GPU.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from warpwave.backends.amd.grid_order import choose_order
from warpwave.backends.amd.model.choice import choose_tiles
from warpwave.backends.amd.model.timing import Recorded
from warpwave.backends.amd.model.traffic import TileGemm
from warpwave.backends.amd.model.whole import WholeLaunch
from warpwave.backends.amd.tuned import DEPTH_BYTES
from warpwave.bench.grid_model.measured import MI355X
from warpwave.bench.grid_model.record import OUT
from warpwave.bench.grid_model.replays import DTYPES, built, fitting, recorded

TARGET = "gfx950"
DEPTH = 2048  # of the recorded products: enough iterations for a steady state
SCHEDULES = ("multistage", "ping-pong", "interleave")
# HipKittens' tables, MI355X, TFLOPS (arXiv 2511.08083 and its repository).
HIPKITTENS = {
    "bf16": {1024: 139.5, 2048: 665.1, 4096: 1412.9, 8192: 1610.5, 16384: 1571.5},
    "fp8": {1024: 270.1, 2048: 1054.2, 4096: 2741.4, 8192: 3327.5, 16384: 3377.8},
}


def modelled(dtype: str, size: int) -> dict[str, Any]:
    """One row: tiles, schedule, times of every schedule that applies."""
    itemsize = DTYPES[TARGET][dtype](0).itemsize
    step = DEPTH_BYTES[TARGET] // itemsize
    best = choose_tiles(TARGET, (size, size, size), itemsize, step).best
    problem = TileGemm(size, size, size, best.block_m, best.block_n, step, itemsize)
    found = {name: launch for name in SCHEDULES if (launch := _launch(dtype, problem, name)) is not None}
    name, fastest = min(found.items(), key=lambda item: item[1].microseconds)
    return {
        "dtype": dtype,
        "size": size,
        "tile": f"{best.block_m} x {best.block_n}",
        "schedule": name,
        "us": round(fastest.microseconds, 1),
        "TFLOPS": round(fastest.tflops),
        "matrix busy in the loop": round(fastest.matrix_busy, 3),
        "L2 hits": round(fastest.grid.rounds.l2_hit, 3),
        "Infinity Cache hits": round(fastest.grid.rounds.cache_hit, 3),
        "TFLOPS of all schedules": {n: round(launch.tflops) for n, launch in found.items()},
        "HipKittens, published": HIPKITTENS[dtype][size],
    }


def _launch(dtype: str, problem: TileGemm, schedule: str) -> WholeLaunch | None:
    """The whole launch by a schedule; None where it does not apply to these tiles."""
    program = built(TARGET, dtype, problem, schedule)
    if program is None:
        return None
    alone = recorded(program, dtype, problem, DEPTH, 1)
    fit = fitting(alone)
    together = recorded(program, dtype, problem, DEPTH, min(fit, 4)) if fit > 1 else alone
    further = _trips(recorded(program, dtype, problem, 2 * DEPTH, 1)) - _trips(alone)
    order = choose_order(problem.rows, problem.cols, MI355X.xcds, MI355X.cus_per_xcd)
    return WholeLaunch(together, DEPTH, further / DEPTH, problem, dtype, MI355X.name, order)


def _trips(recorded: Recorded) -> int:
    loop = recorded.timed().loop
    return loop.iterations if loop else 0


def main() -> None:
    """Model all rows and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT / "own_gemm.json")
    out: Path = parser.parse_args().out
    rows = []
    for dtype, sizes in HIPKITTENS.items():
        for size in sizes:
            rows.append(modelled(dtype, size))
            print(json.dumps(rows[-1]), flush=True)
    record = {"what": "modelled on MI355X; nothing was run on a GPU", "rows": rows}
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
