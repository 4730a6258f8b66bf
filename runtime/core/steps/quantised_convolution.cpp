// Convolutions, and products with weights, of 8-bit integers whose filters are packed.
#include <algorithm>
#include <cmath>

#include "convolution_checks.hpp"
#include "convolution_step.hpp"
#include "kernels/convolution/convolve_int8.hpp"
#include "kernels/convolution/depthwise_int8.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// Positions of the scales of the sums; and, where the result is no integer of 8 bits, of the scale
// and zero point of the source and of the zero points of the filter.
constexpr std::size_t kScales = 4;
constexpr std::size_t kSourceScale = 5;
constexpr std::size_t kSourceZero = 6;
constexpr std::size_t kFilterZeros = 7;
constexpr std::size_t kMostInputs = 8;

// Whether the step has scales of its sums, as steps with packed filters do.
bool is_quantised(const Operands& operands) { return optional_input(operands, kScales) != nullptr; }

// Leaves floats to other kernels, and refuses what none takes.
std::unique_ptr<Step> left_to_others(const Operands& operands) {
  using program::Type;
  const Type source = operands.inputs[0]->type;
  const bool is_float = source == Type::float32 || source == Type::float16;
  require(operands, is_float == is_packed(*operands.inputs[1]), "input and weights differ in type");
  require(operands, source != Type::int8 && source != Type::uint8,
          "8-bit integers need a packed filter and scales of their sums");
  return nullptr;
}

// Returns a bound of the results as a quantised integer.
template <typename T>
std::int32_t quantised_bound(float bound, const TensorView& result) {
  const float steps = std::nearbyint(bound / result.scales[0]);
  const float low = static_cast<float>(std::numeric_limits<T>::min() - result.zero_point);
  const float high = static_cast<float>(std::numeric_limits<T>::max() - result.zero_point);
  return static_cast<std::int32_t>(std::min(std::max(steps, low), high)) + result.zero_point;
}

template <typename T, typename Attributes>
QuantisedStore store(const Operands& operands, const Attributes& attributes) {
  const auto& result = *operands.outputs[0];
  const auto* bias = optional_input(operands, 2);
  return {bias == nullptr ? nullptr : bias->as<std::int32_t>(),
          operands.inputs[kScales]->as<float>(), result.zero_point,
          quantised_bound<T>(attributes.min(), result),
          quantised_bound<T>(attributes.max(), result)};
}

// Checks types, scales and bounds; the filter and the scales must be present.
template <typename Attributes>
void require_quantised(const Operands& operands, const Attributes& attributes) {
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto* bias = optional_input(operands, 2);
  const auto& scales = *operands.inputs[kScales];
  const auto& result = *operands.outputs[0];
  const auto type = source.type;
  require(operands, type == program::Type::int8 || type == program::Type::uint8,
          "only int8 and uint8 are supported");
  require(operands, result.type == type, "input and output differ in type");
  require(operands, filter.type == program::Type::int8 && filter.scales.size() == 1,
          "its filter must be int8 with one zero point");
  require(operands, source.scales.size() == 1 && result.scales.size() == 1,
          "its input and output must have one scale each");
  require(operands, result.rank() > 0 && result.size > 0, "its output is empty");
  const std::size_t num_outputs = result.shape.back();
  require(operands,
          bias == nullptr ||
              (bias->type == program::Type::int32 && bias->num_elements() == num_outputs),
          "its bias does not fit");
  require(operands, scales.type == program::Type::float32 && scales.num_elements() == num_outputs,
          "its scales are not one for each output channel");
  require(operands, attributes.min() <= attributes.max(), "its min is above its max");
}

// Requires a filter of the panels for products of `depth` elements.
void require_panels(const Operands& operands, std::size_t groups, std::size_t depth) {
  const auto& filter = *operands.inputs[1];
  const std::size_t outputs = operands.outputs[0]->shape.back() / groups;
  const std::size_t panels = groups * ((outputs + kInt8Panel - 1) / kInt8Panel);
  const std::size_t quads = (depth + kInt8Quad - 1) / kInt8Quad;
  require(operands,
          filter.rank() == 3 && filter.shape[0] == panels && filter.shape[1] == 1 + quads &&
              filter.shape[2] == kInt8Panel * kInt8Quad,
          "its packed filter does not fit");
}

Int8Convolution packed_kernel(const Operands& operands, const SlidingWindow& window,
                              std::size_t groups, const QuantisedStore& kept) {
  return {window,
          groups,
          operands.inputs[1]->as<std::int8_t>(),
          operands.inputs[0]->zero_point,
          operands.inputs[1]->zero_point,
          kept};
}

// Calls make with a value of the type of the images.
template <typename Make>
std::unique_ptr<Step> of_type(const Operands& operands, const Make& make) {
  return operands.inputs[0]->type == program::Type::int8 ? make(std::int8_t{})
                                                         : make(std::uint8_t{});
}

// Whether 8-bit integers become sums: floats, or integers of 32 bits; or have sums added.
bool makes_sums(const Operands& operands) {
  const auto source = operands.inputs[0]->type;
  const auto result = operands.outputs[0]->type;
  return (source == program::Type::int8 || source == program::Type::uint8) &&
         (result == program::Type::float32 || result == program::Type::int32 ||
          optional_input(operands, kAddend) != nullptr);
}

// A convolution to sums, with numbers that are made in the run.
template <typename T>
struct SumKernel {
  Int8Sums store;
  const float* source_scale;  // null: 1
  const T* source_zero;       // null: that of the store

  template <typename Sum>
  static void run(const SumKernel& kernel, const Image<const T>& source, const Image<Sum>& result,
                  RowRange rows, pthreadpool_t threads) {
    Int8Sums sums = kernel.store;
    sums.source_scale = kernel.source_scale == nullptr ? 1.0f : *kernel.source_scale;
    if (kernel.source_zero != nullptr) { sums.source_zero_point = *kernel.source_zero; }
    convolve(sums, source, result, rows, threads);
  }
};

}  // namespace

template <typename T>
constexpr bool adds_sums<SumKernel<T>> = true;

namespace {

// Checks the addend, if there is one, of a step of which the other operands fit.
void require_addend(const Operands& operands) {
  const auto* addend = optional_input(operands, kAddend);
  const auto& result = *operands.outputs[0];
  require(
      operands,
      addend == nullptr || (addend->type == program::Type::int32 &&
                            result.type != program::Type::float32 && addend->shape == result.shape),
      "its addend must be int32 and of the shape of its output, which is of integers");
  require(operands, addend == nullptr || operands.inputs[1]->zero_point == 0,
          "its filter has an addend and a zero point");
}

// Returns an optional input of so many elements, null if it is left out.
template <typename T>
const T* vector_of(const Operands& operands, std::size_t position, program::Type type,
                   std::size_t count) {
  const auto* view = optional_input(operands, position);
  require(operands, view == nullptr || (view->type == type && view->num_elements() == count),
          "a scale, zero point or bias does not fit");
  return view == nullptr ? nullptr : view->as<T>();
}

template <typename T, typename Attributes>
SumKernel<T> sum_kernel(const Operands& operands, const Attributes& attributes,
                        const SlidingWindow& window, std::size_t groups) {
  using program::Type;
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require_addend(operands);
  const std::int32_t source_zero = source.is_quantised() ? source.zero_point : 0;
  if (result.type == source.type) {
    require(operands, is_quantised(operands), "its sums have an addend and no scales");
    require_quantised(operands, attributes);
    Int8Sums sums{window, groups, filter.as<std::int8_t>(), source_zero};
    sums.bytes = store<T>(operands, attributes);
    return {sums, nullptr, nullptr};
  }
  const bool is_float = result.type == Type::float32;
  require(operands, is_float || result.type == Type::int32, "input and output differ in type");
  require(operands, result.rank() > 0 && result.size > 0, "its output is empty");
  require(operands, filter.type == Type::int8, "its filter must be int8");
  require(operands, attributes.min() <= attributes.max(), "its min is above its max");
  const std::size_t outputs = result.shape.back();
  const auto* scales = vector_of<float>(operands, kScales, Type::float32, outputs);
  const auto* bias = vector_of<float>(operands, 2, Type::float32, outputs);
  require(operands, is_float ? scales != nullptr : scales == nullptr && bias == nullptr,
          "floats need scales of their sums, and integers have neither scales nor bias");
  return {{window, groups, filter.as<std::int8_t>(), source_zero,
           vector_of<std::int32_t>(operands, kFilterZeros, Type::int32, outputs), 1.0f, scales,
           bias, attributes.min(), attributes.max()},
          vector_of<float>(operands, kSourceScale, Type::float32, 1),
          vector_of<T>(operands, kSourceZero, source.type, 1)};
}

// Calls make with a value of the type of the sums, or of what they become: that of the source, T.
template <typename T, typename Make>
std::unique_ptr<Step> of_sum(const Operands& operands, const Make& make) {
  const auto type = operands.outputs[0]->type;
  if (type == operands.inputs[0]->type) { return make(T{}); }
  return type == program::Type::float32 ? make(float{}) : make(std::int32_t{});
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, kMostInputs);
  const bool is_sum = makes_sums(operands);
  if (!is_sum && !is_quantised(operands)) { return left_to_others(operands); }
  if (!is_sum) { require_quantised(operands, attributes); }
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const SlidingWindow window = stated_window(operands, attributes, attributes.kernel(), 0);
  require_images(operands, window);
  const std::size_t groups = attributes.groups();
  const std::size_t taps = std::size_t{window.kernel[0]} * window.kernel[1];
  require(operands,
          groups > 0 && source.shape[3] % groups == 0 && result.shape[3] % groups == 0 &&
              taps <= operands.inputs[1]->size,
          "groups and channels do not fit");
  require_panels(operands, groups, taps * (source.shape[3] / groups));
  return of_type(operands, [&](auto element) -> std::unique_ptr<Step> {
    using T = decltype(element);
    if (is_sum) {
      const auto kernel = sum_kernel<T>(operands, attributes, window, groups);
      return of_sum<T>(operands, [&](auto sum) {
        using Sum = decltype(sum);
        return image_step<T, Sum>(operands, SumKernel<T>::template run<Sum>, kernel);
      });
    }
    return image_step<T>(operands, convolve,
                         packed_kernel(operands, window, groups, store<T>(operands, attributes)));
  });
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, kMostInputs);
  const bool is_sum = makes_sums(operands);
  if (!is_sum && !is_quantised(operands)) { return left_to_others(operands); }
  if (!is_sum) { require_quantised(operands, attributes); }
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, result.rank() > 0 && result.size > 0, "its output is empty");
  require(operands, source.rank() > 0 && source.shape.back() > 0, "its input must be rows");
  const std::size_t rows = result.num_elements() / result.shape.back();
  require(operands, source.num_elements() / source.shape.back() == rows,
          "rows and weights do not fit");
  require_panels(operands, 1, source.shape.back());
  const SlidingWindow pixel{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
  return of_type(operands, [&](auto element) -> std::unique_ptr<Step> {
    using T = decltype(element);
    if (is_sum) {
      const auto kernel = sum_kernel<T>(operands, attributes, pixel, 1);
      return of_sum<T>(operands, [&](auto sum) {
        using Sum = decltype(sum);
        return pixel_step<T, Sum>(operands, SumKernel<T>::template run<Sum>, kernel, rows);
      });
    }
    return pixel_step<T>(operands, convolve,
                         packed_kernel(operands, pixel, 1, store<T>(operands, attributes)), rows);
  });
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  require_arity(operands, 2, 5);
  if (!is_quantised(operands)) { return left_to_others(operands); }
  require_quantised(operands, attributes);
  require(operands, optional_input(operands, kAddend) == nullptr,
          "a depthwise convolution of 8-bit integers cannot have an addend");
  const SlidingWindow window = depthwise_window(operands, attributes);
  return of_type(operands, [&](auto element) {
    using T = decltype(element);
    const Int8DepthwiseConvolution kernel{
        window, operands.inputs[1]->as<std::int8_t>(), operands.inputs[0]->zero_point,
        operands.inputs[1]->zero_point, store<T>(operands, attributes)};
    return image_step<T>(operands, convolve_depthwise, kernel);
  });
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d, KernelSet::integers},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d, KernelSet::integers},
    {program::Operator::FullyConnected, make_fully_connected, KernelSet::integers},
};

}  // namespace

}  // namespace arenite
