#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// The index of the largest or smallest element along an axis.
std::unique_ptr<Step> make_arg_reduce(const Operands& operands);

}  // namespace arenite
