#include "approximations.hpp"

namespace arenite {

const Bounds kBounds{0.0f,  1.0f,     -87.0f, 88.0f, SplitExponential::kLowest,
                     89.0f, 3.71875f, 10.0f,  -18.0f};

}  // namespace arenite
