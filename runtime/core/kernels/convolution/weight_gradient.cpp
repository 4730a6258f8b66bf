#include "kernels/highway_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convolution/weight_gradient.cpp"
#include "hwy/foreach_target.h"
// After them: compiled for each kind of processor.
#include "kernels/convolution/weight_gradient.hpp"
#include "kernels/lanes.hpp"
#include "kernels/parallel.hpp"

// The gradient is a product of matrices: its rows are the outputs, its columns what lies under a
// window, tap by tap, and its depth the pixels of all images. Some columns of some pixels are
// copied from under their windows, and multiplied by the gradients of all outputs of those pixels.
HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kVectors = 2;
constexpr std::size_t kColumns = kVectors * kLanes;  // that are multiplied together
constexpr std::size_t kMostRows = kLanes == 16 ? 12 : 6;
// Pixels that are copied together, on the stack: at most 32 KiB. The sums of that many are added
// up.
constexpr std::size_t kPixels = 256;

// Columns that lie side by side in a pixel of the image.
struct Piece {
  std::ptrdiff_t row;     // of the image, from that under the first tap
  std::ptrdiff_t column;  // the same
  std::size_t channel;
  std::size_t size;
};

struct Pieces {
  Piece pieces[kColumns];
  std::size_t count;
};

Pieces pieces_of(const ConvolvedImages& shape, std::size_t group, std::size_t first,
                 std::size_t count) {
  Pieces found;
  found.count = 0;
  for (std::size_t done = 0; done < count;) {
    const std::size_t tap = (first + done) / shape.channels;
    const std::size_t channel = (first + done) % shape.channels;
    const std::size_t left = count - done;
    const std::size_t size = shape.channels - channel < left ? shape.channels - channel : left;
    found.pieces[found.count++] = {
        static_cast<std::ptrdiff_t>(tap / shape.kernel[1] * shape.dilations[0]),
        static_cast<std::ptrdiff_t>(tap % shape.kernel[1] * shape.dilations[1]),
        group * shape.channels + channel, size};
    done += size;
  }
  return found;
}

ARENITE_LANE void copy_piece(const float* from, std::size_t size, float* to) {
  if (size == kColumns) {
    for (std::size_t i = 0; i < kVectors; ++i) { store(load(from + i * kLanes), to + i * kLanes); }
    return;
  }
  for (std::size_t i = 0; i < size; ++i) { to[i] = from[i]; }
}

// Copies pieces of pixels [first, first + count), kColumns apart; what is outside is zero.
void copy_pixels(const ConvolvedImages& shape, const float* source, const Pieces& pieces,
                 std::size_t first, std::size_t count, float* copies) {
  const std::size_t width = shape.groups * shape.channels;
  std::size_t column = first % shape.result_columns;
  std::size_t row = first / shape.result_columns % shape.result_rows;
  std::size_t image = first / shape.result_columns / shape.result_rows;
  for (std::size_t i = 0; i < count; ++i, copies += kColumns) {
    const float* const from = source + image * shape.rows * shape.columns * width;
    const auto top = static_cast<std::ptrdiff_t>(row * shape.strides[0]) -
                     static_cast<std::ptrdiff_t>(shape.before[0]);
    const auto left = static_cast<std::ptrdiff_t>(column * shape.strides[1]) -
                      static_cast<std::ptrdiff_t>(shape.before[1]);
    float* to = copies;
    for (std::size_t p = 0; p < pieces.count; ++p) {
      const Piece& piece = pieces.pieces[p];
      const auto y = static_cast<std::size_t>(top + piece.row);  // huge, if it is negative
      const auto x = static_cast<std::size_t>(left + piece.column);
      if (y < shape.rows && x < shape.columns) {
        copy_piece(from + (y * shape.columns + x) * width + piece.channel, piece.size, to);
      } else {
        for (std::size_t k = 0; k < piece.size; ++k) { to[k] = 0.0f; }
      }
      to += piece.size;
    }
    for (float* const end = copies + kColumns; to < end; ++to) { *to = 0.0f; }
    if (++column == shape.result_columns) {
      column = 0;
      if (++row == shape.result_rows) {
        row = 0;
        ++image;
      }
    }
  }
}

// Where the columns of a tile go: `count` of them, each at a place of its own in a row of the
// result.
struct Target {
  float* rows;
  std::size_t row_stride;
  const std::size_t* places;
  std::size_t count;
  bool is_first;  // nothing is there yet
};

template <std::size_t Rows>
HWY_NOINLINE void multiply_tile(const float* gradient, std::size_t stride, const float* copies,
                                std::size_t pixels, const Target& target) {
  Lanes sums[Rows][kVectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) { sums[r][v] = all_lanes(0.0f); }
  }
  for (std::size_t i = 0; i < pixels; ++i) {
    Lanes values[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) { values[v] = load(copies + v * kLanes); }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      const Lanes factor = all_lanes(gradient[r]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = multiply_add(factor, values[v], sums[r][v]);
      }
    }
    gradient += stride;
    copies += kColumns;
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) {
    float made[kColumns];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) { store(sums[r][v], made + v * kLanes); }
    float* const row = target.rows + r * target.row_stride;
    if (target.is_first) {
      for (std::size_t j = 0; j < target.count; ++j) { row[target.places[j]] = made[j]; }
    } else {
      for (std::size_t j = 0; j < target.count; ++j) { row[target.places[j]] += made[j]; }
    }
  }
}

// All outputs of a group, for one block of columns.
void multiply_outputs(const float* gradient, std::size_t stride, std::size_t outputs,
                      const float* copies, std::size_t pixels, Target target) {
  for (std::size_t output = 0; output < outputs;) {
    const std::size_t left = outputs - output;
    std::size_t rows = kMostRows;
    if (left >= kMostRows) {
      multiply_tile<kMostRows>(gradient, stride, copies, pixels, target);
    } else if (left >= 4) {
      rows = 4;
      multiply_tile<4>(gradient, stride, copies, pixels, target);
    } else if (left >= 2) {
      rows = 2;
      multiply_tile<2>(gradient, stride, copies, pixels, target);
    } else {
      rows = 1;
      multiply_tile<1>(gradient, stride, copies, pixels, target);
    }
    gradient += rows;
    output += rows;
    target.rows += rows * target.row_stride;
  }
}

// The depthwise gradient of some channels, for taps of one row of the window: up to kTaps.
constexpr std::size_t kTaps = 8;

struct RowOfTaps {
  std::size_t row;
  std::size_t first;
  std::size_t count;
};

template <typename Load>
ARENITE_LANE void add_row(const ConvolvedImages& shape, const float* image_row,
                          const float* gradient_row, const RowOfTaps& taps, std::size_t width,
                          const Load& load_channels, Lanes* totals) {
  Lanes sums[kTaps];
  for (std::size_t k = 0; k < taps.count; ++k) { sums[k] = all_lanes(0.0f); }
  for (std::size_t column = 0; column < shape.result_columns; ++column) {
    const Lanes g = load_channels(gradient_row + column * width);
    const auto left =
        static_cast<std::ptrdiff_t>(column * shape.strides[1] + taps.first * shape.dilations[1]) -
        static_cast<std::ptrdiff_t>(shape.before[1]);
    for (std::size_t k = 0; k < taps.count; ++k) {
      const auto x =
          static_cast<std::size_t>(left + static_cast<std::ptrdiff_t>(k * shape.dilations[1]));
      if (x < shape.columns) {
        sums[k] = multiply_add(g, load_channels(image_row + x * width), sums[k]);
      }
    }
  }
  for (std::size_t k = 0; k < taps.count; ++k) { totals[k] = add(totals[k], sums[k]); }
}

template <typename Load>
ARENITE_LANE void add_images(const ConvolvedImages& shape, const float* source,
                             const float* gradient, const RowOfTaps& taps,
                             const Load& load_channels, Lanes* totals) {
  const std::size_t width = shape.groups;
  for (std::size_t image = 0; image < shape.images; ++image) {
    for (std::size_t row = 0; row < shape.result_rows; ++row) {
      const auto y = static_cast<std::size_t>(
          static_cast<std::ptrdiff_t>(row * shape.strides[0] + taps.row * shape.dilations[0]) -
          static_cast<std::ptrdiff_t>(shape.before[0]));
      if (y < shape.rows) {
        add_row(shape, source + (image * shape.rows + y) * shape.columns * width,
                gradient + (image * shape.result_rows + row) * shape.result_columns * width, taps,
                width, load_channels, totals);
      }
    }
  }
}

}  // namespace

// Columns [first, first + kColumns) of a group's gradient, as many of them as there are.
HWY_NOINLINE void weight_gradient_columns(const ConvolvedImages& shape, const float* source,
                                          const float* gradient, float* result, std::size_t group,
                                          std::size_t block) {
  const std::size_t depth = shape.taps() * shape.channels;
  const std::size_t first = block * kColumns;
  const std::size_t count = depth - first < kColumns ? depth - first : kColumns;
  const Pieces pieces = pieces_of(shape, group, first, count);
  std::size_t places[kColumns];
  for (std::size_t j = 0; j < count; ++j) {
    const std::size_t column = first + j;
    places[j] = column % shape.channels * shape.taps() + column / shape.channels;
  }
  const std::size_t width = shape.groups * shape.outputs;
  alignas(64) float copies[kPixels * kColumns];
  for (std::size_t pixel = 0; pixel < shape.pixels(); pixel += kPixels) {
    const std::size_t left = shape.pixels() - pixel;
    const std::size_t together = left < kPixels ? left : kPixels;
    copy_pixels(shape, source, pieces, pixel, together, copies);
    const Target target{result + group * shape.outputs * depth, depth, places, count, pixel == 0};
    multiply_outputs(gradient + pixel * width + group * shape.outputs, width, shape.outputs, copies,
                     together, target);
  }
}

// The channels [channel, channel + kLanes) of a depthwise gradient, as many of them as there are.
HWY_NOINLINE void depthwise_gradient_channels(const ConvolvedImages& shape, const float* source,
                                              const float* gradient, float* result,
                                              std::size_t channel) {
  const std::size_t left = shape.groups - channel;
  const std::size_t count = left < kLanes ? left : kLanes;
  for (std::size_t row = 0; row < shape.kernel[0]; ++row) {
    for (std::size_t first = 0; first < shape.kernel[1]; first += kTaps) {
      const std::size_t rest = shape.kernel[1] - first;
      const RowOfTaps taps{row, first, rest < kTaps ? rest : kTaps};
      Lanes totals[kTaps];
      for (std::size_t k = 0; k < kTaps; ++k) { totals[k] = all_lanes(0.0f); }
      if (count == kLanes) {
        add_images(
            shape, source + channel, gradient + channel, taps,
            [](const float* from) HWY_ATTR { return load(from); }, totals);
      } else {
        add_images(
            shape, source + channel, gradient + channel, taps,
            [count](const float* from) HWY_ATTR { return load_some(from, count); }, totals);
      }
      for (std::size_t k = 0; k < taps.count; ++k) {
        float made[kLanes];
        store(totals[k], made);
        for (std::size_t c = 0; c < count; ++c) {
          result[(channel + c) * shape.taps() + row * shape.kernel[1] + first + k] = made[c];
        }
      }
    }
  }
}

std::size_t gradient_columns() { return kColumns; }
std::size_t gradient_channels() { return kLanes; }

}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite {

void weight_gradient(const ConvolvedImages& shape, const float* source, const float* gradient,
                     float* result, pthreadpool_t threads) {
  if (shape.channels == 1 && shape.outputs == 1) {
    const auto make = ARENITE_COPY(depthwise_gradient_channels);
    const std::size_t together = ARENITE_COPY(gradient_channels)();
    const std::size_t blocks = divide_up(shape.groups, together);
    parallel(threads, blocks, shape.pixels() * shape.taps() * together,
             [&](std::size_t first, std::size_t count) {
               for (std::size_t block = first; block < first + count; ++block) {
                 make(shape, source, gradient, result, block * together);
               }
             });
    return;
  }
  const auto make = ARENITE_COPY(weight_gradient_columns);
  const std::size_t together = ARENITE_COPY(gradient_columns)();
  const std::size_t blocks = divide_up(shape.taps() * shape.channels, together);
  parallel(threads, shape.groups * blocks, shape.pixels() * shape.outputs * together,
           [&](std::size_t first, std::size_t count) {
             for (std::size_t part = first; part < first + count; ++part) {
               make(shape, source, gradient, result, part / blocks, part % blocks);
             }
           });
}

}  // namespace arenite
#endif
