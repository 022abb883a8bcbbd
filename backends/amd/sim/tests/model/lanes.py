"""Instructions that move values between lanes or banks, and those with unusual results."""

from __future__ import annotations

import re

import numpy as np

from . import bits
from .machine import Machine, Spec
from .operands import Line, read_raw, read_source

WHOLE = frozenset({"whole"})
SPECIAL = frozenset({"special"})


def number(name: str) -> int:
    return int(re.search(r"\d+", name)[0])


def read_first_lane(machine: Machine, line: Line) -> None:
    """The lowest enabled lane; lane 0 when EXEC is zero."""
    enabled = machine.exec
    lane = np.where(enabled.any(axis=1), enabled.argmax(axis=1), 0)
    machine.write_s32(line.operands[0], machine.v[number(line.operands[1])][np.arange(machine.groups), lane])


def _lane_number(machine: Machine, name: str) -> np.ndarray:
    return read_raw(machine, name, "su32").astype(np.int64) & 63


def read_lane(machine: Machine, line: Line) -> None:
    lane = _lane_number(machine, line.operands[2])
    machine.write_s32(line.operands[0], machine.v[number(line.operands[1])][np.arange(machine.groups), lane])


def write_lane(machine: Machine, line: Line) -> None:
    """Writes one lane whatever EXEC says."""
    register = number(line.operands[0])
    value = machine.v[register].copy()
    value[np.arange(machine.groups), _lane_number(machine, line.operands[2])] = read_raw(
        machine, line.operands[1], "su32"
    )
    machine.v[register] = value


def count_below(high: bool):
    """Set mask bits below this lane, in the low or the high half of the wavefront."""

    def run(mask, start):
        lane = np.arange(64)
        reach = np.clip(lane - 32 if high else lane, 0, 32)
        below = (np.uint64(1) << reach.astype(np.uint64)) - np.uint64(1)
        covered = mask.astype(np.uint64) & below
        ones = sum(((covered >> np.uint64(i)) & np.uint64(1)) for i in range(32))
        return (ones + start).astype(np.uint32)

    return run


def swap_rows(rows: list[tuple[int, int]], width: int):
    """Exchange `width`-lane blocks: block b of the destination with block a of the source.

    Neither instruction looks at EXEC in the pseudo-code, but a disabled lane is not written.
    """

    def run(machine: Machine, line: Line) -> None:
        first, second = (number(name) for name in line.operands[:2])
        old_first, old_second = machine.v[first].copy(), machine.v[second].copy()
        new_first, new_second = old_first.copy(), old_second.copy()
        for source, destination in rows:
            low, high = (
                slice(source * width, (source + 1) * width),
                slice(destination * width, (destination + 1) * width),
            )
            new_second[:, low] = old_first[:, high]
            new_first[:, high] = old_second[:, low]
        machine.v[first] = np.where(machine.exec, new_first, old_first)
        machine.v[second] = np.where(machine.exec, new_second, old_second)

    return run


def swap(machine: Machine, line: Line) -> None:
    first, second = (number(name) for name in line.operands)
    a, b = machine.v[first], machine.v[second]
    machine.v[first], machine.v[second] = np.where(machine.exec, b, a), np.where(machine.exec, a, b)


def accumulator_move(machine: Machine, line: Line) -> None:
    """v_accvgpr_read and v_accvgpr_write: between the two halves of the register file."""
    value = read_raw(machine, line.operands[1], "u32")
    name = line.operands[0]
    bank = machine.a if name[0] == "a" else machine.v
    bank[number(name)] = np.where(machine.exec, value, bank[number(name)])


DIV_SCALE = {"f32": (bits.F32, 96, 64, 23), "f64": (bits.F64, 768, 128, 53)}


def div_scale(kind: str):
    """Scale numerator or denominator so that a Newton quotient neither overflows nor loses bits."""
    fmt, gap, step, _ = DIV_SCALE[kind]

    def run(value, denominator, numerator):
        with np.errstate(all="ignore"):
            ratio = numerator / denominator
            inverse = 1 / denominator
        if kind == "f32":
            small = lambda x: (np.abs(x) < 2.0**-126) & (x != 0)  # noqa: E731
            tiny_inverse = (np.abs(inverse) < 2.0**-126) & (inverse != 0)
        else:
            small = lambda x: (np.abs(x) < 2.0**-1022) & (x != 0)  # noqa: E731
            tiny_inverse = small(inverse)
        e_n, e_d = np.frexp(numerator)[1], np.frexp(denominator)[1]
        is_denominator = value == denominator
        is_numerator = value == numerator
        wide = e_n.astype(np.int64) - e_d >= gap
        exp_n = np.frexp(numerator)[1].astype(np.int64) - 1
        up, down = np.ldexp(value, step), np.ldexp(value, -step)
        bias = -fmt.emin + 1
        low_numerator = exp_n + bias <= (23 if kind == "f32" else 53)
        conditions = [
            (numerator == 0) | (denominator == 0),
            wide,
            small(denominator),
            tiny_inverse & small(ratio),
            tiny_inverse,
            small(ratio),
            low_numerator,
        ]
        scaled_denominator = np.where(is_denominator, up, value)
        results = [np.nan, scaled_denominator, up, scaled_denominator, down]
        results += [np.where(is_numerator, up, value), up]
        flag = np.select(conditions, [False, True, False, True, False, True, False], False)
        return np.select(conditions, results, value), flag

    return run


def whole(fn) -> Spec:
    return Spec("whole:", fn, WHOLE)


TABLE = {
    "v_readfirstlane_b32": whole(read_first_lane),
    "v_readlane_b32": whole(read_lane),
    "v_writelane_b32": whole(write_lane),
    "v_mbcnt_lo_u32_b32": Spec("u32: u32 u32", count_below(high=False)),
    "v_mbcnt_hi_u32_b32": Spec("u32: u32 u32", count_below(high=True)),
    "v_permlane16_swap_b32": whole(swap_rows([(0, 1), (2, 3)], 16)),
    "v_permlane32_swap_b32": whole(swap_rows([(0, 1)], 32)),
    "v_swap_b32": whole(swap),
    "v_accvgpr_read_b32": whole(accumulator_move),
    "v_accvgpr_write_b32": whole(accumulator_move),
    "v_accvgpr_mov_b32": whole(accumulator_move),
    "v_div_scale_f32": Spec("f32 c: f32 f32 f32", div_scale("f32"), SPECIAL),
    "v_div_scale_f64": Spec("f64 c: f64 f64 f64", div_scale("f64"), SPECIAL),
}

__all__ = ["TABLE", "read_source"]
