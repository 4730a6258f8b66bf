// Operands row by row: along axis 1 of one image, or of one list of rows.
#pragma once

#include <pthreadpool.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/broadcast.hpp"
#include "kernels/image.hpp"
#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "steps/images.hpp"

namespace arenite {

inline bool is_one_image(const TensorView& view) {
  return view.rank() >= 3 && view.shape[0] == 1 && view.size > 0;
}

// Whether some operand is stored row by row.
inline bool lie_apart(const Operands& operands) {
  const auto lies_apart = [](const TensorView* view) {
    return view != nullptr && view->rows != nullptr;
  };
  return std::any_of(operands.inputs.begin(), operands.inputs.end(), lies_apart) ||
         std::any_of(operands.outputs.begin(), operands.outputs.end(), lies_apart);
}

// Requires that an input that is read while the output is written does not lie where that begins.
// Rows that lie anywhere are checked with the turns.
inline void require_apart(const Operands& operands, const TensorView* input) {
  const auto& output = *operands.outputs[0];
  const bool is_same = input != nullptr && input->data == output.data && input->size > 0 &&
                       output.size > 0 && input->rows == nullptr && output.rows == nullptr;
  require(operands, !is_same, "its output must not overlap this input");
}

// The first input and the output of a step that makes each row from the same row.
template <typename Source, typename Target>
struct RowPair {
  bool has_rows = false;  // otherwise there are no images
  bool lies_apart = false;
  Image<const Source> source{};
  Image<Target> target{};

  explicit RowPair(const Operands& operands) {
    const auto& from = *operands.inputs[0];
    const auto& to = *operands.outputs[0];
    has_rows = is_one_image(from) && is_one_image(to) && from.shape[1] == to.shape[1];
    if (has_rows) {
      source = as_rows<const Source>(from);
      target = as_rows<Target>(to);
      lies_apart = from.rows != nullptr || to.rows != nullptr;
    }
  }

  // Calls work(from, to, count) on groups of rows that are contiguous on both sides. `cost` is that
  // of a row, in bytes touched or the like.
  template <typename Work>
  void each(pthreadpool_t threads, RowRange rows, std::size_t cost, const Work& work) const {
    parallel(threads, rows.count, cost, [&](std::size_t first, std::size_t count) {
      first += rows.first;
      if (!lies_apart) {
        work(source.row(first), target.row(first), count);
        return;
      }
      for (std::size_t row = first; row < first + count; ++row) {
        work(source.row(row), target.row(row), std::size_t{1});
      }
    });
  }
};

// N inputs that are broadcast to an output, row by row. An input with one row, or without rows,
// gives the same row to each row of the output.
template <std::size_t N>
class RowBroadcast {
 public:
  explicit RowBroadcast(const Operands& operands) {
    const auto& target = *operands.outputs[0];
    has_rows_ = is_one_image(target);
    std::array<Shape, N> shapes;
    for (std::size_t i = 0; i < N && has_rows_; ++i) {
      const auto& view = *operands.inputs[i];
      const std::size_t missing = target.rank() - view.rank();
      has_rows_ = missing == 0 || missing > 1 || view.shape[0] == 1;
      const std::size_t outer = missing < 2 ? 2 - missing : 0;
      shapes[i] = Shape::of(view, std::min(outer, view.rank()));
      // Rows that lie apart may be one alone at the present sizes.
      const bool is_row = missing == 0 && view.rows != nullptr && target.shape[1] == 1;
      if (is_row || (missing == 0 && view.shape[1] != 1)) {
        strides_[i] = view.num_elements() / view.shape[1];
        offsets_[i] = view.rows;
      } else {
        has_rows_ = has_rows_ && view.rows == nullptr;
      }
    }
    if (has_rows_) { inside_ = Broadcast<N>(operands, Shape::of(target, 2), shapes); }
  }

  bool has_rows() const { return has_rows_; }
  // Whether the rows of an input are those of the output.
  bool follows(std::size_t input) const { return strides_[input] != 0; }
  // Within a row.
  const Broadcast<N>& inside() const { return inside_; }

  // Returns where a row of an input begins.
  template <typename T>
  const T* row(const T* data, std::size_t input, std::size_t index) const {
    const Image<const T> image{data, 0, 0, 0, 0, strides_[input], offsets_[input]};
    return image.row(index);
  }

 private:
  bool has_rows_ = false;
  std::array<std::size_t, N> strides_{};  // elements
  std::array<const std::uint64_t*, N> offsets_{};
  Broadcast<N> inside_;
};

}  // namespace arenite
