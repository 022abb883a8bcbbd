"""Runs a kernel on a target and compares every output with the float64 oracle, within the oracle's bound."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.tiles.reference import oracle
from warpwave.tiles.reference.comparison import Comparison, Wide, errors, widen, worst_element
from warpwave.tiles.runtime.arrays import Array, borrow
from warpwave.tiles.runtime.kernel import Kernel
from warpwave.tiles.runtime.signature import REQUIRED

Expected = Mapping[str, tuple[Wide, Wide]]  # per output its value and the bound that a correct target keeps


@dataclass(frozen=True)
class Agreement(Comparison):
    """How one output compares. `constant` says that the oracle expects one value everywhere, which shows little."""

    agree: bool
    max_error: float
    constant: bool


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
    error, ratio = errors(wide, value, limit)
    found = worst_element(wide, value, error, limit, ratio)
    return Agreement(
        output,
        **found,
        agree=found["beyond"] == 0,
        max_error=float(np.abs(error).max(initial=0.0)),
        constant=wide.size > 1 and len(np.unique(value)) == 1,
    )


def compare_all(results: Mapping[str, Any], expected: Expected) -> list[Agreement]:
    """Every output that the oracle knows."""
    return [compare(name, results[name], value, bound) for name, (value, bound) in expected.items()]
