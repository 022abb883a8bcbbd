"""Constants of the library's kernels that suit each NVIDIA target, where the kernels' own defaults do not.

Measured on an H200 (bench/notes/h200.md); for older chips by the same reasoning about registers and shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from warpwave.backends.nvidia.arch import TARGETS

DEPTH_BYTES = 128  # of a and of b along the depth of one pipeline step: a panel of the 128-byte swizzle
# Tiles of products and what share of the matrix units' rate each reaches.
TILES: dict[str, tuple[tuple[tuple[int, int], float], ...]] = {
    "sm90a": (
        ((128, 256), 1.0),
        ((256, 128), 0.99),
        ((192, 192), 0.88),
        ((128, 192), 0.95),
        ((128, 128), 0.9),
        ((64, 256), 0.75),
        ((64, 128), 0.6),
        ((64, 64), 0.4),
    ),
    "older": (((128, 128), 1.0), ((64, 128), 0.8), ((64, 64), 0.6)),
}
LONGEST_ROW = 16384  # that a tile holds whole
ROW_ELEMENTS = 8192  # of a tile of rows that is normalised
DROPPED_ROW_ELEMENTS = 2048  # and of one whose random bits take registers, too
# Queries and keys of a tile of attention, by the width of a head.
ATTENTION = {64: (192, 128), 128: (128, 128)}
CAUSAL = {64: (192, 96), 128: (128, 128)}
# Where large tiles would waste too much, of the diagonal or beyond the last query.
SMALL = (128, 128)
SHORT_CAUSAL, MOST_WASTE = 2048, 0.15


def _gemm(arch: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The tile with which all multiprocessors are done soonest."""
    rows, cols = arguments["c"].shape[-2:]
    constants: dict[str, Any] = {"BK": DEPTH_BYTES // int(arguments["a"].dtype.nbytes)}
    if rows is None or cols is None:
        return {**constants, "BM": 128, "BN": 256 if arch == "sm90a" else 128}
    units = TARGETS[arch].chips[0].multiprocessors
    tiles = TILES.get(arch, TILES["older"])

    def cost(choice: tuple[tuple[int, int], float]) -> float:
        (height, width), rate = choice
        blocks = -(-rows // height) * -(-cols // width)
        return float(-(-blocks // units) * height * width) / rate

    constants["BM"], constants["BN"] = min(tiles, key=cost)[0]
    return constants


def _attention(arch: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Hopper: two warpgroups that overlap softmax with both products, or three where a head is narrow."""
    width = max((arguments[name].shape[-1] or 0) for name in ("q", "v"))
    queries, causal = arguments["q"].shape[-2], bool(arguments.get("causal"))
    tile = next((size for limit, size in (CAUSAL if causal else ATTENTION).items() if width <= limit), None)
    if tile is not None and queries is not None and _wastes(tile[0], queries, causal):
        tile = SMALL
    if arch != "sm90a" or tile is None or (queries is not None and queries < tile[0]):
        return {}
    return {"BQ": tile[0], "BK": tile[1]}


def _wastes(height: int, queries: int, causal: bool) -> bool:
    beyond = -queries % height
    return beyond > MOST_WASTE * queries or (causal and queries < SHORT_CAUSAL)


def _rows(most: int, arch: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Tiles of rows small enough that several blocks share a multiprocessor: one computes while another loads."""
    rows, width = arguments["x"].shape[-2:]
    if rows is None or width is None or width > LONGEST_ROW:
        return {}
    height = 1
    while height * 2 * width <= most and height < min(rows, 64):
        height *= 2
    return {"BM": height}


_RULES: dict[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "warpwave.kernels.gemm:gemm": _gemm,
    "warpwave.kernels.attention:attention": _attention,
    "warpwave.kernels.softmax:softmax": partial(_rows, ROW_ELEMENTS),
    "warpwave.kernels.rmsnorm:rmsnorm": partial(_rows, ROW_ELEMENTS),
    "warpwave.kernels.layernorm:layernorm": partial(_rows, ROW_ELEMENTS),
    "warpwave.kernels.layernorm:dropout_residual_layernorm": partial(_rows, DROPPED_ROW_ELEMENTS),
}


def constants_for(kernel: str, target: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Constants for "module:name" of a kernel on "nvidia:sm..."; empty where the kernel's own are used."""
    rule = _RULES.get(kernel)
    return rule(target.split(":")[1], arguments) if rule else {}
