"""A whole run: cases of a profile on targets over processes, with a journal, ending in a record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwave.conformance.records.environment import environment
from warpwave.conformance.records.journal import Journal
from warpwave.conformance.records.record import Record, Result
from warpwave.conformance.runners.outcome import Outcome
from warpwave.conformance.runners.pool import CASE_SECONDS, Limits, run_parallel
from warpwave.conformance.suite import make_case, profile
from warpwave.tiles.errors import TileValueError, UnsupportedError
from warpwave.tiles.runtime import registry

Watch = Callable[[list[Outcome]], None]


@dataclass(frozen=True)
class Plan:
    """What to run, and how much of the machine to take. A time limit ends the run early; the record says so."""

    targets: tuple[str, ...]
    profile: str = "quick"
    seed: int = 0
    programs: int | None = None
    only: str = ""
    jobs: int = 0
    time_limit: float = float("inf")
    case_seconds: float = CASE_SECONDS

    @property
    def cases(self) -> list[str]:
        """The cases, those that `only` names if it is given."""
        return [c for c in profile(self.profile, self.seed, self.programs) if self.only in c]

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal for a stopped run to go on."""
        parts = {"profile": self.profile, "seed": self.seed, "programs": self.programs, "only": self.only}
        return {**parts, "targets": list(self.targets)}


def default_jobs() -> int:
    """One process for each core that this process may use, at most 16."""
    return min(len(os.sched_getaffinity(0)), 16)


def named_targets(text: str) -> tuple[str, ...]:
    """The targets of a comma-separated text, which must exist but need not run here."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise TileValueError("no target is named", hint=f"there are {', '.join(t.name for t in registry.targets())}")
    for name in names:
        registry.resolve(name)
    return names


def runnable_targets(text: str | None) -> tuple[str, ...]:
    """The named targets, all of which must run here; without names all that do."""
    known = {t.name: t for t in registry.targets()}
    if not text:
        return tuple(name for name, target in known.items() if target.runs)
    names = named_targets(text)
    for name in names:
        target = known[name.removesuffix(registry.SIMULATED)]
        if not target.runs:
            raise UnsupportedError(f"{name} does not run here: it needs {target.missing}", hint=target.remedy)
    return names


def run(plan: Plan, journal: Journal, watch: Watch = lambda _: None) -> Record:
    """Run what the journal does not hold yet; `watch` is called for every finished case."""
    start = time.monotonic()
    todo = list(missing(plan, journal))
    limits = Limits(plan.case_seconds, start + plan.time_limit)
    jobs = min(plan.jobs or default_jobs(), max(len(todo), 1))
    for outcomes in run_parallel(todo, jobs, limits) if todo else ():
        for outcome in outcomes:
            journal.add(Result.of(outcome))
        watch([o.without_outputs() for o in outcomes])
    return record_of(plan, journal)


def missing(plan: Plan, journal: Journal) -> Iterator[tuple[str, Sequence[str]]]:
    """Each case that is not finished, with the targets that it still lacks."""
    for case in plan.cases:
        targets = journal.missing(case, list(plan.targets))
        if targets:
            yield case, targets


def record_of(plan: Plan, journal: Journal) -> Record:
    """The record of what is finished, in the order of the profile."""
    cases = plan.cases
    order = [(c, t) for c in cases for t in plan.targets if (c, t) in journal.results]
    stored = {c: s for c in dict.fromkeys(c for c, _ in order) if (s := make_case(c).stored)}
    complete = len(order) == len(cases) * len(plan.targets)
    results = tuple(journal.results[key] for key in order)
    return Record(plan.identity, environment(plan.targets), results, stored, complete)


def journal_path(record: Path) -> Path:
    """Where the journal of a record lies while the run goes on."""
    return record.with_name(record.name + ".journal")
