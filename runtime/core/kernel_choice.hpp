// Selects among implementations of an operator.
#pragma once

#include <cstdlib>
#include <string_view>

namespace arenite {

// Whether XNNPACK computes floating-point convolutions. On x86-64 our own are as fast and need
// neither tables nor a second copy of the weights; on ARM they have not been timed yet.
//
// ARENITE_KERNELS=arenite or =xnnpack in the environment decides otherwise.
inline bool prefers_xnnpack() {
  static const bool prefers = [] {
    const char* given = std::getenv("ARENITE_KERNELS");
    const std::string_view wanted = given == nullptr ? "" : given;
    if (wanted == "arenite" || wanted == "xnnpack") {
      return wanted == "xnnpack";
    }
#if defined(__x86_64__)
    return false;
#else
    return true;
#endif
  }();
  return prefers;
}

}  // namespace arenite
