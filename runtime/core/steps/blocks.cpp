// Products with weights that are stored in blocks of 4 or 8 bits, and rows of such weights.
#include <algorithm>

#include "kernels/block_product.hpp"
#include "kernels/parallel.hpp"
#include "mapped_file.hpp"
#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

namespace {

using program::Type;

template <typename T>
bool is_aligned(const TensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % alignof(T) == 0;
}

// Returns the weights of inputs 1 to 3. Every factor is compared with a length of a tensor that
// lies in memory, so that no product of them is too large.
BlockWeights block_weights(const Operands& operands, std::size_t bits, std::size_t block,
                           std::size_t inputs, std::size_t outputs) {
  require(operands, bits == 4 || bits == 8, "its weights must have 4 or 8 bits");
  require(operands, block >= 16 && block <= kMostOfBlock && (block & (block - 1)) == 0,
          "its blocks must have 16, 32, 64, 128 or 256 weights");
  const auto& codes = *operands.inputs[1];
  const auto& scales = *operands.inputs[2];
  const auto* zeros = optional_input(operands, 3);
  constexpr std::size_t kGroupBytes = kBlockPanel * sizeof(std::uint32_t);
  const std::size_t blocks = divide_up(inputs, block);
  const std::size_t panels = divide_up(outputs, kBlockPanel);
  require(operands,
          codes.type == Type::uint8 && codes.rank() == 4 && codes.shape[0] == panels &&
              codes.shape[1] == blocks && codes.shape[2] == block * bits / 32 &&
              codes.shape[3] == kGroupBytes && is_aligned<std::uint32_t>(codes),
          "its codes do not fit");
  const auto fits = [&](const TensorView& view) {
    return view.rank() == 3 && view.shape[0] == panels && view.shape[1] == blocks &&
           view.shape[2] == kBlockPanel && is_aligned<float>(view);
  };
  require(operands, (scales.type == Type::float32 || scales.type == Type::float16) && fits(scales),
          "its scales do not fit");
  require(operands,
          zeros == nullptr ||
              ((zeros->type == Type::uint8 || zeros->type == Type::float32) && fits(*zeros)),
          "its zero points do not fit");
  for (const auto* view : {&codes, &scales, zeros}) {
    require(operands, view == nullptr || view->coded_size == 0, "its weights must not be coded");
  }
  BlockWeights found{};
  found.words = codes.as<const std::uint32_t>();
  found.scales = scales.data;
  found.zeros = zeros == nullptr ? nullptr : zeros->data;
  found.has_half_scales = scales.type == Type::float16;
  found.has_float_zeros = zeros != nullptr && zeros->type == Type::float32;
  found.bits = bits;
  found.block = block;
  found.blocks = blocks;
  found.inputs = inputs;
  found.outputs = outputs;
  return found;
}

class BlockProductStep final : public Step {
 public:
  BlockProductStep(const Operands& operands, const BlockWeights& weights, std::size_t num_rows)
      : source_(operands.inputs[0]->as<float>()),
        target_(operands.outputs[0]->as<float>()),
        weights_(weights),
        num_rows_(num_rows),
        pair_(operands),
        threads_(operands.threads) {
    if (operands.scratch != nullptr) {
      const std::size_t each = rounded_bytes(weights_);
      rounded_ = require_scratch(operands, each);
      rows_at_once_ = std::min(kBlockRows, operands.scratch->size / std::max(each, std::size_t{1}));
    }
  }

  void run() override {
    if (pair_.lies_apart) {
      run_rows({0, pair_.target.rows});
      return;
    }
    multiply(num_rows_, [this](std::size_t row, const float*& from, float*& to) {
      from = source_ + row * weights_.inputs;
      to = target_ + row * weights_.outputs;
    });
  }

  bool makes_rows() const override { return pair_.has_rows && weights_.inputs > 0; }
  bool finds_rows(std::size_t input) const override { return input == 0 && makes_rows(); }
  void run_rows(RowRange rows) override {
    const std::size_t each = pair_.source.row_stride / weights_.inputs;
    multiply(rows.count * each,
             [this, rows, each](std::size_t row, const float*& from, float*& to) {
               from = pair_.source.row(rows.first + row / each) + row % each * weights_.inputs;
               to = pair_.target.row(rows.first + row / each) + row % each * weights_.outputs;
             });
  }

 private:
  // Calls place(row, from, to) for where each row lies.
  template <typename Place>
  void multiply(std::size_t count, const Place& place) const {
    constexpr std::size_t kTogether = 4;  // panels
    const std::size_t panels = divide_up(weights_.outputs, kBlockPanel);
    const float* from[kBlockRows];
    float* to[kBlockRows];
    for (std::size_t first = 0; first < count; first += rows_at_once_) {
      const std::size_t rows = std::min(rows_at_once_, count - first);
      for (std::size_t i = 0; i < rows; ++i) { place(first + i, from[i], to[i]); }
      if (rounded_ != nullptr) { round(from, rows); }
      const std::size_t cost = kTogether * kBlockPanel * weights_.inputs * (1 + rows / 4);
      parallel(threads_, divide_up(panels, kTogether), cost,
               [&](std::size_t begin, std::size_t groups) {
                 const std::size_t panel = begin * kTogether;
                 const std::size_t some = std::min(groups * kTogether, panels - panel);
                 if (rounded_ != nullptr) {
                   multiply_rounded(weights_, rounded_, rows, panel, some, to);
                 } else {
                   multiply_blocks(weights_, from, rows, panel, some, to);
                 }
               });
    }
  }

  void round(const float* const* from, std::size_t rows) const {
    const std::size_t each = rounded_bytes(weights_);
    parallel(threads_, rows, 4 * weights_.inputs, [=](std::size_t first, std::size_t some) {
      for (std::size_t i = first; i < first + some; ++i) {
        round_row(weights_, from[i], rounded_ + i * each);
      }
    });
  }

  const float* source_;
  float* target_;
  BlockWeights weights_;
  std::size_t num_rows_;
  RowPair<float, float> pair_;
  pthreadpool_t threads_;
  std::byte* rounded_ = nullptr;  // rows for products of integers; null: products are of floats
  std::size_t rows_at_once_ = kBlockRows;
};

std::unique_ptr<Step> make_block_product(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_BlockProduct();
  require_arity(operands, 3, 5);
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const auto* bias = optional_input(operands, 4);
  require(operands,
          source.type == Type::float32 && result.type == Type::float32 &&
              (bias == nullptr || bias->type == Type::float32),
          "only float32 is supported");
  require(operands, source.rank() > 0 && source.rank() == result.rank(),
          "input and output differ in rank");
  require(operands, std::equal(source.shape.begin(), source.shape.end() - 1, result.shape.begin()),
          "input and output differ in their rows");
  const std::size_t inputs = source.shape.back();
  const std::size_t outputs = result.shape.back();
  require(operands, bias == nullptr || bias->num_elements() == outputs, "its bias does not fit");
  require(operands, lie_apart(operands) || source.data != result.data,
          "its output must not overlap its input");
  BlockWeights weights =
      block_weights(operands, attributes.bits(), attributes.block(), inputs, outputs);
  weights.bias = bias == nullptr ? nullptr : bias->as<float>();
  const std::size_t num_rows = outputs == 0 ? 0 : result.num_elements() / outputs;
  return std::make_unique<BlockProductStep>(operands, weights, num_rows);
}

template <typename Index>
class BlockGatherStep final : public Step {
 public:
  BlockGatherStep(const Operands& operands, const BlockWeights& weights, std::size_t count)
      : step_(operands.step),
        indices_(operands.inputs[0]->as<Index>()),
        target_(operands.outputs[0]->as<float>()),
        weights_(weights),
        count_(count),
        threads_(operands.threads),
        file_(operands.file) {}

  void check() const override {
    const auto rows = static_cast<std::int64_t>(weights_.outputs);
    for (std::size_t i = 0; i < count_; ++i) { require_index(step_, indices_[i], -rows, rows); }
  }

  void run() override {
    parallel(threads_, count_, 8 * weights_.inputs, [this](std::size_t first, std::size_t n) {
      for (std::size_t i = first; i < first + n; ++i) {
        read_blocks(weights_, inside(indices_[i]), target_ + i * weights_.inputs);
      }
    });
    for (std::size_t i = 0; i < count_; ++i) { release(inside(indices_[i]) / kBlockPanel); }
  }

 private:
  // Negative indices count from the end. A run cannot fail: indices out of range are clamped.
  std::size_t inside(std::int64_t index) const {
    const auto rows = static_cast<std::int64_t>(weights_.outputs);
    const std::int64_t positive = index < 0 ? index + rows : index;
    return static_cast<std::size_t>(std::min(std::max(positive, std::int64_t{0}), rows - 1));
  }

  // Gives back the pages of a panel: a run reads few rows of a table.
  void release(std::size_t panel) const {
    const auto give_back = [&](const void* from, std::size_t size) {
      file_->release(static_cast<const std::byte*>(from) + panel * size, size);
    };
    const std::size_t terms = weights_.blocks * kBlockPanel;
    give_back(weights_.words, terms * weights_.block * weights_.bits / 8);
    give_back(weights_.scales, terms * (weights_.has_half_scales ? 2 : 4));
    if (weights_.zeros != nullptr) {
      give_back(weights_.zeros, terms * (weights_.has_float_zeros ? 4 : 1));
    }
  }

  const program::Step& step_;
  const Index* indices_;
  float* target_;
  BlockWeights weights_;
  std::size_t count_;
  pthreadpool_t threads_;
  const MappedFile* file_;
};

std::unique_ptr<Step> make_block_gather(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_BlockGather();
  require_arity(operands, 3, 4);
  const auto& indices = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  require(operands, result.type == Type::float32, "only float32 is supported");
  require(operands,
          result.rank() == indices.rank() + 1 &&
              std::equal(indices.shape.begin(), indices.shape.end(), result.shape.begin()),
          "the output does not have one row for each index");
  require(operands, attributes.rows() > 0 && attributes.rows() < (1u << 31),
          "the number of rows is out of range");
  const BlockWeights weights = block_weights(operands, attributes.bits(), attributes.block(),
                                             result.shape.back(), attributes.rows());
  const std::size_t count = result.size == 0 ? 0 : indices.num_elements();
  return of_index_type(indices.type, [&](auto index) -> std::unique_ptr<Step> {
    return std::make_unique<BlockGatherStep<decltype(index)>>(operands, weights, count);
  });
}

const Registration registered[] = {
    {program::Operator::BlockGather, make_block_gather},
    {program::Operator::BlockProduct, make_block_product},
};

}  // namespace

}  // namespace arenite
