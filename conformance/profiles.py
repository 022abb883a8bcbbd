"""A profile in this process, for tests that ask whether it notices something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwave.conformance.runners import Outcome, Status, check_cases, execute
from warpwave.conformance.runners.run_case import Execute
from warpwave.conformance.suite import profile
from warpwave.conformance.verdicts import Level


@dataclass(frozen=True)
class Run:
    """What a run found."""

    outcomes: tuple[Outcome, ...]

    @property
    def violations(self) -> list[Outcome]:
        """Results outside the contract."""
        return [o for o in self.outcomes if o.status is Status.OK and o.level is Level.VIOLATION]

    @property
    def errors(self) -> list[Outcome]:
        """Runs that failed."""
        return [o for o in self.outcomes if o.status is Status.ERROR]


def run(
    name: str, targets: Sequence[str], seed: int = 0, *, stop_at_first: bool = True, execute: Execute = execute
) -> Run:
    """All cases of a profile, or up to the first that is bad."""
    outcomes: list[Outcome] = []
    for outcome in check_cases(profile(name, seed), targets, execute=execute):
        outcomes.append(outcome)
        if stop_at_first and outcome.bad:
            break
    return Run(tuple(outcomes))
