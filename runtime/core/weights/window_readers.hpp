// Which steps read the windows that weights are loaded into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// Of one step of a program.
struct WindowUse {
  static constexpr std::size_t kNone = SIZE_MAX;

  // The step that loaded what lies where this one's filter does; kNone if none did, or another
  // step has written there since.
  std::size_t loader = kNone;
  // Of a loader: nobody reads its window but one step, as its filter, with the loader's bias.
  bool may_pack = false;
};

// Returns it by step, of a program that was validated and whose tensors have addresses.
//
// Cost: O(operands log steps).
std::vector<WindowUse> window_uses(const program::Program& program,
                                   const std::vector<TensorView>& tensors);

}  // namespace arenite
