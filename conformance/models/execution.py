"""Runs a kernel with one target's matrix arithmetic; everything else is as in the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.conformance.models.products import MODELS, Model, multiply_accumulate
from warpwave.tiles.ir import Kernel, Op
from warpwave.tiles.reference import Contract, Interpreter
from warpwave.tiles.reference.contract import mma_operands

Array = npt.NDArray[Any]


class Modelled(Contract):
    """The contract's domain, except that products of floats are added as the target's instruction adds them.

    `products` names the model for each dtype of operands. Depth is added in order, or as `orders` says for an
    op; what an order names beyond the operands' depth counts as 0.
    """

    def __init__(self, products: Mapping[str, str], orders: Mapping[Op, list[int]] | None = None) -> None:
        self.products = products
        self.orders = orders or {}

    def model(self, op: Op) -> Model | None:
        """The model of a product; None where the target has none. Without tf32, f32 operands are used in full."""
        a, b = (v.tile.dtype.name for v in op.operands[1:])
        if a == "f32" and op.attrs["precision"] == "tf32" and "tf32" in self.products:
            a = b = "tf32"
        return MODELS.get(self.products.get(a, ""), {}).get(a if a == b else f"{a}*{b}")

    def compute(self, op: Op, operands: Sequence[Array]) -> list[Array]:
        """The results of an op without effects or regions."""
        model = self.model(op) if op.name == "mma" else None
        if model is None:
            return super().compute(op, operands)
        acc, *factors = operands
        left, right = mma_operands(op, *factors)
        codes = _bits(left), _bits(right)
        if model.a == "tf32":
            codes = _to_tf32(codes[0]), _to_tf32(codes[1])
        if op in self.orders:
            codes = _reordered(codes[0], self.orders[op], 1), _reordered(codes[1], self.orders[op], 0)
        return [multiply_accumulate(model, *codes, _bits(acc)).view(np.float32)]


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


def _to_tf32(codes: Array) -> Array:
    """As cvt.rna.tf32.f32, which the backend applies to operands: 10 fraction bits, nearest, ties away from 0."""
    special = codes & 0x7F800000 == 0x7F800000
    return np.where(special, codes, codes + np.uint32(0x1000) & np.uint32(0xFFFFE000))


def _reordered(codes: Array, order: list[int], axis: int) -> Array:
    missing = [(0, 0), (0, 0)]
    missing[axis] = (0, max(0, max(order) + 1 - codes.shape[axis]))
    return np.take(np.pad(codes, missing), order, axis)


def execute(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    products: Mapping[str, str],
    orders: Mapping[Op, list[int]] | None = None,
) -> None:
    """Execute `kernel`, outputs in place; see `Modelled`."""
    Interpreter(kernel, Modelled(products, orders), arguments).run(None)
