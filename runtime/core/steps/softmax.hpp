#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Softmax over the last axis, or its logarithm.
std::unique_ptr<Step> make_softmax(const Operands& operands);

}  // namespace arenite
