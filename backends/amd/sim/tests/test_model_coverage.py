"""Fails when the simulator implements an instruction that no model test covers."""

from __future__ import annotations

from warpwave.backends.amd.sim import _sim

from . import test_model_alu, test_model_control, test_model_lds, test_model_memory, test_model_mfma, test_model_smem
from ._compile import TARGETS
from .model.valu_float import APPROXIMATE

HINTS = {hint.split()[0] for hint in test_model_control.HINTS}
# Instructions whose tests are written by hand, one by one.
BY_HAND = {
    *test_model_control.CONDITIONS,
    *("s_branch", "s_endpgm", "s_getpc_b64", "s_swappc_b64", "s_setpc_b64", "s_call_b64", "s_trap"),
    *("s_getreg_b32", "s_setreg_b32", "s_setreg_imm32_b32", "s_memtime", "s_memrealtime"),
    *("s_store_dword", "s_store_dwordx2", "s_store_dwordx4", "s_atomic_inc", "s_atomic_dec"),
    *("ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32"),
    *(f"s_set_gpr_idx_{what}" for what in ("on", "off", "idx", "mode")),  # these two: test_vector_modes.py
    "s_setvskip",
    *test_model_lds.TRANSPOSES,
    *(f"global_load_lds_{name}" for name in test_model_lds.DMA_SIZES),
    *(f"s_{kind}_{width}" for kind in ("load", "buffer_load") for width in test_model_smem.WIDTHS),
}


def covered(target: str) -> set[str]:
    names = set(test_model_alu.legal_cases(target)) | set(APPROXIMATE) | BY_HAND
    names |= set(test_model_memory.LEGAL[target])
    names |= {name for name, t in test_model_mfma.LEGAL if t == target}
    return names | (set(test_model_mfma.F8F6F4) if target == "gfx950" else set())


KNOWN = set().union(*(covered(target) for target in TARGETS))


def test_every_implemented_instruction_has_a_model_test():
    assert sorted(set(_sim.mnemonics()) - KNOWN - HINTS) == []


def test_every_modelled_instruction_is_implemented():
    assert sorted(KNOWN - set(_sim.mnemonics())) == []
