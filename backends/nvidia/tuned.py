"""Constants of the library's kernels that suit each NVIDIA target, where the kernels' own defaults do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# Bytes of a and of b along the depth of one pipeline step: a panel of the 128-byte swizzle.
DEPTH_BYTES = 128
_WIDE = 128  # rows or columns from which on a product is worth large tiles


def _gemm(arch: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Hopper: two consumer warpgroups of 64 x 256 accumulators each; before it, 128 x 128 over 8 warps."""
    rows, cols = arguments["c"].shape[-2:]
    constants: dict[str, Any] = {"BK": DEPTH_BYTES // int(arguments["a"].dtype.nbytes)}
    if rows is None or cols is None or min(rows, cols) < _WIDE:
        return constants
    constants["BM"] = 128
    constants["BN"] = 256 if arch == "sm90a" and cols >= 256 else 128
    return constants


_RULES: dict[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "warpwave.kernels.gemm:gemm": _gemm,
}


def constants_for(kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Constants for "module:name" of a kernel on "nvidia:sm..."; empty where the kernel's own are used."""
    rule = _RULES.get(kernel)
    return rule(target.split(":")[1], arguments) if rule else {}
