// Random Winograd convolutions beside a loop in double precision, whole and in bands of rows.
//
//     winograd COUNT SEED
#include "kernels/convolution/winograd.hpp"

#include "images.hpp"

namespace {

using namespace arenite;
using namespace arenite::fuzz;

// `filter` lies by outputs, rows, columns and inputs.
std::vector<float> pack(const std::vector<float>& filter, std::size_t outputs, std::size_t depth) {
  std::vector<float> packed((outputs + kPanel - 1) / kPanel * kPanel * depth);
  for (std::size_t output = 0; output < outputs; ++output) {
    for (std::size_t k = 0; k < depth; ++k) {
      packed[(output / kPanel * depth + k) * kPanel + output % kPanel] = filter[output * depth + k];
    }
  }
  return packed;
}

const char* run(Random& random, const Threads& threads) {
  WinogradTile tile{{3, 3}, 2 * random.between(1, 3)};
  if (random.one_in(2)) {
    const auto taps = static_cast<std::uint32_t>(2 * random.between(1, 3) + 1);
    const std::uint32_t rows = taps == 5 && random.one_in(3) ? 5 : random.one_in(2) ? 1 : taps;
    tile = {{rows, rows == taps && !(taps == 5 && random.one_in(2)) ? 1 : taps},
            std::size_t{9} - taps};
  }
  tile = tile.here();
  if (!tile.is_valid()) { return nullptr; }
  const std::size_t taps = std::size_t{tile.kernel[0]} * tile.kernel[1];
  SlidingWindow window{tile.kernel, {1, 1}, {1, 1}, {}};
  for (auto& margin : window.padding) {
    margin =
        static_cast<std::uint32_t>(random.one_in(8) ? random.between(2, 7) : random.between(0, 1));
  }
  const std::size_t inputs = random.one_in(50) ? random.between(250, 260) : random.between(1, 40);
  const std::size_t outputs = random.between(1, 70);
  Case convolution;
  if (!Case::make(random, window, inputs, outputs, random.one_in(4) ? 40 : 15, convolution)) {
    return nullptr;
  }
  const std::vector<float> filter = random.reals(outputs * taps * inputs);
  const std::vector<float> from = pack(filter, outputs, taps * inputs);
  Floats packed(from.size());
  std::memcpy(packed.data(), from.data(), from.size() * sizeof(float));
  const auto compute = [&](const Image<const float>& source, const Image<float>& result,
                           RowRange rows, const FloatStore& store) {
    const std::size_t num_threads = random.between(1, 3);
    const std::size_t least =
        winograd_scratch(tile, inputs, result.rows, result.columns, rows, num_threads);
    const std::size_t bytes = least + (random.one_in(2) ? random.between(0, least) : 0);
    const std::size_t floats = bytes / sizeof(float);
    Floats scratch(floats, std::nanf(""));
    convolve_winograd({tile, window.padding, packed.data(), store, scratch.data(),
                       floats * sizeof(float), num_threads},
                      source, result, rows, threads.any(random));
  };
  const Shape& shape = convolution.source_shape;
  const auto rows_read = [&](RowRange rows) {
    const Image<const float> source{nullptr, shape.rows, shape.columns, inputs, 0, 0};
    return winograd_source_rows({tile, window.padding, nullptr, {}, nullptr, 0, 1}, source, rows);
  };
  const auto exact = [&](std::size_t row, std::size_t column, std::size_t channel, double& sum,
                         double& magnitude) {
    convolution.each_tap(row, column, [&](std::size_t tap, const float* pixel) {
      for (std::size_t input = 0; input < inputs; ++input) {
        const double term = double{filter[(channel * taps + tap) * inputs + input]} * pixel[input];
        sum += term;
        magnitude += std::abs(term);
      }
    });
    magnitude += static_cast<double>(inputs);  // of the tile, where the window has little
  };
  return convolution.check(random,
                           tile.points() == 4   ? 1e-6
                           : tile.points() == 6 ? 3e-6
                                                : 3e-5,
                           compute, rows_read, exact);
}

}  // namespace

int main(int argc, char** argv) { return run_trials("winograd", argc, argv, run); }
