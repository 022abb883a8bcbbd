// Architectural state of one wave, with the shadow state that the checks need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "error.hpp"
#include "inst.hpp"
#include "target.hpp"

namespace amdsim {

struct Workgroup;
struct Program;

// Undefined lanes of one register, one mask per byte of the dword.
struct alignas(32) ByteMask {
  u64 b[4] = {0, 0, 0, 0};
  u64 any() const { return b[0] | b[1] | b[2] | b[3]; }
};

// The MODE register fields that arithmetic obeys.
struct Mode {
  u8 round32 = 0, round64 = 0;    // 0 nearest even, 1 +inf, 2 -inf, 3 zero; round64 is for f16 and f64
  u8 denorm32 = 3, denorm64 = 3;  // bit 0: keep input denormals, bit 1: keep output denormals
  bool dx10_clamp = true, ieee = true, fp16_ovfl = false;
  u32 rounding_and_denormals() const { return round32 | round64 << 8 | denorm32 << 16 | u32(denorm64) << 24; }
};

// A load whose result is held back until a wait proves it (only when the "waits" check is relaxed).
struct Deferred {
  const Inst* inst = nullptr;
  u64 seq = 0;
  u8 path = 0;
  u8 dwords = 0;
  u16 first_row = 0;
  std::shared_ptr<void> result;
};

// A direct global-to-LDS load that the issuing wave has not yet waited for.
struct LdsDma {
  const Inst* inst = nullptr;
  u64 seq = 0;          // in the vm counter
  u32 first = 0;        // LDS byte of lane 0
  u32 bytes = 0;        // per lane
  u32 stride = 0;       // between lanes
  u64 lanes = 0;
  std::vector<u8> data;  // lands at the wait
  std::vector<u8> undefined;  // of each byte, 0 or 1; empty when all is defined
  bool overlaps(u32 begin, u32 end) const;
};

// Sequence numbers of one wait counter. An operation with number s is proven complete when s <= done.
struct Counter {
  u64 issued = 0, done = 0;
  bool idle() const { return issued == done; }
};

// An LDS access not yet ordered before later accesses of other waves (see lds.cpp).
struct LdsLog {
  const Inst* inst = nullptr;
  u64 seq = 0;
  u64 lanes = 0;
  u32 event = 0;
  u32 bytes = 0;
  u32 begin = 0, end = 0;  // bounds of all lanes
  u8 use = 0;
  bool by_vm = false;
  u32 address[kLanes];
};

struct HazardEvent {
  const Inst* inst;
  u64 issue;  // wait-state clock when it issued
};

inline constexpr int kRing = 32;  // longer than the longest hazard window (20 wait states)

struct Wave {
  // Storage. v has kRows rows; only `v_alloc` VGPRs and `a_alloc` AGPRs exist for this kernel.
  u32 sgpr[sreg::kCount] = {};
  u32 sundef[sreg::kCount] = {};  // undefined bits
  bool scc = false;
  bool scc_undef = true;
  Row* v = nullptr;
  ByteMask* vundef = nullptr;
  Mode mode;
  u32 pc = 0;  // index into Program::code of the instruction being executed
  u32 next_pc = 0;

  // Identity.
  Workgroup* group = nullptr;
  const Program* program = nullptr;
  int id = 0;
  u64 limits = 0;  // packed allocation, compared with Inst::need

  // Progress.
  enum class State : u8 { Running, AtBarrier, Ended } state = State::Running;
  u32 barriers_passed = 0;
  u64 executed = 0;
  u8 vector_mode = 0;    // see vector_mode.hpp
  bool yielded = false;  // asked to let other waves run (s_sleep)

  // Wait counters: vm in order; lds in order; smem and flat proven only by a wait to zero.
  Counter vm, lds, smem, flat;
  u64 v_vm[kRows] = {};    // number of the last vm operation that writes the row
  u64 v_lds[kRows] = {};   // the same for LDS operations
  u64 v_flat[kRows] = {};  // flat loads: need vm in order and lgkm 0
  u64 s_smem[sreg::kCount] = {};
  u64 flat_vm = 0, flat_lgkm = 0;      // how far each counter has proven the FLAT operations
  const Inst* recent_vm[64] = {};
  const Inst* recent_lds[64] = {};
  const Inst* recent_smem[64] = {};
  const Inst* recent_flat[64] = {};
  std::vector<Deferred> deferred;
  std::vector<LdsDma> lds_dma;
  std::vector<LdsLog> lds_log;
  u64 arrived_lds = 0, arrived_vm = 0;  // what was proven when the wave reached the barrier

  // Hazards: a clock of wait states, and the most recent instructions.
  u64 clock = 0;
  HazardEvent ring[kRing] = {};       // every instruction
  HazardEvent mfma_ring[kRing] = {};  // matrix instructions only
  u32 ring_next = 0, mfma_next = 0;
  u64 hazard_until = 0;  // from this clock on no ordinary instruction needs a look at the rings
  // What instructions whose window may still be open read and wrote (Inst::v_write_bits and so on).
  u64 risky_v_write = 0, risky_v_read = 0, risky_s_write = 0;
  bool risky_indirect = false;

  // Scratch: private_dwords rows of 64 lanes, with shadow.
  std::vector<u32> scratch;
  std::vector<ByteMask> scratch_undef;

  u64 exec() const { return pair(sreg::kExec); }
  void set_exec(u64 value) { set_pair(sreg::kExec, value); }
  u64 vcc() const { return pair(sreg::kVcc); }
  u64 pair(int reg) const {
    u64 value;
    std::memcpy(&value, &sgpr[reg], 8);
    return value;
  }
  void set_pair(int reg, u64 value) { std::memcpy(&sgpr[reg], &value, 8); }
  u64 undef_pair(int reg) const {
    u64 value;
    std::memcpy(&value, &sundef[reg], 8);
    return value;
  }
  void set_undef_pair(int reg, u64 value) { std::memcpy(&sundef[reg], &value, 8); }

  // Scalar operand value (register, special or constant), 32 or 64 bits.
  u32 s32(const Operand& op) const;
  u64 s64(const Operand& op) const;
  u64 s_undef(const Operand& op) const;  // undefined bits of the above

  // Throws SimError unless the check is relaxed; then returns.
  void violate(Check check, const std::string& reason, u64 lanes = 0, const Inst* other = nullptr) const;
  void violate_at(Check check, const std::string& reason, u64 lanes, u64 address,
                  const Inst* other = nullptr) const;
  [[noreturn]] void stop(const char* kind, const std::string& reason) const;
  [[noreturn]] void unsupported(const std::string& reason) const { stop("unsupported", reason); }
  bool checking(Check check) const { return (checks >> static_cast<int>(check)) & 1; }
  u32 checks = 0;
};

}  // namespace amdsim
