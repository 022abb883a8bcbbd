"""What a built kernel uses, read from its assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.assembly import mix, parse

_METADATA = {
    "vgprs": r"\.vgpr_count:\s+(\d+)",
    "agprs": r"\.agpr_count:\s+(\d+)",
    "sgprs": r"\.sgpr_count:\s+(\d+)",
    "vgpr_spills": r"\.vgpr_spill_count:\s+(\d+)",
    "sgpr_spills": r"\.sgpr_spill_count:\s+(\d+)",
    "scratch_bytes": r"\.private_segment_fixed_size:\s+(\d+)",
    "shared_bytes": r"\.group_segment_fixed_size:\s+(\d+)",
}


def read_resources(asm: str, target: Target, waves: int) -> Mapping[str, Any]:
    """Registers, spills, scratch, shared memory, occupancy and the hot loop of the one kernel in `asm`.

    `vgprs` counts architectural registers only; `waves_per_simd` follows from all registers and from how many
    workgroups of `waves` fit the LDS. `spills` are of vector registers, to scratch memory; `sgpr_spills` go to
    lanes of vector registers. `hot_loop` counts, by class, the instructions of the innermost loop with most
    matrix instructions: those of every iteration, and those that some iterations skip. It is {} without loops.
    """
    found = {name: int(match.group(1)) for name, p in _METADATA.items() if (match := re.search(p, asm))}
    total = found["vgprs"]
    agprs = found.get("agprs", 0)
    return {
        "vgprs": total - agprs,
        "agprs": agprs,
        "sgprs": found["sgprs"],
        "spills": found["vgpr_spills"],
        "sgpr_spills": found["sgpr_spills"],
        "scratch_bytes": found["scratch_bytes"],
        "shared_bytes": found["shared_bytes"],
        "waves_per_simd": occupancy(target, total, found["shared_bytes"], waves),
        "hot_loop": hot_loop(asm),
    }


def fits(used: Mapping[str, Any]) -> bool:
    """Whether nothing goes to scratch memory and a workgroup's waves have room."""
    return not used["spills"] and not used["scratch_bytes"] and used["waves_per_simd"] >= 1


def shortfall(used: Mapping[str, Any], waves: int) -> str:
    """What does not fit, where `fits` says so."""
    if used["spills"] or used["scratch_bytes"]:
        return f"{used['spills']} registers spill to {used['scratch_bytes']} bytes of scratch a lane"
    return f"{waves} waves of {used['vgprs'] + used['agprs']} registers do not fit one CU"


def occupancy(target: Target, registers: int, shared_bytes: int, waves: int) -> int:
    """Waves that one SIMD holds: as registers allow, and as whole workgroups of `waves` fit the CU."""
    by_registers = target.waves_per_simd(registers)
    groups = by_registers * target.simds_per_cu // waves
    if shared_bytes:
        groups = min(groups, target.groups_per_cu(shared_bytes))
    return min(by_registers, -(-groups * waves // target.simds_per_cu))


def hot_loop(asm: str) -> dict[str, dict[str, int]]:
    """The instruction mix of the innermost hot loop."""
    flow = parse(asm)
    loop = flow.hot_loop
    if loop is None:
        return {}
    return {"each_iteration": mix(flow.every_iteration(loop)), "conditional": mix(flow.conditional(loop))}
