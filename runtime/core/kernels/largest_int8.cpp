#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/largest_int8.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include <algorithm>
#include <limits>

#include "kernels/lanes.hpp"
#include "kernels/largest_int8.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

// Calls visit(elements) for each tap, from a channel on.
template <typename T, typename Visit>
ARENITE_LANE void each_tap(const WindowTaps<T>& taps, std::size_t channel, const Visit& visit) {
  const auto& dilations = taps.window.dilations;
  const auto at = [](const WindowSpan& span, std::size_t tap, std::uint32_t dilation) {
    return static_cast<std::size_t>(span.start + static_cast<std::int64_t>(tap) * dilation);
  };
  const std::size_t step = dilations[1] * taps.source.pixel_stride;
  if (taps.columns.inside() == 0) {
    return;
  }
  const std::size_t left = at(taps.columns, taps.columns.first, dilations[1]);
  for (std::size_t i = taps.rows.first; i < taps.rows.last; ++i) {
    const T* from =
        taps.source.row(at(taps.rows, i, dilations[0])) + left * taps.source.pixel_stride + channel;
    for (std::size_t j = taps.columns.first; j < taps.columns.last; ++j) {
      visit(from);
      from += step;
    }
  }
}

template <typename T>
ARENITE_LANE void find_one(const WindowTaps<T>& taps, T min, T max, std::size_t channel,
                           T* largest) {
  T found = std::numeric_limits<T>::min();
  each_tap(taps, channel, [&](const T* from) { found = std::max(found, *from); });
  *largest = std::min(std::max(found, min), max);
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
template <typename T>
void largest_of(const WindowTaps<T>& taps, T min, T max, T* largest) {
  constexpr std::size_t kBlock = 64;
  const std::size_t channels = taps.source.channels;
  for (std::size_t channel = 0; channel < channels; channel += kBlock) {
    const std::size_t count = std::min(kBlock, channels - channel);
    T found[kBlock];
    std::fill_n(found, count, std::numeric_limits<T>::min());
    each_tap(taps, channel, [&](const T* from) {
      for (std::size_t c = 0; c < count; ++c) {
        found[c] = std::max(found[c], from[c]);
      }
    });
    for (std::size_t c = 0; c < count; ++c) {
      largest[channel + c] = std::min(std::max(found[c], min), max);
    }
  }
}
#else
namespace hn = hwy::HWY_NAMESPACE;

template <typename Tag, typename T>
ARENITE_LANE void find_some(Tag tag, const WindowTaps<T>& taps, T min, T max, std::size_t channel,
                            T* largest) {
  auto found = hn::Set(tag, std::numeric_limits<T>::min());
  each_tap(taps, channel,
           [&](const T* from) HWY_ATTR { found = hn::Max(found, hn::LoadU(tag, from)); });
  hn::StoreU(hn::Min(hn::Max(found, hn::Set(tag, min)), hn::Set(tag, max)), tag, largest + channel);
}

// Of channels that fill no vector, the last ones are found twice.
template <typename T>
void largest_of(const WindowTaps<T>& taps, T min, T max, T* largest) {
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 16> narrow;
  constexpr std::size_t kWide = sizeof(hn::Vec<hn::ScalableTag<T> >);
  constexpr std::size_t kNarrow = sizeof(hn::Vec<hn::CappedTag<T, 16> >);
  const std::size_t channels = taps.source.channels;
  std::size_t channel = 0;
  for (; channel + kWide <= channels; channel += kWide) {
    find_some(wide, taps, min, max, channel, largest);
  }
  for (; channel + kNarrow <= channels; channel += kNarrow) {
    find_some(narrow, taps, min, max, channel, largest);
  }
  if (channel < channels && channels >= kNarrow) {
    find_some(narrow, taps, min, max, channels - kNarrow, largest);
    return;
  }
  for (; channel < channels; ++channel) {
    find_one(taps, min, max, channel, largest + channel);
  }
}
#endif

}  // namespace

void largest_int8(const WindowTaps<std::int8_t>& taps, std::int8_t min, std::int8_t max,
                  std::int8_t* largest) {
  largest_of(taps, min, max, largest);
}

void largest_uint8(const WindowTaps<std::uint8_t>& taps, std::uint8_t min, std::uint8_t max,
                   std::uint8_t* largest) {
  largest_of(taps, min, max, largest);
}

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

template <>
FindLargest<std::int8_t> find_largest<std::int8_t>() {
  return ARENITE_COPY(largest_int8);
}

template <>
FindLargest<std::uint8_t> find_largest<std::uint8_t>() {
  return ARENITE_COPY(largest_uint8);
}

}  // namespace arenite
#endif
