// Transposed convolutions whose filter is stored by inputs and may change from run to run.
#pragma once

#include <algorithm>

#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/depthwise.hpp"
#include "kernels/convolution/pack_filter.hpp"
#include "operand_checks.hpp"
#include "steps/images.hpp"
#include "steps/transposed_images.hpp"

namespace arenite {

// The filter of each phase is packed, read by all images, and given up for that of the next.
class TransposedByInputsStep final : public Step {
 public:
  TransposedByInputsStep(const Operands& operands, const Convolution& kernel)
      : num_images_(operands.inputs[0]->shape[0]),
        source_(first_image<const float>(*operands.inputs[0])),
        result_(first_image<float>(*operands.outputs[0])),
        weights_(operands.inputs[1]->as<float>()),
        kernel_(kernel),
        inputs_(source_.channels / kernel.groups),
        outputs_(result_.channels / kernel.groups),
        is_depthwise_(inputs_ == 1 && outputs_ == 1),
        rows_(phases_of(kernel.window, 0, result_.rows)),
        columns_(phases_of(kernel.window, 1, result_.columns)),
        threads_(operands.threads) {
    // As many taps as a phase may have, whether or not there is that phase.
    const auto most_taps = [&kernel](const Phase& phase, std::size_t axis) {
      return (kernel.window.kernel[axis] + phase.tap_step - 1) / phase.tap_step;
    };
    const std::size_t taps = most_taps(rows_.front(), 0) * most_taps(columns_.front(), 1);
    packed_ = require_scratch_of<float>(operands, packed_size(taps));
  }

  void run() override {
    for (const Phase& row : rows_) {
      for (const Phase& column : columns_) {
        const PhaseImages<float> images(row, column, source_, result_, {});
        if (!has_taps(row, column)) {
          fill(images.result);
          continue;
        }
        pack(row, column);
        convolve_all(images);
      }
    }
  }

  std::size_t held_bytes() const override { return heap_bytes(rows_) + heap_bytes(columns_); }

 private:
  std::size_t packed_size(std::size_t taps) const {
    return is_depthwise_ ? taps * kernel_.groups
                         : packed_filter_size(kernel_.groups, result_.channels, taps * inputs_);
  }

  // The last tap of a phase is that of the lowest index of the source: it comes first.
  void pack(const Phase& row, const Phase& column) const {
    const auto& window = kernel_.window.kernel;
    const std::size_t taps = std::size_t{window[0]} * window[1];
    const auto last = [](const Phase& phase) {
      return phase.first_tap + (phase.num_taps - 1) * phase.tap_step;
    };
    FilterPlaces places{outputs_,        taps,
                        inputs_,         outputs_ * taps,
                        row.num_taps,    -static_cast<std::ptrdiff_t>(row.tap_step * window[1]),
                        column.num_taps, -static_cast<std::ptrdiff_t>(column.tap_step)};
    const float* first = weights_ + last(row) * window[1] + last(column);
    if (is_depthwise_) {
      places.outputs = kernel_.groups;
      pack_depthwise_filter(first, places, packed_, threads_);
      return;
    }
    const std::size_t group_size = packed_size(row.num_taps * column.num_taps) / kernel_.groups;
    for (std::size_t group = 0; group < kernel_.groups; ++group) {
      pack_filter(first + group * inputs_ * places.input_stride, places,
                  packed_ + group * group_size, threads_);
    }
  }

  void convolve_all(PhaseImages<float> images) const {
    for (std::size_t image = 0; image < num_images_; ++image) {
      const RowRange all{0, images.result.rows};
      if (is_depthwise_) {
        const DepthwiseConvolution kernel{images.window, packed_, kernel_.store};
        convolve_depthwise(kernel, images.source, images.result, all, threads_);
      } else {
        const Convolution kernel{images.window, kernel_.groups, packed_, kernel_.store};
        convolve(kernel, images.source, images.result, all, threads_);
      }
      images.source.data += source_.rows * source_.row_stride;
      images.result.data += result_.rows * result_.row_stride;
    }
  }

  // Pixels that no tap reaches have their bias alone.
  void fill(Image<float> result) const {
    const FloatStore& store = kernel_.store;
    for (std::size_t image = 0; image < num_images_; ++image) {
      for (std::size_t row = 0; row < result.rows; ++row) {
        float* pixel = result.row(row);
        for (std::size_t column = 0; column < result.columns; ++column) {
          for (std::size_t channel = 0; channel < result.channels; ++channel) {
            const float bias = store.bias == nullptr ? 0.0f : store.bias[channel];
            pixel[channel] = std::min(std::max(bias, store.min), store.max);
          }
          pixel += result.pixel_stride;
        }
      }
      result.data += result_.rows * result_.row_stride;
    }
  }

  std::size_t num_images_;
  Image<const float> source_;
  Image<float> result_;
  const float* weights_;
  Convolution kernel_;
  std::size_t inputs_;   // of a group
  std::size_t outputs_;  // of a group
  bool is_depthwise_;
  StepVector<Phase> rows_;
  StepVector<Phase> columns_;
  float* packed_;  // working memory
  pthreadpool_t threads_;
};

}  // namespace arenite
