"""How the simulator scales over cores by workgroup, beside what the host gives two independent processes.

Threads of one launch share the program, the memory and its race shadow; processes share nothing but the host. What
processes lose is the host's doing (cores that are threads of one, shared caches, other programs), so threads are judged
against them, in processor time per instruction too.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

import numpy as np

from warpwave.backends.amd import sim
from warpwave.bench.sim_forms import BODIES, loop_text

TARGET = "gfx950"
TURNS, GROUPS, ROUNDS = 200, 64, 40


@dataclass(frozen=True)
class Work:
    """Launches of many workgroups of one wave, each a loop of vector instructions."""

    program: sim.Program
    out: np.ndarray
    instructions: int

    @classmethod
    def prepare(cls) -> Work:
        """Loads the loop and counts it once."""
        program, out = sim.load(loop_text(BODIES["v_fma_f32"], TURNS), TARGET), np.zeros(64, np.float32)
        count = program.launch("loop", (GROUPS,), (64,), [out], threads=1, relax=["global_race"]).instructions
        return cls(program, out, count)

    def run(self, threads: int) -> None:
        """One launch; every workgroup stores the same ones to the same place, hence the relaxed check."""
        self.program.launch("loop", (GROUPS,), (64,), [self.out], threads=threads, relax=["global_race"])


def rates(run: int, work: Work) -> tuple[float, float]:
    """Million instructions per second elapsed, and nanoseconds of processor time per instruction: best of several."""
    elapsed, spent = [], []
    for _ in range(ROUNDS):
        wall, processor = time.perf_counter(), time.process_time()
        work.run(run)
        elapsed.append(time.perf_counter() - wall)
        spent.append(time.process_time() - processor)
    return work.instructions / min(elapsed) / 1e6, min(spent) / work.instructions * 1e9


def _alone(start: Barrier, answers: multiprocessing.Queue[tuple[float, float]]) -> None:
    work = Work.prepare()
    start.wait()
    answers.put(rates(1, work))


def processes(count: int) -> tuple[float, float]:
    """The same by that many processes at once: the sum of their rates, and the mean of their processor times."""
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(count), context.Queue()
    workers = [context.Process(target=_alone, args=(start, answers)) for _ in range(count)]
    for worker in workers:
        worker.start()
    results = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(rate for rate, _ in results), sum(spent for _, spent in results) / count


def measure(cores: int) -> dict[str, dict[str, float]]:
    """One thread, as many threads as cores, and as many processes, each as rate and processor time."""
    work = Work.prepare()
    found = {"1 thread": rates(1, work), f"{cores} threads": rates(cores, work), f"{cores} processes": processes(cores)}
    for name, (rate, spent) in found.items():
        print(f"v_fma_f32, {GROUPS} workgroups, {name}: {rate:.1f} M/s elapsed, {spent:.1f} ns of processor time each")
    return {name: {"M_per_s": round(rate, 2), "processor_ns": round(spent, 2)} for name, (rate, spent) in found.items()}


def main() -> None:
    """On as many threads as this machine has, and on some fewer."""
    cores = os.cpu_count() or 1
    for count in sorted({n for n in (2, 4, 8, 16, 32) if n < cores} | {cores}):
        measure(count)


if __name__ == "__main__":
    main()
