// Random pools of floats beside a loop in double precision, whole and in bands of rows; averages
// with one row from rows that come in parts, too.
//
//     pools COUNT SEED
#include "images.hpp"
#include "kernels/pool.hpp"

namespace {

using namespace arenite;
using namespace arenite::fuzz;

SlidingWindow random_window(Random& random) {
  SlidingWindow window{};
  for (int axis = 0; axis < 2; ++axis) {
    window.kernel[axis] = static_cast<std::uint32_t>(random.between(1, 7));
    window.strides[axis] = static_cast<std::uint32_t>(random.between(1, 4));
    window.dilations[axis] =
        random.one_in(4) ? static_cast<std::uint32_t>(random.between(2, 3)) : 1;
  }
  for (auto& margin : window.padding) {
    margin = static_cast<std::uint32_t>(random.one_in(2) ? random.between(0, 8) : 0);
  }
  return window;
}

// Whether sums of rows in parts make the result that all of them make at once.
bool are_sums_right(Random& random, const Pool& kernel, const Case& given) {
  const Held source(random, given.source_shape, given.source_shape.rows, 0.5f);
  const Held whole(random, given.result_shape, 1, kGap);
  const Held summed(random, given.result_shape, 1, kGap);
  pool(kernel, source.source(), whole.image(), {0, 1}, nullptr);
  Floats sums(given.result_shape.size(), std::nanf(""));
  for (std::size_t row = 0; row < given.source_shape.rows;) {
    const std::size_t count = random.between(1, given.source_shape.rows - row);
    take_rows(kernel, source.source(), summed.image(), {row, count}, sums.data());
    row += count;
  }
  std::vector<float> expected(given.result_shape.size());
  std::vector<float> found(given.result_shape.size());
  whole.read_row(0, expected);
  summed.read_row(0, found);
  return std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)) == 0;
}

const char* run(Random& random, const Threads& threads) {
  const SlidingWindow window = random_window(random);
  const std::size_t channels = random.between(1, 150);
  Case given;
  if (!Case::make(random, window, channels, channels, random.one_in(4) ? 30 : 12, given)) {
    return nullptr;
  }
  given.bias.clear();
  given.addend.clear();
  given.min = -0.9f;  // of no taps a maximum is this
  const Pool kernel{window,           random.one_in(2), random.one_in(2),
                    random.one_in(8), given.min,        given.max};
  const Shape& shape = given.source_shape;
  const auto compute = [&](const Image<const float>& source, const Image<float>& result,
                           RowRange rows, const FloatStore&) {
    pool(kernel, source, result, rows, threads.any(random));
  };
  const auto exact = [&](std::size_t row, std::size_t column, std::size_t channel, double& sum,
                         double& magnitude) {
    std::size_t inside = 0;
    std::size_t padded = 0;
    double largest = -1e9;
    for (std::size_t tap = 0; tap < std::size_t{window.kernel[0]} * window.kernel[1]; ++tap) {
      const std::size_t i = tap / window.kernel[1];
      const std::size_t j = tap % window.kernel[1];
      const auto y = static_cast<std::int64_t>(row * window.strides[0] + i * window.dilations[0]) -
                     window.padding[0];
      const auto x =
          static_cast<std::int64_t>(column * window.strides[1] + j * window.dilations[1]) -
          window.padding[3];
      const auto rows = static_cast<std::int64_t>(shape.rows);
      const auto columns = static_cast<std::int64_t>(shape.columns);
      padded += y < rows + window.padding[2] && x < columns + window.padding[1] ? 1 : 0;
      if (y < 0 || x < 0 || y >= rows || x >= columns) { continue; }
      const std::size_t pixel = static_cast<std::size_t>(y * columns + x);
      const double element = given.source[pixel * shape.channels + channel];
      ++inside;
      sum += element;
      magnitude += std::abs(element);
      largest = std::max(largest, element);
    }
    if (!kernel.is_average) {
      sum = largest;
    } else if (!kernel.is_sum) {
      sum /= static_cast<double>(kernel.counts_padding ? padded : std::max<std::size_t>(inside, 1));
    }
  };
  if (kernel.is_average && given.result_shape.rows == 1 && !are_sums_right(random, kernel, given)) {
    return "sums of rows in parts differ from those at once";
  }
  const auto rows_read = [&](RowRange rows) { return rows_under(window, rows, shape.rows); };
  return given.check(random, 1e-6, compute, rows_read, exact);
}

}  // namespace

int main(int argc, char** argv) { return run_trials("pools", argc, argv, run); }
