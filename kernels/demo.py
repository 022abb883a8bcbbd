"""`warpwave demo`: checks the library's kernels on everything that can run here, and says what could run elsewhere."""

from __future__ import annotations

import argparse
import importlib
import time

from warpwave.tiles.cli.check import Case, Result, check_case, print_results, split_sample, worst_status
from warpwave.tiles.cli.command import AGREE, Functions, no_arguments
from warpwave.tiles.cli.console import console, escape, print_table, progress
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.backend import Target
from warpwave.tiles.runtime.kernel import Kernel

KERNELS = ("gemm", "attention")


def run(_: argparse.Namespace) -> int:
    """The demonstration; its status is that of the checks."""
    targets = registry.targets()
    here = [t.name for t in targets if t.runs]
    cases = [(kernel, split_sample(kernel, s)) for kernel in map(_kernel, KERNELS) for s in kernel.sample_inputs()]
    start = time.perf_counter()
    reports: list[tuple[Kernel, Case, list[Result]]] = []
    with progress(len(cases)) as bar:
        for kernel, case in cases:
            reports.append((kernel, case, list(check_case(kernel, case, here))))
            bar.advance(bar.task_ids[0])
    for kernel, case, results in reports:
        print_results(f"{kernel.name}({case})", results)
    _print_targets(targets)
    return _verdict([r for _, _, results in reports for r in results], here, time.perf_counter() - start)


def _kernel(name: str) -> Kernel:
    kernel: Kernel = getattr(importlib.import_module(f"warpwave.kernels.{name}"), name)
    return kernel


def _print_targets(targets: list[Target]) -> None:
    rows = [(escape(t.name), _here(t), escape(t.description)) for t in targets]
    print_table("What each target can do here", ("target", "here", "what it is"), rows)


def _here(target: Target) -> str:
    if target.runs:
        return f"[green]runs[/] on {escape(target.runs)}"
    return f"[yellow]does not run here[/]: needs {escape(target.missing)} → {escape(target.remedy)}"


def _verdict(results: list[Result], here: list[str], seconds: float) -> int:
    status = worst_status(results)
    word = "[green]all agree with the oracle" if status == AGREE else "[red]not all agree with the oracle"
    console().print(f"[bold]{word}[/] · {len(results)} runs on {', '.join(here)} · {seconds:.1f} s")
    return status


COMMAND = Functions("check the GEMM and attention kernels on every target that runs here", no_arguments, run)
