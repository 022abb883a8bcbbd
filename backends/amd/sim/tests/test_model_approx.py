"""Functions that the hardware approximates: accuracy on random arguments, and the exact special cases."""

from __future__ import annotations

import numpy as np
import pytest

from warpwave.backends.amd import sim

from ._compile import TARGETS
from ._operands import Case, Operands, kernel, simulate
from ._pools import operands_for
from .model import bits
from .model.valu_float import APPROXIMATE

FORMAT = {"f16": bits.F16, "f32": bits.F32, "f64": bits.F64}


def inputs(name: str, target: str) -> Operands:
    operands = operands_for(name, target)
    rng = np.random.default_rng(5)
    shape = operands.vectors[:, 0].shape
    if name.endswith("f32"):
        ordinary = rng.uniform(0.001, 200, shape).astype(np.float32).view(np.uint32)
        operands.vectors[3:, 0] = ordinary[3:]
    return operands


def values(operands: Operands, kind: str) -> np.ndarray:
    low, high = operands.vectors[:, 0], operands.vectors[:, 1]
    if kind == "f64":
        return bits.decode(low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32), bits.F64)
    return bits.decode(low & 0xFFFF if kind == "f16" else low, FORMAT[kind])


def result_values(words: np.ndarray, kind: str) -> np.ndarray:
    if kind == "f64":
        return bits.decode(words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32), bits.F64)
    return bits.decode(words[0] & 0xFFFF if kind == "f16" else words[0], FORMAT[kind])


def run(name: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    kind = name[-3:]
    wide = kind == "f64"
    operands = inputs(name, target)
    case = Case(f"{name}_e32 {'v[128:129], v[8:9]' if wide else 'v128, v8'}", 2 if wide else 1)
    program = sim.load(kernel([case], operands).text(), target=target)
    return values(operands, kind), result_values(simulate(program, [case], operands)[0], kind)


def ulp(value: np.ndarray, fmt: bits.Format) -> np.ndarray:
    exponent = np.maximum(np.frexp(np.where(np.isfinite(value), value, 1.0))[1] - 1, fmt.emin)
    return np.ldexp(1.0, exponent - (fmt.precision - 1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(APPROXIMATE))
def test_accuracy_and_special_values(name, target):
    fn, limit = APPROXIMATE[name]
    with np.errstate(all="ignore"):
        x, got = run(name, target)
    fmt = FORMAT[name[-3:]]
    with np.errstate(all="ignore"):
        exact = fn(x.astype(np.longdouble)).astype(np.float64)
        want = bits.round_to(exact, fmt)
        got = got.astype(np.float64)
    small = 2.0**fmt.emin
    normal = np.isfinite(want) & (np.abs(x) >= small) & (np.abs(want) >= small) & np.isfinite(x)
    if limit is None:
        inside = normal & (np.abs(x) < 256)
        assert (np.abs(got[inside] - want[inside]) < (2.0**-9 if fmt is bits.F16 else 2.0**-18)).all()
        assert np.isnan(got[np.isinf(x) | np.isnan(x)]).all()
        return
    error = np.abs(got[normal] - exact[normal]) / ulp(exact, fmt)[normal]
    assert error.max() <= limit, f"{error.max()} ulp at {x[normal][error.argmax()]}"
    assert np.isnan(got[np.isnan(x)]).all()
    special = ~np.isfinite(want) & ((np.abs(x) >= small) | (x == 0))
    np.testing.assert_array_equal(got[special], want[special])
    zero = want == 0
    if "exp" not in name:
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
