// Stand-in for ROCm's zlib. The libLLVM in the rocm-bindings-compiler wheel needs a library of this name, which the
// wheel does not bring; its disassembler never compresses anything. Each call fails as zlib would (zlib.h).
extern "C" {
int compress2(unsigned char*, unsigned long*, const unsigned char*, unsigned long, int) { return -2; }  // Z_STREAM_ERROR
unsigned long compressBound(unsigned long size) { return size; }
unsigned long crc32(unsigned long, const unsigned char*, unsigned) { return 0; }
int uncompress(unsigned char*, unsigned long*, const unsigned char*, unsigned long) { return -2; }
}
