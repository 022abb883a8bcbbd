"""What the measuring programs allow as an error, without a GPU: NumPy arrays stand in for tensors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpwave.bench.h200 import gemm_rows, launches, memory_rows
from warpwave.conformance.models.products import model_of, multiply_accumulate
from warpwave.kernels import formulas
from warpwave.tiles.reference.closed_forms import rounded_bound


class Tensor(np.ndarray):
    """As much of a tensor as is asked for."""

    def __new__(cls, x, dtype="torch.bfloat16"):
        found = np.asarray(x, np.float64).view(cls)
        found.name = dtype
        return found

    dtype = property(lambda self: self.name)

    def double(self):
        return self

    cpu = double

    def numpy(self):
        return np.asarray(self)


def bf16(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


@pytest.mark.parametrize("spread", [0, 3])
def test_fp8_products_by_the_model_of_the_instruction_are_within_their_bound(spread):
    rng, fp8 = np.random.default_rng(spread), ml_dtypes.float8_e4m3fn
    a, b = (
        (rng.standard_normal(s) * np.exp2(rng.integers(-spread, spread + 1, s))).astype(fp8)
        for s in ((8, 512), (512, 12))
    )
    codes = a.view(np.uint8), b.view(np.uint8), np.zeros((8, 12), np.uint32)
    got = multiply_accumulate(model_of("hopper wgmma", "fp8e4m3"), *codes).view(np.float32).astype(np.float64)
    left, right = a.astype(np.float64), b.astype(np.float64)
    exact = left @ right
    bound = gemm_rows.cut_bound(left, right, exact)
    assert (np.abs(bf16(got) - exact) <= bound).all()
    assert (bound < 0.2 * (abs(left) @ abs(right))).all()
    without_a_tile = left[:, :384] @ right[:384]
    assert (np.abs(without_a_tile - exact) > bound).any()


def test_rows_are_judged_by_the_kernels_formulas():
    x = bf16(np.random.default_rng(0).standard_normal((6, 300)))
    powers = np.exp(x)
    right = bf16(powers / powers.sum(1, keepdims=True))
    assert 0.1 < memory_rows._error(Tensor(right), formulas.softmax(x)) <= 1
    assert memory_rows._error(Tensor(right * 1.01), formulas.softmax(x)) > 1
    assert memory_rows._error(Tensor(np.where(x > 2, np.nan, right)), formulas.softmax(x)) == np.inf
    launches._is_softmax(Tensor(right), Tensor(x))
    with pytest.raises(AssertionError, match="are no softmax"):
        launches._is_softmax(Tensor(right * 1.01), Tensor(x))


def test_other_bounds_take_arrays_of_any_library():
    rng = np.random.default_rng(1)
    left, right = bf16(rng.standard_normal((5, 70))), bf16(rng.standard_normal((70, 6)))
    exact = left @ right
    bound = gemm_rows._usual_bound(Tensor(left), Tensor(right), Tensor(exact))
    assert isinstance(bound, Tensor)
    assert (np.abs(bf16(exact) - exact) <= bound).all()
    assert rounded_bound(1.0, 0.0, gemm_rows.BF16) == 2.0**-8
