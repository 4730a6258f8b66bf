// The elements of a reduction, as strides.
#pragma once

#include <array>
#include <cstddef>

#include "tensor_view.hpp"

namespace arenite {

// A walk over some axes of a tensor in the order of its elements. Axes that continue one another
// count as one.
class AxisWalk {
 public:
  // Takes an axis further out than all before it.
  void add(std::size_t length, std::size_t stride) {
    if (length == 1) { return; }
    count_ *= length;
    Axis& last = num_outer_ == 0 ? inner_ : outer_[num_outer_ - 1];
    if (inner_.length == 1) {
      inner_ = {length, stride};
    } else if (stride == last.stride * last.length) {
      last.length *= length;
    } else {
      outer_[num_outer_++] = {length, stride};
    }
  }

  std::size_t count() const { return count_; }

  // Calls use(offset) for each element.
  template <typename Use>
  void each(const Use& use) const {
    const Axis inner = inner_;
    Position position;
    do {
      std::size_t offset = position.offset;
      for (std::size_t i = 0; i < inner.length; ++i) {
        use(offset);
        offset += inner.stride;
      }
    } while (advance(position));
  }

  // Calls use(index, offset) for elements [first, first + count).
  template <typename Use>
  void each_of(std::size_t first, std::size_t count, const Use& use) const {
    Position position;
    std::size_t rest = first / inner_.length;
    for (std::size_t axis = 0; axis < num_outer_; ++axis) {
      position.indices[axis] = rest % outer_[axis].length;
      position.offset += position.indices[axis] * outer_[axis].stride;
      rest /= outer_[axis].length;
    }
    const std::size_t end = first + count;
    std::size_t i = first % inner_.length;
    for (std::size_t index = first; index < end; advance(position)) {
      for (; i < inner_.length && index < end; ++i, ++index) {
        use(index, position.offset + i * inner_.stride);
      }
      i = 0;
    }
  }

 private:
  static constexpr std::size_t kMaxAxes = 16;
  struct Axis {
    std::size_t length;
    std::size_t stride;
  };
  // Indices of the outer axes, and the offset that they make.
  struct Position {
    std::array<std::size_t, kMaxAxes> indices{};
    std::size_t offset = 0;
  };

  // Goes to the next index of the outer axes; false at the end.
  bool advance(Position& position) const {
    for (std::size_t axis = 0; axis < num_outer_; ++axis) {
      position.offset += outer_[axis].stride;
      if (++position.indices[axis] < outer_[axis].length) { return true; }
      position.offset -= outer_[axis].length * outer_[axis].stride;
      position.indices[axis] = 0;
    }
    return false;
  }

  Axis inner_{1, 0};
  std::array<Axis, kMaxAxes> outer_;  // innermost first
  std::size_t num_outer_ = 0;
  std::size_t count_ = 1;
};

// The last axes are one run of elements, all kept or all reduced; the walks are over the others.
struct ReduceLayout {
  AxisWalk kept;
  AxisWalk reduced;
  std::size_t run = 1;
  bool run_is_kept = true;
};

// By axis of a tensor.
using ReducedAxes = std::array<bool, 16>;

inline ReduceLayout reduce_layout(const TensorView& source, const ReducedAxes& is_reduced) {
  ReduceLayout layout;
  std::size_t rank = source.rank();
  while (rank > 0 && source.shape[rank - 1] == 1) { --rank; }
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
