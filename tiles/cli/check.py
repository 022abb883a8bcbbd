"""`warpwave check`: does a kernel compute the same on every target, and is it what the user meant?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpwave.tiles.cli import agreement
from warpwave.tiles.cli.agreement import Agreement, Expected
from warpwave.tiles.cli.command import AGREE, DISAGREE, ERROR, Functions
from warpwave.tiles.cli.console import console, escape, print_json, print_table, progress
from warpwave.tiles.cli.loading import load_kernel, load_object, parse_constant
from warpwave.tiles.dtypes import BY_NUMPY, f32
from warpwave.tiles.errors import TileValueError
from warpwave.tiles.reference.comparison import widen
from warpwave.tiles.runtime import registry
from warpwave.tiles.runtime.kernel import Kernel
from warpwave.tiles.runtime.spec import ArraySpec, ScalarSpec, spec

USER = "--reference"
# The oracle follows the kernel's own roundings, the user's float64 expression has none. So it may differ by some
# units in the last place of the narrowest float format among the arguments, relative to the typical output.
USER_ROUNDINGS = 8


@dataclass(frozen=True)
class Case:
    """One set of arguments and constants."""

    arguments: Mapping[str, Any]
    constants: Mapping[str, Any]

    def __str__(self) -> str:
        parts = [f"{n}={_describe(a)}" for n, a in self.arguments.items() if a is not None]
        return ", ".join(parts + [f"{n}={getattr(c, '__name__', repr(c))}" for n, c in self.constants.items()])


@dataclass
class Result:
    """What one target made of one case. `problem` is the error that stopped it."""

    target: str
    outputs: list[Agreement] = field(default_factory=list)
    seconds: float = 0.0
    problem: str = ""

    @property
    def status(self) -> int:
        """The exit status that this result asks for."""
        if self.problem:
            return ERROR
        return AGREE if all(a.agree for a in self.outputs) else DISAGREE

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        outputs = [a.as_json() for a in self.outputs]
        return {"target": self.target, "seconds": self.seconds, "problem": self.problem, "outputs": outputs}


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        from warpwave.tiles.runtime.arrays import borrow

        return str(borrow(value))
    return repr(value)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kernel", help="FILE.py:NAME or package.module:NAME")
    parser.add_argument(
        "specs", nargs="*", metavar="ARG", help="bf16[512,256], i32=5 or none; by default the kernel's own samples"
    )
    parser.add_argument(
        "--reference",
        metavar="EXPR",
        help="what the kernel should give: an expression of its float64 arguments such as 'a @ b.T', or FILE.py:FUNC",
    )
    parser.add_argument(
        "--rtol",
        type=float,
        help="of --reference; by default 8 roundings of the narrowest float format among the arguments",
    )
    parser.add_argument("--targets", help="comma-separated; by default all that can run here")
    parser.add_argument("--const", action="append", default=[], metavar="NAME=VALUE", help="a compile-time constant")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument("--json", action="store_true", help="machine-readable report")


def run(args: argparse.Namespace) -> int:
    """Check, report, and give 0 (agree), 1 (disagree) or 2 (error)."""
    kernel = load_kernel(args.kernel)
    constants = dict(parse_constant(text) for text in args.const)
    cases = list(_cases(kernel, args.specs, constants, args.seed))
    targets = _targets(args.targets)
    reports: list[tuple[Case, list[Result]]] = []
    with progress(len(cases), quiet=args.json) as bar:
        for case in cases:
            reports.append((case, list(check_case(kernel, case, targets, args.reference, args.rtol))))
            bar.advance(bar.task_ids[0])
    status = worst_status([r for _, results in reports for r in results])
    if args.json:
        print_json(_as_json(kernel, args.seed, reports, status))
    else:
        _print(kernel, args.seed, reports, status)
    return status


def _cases(kernel: Kernel, specs: list[str], constants: dict[str, Any], seed: int) -> Iterator[Case]:
    names = [p.name for p in kernel.signature.params]
    if not specs:
        for sample in kernel.sample_inputs(seed):
            yield split_sample(kernel, {**sample, **constants})
        return
    if len(specs) > len(names):
        raise TileValueError(
            f"kernel {kernel.name} has {len(names)} parameter(s), got {len(specs)} on the command line"
        )
    rng = np.random.default_rng(seed)
    yield Case({n: _value(text, rng) for n, text in zip(names, specs, strict=False)}, constants)


def split_sample(kernel: Kernel, sample: Mapping[str, Any]) -> Case:
    """A sample input as arguments and constants."""
    names = [p.name for p in kernel.signature.params]
    arguments = {n: sample[n] for n in names if n in sample}
    return Case(arguments, {n: v for n, v in sample.items() if n not in names})


def _value(text: str, rng: np.random.Generator) -> Any:
    described = spec(text)
    if isinstance(described, ArraySpec):
        return described.random(rng)
    if isinstance(described, ScalarSpec) and described.value is None:
        raise TileValueError(f"the scalar {text} needs a value", hint=f"write {text}=5")
    return described.value if isinstance(described, ScalarSpec) else None


def _targets(given: str | None) -> list[str]:
    if given:
        targets = [t.strip() for t in given.split(",")]
        for target in targets:
            registry.resolve(target)
        return targets
    here = [t.name for t in registry.targets() if t.runs]
    if not here:
        raise TileValueError("no target can run here", hint="`warpwave doctor` says what is missing")
    return here


def check_case(
    kernel: Kernel, case: Case, targets: list[str], reference: str | None = None, rtol: float | None = None
) -> Iterator[Result]:
    """Results of the user's reference, if there is one, and of every target, against the oracle."""
    compiled = kernel.compile(**case.arguments, **case.constants, target="reference")
    given = agreement.with_defaults(kernel, case.arguments)
    arguments = agreement.fill_outputs(given, compiled.ir.outputs, compiled.ir.inputs)
    expected = agreement.expect(kernel, arguments, case.constants)
    if reference:
        yield _check_user(reference, case, arguments, expected, rtol)
    for target in targets:
        yield _check_target(kernel, case, target, arguments, expected)


def worst_status(results: list[Result]) -> int:
    """The status of all together."""
    return max((r.status for r in results), default=ERROR)


def _check_target(kernel: Kernel, case: Case, target: str, arguments: Mapping[str, Any], expected: Expected) -> Result:
    try:
        results, seconds = agreement.run_on(kernel, target, arguments, case.constants)
    except Exception as error:  # whatever a backend raises is that target's result, and the others still count
        return Result(target, problem=f"{type(error).__name__}: {error}")
    return Result(target, agreement.compare_all(results, expected), seconds)


def _check_user(
    reference: str, case: Case, arguments: Mapping[str, Any], expected: Expected, rtol: float | None
) -> Result:
    wide = {n: _wide(a) for n, a in arguments.items()}
    try:
        if _names_a_function(reference):
            answer = load_object(reference)(**wide)
        else:
            answer = eval(reference, {"np": np, "numpy": np}, {**case.constants, **wide})
    except Exception as error:  # any mistake in the user's own code
        return Result(USER, problem=f"{type(error).__name__} in {reference!r}: {error}")
    return _compare_user(answer, expected, user_tolerance(arguments) if rtol is None else rtol)


def user_tolerance(arguments: Mapping[str, Any]) -> float:
    """The relative tolerance of a user's expression."""
    floats = [BY_NUMPY[a.dtype] for a in arguments.values() if isinstance(a, np.ndarray)]
    fraction_bits = [dtype.mantissa for dtype in floats if dtype.is_float]
    return float(USER_ROUNDINGS * 2.0 ** -(min(fraction_bits, default=f32.mantissa) + 1))


def _names_a_function(reference: str) -> bool:
    place, _, name = reference.rpartition(":")
    return name.isidentifier() and (place.endswith(".py") or all(p.isidentifier() for p in place.split(".")))


def _wide(value: Any) -> Any:
    is_float = isinstance(value, np.ndarray) and value.dtype.kind not in "ib"
    return widen(value) if is_float else value


def _compare_user(answer: Any, expected: Expected, rtol: float) -> Result:
    names = list(expected)
    answers = (
        answer
        if isinstance(answer, dict)
        else dict(zip(names, answer if isinstance(answer, tuple) else (answer,), strict=False))
    )
    outputs = []
    for name in names:
        if name not in answers:
            return Result(USER, problem=f"it gives nothing for the output {name}")
        value, bound = expected[name]
        got = np.asarray(answers[name], np.float64)
        if got.shape != value.shape:
            return Result(USER, problem=f"it gives shape {list(got.shape)} for {name}, which is {list(value.shape)}")
        finite = np.where(np.isfinite(value), np.abs(value), 0.0)
        slack = rtol * (finite + np.sqrt(np.mean(finite**2)) if value.size else finite)
        outputs.append(agreement.compare(name, got, value, bound + slack))
    return Result(USER, outputs)


# -- reports ------------------------------------------------------------------------------------------


def _as_json(kernel: Kernel, seed: int, reports: list[tuple[Case, list[Result]]], status: int) -> dict[str, Any]:
    cases = [{"case": str(case), "results": [r.as_json() for r in results]} for case, results in reports]
    return {"kernel": kernel.path, "seed": seed, "agree": status == AGREE, "status": status, "cases": cases}


def _print(kernel: Kernel, seed: int, reports: list[tuple[Case, list[Result]]], status: int) -> None:
    for case, results in reports:
        print_results(f"{kernel.name}({case})", results)
    verdict = {AGREE: "[green]agree", DISAGREE: "[red]disagree", ERROR: "[red]error"}[status]
    cases = f"{len(reports)} case{'s' * (len(reports) != 1)}"
    console().print(f"[bold]{verdict}[/] · {cases} · seed {seed}")


def print_results(title: str, results: list[Result]) -> None:
    """One case's table: a row for each target and output."""
    headings = ("target", "output", "verdict", "max error", "worst element", "error", "bound", "got", "want")
    print_table(escape(title), headings, [row for result in results for row in _rows(result)])
    for result in results:
        if result.problem:
            console().print(f"[red]{escape(result.target)}[/]: {escape(result.problem)}", soft_wrap=True)


def _rows(result: Result) -> Iterator[tuple[str, ...]]:
    if result.problem:
        yield (escape(result.target), "", "[red]error[/]", *[""] * 6)
    for a in result.outputs:
        verdict = "[green]agrees[/]" if a.agree else f"[red]{a.beyond} of {a.elements} beyond[/]"
        if a.unknown:
            verdict += f" [yellow]({a.unknown} undecided)[/]"
        if a.constant:
            verdict += " [yellow](constant: weak)[/]"
        numbers = (f"{a.error:.3g}", f"{a.bound:.3g}", f"{a.got:.7g}", f"{a.want:.7g}")
        yield (escape(result.target), a.output, verdict, f"{a.max_error:.3g}", escape(str(list(a.index))), *numbers)


COMMAND = Functions("compare a kernel's results on every target with the float64 oracle", add_arguments, run)
