"""Matrix products beside cuBLAS, through PyTorch."""

from __future__ import annotations

from typing import Any

from warpwave.bench.h200 import upstream
from warpwave.bench.h200.case import BF16_ROUNDING, Case, worst_share
from warpwave.kernels.gemm import gemm

SAMPLED_ROWS = 64
F32_ROUNDING = 2.0**-23
FP8_ACCUMULATION = 2.0**-13  # Hopper adds fp8 products with 13 fraction bits below the largest (MMA-Sim)


def bf16(torch: Any, *, m: int, n: int, k: int, ab: bool = False) -> Case:
    """c = a @ b.T, or a @ b with `ab`."""
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(*((k, n) if ab else (n, k)), device="cuda", dtype=torch.bfloat16)
    c, peer = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    right = b if ab else b.T
    return Case(
        lambda: gemm(a, b, c, transpose_b=not ab),
        {"cublas": lambda: torch.mm(a, right, out=peer), **upstream.gemm(torch, a, right, m, n, k)},
        lambda: _error(torch, a, right, c, F32_ROUNDING * k),
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
        lambda: _error(torch, a, b.T, c, FP8_ACCUMULATION * n / 32),
        flops=2.0 * n**3,
    )


def _error(torch: Any, a: Any, b: Any, c: Any, accumulation: float) -> float:
    """Of some rows, against float64: one rounding to bf16, and what accumulating in f32 may lose."""
    rows = torch.linspace(0, a.shape[0] - 1, min(SAMPLED_ROWS, a.shape[0]), device="cuda").long()
    left, right = a[rows].double(), b.double()
    exact = left @ right
    bound = BF16_ROUNDING * exact.abs() + accumulation * (left.abs() @ right.abs()) + 1e-30
    return worst_share(torch, c[rows], exact, bound)
