// A function of each element, computed with the widest vectors that the processor has.
#pragma once

#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

// `target` may be `source`. The function is a copy: through a pointer to it, every element
// written could change it.
template <typename Source, typename Target, typename Function>
using Map = void (*)(const Source* source, Target* target, std::size_t count, Function function);

template <typename Source, typename Target, typename Function>
void map_for_any(const Source* source, Target* target, std::size_t count, Function function) {
  for (std::size_t i = 0; i < count; ++i) {
    target[i] = function(source[i]);
  }
}

template <typename Source, typename Target, typename Function>
ARENITE_FOR_AVX2 void map_for_avx2(const Source* source, Target* target, std::size_t count,
                                   Function function) {
  map_for_any(source, target, count, function);
}

template <typename Source, typename Target, typename Function>
ARENITE_FOR_AVX512 void map_for_avx512(const Source* source, Target* target, std::size_t count,
                                       Function function) {
  map_for_any(source, target, count, function);
}

template <typename Source, typename Target, typename Function>
Map<Source, Target, Function> find_map() {
  switch (vectors()) {
    case Vectors::avx512:
      return map_for_avx512<Source, Target, Function>;
    case Vectors::avx2:
      return map_for_avx2<Source, Target, Function>;
    default:
      return map_for_any<Source, Target, Function>;
  }
}

}  // namespace arenite
