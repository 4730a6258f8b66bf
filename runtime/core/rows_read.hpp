// Which rows of its operands a step touches for some of its rows.
#pragma once

#include <optional>
#include <vector>

#include "kernels/image.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Whether rows of a step are those of its first input, which it takes into sums: sums and means
// over rows with channels kept, and averages whose windows make one row.
bool takes_rows(const program::Step& step, const std::vector<TensorView>& tensors);

// The rows along axis 1 of an input that a step reads to make rows of its results, or to take rows
// into sums; nothing where it may read all of it.
//
// The step names tensors that exist; nothing else is known of it.
std::optional<RowRange> rows_read(const program::Step& step, const std::vector<TensorView>& tensors,
                                  std::size_t input, RowRange rows);

}  // namespace arenite
