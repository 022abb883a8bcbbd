"""One thing to measure: ours, what a user would pick instead, and whether the result is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """`ours` and `peers` run once on fixed tensors. `check` gives the largest error as a share of what is allowed."""

    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]
    check: Callable[[], float]
    flops: float = 0.0
    bytes_moved: float = 0.0


def worst_share(torch: Any, got: Any, exact: Any, bound: Any) -> float:
    """The largest error in units of its bound, which is the contract's; infinite if something is no number."""
    share = ((got.double() - exact).abs() / bound).max()
    return float(share) if bool(torch.isfinite(share)) else float("inf")
