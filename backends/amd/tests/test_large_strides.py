"""Tensors whose parts are gigabytes apart, in memory that the system provides only where it is touched."""

from __future__ import annotations

import mmap

import ml_dtypes
import numpy as np
import pytest

from warpwave.backends.amd.tests.harness import BOTH, launch, program
from warpwave.kernels.gemm import gemm

BATCH_BYTES = 5 << 29  # 2.5 GiB: two batches are further apart than 32 bits count


def spread(batches, rows, cols, dtype, rng):
    """[batches, rows, cols] whose batches are far apart."""
    itemsize = np.dtype(dtype).itemsize
    memory = mmap.mmap(-1, (batches - 1) * BATCH_BYTES + rows * cols * itemsize)
    strides = BATCH_BYTES, cols * itemsize, itemsize
    array = np.ndarray((batches, rows, cols), dtype, memory, 0, strides)
    array[...] = rng.integers(-3, 4, array.shape)
    return array


@pytest.mark.parametrize("target", BOTH)
def test_batches_further_apart_than_two_gigabytes(target):
    rng = np.random.default_rng(5)
    a, b = (spread(2, 64, 64, ml_dtypes.bfloat16, rng) for _ in range(2))
    arguments = {"a": a, "b": b, "c": np.zeros((2, 64, 64), np.float32)}
    kernel = gemm.compile(**arguments, BM=64, BN=64, BK=32, target="reference").ir
    got = launch(program(kernel, target), arguments)["c"]
    np.testing.assert_array_equal(got, a.astype(np.float32) @ b.astype(np.float32))
