"""Modelled time of compiled AMD kernels beside what was published of them: a table and a record.

    python -m warpwave.bench.amd_timing [CASES.json] [--folder FOLDER] [--only NAME] [--own] [--record FOLDER]

A case names an assembly file (relative to FOLDER), its launch and its work; the kernels need not be this project's.
--own adds this project's own (amd_timing_own.py). A record is a JSON file and the table as a page; with --only it keeps
the other rows that it has.
Only the workgroups that share one compute unit are executed; how many rounds the grid takes is counted.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warpwave.backends.amd import sim
from warpwave.backends.amd.model.cu import Memory
from warpwave.backends.amd.model.timing import Recorded, Timing, record

RESULTS = Path(__file__).resolve().parent / "results" / "amd_timing"

# Foreign code is timed, not judged: what its author relies on is none of this table's business.
RELAXED = (
    "waits",
    "hazards",
    "lds_race",
    "global_race",
    "bounds",
    "align",
    "readonly",
    "uninit",
    "barriers",
    "resources",
)


@dataclass(frozen=True)
class Case:
    """One kernel: `args` are arrays of zeros by shape and bytes an element, numbers of 8 bytes, or {"i32": number}."""

    name: str
    file: str
    grid: Sequence[int]
    block: Sequence[int]
    args: Sequence[Any]
    flops: float  # of the whole grid
    dtype: str
    published: float | None  # TFLOPS
    published_busy: float | None = None  # share of the hot loop in which the matrix cores work, from thread traces
    source: str = ""
    chip: str = "MI355X"
    target: str = "gfx950"
    dynamic_lds: int = 0
    groups: Sequence[int] | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Row:
    """What the model says of a case; `error` is of TFLOPS, relative to the published figure."""

    case: Case
    clocks: int
    rounds: int
    matrix_busy: float
    loop_matrix_busy: float | None
    loop_clocks: float | None
    ghz: float
    tflops: float
    error: float | None
    seconds_of_host: float


def program_of(path: Path, target: str) -> sim.Program:
    """The code without its metadata: structures passed by value are given field by field."""
    text = re.sub(r"^\t\.amdgpu_metadata.*?^\t\.end_amdgpu_metadata\n", "", path.read_text(), flags=re.S | re.M)
    return sim.load(text, target)


def arguments(spec: Sequence[Any]) -> list[Any]:
    """Arrays and numbers of a case."""
    return [_argument(item) for item in spec]


def _argument(item: Any) -> Any:
    if not isinstance(item, dict):
        return int(item)
    return np.int32(item["i32"]) if "i32" in item else np.zeros(item["shape"], f"V{item['bytes']}")


def run(case: Case, folder: Path) -> Row:
    """Execute and replay one case."""
    began = time.perf_counter()
    program = program_of(folder / case.file, case.target)
    recorded = record(
        program,
        program.kernels[0],
        case.grid,
        case.block,
        arguments(case.args),
        groups=case.groups,
        dynamic_lds=case.dynamic_lds,
        relax=[name for name in RELAXED if name in sim._sim.check_names()],
    )
    timing = recorded.timed(case.chip, dtype=case.dtype, memory=Memory(**case.memory))
    return row(case, recorded, timing, time.perf_counter() - began)


def row(case: Case, recorded: Recorded, timing: Timing, host: float) -> Row:
    """The figures of one replay. All compute units are taken to do what this one does, round by round."""
    groups = int(np.prod(list(case.grid)))
    rounds = -(-groups // (timing.chip.cus * len(recorded.groups)))
    tflops = case.flops / (rounds * timing.seconds) / 1e12
    error = tflops / case.published - 1 if case.published else None
    loop = timing.loop
    return Row(
        case,
        timing.clocks,
        rounds,
        round(timing.utilisation["matrix"], 4),
        round(loop.matrix_busy, 4) if loop else None,
        round(loop.clocks, 1) if loop else None,
        round(timing.clock, 3),
        round(tflops, 1),
        round(error, 4) if error is not None else None,
        round(host, 2),
    )


def recorded_row(r: Row) -> dict[str, Any]:
    """A row as the record has it."""
    case = {name: getattr(r.case, name) for name in ("published", "published_busy", "source", "note")}
    return asdict(r) | {"case": r.case.name} | case


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: published, modelled, error."""
    head = ["kernel", "published TF", "modelled TF", "error", "loop busy, published", "modelled", "whole kernel busy"]
    head += ["clocks a workgroup", "GHz"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for r in rows:
        cells = [
            r["case"],
            "" if r["published"] is None else f"{r['published']:g}",
            f"{r['tflops']:.0f}",
            "" if r["error"] is None else f"{r['error']:+.1%}",
            "" if r["published_busy"] is None else f"{r['published_busy']:.1%}",
            "" if r["loop_matrix_busy"] is None else f"{r['loop_matrix_busy']:.1%}",
            f"{r['matrix_busy']:.1%}",
            f"{r['clocks']:,}",
            f"{r['ghz']:g}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("cases", type=Path, nargs="?", default=RESULTS / "cases.json")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--only", default="")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args(argv)
    described = json.loads(options.cases.read_text())
    rows = [run(Case(**c), options.folder) for c in described["cases"] if options.only in c["name"]]
    if options.own:
        from warpwave.bench.amd_timing_own import own_rows  # builds kernels: the others need no compiler

        rows += own_rows(options.only)
    made = [recorded_row(r) for r in rows]
    print(table(made))
    if options.record:
        save(made, described["about"], options.record, keep=bool(options.only))


def save(rows: Sequence[dict[str, Any]], about: str, folder: Path, *, keep: bool = False) -> None:
    """The record and its page; with `keep`, rows that are there keep their place, and stay unless made again."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "record.json"
    old = json.loads(path.read_text())["rows"] if keep else []
    found = {r["case"]: r for r in (*old, *rows)}
    path.write_text(json.dumps({"about": about, "rows": list(found.values())}, indent=1) + "\n")
    notes = [f"* {r['case']}: {r['note']}." for r in found.values() if r["note"]]
    head = "# Modelled time of AMD kernels\n\nModelled, nothing here ran on an AMD GPU. " + about
    (folder / "README.md").write_text("\n".join([head, "", table(list(found.values())), "", *notes, ""]))


if __name__ == "__main__":
    main()
