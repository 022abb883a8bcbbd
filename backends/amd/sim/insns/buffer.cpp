#include "../core/registry.hpp"

namespace amdsim {

void register_buffer(Registry&) {}

}  // namespace amdsim
