#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Long short-term memory over a sequence, in one direction or both.
std::unique_ptr<Step> make_lstm(const Operands& operands);

}  // namespace arenite
