#include "requantise.hpp"

#include <algorithm>

#include "kernels/processor.hpp"

namespace arenite {

namespace {

#define ARENITE_INLINE __attribute__((always_inline)) inline

std::int32_t wrapped_sum(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

ARENITE_INLINE void to_nearest(const QuantisedStore& store, std::size_t channel,
                               const std::int32_t* sums, std::int32_t addend, std::size_t count,
                               std::uint8_t* to) {
  // Adding and taking away this leaves the nearest integer, of two equally near the even one.
  constexpr float kRounder = 12'582'912.0f;
  const float* scales = store.scales + channel;
  const auto low = static_cast<float>(store.min - store.zero_point);
  const auto high = static_cast<float>(store.max - store.zero_point);
  const std::int32_t zero_point = store.zero_point;
  for (std::size_t i = 0; i < count; ++i) {
    // Between the product and the sum lies the clamp: nothing can be rounded once for both.
    const float scaled = static_cast<float>(wrapped_sum(sums[i], addend)) * scales[i];
    const float kept = std::min(std::max(scaled, low), high);
    to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>((kept + kRounder) - kRounder) +
                                      zero_point);
  }
}

// As TensorFlow Lite's MultiplyByQuantizedMultiplier: the upper half of twice the product is
// rounded with halves up, what is shifted out of it with halves away from zero.
ARENITE_INLINE void by_fixed_point(const QuantisedStore& store, std::size_t channel,
                                   const std::int32_t* sums, std::int32_t addend, std::size_t count,
                                   std::uint8_t* to) {
  const std::int32_t* multipliers = store.multipliers + channel;
  const std::int32_t* shifts = store.shifts + channel;
  const std::int32_t zero_point = store.zero_point;
  const std::int32_t low = store.min - zero_point;
  const std::int32_t high = store.max - zero_point;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t left = std::max(shifts[i], 0);
    const std::int32_t right = std::max(-shifts[i], 0);
    const auto shifted =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(wrapped_sum(sums[i], addend)) << left);
    const auto product = static_cast<std::int32_t>(
        (std::int64_t{shifted} * multipliers[i] + (std::int64_t{1} << 30)) >> 31);
    const auto mask = static_cast<std::int32_t>((std::uint32_t{1} << right) - 1);
    const std::int32_t half = (mask >> 1) + (product < 0 ? 1 : 0);
    const std::int32_t scaled = (product >> right) + ((product & mask) > half ? 1 : 0);
    to[i] = static_cast<std::uint8_t>(std::min(std::max(scaled, low), high) + zero_point);
  }
}

ARENITE_INLINE void requantise(const QuantisedStore& store, std::size_t channel,
                               const std::int32_t* sums, std::int32_t addend, std::size_t count,
                               void* to) {
  auto* bytes = static_cast<std::uint8_t*>(to);
  if (store.rounding == Rounding::nearest_even) {
    to_nearest(store, channel, sums, addend, count, bytes);
  } else {
    by_fixed_point(store, channel, sums, addend, count, bytes);
  }
}

void for_any(const QuantisedStore& store, std::size_t channel, const std::int32_t* sums,
             std::int32_t addend, std::size_t count, void* to) {
  requantise(store, channel, sums, addend, count, to);
}

ARENITE_FOR_AVX2 void for_avx2(const QuantisedStore& store, std::size_t channel,
                               const std::int32_t* sums, std::int32_t addend, std::size_t count,
                               void* to) {
  requantise(store, channel, sums, addend, count, to);
}

ARENITE_FOR_AVX512 void for_avx512(const QuantisedStore& store, std::size_t channel,
                                   const std::int32_t* sums, std::int32_t addend, std::size_t count,
                                   void* to) {
  requantise(store, channel, sums, addend, count, to);
}

}  // namespace

Requantise find_requantise() {
  switch (vectors()) {
    case Vectors::avx512:
      return for_avx512;
    case Vectors::avx2:
      return for_avx2;
    default:
      return for_any;
  }
}

}  // namespace arenite
