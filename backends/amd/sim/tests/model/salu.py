"""Scalar ALU instructions, from the pseudo-code of the ISA's SOP1, SOP2, SOPC and SOPK chapters."""

from __future__ import annotations

import numpy as np

from .machine import Machine, Spec
from .operands import Line, read_raw
from .valu_int import first_one, first_sign_change, popcount, reverse

U64, I64 = np.uint64, np.int64
WHOLE = frozenset({"whole"})


def wide(value):
    return value.astype(I64)


def low(value):
    return (value & 0xFFFFFFFF).astype(np.uint32)


def nonzero(fn):
    """SCC says whether the result is non-zero."""

    def run(*args):
        result = fn(*args)
        return result, result != 0

    return run


def carry(total):
    return low(total), (total < 0) | (total >= 1 << 32)


def overflow(total):
    return low(total), (total < -(1 << 31)) | (total >= 1 << 31)


def bfe(width: int, signed: bool):
    """Offset in the low bits of the second operand, width in bits 22:16."""

    def run(value, control):
        offset = int(control & (width - 1))
        size = int(control >> 16 & 0x7F)
        field = (int(value) & (2**width - 1)) >> offset
        if signed and int(value) >> (width - 1) & 1:
            field |= ((1 << offset) - 1) << (width - offset)
        field &= (1 << min(size, width)) - 1
        if signed and size and size <= width and field >> (size - 1) & 1:
            field -= 1 << size
        return field & (2**width - 1)

    kind = np.uint32 if width == 32 else U64
    return lambda a, b: np.vectorize(run, otypes=[kind])(a, b)


def bfm(width: int):
    mask = width - 1
    run = lambda a, b: ((1 << (a & mask)) - 1) << (b & mask) & (2**width - 1)  # noqa: E731
    kind = np.uint32 if width == 32 else U64
    return lambda a, b: np.vectorize(lambda x, y: run(int(x), int(y)), otypes=[kind])(a, b)


def per_bit(fn, kind):
    return lambda a: np.vectorize(lambda x: fn(int(x)), otypes=[kind])(a)


def quadmask(value: int) -> int:
    return sum(1 << i for i in range(16) if value >> (4 * i) & 15)


def wqm(value: int) -> int:
    return sum(15 << (4 * i) for i in range(16) if value >> (4 * i) & 15)


def replicate(value: int) -> int:
    return sum(3 << (2 * i) for i in range(32) if value >> i & 1)


def shifts(width: int):
    mask, kind = width - 1, np.uint32 if width == 32 else U64
    amount = lambda b: (b & mask).astype(kind)  # noqa: E731
    return (
        nonzero(lambda a, b: a << amount(b)),
        nonzero(lambda a, b: a >> amount(b)),
        nonzero(lambda a, b: a >> amount(b).astype(a.dtype)),
    )


def _logic() -> dict[str, Spec]:
    operators = {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "andn2": lambda a, b: a & ~b,
        "orn2": lambda a, b: a | ~b,
        "nand": lambda a, b: ~(a & b),
        "nor": lambda a, b: ~(a | b),
        "xnor": lambda a, b: ~(a ^ b),
    }
    table = {}
    for name, fn in operators.items():
        table[f"s_{name}_b32"] = Spec("su32 scc: su32 su32", nonzero(fn))
        table[f"s_{name}_b64"] = Spec("su64 scc: su64 su64", nonzero(fn))
        table[f"s_{name}_saveexec_b64"] = Spec("exec:", save_exec(fn), WHOLE)
    table["s_andn1_saveexec_b64"] = Spec("exec:", save_exec(lambda a, b: ~a & b), WHOLE)
    table["s_orn1_saveexec_b64"] = Spec("exec:", save_exec(lambda a, b: ~a | b), WHOLE)
    table["s_andn1_wrexec_b64"] = Spec("exec:", save_exec(lambda a, b: ~a & b, new=True), WHOLE)
    table["s_andn2_wrexec_b64"] = Spec("exec:", save_exec(lambda a, b: a & ~b, new=True), WHOLE)
    return table


def save_exec(fn, *, new: bool = False):
    """EXEC = fn(source, EXEC); the destination gets the old EXEC, or the new one for wrexec."""

    def run(machine: Machine, line: Line) -> None:
        old = machine.read_s64("exec")
        result = fn(read_raw(machine, line.operands[1], "su64"), old)
        machine.write_s64("exec", result)
        machine.write_s64(line.operands[0], result if new else old)
        machine.scc = result != 0

    return run


def _compares() -> dict[str, Spec]:
    table = {}
    for name, fn in COMPARES.items():
        for kind in ("i32", "u32"):
            table[f"s_cmp_{name}_{kind}"] = Spec(f"scc: s{kind} s{kind}", fn)
            table[f"s_cmpk_{name}_{kind}"] = Spec(f"scc: s{kind} sk{kind}", fn)
    for name in ("eq", "lg"):
        table[f"s_cmp_{name}_u64"] = Spec("scc: su64 su64", COMPARES[name])
    for width in (32, 64):
        for wanted in (0, 1):
            table[f"s_bitcmp{wanted}_b{width}"] = Spec(
                f"scc: su{width} su32",
                lambda a, b, w=width, v=wanted: (wide(a) >> wide(b & (w - 1))) & 1 == v,
            )
    return table


COMPARES = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
SHL32, SHR32, SAR32 = shifts(32)
SHL64, SHR64, SAR64 = shifts(64)
MINMAX = "s{0} scc: s{0} s{0}"

TABLE = (
    _logic()
    | _compares()
    | {
        "s_mov_b32": Spec("su32: su32", lambda a: a),
        "s_mov_b64": Spec("su64: su64", lambda a: a),
        "s_movk_i32": Spec("su32: ski32", lambda a: a),
        "s_cmov_b32": Spec("su32: su32 d.su32 scc", lambda a, d, c: np.where(c, a, d)),
        "s_cmov_b64": Spec("su64: su64 d.su64 scc", lambda a, d, c: np.where(c, a, d)),
        "s_cmovk_i32": Spec("su32: ski32 d.si32 scc", lambda a, d, c: np.where(c, a, d)),
        "s_cselect_b32": Spec("su32: su32 su32 scc", lambda a, b, c: np.where(c, a, b)),
        "s_cselect_b64": Spec("su64: su64 su64 scc", lambda a, b, c: np.where(c, a, b)),
        "s_not_b32": Spec("su32 scc: su32", nonzero(lambda a: ~a)),
        "s_not_b64": Spec("su64 scc: su64", nonzero(lambda a: ~a)),
        "s_brev_b32": Spec("su32: su32", reverse),
        "s_brev_b64": Spec("su64: su64", lambda a: reverse(a, 64)),
        "s_bcnt0_i32_b32": Spec("su32 scc: su32", nonzero(lambda a: popcount(~a))),
        "s_bcnt0_i32_b64": Spec("su32 scc: su64", nonzero(lambda a: popcount(~a))),
        "s_bcnt1_i32_b32": Spec("su32 scc: su32", nonzero(popcount)),
        "s_bcnt1_i32_b64": Spec("su32 scc: su64", nonzero(popcount)),
        "s_ff0_i32_b32": Spec("su32: su32", lambda a: first_one(~a, from_msb=False)),
        "s_ff0_i32_b64": Spec("su32: su64", lambda a: first_one(~a, from_msb=False, width=64)),
        "s_ff1_i32_b32": Spec("su32: su32", lambda a: first_one(a, from_msb=False)),
        "s_ff1_i32_b64": Spec("su32: su64", lambda a: first_one(a, from_msb=False, width=64)),
        "s_flbit_i32_b32": Spec("su32: su32", lambda a: first_one(a, from_msb=True)),
        "s_flbit_i32_b64": Spec("su32: su64", lambda a: first_one(a, from_msb=True, width=64)),
        "s_flbit_i32": Spec("su32: su32", first_sign_change),
        "s_flbit_i32_i64": Spec("su32: su64", lambda a: first_sign_change(a, 64)),
        "s_sext_i32_i8": Spec("su32: su32", lambda a: low((wide(a) & 0xFF ^ 0x80) - 0x80)),
        "s_sext_i32_i16": Spec("su32: su32", lambda a: low((wide(a) & 0xFFFF ^ 0x8000) - 0x8000)),
        "s_bitset0_b32": Spec("su32: su32 d.su32", lambda a, d: d & ~(np.uint32(1) << (a & 31))),
        "s_bitset1_b32": Spec("su32: su32 d.su32", lambda a, d: d | (np.uint32(1) << (a & 31))),
        "s_bitset0_b64": Spec("su64: su32 d.su64", lambda a, d: d & ~(U64(1) << (a & 63).astype(U64))),
        "s_bitset1_b64": Spec("su64: su32 d.su64", lambda a, d: d | (U64(1) << (a & 63).astype(U64))),
        "s_abs_i32": Spec("su32 scc: si32", nonzero(lambda a: low(np.abs(wide(a))))),
        "s_quadmask_b32": Spec("su32 scc: su32", nonzero(per_bit(quadmask, np.uint32))),
        "s_quadmask_b64": Spec("su64 scc: su64", nonzero(per_bit(quadmask, U64))),
        "s_wqm_b32": Spec("su32 scc: su32", nonzero(per_bit(wqm, np.uint32))),
        "s_wqm_b64": Spec("su64 scc: su64", nonzero(per_bit(wqm, U64))),
        "s_bitreplicate_b64_b32": Spec("su64: su32", per_bit(replicate, U64)),
        "s_add_u32": Spec("su32 scc: su32 su32", lambda a, b: carry(wide(a) + wide(b))),
        "s_sub_u32": Spec("su32 scc: su32 su32", lambda a, b: carry(wide(a) - wide(b))),
        "s_addc_u32": Spec("su32 scc: su32 su32 scc", lambda a, b, c: carry(wide(a) + wide(b) + c)),
        "s_subb_u32": Spec("su32 scc: su32 su32 scc", lambda a, b, c: carry(wide(a) - wide(b) - c)),
        "s_add_i32": Spec("su32 scc: si32 si32", lambda a, b: overflow(wide(a) + wide(b))),
        "s_sub_i32": Spec("su32 scc: si32 si32", lambda a, b: overflow(wide(a) - wide(b))),
        "s_addk_i32": Spec("su32 scc: ski32 d.si32", lambda k, d: overflow(wide(d) + wide(k))),
        "s_mulk_i32": Spec("su32: ski32 d.si32", lambda k, d: low(wide(d) * wide(k))),
        "s_mul_i32": Spec("su32: si32 si32", lambda a, b: low(wide(a) * wide(b))),
        "s_mul_hi_i32": Spec("su32: si32 si32", lambda a, b: low((wide(a) * wide(b)) >> 32)),
        "s_mul_hi_u32": Spec("su32: su32 su32", lambda a, b: ((a.astype(U64) * b) >> U64(32)).astype(np.uint32)),
        "s_min_i32": Spec("su32 scc: si32 si32", lambda a, b: (np.minimum(a, b), a < b)),
        "s_max_i32": Spec("su32 scc: si32 si32", lambda a, b: (np.maximum(a, b), a >= b)),
        "s_min_u32": Spec("su32 scc: su32 su32", lambda a, b: (np.minimum(a, b), a < b)),
        "s_max_u32": Spec("su32 scc: su32 su32", lambda a, b: (np.maximum(a, b), a >= b)),
        "s_absdiff_i32": Spec(
            "su32 scc: si32 si32",
            nonzero(lambda a, b: low(np.abs(wide(low(wide(a) - wide(b)).view(np.int32))))),
        ),
        "s_lshl_b32": Spec("su32 scc: su32 su32", SHL32),
        "s_lshr_b32": Spec("su32 scc: su32 su32", SHR32),
        "s_ashr_i32": Spec("su32 scc: si32 su32", SAR32),
        "s_lshl_b64": Spec("su64 scc: su64 su32", SHL64),
        "s_lshr_b64": Spec("su64 scc: su64 su32", SHR64),
        "s_ashr_i64": Spec("su64 scc: si64 su32", SAR64),
        "s_bfm_b32": Spec("su32: su32 su32", bfm(32)),
        "s_bfm_b64": Spec("su64: su32 su32", bfm(64)),
        "s_bfe_u32": Spec("su32 scc: su32 su32", nonzero(bfe(32, False))),
        "s_bfe_i32": Spec("su32 scc: su32 su32", nonzero(bfe(32, True))),
        "s_bfe_u64": Spec("su64 scc: su64 su32", nonzero(bfe(64, False))),
        "s_bfe_i64": Spec("su64 scc: su64 su32", nonzero(bfe(64, True))),
        "s_pack_ll_b32_b16": Spec("su32: su32 su32", lambda a, b: (a & 0xFFFF) | (b << 16)),
        "s_pack_lh_b32_b16": Spec("su32: su32 su32", lambda a, b: (a & 0xFFFF) | (b & 0xFFFF0000)),
        "s_pack_hh_b32_b16": Spec("su32: su32 su32", lambda a, b: (a >> 16) | (b & 0xFFFF0000)),
        **{
            f"s_lshl{n}_add_u32": Spec(
                "su32 scc: su32 su32",
                lambda a, b, n=n: (low((wide(a) << n) + b), (wide(a) << n) + b >= 1 << 32),
            )
            for n in range(1, 5)
        },
    }
)
