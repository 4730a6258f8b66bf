#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Mean 0 and deviation 1 over the last axes, then a scale and a shift.
std::unique_ptr<Step> make_layer_norm(const Operands& operands);

}  // namespace arenite
