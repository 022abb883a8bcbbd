"""Constants of the library's kernels that suit each AMD target, where the kernels' own defaults do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from warpwave.tiles.runtime.backend import Suggestion

# Bytes of a and of b along the depth of one pipeline step. gfx950's 160 KB of LDS hold two steps of 256 x 256
# tiles with 128-byte rows (lowering may cut them further), gfx942's 64 KB two steps with 64-byte rows.
DEPTH_BYTES = {"gfx942": 64, "gfx950": 128}
LONG_KEYS = 512  # from here on few of attention's steps of 128 keys are partly masked


def _gemm(arch: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The depth that LDS holds, and for known shapes the tiles of least modelled time."""
    a, c = arguments["a"], arguments["c"]
    itemsize = int(a.dtype.nbytes)
    depth = DEPTH_BYTES[arch] // itemsize
    if not all((*a.shape[-2:], *c.shape)):  # unknown or empty
        return {"BK": depth}
    *batch, rows, cols = c.shape
    steps = a.shape[-2] * a.shape[-1] // rows  # whichever way a is stored
    along_rows = not arguments.get("transpose_a") and bool(arguments.get("transpose_b"))
    return _modelled_tiles(arch, (rows, cols, steps), itemsize, depth, math.prod(batch), along_rows)


@lru_cache(maxsize=1024)
def _modelled_tiles(
    arch: str, shape: tuple[int, int, int], itemsize: int, depth: int, batch: int, along_rows: bool
) -> Suggestion:
    from warpwave.backends.amd.model.choice import choose_tiles  # most kernels never need it

    choice = choose_tiles(arch, shape, itemsize, depth, batch, along_rows=along_rows)
    tiles = {"BM": choice.best.block_m, "BN": choice.best.block_n}
    return Suggestion(tiles | {"BK": depth}, dict.fromkeys(tiles, f"modelled {choice}"))


def _attention(arch: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """gfx942 stages tiles in registers, which wide heads leave few for; two stages of 64 keys do not fit its LDS.

    On gfx950 narrow heads leave registers for steps of 128 keys, which halve what a step costs beside its products.
    """
    q, k, v = (arguments[name] for name in "qkv")
    width, keys = max(q.shape[-1], v.shape[-1]), k.shape[-2]
    if arch == "gfx942":
        return {"BK": 32} if width > 96 else {}
    long_steps = width <= 64 and q.dtype.nbytes == 2 and (keys is None or keys >= LONG_KEYS)
    return {"BK": 128} if long_steps else {}


_RULES: dict[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]] = {
    "warpwave.kernels.attention:attention": _attention,
    "warpwave.kernels.gemm:gemm": _gemm,
}


def constants_for(kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Constants for "module:name" of a kernel on "amd:gfx..."; empty where the kernel's own are used."""
    rule = _RULES.get(kernel)
    return rule(target.split(":")[1], arguments) if rule else {}
