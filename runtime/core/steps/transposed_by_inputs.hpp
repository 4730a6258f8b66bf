// Transposed convolutions whose filter lies by inputs, and may change from run to run.
#pragma once

#include <memory>

#include "kernels/convolution/convolve.hpp"
#include "step.hpp"

namespace arenite {

// Returns the step, whose operands fit but for working memory: that of a packed filter.
std::unique_ptr<Step> make_transposed_by_inputs(const Operands& operands,
                                                const Convolution& kernel);

}  // namespace arenite
