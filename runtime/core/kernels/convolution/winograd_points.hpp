// From tiles to points and back, after Winograd, in one direction at a time. Narrow tiles have the
// first points, all but two; the filter is the same for them.
#if defined(ARENITE_WINOGRAD_POINTS) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_WINOGRAD_POINTS
#undef ARENITE_WINOGRAD_POINTS
#else
#define ARENITE_WINOGRAD_POINTS
#endif

#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kAnyDepth = std::size_t{1} << 30;  // more inputs than any filter has

// kOne is the point 1, if it is one of them: what is added to the product at (1, 1) is added to all
// of the result. Else it is 0. Products of kDepth inputs are summed up at a time: errors of long
// sums would be as large as the factors that a large tile multiplies them by.
template <std::size_t Points>
struct WinogradPoints;

// The polynomials' points are 0, 1, -1 and infinity.
template <>
struct WinogradPoints<4> {
  static constexpr std::size_t kOne = 1;
  static constexpr std::size_t kDepth = kAnyDepth;

  static ARENITE_LANE void enter_filter(const Lanes (&g)[3], Lanes (&u)[4]) {
    const Lanes half = all_lanes(0.5f);
    const Lanes even = multiply(half, add(g[0], g[2]));
    const Lanes odd = multiply(half, g[1]);
    u[0] = g[0];
    u[1] = add(even, odd);
    u[2] = subtract(even, odd);
    u[3] = g[2];
  }
  static ARENITE_LANE void enter(const Lanes (&d)[4], Lanes (&v)[4]) {
    v[0] = subtract(d[0], d[2]);
    v[1] = add(d[2], d[1]);
    v[2] = subtract(d[2], d[1]);
    v[3] = subtract(d[3], d[1]);
  }
  static ARENITE_LANE void leave(const Lanes (&m)[4], Lanes (&y)[2]) {
    y[0] = add(add(m[1], m[2]), m[0]);
    y[1] = add(subtract(m[1], m[2]), m[3]);
  }
};

// Constants of a transform: Index is their place in Values.
template <int Index>
struct Constant {};

// Values has `kAll`, the constants in whole groups of four.
template <typename Values>
struct Constants {
  static constexpr std::size_t kCount = sizeof(Values::kAll) / sizeof(float);

#if HWY_ARCH_ARM_A64
  // Elements of vectors that the compiler does not know: it would load each again and again.
  float32x4_t all[kCount / 4];

  ARENITE_LANE Constants() {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kCount / 4; ++i) {
      all[i] = vld1q_f32(Values::kAll + 4 * i);
      __asm__("" : "+w"(all[i]));
    }
  }
  template <int Index>
  ARENITE_LANE Lanes multiply(Constant<Index>, Lanes a) const {
    return Lanes(vmulq_laneq_f32(a.raw, all[Index / 4], Index % 4));
  }
  template <int Index>
  ARENITE_LANE Lanes multiply_add(Constant<Index>, Lanes a, Lanes sum) const {
    return Lanes(vfmaq_laneq_f32(sum.raw, a.raw, all[Index / 4], Index % 4));
  }
  template <int Index>
  ARENITE_LANE Lanes subtract_product(Constant<Index>, Lanes a, Lanes sum) const {
    return Lanes(vfmsq_laneq_f32(sum.raw, a.raw, all[Index / 4], Index % 4));
  }
#else
  Lanes all[kCount];

  ARENITE_LANE Constants() {
#pragma GCC unroll 32
    for (std::size_t i = 0; i < kCount; ++i) { all[i] = all_lanes(Values::kAll[i]); }
  }
  template <int Index>
  ARENITE_LANE Lanes multiply(Constant<Index>, Lanes a) const {
    return HWY_NAMESPACE::multiply(all[Index], a);
  }
  template <int Index>
  ARENITE_LANE Lanes multiply_add(Constant<Index>, Lanes a, Lanes sum) const {
    return HWY_NAMESPACE::multiply_add(all[Index], a, sum);
  }
  template <int Index>
  ARENITE_LANE Lanes subtract_product(Constant<Index>, Lanes a, Lanes sum) const {
    return HWY_NAMESPACE::subtract_product(all[Index], a, sum);
  }
#endif
};

// The points are 0, both square roots of 1/2, infinity, and both of 2: with 1 and 2 in place of the
// roots errors are four times as large. Constants are divided between the filter and the result so
// that the filter takes the fewest. Rows that share sums are made in pairs.
struct ConstantsOfSix {
  static constexpr float kAll[12] = {0.5f,         2.0f,         0.70710678f,  1.41421356f,
                                     2.5f,         0.333333333f, 0.666666667f, 0.471404521f,
                                     0.235702260f, 0.942809042f};
};
template <>
struct WinogradPoints<6> : Constants<ConstantsOfSix> {
  static constexpr std::size_t kOne = 0;
  static constexpr std::size_t kDepth = kAnyDepth;

  ARENITE_LANE WinogradPoints() {}  // an implicit one would not be of the kind of processor

  static constexpr std::size_t kEntering[3][2] = {{0, 3}, {1, 2}, {4, 5}};
  static constexpr std::size_t kLeaving[2][2] = {{0, 2}, {1, 3}};

  static constexpr Constant<0> half{};
  static constexpr Constant<1> two{};
  static constexpr Constant<2> root_of_half{};
  static constexpr Constant<3> root_of_two{};
  static constexpr Constant<4> sum{};
  static constexpr Constant<5> third{};
  static constexpr Constant<6> two_thirds{};
  static constexpr Constant<7> third_of_root{};
  static constexpr Constant<8> sixth_of_root{};
  static constexpr Constant<9> two_thirds_of_root{};

  template <std::size_t Pair>
  ARENITE_LANE void enter_filter(const Lanes (&g)[3], Lanes& a, Lanes& b) const {
    if constexpr (Pair == 0) {
      a = g[0];
      b = g[2];
    } else {
      const Lanes even =
          Pair == 1 ? multiply_add(half, g[2], g[0]) : multiply_add(half, g[0], g[2]);
      const Lanes odd = multiply(root_of_half, g[1]);
      a = add(even, odd);
      b = subtract(even, odd);
    }
  }
  template <std::size_t Pair>
  ARENITE_LANE void enter(const Lanes (&d)[6], Lanes& a, Lanes& b) const {
    if constexpr (Pair == 0) {
      a = subtract_product(sum, d[2], add(d[0], d[4]));
      b = subtract_product(sum, d[3], add(d[1], d[5]));
    } else {
      if constexpr (Pair == 1) {
        enter_by(two, root_of_half, d, a, b);
      } else {
        enter_by(half, root_of_two, d, a, b);
      }
    }
  }
  template <typename Square, typename Root>
  ARENITE_LANE void enter_by(Square square, Root root, const Lanes (&d)[6], Lanes& a,
                             Lanes& b) const {
    const Lanes even = subtract_product(square, d[2], d[4]);
    const Lanes odd = subtract_product(square, d[1], d[3]);
    a = multiply_add(root, odd, even);
    b = subtract_product(root, odd, even);
  }
  template <std::size_t Pair>
  ARENITE_LANE void leave(const Lanes (&m)[6], Lanes& a, Lanes& b) const {
    if constexpr (Pair == 0) {
      const Lanes near = add(m[1], m[2]);
      const Lanes far = add(m[4], m[5]);
      a = subtract_product(two_thirds, near, multiply_add(third, far, m[0]));
      b = subtract_product(third, near, multiply(two_thirds, far));
    } else {
      const Lanes near = subtract(m[1], m[2]);
      const Lanes far = subtract(m[4], m[5]);
      a = multiply(third_of_root, subtract(far, near));
      b = subtract_product(sixth_of_root, near, multiply_add(two_thirds_of_root, far, m[3]));
    }
  }

  ARENITE_LANE void enter_filter(const Lanes (&g)[3], Lanes (&u)[6]) const {
    enter_filter<0>(g, u[0], u[3]);
    enter_filter<1>(g, u[1], u[2]);
    enter_filter<2>(g, u[4], u[5]);
  }
  ARENITE_LANE void enter(const Lanes (&d)[6], Lanes (&v)[6]) const {
    enter<0>(d, v[0], v[3]);
    enter<1>(d, v[1], v[2]);
    enter<2>(d, v[4], v[5]);
  }
  // Of a narrow tile, without the roots of 2.
  ARENITE_LANE void enter(const Lanes (&d)[4], Lanes (&v)[4]) const {
    v[0] = subtract_product(two, d[2], d[0]);
    v[1] = multiply_add(root_of_half, d[1], d[2]);
    v[2] = subtract_product(root_of_half, d[1], d[2]);
    v[3] = subtract_product(half, d[1], d[3]);
  }
  ARENITE_LANE void leave(const Lanes (&m)[4], Lanes (&y)[2]) const {
    y[0] = add(m[0], add(m[1], m[2]));
    y[1] = multiply_add(root_of_half, subtract(m[1], m[2]), m[3]);
  }
  ARENITE_LANE void leave(const Lanes (&m)[6], Lanes (&y)[4]) const {
    leave<0>(m, y[0], y[2]);
    leave<1>(m, y[1], y[3]);
  }
};

#if HWY_ARCH_ARM_A64
// The points are 0, 1, -1, 2, -2, infinity, 1/2 and -1/2.
struct ConstantsOfEight {
  static constexpr float kAll[32] = {
      5.25f, 4.25f, 1.25f, 0.25f, 2.5f, 2.0f, 0.5f, 5.0f,  // of the source
      // Of the result: by powers of the points, 2 and 1/2 in turn.
      0.0111111111f, 0.711111111f, 0.0222222222f, 0.355555556f, 0.0444444444f, 0.177777778f,
      0.0888888889f, 0.0888888889f, 0.177777778f, 0.0444444444f, 0.355555556f, 0.0222222222f, 4.0f,
      0.25f, 2.0f, 0.5f, 0.222222222f, -0.222222222f,  // of source and filter
      3.0f, 0.75f, 0.0416666667f, 0.0833333333f, 0.166666667f, 0.333333333f};  // of narrow tiles
};
template <>
struct WinogradPoints<8> : Constants<ConstantsOfEight> {
  static constexpr std::size_t kOne = 1;
  static constexpr std::size_t kDepth = 64;

  ARENITE_LANE WinogradPoints() {}

  template <std::size_t Taps>
  ARENITE_LANE void enter_filter(const Lanes (&g)[Taps], Lanes (&u)[8]) const {
    u[0] = g[0];
    Lanes even = g[0];
    Lanes odd = g[1];
#pragma GCC unroll 8
    for (std::size_t k = 2; k < Taps; k += 2) {
      even = add(even, g[k]);
      if (k + 1 < Taps) { odd = add(odd, g[k + 1]); }
    }
    odd = multiply(Constant<24>{}, odd);
    even = multiply(Constant<25>{}, even);
    u[1] = subtract(even, odd);
    u[2] = add(even, odd);
    enter_filter_by(Constant<20>{}, Constant<22>{}, g, u[3], u[4]);
    u[5] = g[Taps - 1];
    enter_filter_by(Constant<21>{}, Constant<23>{}, g, u[6], u[7]);
  }
  template <typename Square, typename Point, std::size_t Taps>
  ARENITE_LANE void enter_filter_by(Square square, Point point, const Lanes (&g)[Taps], Lanes& a,
                                    Lanes& b) const {
    Lanes even = g[Taps - 1];
    Lanes odd = g[Taps - 2];
#pragma GCC unroll 8
    for (std::size_t k = Taps - 1; k >= 2; k -= 2) {
      even = multiply_add(square, even, g[k - 2]);
      if (k >= 3) { odd = multiply_add(square, odd, g[k - 3]); }
    }
    odd = multiply(point, odd);
    a = add(even, odd);
    b = subtract(even, odd);
  }
  // Without sums that take the place of what is read once more: ARM would have to copy that first.
  ARENITE_LANE void enter(const Lanes (&d)[8], Lanes (&v)[8]) const {
    v[0] = multiply_add(Constant<0>{}, subtract(d[4], d[2]), subtract(d[0], d[6]));
    const Lanes even = subtract_product(Constant<1>{}, d[4], add(d[2], d[6]));
    const Lanes odd = subtract_product(Constant<1>{}, d[3], add(d[1], d[5]));
    v[1] = add(even, odd);
    v[2] = subtract(even, odd);
    const Lanes even2 =
        add(subtract_product(Constant<2>{}, d[4], multiply(Constant<3>{}, d[2])), d[6]);
    const Lanes odd2 = multiply_add(
        Constant<5>{}, d[5], subtract_product(Constant<4>{}, d[3], multiply(Constant<6>{}, d[1])));
    v[3] = add(even2, odd2);
    v[4] = subtract(even2, odd2);
    const Lanes even3 =
        add(subtract_product(Constant<7>{}, d[4], multiply(Constant<20>{}, d[2])), d[6]);
    const Lanes odd3 = multiply_add(
        Constant<5>{}, d[1], subtract_product(Constant<4>{}, d[3], multiply(Constant<6>{}, d[5])));
    v[6] = add(even3, odd3);
    v[7] = subtract(even3, odd3);
    v[5] = multiply_add(Constant<0>{}, subtract(d[3], d[5]), subtract(d[7], d[1]));
  }
  // Of a narrow tile, without 1/2 and -1/2.
  ARENITE_LANE void enter(const Lanes (&d)[6], Lanes (&v)[6]) const {
    v[0] = multiply_add(Constant<3>{}, d[4], subtract_product(Constant<2>{}, d[2], d[0]));
    const Lanes even = subtract_product(Constant<26>{}, d[2], multiply(Constant<27>{}, d[4]));
    const Lanes odd = subtract_product(Constant<26>{}, d[1], multiply(Constant<27>{}, d[3]));
    v[1] = add(even, odd);
    v[2] = subtract(even, odd);
    const Lanes even2 = subtract(d[4], d[2]);
    const Lanes odd2 = subtract(d[3], d[1]);
    v[3] = multiply_add(Constant<5>{}, odd2, even2);
    v[4] = subtract_product(Constant<5>{}, odd2, even2);
    v[5] = multiply_add(Constant<20>{}, d[1], subtract_product(Constant<7>{}, d[3], d[5]));
  }
  template <std::size_t Tile>
  ARENITE_LANE void leave(const Lanes (&m)[8], Lanes (&y)[Tile]) const {
    const Lanes even[3] = {add(m[1], m[2]), add(m[3], m[4]), add(m[6], m[7])};
    const Lanes odd[3] = {subtract(m[1], m[2]), subtract(m[3], m[4]), subtract(m[6], m[7])};
    leave_by<0>(even, add(m[0], even[0]), y);
    leave_by<1>(odd, Tile == 2 ? add(m[5], odd[0]) : odd[0], y);
    leave_by<2>(even, even[0], y);
    leave_by<3>(odd, Tile == 4 ? add(m[5], odd[0]) : odd[0], y);
    leave_by<4>(even, even[0], y);
    leave_by<5>(odd, add(m[5], odd[0]), y);
  }
  template <std::size_t Tile>
  ARENITE_LANE void leave(const Lanes (&m)[6], Lanes (&y)[Tile]) const {
    const Lanes even[2] = {add(m[1], m[2]), add(m[3], m[4])};
    const Lanes odd[2] = {subtract(m[1], m[2]), subtract(m[3], m[4])};
    y[0] = multiply_add(Constant<28>{}, even[1], add(m[0], even[0]));
    y[1] = multiply_add(Constant<29>{}, odd[1], Tile == 2 ? add(m[5], odd[0]) : odd[0]);
    if constexpr (Tile == 4) {
      y[2] = multiply_add(Constant<30>{}, even[1], even[0]);
      y[3] = multiply_add(Constant<31>{}, odd[1], add(m[5], odd[0]));
    }
  }
  template <int Power, std::size_t Tile>
  ARENITE_LANE void leave_by(const Lanes (&sums)[3], Lanes first, Lanes (&y)[Tile]) const {
    if constexpr (Power < Tile) {
      y[Power] = multiply_add(Constant<9 + 2 * Power>{}, sums[2],
                              multiply_add(Constant<8 + 2 * Power>{}, sums[1], first));
    }
  }
};
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
