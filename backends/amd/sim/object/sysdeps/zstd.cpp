// Stand-in for ROCm's zstd, for the same reason as z.cpp. Each call fails as zstd would (zstd.h, zstd_errors.h).
#include <cstddef>

namespace {
constexpr std::size_t kError = static_cast<std::size_t>(-1);  // ZSTD_error_GENERIC
}

extern "C" {
std::size_t ZSTD_CCtx_setParameter(void*, int, int) { return kError; }
std::size_t ZSTD_compress2(void*, void*, std::size_t, const void*, std::size_t) { return kError; }
std::size_t ZSTD_compressBound(std::size_t size) { return size; }
void* ZSTD_createCCtx() { return nullptr; }
std::size_t ZSTD_decompress(void*, std::size_t, const void*, std::size_t) { return kError; }
std::size_t ZSTD_freeCCtx(void*) { return 0; }
const char* ZSTD_getErrorName(std::size_t) { return "compression is not available in the simulator's disassembler"; }
unsigned ZSTD_isError(std::size_t code) { return code > static_cast<std::size_t>(-120); }
}
