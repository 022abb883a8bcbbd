"""Other evaluations that the contract allows: other orders, truncating accumulation, inexact functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpwave.tiles.ir import Kernel, Op
from warpwave.tiles.reference.accuracy import ACCURACY
from warpwave.tiles.reference.contract import Contract
from warpwave.tiles.reference.functions import FLOAT
from warpwave.tiles.reference.interpreter import Interpreter


def toward(x: np.ndarray, mode: str) -> np.ndarray:
    """float64 to f32: nearest, toward zero or down."""
    near = x.astype(np.float32)
    if mode == "nearest":
        return near
    beyond = np.abs(near.astype(np.float64)) > np.abs(x) if mode == "zero" else near.astype(np.float64) > x
    inward = np.nextafter(near, np.float32(0) if mode == "zero" else np.float32(-np.inf))
    return np.where(beyond, inward, near)


class Legal(Contract):
    """One random legal evaluation."""

    def __init__(self, seed: int, mode: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.mode = mode

    def compute(self, op: Op, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        is_float = bool(op.operands) and op.operands[0].tile.dtype.is_float
        if is_float and op.name in ACCURACY:
            return [self.perturbed(op, operands[0])]
        if is_float and op.name == "reduce_sum":
            return [self.summed(operands[0], op)]
        if is_float and op.name == "mma":
            return [self.product(op, *operands)]
        return super().compute(op, operands)

    def perturbed(self, op: Op, x: np.ndarray) -> np.ndarray:
        """A result within the allowance, in f32, then rounded to the dtype."""
        wide = x.astype(np.float64)
        exact = FLOAT[op.name](wide)
        near = exact.astype(np.float32)
        moved = near + self.rng.integers(-4, 5, x.shape) * np.spacing(np.abs(near)).astype(np.float64)
        allowed = ACCURACY[op.name].ulps * np.spacing(np.abs(near)).astype(np.float64) * 0.5
        ok = (np.abs(moved - exact) <= allowed) & np.isfinite(near) & (wide != 0) & np.isfinite(wide)
        ok &= moved >= ACCURACY[op.name].floor
        return np.where(ok, moved, near).astype(np.float32).astype(x.dtype)

    def summed(self, x: np.ndarray, op: Op) -> np.ndarray:
        terms = np.moveaxis(x.astype(np.float64), op.attrs["axis"], 0)
        return self.accumulated(terms[0], terms[1:]).astype(x.dtype)

    def product(self, op: Op, acc: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        left, right = a.astype(np.float64), b.astype(np.float64)
        left = left.T if op.attrs["transpose_a"] else left
        right = right.T if op.attrs["transpose_b"] else right
        terms = left.T[:, :, None] * right[:, None, :]
        return self.accumulated(acc.astype(np.float64), terms)

    def accumulated(self, start: np.ndarray, terms: np.ndarray) -> np.ndarray:
        total = start
        for i in self.rng.permutation(len(terms)):
            total = toward(total + terms[i], self.mode).astype(np.float64)
        return total.astype(np.float32)


def evaluate_legally(kernel: Kernel, arguments: dict[str, Any], seed: int, mode: str = "nearest") -> dict[str, Any]:
    """The outputs of one legal evaluation; the arguments stay as they are."""
    copies = {n: a.copy() if isinstance(a, np.ndarray) and n in kernel.outputs else a for n, a in arguments.items()}
    shuffled = np.random.default_rng(seed).permutation
    Interpreter(kernel, Legal(seed, mode), copies).run(lambda blocks: shuffled(blocks) if blocks else [])
    return {n: copies[n] for n in kernel.outputs}
