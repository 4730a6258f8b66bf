#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Slices of a tensor, by index.
std::unique_ptr<Step> make_gather(const Operands& operands);

}  // namespace arenite
