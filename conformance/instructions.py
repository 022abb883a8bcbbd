"""One AMD instruction on given bits, run by the simulator: what a lane computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LANES = 64
# Sources are v2, v3, v4; the result is v8, which is 0 before. MODE as compiled kernels have it: subnormals are kept.
_TEXT = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"
\t.text
\t.globl probe
\t.p2align 8
\t.type probe,@function
probe:
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
\tv_lshlrev_b32_e32 v1, 4, v0
\tv_lshlrev_b32_e32 v9, 2, v0
\tv_mov_b32_e32 v8, 0
\ts_waitcnt lgkmcnt(0)
\tglobal_load_dwordx4 v[2:5], v1, s[4:5]
\ts_waitcnt vmcnt(0)
\t{instruction}
\ts_nop 15
\tglobal_store_dword v9, v8, s[6:7]
\ts_endpgm
\t.size probe, .-probe
\t.section .rodata,"a",@progbits
\t.p2align 6
\t.amdhsa_kernel probe
\t\t.amdhsa_kernarg_size 16
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_next_free_vgpr 12
\t\t.amdhsa_next_free_sgpr 16
\t\t.amdhsa_accum_offset 12
\t\t.amdhsa_float_denorm_mode_32 3
\t\t.amdhsa_float_denorm_mode_16_64 3
\t.end_amdhsa_kernel
"""


def run_instruction(target: str, instruction: str, operands: list[list[int]]) -> list[int]:
    """The result bits for each tuple of operand bits; `instruction` reads v2, v3, v4 and writes v8."""
    from warpwave.backends.amd import sim  # a device's own checks do without the simulator

    given = np.zeros((LANES, 4), np.uint32)
    for lane, values in enumerate(operands):
        given[lane, : len(values)] = values
    result = np.zeros(LANES, np.uint32)
    program = sim.load(_TEXT.format(target=target, instruction=instruction), target=target)
    program.launch("probe", grid=(1, 1, 1), block=(LANES, 1, 1), args=[given, result])
    return [int(x) for x in result[: len(operands)]]
