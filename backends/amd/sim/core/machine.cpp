#include "machine.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "executor.hpp"
#include "registry.hpp"
#include "workgroup.hpp"

namespace amdsim {
namespace {

// What a runtime adds per lane for calls whose depth the compiler does not know.
constexpr u32 kDynamicStack = 16 * 1024;

// Registers of the waves in flight on one host thread, reused from workgroup to workgroup.
struct Arena {
  std::vector<u32> storage;
  std::vector<ByteMask> undef;
  u32* rows(std::size_t waves) {
    storage.resize(waves * kRows * kLanes + 16);
    undef.resize(waves * kRows);
    auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return storage.data() + ((64 - address % 64) % 64) / 4;
  }
};

void init_vgprs(Wave& w, const LaunchConfig& config, const Kernel& k) {
  for (u32 r = 0; r < kRows; ++r)
    for (u64& b : w.vundef[r].b) b = kAllLanes;
  const u32 total = config.block[0] * config.block[1] * config.block[2];
  for (u32 l = 0; l < kLanes; ++l) {
    const u32 flat = static_cast<u32>(w.id) * kLanes + l;
    const u32 x = flat % config.block[0], y = flat / config.block[0] % config.block[1],
              z = flat / config.block[0] / config.block[1];
    w.v[0][l] = x | (k.workitem_dims > 0 ? y << 10 : 0) | (k.workitem_dims > 1 ? z << 20 : 0);
  }
  w.vundef[0] = {};
  const u32 left = total - static_cast<u32>(w.id) * kLanes;
  w.set_exec(left >= 64 ? kAllLanes : (1ull << left) - 1);
}

void init_sgprs(Wave& w, const Launch& launch, const Workgroup& group) {
  const Kernel& k = *launch.kernel;
  std::fill(std::begin(w.sundef), std::end(w.sundef), ~0u);
  int next = 0;
  auto put = [&](u32 value) { w.sgpr[next] = value, w.sundef[next] = 0, ++next; };
  auto put64 = [&](u64 value) { put(u32(value)), put(u32(value >> 32)); };
  if (k.dispatch_ptr) put64(launch.dispatch_address);
  if (k.queue_ptr) put64(launch.queue_address);
  if (k.kernarg_ptr) put64(launch.kernarg_address);
  if (k.dispatch_id) put64(0);
  if (k.private_size) put(k.private_segment);
  for (u32 i = 0; i < k.preload_length; ++i) {
    const u32 at = 4 * (k.preload_offset + i);
    u32 value = 0;
    if (at + 4 <= launch.kernarg.size()) std::memcpy(&value, launch.kernarg.data() + at, 4);
    put(value);
  }
  next = static_cast<int>(k.user_sgprs);
  if (k.id_x) put(group.id[0]);
  if (k.id_y) put(group.id[1]);
  if (k.id_z) put(group.id[2]);
  if (k.group_info) put(0);
  w.sundef[sreg::kExec] = w.sundef[sreg::kExec + 1] = 0;
}

void init_wave(Wave& w, Workgroup& group, const Launch& launch, int id) {
  const Kernel& k = *launch.kernel;
  w.group = &group, w.program = launch.program, w.id = id, w.checks = launch.checks;
  w.mode = {k.round32, k.round64, k.denorm32, k.denorm64, k.dx10_clamp, k.ieee, k.fp16_ovfl};
  w.limits = u64(k.vgprs) | u64(k.agprs) << 16 | u64(k.sgprs) << 32;
  w.next_pc = k.entry;
  init_sgprs(w, launch, group);
  init_vgprs(w, *launch.config, k);
  const u32 stack = k.dynamic_stack ? kDynamicStack : 0;
  const u32 dwords = (k.private_segment + stack + 3) / 4;
  w.scratch.assign(std::size_t(dwords) * kLanes, 0);
  w.scratch_undef.assign(dwords, ByteMask{{kAllLanes, kAllLanes, kAllLanes, kAllLanes}});
}

void build_group(Workgroup& group, const Launch& launch, GlobalMemory& memory, Arena& arena, u64 linear) {
  const u32* grid = launch.config->grid;
  group.launch = &launch, group.memory = &memory, group.linear_id = linear;
  group.id[0] = static_cast<u32>(linear % grid[0]);
  group.id[1] = static_cast<u32>(linear / grid[0] % grid[1]);
  group.id[2] = static_cast<u32>(linear / grid[0] / grid[1]);
  if (launch.trace && launch.trace->group == linear) group.trace = launch.trace;
  if (launch.recordings)
    for (Recording& r : *launch.recordings)
      if (r.group == linear) group.recording = &r;
  group.lds.assign(launch.lds_bytes, 0);
  group.lds_undef.assign(launch.lds_bytes, 1);
  group.rng.seed(launch.config->seed * 0x9e3779b97f4a7c15ull + linear);
  group.explore = launch.config->seed != 0;
  if (launch.waves_per_group > 1 && launch.checks >> static_cast<int>(Check::LdsRace) & 1) {
    group.lds_written.assign(launch.lds_bytes, 0);
    group.lds_read.assign(launch.lds_bytes, 0);
  }
  group.waves = std::vector<Wave>(launch.waves_per_group);
  u32* rows = arena.rows(launch.waves_per_group);
  for (u32 i = 0; i < launch.waves_per_group; ++i) {
    Wave& w = group.waves[i];
    w.v = reinterpret_cast<Row*>(rows + std::size_t(i) * kRows * kLanes);
    w.vundef = arena.undef.data() + std::size_t(i) * kRows;
    init_wave(w, group, launch, static_cast<int>(i));
  }
}

void validate(const Launch& launch, const Target& target) {
  const LaunchConfig& c = *launch.config;
  const u64 block = u64(c.block[0]) * c.block[1] * c.block[2];
  if (block == 0 || block > 1024) throw LoadError("a workgroup has 1 to 1024 work-items, not " + std::to_string(block));
  if (launch.lds_bytes > target.lds_bytes)
    throw LoadError("the workgroup needs " + std::to_string(launch.lds_bytes) + " bytes of LDS; " + std::string(target.name) +
                    " has " + std::to_string(target.lds_bytes));
}

class Runner {
 public:
  Runner(Launch& launch, GlobalMemory& memory) : launch_(launch), memory_(memory) {
    const u32* g = launch.config->grid;
    total_ = u64(g[0]) * g[1] * g[2];
    if (!launch.config->record_groups.empty()) chosen_ = launch.config->record_groups, total_ = chosen_.size();
  }

  Counts run(int threads) {
    merged_.insts.resize(launch_.program->code.size());
    if (launch_.ordered) {
      run_in_turn();
      if (error_) std::rethrow_exception(error_);
      return std::move(merged_);
    }
    std::vector<std::thread> pool;
    for (int t = 1; t < threads; ++t) pool.emplace_back([this] { worker(); });
    worker();
    for (auto& t : pool) t.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(merged_);
  }

 private:
  void worker() {
    Arena arena;
    Counts counts;
    counts.insts.resize(launch_.program->code.size());
    for (u64 id; (id = next_.fetch_add(1)) < std::min(total_, stop_.load());) {
      try {
        Workgroup group;
        group.counts = &counts;
        build_group(group, launch_, memory_, arena, nth(id));
        run_workgroup(group, ~0ull);
        ++counts.workgroups, counts.waves += group.waves.size();
      } catch (...) {
        fail(id);
      }
    }
    merge(counts);
  }
  // Workgroups that may wait for each other: some in flight, each for a slice in turn, on one thread. The seed
  // permutes the order in which they start.
  void run_in_turn() {
    constexpr std::size_t kInFlight = 64;
    Counts counts;
    counts.insts.resize(launch_.program->code.size());
    const std::vector<u64> order = start_order();
    u64 next = 0;
    try {
      while (next < total_ || !flying_.empty()) {
        while (next < total_ && flying_.size() < kInFlight) start(order[next++], counts);
        take_turns(counts);
      }
    } catch (...) {
      fail(0);
    }
    flying_.clear();
    merge(counts);
  }

  u64 nth(u64 i) const { return chosen_.empty() ? i : chosen_[i]; }

  std::vector<u64> start_order() const {
    std::vector<u64> order(total_);
    for (u64 i = 0; i < total_; ++i) order[i] = nth(i);
    std::mt19937_64 rng(launch_.config->seed);
    if (launch_.config->seed) std::shuffle(order.begin(), order.end(), rng);
    return order;
  }

  void start(u64 id, Counts& counts) {
    Flight& f = flying_.emplace_back();
    f.group.counts = &counts;
    build_group(f.group, launch_, memory_, f.arena, id);
    if (finish(f.group, counts)) flying_.pop_back();
  }

  void take_turns(Counts& counts) {
    const u64 before = progress();
    const std::size_t groups = flying_.size();
    for (auto f = flying_.begin(); f != flying_.end();) f = finish(f->group, counts) ? flying_.erase(f) : std::next(f);
    idle_ = flying_.size() == groups && progress() == before ? idle_ + kSlice * groups : 0;
    if (idle_ > kStuckAfter && !flying_.empty()) report_stuck(flying_.front().group);
  }

  u64 progress() const {
    u64 sum = 0;
    for (const Flight& f : flying_) sum += f.group.progress;
    return sum;
  }

  static bool finish(Workgroup& group, Counts& counts) {
    if (!run_workgroup(group, kSlice)) return false;
    ++counts.workgroups, counts.waves += group.waves.size();
    return true;
  }
  // The violation of the lowest workgroup wins, so that the report does not depend on the threads.
  void fail(u64 id) {
    std::lock_guard lock(mutex_);
    if (error_ && id > failed_) return;
    error_ = std::current_exception(), failed_ = id, stop_ = id;
  }
  void merge(const Counts& c) {
    std::lock_guard lock(mutex_);
    merged_.waves += c.waves, merged_.workgroups += c.workgroups, merged_.barriers += c.barriers;
    for (std::size_t i = 0; i < c.insts.size(); ++i) {
      InstCounts& to = merged_.insts[i];
      const InstCounts& from = c.insts[i];
      to.executed += from.executed, to.active_lanes += from.active_lanes, to.bytes += from.bytes, to.lines += from.lines;
      to.lds_cycles += from.lds_cycles, to.lds_ideal += from.lds_ideal;
    }
  }

  struct Flight {
    Workgroup group;
    Arena arena;
  };
  static constexpr u64 kSlice = 1u << 16;

  Launch& launch_;
  GlobalMemory& memory_;
  std::list<Flight> flying_;
  u64 idle_ = 0;
  u64 total_ = 0;
  std::vector<u64> chosen_;  // the workgroups that run, when not all do
  std::atomic<u64> next_{0}, stop_{~0ull};
  std::mutex mutex_;
  std::exception_ptr error_;
  u64 failed_ = ~0ull;
  Counts merged_;
};

// Atomics and device-scope accesses anywhere in the code make the order of workgroups matter.
bool communicates(const Program& program, const Kernel& kernel) {
  u32 end = static_cast<u32>(program.code.size());
  bool calls = false;
  for (const auto& [name, other] : program.kernels)
    if (other.entry > kernel.entry) end = std::min(end, other.entry);
  auto any = [&](u32 from, u32 to, auto&& test) { return std::any_of(program.code.begin() + from, program.code.begin() + to, test); };
  calls = any(kernel.entry, end, [](const Inst& i) { return std::strncmp(i.desc->name, "s_swappc", 8) == 0 || std::strncmp(i.desc->name, "s_setpc", 7) == 0; });
  auto shared = [](const Inst& i) { return (i.flags & kAtomic && i.flags & (kVmem | kSmem)) || i.mod.sc1 || (i.flags & kSmem && i.mod.sc0); };
  return calls ? any(0, static_cast<u32>(program.code.size()), shared) : any(kernel.entry, end, shared);
}

// Waves per SIMD that registers and LDS allow (amd.md section 5: one pool of 512 registers, at most 8 waves).
int occupancy(const Kernel& k, const Target& t, u32 lds_bytes, u32 waves_per_group) {
  const u32 registers = (k.vgprs + k.agprs + 7) / 8 * 8;
  const u32 by_registers = std::min(8u, 512u / std::max(8u, registers));
  if (!lds_bytes) return static_cast<int>(by_registers);
  const u32 granules = (lds_bytes + t.lds_granule - 1) / t.lds_granule * t.lds_granule;
  const u32 by_lds = (t.lds_bytes / granules * waves_per_group + 3) / 4;
  return static_cast<int>(std::min(by_registers, by_lds));
}

// Hidden arguments of code object v5/v6, 8-aligned after the explicit ones (AMDGPUUsage, "Implicit Kernel Arguments").
void append_implicit(std::vector<u8>& kernarg, const LaunchConfig& c, std::size_t needed) {
  const std::size_t base = (kernarg.size() + 7) / 8 * 8;
  kernarg.resize(std::max(needed, base + 256));
  u8* p = kernarg.data() + base;
  int dims = 1;
  for (int i = 0; i < 3; ++i) {
    const u16 size = static_cast<u16>(c.block[i]);
    std::memcpy(p + 4 * i, &c.grid[i], 4);
    std::memcpy(p + 12 + 2 * i, &size, 2);
    if (c.grid[i] > 1 || c.block[i] > 1) dims = i + 1;
  }
  const u16 grid_dims = static_cast<u16>(dims);
  std::memcpy(p + 64, &grid_dims, 2);
  std::memcpy(p + 120, &c.dynamic_lds, 4);
  const u32 shared = u32(kSharedAperture >> 32), priv = u32(kPrivateAperture >> 32);
  std::memcpy(p + 192, &priv, 4);
  std::memcpy(p + 196, &shared, 4);
}

// hsa_kernel_dispatch_packet_t: what the dispatch pointer in user SGPRs leads to (HSA runtime specification, 2.9).
void fill_dispatch_packet(Launch& launch) {
  const LaunchConfig& c = *launch.config;
  launch.dispatch.assign(64, 0);
  auto put = [&](std::size_t at, auto value) { std::memcpy(launch.dispatch.data() + at, &value, sizeof value); };
  u16 dims = 1;
  for (u32 i = 0; i < 3; ++i) {
    put(4 + 2 * i, static_cast<u16>(c.block[i]));
    put(12 + 4 * i, c.grid[i] * c.block[i]);
    if (c.grid[i] * c.block[i] > 1) dims = static_cast<u16>(i + 1);
  }
  put(2, dims);
  put(24, launch.kernel->private_segment);
  put(28, launch.lds_bytes);
  put(40, launch.kernarg_address);
}

// Memory that exists for the time of one launch.
class LaunchMemory {
 public:
  explicit LaunchMemory(GlobalMemory& memory) : memory_(memory) {}
  ~LaunchMemory() {
    for (u64 address : mapped_) memory_.unmap(address);
  }
  u64 map(std::vector<u8>& bytes, const char* name) {
    return mapped_.emplace_back(memory_.map(bytes.data(), bytes.size(), name, false));
  }

 private:
  GlobalMemory& memory_;
  std::vector<u64> mapped_;
};

}  // namespace

void Machine::load(Program& program) {
  for (std::size_t i = 0; i < program.sections.size(); ++i) {
    DataSection& s = program.sections[i];
    memory_.map_at(program.section_base[i], s.bytes.data(), s.bytes.size(), s.name, s.writable);
  }
}

void Machine::unload(Program& program) {
  for (u64 base : program.section_base) memory_.unmap(base);
}

Report Machine::launch(const Program& program, const LaunchConfig& config) {
  auto found = program.kernels.find(config.kernel);
  if (found == program.kernels.end()) throw LoadError("no kernel '" + config.kernel + "' in the program");
  Launch launch;
  launch.program = &program, launch.kernel = &found->second, launch.config = &config, launch.memory = &memory_;
  launch.checks = ((1u << kChecks) - 1) & ~config.relaxed;
  launch.lds_bytes = found->second.group_segment + config.dynamic_lds;
  launch.waves_per_group = (config.block[0] * config.block[1] * config.block[2] + 63) / 64;
  launch.kernarg = config.kernarg;
  append_implicit(launch.kernarg, config, found->second.kernarg_size);
  validate(launch, target_);
  SyncClock sync;
  launch.sync = &sync;
  launch.lds_dma = std::any_of(program.code.begin(), program.code.end(), [](const Inst& i) { return i.flags & kLdsDma; });
  launch.ordered = communicates(program, found->second);
  launch.track_global = u64(config.grid[0]) * config.grid[1] * config.grid[2] * launch.waves_per_group > 1;
  LaunchMemory own(memory_);
  launch.kernarg_address = own.map(launch.kernarg, "kernel arguments");
  fill_dispatch_packet(launch);
  launch.dispatch_address = own.map(launch.dispatch, "dispatch packet");
  memory_.reset_shadows();

  Report report;
  if (config.trace_group >= 0) {
    report.trace = {static_cast<u64>(config.trace_group), config.trace_wave, {}};
    launch.trace = &report.trace;
  }
  for (u64 group : config.record_groups)
    report.recordings.push_back({group, std::vector<std::vector<Step>>(launch.waves_per_group)});
  if (!report.recordings.empty()) launch.recordings = &report.recordings;
  const auto start = std::chrono::steady_clock::now();
  const u64 groups = u64(config.grid[0]) * config.grid[1] * config.grid[2];
  int threads = config.threads > 0 ? config.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = static_cast<int>(std::min<u64>(static_cast<u64>(threads), std::max<u64>(1, groups)));
  report.counts = Runner(launch, memory_).run(threads);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.kernel = config.kernel, report.target = target_.name;
  for (const InstCounts& c : report.counts.insts) report.instructions += c.executed;
  report.vgprs = found->second.vgprs, report.agprs = found->second.agprs, report.sgprs = found->second.sgprs;
  report.lds_bytes = launch.lds_bytes, report.scratch_bytes = found->second.private_segment;
  report.waves_per_group = launch.waves_per_group;
  report.occupancy_waves_per_simd = occupancy(found->second, target_, launch.lds_bytes, launch.waves_per_group);
  return report;
}

}  // namespace amdsim
