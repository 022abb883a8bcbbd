// How undefined bytes pass through instructions that move bytes or bits instead of computing with whole dwords.
// Each is called only when some source is undefined, before the result is written.
#pragma once

#include "../core/wave.hpp"

namespace amdsim {

// The result is 16 bits, written to the half that op_sel names; the other half keeps its state.
void shadow_half(Wave& w, const Inst& in);

// Whole bytes: a copy of the first source, or each byte from the sources' bytes in its place.
void shadow_move(Wave& w, const Inst& in);
void shadow_bytewise(Wave& w, const Inst& in);

// Bit-exact moves: the instruction's own lane function applied to the masks of undefined bits. Sources named by
// `control` (bit i = source i) steer the move and must be defined, or the whole result is undefined.
void shadow_bits(Wave& w, const Inst& in, unsigned control);
void shadow_bits_all(Wave& w, const Inst& in);       // every source is data
void shadow_bits_control0(Wave& w, const Inst& in);  // v_lshlrev: the shift count comes first
void shadow_bits_control1(Wave& w, const Inst& in);
void shadow_bits_control2(Wave& w, const Inst& in);
void shadow_bits_control12(Wave& w, const Inst& in);

// and/or: a defined 0 (1) bit of one source settles the result.
void shadow_and(Wave& w, const Inst& in);
void shadow_or(Wave& w, const Inst& in);
// v_and_or_b32 and v_or3_b32 work the same on three sources; v_lshl_or_b32 shifts its first.
void shadow_and_or(Wave& w, const Inst& in);
void shadow_lshl_or(Wave& w, const Inst& in);
void shadow_bfi(Wave& w, const Inst& in);
void shadow_perm(Wave& w, const Inst& in);

// v_cndmask: the state of the source that the mask selects.
void shadow_select(Wave& w, const Inst& in);

// Sums and products: a byte of the result depends on the sources' bytes at and below it, a carry on all of them.
// Compilers leave the high half of an addend undefined where only the low half of the sum is used.
void shadow_upward(Wave& w, const Inst& in);

// Packed halves: each half of the result depends on the halves that op_sel and op_sel_hi pick.
void shadow_packed(Wave& w, const Inst& in);
// The same for pairs of f32: compilers leave the dword that neither picks undefined.
void shadow_packed_dwords(Wave& w, const Inst& in);
// v_pk_mov_b32: each source gives the dword that op_sel picks.
void shadow_moved_dwords(Wave& w, const Inst& in);
// Two sources become the two halves of the result.
void shadow_pair(Wave& w, const Inst& in);
void shadow_pack(Wave& w, const Inst& in);  // halves that are moved, not converted
// Only byte `byte` of the source counts.
void shadow_one_byte(Wave& w, const Inst& in, int byte);

// Writes the bytes of `written` (bit i = byte i), undefined when any source lane is; keeps the other bytes.
void shadow_partial(Wave& w, const Inst& in, unsigned written);

}  // namespace amdsim
