#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Functions of two numbers, shapes broadcast.
std::unique_ptr<Step> make_binary(const Operands& operands);

}  // namespace arenite
