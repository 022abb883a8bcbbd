"""The AMD backend as a plug-in: targets gfx942 and gfx950."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.build import REMEDY, find_compiler
from warpwave.backends.amd.lower.lower import lower
from warpwave.backends.amd.program import AmdProgram
from warpwave.backends.amd.tuned import constants_for
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.backend import Diagnosis, Target


@dataclass(frozen=True)
class AmdBackend:
    """Compiles kernels to machine code and runs it on the simulator."""

    name: str = "amd"

    def targets(self) -> Sequence[Target]:
        """gfx942 and gfx950; both run on the simulator."""
        here = find_compiler() is not None
        missing = "" if here else "a clang with the AMDGPU target"
        return [
            Target(
                f"amd:{name}",
                " / ".join(chip.name for chip in target.chips),
                runs="simulator" if here else "",
                missing=missing,
                remedy="" if here else REMEDY,
            )
            for name, target in TARGETS.items()
        ]

    def target_for(self, device: str) -> str | None:
        """Arrays in host memory are not AMD's unless a target is named."""
        return None

    def diagnose(self) -> Sequence[Diagnosis]:
        """The compiler is all that building needs."""
        compiler = find_compiler()
        return [
            Diagnosis("AMD compiler", compiler is not None, compiler.version if compiler else "not found", REMEDY),
        ]

    def compile(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> AmdProgram:
        """Lower and build; ResourceError if the compiler had to spill."""
        arch = TARGETS[target.split(":")[1]]
        program = AmdProgram(kernel, arch, lower(kernel, arch, dict(options)))
        program.check_resources()
        return program

    def constants_for(self, kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Tuned constants of the library's kernels."""
        return constants_for(kernel, target, arguments)


BACKEND = AmdBackend()
