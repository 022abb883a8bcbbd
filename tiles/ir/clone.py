"""A copy of a kernel that passes may change without touching the original."""

from __future__ import annotations

from warpwave.tiles.ir.core import Block, Kernel, Op, Value


def clone(kernel: Kernel) -> Kernel:
    """An equal kernel with values, ops and blocks of its own."""
    return Kernel(kernel.name, list(kernel.param_names), dict(kernel.constants), _block(kernel.body, {}), kernel.loc)


def _block(block: Block, values: dict[Value, Value]) -> Block:
    args = [_value(v, values) for v in block.args]
    return Block(args, [_op(op, values) for op in block.ops])


def _value(value: Value, values: dict[Value, Value]) -> Value:
    values[value] = Value(value.type, value.name)
    return values[value]


def _op(op: Op, values: dict[Value, Value]) -> Op:
    operands = [values[v] for v in op.operands]
    regions = [_block(region, values) for region in op.regions]
    results = [_value(v, values) for v in op.results]
    return Op(op.name, operands, dict(op.attrs), results, regions, op.loc)
