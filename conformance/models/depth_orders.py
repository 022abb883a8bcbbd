"""In which order of depth the AMD backend's instructions add a product: it may gather what lies together in memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warpwave.backends.amd.arch import TARGETS, Mfma
from warpwave.backends.amd.compilation import settled
from warpwave.backends.amd.fragments import operand_a
from warpwave.backends.amd.lower.depth import DepthOrder, depth_order
from warpwave.backends.amd.lower.lower import emit
from warpwave.tiles.errors import TileError
from warpwave.tiles.ir import Kernel, Op, walk

Orders = Mapping[Op, list[int]]


def lowered_with_orders(kernel: Kernel, arch: str) -> tuple[Kernel, Orders]:
    """The kernel as lowered, whose loops over depth may have been cut, and the order of depth of each product."""
    if arch not in TARGETS or not any(op.name == "mma" for op in walk(kernel.body)):
        return kernel, {}
    try:
        target = TARGETS[arch]
        lowering = emit(kernel, target, settled(kernel, target, {}))
    except TileError:  # the target refuses the kernel, so that there is nothing to compare with
        return kernel, {}
    products = [op for op in walk(lowering.kernel.body) if op.name == "mma"]
    return lowering.kernel, {op: _order(lowering.plan.mmas[op].mfma, depth_order(lowering, op)[0]) for op in products}


def _order(mfma: Mfma, order: DepthOrder) -> list[int]:
    """Depth by step and place in the instruction."""
    places = operand_a(mfma).cols
    result: list[int] = []
    for items in order.items:
        depth = np.zeros(mfma.k, np.int64)
        depth[places] = order.of_lanes[:, None] + np.array(items)
        result += depth.tolist()
    return result
