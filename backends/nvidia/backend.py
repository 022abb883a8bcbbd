"""The NVIDIA backend as a plug-in: targets sm90a, sm89 and sm80."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from warpwave.backends.nvidia import build, sass
from warpwave.backends.nvidia.arch import TARGETS
from warpwave.backends.nvidia.artifacts import own_version
from warpwave.backends.nvidia.compilation import compiled
from warpwave.backends.nvidia.gate import ALTERNATIVES
from warpwave.backends.nvidia.program import NvidiaProgram
from warpwave.backends.nvidia.runtime import devices, driver
from warpwave.backends.nvidia.runtime.measuring import measure
from warpwave.backends.nvidia.runtime.packing import Argument
from warpwave.backends.nvidia.tuned import constants_for
from warpwave.tiles.drawing.data import TileLayout
from warpwave.tiles.errors import TileError, UnsupportedError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.backend import Diagnosis, Measurement, Target
from warpwave.tiles.runtime.registry import SIMULATED


@dataclass(frozen=True)
class NvidiaBackend:
    """Compiles kernels to machine code anywhere, and runs it where there is an NVIDIA GPU."""

    name: str = "nvidia"
    keeps_builds: bool = True

    def targets(self) -> Sequence[Target]:
        """sm90a, sm89 and sm80."""
        return _targets()

    def target_for(self, device: str) -> str | None:
        """NVIDIA GPUs' arrays; arrays in host memory are not NVIDIA's unless a target is named."""
        return devices.target_for(device)

    def diagnose(self) -> Sequence[Diagnosis]:
        """A compiler is all that building needs; cuda-bindings and a GPU are for running."""
        compiler, disassembler = build.find_compiler(), sass.find_disassembler()
        shown = ", ".join(map(str, devices.devices())) or "no NVIDIA GPU: code can be built and looked at, not run"
        installed = driver.is_installed()
        return [
            Diagnosis(
                "CUDA compiler", compiler is not None, compiler.version if compiler else "not found", build.REMEDY
            ),
            Diagnosis("SASS disassembler", bool(disassembler), disassembler or "not found", sass.REMEDY),
            Diagnosis("cuda-bindings", installed, shown if installed else "not installed", driver.REMEDY),
        ]

    def compile(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> NvidiaProgram:
        """Lower and build; ResourceError if it does not fit."""
        if target.endswith(SIMULATED):
            raise UnsupportedError(f"there is no simulator for {target.removesuffix(SIMULATED)}", loc=kernel.loc)
        arch = TARGETS[target.split(":")[1]]
        return compiled(kernel, arch, options)

    def layouts(self, kernel: Kernel, target: str, options: Mapping[str, Any]) -> Sequence[TileLayout]:
        """Where the kernel's tiles lie, for `warpwave show --layout`."""
        from warpwave.backends.nvidia.layouts import tile_layouts

        return tile_layouts(kernel, TARGETS[target.split(":")[1]], options)

    @property
    def alternatives(self) -> Mapping[str, tuple[int, ...]]:
        """Options that are worth trying for a kernel that does not fit."""
        return ALTERNATIVES

    def constants_for(self, kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Tuned constants of the library's kernels."""
        return constants_for(kernel, target, arguments)

    def clock(self, program: NvidiaProgram, arguments: Mapping[str, Argument]) -> str:
        """The device, and what machine code depends on besides source; not the driver."""
        device = devices.choose(arguments, program.target, program.kernel.name)
        compiler = build.find_compiler()
        return "\n".join((device.name, compiler.version if compiler else "", own_version()))

    def measure(
        self, programs: Sequence[NvidiaProgram], arguments: Mapping[str, Argument]
    ) -> Sequence[Measurement | TileError]:
        """By CUDA events, on copies of what is written, with other data in the L2 cache."""
        return measure(programs, arguments)


@cache  # asked at every launch
def _targets() -> list[Target]:
    compiler = build.find_compiler()
    found: list[Target] = []
    for target in TARGETS.values():
        chips = " / ".join(chip.name for chip in target.chips)
        device = next((d for d in devices.devices() if d.target is target), None)
        if compiler is None:
            found.append(Target(target.full_name, chips, "", "a compiler for CUDA C++", build.REMEDY))
        elif device is None:
            remedy = "" if driver.is_installed() else driver.REMEDY
            missing = "a GPU of this kind, to run what is compiled here"
            found.append(Target(target.full_name, chips, "", missing, remedy))
        else:
            found.append(Target(target.full_name, chips, device.name))
    return found


BACKEND = NvidiaBackend()
