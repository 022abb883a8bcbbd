"""Which register tiles are better kept in shared memory: what only wgmma reads costs it no registers there."""

from __future__ import annotations

from collections.abc import Collection

from warpwave.tiles.ir import Kernel, Op, walk


def share_operands(kernel: Kernel, products: Collection[Op]) -> None:
    """Loads of 16-bit tiles that are first operands of these products, and nothing else, go to shared memory."""
    uses: dict[object, list[tuple[Op, int]]] = {}
    for op in walk(kernel.body):
        for place, value in enumerate(op.operands):
            uses.setdefault(value, []).append((op, place))
    for op in walk(kernel.body):
        if op.name != "load" or op.attrs["type"].space != "register" or op.attrs["type"].rank != 2:
            continue
        readers = uses.get(op.result, [])
        whole = op.attrs["type"].dtype.bits == 16 and op.attrs["type"].shape[1] * 2 % 32 == 0
        if whole and readers and all(reader in products and place == 1 for reader, place in readers):
            tile = op.attrs["type"].with_(space="shared")
            op.attrs = {**op.attrs, "type": tile}
            op.result.type = tile
