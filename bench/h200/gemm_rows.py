"""Matrix products beside cuBLAS, through PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpwave.bench.h200 import upstream
from warpwave.bench.h200.case import Case, worst_share
from warpwave.conformance.models.products import model_of
from warpwave.conformance.models.tensor_core import TensorCore
from warpwave.kernels.gemm import gemm
from warpwave.tiles.dtypes import bf16 as BF16
from warpwave.tiles.reference.closed_forms import product_bound, rounded_bound

SAMPLED_ROWS = 64


def bf16(torch: Any, *, m: int, n: int, k: int, ab: bool = False) -> Case:
    """c = a @ b.T, or a @ b with `ab`."""
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(*((k, n) if ab else (n, k)), device="cuda", dtype=torch.bfloat16)
    c, peer = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    right = b if ab else b.T
    return Case(
        lambda: gemm(a, b, c, transpose_b=not ab),
        {"cublas": lambda: torch.mm(a, right, out=peer), **upstream.gemm(torch, a, right, m, n, k)},
        lambda: _error(torch, a, right, c, _usual_bound),
        flops=2.0 * m * n * k,
    )


def fp8(torch: Any, *, n: int) -> Case:
    """c = a @ b.T of e4m3 with scales of 1, which is the fast accumulation of torch._scaled_mm."""
    a, b = (torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    c = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    one = torch.ones((), device="cuda")

    def scaled_mm(fast: bool) -> Any:
        return torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)

    return Case(
        lambda: gemm(a, b, c, transpose_b=True),
        {"_scaled_mm fast": lambda: scaled_mm(True)},
        lambda: _error(torch, a, b.T, c, cut_bound),
        flops=2.0 * n**3,
    )


def _error(torch: Any, a: Any, b: Any, c: Any, bounded: Callable[[Any, Any, Any], Any]) -> float:
    """Of some rows, against float64, in units of the contract's bound."""
    rows = torch.linspace(0, a.shape[0] - 1, min(SAMPLED_ROWS, a.shape[0]), device="cuda").long()
    left, right = a[rows].double(), b.double()
    exact = left @ right
    return worst_share(torch, c[rows], exact, bounded(left, right, exact))


def _usual_bound(left: Any, right: Any, exact: Any) -> Any:
    return product_bound(exact, abs(left) @ abs(right), left.shape[1], BF16, BF16)


def cut_bound(left: Any, right: Any, exact: Any) -> Any:
    """Of fp8, where the contract's own bound, which holds for any order, says nothing from a depth of 4096 on.

    Groups follow each other. In each the products and the accumulator are cut at some bits below the largest, and so is
    the sum (`TensorCore`); the largest is at most the sum of all magnitudes.
    """
    unit = model_of("hopper wgmma", "fp8e4m3").unit
    assert isinstance(unit, TensorCore)
    cut, total = 2.0**-unit.kept, 0 * exact
    error = total
    for first in range(0, left.shape[1], unit.group):
        a, b = left[:, first : first + unit.group], right[first : first + unit.group]
        largest = abs(total) + error + abs(a) @ abs(b)
        total = total + a @ b
        error = error + cut * ((unit.group + 1) * largest + abs(total) + error)
    return rounded_bound(exact, error, BF16)
