"""Why a mutant can change nothing, argued from the code alone: rules that hold in any kernel.

Each rule looks at the listing, never at a result, and returns the reason that the report prints.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ._definitions import constant
from ._listing import Instruction, Listing, registers

if TYPE_CHECKING:
    from ._mutants import Mutant

LDS_ACCESS = ("ds_", "flat_", "global_load_lds")
LANE_WISE = ("v_", "global_", "ds_", "flat_", "buffer_", "scratch_")
SELECTED_BITS = {"BYTE_0": 8, "BYTE_1": 8, "BYTE_2": 8, "BYTE_3": 8, "WORD_0": 16, "WORD_1": 16, "DWORD": 32}
NEAR = 25  # instructions: the length of a division by v_rcp_iflag


def general_reason(code: Listing, mutant: Mutant) -> str | None:
    """The first rule that applies."""
    rules = {
        "drop restore": _restore,
        "drop bound_ctrl": _bound_ctrl,
        "delete barrier": _last_barrier,
        "change SDWA": _selector,
        "flip op_sel": _op_sel,
        "flip op_sel_hi": _op_sel,
        "bound off by one": _bound,
    }
    rule = rules.get(mutant.kind)
    return rule(code, mutant) if rule else None


def _last_barrier(code: Listing, mutant: Mutant) -> str | None:
    later = code.after(mutant.index)
    if any(i.name.startswith(LDS_ACCESS) or i.name == "s_barrier" for i in later):
        return None
    return "no LDS access and no barrier follows on any path: a wave that ends counts as arrived"


def _restore(code: Listing, mutant: Mutant) -> str | None:
    if not any(i.name.startswith(LANE_WISE) for i in code.after(mutant.index)):
        return "no vector instruction follows on any path"
    if _outer_restore_follows(code, mutant.index):
        return "the mask of an enclosing region, which holds these lanes, is restored before any lane matters"
    return None


def _outer_restore_follows(code: Listing, index: int) -> bool:
    """A mask saved before the dropped one was made holds all its lanes: masks only shrink inside a region."""
    dropped = min(registers(code.code[index].parsed.operands[2]))
    for item in code.code[index + 1 :]:
        if item.name == "s_or_b64" and item.parsed.operands[0] == "exec":
            outer = min(registers(item.parsed.operands[2]))
            saved, made = _last_write(code, index, outer), _last_write(code, index, dropped)
            return outer != dropped and "saveexec" in code.code[saved].name and saved < made
        if not item.name.startswith("s_") or "exec" in item.text or item.name.startswith(("s_cbranch", "s_branch")):
            return False
    return False


def _last_write(code: Listing, index: int, register: str) -> int:
    return max((i for i in range(index) if register in code.code[i].writes), default=0)


def _bound_ctrl(code: Listing, mutant: Mutant) -> str | None:
    item = code.code[mutant.index]
    operands = item.parsed.operands
    if re.search(r"row_(ror|mirror|half_mirror|newbcast)|quad_perm", item.text):
        return "every lane has a source with this control"
    neutral = item.parsed.base in ("v_add_f32", "v_add_u32", "v_or_b32", "v_xor_b32", "v_max_u32")
    if neutral and len(operands) == 3 and operands[0] == operands[2]:
        return "the old destination is the other operand: keeping it equals combining it with zero"
    without_source = {lane for lane in range(64) if _dpp_source(item.text, lane) is None}
    if not without_source & _lanes_read(code, mutant.index):
        return "the lanes without a source are not among those that lane 63, the only one read, is made of"
    return None


def _dpp_source(text: str, lane: int) -> int | None:
    """The lane that a DPP control reads for `lane`; None when it has none."""
    if shift := re.search(r"row_shr:(\d+)", text):
        return lane - int(shift[1]) if lane % 16 >= int(shift[1]) else None
    if "row_bcast:15" in text:
        return lane // 16 * 16 - 1 if lane >= 16 else None
    if "row_bcast:31" in text:
        return 31 if lane >= 32 else None
    raise ValueError(f"unknown control: {text}")


def _lanes_read(code: Listing, index: int) -> set[int]:
    """Lanes of the result that reach a v_readlane of lane 63 through the DPP additions that follow."""
    chain = []
    for item in code.code[index + 1 :]:
        if item.parsed.suffix == "dpp" and re.search(r"row_(shr|bcast)", item.text):
            chain.append(item.text)
        elif item.name.startswith("v_readlane"):
            break
        elif item.name != "s_nop":
            return set(range(64))
    lanes = {63}
    for text in reversed(chain):
        lanes |= {source for lane in lanes if (source := _dpp_source(text, lane)) is not None}
    return lanes


def _op_sel(code: Listing, mutant: Mutant) -> str | None:
    old, new = (re.search(rf"{mutant.kind[5:]}:\[([01,]+)\]", t) for t in (mutant.old, mutant.new or ""))
    if not old or not new:
        return None
    changed = [i for i, (a, b) in enumerate(zip(old[1].split(","), new[1].split(","), strict=True)) if a != b]
    if mutant.old.startswith(("v_cvt_pk_bf8_f32", "v_cvt_pk_fp8_f32")) and changed[0] < 2:
        return "the sources are whole registers: only the third op_sel bit, the half to write, has a meaning"
    if mutant.old.startswith("v_mfma_scale") and changed[0] == 2:
        return "op_sel picks the bytes of the two scales; there is no third"
    return None


def _selector(code: Listing, mutant: Mutant) -> str | None:
    """A whole register against its low word: the same where the upper bits are zero, or are not looked at."""
    item, new = code.code[mutant.index], Instruction(0, mutant.new or "")
    widths = [SELECTED_BITS[item.parsed.modifiers.get(f"src{i}_sel", "DWORD")] for i in (0, 1)]
    base, changed = item.parsed.base, [k for k, v in item.parsed.modifiers.items() if new.parsed.modifiers[k] != v]
    if item.parsed.modifiers[changed[0]] != "DWORD" or new.parsed.modifiers[changed[0]] != "WORD_0":
        return None
    if changed == ["src0_sel"] and "shlrev" in base:
        return "a shift count: only its low five bits are looked at"
    bitwise = base in ("v_and_b32", "v_or_b32", "v_xor_b32")
    if changed[0].startswith("src") and bitwise and SELECTED_BITS[item.parsed.modifiers["dst_sel"]] <= 16:
        return "no more than 16 bits of the result are written"
    if changed[0].startswith("src") and base == "v_and_b32" and min(widths) <= 16:
        return "the other operand of the v_and has no more than 16 bits"
    if changed == ["dst_sel"] and _result_bits(code, mutant.index, widths) <= 16:
        return "the result has no more than 16 bits, and the padding is zero"
    return None


def _result_bits(code: Listing, index: int, widths: list[int]) -> int:
    item = code.code[index]
    if item.parsed.base.endswith(("_b16", "_u16")) or item.parsed.base.startswith("v_cvt_f16"):
        return 16
    if item.parsed.base == "v_and_b32":
        return min(widths)
    if item.parsed.base in ("v_or_b32", "v_xor_b32"):
        return max(widths)
    count = constant(code, index, item.parsed.operands[1]) if item.parsed.base == "v_lshlrev_b32" else None
    return 32 if count is None else widths[1] + count


def _bound(code: Listing, mutant: Mutant) -> str | None:
    item = code.code[mutant.index]
    pair = set(item.parsed.operands[1:])
    for later in code.code[mutant.index + 1 : mutant.index + NEAR]:
        if later.name.startswith("v_cmp_eq_u32") and set(later.parsed.operands[1:]) == pair and _selects(code, later):
            return "high words: where they are equal the comparison of the low words is taken instead"
    return _correction(code, mutant.index)


def _selects(code: Listing, equal: Instruction) -> bool:
    """Whether a v_cndmask chooses by this comparison between two comparisons' results."""
    mask = equal.parsed.operands[0]
    place = code.code.index(equal)
    return any(i.name.startswith("v_cndmask") and i.parsed.operands[-1] == mask for i in code.code[place:][:NEAR])


def _correction(code: Listing, index: int) -> str | None:
    """One of the two corrections of a quotient from a reciprocal (see test_mutant_reasons for the estimate's error)."""
    item, near = code.code[index], range(max(index - NEAR, 0), min(index + NEAR, len(code.code)))
    divides = any("v_rcp_iflag_f32" in code.code[i].name for i in range(max(index - 2 * NEAR, 0), index))
    twin = [i for i in near if i != index and code.code[i].text == item.text]
    if not divides or not item.name.startswith(("v_cmp_ge_u32", "v_cmp_le_u32")) or len(twin) != 1:
        return None
    if twin[0] > index:
        return "the first of two corrections of a quotient: a remainder equal to the divisor is left to the second"
    absolute = any(code.code[i].name.startswith("v_max_i32") for i in range(near.start, twin[0]))
    if absolute:
        return "the second correction of a quotient: below 2**31 the estimate is at most one too small"
    return None
