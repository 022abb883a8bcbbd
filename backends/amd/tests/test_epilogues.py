"""Epilogues on a 256 x 256 accumulator, which has half of the registers: they must not spill."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import warpwave as ww
from warpwave.kernels.gemm import gemm

ACTIVATIONS = {"none": None, "relu": ww.relu, "gelu": ww.gelu, "silu": ww.silu, "tanh": ww.tanh, "sigmoid": ww.sigmoid}


def assert_fits(target, activation, *, bias, tb):
    x = np.zeros((256, 256), ml_dtypes.bfloat16)
    arguments = {"a": x, "b": x, "c": x} | ({"bias": np.zeros(256, np.float32)} if bias else {})
    options = {"transpose_b": tb, "activation": ACTIVATIONS[activation], "target": f"amd:{target}"}
    compiled = gemm.compile(**arguments, **options, BM=256, BN=256)
    assert compiled.resources["spills"] == compiled.resources["scratch_bytes"] == 0


@pytest.mark.parametrize(
    ("target", "activation", "bias"),
    [("gfx942", "silu", False), ("gfx950", "gelu", True)],
)
def test_the_largest_tile_fits(target, activation, bias):
    assert_fits(target, activation, bias=bias, tb=False)


@pytest.mark.sweep
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_all_activations_fit(target, activation, bias, tb):
    assert_fits(target, activation, bias=bias, tb=tb)
