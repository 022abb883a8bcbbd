"""`@conforms(kernel, inputs=...)`: a user's kernel against the contract on every target, as a pytest test.

The runners are imported when a test runs, as pytest loads the plugin beside this module in every project.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpwave.conformance.suite import Case
    from warpwave.tiles.runtime.kernel import Kernel

DEFAULT_VALUES = ("normal", "special")
DEFAULT_LAWS = ("repeat", "layout", "padding")
Inputs = Mapping[str, Any] | Sequence[Any]
TARGET, SEED = "conform_target", "conform_seed"


@dataclass(frozen=True)
class Result:
    """What a test function may look at further: arguments as they were, outputs, and the comparison's verdicts."""

    target: str
    arguments: Mapping[str, Any]
    outputs: Mapping[str, Any]
    verdicts: tuple[Any, ...]


def conforms(
    kernel: Kernel,
    inputs: Inputs | None = None,
    *,
    values: Sequence[str] = DEFAULT_VALUES,
    laws: Sequence[str] = DEFAULT_LAWS,
    **constants: Any,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """A test of `kernel` on each of `--conform-targets`; the decorated function runs after it, with the `result`.

    `inputs` describes the arguments in order or by name: "bf16[64,128]", "i32=5", "none", or values; without it
    the kernel's own samples are used. Arrays that are only described are filled with each of `values`: ordinary
    numbers and adversarial ones (`warpwave.conformance.programs.values` names them). `laws` are checks that need
    no oracle (`warpwave.conformance.metamorphic`). Further keywords are the kernel's constants.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        takes_result = "result" in inspect.signature(function).parameters

        @functools.wraps(function)
        def test(**fixtures: Any) -> None:
            target, seed = fixtures[TARGET], fixtures[SEED]
            for case in cases_of(kernel, inputs, values, constants, seed):
                result = check(case, target, laws)
                if takes_result:
                    function(result=result)
            if not takes_result:
                function()

        test.__signature__ = _signature()  # type: ignore[attr-defined]
        return test

    return decorate


def _signature() -> inspect.Signature:
    """What pytest sees: the two fixtures of the plugin."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in (TARGET, SEED)])


def cases_of(
    kernel: Kernel, inputs: Inputs | None, values: Sequence[str], constants: Mapping[str, Any], seed: int
) -> list[Case]:
    """One case for each distribution of values, or for each of the kernel's own samples."""
    from warpwave.conformance.suite.case import Case
    from warpwave.conformance.suite.library import sample_arguments

    if inputs is None:
        count = len(kernel.sample_inputs(seed))
        made = [sample_arguments(kernel, i, seed) for i in range(count)]
        return [Case(f"{kernel.name}, sample {i}", kernel, a, {**c, **constants}) for i, (a, c) in enumerate(made)]
    return [
        Case(
            f"{kernel.name}, {name} values",
            kernel,
            functools.partial(_arguments, kernel, inputs, name, seed),
            constants,
        )
        for name in values
    ]


def _arguments(kernel: Kernel, inputs: Inputs, values: str, seed: int) -> dict[str, Any]:
    from warpwave.tiles.cli.agreement import with_defaults

    names = [p.name for p in kernel.signature.params]
    given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    made = {n: _value(given[n], values, seed, i) for i, n in enumerate(names) if n in given}
    return with_defaults(kernel, made)


def _value(described: Any, values: str, seed: int, index: int) -> Any:
    """An argument: as it is, or made from its description."""
    import numpy as np

    from warpwave.conformance.programs.values import INTEGERS, fill
    from warpwave.tiles.runtime.spec import ArraySpec, ScalarSpec, spec

    found = spec(described) if isinstance(described, str) else described
    if isinstance(found, ScalarSpec):
        return found.value
    if isinstance(found, np.ndarray):
        return found.copy(order="K")
    if not isinstance(found, ArraySpec):
        return found
    shape = tuple(n for n in found.shape if n is not None)
    usable = values if found.dtype.is_float or values in INTEGERS else "normal"
    return fill(usable, found.dtype, shape, seed, index)


def check(case: Case, target: str, laws: Sequence[str]) -> Result:
    """The comparison with the contract, then the laws; AssertionError with the worst element where one fails."""
    from warpwave.conformance.cli_text import bad_line
    from warpwave.conformance.metamorphic import check as examine
    from warpwave.conformance.runners.outcome import Status
    from warpwave.conformance.runners.run_case import compile_case, run_case, run_in_place

    (outcome,) = run_case(case, [target])
    if outcome.status is Status.REFUSED:
        _skip(f"{target} refuses {case.id}: {outcome.problem}")
    if outcome.bad:
        raise AssertionError(bad_line(outcome) + (f"\n{outcome.problem}" if outcome.problem else ""))
    compiled = compile_case(case, target)
    present = {n: a for n, a in case.arguments().items() if n in compiled.ir.param_names}
    findings = examine(compiled.ir, present, lambda own: run_in_place(compiled, own, target), laws=laws, target=target)
    broken = [str(f) for f in findings if not f.holds]
    if broken:
        raise AssertionError(f"{case.id} on {target}\n" + "\n".join(broken))
    return Result(target, case.arguments(), outcome.outputs, outcome.verdicts)


def _skip(reason: str) -> None:
    import pytest

    pytest.skip(reason)
