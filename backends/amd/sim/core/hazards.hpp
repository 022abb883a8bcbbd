// Software wait states that the hardware needs and does not enforce (amd.md section 4).
#pragma once

#include "registry.hpp"
#include "wave.hpp"

namespace amdsim {

// Wait states that must lie between `producer` and `consumer`; `why` names the rule.
int required_wait_states(const Inst& producer, const Inst& consumer, const Target& target, const char*& why);

// Decode-time summary used to skip the search: Inst::window and Inst::wary.
void derive_hazards(Inst& inst, const Target& target);

void search_hazards(const Wave& w, const Inst& in);

inline void check_hazards(const Wave& w, const Inst& in) {
  if (w.clock < w.hazard_until || in.wary) search_hazards(w, in);
}

inline void record_issue(Wave& w, const Inst& in) {
  w.ring[w.ring_next++ % kRing] = {&in, w.clock};
  if (in.flags & kMfma) w.mfma_ring[w.mfma_next++ % kRing] = {&in, w.clock};
  if (const u64 until = w.clock + in.window + 1; in.window && until > w.hazard_until) w.hazard_until = until;
  ++w.clock;
}

}  // namespace amdsim
