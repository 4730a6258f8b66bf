// Pools over windows.
#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "kernels/sliding_window.hpp"
#include "registry.hpp"
#include "sliding_window.hpp"
#include "steps/images.hpp"
#include "steps/partial_sums.hpp"
#include "steps/pool_step.hpp"

namespace arenite {

namespace {

using program::PoolKind;
using program::Type;

// A float maximum, and the index of the first of the largest elements, counted over N, C, H, W.
class PlacesStep final : public Step {
 public:
  PlacesStep(const Operands& operands, const Pool& kernel)
      : source_(first_image<const float>(*operands.inputs[0])),
        result_(first_image<float>(*operands.outputs[0])),
        places_(operands.outputs[1]->as<std::int64_t>()),
        num_images_(operands.inputs[0]->shape[0]),
        kernel_(kernel),
        threads_(operands.threads) {}

  void run() override {
    Image<const float> source = source_;
    Image<float> result = result_;
    for (std::size_t image = 0; image < num_images_; ++image) {
      pool(kernel_, source, result, {0, result.rows}, threads_);
      parallel(threads_, result.rows, result.row_stride * sizeof(float),
               [&](std::size_t first, std::size_t count) {
                 for (std::size_t row = first; row < first + count; ++row) {
                   find_row(source, image, row);
                 }
               });
      source.data += source.rows * source.row_stride;
      result.data += result.rows * result.row_stride;
    }
  }

 private:
  void find_row(const Image<const float>& source, std::size_t image, std::size_t row) const {
    const WindowSpan rows = window_span(kernel_.window, 0, row, source.rows);
    std::int64_t* found =
        places_ + (image * result_.rows + row) * result_.columns * source.channels;
    for (std::size_t column = 0; column < result_.columns; ++column) {
      const WindowSpan columns = window_span(kernel_.window, 1, column, source.columns);
      for (std::size_t c = 0; c < source.channels; ++c) {
        const std::size_t plane = (image * source.channels + c) * source.rows * source.columns;
        *found++ = static_cast<std::int64_t>(plane + place(source, rows, columns, c));
      }
    }
  }

  std::size_t place(const Image<const float>& source, const WindowSpan& rows,
                    const WindowSpan& columns, std::size_t channel) const {
    const auto& dilations = kernel_.window.dilations;
    const float* best = nullptr;
    std::size_t found = 0;
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const auto y =
          static_cast<std::size_t>(rows.start + static_cast<std::int64_t>(i) * dilations[0]);
      for (std::size_t j = columns.first; j < columns.last; ++j) {
        const auto x =
            static_cast<std::size_t>(columns.start + static_cast<std::int64_t>(j) * dilations[1]);
        const float& element = source.row(y)[x * source.pixel_stride + channel];
        if (best == nullptr || element > *best) {
          best = &element;
          found = y * source.columns + x;
        }
      }
    }
    return found;
  }

  Image<const float> source_;
  Image<float> result_;
  std::int64_t* places_;
  std::size_t num_images_;
  Pool kernel_;
  pthreadpool_t threads_;
};

template <typename T>
std::unique_ptr<Step> make_of_quantised(const Operands& operands, const SlidingWindow& window,
                                        const program::Pool2D& attributes) {
  require_one_scale(operands);
  const Scale in = Scale::of(*operands.inputs[0]);
  const Scale out = Scale::of(*operands.outputs[0]);
  const Int8Pool kernel{window,
                        attributes.kind() == PoolKind::average,
                        attributes.count_padding(),
                        false,
                        in.scale / out.scale,
                        in.zero_point,
                        out.zero_point,
                        out.quantise<T>(attributes.min()),
                        out.quantise<T>(attributes.max())};
  return make_pool_step<T, std::int32_t>(operands, kernel,
                                         first_image<const T>(*operands.inputs[0]),
                                         first_image<T>(*operands.outputs[0]));
}

std::unique_ptr<Step> make_of_floats(const Operands& operands, const SlidingWindow& window,
                                     const program::Pool2D& attributes) {
  const Pool kernel{window,
                    attributes.kind() == PoolKind::average,
                    attributes.count_padding(),
                    false,
                    attributes.min(),
                    attributes.max()};
  if (operands.outputs.size() > 1) { return std::make_unique<PlacesStep>(operands, kernel); }
  return make_pool_step<float, float>(operands, kernel,
                                      first_image<const float>(*operands.inputs[0]),
                                      first_image<float>(*operands.outputs[0]));
}

std::unique_ptr<Step> make_pool(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Pool2D();
  require_arity(operands, 1, 1, 2);
  require(operands, attributes.kind() <= PoolKind::MAX, "its kind is unknown");
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  if (source.type != target.type) { return make_pool_by_sums(operands); }
  const SlidingWindow window = stated_window(operands, attributes, attributes.window(), 1);
  require_images(operands, window);
  require(operands, source.shape[3] == target.shape[3], "the channels differ");
  if (operands.outputs.size() > 1) {
    const auto& places = *operands.outputs[1];
    require(operands, attributes.kind() == PoolKind::maximum, "only a maximum has indices");
    require(operands, source.type == Type::float32, "indices need a float32 input");
    require(operands, places.type == Type::int64 && places.shape == target.shape,
            "the indices must be int64 of the output's shape");
  }
  switch (source.type) {
    case Type::float32: return make_of_floats(operands, window, attributes);
    case Type::int8: return make_of_quantised<std::int8_t>(operands, window, attributes);
    case Type::uint8: return make_of_quantised<std::uint8_t>(operands, window, attributes);
    default: return nullptr;
  }
}

const Registration registered{program::Operator::Pool2D, make_pool};

}  // namespace

}  // namespace arenite
