// mma.sync m16n8kK: D = A B + D in registers of one warp (PTX ISA, "Matrix Fragments for mma").
#pragma once
#include "base.cuh"

namespace ww::ptx {

// A and B in formats of one size; A has 4 registers and B 2 (32 bytes of k), or A 2 and B 1 (16 bytes of k).
// fp8 needs sm_89.
template <Format A, Format B> DEVICE void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k%10.row.col.f32.%11.%12.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "n"(32 / spelling<A>::bytes),
        "C"(spelling<A>::text), "C"(spelling<B>::text));
}
template <Format A, Format B> DEVICE void mma(float (&d)[4], const u32 (&a)[2], const u32 (&b)[1]) {
  asm("mma.sync.aligned.m16n8k%7.row.col.f32.%8.%9.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "n"(16 / spelling<A>::bytes), "C"(spelling<A>::text),
        "C"(spelling<B>::text));
}
template <Format A, Format B> DEVICE void mma(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.%10.%11.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "C"(spelling<A>::text),
        "C"(spelling<B>::text));
}
template <Format A, Format B> DEVICE void mma(int (&d)[4], const u32 (&a)[2], const u32 (&b)[1]) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.%7.%8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "C"(spelling<A>::text), "C"(spelling<B>::text));
}

// The bits of an f32 rounded to tf32, to nearest with ties away from zero.
DEVICE u32 to_tf32(u32 x) {
  u32 y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(bits<float>(x)));
  return y;
}

// f16 accumulators: 2 registers of pairs.
DEVICE void mma_f16(u32 (&d)[2], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace ww::ptx
