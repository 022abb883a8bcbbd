"""The table of matrix instructions, and products of any depth as chains of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warpwave.conformance.models.encodings import Parts, decode
from warpwave.conformance.models.matrix_core import FusedChain, MatrixCore
from warpwave.conformance.models.tensor_core import TensorCore
from warpwave.tiles.dtypes import BY_NAME

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Model:
    """How one instruction adds: the formats of its operands and the unit's rule.

    With `through`, operands are converted to that format first, which holds all their values.
    """

    a: str
    b: str
    unit: TensorCore | MatrixCore | FusedChain
    through: str = ""


FP8 = ("fp8e4m3", "fp8e5m2")
FNUZ = ("fp8e4m3fnuz", "fp8e5m2fnuz")


def _same(formats: tuple[str, ...], unit: TensorCore | MatrixCore | FusedChain) -> dict[str, Model]:
    return {name: Model(name, name, unit) for name in formats}


def _pairs(formats: tuple[str, ...], unit: TensorCore | MatrixCore | FusedChain, through: str = "") -> dict[str, Model]:
    return {(a if a == b else f"{a}*{b}"): Model(a, b, unit, through) for a in formats for b in formats}


# A group is what one instruction adds at once. On Ampere and Ada an instruction of depth 16 (fp8: 32) is two groups.
_HOPPER = {
    **_same(("f16", "bf16"), TensorCore(16, 25)),
    **_same(("tf32",), TensorCore(8, 25)),
}
_AMPERE = {**_same(("f16", "bf16"), TensorCore(8, 24)), **_same(("tf32",), TensorCore(4, 24))}
_CDNA = {
    **_same(("f16", "bf16"), MatrixCore(8)),
    **_same(("f32",), FusedChain()),
}
MODELS: dict[str, dict[str, Model]] = {
    "hopper wgmma": {**_HOPPER, **_pairs(FP8, TensorCore(32, 13, result_bits=13))},
    "hopper wgmma f16": _same(("f16",), TensorCore(16, 25, accumulator="f16")),
    "hopper mma": _HOPPER,
    "ada mma": {**_AMPERE, **_pairs(FP8, TensorCore(16, 13, result_bits=13))},
    "ampere mma": _AMPERE,
    "cdna3 mfma": {
        **_CDNA,
        **_same(("tf32",), MatrixCore(4)),
        **_pairs(FNUZ, MatrixCore(16, halves=True)),
        **_pairs(FP8, MatrixCore(8), through="f16"),
    },
    "cdna3 mfma 4x4x4": _same(("f16", "bf16"), MatrixCore(4)),
    "cdna4 mfma": {
        **_CDNA,
        **_pairs(FP8, MatrixCore(16, halves=True)),
        **_pairs(FNUZ, MatrixCore(8), through="f16"),
    },
}


def model_of(instruction: str, a: str, b: str | None = None) -> Model:
    """The model of an instruction for operands of these formats; KeyError with what there is."""
    name = a if b in (None, a) else f"{a}*{b}"
    table = MODELS[instruction]
    if name not in table:
        raise KeyError(f"{instruction} has no model for {name}; it has {', '.join(table)}")
    return table[name]


def multiply_accumulate(model: Model, a: Array, b: Array, c: Array) -> Array:
    """Bits of c[..., M, N] + a[..., M, K] @ b[..., K, N], all given as bits, added group by group along K.

    A last group that is not full is filled with zeros.
    """
    group = model.unit.group
    left, right = _decoded(model, model.a, _filled(a, -1, group)), _decoded(model, model.b, _filled(b, -2, group))
    result = c
    for start in range(0, a.shape[-1], group):
        part = slice(start, start + group)
        result = model.unit.add(_rows(left, part), _columns(right, part), result)
    return result


def _decoded(model: Model, name: str, codes: Array) -> Parts:
    if not model.through:
        return decode(name, codes)
    wide, short = BY_NAME[model.through].numpy, BY_NAME[name].numpy
    converted = codes.astype(f"u{short.itemsize}").view(short).astype(wide)
    return decode(model.through, converted.view(f"u{wide.itemsize}"))


def _filled(codes: Array, axis: int, group: int) -> Array:
    """With zeros up to a multiple of `group` along an axis."""
    missing = [(0, 0)] * codes.ndim
    missing[axis] = (0, -codes.shape[axis] % group)
    return np.pad(codes, missing)


def _rows(x: Parts, part: slice) -> Parts:
    return x.map(lambda p: p[..., :, None, part])


def _columns(x: Parts, part: slice) -> Parts:
    return x.map(lambda p: np.swapaxes(p[..., part, :], -1, -2)[..., None, :, :])
