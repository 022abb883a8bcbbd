"""A toy Warpwave backend: kernels run block by block, tiles are nested Python lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwave_toy.machine import OPS, Machine

from warpwave import UnsupportedError
from warpwave.tiles.ir import Kernel, walk
from warpwave.tiles.runtime.arrays import Array
from warpwave.tiles.runtime.backend import Diagnosis, Target

DTYPES = ("f32", "i32", "bool")


@dataclass(frozen=True)
class ToyProgram:
    """A kernel that the toy can run."""

    kernel: Kernel
    asm: str = ""

    @property
    def source(self) -> str:
        """The IR, which the toy interprets."""
        return str(self.kernel)

    @property
    def resources(self) -> Mapping[str, Any]:
        """How many ops the toy has to know."""
        return {"kinds of op": len({op.name for op in walk(self.kernel.body)})}

    def explain(self) -> str:
        """How it runs."""
        return "  interpreted by the toy, tiles as nested lists"

    def run(self, arguments: Mapping[str, Array | int | float | bool]) -> None:
        """Run all blocks."""
        Machine(self.kernel, arguments).run()


@dataclass(frozen=True)
class ToyBackend:
    """What the entry point names."""

    name: str = "toy"

    def targets(self) -> Sequence[Target]:
        """One target, which runs anywhere."""
        return [Target("toy", "an example of a third-party backend", runs="Python lists")]

    def target_for(self, device: str) -> str | None:
        """Host arrays belong to the reference; the toy runs when it is asked for by name."""
        return None

    def diagnose(self) -> Sequence[Diagnosis]:
        """It needs nothing."""
        return [Diagnosis("Python", True, "nested lists are built in")]

    def compile(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> ToyProgram:
        """Refuse what it cannot do, at the user's line."""
        for op in walk(kernel.body):
            if op.name not in OPS:
                known = ", ".join(sorted(OPS))
                raise UnsupportedError(f"the toy has no op {op.name!r}", loc=op.loc, hint=f"it knows {known}")
            for value in (*op.operands, *op.results):
                if value.type.dtype.name not in DTYPES:
                    raise UnsupportedError(
                        f"the toy has no {value.type.dtype}, which {op.name!r} needs here",
                        loc=op.loc,
                        hint=f"it knows {', '.join(DTYPES)}",
                    )
        return ToyProgram(kernel)


BACKEND = ToyBackend()
