#include "../core/registry.hpp"

namespace amdsim {

void register_salu(Registry&) {}

}  // namespace amdsim
