// One XNNPACK operator as a runtime of its own, its tensors at fixed addresses.
#pragma once

#include <xnnpack.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../step.hpp"

namespace arenite::xnnpack {

// Allocations of XNNPACK since the process began; -1 if it was initialised by others.
std::int64_t allocations();

// Defines one operator: tensors first, then the operator, then `make`.
class Node {
 public:
  explicit Node(const Operands& operands);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  xnn_subgraph_t graph() const { return graph_; }

  // Each defines a tensor and returns its id. A shape given stands for the view's own.
  std::uint32_t input(const TensorView& view) { return input(view, view.shape); }
  std::uint32_t input(const TensorView& view, const std::vector<std::size_t>& shape);
  std::uint32_t output(const TensorView& view) { return output(view, view.shape); }
  std::uint32_t output(const TensorView& view, const std::vector<std::size_t>& shape);
  // Constants: numbers, or integers with the scales of the view. A bias takes the scales
  // of the product of input and filter.
  std::uint32_t constant(const TensorView& view) { return constant(view, view.shape); }
  std::uint32_t constant(const TensorView& view, const std::vector<std::size_t>& shape);
  std::uint32_t bias(const TensorView* view, const TensorView& source, const TensorView& filter);

  // Returns the step of what was defined, or null if XNNPACK has no kernel for it.
  // `status` is that of the definition of the operator.
  std::unique_ptr<Step> make(xnn_status status, bool packs_constants);

 private:
  std::uint32_t external(const TensorView& view, const std::vector<std::size_t>& shape,
                         std::uint32_t flags);
  std::uint32_t define(const TensorView& view, const std::vector<std::size_t>& shape,
                       const void* data, std::uint32_t external_id, std::uint32_t flags);
  void require(xnn_status status);

  const Operands& operands_;
  xnn_subgraph_t graph_ = nullptr;
  std::vector<xnn_external_value> externals_;
  std::vector<float> bias_scales_;  // XNNPACK keeps the pointer until the step is made
  bool is_refused_ = false;
};

}  // namespace arenite::xnnpack
