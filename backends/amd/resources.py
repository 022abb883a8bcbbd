"""What a built kernel uses, read from its assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from warpwave.backends.amd.arch import Target

_METADATA = {
    "vgprs": r"\.vgpr_count:\s+(\d+)",
    "agprs": r"\.agpr_count:\s+(\d+)",
    "sgprs": r"\.sgpr_count:\s+(\d+)",
    "vgpr_spills": r"\.vgpr_spill_count:\s+(\d+)",
    "sgpr_spills": r"\.sgpr_spill_count:\s+(\d+)",
    "scratch_bytes": r"\.private_segment_fixed_size:\s+(\d+)",
    "shared_bytes": r"\.group_segment_fixed_size:\s+(\d+)",
}


def read_resources(asm: str, target: Target) -> Mapping[str, Any]:
    """Registers, spills, scratch, shared memory and occupancy of the one kernel in `asm`.

    `vgprs` counts architectural registers only; `waves_per_simd` follows from all registers. `spills` are of
    vector registers, to scratch memory; `sgpr_spills` go to lanes of vector registers.
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
        "waves_per_simd": target.waves_per_simd(total),
    }
