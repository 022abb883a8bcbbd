"""VOP3P: packed arithmetic and mixed-precision multiply-add with op_sel, op_sel_hi, neg_lo and neg_hi."""

from __future__ import annotations

import numpy as np

from . import bits
from .bits import F16, F32, fma_odd
from .machine import Machine, Spec
from .operands import Line, read_lanes
from .valu_float import pick, propagating, three
from .valu_int import half

WHOLE = frozenset({"whole"})


def _halves(machine: Machine, line: Line, index: int, width: int, high: bool) -> np.ndarray:
    """The half of operand `index` that the low or high result uses, with its negation."""
    name = line.operands[index + 1]
    half_float = "_f16" in line.base
    raw = read_lanes(machine, name, "pk64" if width == 32 and "[" in name else "pkf16" if half_float else "pk32")
    chosen = line.bit("op_sel_hi", index, 1) if high else line.bit("op_sel", index, 0)
    if chosen and raw.dtype.itemsize * 8 > width:
        raw = raw >> raw.dtype.type(width)
    return (raw & raw.dtype.type((1 << width) - 1)).astype(np.uint32)


def _negated(line: Line, index: int, high: bool, part: np.ndarray, width: int) -> np.ndarray:
    sign = line.bit("neg_hi" if high else "neg_lo", index, 0)
    return part ^ np.uint32(sign << (width - 1))


def _store(machine: Machine, name: str, words: list[np.ndarray]) -> None:
    first = int("".join(c for c in name.split(":")[0] if c.isdigit()))
    for index, word in enumerate(words):
        old = machine.v[first + index]
        machine.v[first + index] = np.where(machine.exec, word.astype(np.uint32), old)


def _float_result(machine: Machine, line: Line, value, fmt, kind: str):
    rounded = bits.round_to(value, fmt, machine.round_mode(kind))
    if not machine.denorm(kind) & 2:
        rounded = bits.flush(rounded, fmt)
    if "clamp" in line.modifiers:
        rounded = np.clip(np.where(np.isnan(rounded), 0, rounded), 0, 1) + 0.0
    return bits.encode(rounded, fmt).astype(np.uint32)


def packed_float(kind: str, count: int, fn, old: bool = False) -> Spec:
    fmt = bits.FORMATS[kind]

    def run(machine: Machine, line: Line) -> None:
        words = []
        for high in (False, True):
            parts = [
                _negated(line, i, high, _halves(machine, line, i, fmt.width, high), fmt.width) for i in range(count)
            ]
            if old:
                parts.append(machine.v[int(line.operands[0][1:])] >> (16 if high else 0))
            values = [bits.decode(p, fmt) for p in parts]
            if not machine.denorm(kind) & 1:
                values = [bits.flush(v, fmt) for v in values]
            words.append(_float_result(machine, line, fn(*values), fmt, kind))
        _store(machine, line.operands[0], words if fmt is F32 else [words[0] | words[1] << 16])

    return Spec("pk:", run, WHOLE)


def packed_bits(count: int, fn) -> Spec:
    """Packed f16 selection (min, max): works on patterns, so that NaN payloads are kept."""

    def run(machine: Machine, line: Line) -> None:
        words = []
        for high in (False, True):
            parts = [
                _negated(line, i, high, _halves(machine, line, i, 16, high), 16).astype(np.uint16) for i in range(count)
            ]
            parts = parts if machine.denorm("f16") & 1 else [bits.flushed_bits(p, F16) for p in parts]
            word = fn(*parts)
            word = word if machine.denorm("f16") & 2 else bits.flushed_bits(word, F16)
            if "clamp" in line.modifiers:
                value = bits.decode(word, F16)
                word = bits.encode(np.clip(np.where(np.isnan(value), 0, value), 0, 1) + 0.0, F16)
            words.append(word.astype(np.uint32))
        _store(machine, line.operands[0], [words[0] | words[1] << 16])

    return Spec("pk:", run, WHOLE)


def packed_int(count: int, fn, *, signed: bool, saturates: bool = True) -> Spec:
    """16-bit integers; clamp saturates (ISA, "Packed Math")."""
    least, most = (-32768, 32767) if signed else (0, 65535)

    def run(machine: Machine, line: Line) -> None:
        words = []
        for high in (False, True):
            parts = [_halves(machine, line, i, 16, high).astype(np.uint16) for i in range(count)]
            values = [(p.view(np.int16) if signed else p).astype(np.int64) for p in parts]
            total = fn(*values)
            words.append(half(np.clip(total, least, most) if saturates and "clamp" in line.modifiers else total))
        _store(machine, line.operands[0], [words[0] | words[1] << 16])

    return Spec("pk:", run, WHOLE)


def _mix_source(machine: Machine, line: Line, index: int) -> np.ndarray:
    """op_sel_hi chooses f16 over f32, op_sel then its half; neg_lo negates, neg_hi means absolute."""
    text = line.operands[index + 1]
    negative, name = text.startswith("-"), text.lstrip("-").strip("|")
    as_half = line.bit("op_sel_hi", index, 0)
    raw = read_lanes(machine, name, "f16" if as_half else "f32")
    if as_half and line.bit("op_sel", index, 0):
        raw = raw >> 16
    value = bits.decode(raw & 0xFFFF if as_half else raw, F16 if as_half else F32)
    value = np.abs(value) if "|" in text else value
    return -value if negative else value


def mix(part: str) -> Spec:
    def run(machine: Machine, line: Line) -> None:
        value = fma_odd(*(_mix_source(machine, line, i) for i in range(3)))
        if part == "f32":
            return _store(machine, line.operands[0], [_float_result(machine, line, value, F32, "f32")])
        # The sum is a single-precision number before it is converted (ISA, V_MAD_MIXLO_F16).
        single = bits.round_to(value, F32, machine.round_mode("f32"))
        word = _float_result(machine, line, single, F16, "f16")
        old = machine.v[int(line.operands[0][1:])]
        merged = (old & 0xFFFF) | word << 16 if part == "hi" else (old & 0xFFFF0000) | word
        return _store(machine, line.operands[0], [merged])

    return Spec("mix:", run, WHOLE)


def pk_mov(machine: Machine, line: Line) -> None:
    """op_sel picks a word of each source pair: the first for the low, the second for the high result."""
    words = []
    for index in range(2):
        raw = read_lanes(machine, line.operands[index + 1], "pk64")
        shift = 32 * line.bit("op_sel", index, 0)
        words.append((raw >> np.uint64(shift)) & np.uint64(0xFFFFFFFF))
    _store(machine, line.operands[0], words)


def dot2(kind: str, old: bool) -> Spec:
    """Two products and an addend; the tests' operands are small integers, so that the order of sums is free."""
    fmt = bits.FORMATS[kind]

    def run(machine: Machine, line: Line) -> None:
        parts = [_negated(line, i, h, _halves(machine, line, i, 16, h), 16) for i in range(2) for h in (False, True)]
        a0, a1, b0, b1 = (bits.decode(p, fmt) for p in parts)
        third = line.operands[0] if old else line.operands[3]
        addend = bits.decode(read_lanes(machine, third, "f32"), F32)
        _store(machine, line.operands[0], [bits.encode(a0 * b0 + a1 * b1 + addend, F32)])

    return Spec("dot2:", run, WHOLE)


def shift_left(a, b):
    return b << (a & 15)


def shift_right(a, b):
    return b >> (a & 15)


def multiply(a, b):
    with np.errstate(all="ignore"):
        return a * b


F16_MIN, F16_MAX = pick(F16, False), pick(F16, True)

TABLE = {
    "v_pk_add_f16": packed_float("f16", 2, bits.add_odd),
    "v_pk_mul_f16": packed_float("f16", 2, multiply),
    "v_pk_fma_f16": packed_float("f16", 3, fma_odd),
    "v_pk_fmac_f16": packed_float("f16", 2, fma_odd, old=True),
    "v_pk_min_f16": packed_bits(2, F16_MIN),
    "v_pk_max_f16": packed_bits(2, F16_MAX),
    "v_pk_minimum3_f16": packed_bits(3, three(propagating(F16, False))),
    "v_pk_maximum3_f16": packed_bits(3, three(propagating(F16, True))),
    "v_pk_add_f32": packed_float("f32", 2, bits.add_odd),
    "v_pk_mul_f32": packed_float("f32", 2, multiply),
    "v_pk_fma_f32": packed_float("f32", 3, fma_odd),
    "v_pk_mov_b32": Spec("pk:", pk_mov, WHOLE),
    "v_pk_add_i16": packed_int(2, np.add, signed=True),
    "v_pk_sub_i16": packed_int(2, np.subtract, signed=True),
    "v_pk_add_u16": packed_int(2, np.add, signed=False),
    "v_pk_sub_u16": packed_int(2, np.subtract, signed=False),
    "v_pk_mad_i16": packed_int(3, lambda a, b, c: a * b + c, signed=True),
    "v_pk_mad_u16": packed_int(3, lambda a, b, c: a * b + c, signed=False),
    "v_pk_mul_lo_u16": packed_int(2, np.multiply, signed=False, saturates=False),
    "v_pk_min_i16": packed_int(2, np.minimum, signed=True),
    "v_pk_max_i16": packed_int(2, np.maximum, signed=True),
    "v_pk_min_u16": packed_int(2, np.minimum, signed=False),
    "v_pk_max_u16": packed_int(2, np.maximum, signed=False),
    "v_pk_lshlrev_b16": packed_int(2, shift_left, signed=False, saturates=False),
    "v_pk_lshrrev_b16": packed_int(2, shift_right, signed=False, saturates=False),
    "v_pk_ashrrev_i16": packed_int(2, shift_right, signed=True, saturates=False),
    "v_dot2_f32_f16": dot2("f16", False),
    "v_dot2_f32_bf16": dot2("bf16", False),
    "v_dot2c_f32_f16": dot2("f16", True),
    "v_dot2c_f32_bf16": dot2("bf16", True),
    "v_fma_mix_f32": mix("f32"),
    "v_fma_mixlo_f16": mix("lo"),
    "v_fma_mixhi_f16": mix("hi"),
}
