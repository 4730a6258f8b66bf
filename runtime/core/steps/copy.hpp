#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Strided moves of elements: concatenation, slices, padding, transposes.
std::unique_ptr<Step> make_copy(const Operands& operands);

}  // namespace arenite
