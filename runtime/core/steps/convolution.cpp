// Convolutions and products in floating point, on weights that lie in memory as they are.
//
// They run where XNNPACK does not: in a build without it, or where the weights are loaded into a
// window that is too small for the order of its kernels.
#include <algorithm>

#include "kernels/parallel.hpp"
#include "matrix_product.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "sliding_window.hpp"

namespace arenite {

namespace {

// Output channels that are computed together, as they read the same input.
constexpr std::size_t kChannels = 4;
constexpr std::size_t kLanes = 8;

// Sums of products of one stretch of numbers with those of a few filters.
class Sums {
 public:
  // Adds the products of `count` numbers with as many of each filter; filters are `pitch` apart.
  void add(const float* x, const float* filters, std::size_t pitch, std::size_t count) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        const float* weights = filters + channel * pitch + i;
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          lanes_[channel][lane] += x[i + lane] * weights[lane];
        }
      }
    }
    for (; i < count; ++i) {
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        lanes_[channel][i % kLanes] += x[i] * filters[channel * pitch + i];
      }
    }
  }

  float of(std::size_t channel) const {
    float total = 0;
    for (const float lane : lanes_[channel]) {
      total += lane;
    }
    return total;
  }

 private:
  float lanes_[kChannels][kLanes] = {};
};

struct Bounds {
  float min;
  float max;
};

// An image N, H, W, C under filters Cout, kh, kw, C / groups. A product is one of single pixels.
struct Geometry {
  std::size_t batches;
  std::size_t rows;
  std::size_t columns;
  std::size_t channels;
  std::size_t result_rows;
  std::size_t result_columns;
  std::size_t result_channels;
  std::size_t groups;
  SlidingWindow window;
};

class ConvolutionStep final : public Step {
 public:
  ConvolutionStep(const Operands& operands, const Geometry& geometry, Bounds bounds)
      : geometry_(geometry),
        bounds_(bounds),
        source_(operands.inputs[0]->as<float>()),
        filter_(operands.inputs[1]->as<float>()),
        target_(operands.outputs[0]->as<float>()),
        threads_(operands.threads) {
    if (const auto* bias = optional_input(operands, 2)) {
      bias_ = bias->as<float>();
    }
  }

  void run() override {
    const auto& g = geometry_;
    parallel(threads_, g.batches * g.result_rows * g.result_columns,
             g.result_channels * filter_size(), [this](std::size_t first, std::size_t count) {
               for (std::size_t pixel = first; pixel < first + count; ++pixel) {
                 compute(pixel);
               }
             });
  }

  const char* backend() const override { return "arenite"; }

 private:
  void compute(std::size_t pixel) const {
    const auto& g = geometry_;
    float* target = target_ + pixel * g.result_channels;
    const std::size_t group_size = g.result_channels / g.groups;
    for (std::size_t group = 0; group < g.groups; ++group) {
      const std::size_t end = (group + 1) * group_size;
      std::size_t channel = group * group_size;
      for (; channel + kChannels <= end; channel += kChannels) {
        store(sums(pixel, group, channel, filter_size()), channel, kChannels, target);
      }
      for (; channel < end; ++channel) {
        store(sums(pixel, group, channel, 0), channel, 1, target);
      }
    }
  }

  std::size_t filter_size() const {
    const auto& g = geometry_;
    return std::size_t{g.window.kernel[0]} * g.window.kernel[1] * (g.channels / g.groups);
  }

  // With a pitch of 0 one filter stands for all.
  Sums sums(std::size_t pixel, std::size_t group, std::size_t channel, std::size_t pitch) const {
    const auto& g = geometry_;
    const std::size_t depth = g.channels / g.groups;
    const float* filters = filter_ + channel * filter_size();
    const std::size_t column = pixel % g.result_columns;
    const std::size_t row = pixel / g.result_columns % g.result_rows;
    const std::size_t batch = pixel / g.result_columns / g.result_rows;
    Sums sums;
    for (std::size_t ky = 0; ky < g.window.kernel[0]; ++ky) {
      // Padding wraps round, to a row that is beyond the last.
      const std::size_t y =
          row * g.window.strides[0] + ky * g.window.dilations[0] - g.window.padding[0];
      if (y >= g.rows) {
        continue;
      }
      for (std::size_t kx = 0; kx < g.window.kernel[1]; ++kx) {
        const std::size_t x =
            column * g.window.strides[1] + kx * g.window.dilations[1] - g.window.padding[3];
        if (x >= g.columns) {
          continue;
        }
        sums.add(source_ + ((batch * g.rows + y) * g.columns + x) * g.channels + group * depth,
                 filters + (ky * g.window.kernel[1] + kx) * depth, pitch, depth);
      }
    }
    return sums;
  }

  void store(const Sums& sums, std::size_t first, std::size_t count, float* target) const {
    for (std::size_t i = 0; i < count; ++i) {
      const float value = sums.of(i) + (bias_ == nullptr ? 0.0f : bias_[first + i]);
      target[first + i] = std::min(std::max(value, bounds_.min), bounds_.max);
    }
  }

  Geometry geometry_;
  Bounds bounds_;
  const float* source_;
  const float* filter_;
  const float* bias_ = nullptr;
  float* target_;
  pthreadpool_t threads_;
};

bool are_floats(const Operands& operands) {
  const auto* bias = optional_input(operands, 2);
  const auto is_float = [](const TensorView& view) { return view.type == program::Type::float32; };
  return is_float(*operands.inputs[0]) && is_float(*operands.inputs[1]) &&
         is_float(*operands.outputs[0]) && (bias == nullptr || is_float(*bias));
}

void require_weights(const Operands& operands, std::size_t num_channels) {
  const auto* bias = optional_input(operands, 2);
  require(operands, operands.inputs[1]->is_constant || operands.loader != nullptr,
          "its weights are neither constant nor loaded by a step before it");
  require(operands, bias == nullptr || bias->num_elements() == num_channels,
          "its bias does not fit");
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, 3);
  if (!are_floats(operands) || !(attributes.min() <= attributes.max())) {
    return nullptr;
  }
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const SlidingWindow window = filter_window(operands, attributes, filter);
  require_images(operands, window);
  const std::size_t groups = attributes.groups();
  require_weights(operands, filter.shape[0]);
  require(operands,
          groups > 0 && filter.shape[0] % groups == 0 &&
              filter.shape[3] * groups == source.shape[3] && result.shape[3] == filter.shape[0],
          "groups and channels do not fit");
  const Geometry geometry{source.shape[0], source.shape[1], source.shape[2],
                          source.shape[3], result.shape[1], result.shape[2],
                          result.shape[3], groups,          window};
  return std::make_unique<ConvolutionStep>(operands, geometry,
                                           Bounds{attributes.min(), attributes.max()});
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, 3);
  if (!are_floats(operands) || !(attributes.min() <= attributes.max())) {
    return nullptr;
  }
  const auto [rows, num_inputs, num_outputs] = MatrixProduct(operands);
  require_weights(operands, num_outputs);
  const SlidingWindow pixel{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
  const Geometry geometry{1, 1, rows, num_inputs, 1, rows, num_outputs, 1, pixel};
  return std::make_unique<ConvolutionStep>(operands, geometry,
                                           Bounds{attributes.min(), attributes.max()});
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d, KernelSet::fallback},
    {program::Operator::FullyConnected, make_fully_connected, KernelSet::fallback},
};

}  // namespace

}  // namespace arenite
