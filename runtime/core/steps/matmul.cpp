// Products of matrices that are both made by the run.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/gemm.hpp"
#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// For each product its matrices: their first elements.
struct Batch {
  std::size_t a;
  std::size_t b;
};

class MatMulStep final : public Step {
 public:
  MatMulStep(const Operands& operands, std::vector<Batch> batches, std::size_t rows,
             std::size_t columns, std::size_t depth)
      : a_(operands.inputs[0]->as<float>()),
        b_(operands.inputs[1]->as<float>()),
        c_(operands.outputs[0]->as<float>()),
        batches_(std::move(batches)),
        rows_(rows),
        columns_(columns),
        depth_(depth),
        transpose_a_(operands.step.kernel_as_MatMul()->transpose_a()),
        transpose_b_(operands.step.kernel_as_MatMul()->transpose_b()),
        packed_(gemm_scratch(columns, depth)),
        threads_(operands.threads) {}

  void run() override {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      if (i == 0 || batches_[i].b != batches_[i - 1].b) {
        pack(b_ + batches_[i].b);
      }
      multiply(a_ + batches_[i].a, c_ + i * rows_ * columns_);
    }
  }

  const char* backend() const override { return "arenite"; }

 private:
  void pack(const float* b) {
    const std::size_t depth_stride = transpose_b_ ? 1 : columns_;
    const std::size_t column_stride = transpose_b_ ? depth_ : 1;
    in_blocks(columns_, kGemmPanel, 4 * depth_, [=](std::size_t first, std::size_t count) {
      gemm_pack(b + first * column_stride, depth_stride, column_stride, count, depth_,
                packed_.data() + first * depth_);
    });
  }

  void multiply(const float* a, float* c) const {
    const GemmLeft left{a, transpose_a_ ? 1 : depth_, transpose_a_ ? rows_ : 1};
    in_blocks(rows_, kGemmRows, columns_ * depth_ / 8, [&](std::size_t first, std::size_t count) {
      gemm_rows(left, packed_.data(), columns_, depth_, first, count, c);
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
  std::vector<Batch> batches_;
  std::size_t rows_;
  std::size_t columns_;
  std::size_t depth_;
  bool transpose_a_;
  bool transpose_b_;
  std::vector<float> packed_;
  pthreadpool_t threads_;
};

// Leading axes of both, broadcast to those of the output.
std::vector<Batch> batches_of(const Operands& operands, std::size_t a_size, std::size_t b_size) {
  const auto& a = *operands.inputs[0];
  const auto& b = *operands.inputs[1];
  const auto& c = *operands.outputs[0];
  std::vector<Batch> batches{{0, 0}};
  const std::size_t rank = c.rank() - 2;
  std::size_t a_step = a_size;
  std::size_t b_step = b_size;
  std::vector<Batch> steps(rank);
  for (std::size_t axis = rank; axis-- > 0;) {
    for (const bool is_a : {true, false}) {
      const auto& view = is_a ? a : b;
      const std::size_t missing = c.rank() - view.rank();
      const std::size_t length = axis < missing ? 1 : view.shape[axis - missing];
      require(operands, length == 1 || length == c.shape[axis], "the batches do not broadcast");
      std::size_t& step = is_a ? a_step : b_step;
      (is_a ? steps[axis].a : steps[axis].b) = length == 1 ? 0 : step;
      step *= length;
    }
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::vector<Batch> longer;
    longer.reserve(batches.size() * c.shape[axis]);
    for (const Batch& batch : batches) {
      for (std::size_t i = 0; i < c.shape[axis]; ++i) {
        longer.push_back({batch.a + i * steps[axis].a, batch.b + i * steps[axis].b});
      }
    }
    batches = std::move(longer);
  }
  return batches;
}

std::unique_ptr<Step> make_matmul(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_MatMul();
  require_arity(operands, 2, 2);
  const auto& a = *operands.inputs[0];
  const auto& b = *operands.inputs[1];
  const auto& c = *operands.outputs[0];
  require(operands, a.rank() >= 2 && b.rank() >= 2, "it must read matrices");
  require(operands, c.rank() == std::max(a.rank(), b.rank()), "the output has another rank");
  for (const auto* view : {&a, &b, &c}) {
    require(operands, view->type == program::Type::float32, "it computes in numbers alone");
  }
  const bool ta = attributes.transpose_a();
  const bool tb = attributes.transpose_b();
  const std::size_t rows = a.shape[a.rank() - (ta ? 1 : 2)];
  const std::size_t depth = a.shape[a.rank() - (ta ? 2 : 1)];
  const std::size_t columns = b.shape[b.rank() - (tb ? 2 : 1)];
  require(operands, b.shape[b.rank() - (tb ? 1 : 2)] == depth, "the matrices do not fit");
  require(operands, c.shape[c.rank() - 2] == rows && c.shape[c.rank() - 1] == columns,
          "the output is not of the product's size");
  require(operands, c.data != a.data && c.data != b.data, "it cannot write over its input");
  return std::make_unique<MatMulStep>(operands, batches_of(operands, rows * depth, depth * columns),
                                      rows, columns, depth);
}

const Registration registered{program::Operator::MatMul, make_matmul};

}  // namespace

}  // namespace arenite
