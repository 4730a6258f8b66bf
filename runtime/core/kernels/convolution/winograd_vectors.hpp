// Vectors and kinds of Winograd's tiles.
#if defined(ARENITE_WINOGRAD_VECTORS) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_WINOGRAD_VECTORS
#undef ARENITE_WINOGRAD_VECTORS
#else
#define ARENITE_WINOGRAD_VECTORS
#endif

#include "kernels/convolution/winograd_job.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

ARENITE_LANE Lanes load_first(const float* from, std::size_t count) {
  return count < kLanes ? load_some(from, count) : load(from);
}

ARENITE_LANE void store_first(Lanes value, float* to, std::size_t count) {
  if (count < kLanes) {
    store_some(value, to, count);
  } else {
    store(value, to);
  }
}

// Assembly names no memory, or constants would be loaded again after it: loads and stores of the
// compiler stay on their side of this.
ARENITE_LANE void order_memory() {
#if HWY_ARCH_ARM_A64
  __asm__ volatile("" : : : "memory");
#endif
}

// Stores vectors so many floats apart.
template <std::size_t Count>
ARENITE_LANE void store_apart(const Lanes (&values)[Count], float* to, std::size_t stride) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Count; ++i) {
#if HWY_ARCH_ARM_A64
    __asm__ volatile("st1 {%1.4s}, [%0], %2"
                     : "+r"(to)
                     : "w"(values[i].raw), "r"(stride * sizeof(float)));
#else
    store(values[i], to + i * stride);
#endif
  }
}

// Loads a vector and moves on.
ARENITE_LANE Lanes load_and_step(const float*& from, std::size_t step) {
#if HWY_ARCH_ARM_A64
  float32x4_t value;
  __asm__ volatile("ld1 {%0.4s}, [%1], %2" : "=w"(value), "+r"(from) : "r"(step * sizeof(float)));
  return Lanes(value);
#else
  const Lanes value = load(from);
  from += step;
  return value;
#endif
}

// How a tile is transformed in both directions: columns of it that are in registers together.
// Compilers move registers to memory one by one.
enum class Order { kAll, kPairs, kByMemory };

constexpr Order order_of(std::size_t points) {
  if (!HWY_ARCH_ARM_A64 || points == 4) { return Order::kAll; }
  return points == 6 ? Order::kPairs : Order::kByMemory;
}

#if HWY_ARCH_ARM_A64
// Vectors of a tile between its transforms.
template <std::size_t Count>
struct Between {
  float floats[Count * kLanes];

  // Stores neighbours; `to` moves on.
  ARENITE_LANE void keep(float*& to, Lanes a, Lanes b) {
    __asm__("stp %q2, %q3, [%1], #32"
            : "=m"(*reinterpret_cast<float (*)[2 * kLanes]>(to)), "+r"(to)
            : "w"(a.raw), "w"(b.raw));
  }
  // Loads neighbours; `from` moves on by Step vectors.
  template <std::size_t Step>
  ARENITE_LANE void take(const float*& from, Lanes& a, Lanes& b) const {
    float32x4_t first;
    float32x4_t second;
    __asm__("ldp %q0, %q1, [%2], %4"
            : "=w"(first), "=w"(second), "+r"(from)
            : "m"(*reinterpret_cast<const float (*)[2 * kLanes]>(from)), "i"(Step * 16));
    a = Lanes(first);
    b = Lanes(second);
  }
};
#endif

// A kind of tile: narrow or not in each direction.
template <bool IsNarrowInRows, bool IsNarrowInColumns>
struct TileKind {
  static constexpr std::size_t kLessRows = IsNarrowInRows ? 2 : 0;  // of points and of results
  static constexpr std::size_t kLessColumns = IsNarrowInColumns ? 2 : 0;
  static constexpr bool kIsFull = !IsNarrowInRows && !IsNarrowInColumns;
};

// Calls a function with the kind of a tile, which may be narrow in these directions.
template <bool InRows, bool InColumns, typename Function>
void with_kind(const TilePlace& place, const Function& function) {
  if (InRows && place.is_narrow[0]) {
    if (InColumns && place.is_narrow[1]) {
      function(TileKind<InRows, InColumns>{});
    } else {
      function(TileKind<InRows, false>{});
    }
  } else if (InColumns && place.is_narrow[1]) {
    function(TileKind<false, InColumns>{});
  } else {
    function(TileKind<false, false>{});
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
