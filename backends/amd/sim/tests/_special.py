"""Cases of the instructions that fit no common pattern: lane moves, small floats, accumulators."""

from __future__ import annotations

import re
from itertools import product

from ._cases import MODES, PARTIAL, mix_cases, packed_cases
from ._operands import Case
from .model.machine import Spec

OVERFLOW_MODE = 0x3F0 | 1 << 23  # FP16_OVFL: saturate conversions to 8-bit floats
WIDE = {"f32": 32, "f16": 16, "bf16": 16}


def small_float_cases(name: str) -> list[Case]:
    """v_cvt_[sr_]pk_{fp8,bf8}_f32 and v_cvt_pk_f32_{fp8,bf8}."""
    if name.startswith("v_cvt_pk_f32"):
        texts = [f"{name}{e} v[128:129], v8" for e in ("", "_e32", "_e64")]
        texts += [f"{name}_sdwa v[128:129], v8 src0_sel:{s}" for s in ("WORD_0", "WORD_1")]
        texts += [f"{name}_e64 v[128:129], v8 op_sel:[1]", f"{name} v[128:129], s25"]
        return [Case(t, 2) for t in texts] + [Case(texts[0], 2, exec=m) for m in PARTIAL]
    sels = [""] + [f"op_sel:[0,0,{b}]" for b in (0, 1)]
    if "_sr_f16" in name or "_sr_bf16" in name:
        sels = ["", "op_sel:[0,0,1]"]
    elif "_sr_" in name:
        sels = [""] + [f"op_sel:[0,0,{a},{b}]" for a, b in product((0, 1), repeat=2)]
    cases = [Case(f"{name} v128, v8, v10 {sel}".strip()) for sel in sels]
    cases += [Case(f"{name} v128, {mark.format('v8')}, v10") for mark in ("-{}", "|{}|", "-|{}|")]
    cases += [Case(f"{name} v128, v8, v10", exec=m) for m in PARTIAL]
    saturating = [] if "f16_f32" in name else [Case(f"{name} v128, v8, v10", mode=OVERFLOW_MODE)]
    return cases + saturating


SCALED = re.compile(r"v_cvt_scalef32_(2xpk16_|sr_pk32_|sr_pk_|sr_|pk32_|pk_|)(\w+)_(\w+)$")


def scaled_cases(name: str) -> list[Case]:
    """v_cvt_scalef32_*: every byte or word selector, vector and constant scales, partial EXEC."""
    form, target, source = SCALED.fullmatch(name).groups()
    up = target in WIDE
    count = {"2xpk16_": 32, "sr_pk32_": 32, "pk32_": 32, "pk_": 2, "sr_pk_": 2}.get(form, 1)
    if up:
        words = max(1, count * WIDE[target] // 32)
        inputs = ["v[8:13]" if count == 32 else "v8"]
    else:
        words = 6 if count == 32 else 1
        inputs = _down_inputs(form, source, count)
    result = f"v[128:{127 + words}]" if words > 1 else "v128"
    scale = "v46"
    operands = [result, *inputs, scale]
    tails = ["", *(f"op_sel:[{','.join(b)}]" for b in _selectors(form, target, source, len(operands) - 1))]
    cases = [Case(f"{name} {', '.join(operands)} {tail}".strip(), words) for tail in tails]
    for constant in ("1.0", "2.0", "s25"):
        cases.append(Case(f"{name} {', '.join([*operands[:-1], constant])}", words))
    cases += [Case(f"{name} {', '.join(operands)}", words, exec=m) for m in PARTIAL]
    if target in ("fp8", "bf8"):
        cases.append(Case(f"{name} {', '.join(operands)}", words, mode=OVERFLOW_MODE))
    return cases


def _selectors(form: str, target: str, source: str, sources: int) -> list[tuple[str, ...]]:
    """op_sel as the assembler writes it: one bit per source, then the destination's (two for a byte)."""
    if "32" in form or form == "2xpk16_":
        return []
    if target in WIDE:
        picks = product("01", "0") if form == "pk_" and source != "fp4" else product("01", "01")
        return [p + d for p in picks for d in ([("0",), ("1",)] if not form and target == "f16" else [()])]
    if form == "pk_" and target != "fp4":
        return [("0",) * sources + (d,) for d in "01"]
    return [("0", "0", *d) for d in product("01", repeat=2)]


def _down_inputs(form: str, source: str, count: int) -> list[str]:
    if form == "2xpk16_":
        return ["v[8:23]", "v[24:39]"]
    if count == 32:
        return [f"v[8:{7 + WIDE[source]}]"] + (["v44"] if form.startswith("sr") else [])
    if form.startswith("sr"):
        return ["v[8:9]" if source == "f32" and count == 2 else "v8", "v44"]
    return ["v8", "v10"] if source == "f32" else ["v8"]


LANE_CASES = {
    "v_readfirstlane_b32": [Case("v_readfirstlane_b32 s60, v8", 0, 1, exec=m) for m in (*PARTIAL, 1 << 63)],
    "v_readlane_b32": [
        Case(f"v_readlane_b32 s60, v8, {lane}", 0, 1, exec=m)
        for lane in ("0", "5", "63", "s25")
        for m in (PARTIAL[0], 0)
    ],
    "v_writelane_b32": [
        Case(f"v_writelane_b32 v128, {value}, {lane}", exec=m)
        for value in ("s26", "7")
        for lane in ("0", "63", "s27")
        for m in (PARTIAL[0], 0)
    ],
    "v_swap_b32": [Case("v_swap_b32 v128, v129", 2), Case("v_swap_b32 v128, v129", 2, exec=PARTIAL[0])],
    "v_accvgpr_read_b32": [Case("v_accvgpr_write_b32 a7, v8\ns_nop 15\nv_accvgpr_read_b32 v128, a7")],
    "v_accvgpr_write_b32": [
        Case(f"v_accvgpr_write_b32 a7, {value}\ns_nop 15\nv_accvgpr_read_b32 v128, a7") for value in ("v8", "1.0", "-5")
    ],
    "v_accvgpr_mov_b32": [
        Case("v_accvgpr_write_b32 a9, v8\ns_nop 15\nv_accvgpr_mov_b32 a3, a9\ns_nop 15\nv_accvgpr_read_b32 v128, a3")
    ],
}
for _rows in (16, 32):
    _name = f"v_permlane{_rows}_swap_b32"
    LANE_CASES[_name] = [Case(f"{_name}{e} v128, v129", 2) for e in ("", "_e32", "_e64")]
    # EXEC masks under which both lanes of a pair are on or off: the ISA does not say what half a pair does.
    LANE_CASES[_name] += [Case(f"{_name} v128, v129", 2, exec=m) for m in (0x0F0F0F0F0F0F0F0F, 0)]


def div_scale_cases(name: str) -> list[Case]:
    """The value to scale is the denominator or the numerator: nothing else is meaningful."""
    wide = name.endswith("f64")
    registers = ["v[8:9]", "v[10:11]"] if wide else ["v8", "v10"]
    result = "v[128:129]" if wide else "v128"
    cases = []
    for a, b in (registers, registers[::-1]):
        for sources in (f"{a}, {a}, {b}", f"{a}, {b}, {a}"):
            for mask in ("vcc", "s[60:61]"):
                cases.append(Case(f"{name} {result}, {mask}, {sources}", 2 if wide else 1, 2, masks=True))
    return cases


PACKED_SOURCES = {"fma": 3, "mad": 3, "minimum3": 3, "maximum3": 3}


def special_cases(name: str, spec: Spec) -> list[Case]:
    if name in LANE_CASES:
        return LANE_CASES[name]
    if name.startswith("v_div_scale"):
        return div_scale_cases(name)
    if name.startswith("v_cvt_scalef32"):
        return scaled_cases(name)
    if name.startswith("v_cvt"):
        return small_float_cases(name)
    if name.startswith("v_dot2c"):
        return [Case(f"{name} v128, v8, v10"), Case(f"{name} v128, v8, v10", exec=PARTIAL[0])]
    if name.startswith("v_dot2"):
        tails = ["", "neg_lo:[1,0,0] neg_hi:[1,0,0]", "neg_lo:[0,1,0] neg_hi:[0,0,0]"]
        return [Case(f"{name} v128, v8, v10, v12 {t}".strip()) for t in tails]
    if "_mix" in name:
        return mix_cases(name)
    if "_saveexec_" in name or "_wrexec_" in name:
        return [
            Case(f"{name} s[60:61], {s}", 0, 2, masks=True, exec=m)
            for s in ("s[24:25]", "vcc", "-1", "0")
            for m in PARTIAL
        ]
    sources = next((n for part, n in PACKED_SOURCES.items() if f"_{part}_" in name), 2)
    return packed_cases(name, sources, wide=name.endswith(("f32", "mov_b32")))


__all__ = ["MODES", "special_cases"]
