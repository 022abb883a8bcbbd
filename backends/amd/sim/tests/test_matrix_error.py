"""The bound of matrix products against the published sums, on hostile numbers and in any order of k."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from . import mma_model
from ._matrix_error import mfma
from .test_arith_mfma import _codes

TYPES = {
    "f16": (np.float16, 8),
    "bf16": (ml_dtypes.bfloat16, 8),
    "fp8_fnuz": (ml_dtypes.float8_e4m3fnuz, 16),
    "bf8_ocp": (ml_dtypes.float8_e5m2, 16),
}
M, N, K = 24, 20, 64


def _operands(name: str, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng, dtype = np.random.default_rng(seed), TYPES[name][0]
    codes = [np.asarray(_codes(rng, name, (1, *size), kind)).astype(np.uint64) for size in ((M, K), (K, N))]
    codes = [np.where(c == 0x80, 0, c) if name == "fp8_fnuz" else c for c in codes]  # which has no -0
    storage = np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16
    return *codes, *(c[0].astype(storage).view(dtype) for c in codes)


KINDS = [(n, k) for n in TYPES for k in ("normal", "wide", "cancel", "tiny") if (n, k) != ("bf16", "wide")]  # overflows


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=["-".join(k) for k in KINDS])
def test_published_sums_stay_within_the_bound(name, kind):
    group = TYPES[name][1]
    for seed in range(3):
        codes_a, codes_b, a, b = _operands(name, kind, seed)
        bound = mfma(a, b, group=group)
        for order in (np.arange(K), np.random.default_rng(seed).permutation(K)):
            start = np.zeros((1, M, N), np.uint32)
            bits = mma_model.multiply_accumulate(name, name, codes_a[:, :, order], codes_b[:, order], start)
            got = bits[0].view(np.float32).astype(np.float64)
            assert (np.abs(got - bound.value) <= bound.error).all()


def test_a_product_that_is_left_out_is_beyond_the_bound():
    _, _, a, b = _operands("bf16", "normal", 0)
    short = a[:, :-1].astype(float) @ b[:-1].astype(float)
    bound = mfma(a, b)
    assert (np.abs(short - bound.value) > bound.error).mean() > 0.95
