// Which elements a reduction takes, as strides.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "tensor_view.hpp"

namespace arenite {

// A walk over some axes of a tensor in the order of its elements. Axes that continue one another
// count as one.
class AxisWalk {
 public:
  // Takes an axis further out than all before it.
  void add(std::size_t length, std::size_t stride) {
    if (length == 1) {
      return;
    }
    count_ *= length;
    if (num_axes_ > 0 && stride == axes_[num_axes_ - 1].stride * axes_[num_axes_ - 1].length) {
      axes_[num_axes_ - 1].length *= length;
    } else {
      axes_[num_axes_++] = {length, stride};
    }
  }

  std::size_t count() const { return count_; }

  // Offset of an element of the walk.
  std::size_t offset(std::size_t index) const {
    std::size_t found = 0;
    for (std::size_t axis = 0; axis + 1 < num_axes_; ++axis) {
      found += index % axes_[axis].length * axes_[axis].stride;
      index /= axes_[axis].length;
    }
    return num_axes_ == 0 ? 0 : found + index * axes_[num_axes_ - 1].stride;
  }

  // Calls use(offset) for each element.
  template <typename Use>
  void each(const Use& use) const {
    const Axis inner = num_axes_ == 0 ? Axis{1, 0} : axes_[0];
    std::array<std::size_t, kMaxAxes> indices;
    for (std::size_t axis = 1; axis < num_axes_; ++axis) {
      indices[axis] = 0;
    }
    std::size_t start = 0;
    while (true) {
      for (std::size_t i = 0; i < inner.length; ++i) {
        use(start + i * inner.stride);
      }
      std::size_t axis = 1;
      for (; axis < num_axes_; ++axis) {
        start += axes_[axis].stride;
        if (++indices[axis] < axes_[axis].length) {
          break;
        }
        start -= axes_[axis].length * axes_[axis].stride;
        indices[axis] = 0;
      }
      if (axis >= num_axes_) {
        return;
      }
    }
  }

 private:
  static constexpr std::size_t kMaxAxes = 16;
  struct Axis {
    std::size_t length;
    std::size_t stride;
  };

  std::array<Axis, kMaxAxes> axes_;  // innermost first
  std::size_t num_axes_ = 0;
  std::size_t count_ = 1;
};

// The last axes are one run of elements, all kept or all reduced; the walks are over the others.
struct ReduceLayout {
  AxisWalk kept;
  AxisWalk reduced;
  std::size_t run = 1;
  bool run_is_kept = true;
};

inline ReduceLayout reduce_layout(const TensorView& source, const std::vector<bool>& is_reduced) {
  ReduceLayout layout;
  std::size_t rank = source.rank();
  while (rank > 0 && source.shape[rank - 1] == 1) {
    --rank;
  }
  layout.run_is_kept = rank == 0 || !is_reduced[rank - 1];
  while (rank > 0 && is_reduced[rank - 1] != layout.run_is_kept) {
    layout.run *= source.shape[rank - 1];
    --rank;
  }
  std::size_t stride = layout.run;
  while (rank-- > 0) {
    (is_reduced[rank] ? layout.reduced : layout.kept).add(source.shape[rank], stride);
    stride *= source.shape[rank];
  }
  return layout;
}

}  // namespace arenite
