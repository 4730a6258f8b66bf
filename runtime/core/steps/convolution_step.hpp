// A step that runs a kernel on every image of a batch.
#pragma once

#include <pthreadpool.h>

#include <type_traits>

#include "kernels/half.hpp"
#include "operand_checks.hpp"
#include "steps/images.hpp"

namespace arenite {

constexpr std::size_t kAddend = 3;  // position of what is added to the result

// Whether what a kernel adds are sums of bytes.
template <typename Kernel>
constexpr bool adds_sums = false;

// From images of T to those of Result. If the step has an addend, of floats as the result or of
// sums of bytes, the kernel's store points at it.
template <typename Kernel, typename T, typename Result = T>
class ConvolutionStep final : public Step {
 public:
  using Addend = std::conditional_t<adds_sums<Kernel>, std::int32_t, Result>;
  using Run = void (*)(const Kernel&, const Image<const T>&, const Image<Result>&, RowRange,
                       pthreadpool_t);

  ConvolutionStep(const Operands& operands, Run run, Kernel kernel, Image<const T> source,
                  Image<Result> result, std::size_t count)
      : run_(run),
        kernel_(kernel),
        source_(source),
        addend_{nullptr,         result.rows,         result.columns,
                result.channels, result.pixel_stride, result.row_stride},
        result_(result),
        count_(count),
        threads_(operands.threads) {
    if constexpr (kHasAddend) {
      if (const auto* addend = optional_input(operands, kAddend)) {
        addend_.data = addend->as<Addend>();
        addend_.row_offsets = addend->rows;
        kernel_.store.addend = &addend_;
      }
    }
  }

  void run() override {
    for (std::size_t i = 0; i < count_; ++i) {
      run_rows({0, result_.rows});
      move(1);
    }
    move(-static_cast<std::ptrdiff_t>(count_));
  }

  bool makes_rows() const override { return true; }
  bool finds_rows(std::size_t input) const override { return input == 0 || input == kAddend; }
  void run_rows(RowRange rows) override { run_(kernel_, source_, result_, rows, threads_); }

 private:
  // Advances by so many images.
  void move(std::ptrdiff_t images) {
    const auto size = [](const auto& image) {
      return static_cast<std::ptrdiff_t>(image.rows * image.row_stride);
    };
    source_.data += images * size(source_);
    result_.data += images * size(result_);
    if (addend_.data != nullptr) { addend_.data += images * size(addend_); }
  }

  static constexpr bool kHasAddend = std::is_same_v<Result, Half> ||
                                     (std::is_same_v<T, float> && std::is_same_v<Result, float>) ||
                                     adds_sums<Kernel>;

  Run run_;
  Kernel kernel_;
  Image<const T> source_;
  Image<const Addend> addend_;  // of the shape of the result; no data: there is none
  Image<Result> result_;
  std::size_t count_;
  pthreadpool_t threads_;
};

// Returns a step from images N, H, W, C to such images.
template <typename T, typename Result = T, typename Kernel>
std::unique_ptr<Step> image_step(const Operands& operands,
                                 typename ConvolutionStep<Kernel, T, Result>::Run run,
                                 const Kernel& kernel) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  return std::make_unique<ConvolutionStep<Kernel, T, Result>>(
      operands, run, kernel, first_image<const T>(source), first_image<Result>(result),
      source.shape[0]);
}

// Returns a step that makes each pixel from one pixel, row by row if both operands have the same
// rows.
template <typename T, typename Result = T, typename Kernel>
std::unique_ptr<Step> pixel_step(const Operands& operands,
                                 typename ConvolutionStep<Kernel, T, Result>::Run run,
                                 const Kernel& kernel, std::size_t pixels) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const bool by_rows =
      operands.in_bands || source.rows != nullptr || result.rows != nullptr ||
      (optional_input(operands, kAddend) != nullptr && operands.inputs[kAddend]->rows != nullptr);
  if (!by_rows) {
    return std::make_unique<ConvolutionStep<Kernel, T, Result>>(
        operands, run, kernel, as_pixels<const T>(source, pixels),
        as_pixels<Result>(result, pixels), 1);
  }
  require(operands,
          source.rank() >= 3 && result.rank() >= 3 && source.shape[0] == 1 &&
              result.shape[0] == 1 && source.shape[1] == result.shape[1],
          "it runs by rows, but its input and output differ in rows");
  return std::make_unique<ConvolutionStep<Kernel, T, Result>>(
      operands, run, kernel, as_rows<const T>(source), as_rows<Result>(result), 1);
}

}  // namespace arenite
