// Transposed convolutions, as one convolution for each phase of the strides or as sums of products.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "convolution_checks.hpp"
#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/convolve_int8.hpp"
#include "kernels/quantised.hpp"
#include "registry.hpp"
#include "steps/images.hpp"
#include "steps/transposed_by_inputs.hpp"
#include "steps/transposed_by_sums.hpp"
#include "steps/transposed_filter.hpp"
#include "steps/transposed_images.hpp"

namespace arenite {

namespace {

using program::Type;

// Values by output channel, repeated for phases of columns that are made together.
template <typename T>
StepVector<T> repeated(const T* given, std::size_t count, std::size_t times) {
  StepVector<T> found;
  for (std::size_t i = 0; i < times && given != nullptr; ++i) {
    found.insert(found.end(), given, given + count);
  }
  return found;
}

// A kernel's store points at these.
struct Stores {
  StepVector<float> floats;  // biases, or scales of integers
  StepVector<std::int32_t> biases;

  void take(FloatStore& store, std::size_t count, std::size_t times) {
    floats = repeated(store.bias, count, times);
    store.bias = store.bias == nullptr ? nullptr : floats.data();
  }
  void take(QuantisedStore& store, std::size_t count, std::size_t times) {
    floats = repeated(store.scales, count, times);
    biases = repeated(store.bias, count, times);
    store.scales = floats.data();
    store.bias = store.bias == nullptr ? nullptr : biases.data();
  }
};

// Images of T. Each phase of rows and columns is a convolution whose results lie pixels apart.
template <typename T, typename Kernel, typename Element>
class TransposedStep final : public Step {
 public:
  TransposedStep(const Operands& operands, const SlidingWindow& window, const Kernel& kernel)
      : num_images_(operands.inputs[0]->shape[0]),
        source_(first_image<const T>(*operands.inputs[0])),
        result_(first_image<T>(*operands.outputs[0])),
        threads_(operands.threads),
        kernel_(kernel),
        rows_(phases_of(window, 0, result_.rows)),
        columns_(phases_of(window, 1, result_.columns)),
        together_(kernel.groups == 1 && are_alike(columns_) ? columns_.size() : 1) {
    stores_.take(kernel_.store, result_.channels, together_);
    row_offsets_.reserve(rows_.size());
    for (const Phase& row : rows_) {
      row_offsets_.emplace_back();
      for (std::size_t q = 0; result_.row_offsets != nullptr && q < row.count; ++q) {
        row_offsets_.back().push_back(result_.row_offsets[row.first + q * row.stride]);
      }
    }
    const TransposedFilter filter{*operands.inputs[1], kernel.groups};
    packed_ = kept_table<Packed>(
        operands,
        [this](const Packed& packed) {
          return packed.num_rows == rows_.size() && packed.num_columns == columns_.size() &&
                 packed.together == together_;
        },
        [&] { return pack_all(filter); });
  }

  void run() override {
    for (std::size_t image = 0; image < num_images_; ++image) { make({0, result_.rows}, image); }
  }

  bool makes_rows() const override { return num_images_ == 1; }
  bool finds_rows(std::size_t input) const override { return input == 0 && num_images_ == 1; }
  void run_rows(RowRange rows) override { make(rows, 0); }

  std::size_t held_bytes() const override {
    return heap_bytes(rows_) + heap_bytes(columns_) + heap_bytes(row_offsets_) +
           heap_bytes(packed_->filters) + heap_bytes(packed_->zeros);
  }
  bool has_packed(std::size_t input) const override { return input == 1; }

 private:
  // The filters of so many phases of rows and columns.
  struct Packed {
    std::size_t num_rows;
    std::size_t num_columns;
    std::size_t together;
    std::vector<std::vector<Element>> filters;  // by phases that have taps
    std::vector<Element> zeros;                 // of all others
  };

  Packed pack_all(const TransposedFilter& filter) const {
    Packed packed{rows_.size(), columns_.size(), together_, {}, {}};
    for (const Phase& row : rows_) {
      for (std::size_t i = 0; i < columns_.size(); i += together_) {
        if (has_taps(row, columns_[i])) {
          packed.filters.push_back(pack(filter, row, {&columns_[i], together_}, T{}));
        } else if (packed.zeros.empty()) {
          // One tap of zeros, whichever phases they are of.
          Phase nothing = row;
          nothing.num_taps = 0;
          packed.zeros = pack(filter, nothing, {&columns_[i], together_}, T{});
        }
      }
    }
    return packed;
  }

  void make(RowRange rows, std::size_t image) const {
    std::size_t filter = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Phase& row = rows_[i];
      // Rows of the phase before some row of the result.
      const auto before = [&row](std::size_t index) {
        return index <= row.first ? 0 : (index - row.first + row.stride - 1) / row.stride;
      };
      const std::size_t first = before(rows.first);
      const std::size_t count = before(rows.first + rows.count) - first;
      for (std::size_t k = 0; k < columns_.size(); k += together_) {
        const Phase& column = columns_[k];
        const bool is_made = has_taps(row, column);
        const Element* packed = (is_made ? packed_->filters[filter] : packed_->zeros).data();
        filter += is_made ? 1 : 0;
        if (count == 0) { continue; }
        PhaseImages<T> images(row, column, source_, result_, row_offsets_[i]);
        images.result.channels *= together_;
        images.source.data += image * source_.rows * source_.row_stride;
        images.result.data += image * result_.rows * result_.row_stride;
        Kernel kernel = kernel_;
        kernel.window = images.window;
        kernel.filter = packed;
        convolve(kernel, images.source, images.result, {first, count}, threads_);
      }
    }
  }

  std::size_t num_images_;
  Image<const T> source_;
  Image<T> result_;
  pthreadpool_t threads_;
  Kernel kernel_;
  StepVector<Phase> rows_;
  StepVector<Phase> columns_;
  std::size_t together_;  // phases of columns whose pixels follow one another, made as one
  Stores stores_;
  StepVector<StepVector<std::uint64_t>> row_offsets_;  // of the result, by phase of rows
  std::shared_ptr<const Packed> packed_;
};

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands, const SlidingWindow& window,
                                        const program::TransposedConv2D& attributes) {
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const auto* bias = optional_input(operands, 2);
  require(operands, filter.type == Type::int8 || filter.type == Type::uint8,
          "input and weights differ in type");
  require(operands, source.scales.size() == 1 && result.scales.size() == 1,
          "its input or output has a scale for each channel");
  require(
      operands,
      filter.scales.size() == 1 || (filter.scales.size() == filter.shape[0] && filter.axis == 0),
      "its weights have scales that are not those of its output channels");
  require(operands, bias == nullptr || bias->type == Type::int32, "its bias does not fit");
  StepVector<float> scales(filter.shape[0]);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float scale = filter.scales[filter.scales.size() == 1 ? 0 : i];
    scales[i] = source.scales[0] * scale / result.scales[0];
  }
  const Scale out = Scale::of(result);
  const std::int32_t low = out.quantise<T>(attributes.min());
  const std::int32_t high = out.quantise<T>(attributes.max());
  const Int8Convolution kernel{window,
                               attributes.groups(),
                               nullptr,
                               source.zero_point,
                               filter.zero_point - (filter.type == Type::uint8 ? 128 : 0),
                               {bias == nullptr ? nullptr : bias->as<std::int32_t>(), scales.data(),
                                result.zero_point, low, high}};
  return std::make_unique<TransposedStep<T, Int8Convolution, std::int8_t>>(operands, window,
                                                                           kernel);
}

std::unique_ptr<Step> make_transposed_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_TransposedConv2D();
  require_arity(operands, 2, 3);
  const auto& source = *operands.inputs[0];
  const auto& filter = *operands.inputs[1];
  const auto& result = *operands.outputs[0];
  const auto* bias = optional_input(operands, 2);
  const SlidingWindow window = transposed_window(operands, attributes);
  const std::size_t groups = attributes.groups();
  const bool by_inputs = attributes.by_inputs();
  require(operands, (by_inputs || filter.is_constant) && filter.coded_size == 0,
          "its weights must be constant");
  require(operands, bias == nullptr || bias->num_elements() == result.shape[3],
          "its bias does not fit");
  require(operands, result.type == source.type, "input and output differ in type");
  require(operands, attributes.min() <= attributes.max(), "its min is above its max");
  require(operands, !by_inputs || source.type == Type::float32,
          "a filter stored by inputs must be float32");
  switch (source.type) {
    case Type::float32: {
      require(operands,
              filter.type == Type::float32 && (bias == nullptr || bias->type == Type::float32),
              "input and weights differ in type");
      const Convolution kernel{window,
                               groups,
                               nullptr,
                               {bias == nullptr ? nullptr : bias->as<float>(), nullptr,
                                attributes.min(), attributes.max()}};
      if (by_inputs) { return std::make_unique<TransposedByInputsStep>(operands, kernel); }
      if (TransposedBySumsStep::is_better(filter, window, groups, operands.outputs[0]->shape[2])) {
        return std::make_unique<TransposedBySumsStep>(operands, kernel);
      }
      return std::make_unique<TransposedStep<float, Convolution, float>>(operands, window, kernel);
    }
    case Type::int8: return make_of_quantised<std::int8_t>(operands, window, attributes);
    case Type::uint8: return make_of_quantised<std::uint8_t>(operands, window, attributes);
    default: return nullptr;
  }
}

const Registration registered{program::Operator::TransposedConv2D, make_transposed_conv_2d};

}  // namespace

}  // namespace arenite
