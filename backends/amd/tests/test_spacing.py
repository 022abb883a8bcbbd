"""Wait states between blocks: every rule of the hazard table across a branch, and the shortest of several ways."""

from __future__ import annotations

import re

import numpy as np
import pytest

import warpwave as ww
from warpwave.backends.amd.arch import TARGETS
from warpwave.backends.amd.sim.tests.test_spacing_rules import M4, READ, RULES
from warpwave.backends.amd.spacing import effects_of, registers_of, spaced

# Of these the compiler's text has none, or a branch alone is enough: f64 products, v_cmpx, partial writes and others.
OTHERS = re.compile(r"dgemm|exec|sdwa|fp8 half|fp4|m0|setreg|dot|smfmac|readfirstlane$|valu to readlane|trans")
DIAMOND = "f:\n\t{first}\n\ts_cbranch_scc1 .A\n{longer}\ts_branch .B\n.A:\n\ts_mov_b64 s[2:3], -1\n.B:\n\t{second}\n\ts_endpgm\n"


def nops(asm):
    """States of all s_nop."""
    return sum(int(count) + 1 for count in re.findall(r"s_nop (\d+)", asm))


def rules():
    """Those on instructions that a target has: name, target, first and second instruction, states."""
    for index, target in enumerate(TARGETS.values()):
        have = {m.mnemonic for m in target.mfma}
        for why, first, second, *states in RULES:
            matrix = {text.split()[0] for text in (first, second) if text.startswith("v_mfma")}
            if matrix <= have and not OTHERS.search(why):
                yield pytest.param(target, first, second, states[index], id=f"{why}-{target.name}")


@pytest.mark.parametrize(("target", "first", "second", "states"), list(rules()))
def test_across_a_branch_every_rule_has_the_states_that_the_simulator_asks_for(target, first, second, states):
    asm = f"f:\n\t{first}\n\ts_cbranch_scc1 .A\n\ts_nop 15\n\ts_nop 15\n.A:\n\t{second}\n\ts_endpgm\n"
    assert nops(spaced(asm, target)) - 32 == max(0, states - 1)


@pytest.mark.parametrize("longer", ["\ts_mov_b64 s[2:3], 0\n", "\ts_mov_b64 s[2:3], 0\n" * 9])
def test_at_a_join_the_shortest_way_counts(longer):
    asm = DIAMOND.format(first=M4, second=READ, longer=longer)
    assert nops(spaced(asm, TARGETS["gfx942"])) == 7 - 2
    enough = DIAMOND.format(first=M4, second="s_nop 4\n\t" + READ, longer=longer)
    assert spaced(enough, TARGETS["gfx942"]) == enough


def test_what_was_put_in_before_one_use_counts_for_the_next():
    asm = DIAMOND.format(first=M4, second=READ + "\n\tv_mul_f32_e32 v31, v9, v10", longer="")
    assert nops(spaced(asm, TARGETS["gfx950"])) == 8 - 2


def test_a_result_at_the_end_of_a_loop_is_used_at_its_beginning():
    asm = f"f:\n.L:\n\t{READ}\n\t{M4}\n\ts_cbranch_scc1 .L\n\ts_endpgm\n"
    assert "\ts_nop 5\n\tv_add_f32_e32" in spaced(asm, TARGETS["gfx942"])


def test_within_a_block_the_compiler_is_trusted():
    asm = f"f:\n\t{M4}\n\t{READ}\n\ts_endpgm\n"
    assert spaced(asm, TARGETS["gfx942"]) == asm


def test_many_states_take_several_nops():
    first = "v_mfma_f32_32x32x2_f32 v[8:23], v40, v42, 0"
    text = spaced(f"f:\n\t{first}\n\ts_branch .A\n.A:\n\t{READ}\n\ts_endpgm\n", TARGETS["gfx942"])
    assert "\ts_nop 15\n\ts_nop 0\n\tv_add" in text


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("v_div_scale_f32 v1, vcc, v2, v3, s4", "v1, vcc", "v2, v3, s4"),
        ("v_addc_co_u32_e64 v1, s[0:1], v2, v3, s[2:3]", "v1, s[0:1]", "v2, v3, s[2:3]"),
        ("v_cmp_gt_u32_e64 s[2:3], 7, v10", "s[2:3]", "v10"),
        ("v_permlane32_swap_b32 v1, v2", "v1, v2", "v1, v2"),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "v1", "v1, v2"),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", "v1", "v2"),
        ("buffer_load_dwordx2 v[4:5], v1, s[8:11], 0 offen", "", "v1, s[8:11]"),
        ("buffer_load_dwordx4 v1, s[8:11], s3 offen lds", "", "v1, s[8:11], s3"),
        ("ds_bpermute_b32 v1, v2, v3", "", "v2, v3"),
        ("ds_write_b64 v1, v[2:3] offset:8", "", "v1, v[2:3]"),
        ("v_fma_f32 v0, -v1, |v2|, s3", "v0", "v1, v2, s3"),
        ("v_readlane_b32 vcc_hi, v41, 3", "s107", "v41"),
        ("v_mul_f32_e32 v1, vcc_lo, v2", "v1", "s106, v2"),
    ],
)
def test_registers_of_instructions(text, writes, reads):
    effects = effects_of(*text.split(" ", 1))
    assert (effects.writes, effects.reads) == (registers_of(writes), registers_of(reads))


@ww.kernel
def product_read_at_a_join(out: ww.gl):
    m = ww.grid(1)
    product = ww.mma_AB(ww.zeros(ww.rt[ww.f32, 7, 16]), ww.full(ww.rt[ww.bf16, 7, 3], 1.0),
                        ww.full(ww.rt[ww.bf16, 3, 16], 1.0))  # fmt: skip
    for _ in ww.range(m + 1):
        buffer = ww.shared(ww.st[ww.f32, 7, 16])
        ww.store(buffer, None, ww.relu(product))
    ww.store(out, (m, 0), ww.cast(product, ww.i32, rounding="rtp"))


def test_a_product_that_two_ways_lead_to_is_complete_before_it_is_read():
    """LLVM counted the longer way; the simulator, which checks wait states, refused the kernel."""
    out = np.zeros((7, 16), np.int32)
    product_read_at_a_join.compile(out, target="amd:gfx942:sim").run(out)
    assert (out == 3).all()
