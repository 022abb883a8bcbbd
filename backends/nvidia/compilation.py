"""From IR to a program: from the disk cache, else by lowering and building, then through the resource gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwave.backends.nvidia import artifacts
from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.gate import refusal
from warpwave.backends.nvidia.program import NvidiaProgram
from warpwave.tiles.ir import Kernel


def compiled(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> NvidiaProgram:
    """The built kernel; ResourceError if it does not fit, unless the option `allow_spills` is set."""
    choices = {name: value for name, value in options.items() if name != "allow_spills"}
    path = artifacts.place(kernel, target.name, choices)
    found = artifacts.load(path)
    if found is not None:
        program = NvidiaProgram(kernel, target, *found)
    else:
        from warpwave.backends.nvidia.lower.lower import lower  # a hit in the cache does without

        program = NvidiaProgram(kernel, target, lower(kernel, target, choices))
    if not options.get("allow_spills"):
        if program.kept_resources is None:
            artifacts.save(path, program.lowered, program.resources)
        error = refusal(kernel, target, choices, program.resources, program.lowered.threads)
        if error is not None:
            raise error
    elif found is None:
        artifacts.save(path, program.lowered, None)
    return program
