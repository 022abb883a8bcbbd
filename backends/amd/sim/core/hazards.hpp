// Software wait states that the hardware needs and does not enforce (amd.md section 4).
#pragma once

#include "registry.hpp"
#include "wave.hpp"

namespace amdsim {

// Wait states that must lie between `producer` and `consumer`; `why` names the rule.
int required_wait_states(const Inst& producer, const Inst& consumer, const Target& target, const char*& why);

// Decode-time summary used to skip the search: Inst::window and Inst::wary.
void derive_hazards(Inst& inst, const Target& target);

// Looks at the rings, and then leaves in Wave::risky_* only what is still open.
void search_hazards(Wave& w, const Inst& in);

// Can an instruction whose window is open, or one beside it, disturb this one? Never wrongly no.
inline bool at_risk(const Wave& w, const Inst& in) {
  return (w.risky_v_write & (in.v_read_bits | in.v_write_bits)) | (w.risky_v_read & in.v_write_bits) |
         (w.risky_s_write & in.s_read_bits) || in.indirect || w.risky_indirect;
}

inline void check_hazards(Wave& w, const Inst& in) {
  if (in.wary || (w.clock < w.hazard_until && at_risk(w, in))) search_hazards(w, in);
}

inline void forget_risks(Wave& w) {
  w.risky_v_write = w.risky_v_read = w.risky_s_write = 0, w.risky_indirect = false;
}

// Only some producers bind ordinary instructions by their vector registers; a wary consumer looks at the rings anyway.
inline void note_risk(Wave& w, const Inst& in) {
  if (in.flags & (kTrans | kDot | kMfma | kVmem) || in.partial)
    w.risky_v_write |= in.v_write_bits, w.risky_v_read |= in.v_read_bits;
  w.risky_s_write |= in.s_write_bits;
  w.risky_indirect |= in.indirect;
}

inline void open_window(Wave& w, const Inst& in) {
  if (w.clock >= w.hazard_until) forget_risks(w);
  note_risk(w, in);
  if (const u64 until = w.clock + in.window + 1; until > w.hazard_until) w.hazard_until = until;
}

inline void record_issue(Wave& w, const Inst& in) {
  w.ring[w.ring_next++ % kRing] = {&in, w.clock};
  if (in.flags & kMfma) w.mfma_ring[w.mfma_next++ % kRing] = {&in, w.clock};
  if (in.window) open_window(w, in);
  ++w.clock;
}

}  // namespace amdsim
