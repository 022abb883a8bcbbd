"""The rows that are measured: our kernel, its peers, the work it does, and a check of its result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from warpwave.bench.h200 import attention_rows, gemm_rows, memory_rows
from warpwave.bench.h200.case import Case

__all__ = ["Row", "all_rows"]


@dataclass(frozen=True)
class Row:
    """One line of the table. `make` builds its case; `at_least` and `aim` are ratios to the better peer.

    `neighbour` names the row whose rate this one is compared with, where that is its measure.
    """

    name: str
    make: Callable[[Any], Case]
    at_least: float
    aim: float
    neighbour: str = ""
    notes: str = field(default="")


def all_rows() -> Iterator[Row]:
    """In the order of the table."""
    yield from _gemm()
    yield from _attention()
    yield from _memory()
    yield from _odd()


def _gemm() -> Iterator[Row]:
    for n in (4096, 8192, 16384):
        yield Row(f"gemm bf16 {n}", functools.partial(gemm_rows.bf16, m=n, n=n, k=n), 1.00, 1.05)
    for n in (1024, 2048):
        yield Row(f"gemm bf16 {n}", functools.partial(gemm_rows.bf16, m=n, n=n, k=n), 0.95, 1.05)
    yield Row("gemm bf16 AB 4096", functools.partial(gemm_rows.bf16, m=4096, n=4096, k=4096, ab=True), 1.00, 1.05)
    for n in (4096, 8192):
        yield Row(f"gemm fp8 {n}", functools.partial(gemm_rows.fp8, n=n), 0.95, 1.05)


def _attention() -> Iterator[Row]:
    for width in (128, 64):
        for causal in (False, True):
            for n in (1024, 4096, 16384):
                for heads, groups in ((16, 16), (64, 8)):
                    batch = max(1, 16384 // n) if heads == 16 else max(1, 4096 // n)
                    shape = {"batch": batch, "heads": heads, "groups": groups, "n": n, "width": width}
                    mask = "causal" if causal else "full"
                    name = f"attention D={width} {mask} N={n} H={heads}/{groups}"
                    yield Row(name, functools.partial(attention_rows.forward, causal=causal, **shape), 0.95, 1.05)


def _memory() -> Iterator[Row]:
    for name, make in memory_rows.KERNELS.items():
        yield Row(name, make, 1.0, 1.2)


def _odd() -> Iterator[Row]:
    odd = functools.partial(gemm_rows.bf16, m=1000, n=999, k=1001)
    yield Row("gemm bf16 1000x999x1001", odd, 0.85, 0.95, neighbour="gemm bf16 1024")
    shape = {"batch": 16, "heads": 16, "groups": 16, "n": 1000, "width": 128}
    make = functools.partial(attention_rows.forward, causal=False, **shape)
    yield Row("attention D=128 full N=1000 H=16/16", make, 0.85, 0.95, neighbour="attention D=128 full N=1024 H=16/16")
