"""Measures our kernels beside their peers and writes a record: JSON with everything, Markdown with the table.

    python -m warpwave.bench.h200.run [--out FOLDER] [--only TEXT] [--minutes 5] [--no-compile]
                                       [--upstream LIBRARY.so]

A row whose kernel or peer fails is reported as such; the others are still measured. A wrong result counts as a failure.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpwave.bench.h200 import report, timing, upstream
from warpwave.bench.h200.environment import clocks, environment
from warpwave.bench.h200.result import Result
from warpwave.bench.h200.rows import Row, all_rows
from warpwave.conformance.source_tree import provide_entry_points

ROW_MS = 900.0  # device time for all functions of one row
COPY_BYTES = 1 << 30
OURS = "warpwave"


def main() -> int:
    """Measure, write, print; 0 if every row was measured."""
    args = _arguments()
    provide_entry_points()
    upstream.use(args.upstream)
    import torch

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    started = time.perf_counter()
    copy = _copy_bandwidth(torch)
    results: list[Result] = []
    for row in (r for r in all_rows() if args.only in r.name):
        if time.perf_counter() - started > 60 * args.minutes:
            results.append(Result(row.name, row.at_least, row.aim, problem="not measured: the time was over"))
            continue
        results.append(_measured(torch, row, copy, compiled=not args.no_compile))
        print(report.line(results[-1]), flush=True)
        torch.cuda.empty_cache()
    _compare_neighbours(results)
    record = {**environment(torch), "copy_tb_s": copy, "seconds": time.perf_counter() - started}
    _write(Path(args.out), record, results)
    return 1 if any(r.problem for r in results) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Warpwave beside its peers on this GPU")
    parser.add_argument("--out", default="h200_record", help="folder for record.json and record.md")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--minutes", type=float, default=5.0, help="start no row later than this")
    parser.add_argument("--upstream", default="", help="libraries made by bench.h200.upstream")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile, which takes long to build")
    return parser.parse_args()


def _measured(torch: Any, row: Row, copy: float, *, compiled: bool) -> Result:
    result = Result(row.name, row.at_least, row.aim, row.neighbour)
    try:
        case = row.make(torch)
        case.ours()
        torch.cuda.synchronize()
        result.error_share = case.check()
        if not result.error_share <= 1:
            raise ArithmeticError(f"a wrong result: {result.error_share:.3g} times the error that is allowed")
        peers = {n: f for n, f in case.peers.items() if compiled or n != "torch.compile"}
        functions = {OURS: case.ours, **_working(torch, peers, result)}
        times = timing.measure(torch, functions, ROW_MS)
    except Exception as error:  # one row must not take the others down
        result.problem = f"{type(error).__name__}: {error}".strip()[:1500]
        traceback.print_exc()
        return result
    work, result.unit = (case.flops, "TFLOP/s") if case.flops else (case.bytes_moved, "TB/s")
    result.times = {name: asdict(t) for name, t in times.items()}
    result.rate = work / times[OURS].median / 1e9
    best = min((n for n in times if n != OURS), key=lambda n: times[n].median, default="")
    if best:
        result.peer, result.ratio = best, times[best].median / times[OURS].median
    result.share_of_copy = result.rate / copy if case.bytes_moved else 0.0
    result.clock_mhz = clocks()
    return result


def _working(torch: Any, peers: dict[str, Callable[[], Any]], result: Result) -> dict[str, Callable[[], Any]]:
    """The peers that run; why the others do not goes into the result."""
    working = {}
    for name, peer in peers.items():
        try:
            peer()
            torch.cuda.synchronize()
            working[name] = peer
        except Exception as error:  # a backend that refuses a shape, a compiler that is missing
            result.peer_problems[name] = f"{type(error).__name__}: {error}"[:300]
    return working


def _copy_bandwidth(torch: Any) -> float:
    """TB/s of a device copy, read and written bytes counted: the ceiling for what memory bounds."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    taken = timing.measure(torch, {"copy": lambda: target.copy_(source)}, 200)["copy"]
    return 2 * COPY_BYTES / taken.median / 1e9


def _compare_neighbours(results: Iterable[Result]) -> None:
    """Rows for odd shapes are compared with the rate of their neighbour instead of with a peer."""
    rates = {r.name: r.rate for r in results}
    for result in results:
        if result.neighbour and rates.get(result.neighbour):
            result.peer, result.ratio = result.neighbour, result.rate / rates[result.neighbour]


def _write(folder: Path, record: dict[str, Any], results: list[Result]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [asdict(r) for r in results]
    (folder / "record.json").write_text(json.dumps({**record, "rows": rows}, indent=1) + "\n")
    text = report.markdown(record, results)
    (folder / "record.md").write_text(text)
    print("\n" + report.short(record, results))


if __name__ == "__main__":
    raise SystemExit(main())
