// Programs in bands of rows, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace arenite {

void bind_bands(nanobind::module_& module);

}  // namespace arenite
