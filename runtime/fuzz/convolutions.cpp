// Random convolutions beside a loop in double precision, whole and in bands of rows.
//
//     convolutions COUNT SEED
#include "images.hpp"
#include "kernels/convolution/convolve.hpp"
#include "kernels/parallel.hpp"

namespace {

using namespace arenite;
using namespace arenite::fuzz;

struct Sizes {
  SlidingWindow window{};
  std::size_t groups, inputs, outputs;  // of a group
  std::size_t side;                     // of the image, at most
};

Sizes random_sizes(Random& random) {
  Sizes sizes;
  const bool is_deep = random.one_in(8);
  const bool is_large = !is_deep && random.one_in(8);
  const bool is_colour = !is_deep && random.one_in(8);
  sizes.side = is_deep ? 5 : is_large || is_colour ? 61 : 16;
  sizes.groups = !is_colour && random.one_in(4) ? random.between(1, 5) : 1;
  sizes.inputs = random.between(1, is_deep ? 701 : random.one_in(2) ? 41 : 6);
  sizes.inputs = is_colour ? 3 : sizes.inputs;
  sizes.outputs = random.between(1, random.one_in(8) ? 301 : random.one_in(2) ? 71 : 21);
  const std::size_t kernel = random.one_in(3) ? 0 : is_deep ? 2 : random.one_in(4) ? 8 : 4;
  const auto number = [&](std::size_t least, std::size_t most) {
    return static_cast<std::uint32_t>(random.between(least, most));
  };
  for (int axis = 0; axis < 2; ++axis) {
    sizes.window.kernel[axis] = number(1, kernel + 1);
    sizes.window.strides[axis] = random.one_in(2) ? number(1, 3) : 1;
    sizes.window.dilations[axis] = random.one_in(3) ? number(1, 3) : 1;
  }
  for (auto& margin : sizes.window.padding) {
    margin = random.one_in(2) ? number(0, kernel + 1) : 0;
  }
  return sizes;
}

const char* run(Random& random, const Threads& threads) {
  const Sizes sizes = random_sizes(random);
  const auto& [window, groups, inputs, outputs, side] = sizes;
  const std::size_t taps = std::size_t{window.kernel[0]} * window.kernel[1];
  Case convolution;
  if (!Case::make(random, window, groups * inputs, groups * outputs, side, convolution) ||
      convolution.result_shape.size() * inputs * taps >>
          (random.one_in(20) ? 22 : 18)) {  // too many products
    return nullptr;
  }
  if (random.one_in(10)) {
    convolution.source[random.between(0, convolution.source.size() - 1)] = std::nanf("");
  }
  // By outputs, taps and inputs, and packed.
  const std::vector<float> filter = random.reals(groups * outputs * taps * inputs);
  const std::size_t depth = taps * inputs;
  std::vector<float> packed(packed_filter_size(groups, groups * outputs, depth));
  for (std::size_t i = 0; i < filter.size(); ++i) {
    const std::size_t output = i / depth;
    const std::size_t in_group = output % outputs;
    const std::size_t panel = output / outputs * divide_up(outputs, kPanel) + in_group / kPanel;
    packed.at((panel * depth + i % depth) * kPanel + in_group % kPanel) = filter[i];
  }
  const auto compute = [&](const Image<const float>& source, const Image<float>& result,
                           RowRange rows, const FloatStore& store) {
    convolve({window, groups, packed.data(), store}, source, result, rows, threads.any(random));
  };
  const auto exact = [&](std::size_t row, std::size_t column, std::size_t output, double& sum,
                         double& magnitude) {
    convolution.each_tap(row, column, [&](std::size_t tap, const float* pixel) {
      for (std::size_t i = 0; i < inputs; ++i) {
        const double term = double{filter[output * depth + tap * inputs + i]} *
                            pixel[output / outputs * inputs + i];
        sum += term;
        magnitude += std::abs(term);
      }
    });
  };
  const auto rows_read = [&](RowRange rows) {
    return rows_under(window, rows, convolution.source_shape.rows);
  };
  return convolution.check(random, static_cast<double>(depth + 2) * 0x1p-24, compute, rows_read,
                           exact);
}

}  // namespace

int main(int argc, char** argv) { return run_trials("convolutions", argc, argv, run); }
