#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// A factor and a term for each channel: a batch norm that nothing could take in.
std::unique_ptr<Step> make_multiply_add(const Operands& operands);

}  // namespace arenite
