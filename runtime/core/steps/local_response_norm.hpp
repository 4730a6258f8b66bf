#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Division by the energy of neighbouring channels.
std::unique_ptr<Step> make_local_response_norm(const Operands& operands);

}  // namespace arenite
