"""The resource gate: kernels that spill, overflow the LDS or cannot hold their waves are refused, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwave.backends.amd.arch import Target
from warpwave.backends.amd.lower.context import AmdLowering
from warpwave.backends.amd.resources import shortfall
from warpwave.backends.amd.usage import registers_in_use, shared_in_use, table
from warpwave.tiles.errors import ResourceError
from warpwave.tiles.ir import Kernel

HINT = "use smaller tiles, or other options={'waves': ..., 'stages': ...}"


def refusal(kernel: Kernel, target: Target, options: Mapping[str, Any], used: Mapping[str, Any]) -> ResourceError:
    """The error for a kernel that uses too much (see `resources.fits`)."""
    from warpwave.backends.amd.lower.lower import emit  # which imports `check_shared`

    lw = emit(kernel, target, dict(options))
    uses, loc = registers_in_use(lw)
    what = shortfall(used, lw.plan.all_waves)
    available = registers_of_a_lane(target, lw.plan.all_waves)
    where = f" (line {loc.line})" if loc else ""
    return ResourceError(
        f"kernel {kernel.name} does not fit the registers of {target.name}: {what}; "
        f"with {lw.plan.all_waves} waves a lane has {available}\n"
        f"  tiles alive where most are{where}, registers a lane:\n{table(uses, 'registers')}",
        loc=kernel.loc,
        hint=HINT,
    )


def registers_of_a_lane(target: Target, waves: int) -> int:
    """Registers that each lane has if a workgroup's waves share the SIMDs of one CU."""
    each = max(1, -(-waves // target.simds_per_cu))
    share = target.registers_per_simd_lane // each // target.register_granule * target.register_granule
    return min(share, target.max_vgprs + target.max_agprs)


def check_shared(lw: AmdLowering, total: int) -> None:
    """ResourceError if the tiles need more LDS than there is."""
    if total <= lw.target.lds_bytes:
        return
    raise ResourceError(
        f"kernel {lw.kernel.name} needs {total} bytes of shared memory, {lw.target.name} has {lw.target.lds_bytes}\n"
        f"{table(shared_in_use(lw), 'bytes')}",
        loc=lw.kernel.loc,
        hint=HINT,
    )
