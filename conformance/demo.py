"""`warpwave demo`: one kernel source, built for every vendor, run here, compared with the oracle and with an H200."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warpwave.conformance.records import Record, Result, compare, read_record
from warpwave.conformance.runners.outcome import Outcome, Status
from warpwave.conformance.runners.run_case import Expectation, compile_case, run_case
from warpwave.conformance.suite import Case, make_case
from warpwave.conformance.verdicts import Level, Verdict, worst
from warpwave.tiles.cli.command import AGREE, DISAGREE, ERROR, Functions, no_arguments
from warpwave.tiles.cli.console import console, escape, print_table, progress
from warpwave.tiles.errors import TileError
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.arrays import borrow, is_array
from warpwave.tiles.runtime.backend import Target

CASES = ("kernel:gemm:0", "kernel:attention:0")
RECORD = Path(__file__).parent / "data" / "h200.safetensors"
REGISTERS = ("vgprs", "registers")


@dataclass(frozen=True)
class Row:
    """One target's part in one case. `problem` is why there is no built code; `outcome` is missing if nothing ran."""

    target: Target
    built: str
    problem: str = ""
    outcome: Outcome | None = None
    recorded: Verdict | None = None


def run(_: argparse.Namespace) -> int:
    """The demonstration; its status is that of the comparisons."""
    start = time.perf_counter()
    targets = sorted(registry.targets(), key=lambda t: (t.name != "reference", t.name))
    rows: dict[str, list[Row]] = {}
    with progress(len(CASES) * len(targets)) as bar:
        for id_ in CASES:
            expectation = Expectation(make_case(id_))
            for target in targets:
                rows.setdefault(id_, []).append(demonstrate(expectation, target))
                bar.advance(bar.task_ids[0])
    for id_, shown in rows.items():
        _print_case(make_case(id_), shown)
    return _verdict([row for shown in rows.values() for row in shown], time.perf_counter() - start)


def demonstrate(expectation: Expectation, target: Target) -> Row:
    """Build the case for a target, and run and compare it if the target runs here."""
    try:
        built = _described(compile_case(expectation.case, target.name).program.resources, target)
    except TileError as error:
        return Row(target, "no", problem=str(error).splitlines()[0])
    if not target.runs:
        return Row(target, built)
    (outcome,) = run_case(expectation.case, [target.name], expectation=expectation)
    return Row(target, built, outcome.problem, outcome.without_outputs(), _against_record(outcome, expectation))


def _described(resources: Mapping[str, object], target: Target) -> str:
    """What was built, in a few words."""
    if not resources:
        return "interpreted" if target.runs else "yes"
    registers = next((resources[name] for name in REGISTERS if name in resources), None)
    return "machine code" + (f", {registers} registers" if registers is not None else "")


@cache
def h200_record() -> Record | None:
    """The record of a full run on an H200, if one is committed."""
    return read_record(RECORD) if RECORD.exists() else None


def _against_record(outcome: Outcome, expectation: Expectation) -> Verdict | None:
    """The worst of the outputs against what the H200 gave for the same inputs."""
    record = h200_record()
    if record is None or outcome.status is not Status.OK:
        return None
    mine = Record(record.run, {}, (Result.of(outcome),), {})
    theirs = [r for r in record.results if r.outcome.case == outcome.case]
    found = compare(Record(record.run, {}, tuple(theirs), record.cases), mine, {outcome.case: expectation})
    return max((d.verdict for d in found.differences), key=lambda v: (v.level.rank, v.ratio), default=None)


# -- what is printed ----------------------------------------------------------------------------------


def _print_case(case: Case, rows: list[Row]) -> None:
    with_record = any(row.recorded for row in rows)
    heads = [
        "target",
        "chips",
        "built",
        "ran on",
        "against the float64 oracle",
        "elements",
        "as modelled",
        "of the bound",
    ]
    heads += ["against a real H200"] if with_record else []
    print_table(_title(case), heads, [_cells(row, with_record) for row in rows])
    for row in rows:
        if row.problem:
            console().print(f"[yellow]{escape(row.target.name)}[/]: {escape(row.problem)}", soft_wrap=True)


def _title(case: Case) -> str:
    arrays = {n: borrow(a) for n, a in case.arguments().items() if is_array(a)}
    written = compile_case(case, "reference").ir.outputs
    shown = [f"{n} {a}" for n, a in arrays.items() if n not in written]
    outputs = [f"{n} {a}" for n, a in arrays.items() if n in written]
    return f"[bold]{case.kernel.name}[/], one source: {escape(', '.join(shown))} -> {escape(', '.join(outputs))}"


def _cells(row: Row, with_record: bool) -> list[str]:
    target, outcome = row.target, row.outcome
    cells = [escape(target.name), escape(target.description), row.built, target.runs or "[dim]not here[/]"]
    if outcome is None or outcome.status is not Status.OK:
        return [*cells, "[red]failed[/]" if outcome else "", "", "", "", *([""] if with_record else [])]
    elements = sum(v.elements for v in outcome.verdicts)
    same = sum(v.bit_exact for v in outcome.verdicts) / max(elements, 1)
    share = max(v.ratio for v in outcome.verdicts)
    recorded = [_level(row.recorded.level) if row.recorded else ""] if with_record else []
    return [*cells, _level(outcome.level), f"{elements:,}", f"{same:.1%}", f"{share:.2f}", *recorded]


def _level(level: Level) -> str:
    words = {
        Level.BIT_EXACT: "[green]agrees, every bit[/]",
        Level.WITHIN: "[green]agrees, within its bound[/]",
        Level.UNKNOWN: "[yellow]nothing known[/]",
        Level.VIOLATION: "[red]disagrees[/]",
    }
    return words[level]


def _verdict(rows: list[Row], seconds: float) -> int:
    ran = [row.outcome for row in rows if row.outcome]
    failed = any(outcome.status is not Status.OK for outcome in ran)
    level = worst([o.level for o in ran] + [row.recorded.level for row in rows if row.recorded])
    status = ERROR if failed else DISAGREE if level is Level.VIOLATION else AGREE
    built = len({row.target.name for row in rows if row.built != "no"})
    names = ", ".join(dict.fromkeys(o.target for o in ran))
    word = "[green]all agree with the oracle" if status == AGREE else "[red]not all agree with the oracle"
    console().print(f"[bold]{word}[/] · built for {built} targets · {len(ran)} runs on {names} · {seconds:.0f} s")
    if h200_record() is None:
        console().print("no record of a real GPU is in this version: runs are simulated or interpreted")
    console().print(
        "as modelled: elements with the bits that a model of the target's arithmetic predicts; "
        "of the bound: the largest error as a share of what the contract allows there"
    )
    console().print("`warpwave conformance run` does this for every op and for generated programs")
    return status


COMMAND = Functions("build GEMM and attention for all targets, run them here, compare", no_arguments, run)
