// Attention of signed bytes: scores and weights are rounded to bytes on the way.
#include "kernels/quantised_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/parallel.hpp"
#include "registry.hpp"
#include "steps/attention_operands.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

namespace {

// Reads scale and zero point of some bytes.
Scale scale_at(const Operands& operands, const float* numbers) {
  constexpr float kLeast = std::numeric_limits<std::int8_t>::min();
  constexpr float kMost = std::numeric_limits<std::int8_t>::max();
  require(operands, std::isfinite(numbers[0]) && numbers[0] > 0.0f, "a scale is not above 0");
  require(operands,
          numbers[1] >= kLeast && numbers[1] <= kMost && std::nearbyint(numbers[1]) == numbers[1],
          "a zero point is no signed byte");
  return {numbers[0], static_cast<std::int32_t>(numbers[1])};
}

// Returns a constant that is read when the step is made.
const TensorView& constant(const Operands& operands, std::size_t position, program::Type type,
                           std::size_t count) {
  const auto* view = optional_input(operands, position);
  require(operands,
          view != nullptr && view->is_constant && view->coded_size == 0 && view->type == type &&
              view->num_elements() == count,
          "how it rounds scores is not stated by a constant of its size");
  return *view;
}

QuantisedAttention rounded(const Operands& operands) {
  constexpr std::size_t kBytes = 256;
  const auto& attributes = *operands.step.kernel_as_Attention();
  const auto* numbers = constant(operands, kRoundings, program::Type::float32, 4).as<float>();
  const Scale scores = scale_at(operands, numbers);
  const Scale weights = scale_at(operands, numbers + 2);
  const Scale queries = Scale::of(*operands.inputs[kQueries]);
  const Scale keys = Scale::of(*operands.inputs[kKeys]);
  const Scale values = Scale::of(*operands.inputs[kValues]);
  const Scale results = Scale::of(*operands.outputs[0]);
  QuantisedAttention found{queries.zero_point,
                           keys.zero_point,
                           values.zero_point,
                           queries.scale * keys.scale / scores.scale,
                           scores.zero_point,
                           nullptr,
                           {},
                           weights,
                           weights.scale * values.scale / results.scale,
                           results.zero_point};
  require(operands, std::isfinite(found.score_factor) && std::isfinite(found.result_factor),
          "a ratio of its scales is not finite");
  float read = scores.scale;
  if (optional_input(operands, kTable) != nullptr) {
    const auto& table = constant(operands, kTable, program::Type::int8, kBytes);
    require(operands, table.is_quantised(), "its table has no scale");
    found.table = table.as<std::int8_t>();
    read = table.scales[0];
  }
  found.powers = QuantisedPowers(read, attributes.scale());
  return found;
}

// Scores that exist at a time.
std::size_t num_scores(const Operands& operands, const AttentionShapes& shapes) {
  const std::size_t rows = shapes.heads * kQuantisedQueries;
  require(operands, shapes.keys.count <= std::numeric_limits<std::size_t>::max() / rows,
          "it has too many keys");
  return rows * shapes.keys.count;
}

class QuantisedAttentionStep final : public Step {
 public:
  QuantisedAttentionStep(const Operands& operands, const AttentionShapes& shapes)
      : queries_(as_rows<const std::int8_t>(*operands.inputs[kQueries])),
        results_(as_rows<std::int8_t>(*operands.outputs[0])),
        shapes_(shapes),
        rounded_(rounded(operands)),
        scores_(require_scratch_of<std::int8_t>(operands, num_scores(operands, shapes))),
        has_rows_(is_one_image(*operands.inputs[kQueries]) && is_one_image(*operands.outputs[0])),
        threads_(operands.threads) {}

  void run() override {
    for (std::size_t batch = 0; batch < shapes_.batches; ++batch) {
      make(batch, {0, queries_.rows});
    }
  }

  bool makes_rows() const override { return has_rows_; }
  bool finds_rows(std::size_t input) const override { return has_rows_ && input == kQueries; }
  void run_rows(RowRange rows) override { make(0, rows); }

 private:
  std::size_t num_keys() const { return shapes_.keys.count; }

  // Each head has working memory of its own.
  void make(std::size_t batch, RowRange rows) const {
    const std::size_t cost = rows.count * num_keys() * shapes_.depth / 2;
    parallel(threads_, shapes_.heads, cost, [&](std::size_t first, std::size_t count) {
      for (std::size_t head = first; head < first + count; ++head) {
        for (std::size_t done = 0; done < rows.count; done += kQuantisedQueries) {
          make(batch, head, {rows.first + done, std::min(kQuantisedQueries, rows.count - done)});
        }
      }
    });
  }

  void make(std::size_t batch, std::size_t head, RowRange rows) const {
    const std::size_t of_keys = head / (shapes_.heads / shapes_.key_heads);
    const std::size_t width = shapes_.values.width;
    const bool is_apart = queries_.row_offsets != nullptr || results_.row_offsets != nullptr;
    const std::size_t at = (is_apart ? 0 : batch * queries_.rows) + rows.first;
    QuantisedQuery queries[kQuantisedQueries];
    for (std::size_t i = 0; i < rows.count; ++i) {
      queries[i] = {queries_.row(at + i) + head * shapes_.depth,
                    results_.row(at + i) + head * width};
    }
    const auto bytes = [&](const Heads& heads) {
      return reinterpret_cast<const std::int8_t*>(heads.head(batch, of_keys));
    };
    attend(rounded_,
           {bytes(shapes_.keys), bytes(shapes_.values), shapes_.keys.stride, shapes_.values.stride,
            num_keys(), shapes_.depth, width},
           queries, rows.count, scores_ + head * kQuantisedQueries * num_keys());
  }

  Image<const std::int8_t> queries_;
  Image<std::int8_t> results_;
  AttentionShapes shapes_;
  QuantisedAttention rounded_;
  std::int8_t* scores_;
  bool has_rows_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_quantised_attention(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Attention();
  require_arity(operands, 3, kMostInputs);
  if (!is_of_bytes(operands)) { return nullptr; }
  for (const auto* view : {operands.inputs[kQueries], operands.inputs[kKeys],
                           operands.inputs[kValues], operands.outputs[0]}) {
    require(operands, view->type == program::Type::int8 && view->scales.size() == 1,
            "its operands must all be int8 with one scale");
  }
  require(operands,
          optional_input(operands, kAddends) == nullptr &&
              optional_input(operands, kLengths) == nullptr && !attributes.causal() &&
              attributes.window() == 0 && attributes.softcap() == 0.0f,
          "scores of bytes are neither added to, nor hidden, nor bounded");
  require(operands, std::isfinite(attributes.scale()), "the scale of its scores is not finite");
  const AttentionShapes shapes(operands);
  require(operands, shapes.keys.count > 0, "it has no keys");
  require_apart(operands, operands.inputs[kKeys]);
  require_apart(operands, operands.inputs[kValues]);
  return std::make_unique<QuantisedAttentionStep>(operands, shapes);
}

const Registration registered{program::Operator::Attention, make_quantised_attention,
                              KernelSet::integers};

}  // namespace

}  // namespace arenite
