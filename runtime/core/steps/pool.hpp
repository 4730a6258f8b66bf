#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Pools over windows in the forms that XNNPACK lacks.
std::unique_ptr<Step> make_pool(const Operands& operands);

}  // namespace arenite
