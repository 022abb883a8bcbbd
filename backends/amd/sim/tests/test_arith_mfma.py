"""Matrix-core sums: bit for bit against stored vectors and against an independent integer model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpwave.backends.amd import sim
from warpwave.backends.amd.sim._sim import arith

from . import mma_model

VECTORS = sorted((Path(__file__).parent / "vectors" / "mma").glob("cdna3_*.npz"))
# (name, A type, B type, M, N, K): every distinct sum of gfx942 and gfx950
SHAPES = [
    ("32x32x8_f16", "f16", "f16", 32, 32, 8),
    ("16x16x16_f16", "f16", "f16", 16, 16, 16),
    ("32x32x4_2b_f16", "f16", "f16", 32, 32, 4),
    ("16x16x32_f16", "f16", "f16", 16, 16, 32),
    ("32x32x8_bf16", "bf16", "bf16", 32, 32, 8),
    ("16x16x16_bf16", "bf16", "bf16", 16, 16, 16),
    ("4x4x4_16b_bf16", "bf16", "bf16", 4, 4, 4),
    ("32x32x16_bf16", "bf16", "bf16", 32, 32, 16),
    ("32x32x4_xf32", "xf32", "xf32", 32, 32, 4),
    ("16x16x8_xf32", "xf32", "xf32", 16, 16, 8),
    *[
        (f"{m}x{m}x{k}_{a}_{b}", a, b, m, m, k)
        for m, k in ((32, 16), (16, 32))
        for s in ("fnuz", "ocp")
        for a in (f"fp8_{s}", f"bf8_{s}")
        for b in (f"fp8_{s}", f"bf8_{s}")
    ],
]
F8F6F4 = ("fp8_ocp", "bf8_ocp", "fp6", "bf6", "fp4")
SCALED = [(a, b, m, k) for a in F8F6F4 for b in F8F6F4 for m, k in ((16, 128), (32, 64))]


def _width(name: str) -> int:
    fmt = mma_model.FORMATS[name]
    return 1 + fmt.exponent_bits + fmt.mantissa_bits


def _encode(name: str, values: np.ndarray) -> np.ndarray:
    """Codes near `values`: the test needs their distribution, not their exact rounding."""
    fmt = mma_model.FORMATS[name]
    _, exponent = np.frexp(np.abs(values))
    low, high = 1 - fmt.bias, (1 << fmt.exponent_bits) - 2 - fmt.bias
    exponent = np.clip(exponent - 1, low, high)
    step = np.ldexp(1.0, exponent - fmt.mantissa_bits)
    whole = np.minimum(np.rint(np.abs(values) / step), (2 << fmt.mantissa_bits) - 1).astype(np.int64)
    code = whole + (exponent - low << fmt.mantissa_bits)
    return code | np.where(np.signbit(values), 1 << (_width(name) - 1), 0)


def _codes(rng: np.random.Generator, name: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    fmt, width = mma_model.FORMATS[name], _width(name)
    if kind == "raw":
        return rng.integers(0, 1 << width, shape)
    if kind == "special":
        top = (1 << (width - 1)) - 1
        edges = [0, 1, 1 << fmt.mantissa_bits, top, top - 1, top - (1 << fmt.mantissa_bits) + 1, top // 2 + 1]
        codes = rng.choice(np.array(edges), shape) | rng.integers(0, 2, shape) << (width - 1)
        return np.where(rng.random(shape) < 0.7, _codes(rng, name, shape, "normal"), codes)
    spread = {"normal": 1, "cancel": 1, "wide": 3 << (fmt.exponent_bits - 2), "tiny": 1}[kind]
    values = rng.standard_normal(shape) * np.exp2(rng.integers(-spread, spread + 1, shape))
    if kind == "tiny":
        values = values * 2.0 ** (1 - fmt.bias) * np.exp2(rng.integers(-2, 6, shape))
    if kind == "cancel":
        values[..., 1::2] = -values[..., 0::2] * (1 + rng.integers(-1, 2, values[..., 0::2].shape) * 2.0**-8)
    return _encode(name, values)


def _accumulators(rng: np.random.Generator, a: np.ndarray, shape: tuple[int, ...], kind: str) -> np.ndarray:
    if kind == "raw":
        return rng.integers(0, 1 << 32, shape).astype(np.uint32)
    scale = {"normal": 4.0, "cancel": 1e-3, "wide": 100.0, "tiny": 1e-7, "special": 1.0}[kind]
    return (rng.standard_normal(shape) * scale).astype(np.float32).view(np.uint32)


def _same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    nan = np.isnan(got.view(np.float32)) & np.isnan(want.view(np.float32))
    return (got == want) | nan


def _run(a_type, b_type, a, b, c, **kwargs):
    return np.stack(
        [
            arith.multiply_accumulate(a_type, b_type, x, y, z, **{key: v[i] for key, v in kwargs.items()})
            for i, (x, y, z) in enumerate(zip(a, b, c, strict=True))
        ]
    )


def _check_shape(shape: tuple, outputs: int, seed: int) -> None:
    _, a_type, b_type, m, n, k = shape
    kinds = ("normal", "wide", "cancel", "tiny", "special", "raw")
    tiles = max(1, outputs // (m * n * len(kinds)))
    rng = np.random.default_rng(seed)
    for kind in kinds:
        a = _codes(rng, a_type, (tiles, m, k), kind)
        b = np.swapaxes(_codes(rng, b_type, (tiles, n, k), "normal" if kind == "cancel" else kind), 1, 2)
        c = _accumulators(rng, a, (tiles, m, n), kind)
        want = mma_model.multiply_accumulate(a_type, b_type, a, b, c)
        same = _same(_run(a_type, b_type, a, b, c), want)
        assert same.all(), f"{kind}: {np.count_nonzero(~same)} of {same.size} outputs differ"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s[0])
def test_sums_equal_the_published_model(shape):
    _check_shape(shape, 3000, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s[0])
def test_sums_equal_the_published_model_at_length(shape):
    _check_shape(shape, 120_000, 2)


def _check_scaled(a_type: str, b_type: str, m: int, k: int, tiles: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for kind in ("normal", "raw", "special"):
        a = _codes(rng, a_type, (tiles, m, k), kind)
        b = np.swapaxes(_codes(rng, b_type, (tiles, m, k), kind), 1, 2)
        c = _accumulators(rng, a, (tiles, m, m), "raw" if kind == "raw" else "normal")
        low, high = (0, 256) if kind == "raw" else (122, 132)
        scales = {
            "a_scale": rng.integers(low, high, (tiles, m, k // 32)),
            "b_scale": rng.integers(low, high, (tiles, k // 32, m)),
        }
        want = mma_model.multiply_accumulate(a_type, b_type, a, b, c, **scales)
        same = _same(_run(a_type, b_type, a, b, c, **scales), want)
        assert same.all(), f"{kind}: {np.count_nonzero(~same)} of {same.size} outputs differ"


@pytest.mark.parametrize(("a_type", "b_type", "m", "k"), SCALED)
def test_block_scaled_sums(a_type, b_type, m, k):
    _check_scaled(a_type, b_type, m, k, 1, 3)


@pytest.mark.sweep
@pytest.mark.parametrize(("a_type", "b_type", "m", "k"), SCALED)
def test_block_scaled_sums_at_length(a_type, b_type, m, k):
    _check_scaled(a_type, b_type, m, k, 35_000 // (m * m), 4)


def _vector_types(path: Path) -> tuple[str, str]:
    parts = path.stem.split("_")
    b = parts[-1]
    a = parts[-2] if parts[-2] in ("fp8", "bf8") else b
    return tuple(f"{t}_fnuz" if t in ("fp8", "bf8") else t for t in (a, b))  # type: ignore[return-value]


def test_vectors_are_present():
    assert len(VECTORS) == 16


@pytest.mark.parametrize("path", VECTORS, ids=lambda p: p.stem)
def test_stored_vectors(path, record_property):
    """Equal everywhere but where the published rule lets a zero factor raise the alignment (unproven on AMD)."""
    data = np.load(path)
    a_type, b_type = _vector_types(path)
    want = data["D"].astype(np.uint32)
    if a_type == "f32":
        operands = (data[name].astype(np.uint32).view(np.float32) for name in "ABC")
        got = np.stack([arith.multiply_accumulate_f32(*tile) for tile in zip(*operands, strict=True)])
        got, uncertain = got.view(np.uint32), np.zeros(want.shape, bool)
    else:
        got = _run(a_type, b_type, data["A"], data["B"], data["C"])
        published, ours = (
            mma_model.multiply_accumulate(a_type, b_type, data["A"], data["B"], data["C"], zero=zero)
            for zero in (mma_model.PUBLISHED_ZERO, mma_model.FAR)
        )
        assert _same(published, want).all()
        uncertain = ~_same(published, ours)
    same = _same(got, want)
    record_property("zero_factor_differences", int(np.count_nonzero(uncertain)))
    assert same[~uncertain].all()
    assert np.count_nonzero(uncertain) < want.size * 0.02


def test_zero_factor_takes_no_part_in_the_alignment():
    a = np.array([[[0x0000, 0x3F80]]])  # 0 and 1 in bf16
    b = np.array([[[0x7F00], [0x3F81]]])  # 2^127 and 1 + 2^-7
    c = np.zeros((1, 1, 1), np.uint32)
    assert _run("bf16", "bf16", a, b, c)[0, 0, 0] == 0x3F810000
    low = np.array([[[0x3300], [0x3F81]]])
    assert _run("bf16", "bf16", a, low, c)[0, 0, 0] == 0x3F810000


def test_sequential_rule_is_one_fma_per_k():
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((16, 32)).astype(np.float32) for _ in range(2))
    a, b = (x.view(np.uint32) >> 16 for x in (a, b))
    c = rng.standard_normal((16, 16)).astype(np.float32)
    got = arith.multiply_accumulate("bf16", "bf16", a, b.T, c.view(np.uint32), rule="sequential-rne")
    want = c.copy()
    for k in range(32):  # products of bf16 are exact in f32, so multiply and add round once as an FMA does
        left, right = (x[:, k] << 16 for x in (a, b))
        want += left.view(np.float32)[:, None] * right.view(np.float32)[None, :]
    assert (got == want.view(np.uint32)).all()


def test_rules_differ():
    rng = np.random.default_rng(6)
    a, b = rng.integers(0x3C00, 0x4200, (16, 32)), rng.integers(0x3C00, 0x4200, (32, 16))
    c = np.zeros((16, 16), np.uint32)
    blocks = arith.multiply_accumulate("bf16", "bf16", a, b, c)
    chain = arith.multiply_accumulate("bf16", "bf16", a, b, c, rule="sequential-rne")
    assert (blocks != chain).any()


def test_overflow_saturates_only_on_request():
    a, b = np.full((1, 4), 0x7F7F), np.full((4, 1), 0x3F80)
    c = np.array([[0x7F7FFFFF]], np.uint32)
    assert arith.multiply_accumulate("bf16", "bf16", a, b, c)[0, 0] == 0x7F800000
    assert arith.multiply_accumulate("bf16", "bf16", a, b, c, saturate=True)[0, 0] == 0x7F7FFFFF


def test_f64_is_a_chain_of_fused_operations():
    from fractions import Fraction

    rng = np.random.default_rng(7)
    a, b, c = rng.standard_normal((4, 4)), rng.standard_normal((4, 16)), rng.standard_normal((4, 16))
    got = arith.multiply_accumulate_f64(a, b, c)
    for i in range(4):
        for j in range(16):
            total = c[i, j]
            for k in range(4):
                total = float(Fraction(a[i, k]) * Fraction(b[k, j]) + Fraction(total))
            assert got[i, j] == total


@pytest.mark.parametrize("saturate", [False, True])
def test_i8_sums_wrap_or_saturate(saturate):
    rng = np.random.default_rng(8)
    a, b = rng.integers(-128, 128, (16, 64), np.int8), rng.integers(-128, 128, (64, 16), np.int8)
    c = rng.choice(np.array([0, 2**31 - 1, -(2**31), 12345], np.int32), (16, 16))
    exact = a.astype(np.int64) @ b.astype(np.int64) + c
    bounded = np.clip(exact, -(2**31), 2**31 - 1) if saturate else exact.astype(np.int32)
    assert (arith.multiply_accumulate_i8(a, b, c, saturate) == bounded).all()


MFMA_KERNEL = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
\t.globl tile
\t.p2align 8
\t.type tile,@function
tile:
\ts_load_dwordx4 s[4:7], s[0:1], 0x0
\tv_lshlrev_b32_e32 v1, 3, v0
\tv_lshlrev_b32_e32 v8, 4, v0
\ts_waitcnt lgkmcnt(0)
\tglobal_load_dwordx2 v[2:3], v1, s[4:5]
\ts_waitcnt vmcnt(0)
\tv_mfma_f32_16x16x16_bf16 v[4:7], v[2:3], v[2:3], 0
\ts_nop 15
\tglobal_store_dwordx4 v8, v[4:7], s[6:7]
\ts_endpgm
\t.size tile, .-tile
\t.section .rodata,"a",@progbits
\t.p2align 6
\t.amdhsa_kernel tile
\t\t.amdhsa_kernarg_size 16
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_next_free_vgpr 12
\t\t.amdhsa_next_free_sgpr 16
\t\t.amdhsa_accum_offset 12
\t.end_amdhsa_kernel
"""


@pytest.mark.parametrize("rule", ["cdna3", "sequential-rne"])
def test_a_launch_names_the_accumulate_rule(rule):
    codes = np.random.default_rng(9).integers(0x3C00, 0x4200, (64, 4)).astype(np.uint16)
    out = np.zeros((64, 4), np.uint32)
    program = sim.load(MFMA_KERNEL, target="gfx942")
    program.launch("tile", grid=(1, 1, 1), block=(64, 1, 1), args=[codes, out], accumulate=rule)
    a = np.swapaxes(codes.reshape(4, 16, 4), 0, 1).reshape(16, 16)  # lane = row + 16 * (k // 4)
    want = arith.multiply_accumulate("bf16", "bf16", a, a.T, np.zeros((16, 16), np.uint32), rule=rule)
    lane, item = np.indices((64, 4))
    assert (out == want[4 * (lane // 16) + item, lane % 16]).all()


def test_an_unknown_accumulate_rule_is_refused():
    program = sim.load(MFMA_KERNEL, target="gfx942")
    data = np.zeros((64, 4), np.uint16)
    with pytest.raises(ValueError, match="accumulate is 'cdna3' or 'sequential-rne'"):
        program.launch("tile", (1, 1, 1), (64, 1, 1), [data, np.zeros((64, 4), np.uint32)], accumulate="exact")
