#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Gated recurrent units over a sequence, in one direction or both.
std::unique_ptr<Step> make_gru(const Operands& operands);

}  // namespace arenite
