"""Correctness on the device: the whole suite of ops and kernels by the contract, launches, and compute-sanitizer.

    python -m warpwave.bench.h200.check                   # all library kernels and ops, large shapes, graphs, overhead
    python -m warpwave.bench.h200.check --only kernel:    # cases whose id contains this
    python -m warpwave.bench.h200.check --target nvidia:sm80   # the code for older chips, as PTX
    python -m warpwave.bench.h200.check --sanitize        # the library kernels' small samples under three tools

The last prints one line for each tool; it exits with 1 if anything disagreed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwave.backends.nvidia.runtime.devices import PTX
from warpwave.conformance.source_tree import provide_entry_points

if TYPE_CHECKING:
    from warpwave.conformance.runners import Outcome

TOOLS = ("memcheck", "racecheck", "synccheck")
DEVICE = "dlpack2:0"
PROGRAMS = 40  # generated ones, beside all ops and kernels


def main() -> int:
    """Check; 0 if everything agrees."""
    args = _arguments()
    provide_entry_points()
    if args.sanitize:
        return _sanitize(args)
    from warpwave.tiles.runtime import registry

    if args.small:
        _allocate_exactly()
    target = args.target or registry.target_for(DEVICE)
    os.environ[PTX] = "1"  # for processes, too
    problems = _cases(target, args)
    if not args.small and not args.only and not args.target:
        problems += _launches()
    print(f"{target}: {'everything agrees' if not problems else f'{problems} problems'}")
    return 1 if problems else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Correctness of the kernels on this GPU")
    parser.add_argument("--target", default="", help="default: that of device 0; an older one's code runs as PTX")
    parser.add_argument("--only", default="", help="only cases whose id contains this, e.g. kernel:softmax")
    parser.add_argument("--small", action="store_true", help="only the library kernels' samples, as for the sanitizer")
    parser.add_argument("--sanitize", action="store_true", help="run --small under compute-sanitizer's tools")
    parser.add_argument("--tools", default=",".join(TOOLS), help="which of them")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)), help="processes")
    parser.add_argument("--out", default="", help="folder for check.json")
    return parser.parse_args()


def _cases(target: str, args: argparse.Namespace) -> int:
    """How many cases disagree or fail; refusals are listed, not counted."""
    from warpwave.conformance.suite import profile

    ids = [i for i in profile("full", programs=PROGRAMS) if args.only in i]
    if args.small:
        ids = [i for i in ids if i.startswith("kernel:")]
    start = time.perf_counter()
    found: list[dict[str, Any]] = []
    for outcome in _outcomes(ids, target, args.jobs):
        word = outcome.level.value if outcome.verdicts else outcome.status.value
        ratio = max((v.ratio for v in outcome.verdicts), default=0.0)
        found.append({"case": outcome.case, "result": word, "worst_ratio": ratio, "problem": outcome.problem})
        if word in ("violation", "error", "refused"):
            print(f"{word:10} {outcome.case}: {outcome.problem or outcome.verdicts}"[:1000], flush=True)
    counts = {word: sum(f["result"] == word for f in found) for word in sorted({f["result"] for f in found})}
    print(f"{len(found)} cases in {time.perf_counter() - start:.0f} s: {counts}")
    if args.out:
        Path(args.out).mkdir(parents=True, exist_ok=True)
        (Path(args.out) / "check.json").write_text(json.dumps({"target": target, "cases": found}, indent=1) + "\n")
    return sum(f["result"] in ("violation", "error") for f in found)


def _outcomes(ids: list[str], target: str, jobs: int) -> Iterator[Outcome]:
    """As they are finished; each process has a context of its own, so that a fault takes one case with it."""
    if jobs == 1:
        from warpwave.conformance.runners import check_cases

        yield from check_cases(ids, [target])
        return
    from warpwave.conformance.runners.pool import run_parallel

    for outcomes in run_parallel([(i, [target]) for i in ids], min(jobs, len(ids))):
        yield from outcomes


def _launches() -> int:
    """Graphs, threads, streams and what a launch costs: with PyTorch, as users launch."""
    from warpwave.bench.h200 import launches

    problems = 0
    for check in launches.CHECKS:
        try:
            print(f"{check.__name__:30} {check() or 'ok'}", flush=True)
        except Exception as error:  # each of them is reported
            problems += 1
            print(f"{check.__name__:30} failed: {type(error).__name__}: {error}"[:600], flush=True)
    return problems


def _sanitize(args: argparse.Namespace) -> int:
    worst = 0
    for tool in args.tools.split(","):
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "86"]
        own = [sys.executable, "-m", "warpwave.bench.h200.check", "--jobs", "1", "--small", "--only", args.only]
        start = time.perf_counter()
        result = subprocess.run([*command, *own], capture_output=True, text=True)
        lines = [line for line in result.stdout.splitlines() if line.startswith("=========")]
        summary = lines[-1] if lines else (result.stderr.splitlines() or ["no output"])[-1]
        print(f"{tool}: exit {result.returncode}, {time.perf_counter() - start:.0f} s, {summary}", flush=True)
        if result.returncode:
            print(result.stdout[-3000:], result.stderr[-1500:], sep="\n", flush=True)
        worst = max(worst, int(result.returncode != 0))
    return worst


def _allocate_exactly() -> None:
    """Without the libraries' pools, whose blocks would hide accesses beyond an array."""
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    try:
        import cupy
    except ImportError:
        return
    cupy.cuda.set_allocator(None)


if __name__ == "__main__":
    raise SystemExit(main())
