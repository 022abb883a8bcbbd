"""One case on some targets: compile, run, compare every output with what the contract allows there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from warpwave.conformance.contract import allowed, execute_as, numerics_of
from warpwave.conformance.runners.device import DeviceArrays, device_of
from warpwave.conformance.runners.outcome import Array, Outcome, Status
from warpwave.conformance.suite import Case, make_case
from warpwave.conformance.verdicts import Verdict, judge
from warpwave.tiles.errors import ResourceError, TileError, UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.reference import Estimate, Numerics
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.arrays import borrow, is_array
from warpwave.tiles.runtime.backend import SuggestsConstants
from warpwave.tiles.runtime.compiled import Compiled

Outputs = dict[str, Array]
Execute = Callable[[Case, str], Outputs]
REFERENCE = "reference"


def compile_case(case: Case, target: str) -> Compiled:
    """The case's kernel for a target; arrays on a device compile as the host's do, only dtype and rank count."""
    return case.kernel.compile(**case.arguments(), **case.constants, target=target, options=options_of(case, target))


def options_of(case: Case, target: str) -> dict[str, Any]:
    """A generated program is about results: one that does not fit the registers well shall run nevertheless."""
    return {"allow_spills": True} if case.stored and target.startswith("amd:") else {}


def execute(case: Case, target: str) -> Outputs:
    """The outputs of a run on fresh arguments, in device memory if the target wants that."""
    compiled = compile_case(case, target)
    arguments = case.arguments()
    run_in_place(compiled, arguments, target)
    return {n: arguments[n] for n in compiled.ir.outputs}


def run_in_place(compiled: Compiled, arguments: Mapping[str, Any], target: str) -> None:
    """Run on host arrays, moved to the target's device and back if it has one."""
    device = device_of(target)
    if device is None:
        compiled.run(**arguments)
        return
    arrays = DeviceArrays(device)
    moved = {n: arrays.upload(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
    compiled.run(**moved)
    arrays.download()


class Expectation:
    """What a case should give, computed once for all targets whose kernel and arithmetic are the same."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._estimates: list[tuple[str, Numerics, dict[str, Estimate]]] = []

    @cached_property
    def reference(self) -> Kernel:
        """The kernel as the reference compiles it."""
        return compile_case(self.case, REFERENCE).ir

    def kernel(self, target: str) -> Kernel:
        """The kernel with the constants tuned for the target, whose tiles may differ; nothing is built for it."""
        case = self.case
        tuned = _tuned(case, target) if case.kernel.signature.constants else {}
        if not tuned:
            return self.reference
        return case.kernel.compile(**case.arguments(), **{**tuned, **case.constants}, target=REFERENCE).ir

    def estimates(self, target: str) -> dict[str, Estimate]:
        """The oracle under the target's arithmetic."""
        kernel, numerics = self.kernel(target), numerics_of(target)
        text = str(kernel)
        for other_text, other, estimates in self._estimates:
            if other_text == text and other == numerics:
                return estimates
        present = self._present(kernel)
        estimates = allowed(kernel, present, target)
        if self.case.undefined:
            estimates = {n: Estimate(e.value, np.full(e.value.shape, np.inf)) for n, e in estimates.items()}
        self._estimates.append((text, numerics, estimates))
        return estimates

    def exact(self, target: str) -> Outputs:
        """The outputs in the target's modelled arithmetic."""
        kernel = self.kernel(target)
        present = self._present(kernel)
        execute_as(kernel, present, target)
        return {n: present[n] for n in kernel.outputs}

    def _present(self, kernel: Kernel) -> dict[str, Any]:
        """Fresh arguments without the absent optional ones."""
        arguments = self.case.arguments()
        return {n: arguments[n] for n in kernel.param_names}

    def verdicts(self, target: str, outputs: Outputs) -> tuple[Verdict, ...]:
        """The comparison of every output."""
        estimates, exact = self.estimates(target), self.exact(target)
        return tuple(judge(name, outputs[name], estimates[name], exact[name]) for name in sorted(estimates))


def _tuned(case: Case, target: str) -> Mapping[str, Any]:
    """The target's own values of the kernel's constants; none for a target that is not installed here."""
    try:
        backend = registry.resolve(target)
    except UnsupportedError:
        return {}
    if not isinstance(backend, SuggestsConstants):
        return {}
    arguments = {n: borrow(a) if is_array(a) else a for n, a in case.arguments().items()}
    return backend.constants_for(case.kernel.path, target, arguments)


def run_case(
    case: Case, targets: Sequence[str], *, execute: Execute = execute, expectation: Expectation | None = None
) -> Iterator[Outcome]:
    """The outcomes of one case, in the order of the targets; what it should give may be known from before."""
    expectation = expectation or Expectation(case)
    digest = case.input_digest()
    for target in targets:
        start = time.perf_counter()
        outcome = _attempt(expectation, target, execute)
        yield replace(outcome, seconds=round(time.perf_counter() - start, 4), inputs=digest)


def _attempt(expectation: Expectation, target: str, execute: Execute) -> Outcome:
    case = expectation.case
    try:
        compile_case(case, target)
    except (UnsupportedError, ResourceError) as error:
        return Outcome(case.id, target, Status.REFUSED, problem=_first_lines(error))
    except Exception as error:  # a defect of a backend may be any error, and the other cases must still run
        return Outcome(case.id, target, Status.ERROR, problem=f"compiling: {_first_lines(error)}")
    try:
        outputs = execute(case, target)
        return Outcome(case.id, target, Status.OK, expectation.verdicts(target, outputs), outputs=outputs)
    except (UnsupportedError, ResourceError) as error:
        return Outcome(case.id, target, Status.REFUSED, problem=_first_lines(error))
    except Exception as error:  # as above: also a simulator's finding, or a device's fault
        return Outcome(case.id, target, Status.ERROR, problem=_first_lines(error))


def _first_lines(error: Exception, count: int = 8) -> str:
    text = str(error) if isinstance(error, TileError) else f"{type(error).__name__}: {error}"
    return "\n".join(text.splitlines()[:count])


def check_cases(ids: Iterable[str], targets: Sequence[str], *, execute: Execute = execute) -> Iterator[Outcome]:
    """Cases in this process, one after the other, outputs dropped."""
    for id_ in ids:
        for outcome in run_case(make_case(id_), targets, execute=execute):
            yield outcome.without_outputs()
