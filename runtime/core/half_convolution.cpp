// Convolutions, and products with weights, in the arithmetic of 16-bit floats.
#include <algorithm>
#include <cmath>
#include <utility>

#include "convolution_checks.hpp"
#include "halves.hpp"
#include "kernels/convolution/convolve_halves.hpp"
#include "kernels/parallel.hpp"
#include "steps/convolution_step.hpp"

namespace arenite {

#if defined(ARENITE_ARM64)

namespace {

using program::Operator;
using program::Type;

// A constant as 16-bit floats.
struct RoundedConstant {
  std::vector<Half> halves;
  bool is_finite = true;
};
struct RoundedBias : RoundedConstant {};
struct RoundedFilter : RoundedConstant {};

// The bias as 16-bit floats, and a filter that has 32 in the file.
struct Rounded {
  std::shared_ptr<const RoundedBias> bias;
  std::shared_ptr<const RoundedFilter> filter;  // null: it is read as it is
};

class StepInHalves final : public Step {
 public:
  StepInHalves(Rounded rounded, std::unique_ptr<Step> inner)
      : rounded_(std::move(rounded)), inner_(std::move(inner)) {}

  void run() override { inner_->run(); }
  bool makes_rows() const override { return inner_->makes_rows(); }
  bool finds_rows(std::size_t input) const override { return inner_->finds_rows(input); }
  void run_rows(RowRange rows) override { inner_->run_rows(rows); }
  bool has_packed(std::size_t input) const override {
    return input == 2 || (input == 1 && rounded_.filter != nullptr);
  }
  std::size_t held_bytes() const override {
    const std::size_t filter = rounded_.filter == nullptr ? 0 : heap_bytes(rounded_.filter->halves);
    return heap_bytes(rounded_.bias->halves) + filter + sizeof *inner_;
  }

 private:
  Rounded rounded_;
  std::unique_ptr<Step> inner_;
};

bool is_half(const TensorView* view) { return view->type == Type::float16; }

// Adds a constant as 16-bit floats; tells whether they are finite.
bool add_rounded(const TensorView& constant, std::vector<Half>& to) {
  if (!constant.is_constant || constant.coded_size != 0) { return false; }
  const std::size_t count = constant.num_elements();
  const auto is_finite = [](Half half) { return std::isfinite(widened(half)); };
  to.resize(count);
  if (constant.type == Type::float32) {
    narrow(constant.as<float>(), to.data(), count);
  } else if (is_half(&constant)) {
    std::copy_n(constant.as<Half>(), count, to.data());
  } else {
    return false;
  }
  return std::all_of(to.begin(), to.end(), is_finite);
}

// Rounds the filter; null if that cannot be.
const Half* round_filter(const Operands& operands, Rounded& rounded) {
  rounded.filter = kept_table<RoundedFilter>(
      operands, [](const RoundedFilter&) { return true; },
      [&] {
        RoundedFilter made;
        made.is_finite = add_rounded(*operands.inputs[1], made.halves);
        return made;
      });
  return rounded.filter->is_finite ? rounded.filter->halves.data() : nullptr;
}

// Whether the kernels take these images and the addend.
bool are_taken(const Operands& operands) {
  const auto is_float = [](const TensorView* view) {
    return is_half(view) || view->type == Type::float32;
  };
  const TensorView* source = operands.inputs[0];
  const TensorView* result = operands.outputs[0];
  const TensorView* addend = optional_input(operands, kAddend);
  return is_float(source) && is_float(result) && (is_half(source) || is_half(result)) &&
         (addend == nullptr || (is_half(addend) && is_half(result)));
}

template <typename Attributes>
bool round_store(const Operands& operands, const Attributes& attributes, Rounded& rounded,
                 HalfStore& store) {
  const TensorView* bias = optional_input(operands, 2);
  const std::size_t count = round_up(operands.outputs[0]->shape.back(), kPanel);
  rounded.bias = kept_table<RoundedBias>(
      operands, [count](const RoundedBias& kept) { return kept.halves.size() == count; },
      [&] {
        RoundedBias made;
        made.is_finite = bias == nullptr || add_rounded(*bias, made.halves);
        made.halves.resize(count);
        return made;
      });
  store = {rounded.bias->halves.data(), nullptr, attributes.min(), attributes.max()};
  return rounded.bias->is_finite;
}

// The kernel for the types of the images, of `make(kernel, source, result)`.
template <typename Make>
std::unique_ptr<Step> of_types(const Operands& operands, const Make& make) {
  if (!is_half(operands.inputs[0])) { return make(convolve_halves<float, Half>, float{}, Half{}); }
  if (!is_half(operands.outputs[0])) { return make(convolve_halves<Half, float>, Half{}, float{}); }
  return make(convolve_halves<Half, Half>, Half{}, Half{});
}

std::unique_ptr<Step> dense(const Operands& operands, Rounded& rounded) {
  const auto* convolution = operands.step.kernel_as_Conv2D();
  if (convolution != nullptr &&
      (convolution->groups() != 1 || convolution->tile() != 0 || convolution->tuned_tile() != 0)) {
    return nullptr;
  }
  HalfConvolution kernel{};
  if (is_half(operands.inputs[1])) {
    kernel.filter = operands.inputs[1]->as<Half>();
  } else {
    kernel.filter = round_filter(operands, rounded);
    if (kernel.filter == nullptr) { return nullptr; }
  }
  if (convolution != nullptr) {
    if (!round_store(operands, *convolution, rounded, kernel.store)) { return nullptr; }
    kernel.window = conv_window(operands, *convolution);
    if (!convolves_halves(kernel, operands.inputs[0]->shape[3])) { return nullptr; }
    return of_types(operands, [&](auto run, auto source, auto result) {
      return image_step<decltype(source), decltype(result)>(operands, run, kernel);
    });
  }
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  if (!round_store(operands, attributes, rounded, kernel.store)) { return nullptr; }
  kernel.window = {{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
  const MatrixProduct product(operands);
  if (!convolves_halves(kernel, product.num_inputs)) { return nullptr; }
  return of_types(operands, [&](auto run, auto source, auto result) {
    return pixel_step<decltype(source), decltype(result)>(operands, run, kernel, product.rows);
  });
}

std::unique_ptr<Step> depthwise(const Operands& operands, Rounded& rounded) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  const std::size_t channels = operands.outputs[0]->shape[3];
  HalfDepthwise kernel{};
  kernel.window = depthwise_window(operands, attributes);
  if (!is_half(operands.inputs[0]) || !is_half(operands.outputs[0]) ||
      operands.inputs[0]->shape[3] != channels || channels < 8 ||
      (channels % 8 != 0 && optional_input(operands, kAddend) != nullptr) ||
      kernel.window.kernel[0] > kMostDepthwiseRows) {
    return nullptr;
  }
  kernel.filter = round_filter(operands, rounded);
  if (kernel.filter == nullptr || !round_store(operands, attributes, rounded, kernel.store)) {
    return nullptr;
  }
  return image_step<Half>(operands, convolve_depthwise_halves, kernel);
}

}  // namespace

std::unique_ptr<Step> step_in_halves(const Operands& operands) {
  const auto kind = operands.step.kernel_type();
  const bool is_dense = kind == Operator::Conv2D || kind == Operator::FullyConnected;
  if (!has_half_arithmetic() || (!is_dense && kind != Operator::DepthwiseConv2D) ||
      !are_taken(operands)) {
    return nullptr;
  }
  Rounded rounded;
  auto inner = is_dense ? dense(operands, rounded) : depthwise(operands, rounded);
  return inner == nullptr ? nullptr
                          : std::make_unique<StepInHalves>(std::move(rounded), std::move(inner));
}

#else

std::unique_ptr<Step> step_in_halves(const Operands& /*operands*/) { return nullptr; }

#endif

}  // namespace arenite
