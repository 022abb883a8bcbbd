// What the timing model knows of one instruction, and the rates of a compute unit that it is held against.
#pragma once

#include <string>
#include <vector>

#include "../core/inst.hpp"

namespace amdsim::timing {

// The port that an instruction is issued to; in a slot of a SIMD each port takes one instruction.
enum class Unit : u8 { Valu, Matrix, Salu, ScalarMemory, Memory, Lds, Branch, Internal };
inline constexpr int kUnits = 8;

// Instructions that the sequencer itself carries out.
enum class Control : u8 { None, Wait, Barrier, Idle, Sleep, Priority, End };

struct Op {
  Unit unit = Unit::Internal;
  Control control = Control::None;
  u32 flags = 0;
  u32 imm = 0;             // s_nop, s_sleep, s_setprio
  u32 vm_left = 63, lgkm_left = 15;  // s_waitcnt
  u32 busy = 4;            // clocks of the vector port or of the matrix core
  u32 result = 4;          // clocks from issue until an ordinary consumer may issue
  u32 valu_hold = 0;       // matrix: clocks from issue until another vector instruction may issue on the SIMD
  u32 packed_hold = 0;     // matrix: the same for packed f32 and dot products
  bool packed = false;     // packed f32 or dot product
  bool to_lds = false;     // direct load from memory to LDS
  bool store = false;
  bool returns = true;     // LDS: data comes back
  std::vector<RegRange> reads, writes;
  RegRange accumulator;    // matrix: SrcC
};

// Clocks, and bytes a clock, of one compute unit; backends/amd/rates.py says where each comes from.
struct Rates {
  u32 matrix_result[17] = {};   // from an XDL's issue until its result may be used, by passes
  u32 other_matrix_result = 0;  // wait states beyond the passes of f32 and f64 forms
  u32 trans = 0;              // clocks of a transcendental
  u32 barrier = 0;            // from the last wave's arrival to the release
  u32 branch = 0;             // issue to issue over a taken branch
  u32 lds_latency = 0;        // beyond the clocks that address, banks and return path take
  u32 lds_in = 0, lds_out = 0;  // bytes a clock of a port of two SIMDs
  u32 lds_fill = 0;           // bytes a clock at which direct loads are written
  u32 scalar_latency = 0;
  u32 lds_queue = 1;          // LDS instructions of a port that have not been served
  u32 l1_latency = 0;         // scratch, which stays in the vector cache
  u32 l1_dword = 0, l1_wider = 0;  // clocks of the vector cache for an instruction of a dword a lane, and of more
  u32 memory_queue = 1;       // vector memory instructions of a CU that the cache has not begun
  u32 memory_flight = 0;      // bytes of loads that a CU has in flight at most
  double latency[3] = {0, 0, 0};    // L2, Infinity Cache, HBM
  double bandwidth[3] = {0, 0, 0};  // a compute unit's share, bytes a clock
  double served[3] = {1, 0, 0};     // by which level: fractions of the requests
};

// What the simulator tells of an instruction (Program.facts()).
struct Facts {
  std::string name;
  u32 flags = 0, passes = 0, operand_bytes = 0;
  i64 imm = 0;
  std::vector<RegRange> reads, writes;
  RegRange accumulator;
};

Op make_op(const Facts& facts, const Rates& rates);

}  // namespace amdsim::timing
