#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Running sums along an axis.
std::unique_ptr<Step> make_cumulative_sum(const Operands& operands);

}  // namespace arenite
