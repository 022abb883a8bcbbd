"""The measured rows as text: a line while it runs, a short table at the end, and Markdown for the record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpwave.bench.h200.run import Result


def verdict(result: Result) -> str:
    """`failed`, `below`, `reached` or `aim`."""
    if result.problem:
        return "failed"
    if not result.ratio:
        return "no peer"
    if result.ratio >= result.aim:
        return "aim"
    return "reached" if result.ratio >= result.at_least else "below"


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
        f"Clocks after the last row (SM, memory, power, temperature): {record['clocks_after']}.",
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
