#include "steps/partial_sums.hpp"

#include <cstdint>
#include <limits>

#include "kernels/quantised.hpp"

namespace arenite {

namespace {

using program::Type;

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

}  // namespace

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

}  // namespace arenite
