// A step that pools every image of a batch.
#pragma once

#include <pthreadpool.h>

#include <memory>

#include "kernels/image.hpp"
#include "kernels/pool.hpp"
#include "kernels/pool_int8.hpp"
#include "operand_checks.hpp"
#include "rows_read.hpp"

namespace arenite {

// Pools elements T with sums of type Sum. In bands, an average whose result has one row at the
// highest sizes adds rows of the image to sums.
template <typename T, typename Sum, typename Kernel>
class PoolStep final : public Step {
 public:
  PoolStep(const Operands& operands, const Kernel& kernel, Image<const T> source, Image<T> result,
           std::size_t num_images)
      : kernel_(kernel),
        source_(source),
        result_(result),
        num_images_(num_images),
        threads_(operands.threads),
        takes_rows_(operands.in_bands && takes_rows(operands.step, *operands.tensors)) {
    if (takes_rows_) {
      sums_ = require_scratch_of<Sum>(operands, result.columns * result.channels);
    }
  }

  void run() override {
    Image<const T> source = source_;
    Image<T> result = result_;
    for (std::size_t i = 0; i < num_images_; ++i) {
      pool(kernel_, source, result, {0, result.rows}, threads_);
      source.data += source.rows * source.row_stride;
      result.data += result.rows * result.row_stride;
    }
  }

  bool makes_rows() const override { return num_images_ == 1; }
  bool finds_rows(std::size_t input) const override { return input == 0 && num_images_ == 1; }
  void run_rows(RowRange rows) override {
    if (takes_rows_) {
      if (result_.rows != 0) { take_rows(kernel_, source_, result_, rows, sums_); }
    } else {
      pool(kernel_, source_, result_, rows, threads_);
    }
  }
  void sum_rows(RowRange rows, bool is_last) override {
    if (source_.rows == 0 || result_.rows == 0) {
      if (is_last) { run(); }
      return;
    }
    Image<const T> source = source_;
    // With a row behind them these are not the last.
    if (!is_last && rows.first + rows.count == source.rows) { ++source.rows; }
    if (rows.count == 0) { rows.first = source_.rows; }
    if (is_last || rows.count != 0) { take_rows(kernel_, source, result_, rows, sums_); }
  }

 private:
  Kernel kernel_;
  Image<const T> source_;
  Image<T> result_;
  Sum* sums_ = nullptr;
  std::size_t num_images_;
  pthreadpool_t threads_;
  bool takes_rows_;  // into sums
};

// Returns the step that pools each image of its input into the same image of its output.
template <typename T, typename Sum, typename Kernel>
std::unique_ptr<Step> make_pool_step(const Operands& operands, const Kernel& kernel,
                                     Image<const T> source, Image<T> result) {
  return std::make_unique<PoolStep<T, Sum, Kernel>>(operands, kernel, source, result,
                                                    operands.inputs[0]->shape[0]);
}

}  // namespace arenite
