// A step that runs a kernel by rows on every image of a batch.
#pragma once

#include <pthreadpool.h>

#include <type_traits>

#include "kernels/image.hpp"
#include "operand_checks.hpp"

namespace arenite {

constexpr std::size_t kAddend = 3;  // position of what is added to the result

// The first image of a tensor N, H, W, C.
template <typename T>
Image<T> first_image(const TensorView& view) {
  const std::size_t rows = view.shape[1];
  const std::size_t columns = view.shape[2];
  const std::size_t channels = view.shape[3];
  auto* data = view.as<std::remove_const_t<T>>();
  return {data, rows, columns, channels, channels, columns * channels, rows};
}

// The rows of a matrix as the pixels of one row of an image.
template <typename T>
Image<T> as_pixels(const TensorView& view, std::size_t count) {
  const std::size_t channels = view.shape.back();
  auto* data = view.as<std::remove_const_t<T>>();
  return {data, 1, count, channels, channels, count * channels, 1};
}

// Images of T. Where the step has an addend, floats, the kernel's store is told of it.
template <typename Kernel, typename T>
class ConvolutionStep final : public Step {
 public:
  using Run = void (*)(const Kernel&, const Image<const T>&, const Image<T>&, RowRange,
                       pthreadpool_t);

  ConvolutionStep(const Operands& operands, Run run, Kernel kernel, Image<const T> source,
                  Image<T> result, std::size_t count)
      : run_(run),
        kernel_(kernel),
        source_(source),
        addend_{nullptr,         result.rows,         result.columns,
                result.channels, result.pixel_stride, result.row_stride,
                result.held_rows},
        result_(result),
        count_(count),
        threads_(operands.threads) {
    if constexpr (std::is_same_v<T, float>) {
      if (const auto* addend = optional_input(operands, kAddend)) {
        addend_.data = addend->as<float>();
        kernel_.store.addend = &addend_;
      }
    }
  }

  void run() override {
    for (std::size_t i = 0; i < count_; ++i) {
      run_(kernel_, source_, result_, {0, result_.rows}, threads_);
      move(1);
    }
    move(-static_cast<std::ptrdiff_t>(count_));
  }

  const char* backend() const override { return "arenite"; }

 private:
  // Goes on by so many images.
  void move(std::ptrdiff_t images) {
    const auto size = [](const auto& image) {
      return static_cast<std::ptrdiff_t>(image.rows * image.row_stride);
    };
    source_.data += images * size(source_);
    result_.data += images * size(result_);
    if (addend_.data != nullptr) {
      addend_.data += images * size(addend_);
    }
  }

  Run run_;
  Kernel kernel_;
  Image<const T> source_;
  Image<const T> addend_;  // of the shape of the result; no data: there is none
  Image<T> result_;
  std::size_t count_;
  pthreadpool_t threads_;
};

// Returns a step that reads images N, H, W, C and makes such.
template <typename T, typename Kernel>
std::unique_ptr<Step> image_step(const Operands& operands,
                                 typename ConvolutionStep<Kernel, T>::Run run,
                                 const Kernel& kernel) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  return std::make_unique<ConvolutionStep<Kernel, T>>(
      operands, run, kernel, first_image<const T>(source), first_image<T>(result), source.shape[0]);
}

// Returns a step that reads so many rows and makes as many.
template <typename T, typename Kernel>
std::unique_ptr<Step> pixel_step(const Operands& operands,
                                 typename ConvolutionStep<Kernel, T>::Run run, const Kernel& kernel,
                                 std::size_t rows) {
  return std::make_unique<ConvolutionStep<Kernel, T>>(operands, run, kernel,
                                                      as_pixels<const T>(*operands.inputs[0], rows),
                                                      as_pixels<T>(*operands.outputs[0], rows), 1);
}

}  // namespace arenite
