#include "port_copies.hpp"

#include <utility>

#include "validation.hpp"

namespace arenite {

namespace {

const TensorView& tensor_of(const program::Port& port, const std::vector<TensorView>& tensors) {
  return tensors[static_cast<std::size_t>(port.tensor())];
}

// Of the caller's array, the source, and of the tensor; as stored, outermost first.
StepVector<StridedCopy::Axis> axes_of(const program::Port& port, const TensorView& view) {
  const auto element = static_cast<std::int64_t>(element_size(view.type));
  StepVector<StridedCopy::Axis> axes(view.rank());
  std::int64_t stride = element;
  for (std::size_t i = view.rank(); i-- > 0;) {
    axes[i].length = view.shape[i];
    axes[i].target = stride;
    stride *= static_cast<std::int64_t>(view.shape[i]);
  }
  // The caller's axes, innermost last, each where it is stored.
  stride = element;
  for (std::size_t axis = view.rank(); axis-- > 0;) {
    for (std::size_t i = 0; i < view.rank(); ++i) {
      if (port.permutation()->Get(static_cast<flatbuffers::uoffset_t>(i)) == axis) {
        axes[i].source = stride;
        stride *= static_cast<std::int64_t>(view.shape[i]);
      }
    }
  }
  return axes;
}

}  // namespace

void make_feeds(const program::Program& program, const std::vector<TensorView>& tensors,
                std::vector<StridedCopy>& feeds) {
  feeds.clear();
  for (const auto* port : *program.inputs()) {
    const auto& view = tensor_of(*port, tensors);
    feeds.emplace_back(axes_of(*port, view), 0, 0, element_size(view.type));
  }
}

void make_fetches(const program::Program& program, const std::vector<TensorView>& tensors,
                  std::vector<StridedCopy>& fetches) {
  fetches.clear();
  for (const auto* port : *program.outputs()) {
    const auto& view = tensor_of(*port, tensors);
    auto back = axes_of(*port, view);
    for (auto& axis : back) { std::swap(axis.source, axis.target); }
    fetches.emplace_back(std::move(back), 0, 0, element_size(view.type));
  }
}

}  // namespace arenite
