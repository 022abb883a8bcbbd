#include "../core/registry.hpp"

namespace amdsim {

void register_ds(Registry&) {}

}  // namespace amdsim
