"""v_cmp and v_cmpx for every type, from the operator tables of the ISA's VOPC chapter."""

from __future__ import annotations

import numpy as np

from .bits import F16, F32, F64, decode
from .machine import Spec

FLOAT_OPERATORS = {
    "f": lambda a, b: np.zeros(a.shape, bool),
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "tru": lambda a, b: np.ones(a.shape, bool),
}
INTEGER_OPERATORS = {name: FLOAT_OPERATORS[name] for name in ("f", "lt", "eq", "le", "gt", "ge")} | {
    "ne": lambda a, b: a != b,
    "t": FLOAT_OPERATORS["tru"],
}


def classify(fmt):
    """The bit of a number's class must be set in the second operand (ISA, V_CMP_CLASS)."""

    def run(pattern, wanted):
        value = decode(pattern, fmt)
        quiet = (pattern & pattern.dtype.type(1 << (fmt.precision - 2))) != 0
        negative = (pattern >> pattern.dtype.type(fmt.width - 1)) & pattern.dtype.type(1) == 1
        small = np.abs(value) < 2.0**fmt.emin
        by_sign = lambda below, above: np.where(negative, below, above)  # noqa: E731
        kind = np.select(
            [np.isnan(value) & ~quiet, np.isnan(value), np.isinf(value), value == 0, small],
            [0, 1, by_sign(2, 9), by_sign(5, 6), by_sign(4, 7)],
            by_sign(3, 8),
        )
        return (wanted.astype(np.uint32) >> kind.astype(np.uint32)) & 1 == 1

    return run


def _pair(name: str, sources: str, fn) -> dict[str, Spec]:
    """v_cmp writes a mask; v_cmpx writes that mask and EXEC."""
    return {
        f"v_cmp_{name}": Spec(f"c: {sources}", fn),
        f"v_cmpx_{name}": Spec(f"c exec: {sources}", lambda *x: (fn(*x), fn(*x))),
    }


TABLE: dict[str, Spec] = {}
for _kind, _operators in (
    *((k, FLOAT_OPERATORS) for k in ("f16", "f32", "f64")),
    *((k, INTEGER_OPERATORS) for k in ("i16", "u16", "i32", "u32", "i64", "u64")),
):
    for _name, _fn in _operators.items():
        TABLE |= _pair(f"{_name}_{_kind}", f"{_kind} {_kind}", _fn)
for _kind, _fmt in (("f16", F16), ("f32", F32), ("f64", F64)):
    _wanted = "u16" if _kind == "f16" else "u32"
    TABLE |= _pair(f"class_{_kind}", f"x{_fmt.width} {_wanted}", classify(_fmt))
