"""A kernel built for one NVIDIA target, and its execution on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from warpwave.backends.nvidia import resources, sass
from warpwave.backends.nvidia.arch import WARP, Target
from warpwave.backends.nvidia.build import Built, build
from warpwave.backends.nvidia.lowered import Lowered
from warpwave.backends.nvidia.runtime import aligned_copies
from warpwave.backends.nvidia.runtime.devices import Device
from warpwave.backends.nvidia.runtime.functions import Functions
from warpwave.backends.nvidia.runtime.launcher import Launcher
from warpwave.backends.nvidia.runtime.plan import best_variant
from warpwave.backends.nvidia.runtime.relaunch import Relaunch
from warpwave.tiles.ir import Kernel
from warpwave.tiles.runtime.arrays import Array


@dataclass(frozen=True)
class NvidiaProgram:
    """Built code of one kernel. What it says about itself is about the variant for well aligned tensors."""

    kernel: Kernel
    target: Target
    lowered: Lowered
    kept_resources: Mapping[str, Any] | None = None  # from the disk cache

    @property
    def source(self) -> str:
        """The generated CUDA C++."""
        return self.lowered.source

    @cached_property
    def asm(self) -> str:
        """SASS with the user's lines if there is a disassembler, else PTX."""
        built = self.built(*self._best)
        instructions, labels = sass.parse(sass.disassemble(built.cubin))
        return sass.annotated(instructions, labels) if instructions else built.ptx

    @property
    def ptx(self) -> str:
        """The PTX that the machine code was assembled from."""
        return self.built(*self._best).ptx

    @cached_property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, shared memory, blocks per multiprocessor, instruction mix."""
        return self.kept_resources or resources.read_resources(self.built(*self._best), self.lowered, self.target)

    def built(self, wide: int, tma: int) -> Built:
        """The variant with these masks; see `lowered`."""
        return build(self.lowered, self.target, wide, tma)

    @cached_property
    def _best(self) -> tuple[int, int]:
        return best_variant(self.kernel, self.lowered)

    def explain(self) -> str:
        """The plan's choices and reasons."""
        warps = self.lowered.threads // WARP
        cluster = f", clusters of {self.lowered.cluster} blocks" if self.lowered.cluster > 1 else ""
        grid = ", persistent grid" if self.lowered.persistent else ""
        lines = [f"  {reason}" for reason in self.lowered.reasons]
        return "\n".join([f"{self.target.name}, {warps} warps of {WARP}{cluster}{grid}", *lines])

    def run(self, arguments: Mapping[str, Array | int | float | bool]) -> None:
        """Start the kernel on the arguments' device, on the current stream of their library.

        It returns at once. It waits for the kernel if arrays are in host memory (they are copied to the device,
        and what was written is copied back), or if the kernel has checks or prints.
        """
        self.launcher.launch(arguments)

    def again(self, arguments: Mapping[str, Array | int | float | bool]) -> Relaunch | None:
        """See `tiles.runtime.backend.LaunchesAgain`."""
        return self.launcher.again(arguments)

    @cached_property
    def launcher(self) -> Launcher:
        """What starts it on devices."""
        return Launcher(self.kernel, self.lowered, self.target, self._code, _copier(self.target))

    def _code(self, wide: int, tma: int, device: Device) -> bytes:
        return _code_on(device, self.built(wide, tma), self.target)


def _code_on(device: Device, built: Built, target: Target) -> bytes:
    """A variant's machine code, or its PTX where the device executes other machine code."""
    return built.cubin if device.capability in target.runs_on else built.ptx.encode() + b"\0"


@cache
def _copier(target: Target) -> Functions:
    """The kernel that makes aligned copies; all programs of a target share it."""
    lowered = aligned_copies.KERNEL
    return Functions(lowered, lambda wide, tma, device: _code_on(device, build(lowered, target, wide, tma), target))
