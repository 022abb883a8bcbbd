// Clang offload bundles (clang documentation, "Clang Offload Bundler"): picks one target's code object.
#pragma once

#include <string>

#include "bytes.hpp"

namespace amdsim::object {

/// `data` itself when it is an ELF file; the entry for `target` ("gfx950") when it is an offload bundle.
/// An empty target takes the only device entry.
Bytes unbundle(Bytes data, std::string_view target);

/// The bytes from `start` that a code object or bundle in memory covers, read from its own headers: the HIP API passes
/// images without a size.
std::size_t extent(const std::uint8_t* start);

}  // namespace amdsim::object
