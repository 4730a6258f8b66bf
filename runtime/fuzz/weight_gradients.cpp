// Random gradients of convolutions' weights beside a loop in double precision, and filters packed
// in the run beside the places where their weights must be.
//
//     weight_gradients COUNT SEED
#include <algorithm>

#include "images.hpp"
#include "kernels/convolution/pack_filter.hpp"
#include "kernels/convolution/weight_gradient.hpp"

namespace {

using namespace arenite;
using namespace arenite::fuzz;

ConvolvedImages random_shape(Random& random) {
  ConvolvedImages shape{};
  shape.images = random.between(1, 3);
  const std::size_t most = random.one_in(4) ? 30 : 9;
  shape.rows = random.between(1, most);
  shape.columns = random.between(1, most);
  shape.result_rows = random.between(1, most);
  shape.result_columns = random.between(1, most);
  const bool is_depthwise = random.one_in(3);
  shape.groups = is_depthwise ? random.between(2, 70) : random.one_in(3) ? random.between(2, 4) : 1;
  const std::size_t channels = random.one_in(3) ? 70 : 9;
  shape.channels = is_depthwise ? 1 : random.between(1, channels);
  shape.outputs = is_depthwise ? 1 : random.between(1, channels);
  for (int axis = 0; axis < 2; ++axis) {
    const std::size_t taps = random.one_in(10) ? 12 : 4;
    shape.kernel[axis] = static_cast<std::uint32_t>(random.between(1, taps));
    shape.strides[axis] = static_cast<std::uint32_t>(random.between(1, 3));
    shape.dilations[axis] = static_cast<std::uint32_t>(random.between(1, 3));
    shape.before[axis] = static_cast<std::uint32_t>(random.between(0, 5));
  }
  return shape;
}

// Calls use(image, row, column of the result, pixel of the source) where tap (y, x) sees one.
template <typename Use>
void each_seen(const ConvolvedImages& shape, std::size_t y, std::size_t x, const Use& use) {
  for (std::size_t image = 0; image < shape.images; ++image) {
    for (std::size_t i = 0; i < shape.result_rows; ++i) {
      for (std::size_t j = 0; j < shape.result_columns; ++j) {
        const auto row = static_cast<std::int64_t>(i * shape.strides[0] + y * shape.dilations[0]) -
                         shape.before[0];
        const auto column =
            static_cast<std::int64_t>(j * shape.strides[1] + x * shape.dilations[1]) -
            shape.before[1];
        if (row >= 0 && column >= 0 && row < static_cast<std::int64_t>(shape.rows) &&
            column < static_cast<std::int64_t>(shape.columns)) {
          const std::size_t from = image * shape.rows + static_cast<std::size_t>(row);
          const std::size_t to = (image * shape.result_rows + i) * shape.result_columns + j;
          use(from * shape.columns + static_cast<std::size_t>(column), to);
        }
      }
    }
  }
}

const char* check_gradient(Random& random, const Threads& threads) {
  const ConvolvedImages shape = random_shape(random);
  const std::size_t width = shape.groups * shape.channels;
  const std::size_t outputs = shape.groups * shape.outputs;
  const std::size_t depth = shape.channels * shape.taps();
  const std::vector<float> image = random.reals(shape.images * shape.rows * shape.columns * width);
  const std::vector<float> given = random.reals(shape.pixels() * outputs);
  Floats source(image.size());
  Floats gradient(given.size());
  std::copy(image.begin(), image.end(), source.data());
  std::copy(given.begin(), given.end(), gradient.data());
  Floats made(outputs * depth, kGap);
  Floats again(outputs * depth, kGap);
  weight_gradient(shape, source.data(), gradient.data(), made.data(), threads.any(random));
  weight_gradient(shape, source.data(), gradient.data(), again.data(), threads.any(random));
  if (std::memcmp(made.data(), again.data(), made.count() * sizeof(float)) != 0) {
    return "threads change a gradient";
  }
  for (std::size_t output = 0; output < outputs; ++output) {
    for (std::size_t k = 0; k < depth; ++k) {
      const std::size_t channel = output / shape.outputs * shape.channels + k / shape.taps();
      const std::size_t tap = k % shape.taps();
      double sum = 0.0;
      double magnitude = 0.0;
      each_seen(shape, tap / shape.kernel[1], tap % shape.kernel[1],
                [&](std::size_t from, std::size_t to) {
                  const double term =
                      double{image[from * width + channel]} * given[to * outputs + output];
                  sum += term;
                  magnitude += std::abs(term);
                });
      const double found = made.data()[output * depth + k];
      const double terms = static_cast<double>(shape.pixels());
      if (!(std::abs(found - sum) <= terms * 0x1p-24 * (magnitude + 1e-3))) {
        std::fprintf(stderr, "element %zu is %.9g, not %.9g\n", output * depth + k, found, sum);
        return "a gradient is wrong";
      }
    }
  }
  return nullptr;
}

// A grid of weights of which each lies at a place of its own, read forwards or backwards.
const char* check_packing(Random& random, const Threads& threads) {
  FilterPlaces places{};
  places.outputs = random.between(1, 50);
  places.inputs = random.between(1, random.one_in(4) ? 200 : 20);
  places.rows = random.between(1, 4);
  places.columns = random.between(1, 4);
  const std::size_t taps = places.taps();
  const bool by_inputs = random.one_in(2);
  places.output_stride = taps * (by_inputs ? 1 : places.inputs);
  places.input_stride = taps * (by_inputs ? places.outputs : 1);
  const std::vector<float> weights = random.reals(places.outputs * places.inputs * taps);
  Floats plain(weights.size());
  std::copy(weights.begin(), weights.end(), plain.data());
  const bool is_turned = random.one_in(2);
  const auto sign = [is_turned](std::size_t stride) {
    const auto step = static_cast<std::ptrdiff_t>(stride);
    return is_turned ? -step : step;
  };
  places.row_stride = sign(places.columns);
  places.column_stride = sign(1);
  const float* const first = plain.data() + (is_turned ? taps - 1 : 0);
  const auto weight = [&](std::size_t output, std::size_t input, std::size_t tap) {
    return weights[output * places.output_stride + input * places.input_stride +
                   (is_turned ? taps - 1 - tap : tap)];
  };
  Floats packed(packed_filter_size(1, places.outputs, taps * places.inputs), kGap);
  pack_filter(first, places, packed.data(), threads.any(random));
  for (std::size_t at = 0; at < packed.count(); ++at) {
    const std::size_t k = at / kPanel % (taps * places.inputs);
    const std::size_t output = at / kPanel / (taps * places.inputs) * kPanel + at % kPanel;
    const float expected =
        output < places.outputs ? weight(output, k % places.inputs, k / places.inputs) : 0.0f;
    if (packed.data()[at] != expected) { return "a weight is packed elsewhere"; }
  }
  Floats by_taps(taps * places.outputs, kGap);
  pack_depthwise_filter(first, places, by_taps.data(), threads.any(random));
  for (std::size_t at = 0; at < by_taps.count(); ++at) {
    if (by_taps.data()[at] != weight(at % places.outputs, 0, at / places.outputs)) {
      return "a weight of a depthwise filter is packed elsewhere";
    }
  }
  return nullptr;
}

const char* run(Random& random, const Threads& threads) {
  const char* fault = check_gradient(random, threads);
  return fault != nullptr ? fault : check_packing(random, threads);
}

}  // namespace

int main(int argc, char** argv) { return run_trials("weight_gradients", argc, argv, run); }
