// The two-dimensional Fourier transform of real numbers, in doubles.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

struct Complex {
  double real, imaginary;

  Complex operator+(Complex other) const {
    return {real + other.real, imaginary + other.imaginary};
  }
  Complex operator-(Complex other) const {
    return {real - other.real, imaginary - other.imaginary};
  }
  Complex operator*(Complex other) const {
    return {real * other.real - imaginary * other.imaginary,
            real * other.imaginary + imaginary * other.real};
  }
};

struct Sizes {
  std::size_t slices;
  std::size_t given_rows;
  std::size_t given_columns;
  std::size_t rows;  // of the transform: a power of 2, as the columns
  std::size_t columns;

  std::size_t half() const { return columns / 2; }
  std::size_t made() const { return half() + 1; }
  // A row or column at a time, and all of them where there are several rows.
  std::size_t scratch() const { return std::max(rows, half()) + (rows > 1 ? rows * made() : 0); }
};

class Rfft2DStep final : public Step {
 public:
  Rfft2DStep(const Operands& operands, const Sizes& sizes)
      : sizes_(sizes),
        source_(operands.inputs[0]->as<float>()),
        target_(operands.outputs[0]->as<float>()),
        line_(require_scratch_of<Complex>(operands, sizes.scratch())),
        grid_(line_ + std::max(sizes.rows, sizes.half())),
        num_roots_(std::max(sizes.rows, sizes.columns)) {
    const double step = -2.0 * 3.14159265358979323846 / static_cast<double>(num_roots_);
    roots_.reserve(num_roots_ / 2);
    for (std::size_t i = 0; i < num_roots_ / 2; ++i) {
      const double angle = step * static_cast<double>(i);
      roots_.push_back({std::cos(angle), std::sin(angle)});
    }
  }

  void run() override {
    const std::size_t made = sizes_.made();
    for (std::size_t slice = 0; slice < sizes_.slices; ++slice) {
      const float* source = source_ + slice * sizes_.given_rows * sizes_.given_columns;
      float* target = target_ + 2 * slice * sizes_.rows * made;
      for (std::size_t row = 0; row < sizes_.rows; ++row) {
        transform_row(source, row);
        for (std::size_t i = 0; i < made; ++i) {
          if (sizes_.rows > 1) {
            grid_[row * made + i] = of_row(i);
          } else {
            store(of_row(i), target + 2 * i);
          }
        }
      }
      for (std::size_t column = 0; sizes_.rows > 1 && column < made; ++column) {
        for (std::size_t row = 0; row < sizes_.rows; ++row) {
          line_[row] = grid_[row * made + column];
        }
        transform(sizes_.rows);
        for (std::size_t row = 0; row < sizes_.rows; ++row) {
          store(line_[row], target + 2 * (row * made + column));
        }
      }
    }
  }

  std::size_t held_bytes() const override { return heap_bytes(roots_); }

 private:
  static void store(Complex value, float* target) {
    target[0] = static_cast<float>(value.real);
    target[1] = static_cast<float>(value.imaginary);
  }

  // Leaves in the line the transform of a row's even numbers plus i times its odd ones.
  void transform_row(const float* source, std::size_t row) const {
    const auto value = [&](std::size_t column) -> double {
      const bool is_given = row < sizes_.given_rows && column < sizes_.given_columns;
      return is_given ? source[row * sizes_.given_columns + column] : 0.0;
    };
    for (std::size_t i = 0; i < sizes_.half(); ++i) { line_[i] = {value(2 * i), value(2 * i + 1)}; }
    transform(sizes_.half());
  }

  // Of the row whose even and odd numbers the line holds, one number of the transform.
  Complex of_row(std::size_t i) const {
    const std::size_t half = sizes_.half();
    if (i == 0 || i == half) {
      const Complex both = line_[0];
      return {i == 0 ? both.real + both.imaginary : both.real - both.imaginary, 0.0};
    }
    const Complex one = line_[i];
    const Complex other = {line_[half - i].real, -line_[half - i].imaginary};
    const Complex even = one + other;
    const Complex odd =
        Complex{0.0, -1.0} * (one - other) * roots_[i * (num_roots_ / sizes_.columns)];
    return {0.5 * (even.real + odd.real), 0.5 * (even.imaginary + odd.imaginary)};
  }

  // Transforms the first numbers of the line, a power of 2 of them, where they are.
  void transform(std::size_t count) const {
    for (std::size_t i = 1, mirrored = 0; i < count; ++i) {
      std::size_t bit = count / 2;
      for (; mirrored & bit; bit /= 2) { mirrored ^= bit; }
      mirrored ^= bit;
      if (i < mirrored) { std::swap(line_[i], line_[mirrored]); }
    }
    for (std::size_t length = 2; length <= count; length *= 2) {
      const std::size_t step = num_roots_ / length;
      for (std::size_t start = 0; start < count; start += length) {
        for (std::size_t i = 0; i < length / 2; ++i) {
          Complex& low = line_[start + i];
          Complex& high = line_[start + i + length / 2];
          const Complex turned = high * roots_[i * step];
          high = low - turned;
          low = low + turned;
        }
      }
    }
  }

  Sizes sizes_;
  const float* source_;
  float* target_;
  Complex* line_;
  Complex* grid_;
  std::size_t num_roots_;
  StepVector<Complex> roots_;  // of unity, half of them; on the heap for as long as the step lives
};

bool is_power_of_two(std::size_t number) { return number != 0 && (number & (number - 1)) == 0; }

std::unique_ptr<Step> make_rfft2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Rfft2D();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require_floats(operands);
  const std::size_t rank = source.rank();
  require(operands, rank >= 2 && target.rank() == rank + 1 && target.shape[rank] == 2,
          "the input must have rows and columns, and the output pairs of floats");
  Sizes sizes{1, source.shape[rank - 2], source.shape[rank - 1], attributes.rows(),
              attributes.columns()};
  require(operands,
          is_power_of_two(sizes.rows) && is_power_of_two(sizes.columns) && sizes.columns >= 2 &&
              sizes.rows < (1u << 24) && sizes.columns < (1u << 24),
          "its rows and columns must be powers of 2");
  require(operands, std::uint64_t{sizes.rows} * sizes.made() < (1u << 26),
          "it has too many rows and columns");
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    require(operands, target.shape[i] == source.shape[i], "input and output differ");
    sizes.slices *= source.shape[i];
  }
  require(operands,
          target.shape[rank - 2] == sizes.rows && target.shape[rank - 1] == sizes.made() &&
              target.size > 0,
          "its output has the wrong shape");
  return std::make_unique<Rfft2DStep>(operands, sizes);
}

const Registration registered{program::Operator::Rfft2D, make_rfft2d};

}  // namespace

}  // namespace arenite
