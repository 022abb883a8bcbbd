"""Branches, calls, hardware registers and the instructions that only order or wait."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._compile import TARGETS
from ._legal import legal
from ._snippets import run

pytestmark = pytest.mark.parametrize("target", TARGETS)

# branch: (instructions that make the condition true, instructions that make it false)
CONDITIONS = {
    "s_cbranch_scc0": (["s_cmp_eq_u32 s2, -1"], ["s_cmp_eq_u32 s2, s2"]),
    "s_cbranch_scc1": (["s_cmp_eq_u32 s2, s2"], ["s_cmp_eq_u32 s2, -1"]),
    "s_cbranch_vccz": (["s_mov_b64 vcc, 0"], ["s_mov_b64 vcc, 4"]),
    "s_cbranch_vccnz": (["s_mov_b64 vcc, 4"], ["s_mov_b64 vcc, 0"]),
    "s_cbranch_execz": (["s_mov_b64 exec, 0"], ["s_mov_b64 exec, 8"]),
    "s_cbranch_execnz": (["s_mov_b64 exec, 8"], ["s_mov_b64 exec, 0"]),
}
STORE = ["s_mov_b64 exec, -1", "v_mov_b32_e32 v5, s20", "global_store_dword v1, v5, s[6:7]"]


@pytest.mark.parametrize("branch", CONDITIONS)
@pytest.mark.parametrize("taken", [True, False])
def test_conditional_branch(target, branch, taken):
    body = ["s_mov_b32 s20, 1", *CONDITIONS[branch][0 if taken else 1], "s_nop 4", f"{branch} .Lover"]
    got = run([*body, "s_mov_b32 s20, 2", ".Lover:", *STORE], target)
    assert (got[:64] == (1 if taken else 2)).all()


def test_backward_branch_and_unconditional_branch(target):
    body = ["s_mov_b32 s20, 0", ".Lloop:", "s_add_u32 s20, s20, 3", "s_cmp_lt_u32 s20, 30", "s_cbranch_scc1 .Lloop"]
    got = run([*body, "s_branch .Lend", "s_mov_b32 s20, 7", ".Lend:", *STORE], target)
    assert (got[:64] == 30).all()


def test_call_and_return(target):
    """As clang calls a function: pc-relative halves of its address, then s_swappc."""
    body = ["s_mov_b32 s20, 1", "s_getpc_b64 s[30:31]", "s_add_u32 s30, s30, .Lfunction@rel32@lo+4"]
    body += ["s_addc_u32 s31, s31, .Lfunction@rel32@hi+12", "s_swappc_b64 s[32:33], s[30:31]"]
    body += ["s_add_u32 s20, s20, 100", *STORE, "s_endpgm", ".Lfunction:", "s_add_u32 s20, s20, 10"]
    got = run([*body, "s_setpc_b64 s[32:33]"], target)
    assert (got[:64] == 111).all()


def test_call_instruction(target):
    body = ["s_mov_b32 s20, 1", "s_call_b64 s[32:33], .Lfunction", "s_add_u32 s20, s20, 100", *STORE, "s_endpgm"]
    got = run([*body, ".Lfunction:", "s_add_u32 s20, s20, 10", "s_setpc_b64 s[32:33]"], target)
    assert (got[:64] == 111).all()


@pytest.mark.parametrize(("offset", "size"), [(0, 32), (4, 4), (0, 4), (9, 1)])
def test_mode_register_fields(target, offset, size):
    body = [f"s_getreg_b32 s20, hwreg(HW_REG_MODE, {offset}, {size})"]
    assert (run([*body, *STORE], target)[:64] == (0x3F0 >> offset) & ((1 << size) - 1)).all()


def test_setreg_changes_only_its_field(target):
    body = ["s_movk_i32 s21, 0x5", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 3), s21", "s_nop 1"]
    body += ["s_getreg_b32 s20, hwreg(HW_REG_MODE)", "s_nop 1", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0"]
    assert (run([*body, *STORE], target)[:64] == 0x3F5).all()


def test_clocks_do_not_run_backwards(target):
    for name in ("s_memtime", "s_memrealtime"):
        body = [f"{name} s[22:23]", "s_waitcnt lgkmcnt(0)", "s_sleep 2", f"{name} s[24:25]", "s_waitcnt lgkmcnt(0)"]
        body += ["s_sub_u32 s20, s24, s22"]
        assert (run([*body, *STORE], target)[:64].view(np.int32) >= 0).all()


HINTS = ["s_nop 0", "s_sleep 1", "s_setprio 2", "s_setprio 0", "s_waitcnt vmcnt(0) lgkmcnt(0) expcnt(0)", "s_barrier",
         "buffer_inv sc1", "buffer_inv sc0 sc1", "buffer_wbl2 sc1", "s_icache_inv", "s_dcache_inv", "s_dcache_wb",
         "s_dcache_inv_vol", "s_dcache_wb_vol", "v_nop", "ds_nop", "s_code_end", "s_sethalt 0", "s_incperflevel 1",
         "s_decperflevel 1", "s_inst_prefetch 1", "s_ttracedata", "s_wakeup", "s_waitcnt_depctr 0"]  # fmt: skip


@pytest.mark.parametrize("hint", HINTS)
def test_instructions_that_only_order_or_wait(target, hint):
    if not legal([hint], target)[0]:
        with pytest.raises((sim.LoadError, sim.SimError)):
            run([hint], target)
        return
    got = run(["s_mov_b32 s20, 9", hint, "s_waitcnt vmcnt(0)", *STORE], target)
    assert (got[:64] == 9).all()


def test_a_trap_stops_the_run(target):
    with pytest.raises(sim.SimError) as caught:
        run(["s_trap 2"], target)
    assert caught.value.kind == "trap"


def test_movrel_and_moves_by_m0(target):
    """M0 as a plain register."""
    assert (run(["s_mov_b32 m0, 0x1234", "s_mov_b32 s20, m0", *STORE], target)[:64] == 0x1234).all()


@pytest.mark.parametrize(("width", "count"), [("dword", 1), ("dwordx2", 2), ("dwordx4", 4)])
def test_scalar_store(target, width, count):
    registers = f"s[20:{19 + count}]" if count > 1 else "s20"
    body = [f"s_mov_b32 s{20 + i}, {100 + i}" for i in range(count)]
    got = run([*body, f"s_store_{width} {registers}, s[6:7], 0x10", "s_waitcnt lgkmcnt(0)", "s_dcache_wb"], target)
    assert got[4 : 4 + count].tolist() == [100 + i for i in range(count)]
    assert got[4 + count] == 0


@pytest.mark.parametrize(("name", "want"), [("s_atomic_inc", 3), ("s_atomic_dec", 7)])
def test_scalar_atomic(target, name, want):
    """inc wraps to 0 above the data; dec wraps to the data at 0: one wave after the other."""
    got = run(["s_mov_b32 s20, 9", f"{name} s20, s[6:7], 0x0", "s_waitcnt lgkmcnt(0)"], target, grid=(3, 1, 1))
    assert got[0] == want
