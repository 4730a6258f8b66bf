// Convolutions and products of quantised integers whose filters lie as they are: activations of 16
// bits with weights of 8, and weights of 8 bits that are made in the run.
//
// Sums are exact, and rounded as LiteRT's reference kernels round them, to the bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "convolution_checks.hpp"
#include "kernels/fixed_point.hpp"
#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "registry.hpp"
#include "steps/images.hpp"

namespace arenite {

namespace {

using program::Type;

// How a sum becomes a result.
enum class Rescaling {
  narrow,  // a sum of 32 bits, by a multiplier of 31
  wide,    // a sum of 64 bits, by a multiplier of 15
  real     // as a 64-bit float, halves away from zero
};

// Adds the bias to a sum, rescales, rounds and clamps it.
template <typename T>
class Store {
 public:
  Store(const Operands& operands, Rescaling rescaling, std::size_t axis, float low, float high)
      : rescaling_(rescaling), zero_point_(operands.outputs[0]->zero_point) {
    const auto& source = *operands.inputs[0];
    const auto& filter = *operands.inputs[1];
    const auto& result = *operands.outputs[0];
    const std::size_t count = result.shape.back();
    require(operands,
            filter.scales.size() == 1 || (filter.scales.size() == count && filter.axis == axis),
            "its filter has scales that are not those of its output channels");
    for (const float scale : filter.scales) {
      // LiteRT multiplies scales of single tensors of 8 bits as 32-bit floats.
      const double product = sizeof(T) == 1 ? static_cast<double>(source.scales[0] * scale)
                                            : static_cast<double>(source.scales[0]) * scale;
      const double number = product / result.scales[0];
      const Multiplier multiplier = Multiplier::of(number);
      require(operands, multiplier.fits() && (rescaling != Rescaling::wide || multiplier.shift < 8),
              "its scales are too far apart");
      factors_.push_back({multiplier, number});
    }
    step_ = factors_.size() == 1 ? 0 : 1;
    if (const auto* bias = optional_input(operands, 2)) {
      require(operands,
              bias->num_elements() == count &&
                  (bias->type == Type::int32 || (bias->type == Type::int64 && sizeof(T) == 2)),
              "its bias does not fit");
      (bias->type == Type::int32 ? void(bias32_ = bias->as<std::int32_t>())
                                 : void(bias64_ = bias->as<std::int64_t>()));
    }
    require(operands, low <= high, "its min is above its max");
    min_ = quantised_bound<T>(low, result);
    max_ = quantised_bound<T>(high, result);
  }

  T operator()(std::size_t channel, std::int64_t total) const {
    if (bias32_ != nullptr) { total = sum(total, std::int64_t{bias32_[channel]}); }
    if (bias64_ != nullptr) { total = sum(total, bias64_[channel]); }
    const Factor& factor = factors_[channel * step_];
    std::int64_t value = 0;
    switch (rescaling_) {
      case Rescaling::narrow:
        value = factor.multiplier.times(static_cast<std::int32_t>(total));
        break;
      case Rescaling::wide: value = factor.multiplier.times_wide(total); break;
      case Rescaling::real:
        value = saturate<std::int32_t>(std::round(static_cast<double>(total) * factor.number));
        break;
    }
    return static_cast<T>(std::clamp<std::int64_t>(value + zero_point_, min_, max_));
  }

  std::size_t held_bytes() const { return heap_bytes(factors_); }

 private:
  struct Factor {
    Multiplier multiplier;
    double number;
  };

  Rescaling rescaling_;
  std::int64_t zero_point_;
  std::int64_t min_;
  std::int64_t max_;
  StepVector<Factor> factors_;  // one, or one for each output channel
  std::size_t step_;
  const std::int32_t* bias32_ = nullptr;
  const std::int64_t* bias64_ = nullptr;
};

// The sum of products of elements less their zero points.
template <typename T>
std::int64_t dot(const T* a, std::int32_t a_zero, const std::int8_t* b, std::int32_t b_zero,
                 std::size_t count) {
  constexpr std::size_t kBlock = 64;  // products of 24 bits whose sum fits 32
  std::int64_t total = 0;
  for (std::size_t done = 0; done < count; done += kBlock) {
    std::int32_t part = 0;
    const std::size_t end = std::min(count, done + kBlock);
    for (std::size_t i = done; i < end; ++i) { part += (a[i] - a_zero) * (b[i] - b_zero); }
    total += part;
  }
  return total;
}

// The sum of what `tap(pixel, row, column)` gives for the taps of a window inside the image.
template <typename T, typename Tap>
std::int64_t sum_of_taps(const SlidingWindow& window, const Image<const T>& image, std::size_t y,
                         std::size_t x, const Tap& tap) {
  const WindowSpan rows = window_span(window, 0, y, image.rows);
  const WindowSpan columns = window_span(window, 1, x, image.columns);
  std::int64_t total = 0;
  for (std::size_t i = rows.first; i < rows.last; ++i) {
    const T* row = row_under(window, image, y, i);
    for (std::size_t k = columns.first; k < columns.last; ++k) {
      const auto at = columns.start + static_cast<std::int64_t>(k * window.dilations[1]);
      total += tap(row + static_cast<std::size_t>(at) * image.pixel_stride, i, k);
    }
  }
  return total;
}

// A filter of outputs, rows, columns and inputs, and images that it slides over.
template <typename T>
struct Products {
  SlidingWindow window;
  std::size_t groups;
  const std::int8_t* filter;
  std::int32_t source_zero;
  std::int32_t filter_zero;

  // The products of one pixel and one tap, of all inputs of a group.
  std::int64_t tap(const T* pixel, std::size_t row, std::size_t column, std::size_t output,
                   std::size_t outputs, std::size_t inputs) const {
    const std::size_t depth = inputs / groups;
    const std::size_t group = output / (outputs / groups);
    const std::size_t place = (output * window.kernel[0] + row) * window.kernel[1] + column;
    return dot(pixel + group * depth, source_zero, filter + place * depth, filter_zero, depth);
  }
};

template <typename T>
struct PlainConvolution : Products<T> {
  std::int64_t operator()(const Image<const T>& image, std::size_t y, std::size_t x,
                          std::size_t output, std::size_t outputs) const {
    return sum_of_taps(this->window, image, y, x,
                       [&](const T* pixel, std::size_t i, std::size_t k) {
                         return this->tap(pixel, i, k, output, outputs, image.channels);
                       });
  }
};

// A filter of 1, rows, columns and outputs.
template <typename T>
struct PlainDepthwise : Products<T> {
  std::int64_t operator()(const Image<const T>& image, std::size_t y, std::size_t x,
                          std::size_t output, std::size_t outputs) const {
    const std::size_t input = output / (outputs / image.channels);
    return sum_of_taps(
        this->window, image, y, x, [&](const T* pixel, std::size_t i, std::size_t k) {
          const std::size_t place = (i * this->window.kernel[1] + k) * outputs + output;
          return std::int64_t{pixel[input]} * this->filter[place];
        });
  }
};

template <typename T>
struct PlainTransposed : Products<T> {
  std::int64_t operator()(const Image<const T>& image, std::size_t y, std::size_t x,
                          std::size_t output, std::size_t outputs) const {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < this->window.kernel[0]; ++i) {
      const std::size_t row = source(0, y, i);
      if (row >= image.rows) { continue; }
      for (std::size_t k = 0; k < this->window.kernel[1]; ++k) {
        const std::size_t column = source(1, x, k);
        if (column >= image.columns) { continue; }
        total += this->tap(image.row(row) + column * image.pixel_stride, i, k, output, outputs,
                           image.channels);
      }
    }
    return total;
  }

 private:
  // The row or column that reaches that of the result by a tap; huge, if none does.
  std::size_t source(std::size_t axis, std::size_t index, std::size_t tap) const {
    const std::int64_t before = axis == 0 ? this->window.padding[0] : this->window.padding[3];
    const std::int64_t place = static_cast<std::int64_t>(index) + before -
                               static_cast<std::int64_t>(tap * this->window.dilations[axis]);
    const std::int64_t stride = this->window.strides[axis];
    return place < 0 || place % stride != 0 ? SIZE_MAX : static_cast<std::size_t>(place / stride);
  }
};

template <typename T, typename Sums>
class PlainStep final : public Step {
 public:
  PlainStep(const Operands& operands, const Sums& sums, const Store<T>& store,
            const Image<const T>& source, const Image<T>& result, std::size_t num_images)
      : sums_(sums),
        store_(store),
        source_(source),
        result_(result),
        num_images_(num_images),
        threads_(operands.threads) {}

  void run() override {
    for (std::size_t image = 0; image < num_images_; ++image) { make({0, result_.rows}, image); }
  }
  bool makes_rows() const override { return num_images_ == 1; }
  bool finds_rows(std::size_t input) const override { return input == 0 && num_images_ == 1; }
  void run_rows(RowRange rows) override { make(rows, 0); }
  std::size_t held_bytes() const override { return store_.held_bytes(); }

 private:
  void make(RowRange rows, std::size_t index) const {
    Image<const T> source = source_;
    Image<T> result = result_;
    source.data += index * source.rows * source.row_stride;
    result.data += index * result.rows * result.row_stride;
    const std::size_t taps = std::size_t{sums_.window.kernel[0]} * sums_.window.kernel[1];
    parallel(threads_, rows.count, result.columns * result.channels * source.channels * taps,
             [&](std::size_t first, std::size_t count) {
               first += rows.first;
               for (std::size_t y = first; y < first + count; ++y) {
                 T* to = result.row(y);
                 for (std::size_t x = 0; x < result.columns; ++x) {
                   for (std::size_t c = 0; c < result.channels; ++c) {
                     *to++ = store_(c, sums_(source, y, x, c, result.channels));
                   }
                 }
               }
             });
  }

  Sums sums_;
  Store<T> store_;
  Image<const T> source_;
  Image<T> result_;
  std::size_t num_images_;
  pthreadpool_t threads_;
};

// Whether these are integers of 16 bits, the activations that other kernels leave to these.
bool has_16_bits(const Operands& operands) {
  return operands.inputs.size() > 1 && operands.inputs[0] != nullptr &&
         operands.inputs[0]->type == Type::int16;
}

void require_quantised(const Operands& operands) {
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  require(operands, result.type == source.type, "input and output differ in type");
  require(operands, filter.type == Type::int8 && filter.coded_size == 0, "its filter must be int8");
  require(operands, source.scales.size() == 1 && result.scales.size() == 1,
          "its input and output must have one scale each");
  require(operands, filter.size > 0 && result.size > 0, "its filter or output is empty");
  require(operands,
          source.type != Type::int16 || (source.zero_point == 0 && result.zero_point == 0),
          "16-bit integers must have a zero point of 0");
}

// Products of integers of 16 bits are added up in 64 bits, unless the bias has 32.
Rescaling rescaling(const Operands& operands) {
  const auto* bias = optional_input(operands, 2);
  return bias != nullptr && bias->type == Type::int32 ? Rescaling::narrow : Rescaling::wide;
}

template <template <typename> typename Sums, typename Attributes>
std::unique_ptr<Step> make_of_images(const Operands& operands, const Attributes& attributes,
                                     const SlidingWindow& window, std::size_t groups,
                                     std::size_t axis) {
  using T = std::int16_t;
  require_quantised(operands);
  require(operands, operands.inputs[1]->zero_point == 0, "its filter has a zero point");
  const Store<T> store(operands, rescaling(operands), axis, attributes.min(), attributes.max());
  const Sums<T> sums{{window, groups, operands.inputs[1]->as<std::int8_t>(), 0, 0}};
  return std::make_unique<PlainStep<T, Sums<T>>>(
      operands, sums, store, first_image<const T>(*operands.inputs[0]),
      first_image<T>(*operands.outputs[0]), operands.inputs[0]->shape[0]);
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 2, 3);
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  return make_of_images<PlainConvolution>(operands, attributes, conv_window(operands, attributes),
                                          attributes.groups(), 0);
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 2, 3);
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  return make_of_images<PlainDepthwise>(operands, attributes,
                                        depthwise_window(operands, attributes), 1, 3);
}

std::unique_ptr<Step> make_transposed_conv_2d(const Operands& operands) {
  if (!has_16_bits(operands)) { return nullptr; }
  require_arity(operands, 2, 3);
  const auto& attributes = *operands.step.kernel_as_TransposedConv2D();
  require(operands, !attributes.by_inputs(), "a filter stored by inputs must be float32");
  return make_of_images<PlainTransposed>(
      operands, attributes, transposed_window(operands, attributes), attributes.groups(), 0);
}

// Rows as images of one column.
template <typename T>
std::unique_ptr<Step> make_of_rows(const Operands& operands, Rescaling rescaling) {
  require_quantised(operands);
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  const auto [rows, inputs, outputs] = MatrixProduct(operands);
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const Store<T> store(operands, rescaling, 0, attributes.min(), attributes.max());
  const PlainConvolution<T> sums{{{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
                                  1,
                                  filter.as<std::int8_t>(),
                                  source.zero_point,
                                  filter.zero_point}};
  const Image<const T> from{source.as<T>(), rows, 1, inputs, inputs, inputs};
  const Image<T> to{result.as<T>(), rows, 1, outputs, outputs, outputs};
  require(operands, source.rows == nullptr && result.rows == nullptr && !operands.in_bands,
          "it cannot run by rows");
  return std::make_unique<PlainStep<T, PlainConvolution<T>>>(operands, sums, store, from, to, 1);
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  if (has_16_bits(operands)) {
    require_arity(operands, 2, 3);
    return make_of_rows<std::int16_t>(operands, Rescaling::real);
  }
  const bool is_made = operands.inputs.size() > 1 && operands.inputs[0] != nullptr &&
                       operands.inputs[1] != nullptr && !operands.inputs[1]->is_constant &&
                       operands.inputs[0]->type == Type::int8;
  if (!is_made) { return nullptr; }
  require_arity(operands, 2, 3);
  return make_of_rows<std::int8_t>(operands, Rescaling::narrow);
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d, KernelSet::plain_integers},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d, KernelSet::plain_integers},
    {program::Operator::FullyConnected, make_fully_connected, KernelSet::plain_integers},
    {program::Operator::TransposedConv2D, make_transposed_conv_2d, KernelSet::plain_integers},
};

}  // namespace

}  // namespace arenite
