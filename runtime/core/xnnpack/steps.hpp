// Makers of steps that XNNPACK runs; null where it has no kernel for the operands.
#pragma once

#include <memory>

#include "../step.hpp"

namespace arenite::xnnpack {

std::unique_ptr<Step> make_conv_2d(const Operands& operands);
std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands);
std::unique_ptr<Step> make_transposed_conv_2d(const Operands& operands);
std::unique_ptr<Step> make_fully_connected(const Operands& operands);
std::unique_ptr<Step> make_pool_2d(const Operands& operands);
std::unique_ptr<Step> make_unary(const Operands& operands);
std::unique_ptr<Step> make_binary(const Operands& operands);
std::unique_ptr<Step> make_softmax(const Operands& operands);

}  // namespace arenite::xnnpack
