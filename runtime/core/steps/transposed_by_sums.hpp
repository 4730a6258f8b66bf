// Transposed convolutions over columns with few outputs, as products of each pixel that are added.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/convolution/convolve.hpp"
#include "operand_checks.hpp"
#include "steps/images.hpp"

namespace arenite {

// By phases few outputs fill a fraction of a panel. The outputs of all taps fill it, so a pixel of
// the source is multiplied with all taps at once, and the products are added where they belong.
class TransposedBySumsStep final : public Step {
 public:
  // Pixels that are multiplied at once.
  static constexpr std::size_t kPixels = 56;

  // Windows of several rows would multiply rows of the source again for each band. Phases of the
  // same pixels are made together, and may fill a panel.
  static bool is_better(const TensorView& filter, const SlidingWindow& window, std::size_t groups,
                        std::size_t columns) {
    const std::size_t stride = window.strides[1];
    const bool has_like_phases = window.dilations[1] == 1 && window.kernel[1] % stride == 0 &&
                                 window.padding[3] % stride == 0 && columns % stride == 0;
    const bool fills_panels = has_like_phases && filter.shape[0] * stride >= kPanel;
    return groups == 1 && filter.shape[0] < kPanel && filter.shape[1] == 1 && !fills_panels;
  }

  TransposedBySumsStep(const Operands& operands, const Convolution& kernel)
      : num_images_(operands.inputs[0]->shape[0]),
        source_(first_image<const float>(*operands.inputs[0])),
        result_(first_image<float>(*operands.outputs[0])),
        kernel_(kernel),
        taps_(kernel.window.kernel[1]),
        packed_(kept_table<Packed>(
            operands, [](const Packed&) { return true; },
            [&] { return pack(operands.inputs[1]->as<float>()); })),
        threads_(operands.threads) {
    products_ = require_scratch_of<float>(
        operands, std::min(kPixels, source_.columns) * taps_ * result_.channels);
  }

  void run() override {
    for (std::size_t image = 0; image < num_images_; ++image) { make({0, result_.rows}, image); }
  }

  bool makes_rows() const override { return num_images_ == 1; }
  bool finds_rows(std::size_t input) const override { return input == 0 && num_images_ == 1; }
  void run_rows(RowRange rows) override { make(rows, 0); }

  std::size_t held_bytes() const override { return heap_bytes(packed_->filter); }
  bool has_packed(std::size_t input) const override { return input == 1; }

 private:
  struct Packed {
    std::vector<float> filter;
  };

  // Outputs by taps: side by side as in a row of the result.
  Packed pack(const float* filter) const {
    const std::size_t depth = source_.channels;
    Packed packed{std::vector<float>(packed_filter_size(1, taps_ * result_.channels, depth))};
    for (std::size_t output = 0; output < result_.channels; ++output) {
      for (std::size_t tap = 0; tap < taps_; ++tap) {
        const std::size_t made = tap * result_.channels + output;
        float* to = packed.filter.data() + made / kPanel * depth * kPanel + made % kPanel;
        for (std::size_t k = 0; k < depth; ++k) { to[k * kPanel] = *filter++; }
      }
    }
    return packed;
  }

  // A row of the source reaches one of the result, or none.
  void make(RowRange rows, std::size_t image) const {
    Image<const float> source = source_;
    source.data += image * source.rows * source.row_stride;
    Image<float> result = result_;
    result.data += image * result.rows * result.row_stride;
    const std::size_t stride = kernel_.window.strides[0];
    for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
      float* to = result.row(row);
      begin(to);
      const std::size_t reached = row + kernel_.window.padding[0];
      if (reached % stride == 0 && reached / stride < source.rows) {
        for (std::size_t column = 0; column < source.columns; column += kPixels) {
          const std::size_t count = std::min(kPixels, source.columns - column);
          multiply(source, reached / stride, column, count);
          for (std::size_t tap = 0; tap < taps_; ++tap) { add(column, count, tap, to); }
        }
      }
      clamp(to);
    }
  }

  void begin(float* to) const {
    for (std::size_t column = 0; column < result_.columns; ++column) {
      for (std::size_t i = 0; i < result_.channels; ++i) {
        *to++ = kernel_.store.bias == nullptr ? 0.0f : kernel_.store.bias[i];
      }
    }
  }

  void multiply(Image<const float> source, std::size_t row, std::size_t column,
                std::size_t count) const {
    const std::size_t made = taps_ * result_.channels;
    source.data += column * source.pixel_stride;
    source.columns = count;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const Convolution product{{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                              1,
                              packed_->filter.data(),
                              {nullptr, nullptr, -kInfinity, kInfinity}};
    // Working memory holds the products of any row.
    convolve(product, source, {products_, source.rows, count, made, made, 0}, {row, 1}, threads_);
  }

  // Adds the products of pixels from a column on with a tap. Neighbours do not meet in it, and so
  // do not wait for each other's sums.
  void add(std::size_t column, std::size_t count, std::size_t tap, float* row) const {
    const SlidingWindow& window = kernel_.window;
    const std::size_t channels = result_.channels;
    const std::int64_t left =
        static_cast<std::int64_t>(column * window.strides[1] + tap * window.dilations[1]) -
        std::int64_t{window.padding[3]};
    const PixelSpan inside = inside_of(left, count, result_.columns, window.strides[1]);
    if (inside.count == 0) { return; }
    const float* from = products_ + (inside.first * taps_ + tap) * channels;
    float* to = row + (left + static_cast<std::int64_t>(inside.first * window.strides[1])) *
                          static_cast<std::int64_t>(channels);
    const std::size_t from_step = taps_ * channels;
    const std::size_t to_step = window.strides[1] * channels;
    for (std::size_t i = 0; i < inside.count; ++i) {
#pragma GCC ivdep
      for (std::size_t channel = 0; channel < channels; ++channel) { to[channel] += from[channel]; }
      from += from_step;
      to += to_step;
    }
  }

  void clamp(float* row) const {
    const float min = kernel_.store.min;
    const float max = kernel_.store.max;
    for (std::size_t i = 0; i < result_.columns * result_.channels; ++i) {
      row[i] = std::min(std::max(row[i], min), max);
    }
  }

  std::size_t num_images_;
  Image<const float> source_;
  Image<float> result_;
  Convolution kernel_;
  std::size_t taps_;
  std::shared_ptr<const Packed> packed_;
  pthreadpool_t threads_;
  float* products_;  // working memory: by pixel, tap and output
};

}  // namespace arenite
