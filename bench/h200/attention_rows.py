"""Attention forward beside cuDNN and FlashAttention 2, both through PyTorch."""

from __future__ import annotations

import math
from typing import Any

from warpwave.bench.h200 import upstream
from warpwave.bench.h200.case import Case, worst_share
from warpwave.kernels.attention import attention
from warpwave.tiles.dtypes import bf16
from warpwave.tiles.reference.closed_forms import attention_bound

SAMPLED_QUERIES = 32
NARROWEST = 64  # keys of a tile


def forward(torch: Any, *, batch: int, heads: int, groups: int, n: int, width: int, causal: bool) -> Case:
    """softmax(q k^T / sqrt(D)) v in bf16; FLOP as usual: 4 B H N^2 D, half of it if causal."""

    def tensor(h: int) -> Any:
        return torch.randn(batch, h, n, width, device="cuda", dtype=torch.bfloat16)

    q, k, v = tensor(heads), tensor(groups), tensor(groups)
    out = torch.empty_like(q)
    peers = {name: _sdpa(torch, backend, q, k, v, causal) for name, backend in _backends(torch).items()}
    return Case(
        lambda: attention(q, k, v, out, causal=causal),
        {**peers, **upstream.attention(torch, q, k, v, causal)},
        lambda: _error(torch, q, k, v, out, causal),
        flops=4.0 * batch * heads * n * n * width * (0.5 if causal else 1.0),
    )


def _backends(torch: Any) -> dict[str, Any]:
    kinds = torch.nn.attention.SDPBackend
    return {"cudnn": kinds.CUDNN_ATTENTION, "flash2": kinds.FLASH_ATTENTION}


def _sdpa(torch: Any, backend: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    def run() -> Any:
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
            )

    return run


def _error(torch: Any, q: Any, k: Any, v: Any, out: Any, causal: bool) -> float:
    """Of some queries of the first and the last head, against float64, in units of the contract's bound."""
    (n, width), share = q.shape[2:], q.shape[1] // k.shape[1]
    rows = torch.linspace(0, n - 1, min(SAMPLED_QUERIES, n), device="cuda").long()
    worst = 0.0
    for b, h in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        keys, values = k[b, h // share].double(), v[b, h // share].double()
        queries = q[b, h, rows].double() / math.sqrt(width)
        scores, size = queries @ keys.T, queries.abs() @ keys.abs().T
        if causal:
            scores = scores.masked_fill(torch.arange(n, device="cuda") > rows[:, None], -math.inf)
        weights = scores.softmax(-1)
        exact = weights @ values
        largest = size.amax(-1, keepdim=True)
        extents = {"width": width, "keys": n, "tile": NARROWEST}
        bound = attention_bound(exact, weights @ values.abs(), largest, **extents, dtype=bf16)
        worst = max(worst, worst_share(torch, out[b, h, rows], exact, bound))
    return worst
