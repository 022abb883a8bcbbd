"""Common-subexpression elimination: one op for equal ops on equal operands, the first one's place.

Tiles that cost nothing to make (broadcasts, indices) are not kept across a loop or branch: merging them would
hold their registers all the way.
"""

from __future__ import annotations

from typing import Any

from warpwave.tiles.ir import OPS, Block, Kernel, Op, Value
from warpwave.tiles.passes.rewrite import replace_uses

_FREE_TILES = ("broadcast", "expand_dims", "iota")


def merge_common_ops(kernel: Kernel) -> None:
    """Merge equal ops without effects whose first occurrence dominates the other."""
    replacements: dict[Value, Value] = {}
    _merge(kernel.body, {}, replacements)
    replace_uses(kernel.body, replacements)


def _merge(block: Block, outer: dict[Any, Op], replacements: dict[Value, Value]) -> None:
    seen = _without_free_tiles(outer)
    kept: list[Op] = []
    for op in block.ops:
        op.operands = [replacements.get(v, v) for v in op.operands]
        if OPS[op.name].effect == "none":
            key = _key(op)
            if key in seen:
                replacements.update(zip(op.results, seen[key].results, strict=True))
                continue
            seen[key] = op
        kept.append(op)
        for region in op.regions:
            _merge(region, seen, replacements)
        if op.regions:
            seen = _without_free_tiles(seen)
    block.ops = kept


def _without_free_tiles(seen: dict[Any, Op]) -> dict[Any, Op]:
    return {key: op for key, op in seen.items() if op.name not in _FREE_TILES}


def _key(op: Op) -> Any:
    attrs = tuple(sorted((k, _exact(v)) for k, v in op.attrs.items()))
    return (op.name, tuple(id(v) for v in op.operands), attrs)


def _exact(value: Any) -> str:
    """Attributes as text, so that 0.0 and -0.0, or 1 and True, stay different."""
    return value.hex() if isinstance(value, float) else repr(value)
