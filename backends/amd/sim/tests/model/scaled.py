"""Conversions to and from 8, 6 and 4-bit floats, plain and with a block scale (ISA 7.3, tables 31, 32).

Down-conversions divide by the power of two in the scale's exponent field, up-conversions multiply.
"""

from __future__ import annotations

import re

import numpy as np

from . import bits
from .bits import BF16, F16, F32
from .machine import Machine, Spec
from .operands import Line, read_lanes
from .valu_convert import Small
from .valu_int import prng

WHOLE = frozenset({"whole"})
WIDTHS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
SOURCE = {"f32": F32, "f16": F16, "bf16": BF16}


def first(name: str) -> int:
    return int(re.search(r"\d+", name)[0])


def scale_of(machine: Machine, name: str) -> np.ndarray:
    """2^(e - 127) of the scale operand's exponent field; 255 means NaN."""
    raw = read_lanes(machine, name, "f32")
    exponent = ((raw >> 23) & 0xFF).astype(np.int64)
    return np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))


def store(machine: Machine, register: int, words: list[np.ndarray]) -> None:
    for index, word in enumerate(words):
        old = machine.v[register + index]
        machine.v[register + index] = np.where(machine.exec, word.astype(np.uint32), old)


def elements(machine: Machine, name: str, fmt, count: int) -> list[np.ndarray]:
    """`count` consecutive values of a format from consecutive registers."""
    base, per_word = first(name), 32 // fmt.width
    return [
        bits.decode(
            (machine.v[base + i // per_word] >> np.uint32(fmt.width * (i % per_word)))
            & np.uint32((1 << fmt.width) - 1),
            fmt,
        )
        for i in range(count)
    ]


def select(line: Line, source: bool) -> int:
    """Which byte: op_sel[1:0] for a small source, op_sel[3:2] for a small destination."""
    low, high = (0, 1) if source else (2, 3)
    values = line.modifiers.get("op_sel", "[0,0,0,0]").strip("[]").split(",")
    values += ["0"] * (4 - len(values))
    return int(values[low]) + 2 * int(values[high])


def insert(old: np.ndarray, part: np.ndarray, shift: int, width: int) -> np.ndarray:
    mask = np.uint32(((1 << width) - 1) << shift)
    return (old & ~mask) | ((part.astype(np.uint32) << np.uint32(shift)) & mask)


def pack_codes(codes: list[np.ndarray], width: int) -> list[np.ndarray]:
    """Dense little-endian packing of codes into words."""
    words = []
    total = len(codes) * width
    for word in range((total + 31) // 32):
        value = np.zeros(codes[0].shape, np.uint64)
        for i, code in enumerate(codes):
            shift = i * width - 32 * word
            if -width < shift < 32:
                wide = code.astype(np.uint64)
                value |= wide << np.uint64(shift) if shift >= 0 else wide >> np.uint64(-shift)
        words.append((value & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    return words


def unpack_codes(machine: Machine, name: str, width: int, count: int) -> list[np.ndarray]:
    base, codes = first(name), []
    for i in range(count):
        word, shift = divmod(i * width, 32)
        pair = machine.v[base + word].astype(np.uint64)
        if shift + width > 32:
            pair |= machine.v[base + word + 1].astype(np.uint64) << np.uint64(32)
        codes.append(((pair >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.uint32))
    return codes


def stochastic_code(small: Small, value: np.ndarray, random: np.ndarray, saturate: bool) -> np.ndarray:
    """Add random bits below the last kept bit of the (possibly denormal) result, then truncate."""
    fmt = small.format
    exponent = np.maximum(np.frexp(value)[1] - 1, small.minimum_exponent) - (fmt.precision - 1)
    dropped = 23 - (fmt.precision - 1)
    noise = (random >> np.uint32(32 - dropped)).astype(np.float64) / 2.0**dropped
    with np.errstate(all="ignore"):
        magnitude = np.floor(np.abs(np.ldexp(value, -exponent)) + noise)
        rounded = np.copysign(np.ldexp(magnitude, exponent), value)
    return small.finish(value, rounded, saturate)


def plain_to_fp8(target: str, name: str, stochastic: bool) -> Spec:
    """v_cvt_pk_{fp8,bf8}_f32 and v_cvt_sr_*: half a register, or one byte of it, is written."""

    def run(machine: Machine, line: Line) -> None:
        small = Small(target, name)
        values = [_modified(machine, text) for text in line.operands[1:]]
        register = first(line.operands[0])
        saturate = bool(machine.mode >> 23 & 1)
        if stochastic:
            random = read_lanes(machine, line.operands[2], "u32")
            part = stochastic_code(small, values[0], random, saturate)
            shift, width = 8 * select(line, False), 8
        else:
            low, high = (small.encode(v, saturate) for v in values)
            part, shift, width = low | high << 8, 16 * line.op_sel(2), 16
        store(machine, register, [insert(machine.v[register], part, shift, width)])

    return Spec("whole:", run, WHOLE)


def stochastic_half(fmt: bits.Format) -> Spec:
    """v_cvt_sr_f16_f32 and v_cvt_sr_bf16_f32: random bits below the kept mantissa, then truncation."""

    def run(machine: Machine, line: Line) -> None:
        value = _modified(machine, line.operands[1])
        dropped = 24 - fmt.precision
        noise = (read_lanes(machine, line.operands[2], "u32") >> np.uint32(32 - dropped)).astype(float)
        exponent = np.maximum(np.frexp(value)[1] - 1, fmt.emin) - (fmt.precision - 1)
        magnitude = np.floor(np.abs(np.ldexp(value, -exponent)) + noise / 2.0**dropped)
        rounded = np.copysign(np.ldexp(magnitude, exponent), value)
        part = bits.encode(np.where(np.isfinite(value), rounded, value), fmt)
        register = first(line.operands[0])
        store(machine, register, [insert(machine.v[register], part, 16 * line.op_sel(2), 16)])

    return Spec("whole:", run, WHOLE)


def _modified(machine: Machine, text: str) -> np.ndarray:
    """An f32 operand with its |x| and -x."""
    raw = read_lanes(machine, text.lstrip("-").strip("|"), "f32")
    value = bits.decode(raw, F32)
    value = np.abs(value) if "|" in text else value
    return -value if text.startswith("-") else value


def pair_from_fp8(target: str, name: str) -> Spec:
    """v_cvt_pk_f32_{fp8,bf8}: two neighbouring bytes, of the word that SDWA or op_sel names."""

    def run(machine: Machine, line: Line) -> None:
        small = Small(target, name)
        raw = read_lanes(machine, line.operands[1], "u32")
        upper = line.modifiers.get("src0_sel") == "WORD_1" or line.op_sel(0)
        half = raw >> 16 if upper else raw
        values = [small.decode(half & 0xFF), small.decode((half >> 8) & 0xFF)]
        store(machine, first(line.operands[0]), [bits.encode(v, F32) for v in values])

    return Spec("whole:", run, WHOLE)


def down(small_name: str, source: str, count: int, stochastic: bool, two: bool) -> Spec:
    """v_cvt_scalef32_[sr_]pk*: values over the scale, to `count` codes."""
    fmt, width = SOURCE[source], WIDTHS[small_name]

    def run(machine: Machine, line: Line) -> None:
        small = Small("gfx950", small_name)
        scale = scale_of(machine, line.operands[-1])
        random = read_lanes(machine, line.operands[2], "u32") if stochastic else None
        saturate = bool(machine.mode >> 23 & 1)
        codes = []
        for value in _down_inputs(machine, line, fmt, count, stochastic, two):
            with np.errstate(all="ignore"):
                scaled = value / scale
            if stochastic:
                codes.append(stochastic_code(small, scaled, random, saturate))
                random = prng(random)
            else:
                codes.append(small.encode(scaled, saturate))
        _store_codes(machine, line, codes, width)

    return Spec("whole:", run, WHOLE)


def _down_inputs(machine, line, fmt, count, stochastic, two):
    """Two f32 operands, one packed operand, or a long vector (interleaved for 2xpk16)."""
    if two:
        pairs = zip(*(elements(machine, name, fmt, count // 2) for name in line.operands[1:3]), strict=True)
        return [value for pair in pairs for value in pair]
    if fmt is F32 and not stochastic and count <= 2:
        return [_modified(machine, text) for text in line.operands[1:3]]
    return elements(machine, line.operands[1], fmt, count)


def _store_codes(machine: Machine, line: Line, codes: list[np.ndarray], width: int) -> None:
    register = first(line.operands[0])
    if len(codes) > 2:
        return store(machine, register, pack_codes(codes, width))
    part = pack_codes(codes, width)[0]
    taken = width * len(codes)
    shift = 16 * select_word(line) if taken == 16 else 8 * select(line, False)
    return store(machine, register, [insert(machine.v[register], part, shift, taken)])


def select_word(line: Line) -> int:
    """op_sel[3] picks the destination word; the assembler writes it after the sources' bits."""
    return line.bit("op_sel", len(line.operands) - 1) if "op_sel" in line.modifiers else 0


def up(small_name: str, result: str, count: int) -> Spec:
    """v_cvt_scalef32_[pk_]*: codes times the scale."""
    fmt, width = SOURCE[result], WIDTHS[small_name]

    def run(machine: Machine, line: Line) -> None:
        small = Small("gfx950", small_name)
        scale = scale_of(machine, line.operands[2])
        if count == 32:
            codes = unpack_codes(machine, line.operands[1], width, 32)
        else:
            raw = machine.v[first(line.operands[1])]
            step = 16 * line.op_sel(0) if width * count == 16 else 8 * select(line, True)
            codes = [(raw >> np.uint32(step + width * i)) & np.uint32((1 << width) - 1) for i in range(count)]
        with np.errstate(all="ignore"):
            values = [bits.round_to(small.decode(code) * scale, fmt) for code in codes]
        words = pack_codes([bits.encode(v, fmt) for v in values], fmt.width)
        if count == 1 and fmt is not F32:
            register = first(line.operands[0])
            words = [insert(machine.v[register], words[0], 16 * select_word(line), 16)]
        store(machine, first(line.operands[0]), words)

    return Spec("whole:", run, WHOLE)


def _scaled_names() -> dict[str, Spec]:
    table: dict[str, Spec] = {}
    prefix = "v_cvt_scalef32"
    for small in ("fp8", "bf8", "fp4"):
        for wide in ("f32", "f16", "bf16"):
            table[f"{prefix}_pk_{small}_{wide}"] = down(small, wide, 2, False, False)
            table[f"{prefix}_pk_{wide}_{small}"] = up(small, wide, 2)
            if small == "fp4":
                table[f"{prefix}_sr_pk_{small}_{wide}"] = down(small, wide, 2, True, False)
            else:
                table[f"{prefix}_sr_{small}_{wide}"] = down(small, wide, 1, True, False)
    for small in ("fp8", "bf8"):
        for wide in ("f32", "f16"):
            table[f"{prefix}_{wide}_{small}"] = up(small, wide, 1)
    for small in ("fp6", "bf6"):
        table[f"{prefix}_2xpk16_{small}_f32"] = down(small, "f32", 32, False, True)
        for wide in ("f32", "f16", "bf16"):
            table[f"{prefix}_sr_pk32_{small}_{wide}"] = down(small, wide, 32, True, False)
            table[f"{prefix}_pk32_{wide}_{small}"] = up(small, wide, 32)
        for wide in ("f16", "bf16"):
            table[f"{prefix}_pk32_{small}_{wide}"] = down(small, wide, 32, False, False)
    return table


def target_table(target: str) -> dict[str, Spec]:
    table = {}
    for name in ("fp8", "bf8"):
        table[f"v_cvt_pk_{name}_f32"] = plain_to_fp8(target, name, False)
        table[f"v_cvt_sr_{name}_f32"] = plain_to_fp8(target, name, True)
        table[f"v_cvt_pk_f32_{name}"] = pair_from_fp8(target, name)
    if target == "gfx950":
        table |= {f"v_cvt_sr_{name}_f32": stochastic_half(fmt) for name, fmt in (("f16", F16), ("bf16", BF16))}
        table |= _scaled_names()
    return table
