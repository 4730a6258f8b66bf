// Copies that run row by row, and what they share with other copies.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/strided_copy.hpp"
#include "step.hpp"
#include "step_memory.hpp"

namespace arenite {

// Fills memory with an element.
void fill_with(const std::string& element, std::byte* data, std::size_t size);

bool is_empty(const program::Move& move);

// Whether a move whose sides have the same address leaves every element in place.
bool is_identity(const StepVector<StridedCopy::Axis>& axes);

// Returns the step, if every move is one between rows. The moves themselves are checked already.
std::unique_ptr<Step> make_row_copy(const Operands& operands, const program::Copy& attributes,
                                    std::string fill);

}  // namespace arenite
