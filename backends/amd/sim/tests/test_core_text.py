"""The assembly reader: sections, symbols, debug lines, expressions, disassembly addresses, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._asm import Kernel
from ._snippets import START

STORE = "global_store_dword v1, v5, s[6:7]"


def _launch(text: str, target: str = "gfx950") -> np.ndarray:
    source, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    sim.load(text, target=target).launch("k", (1,), (64,), [source, out])
    return out


def _text(body: list[str], **options) -> str:
    return Kernel([*START, *body], "gfx950", buffers=2, **options).text()


def test_constant_data_through_a_relative_symbol():
    body = ["s_getpc_b64 s[8:9]", "s_add_u32 s8, s8, table@rel32@lo+4", "s_addc_u32 s9, s9, table@rel32@hi+12"]
    body += ["v_and_b32_e32 v2, 12, v1", "global_load_dword v5, v2, s[8:9]", "s_waitcnt vmcnt(0)", STORE]
    data = '\t.section .rodata.table,"a",@progbits\ntable:\n'
    data += "\t.long 7\n\t.long 0x10\n\t.short 1, 2\n\t.byte 3,4,5,6\n\t.size table, 16\n"
    want = [7, 16, 0x20001, 0x6050403]
    np.testing.assert_array_equal(_launch(_text(body) + data), np.resize(want, 64))


def test_writable_data_keeps_its_contents_between_launches():
    body = ["s_getpc_b64 s[8:9]", "s_add_u32 s8, s8, cell@rel32@lo+4", "s_addc_u32 s9, s9, cell@rel32@hi+12"]
    body += ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 1", "s_mov_b64 exec, 1"]
    body += ["global_atomic_add v5, v2, v3, s[8:9] sc0", "s_waitcnt vmcnt(0)", "global_store_dword v2, v5, s[6:7]"]
    data = '\t.section .bss,"aw",@nobits\ncell:\n\t.zero 4\n'
    program = sim.load(_text(body) + data, target="gfx950")
    for turn in range(3):
        out = np.zeros(64, np.uint32)
        program.launch("k", (1,), (64,), [out, out])
        assert out[0] == turn


def test_calls_and_returns():
    body = ["s_getpc_b64 s[8:9]", "s_add_u32 s8, s8, twice@rel32@lo+4", "s_addc_u32 s9, s9, twice@rel32@hi+12"]
    body += [
        "v_mov_b32_e32 v5, v1",
        "s_swappc_b64 s[30:31], s[8:9]",
        "s_swappc_b64 s[30:31], s[8:9]",
        STORE,
        "s_endpgm",
    ]
    body += ["twice:", "v_add_u32_e32 v5, v5, v5", "s_setpc_b64 s[30:31]"]
    np.testing.assert_array_equal(_launch(_text(body)), np.arange(64) * 16)


def test_disassembly_addresses_place_relative_branches():
    body = ["s_mov_b32 s12, 3", "v_mov_b32_e32 v5, 0", ".Lx:", "v_add_u32_e32 v5, 1, v5", "s_sub_u32 s12, s12, 1"]
    text = _text([*body, "s_cmp_lg_u32 s12, 0", "s_cbranch_scc1 .Lx", STORE])
    lines, address = [], 0x1900
    for line in text.replace("s_cbranch_scc1 .Lx", "s_cbranch_scc1 65532").splitlines():
        is_code = line.startswith("\t") and not line.startswith("\t.") and ".amdhsa" not in line
        in_kernel = is_code and address is not None and ".rodata" not in "".join(lines[-3:])
        if in_kernel and ".section" not in "\n".join(lines):
            lines.append(f"{line} // {address:012X}: 00000000")
            address += 4
        else:
            lines.append(line)
    np.testing.assert_array_equal(_launch("\n".join(lines) + "\n"), np.full(64, 3))


def test_descriptor_values_may_be_expressions_over_later_symbols():
    text = _text(
        ["v_mov_b32_e32 v5, 9", STORE], replace={".amdhsa_next_free_vgpr 256": ".amdhsa_next_free_vgpr max(12, f.v)"}
    )
    np.testing.assert_array_equal(_launch(text + "\t.set f.v, 3+2*(4-1)\n"), np.full(64, 9))


def test_register_ranges_may_be_hexadecimal():
    """Inline assembly leaves such numbers in the text: a[64:0x43]."""
    body = ["v_mov_b32_e32 v6, 3", "v_mov_b32_e32 v7, 4", "v_lshlrev_b64 v[4:0x5], 1, v[0x6:7]", STORE]
    assert (_launch(_text(body)) == 8).all()


def test_debug_lines_name_the_source_of_a_violation():
    text = _text(
        ["\t.loc 1 12 3", "global_load_dword v5, v1, s[4:5]", "\t.loc 1 13 7", "v_add_u32_e32 v5, 1, v5", STORE]
    )
    with pytest.raises(sim.SimError) as caught:
        _launch('\t.file 1 "/src" "kernel.hip"\n' + text)
    assert caught.value.source == "/src/kernel.hip:13"
    assert "global_load_dword" in caught.value.other


@pytest.mark.parametrize(("line", "message"), [
    ("v_add_u32_e32 v5, v1", "missing operand"),
    ("v_add_u32_e32 v5, v1, v2, v3", "too many operands"),
    ("v_mov_b32_e32 v[4:5], v1", "dwords"),
    ("s_branch .Lnowhere", "unknown label"),
    ("v_add_f32_e64 v5, v1, v2 frob:1", "unknown modifier"),
    ("s_mov_b32 s5, nowhere@rel32@lo", "unknown symbol"),
])  # fmt: skip
def test_malformed_statements_are_refused_with_their_line(line, message):
    text = _text([line])
    number = next(i for i, t in enumerate(text.splitlines(), 1) if line in t)
    with pytest.raises(sim.LoadError, match=message) as caught:
        sim.load(text, target="gfx950")
    assert f"line {number}" in str(caught.value)


def test_the_target_comes_from_the_text_and_must_agree():
    text = _text([STORE.replace("v5", "v1")])
    assert sim.load(text).target == "gfx950"
    with pytest.raises(sim.LoadError, match="gfx950"):
        sim.load(text, target="gfx942")
    with pytest.raises(sim.LoadError, match="unknown target"):
        sim.load(text.replace("gfx950", "gfx1100"), target="gfx1100")
