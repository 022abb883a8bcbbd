"""The report as Markdown, for a pull request or a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warpwave.conformance.cli_text import bad_line
from warpwave.conformance.ledger import ENTRIES
from warpwave.conformance.records.compare import by_pair
from warpwave.conformance.report.facts import Cell, Facts, Summary, formats_of
from warpwave.conformance.verdicts import Level

SIGNS = {"bit-exact": "=", "within": "≈", "unknown": "?", "violation": "✗", "error": "!", "refused": "·"}


def markdown(facts: Facts) -> str:
    """The whole text."""
    heads = (
        "target",
        "ran on",
        "cases",
        *(level.value for level in Level),
        "error",
        "refused",
        "largest share of a bound",
    )
    rows = [
        (
            s.target,
            s.ran_on,
            s.cases,
            *(s.levels.get(level, 0) for level in Level),
            s.errors,
            s.refused,
            f"{s.tightest:.2f}",
        )
        for s in facts.summaries
    ]
    parts = ["# Warpwave conformance", table(heads, rows), "## Every op on every format", _legend(facts)]
    for family, ops in facts.grid.items():
        formats = formats_of(ops)
        body = [(op, *(_signs(cells.get(f, {}), facts.targets) for f in formats)) for op, cells in ops.items()]
        parts += [f"### {family}", table(("op", *formats), body)]
    parts += ["## Targets against each other", _pairs(facts), "## Ledger of known differences", _ledger()]
    if facts.bad:
        parts += ["## Violations and errors", "\n".join(f"- {bad_line(o)}" for o in facts.bad[:100])]
    environment = [(k, v) for e in facts.environments for k, v in e.items()]
    return "\n\n".join([*parts, "## Environment", table(("what", "which"), environment)]) + "\n"


def _counts(summary: Summary) -> list[int]:
    return [summary.levels.get(level, 0) for level in Level]


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines)


def _legend(facts: Facts) -> str:
    signs = ", ".join(f"`{sign}` {kind}" for kind, sign in SIGNS.items())
    return f"One sign for each target, in this order: {', '.join(facts.targets)}. {signs}."


def _signs(cells: Mapping[str, Cell], targets: Sequence[str]) -> str:
    return "".join(SIGNS[cells[t].kind] for t in targets if t in cells)


def _pairs(facts: Facts) -> str:
    rows = []
    for (a, b), differences in by_pair(facts.pairs):
        counts = [sum(d.verdict.level is level for d in differences) for level in Level]
        rows.append((a, b, len(differences), *counts))
    return table(("first", "second", "outputs", *(level.value for level in Level)), rows)


def _ledger() -> str:
    return table(("name", "what differs", "contract"), [(e.name, e.title, e.contract) for e in ENTRIES])
