#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Length 1 along the last axis.
std::unique_ptr<Step> make_l2_norm(const Operands& operands);

}  // namespace arenite
