// Random depthwise convolutions beside a loop in double precision, whole and in bands of rows.
//
//     depthwise COUNT SEED
#include "kernels/convolution/depthwise.hpp"

#include "images.hpp"

namespace {

using namespace arenite;
using namespace arenite::fuzz;

SlidingWindow random_window(Random& random) {
  SlidingWindow window{};
  const bool usual = !random.one_in(3);
  const auto extent = static_cast<std::uint32_t>(random.one_in(2) ? 3 : 5);
  const auto stride = static_cast<std::uint32_t>(random.between(1, 2));
  for (int axis = 0; axis < 2; ++axis) {
    window.kernel[axis] = usual ? extent : static_cast<std::uint32_t>(random.between(1, 7));
    window.strides[axis] = usual ? stride : static_cast<std::uint32_t>(random.between(1, 4));
    window.dilations[axis] =
        random.one_in(4) ? static_cast<std::uint32_t>(random.between(2, 4)) : 1;
  }
  for (auto& margin : window.padding) {
    margin = static_cast<std::uint32_t>(random.between(0, usual ? extent / 2 : 8));
  }
  return window;
}

const char* run(Random& random, const Threads& threads) {
  const SlidingWindow window = random_window(random);
  const std::size_t inputs = random.one_in(20) ? random.between(100, 400) : random.between(1, 70);
  const std::size_t multiplier = random.one_in(4) ? random.between(2, 5) : 1;
  const std::size_t outputs = inputs * multiplier;
  Case convolution;
  if (!Case::make(random, window, inputs, outputs, random.one_in(4) ? 40 : 15, convolution)) {
    return nullptr;
  }
  const std::size_t taps = std::size_t{window.kernel[0]} * window.kernel[1];
  const std::vector<float> filter = random.reals(taps * outputs);
  Floats packed(filter.size());
  std::memcpy(packed.data(), filter.data(), filter.size() * sizeof(float));
  const auto compute = [&](const Image<const float>& source, const Image<float>& result,
                           RowRange rows, const FloatStore& store) {
    convolve_depthwise({window, packed.data(), store}, source, result, rows, threads.any(random));
  };
  const auto exact = [&](std::size_t row, std::size_t column, std::size_t channel, double& sum,
                         double& magnitude) {
    convolution.each_tap(row, column, [&](std::size_t tap, const float* pixel) {
      const double term = double{filter[tap * outputs + channel]} * pixel[channel / multiplier];
      sum += term;
      magnitude += std::abs(term);
    });
  };
  const auto rows_read = [&](RowRange rows) {
    return rows_under(window, rows, convolution.source_shape.rows);
  };
  return convolution.check(random, 1e-6, compute, rows_read, exact);
}

}  // namespace

int main(int argc, char** argv) { return run_trials("depthwise", argc, argv, run); }
