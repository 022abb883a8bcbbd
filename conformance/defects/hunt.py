"""Runs a profile with a defect in the backend until some case notices it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import warpwave as ww
from warpwave.conformance.defects.defect import Defect
from warpwave.conformance.runners import Status, run_case
from warpwave.conformance.runners.outcome import Outcome
from warpwave.conformance.suite import make_case, profile


@dataclass(frozen=True)
class Catch:
    """How a hunt ended: the first case that noticed, and how; `tried` cases ran; `changes` the defect made."""

    defect: str
    target: str
    case: str = ""
    how: str = ""
    tried: int = 0
    changes: int = 0

    @property
    def caught(self) -> bool:
        """Whether some case noticed."""
        return bool(self.case)


def hunt(defect: Defect, name: str = "quick", cases: Iterable[str] | None = None) -> Catch:
    """The first case of a profile that notices the defect, and is well without it; likely ones come first."""
    ids = list(profile(name) if cases is None else cases)
    ids.sort(key=lambda id_: not id_.startswith(defect.likely))
    tried = changes = 0
    for target in defect.targets:
        for id_ in ids:
            with defect.injected() as trace:
                outcome = _outcome(id_, target)
            tried, changes = tried + 1, changes + trace.changes
            if outcome.bad and trace.changes and not _outcome(id_, target).bad:
                return Catch(defect.name, target, id_, _how(outcome), tried, changes)
    return Catch(defect.name, defect.targets[-1], tried=tried, changes=changes)


def _outcome(id_: str, target: str) -> Outcome:
    """The outcome of a case with a kernel that nothing was compiled for yet."""
    case = make_case(id_)
    (outcome,) = run_case(replace(case, kernel=ww.kernel(case.kernel.function)), [target])
    return outcome


def _how(outcome: Outcome) -> str:
    if outcome.status is Status.ERROR:
        return outcome.problem.splitlines()[0][:120]
    bad = max(outcome.verdicts, key=lambda v: v.ratio)
    return f"{bad.output}: {bad.beyond} of {bad.elements} elements outside their bounds"
