"""Execute one VALU or SALU instruction, given as text, on the registers of many wavefronts at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from . import bits
from .operands import Line, parse, read_source
from .sdwa_dpp import dpp_lanes, sdwa_write

LANES = 64
Array = np.ndarray


@dataclass(frozen=True)
class Spec:
    """What an instruction reads and writes ("f32: f32 f32") and the function between them."""

    types: str
    fn: Callable[..., object]
    flags: frozenset[str] = frozenset()

    @property
    def dst(self) -> list[str]:
        return self.types.replace("=", "").split(":")[0].split()

    @property
    def src(self) -> list[str]:
        return self.types.split(":")[1].split()


@dataclass
class Machine:
    """Registers of G wavefronts: VGPRs (G, 64), SGPRs (G,), masks as booleans (G, 64)."""

    target: str
    groups: int
    v: dict[int, Array] = field(default_factory=dict)
    a: dict[int, Array] = field(default_factory=dict)
    s: dict[int | str, Array] = field(default_factory=dict)
    scc: Array = field(init=False)
    mode: int = 0x3F0  # IEEE, DX10 clamp and all denormals on: what compilers put in the descriptor

    def __post_init__(self) -> None:
        self.scc = np.zeros(self.groups, bool)
        self.s |= {"m0": self.scalar(0)}
        self.a |= {i: np.zeros((self.groups, LANES), np.uint32) for i in range(16)}
        self.write_mask("exec", np.ones((self.groups, LANES), bool))
        self.write_mask("vcc", np.zeros((self.groups, LANES), bool))

    def scalar(self, value: int) -> Array:
        return np.full(self.groups, value, np.uint32)

    def read_s64(self, name: str) -> Array:
        low, high = self._pair(name)
        return self.s[low].astype(np.uint64) | (self.s[high].astype(np.uint64) << np.uint64(32))

    def write_s64(self, name: str, value: Array) -> None:
        low, high = self._pair(name)
        self.s[low] = (value & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        self.s[high] = (value >> np.uint64(32)).astype(np.uint32)

    def _pair(self, name: str) -> tuple[int | str, int | str]:
        if name in ("vcc", "exec"):
            return f"{name}_lo", f"{name}_hi"
        first = int(re.fullmatch(r"s\[(\d+):\d+\]", name)[1])
        return first, first + 1

    def mask(self, name: str) -> Array:
        shifts = np.arange(LANES, dtype=np.uint64)
        return ((self.read_s64(name)[:, None] >> shifts) & np.uint64(1)).astype(bool)

    def write_mask(self, name: str, value: Array) -> None:
        weights = np.uint64(1) << np.arange(LANES, dtype=np.uint64)
        self.write_s64(name, np.where(value, weights, np.uint64(0)).sum(axis=1, dtype=np.uint64))

    @property
    def exec(self) -> Array:
        return self.mask("exec")

    def round_mode(self, kind: str) -> int:
        return self.mode & 3 if kind == "f32" else (self.mode >> 2) & 3

    def denorm(self, kind: str) -> int:
        """Bit 0 keeps input denormals, bit 1 output denormals."""
        return (self.mode >> 4) & 3 if kind == "f32" else (self.mode >> 6) & 3

    def run(self, text: str, table: dict[str, Spec]) -> None:
        line = parse(text)
        spec = table[line.base]
        if "whole" in spec.flags:
            spec.fn(self, line)
        elif line.base.startswith("s_"):
            self._scalar(line, spec)
        else:
            self._vector(line, spec)

    def _scalar(self, line: Line, spec: Spec) -> None:
        texts = line.operands[len([t for t in spec.dst if t != "scc"]) :]
        values = _sources(self, line, spec, texts)
        results = _as_tuple(spec.fn(*values))
        names = iter(line.operands)
        for kind, result in zip(spec.dst, results, strict=True):
            if kind == "scc":
                self.scc = np.broadcast_to(result, (self.groups,)).astype(bool)
            elif kind.endswith("64"):
                self.write_s64(next(names), result.astype(np.uint64))
            else:
                self.write_s32(next(names), result.astype(np.uint32))

    def write_s32(self, name: str, value: Array) -> None:
        key = int(name[1:]) if re.fullmatch(r"s\d+", name) else name
        self.s[key] = value

    def _vector(self, line: Line, spec: Spec) -> None:
        texts = line.operands[len([t for t in spec.dst if t not in ("exec", "vcc!")]) :]
        enable = self.exec
        if line.suffix == "dpp":
            values, enable = self._dpp_sources(line, spec, texts, enable)
        else:
            values = _sources(self, line, spec, texts)
        results = _as_tuple(spec.fn(*values))
        names = iter(line.operands)
        for kind, result in zip(spec.dst, results, strict=True):
            self._write(line, kind, kind if kind in ("exec", "vcc!") else next(names), result, enable, spec)

    def _dpp_sources(self, line, spec, texts, enable):
        lanes, valid = dpp_lanes(line.modifiers)
        live = valid & np.take_along_axis(enable, np.broadcast_to(lanes, enable.shape), axis=1)
        zero = "bound_ctrl" in line.modifiers
        values = _sources(self, line, spec, texts, dpp=(lanes, live))
        row, bank = (int(line.modifiers.get(k, "0xf"), 0) for k in ("row_mask", "bank_mask"))
        lane = np.arange(LANES)
        written = ((row >> (lane // 16)) & 1).astype(bool) & ((bank >> (lane % 16 // 4)) & 1).astype(bool)
        return values, enable & written & (live | zero)

    def _write(self, line, kind, name, result, enable, spec) -> None:
        if kind in ("c", "exec", "vcc!"):
            mask = np.broadcast_to(result, enable.shape) & enable
            target = {"exec": "exec", "vcc!": "vcc"}.get(kind, name)
            return self.write_mask(target, mask)
        if kind == "s32":
            return self.write_s32(name, result)
        return self._write_vector(line, kind, name, finish(self, line, kind, result, spec), enable)

    def _write_vector(self, line, kind, name, pattern, enable) -> None:
        bank = self.a if name.startswith("a") else self.v
        first = int(re.search(r"\d+", name)[0])
        words = pattern if isinstance(pattern, list) else split(pattern)
        for index, word in enumerate(words):
            old = bank[first + index]
            if line.suffix == "sdwa":
                word = sdwa_write(old, word, line.modifiers)
            elif kind in ("h16", "hu16", "hi16"):
                high = line.op_sel(len(line.operands) - 1)
                word = (old & 0xFFFF) | (word << 16) if high else (old & 0xFFFF0000) | (word & 0xFFFF)
            bank[first + index] = np.where(enable, word.astype(np.uint32), old)


def _as_tuple(result: object) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def split(pattern: Array) -> list[Array]:
    """One word, or low and high words of a 64-bit pattern."""
    if pattern.dtype.itemsize < 8:
        return [pattern.astype(np.uint32)]
    pattern = pattern.view(np.uint64)
    return [(pattern & np.uint64(0xFFFFFFFF)).astype(np.uint32), (pattern >> np.uint64(32)).astype(np.uint32)]


def _sources(machine: Machine, line: Line, spec: Spec, texts: list[str], dpp=None) -> list:
    """The values an instruction reads: listed operands, its old destination ("d"), masks, and SCC."""
    values, position = [], 0
    for kind in spec.src:
        if kind == "scc":
            values.append(machine.scc)
        elif kind == "vcc":
            values.append(machine.mask("vcc"))
        elif kind == "machine":
            values.append((machine, line))
        elif kind.startswith("d."):
            values.append(read_source(machine, line, line.operands[0], kind[2:], None, None))
        elif kind == "c":
            values.append(machine.mask(texts[position]))
            position += 1
        else:
            lanes = dpp if position == 0 else None
            values.append(read_source(machine, line, texts[position], kind, position, lanes))
            position += 1
    if position != len(texts):
        raise ValueError(f"{line}: {len(texts)} operands, the model knows {position}")
    return values


def finish(machine: Machine, line: Line, kind: str, result: Array, spec: Spec) -> Array:
    """Output modifiers, rounding and denormal control of a result; its bit pattern."""
    if spec.types.startswith("="):
        return wrap_or_saturate(result, kind, "clamp" in line.modifiers)
    if "raw" in spec.flags:
        return _modified_bits(machine, line, result, kind)
    if isinstance(result, list) or kind not in ("f16", "h16", "f32", "f64", "bf16"):
        return result
    name = "f16" if kind == "h16" else kind
    fmt = bits.FORMATS[name]
    mode = bits.RNE if "rne" in spec.flags else machine.round_mode(name)
    value = output_modifiers(machine, line, name, bits.round_to(result, fmt, mode), fmt, mode)
    return bits.encode(value, fmt)


def wrap_or_saturate(exact: Array, kind: str, clamp: bool) -> Array:
    """An exact integer result in the kind's width: modulo, or with clamp the nearest value that fits."""
    width = int(kind[-2:])
    if clamp:
        signed = "i" in kind
        least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        exact = np.clip(exact, least, most)
    return (exact & ((1 << width) - 1)).astype(np.uint32)


def _modified_bits(machine: Machine, line: Line, pattern: Array, kind: str) -> Array:
    """Denormal control, clamp and omod of an instruction that otherwise passes bits on (min, max, med3).

    MODE.FP_DENORM applies to these from GFX9 on: LLVM canonicalises, which flushes, by v_max (GCNSubtarget,
    supportsMinMaxDenormModes).
    """
    if not machine.denorm(f"f{kind[-2:]}") & 2:
        pattern = bits.flushed_bits(pattern, bits.FORMATS[f"f{kind[-2:]}"])
    if not ("clamp" in line.modifiers or line.omod):
        return pattern
    name = f"f{kind[-2:]}"
    fmt = bits.FORMATS[name]
    value = output_modifiers(machine, line, name, bits.decode(pattern, fmt), fmt, machine.round_mode(name))
    return bits.encode(value, fmt)


def output_modifiers(machine, line, name, value, fmt, mode):
    """OMOD counts only with output denormals and IEEE mode off; then clamp to [0, 1] (ISA, VOP3 fields)."""
    keep = machine.denorm(name) & 2
    value = value if keep else bits.flush(value, fmt)
    scale = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}.get(line.omod)
    if scale and not keep and not machine.mode >> 9 & 1:
        # Output modifiers do not keep the sign of zero (LLVM folds them only under no-signed-zeros).
        value = bits.flush(bits.round_to(value * scale, fmt, mode), fmt)
        value = np.where(value == 0, 0.0, value)
    if "clamp" in line.modifiers:
        clean = np.where(np.isnan(value), 0.0, value) if machine.mode >> 8 & 1 else value
        value = np.clip(clean, 0.0, 1.0) + 0.0
    return value
