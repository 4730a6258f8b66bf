// The operands of attention of floats and of bytes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/attention.hpp"
#include "operand_checks.hpp"
#include "tensor_view.hpp"
#include "validation.hpp"

namespace arenite {

inline constexpr std::size_t kQueries = 0;
inline constexpr std::size_t kKeys = 1;
inline constexpr std::size_t kValues = 2;
inline constexpr std::size_t kAddends = 3;
inline constexpr std::size_t kLengths = 4;
// Of bytes: scale and zero point of the scores and of the weights; and what the softmax reads for
// each score.
inline constexpr std::size_t kRoundings = 5;
inline constexpr std::size_t kTable = 6;
inline constexpr std::size_t kMostInputs = 7;

// Whether attention is of bytes.
inline bool is_of_bytes(const Operands& operands) {
  return operands.inputs[kQueries]->type == program::Type::int8;
}

// Where the heads of keys or of values lie; strides in bytes.
struct Heads {
  const std::byte* data = nullptr;
  RowKind kind = RowKind::floats;
  std::size_t batch_stride = 0;
  std::size_t head_stride = 0;
  std::size_t stride = 0;  // from one key to the next
  std::size_t count = 0;   // keys
  std::size_t width = 0;   // elements of one

  // Of B, T, heads * width, or by heads B, heads, T, width. A row of a cache of 8 bits takes the
  // place of `width` elements.
  Heads(const Operands& operands, std::size_t position, std::size_t batches, std::size_t heads,
        std::size_t elements)
      : width(elements) {
    const auto& view = *operands.inputs[position];
    const std::size_t element = element_size(view.type);
    data = view.data;
    require(operands, view.rank() == 3 || view.rank() == 4,
            "its keys and values must have 3 axes, or 4 by heads");
    require(operands, view.shape[0] == batches, "the batches of queries and keys differ");
    const bool is_by_heads = view.rank() == 4;
    const std::size_t columns = view.shape.back();
    require(operands, is_by_heads ? view.shape[1] == heads : columns % heads == 0,
            "its keys or values have another number of heads");
    const std::size_t row = is_by_heads ? columns : columns / heads;
    if (view.type == program::Type::float16) { kind = RowKind::halves; }
    if (view.type == program::Type::int8 && !is_of_bytes(operands)) { kind = RowKind::bytes; }
    require(operands, kind != RowKind::bytes || !view.is_quantised(),
            "its keys or values are integers with a scale of their own beside queries of floats");
    require(operands, row == (kind == RowKind::bytes ? cache_row_bytes(width) : width),
            "its keys or values differ in length from its queries or its output");
    count = view.shape[is_by_heads ? 2 : 1];
    stride = element * columns;
    head_stride = element * row * (is_by_heads ? count : 1);
    batch_stride = view.size / std::max<std::size_t>(batches, 1);
  }

  const std::byte* head(std::size_t batch, std::size_t index) const {
    return data + batch * batch_stride + index * head_stride;
  }
};

// The shapes of queries, keys, values and results, checked.
struct AttentionShapes {
  std::size_t heads;
  std::size_t key_heads;
  std::size_t batches;
  std::size_t depth;  // elements of a key
  Heads keys;
  Heads values;

  explicit AttentionShapes(const Operands& operands)
      : heads(operands.step.kernel_as_Attention()->heads()),
        key_heads(operands.step.kernel_as_Attention()->key_heads()),
        batches(num_batches(operands, heads, key_heads)),
        depth(operands.inputs[kQueries]->shape[2] / heads),
        keys(operands, kKeys, batches, key_heads, depth),
        values(operands, kValues, batches, key_heads, operands.outputs[0]->shape[2] / heads) {
    const auto& queries = *operands.inputs[kQueries];
    const auto& result = *operands.outputs[0];
    require(operands, queries.shape[0] == result.shape[0] && queries.shape[1] == result.shape[1],
            "its output has another number of queries");
    require(operands, keys.count == values.count, "it has more keys than values, or fewer");
    require(operands, depth <= kLargestHead && values.width <= kLargestHead,
            "a head has more than 256 elements");
  }

 private:
  static std::size_t num_batches(const Operands& operands, std::size_t heads,
                                 std::size_t key_heads) {
    require(operands, heads > 0 && key_heads > 0 && heads % key_heads == 0,
            "its heads are no multiple of those of its keys");
    require(operands, operands.inputs[kQueries]->rank() == 3 && operands.outputs[0]->rank() == 3,
            "its queries and its output must have 3 axes");
    require(operands, operands.inputs[kQueries]->shape[2] % heads == 0,
            "its heads do not divide its queries");
    require(operands, operands.outputs[0]->shape[2] % heads == 0,
            "its heads do not divide its output");
    return operands.inputs[kQueries]->shape[0];
  }
};

}  // namespace arenite
