// The native core of `arenite.strategies`: Python sees arrays in, arrays out.
#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_core, module) {
  arenite::bind_placement(module);
  arenite::bind_bands(module);
  arenite::bind_order(module);
}
