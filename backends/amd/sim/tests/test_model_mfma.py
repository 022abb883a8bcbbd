"""Lane maps of every matrix instruction, with operands in VGPRs and AGPRs and every broadcast control."""

from __future__ import annotations

from itertools import product as combinations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._compile import TARGETS
from ._legal import legal
from ._operands import RESULT_V, Case, Operands, kernel, simulate
from .model import mfma

A, B, SCALE_A, SCALE_B, INDEX, C, INPUTS = 8, 16, 24, 25, 26, 28, 52
PAIRS = [f"{a}_{b}" for a, b in combinations(("fp8", "bf8"), repeat=2)]


def _names() -> list[str]:
    sizes = {
        "f32": ["32x32x1_2b", "16x16x1_4b", "4x4x1_16b", "32x32x2", "16x16x4"],
        "xf32": ["32x32x4", "16x16x8"],
        "f16": ["32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x8", "16x16x16", "32x32x16", "16x16x32"],
    }
    names = [f"v_mfma_f32_{s}_{t}" for t, shapes in sizes.items() for s in shapes]
    names += [f"v_mfma_f32_{s}_bf16" for s in sizes["f16"]]
    names += [f"v_mfma_f32_{s}_{p}" for s in ("32x32x16", "16x16x32") for p in PAIRS]
    names += [f"v_mfma_f64_{s}_f64" for s in ("16x16x4", "4x4x4_4b")]
    i8 = ["32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x16", "16x16x32", "32x32x32", "16x16x64"]
    names += [f"v_mfma_i32_{s}_i8" for s in i8]
    halves = [f"{s}_{t}" for s in ("32x32x16", "16x16x32", "32x32x32", "16x16x64") for t in ("f16", "bf16")]
    names += [f"v_smfmac_f32_{s}" for s in halves]
    bytes_ = ["32x32x32", "16x16x64", "32x32x64", "16x16x128"]
    names += [f"v_smfmac_f32_{s}_{p}" for s in bytes_ for p in PAIRS]
    return names + [f"v_smfmac_i32_{s}_i8" for s in bytes_]


NAMES = _names()
F8F6F4 = [f"v_mfma_{s}f32_{m}_f8f6f4" for s in ("", "scale_") for m in ("32x32x64", "16x16x128")]


def span(bank: str, first: int, count: int) -> str:
    return f"{bank}[{first}:{first + count - 1}]" if count > 1 else f"{bank}{first}"


def integers(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float64)


class Inputs:
    """Random small integers in the registers of one shape."""

    def __init__(self, shape: mfma.Shape, target: str, groups: int = 4, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.shape, self.target, self.groups, self.rng = shape, target, groups, rng
        self.a = integers(rng, groups, 64, shape.a_items)
        self.b = integers(rng, groups, 64, shape.b_items)
        self.c = integers(rng, groups, 64, shape.m * shape.n * shape.blocks // 64)
        pairs = rng.choice([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], (groups, 64, 8))
        self.index = sum(pairs[:, :, i].astype(np.uint32) << np.uint32(4 * i) for i in range(8))
        self.scale_a, self.scale_b = rng.integers(124, 131, (2, groups, 64, 4)).astype(np.uint32)

    def operands(self) -> Operands:
        words = np.zeros((self.groups, INPUTS, 64), np.uint32)
        for first, values, kind in ((A, self.a, self.shape.a), (B, self.b, self.shape.b)):
            part = mfma.to_registers(values, kind, self.target)
            words[:, first - 8 : first - 8 + part.shape[1]] = part
        part = mfma.result_words(self.c, self.shape.result)
        words[:, C - 8 : C - 8 + part.shape[1]] = part
        words[:, INDEX - 8] = self.index
        for register, scale in ((SCALE_A, self.scale_a), (SCALE_B, self.scale_b)):
            words[:, register - 8] = sum(scale[..., i] << np.uint32(8 * i) for i in range(4))
        scalars = self.rng.integers(0, 2**32, (self.groups, 16), dtype=np.uint32)
        return Operands(words, scalars, self.target, agprs=True)

    def run(self, case: Case) -> np.ndarray:
        operands = self.operands()
        program = sim.load(kernel([case], operands).text(), target=self.target)
        return simulate(program, [case], operands)[0].swapaxes(0, 1)


def instruction(shape: mfma.Shape, banks: str = "vvv", tail: str = "") -> Case:
    """The instruction with A, B and C/D in the named register banks; results come back to VGPRs."""
    count = shape.result_registers
    bank_a, bank_b, bank_c = banks
    setup, after = [], []
    for bank, first, registers in ((bank_a, A, shape.a_registers), (bank_b, B, shape.b_registers)):
        if bank == "a":
            setup += [f"v_accvgpr_write_b32 a{first + i}, v{first + i}" for i in range(registers)]
    start = 64 if bank_c == "a" else RESULT_V
    write = "v_accvgpr_write_b32 a" if bank_c == "a" else "v_mov_b32_e32 v"
    setup += [f"{write}{start + i}, v{C + i}" for i in range(count)]
    if bank_c == "a":
        after = ["s_nop 15", "s_nop 15", *(f"v_accvgpr_read_b32 v{RESULT_V + i}, a{64 + i}" for i in range(count))]
    result = span(bank_c, start, count)
    third = f"v{INDEX}" if shape.sparse else result
    sources = f"{span(bank_a, A, shape.a_registers)}, {span(bank_b, B, shape.b_registers)}, {third}"
    text = "\n".join([f"{shape.name} {result}, {sources} {tail}".strip(), *after])
    return Case(text, count, setup=tuple(setup), old=False)


def wanted(inputs: Inputs, **controls) -> np.ndarray:
    shape = inputs.shape
    if shape.sparse:
        values = mfma.sparse_product(shape, inputs.a, inputs.b, inputs.c, inputs.index, **controls)
    else:
        values = mfma.product(shape, inputs.a, inputs.b, inputs.c, **controls)
    return mfma.result_words(values, shape.result)


def exists(name: str, target: str) -> bool:
    formats = ("fp8", "fp8") if "f8f6f4" in name else None
    shape = mfma.shape(name, formats)
    tail = ", v24, v25" if "scale" in name else ""
    return legal([instruction(shape).text.split("\n")[0] + tail], target)[0]


LEGAL = [(n, t) for t in TARGETS for n in NAMES if exists(n, t)]
IDS = [f"{n}-{t}" for n, t in LEGAL]


def test_each_name_exists_on_a_target():
    assert {n for n, _ in LEGAL} == set(NAMES)


@pytest.mark.parametrize(("name", "target"), LEGAL, ids=IDS)
@pytest.mark.parametrize("banks", ["vvv", "aav", "vaa"])
def test_lane_map(name, target, banks):
    inputs = Inputs(mfma.shape(name), target)
    np.testing.assert_array_equal(inputs.run(instruction(inputs.shape, banks)), wanted(inputs))


def controls_of(shape: mfma.Shape) -> list[dict[str, int]]:
    """Legal broadcast and index controls: CBSZ up to the number of blocks, ABID below 2^CBSZ, all BLGP."""
    if shape.sparse:
        sets = 32 // (2 * shape.a_items)
        return [{"abid": i} for i in range(sets)] + [{"cbsz": 1, "abid": 1}]
    if shape.result == "f64" or shape.a != shape.b or shape.a in ("fp8", "bf8"):
        return []
    choices = [{"blgp": g} for g in range(8)]
    largest = shape.blocks.bit_length() - 1
    choices += [{"cbsz": s, "abid": i} for s in range(1, largest + 1) for i in range(1 << s)]
    return [*choices, {"cbsz": 1, "abid": 1, "blgp": 3}] if largest else choices


@pytest.mark.parametrize(("name", "target"), LEGAL, ids=IDS)
def test_broadcast_and_index_controls(name, target):
    inputs = Inputs(mfma.shape(name), target, groups=2)
    for controls in controls_of(inputs.shape):
        tail = " ".join(f"{k}:{v}" for k, v in controls.items())
        got = inputs.run(instruction(inputs.shape, tail=tail))
        np.testing.assert_array_equal(got, wanted(inputs, **controls), err_msg=tail)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"])
@pytest.mark.parametrize("negate", range(8))
def test_f64_negation(name, target, negate):
    inputs = Inputs(mfma.shape(name), target)
    bits = ",".join(str(negate >> i & 1) for i in range(3))
    got = inputs.run(instruction(inputs.shape, tail=f"neg:[{bits}]"))
    for i, values in enumerate((inputs.a, inputs.b, inputs.c)):
        values *= -1 if negate >> i & 1 else 1
    # Zeros of either sign come from sums whose terms cancel; the sign is not this test's business.
    want = wanted(inputs)
    assert (got == want).mean() > 0.9
    zero = (want & 0x7FFFFFFF) == (got & 0x7FFFFFFF)
    assert ((got == want) | zero).all()


@pytest.mark.parametrize(("name", "target"), LEGAL, ids=IDS)
def test_exec_is_ignored(name, target):
    inputs = Inputs(mfma.shape(name), target, groups=1)
    case = instruction(inputs.shape)
    masked = Case(case.text, case.vectors, setup=(*case.setup, "s_mov_b64 exec, 0x5555"), old=False)
    np.testing.assert_array_equal(inputs.run(masked), wanted(inputs))


FORMAT_PAIRS = list(combinations(mfma.F8F6F4, repeat=2))


def scales(inputs: Inputs, byte_a: int, byte_b: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale of each row and block of 32 along k: lane = row + rows * block (ISA 7.2.1)."""
    shape = inputs.shape
    blocks = shape.k // 32
    per_lane = (inputs.scale_a[..., byte_a], inputs.scale_b[..., byte_b])
    a, b = (np.exp2(s.astype(float) - 127).reshape(-1, blocks, shape.m) for s in per_lane)
    return tuple(np.repeat(s.swapaxes(1, 2), 32, axis=2) for s in (a, b))


def scaled_product(inputs: Inputs, byte_a: int, byte_b: int) -> np.ndarray:
    shape = inputs.shape
    left, right = mfma.gather(shape, inputs.a, True), mfma.gather(shape, inputs.b, False)
    scale_a, scale_b = scales(inputs, byte_a, byte_b)
    total = np.einsum("gik,gjk->gij", left[:, 0] * scale_a, right[:, 0] * scale_b)[:, None]
    values = mfma.scatter(shape, total + mfma.collect(shape, inputs.c))
    return mfma.result_words(values, "f32")


@pytest.mark.parametrize("name", F8F6F4)
@pytest.mark.parametrize("formats", FORMAT_PAIRS, ids="-".join)
def test_f8f6f4_formats_and_scales(name, formats):
    inputs = Inputs(mfma.shape(name, formats), "gfx950", groups=2)
    codes = " ".join(f"{k}:{mfma.F8F6F4.index(f)}" for k, f in zip(("cbsz", "blgp"), formats, strict=True))
    if "scale" not in name:
        got = inputs.run(instruction(inputs.shape, tail=codes))
        np.testing.assert_array_equal(got, wanted(inputs))
        return
    for a, b in ((0, 0), (1, 2), (3, 1), (2, 3)):
        tail = f", v{SCALE_A}, v{SCALE_B} op_sel:[{a & 1},{b & 1},0] op_sel_hi:[{a >> 1},{b >> 1},0] {codes}"
        text = instruction(inputs.shape, tail="@").text.replace(" @", tail)
        case = instruction(inputs.shape)
        got = inputs.run(Case(text, case.vectors, setup=case.setup, old=False))
        np.testing.assert_array_equal(got, scaled_product(inputs, a, b), err_msg=tail)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "target"), LEGAL, ids=IDS)
@pytest.mark.parametrize("first", [True, False], ids=["A", "B"])
def test_every_element_alone(name, target, first):
    """One element at a time is non-zero: each must reach exactly its row (or column)."""
    shape = mfma.shape(name)
    items = shape.a_items if first else shape.b_items
    inputs = Inputs(shape, target, groups=64 * items)
    values = inputs.a if first else inputs.b
    values[:] = 0
    values.reshape(64 * items, -1)[np.arange(64 * items), np.arange(64 * items)] = 1
    np.testing.assert_array_equal(inputs.run(instruction(shape)), wanted(inputs))
