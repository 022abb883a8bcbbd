"""A kernel built for one AMD target, and its execution on a device or on the simulator."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from warpwave.backends.amd.annotate import annotated
from warpwave.backends.amd.arch import WAVE, Target
from warpwave.backends.amd.arguments import ALL_WIDE, Argument, Packer
from warpwave.backends.amd.artifacts import Artifact
from warpwave.backends.amd.build import code_object, compile_to_asm
from warpwave.backends.amd.resources import read_resources
from warpwave.backends.amd.runtime.devices import Device, choose, devices
from warpwave.backends.amd.runtime.launcher import Feedback, Launcher
from warpwave.tiles.errors import CheckFailed
from warpwave.tiles.ir import Kernel, Op, Value
from warpwave.tiles.runtime.backend import Number
from warpwave.tiles.simt.printing import CAPACITY, show_prints

if TYPE_CHECKING:
    from warpwave.backends.amd.model.timing import Timing
    from warpwave.backends.amd.sim import Report
    from warpwave.backends.amd.simulation import Simulation


@dataclass(frozen=True)
class AmdProgram:
    """Built code of one kernel. `simulated`: it runs on the simulator even if there is a device."""

    kernel: Kernel
    target: Target
    artifact: Artifact
    simulated: bool = False

    def __post_init__(self) -> None:
        self.launcher  # noqa: B018  # made here, not at the first launch, which several threads may reach at once

    @property
    def source(self) -> str:
        """The generated HIP C++."""
        return self.artifact.source

    @property
    def asm(self) -> str:
        """The compiler's assembly with the user's lines, for tensors whose rows can be moved 16 bytes at a time."""
        return annotated(self.asm_for(ALL_WIDE))

    def asm_for(self, wide: int) -> str:
        """The assembly of a variant: bit i of `wide` says whether the i-th tensor has wide rows."""
        return compile_to_asm(self.artifact.built_source, self.target.name, (f"-DWIDE={wide}u",))

    @cached_property
    def resources(self) -> Mapping[str, Any]:
        """Registers, spills, scratch, shared memory, waves per SIMD."""
        return self.artifact.resources or read_resources(self.asm_for(ALL_WIDE), self.target, self.artifact.waves)

    def explain(self) -> str:
        """The plan's choices and reasons."""
        arch = self.target.name
        lines = [f"  {reason}" for reason in self.artifact.reasons]
        where = "the simulator" if self.simulated or not any(d.arch == arch for d in devices()) else f"a {arch} device"
        return "\n".join([f"{arch}, {self.artifact.waves} waves of {WAVE}, runs on {where}", *lines])

    # -- execution ------------------------------------------------------------------------------------

    def run(self, arguments: Mapping[str, Argument]) -> None:
        """Execute on the arrays' device, for arrays in host memory on a device of this kind, else simulated."""
        device = self.device(arguments)
        if device is not None:
            self._run_on(device, arguments)
            return
        if not self.simulated:
            _say_once(self.target.name)
        self.simulate(arguments)

    def device(self, arguments: Mapping[str, Argument]) -> Device | None:
        """Where a launch runs; None for the simulator."""
        return None if self.simulated else choose(arguments, self.target.name, self.kernel.name)

    def _run_on(self, device: Device, arguments: Mapping[str, Argument]) -> None:
        geometry = self.packer.geometry(arguments)
        if geometry.blocks:
            reported = self.launcher.launch(device, arguments, geometry)
            if reported.prints is not None:
                show_prints(self._print_ops, len(geometry.sizes), reported.prints)
            self.raise_failed_check(reported.status)

    def again(self, arguments: Mapping[str, Argument]) -> Callable[[Sequence[int], Sequence[Number]], bool] | None:
        """See `tiles.runtime.backend.LaunchesAgain`."""
        device = self.device(arguments)
        return None if device is None else self.launcher.again(device, arguments, self.packer.geometry(arguments))

    def simulate(self, arguments: Mapping[str, Argument], **how: Any) -> Report | None:
        """Execute on the simulator, with its options; its report, or None for an empty grid."""
        geometry = self.packer.geometry(arguments)
        if not geometry.blocks:
            return None
        prints = [np.zeros(CAPACITY, np.uint64)] if self.artifact.prints else []
        for words in prints:
            words[0] = 1  # itself
        status, report = self._simulation.launch(arguments, geometry, prints, **how)
        for words in prints:
            show_prints(self._print_ops, len(geometry.sizes), words)
        self.raise_failed_check(status)
        return report

    def time(self, arguments: Mapping[str, Argument], *, groups: Sequence[int] | None = None, **how: Any) -> Timing:
        """Modelled time of the workgroups that share a compute unit (or of `groups`, by number); runs only these.

        `how` may name a `chip`, a `clock` in GHz or a `dtype` whose matrix load sets it, and a `memory`: see
        `model.timing.Recorded.timed`.
        """
        from warpwave.backends.amd.model.timing import record_with

        geometry = self.packer.geometry(arguments)

        def run(chosen: Sequence[int]) -> Report | None:
            return self.simulate(arguments, record=chosen)

        return record_with(run, self._simulation.program(geometry.wide), groups).timed(**how)

    @cached_property
    def packer(self) -> Packer:
        """What turns arguments into the kernel's parameters."""
        return Packer(self.kernel, self.target, bool(self.artifact.prints))

    @property
    def _threads(self) -> int:
        return WAVE * self.artifact.waves

    @cached_property
    def launcher(self) -> Launcher:
        """What starts it on devices."""
        arch, artifact = self.target.name, self.artifact
        feedback = Feedback(bool(artifact.checks), CAPACITY if artifact.prints else 0)
        return Launcher(self.kernel, arch, self._threads, self.packer, self._code_for, feedback)

    def _code_for(self, wide: int) -> bytes:
        return code_object(self.asm_for(wide), self.target.name)

    @cached_property
    def _simulation(self) -> Simulation:
        from warpwave.backends.amd.simulation import Simulation  # the simulator is large, a device does without

        return Simulation(self.kernel, self.target.name, self._threads, self.asm_for)

    @cached_property
    def _print_ops(self) -> list[Op]:
        return [
            Op("print", [Value(t) for t in p.tiles], {"message": p.message}, [], [], None) for p in self.artifact.prints
        ]

    def raise_failed_check(self, number: int) -> None:
        """CheckFailed for the number that a launch reported; 0 for none."""
        if number:
            check = self.artifact.checks[number - 1]
            raise CheckFailed(check.message, loc=check.loc)


@cache
def _say_once(arch: str) -> None:
    """Nobody shall take a simulation for a measurement: on the log `warpwave`, which reaches stderr by default."""
    logging.getLogger("warpwave").warning("no %s device here: amd:%s runs on the simulator", arch, arch)
