// ldmatrix, stmatrix (sm_90) and movmatrix: 8x8 matrices of 16-bit elements between shared memory and registers.
// Lane l gives the address of row l % 8 of matrix l / 8; it holds elements 2 * (l % 4) and + 1 of row l / 4, or of
// column l / 4 with Transposed.
#pragma once
#include "base.cuh"

namespace ww::ptx {

template <bool Transposed> struct transposed { static constexpr char text[] = ""; };
template <> struct transposed<true> { static constexpr char text[] = ".trans"; };

template <bool Transposed = false> DEVICE void ldmatrix(u32 (&x)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4%5.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address), "C"(transposed<Transposed>::text)
               : "memory");
}
template <bool Transposed = false> DEVICE void ldmatrix(u32 (&x)[2], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2%3.shared.b16 {%0,%1}, [%2];"
               : "=r"(x[0]), "=r"(x[1])
               : "r"(address), "C"(transposed<Transposed>::text)
               : "memory");
}
template <bool Transposed = false> DEVICE void ldmatrix(u32 (&x)[1], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1%2.shared.b16 {%0}, [%1];"
               : "=r"(x[0])
               : "r"(address), "C"(transposed<Transposed>::text)
               : "memory");
}

template <bool Transposed = false> DEVICE void stmatrix(u32 address, const u32 (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4%5.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(x[0]),
               "r"(x[1]), "r"(x[2]), "r"(x[3]), "C"(transposed<Transposed>::text)
               : "memory");
}
template <bool Transposed = false> DEVICE void stmatrix(u32 address, const u32 (&x)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2%3.shared.b16 [%0], {%1,%2};" ::"r"(address), "r"(x[0]), "r"(x[1]),
               "C"(transposed<Transposed>::text)
               : "memory");
}
template <bool Transposed = false> DEVICE void stmatrix(u32 address, const u32 (&x)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1%2.shared.b16 [%0], {%1};" ::"r"(address), "r"(x[0]),
               "C"(transposed<Transposed>::text)
               : "memory");
}

// The transpose of an 8x8 matrix that a warp holds.
DEVICE u32 movmatrix(u32 x) {
  u32 y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

}  // namespace ww::ptx
