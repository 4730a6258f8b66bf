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

// The taps of a window that lie inside.
template <typename T>
struct Taps {
  const LargestRow<T>& row;
  WindowSpan columns;

  // Calls visit(elements) for each, from a channel on.
  template <typename Visit>
  ARENITE_LANE void each(std::size_t channel, const Visit& visit) const {
    const auto& dilations = row.window.dilations;
    const auto at = [](const WindowSpan& span, std::size_t tap, std::uint32_t dilation) {
      return static_cast<std::size_t>(span.start + static_cast<std::int64_t>(tap) * dilation);
    };
    const std::size_t count = columns.inside();
    if (count == 0) {
      return;
    }
    const std::size_t step = dilations[1] * row.source.pixel_stride;
    const std::size_t left =
        at(columns, columns.first, dilations[1]) * row.source.pixel_stride + channel;
    for (std::size_t i = row.rows.first; i < row.rows.last; ++i) {
      const T* from = row.source.row(at(row.rows, i, dilations[0])) + left;
      for (std::size_t j = 0; j < count; ++j) {
        visit(from);
        from += step;
      }
    }
  }
};

template <typename T>
ARENITE_LANE void find_one(const Taps<T>& taps, std::size_t channel, T* largest) {
  T found = std::numeric_limits<T>::min();
  taps.each(channel, [&](const T* from) { found = std::max(found, *from); });
  *largest = std::min(std::max(found, taps.row.min), taps.row.max);
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
template <typename T>
ARENITE_LANE void find_all(const Taps<T>& taps, T* largest) {
  constexpr std::size_t kBlock = 64;
  const std::size_t channels = taps.row.source.channels;
  for (std::size_t channel = 0; channel < channels; channel += kBlock) {
    const std::size_t count = std::min(kBlock, channels - channel);
    T found[kBlock];
    std::fill_n(found, count, std::numeric_limits<T>::min());
    taps.each(channel, [&](const T* from) {
      for (std::size_t c = 0; c < count; ++c) {
        found[c] = std::max(found[c], from[c]);
      }
    });
    for (std::size_t c = 0; c < count; ++c) {
      largest[channel + c] = std::min(std::max(found[c], taps.row.min), taps.row.max);
    }
  }
}
#else
namespace hn = hwy::HWY_NAMESPACE;

template <typename Tag, typename T>
ARENITE_LANE void find_some(Tag tag, const Taps<T>& taps, std::size_t channel, T* largest) {
  auto found = hn::Set(tag, std::numeric_limits<T>::min());
  taps.each(channel, [&](const T* from) HWY_ATTR { found = hn::Max(found, hn::LoadU(tag, from)); });
  const auto min = hn::Set(tag, taps.row.min);
  const auto max = hn::Set(tag, taps.row.max);
  hn::StoreU(hn::Min(hn::Max(found, min), max), tag, largest + channel);
}

// Of channels that fill no vector, the last ones are found twice.
template <typename T>
ARENITE_LANE void find_all(const Taps<T>& taps, T* largest) {
  const hn::ScalableTag<T> wide;
  const hn::CappedTag<T, 16> narrow;
  constexpr std::size_t kWide = sizeof(hn::Vec<hn::ScalableTag<T> >);
  constexpr std::size_t kNarrow = sizeof(hn::Vec<hn::CappedTag<T, 16> >);
  const std::size_t channels = taps.row.source.channels;
  std::size_t channel = 0;
  for (; channel + kWide <= channels; channel += kWide) {
    find_some(wide, taps, channel, largest);
  }
  for (; channel + kNarrow <= channels; channel += kNarrow) {
    find_some(narrow, taps, channel, largest);
  }
  if (channel < channels && channels >= kNarrow) {
    find_some(narrow, taps, channels - kNarrow, largest);
    return;
  }
  for (; channel < channels; ++channel) {
    find_one(taps, channel, largest + channel);
  }
}
#endif

template <typename T>
ARENITE_LANE void find_row(const LargestRow<T>& row) {
  for (std::size_t column = 0; column < row.columns; ++column) {
    const Taps<T> taps{row, window_span(row.window, 1, column, row.source.columns)};
    find_all(taps, row.result + column * row.pixel_stride);
  }
}

}  // namespace

void largest_int8(const LargestRow<std::int8_t>& row) { find_row(row); }
void largest_uint8(const LargestRow<std::uint8_t>& row) { find_row(row); }

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
