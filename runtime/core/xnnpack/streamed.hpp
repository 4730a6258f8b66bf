// Weights that are brought into the arena for each run: decoded, or copied from the file.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "../coding/coded_weights.hpp"
#include "node.hpp"

namespace arenite::xnnpack {

// Stands in for the filter and the bias of a step while XNNPACK packs them.
class StreamedWeights {
 public:
  // Takes the filter, the bias and the window of a step that streams.
  explicit StreamedWeights(const Operands& operands);

  const TensorView& filter() const { return filter_; }
  const TensorView* bias() const { return bias_.has_value() ? &*bias_ : nullptr; }

  // Returns the step of what was defined with these.
  std::unique_ptr<Step> make(Node& node, xnn_status status);

 private:
  const Operands& operands_;
  std::size_t rows_;
  std::size_t columns_;
  std::vector<float> numbers_;
  TensorView filter_;
  std::optional<TensorView> bias_;
};

}  // namespace arenite::xnnpack
