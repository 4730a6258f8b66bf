// Products of matrices that are both computed in the run.
#include <algorithm>

#include "kernels/gemm.hpp"
#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// The leading axes of both operands, broadcast to those of the output: for each product where its
// matrices begin.
class Batches {
 public:
  Batches(const Operands& operands, std::size_t a_size, std::size_t b_size) {
    const auto& c = *operands.outputs[0];
    axes_.resize(c.rank() - 2);
    broadcast(operands, *operands.inputs[0], a_size, &Axis::a);
    broadcast(operands, *operands.inputs[1], b_size, &Axis::b);
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) { axes_[axis].length = c.shape[axis]; }
  }

  // First elements of the matrices of a product.
  struct Start {
    std::size_t a = 0;
    std::size_t b = 0;
  };

  Start start(std::size_t product) const {
    Start found;
    for (std::size_t axis = axes_.size(); axis-- > 0;) {
      const std::size_t index = axis == 0 ? product : product % axes_[axis].length;
      product /= axis == 0 ? 1 : axes_[axis].length;
      found.a += index * axes_[axis].a;
      found.b += index * axes_[axis].b;
    }
    return found;
  }

 private:
  struct Axis {
    std::size_t length = 1;
    std::size_t a = 0;  // elements from one index to the next; 0: the operand is repeated
    std::size_t b = 0;
  };

  void broadcast(const Operands& operands, const TensorView& view, std::size_t size,
                 std::size_t Axis::* stride) {
    const auto& shape = operands.outputs[0]->shape;
    const std::size_t missing = shape.size() - view.rank();
    for (std::size_t axis = axes_.size(); axis-- > missing;) {
      const std::size_t length = view.shape[axis - missing];
      require(operands, length == 1 || length == shape[axis], "the batches do not broadcast");
      axes_[axis].*stride = length == 1 ? 0 : size;
      size *= length;
    }
  }

  StepVector<Axis> axes_;  // outermost first
};

class MatMulStep final : public Step {
 public:
  MatMulStep(const Operands& operands, std::size_t rows, std::size_t columns, std::size_t depth)
      : a_(operands.inputs[0]->as<float>()),
        b_(operands.inputs[1]->as<float>()),
        c_(operands.outputs[0]->as<float>()),
        batches_(operands, rows * depth, depth * columns),
        rows_(rows),
        columns_(columns),
        depth_(depth),
        num_products_(operands.outputs[0]->size == 0
                          ? 0
                          : operands.outputs[0]->num_elements() / (rows * columns)),
        transpose_a_(operands.step.kernel_as_MatMul()->transpose_a()),
        transpose_b_(operands.step.kernel_as_MatMul()->transpose_b()),
        packed_(rows == 1 ? nullptr
                          : require_scratch_of<float>(operands, gemm_scratch(columns, depth))),
        threads_(operands.threads) {}

  void run() override {
    std::size_t packed = 0;
    for (std::size_t i = 0; i < num_products_; ++i) {
      const auto [a, b] = batches_.start(i);
      if (rows_ == 1) {
        multiply_row(a_ + a, b_ + b, c_ + i * columns_);
        continue;
      }
      if (i == 0 || b != packed) {
        pack(b_ + b);
        packed = b;
      }
      multiply(a_ + a, c_ + i * rows_ * columns_);
    }
  }

 private:
  void pack(const float* b) {
    const std::size_t depth_stride = transpose_b_ ? 1 : columns_;
    const std::size_t column_stride = transpose_b_ ? depth_ : 1;
    in_blocks(columns_, kGemmPanel, 4 * depth_, [=](std::size_t first, std::size_t count) {
      gemm_pack(b + first * column_stride, depth_stride, column_stride, count, depth_,
                packed_ + first * depth_);
    });
  }

  void multiply(const float* a, float* c) const {
    const GemmLeft left{a, transpose_a_ ? 1 : depth_, transpose_a_ ? rows_ : 1};
    in_blocks(rows_, kGemmRows, columns_ * depth_ / 8, [&](std::size_t first, std::size_t count) {
      gemm_rows(left, packed_, columns_, depth_, first, count, c);
    });
  }

  // Packing would take longer than the product.
  void multiply_row(const float* a, const float* b, float* c) const {
    in_blocks(columns_, 4 * kGemmPanel, depth_, [=, this](std::size_t first, std::size_t count) {
      gemm_row(a, b, transpose_b_, transpose_b_ ? depth_ : columns_, depth_, first, count, c);
    });
  }

  // Calls work(first, count) on whole blocks of [0, total); `cost` is of one index.
  template <typename Work>
  void in_blocks(std::size_t total, std::size_t block, std::size_t cost, const Work& work) const {
    parallel(threads_, (total + block - 1) / block, block * cost,
             [=, &work](std::size_t first, std::size_t count) {
               work(first * block, std::min(count * block, total - first * block));
             });
  }

  const float* a_;
  const float* b_;
  float* c_;
  Batches batches_;
  std::size_t rows_;
  std::size_t columns_;
  std::size_t depth_;
  std::size_t num_products_;
  bool transpose_a_;
  bool transpose_b_;
  float* packed_;  // working memory; null for a single row
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_matmul(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_MatMul();
  require_arity(operands, 2, 2);
  const auto& a = *operands.inputs[0];
  const auto& b = *operands.inputs[1];
  const auto& c = *operands.outputs[0];
  require(operands, a.rank() >= 2 && b.rank() >= 2, "its inputs must be matrices");
  require(operands, c.rank() == std::max(a.rank(), b.rank()), "the output has another rank");
  require_floats(operands);
  const bool ta = attributes.transpose_a();
  const bool tb = attributes.transpose_b();
  const std::size_t rows = a.shape[a.rank() - (ta ? 1 : 2)];
  const std::size_t depth = a.shape[a.rank() - (ta ? 2 : 1)];
  const std::size_t columns = b.shape[b.rank() - (tb ? 2 : 1)];
  require(operands, b.shape[b.rank() - (tb ? 1 : 2)] == depth, "the matrices do not fit");
  require(operands, c.shape[c.rank() - 2] == rows && c.shape[c.rank() - 1] == columns,
          "the output is not of the product's size");
  require(operands, c.data != a.data && c.data != b.data, "its output must not overlap its input");
  return std::make_unique<MatMulStep>(operands, rows, columns, depth);
}

const Registration registered{program::Operator::MatMul, make_matmul};

}  // namespace

}  // namespace arenite
