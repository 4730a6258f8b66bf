#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/average_int8.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <cmath>

#include "kernels/average_int8.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
template <typename T>
bool make_row(const AverageRow<T>&) {
  return false;
}
#else
namespace hn = hwy::HWY_NAMESPACE;

// Taps of a window along an axis, and elements whose sum fits 16 bits.
constexpr std::size_t kMostTaps = 16;
constexpr std::size_t kFew = 128;

// What does not change along a row. It is copied where it is used: bytes that are written could
// otherwise be any of it.
template <typename T>
struct Row {
  const T* taps[kMostTaps];  // where the rows inside begin
  std::size_t num_taps;
  std::size_t pixel_stride;
};

// How a sum becomes an average. A product will do for a quotient where it is the same, or where
// that is rounded to the nearest integer and no whole number over the divisor is near a half.
struct Scaling {
  Scaling(const Int8Pool& pool, std::size_t divisor)
      : is_product((divisor & (divisor - 1)) == 0 || (pool.ratio == 1.0f && divisor % 2 == 1)),
        factor(is_product ? pool.ratio * (1.0f / static_cast<float>(divisor)) : pool.ratio),
        divisor(static_cast<float>(divisor)) {}

  bool is_product;
  float factor;
  float divisor;
};

// Some channels, as many as some vectors of 16-bit sums.
template <typename T, typename Tag, std::size_t Vectors>
class Channels {
  using Sums = hn::Vec<Tag>;
  using Half = hn::Half<Tag>;
  static constexpr std::size_t kLanes = sizeof(Sums) / sizeof(std::int16_t);

 public:
  static constexpr std::size_t kCount = Vectors * kLanes;

  // Each column's sum is made once, taken in with the first window that has it, and given back
  // behind the last.
  static ARENITE_LANE void make(const AverageRow<T>& given, const Row<T>& taps,
                                std::size_t channel) {
    HWY_ALIGN std::int16_t kept[kMostTaps * kCount];
    const Tag tag;
    const hn::Rebind<T, Tag> bytes;
    const Row<T> row = taps;
    const Int8Pool pool = given.pool;
    const std::size_t columns = given.columns;
    const std::size_t length = given.source.columns;
    T* to = given.result + channel;
    const std::size_t step_to = given.pixel_stride;
    Sums sum[Vectors];
    for (auto& each : sum) {
      each = hn::Zero(tag);
    }
    std::size_t begin = 0;
    std::size_t end = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      const WindowSpan span = window_span(pool.window, 1, column, length);
      const std::size_t inside = span.inside();
      const auto first = inside == 0 ? end : static_cast<std::size_t>(span.start) + span.first;
      for (; begin < std::min(first, end); ++begin) {
        for (std::size_t v = 0; v < Vectors; ++v) {
          const auto* from = kept + begin % kMostTaps * kCount + v * kLanes;
          sum[v] = hn::Sub(sum[v], hn::Load(tag, from));
        }
      }
      begin = first;
      for (end = std::max(first, end); end < first + inside; ++end) {
        for (std::size_t v = 0; v < Vectors; ++v) {
          const std::size_t at = end * row.pixel_stride + channel + v * kLanes;
          Sums made = hn::Zero(tag);
          for (std::size_t i = 0; i < row.num_taps; ++i) {
            made = hn::Add(made, hn::PromoteTo(tag, hn::LoadU(bytes, row.taps[i] + at)));
          }
          hn::Store(made, tag, kept + end % kMostTaps * kCount + v * kLanes);
          sum[v] = hn::Add(sum[v], made);
        }
      }
      const Scaling scaling(pool, average_divisor(pool, given.rows, span));
      const auto zeros = static_cast<std::int32_t>(row.num_taps * inside) * pool.source_zero_point;
      const Half half;
      for (std::size_t v = 0; v < Vectors; ++v) {
        store(hn::LowerHalf(half, sum[v]), zeros, scaling, pool, to + v * kLanes);
        store(hn::UpperHalf(half, sum[v]), zeros, scaling, pool, to + v * kLanes + kLanes / 2);
      }
      to += step_to;
    }
  }

 private:
  static ARENITE_LANE void store(hn::Vec<Half> sum, std::int32_t zeros, const Scaling& scaling,
                                 const Int8Pool& pool, T* to) {
    // Adding this leaves the nearest integer in the lowest bits, of two equally near the even one.
    constexpr float kRounder = 12'582'912.0f;
    constexpr std::int32_t kRounderBits = 0x4b400000;
    const hn::Rebind<std::int32_t, Half> integers;
    const hn::RebindToFloat<decltype(integers)> floats;
    const hn::Rebind<T, decltype(integers)> bytes;
    const auto low = hn::Set(floats, static_cast<float>(pool.min - pool.zero_point));
    const auto high = hn::Set(floats, static_cast<float>(pool.max - pool.zero_point));
    auto value =
        hn::ConvertTo(floats, hn::Sub(hn::PromoteTo(integers, sum), hn::Set(integers, zeros)));
    value = hn::Mul(value, hn::Set(floats, scaling.factor));
    if (!scaling.is_product) {
      value = hn::Div(value, hn::Set(floats, scaling.divisor));
    }
    const auto kept = hn::Min(hn::Max(value, low), high);
    const auto rounded = hn::BitCast(integers, hn::Add(kept, hn::Set(floats, kRounder)));
    const auto made = hn::Sub(rounded, hn::Set(integers, kRounderBits - pool.zero_point));
    hn::StoreU(hn::DemoteTo(bytes, made), bytes, to);
  }
};

// Of channels that fill no vector, the last ones are made twice.
template <typename T>
bool make_row(const AverageRow<T>& given) {
  using Wide = Channels<T, hn::ScalableTag<std::int16_t>, 2>;
  using Narrow = Channels<T, hn::CappedTag<std::int16_t, 8>, 1>;
  const auto& window = given.pool.window;
  const std::size_t channels = given.source.channels;
  if (channels < Narrow::kCount || window.dilations[1] != 1 || window.kernel[1] > kMostTaps ||
      given.rows.inside() > kMostTaps || given.rows.inside() * window.kernel[1] > kFew ||
      !std::isfinite(given.pool.ratio)) {
    return false;
  }
  Row<T> row{{}, given.rows.inside(), given.source.pixel_stride};
  for (std::size_t i = 0; i < row.num_taps; ++i) {
    const auto y =
        given.rows.start + static_cast<std::int64_t>(given.rows.first + i) * window.dilations[0];
    row.taps[i] = given.source.row(static_cast<std::size_t>(y));
  }
  std::size_t channel = 0;
  for (; channel + Wide::kCount <= channels; channel += Wide::kCount) {
    Wide::make(given, row, channel);
  }
  for (; channel + Narrow::kCount <= channels; channel += Narrow::kCount) {
    Narrow::make(given, row, channel);
  }
  if (channel < channels) {
    Narrow::make(given, row, channels - Narrow::kCount);
  }
  return true;
}
#endif

}  // namespace

bool averages_int8(const AverageRow<std::int8_t>& row) { return make_row(row); }
bool averages_uint8(const AverageRow<std::uint8_t>& row) { return make_row(row); }

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

template <>
FindAverages<std::int8_t> find_averages<std::int8_t>() {
  return ARENITE_COPY(averages_int8);
}

template <>
FindAverages<std::uint8_t> find_averages<std::uint8_t>() {
  return ARENITE_COPY(averages_uint8);
}

}  // namespace arenite
#endif
