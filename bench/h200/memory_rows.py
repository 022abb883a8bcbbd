"""Kernels that are bound by memory, beside what torch.compile makes of the same formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from warpwave.bench.h200.case import Case
from warpwave.kernels import formulas
from warpwave.kernels.layernorm import dropout_residual_layernorm
from warpwave.kernels.rmsnorm import rmsnorm
from warpwave.kernels.rotary import rotary
from warpwave.kernels.softmax import softmax
from warpwave.tiles.dtypes import bf16
from warpwave.tiles.reference.comparison import errors
from warpwave.tiles.reference.running_error import Approx

EPS = 1e-5
DROPPED = 0.1
CHECKED_ROWS = 512


def rotary_case(torch: Any) -> Case:
    """x of [16, 16, 4096, 128] bf16."""
    x = torch.randn(16, 16, 4096, 128, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    angles = torch.rand(4096, 64, device="cuda") * 6.28
    cos, sin = angles.cos(), angles.sin()

    def formula(x: Any, cos: Any, sin: Any) -> Any:
        first, second = x[..., :64].float(), x[..., 64:].float()
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)

    compiled = torch.compile(formula)
    return Case(
        lambda: rotary(x, y, cos, sin),
        {"torch.compile": lambda: compiled(x, cos, sin)},
        lambda: _error(y[:1, :1], formulas.rotate(_host(x[:1, :1]), _host(cos), _host(sin), interleaved=False)),
        bytes_moved=2 * 2 * x.numel(),
    )


def softmax_case(torch: Any) -> Case:
    """Rows of 4096 bf16."""
    x = torch.randn(32768, 4096, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    compiled = torch.compile(lambda x: torch.softmax(x, -1))
    return Case(
        lambda: softmax(x, y),
        {"torch.compile": lambda: compiled(x), "torch": lambda: torch.softmax(x, -1)},
        lambda: _error(y[:CHECKED_ROWS], formulas.softmax(_host(x[:CHECKED_ROWS]))),
        bytes_moved=2 * 2 * x.numel(),
    )


def rmsnorm_case(torch: Any) -> Case:
    """Rows of 4096 bf16 with a weight."""
    x = torch.randn(32768, 4096, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(4096, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)

    def formula(x: Any, weight: Any) -> Any:
        return torch.nn.functional.rms_norm(x, (4096,), weight, EPS)

    compiled = torch.compile(formula)
    return Case(
        lambda: rmsnorm(x, y, weight, eps=EPS),
        {"torch.compile": lambda: compiled(x, weight), "torch": lambda: formula(x, weight)},
        lambda: _error(y[:CHECKED_ROWS], formulas.rmsnorm(_host(x[:CHECKED_ROWS]), _host(weight), eps=EPS)),
        bytes_moved=2 * 2 * x.numel(),
    )


def dropout_case(torch: Any) -> Case:
    """Dropout, residual sum and LayerNorm of rows of 2048 bf16: reads two tensors, writes two."""
    x, residual = (torch.randn(65536, 2048, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    weight, bias = (torch.randn(2048, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    y, total = torch.empty_like(x), torch.empty_like(x)

    def normalised(total: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(total, (2048,), weight, bias, EPS)

    def formula(x: Any, residual: Any, weight: Any, bias: Any) -> Any:
        total = torch.nn.functional.dropout(x, DROPPED) + residual
        return normalised(total, weight, bias), total

    def check() -> float:
        """The normalised sum, and the share of dropped elements, which the masks' generators do not share."""
        part = _host(total[:CHECKED_ROWS])
        dropped = float((total == residual).float().mean())
        deviation = math.sqrt(DROPPED * (1 - DROPPED) / (CHECKED_ROWS * total.shape[1]))
        shares = abs(dropped - DROPPED) / (6 * deviation)
        allowed = formulas.layernorm(part, _host(weight), _host(bias), eps=EPS)
        return max(shares, _error(y[:CHECKED_ROWS], allowed))

    compiled = torch.compile(formula)
    return Case(
        lambda: dropout_residual_layernorm(x, residual, y, total, weight, bias, 1, 0, p=DROPPED, eps=EPS),
        {"torch.compile": lambda: compiled(x, residual, weight, bias)},
        check,
        bytes_moved=4 * 2 * x.numel(),
    )


def _host(x: Any) -> Any:
    """A tensor as float64 on the host."""
    return x.double().cpu().numpy()


def _error(got: Any, allowed: Approx) -> float:
    """The largest error in units of its bound, which is the contract's, rounded to bf16."""
    _, ratio = errors(_host(got), allowed.value, allowed.rounded(bf16).error)
    return float(ratio.max())


KERNELS: dict[str, Callable[[Any], Case]] = {
    "rotary B16 H16 N4096 D128": rotary_case,
    "softmax 32768x4096": softmax_case,
    "rmsnorm 32768x4096": rmsnorm_case,
    "dropout-residual-layernorm 65536x2048": dropout_case,
}
