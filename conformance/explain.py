"""A generated case as a runnable script, shortened while it fails in the same way if that is asked for."""

from __future__ import annotations

import re

from warpwave.conformance.programs.generate import program_of_seed
from warpwave.conformance.programs.model import Program
from warpwave.conformance.programs.render import render_script
from warpwave.conformance.programs.shrink import shrink
from warpwave.conformance.runners.outcome import Outcome, Status
from warpwave.conformance.runners.run_case import run_case
from warpwave.conformance.suite import ops
from warpwave.conformance.suite.case import program_case


def script_of(id_: str, target: str, *, shorten: bool = False, seconds: float = 60.0) -> str | None:
    """The script of a generated case; None if it is to be shortened but does not fail."""
    program = program_of(id_)
    if shorten:
        if failure_of(program, target) is None:
            return None
        program = shrink(program, lambda p: failure_of(p, target), seconds=seconds)
    return render_script(program, target)


def program_of(id_: str) -> Program:
    """The program of a case."""
    kind, *rest = id_.split(":")
    return program_of_seed(int(rest[0])) if kind == "program" else ops.make(*rest)[0]


def failure_of(program: Program, target: str) -> str | None:
    """How a program fails on a target, in few words; None if it does not, or if it is itself wrong."""
    try:
        (reference,) = run_case(program_case("shortened", program), ["reference"])
        if reference.bad and target != "reference":
            return None
        (outcome,) = run_case(program_case("shortened", program), [target])
    except Exception:  # a shortened program may be no program at all
        return None
    return kind_of(outcome)


def kind_of(outcome: Outcome) -> str | None:
    """The kind of a failure: the first words of its message, numbers left out."""
    if not outcome.bad:
        return None
    if outcome.status is Status.OK:
        return "violation"
    return re.sub(r"[\d.]+", "#", outcome.problem.splitlines()[0])[:60]
