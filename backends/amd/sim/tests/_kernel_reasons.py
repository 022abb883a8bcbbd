"""Why a mutant of one kernel can change nothing: found by reading its source, tied to the place in its code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._definitions import reaching
from ._listing import Listing, registers

if TYPE_CHECKING:
    from ._mutants import Mutant

Place = Callable[[Listing, "Mutant"], bool]


@dataclass(frozen=True)
class Reason:
    """An argument about the mutants of some kernels that are of one kind and stand at a place."""

    kernels: str
    kind: str
    place: Place
    text: str

    def holds(self, kernel: str, code: Listing, mutant: Mutant) -> bool:
        return kernel in self.kernels.split() and mutant.kind == self.kind and self.place(code, mutant)


def known_reason(kernel: str, code: Listing, mutant: Mutant) -> str | None:
    """The first reason that holds."""
    if "s_waitcnt" in mutant.old:
        return _wait_reason(kernel, code, mutant)
    return next((f"{kernel}: {r.text}" for r in REASONS if r.holds(kernel, code, mutant)), None)


def _wait_reason(kernel: str, code: Listing, mutant: Mutant) -> str | None:
    """Waits that only a path needs which no launch can take, or that guard other lanes of a register."""
    following = code.code[mutant.index + 1]
    last_mfma = max((i for i, item in enumerate(code.code) if item.name.startswith("v_mfma")), default=0)
    if kernel == "gemm_dma" and "vmcnt" in mutant.old and following.name != "s_barrier":
        return (
            "gemm_dma: the direct loads drained here fill the other buffer; this one's were waited for at the barrier"
        )
    if kernel == "gemm_bf16" and following.name.startswith("v_mov_b64"):
        return "gemm_bf16: the pending load and the zero fill of rows beyond M write different lanes"
    if kernel == "gemm_bf16" and mutant.index > last_mfma:
        return "gemm_bf16: only a launch with no K step, which its first load would make invalid, needs this wait"
    if kernel == "gemm_bf16" and mutant.kind == "weaken wait" and following.name.startswith("v_mfma"):
        return "gemm_bf16: LDS returns in order, no scalar load is outstanding, and the next wait covers the last read"
    if kernel == "scratch" and "lgkmcnt" in mutant.old:
        return "scratch: the first part of the filling loop, which waits, runs in every wave (they span the array)"
    if kernel == "ballot" and "lgkmcnt" in mutant.old:
        return "ballot: its mask is not zero here, so the branch around the first store, which waits, is never taken"
    return None


def before(pattern: str, distance: int = 8) -> Place:
    """An instruction that matches stands at most so far behind the mutant's."""
    return lambda code, m: any(re.match(pattern, i.text) for i in code.code[m.index + 1 : m.index + 1 + distance])


def after(pattern: str, distance: int = 8) -> Place:
    """An instruction that matches stands at most so far before the mutant's."""
    return lambda code, m: any(re.match(pattern, i.text) for i in code.code[max(m.index - distance, 0) : m.index])


def itself(pattern: str) -> Place:
    return lambda code, m: bool(re.match(pattern, m.old))


def both(*places: Place) -> Place:
    return lambda code, m: all(place(code, m) for place in places)


def last(pattern: str) -> Place:
    """The last instruction of the kernel that matches."""
    return lambda code, m: m.index == max(i for i, item in enumerate(code.code) if re.match(pattern, item.text))


def negated(pattern: str) -> Place:
    """Every instruction that may have given the operand whose sign is flipped matches."""

    def place(code: Listing, m: Mutant) -> bool:
        operands, new = code.code[m.index].parsed.operands, (m.new or "").split(None, 1)[1].split(", ")
        register = next(o.lstrip("-") for o, n in zip(operands, new, strict=True) if o != n)
        found = reaching(code, m.index, min(registers(register)))
        return bool(found) and all(re.match(pattern, code.code[i].text) for i in found)

    return place


def reciprocal(code: Listing, m: Mutant) -> bool:
    """A sign in the refinement of 1/d: of the first estimate, or of the scaled 1."""
    item = code.code[m.index]
    sources = {o.lstrip("-") for o in item.parsed.operands[1:]}
    made = {r: [code.code[i].text for i in reaching(code, m.index, r)] for r in sources if re.fullmatch(r"v\d+", r)}
    ones = {r for r, texts in made.items() if all(re.match(r"v_div_scale_f32 \w+, vcc, 1\.0,", t) for t in texts)}
    if not ones:
        return False
    return item.name.startswith("v_mul_f32") or (
        item.name.startswith("v_fma_f32") and m.new.split()[-1] == f"-{min(ones)}"
    )


def rows_rise(code: Listing, m: Mutant) -> bool:
    """Every store that may follow is of a row and column not below those of the store that the mask is of."""
    row, column = _stored(code, _saved(code, m.index))
    later = [_place(code, i) for i in _reachable(code, m.index) if code.code[i].name == "global_store_dword"]
    return all(r >= row and c >= column for r, c in later)


def _saved(code: Listing, index: int) -> int:
    """The s_and_saveexec that a restore belongs to: the nearest before it on a path."""
    work, seen = [index], set()
    while work:
        place = work.pop(0)
        if "saveexec" in code.code[place].name:
            return place
        work += [p for p in code.predecessors[place] if p not in seen]
        seen |= set(work)
    raise ValueError(f"no mask was saved before {code.code[index].text}")


def _stored(code: Listing, saved: int) -> tuple[int, int]:
    """The place of the store that a saved mask guards: the first one behind it that no restore comes before."""
    work = list(code.successors[saved])
    while work:
        place = work.pop(0)
        if code.code[place].name == "global_store_dword":
            return _place(code, place)
        if code.code[place].name != "s_or_b64":
            work += code.successors[place]
    raise ValueError(f"no store behind {code.code[saved].text}")


def _reachable(code: Listing, index: int) -> set[int]:
    seen, work = set(), list(code.successors[index])
    while work:
        place = work.pop()
        if place not in seen:
            seen.add(place)
            work += code.successors[place]
    return seen


def _place(code: Listing, store: int) -> tuple[int, int]:
    """Row and column of a store of gemm_bf16 within the wave's tile: `base | row`, and an offset of 32 columns."""
    multiply = store - 2
    register = code.code[multiply].parsed.operands[2]
    made = code.code[min(reaching(code, multiply, register))].parsed.operands
    row = int(made[1]) if made[1].isdigit() else 0
    return row, 32 if "offset:128" in code.code[store].text else 0


SAME_PLACE = "every lane that is on stores the same value to the same place"
TAIL = r"v_or_b32_e32 v\d+, [23], "
STORED_MASKS = r"s_orn2_b64|v_cmp_gt_i32_e32 vcc, 8,|s_and_b64 s\[\d+:\d+\], exec"
REASONS = (
    Reason("gemm_bf16", "drop restore", rows_rise,
           "rows and columns rise from store to store: a lane lost here is beyond M or N in every store it misses"),
    Reason("generic_lds", "delete barrier", last("s_barrier"),
           "after its last barrier each lane reads only what it wrote itself"),
    Reason("generic_lds", "drop cache bit", itself("flat_"),
           "scope bits: one workgroup alone touches these bytes, through the cache of one CU"),
    Reason("conv_int", "flip neg", negated(r"v_cndmask_b32_e64 v\d+, 0, 1\.0"),
           "x != x adds 1 to a sum that is NaN, else a zero to a sum that is never -0"),
    Reason("softmax elementwise attn_fwd", "flip neg", negated(r"v_cndmask_b32_e\d+ v\d+, 0, "),
           "the logarithm is of a number of at least 1: its correction for denormals is zero"),
    Reason("softmax elementwise attn_fwd", "flip neg", reciprocal,
           "1/d: the sign leads to the same reciprocal for every significand of d (test_mutant_reasons)"),
    Reason("elementwise", "bound off by one", itself("v_cmp_gt_i32_e32 vcc, 13,"),
           "fmod takes 12 bits at a time; a step of 13 is exact as well (its quotient has at most 14 of 24 bits)"),
    Reason("control", "drop restore", before(r"s_and_saveexec_b64 .*, s\[10:11\]", 1),
           "a lane lost here has one step, and the term of step 0 is 0"),
    Reason("ballot", "drop restore", before(r"v_cndmask_b32_e64 v1, 0, 1,", 1),
           "a lane lost here has i >= n: it votes 0 like one that is off, and stores nothing"),
    Reason("ballot", "drop mask", before(r"s_bcnt1_i32_b64", 8), SAME_PLACE),
    Reason("softmax", "drop mask", before(r"ds_write_b32", 6), SAME_PLACE + " of LDS: the wave's maximum or sum"),
    Reason("softmax", "drop restore", before(r"v_lshl_or_b32 v\d+, v\d+, 8, v0", 2),
           "a lane lost here computes its columns again, with the same results"),
    Reason("softmax", "drop restore", before(r"s_cbranch_execz", 1), "only branches follow: no lane has work left"),
    Reason("attn_fwd", "drop mask", last("s_and_saveexec"),
           "the two lanes of a row hold the same LSE and store it to the same place"),
    Reason("atomics_lds", "drop mask", both(last("s_and_saveexec"), after("global_atomic_add")), SAME_PLACE),
    Reason("atomics_lds", "drop restore", before(r"v_cmp_eq_u32_e32 vcc, 0, v0", 1),
           "a lane lost here has t >= 64, and the rest is done by t == 0"),
    Reason("atomics_global", "change offset", both(itself("global_load_dword"), before("global_atomic_cmpswap", 6)),
           "the load is the first guess of a compare-and-swap loop; a wrong one costs a round"),
    Reason("dropout", "drop restore", before(TAIL, 1),
           "n cuts off the last elements: a lane without this one has none after it"),
    Reason("divergent", "drop restore", before(STORED_MASKS, 1),
           "until s[2:3] puts every lane back only masks are computed, and s_orn2 counts a lane off as storing"),
    Reason("divergent", "bound off by one", itself(r"v_cmp_lt_u32_e32 vcc, 19,"),
           "b is never 19: in steps of 2 it is even, in steps of 1 the loop ends within 8"),
    Reason("int64", "drop mask", before(r"s_xor_b64", 1),
           "the branch is a shortcut: the long division is right for short numbers too"),
    Reason("int64", "bound off by one", both(itself(r"v_cmp_ge_u32_e64"), after(r"v_xor_b32_e32", 35)),
           "the second correction of a signed quotient: below 2**63 the estimate is at most one too small"),
    Reason("scratch", "drop mask", both(before(r"s_xor_b64", 1), after("v_cmp_gt_u16")),
           "the loop that is entered wraps every pair of elements, which is right for every lane"),
    Reason("scratch_array", "bound off by one", itself(r"v_cmp_gt_i32"), "exchanging equal elements changes nothing"),
)  # fmt: skip
