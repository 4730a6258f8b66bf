// Weights that an earlier step loads into a window, in the order of XNNPACK's kernels.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "../weights/weight_loader.hpp"
#include "node.hpp"

namespace arenite::xnnpack {

// Stands in for the filter and the bias of a step while XNNPACK packs them: with numbers, which
// tell where each came to lie.
class LoadedWeights {
 public:
  explicit LoadedWeights(const Operands& operands);

  // Whether there are few enough weights to be numbered.
  static bool can_number(const Operands& operands);

  const TensorView& filter() const { return filter_; }
  const TensorView* bias() const { return bias_.has_value() ? &*bias_ : nullptr; }

  // Returns the step of what was defined with these, and lets the loader pack for it; or null
  // where the window is too small for that, or XNNPACK packs in a way that is not known.
  std::unique_ptr<Step> make(Node& node, xnn_status status);

 private:
  WeightLoader& loader_;
  std::size_t rows_;
  std::size_t columns_;
  std::vector<float> numbers_;
  TensorView filter_;
  std::optional<TensorView> bias_;
};

}  // namespace arenite::xnnpack
