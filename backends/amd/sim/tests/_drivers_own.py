"""Drivers of the kernels in kernels/, which are of the corpus' kind but not part of it."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16

from warpwave.tiles import dtypes
from warpwave.tiles.reference.running_error import Approx

from ._drivers import Check, bf16, driver, wide
from ._matrix_error import mfma
from ._pools import F32_EDGES, F64_EDGES, hard_quotients

F32 = np.float32


@driver("kernels/layernorm.hip", "layernorm")
def layernorm(launch, rng):
    rows, width, eps = 6, 512, F32(1e-5)
    x, y, stats = bf16(rng, rows, width), np.zeros((rows, width), bfloat16), np.zeros((rows, 2), F32)
    gamma, beta = rng.standard_normal((2, width)).astype(F32)
    launch((2, 1, 1), (256, 1, 1), y, stats, x, gamma, beta, np.int32(rows), eps)
    depth = 7 + 6  # a lane's own eight, the wavefront's 64
    mean = Approx.of(x).sum(1, depth, keepdims=True) * (1 / width)
    from_mean = Approx.of(x) - mean
    inverse = ((from_mean * from_mean).sum(1, depth, keepdims=True) * (1 / width) + eps).rsqrt()
    return [
        Check("mean", stats[:, :1], mean),
        Check("inverse", stats[:, 1:], inverse),
        Check("Y", y, (from_mean * inverse * gamma + beta).rounded(dtypes.bf16)),
    ]


@driver("kernels/gemm_dma.hip", "gemm_dma")
def gemm_dma(launch, rng):
    m, n, k = 64, 128, 96
    a, b, c = bf16(rng, m, k), bf16(rng, k, n), np.full((m, n), np.nan, F32)
    launch((n // 64, m // 64, 1), (256, 1, 1), c, a, b, np.int32(m), np.int32(n), np.int32(k))
    return [Check("C", c, mfma(a, b))]


def philox(counter: list[np.ndarray], k0: int, k1: int) -> np.ndarray:
    """Ten rounds on arrays of counters, in exact integers."""
    c = [x.astype(np.uint64) for x in counter]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            a & low,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1).astype(np.uint32)


def _counters(n: int, second: int) -> list[np.ndarray]:
    return [np.arange(n), np.full(n, second), np.zeros(n, int), np.zeros(n, int)]


@driver("kernels/philox.hip", "philox_raw")
def philox_raw(launch, rng):
    n = 300
    out = np.zeros((n, 4), np.uint32)
    launch((2, 1, 1), (256, 1, 1), out, np.uint32(0x12345678), np.uint32(0x9ABCDEF0), np.int32(n))
    return [Check("O", out, philox(_counters(n, 0), 0x12345678, 0x9ABCDEF0))]


@driver("kernels/philox.hip", "dropout")
def dropout(launch, rng):
    n = int(rng.integers(1000, 1005)) if launch.data % 2 == 0 else int(rng.integers(1, 300))
    random = philox(_counters(256, 7), 99, 0).reshape(-1)[:n]
    threshold = int(np.sort(random)[int(rng.integers(n)) if launch.data else 3 * n // 4])
    x, out = rng.standard_normal(n).astype(F32), np.full(n, np.nan, F32)
    launch((1, 1, 1), (256, 1, 1), out, x, np.uint32(99), np.uint32(threshold), F32(4 / 3), np.int32(n))
    return [Check("O", out, np.where(random < threshold, x * F32(4 / 3), F32(0)))]


@driver("kernels/atomics.hip", "atomics_packed")
def atomics_packed(launch, rng):
    bins, groups = int(rng.integers(4, 300)) if launch.data else 37, 2
    b, h = np.zeros((bins, 2), bfloat16), np.zeros((bins, 2), np.float16)
    launch((groups, 1, 1), (256, 1, 1), b, h, np.int32(bins))
    count = np.bincount(np.arange(groups * 256) % bins, minlength=bins)[:, None]
    return [Check("bf16", wide(b), count * [1.0, 0.5]), Check("f16", wide(h), count * [0.25, -1.0])]


@driver("kernels/atomics.hip", "atomics_global")
def atomics_global(launch, rng):
    bins, total = int(rng.integers(1, 300)) if launch.data else 53, 512
    x = rng.integers(-1000, 1000, total).astype(np.int32)
    f, d = np.zeros(bins, F32), np.zeros(bins)
    u, w, s = np.zeros(bins, np.uint32), np.zeros(bins, np.uint64), np.zeros((bins, 4), np.int32)
    launch((2, 1, 1), (256, 1, 1), f, d, u, w, s, x, np.int32(bins))
    where = np.arange(total) % bins
    sums = np.zeros(bins, np.int64)
    extra = np.zeros((bins, 4), np.int64)
    np.add.at(sums, where, x)
    np.maximum.at(extra[:, 0], where, x)
    np.minimum.at(extra[:, 1], where, x)
    np.bitwise_xor.at(extra[:, 2], where, x)
    np.add.at(extra[:, 3], where, x & 15)
    return [
        Check("F", f, sums.astype(F32)),
        Check("D", d, sums.astype(float)),
        Check("U", u, sums.astype(np.uint32)),
        Check("W", w, sums.astype(np.uint64)),
        Check("S", s, extra.astype(np.int32)),
    ]


@driver("kernels/atomics.hip", "atomics_lds")
def atomics_lds(launch, rng):
    groups = 2
    x = rng.integers(0, 1 << 30, groups * 256).astype(np.uint32)
    hist, total, old = np.zeros(64, np.uint32), np.zeros(groups, F32), np.full(groups * 256, -1, np.int32)
    launch((groups, 1, 1), (256, 1, 1), hist, total, old, x)
    want = [(x[g * 256 :][:256] & 7).sum() + 256.0 for g in range(groups)]
    tickets = np.sort(old.reshape(groups, 256), axis=1)
    return [
        Check("hist", hist, np.bincount(x & 63, minlength=64).astype(np.uint32)),
        Check("total", total, np.array(want, F32)),
        Check("old", tickets, np.tile(np.arange(256, dtype=np.int32), (groups, 1))),
    ]


def _fp8(launch, kind: str):
    fnuz = launch.target == "gfx942"
    names = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
    return getattr(ml_dtypes, names[kind].replace("fn", "") + "fnuz" if fnuz else names[kind])


@driver("kernels/gemm_fp8.hip", "gemm_fp8")
def gemm_fp8(launch, rng):
    m, n, k = 32, 16, 96
    a = rng.standard_normal((m, k)).astype(F32).astype(_fp8(launch, "e4m3"))
    b = rng.standard_normal((n, k)).astype(F32).astype(_fp8(launch, "e5m2"))
    c = np.zeros((m, n), F32)
    launch((n // 16, m // 16, 1), (64, 1, 1), c, a, b, np.int32(k), np.int32(n))
    return [Check("C", c, mfma(a, b.T, group=16))]


@driver("kernels/gemm_fp8.hip", "gemm_mx", targets=("gfx950",))
def gemm_mx(launch, rng):
    m, n, k = 16, 32, 256
    a = rng.standard_normal((m, k)).astype(F32).astype(ml_dtypes.float8_e4m3fn)
    codes = rng.integers(0, 16, (n, k)).astype(np.uint8)
    b = codes.view(ml_dtypes.float4_e2m1fn)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    sa, sb = (rng.integers(122, 132, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    c = np.zeros((m, n), F32)
    launch((n // 16, m // 16, 1), (64, 1, 1), c, a, packed, sa, sb, np.int32(k), np.int32(n))
    left, right = (np.repeat(np.exp2(s - 127.0), 32, axis=1) for s in (sa, sb))
    return [Check("C", c, mfma(a, b.T, group=16, scales=(left, right.T)))]


@driver("kernels/gemm_i8.hip", "gemm_i8")
def gemm_i8(launch, rng):
    m, n, k = 32, 64, 96
    a, b = (rng.integers(-128, 128, (rows, k)).astype(np.int8) for rows in (m, n))
    c, sums = np.zeros((m, n), np.int32), np.zeros(m, np.int32)
    launch((n // 32, m // 32, 1), (64, 1, 1), c, sums, a, b, np.int32(k), np.int32(n))
    exact = a.astype(np.int32) @ b.astype(np.int32).T
    return [Check("C", c, exact), Check("sums", sums, a.sum(axis=1, dtype=np.int32))]


# Divisors whose reciprocal leaves the quotient of their largest multiple below 2**32 two too small.
TWICE_CORRECTED = (65537, 131076, 139524, 143654, 149943, 152922, 154473, 168516, 173513, 196611, 215481, 229383)
TWICE_CORRECTED_LONG = (4294967297, 4573950802782658, 29562085376534788, 545245449903415)  # below 2**64


def _c_divide(x: int, y: int, width: int) -> tuple[int, int]:
    """Quotient and remainder as C truncates them, wrapped to the width."""
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    wrap = lambda v: (v + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))  # noqa: E731
    return wrap(quotient), wrap(x - quotient * y)


@driver("kernels/int64.hip", "int64")
def int64(launch, rng):
    n = 300
    x, y = (rng.integers(-(2**63), 2**63 - 1, n) >> rng.integers(0, 63, n) for _ in range(2))
    if launch.data:  # exact multiples, and one beside them
        x = (x >> rng.integers(0, 63, n)) * y + rng.integers(-1, 2, n)
    y[y == 0] = 3
    if launch.data:
        pairs = [(d * ((2**32 - 1) // d), d) for d in TWICE_CORRECTED]
        pairs += [(d * ((2**64 - 1) // d), d) for d in TWICE_CORRECTED_LONG]
        x[:16], y[:16] = np.array(pairs, np.uint64).view(np.int64).T
    q, r, s = np.zeros((n, 4), np.int64), np.zeros((n, 3), np.uint64), np.zeros((n, 4), np.int32)
    launch((2, 1, 1), (256, 1, 1), q, r, s, x, y, np.int32(n))
    want_q, want_r, want_s = np.zeros_like(q), np.zeros_like(r), np.zeros_like(s)
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        product = (a * b + 2**63) % 2**64 - 2**63
        want_q[i] = (*_c_divide(a, b, 64), product, (a >> (b & 63)) + (a < b))
        ua, ub = a % 2**64, b % 2**64
        want_r[i] = (ua // ub, ua % ub, ua * ub >> 64)
        c, d = (v % 2**32 for v in (a, b | 1))
        signed = [(v ^ 1 << 31) - (1 << 31) for v in (c, d)]
        unsigned = [(v + 2**31) % 2**32 - 2**31 for v in (c // d, c % d)]
        want_s[i] = (*_c_divide(*signed, 32), *unsigned)
    return [Check("Q", q, want_q), Check("R", r, want_r), Check("S", s, want_s)]


def _i32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _divergent_switch(acc: int, x: int, a: int, b: int) -> int | None:
    """One switch of the kernel; None leaves both loops."""
    case = (x + a * b) & 7
    if case == 5:
        return None if acc > 500 else _i32(acc * 2)
    values = {
        0: acc + b,
        1: acc ^ a << 3,
        2: acc - (x & 15) + 3,
        3: acc + 3,
        6: acc + bin(acc % 2**32).count("1"),
    }
    return _i32(values.get(case, acc ^ b * 7))


def _divergent(x: int) -> int:
    acc = 0
    if x < -1000:
        return -1
    for a in range(12):
        if int(np.fmod(x ^ a, 5)) == 0:
            continue
        b = 0
        while b < 20:
            b += 1 + ((x >> a) & 1)
            if (x + b) & 7 == 3:
                break
            following = _divergent_switch(acc, x, a, b)
            if following is None:
                return acc
            acc = following
        if acc & 0x100:
            acc = _i32(acc + 11)
    return acc


@driver("kernels/divergent.hip", "divergent")
def divergent(launch, rng):
    n = 200
    x = rng.integers(-1200, 5000, n).astype(np.int32)
    if launch.data:
        n = int(rng.integers(1, 257))
        x = np.append(rng.integers(-1010, -990, n // 2), rng.integers(-300, 300, n - n // 2)).astype(np.int32)
        x[:12] = (2**31 - 3 ^ np.arange(12))[:n]  # the greatest multiple of 5, once a round
    out = np.zeros(n, np.int32)
    launch((2, 1, 1), (128, 1, 1), out, x, np.int32(n))
    return [Check("O", out, np.array([_divergent(int(v)) for v in x], np.int32))]


@driver("kernels/generic_lds.hip", "generic_lds")
def generic_lds(launch, rng):
    groups, size = 2, 128
    x, where = (
        rng.standard_normal((groups, size)).astype(F32),
        rng.integers(0, 4, (groups, size)).astype(np.int32),
    )
    out, g = np.zeros((groups, size), F32), np.zeros((groups, size), F32)
    launch((groups, 1, 1), (size, 1, 1), out, g, x, where)
    t = np.arange(size)
    lds, memory = x * F32(2), x * F32(3)
    value = np.where(where & 1, lds[:, (t + 17) & 127], memory[:, (t + 5) & 127]) + F32(1)
    new_lds, new_memory = np.where(where & 2, value, lds), np.where(where & 2, memory, value)
    return [Check("O", out, new_lds + new_memory), Check("G", g, new_memory)]


@driver("kernels/scratch_array.hip", "scratch_array")
def scratch_array(launch, rng):
    threads, rounds = 64, 2
    x = rng.integers(-1000, 1000, 1024).astype(np.int32)
    out = np.zeros(threads, np.int32)
    launch((1, 1, 1), (64, 1, 1), out, x, np.int32(rounds))
    want = [_scratch_array([int(v) for v in x[(t * 7 + np.arange(200)) & 1023]], rounds) for t in range(threads)]
    return [Check("O", out, np.array(want, np.int32))]


def _scratch_array(a: list[int], rounds: int) -> int:
    for r in range(rounds):
        for i in range(199):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
            place = (a[i] & 0x7FFFFFFF) % 200
            a[place] = _i32(a[place] ^ r)
    h = 1469598103934665603
    for v in a:
        h = (h ^ v % 2**32) * 1099511628211 % 2**64
    return _i32(h >> 32 ^ h & 0xFFFFFFFF)


@driver("kernels/scratch_array.hip", "scratch_bytes")
def scratch_bytes(launch, rng):
    threads = 64
    x, out = rng.integers(0, 256, 512).astype(np.uint8), np.zeros(threads, np.uint8)
    launch((1, 1, 1), (64, 1, 1), out, x)
    return [Check("O", out, np.array([_scratch_bytes(x, t) for t in range(threads)], np.uint8))]


def _scratch_bytes(x: np.ndarray, t: int) -> int:
    a = [int(v) for v in x[(t + 3 * np.arange(256)) & 511]]
    b = [(v * 257 + t) & 0xFFFF for v in a]
    k, s = t & 255, 0
    for i in range(64):
        k = (a[k] + b[k * 5 & 255] + i) & 255
        s = (s * 33 + a[k]) % 2**32
        a[(k + 1) & 255] = s & 255
    return (s + b[k] + a[(k + 1) & 255]) & 255


@driver("kernels/convert.hip", "sdwa")
def sdwa(launch, rng):
    n = 300
    b, c = rng.integers(0, 256, (n, 4)).astype(np.uint8), rng.integers(-128, 128, (n, 4)).astype(np.int8)
    s = rng.integers(-1000, 1000, (n, 2)).astype(np.int16)
    f, u, h = np.zeros((n, 8), F32), np.zeros(n, np.uint32), np.zeros((n, 2), np.float16)
    launch((2, 1, 1), (256, 1, 1), f, u, h, b, c, s, np.int32(n))
    wb, wc, (sx, sy) = b.astype(np.int64), c.astype(np.int64), s.astype(np.int64).T
    shifted = (sy << (wb[:, 3] & 3)).astype(np.int16)
    tail = [sx * sy, wb[:, 0] + sy, (sx + wb[:, 2]) & 0xFFFF, shifted]
    want_f = np.concatenate([wb * 0.5 + wc, np.stack(tail, axis=1)], axis=1)
    want_u = ((wb[:, 0] + wb[:, 1]) & 255) | ((wb[:, 2] ^ wb[:, 3]) << 8) | ((sx * sy & 0xFFFF) << 16)
    want_h = np.stack([sx * 0.25, wc[:, 2] * 2.0], axis=1)
    return [
        Check("F", f, want_f.astype(F32)),
        Check("U", u, want_u.astype(np.uint32)),
        Check("H", wide(h), want_h),
    ]


@driver("kernels/convert.hip", "fp8")
def fp8(launch, rng):
    n = 300
    x = (rng.standard_normal((n, 4)) * 20).astype(F32)
    p, f = np.zeros(n, np.uint32), np.zeros((n, 4), F32)
    launch((2, 1, 1), (256, 1, 1), p, f, x, np.int32(n))
    parts = [x[:, :2].astype(_fp8(launch, "e4m3")), x[:, 2:].astype(_fp8(launch, "e5m2"))]
    codes = np.concatenate([q.view(np.uint8) for q in parts], axis=1)
    values = np.concatenate([q.astype(F32) for q in parts], axis=1)
    return [Check("P", p, codes.view(np.uint32)[:, 0]), Check("F", f, values)]


@driver("kernels/reduce.hip", "reduce")
def reduce(launch, rng):
    x = rng.standard_normal((4, 64)).astype(F32) - F32(2)
    out, p = np.zeros((4, 64, 3), F32), np.zeros((4, 64), np.uint32)
    launch((1, 1, 1), (256, 1, 1), out, p, x)
    lane = np.arange(64)
    i = np.arange(256).reshape(4, 64)
    top = np.broadcast_to(x.max(axis=1, keepdims=True), x.shape)
    moved = i[:, 63 - lane] ^ i[:, lane // 8 * 8 + 7 - lane % 8]
    return [
        Check("max", out[..., 0], top),
        Check("pair", out[..., 1], x[:, lane & ~16] + x[:, lane | 16]),
        Check("scan", out[..., 2], Approx.of(x).cumsum(1, depth=6)),
        Check("P", p, moved.astype(np.uint32)),
    ]


@driver("kernels/pingpong.hip", "pingpong")
def pingpong(launch, rng):
    steps = 5
    x, out = rng.standard_normal((steps, 512)).astype(F32), np.zeros(512, F32)
    launch((1, 1, 1), (512, 1, 1), out, x, np.int32(steps))
    want = np.zeros(512, F32)
    for k in range(steps):
        want += x[k][(np.arange(512) * 5 + k) & 511]
    return [Check("O", out, want)]


@driver("kernels/transpose.hip", "transpose")
def transpose(launch, rng):
    n = 128
    x, out = rng.standard_normal((n, n)).astype(F32), np.zeros((n, n), F32)
    launch((2, 2, 1), (256, 1, 1), out, x, np.int32(n))
    return [Check("O", out, np.ascontiguousarray(x.T))]


@driver("kernels/transpose.hip", "doubles")
def doubles(launch, rng):
    n = 100
    x, y = rng.standard_normal((2, n)) * 1e3
    out = np.zeros((n, 4))
    launch((2, 1, 1), (64, 1, 1), out, x, y, np.int32(n))
    total = np.trunc(x) + y.astype(F32).astype(float)
    fused = [float(Fraction(a) * Fraction(b) + int(np.floor(a))) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return [Check("O", out, np.stack([x / y, np.sqrt(np.abs(x)), fused, total + np.maximum(x, y)], axis=1))]


@driver("kernels/division.hip", "division")
def division(launch, rng):
    """Every pair of edge values, bit for bit.

    Not among them: doubles whose denominator has an all-ones mantissa, the one case in which a quotient by
    fused multiply-adds need not be rounded correctly (Markstein, "IA-64 and Elementary Functions", 2000).
    """
    x, y = (g.ravel() for g in np.meshgrid(*[np.array(F32_EDGES, np.uint32).view(F32)] * 2))
    if launch.data:
        x, y = hard_quotients(rng, len(x))
    edges = np.array([e for e in F64_EDGES if ~e & (1 << 52) - 1], np.uint64).view(float)
    u, v = (np.resize(g.ravel(), x.shape) for g in np.meshgrid(edges, edges))
    if launch.data:
        u, v = rng.standard_normal((2, len(x)))
    n = len(x)
    q, p, r = np.zeros(n, F32), np.zeros(n), np.zeros(n, F32)
    launch((-(-n // 64), 1, 1), (64, 1, 1), q, p, r, x, y, u, v, np.int32(n))
    with np.errstate(all="ignore"):
        return [Check("Q", q, x / y), Check("P", p, u / v), Check("R", r, np.sqrt(x))]
