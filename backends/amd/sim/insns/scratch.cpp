#include "../core/registry.hpp"

namespace amdsim {

void register_scratch(Registry&) {}

}  // namespace amdsim
