"""Modelled time of compiled AMD kernels beside what was published of them: a table and a record.

    python -m warpwave.bench.amd_timing [CASES.json] [--folder FOLDER] [--only NAME] [--own] [--record FOLDER]

A case names an assembly file (relative to FOLDER), its launch and its work; the kernels need not be this project's.
--own adds this project's own (amd_timing_own.py). A record is a JSON file and the table as a page.
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


def table(rows: Sequence[Row]) -> str:
    """Markdown: published, modelled, error."""
    head = ["kernel", "published TF", "modelled TF", "error", "loop busy, published", "modelled", "whole kernel busy"]
    head += ["clocks a workgroup", "GHz"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for r in rows:
        cells = [
            r.case.name,
            "" if r.case.published is None else f"{r.case.published:g}",
            f"{r.tflops:.0f}",
            "" if r.error is None else f"{r.error:+.1%}",
            "" if r.case.published_busy is None else f"{r.case.published_busy:.1%}",
            "" if r.loop_matrix_busy is None else f"{r.loop_matrix_busy:.1%}",
            f"{r.matrix_busy:.1%}",
            f"{r.clocks:,}",
            f"{r.ghz:g}",
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

        rows += own_rows()
    print(table(rows))
    if options.record:
        save(rows, described["about"], options.record)


def save(rows: Sequence[Row], about: str, folder: Path) -> None:
    """The record and its page."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = [asdict(r) | {"case": r.case.name, "source": r.case.source, "note": r.case.note} for r in rows]
    (folder / "record.json").write_text(json.dumps({"about": about, "rows": plain}, indent=1) + "\n")
    notes = [f"* {r.case.name}: {r.case.note}." for r in rows if r.case.note]
    head = "# Modelled time of AMD kernels\n\nModelled, nothing here ran on an AMD GPU. " + about
    (folder / "README.md").write_text("\n".join([head, "", table(rows), "", *notes, ""]))


if __name__ == "__main__":
    main()
