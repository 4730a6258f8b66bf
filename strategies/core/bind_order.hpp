// Python's view of the order searches.
#pragma once

#include <nanobind/nanobind.h>

namespace arenite {

void bind_order(nanobind::module_& module);

}  // namespace arenite
