// Whose kernels compute what several kernel sets can.
#pragma once

#include <cstdlib>
#include <string_view>

namespace arenite {

// Whether XNNPACK makes convolutions in floating point. On x86-64 our own are as fast, and need
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
