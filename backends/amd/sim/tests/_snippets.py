"""Short kernels written by hand, and what running one must lead to."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._asm import Kernel

# s[4:5], s[6:7]: the two buffers; v0: lane * 4 (wave-local), v1: work-item * 4.
START = [
    "s_load_dwordx4 s[4:7], s[0:1], 0x0",
    "v_lshlrev_b32_e32 v1, 2, v0",
    "v_and_b32_e32 v0, 0xff, v1",
    "v_lshrrev_b32_e32 v2, 6, v1",
    "s_nop 0",
    "v_readfirstlane_b32 s3, v2",
    "s_lshr_b32 s3, s3, 2",
    "s_waitcnt lgkmcnt(0)",
]


def run(body: list[str], target: str, *, waves: int = 1, grid=(1, 1, 1), start: bool = True, **options):
    """Run with a source of 8192 known bytes and a zero result of as many; the result."""
    launch = {k: options.pop(k) for k in ("seed", "relax", "max_instructions", "dynamic_lds") if k in options}
    kernel = Kernel([*(START if start else []), *body], target, buffers=2, **options)
    source, out = (np.arange(2048, dtype=np.uint32) * 0x01000193), np.zeros(2048, np.uint32)
    program = sim.load(kernel.text(), target=target)
    program.launch("k", grid=grid, block=(64 * waves, 1, 1), args=[source, out], **launch)
    return out


def refused(kind: str, body: list[str], target: str, **options) -> sim.SimError:
    """The run must stop with this kind of violation, and name an instruction."""
    with pytest.raises(sim.SimError) as caught:
        run(body, target, **options)
    assert caught.value.kind == kind, str(caught.value)
    assert caught.value.instruction
    return caught.value
