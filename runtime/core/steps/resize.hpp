#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Rows and columns of an image, taken or blended by tables.
std::unique_ptr<Step> make_resize(const Operands& operands);

}  // namespace arenite
