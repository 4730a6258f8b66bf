#include "approximations.hpp"

namespace arenite {

// The powers leave no number below 1.2e-38 in a sigmoid: processors take a hundred times as long
// for these.
const Bounds kBounds{0.0f,  1.0f,     -85.0f, 87.0f,  SplitExponential::kLowest,
                     89.0f, 3.71875f, 10.0f,  -18.0f, 40.0f};

}  // namespace arenite
