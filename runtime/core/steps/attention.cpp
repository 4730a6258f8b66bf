// Attention: softmax of the scores of queries and keys, times the values.
#include "kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/attention_operands.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

namespace {

// The addend of the scores: B or 1, S or 1, heads or 1, T.
struct Addend {
  const float* data = nullptr;  // null: none
  std::size_t batch_stride = 0;
  std::size_t row_stride = 0;
  std::size_t head_stride = 0;
  const std::uint64_t* row_offsets = nullptr;

  Addend() = default;
  Addend(const Operands& operands, std::size_t batches, std::size_t rows, std::size_t heads,
         std::size_t num_keys) {
    const auto* view = optional_input(operands, kAddends);
    if (view == nullptr) { return; }
    require(operands, view->rank() == 4 && view->shape[3] == num_keys,
            "the addend must have 4 axes and a number for each key");
    const auto stride = [&](std::size_t axis, std::size_t length, std::size_t size) {
      require(operands, view->shape[axis] == 1 || view->shape[axis] == length,
              "the addend does not broadcast to the scores");
      return view->shape[axis] == 1 ? 0 : size;
    };
    data = view->as<float>();
    head_stride = stride(2, heads, num_keys);
    row_stride = stride(1, rows, view->shape[2] * num_keys);
    batch_stride = stride(0, batches, view->shape[1] * view->shape[2] * num_keys);
    row_offsets = view->rows;
  }

  const float* of(std::size_t batch, std::size_t row, std::size_t head) const {
    if (data == nullptr) { return nullptr; }
    const Image<const float> rows{data, 0, 0, 0, 0, row_stride, row_offsets};
    return rows.row(row) + batch * batch_stride + head * head_stride;
  }
};

class AttentionStep final : public Step {
 public:
  AttentionStep(const Operands& operands, const AttentionShapes& shapes, const Addend& addend)
      : queries_(as_rows<const float>(*operands.inputs[kQueries])),
        results_(as_rows<float>(*operands.outputs[0])),
        keys_(shapes.keys),
        values_(shapes.values),
        addend_(addend),
        lengths_(nullptr),
        num_batches_(shapes.batches),
        heads_(shapes.heads),
        key_heads_(shapes.key_heads),
        depth_(shapes.depth),
        has_rows_(is_one_image(*operands.inputs[kQueries]) && is_one_image(*operands.outputs[0])),
        threads_(operands.threads) {
    const auto& attributes = *operands.step.kernel_as_Attention();
    scale_ = attributes.scale();
    softcap_ = attributes.softcap();
    is_causal_ = attributes.causal();
    window_ = attributes.window();
    if (const auto* lengths = optional_input(operands, kLengths)) {
      lengths_ = lengths->as<std::int32_t>();
    }
  }

  void run() override {
    for (std::size_t batch = 0; batch < num_batches_; ++batch) { make(batch, {0, queries_.rows}); }
  }

  bool makes_rows() const override { return has_rows_; }
  bool finds_rows(std::size_t input) const override {
    return has_rows_ && (input == kQueries || input == kAddends);
  }
  void run_rows(RowRange rows) override { make(0, rows); }

 private:
  void make(std::size_t batch, RowRange rows) const {
    const std::size_t group = heads_ / key_heads_;
    // By all rows, so that those of a band are computed as all others.
    const bool one_by_one = queries_.rows * group <= kFewAttentionQueries;
    const std::size_t columns = rows.count * group;  // of a head of keys
    const std::size_t parts = divide_up(columns, kAttentionQueries);
    const std::size_t num_keys = keys_that_count(batch);
    const std::size_t cost = (num_keys * std::min(columns, kAttentionQueries) + 1) * depth_ / 2;
    parallel(threads_, key_heads_ * parts, cost, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        const std::size_t head = i / parts;
        const std::size_t begin = i % parts * kAttentionQueries;
        const std::size_t end = std::min(begin + kAttentionQueries, columns);
        AttentionQuery queries[kAttentionQueries];
        for (std::size_t c = begin; c < end; ++c) {
          queries[c - begin] =
              query(batch, rows.first + c / group, head * group + c % group, num_keys);
        }
        attend({rows_of(keys_, batch, head), rows_of(values_, batch, head), num_keys, scale_,
                softcap_},
               queries, end - begin, one_by_one);
      }
    });
  }

  static AttentionRows rows_of(const Heads& heads, std::size_t batch, std::size_t head) {
    return {heads.head(batch, head), heads.kind, heads.stride, heads.width};
  }

  // A number that is out of range is the nearest: a run cannot fail.
  std::size_t keys_that_count(std::size_t batch) const {
    if (lengths_ == nullptr) { return keys_.count; }
    return std::min(static_cast<std::size_t>(std::max(lengths_[batch], 0)), keys_.count);
  }

  AttentionQuery query(std::size_t batch, std::size_t row, std::size_t head,
                       std::size_t num_keys) const {
    std::size_t first = 0;
    std::size_t end = num_keys;
    if (is_causal_) {
      const std::size_t behind = queries_.rows - 1 - row;  // later queries
      end = num_keys - std::min(behind, num_keys);
      first = window_ == 0 ? 0 : end - std::min(window_, end);
    }
    const std::size_t at = batch * queries_.rows;
    const bool is_apart = queries_.row_offsets != nullptr || results_.row_offsets != nullptr;
    const std::size_t place = is_apart ? row : at + row;
    return {queries_.row(place) + head * depth_, addend_.of(batch, row, head),
            results_.row(place) + head * values_.width, first, end};
  }

  Image<const float> queries_;
  Image<float> results_;
  Heads keys_;
  Heads values_;
  Addend addend_;
  const std::int32_t* lengths_;  // null: all keys count
  std::size_t num_batches_;
  std::size_t heads_;
  std::size_t key_heads_;
  std::size_t depth_;
  bool has_rows_;
  float scale_;
  float softcap_;
  bool is_causal_;
  std::size_t window_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_attention(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Attention();
  require_arity(operands, 3, kMostInputs);
  if (is_of_bytes(operands)) { return nullptr; }  // for the kernel of bytes
  require(operands, operands.inputs.size() <= kRoundings, "it has too many inputs for floats");
  const auto* lengths = optional_input(operands, kLengths);
  for (const auto* view :
       {operands.inputs[kQueries], optional_input(operands, kAddends), operands.outputs[0]}) {
    require(operands, view == nullptr || view->type == program::Type::float32,
            "only float32 is supported");
  }
  for (const std::size_t i : {kKeys, kValues}) {
    const auto type = operands.inputs[i]->type;
    require(operands,
            type == program::Type::float32 || type == program::Type::float16 ||
                type == program::Type::int8,
            "its keys and values must be floats of 32 or 16 bits, or a cache of 8");
  }
  const AttentionShapes shapes(operands);
  require(operands,
          lengths == nullptr || (lengths->type == program::Type::int32 && lengths->rank() == 1 &&
                                 lengths->shape[0] == shapes.batches),
          "it needs a number of keys of each batch, int32");
  require(operands, attributes.window() == 0 || attributes.causal(),
          "it has a window, but is not causal");
  require(operands, std::isfinite(attributes.scale()) && std::isfinite(attributes.softcap()),
          "its scale or bound of scores is not finite");
  const Addend addend(operands, shapes.batches, operands.inputs[kQueries]->shape[1], shapes.heads,
                      shapes.keys.count);
  for (const std::size_t i : {kKeys, kValues, kAddends}) {
    require_apart(operands, optional_input(operands, i));
  }
  return std::make_unique<AttentionStep>(operands, shapes, addend);
}

const Registration registered{program::Operator::Attention, make_attention};

}  // namespace

}  // namespace arenite
