"""Matrix instructions: vectors read from hardware and published ones, the simulator's C++, and laws of each rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from warpwave.backends.amd.sim._sim import arith
from warpwave.conformance.models import MODELS, Model, model_of, multiply_accumulate
from warpwave.conformance.models.encodings import ENCODINGS, decode
from warpwave.tiles.dtypes import BY_NAME

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NVIDIA = sorted((HERE / "vectors/mma").glob("*.npz"))
CDNA3 = sorted((ROOT / "backends/amd/sim/tests/vectors/mma").glob("*.npz"))
FORMATS = {"bf8": "fp8e5m2fnuz", "fp8": "fp8e4m3fnuz", "e4m3": "fp8e4m3", "e5m2": "fp8e5m2", "xf32": "tf32"}


def model_of_vector(path: Path) -> Model:
    """By the file's name: machine, instruction, shape, formats."""
    parts = path.stem.split("_")
    if parts[0] == "cdna3":
        b = parts[-1]
        a = parts[-2] if parts[-2] in FORMATS else b
        instruction = "cdna3 mfma 4x4x4" if "4x4x4" in parts else "cdna3 mfma"
    else:
        a, b = parts[4:6]
        half = " f16" if parts[1] == "wgmma" and parts[3] == "f16" else ""
        instruction = f"{parts[0]} {parts[1]}{half}"
    return model_of(instruction, FORMATS.get(a, a), FORMATS.get(b, b))


def equal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Same bits, any NaN being one."""
    as_float = {2: np.float16, 4: np.float32}[want.dtype.itemsize]
    return (got == want) | (np.isnan(got.view(as_float)) & np.isnan(want.view(as_float)))


def test_all_vectors_are_there():
    assert (len(NVIDIA), len(CDNA3)) == (12, 16)


@pytest.mark.parametrize("path", [p for p in NVIDIA if p.stem.startswith("hopper")], ids=lambda p: p.stem)
def test_hopper_is_what_the_h200_gives(path):
    """Every bit, also of NaN."""
    data = np.load(path)
    got = multiply_accumulate(model_of_vector(path), data["A"], data["B"], data["C"])
    np.testing.assert_array_equal(got, data["D"])


@pytest.mark.parametrize("path", [p for p in NVIDIA + CDNA3 if "hopper" not in p.stem], ids=lambda p: p.stem)
def test_published_models(path, record_property):
    """Bit for bit where zeros align as published; with zeros as on the H200, few special tiles differ."""
    data = np.load(path)
    model = model_of_vector(path)
    unit = model.unit if not hasattr(model.unit, "zeros_align") else replace(model.unit, zeros_align=True)
    published = multiply_accumulate(replace(model, unit=unit), data["A"], data["B"], data["C"])
    assert equal(published, data["D"]).all()
    ours = multiply_accumulate(model, data["A"], data["B"], data["C"])
    differs = ~equal(ours, data["D"])
    record_property("zero_factor_differences", int(differs.sum()))
    assert not differs[data["kind"] != "special"].any()
    assert differs.mean() < 0.02


def test_the_published_rule_for_zeros_is_not_hopper():
    """The H200's bits show which of the two rules holds."""
    path = next(p for p in NVIDIA if p.stem == "hopper_wgmma_m64n8k16_f32_bf16_bf16")
    data, model = np.load(path), model_of("hopper wgmma", "bf16")
    aligning = replace(model, unit=replace(model.unit, zeros_align=True))
    assert not equal(multiply_accumulate(aligning, data["A"], data["B"], data["C"]), data["D"]).all()


# -- against the simulator ------------------------------------------------------------------------------

SIMULATED = {
    "f16": "f16",
    "bf16": "bf16",
    "tf32": "xf32",
    "fp8e4m3": "fp8_ocp",
    "fp8e5m2": "bf8_ocp",
    "fp8e4m3fnuz": "fp8_fnuz",
    "fp8e5m2fnuz": "bf8_fnuz",
}
MFMA = [(instruction, name) for instruction in ("cdna3 mfma", "cdna4 mfma") for name in MODELS[instruction]]


def operands(model: Model, rng: np.random.Generator, kind: str) -> list[np.ndarray]:
    """Codes of A (32, 32) and B (32, 32), and f32 bits of C."""
    codes = []
    for name in (model.a, model.b):
        width = 1 + ENCODINGS[name].sign_shift
        bits = rng.integers(0, 1 << width, (32, 32))
        if kind == "near one":
            form = ENCODINGS[name]
            exponent = form.bias + rng.integers(-3, 3, (32, 32)) << form.fraction_bits
            bits = bits & ((1 << form.fraction_bits) - 1 | 1 << form.sign_shift) | exponent
        codes.append(bits)
    c = rng.standard_normal((32, 32)).astype(np.float32) if kind == "near one" else None
    bits = rng.integers(0, 1 << 32, (32, 32)).astype(np.uint32) if c is None else c.view(np.uint32)
    return [*codes, bits]


def simulated(model: Model, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The same product by the simulator's C++."""
    if model.a == "f32":
        as_floats = (np.ascontiguousarray(x.astype(np.uint32)).view(np.float32) for x in (a, b, c))
        return arith.multiply_accumulate_f32(*as_floats).view(np.uint32)
    names = [SIMULATED[model.through or n] for n in (model.a, model.b)]
    if model.through:
        a, b = (x.astype(np.uint8).view(BY_NAME[n].numpy) for x, n in ((a, model.a), (b, model.b)))
        a, b = (x.astype(BY_NAME[model.through].numpy).view(np.uint16).astype(np.int64) for x in (a, b))
    return arith.multiply_accumulate(*names, a, b, c)


@pytest.mark.parametrize("kind", ["raw", "near one"])
@pytest.mark.parametrize(("instruction", "formats"), MFMA, ids=str)
def test_the_simulator_adds_alike(instruction, formats, kind):
    """Two programs written apart, 8,000 products of depth 32 each."""
    rng = np.random.default_rng(len(formats))
    model = MODELS[instruction][formats]
    for _ in range(8):
        a, b, c = operands(model, rng, kind)
        assert equal(multiply_accumulate(model, a, b, c), simulated(model, a, b, c)).all()


# -- the parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ENCODINGS if n not in ("f32", "tf32")])
def test_every_code_has_its_value(name):
    """Against ml_dtypes, all codes of all formats up to 16 bits."""
    dtype = BY_NAME[name].numpy
    codes = np.arange(1 << 8 * dtype.itemsize)
    parts = decode(name, codes)
    with np.errstate(invalid="ignore"):
        want = codes.astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    np.testing.assert_array_equal(parts.value, want)
    finite = np.isfinite(want)
    exact = np.ldexp(parts.significand, parts.exponent.astype(int))
    np.testing.assert_array_equal(exact[finite], want[finite])


def test_tf32_operands_lose_their_low_bits():
    bits = np.array([0x3F800FFF, 0x3F801FFF, 0x7F800001])
    np.testing.assert_array_equal(decode("tf32", bits).value, [1.0, 1.0, np.inf])


@pytest.mark.parametrize("instruction", MODELS)
def test_small_integers_are_exact(instruction):
    """No rule may lose a bit of sums that f32 (fp8 on tensor cores: 13 fraction bits) holds."""
    rng = np.random.default_rng(0)
    for model in MODELS[instruction].values():
        a, b = (rng.integers(-3, 4, (16, 16)) for _ in range(2))
        codes = [encode(name, x) for name, x in ((model.a, a), (model.b, b))]
        c = rng.integers(-3, 4, (16, 16))
        accumulator = getattr(model.unit, "accumulator", "f32")
        got = multiply_accumulate(model, *codes, encode(accumulator, c))
        np.testing.assert_array_equal(decode(accumulator, got).value, c + a @ b)


def encode(name: str, values: np.ndarray) -> np.ndarray:
    """Codes of values that the format holds."""
    dtype = BY_NAME["f32" if name == "tf32" else name].numpy
    return values.astype(dtype).view(f"u{dtype.itemsize}")


@pytest.mark.parametrize(
    ("accumulator", "addend", "hopper", "cdna3"),
    [
        (0x3F800000, 0.75 * 2.0**-23, 0x3F800000, 0x3F800001),  # cut; rounded to nearest
        (0xBF800000, -0.75 * 2.0**-23, 0xBF800000, 0xBF800001),
        (0x3F800000, 0.25 * 2.0**-23, 0x3F800000, 0x3F800000),
        (0xA1800000, 1.0, 0x3F800000, 0x3F7FFFFF),  # an accumulator of -2^-60 is cut to 0; rounded down to -2^-24
    ],
)
def test_the_vendors_round_differently(accumulator, addend, hopper, cdna3):
    a, b = (encode("bf16", np.array([[x]])) for x in (addend, 1.0))
    c = np.array([[accumulator]], np.uint32)
    got = [multiply_accumulate(model_of(i, "bf16"), a, b, c)[0, 0] for i in ("hopper wgmma", "cdna3 mfma")]
    assert [hex(x) for x in got] == [hex(hopper), hex(cdna3)]


def test_hopper_fp8_keeps_13_bits():
    """1 + 2^-13 + 2^-14: the last term is lost on tensor cores and kept by CDNA3."""
    codes = [0x38, 0x08, 0x08]  # 1, 2^-6, 2^-6 in e4m3
    a = np.array([codes + [0] * 13])
    b = np.array([[0x38], [0x01 << 2], [0x01 << 1], *[[0]] * 13])  # 1, 2^-7, 2^-8
    c = np.zeros((1, 1), np.uint32)
    hopper = multiply_accumulate(model_of("hopper wgmma", "fp8e4m3"), a, b, c)
    cdna4 = multiply_accumulate(model_of("cdna4 mfma", "fp8e4m3"), a, b, c)
    assert hopper.view(np.float32)[0, 0] == 1 + 2.0**-13
    assert cdna4.view(np.float32)[0, 0] == 1 + 2.0**-13 + 2.0**-14


def test_an_unknown_format_is_named():
    with pytest.raises(KeyError, match="ampere mma has no model for fp8e4m3; it has f16, bf16, tf32"):
        model_of("ampere mma", "fp8e4m3")
