#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// A filter over features and then over their past, of rank one or a few.
std::unique_ptr<Step> make_svdf(const Operands& operands);

}  // namespace arenite
