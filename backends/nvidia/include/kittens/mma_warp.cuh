// Products of one warp by mma.sync, all operands in registers: d = a b + c. Operand layouts as in ThunderKittens: A in
// row layout (column for At), B in column layout (row for Bt), D and C in row layout.
#pragma once
#include "../warpwave/ptx/mma.cuh"
#include "register.cuh"

namespace kittens {

struct transpose {
  static constexpr int N = 0, T = 1;
};

namespace detail {

template <class T> struct format_of;
template <> struct format_of<bf16> { static constexpr auto value = ww::ptx::BF16; };
template <> struct format_of<half> { static constexpr auto value = ww::ptx::F16; };
template <> struct format_of<float> { static constexpr auto value = ww::ptx::TF32; };
template <> struct format_of<fp8e4m3> { static constexpr auto value = ww::ptx::E4M3; };
template <> struct format_of<fp8e5m2> { static constexpr auto value = ww::ptx::E5M2; };
template <> struct format_of<int8> { static constexpr auto value = ww::ptx::S8; };

// The registers of one base tile as an A operand, for k block `part` (f32 has two of 8 columns). The transpose of a
// tile in row layout is the same registers in column layout, so these serve for A and A^T.
template <class Base> DEVICE void a_registers(u32 (&a)[4], const Base &base, int part) {
  EACH(r, 4) {
    if constexpr (sizeof(typename Base::T) == 4) {
      // A k block of tf32: this lane's columns 2 (l % 4) and + 1 stand for l % 4 and l % 4 + 4, in A as in B.
      const auto &pair = base.data[r % 2 + 2 * part];
      a[r] = ww::bits<u32>(r / 2 ? pair.y : pair.x);
    } else {
      a[r] = ww::bits<u32>(base.data[r]);
    }
  }
}
// Columns 8 h on of B: the registers of its two k halves.
template <class Base> DEVICE void b_registers(u32 (&b)[2], const Base &base, int h, int part) {
  EACH(r, 2) {
    if constexpr (sizeof(typename Base::T) == 4) {
      const auto &pair = base.data[h + 2 * part];
      b[r] = ww::bits<u32>(r ? pair.y : pair.x);
    } else {
      b[r] = ww::bits<u32>(base.data[h + 2 * r]);
    }
  }
}

}  // namespace detail

template <int N> struct group_mma {};

template <> struct group_mma<1> {
  template <int TransA, int TransB, ducks::rt::row_layout D, ducks::rt::all A, ducks::rt::all B,
            ducks::rt::row_layout C>
  DEVICE static void mma(D &d, const A &a, const B &b, const C &c) {
    constexpr int steps = TransA ? A::height : A::width;
    static_assert((TransA ? A::cols : A::rows) == D::rows && (TransB ? B::rows : B::cols) == D::cols,
                  "D has A's rows and B's columns");
    static_assert((TransA ? A::rows : A::cols) == (TransB ? B::cols : B::rows), "A and B agree in k");
    static_assert(A::is_row == !TransA && B::is_row == (TransB == 1),
                  "A has row layout, B column layout; transposed, the other");
    static_assert(sizeof(typename A::T) == 2 || sizeof(typename A::T) == 4 || (!TransA && TransB),
                  "one-byte elements: A B^T only");
    static_assert(base_types::same<typename D::T, typename C::T>, "C and D have one type");
    d = c;
    EACH(i, D::height) EACH(j, D::width) EACH(k, steps) {
      // One-byte tiles have 16 rows of n and 32 columns of k.
      step<typename A::T, typename B::T>(d.tiles[i][j], a.tiles[TransA ? k : i][TransA ? i : k],
                                         b.tiles[TransB ? j : k][TransB ? k : j]);
    }
  }
#define KITTENS_PRODUCT(name, ta, tb) \
  template <class D, class A, class B, class C> \
  DEVICE static void mma_##name(D &d, const A &a, const B &b, const C &c) { \
    mma<ta, tb>(d, a, b, c); \
  } \
  template <class A, class B, class C> DEVICE static C mma_##name(const A &a, const B &b, const C &c) { \
    C d; \
    mma<ta, tb>(d, a, b, c); \
    return d; \
  }
  KITTENS_PRODUCT(AB, 0, 0)
  KITTENS_PRODUCT(ABt, 0, 1)
  KITTENS_PRODUCT(AtB, 1, 0)
  KITTENS_PRODUCT(AtBt, 1, 1)
#undef KITTENS_PRODUCT

 private:
  template <class TA, class TB, class Base, class Left, class Right>
  DEVICE static void step(Base &d, const Left &left, const Right &right) {
    constexpr int parts = sizeof(TA) == 4 ? 2 : 1;
    constexpr auto fa = detail::format_of<TA>::value, fb = detail::format_of<TB>::value;
    EACH(part, parts) {
      u32 ra[4];
      detail::a_registers(ra, left, part);
      EACH(h, 2) {
        u32 rb[2];
        detail::b_registers(rb, right, h, part);
        if constexpr (base_types::same<typename Base::T, half>) {
          u32 rd[2] = {ww::bits<u32>(d.data[2 * h]), ww::bits<u32>(d.data[2 * h + 1])};
          ww::ptx::mma_f16(rd, ra, rb);
          d.data[2 * h] = ww::bits<half_2>(rd[0]), d.data[2 * h + 1] = ww::bits<half_2>(rd[1]);
        } else {
          typename Base::T rd[4] = {d.data[2 * h].x, d.data[2 * h].y, d.data[2 * h + 1].x, d.data[2 * h + 1].y};
          ww::ptx::mma<fa, fb>(rd, ra, rb);
          d.data[2 * h] = {rd[0], rd[1]}, d.data[2 * h + 1] = {rd[2], rd[3]};
        }
      }
    }
  }
};

}  // namespace kittens
