"""Operand values that find bugs: edges of each format mixed with random bits and tame numbers."""

from __future__ import annotations

import zlib

import numpy as np

from ._operands import SCALARS, Operands
from .model.machine import LANES

REGISTERS = 40
GROUPS = 6
F32_EDGES = [
    0x0, 0x80000000, 0x1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x3F800000, 0xBF800000, 0x3F000000,
    0x3F7FFFFF, 0x3F800001, 0x4B000000, 0x4B800001, 0x4F000000, 0xCF000000, 0x4F800000, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x40000000, 0x3FC00000, 0xBFC00000,
    0x477FE000, 0x477FF000, 0x33800000, 0x38800000, 0x387FC000, 0x43E00000, 0x43E80000, 0x43700000, 0x47600000,
]  # fmt: skip
F16_EDGES = [
    0x0, 0x8000, 0x1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x3800, 0x3BFF, 0x3C01, 0x7BFF, 0xFBFF, 0x7C00,
    0xFC00, 0x7E00, 0x7C01, 0xFE12, 0x4000, 0x6400, 0x6C00,
]  # fmt: skip
F64_EDGES = [
    0x0, 1 << 63, 1, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
    0x3FE0000000000000, 0x3FEFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0x7FF0000000000001, 0x41DFFFFFFFC00000, 0xC1E0000000000000, 0x41EFFFFFFFE00000,
    0x36A0000000000000, 0x380FFFFFE0000000, 0x47EFFFFFF0000000,
]  # fmt: skip
INT_EDGES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFF, 0x800000]
INT_EDGES += [0xFFFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFF8000, 0x55555555]


def _mixed(rng: np.random.Generator, edges: list[int], tame: np.ndarray, dtype) -> np.ndarray:
    """A third each of edges, tame numbers and random bits."""
    shape = tame.shape
    wild = rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    chosen = rng.choice(np.array(edges, dtype), shape)
    return np.choose(rng.integers(0, 3, shape), [wild, tame, chosen]).astype(dtype)


def f32_pool(rng, shape):
    tame = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 9, shape))).astype(np.float32)
    return _mixed(rng, F32_EDGES, tame.view(np.uint32), np.uint32)


def f16_pool(rng, shape):
    halves = []
    for _ in range(2):
        tame = rng.standard_normal(shape).astype(np.float16).view(np.uint16)
        halves.append(_mixed(rng, F16_EDGES, tame, np.uint16).astype(np.uint32))
    return halves[0] | halves[1] << 16


def int_pool(rng, shape):
    return _mixed(rng, INT_EDGES, rng.integers(0, 100, shape, np.uint32), np.uint32)


def f64_pool(rng, shape):
    """Pairs of registers hold one double."""
    groups, registers, lanes = shape
    tame = rng.standard_normal((groups, registers // 2, lanes)) * np.exp2(rng.integers(-40, 41, shape[::1])[:, ::2])
    value = _mixed(rng, F64_EDGES, tame.view(np.uint64), np.uint64)
    return np.stack([value & 0xFFFFFFFF, value >> 32], axis=2).reshape(shape).astype(np.uint32)


def pool_for(name: str):
    if "f64" in name:
        return f64_pool
    if any(part in name for part in ("f16", "bf16", "u16", "i16", "b16")) and "f32" not in name.split("_cvt_")[-1]:
        return f16_pool
    return f32_pool if "f32" in name else int_pool


def _small_integers(rng, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers whose products and sums are exact, whatever the order and number of roundings."""
    whole = rng.integers(-8, 9, (2, *shape))
    if "bf16" in name:
        halves = [(w.astype(np.float32).view(np.uint32) >> 16) for w in whole]
    else:
        halves = [w.astype(np.float16).view(np.uint16).astype(np.uint32) for w in whole]
    words = halves[0] | halves[1] << np.uint32(16)
    if "f32" in name:  # the addend, and the old destination
        words[:, [4, -1]] = whole[0][:, [4, -1]].astype(np.float32).view(np.uint32)
    return words


def _as_words(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Values in registers; doubles in pairs of registers."""
    if values.itemsize < 8:
        words = np.ascontiguousarray(values).view(np.uint32)
        return words[..., : shape[2]].copy()
    pairs = np.ascontiguousarray(values[:, ::2, : shape[2]]).view(np.uint64)
    halves = [pairs & np.uint64(0xFFFFFFFF), pairs >> np.uint64(32)]
    return np.stack(halves, axis=2).reshape(shape).astype(np.uint32)


UNFUSED = ("v_mad_f16", "v_mad_legacy_f16", "v_mac_f16", "v_madmk", "v_madak")


def operands_for(name: str, target: str, seed: int = 0, groups: int = GROUPS) -> Operands:
    """Inputs that suit an instruction, the same on every run."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    vectors = pool_for(name)(rng, (groups, REGISTERS, LANES))
    if "ldexp" in name or "_class_" in name:
        vectors[:, 2] = rng.integers(-40, 41, (groups, LANES)).astype(np.uint32)
    if "scalef32" in name:
        vectors[:, 38] = (rng.integers(120, 135, (groups, LANES)) << 23).astype(np.uint32)
    if name.startswith(("v_dot2_f32", "v_dot2c_f32", *UNFUSED)):
        vectors = _small_integers(rng, name, vectors.shape)
    if name.startswith("v_div_"):
        # Their special cases are steps of one algorithm: the division kernel checks them by its quotients.
        kind = np.float64 if name.endswith("f64") else np.float32 if name.endswith("f32") else np.float16
        tame = rng.uniform(0.5, 1000, (groups, REGISTERS, LANES * 2)) * rng.choice(
            [-1, 1], (groups, REGISTERS, LANES * 2)
        )
        vectors = _as_words(tame.astype(kind), vectors.shape)
    scalars = np.ascontiguousarray(pool_for(name)(rng, (groups, 2, LANES)).reshape(groups, -1)[:, :SCALARS])
    if name.startswith((*UNFUSED, "v_div_f")):
        scalars = np.ascontiguousarray(vectors[:, 0, :SCALARS])
    if "scalef32" in name:
        scalars[:, 1] = rng.integers(120, 135, groups) << 23
    return Operands(vectors, scalars, target, agprs="accvgpr" in name)


def hard_quotients(rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose quotient lies as near to the middle of two numbers as it can: x * 2**25 = (2q + 1) * y +- 1."""
    pairs = []
    while len(pairs) < n:
        y, sign = int(rng.integers(1 << 23, 1 << 24)) | 1, int(rng.choice([-1, 1]))
        middle = sign * pow(y, -1, 1 << 25) % (1 << 25)
        x = (middle * y - sign) >> 25
        if 1 << 23 <= x < 1 << 24:
            pairs.append((x, y))
    x, y = np.array(pairs, np.float32).T.copy()
    return x, y
