"""Speed of the AMD simulator: VALU rates, a bf16 GEMM, start-up, scaling over cores, and a peer side by side.

    python -m warpwave.bench.sim_speed [--tinygrad CHECKOUT] [--record FILE.json]

With a checkout of tinygrad its emulator runs the same code object in the same process, and the ratio is printed.
Every measurement asserts its result first; times are the best of several, in process time of one core where one core is
measured. The record says how loaded the machine was.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from warpwave.backends.amd import sim
from warpwave.bench import sim_peer, sim_scaling
from warpwave.bench.sim_forms import BODIES, loop_text
from warpwave.tiles.dtypes import bf16, f32
from warpwave.tiles.reference import Estimate
from warpwave.tiles.reference.closed_forms import product_bound

REPOSITORY = Path(__file__).resolve().parents[1]
CORPUS = REPOSITORY / "backends" / "amd" / "sim" / "tests" / "corpus"
TARGET = "gfx950"
HIP = [
    "-x",
    "hip",
    "--cuda-device-only",
    "-nogpuinc",
    "-nogpulib",
    f"--offload-arch={TARGET}",
    "-O3",
    "-std=c++20",
    "-w",
]

ROUNDS = 5  # of launches that are timed one by one; the best counts
TURNS, SHORT_ROUNDS = 1500, 50  # of loops of 35 instructions, a few milliseconds each: the best ones meet a quiet core


def best(run: Callable[[], object], rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time) -> float:
    """Least time of a call, in seconds."""
    times = []
    for _ in range(rounds):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def compile_hip(source: Path, *flags: str) -> bytes:
    """What clang makes of a HIP source: text with -S, else a linked code object."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        clang = [sys.executable, "-m", "ziglang", "clang", *HIP, *flags, str(source), "-o", str(out)]
        subprocess.run(clang, check=True, cwd=source.parent)
        return out.read_bytes()


def gemm_arguments(size: int) -> tuple[list[object], Estimate]:
    """Arguments of the corpus GEMM, and what the product may be."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    words = [m.view(np.uint16) for m in (a, b)]
    n = np.int32(size)
    left, right = a.astype(np.float64), b.astype(np.float64).T
    exact = left @ right
    return [c, *words, n, n, n], Estimate(exact, product_bound(exact, abs(left) @ abs(right), size, bf16, f32))


def valu_rates(names: Iterable[str] = BODIES) -> dict[str, float]:
    """Million wave-instructions per second of single instructions on one core, all checks on."""
    rates = {}
    for name in names:
        program = sim.load(loop_text(BODIES[name], TURNS), TARGET)
        out = np.zeros(64, np.float32)
        count = program.launch("loop", (1,), (64,), [out], threads=1).instructions
        assert (out == 1).all()
        run = functools.partial(program.launch, "loop", (1,), (64,), [out], threads=1)
        rates[name] = count / best(run, SHORT_ROUNDS) / 1e6
        print(f"{name:30} {rates[name]:6.1f} M wave-instructions/s")
    return rates


def gemm(size: int, *, threads: int) -> dict[str, float]:
    """The corpus GEMM: seconds elapsed and of processor time, and how many instructions that were."""
    program = sim.load(compile_hip(CORPUS / "k01_gemm_bf16.hip", "-S").decode(), TARGET)
    arguments, allowed = gemm_arguments(size)
    grid = (size // 128, size // 128)
    run = functools.partial(program.launch, program.kernels[0], grid, (256,), arguments, threads=threads)
    count = run().instructions
    assert allowed.agrees(np.asarray(arguments[0])).all()
    elapsed = best(run, clock=time.perf_counter)
    processor = best(run)
    print(f"GEMM {size}^3 bf16, {threads} thread(s): {elapsed:.3f} s elapsed, {processor:.3f} s of processor time")
    return {"threads": threads, "elapsed_s": elapsed, "processor_s": processor, "instructions": count}


def start_up() -> dict[str, float]:
    """Milliseconds to load the GEMM's text, and to load and run an empty loop."""
    text = compile_hip(CORPUS / "k01_gemm_bf16.hip", "-S").decode()
    loading = 1e3 * best(lambda: sim.load(text, TARGET))
    short = loop_text(BODIES["v_fma_f32"], 1)
    out = np.zeros(64, np.float32)
    first = 1e3 * best(lambda: sim.load(short, TARGET).launch("loop", (1,), (64,), [out], threads=1))
    print(f"load the GEMM {loading:.1f} ms; load and run a short kernel {first:.1f} ms")
    return {"load_gemm_ms": loading, "load_and_run_short_kernel_ms": first}


def beside_tinygrad(checkout: Path) -> dict[str, float]:
    """The same loop in both simulators, one wave each."""
    text = loop_text(BODIES["v_fma_f32"], 500)
    out = np.zeros(64, np.float32)
    mine = functools.partial(sim.load(text, TARGET).launch, "loop", (1,), (64,), [out], threads=1)
    count = mine().instructions
    peer = sim_peer.runner(checkout, sim_peer.code_object(text, TARGET), "loop", np.zeros(64, np.float32))
    pairs = [(best(mine, 20), best(peer, 2)) for _ in range(8)]  # in turns, as other programs come and go
    ours, theirs = (count / min(times) / 1e6 for times in zip(*pairs, strict=True))
    print(f"v_fma_f32 loop: ours {ours:.1f} M/s, tinygrad {theirs:.3f} M/s, ratio {ours / theirs:.0f}")
    return {"ours_M_per_s": ours, "tinygrad_M_per_s": theirs, "ratio": ours / theirs}


def revision(checkout: Path) -> str:
    """The commit of a checkout, or the version it states."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def machine() -> dict[str, Any]:
    """The host as far as it matters here."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load_before": [round(x, 2) for x in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ziglang": importlib.metadata.version("ziglang"),
    }


def measure(tinygrad: Path | None) -> dict[str, Any]:
    """Everything, as data."""
    record: dict[str, Any] = {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), "machine": machine()}
    first = valu_rates()
    cores = os.cpu_count() or 1
    for size in (256, 512, 1024):
        record[f"gemm_{size}_bf16"] = [gemm(size, threads=n) for n in sorted({1, cores})]
    record["scaling"] = sim_scaling.measure(cores)
    record["start"] = start_up()
    second = valu_rates()  # once more: other programs come and go
    record["valu_M_wave_instructions_per_s"] = {name: round(max(first[name], second[name]), 1) for name in first}
    if tinygrad:
        record["tinygrad"] = {"commit": revision(tinygrad), **beside_tinygrad(tinygrad)}
    record["machine"]["load_after"] = [round(x, 2) for x in os.getloadavg()]
    return record


def main() -> None:
    """Print every measurement; write it down when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tinygrad", type=Path, help="checkout of tinygrad, for the side-by-side figure")
    parser.add_argument("--record", type=Path, help="file for the measurements as JSON")
    options = parser.parse_args()
    record = measure(options.tinygrad)
    if options.record:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
