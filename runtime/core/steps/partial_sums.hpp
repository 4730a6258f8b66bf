// Averages of all rows of an image by way of sums over groups of rows.
#pragma once

#include <memory>

#include "step.hpp"

namespace arenite {

// Returns the step of an average pool between bytes and integers of 16 bits.
//
// From bytes to 16 bits each result is the sum of the bytes of a channel in a group of rows. From
// 16 bits to bytes it is the average of as many bytes as the pool has in its window, of their sums.
// Both steps give what the pool over the window gives, to the bit.
std::unique_ptr<Step> make_pool_by_sums(const Operands& operands);

}  // namespace arenite
