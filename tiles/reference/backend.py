"""The `reference` target: the interpreter as a backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwave.tiles.errors import UnsupportedError
from warpwave.tiles.ir import Kernel, print_kernel
from warpwave.tiles.reference.execute import execute
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Diagnosis, Target


@dataclass(frozen=True)
class ReferenceProgram:
    """A kernel that is interpreted."""

    kernel: Kernel

    @property
    def source(self) -> str:
        """The IR, which is what is executed."""
        return print_kernel(self.kernel)

    @property
    def asm(self) -> str:
        """Nothing: there is no machine code."""
        return ""

    @property
    def resources(self) -> Mapping[str, Any]:
        """Nothing is used."""
        return {}

    def explain(self) -> str:
        """How the kernel runs."""
        return "interpreted with NumPy, one block after the other, in the semantics of the numerics contract"

    def run(self, arguments: Mapping[str, Array | int | float | bool]) -> None:
        """Execute; arrays are written in place."""
        execute(self.kernel, {name: _host(name, value) for name, value in arguments.items()})


def _host(name: str, value: Array | int | float | bool) -> Any:
    if not isinstance(value, Array):
        return value
    if value.host is None:
        raise UnsupportedError(
            f"the reference runs on arrays in host memory, argument {name} is on {value.device}",
            hint="copy it to the host first",
        )
    return value.host


@dataclass(frozen=True)
class ReferenceBackend:
    """Runs every kernel on the host, slowly and exactly as the contract says."""

    name: str = "reference"

    def targets(self) -> Sequence[Target]:
        """The one target, always runnable."""
        return [Target("reference", "the numerics contract, interpreted", runs="NumPy")]

    def target_for(self, device: str) -> str | None:
        """Arrays in host memory are the reference's."""
        return "reference" if device.startswith("cpu") else None

    def diagnose(self) -> Sequence[Diagnosis]:
        """NumPy is all it needs."""
        return [Diagnosis("NumPy", True, np.__version__)]

    def compile(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> ReferenceProgram:
        """Nothing to build; the reference has no options."""
        if options:
            raise UnsupportedError(f"the reference has no option {', '.join(map(repr, options))}", loc=kernel.loc)
        return ReferenceProgram(kernel)


BACKEND = ReferenceBackend()
