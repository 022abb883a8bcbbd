"""The resource gate: kernels that spill or need more shared memory than a block can have are refused, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwave.backends.nvidia.arch import Target
from warpwave.tiles.errors import ResourceError
from warpwave.tiles.ir import Kernel
from warpwave.tiles.simt.usage import registers_in_use, table

# What a search for a configuration that fits may vary (see tiles.runtime.fitting).
ALTERNATIVES: Mapping[str, tuple[int, ...]] = {"warps": (8, 4), "stages": (3, 2, 1)}
HINT = "use smaller tiles, or other options={'warps': ..., 'stages': ...}"


def refusal(
    kernel: Kernel, target: Target, options: Mapping[str, Any], used: Mapping[str, Any], threads: int
) -> ResourceError | None:
    """The error for a kernel that uses too much; None if it fits."""
    if used["shared_bytes"] > target.shared_per_block:
        text = f"needs {used['shared_bytes']} bytes of shared memory a block, {target.full_name} has "
        return ResourceError(f"kernel {kernel.name} {text}{target.shared_per_block}", loc=kernel.loc, hint=HINT)
    if not used["spills"] and not used["scratch_bytes"]:
        return None
    what = f"{used['spills']} registers spill to {used['scratch_bytes']} bytes of local memory a thread"
    return ResourceError(
        f"kernel {kernel.name} does not fit the registers of {target.full_name}: {what}; {threads} threads have "
        f"{target.registers_of_a_thread(threads)} each\n{_tiles(kernel, target, options)}",
        loc=kernel.loc,
        hint=HINT,
    )


def _tiles(kernel: Kernel, target: Target, options: Mapping[str, Any]) -> str:
    from warpwave.backends.nvidia.lower.lower import emit  # needed for kernels that do not fit only

    uses, op = registers_in_use(emit(kernel, target, dict(options)))
    where = f" (line {op.loc.line})" if op is not None and op.loc is not None else ""
    return f"  tiles alive where most are{where}, registers a thread:\n{table(uses, 'registers')}"
