"""Drivers of the kernels in corpus/: what each computes is in its source's comments."""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

from warpwave.tiles import dtypes
from warpwave.tiles.reference import CONTRACT
from warpwave.tiles.reference.running_error import Approx

from ._drivers import Check, bf16, driver, wide
from ._matrix_error import mfma
from ._pools import hard_quotients

F32 = np.float32
STEP = 2.0**-24 + CONTRACT.functions["exp2"].ulps * 2.0**-23  # a factor that is a power of 2: the power and the product


@driver("corpus/k01_gemm_bf16.hip", "gemm_bf16")
def gemm_bf16(launch, rng):
    """Later input sets end at each row of a lane's tile in turn; bit 2 of a row is the lane's, bit 6 the wave's."""
    m, n, k = 157, 139, 96
    if launch.data:
        row = launch.data % 32
        m = 64 + (row & 3 | 4 * int(rng.integers(2)) | row >> 2 << 3)
        n, k = int(rng.integers(1, 129)), 32 * int(rng.integers(1, 4))
    a, b, c = bf16(rng, m, k), bf16(rng, n, k), np.full((m, n), np.nan, F32)
    launch((-(-n // 128), -(-m // 128), 1), (256, 1, 1), c, a, b, np.int32(m), np.int32(n), np.int32(k))
    return [Check("C", c, mfma(a, b.T))]


def _attention(q, k, v, causal):
    """Scores, powers and sums in f32, the powers rounded to bf16 for the second product.

    A tile's weights are multiplied by 2 to the fall of the maximum with every later tile. All these exponents are
    differences of the same floats on the way from the score down to the last maximum: together their roundings are at
    most one of the whole difference.
    """
    tiles = q.shape[1] // 32
    scale = Approx.of(0.125) * Approx.of(np.log2(np.e)).rounded()
    scores = mfma(q, k.swapaxes(-1, -2)) * scale
    hidden = causal & ~np.tril(np.ones(scores.value.shape[1:], bool))
    top = np.where(hidden, -np.inf, scores.value).max(axis=-1, keepdims=True)  # whatever it is, it cancels
    powers = (scores - top).exp2().blurred(tiles * STEP)
    powers = powers.moved(lambda x: np.where(hidden, 0, x))
    total = powers.sum(-1, 16 + 1 + tiles, keepdims=True)  # a lane's of a tile, the two lanes', the tiles'
    out = mfma(powers.rounded(dtypes.bf16), v)
    lse = (total.log() + Approx.of(top) * Approx.of(np.log(2)).rounded()).moved(lambda x: x[..., 0])
    return (out * (1 / total)).rounded(dtypes.bf16), lse


@driver("corpus/k03_attn.hip", "attn_fwd")
def attention(launch, rng):
    heads, length = 1, 128
    checks = []
    for causal in (0, 1):
        q, k, v = (bf16(rng, heads, length, 64) for _ in range(3))
        out, lse = np.zeros((heads, length, 64), bfloat16), np.zeros((heads, length), F32)
        sizes = (np.int32(length), np.int32(heads), F32(0.125), np.int32(causal))
        launch((length // 128, heads, 1), (256, 1, 1), out, lse, q, k, v, *sizes)
        want, want_lse = _attention(q, k, v, bool(causal))
        checks += [Check("O", out, want), Check("LSE", lse, want_lse)]
    return checks


@driver("corpus/k05_rotary.hip", "rotary")
def rotary(launch, rng):
    s, h, d = 5, 3, 64
    if launch.data:
        d = 2 * int(rng.integers(1, 34))
    x, out = bf16(rng, s * h, d), np.zeros((s * h, d), bfloat16)
    cos, sin = rng.standard_normal((2, s, d // 2)).astype(F32)
    launch((2, 1, 1), (256, 1, 1), out, x, cos, sin, np.int32(s), np.int32(h), np.int32(d))
    a, b = Approx.of(x[:, : d // 2]), Approx.of(x[:, d // 2 :])
    c, q = (np.repeat(t, h, axis=0) for t in (cos, sin))
    first, second = ((a * c - b * q).rounded(dtypes.bf16), (b * c + a * q).rounded(dtypes.bf16))
    return [Check("first", out[:, : d // 2], first), Check("second", out[:, d // 2 :], second)]


# v_sin_f32 and v_cos_f32 take turns. No accuracy is published; far below the f16 that the results become.
TRIGONOMETRIC = 2.0**-23


@driver("corpus/k05_rotary.hip", "rotary_vec")
def rotary_vec(launch, rng):
    n, d = 500, 32
    if launch.data:
        d = 2 * int(rng.integers(1, 100))
    x = rng.standard_normal((n, 2)).astype(np.float16)
    out = np.zeros_like(x)
    base = F32(0.41)
    launch((2, 1, 1), (256, 1, 1), out, x, base, np.int32(n), np.int32(d))
    i = np.arange(n)
    angle = (Approx.of(-(i % (d // 2))) * base).exp2() * (i // (d // 2))
    turns = angle * Approx.of(0.5 / np.pi).rounded()
    error = 2 * np.pi * turns.error + TRIGONOMETRIC
    c, s = (Approx(f(angle.value), error).rounded(dtypes.f16) for f in (np.cos, np.sin))
    a, b = (Approx.of(column, dtypes.f16) for column in x.T)
    return [Check("first", out[:, 0], a * c - b * s), Check("second", out[:, 1], b * c + a * s)]


@driver("corpus/k07_convert.hip", "conv")
def conv(launch, rng):
    n = 300
    x, y = bf16(rng, n, 4), rng.standard_normal((n, 4)).astype(np.float16)
    z = rng.standard_normal((n, 4)).astype(F32)
    o, p, f = np.zeros((n, 4), bfloat16), np.zeros((n, 4), np.float16), np.zeros((n, 4), F32)
    launch((2, 1, 1), (256, 1, 1), o, p, f, x, y, z, np.int32(n))
    a = Approx.of(x) * wide(y) + z
    half = a.rounded(dtypes.f16) * y + y
    return [Check("F", f, a), Check("O", o, (a * 0.5).rounded(dtypes.bf16)), Check("P", p, half.maximum(y))]


@driver("corpus/k07_convert.hip", "conv_int")
def conv_int(launch, rng):
    n = 300
    x = (rng.standard_normal(n) * 90).astype(F32)
    if launch.data:
        x[rng.integers(0, n, 9)] = np.nan, -0.0, 0.0, 0.5, -0.5, 1.5, -2.5, 254.5, -3.0
    c, h = rng.integers(-128, 128, n, np.int8), rng.integers(0, 65536, n, np.uint16)
    i, u, b, f = np.zeros(n, np.int32), np.zeros(n, np.uint32), np.zeros(n, np.uint8), np.zeros(n, F32)
    launch((2, 1, 1), (256, 1, 1), i, u, b, f, x, c, h, np.int32(n))
    number = np.where(x == x, x, F32(0))  # a NaN converts to 0
    whole = np.trunc(number).astype(np.int32)
    rounded = np.sign(x) * np.floor(np.abs(wide(x)) + 0.5)
    small = wide(c) + h + np.floor(wide(x)) + np.ceil(x) + np.trunc(x) + rounded + np.copysign(2.0, x)  # exact in f32
    return [
        Check("I", i, whole),
        Check("U", u, np.abs(number).astype(np.uint32)),
        Check("B", b, np.rint(number).astype(np.int32).astype(np.uint8)),
        Check("F", f, Approx.of(small) + Approx.of(whole.astype(np.uint32)).rounded()),
    ]


@driver("corpus/k07_convert.hip", "bf16_pk")
def bf16_pk(launch, rng):
    n = 300
    x, a = bf16(rng, n, 2), rng.standard_normal(2).astype(F32)
    out = np.zeros((n, 2), bfloat16)
    launch((2, 1, 1), (256, 1, 1), out, x, a, np.int32(n))
    sum_ = (Approx.of(x) * a + x).maximum(0)
    return [Check("O", out, (sum_ * sum_).rounded(dtypes.bf16))]


def _collatz(x: int) -> tuple[int, int]:
    steps = 0
    while x != 1 and steps < 1000:
        x = 3 * x + 1 if x & 1 else x >> 1
        steps += 1
    return x, steps


def _control(i: int, x: int, mode: int) -> int:
    x, it = _collatz(x)
    if mode == 2:
        return x + sum(k for k in range(it) if (k ^ i) & 4)
    bits = it | 1
    return {
        0: it,
        1: it * 2 + x,
        3: bin(it).count("1") + 32 - bits.bit_length() + (bits & -bits).bit_length() - 1,
        5: int(f"{it:032b}"[::-1], 2),
    }.get(mode, -1)


@driver("corpus/k09_control.hip", "control")
def control(launch, rng):
    n = 100
    if launch.data:
        n = int(rng.integers(1, 129))
    x = rng.integers(1, 200, n).astype(np.int32)
    if launch.data % 2:
        x[rng.integers(0, n, 9)] = 0, 1, 1, 2, 2, 1, 1, 3, 0  # 0 never becomes 1: it runs into the limit
    checks = []
    for mode in range(7):
        out = np.full(n, 77, np.int32)
        launch((2, 1, 1), (64, 1, 1), out, x, np.int32(n), np.int32(mode))
        want = np.array([_control(i, int(v), mode) for i, v in enumerate(x)], np.int64)
        checks.append(Check(f"mode {mode}", out, want.astype(np.int32)))
    return checks


@driver("corpus/k09_control.hip", "ballot")
def ballot(launch, rng):
    """Every wavefront of a workgroup writes to the same first places: only one may be active (else a race)."""
    n = 400
    x = -np.abs(rng.standard_normal(n)).astype(F32)
    places = rng.integers(0, 4, 2) * 64 % (256, 128) if launch.data else (128, 0)
    density = rng.choice([0.02, 0.5, 1.0]) if launch.data else 0.5
    for first in (places[0], 256 + places[1]):
        x[first : first + 64] *= np.where(rng.random(64) < density, F32(-1), F32(1))
    out = np.full(512, 99, np.uint64)
    launch((2, 1, 1), (256, 1, 1), out, x, np.int32(n))
    return [Check("O", out, ballot_answer(x))]


def ballot_answer(x):
    want = np.full(512, 99, np.uint64)
    for wave in range(len(x) // 64):
        lanes = np.flatnonzero(x[wave * 64 : wave * 64 + 64] > 0)
        if len(lanes):
            group = wave // 4 * 256
            want[group : group + len(lanes)] = sum(1 << int(i) for i in lanes)
            want[wave * 64] = len(lanes) + lanes[0]
    return want


@driver("corpus/k09_control.hip", "stack")
def stack(launch, rng):
    return [check for n in (12, 0) for check in _stack(launch, rng, n)]


def _stack(launch, rng, n):
    threads = 256
    x = rng.standard_normal((threads, 16)).astype(F32)
    index = rng.integers(0, 1000, (threads, max(n, 1))).astype(np.int32)
    out = np.zeros((threads, 16), F32)
    launch((1, 1, 1), (256, 1, 1), out, x, index, np.int32(n))
    want = x.copy()
    for t in range(threads):
        total = F32(0)
        for i in range(n):
            total = F32(total + want[t, index[t, i] & 15])
            want[t, index[t, i] & 15] = total
    return [Check("O", out, want)]


@driver("corpus/k12_softmax.hip", "softmax")
def softmax(launch, rng):
    """Mostly negative numbers, so that a lost sign shows; a wide and a narrow row."""
    checks = []
    widths = [1100] * 3 + [196]
    if launch.data:
        widths = (4 * rng.integers(1, 600, 4)).tolist()
    for width, logsm, with_bias in zip(widths, (0, 0, 1, 0), (False, True, False, True), strict=True):
        rows, scale = 3, F32(0.7)
        x, bias = (rng.standard_normal(s).astype(F32) - F32(1.5) for s in ((rows, width), (width,)))
        out = np.zeros((rows, width), F32)
        argument = bias if with_bias else np.uint64(0)
        launch((rows, 1, 1), (256, 1, 1), out, x, argument, np.int32(width), scale, np.int32(logsm))
        shifted = Approx.of(x) * scale
        shifted = shifted - shifted.value.max(axis=1, keepdims=True)  # whatever the maximum is, it cancels
        powers = shifted.exp()
        total = powers.sum(1, -(-width // 256) + 6 + 3, keepdims=True)  # a thread's own, the wavefront's, the four's
        want = shifted - total.log() if logsm else powers * (1 / total) + (bias if with_bias else 0)
        checks.append(Check("O", out, want))
    return checks


@driver("corpus/k12_softmax.hip", "elementwise")
def elementwise(launch, rng):
    n = 300
    x, y = rng.standard_normal((2, n)).astype(F32) * 5
    y += np.sign(y) * F32(0.25)
    if launch.data:
        power = np.exp2(rng.integers(0, 40, n)).astype(F32)  # the steps of fmod depend on the exponent
        x, y = x * power, y * power
        x[:100], y[:100] = hard_quotients(rng, 100)  # with a tiny y the quotient is all that counts
        y[:100] *= F32(2.0**-90)
    out = np.zeros(n, F32)
    launch((2, 1, 1), (256, 1, 1), out, x, y, np.int32(n))
    a, b = Approx.of(x), Approx.of(y)
    sigmoid = 1 / (Approx.of(np.minimum(-wide(x), 87)).exp() + 1)  # the power may overflow
    sigmoid = sigmoid.lossless(sigmoid.value, sigmoid.error + np.where(x < -87, np.exp(-87.0), 0))
    r = a * sigmoid + abs(b).sqrt() + a / b + (b * b + 1).log2() + np.fmod(x, F32(3)) + np.clip(x, 0, 6)
    return [Check("O", out, r * -b + abs(a))]


@driver("corpus/k14_agpr_scratch.hip", "gemm_agpr")
def gemm_agpr(launch, rng):
    steps = 2
    a, b = (bf16(rng, steps, 4, 256, 8) for _ in range(2))
    out = np.zeros((4, 4, 16, 256), F32)
    launch((1, 1, 1), (256, 1, 1), out, a, b, np.int32(steps))
    value, error = np.zeros((2, 4, 4, 16, 256))
    lane, r = np.arange(64), np.arange(16)[:, None]
    row, column = 8 * (r // 4) + 4 * (lane // 32) + r % 4, np.broadcast_to(lane % 32, (16, 64))
    for wave in range(4):
        # The two lane halves hold different k of the same row; the order of k does not matter to the sum.
        pa, pb = (m[:, :, wave * 64 : wave * 64 + 64].reshape(steps, 4, 2, 32, 8) for m in (a, b))
        rows, columns = (p.transpose(1, 3, 0, 2, 4).reshape(4, 32, -1) for p in (pa, pb))
        tile = mfma(rows[:, None], columns.swapaxes(-1, -2)[None])
        for whole, part in ((value, tile.value), (error, tile.error)):
            whole[:, :, :, wave * 64 : wave * 64 + 64] = part[:, :, row, column]
    return [Check("C", out, Approx(value, error))]


@driver("corpus/k14_agpr_scratch.hip", "scratch")
def scratch(launch, rng):
    return [check for n in (20, 0) for check in _scratch(launch, rng, n)]


def _scratch(launch, rng, n):
    threads = 256
    x = rng.standard_normal(4096).astype(F32)
    index = rng.integers(0, 300, threads * max(n, 1)).astype(np.int32)
    out = np.zeros(threads, F32)
    launch((1, 1, 1), (256, 1, 1), out, x, index, np.int32(n))
    want = np.zeros(threads, F32)
    for t in range(threads):
        a = x[(t * 300 + np.arange(300)) & 4095].copy()
        total = F32(0)
        for k in index[t * n : t * n + n]:
            total = F32(total + a[k])
            a[k * 7 % 300] = total
        want[t] = F32(total + a[index[t]])
    return [Check("O", out, want)]
