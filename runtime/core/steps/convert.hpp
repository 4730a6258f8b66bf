#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Elements of another type; quantises and dequantises.
std::unique_ptr<Step> make_convert(const Operands& operands);

}  // namespace arenite
