#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Functions of one number.
std::unique_ptr<Step> make_unary(const Operands& operands);

}  // namespace arenite
