// Runs convolutions of random shapes beside a naive loop in double precision.
//
//     convolutions COUNT SEED
//
// Each is run whole and in bands of rows, from rows in no order, no more than a band needs: the
// results must be the same to the bit. What lies between pixels is not a number in a source and
// must stay as it was in a result. Run under the sanitizers, and with ARENITE_VECTORS for smaller
// processors.
#include <pthreadpool.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/convolution/convolve.hpp"
#include "scattered_rows.hpp"

namespace {

using arenite::Convolution;
using arenite::Image;
using arenite::RowRange;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 12345.0f;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::size_t up_to(std::size_t most) { return engine_() % (most + 1); }
  bool one_in(std::size_t count) { return up_to(count - 1) == 0; }
  float value() { return static_cast<float>(engine_() >> 40) * 0x1p-23f - 1.0f; }
  std::vector<float> values(std::size_t count) {
    std::vector<float> made(count);
    std::generate(made.begin(), made.end(), [this] { return value(); });
    return made;
  }

 private:
  std::mt19937_64 engine_;
};

// An image and its memory, not an element larger than needed.
struct Picture {
  Picture(std::size_t rows, std::size_t columns, std::size_t channels, std::size_t held_rows,
          Random& random, float between) {
    const std::size_t pixel_stride = channels + (random.one_in(3) ? random.up_to(5) : 0);
    const std::size_t row_stride =
        columns * pixel_stride + (random.one_in(3) ? random.up_to(9) : 0);
    memory.resize((held_rows - 1) * row_stride + (columns - 1) * pixel_stride + channels, between);
    image = {memory.data(), rows, columns, channels, pixel_stride, row_stride};
    if (held_rows < rows || random.one_in(2)) {
      offsets =
          arenite::fuzz::scattered_rows(rows, held_rows, row_stride * sizeof(float),
                                        [&](std::size_t limit) { return random.up_to(limit - 1); });
      image.row_offsets = offsets.data();
    }
  }
  Picture(Picture&&) = default;

  template <typename Visit>
  void visit(std::size_t first, std::size_t count, const Visit& visit) const {
    for (std::size_t row = first; row < first + count; ++row) {
      for (std::size_t column = 0; column < image.columns; ++column) {
        for (std::size_t channel = 0; channel < image.channels; ++channel) {
          visit(row, column, channel, image.row(row)[column * image.pixel_stride + channel]);
        }
      }
    }
  }
  float& at(std::size_t row, std::size_t column, std::size_t channel) const {
    return image.row(row)[column * image.pixel_stride + channel];
  }
  Image<const float> reading() const {
    return {image.data,         image.rows,       image.columns,    image.channels,
            image.pixel_stride, image.row_stride, image.row_offsets};
  }

  std::vector<float> memory;
  std::vector<std::uint64_t> offsets;
  Image<float> image;
};

struct Shape {
  std::size_t rows, columns, groups, channels, outputs;  // of a group
  arenite::SlidingWindow window;
  std::size_t result_rows, result_columns;
};

std::size_t slide(std::size_t size, std::size_t before, std::size_t after, std::size_t kernel,
                  std::size_t stride, std::size_t dilation) {
  const std::size_t padded = size + before + after;
  const std::size_t reach = (kernel - 1) * dilation + 1;
  return padded < reach ? 0 : (padded - reach) / stride + 1;
}

Shape random_shape(Random& random) {
  for (;;) {
    Shape shape{};
    const bool is_deep = random.one_in(8);
    const bool is_large = !is_deep && random.one_in(8);
    const bool is_colour = !is_deep && random.one_in(8);
    const std::size_t side = is_deep ? 4 : is_large || is_colour ? 60 : 15;
    shape.rows = 1 + random.up_to(side);
    shape.columns = 1 + random.up_to(side);
    shape.groups = !is_colour && random.one_in(4) ? 1 + random.up_to(4) : 1;
    shape.channels = 1 + random.up_to(is_deep ? 700 : random.one_in(2) ? 40 : 5);
    shape.channels = is_colour ? 3 : shape.channels;
    shape.outputs = 1 + random.up_to(random.one_in(8) ? 300 : random.one_in(2) ? 70 : 20);
    const std::size_t kernel = random.one_in(3) ? 0 : is_deep ? 2 : random.one_in(4) ? 8 : 4;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      shape.window.kernel[axis] = static_cast<std::uint32_t>(1 + random.up_to(kernel));
      shape.window.strides[axis] =
          static_cast<std::uint32_t>(1 + (random.one_in(2) ? random.up_to(2) : 0));
      shape.window.dilations[axis] =
          static_cast<std::uint32_t>(1 + (random.one_in(3) ? random.up_to(2) : 0));
    }
    for (auto& padding : shape.window.padding) {
      padding = static_cast<std::uint32_t>(random.one_in(2) ? random.up_to(kernel + 1) : 0);
    }
    const auto& [top, right, bottom, left] = shape.window.padding;
    shape.result_rows = slide(shape.rows, top, bottom, shape.window.kernel[0],
                              shape.window.strides[0], shape.window.dilations[0]);
    shape.result_columns = slide(shape.columns, left, right, shape.window.kernel[1],
                                 shape.window.strides[1], shape.window.dilations[1]);
    const std::size_t products = shape.result_rows * shape.result_columns * shape.groups *
                                 shape.outputs * shape.channels * shape.window.kernel[0] *
                                 shape.window.kernel[1];
    if (products > 0 && products < (std::size_t{1} << (random.one_in(20) ? 22 : 18))) {
      return shape;
    }
  }
}

// A filter as ONNX has it, by outputs, channels and taps, and packed.
struct Filter {
  Filter(const Shape& shape, Random& random)
      : channels(shape.channels),
        taps(shape.window.kernel[0] * shape.window.kernel[1]),
        plain(random.values(shape.groups * shape.outputs * channels * taps)),
        packed(arenite::packed_filter_size(shape.groups, shape.groups * shape.outputs,
                                           taps * channels)) {
    constexpr std::size_t kPanel = arenite::kPanel;
    const std::size_t panels = (shape.outputs + kPanel - 1) / kPanel;
    for (std::size_t output = 0; output < shape.groups * shape.outputs; ++output) {
      const std::size_t in_group = output % shape.outputs;
      const std::size_t panel = output / shape.outputs * panels + in_group / kPanel;
      for (std::size_t tap = 0; tap < taps; ++tap) {
        for (std::size_t channel = 0; channel < channels; ++channel) {
          packed.at(((panel * taps + tap) * channels + channel) * kPanel + in_group % kPanel) =
              at(output, channel, tap);
        }
      }
    }
  }

  float at(std::size_t output, std::size_t channel, std::size_t tap) const {
    return plain[(output * channels + channel) * taps + tap];
  }

  std::size_t channels;
  std::size_t taps;
  std::vector<float> plain;
  std::vector<float> packed;
};

struct Trial {
  Trial(std::uint64_t seed, const std::vector<pthreadpool_t>& given_pools)
      : random(seed),
        pools(given_pools),
        shape(random_shape(random)),
        filter(shape, random),
        bias(random.one_in(4) ? 0 : shape.groups * shape.outputs),
        source(shape.rows, shape.columns, shape.groups * shape.channels, shape.rows, random, kNaN),
        addend(shape.result_rows, shape.result_columns, shape.groups * shape.outputs,
               shape.result_rows, random, kNaN),
        has_addend(random.one_in(3)) {
    bias = random.values(bias.size());
    const auto fill = [this](auto, auto, auto, float& element) { element = random.value(); };
    source.visit(0, shape.rows, fill);
    addend.visit(0, shape.result_rows, fill);
    if (random.one_in(10)) {
      source.at(random.up_to(shape.rows - 1), random.up_to(shape.columns - 1), 0) = kNaN;
    }
    if (random.one_in(3)) {
      min = random.value() * 4;
      max = min + std::abs(random.value()) * 8;
    }
  }

  void run(const Image<const float>& from, const Image<float>& to, RowRange rows) {
    // What is added may lie where the result will.
    const bool is_over = has_addend && random.one_in(2);
    Image<const float> added = addend.reading();
    if (is_over) {
      addend.visit(rows.first, rows.count, [&](auto row, auto column, auto channel, float element) {
        to.row(row)[column * to.pixel_stride + channel] = element;
      });
      added = {to.data,         to.rows,       to.columns,    to.channels,
               to.pixel_stride, to.row_stride, to.row_offsets};
    }
    const Convolution convolution{
        shape.window,
        shape.groups,
        filter.packed.data(),
        {bias.empty() ? nullptr : bias.data(), has_addend ? &added : nullptr, min, max}};
    arenite::convolve(convolution, from, to, rows, pools[random.up_to(pools.size() - 1)]);
  }

  // A sum, and that of the magnitudes of its terms.
  struct Expected {
    double sum;
    double magnitude;
  };

  Expected expected(std::size_t row, std::size_t column, std::size_t output) const {
    Expected made{0, 0};
    const auto add = [&](double term) {
      made.sum += term;
      made.magnitude += std::abs(term);
    };
    if (!bias.empty()) {
      add(bias[output]);
    }
    if (has_addend) {
      add(addend.at(row, column, output));
    }
    const arenite::SlidingWindow& window = shape.window;
    for (std::size_t tap = 0; tap < filter.taps; ++tap) {
      const auto y = static_cast<std::ptrdiff_t>(row * window.strides[0] +
                                                 tap / window.kernel[1] * window.dilations[0]) -
                     static_cast<std::ptrdiff_t>(window.padding[0]);
      const auto x = static_cast<std::ptrdiff_t>(column * window.strides[1] +
                                                 tap % window.kernel[1] * window.dilations[1]) -
                     static_cast<std::ptrdiff_t>(window.padding[3]);
      if (y < 0 || x < 0 || y >= static_cast<std::ptrdiff_t>(shape.rows) ||
          x >= static_cast<std::ptrdiff_t>(shape.columns)) {
        continue;
      }
      const float* const pixel =
          &source.at(static_cast<std::size_t>(y), static_cast<std::size_t>(x),
                     output / shape.outputs * shape.channels);
      for (std::size_t channel = 0; channel < shape.channels; ++channel) {
        add(static_cast<double>(pixel[channel]) * filter.at(output, channel, tap));
      }
    }
    return made;
  }

  bool is_close(float found, Expected wanted) const {
    if (std::isnan(wanted.sum)) {
      return std::isnan(found);
    }
    const double clamped = std::min<double>(std::max<double>(wanted.sum, min), max);
    const auto terms = static_cast<double>(filter.taps * filter.channels + 2);
    return std::abs(found - clamped) <= terms * 0x1p-24 * wanted.magnitude;
  }

  // The rows of the source under a band, in memory that has room for no other.
  Picture held_rows(RowRange band) {
    const auto& window = shape.window;
    const auto bound = [this](std::size_t padded) {
      const std::size_t top = shape.window.padding[0];
      return std::min(padded < top ? 0 : padded - top, shape.rows);
    };
    const std::size_t first = bound(band.first * window.strides[0]);
    const std::size_t end = bound((band.first + band.count - 1) * window.strides[0] +
                                  (window.kernel[0] - 1) * window.dilations[0] + 1);
    const std::size_t held =
        std::min(std::max<std::size_t>(end - first, 1) + random.up_to(1), shape.rows);
    Picture made(shape.rows, shape.columns, shape.groups * shape.channels, held, random, kNaN);
    source.visit(first, end - first, [&](auto row, auto column, auto channel, float element) {
      made.at(row, column, channel) = element;
    });
    return made;
  }

  bool passes() {
    const Picture whole(shape.result_rows, shape.result_columns, shape.groups * shape.outputs,
                        shape.result_rows, random, kUntouched);
    run(source.reading(), whole.image, {0, shape.result_rows});
    bool passed = true;
    std::size_t elements = 0;
    whole.visit(0, shape.result_rows, [&](auto row, auto column, auto channel, float element) {
      passed = passed && is_close(element, expected(row, column, channel));
      elements += element == kUntouched ? 0 : 1;
    });
    const auto untouched = [](const Picture& picture) {
      return static_cast<std::size_t>(
          std::count(picture.memory.begin(), picture.memory.end(), kUntouched));
    };
    passed = passed && whole.memory.size() - untouched(whole) == elements;
    for (int i = 0; i < 3 && passed; ++i) {
      const std::size_t first = random.up_to(shape.result_rows - 1);
      const RowRange band{first, 1 + random.up_to(shape.result_rows - first - 1)};
      const Picture from = held_rows(band);
      const Picture to(shape.result_rows, shape.result_columns, shape.groups * shape.outputs,
                       band.count, random, kUntouched);
      run(from.reading(), to.image, band);
      elements = 0;
      to.visit(band.first, band.count, [&](auto row, auto column, auto channel, float element) {
        const float wanted = whole.at(row, column, channel);
        passed = passed && std::memcmp(&element, &wanted, sizeof wanted) == 0;
        elements += element == kUntouched ? 0 : 1;
      });
      passed = passed && to.memory.size() - untouched(to) == elements;
    }
    return passed;
  }

  void print() const {
    const auto& w = shape.window;
    std::fprintf(stderr,
                 "%zu x %zu, %zu groups of %zu -> %zu, kernel %u x %u, strides %u %u, dilations %u "
                 "%u, padding %u %u %u %u\n",
                 shape.rows, shape.columns, shape.groups, shape.channels, shape.outputs,
                 w.kernel[0], w.kernel[1], w.strides[0], w.strides[1], w.dilations[0],
                 w.dilations[1], w.padding[0], w.padding[1], w.padding[2], w.padding[3]);
  }

  Random random;
  const std::vector<pthreadpool_t>& pools;
  Shape shape;
  Filter filter;
  std::vector<float> bias;
  Picture source;
  Picture addend;
  bool has_addend;
  float min = -kInfinity;
  float max = kInfinity;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: convolutions COUNT SEED\n");
    return 2;
  }
  const auto count = std::strtoull(argv[1], nullptr, 10);
  const auto seed = std::strtoull(argv[2], nullptr, 10);
  const std::vector<pthreadpool_t> pools{nullptr, pthreadpool_create(2), pthreadpool_create(3)};
  for (std::uint64_t i = 0; i < count; ++i) {
    Trial trial(seed + i, pools);
    if (!trial.passes()) {
      std::fprintf(stderr, "seed %llu differs: ", static_cast<unsigned long long>(seed + i));
      trial.print();
      return 1;
    }
  }
  for (pthreadpool_t pool : pools) {
    if (pool != nullptr) {
      pthreadpool_destroy(pool);
    }
  }
  std::printf("%llu convolutions, no difference\n", count);
}
