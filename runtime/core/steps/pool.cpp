// Pools over windows.
#include <cstdint>
#include <memory>

#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "kernels/sliding_window.hpp"
#include "registry.hpp"
#include "sliding_window.hpp"
#include "steps/images.hpp"
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

// Bytes whose sum always fits 16 bits, and those whose sum fits 32.
constexpr std::size_t kMostInSum = 256;
constexpr std::size_t kMostInAverage = std::size_t{1} << 24;

void require_image(const Operands& operands, const TensorView& view) {
  require(operands, view.rank() == 4 && view.shape[0] == 1 && view.size > 0,
          "an operand of sums is not one image");
}

std::unique_ptr<Step> make_sums(const Operands& operands, std::size_t rows, std::size_t count) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands,
          rows > 0 && source.shape[1] % rows == 0 && result.shape[1] == source.shape[1] / rows &&
              result.shape[2] == 1,
          "its sums are not of all groups of rows");
  require(operands, count == rows * source.shape[2] && count <= kMostInSum,
          "its sums are not of whole rows, or of too many for 16 bits");
  return make_plain_step([from = source.as<std::int8_t>(), to = result.as<std::int16_t>(), count,
                          channels = source.shape[3], num_groups = result.shape[1]] {
    for (std::size_t group = 0; group < num_groups; ++group) {
      const std::int8_t* bytes = from + group * count * channels;
      std::int16_t* sums = to + group * channels;
      for (std::size_t c = 0; c < channels; ++c) { sums[c] = bytes[c]; }
      for (std::size_t pixel = 1; pixel < count; ++pixel) {
        bytes += channels;
        for (std::size_t c = 0; c < channels; ++c) {
          sums[c] = static_cast<std::int16_t>(sums[c] + bytes[c]);
        }
      }
    }
  });
}

// Rounds as an average pool does (kernels/pool_int8.cpp).
std::unique_ptr<Step> make_average(const Operands& operands, std::size_t count) {
  const auto& attributes = *operands.step.kernel_as_Pool2D();
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, source.shape[2] == 1 && result.shape[1] == 1 && result.shape[2] == 1,
          "its result is not one pixel of the channels of its sums");
  require(operands, count > 0 && count <= kMostInAverage && source.shape[1] <= count,
          "its window is not what it has sums of");
  const Scale in = Scale::of(source);
  const Scale out = Scale::of(result);
  const Rounding<std::int8_t> rounding(out.quantise<std::int8_t>(attributes.min()),
                                       out.quantise<std::int8_t>(attributes.max()), out.zero_point);
  return make_plain_step([from = source.as<std::int16_t>(), to = result.as<std::int8_t>(),
                          channels = source.shape[3], num_groups = source.shape[1], rounding,
                          zeros = static_cast<std::int64_t>(source.shape[1]) * in.zero_point,
                          ratio = in.scale / out.scale, divisor = static_cast<float>(count)] {
    for (std::size_t c = 0; c < channels; ++c) {
      std::int64_t sum = -zeros;
      for (std::size_t group = 0; group < num_groups; ++group) {
        sum += from[group * channels + c];
      }
      const float value = static_cast<float>(sum) * ratio;
      to[c] = rounding(value / divisor);
    }
  });
}

// Returns the step of an average pool between bytes and integers of 16 bits.
//
// From bytes to 16 bits each result is the sum of the bytes of a channel in a group of rows. From
// 16 bits to bytes it is the average of as many bytes as the pool has in its window, of their sums.
// Both steps give what the pool over the window gives, to the bit.
std::unique_ptr<Step> make_pool_by_sums(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Pool2D();
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const bool sums_up = source.type == Type::int8 && result.type == Type::int16;
  require(operands, sums_up || (source.type == Type::int16 && result.type == Type::int8),
          "input and output differ in type");
  require(operands,
          attributes.kind() == program::PoolKind::average && operands.outputs.size() == 1 &&
              attributes.window() != nullptr && attributes.window()->size() == 2,
          "only an average of a window has sums");
  require_image(operands, source);
  require_image(operands, result);
  require_one_scale(operands);
  require(operands, source.shape[3] == result.shape[3], "the channels differ");
  const std::uint64_t rows = attributes.window()->Get(0);
  const std::uint64_t count = rows * attributes.window()->Get(1);
  return sums_up ? make_sums(operands, rows, count) : make_average(operands, count);
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
