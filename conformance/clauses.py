"""The contract's clauses: for every op and dtype, whether the bits are fixed or how far a result may be off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warpwave.tiles.dtypes import ALL, BY_NAME, DType, bool_, f32, i32, i64
from warpwave.tiles.errors import TileError
from warpwave.tiles.ir.opdefs import OPS, UNARY_FLOAT
from warpwave.tiles.reference.accuracy import ACCURACY
from warpwave.tiles.types import TensorType, TileType, Type, scalar


@dataclass(frozen=True)
class Clause:
    """What ops give on dtypes of some kinds. `exact`: the bits are fixed; else `result` states the bound."""

    ops: str
    kinds: str
    exact: bool
    result: str
    reason: str

    def covers(self, op: str, dtype: DType) -> bool:
        """Whether this clause speaks of `op` on `dtype`."""
        return op in self.ops.split() and dtype.kind in self.kinds.split()


EVERY = "float int bool"
EXACT_FLOAT = " ".join(op for op in UNARY_FLOAT.split() if op not in ACCURACY)
CLAUSES = (
    Clause(
        "constant iota expand_dims squeeze broadcast transpose slice concat deinterleave interleave copy distribute",
        EVERY, True, "elements keep their bits", "moves elements; a constant is rounded to nearest even at capture",
    ),
    Clause(
        f"add sub mul div fma {EXACT_FLOAT} neg abs relu", "float", True, "the exact result, rounded once",
        "correctly rounded to nearest even, subnormals kept (IEEE 754-2019); the oracle computes in float64, "
        "which is innocuous for these operations (Figueroa 1995), fma in round-to-odd (Boldo, Melquiond 2008)",
    ),
    Clause(
        "add sub mul neg abs relu floordiv mod", "int", True, "two's complement, wraps",
        "//, % round down; a divisor of 0 gives an undefined result",
    ),
    Clause(
        " ".join(ACCURACY), "float", False, "ulps of the f32 result as below, then rounded to the dtype",
        "evaluated in f32; exact where the argument is 0 or infinite",
    ),
    Clause("max min reduce_max reduce_min", "float", True, "one of the operands",
           "IEEE 754-2019 maximum and minimum (NaN propagates, -0 < +0), or maximumNumber with nan='ignore'"),
    Clause("max min reduce_max reduce_min", "int", True, "one of the operands", "order of the integers"),
    Clause("and or xor not", "int bool", True, "bitwise", "integer operation"),
    Clause("shl shr", "int", True, "bits shifted; shr keeps the sign", "integer operation"),
    Clause("eq ne lt le gt ge", EVERY, True, "a bool", "false with NaN, except ne; -0 equals +0"),
    Clause("select", EVERY, True, "one of the operands, with its bits", "no arithmetic"),
    Clause("isnan", "float", True, "a bool", "no arithmetic"),
    Clause("cast", EVERY, True, "rounded once in the named rounding, then saturated or overflowed",
           "exact value is known; saturation: docs/language.md"),
    Clause("bitcast", "float int", True, "the same bits", "no arithmetic; bits of a NaN are not defined"),
    Clause("reduce_sum cumsum", "float", False, "gamma(n - 1, L) * sum|x|, then rounded to the dtype",
           "any order of additions in f32, each losing at most L of its result (Higham, Accuracy and Stability, 4.2)"),
    Clause("reduce_prod", "float", False, "gamma(n - 1, L) * |product|, then rounded to the dtype",
           "any order of multiplications in f32 (Higham, 3.1)"),
    Clause("reduce_sum reduce_prod cumsum", "int", True, "two's complement, wraps", "addition modulo 2^bits commutes"),
    Clause("mma", "float", False, "gamma(K, L) * (|c| + sum|a||b|)",
           "exact products, any order of additions in f32, each losing at most L; see Matrix products"),
    Clause("mma", "int", True, "i32, wraps", "addition modulo 2^32 commutes"),
    Clause("random_bits", "int", True, "Philox4x32-10 words", "Salmon et al. 2011; known-answer tests of Random123"),
    Clause("load store shared_read shared_write shared_alloc dim", EVERY, True, "elements keep their bits",
           "outside a tensor `fill` is read and nothing is written"),
    Clause("atomic_add", "float", False, "gamma(n, u) * (|x| + sum|added|), u the roundoff of the tensor's dtype",
           "n additions in any order, each rounded to the tensor's dtype; f32 operands and sums below 2^-126 may count "
           "as 0, each of 2n + 1 losing less than 2^-126"),
    Clause("atomic_add", "int", True, "two's complement, wraps", "addition modulo 2^32 commutes"),
    Clause("grid barrier print check for if while yield condition", EVERY, True, "no arithmetic", "control"),
)  # fmt: skip


def clause_of(op: str, dtype: DType) -> Clause:
    """The one clause for an op on a dtype; LookupError if there is none or more than one."""
    found = [clause for clause in CLAUSES if clause.covers(op, dtype)]
    if len(found) != 1:
        raise LookupError(f"{len(found)} clauses of the contract speak of {op} on {dtype}")
    return found[0]


# -- which dtypes an op takes: its type rule is asked ----------------------------------------------------

_DEFAULTS: Mapping[str, Any] = {
    "axis": 1,
    "nan": "propagate",
    "reverse": False,
    "exclusive": False,
    "shape": (4, 8),
    "offsets": (0, 0),
    "over": (1, 1),
    "space": "shared",
    "rounding": "rne",
    "saturate": False,
    "transpose_a": False,
    "transpose_b": False,
    "precision": "ieee",
    "axes": (0, 1),
    "unit": "tile",
    "message": "",
    "kind": "loop",
    "stages": None,
}
_TILE = (8, 8)
_INDEX = scalar(i32)


def _operands(op: str, dtype: DType) -> list[Type]:
    tile, tensor, buffer = TileType(dtype, _TILE), TensorType(dtype, 2), TileType(dtype, _TILE, "buffer")
    special: dict[str, list[Type]] = {
        "expand_dims": [TileType(dtype, (8,))],
        "squeeze": [TileType(dtype, (8, 1))],
        "broadcast": [scalar(dtype)],
        "select": [TileType(bool_, _TILE), tile, tile],
        "mma": [TileType(i32 if dtype.is_int else f32, _TILE), tile, tile],
        "random_bits": [scalar(i64), scalar(i64), scalar(i32), scalar(i32)],
        "dim": [tensor],
        "load": [tensor, scalar(dtype), _INDEX, _INDEX],
        "store": [tensor, tile, _INDEX, _INDEX],
        "atomic_add": [tensor, tile, _INDEX, _INDEX],
        "shared_read": [buffer, _INDEX, _INDEX],
        "shared_write": [buffer, tile, _INDEX, _INDEX],
        "grid": [_INDEX],
        "for": [_INDEX, _INDEX, _INDEX, tile],
        "if": [scalar(bool_)],
    }
    return special.get(op, [tile] * len(OPS[op].operands))


def _attributes(op: str, dtype: DType) -> dict[str, Any]:
    equal_width = next(d for d in ALL if d.bits == dtype.bits and d is not bool_)
    special: dict[str, dict[str, Any]] = {
        "constant": {"value": {"float": 1.0, "int": 1, "bool": True}[dtype.kind], "dtype": dtype},
        "broadcast": {"shape": _TILE},
        "slice": {"shape": (4, 4)},
        "cast": {"dtype": f32},
        "bitcast": {"dtype": equal_width},
        "load": {"type": TileType(dtype, _TILE)},
        "shared_read": {"type": TileType(dtype, _TILE)},
        "shared_alloc": {"type": TileType(dtype, _TILE, "shared")},
        "if": {"types": [TileType(dtype, _TILE)]},
    }
    return {name: {**_DEFAULTS, **special.get(op, {})}[name] for name in OPS[op].attrs}


@dataclass(frozen=True)
class Example:
    """A legal use of an op: what `Builder.emit` needs."""

    operands: list[Type]
    attrs: dict[str, Any]


_RESULT_ONLY = {"iota": (i32,), "random_bits": (i32,), "dim": (i32,), "grid": (i32,)}


def example(op: str, dtype: DType) -> Example | None:
    """A use of `op` on `dtype` (of that result, for an op without operands of its own); None if it takes none."""
    if dtype not in _RESULT_ONLY.get(op, ALL):
        return None
    found = Example(_operands(op, dtype), _attributes(op, dtype))
    try:
        OPS[op].result_types(found.operands, found.attrs)
    except TileError:
        return None
    return found


def dtypes_of(op: str) -> Iterator[DType]:
    """The dtypes that an op takes."""
    return (dtype for dtype in BY_NAME.values() if example(op, dtype) is not None)
