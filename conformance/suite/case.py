"""One case: a kernel, how its arguments are made, and which op each output shows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpwave.conformance.programs.load import arguments_of, kernel_of_source
from warpwave.conformance.programs.memory import memory
from warpwave.conformance.programs.model import Program, Tensor
from warpwave.conformance.programs.render import render
from warpwave.conformance.programs.values import fill
from warpwave.tiles.dtypes import BY_NAME
from warpwave.tiles.runtime.kernel import Kernel

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """`arguments()` gives a fresh set of arrays every time, as a run writes into them.

    `labels` says which op and dtype an output shows, where one output is one op. `stored` is what a record
    keeps, so that the case can be made again after the generator has changed; library kernels keep nothing.
    `undefined`: the language leaves the result open, so that nothing is demanded of it.
    """

    id: str
    kernel: Kernel
    arguments: Callable[[], Arguments]
    constants: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    stored: Mapping[str, Any] = field(default_factory=dict)
    undefined: bool = False

    def input_digest(self) -> str:
        """A digest of all arguments as they are before a run."""
        sha = hashlib.sha256()
        for name, value in self.arguments().items():
            described = f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else repr(value)
            sha.update(f"{name}:{described};".encode())
            if isinstance(value, np.ndarray):
                sha.update(np.ascontiguousarray(value).tobytes())
        return sha.hexdigest()[:32]


def program_case(id_: str, program: Program, labels: Mapping[str, tuple[str, str]] | None = None) -> Case:
    """The case of a generated program."""
    source = render(program)
    stored = {"source": source, "seed": program.seed, "tensors": [_stored(t) for t in program.tensors]}
    stored["labels"] = {k: list(v) for k, v in (labels or {}).items()}
    return Case(id_, kernel_of_source(source, id_), lambda: arguments_of(program), labels=labels or {}, stored=stored)


def stored_case(id_: str, stored: Mapping[str, Any]) -> Case:
    """The case that a record describes."""
    tensors = [
        Tensor(t["name"], BY_NAME[t["dtype"]], tuple(t["shape"]), t["layout"], t["values"]) for t in stored["tensors"]
    ]
    labels = {k: (v[0], v[1]) for k, v in stored["labels"].items()}
    seed = int(stored["seed"])
    kernel = kernel_of_source(str(stored["source"]), id_)
    return Case(id_, kernel, lambda: arrays(tensors, seed), labels=labels, stored=stored)


def _stored(tensor: Tensor) -> dict[str, Any]:
    shape, dtype = list(tensor.shape), tensor.dtype.name
    return {"name": tensor.name, "dtype": dtype, "shape": shape, "layout": tensor.layout, "values": tensor.values}


def arrays(tensors: list[Tensor], seed: int) -> Arguments:
    """A program's arrays by seed."""
    return {
        t.name: memory(t.layout, np.asarray(fill(t.values, t.dtype, t.shape, seed, i))) for i, t in enumerate(tensors)
    }
