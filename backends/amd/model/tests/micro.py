"""Micro-kernels in assembly, recorded once: bodies whose time in clocks has a closed form."""

from __future__ import annotations

from warpwave.backends.amd import sim
from warpwave.backends.amd.model.timing import Recorded, Timing, record

REGISTERS = 96  # v0..v95 are defined before the body; v0 is the work-item's number

FRAME = """	.amdgcn_target "amdgcn-amd-amdhsa--{target}"
	.text
	.globl k
k:
{body}
	s_endpgm
	.rodata
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 128
		.amdhsa_next_free_sgpr 48
		.amdhsa_accum_offset 128
		.amdhsa_group_segment_fixed_size 32768
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
	.end_amdhsa_kernel
"""


def program(body: str, target: str = "gfx950") -> sim.Program:
    """A kernel with registers and 8 KB of LDS defined, then `body` between two waits for everything."""
    define = [f"v_mov_b32_e32 v{r}, 0" for r in range(1, REGISTERS)]
    define += ["s_mov_b32 s20, 0", "s_mov_b32 s21, 0", "v_lshlrev_b32_e32 v95, 4, v0", "ds_write_b128 v95, v[4:7]"]
    define += ["v_lshlrev_b32_e32 v94, 2, v0", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_nop 15"]
    lines = [*define, *body.strip().splitlines()]
    return sim.load(FRAME.format(target=target, body="\n".join(f"\t{line.strip()}" for line in lines)), target)


def recorded(body: str, target: str = "gfx950", waves: int = 1) -> Recorded:
    """One workgroup of `waves` waves that ran the body; the checks that foreign timing tests trip are off."""
    return record(program(body, target), "k", (1,), (64 * waves,), [], relax=["lds_race", "hazards"])


def timed(body: str, target: str = "gfx950", waves: int = 1, **rates: object) -> Timing:
    """The same, replayed at the chip's peak clock."""
    return recorded(body, target, waves).timed(**rates)


def span(timing: Timing, mnemonic: str, wave: int = 0) -> int:
    """Clocks between the issue of the first and of the last instruction of that name."""
    names = [timing.recorded.facts[i]["name"] for i in timing.recorded.steps(wave)["inst"]]
    at = [int(t) for name, t in zip(names, timing.issue(wave), strict=True) if name == mnemonic]
    return at[-1] - at[0]


def instruction_times(timing: Timing, mnemonic: str, wave: int = 0) -> list[int]:
    """When the instructions of that name were issued."""
    names = [timing.recorded.facts[i]["name"] for i in timing.recorded.steps(wave)["inst"]]
    return [int(t) for name, t in zip(names, timing.issue(wave), strict=True) if name == mnemonic]
