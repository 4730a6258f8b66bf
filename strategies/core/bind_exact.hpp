// Python's view of the exact search.
#pragma once

#include <nanobind/nanobind.h>

namespace arenite {

void bind_exact(nanobind::module_& module);

}  // namespace arenite
