"""What a built kernel uses, read from what the assembler said about it, and its instruction mix from the SASS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from warpwave.backends.nvidia import sass
from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.build import Built
from warpwave.backends.nvidia.lowered import Lowered
from warpwave.tiles.errors import InternalError, ResourceError
from warpwave.tiles.ir import Kernel

_FIGURES = {
    "registers": r"Used (\d+) registers",
    "barriers": r"used (\d+) barriers",
    "scratch_bytes": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "static_shared": r"(\d+) bytes smem",
}
_REGISTER_BYTES = 4


def read_resources(built: Built, lowered: Lowered, target: Target) -> Mapping[str, Any]:
    """Registers, spills, scratch, shared memory, occupancy and instruction mix.

    `registers` is what a thread starts with (with setmaxnreg its warps exchange them later); `spills` counts
    registers stored to memory, `scratch_bytes` is all local memory of a thread. `mix` counts the kernel's
    instructions by kind, `hot_loop` those of its innermost loop with most matrix instructions; both are None
    without a disassembler.
    """
    figures = _figures(built.log, lowered.entry)
    shared = lowered.shared_bytes + figures["static_shared"]
    instructions, labels = sass.parse(sass.disassemble(built.cubin))
    loop = sass.hot_loop(instructions, labels)
    return {
        "registers": figures["registers"],
        "spills": figures["spill_stores"] // _REGISTER_BYTES,
        "scratch_bytes": figures["scratch_bytes"],
        "shared_bytes": shared,
        "blocks_per_sm": target.blocks_per_sm(figures["registers"], lowered.threads, shared),
        "barriers": figures["barriers"],
        "mix": sass.mix(instructions) if instructions else None,
        "hot_loop": sass.mix(instructions[loop.start : loop.stop]) if loop else None,
    }


def _figures(log: str, entry: str) -> dict[str, int]:
    """ptxas's figures for one kernel; what it does not mention is 0."""
    _, found, after = log.partition(f"Compiling entry function '{entry}'")
    if not found:
        raise InternalError(f"the assembler said nothing about {entry}:\n{log[:2000]}")
    own = after.split("Compiling entry function")[0]
    return {name: int(match[1]) if (match := re.search(p, own)) else 0 for name, p in _FIGURES.items()}


def check(kernel: Kernel, target: Target, used: Mapping[str, Any], threads: int) -> None:
    """ResourceError if the kernel does not fit, or if the compiler spilled: slow, and never what a schedule assumes."""
    if used["shared_bytes"] > target.shared_per_block:
        raise ResourceError(
            f"{kernel.name} uses {used['shared_bytes']} bytes of shared memory a block, {target.full_name} has "
            f"{target.shared_per_block}",
            loc=kernel.loc,
            hint="use smaller tiles or fewer stages",
        )
    if used["spills"] or used["scratch_bytes"]:
        raise ResourceError(
            f"{kernel.name} does not fit the registers of {target.full_name}: {used['spills']} spills, "
            f"{used['scratch_bytes']} bytes of local memory a thread "
            f"({used['registers']} registers, {threads} threads)",
            loc=kernel.loc,
            hint="use smaller tiles, or more warps",
        )
