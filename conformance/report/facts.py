"""What a report shows, gathered from records: the grid of ops, tightness, comparisons, refusals, environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpwave.conformance.cli_text import refusals
from warpwave.conformance.records import Comparison, Record, Result, compare
from warpwave.conformance.records.record import merge
from warpwave.conformance.runners.outcome import Outcome, Status
from warpwave.conformance.verdicts import Level, Verdict

FORMATS = (
    *("f32", "tf32", "bf16", "f16", "fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"),
    *("i64", "i32", "i8", "bool"),
)


@dataclass(frozen=True)
class Cell:
    """One op on one dtype on one target: its verdict, or why there is none."""

    status: Status
    verdict: Verdict | None = None
    problem: str = ""

    @property
    def kind(self) -> str:
        """The style of the cell."""
        if self.status is not Status.OK or self.verdict is None:
            return self.status.value
        return {"within contract": "within"}.get(self.verdict.level.value, self.verdict.level.value)

    @property
    def text(self) -> str:
        """A line about it."""
        v = self.verdict
        if v is None:
            return f"{self.status.value}: {self.problem.splitlines()[0] if self.problem else ''}"
        if v.level is Level.BIT_EXACT:
            return f"bit-exact, {v.elements} elements"
        worst = f"worst error {v.error:.3g} of {v.bound:.3g} allowed ({v.ratio:.2f})"
        return f"{v.level.value}, {v.bit_exact} of {v.elements} bit-exact, {worst}"


Grid = Mapping[str, Mapping[str, Mapping[str, Cell]]]  # op, dtype, target


@dataclass(frozen=True)
class Summary:
    """One target in numbers."""

    target: str
    ran_on: str
    cases: int
    levels: Mapping[Level, int]
    errors: int
    refused: int
    tightest: float


@dataclass(frozen=True)
class Facts:
    """Everything a page needs."""

    record: Record
    targets: tuple[str, ...]
    summaries: tuple[Summary, ...]
    grid: Mapping[str, Grid]  # by family
    ratios: Mapping[str, Sequence[float]]  # of generated programs, by target
    pairs: Comparison
    bad: tuple[Outcome, ...]
    refused: Counter[str]
    environments: tuple[Mapping[str, str], ...] = field(default=())


def gather(records: Sequence[Record]) -> Facts:
    """The facts of several records together."""
    whole = merge(records)
    outcomes = [r.outcome for r in whole.results]
    return Facts(
        whole,
        tuple(whole.targets),
        tuple(_summary(t, whole) for t in whole.targets),
        _grid(whole),
        {t: _ratios(t, outcomes) for t in whole.targets},
        _pairs(whole),
        tuple(o for o in outcomes if o.bad),
        refusals(outcomes),
        tuple(r.environment for r in records),
    )


def _summary(target: str, record: Record) -> Summary:
    mine = [r.outcome for r in record.results if r.outcome.target == target]
    ok = [o for o in mine if o.status is Status.OK]
    status = Counter(o.status for o in mine)
    tightest = max((v.ratio for o in ok for v in o.verdicts if v.ratio <= 1), default=0.0)
    ran_on = record.environment.get(f"target {target}", "")
    levels = Counter(o.level for o in ok)
    return Summary(target, ran_on, len(mine), levels, status[Status.ERROR], status[Status.REFUSED], tightest)


def _grid(record: Record) -> dict[str, dict[str, dict[str, dict[str, Cell]]]]:
    grid: dict[str, dict[str, dict[str, dict[str, Cell]]]] = {}
    for result in record.results:
        kind, *rest = result.outcome.case.split(":")
        if kind == "ops":
            labels = record.cases[result.outcome.case]["labels"]
            for name, (op, dtype) in labels.items():
                row = grid.setdefault(rest[0], {}).setdefault(op, {})
                row.setdefault(dtype, {})[result.outcome.target] = _cell(result, name)
    return grid


def _cell(result: Result, name: str) -> Cell:
    verdict = next((v for v in result.outcome.verdicts if v.output == name), None)
    return Cell(result.outcome.status, verdict, result.outcome.problem)


def _ratios(target: str, outcomes: Sequence[Outcome]) -> list[float]:
    """The share of its bound that each output of a generated program used; exact outputs have no share."""
    mine = [o for o in outcomes if o.target == target and o.case.startswith("program")]
    return [v.ratio for o in mine for v in o.verdicts if v.level is Level.WITHIN]


def _pairs(record: Record) -> Comparison:
    """Every pair of targets once."""
    found = Comparison()
    parts = [_only(record, t) for t in record.targets]
    for i, a in enumerate(parts):
        for b in parts[i + 1 :]:
            one = compare(a, b)
            found.differences += one.differences
            for why, cases in one.left_out.items():
                found.left_out.setdefault(why, []).extend(cases)
    return found


def _only(record: Record, target: str) -> Record:
    results = tuple(r for r in record.results if r.outcome.target == target)
    return Record(record.run, record.environment, results, record.cases, record.complete)


def formats_of(grid: Grid) -> list[str]:
    """The dtypes that a family's rows have, in the usual order."""
    present = {dtype for row in grid.values() for dtype in row}
    return [f for f in FORMATS if f in present]
