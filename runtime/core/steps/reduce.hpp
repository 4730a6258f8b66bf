#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// One element of all along some axes.
std::unique_ptr<Step> make_reduce(const Operands& operands);

}  // namespace arenite
