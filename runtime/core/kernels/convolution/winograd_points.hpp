// From tiles to points and back, after Winograd, in one direction at a time.
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

template <std::size_t Tile>
struct WinogradPoints;

// The polynomials' points are 0, 1, -1 and infinity.
template <>
struct WinogradPoints<2> {
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

// The points are 0, both square roots of 1/2 and of 2, and infinity: with 1 and 2 in place of the
// roots errors are four times as large. Constants are divided between the filter and the result so
// that the filter takes the fewest. Rows that share sums are made in pairs.
template <>
struct WinogradPoints<4> {
  static constexpr std::size_t kEntering[3][2] = {{0, 5}, {1, 2}, {3, 4}};
  static constexpr std::size_t kLeaving[2][2] = {{0, 2}, {1, 3}};

#if HWY_ARCH_ARM_A64
  // Elements of three vectors that the compiler does not know: it would load each again and again.
  template <int Index>
  struct Constant {};
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

  float32x4_t first;
  float32x4_t second;
  float32x4_t last;

  ARENITE_LANE WinogradPoints()
      : first(hidden(float32x4_t{0.5f, 2.0f, 0.70710678f, 1.41421356f})),
        second(hidden(float32x4_t{2.5f, 0.333333333f, 0.666666667f, 0.471404521f})),
        last(hidden(float32x4_t{0.235702260f, 0.942809042f, 0.0f, 0.0f})) {}
  static ARENITE_LANE float32x4_t hidden(float32x4_t value) {
    __asm__("" : "+w"(value));
    return value;
  }
  template <int Index>
  ARENITE_LANE float32x4_t of() const {
    return Index < 4 ? first : Index < 8 ? second : last;
  }
  template <int Index>
  ARENITE_LANE Lanes multiply(Constant<Index>, Lanes a) const {
    return Lanes(vmulq_laneq_f32(a.raw, of<Index>(), Index % 4));
  }
  template <int Index>
  ARENITE_LANE Lanes multiply_add(Constant<Index>, Lanes a, Lanes sum) const {
    return Lanes(vfmaq_laneq_f32(sum.raw, a.raw, of<Index>(), Index % 4));
  }
  template <int Index>
  ARENITE_LANE Lanes subtract_product(Constant<Index>, Lanes a, Lanes sum) const {
    return Lanes(vfmsq_laneq_f32(sum.raw, a.raw, of<Index>(), Index % 4));
  }
#else
  const Lanes half = all_lanes(0.5f);
  const Lanes two = all_lanes(2.0f);
  const Lanes root_of_half = all_lanes(0.70710678f);
  const Lanes root_of_two = all_lanes(1.41421356f);
  const Lanes sum = all_lanes(2.5f);
  const Lanes third = all_lanes(0.333333333f);
  const Lanes two_thirds = all_lanes(0.666666667f);
  const Lanes third_of_root = all_lanes(0.471404521f);
  const Lanes sixth_of_root = all_lanes(0.235702260f);
  const Lanes two_thirds_of_root = all_lanes(0.942809042f);

  ARENITE_LANE WinogradPoints() {}
#endif

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
      const Lanes far = add(m[3], m[4]);
      a = subtract_product(two_thirds, near, multiply_add(third, far, m[0]));
      b = subtract_product(third, near, multiply(two_thirds, far));
    } else {
      const Lanes near = subtract(m[1], m[2]);
      const Lanes far = subtract(m[3], m[4]);
      a = multiply(third_of_root, subtract(far, near));
      b = subtract_product(sixth_of_root, near, multiply_add(two_thirds_of_root, far, m[5]));
    }
  }

  ARENITE_LANE void enter_filter(const Lanes (&g)[3], Lanes (&u)[6]) const {
    enter_filter<0>(g, u[0], u[5]);
    enter_filter<1>(g, u[1], u[2]);
    enter_filter<2>(g, u[3], u[4]);
  }
  ARENITE_LANE void enter(const Lanes (&d)[6], Lanes (&v)[6]) const {
    enter<0>(d, v[0], v[5]);
    enter<1>(d, v[1], v[2]);
    enter<2>(d, v[3], v[4]);
  }
  ARENITE_LANE void leave(const Lanes (&m)[6], Lanes (&y)[4]) const {
    leave<0>(m, y[0], y[2]);
    leave<1>(m, y[1], y[3]);
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
