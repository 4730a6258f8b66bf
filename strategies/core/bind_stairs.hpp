// Records with outlines, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace arenite {

void bind_stairs(nanobind::module_& module);

}  // namespace arenite
