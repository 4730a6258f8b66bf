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
    u[0] = subtract(all_lanes(0.0f), g[0]);
    u[1] = add(even, odd);
    u[2] = subtract(even, odd);
    u[3] = g[2];
  }
  static ARENITE_LANE void enter(const Lanes (&d)[4], Lanes (&v)[4]) {
    v[0] = subtract(d[2], d[0]);
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
// roots errors are four times as large.
template <>
struct WinogradPoints<4> {
  static ARENITE_LANE void enter_filter(const Lanes (&g)[3], Lanes (&u)[6]) {
    const Lanes third = multiply(all_lanes(0.333333333f), g[2]);
    const Lanes even = multiply_add(all_lanes(0.666666667f), g[0], third);
    const Lanes odd = multiply(all_lanes(0.471404521f), g[1]);
    const Lanes other_even = multiply_add(all_lanes(0.166666667f), g[0], third);
    const Lanes other_odd = multiply(all_lanes(0.235702260f), g[1]);
    u[0] = g[0];
    u[1] = subtract(all_lanes(0.0f), add(even, odd));
    u[2] = subtract(odd, even);
    u[3] = add(other_even, other_odd);
    u[4] = subtract(other_even, other_odd);
    u[5] = g[2];
  }
  static ARENITE_LANE void enter(const Lanes (&d)[6], Lanes (&v)[6]) {
    const Lanes root = all_lanes(1.41421356f);
    const Lanes half_root = all_lanes(0.70710678f);
    const Lanes half = all_lanes(0.5f);
    const Lanes two = all_lanes(2.0f);
    const Lanes sum = all_lanes(2.5f);
    const Lanes even = subtract_product(two, d[2], d[4]);
    const Lanes odd = subtract_product(two, d[1], d[3]);
    const Lanes other_even = subtract_product(half, d[2], d[4]);
    const Lanes other_odd = subtract_product(half, d[1], d[3]);
    v[0] = subtract_product(sum, d[2], add(d[0], d[4]));
    v[1] = multiply_add(half_root, odd, even);
    v[2] = subtract_product(half_root, odd, even);
    v[3] = multiply_add(root, other_odd, other_even);
    v[4] = subtract_product(root, other_odd, other_even);
    v[5] = subtract_product(sum, d[3], add(d[1], d[5]));
  }
  static ARENITE_LANE void leave(const Lanes (&m)[6], Lanes (&y)[4]) {
    const Lanes root = all_lanes(1.41421356f);
    const Lanes half = all_lanes(0.5f);
    const Lanes two = all_lanes(2.0f);
    const Lanes even = add(m[1], m[2]);
    const Lanes odd = subtract(m[1], m[2]);
    const Lanes other_even = add(m[3], m[4]);
    const Lanes other_odd = multiply(root, subtract(m[3], m[4]));
    const Lanes half_odd = multiply(all_lanes(0.70710678f), odd);
    y[0] = add(add(even, other_even), m[0]);
    y[1] = add(half_odd, other_odd);
    y[2] = multiply_add(two, other_even, multiply(half, even));
    y[3] = add(multiply_add(two, other_odd, multiply(half, half_odd)), m[5]);
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
