#include "replay.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <stdexcept>

#include "../core/registry.hpp"

namespace amdsim::timing {

const char* const kStallNames[kStalls] = {"none", "vmcnt", "lgkmcnt", "barrier", "matrix", "vector",
                                          "dependency", "lds port", "memory port", "branch", "idle", "arbitration"};
const char* const kUnitNames[kUnits] = {"vector", "matrix", "scalar", "scalar memory", "vector memory", "lds", "branch", "control"};

namespace {

constexpr int kSimds = 4;
constexpr u64 kSlot = 4;  // clocks between two slots of a SIMD
constexpr u64 kNever = ~0ull >> 1;
constexpr u32 kVmMax = 63, kLgkmMax = 15;

struct Earliest {
  u64 at = 0;
  Stall why = Stall::None;
  void no_sooner(u64 time, Stall reason) {
    if (time > at) at = time, why = reason;
  }
};

// Completion times of operations in flight.
class InFlight {
 public:
  void add(u64 done) { done_.push_back(done); }
  void add_in_order(u64 done) { done_.push_back(last_ = std::max(last_, done)); }
  // When at most `left` are still in flight, if none is added.
  u64 down_to(u32 left) {
    if (done_.size() <= left) return 0;
    std::sort(done_.begin(), done_.end());
    return done_[done_.size() - 1 - left];
  }
  void forget_until(u64 now) {
    done_.erase(std::remove_if(done_.begin(), done_.end(), [now](u64 d) { return d <= now; }), done_.end());
  }

 private:
  std::deque<u64> done_;
  u64 last_ = 0;
};

struct Wave {
  WaveSteps work;
  std::size_t at = 0;
  u64 base = 0;   // where the next instruction would issue if it waited for nothing
  u64 ready = 0;  // where it may, as far as the wave's last instruction is concerned
  Stall ready_why = Stall::None;
  u32 priority = 0;
  bool at_barrier = false, ended = false;
  InFlight vm, lgkm;
  std::vector<u64> registers = std::vector<u64>(kRows, 0);  // when a consumer may issue
  std::vector<const Op*> writer = std::vector<const Op*>(kRows, nullptr);
};

struct Simd {
  u64 vector_busy = 0;  // by vector instructions
  u64 held = 0, packed_held = 0;  // by a matrix instruction
  u64 matrix_busy = 0;
  u64 next = 0;
  std::vector<Wave*> waves;
};

class Replay {
 public:
  Replay(const std::vector<Op>& ops, const std::vector<WaveSteps>& work, const Rates& rates) : ops_(ops), rates_(rates) {
    result_.stalls.resize(ops.size());
    waves_.resize(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) {
      waves_[i].work = work[i], waves_[i].ended = work[i].count == 0;
      simds_[static_cast<std::size_t>(work[i].simd)].waves.push_back(&waves_[i]);
      result_.issue.emplace_back().reserve(work[i].count);
    }
    for (int s = 0; s < kSimds; ++s) simds_[static_cast<std::size_t>(s)].next = static_cast<u64>(s);
  }

  Result run() {
    while (true) {
      const auto first = std::min_element(simds_.begin(), simds_.end(), [](const Simd& a, const Simd& b) { return a.next < b.next; });
      if (first->next >= kNever) break;
      slot(*first, first->next);
    }
    for (const Wave& w : waves_)
      if (!w.ended) throw std::runtime_error("the replay stops: a wave waits at a barrier that others do not reach");
    return std::move(result_);
  }

 private:
  // -- one slot of one SIMD --------------------------------------------------------------------------
  void slot(Simd& simd, u64 now) {
    land_direct_loads(now);
    std::sort(simd.waves.begin(), simd.waves.end(), goes_first);
    bool taken[kUnits] = {};
    for (Wave* w : simd.waves)
      while (issues(simd, *w, now, taken)) {}
    plan(simd, now + kSlot);
  }

  // Tries a wave's next instruction; true when another one may follow in this slot.
  bool issues(Simd& simd, Wave& w, u64 now, bool* taken) {
    if (w.ended || w.at_barrier) return false;
    const Op& op = next_op(w);
    bool& port = taken[static_cast<int>(op.unit == Unit::Matrix ? Unit::Valu : op.unit)];
    const Earliest e = earliest(simd, w, op);
    if (e.at > now || (port && op.unit != Unit::Internal)) return false;
    port = true;
    issue(simd, w, op, now, e);
    return op.unit == Unit::Internal;
  }

  // The higher priority, else the older wave.
  static bool goes_first(const Wave* a, const Wave* b) { return a->priority != b->priority ? a->priority > b->priority : a < b; }

  // The next slot in which some wave may issue.
  void plan(Simd& simd, u64 from) {
    u64 soonest = kNever;
    for (Wave* w : simd.waves)
      if (!w->ended && !w->at_barrier) soonest = std::min(soonest, earliest(simd, *w, next_op(*w)).at);
    simd.next = soonest == kNever ? kNever : aligned(simd, std::max(from, soonest));
  }

  u64 aligned(const Simd& simd, u64 time) const {
    const u64 phase = static_cast<u64>(&simd - simds_.data());
    return time <= phase ? phase : phase + (time - phase + kSlot - 1) / kSlot * kSlot;
  }

  const Op& next_op(const Wave& w) const { return ops_[w.work.steps[w.at].inst]; }

  // -- when may it issue? ----------------------------------------------------------------------------
  Earliest earliest(const Simd& simd, Wave& w, const Op& op) {
    Earliest e{w.ready, w.ready_why};
    registers_ready(w, op, e);
    switch (op.unit) {
      case Unit::Matrix:
        e.no_sooner(simd.matrix_busy, Stall::Matrix);
        e.no_sooner(simd.vector_busy, Stall::Vector);
        break;
      case Unit::Valu:
        e.no_sooner(simd.vector_busy, Stall::Vector);
        e.no_sooner(op.packed ? simd.packed_held : simd.held, Stall::Matrix);
        break;
      case Unit::Lds:
        e.no_sooner(lds_in_[port_of(simd)], Stall::LdsPort);
        e.no_sooner(lds_queue_[port_of(simd)].down_to(rates_.lds_queue - 1), Stall::LdsPort);
        e.no_sooner(w.lgkm.down_to(kLgkmMax - 1), Stall::Lds);
        break;
      case Unit::Memory:
        e.no_sooner(memory_queue_.down_to(rates_.memory_queue - 1), Stall::MemoryPort);
        e.no_sooner(w.vm.down_to(kVmMax - 1), Stall::VectorMemory);
        break;
      case Unit::Internal:
        if (op.control == Control::Wait) {
          e.no_sooner(w.vm.down_to(op.vm_left), Stall::VectorMemory);
          e.no_sooner(w.lgkm.down_to(op.lgkm_left), Stall::Lds);
        }
        break;
      default: break;
    }
    return e;
  }

  void registers_ready(const Wave& w, const Op& op, Earliest& e) const {
    for (const RegRange& r : op.reads) {
      // The accumulator of a chain is forwarded inside the matrix core.
      const Op* by = w.writer[r.first];
      const bool chained = op.unit == Unit::Matrix && by && by->unit == Unit::Matrix && r.first == op.accumulator.first &&
                           r.count == op.accumulator.count && by->writes.size() == 1 && by->writes[0].first == r.first &&
                           by->writes[0].count == r.count;
      if (chained) continue;
      for (int i = 0; i < r.count; ++i) e.no_sooner(w.registers[static_cast<std::size_t>(r.first + i)], Stall::Dependency);
    }
  }

  static std::size_t port_of(std::size_t simd) { return simd / 2; }
  std::size_t port_of(const Simd& simd) const { return port_of(static_cast<std::size_t>(&simd - simds_.data())); }

  // -- issue -----------------------------------------------------------------------------------------
  void issue(Simd& simd, Wave& w, const Op& op, u64 now, const Earliest& e) {
    account(w, op, now, e);
    const Step& step = w.work.steps[w.at];
    ++w.at;
    // The sequencer carries its own instructions out beside the ports: they take no slot.
    w.ready = w.base = op.unit == Unit::Internal ? now : now + kSlot, w.ready_why = Stall::None;
    w.vm.forget_until(now), w.lgkm.forget_until(now);
    switch (op.unit) {
      case Unit::Valu: occupy_vector(simd, op, now); break;
      case Unit::Matrix: occupy_matrix(simd, op, now); break;
      case Unit::Lds: use_lds(simd, w, op, step, now); break;
      case Unit::Memory: use_memory(w, op, step, now); break;
      case Unit::ScalarMemory: w.lgkm.add(now + rates_.scalar_latency); break;
      case Unit::Branch: take_branch(w, step, now); break;
      case Unit::Internal: control(w, op, now); break;
      case Unit::Salu: break;
    }
    for (const RegRange& r : op.writes)
      for (int i = 0; i < r.count; ++i) {
        w.registers[static_cast<std::size_t>(r.first + i)] = now + op.result;
        w.writer[static_cast<std::size_t>(r.first + i)] = &op;
      }
    if (w.at == w.work.count) finish(w, now);
  }

  void account(const Wave& w, const Op& op, u64 now, const Earliest& e) {
    const std::size_t index = static_cast<std::size_t>(&op - ops_.data());
    result_.issue[static_cast<std::size_t>(&w - waves_.data())].push_back(now);
    ++result_.issued[static_cast<std::size_t>(op.unit)];
    const u64 base = w.base;
    if (now <= base) return;
    auto& stalls = result_.stalls[index];
    const u64 until = std::clamp(e.at, base, now);
    stalls[static_cast<std::size_t>(e.why)] += until - base;
    stalls[static_cast<std::size_t>(Stall::Arbitration)] += now - until;
  }

  void occupy_vector(Simd& simd, const Op& op, u64 now) {
    simd.vector_busy = now + op.busy;
    result_.vector_busy += op.busy;
  }

  void occupy_matrix(Simd& simd, const Op& op, u64 now) {
    simd.matrix_busy = now + op.busy;
    simd.held = now + op.valu_hold, simd.packed_held = now + op.packed_hold;
    result_.matrix_busy += op.busy;
  }

  // Address and data go in through the port of a pair of SIMDs, the banks serve, data comes back through the port.
  void use_lds(Simd& simd, Wave& w, const Op& op, const Step& step, u64 now) {
    const std::size_t port = port_of(simd);
    const u64 address = kLanes * 4 / rates_.lds_in, data = op.returns ? 0 : step.bytes / rates_.lds_in;
    lds_in_[port] = now + address + data;
    const u64 served = bank_free_ = std::max(bank_free_, now) + step.lds_clocks;
    u64 done = std::max(served, now + address + data);
    if (op.returns) {
      const u64 back = step.bytes / rates_.lds_out;
      lds_out_[port] = std::max(lds_out_[port], served - step.lds_clocks) + back;
      done = std::max(done, lds_out_[port]);
      result_.lds_port_busy += back;
    }
    result_.lds_busy += step.lds_clocks;
    w.lgkm.add_in_order(done + rates_.lds_latency);
    lds_queue_[port].forget_until(now), lds_queue_[port].add(done);
  }

  void use_memory(Wave& w, const Op& op, const Step& step, u64 now) {
    const u64 bytes = std::max<u64>(step.bytes, u64{step.lines} * 64);
    const u64 busy = step.bytes > 4 * kLanes || step.lines > 4 ? rates_.l1_wider : rates_.l1_dword;
    const u64 begun = room_for(op.store || op.flags & kScratch ? 0 : bytes, std::max(memory_busy_, now));
    memory_busy_ = begun + busy;
    memory_queue_.forget_until(now), memory_queue_.add(begun);
    result_.memory_busy += busy, result_.memory_bytes += static_cast<double>(bytes);
    const bool near = op.flags & kScratch;
    const u64 done = near ? memory_busy_ + rates_.l1_latency : fetch(bytes, memory_busy_);
    if (!op.store && !near) loads_.push_back({done, bytes}), in_flight_ += bytes;
    w.vm.add_in_order(done);
    if (op.flags & kFlat) w.lgkm.add(done);
    if (op.to_lds) landing_.push({done, step.bytes / rates_.lds_fill});
  }

  // When the vector cache has room for what a load will bring.
  u64 room_for(u64 bytes, u64 from) {
    while (!loads_.empty() && (loads_.front().first <= from || in_flight_ + bytes > rates_.memory_flight)) {
      from = std::max(from, loads_.front().first);
      in_flight_ -= loads_.front().second;
      loads_.pop_front();
    }
    return from;
  }

  // Levels serve requests in turn, as often as their fractions say.
  u64 fetch(u64 bytes, u64 from) {
    int level = 0;
    for (int i = 0; i < 3; ++i)
      if (owed_[i] += rates_.served[i], owed_[i] > owed_[level]) level = i;
    owed_[level] -= 1;
    double at = static_cast<double>(from);
    for (int i = 0; i <= level; ++i) {
      level_free_[i] = std::max(level_free_[i], at) + static_cast<double>(bytes) / rates_.bandwidth[i];
      at = std::max(at, level_free_[i]);
    }
    return static_cast<u64>(at + rates_.latency[level]);
  }

  // A direct load takes the banks when its data arrives.
  void land_direct_loads(u64 now) {
    for (; !landing_.empty() && landing_.top().first <= now; landing_.pop()) {
      bank_free_ = std::max(bank_free_, landing_.top().first) + landing_.top().second;
      result_.lds_busy += landing_.top().second;
    }
  }

  void take_branch(Wave& w, const Step& step, u64 now) {
    const bool taken = w.at < w.work.count && w.work.steps[w.at].inst != step.inst + 1;
    if (taken) w.ready = now + rates_.branch, w.ready_why = Stall::Branch;
  }

  void control(Wave& w, const Op& op, u64 now) {
    if (op.control == Control::Idle) w.ready = now + kSlot * (op.imm + 1), w.ready_why = Stall::Idle;
    if (op.control == Control::Sleep) w.ready = now + 64 * std::max(1u, op.imm), w.ready_why = Stall::Idle;
    if (op.control == Control::Priority) w.priority = op.imm;
    if (op.control == Control::Barrier) arrive(w, now);
  }

  void finish(Wave& w, u64 now) {
    w.ended = true;
    result_.clocks = std::max(result_.clocks, now + kSlot);
    release(w.work.group, now);
  }

  void arrive(Wave& w, u64 now) {
    w.at_barrier = true;
    release(w.work.group, now);
  }

  // Waves that have ended are not waited for.
  void release(int group, u64 now) {
    bool waiting = false;
    for (const Wave& w : waves_) {
      if (w.work.group != group || w.ended) continue;
      if (!w.at_barrier) return;
      waiting = true;
    }
    if (!waiting) return;
    for (Wave& w : waves_) {
      if (w.work.group != group || w.ended) continue;
      w.at_barrier = false, w.ready = now + rates_.barrier, w.ready_why = Stall::Barrier;
    }
    for (Simd& simd : simds_) simd.next = std::min(simd.next, aligned(simd, now + 1));
  }

  const std::vector<Op>& ops_;
  const Rates& rates_;
  Result result_;
  std::vector<Wave> waves_;
  std::array<Simd, kSimds> simds_;
  u64 lds_in_[2] = {0, 0}, lds_out_[2] = {0, 0}, bank_free_ = 0, memory_busy_ = 0;
  InFlight memory_queue_, lds_queue_[2];
  std::deque<std::pair<u64, u64>> loads_;  // end and bytes, in the order of their beginning
  u64 in_flight_ = 0;
  double level_free_[3] = {0, 0, 0}, owed_[3] = {0, 0, 0};
  using Landing = std::pair<u64, u64>;
  std::priority_queue<Landing, std::vector<Landing>, std::greater<>> landing_;
};

}  // namespace

Result replay(const std::vector<Op>& ops, const std::vector<WaveSteps>& waves, const Rates& rates) {
  return Replay(ops, waves, rates).run();
}

}  // namespace amdsim::timing
