"""Fails when the simulator implements an instruction that no model test covers."""

from __future__ import annotations

import pytest

from warpwave.backends.amd import sim

from . import test_model_alu, test_model_control, test_model_lds, test_model_memory, test_model_mfma, test_model_smem
from ._compile import TARGETS
from .model.valu_float import APPROXIMATE

# Instructions whose tests are written by hand, one by one.
BY_HAND = {
    *test_model_control.CONDITIONS,
    *(hint.split()[0] for hint in test_model_control.HINTS),
    *[
        "s_branch",
        "s_endpgm",
        "s_getpc_b64",
        "s_swappc_b64",
        "s_setpc_b64",
        "s_call_b64",
        "s_getreg_b32",
        "s_setreg_b32",
    ],
    *["s_setreg_imm32_b32", "s_memtime", "s_memrealtime", "s_trap", "s_barrier", "s_waitcnt"],
    *["ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32", "ds_append", "ds_consume"],
    *["ds_read_addtid_b32", "ds_write_addtid_b32"],
    *test_model_lds.TRANSPOSES,
    *(f"global_load_lds_{name}" for name in test_model_lds.DMA_SIZES),
    *(f"s_{kind}_{width}" for kind in ("load", "buffer_load") for width in test_model_smem.WIDTHS),
}


def tested(target: str) -> set[str]:
    names = set(test_model_alu.legal_cases(target)) | set(APPROXIMATE) | BY_HAND
    names |= set(test_model_memory.LEGAL[target])
    names |= {name for name, t in test_model_mfma.LEGAL if t == target}
    return names | (set(test_model_mfma.F8F6F4) if target == "gfx950" else set())


@pytest.mark.parametrize("target", TARGETS)
def test_every_implemented_instruction_has_a_model_test(target):
    assert sorted(set(sim.mnemonics(target)) - tested(target)) == []
