"""A kernel compiled for argument types, constants and a target: what it became, and how to run it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles import ir
from warpwave.tiles.capture import Captured
from warpwave.tiles.errors import TileTypeError
from warpwave.tiles.runtime.backend import Program
from warpwave.tiles.runtime.binding import Binder, Bound, describe
from warpwave.tiles.runtime.signature import place
from warpwave.tiles.runtime.tuning import Tuning
from warpwave.tiles.types import Type


@dataclass(frozen=True)
class Compiled:
    """What `kernel.compile` returns. `origins` says where each constant's value came from.

    `tuning` is what `@ww.autotune` found, if it chose among configurations.
    """

    name: str
    target: str
    constants: Mapping[str, Any]
    origins: Mapping[str, str]
    types: Mapping[str, Type | None]
    captured: Captured
    program: Program
    binder: Binder
    tuning: Tuning | None = None

    @property
    def ir(self) -> ir.Kernel:
        """The verified IR; `str()` prints it."""
        return self.captured.kernel

    @property
    def source(self) -> str:
        """The generated source; for backends that generate none, the IR."""
        return self.program.source

    @property
    def asm(self) -> str:
        """The machine code as text, or empty."""
        return self.program.asm

    @property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, shared memory and the like, by name."""
        return self.program.resources

    def explain(self) -> str:
        """The constants and where they came from, then the backend's choices."""
        lines = [f"{self.name} for {self.target}", f"  arguments: {describe(self.types)}"]
        lines += [f"  {name} = {value!r} ({self.origins[name]})" for name, value in self.constants.items()]
        if self.tuning is not None:
            lines += [f"  {line}" for line in f"configurations, {self.tuning}".splitlines()]
        return "\n".join([*lines, self.program.explain()]).rstrip()

    def run(self, *args: Any, **kwargs: Any) -> None:
        """Execute with arguments of the compiled types; outputs are written in place."""
        bound = self.binder.bind(args, kwargs)
        if bound.constants:
            names = ", ".join(bound.constants)
            raise TileTypeError(
                f"kernel {self.name} is compiled: {names} cannot change",
                loc=place(self.binder.function, names.split(",")[0]),
                hint="compile it again",
            )
        if bound.types != self.types:
            raise TileTypeError(
                f"kernel {self.name} was compiled for ({describe(self.types)}), got ({describe(bound.types)})",
                loc=place(self.binder.function),
                hint="compile it for these arguments, or call the kernel itself",
            )
        self.launch(bound)

    @functools.cached_property
    def outputs(self) -> list[str]:
        """Names of the parameters that the kernel writes."""
        return self.ir.outputs

    def launch(self, bound: Bound) -> None:
        """Execute with arguments that are bound and of the compiled types."""
        self.program.run(self.binder.launchable(bound, self.outputs))

    def up_to_date(self) -> bool:
        """Whether compiling again would see the same globals, closures and helpers."""
        return self.captured.up_to_date()
