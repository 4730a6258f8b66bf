#include "strided_copy.hpp"

#include <pthreadpool.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/turned_square.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace arenite {

namespace {

constexpr std::size_t kTile = 16;
constexpr std::size_t kParallelBytes = 1 << 17;

constexpr std::size_t kUncachedBytes = std::size_t{4} << 20;

// Writes to memory without reading lines of the target first.
void stream(const std::byte* source, std::byte* target, std::size_t count) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(target) % kLine;
  std::memcpy(target, source, head);
  std::size_t done = head;
  for (; done + kLine <= count; done += kLine) {
    for (std::size_t i = done; i < done + kLine; i += sizeof(__m128i)) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i), part);
    }
  }
  _mm_sfence();
  std::memcpy(target + done, source + done, count - done);
#else
  std::memcpy(target, source, count);
#endif
}

// Whether `inner` continues where `outer` goes on to the next index, on both sides.
bool is_one(const StridedCopy::Axis& outer, const StridedCopy::Axis& inner) {
  const auto length = static_cast<std::int64_t>(inner.length);
  return outer.source == inner.source * length && outer.target == inner.target * length;
}

template <typename T>
void copy_elements(const std::byte* source, std::byte* target, std::size_t count,
                   std::int64_t source_stride, std::int64_t target_stride) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(target, source, sizeof(T));
    source += source_stride;
    target += target_stride;
  }
}

// Takes a few elements of each index of `middle` together, as the colours of a pixel, so that each
// line of the target is written once.
template <typename T, std::size_t Length>
void gather_elements(const std::byte* source, std::byte* target, std::size_t count,
                     std::int64_t source_stride) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < Length; ++j) {
      std::memcpy(target + j * sizeof(T), source + static_cast<std::int64_t>(j) * source_stride,
                  sizeof(T));
    }
    source += sizeof(T);
    target += Length * sizeof(T);
  }
}

// The same as loops over rows and columns of elements of 32 bits, whose numbers are multiples of 4,
// for rows of the source that become columns of the target.
void turn_squares(const std::byte* source, std::byte* target, std::size_t rows, std::size_t columns,
                  std::int64_t source_stride, std::int64_t target_stride) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(std::uint32_t));
  const auto num_rows = static_cast<std::int64_t>(rows);
  const auto num_columns = static_cast<std::int64_t>(columns);
  constexpr auto kStep = static_cast<std::int64_t>(kSquare);
  for (std::int64_t row = 0; row < num_rows; row += kStep) {
    for (std::int64_t column = 0; column < num_columns; column += kStep) {
      const Square turned = turned_square(source + column * source_stride + row * kSize,
                                          static_cast<std::ptrdiff_t>(source_stride));
      std::byte* to = target + row * target_stride + column * kSize;
      for (const SquareRow& each : turned.rows) {
        std::memcpy(to, &each, sizeof each);
        to += target_stride;
      }
    }
  }
}

// Tiles in which source and target are both accessed along their rows.
template <typename T>
void transpose_elements(const std::byte* source, std::byte* target, const StridedCopy::Axis& middle,
                        const StridedCopy::Axis& inner) {
  const auto size = static_cast<std::int64_t>(sizeof(T));
  if (inner.target == size && middle.source == size &&
      middle.target == size * static_cast<std::int64_t>(inner.length)) {
    switch (inner.length) {
      case 2: return gather_elements<T, 2>(source, target, middle.length, inner.source);
      case 3: return gather_elements<T, 3>(source, target, middle.length, inner.source);
      case 4: return gather_elements<T, 4>(source, target, middle.length, inner.source);
      default: break;
    }
  }
  if (inner.length <= kTile / 2) {
    for (std::size_t j = 0; j < inner.length; ++j) {
      const auto place = static_cast<std::int64_t>(j);
      copy_elements<T>(source + place * inner.source, target + place * inner.target, middle.length,
                       middle.source, middle.target);
    }
    return;
  }
  const bool are_rows =
      sizeof(T) == sizeof(std::uint32_t) && inner.target == size && middle.source == size;
  for (std::size_t i = 0; i < middle.length; i += kTile) {
    const std::size_t rows = std::min(kTile, middle.length - i);
    for (std::size_t j = 0; j < inner.length; j += kTile) {
      const std::size_t columns = std::min(kTile, inner.length - j);
      const std::byte* from = source + static_cast<std::int64_t>(i) * middle.source +
                              static_cast<std::int64_t>(j) * inner.source;
      std::byte* to = target + static_cast<std::int64_t>(i) * middle.target +
                      static_cast<std::int64_t>(j) * inner.target;
      if (are_rows && rows % kSquare == 0 && columns % kSquare == 0) {
        turn_squares(from, to, rows, columns, inner.source, middle.target);
        continue;
      }
      for (std::size_t row = 0; row < rows; ++row) {
        const auto r = static_cast<std::int64_t>(row);
        copy_elements<T>(from + r * middle.source, to + r * middle.target, columns, inner.source,
                         inner.target);
      }
    }
  }
}

template <template <typename> class Function, typename... Arguments>
void by_size(std::size_t element, Arguments... arguments) {
  switch (element) {
    case 1: return Function<std::uint8_t>::call(arguments...);
    case 2: return Function<std::uint16_t>::call(arguments...);
    case 4: return Function<std::uint32_t>::call(arguments...);
    case 8: return Function<std::uint64_t>::call(arguments...);
    default: std::abort();
  }
}

template <typename T>
struct Elements {
  template <typename... Arguments>
  static void call(Arguments... arguments) {
    copy_elements<T>(arguments...);
  }
};

template <typename T>
struct Transpose {
  template <typename... Arguments>
  static void call(const std::byte* source, std::byte* target, const StridedCopy::Axis* middle,
                   const StridedCopy::Axis* inner) {
    transpose_elements<T>(source, target, *middle, *inner);
  }
};

}  // namespace

StridedCopy::StridedCopy(StepVector<Axis> axes, std::int64_t source_offset,
                         std::int64_t target_offset, std::size_t element)
    : outer_(std::move(axes)),
      element_(element),
      source_offset_(source_offset),
      target_offset_(target_offset) {
  const auto is_still = [](const Axis& axis) { return axis.length == 1; };
  outer_.erase(std::remove_if(outer_.begin(), outer_.end(), is_still), outer_.end());
  // The target is written in order: its smallest stride innermost. Few axes, sorted in place.
  for (std::size_t i = 1; i < outer_.size(); ++i) {
    for (std::size_t k = i; k > 0 && std::abs(outer_[k - 1].target) < std::abs(outer_[k].target);
         --k) {
      std::swap(outer_[k - 1], outer_[k]);
    }
  }
  std::size_t merged = 0;
  for (const Axis& axis : outer_) {
    if (merged > 0 && is_one(outer_[merged - 1], axis)) {
      outer_[merged - 1] = {outer_[merged - 1].length * axis.length, axis.source, axis.target};
    } else {
      outer_[merged++] = axis;
    }
  }
  outer_.resize(merged);
  const auto bytes = static_cast<std::int64_t>(element);
  if (!outer_.empty() && outer_.back().source == bytes && outer_.back().target == bytes) {
    element_ *= outer_.back().length;
    outer_.pop_back();
  }
  if (!outer_.empty()) {
    inner_ = outer_.back();
    outer_.pop_back();
  }
  // Where the source runs along another axis, read and write in tiles.
  if (element_ == element && inner_.source != bytes) {
    const auto along = std::find_if(outer_.begin(), outer_.end(),
                                    [bytes](const Axis& axis) { return axis.source == bytes; });
    if (along != outer_.end()) {
      middle_ = *along;
      outer_.erase(along);
      transposes_ = true;
    }
  }
  for (const Axis& axis : outer_) { num_rows_ *= axis.length; }
}

void StridedCopy::copy_row(const std::byte* source, std::byte* target) const {
  if (transposes_) {
    by_size<Transpose>(element_, source, target, &middle_, &inner_);
  } else if (element_ <= 8 && (element_ & (element_ - 1)) == 0) {
    by_size<Elements>(element_, source, target, inner_.length, inner_.source, inner_.target);
  } else {
    for (std::size_t i = 0; i < inner_.length; ++i) {
      std::memmove(target, source, element_);
      source += inner_.source;
      target += inner_.target;
    }
  }
}

void StridedCopy::copy_rows(const std::byte* source, std::byte* target, std::size_t first,
                            std::size_t count) const {
  for (std::size_t row = first; row < first + count; ++row) {
    std::int64_t from = source_offset_;
    std::int64_t to = target_offset_;
    std::size_t rest = row;
    for (std::size_t axis = outer_.size(); axis-- > 0;) {
      const auto index = static_cast<std::int64_t>(rest % outer_[axis].length);
      rest /= outer_[axis].length;
      from += index * outer_[axis].source;
      to += index * outer_[axis].target;
    }
    copy_row(source + from, target + to);
  }
}

void StridedCopy::run_past_caches(const std::byte* source, std::byte* target,
                                  pthreadpool* threads) const {
  const bool is_one = num_rows_ == 1 && middle_.length == 1 && inner_.length == 1;
  if (is_one && element_ >= kUncachedBytes) {
    stream(source + source_offset_, target + target_offset_, element_);
  } else {
    run(source, target, threads);
  }
}

void StridedCopy::run(const std::byte* source, std::byte* target, pthreadpool* threads) const {
  const std::size_t row_bytes = element_ * inner_.length * middle_.length;
  if (threads == nullptr || num_rows_ * row_bytes < kParallelBytes) {
    copy_rows(source, target, 0, num_rows_);
    return;
  }
  struct Context {
    const StridedCopy* copy;
    const std::byte* source;
    std::byte* target;
  } context{this, source, target};
  const std::size_t tile =
      std::max<std::size_t>(1, kParallelBytes / 4 / std::max<std::size_t>(row_bytes, 1));
  pthreadpool_parallelize_1d_tile_1d(
      threads,
      [](void* raw, std::size_t first, std::size_t count) {
        const auto& it = *static_cast<Context*>(raw);
        it.copy->copy_rows(it.source, it.target, first, count);
      },
      &context, num_rows_, tile, 0);
}

}  // namespace arenite
