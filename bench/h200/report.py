"""The measured rows as text: a line while it runs, a short table at the end, and Markdown for the record.

python -m warpwave.bench.h200.report RECORD.json           # the record's page
python -m warpwave.bench.h200.report --table RECORD.json   # the rows alone, as in docs/nvidia.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warpwave.bench.h200.result import Result

# What a kernel that memory bounds shall reach of a device copy's bandwidth, beside its ratio to the peer.
SHARE_AT_LEAST, SHARE_AIM = 0.85, 0.95


def verdict(result: Result) -> str:
    """`failed`, `below`, `reached` or `aim`."""
    if result.problem:
        return "failed"
    if not result.ratio:
        return "no peer"
    share = result.share_of_copy or SHARE_AIM
    if result.ratio >= result.aim and share >= SHARE_AIM:
        return "aim"
    return "reached" if result.ratio >= result.at_least and share >= SHARE_AT_LEAST else "below"


def line(result: Result) -> str:
    """One row."""
    if result.problem:
        return f"{result.name:46} failed: {result.problem.splitlines()[0][:90]}"
    copy = f"  {100 * result.share_of_copy:.0f}% of copy" if result.share_of_copy else ""
    return (
        f"{result.name:46} {result.times['warpwave']['median']:9.4f} ms {result.rate:8.2f} {result.unit:7} "
        f"{result.ratio:5.2f}x {result.peer:14} {verdict(result):8}{copy}"
    )


def short(record: dict[str, Any], results: Iterable[Result]) -> str:
    """All rows, and how many reached what."""
    rows = list(results)
    counts = {word: sum(verdict(r) == word for r in rows) for word in ("aim", "reached", "below", "failed", "no peer")}
    head = f"{record['gpu']}, copy {record['copy_tb_s']:.2f} TB/s, {record['seconds']:.0f} s, commit {record['commit']}"
    return "\n".join([head, *map(line, rows), ", ".join(f"{n} {word}" for word, n in counts.items() if n)])


def markdown(record: dict[str, Any], results: Iterable[Result]) -> str:
    """The record as a page."""
    packages = ", ".join(f"{n} {v}" for n, v in record["packages"].items() if v)
    head = [
        f"# Warpwave on {record['gpu']}",
        "",
        f"{record['date']}, commit {record['commit']}, driver {record['driver']}, {record['compiler']}, "
        f"CUDA {record['cuda']}, cuDNN {record['cudnn']}, Python {record['python']}, {packages}.",
        f"Device copy: {record['copy_tb_s']:.2f} TB/s (bytes read and written). Each row: median of runs that "
        "alternate with the peers', L2 flushed before each; the result was checked first.",
        f"Clocks after the last row (SM, memory, power, temperature): {record['clocks_after']}. "
        f"What memory bounds shall also reach {100 * SHARE_AT_LEAST:.0f} % of the copy's rate, "
        f"and aims at {100 * SHARE_AIM:.0f} %.",
        "",
        "| row | ms | rate | better peer | peer ms | ratio | at least | aim | verdict | of copy | error / allowed |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *map(_markdown_row, results)]) + "\n"


def _markdown_row(result: Result) -> str:
    goals = f"{result.at_least:.2f} | {result.aim:.2f}"
    if result.problem:
        problem = result.problem.splitlines()[0].replace("|", "\\|")[:200]
        return f"| {result.name} |  |  |  |  |  | {goals} | failed: {problem} |  |  |"
    peer = result.times.get(result.peer, {}).get("median")
    ours = result.times["warpwave"]["median"]
    copy = f"{100 * result.share_of_copy:.0f} %" if result.share_of_copy else ""
    return (
        f"| {result.name} | {ours:.4f} | {result.rate:.2f} {result.unit} | {result.peer} | "
        f"{f'{peer:.4f}' if peer else ''} | {result.ratio:.2f} | {goals} | {verdict(result)} | {copy} | "
        f"{result.error_share:.2f} |"
    )


def table(results: Iterable[Result]) -> str:
    """The rows as the documentation shows them."""
    head = ["| row | rate | of copy | better peer | ratio | goal | |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(_short_row, results)]) + "\n"


def _short_row(result: Result) -> str:
    copy = f"{100 * result.share_of_copy:.0f} %" if result.share_of_copy else ""
    rate = f"{result.rate:.3g} {result.unit}" if not result.problem else "failed"
    goal = f"{result.at_least:.2f}, aim {result.aim:.2f}"
    return f"| {result.name} | {rate} | {copy} | {result.peer} | {result.ratio:.2f} | {goal} | {verdict(result)} |"


def read(path: Path) -> tuple[dict[str, Any], list[Result]]:
    """A record that `run` wrote."""
    record = json.loads(path.read_text())
    return record, [Result(**row) for row in record.pop("rows")]


def main() -> int:
    """Print a record's page or table."""
    parser = argparse.ArgumentParser(description="A record of measurements as Markdown")
    parser.add_argument("--table", action="store_true", help="the rows alone")
    parser.add_argument("record", type=Path)
    args = parser.parse_args()
    record, results = read(args.record)
    print(table(results) if args.table else markdown(record, results), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
