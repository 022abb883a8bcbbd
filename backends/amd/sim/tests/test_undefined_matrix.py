"""Undefined values through matrix instructions: rows of A, columns of B, elements of C, scales and sparse indices.

The model marks undefined elements as NaN and multiplies zeros with NumPy: what comes out as NaN is undefined.
"""

from __future__ import annotations

import functools
import re
import zlib
from dataclasses import dataclass, field

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._asm import Kernel
from ._compile import TARGETS
from ._legal import legal
from .model import mfma
from .test_model_mfma import F8F6F4, NAMES, controls_of

A, B, C, SCALES, INDEX, RESULT = 8, 24, 64, 40, 44, 128
NAN = float("nan")


@dataclass
class Inputs:
    """Zeros, some undefined: elements as the model sees them, and the defined lanes of each register."""

    shape: mfma.Shape
    rng: np.random.Generator
    defined: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        s = self.shape
        self.a, self.b = np.zeros((1, 64, s.a_items)), np.zeros((1, 64, s.b_items))
        self.c = np.zeros((1, 64, s.m * s.n * s.blocks // 64))
        self.scaled = "scale" in s.name
        spans = [(A, s.a_registers), (B, s.b_registers), (C, s.result_registers), (SCALES, 2), (INDEX, 1)]
        self.defined = {first + i: (1 << 64) - 1 for first, count in spans for i in range(count)}

    def spoil(self, operand: str) -> None:
        """Leave one register of an operand undefined in one lane."""
        lane = int(self.rng.integers(64))
        if operand == "index":
            return self._spoil_all(INDEX, lane, self.a)
        if operand in ("scale_a", "scale_b"):
            first = operand == "scale_a"
            return self._spoil_all(SCALES + (not first), lane, self.a if first else self.b)
        values, first, kind = {
            "a": (self.a, A, self.shape.a),
            "b": (self.b, B, self.shape.b),
            "c": (self.c, C, self.shape.result),
        }[operand]
        width = 32 if kind == "i32" else mfma.WIDTH[kind]
        register = int(self.rng.integers(values.shape[2] * width // 32))
        items = np.arange(values.shape[2])
        inside = (items * width < 32 * (register + 1)) & ((items + 1) * width > 32 * register)
        values[0, lane, inside] = NAN
        self.defined[first + register] &= ~(1 << lane)
        return None

    def _spoil_all(self, register: int, lane: int, values: np.ndarray) -> None:
        """A scale or an index belongs to every element that its lane holds."""
        self.defined[register] &= ~(1 << lane)
        values[0, lane] = NAN

    def operands(self) -> list[str]:
        extra = [
            o for o, used in (("index", self.shape.sparse), ("scale_a", self.scaled), ("scale_b", self.scaled)) if used
        ]
        return ["a", "b", "c", *extra]

    def undefined_lanes(self, **controls) -> list[int]:
        """For each result register, the lanes that must be undefined."""
        with np.errstate(invalid="ignore"):
            if self.shape.sparse:
                index = np.full((1, 64), 0x44444444, np.uint32)
                values = mfma.sparse_product(self.shape, self.a, self.b, self.c, index, **controls)
            else:
                values = mfma.product(self.shape, self.a, self.b, self.c, **controls)
        marks = np.isnan(values[0]).T  # [item, lane]
        if self.shape.result == "f64":
            marks = np.repeat(marks, 2, axis=0)
        return [sum(1 << int(lane) for lane in np.flatnonzero(row)) for row in marks]


def under(mask: int, *lines: str) -> list[str]:
    return [f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}", f"s_mov_b32 exec_hi, {mask >> 32:#x}", *lines]


def span(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def instruction(shape: mfma.Shape, tail: str) -> str:
    result, scaled = span(RESULT, shape.result_registers), "scale" in shape.name
    third = f"v{INDEX}" if shape.sparse else span(C, shape.result_registers)
    scales = f", v{SCALES}, v{SCALES + 1} op_sel:[0,0,0] op_sel_hi:[0,0,0]" if scaled else ""
    a, b = span(A, shape.a_registers), span(B, shape.b_registers)
    return f"{shape.name} {result}, {a}, {b}, {third}{scales} {tail}".strip()


def body(inputs: Inputs, tail: str, stores: dict[int, int]) -> list[str]:
    """Registers, the instruction, and the stores: result register -> lanes."""
    shape = inputs.shape
    lines = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_lshlrev_b32_e32 v0, 2, v0"]
    for register, lanes in inputs.defined.items():
        value = {INDEX: "0x44444444", SCALES: "0x7f7f7f7f", SCALES + 1: "0x7f7f7f7f"}.get(register, "0")
        lines += under(lanes, f"v_mov_b32_e32 v{register}, {value}")
    lines += under((1 << 64) - 1)
    if shape.sparse:
        for i in range(shape.result_registers):  # a lane that the copy would miss stays undefined
            lines.append(f"v_mov_b32_e32 v{RESULT + i}, v{C + i}")
    lines += ["s_nop 4", instruction(shape, tail), *["s_nop 15"] * 2, "s_waitcnt lgkmcnt(0)"]
    for register, lanes in stores.items():
        if lanes:
            lines += under(lanes, f"global_store_dword v0, v{RESULT + register}, s[4:5]")
    return lines


def run(inputs: Inputs, target: str, tail: str, stores: dict[int, int]) -> None:
    text = Kernel(body(inputs, tail, stores), target).text()
    out = np.ones(64, np.uint32)
    sim.load(text, target=target).launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[out])
    stored = functools.reduce(int.__or__, stores.values(), 0)
    assert [int(x) for x in out] == [1 - (stored >> lane & 1) for lane in range(64)]


def check(shape: mfma.Shape, target: str, spoiled: list[str], tail: str = "", **controls) -> None:
    rng = np.random.default_rng(zlib.crc32(f"{shape}{spoiled}{tail}".encode()))
    inputs = Inputs(shape, rng)
    for operand in spoiled:
        inputs.spoil(operand)
    undefined = inputs.undefined_lanes(**controls)
    run(inputs, target, tail, {r: ~lanes & (1 << 64) - 1 for r, lanes in enumerate(undefined)})
    tainted = [r for r, lanes in enumerate(undefined) if lanes]
    assert tainted or not spoiled or controls, "nothing to find"
    for register in tainted[:1] + tainted[-1:]:
        with pytest.raises(sim.SimError) as stopped:
            run(inputs, target, tail, {register: (1 << 64) - 1})
        assert stopped.value.kind == "uninit"
        assert stopped.value.lanes == undefined[register]


def exists(name: str, target: str) -> bool:
    formats = ("fp8", "fp8") if "f8f6f4" in name else None
    return legal([instruction(mfma.shape(name, formats), "")], target)[0]


LEGAL = [(n, t) for t in TARGETS for n in NAMES if exists(n, t)]


@pytest.mark.parametrize(("name", "target"), LEGAL, ids=[f"{n}-{t}" for n, t in LEGAL])
def test_rows_columns_and_elements(name, target):
    shape = mfma.shape(name)
    for operand in Inputs(shape, np.random.default_rng(0)).operands():
        check(shape, target, [operand])
    check(shape, target, ["a", "a", "b", "c", "c"])
    check(shape, target, [])


BROADCAST = [(n, t) for n, t in LEGAL if t == "gfx950" and controls_of(mfma.shape(n)) and "smfmac" not in n]


@pytest.mark.parametrize(("name", "target"), BROADCAST, ids=[n for n, _ in BROADCAST])
def test_broadcast_lanes_take_their_state_along(name, target):
    shape = mfma.shape(name)
    for controls in controls_of(shape)[:: 5 if shape.blocks == 16 else 3]:
        tail = " ".join(f"{k}:{v}" for k, v in controls.items())
        check(shape, target, ["a", "b", "b"], tail, **controls)


FORMATS = [("fp8", "fp4"), ("fp6", "bf8"), ("bf6", "fp6"), ("fp4", "fp4")]


@pytest.mark.parametrize("name", F8F6F4)
@pytest.mark.parametrize("formats", FORMATS, ids="-".join)
def test_formats_and_scales(name, formats):
    shape = mfma.shape(name, formats)
    tail = " ".join(f"{k}:{mfma.F8F6F4.index(f)}" for k, f in zip(("cbsz", "blgp"), formats, strict=True))
    for operand in Inputs(shape, np.random.default_rng(0)).operands():
        check(shape, "gfx950", [operand], tail)
    check(shape, "gfx950", ["a", "b", "c"], tail)


def test_only_the_selected_byte_of_a_scale_counts():
    """The other bytes of the scale register may hold anything."""
    shape = mfma.shape("v_mfma_scale_f32_16x16x128_f8f6f4", ("fp8", "fp8"))
    inputs = Inputs(shape, np.random.default_rng(0))
    lines = body(inputs, "cbsz:0 blgp:0", {0: (1 << 64) - 1})
    at = next(i for i, line in enumerate(lines) if re.match(rf"v_mov_b32_e32 v{SCALES},", line))
    define = "v_mov_b32_sdwa v{0}, v0 dst_sel:{1} dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0"
    lines[at : at + 1] = [define.format(SCALES, "BYTE_0"), "s_nop 1"]
    program = sim.load(Kernel(lines, "gfx950").text(), target="gfx950")
    program.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[np.ones(64, np.uint32)])
    lines[at] = define.format(SCALES, "BYTE_1")
    program = sim.load(Kernel(lines, "gfx950").text(), target="gfx950")
    with pytest.raises(sim.SimError, match="undefined value"):
        program.launch("k", grid=(1, 1, 1), block=(64, 1, 1), args=[np.ones(64, np.uint32)])
