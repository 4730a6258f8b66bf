// Programs for a range of sizes: dimensions, expressions of them, and the numbers that these give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "live_records.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

inline bool has_dimensions(const program::Program& program) {
  return program.dimensions() != nullptr && program.dimensions()->size() != 0;
}

// Throws ProgramError unless dimensions and expressions are sound, each axis, offset and number of
// a step that is an expression exists and has its value at the highest sizes, and tensors whose
// size or offset varies have room.
void check_sizes(const program::Program& program, const std::vector<TensorView>& tensors,
                 const std::vector<Room>& rooms);

// Whether a step counts the dimension in each run, instead of the caller setting it.
inline bool is_counted(const program::Dimension& dimension) { return dimension.counted_by() >= 0; }

// Whether the dimension counts the rows of states, which each run adds to.
inline bool grows(const program::Dimension& dimension) { return dimension.grows_by() >= 0; }

// The lowest and the highest value of each dimension.
std::vector<std::int64_t> lowest_sizes(const program::Program& program);
std::vector<std::int64_t> highest_sizes(const program::Program& program);

// Throws SizeRangeError unless each dimension has a value inside its range, StatesFullError where
// states hold more than that.
void require_inside(const program::Program& program, const std::vector<std::int64_t>& sizes);

// Computes all expressions, of which `values` has as many. Allocates nothing. Throws ProgramError
// for a number beyond 64 bits or a division by 0.
void evaluate(const program::Program& program, const std::vector<std::int64_t>& sizes,
              std::vector<std::int64_t>& values);

// An axis of an input that tells the value of a dimension: of its expression no other is a part.
struct SizeSource {
  std::size_t dimension;
  std::size_t input;
  std::size_t axis;  // the caller's
  std::size_t expression;
};

// Returns at most one for each dimension that the caller sets, if possible an axis that is the
// dimension itself. Dimensions that grow are known, and may be parts of the expression.
std::vector<SizeSource> size_sources(const program::Program& program);

// Sets the dimension to the value for which the axis has a length, if there is one; otherwise
// throws SizeRangeError. The axis does not shrink where the dimension grows, or need not be found.
// `values` is room for the expressions.
void find_size(const program::Program& program, const SizeSource& source, std::int64_t length,
               std::vector<std::int64_t>& sizes, std::vector<std::int64_t>& values);

}  // namespace arenite
