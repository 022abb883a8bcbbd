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
USUAL_KEYS = 64  # of a step, which is attention's own default


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


def _attention(arch: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """What usually suits, or for known shapes the queries and keys of least modelled time."""
    q, k, v = (arguments[name] for name in "qkv")
    width = int(arguments.get("D") or max(32, -(-max(q.shape[-1], v.shape[-1]) // 32) * 32))
    step = _usual_keys(arch, q, k, width)
    usual: dict[str, Any] = {} if step == USUAL_KEYS else {"BK": step}
    if not all((*q.shape, *k.shape)):  # unknown or empty
        return usual
    *heads, rows, _ = q.shape
    shape = (math.prod(heads), rows, k.shape[-2], bool(arguments.get("causal")))
    given = tuple((axis, arguments[name]) for axis, name in enumerate(("BQ", "BK")) if arguments.get(name))
    return _modelled_step(arch, shape, q.dtype.nbytes, (step, width), given) or usual


def _usual_keys(arch: str, q: Any, k: Any, width: int) -> int:
    """gfx942 stages tiles in registers, which wide heads leave few for; two stages of 64 keys do not fit its LDS.

    On gfx950 narrow heads leave registers for steps of 128 keys, which halve what a step costs beside its products.
    """
    if arch == "gfx942":
        return 32 if width > 96 else USUAL_KEYS
    keys = k.shape[-2]
    long_steps = width <= 64 and q.dtype.nbytes == 2 and (keys is None or keys >= LONG_KEYS)
    return 128 if long_steps else USUAL_KEYS


@lru_cache(maxsize=1024)
def _modelled_step(
    arch: str,
    shape: tuple[int, int, int, bool],
    itemsize: int,
    usual: tuple[int, int],
    given: tuple[tuple[int, int], ...],
) -> Suggestion | None:
    """None where the kernel's own queries, with the `usual` keys of a step and width, are best."""
    from warpwave.backends.amd.model.chain_choice import Whole, choose_step  # most kernels never need it
    from warpwave.backends.amd.model.schedules import Chain

    whole = Whole(*shape)
    chain = Chain(arch, itemsize, whole.masked, (64 if whole.rows <= 64 else 128, *usual))
    choice = choose_step(chain, whole, dict(given))
    if choice is None or (choice.best.rows, choice.best.columns) == chain.tile[:2]:
        return None
    constants = {"BQ": choice.best.rows, "BK": choice.best.columns}
    return Suggestion(constants, dict.fromkeys(constants, f"modelled {choice}"))


_RULES: dict[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]] = {
    "warpwave.kernels.attention:attention": _attention,
    "warpwave.kernels.gemm:gemm": _gemm,
}


def constants_for(kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Constants for "module:name" of a kernel on "amd:gfx..."; empty where the kernel's own are used."""
    rule = _RULES.get(kernel)
    return rule(target.split(":")[1], arguments) if rule else {}
