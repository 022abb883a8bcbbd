"""A static check of wait states (s_nop), made independently of the simulator, from amd.md 4.

One wait state is one issued instruction, or one count of s_nop (s_nop N is N + 1). For each instruction the
producers on every path before it are searched backwards as far as the largest requirement reaches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ._listing import HOLE, Instruction, Listing, registers

REACH = 20
Test = Callable[[Instruction], bool]
TRANS = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos|rcp_iflag)_")
PARTIAL = re.compile(r"v_cvt_scalef32_(sr_)?pk_fp4|op_sel:\[\d,\d(,\d)?,1|op_sel:\[\d,\d,1,\d\]|dst_sel:(BYTE|WORD)")


def is_valu(item: Instruction) -> bool:
    return item.name.startswith("v_")


def is_mfma(item: Instruction) -> bool:
    return item.name.startswith(("v_mfma", "v_smfmac"))


def is_memory(item: Instruction) -> bool:
    return item.name.startswith(("global_", "flat_", "buffer_", "scratch_", "ds_"))


def plain_valu(item: Instruction) -> bool:
    return is_valu(item) and not is_mfma(item)


def scalar_results(item: Instruction) -> frozenset[str]:
    return frozenset(r for r in item.writes if r[0] == "s" or r == "vcc")


def vector(names: frozenset[str]) -> frozenset[str]:
    return frozenset(r for r in names if r[0] in "va" and r != "vcc")


def lane_select(item: Instruction) -> frozenset[str]:
    named = item.name.startswith(("v_readlane", "v_writelane"))
    return frozenset(registers(item.parsed.operands[-1])) if named else frozenset()


def passes(item: Instruction, target: str) -> int:
    """amd.md 1: a pass is four clocks."""
    name = item.name
    if "f64" in name:
        return 4 if "4x4x4" in name else (8 if target == "gfx942" else 16)
    if "f8f6f4" in name:
        eight = any(int(item.parsed.modifiers.get(k, "0")) < 2 for k in ("cbsz", "blgp"))
        return (16 if eight else 8) if "32x32" in name else (8 if eight else 4)
    if "4x4x" in name:
        return 2
    small = "16x16" in name
    slow = any(part in name for part in ("_2b_", "_4b_")) or name.endswith(("2_f32", "x4_f32", "1_f32"))
    if "_xf32" in name or not slow:
        return 4 if small else 8
    return 8 if small else 16


def is_single(item: Instruction) -> bool:
    """f32-input MFMA, which is not an XDL operation."""
    return bool(re.search(r"x\d+(_\db|_\d\db)?_f32", item.name)) and "xf32" not in item.name


@dataclass(frozen=True)
class Need:
    """A producer's result (or the register it must not lose) and the states a consumer must keep."""

    states: int
    why: str


def mfma_need(producer: Instruction, consumer: Instruction, target: str) -> Need | None:
    """Matrix results: by kind and number of passes."""
    written = vector(producer.writes)
    p = passes(producer, target)
    extra = 1 if target == "gfx950" and p > 2 else 0
    if is_mfma(consumer):
        return _mfma_to_mfma(producer, consumer, written, p, extra, target)
    touched = written & (consumer.reads | consumer.writes)
    if not touched or not (is_valu(consumer) or is_memory(consumer)):
        return None
    if "f64" in producer.name:
        small, memory = "4x4x4" in producer.name, is_memory(consumer)
        states = (9 if memory else 6) if small else (18 if memory else 11 if target == "gfx942" else 19)
        return Need(states, "f64 matrix result")
    return Need(p + 2 if is_single(producer) else p + 3 + extra, "matrix result")


def _mfma_to_mfma(producer, consumer, written, p, extra, target) -> Need | None:
    operands = consumer.parsed.operands
    sparse = consumer.name.startswith("v_smfmac")
    third = operands[0] if sparse else operands[3]
    c, ab = frozenset(registers(third)), frozenset(registers(" , ".join(operands[1:3] + operands[3:] * sparse)))
    base = p + 2 if is_single(producer) else p + 3 + extra
    if "f64" in producer.name:
        base = 6 if "4x4x4" in producer.name else (11 if target == "gfx942" else 19)
    if written & ab:
        return Need(base, "matrix result as A or B")
    if not written & c:
        return None
    if c == written and passes(consumer, target) == p:
        return Need(2 if p == 2 else 0, "matrix result as C")
    if "f64" in producer.name:
        return Need(4 if "4x4x4" in producer.name else (9 if target == "gfx942" else 17), "matrix result as C")
    if is_single(producer):
        return Need(0 if not is_single(consumer) and "f64" not in consumer.name else p, "matrix result as C")
    late = extra if not is_single(consumer) and "f64" not in consumer.name else (1 if extra and p > 2 else 0)
    return Need(p + 1 + late, "matrix result as C")


def need(producer: Instruction, consumer: Instruction, target: str) -> Need | None:
    """The strongest requirement between two instructions."""
    found = []
    if is_mfma(producer):
        found.append(mfma_need(producer, consumer, target))
    elif is_valu(producer):
        found += valu_needs(producer, consumer)
    found += other_needs(producer, consumer, target)
    found = [n for n in found if n and n.states]
    return max(found, key=lambda n: n.states, default=None)


def valu_needs(producer: Instruction, consumer: Instruction) -> list[Need]:
    written, sgprs = vector(producer.writes), scalar_results(producer)
    found = []

    def rule(states: int, why: str, applies: bool) -> None:
        if applies:
            found.append(Need(states, why))

    lane_op = consumer.name.startswith(("v_readlane", "v_readfirstlane"))
    rule(2, "VALU result read by MFMA", is_mfma(consumer) and bool(written & consumer.reads))
    dpp_source = frozenset(consumer.parsed.operands[1:2]) if consumer.parsed.suffix == "dpp" else frozenset()
    rule(2, "VALU result read by DPP", bool(written & dpp_source))
    rule(1, "VALU result read by readlane", lane_op and bool(written & consumer.reads))
    swap = "permlane" in consumer.name
    rule(2, "VALU result read by permlane swap", swap and bool(written & consumer.reads))
    carry = consumer.parsed.base.startswith(("v_addc", "v_subb", "v_div_fmas"))
    constant = sgprs & consumer.reads if plain_valu(consumer) and not carry else frozenset()
    rule(2, "VALU scalar result read by VALU", bool(constant - lane_select(consumer)))
    rule(4, "VALU scalar result as lane select", bool(sgprs & lane_select(consumer)))
    memory = is_memory(consumer) and not consumer.name.startswith("ds_")
    rule(5, "VALU scalar result read by memory", memory and bool(sgprs & consumer.reads))
    rule(4, "VCC into v_div_fmas", consumer.name.startswith("v_div_fmas") and "vcc" in producer.writes)
    exec_written = "exec" in producer.writes
    rule(4, "EXEC into MFMA or lane access", exec_written and (is_mfma(consumer) or lane_op))
    rule(5, "EXEC into DPP", exec_written and consumer.parsed.suffix == "dpp")
    rule(5, "EXECZ", exec_written and "exec" in consumer.name and "branch" in consumer.name)
    touched = written & (consumer.reads | consumer.writes)
    trans = bool(TRANS.match(producer.name)) and is_valu(consumer) and not TRANS.match(consumer.name)
    rule(1, "transcendental result", trans and bool(touched))
    placed = PARTIAL.search(producer.text) and not producer.name.startswith("v_pk_")
    rule(1, "part of a register written", bool(placed) and is_valu(consumer) and bool(touched))
    return found


def other_needs(producer: Instruction, consumer: Instruction, target: str) -> list[Need]:
    found = []
    wide_store = re.match(r"(global|flat|buffer|scratch)_store_dwordx[34]|.*cmpswap_x2", producer.name)
    data = registers(max(producer.parsed.operands[:2], key=len)) if wide_store else set()
    if wide_store and is_valu(consumer) and vector(consumer.writes) & data:
        found.append(Need(2, "wide store data overwritten"))
    if is_mfma(producer) and not is_single(producer) and plain_valu(consumer):
        third = producer.parsed.operands[0 if "smfmac" in producer.name else 3]
        if "f64" not in producer.name and vector(consumer.writes) & registers(third) - vector(producer.writes):
            found.append(Need({2: 1, 4: 3, 8: 7, 16: 15}[passes(producer, target)], "C overwritten"))
    direct = "lds" in consumer.parsed.modifiers or "load_lds" in consumer.name or "addtid" in consumer.name
    if producer.name.startswith("s_") and "m0" in producer.writes and direct:
        found.append(Need(1, "M0 into a direct load"))
    setreg = producer.name.startswith("s_setreg") and consumer.name.startswith(("s_setreg", "s_getreg"))
    if setreg:
        found.append(Need(2, "s_setreg"))
    return found


def states_of(item: Instruction) -> int:
    if item.name == HOLE:
        return 0
    return int(item.text.split()[1], 0) + 1 if item.name == "s_nop" else 1


def violations(code: Listing, target: str) -> list[tuple[int, int, Need]]:
    """(producer, consumer, need) for each pair that is too close on some path."""
    found = []
    for index, consumer in enumerate(code.code):
        if consumer.name in ("s_nop", "s_waitcnt", HOLE):
            continue
        for producer, distance in _before(code, index):
            required = need(code.code[producer], consumer, target)
            if required and distance < required.states:
                found.append((producer, index, required))
    return found


def _before(code: Listing, index: int) -> list[tuple[int, int]]:
    """Earlier instructions with the least number of states between, within reach."""
    best: dict[int, int] = {}
    work = [(p, 0) for p in code.predecessors[index]]
    while work:
        place, distance = work.pop()
        if distance >= best.get(place, REACH):
            continue
        best[place] = distance
        work += [(p, distance + states_of(code.code[place])) for p in code.predecessors[place]]
    return list(best.items())
