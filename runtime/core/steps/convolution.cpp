// Convolutions, and products with weights, in floating point.
#include <type_traits>

#include "convolution_checks.hpp"
#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/depthwise.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// The first image of a tensor N, H, W, C.
template <typename T>
Image<T> image(const TensorView& view) {
  const std::size_t rows = view.shape[1];
  const std::size_t columns = view.shape[2];
  const std::size_t channels = view.shape[3];
  return {view.as<std::remove_const_t<T>>(),
          rows,
          columns,
          channels,
          channels,
          columns * channels,
          rows};
}

// The rows of a matrix as the pixels of one row of an image.
template <typename T>
Image<T> pixels(const TensorView& view, std::size_t count) {
  const std::size_t channels = view.shape.back();
  return {view.as<std::remove_const_t<T>>(), 1, count, channels, channels, count * channels, 1};
}

// Runs a kernel on all rows of one image after the other.
template <typename Kernel>
class ConvolutionStep final : public Step {
 public:
  using Run = void (*)(const Kernel&, const Image<const float>&, const Image<float>&, RowRange,
                       pthreadpool_t);

  ConvolutionStep(Run run, Kernel kernel, Image<const float> source, Image<float> result,
                  std::size_t count, pthreadpool_t threads)
      : run_(run),
        kernel_(kernel),
        source_(source),
        result_(result),
        count_(count),
        threads_(threads) {}

  void run() override {
    Image<const float> source = source_;
    Image<float> result = result_;
    for (std::size_t i = 0; i < count_; ++i) {
      run_(kernel_, source, result, {0, result.rows}, threads_);
      source.data += source.rows * source.row_stride;
      result.data += result.rows * result.row_stride;
    }
  }

  const char* backend() const override { return "arenite"; }

 private:
  Run run_;
  Kernel kernel_;
  Image<const float> source_;
  Image<float> result_;
  std::size_t count_;
  pthreadpool_t threads_;
};

bool are_floats(const Operands& operands) {
  const auto* bias = optional_input(operands, 2);
  const auto is_float = [](const TensorView& view) { return view.type == program::Type::float32; };
  return is_float(*operands.inputs[0]) && is_float(*operands.inputs[1]) &&
         is_float(*operands.outputs[0]) && (bias == nullptr || is_float(*bias));
}

template <typename Attributes>
FloatStore store(const Operands& operands, const Attributes& attributes, std::size_t num_channels) {
  const auto* bias = optional_input(operands, 2);
  require(operands, bias == nullptr || bias->num_elements() == num_channels,
          "its bias does not fit");
  require(operands, attributes.min() <= attributes.max(), "its bounds leave nothing between them");
  return {bias == nullptr ? nullptr : bias->as<float>(), nullptr, attributes.min(),
          attributes.max()};
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, 3);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const Convolution kernel{conv_window(operands, attributes), attributes.groups(),
                           operands.inputs[1]->as<float>(),
                           store(operands, attributes, result.shape[3])};
  return std::make_unique<ConvolutionStep<Convolution>>(
      convolve, kernel, image<const float>(source), image<float>(result), source.shape[0],
      operands.threads);
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, 3);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const MatrixProduct product(operands);
  const Convolution kernel{{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                           1,
                           operands.inputs[1]->as<float>(),
                           store(operands, attributes, product.num_outputs)};
  return std::make_unique<ConvolutionStep<Convolution>>(
      convolve, kernel, pixels<const float>(*operands.inputs[0], product.rows),
      pixels<float>(*operands.outputs[0], product.rows), 1, operands.threads);
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  require_arity(operands, 2, 3);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const DepthwiseConvolution kernel{depthwise_window(operands, attributes),
                                    operands.inputs[1]->as<float>(),
                                    store(operands, attributes, result.shape[3])};
  return std::make_unique<ConvolutionStep<DepthwiseConvolution>>(
      convolve_depthwise, kernel, image<const float>(source), image<float>(result), source.shape[0],
      operands.threads);
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d},
    {program::Operator::FullyConnected, make_fully_connected},
};

}  // namespace

}  // namespace arenite
