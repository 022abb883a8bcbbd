"""What came of one case on one target."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from warpwave.conformance.verdicts import Level, Verdict, worst

Array = npt.NDArray[Any]


class Status(enum.Enum):
    """`refused`: the target says at compile time that it cannot; `error`: it failed where it should not."""

    OK = "ok"
    REFUSED = "refused"
    ERROR = "error"


@dataclass(frozen=True)
class Outcome:
    """One case on one target. `problem` says why there are no verdicts."""

    case: str
    target: str
    status: Status
    verdicts: tuple[Verdict, ...] = ()
    seconds: float = 0.0
    problem: str = ""
    inputs: str = ""
    outputs: Mapping[str, Array] = field(default_factory=dict, compare=False, repr=False)

    @property
    def level(self) -> Level:
        """The worst level of all outputs."""
        return worst([v.level for v in self.verdicts])

    @property
    def bad(self) -> bool:
        """Whether this must not happen: a violation of the contract, or an error."""
        return self.status is Status.ERROR or (self.status is Status.OK and self.level is Level.VIOLATION)

    def as_json(self) -> dict[str, Any]:
        """Plain values, without the outputs."""
        verdicts = [v.as_json() for v in self.verdicts]
        rest = {"seconds": self.seconds, "problem": self.problem, "inputs": self.inputs}
        return {"case": self.case, "target": self.target, "status": self.status.value, "verdicts": verdicts, **rest}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Outcome:
        """The inverse of `as_json`."""
        verdicts = tuple(_verdict(v) for v in data["verdicts"])
        plain = {k: data[k] for k in ("case", "target", "seconds", "problem", "inputs")}
        return Outcome(status=Status(data["status"]), verdicts=verdicts, **plain)

    def without_outputs(self) -> Outcome:
        """The same, light enough for a list of thousands."""
        return replace(self, outputs={})


def _verdict(data: Mapping[str, Any]) -> Verdict:
    numbers = {k: float(data[k]) for k in ("got", "want", "error", "bound", "ratio", "drift")}
    index = tuple(int(i) for i in data["index"])
    return Verdict(**{**data, **numbers, "index": index, "level": Level(data["level"])})
