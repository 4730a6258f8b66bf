// Pools over windows in the forms that XNNPACK lacks.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/pool_int8.hpp"
#include "kernels/quantised.hpp"
#include "registry.hpp"
#include "sliding_window.hpp"

namespace arenite {

namespace {

using program::PoolKind;
using program::Type;

class PoolStep final : public Step {
 public:
  PoolStep(const Operands& operands, const SlidingWindow& window, const program::Pool2D& attributes)
      : source_(operands.inputs[0]->as<float>()),
        target_(operands.outputs[0]->as<float>()),
        places_(operands.outputs.size() > 1 ? operands.outputs[1]->as<std::int64_t>() : nullptr),
        source_shape_(operands.inputs[0]->shape),
        target_shape_(operands.outputs[0]->shape),
        window_(window),
        is_average_(attributes.kind() == PoolKind::average),
        counts_padding_(attributes.count_padding()),
        min_(attributes.min()),
        max_(attributes.max()),
        threads_(operands.threads) {}

  void run() override {
    const std::size_t width = target_shape_[2];
    const std::size_t cost =
        window_.kernel[0] * window_.kernel[1] * target_shape_[3] * sizeof(float);
    parallel(
        threads_, target_shape_[0] * target_shape_[1] * width, cost,
        [this, width](std::size_t first, std::size_t count) {
          for (std::size_t i = first; i < first + count; ++i) {
            const std::size_t row = i / width % target_shape_[1];
            pixel(i / width / target_shape_[1], row, i % width, target_ + i * target_shape_[3]);
            if (places_ != nullptr) {
              places(i / width / target_shape_[1], row, i % width, places_ + i * target_shape_[3]);
            }
          }
        });
  }

  const char* backend() const override { return "arenite"; }

 private:
  // First and last element of the window that lie inside, and the elements the padded image has.
  struct Span {
    std::int64_t start;
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t padded;
  };

  Span span(std::size_t place, std::size_t axis) const {
    const std::int64_t before = axis == 0 ? window_.padding[0] : window_.padding[3];
    const std::int64_t after = axis == 0 ? window_.padding[2] : window_.padding[1];
    const auto size = static_cast<std::int64_t>(source_shape_[1 + axis]);
    const std::int64_t start = static_cast<std::int64_t>(place) * window_.strides[axis] - before;
    Span found{start, window_.kernel[axis], 0, 0};
    for (std::uint32_t k = 0; k < window_.kernel[axis]; ++k) {
      const std::int64_t at = start + std::int64_t{k} * window_.dilations[axis];
      if (at >= 0 && at < size) {
        found.first = std::min(found.first, k);
        found.last = k + 1;
      }
      found.padded += at < size + after ? 1 : 0;
    }
    return found;
  }

  void pixel(std::size_t image, std::size_t row, std::size_t column, float* target) const {
    const Span rows = span(row, 0);
    const Span columns = span(column, 1);
    const std::size_t channels = source_shape_[3];
    const std::size_t inside =
        (rows.last > rows.first ? rows.last - rows.first : 0) *
        std::size_t{columns.last > columns.first ? columns.last - columns.first : 0};
    const auto count =
        static_cast<float>(counts_padding_ ? std::size_t{rows.padded} * columns.padded
                                           : std::max<std::size_t>(inside, 1));
    for (std::size_t c = 0; c < channels; ++c) {
      float value = is_average_ ? 0.0f : -std::numeric_limits<float>::infinity();
      for (std::uint32_t i = rows.first; i < rows.last; ++i) {
        for (std::uint32_t j = columns.first; j < columns.last; ++j) {
          const auto y =
              static_cast<std::size_t>(rows.start + std::int64_t{i} * window_.dilations[0]);
          const auto x =
              static_cast<std::size_t>(columns.start + std::int64_t{j} * window_.dilations[1]);
          const float element =
              source_[((image * source_shape_[1] + y) * source_shape_[2] + x) * channels + c];
          value = is_average_ ? value + element : std::max(value, element);
        }
      }
      value = is_average_ ? value / count : value;
      target[c] = std::min(std::max(value, min_), max_);
    }
  }

  // Writes where the first of the largest elements lies, counted over N, C, H, W.
  void places(std::size_t image, std::size_t row, std::size_t column, std::int64_t* found) const {
    const Span rows = span(row, 0);
    const Span columns = span(column, 1);
    const std::size_t height = source_shape_[1];
    const std::size_t width = source_shape_[2];
    const std::size_t channels = source_shape_[3];
    for (std::size_t c = 0; c < channels; ++c) {
      const float* best = nullptr;
      std::size_t place = 0;
      for (std::uint32_t i = rows.first; i < rows.last; ++i) {
        for (std::uint32_t j = columns.first; j < columns.last; ++j) {
          const auto y =
              static_cast<std::size_t>(rows.start + std::int64_t{i} * window_.dilations[0]);
          const auto x =
              static_cast<std::size_t>(columns.start + std::int64_t{j} * window_.dilations[1]);
          const float& element = source_[((image * height + y) * width + x) * channels + c];
          if (best == nullptr || element > *best) {
            best = &element;
            place = y * width + x;
          }
        }
      }
      found[c] = static_cast<std::int64_t>((image * channels + c) * height * width + place);
    }
  }

  const float* source_;
  float* target_;
  std::int64_t* places_;  // null: not asked for
  std::vector<std::size_t> source_shape_;
  std::vector<std::size_t> target_shape_;
  SlidingWindow window_;
  bool is_average_;
  bool counts_padding_;
  float min_;
  float max_;
  pthreadpool_t threads_;
};

template <typename T>
class Int8PoolStep final : public Step {
 public:
  Int8PoolStep(const Operands& operands, const SlidingWindow& window,
               const program::Pool2D& attributes)
      : source_(image<const T>(*operands.inputs[0])),
        result_(image<T>(*operands.outputs[0])),
        num_images_(operands.inputs[0]->shape[0]),
        threads_(operands.threads) {
    const Scale in = Scale::of(*operands.inputs[0]);
    const Scale out = Scale::of(*operands.outputs[0]);
    pool_ = {window,
             attributes.kind() == PoolKind::average,
             attributes.count_padding(),
             in.scale / out.scale,
             in.zero_point,
             out.zero_point,
             out.quantise<T>(attributes.min()),
             out.quantise<T>(attributes.max())};
  }

  void run() override {
    Image<const T> source = source_;
    Image<T> result = result_;
    for (std::size_t i = 0; i < num_images_; ++i) {
      pool(pool_, source, result, {0, result.rows}, threads_);
      source.data += source.rows * source.row_stride;
      result.data += result.rows * result.row_stride;
    }
  }

  const char* backend() const override { return "arenite"; }

 private:
  template <typename Element>
  static Image<Element> image(const TensorView& view) {
    const auto& shape = view.shape;
    return {view.as<T>(), shape[1], shape[2], shape[3], shape[3], shape[2] * shape[3]};
  }

  Int8Pool pool_;
  Image<const T> source_;
  Image<T> result_;
  std::size_t num_images_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_pool(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Pool2D();
  require_arity(operands, 1, 1, 2);
  require(operands, attributes.kind() <= PoolKind::MAX, "its kind is unknown");
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  const SlidingWindow window{numbers<2>(operands, attributes.window(), 1),
                             numbers<2>(operands, attributes.strides(), 1),
                             numbers<2>(operands, attributes.dilations(), 1),
                             numbers<4>(operands, attributes.padding(), 0)};
  require_images(operands, window);
  require(operands, source.shape[3] == target.shape[3], "the channels differ");
  require(operands, source.type == target.type, "input and output differ in type");
  if (operands.outputs.size() > 1) {
    const auto& places = *operands.outputs[1];
    require(operands, attributes.kind() == PoolKind::maximum, "an average lies nowhere");
    require(operands, source.type == Type::float32, "it tells places of 32-bit floats only");
    require(operands, places.type == Type::int64 && places.shape == target.shape,
            "its places do not fit the output");
  }
  switch (source.type) {
    case Type::float32:
      return std::make_unique<PoolStep>(operands, window, attributes);
    case Type::int8:
      return std::make_unique<Int8PoolStep<std::int8_t>>(operands, window, attributes);
    case Type::uint8:
      return std::make_unique<Int8PoolStep<std::uint8_t>>(operands, window, attributes);
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::Pool2D, make_pool};

}  // namespace

}  // namespace arenite
