// The rows of its operands that a step touches for some rows of its results.
#pragma once

#include <optional>
#include <vector>

#include "kernels/image.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Whether a step adds rows of its first input to sums: sums and means over rows that keep the
// channels, and average pools with one row of output at the highest sizes.
bool takes_rows(const program::Step& step, const std::vector<TensorView>& tensors);

// The rows along axis 1 of an input that a step reads to make rows of its results, or to take rows
// into sums; nothing where it may read all of it.
//
// The step names tensors that exist; nothing else is known of it.
std::optional<RowRange> rows_read(const program::Step& step, const std::vector<TensorView>& tensors,
                                  std::size_t input, RowRange rows);

}  // namespace arenite
