// Convolutions, and products with weights, in floating point.
#include <algorithm>
#include <type_traits>

#include "convolution_checks.hpp"
#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/depthwise.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

constexpr std::size_t kAddend = 3;  // position of what is added to the result

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

// Runs a kernel on all rows of one image after the other. Where an addend is, the kernel has it.
template <typename Kernel>
class ConvolutionStep final : public Step {
 public:
  using Run = void (*)(const Kernel&, const Image<const float>&, const Image<float>&, RowRange,
                       pthreadpool_t);

  ConvolutionStep(const Operands& operands, Run run, Kernel kernel, Image<const float> source,
                  Image<float> result, std::size_t count)
      : run_(run),
        kernel_(kernel),
        source_(source),
        addend_(source),
        result_(result),
        count_(count),
        threads_(operands.threads) {
    if (const auto* addend = optional_input(operands, kAddend)) {
      addend_ = {addend->as<const float>(), result.rows,       result.columns,  result.channels,
                 result.pixel_stride,       result.row_stride, result.held_rows};
      kernel_.store.addend = &addend_;
    }
  }

  void run() override {
    const Image<const float> source = source_;
    const Image<const float> addend = addend_;
    const Image<float> result = result_;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t elements = i * result.rows * result.row_stride;
      source_.data = source.data + i * source.rows * source.row_stride;
      addend_.data = addend.data + elements;
      result_.data = result.data + elements;
      run_(kernel_, source_, result_, {0, result.rows}, threads_);
    }
    source_ = source;
    addend_ = addend;
    result_ = result;
  }

  const char* backend() const override { return "arenite"; }

 private:
  Run run_;
  Kernel kernel_;
  Image<const float> source_;
  Image<const float> addend_;  // of the shape of the result, if there is one
  Image<float> result_;
  std::size_t count_;
  pthreadpool_t threads_;
};

bool are_floats(const Operands& operands) {
  const auto is_float = [](const TensorView* view) {
    return view == nullptr || view->type == program::Type::float32;
  };
  return std::all_of(operands.inputs.begin(), operands.inputs.end(), is_float) &&
         is_float(operands.outputs[0]);
}

template <typename Attributes>
FloatStore store(const Operands& operands, const Attributes& attributes, std::size_t num_channels) {
  const auto* bias = optional_input(operands, 2);
  require(operands, bias == nullptr || bias->num_elements() == num_channels,
          "its bias does not fit");
  const auto* addend = optional_input(operands, kAddend);
  require(operands, addend == nullptr || addend->shape == operands.outputs[0]->shape,
          "its addend has another shape than its output");
  require(operands, attributes.min() <= attributes.max(), "its bounds leave nothing between them");
  return {bias == nullptr ? nullptr : bias->as<float>(), nullptr, attributes.min(),
          attributes.max()};
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, 4);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const Convolution kernel{conv_window(operands, attributes), attributes.groups(),
                           operands.inputs[1]->as<float>(),
                           store(operands, attributes, result.shape[3])};
  return std::make_unique<ConvolutionStep<Convolution>>(operands, convolve, kernel,
                                                        image<const float>(source),
                                                        image<float>(result), source.shape[0]);
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, 4);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const MatrixProduct product(operands);
  const Convolution kernel{{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                           1,
                           operands.inputs[1]->as<float>(),
                           store(operands, attributes, product.num_outputs)};
  return std::make_unique<ConvolutionStep<Convolution>>(
      operands, convolve, kernel, pixels<const float>(*operands.inputs[0], product.rows),
      pixels<float>(*operands.outputs[0], product.rows), 1);
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  require_arity(operands, 2, 4);
  if (!are_floats(operands)) {
    return nullptr;
  }
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const DepthwiseConvolution kernel{depthwise_window(operands, attributes),
                                    operands.inputs[1]->as<float>(),
                                    store(operands, attributes, result.shape[3])};
  return std::make_unique<ConvolutionStep<DepthwiseConvolution>>(
      operands, convolve_depthwise, kernel, image<const float>(source), image<float>(result),
      source.shape[0]);
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d},
    {program::Operator::FullyConnected, make_fully_connected},
};

}  // namespace

}  // namespace arenite
