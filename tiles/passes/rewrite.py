"""Replacing values everywhere in a kernel."""

from __future__ import annotations

from warpwave.tiles.ir import Block, Value, walk


def replace_uses(block: Block, replacements: dict[Value, Value]) -> None:
    """Make every use of a key of `replacements` a use of its value, chains included."""
    if not replacements:
        return
    for op in walk(block):
        op.operands = [_resolve(v, replacements) for v in op.operands]


def _resolve(value: Value, replacements: dict[Value, Value]) -> Value:
    while value in replacements:
        value = replacements[value]
    return value
