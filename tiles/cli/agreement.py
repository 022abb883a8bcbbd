"""Runs a kernel on a target and compares every output with the float64 oracle, within the oracle's bound."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.reference import oracle
from warpwave.tiles.runtime.arrays import Array, borrow
from warpwave.tiles.runtime.kernel import Kernel
from warpwave.tiles.runtime.signature import REQUIRED

Wide = npt.NDArray[np.float64]
Expected = Mapping[str, tuple[Wide, Wide]]  # per output its value and the bound that a correct target keeps


@dataclass(frozen=True)
class Agreement:
    """How one output compares. `error`, `bound`, `got` and `want` are of the worst element, at `index`.

    The worst element is the one whose error is the largest fraction (`ratio`) of its own bound. `unknown`
    counts elements about which the oracle can say nothing; `constant` says that it expects one value
    everywhere, which shows little.
    """

    output: str
    agree: bool
    elements: int
    beyond: int
    index: tuple[int, ...]
    got: float
    want: float
    error: float
    bound: float
    ratio: float
    max_error: float
    unknown: int
    constant: bool

    def as_json(self) -> dict[str, Any]:
        """Plain values, with text for what JSON has no number for."""
        return {k: _plain(v) for k, v in asdict(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def widen(array: npt.NDArray[Any]) -> Wide:
    """Any of the language's dtypes as float64, exactly (64-bit integers beyond 2^53 excepted)."""
    return np.asarray(array).astype(np.float64)


def with_defaults(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the defaults of those that are not given."""
    defaults = {p.name: p.default for p in kernel.signature.params if p.default is not REQUIRED}
    return {**defaults, **arguments}


def fill_outputs(arguments: Mapping[str, Any], outputs: list[str], inputs: list[str]) -> dict[str, Any]:
    """The arguments, with what the kernel only writes set to NaN or -1, so that unwritten elements show."""
    filled = dict(arguments)
    for name in outputs:
        if name not in inputs and isinstance(filled[name], np.ndarray):
            poison = np.float32("nan") if filled[name].dtype.kind not in "ib" else -1
            filled[name] = np.full_like(filled[name], poison)
    return filled


def expect(kernel: Kernel, arguments: Mapping[str, Any], constants: Mapping[str, Any]) -> Expected:
    """What the oracle says for these arguments, which stay as they are."""
    compiled = kernel.compile(**arguments, **constants, target="reference")
    present = {n: _host(arguments[n]) for n in compiled.ir.param_names if n in arguments}
    return {name: (e.value, e.bound) for name, e in oracle(compiled.ir, present).items()}


def _host(value: Any) -> Any:
    return borrow(value).host if isinstance(value, np.ndarray | Array) else value


def run_on(
    kernel: Kernel, target: str, arguments: Mapping[str, Any], constants: Mapping[str, Any]
) -> tuple[dict[str, Any], float]:
    """The arguments after a run on `target`, as copies, and the seconds that the run took."""
    copies: dict[str, Any] = {n: a.copy(order="K") if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
    compiled = kernel.compile(**copies, **constants, target=target)
    start = time.perf_counter()
    compiled.run(**copies)
    return copies, time.perf_counter() - start


def compare(output: str, got: npt.NDArray[Any], value: Wide, bound: Wide) -> Agreement:
    """Element by element |got - value| <= bound; NaN agrees with NaN, an infinity with itself."""
    wide, limit = widen(got), np.broadcast_to(bound, value.shape)
    if not wide.size:
        return Agreement(output, True, 0, 0, (), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, False)
    error, ratio = _errors(wide, value, limit)
    worst = np.unravel_index(int(np.argmax(ratio)), wide.shape)
    beyond = int((ratio > 1).sum())
    return Agreement(
        output,
        agree=beyond == 0,
        elements=wide.size,
        beyond=beyond,
        index=tuple(int(i) for i in worst),
        got=float(wide[worst]),
        want=float(value[worst]),
        error=float(error[worst]),
        bound=float(limit[worst]),
        ratio=float(ratio[worst]),
        max_error=float(error.max()),
        unknown=int(np.isinf(limit).sum()),
        constant=wide.size > 1 and len(np.unique(value)) == 1,
    )


def _errors(got: Wide, value: Wide, bound: Wide) -> tuple[Wide, Wide]:
    """Each element's error, and the error as a fraction of its bound."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        same = (got == value) | (np.isnan(got) & np.isnan(value))
        error = np.where(same, 0.0, np.abs(got - value))
        error = np.where(np.isnan(error), np.inf, error)
        ratio = np.where(same, 0.0, np.where(bound > 0, error / bound, np.inf))
    return error, np.where(np.isnan(ratio), np.inf, ratio)


def compare_all(results: Mapping[str, Any], expected: Expected) -> list[Agreement]:
    """Every output that the oracle knows."""
    return [compare(name, results[name], value, bound) for name, (value, bound) in expected.items()]
