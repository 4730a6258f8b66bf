#include "kernels/gelu.hpp"

#ifdef ARENITE_ARM64
#include <algorithm>
#include <array>
#include <iterator>

#include "kernels/map.hpp"

namespace arenite {

namespace {

static_assert(kMapBlock == 16);
constexpr std::size_t kTerms = std::size(kErrorEven);
constexpr double kRootHalf = 0.70710678118654752;
// The share below x is 1, less a rounding error, and the sums here are 1 to the last bit.
constexpr float kEnd = 5.21875f;

using Constants = std::array<float, (2 * kTerms + 2) * kMapBlock>;

// In the order in which they are loaded, once for each element: a product is added to what its
// register has, and one instruction fills four of them. Coefficients are those of erf(x / sqrt(2))
// / (2 x).
constexpr Constants make_constants() {
  Constants made{};
  std::size_t row = 0;
  const auto add = [&](double value) {
    for (std::size_t i = 0; i < kMapBlock; ++i) {
      made[row * kMapBlock + i] = static_cast<float>(value);
    }
    ++row;
  };
  add(-1.0);
  for (std::size_t term = kTerms; term-- > 0;) {
    add(kErrorEven[term] * kRootHalf / 2);
    add(kErrorOdd[term] * kRootHalf / 2);
  }
  add(0.5);
  return made;
}

alignas(64) constexpr Constants kConstants = make_constants();

// Vectors of a block: even and odd sums, in turns; the bounded x, u and u^2.
#define EVEN 0, 1, 2, 3
#define NEXT_EVEN 4, 5, 6, 7
#define ODD 20, 21, 22, 23
#define NEXT_ODD 24, 25, 26, 27
#define X 8, 9, 10, 11
#define U 12, 13, 14, 15
#define V 16, 17, 18, 19
#define LOWEST 28, 28, 28, 28
#define HIGHEST 29, 29, 29, 29
#define SCALE 30, 30, 30, 30
#define ZERO 31, 31, 31, 31

#define OF_ONE(name, to, a, b) name " v" #to ".4s, v" #a ".4s, v" #b ".4s;"
#define OF_FOUR(name, t, u, v, w, a, b, c, d, e, f, g, h) \
  OF_ONE(name, t, a, e) OF_ONE(name, u, b, f) OF_ONE(name, v, c, g) OF_ONE(name, w, d, h)
#define EACH(...) OF_FOUR(__VA_ARGS__)
#define LIST(a, b, c, d) "{v" #a ".4s, v" #b ".4s, v" #c ".4s, v" #d ".4s}"
#define LOAD_FROM(from, ...) "ld1 " LIST(__VA_ARGS__) ", [%[" from "]], #64;"
#define LOAD(...) LOAD_FROM("constants", __VA_ARGS__)
#define TERM(even, odd, to_even, to_odd) \
  LOAD(to_even) LOAD(to_odd) EACH("fmla", to_even, even, V) EACH("fmla", to_odd, odd, V)
#define TWO_TERMS TERM(EVEN, ODD, NEXT_EVEN, NEXT_ODD) TERM(NEXT_EVEN, NEXT_ODD, EVEN, ODD)

}  // namespace

// Sixteen elements at a time, so that small processors do not wait for results. The share of what
// is very negative is 0, not a rounding error.
void Gelu::map_blocks(const float* source, float* target, std::size_t blocks) {
  const float* constants = kConstants.data();
  static constexpr float kBounds[] = {-kEnd, kEnd, kErrorScale / 2};
  __asm__ volatile(
      "ld3r {v28.4s, v29.4s, v30.4s}, [%[bounds]]; movi v31.4s, #0;"
      "1: ld1 {v0.4s-v3.4s}, [%[source]];"
      EACH("fmax", X, EVEN, LOWEST) EACH("fmin", X, X, HIGHEST) EACH("fmul", EVEN, X, X)
      LOAD(U) EACH("fmla", U, EVEN, SCALE) EACH("fmul", V, U, U) LOAD(EVEN) LOAD(ODD)
      TWO_TERMS TWO_TERMS TWO_TERMS
      EACH("fmla", EVEN, ODD, U) LOAD(NEXT_EVEN) LOAD_FROM("source", ODD)
      EACH("fmla", NEXT_EVEN, EVEN, X) "sub %[constants], %[constants], %[size];"
      EACH("fmax", NEXT_EVEN, NEXT_EVEN, ZERO) "subs %[blocks], %[blocks], #1;"
      EACH("fmul", EVEN, NEXT_EVEN, ODD)
      "st1 {v0.4s-v3.4s}, [%[target]], #64; b.ne 1b;"
      : [source] "+r"(source), [target] "+r"(target), [blocks] "+r"(blocks),
        [constants] "+r"(constants)
      : [bounds] "r"(kBounds), [size] "i"(sizeof kConstants)
      : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
        "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
        "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

}  // namespace arenite
#endif
