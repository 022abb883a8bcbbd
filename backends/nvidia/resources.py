"""What a built kernel uses, read from the machine code, and its instruction mix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from warpwave.backends.nvidia import cubin, sass
from warpwave.backends.nvidia.arch import Target
from warpwave.backends.nvidia.build import Built
from warpwave.backends.nvidia.loops import hot_loop
from warpwave.backends.nvidia.lowered import Lowered

_REGISTER_BYTES = 4


def read_resources(built: Built, lowered: Lowered, target: Target) -> Mapping[str, Any]:
    """Registers, spills, scratch, shared memory, occupancy and instruction mix.

    `registers` is what a thread starts with (with setmaxnreg its warps exchange them later); `spills` counts stores
    of spilled registers, `scratch_bytes` is all local memory of a thread. `mix` counts the kernel's instructions by
    kind, `hot_loop` those of its innermost loop with matrix instructions, else of its longest innermost loop; both
    are None without a disassembler.
    """
    figures = cubin.figures(built.cubin, lowered.entry, target.reserved_shared)
    shared = lowered.shared_bytes + figures.shared_bytes
    instructions, labels = sass.parse(sass.disassemble(built.cubin))
    loop = [instructions[i] for i in hot_loop(instructions, labels)] if instructions else []
    return {
        "registers": figures.registers,
        "spills": _spills(built.log, lowered.entry, instructions, figures.local_bytes),
        "scratch_bytes": figures.local_bytes,
        "shared_bytes": shared,
        "blocks_per_sm": target.blocks_per_sm(figures.registers, lowered.threads, shared),
        "mix": sass.mix(instructions) if instructions else None,
        "hot_loop": sass.mix(loop) if loop else None,
    }


def _spills(log: str, entry: str, instructions: Sequence[sass.Instruction], local_bytes: int) -> int:
    """Spilled registers that are stored: as the assembler says, else as the disassembler marks, else all of memory."""
    own = log.partition(f"Compiling entry function '{entry}'")[2].split("Compiling entry function")[0]
    if match := re.search(r"(\d+) bytes spill stores", own):
        return int(match[1]) // _REGISTER_BYTES
    marked = sum(i.registers for i in instructions if i.spills and i.kind == "STL")
    return marked or local_bytes // _REGISTER_BYTES
