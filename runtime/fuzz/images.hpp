// Random images for the fuzzers of kernels: with gaps, rows in no order, at the very end of
// readable memory.
#pragma once

#include <pthreadpool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/convolution/convolve.hpp"
#include "scattered_rows.hpp"

namespace arenite::fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}

  std::size_t between(std::size_t least, std::size_t most) {
    return least + random_() % (most - least + 1);
  }
  bool one_in(std::size_t count) { return between(1, count) == 1; }
  float real() { return static_cast<float>(random_() % 2001) / 1000.0f - 1.0f; }
  std::vector<float> reals(std::size_t count) {
    std::vector<float> made(count);
    for (float& value : made) { value = real(); }
    return made;
  }

 private:
  std::mt19937_64 random_;
};

// Floats that end where nothing can be read or written: the sanitizers do not see masked vectors.
class Floats {
 public:
  explicit Floats(std::size_t count, float filling = 0.0f) : count_(count) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (count * sizeof(float) + page - 1) / page * page;
    mapped_ = room + page;
    memory_ = static_cast<char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_ + room, page, PROT_NONE) != 0) { std::abort(); }
    data_ = reinterpret_cast<float*>(memory_ + room) - count;
    for (std::size_t i = 0; i < count; ++i) { data_[i] = filling; }
  }
  ~Floats() { munmap(memory_, mapped_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  float* data() { return data_; }
  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  std::size_t mapped_;
  char* memory_;
  float* data_;
};

struct Shape {
  std::size_t rows, columns, channels;

  std::size_t size() const { return rows * columns * channels; }
};

constexpr float kGap = 12345.0f;  // between pixels and rows

// An image that holds all rows or as many as it has room for, with gaps.
class Held {
 public:
  Held(Random& random, const Shape& shape, std::size_t held_rows, float gap)
      : shape_(shape), gap_(gap) {
    image_.rows = shape.rows;
    image_.columns = shape.columns;
    image_.channels = shape.channels;
    image_.pixel_stride = shape.channels + (random.one_in(2) ? random.between(0, 9) : 0);
    const std::size_t row = (shape.columns - 1) * image_.pixel_stride + shape.channels;
    image_.row_stride =
        shape.columns * image_.pixel_stride + (random.one_in(2) ? random.between(0, 20) : 0);
    floats_ = std::make_unique<Floats>((held_rows - 1) * image_.row_stride + row, gap);
    image_.data = floats_->data();
    if (held_rows < shape.rows || random.one_in(2)) {
      offsets_ = scattered_rows(shape.rows, held_rows, image_.row_stride * sizeof(float),
                                [&](std::size_t limit) { return random.between(0, limit - 1); });
      image_.row_offsets = offsets_.data();
    }
  }

  const Image<float>& image() const { return image_; }
  Image<const float> source() const {
    return {image_.data,         image_.rows,       image_.columns,    image_.channels,
            image_.pixel_stride, image_.row_stride, image_.row_offsets};
  }

  void write_row(std::size_t row, const std::vector<float>& from) {
    for (std::size_t column = 0; column < shape_.columns; ++column) {
      std::memcpy(image_.row(row) + column * image_.pixel_stride,
                  from.data() + (row * shape_.columns + column) * shape_.channels,
                  shape_.channels * sizeof(float));
    }
  }

  void read_row(std::size_t row, std::vector<float>& to) const {
    for (std::size_t column = 0; column < shape_.columns; ++column) {
      std::memcpy(to.data() + (row * shape_.columns + column) * shape_.channels,
                  image_.row(row) + column * image_.pixel_stride, shape_.channels * sizeof(float));
    }
  }

  // Whether something was written that is in no pixel, or in another row than these.
  bool gaps_are_kept(RowRange written) const {
    std::vector<char> in_pixel(floats_->count(), 0);
    for (std::size_t row = written.first; row < written.first + written.count; ++row) {
      for (std::size_t column = 0; column < shape_.columns; ++column) {
        const std::ptrdiff_t at = image_.row(row) + column * image_.pixel_stride - image_.data;
        std::fill_n(in_pixel.begin() + at, shape_.channels, 1);
      }
    }
    for (std::size_t i = 0; i < floats_->count(); ++i) {
      if (in_pixel[i] == 0 && std::memcmp(floats_->data() + i, &gap_, sizeof gap_) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  Shape shape_;
  float gap_;
  Image<float> image_;
  std::vector<std::uint64_t> offsets_;  // of its rows; empty: they follow one another
  std::unique_ptr<Floats> floats_;
};

// The rows of a source that lie under the windows of rows of the result.
inline RowRange rows_under(const SlidingWindow& window, RowRange rows, std::size_t source_rows) {
  const auto clip = [&](std::int64_t row) {
    return static_cast<std::size_t>(std::min<std::int64_t>(
        std::max<std::int64_t>(row, 0), static_cast<std::int64_t>(source_rows) - 1));
  };
  const auto top = [&](std::size_t row) {
    return static_cast<std::int64_t>(row * window.strides[0]) - window.padding[0];
  };
  const std::size_t first = clip(top(rows.first));
  const std::size_t last = clip(top(rows.first + rows.count - 1) +
                                std::int64_t{window.kernel[0] - 1} * window.dilations[0]);
  return {first, last - first + 1};
}

inline std::size_t result_extent(std::size_t source, const SlidingWindow& window, int axis) {
  const std::size_t margins =
      axis == 0 ? window.padding[0] + window.padding[2] : window.padding[1] + window.padding[3];
  const std::size_t reach = std::size_t{window.dilations[axis]} * (window.kernel[axis] - 1) + 1;
  return source + margins < reach ? 0 : (source + margins - reach) / window.strides[axis] + 1;
}

// Everything but the filter: what a convolution is given and must make.
struct Case {
  SlidingWindow window;
  Shape source_shape;
  Shape result_shape;
  std::vector<float> source;
  std::vector<float> bias;    // empty: none
  std::vector<float> addend;  // empty: none
  float min, max;

  // Random, except for the window and the channels.
  static bool make(Random& random, const SlidingWindow& window, std::size_t inputs,
                   std::size_t outputs, std::size_t most_extent, Case& made) {
    made.window = window;
    made.source_shape = {random.between(1, most_extent), random.between(1, most_extent), inputs};
    made.result_shape = {result_extent(made.source_shape.rows, window, 0),
                         result_extent(made.source_shape.columns, window, 1), outputs};
    if (made.result_shape.size() == 0) { return false; }
    made.source = random.reals(made.source_shape.size());
    made.bias = random.one_in(4) ? std::vector<float>() : random.reals(outputs);
    made.addend = random.one_in(2) ? std::vector<float>() : random.reals(made.result_shape.size());
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    made.min = random.one_in(2) ? -kInfinity : random.one_in(2) ? 0.0f : -0.5f;
    made.max = random.one_in(2) ? kInfinity : 0.75f;
    return true;
  }

  // Calls visit(tap, pixel) for each tap of a window that lies in the source.
  template <typename Visit>
  void each_tap(std::size_t row, std::size_t column, const Visit& visit) const {
    for (std::size_t tap = 0; tap < std::size_t{window.kernel[0]} * window.kernel[1]; ++tap) {
      const auto at = [&](int axis, std::size_t index, std::size_t step) {
        const std::int64_t before = axis == 0 ? window.padding[0] : window.padding[3];
        return static_cast<std::int64_t>(index * window.strides[axis] +
                                         step * window.dilations[axis]) -
               before;
      };
      const std::int64_t y = at(0, row, tap / window.kernel[1]);
      const std::int64_t x = at(1, column, tap % window.kernel[1]);
      if (y >= 0 && x >= 0 && y < static_cast<std::int64_t>(source_shape.rows) &&
          x < static_cast<std::int64_t>(source_shape.columns)) {
        const std::size_t pixel =
            static_cast<std::size_t>(y) * source_shape.columns + static_cast<std::size_t>(x);
        visit(tap, source.data() + pixel * source_shape.channels);
      }
    }
  }

  // Computes some rows with no more rows held than there must be, and adds them to
  // `result`. `compute` takes a source, a result, rows and a store, and `rows_read` says what rows
  // of the source it reads.
  template <typename Compute, typename RowsRead>
  bool band(Random& random, RowRange rows, std::vector<float>& result, const Compute& compute,
            const RowsRead& rows_read) const {
    const RowRange under = rows_read(rows);
    const bool is_tight = random.one_in(2);
    const std::size_t enough = std::max<std::size_t>(1, under.count + random.between(0, 1));
    const std::size_t held = is_tight ? std::min(source_shape.rows, enough) : source_shape.rows;
    Held from(random, source_shape, held, std::nanf(""));
    // Only what the windows need: other rows are no numbers.
    const std::size_t last = under.first + under.count;
    for (std::size_t row = is_tight ? under.first : 0; row < (is_tight ? last : source_shape.rows);
         ++row) {
      from.write_row(row, source);
    }
    Held to(random, result_shape, is_tight ? rows.count : result_shape.rows, kGap);
    std::unique_ptr<Held> added;
    Image<const float> added_image{};
    FloatStore store{bias.empty() ? nullptr : bias.data(), nullptr, min, max};
    if (!addend.empty() && random.one_in(2)) {  // where the result will lie
      for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
        to.write_row(row, addend);
      }
      added_image = to.source();
      store.addend = &added_image;
    } else if (!addend.empty()) {
      added = std::make_unique<Held>(random, result_shape, result_shape.rows, std::nanf(""));
      for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
        added->write_row(row, addend);
      }
      added_image = added->source();
      store.addend = &added_image;
    }
    compute(from.source(), to.image(), rows, store);
    for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
      to.read_row(row, result);
    }
    return to.gaps_are_kept(rows);
  }

  // Computes all rows at once and in random bands; says what is wrong, null if nothing is.
  // `exact` fills in the sums in double precision without addend and clamp, and the sums of their
  // terms' magnitudes.
  template <typename Compute, typename RowsRead, typename Exact>
  const char* check(Random& random, double tolerance, const Compute& compute,
                    const RowsRead& rows_read, const Exact& exact) const {
    std::vector<float> whole(result_shape.size());
    std::vector<float> banded(result_shape.size());
    if (!band(random, {0, result_shape.rows}, whole, compute, rows_read)) {
      return "something beside the result was written";
    }
    for (std::size_t row = 0; row < result_shape.rows;) {
      const std::size_t count = std::min(result_shape.rows - row, random.between(1, 5));
      if (!band(random, {row, count}, banded, compute, rows_read)) {
        return "something beside a band of the result was written";
      }
      row += count;
    }
    if (std::memcmp(whole.data(), banded.data(), whole.size() * sizeof(float)) != 0) {
      return "bands differ from the whole";
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const std::size_t channel = i % result_shape.channels;
      const std::size_t pixel = i / result_shape.channels;
      double sum = bias.empty() ? 0.0 : bias[channel];
      double magnitude = std::abs(sum);
      exact(pixel / result_shape.columns, pixel % result_shape.columns, channel, sum, magnitude);
      sum += addend.empty() ? 0.0 : addend[i];
      magnitude += addend.empty() ? 0.0 : std::abs(addend[i]);
      const double expected = std::min<double>(max, std::max<double>(min, sum));
      const bool is_right = std::isnan(sum)
                                ? std::isnan(whole[i])
                                : std::abs(whole[i] - expected) <= tolerance * (magnitude + 1e-3);
      if (!is_right) {
        std::fprintf(stderr, "element %zu is %.9g, not %.9g\n", i, whole[i], expected);
        return "a result is wrong";
      }
    }
    return nullptr;
  }
};

// Two or three threads, seldom: where the processors have other work, too, threads spend most of
// their time waiting for one another.
class Threads {
 public:
  Threads() : two_(pthreadpool_create(2)), three_(pthreadpool_create(3)) {}
  ~Threads() {
    pthreadpool_destroy(two_);
    pthreadpool_destroy(three_);
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  pthreadpool_t any(Random& random) const {
    if (!random.one_in(8)) { return nullptr; }
    return random.one_in(2) ? two_ : three_;
  }

 private:
  pthreadpool_t two_;
  pthreadpool_t three_;
};

// Runs so many trials, each with numbers of its own: the program `name COUNT SEED`.
inline int run_trials(const char* name, int argc, char** argv,
                      const char* (*run)(Random&, const Threads&)) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s COUNT SEED\n", name);
    return 2;
  }
  const auto count = std::strtoull(argv[1], nullptr, 10);
  const auto seed = std::strtoull(argv[2], nullptr, 10);
  const Threads threads;
  for (std::uint64_t trial = 0; trial < count; ++trial) {
    Random random(seed * 1000003 + trial);
    if (const char* fault = run(random, threads)) {
      std::fprintf(stderr, "trial %llu: %s\n", static_cast<unsigned long long>(trial), fault);
      return 1;
    }
  }
  std::printf("%llu %s, no difference\n", count, name);
  return 0;
}

}  // namespace arenite::fuzz
