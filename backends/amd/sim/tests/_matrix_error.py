"""What a matrix product may lose on AMD's matrix cores, whatever the order of its groups.

The published sum (`mma_model`) adds to the accumulator a group of G products: each is cut at 24 bits below the exponent
of the largest, the accumulator at 24 bits below the larger of the two, and the result is rounded to nearest. Formats of 8
bits and fewer add even and odd products apart, which cuts two more. A sum of some of the terms is at most
P = (sum|ab| + |sum ab|) / 2, the larger of the positive and the negative part. So with u = 2^-24 each of the K / G groups
loses at most u (G + 2) max|ab| + 2 u P, and their largest products are at most the K / G largest of all.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from warpwave.tiles.reference.running_error import Approx

U = 2.0**-24
SECOND_ORDER = 1 + 2.0**-6  # partial sums are larger by their errors, and the sum of a group is cut at 31 bits


def mfma(a, b, *, group: int = 8, scales=(1.0, 1.0)) -> Approx:
    """a[..., M, K] @ b[..., K, N], of arrays or of what is known only approximately."""
    (a, low_a), (b, low_b) = (_operand(x, scale) for x, scale in zip((a, b), scales, strict=True))
    steps = -(-a.value.shape[-1] // group)
    left, right = a.size[..., :, None, :], b.size.swapaxes(-1, -2)[..., None, :, :]
    aligned = np.maximum(left, low_a[..., :, None, :]) * np.maximum(right, low_b.swapaxes(-1, -2)[..., None, :, :])
    aligned = np.where((left > 0) & (right > 0), aligned, 0)
    largest = np.partition(aligned, -steps, axis=-1)[..., -steps:].sum(-1)
    value = a.value @ b.value
    partial = np.maximum((aligned.sum(-1) + np.abs(value)) / 2, aligned.max(-1))
    lost = SECOND_ORDER * U * ((group + 2) * largest + 2 * steps * partial)
    spread = a.error @ b.size + np.abs(a.value) @ b.error
    return Approx(value, spread + lost + 2.0**-150)


def _operand(x, scale) -> tuple[Approx, np.ndarray]:
    """An operand times its powers of 2, and the smallest normal number: below it an element is aligned as if it were that."""
    if isinstance(x, Approx):
        return x, np.zeros(x.value.shape)
    smallest = float(ml_dtypes.finfo(x.dtype).smallest_normal)
    return Approx.of(x.astype(np.float64) * scale), np.broadcast_to(smallest * scale, x.shape)
