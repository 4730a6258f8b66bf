#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Elements of one tensor or another, by a condition.
std::unique_ptr<Step> make_select(const Operands& operands);

}  // namespace arenite
