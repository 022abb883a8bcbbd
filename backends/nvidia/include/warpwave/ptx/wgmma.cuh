// wgmma m64nNkK (sm_90a): D = A B + D for one warpgroup, D in registers, B in shared memory, A in either.
// D has N / 2 registers: 4 j + 2 h + e is row lane / 4 + 8 h of the warp's 16, column 8 j + 2 (lane % 4) + e.
// PTX takes register lists only as text, so the lists for each N are built by the preprocessor.
#pragma once
#include "base.cuh"

namespace ww::ptx {

// What follows the operands: signs (always +1) and, for 16-bit formats, which operands are MN-major.
template <Format F, int Ta, int Tb> struct wgmma_tail { static constexpr char text[] = ", 1, 1"; };
#define WW_TAIL(F) \
  template <> struct wgmma_tail<F, 0, 0> { static constexpr char text[] = ", 1, 1, 0, 0"; }; \
  template <> struct wgmma_tail<F, 0, 1> { static constexpr char text[] = ", 1, 1, 0, 1"; }; \
  template <> struct wgmma_tail<F, 1, 0> { static constexpr char text[] = ", 1, 1, 1, 0"; }; \
  template <> struct wgmma_tail<F, 1, 1> { static constexpr char text[] = ", 1, 1, 1, 1"; };
WW_TAIL(BF16)
WW_TAIL(F16)
#undef WW_TAIL
template <> struct wgmma_tail<S8, 0, 0> { static constexpr char text[] = ""; };
template <> struct wgmma_tail<U8, 0, 0> { static constexpr char text[] = ""; };
// The same with A in registers: its layout is fixed.
template <Format F, int Tb> struct wgmma_register_tail { static constexpr char text[] = ", 1, 1"; };
template <> struct wgmma_register_tail<BF16, 0> { static constexpr char text[] = ", 1, 1, 0"; };
template <> struct wgmma_register_tail<BF16, 1> { static constexpr char text[] = ", 1, 1, 1"; };
template <> struct wgmma_register_tail<F16, 0> { static constexpr char text[] = ", 1, 1, 0"; };
template <> struct wgmma_register_tail<F16, 1> { static constexpr char text[] = ", 1, 1, 1"; };
template <> struct wgmma_register_tail<S8, 0> { static constexpr char text[] = ""; };
template <> struct wgmma_register_tail<U8, 0> { static constexpr char text[] = ""; };

// The names of the registers of D, and the operands behind them.
#define WW_D8 "%0,%1,%2,%3"
#define WW_D16 WW_D8 ",%4,%5,%6,%7"
#define WW_D24 WW_D16 ",%8,%9,%10,%11"
#define WW_D32 WW_D24 ",%12,%13,%14,%15"
#define WW_D40 WW_D32 ",%16,%17,%18,%19"
#define WW_D48 WW_D40 ",%20,%21,%22,%23"
#define WW_D56 WW_D48 ",%24,%25,%26,%27"
#define WW_D64 WW_D56 ",%28,%29,%30,%31"
#define WW_D72 WW_D64 ",%32,%33,%34,%35"
#define WW_D80 WW_D72 ",%36,%37,%38,%39"
#define WW_D88 WW_D80 ",%40,%41,%42,%43"
#define WW_D96 WW_D88 ",%44,%45,%46,%47"
#define WW_D104 WW_D96 ",%48,%49,%50,%51"
#define WW_D112 WW_D104 ",%52,%53,%54,%55"
#define WW_D120 WW_D112 ",%56,%57,%58,%59"
#define WW_D128 WW_D120 ",%60,%61,%62,%63"
#define WW_D136 WW_D128 ",%64,%65,%66,%67"
#define WW_D144 WW_D136 ",%68,%69,%70,%71"
#define WW_D152 WW_D144 ",%72,%73,%74,%75"
#define WW_D160 WW_D152 ",%76,%77,%78,%79"
#define WW_D168 WW_D160 ",%80,%81,%82,%83"
#define WW_D176 WW_D168 ",%84,%85,%86,%87"
#define WW_D184 WW_D176 ",%88,%89,%90,%91"
#define WW_D192 WW_D184 ",%92,%93,%94,%95"
#define WW_D200 WW_D192 ",%96,%97,%98,%99"
#define WW_D208 WW_D200 ",%100,%101,%102,%103"
#define WW_D216 WW_D208 ",%104,%105,%106,%107"
#define WW_D224 WW_D216 ",%108,%109,%110,%111"
#define WW_D232 WW_D224 ",%112,%113,%114,%115"
#define WW_D240 WW_D232 ",%116,%117,%118,%119"
#define WW_D248 WW_D240 ",%120,%121,%122,%123"
#define WW_D256 WW_D248 ",%124,%125,%126,%127"
#define WW_O8(c, d) c(d[0]), c(d[1]), c(d[2]), c(d[3])
#define WW_O16(c, d) WW_O8(c, d), c(d[4]), c(d[5]), c(d[6]), c(d[7])
#define WW_O24(c, d) WW_O16(c, d), c(d[8]), c(d[9]), c(d[10]), c(d[11])
#define WW_O32(c, d) WW_O24(c, d), c(d[12]), c(d[13]), c(d[14]), c(d[15])
#define WW_O40(c, d) WW_O32(c, d), c(d[16]), c(d[17]), c(d[18]), c(d[19])
#define WW_O48(c, d) WW_O40(c, d), c(d[20]), c(d[21]), c(d[22]), c(d[23])
#define WW_O56(c, d) WW_O48(c, d), c(d[24]), c(d[25]), c(d[26]), c(d[27])
#define WW_O64(c, d) WW_O56(c, d), c(d[28]), c(d[29]), c(d[30]), c(d[31])
#define WW_O72(c, d) WW_O64(c, d), c(d[32]), c(d[33]), c(d[34]), c(d[35])
#define WW_O80(c, d) WW_O72(c, d), c(d[36]), c(d[37]), c(d[38]), c(d[39])
#define WW_O88(c, d) WW_O80(c, d), c(d[40]), c(d[41]), c(d[42]), c(d[43])
#define WW_O96(c, d) WW_O88(c, d), c(d[44]), c(d[45]), c(d[46]), c(d[47])
#define WW_O104(c, d) WW_O96(c, d), c(d[48]), c(d[49]), c(d[50]), c(d[51])
#define WW_O112(c, d) WW_O104(c, d), c(d[52]), c(d[53]), c(d[54]), c(d[55])
#define WW_O120(c, d) WW_O112(c, d), c(d[56]), c(d[57]), c(d[58]), c(d[59])
#define WW_O128(c, d) WW_O120(c, d), c(d[60]), c(d[61]), c(d[62]), c(d[63])
#define WW_O136(c, d) WW_O128(c, d), c(d[64]), c(d[65]), c(d[66]), c(d[67])
#define WW_O144(c, d) WW_O136(c, d), c(d[68]), c(d[69]), c(d[70]), c(d[71])
#define WW_O152(c, d) WW_O144(c, d), c(d[72]), c(d[73]), c(d[74]), c(d[75])
#define WW_O160(c, d) WW_O152(c, d), c(d[76]), c(d[77]), c(d[78]), c(d[79])
#define WW_O168(c, d) WW_O160(c, d), c(d[80]), c(d[81]), c(d[82]), c(d[83])
#define WW_O176(c, d) WW_O168(c, d), c(d[84]), c(d[85]), c(d[86]), c(d[87])
#define WW_O184(c, d) WW_O176(c, d), c(d[88]), c(d[89]), c(d[90]), c(d[91])
#define WW_O192(c, d) WW_O184(c, d), c(d[92]), c(d[93]), c(d[94]), c(d[95])
#define WW_O200(c, d) WW_O192(c, d), c(d[96]), c(d[97]), c(d[98]), c(d[99])
#define WW_O208(c, d) WW_O200(c, d), c(d[100]), c(d[101]), c(d[102]), c(d[103])
#define WW_O216(c, d) WW_O208(c, d), c(d[104]), c(d[105]), c(d[106]), c(d[107])
#define WW_O224(c, d) WW_O216(c, d), c(d[108]), c(d[109]), c(d[110]), c(d[111])
#define WW_O232(c, d) WW_O224(c, d), c(d[112]), c(d[113]), c(d[114]), c(d[115])
#define WW_O240(c, d) WW_O232(c, d), c(d[116]), c(d[117]), c(d[118]), c(d[119])
#define WW_O248(c, d) WW_O240(c, d), c(d[120]), c(d[121]), c(d[122]), c(d[123])
#define WW_O256(c, d) WW_O248(c, d), c(d[124]), c(d[125]), c(d[126]), c(d[127])

// For one N and one type of D; a0, ... are the numbers of the operands after D's.
#define WW_WGMMA_FORMS(N, T, D, c, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
  template <Format A, Format B, int Ta, int Tb> \
  DEVICE void wgmma(T (&d)[N / 2], u64 a, u64 b, int accumulate) { \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #a2 ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k%" #a3 "." D ".%" #a4 ".%" #a5 " {" WW_D##N "}, %" #a0 \
                 ", %" #a1 ", p%" #a6 ";}\n" \
                 : WW_O##N(c, d) \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(32 / spelling<A>::bytes), "C"(spelling<A>::text), \
                   "C"(spelling<B>::text), "C"(wgmma_tail<A, Ta, Tb>::text)); \
  } \
  template <Format A, Format B, int Tb> \
  DEVICE void wgmma(T (&d)[N / 2], const u32 (&a)[4], u64 b, int accumulate) { \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #a5 ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k%" #a6 "." D ".%" #a7 ".%" #a8 " {" WW_D##N "}, {%" #a0 \
                 ",%" #a1 ",%" #a2 ",%" #a3 "}, %" #a4 ", p%" #a9 ";}\n" \
                 : WW_O##N(c, d) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), \
                   "n"(32 / spelling<A>::bytes), "C"(spelling<A>::text), "C"(spelling<B>::text), \
                   "C"(wgmma_register_tail<A, Tb>::text)); \
  }
#define WW_WGMMA(N, ...) \
  WW_WGMMA_FORMS(N, float, "f32", "+f", __VA_ARGS__) \
  WW_WGMMA_FORMS(N, int, "s32", "+r", __VA_ARGS__)

WW_WGMMA(8, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
WW_WGMMA(16, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)
WW_WGMMA(24, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)
WW_WGMMA(32, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26)
WW_WGMMA(40, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
WW_WGMMA(48, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34)
WW_WGMMA(56, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38)
WW_WGMMA(64, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42)
WW_WGMMA(72, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46)
WW_WGMMA(80, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50)
WW_WGMMA(88, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54)
WW_WGMMA(96, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58)
WW_WGMMA(104, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62)
WW_WGMMA(112, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66)
WW_WGMMA(120, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70)
WW_WGMMA(128, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74)
WW_WGMMA(136, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78)
WW_WGMMA(144, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82)
WW_WGMMA(152, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86)
WW_WGMMA(160, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90)
WW_WGMMA(168, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94)
WW_WGMMA(176, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98)
WW_WGMMA(184, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102)
WW_WGMMA(192, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106)
WW_WGMMA(200, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110)
WW_WGMMA(208, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114)
WW_WGMMA(216, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118)
WW_WGMMA(224, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122)
WW_WGMMA(232, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126)
WW_WGMMA(240, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130)
WW_WGMMA(248, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134)
WW_WGMMA(256, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138)
#undef WW_WGMMA
#undef WW_WGMMA_FORMS


// Registers written before are seen by the next wgmma; and shared memory written before, by asynchronous readers.
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// -- descriptors of operands in shared memory ------------------------------------------------------------------
// Swizzled panels of S bytes by `rows`, as kittens::st lays them out. Offsets count 16 bytes.

DEVICE constexpr u64 wgmma_descriptor(u32 address, u32 leading, u32 stride, int swizzle_bytes) {
  u64 mode = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : 3;
  return (u64)((address & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | mode << 62;
}

}  // namespace ww::ptx
