#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Mean 0 and deviation 1 over each channel of each image, then a scale and a shift.
std::unique_ptr<Step> make_instance_norm(const Operands& operands);

}  // namespace arenite
