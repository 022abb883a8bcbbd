"""Parse one instruction and read its source operands with the modifiers of its encoding."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from . import bits
from .sdwa_dpp import sdwa_select

SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp)$")
INLINE_FLOATS = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"}
INVERSE_TWO_PI = {"0.15915494", "0.15915494309189532"}


@dataclass(frozen=True)
class Line:
    """A parsed instruction: base mnemonic, encoding suffix, operands, modifiers by name."""

    text: str
    base: str
    suffix: str
    operands: list[str]
    modifiers: dict[str, str]

    def bit(self, modifier: str, position: int, default: int = 0) -> int:
        values = self.modifiers.get(modifier)
        return int(values.strip("[]").split(",")[position]) if values else default

    def op_sel(self, position: int) -> int:
        return self.bit("op_sel", position)

    @property
    def omod(self) -> str:
        return next((f"{k}:{v}" for k, v in self.modifiers.items() if k in ("mul", "div")), "")


def parse(text: str) -> Line:
    mnemonic, _, rest = text.strip().partition(" ")
    words = re.sub(r",\s+", ",", rest.strip()).split()
    suffix = SUFFIX.search(mnemonic)
    operands = re.findall(r"(?:\[[^\]]*\]|[^,\[\]]|\[)+", words[0]) if words else []
    modifiers = dict(word.split(":", 1) if ":" in word else (word, "1") for word in words[1:])
    return Line(text, SUFFIX.sub("", mnemonic), suffix[1] if suffix else "", operands, modifiers)


def read_source(machine, line: Line, text: str, kind: str, position: int | None, dpp):
    """The value of one operand, converted to what the instruction's function takes."""
    negate, absolute, sext, name = _strip(text)
    raw = read_raw(machine, name, kind) if _scalar(kind) else read_lanes(machine, name, kind)
    if dpp is not None:
        raw = _permute(raw, dpp)
    if line.suffix == "sdwa" and position is not None:
        raw = sdwa_select(raw, line.modifiers.get(f"src{position}_sel", "DWORD"), sext)
    elif kind in ("h16", "hu16", "hi16", "xh16", "mh16") and position is not None and line.op_sel(position):
        raw = raw >> 16
    return convert(machine, raw, kind, negate, absolute)


def _strip(text: str) -> tuple[bool, bool, bool, str]:
    """Separate -x, |x|, -|x|, abs(x) and sext(x) from the register or constant."""
    negate = bool(re.match(r"-[^0-9.]", text))
    text = text[1:] if negate else text
    absolute = text.startswith("|")
    sext = text.startswith("sext(")
    return negate, absolute, sext, re.sub(r"^sext\(|\)$|\|", "", text)


def _permute(raw: np.ndarray, dpp) -> np.ndarray:
    lanes, live = dpp
    moved = np.take_along_axis(raw, np.broadcast_to(lanes, raw.shape), axis=1)
    return np.where(live, moved, 0).astype(raw.dtype)


def read_raw(machine, name: str, kind: str) -> np.ndarray:
    """Bits of a register, register pair or constant, 64 bits wide where the kind is."""
    wide = kind.endswith("64")
    bank = machine.v if name[0] == "v" else machine.a if name[0] == "a" else machine.s
    if re.fullmatch(r"(vcc|exec)|[sva]\[\d+:\d+\]", name):
        return _read_wide(machine, bank, name)
    if re.fullmatch(r"[sva]\d+|m0|(vcc|exec)_(lo|hi)", name):
        key = int(name[1:]) if name[1:].isdigit() and name != "m0" else name
        return bank[key]
    value = constant(name, kind)
    dtype = np.uint64 if wide else np.uint32
    shape = machine.groups if _scalar(kind) else (machine.groups, 64)
    return np.full(shape, value & (2**64 - 1 if wide else 2**32 - 1), dtype)


def _scalar(kind: str) -> bool:
    return kind.startswith("s")


def read_lanes(machine, name: str, kind: str) -> np.ndarray:
    """As read_raw, with scalars repeated for every lane."""
    value = read_raw(machine, name, kind)
    return value if value.ndim == 2 else np.broadcast_to(value[:, None], (machine.groups, 64))


def _read_wide(machine, bank, name: str) -> np.ndarray:
    if name in ("vcc", "exec") or name[0] == "s":
        return machine.read_s64(name)
    first = int(re.search(r"\d+", name)[0])
    return bank[first].astype(np.uint64) | (bank[first + 1].astype(np.uint64) << np.uint64(32))


def constant(text: str, kind: str) -> int:
    """Inline constants take the operand's float type; other literals are 32 bits, the high ones of f64."""
    wide_float = kind in ("f64", "x64", "m64")
    if text in INLINE_FLOATS or text in INVERSE_TWO_PI:
        if kind.endswith("64"):
            return int(np.float64(_inline(text)).view(np.uint64))
        if kind == "bf16":
            return int(np.float32(_inline(text)).view(np.uint32)) >> 16
        if kind in ("f16", "x16", "h16", "m16", "mh16", "xh16", "pkf16"):
            return int(np.float16(_inline(text)).view(np.uint16))
        return int(np.float32(_inline(text)).view(np.uint32))
    value = int(text, 0)
    if kind == "ski32":
        return ((value & 0xFFFF) ^ 0x8000) - 0x8000
    if wide_float and not -16 <= value <= 64:
        return value << 32
    return value


def _inline(text: str) -> float:
    """0.15915494 stands for 1/(2 pi), correctly rounded in each format (ISA, source operand 248)."""
    return 0.15915494309189533 if text in INVERSE_TWO_PI else float(text)


def convert(machine, raw: np.ndarray, kind: str, negate: bool, absolute: bool):
    """Apply float input modifiers and turn bits into the type that the function takes."""
    if kind in ("f16", "f32", "f64", "bf16", "h16"):
        return _float_value(machine, raw, "f16" if kind == "h16" else kind, negate, absolute)
    if kind in ("x16", "x32", "x64", "xh16"):
        return _float_bits(raw, int(kind[-2:]), negate, absolute)
    if kind in ("m16", "m32", "m64", "mh16"):
        kind = kind.replace("h", "")
        pattern = _float_bits(raw, int(kind[-2:]), negate, absolute)
        if not machine.mode >> 9 & 1:  # without IEEE mode a signalling NaN is like any other
            pattern = _quieted(pattern, bits.FORMATS[f"f{kind[1:]}"])
        fmt = bits.FORMATS[f"f{kind[1:]}"]
        return pattern if machine.denorm(f"f{kind[1:]}") & 1 else bits.flushed_bits(pattern, fmt)
    plain = kind.lstrip("shk")
    if plain in ("u16", "i16", "b16"):
        return (raw & 0xFFFF).astype(np.uint16).view(np.int16 if plain == "i16" else np.uint16)
    if plain[0] == "i":
        return np.ascontiguousarray(raw).view(np.int64 if plain == "i64" else np.int32)
    return raw


def _float_bits(raw: np.ndarray, width: int, negate: bool, absolute: bool) -> np.ndarray:
    sign = raw.dtype.type(1 << (width - 1))
    raw = raw & raw.dtype.type((1 << width) - 1)
    raw = raw & ~sign if absolute else raw
    return raw ^ sign if negate else raw


def _quieted(pattern: np.ndarray, fmt: bits.Format) -> np.ndarray:
    quiet = pattern.dtype.type(1 << (fmt.precision - 2))
    return np.where(np.isnan(bits.decode(pattern, fmt)), pattern | quiet, pattern)


def _float_value(machine, raw, kind, negate, absolute):
    fmt = bits.FORMATS[kind]
    value = bits.decode(_float_bits(raw, fmt.width, negate, absolute), fmt)
    return value if kind == "bf16" or machine.denorm(kind) & 1 else bits.flush(value, fmt)
