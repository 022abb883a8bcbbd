"""The AMD backend as a plug-in: targets gfx942 and gfx950."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.arguments import Argument
from warpwave.backends.amd.build import REMEDY, find_compiler
from warpwave.backends.amd.compilation import compiled, settled
from warpwave.backends.amd.program import AmdProgram
from warpwave.backends.amd.runtime import hip
from warpwave.backends.amd.runtime.devices import devices, target_of
from warpwave.backends.amd.tuned import constants_for
from warpwave.tiles.errors import TileError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.backend import Diagnosis, Measurement, Target

if TYPE_CHECKING:
    from warpwave.tiles.drawing import Chart, TileLayout


@dataclass(frozen=True)
class AmdBackend:
    """Compiles kernels to machine code and runs it on AMD GPUs, or on the simulator where there is none."""

    name: str = "amd"
    keeps_builds: bool = True

    def targets(self) -> Sequence[Target]:
        """gfx942 and gfx950."""
        return _targets()

    def target_for(self, device: str) -> str | None:
        """AMD GPUs' arrays; arrays in host memory are not AMD's unless a target is named."""
        return target_of(device, tuple(TARGETS))

    def diagnose(self) -> Sequence[Diagnosis]:
        """The compiler is all that building needs; hip-python and a GPU are for running on one."""
        compiler, found = find_compiler(), devices()
        runs = ", ".join(map(str, found)) or "no AMD GPU: code runs on the simulator"
        return [
            Diagnosis("AMD compiler", compiler is not None, compiler.version if compiler else "not found", REMEDY),
            Diagnosis("hip-python", hip.is_installed(), runs if hip.is_installed() else "not installed", hip.REMEDY),
        ]

    def compile(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> AmdProgram:
        """Lower and build; ResourceError if it does not fit. `:sim` runs on the simulator whatever is here."""
        _, arch, *simulated = target.split(":")
        return compiled(kernel, TARGETS[arch], options, simulated=bool(simulated))

    @property
    def alternatives(self) -> Mapping[str, tuple[int, ...]]:
        """More waves have more registers, up to one on each SIMD; fewer stages need less LDS."""
        return {"waves": (8,), "stages": (2, 1)}

    def layouts(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> Sequence[TileLayout]:
        """Where every tile lies: lanes and registers, LDS banks, and what accesses cost."""
        from warpwave.backends.amd.layouts import tile_layouts

        return tile_layouts(kernel, TARGETS[target.split(":")[1]], options)

    def schedules(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> Sequence[Chart]:
        """What generated loops do in time, one chart for each."""
        from warpwave.backends.amd.lower.lower import emit
        from warpwave.backends.amd.schedule.chart import chart

        arch = TARGETS[target.split(":")[1]]
        lw = emit(kernel, arch, settled(kernel, arch, options))
        return [chart(schedule) for schedule in lw.plan.schedules]

    def constants_for(self, kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Tuned constants of the library's kernels."""
        return constants_for(kernel, target, arguments)

    def clock(self, program: AmdProgram, arguments: Mapping[str, Argument]) -> str:
        """The device, or the model, and what machine code depends on besides source."""
        from warpwave.backends.amd.measuring import clock

        return clock(program, arguments)

    def measure(
        self, programs: Sequence[AmdProgram], arguments: Mapping[str, Argument]
    ) -> Sequence[Measurement | TileError]:
        """By HIP events on a device, by the model on the simulator."""
        from warpwave.backends.amd.measuring import measure

        return measure(programs, arguments)


@cache
def _targets() -> list[Target]:
    here = find_compiler() is not None
    missing = "" if here else "a clang with the AMDGPU target"
    remedy = "" if here else REMEDY
    found: list[Target] = []
    for name, target in TARGETS.items():
        device = next((d.name for d in devices() if d.arch == name), "simulator")
        chips = " / ".join(chip.name for chip in target.chips)
        found.append(Target(f"amd:{name}", chips, device if here else "", missing, remedy))
    return found


BACKEND = AmdBackend()
