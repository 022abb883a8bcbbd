"""Checks that need no oracle: the same computation asked for in another way must give the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.conformance.contract import allowed
from warpwave.conformance.placement import LAYOUTS, Layout, Placed, place
from warpwave.conformance.verdicts import Level, between, same_bits
from warpwave.tiles.ir import Kernel
from warpwave.tiles.ir.core import walk
from warpwave.tiles.reference import execute

Array = npt.NDArray[Any]
Arguments = dict[str, Any]
Outputs = dict[str, Array]
Runner = Callable[[Arguments], object]  # executes in place, on arrays as they lie in memory
Interleaved = Callable[[Arguments, int], object]  # the same, with a seed for the order in which waves run


@dataclass(frozen=True)
class Finding:
    """How one output came out under one law.

    A `strict` law demands the same bits; else the two results may differ by their bounds together.
    """

    law: str
    variant: str
    output: str
    level: Level
    strict: bool
    detail: str = ""

    @property
    def holds(self) -> bool:
        """Whether the law holds."""
        return self.level is Level.BIT_EXACT or (not self.strict and self.level is not Level.VIOLATION)

    def __str__(self) -> str:
        return (
            f"{self.law} ({self.variant}), {self.output}: {self.level.value}{f': {self.detail}' if self.detail else ''}"
        )


@dataclass(frozen=True)
class Subject:
    """What is examined: a kernel with its arguments, and how to run it on a target."""

    kernel: Kernel
    arguments: Mapping[str, Any]
    run: Runner
    target: str = "any"
    interleaved: Interleaved | None = None

    @property
    def arrays(self) -> dict[str, Array]:
        """The arguments that are arrays."""
        return {n: a for n, a in self.arguments.items() if isinstance(a, np.ndarray)}

    def outputs(self, arguments: Mapping[str, Any], run: Runner | None = None) -> Outputs:
        """The outputs of a run on tight copies."""
        own = {n: np.ascontiguousarray(a).copy() if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
        (run or self.run)(own)
        return {n: own[n] for n in self.kernel.outputs}

    def by_reference(self, arguments: Mapping[str, Any]) -> Outputs:
        """The outputs as the reference gives them."""
        return self.outputs(arguments, lambda own: execute(self.kernel, own))

    @property
    def is_ordered(self) -> bool:
        """Whether no float is added to memory in an order that nothing defines."""
        added = (op for op in walk(self.kernel.body) if op.name == "atomic_add")
        return not any(op.operands[1].tile.dtype.is_float for op in added)


def check(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    run: Runner,
    *,
    laws: Iterable[str] | None = None,
    target: str = "any",
    interleaved: Interleaved | None = None,
) -> list[Finding]:
    """All findings of the laws that apply; `run` executes the kernel in place. LookupError for an unknown law."""
    subject = Subject(kernel, arguments, run, target, interleaved)
    names = list(LAWS if laws is None else laws)
    if unknown := set(names) - set(LAWS):
        raise LookupError(f"no law {', '.join(sorted(unknown))}; there are {', '.join(LAWS)}")
    return [finding for name in names for finding in LAWS[name](subject)]


def _compared(law: str, variant: str, want: Outputs, got: Outputs) -> Iterator[Finding]:
    """Bit by bit."""
    for name, expected in want.items():
        same = same_bits(got[name], expected)
        level = Level.BIT_EXACT if same.all() else Level.VIOLATION
        yield Finding(law, variant, name, level, True, "" if same.all() else _first(expected, got[name], same))


def _first(want: Array, got: Array, same: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{np.count_nonzero(~same)} of {same.size} differ, first at {at}: {got[at]!r}, not {want[at]!r}"


# -- strict laws --------------------------------------------------------------------------------------


def repeat(subject: Subject, times: int = 10) -> Iterator[Finding]:
    """Ten runs give the same bits, unless floats are added atomically."""
    if not subject.is_ordered:
        return
    first = subject.outputs(subject.arguments)
    for number in range(2, times + 1):
        found = list(_compared("repeat", f"run {number}", first, subject.outputs(subject.arguments)))
        if number == times or not all(f.holds for f in found):
            yield from found
            return


def waves(subject: Subject, seeds: Iterable[int] = (1, 2, 3)) -> Iterator[Finding]:
    """Another interleaving of waves gives the same bits."""
    run = subject.interleaved
    if run is None or not subject.is_ordered:
        return
    want = subject.outputs(subject.arguments)
    for seed in seeds:
        got = subject.outputs(subject.arguments, lambda own, seed=seed: run(own, seed))  # type: ignore[misc]
        yield from _compared("waves", f"seed {seed}", want, got)


def layout(subject: Subject) -> Iterator[Finding]:
    """The same values with other strides and alignment give the same bits."""
    if subject.is_ordered:
        want = subject.outputs(subject.arguments)
        for name in LAYOUTS:
            yield from _placed(subject, "layout", name, 0.0, want)


def padding(subject: Subject) -> Iterator[Finding]:
    """What lies around the values, NaN, infinity or 0, neither matters nor changes."""
    if subject.is_ordered:
        want = subject.outputs(subject.arguments)
        for fill in (np.nan, np.inf, 0.0):
            yield from _placed(subject, "padding", "wide rows", fill, want)


def _placed(subject: Subject, law: str, shape: Layout, fill: float, want: Outputs) -> Iterator[Finding]:
    placed: dict[str, Placed] = {n: place(a, shape, fill) for n, a in subject.arrays.items()}
    subject.run({**subject.arguments, **{n: p.view for n, p in placed.items()}})
    variant = shape if law == "layout" else f"filled with {fill}"
    yield from _compared(law, variant, want, {n: placed[n].view for n in want})
    for name, where in placed.items():
        if not where.pads_are_intact:
            yield Finding(law, variant, name, Level.VIOLATION, True, "elements outside the tensor were written")


# -- laws that hold for some kernels: those for which the reference obeys them ---------------------------


def scaling(subject: Subject, exponents: Iterable[int] = (1, 5, -4)) -> Iterator[Finding]:
    """An input times 2^k gives outputs times 2^(jk): exactly, for all but subnormal numbers."""
    for name in _float_inputs(subject):
        degrees = _degrees(subject, name)
        for k in exponents if degrees else ():
            scaled = {**subject.arguments, name: _scaled(subject.arguments[name], k)}
            want = {
                n: _scaled(out, j * k) for n, out in subject.outputs(subject.arguments).items() if (j := degrees[n])
            }
            want |= {n: out for n, out in subject.outputs(subject.arguments).items() if not degrees[n]}
            yield from _bounded(subject, "scaling", f"{name} * 2^{k}", scaled, want)


def _float_inputs(subject: Subject) -> list[str]:
    read = set(subject.kernel.inputs)
    return [n for n, a in subject.arrays.items() if n in read and a.dtype.kind not in "iub" and a.size]


def _scaled(x: Array, k: int) -> Array:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.ldexp(x.astype(np.float64), k).astype(x.dtype)


def _degrees(subject: Subject, name: str) -> dict[str, int]:
    """How each output scales with an input, if the reference shows it for two factors; {} if some does not."""
    plain, given = subject.by_reference(subject.arguments), subject.arguments[name]
    scaled = {k: subject.by_reference({**subject.arguments, name: _scaled(given, k)}) for k in (1, -3)}

    def scales(output: str, degree: int) -> bool:
        return all(same_bits(got[output], _scaled(plain[output], degree * k)).all() for k, got in scaled.items())

    found = {output: next((d for d in (1, 2, 0) if scales(output, d)), None) for output in plain}
    degrees = {output: degree for output, degree in found.items() if degree is not None}
    return degrees if len(degrees) == len(plain) and any(degrees.values()) else {}


def rows(subject: Subject) -> Iterator[Finding]:
    """Permuted rows of the inputs give permuted rows of the outputs."""
    for size, names in _leading(subject):
        order = np.random.default_rng(size).permutation(size)
        moved = {**subject.arguments, **{n: subject.arguments[n][order] for n in names}}
        if _moves(subject, moved, names, order):
            plain = subject.outputs(subject.arguments)
            want = {n: out[order] if n in names else out for n, out in plain.items()}
            yield from _bounded(subject, "rows", f"of {', '.join(names)}", moved, want)


def _leading(subject: Subject) -> Iterator[tuple[int, list[str]]]:
    """Sets of arrays that may share independent rows: of one leading extent, an output and an input among them."""
    outputs = subject.kernel.outputs
    extents = sorted({subject.arguments[n].shape[0] for n in outputs if subject.arguments[n].ndim})
    for size in (e for e in extents if e > 1):
        names = [n for n, a in subject.arrays.items() if a.ndim and a.shape[0] == size]
        inputs = [n for n in names if n not in outputs]
        written = [n for n in names if n in outputs]
        for chosen in [inputs, *([n] for n in inputs)] if len(inputs) > 1 else [inputs]:
            if chosen:
                yield size, [*chosen, *written]


def _moves(subject: Subject, moved: Arguments, names: list[str], order: Array) -> bool:
    """Whether the reference's outputs move with the rows (and the move is visible)."""
    plain, after = subject.by_reference(subject.arguments), subject.by_reference(moved)
    want = {n: out[order] if n in names else out for n, out in plain.items()}
    return all(same_bits(after[n], want[n]).all() for n in want)


def batch(subject: Subject) -> Iterator[Finding]:
    """Two halves of the leading axis, run one after the other, give the two halves of the outputs."""
    for size, names in _leading(subject):
        if set(subject.kernel.outputs) <= set(names) and _splits(subject, names, size):
            whole = subject.outputs(subject.arguments)
            yield from _halves(subject, names, size, whole)


def _part(subject: Subject, names: list[str], part: slice) -> Arguments:
    return {**subject.arguments, **{n: subject.arguments[n][part] for n in names}}


def _parts(size: int) -> tuple[slice, slice]:
    return slice(0, size // 2), slice(size // 2, size)


def _splits(subject: Subject, names: list[str], size: int) -> bool:
    whole = subject.by_reference(subject.arguments)
    try:
        halves = [(part, subject.by_reference(_part(subject, names, part))) for part in _parts(size)]
    except (ValueError, ArithmeticError):  # a launch condition that the halves do not meet
        return False
    return all(same_bits(out, whole[n][part]).all() for part, half in halves for n, out in half.items())


def _halves(subject: Subject, names: list[str], size: int, whole: Outputs) -> Iterator[Finding]:
    for number, part in enumerate(_parts(size)):
        want = {n: out[part] for n, out in whole.items()}
        variant = f"half {number + 1} of {', '.join(names)}"
        yield from _bounded(subject, "batch", variant, _part(subject, names, part), want)


def _bounded(subject: Subject, law: str, variant: str, changed: Arguments, want: Outputs) -> Iterator[Finding]:
    """The outputs for changed arguments against what is wanted, within twice the bounds of that run."""
    got = subject.outputs(changed)
    if all(same_bits(got[n], want[n]).all() for n in want):
        yield from (Finding(law, variant, n, Level.BIT_EXACT, False) for n in want)
        return
    estimates = allowed(subject.kernel, changed, subject.target)
    for name, expected in want.items():
        verdict = between(name, expected, got[name], estimates[name], estimates[name])
        detail = (
            ""
            if verdict.level is Level.BIT_EXACT
            else f"{verdict.error:.3g} apart at {verdict.index}, {verdict.ratio:.3g} of what is allowed"
        )
        yield Finding(law, variant, name, verdict.level, False, detail)


LAWS: dict[str, Callable[[Subject], Iterator[Finding]]] = {
    "repeat": repeat,
    "waves": waves,
    "layout": layout,
    "padding": padding,
    "scaling": scaling,
    "rows": rows,
    "batch": batch,
}
