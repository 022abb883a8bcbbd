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

    Along K from the first to the last: a target that adds in another order is within the contract, with other bits.
    """

    def __init__(self, products: Mapping[str, str]) -> None:
        self.products = products

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
        return [multiply_accumulate(model, _bits(left), _bits(right), _bits(acc)).view(np.float32)]


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


def execute(kernel: Kernel, arguments: Mapping[str, Any], products: Mapping[str, str]) -> None:
    """Execute `kernel`, outputs in place; `products` names the model for each dtype of operands."""
    Interpreter(kernel, Modelled(products), arguments).run(None)
