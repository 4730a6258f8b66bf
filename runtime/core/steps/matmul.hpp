#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Products of matrices that are both made by the run.
std::unique_ptr<Step> make_matmul(const Operands& operands);

}  // namespace arenite
