// Applies a function to each element with the widest vectors of the processor.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/processor.hpp"

namespace arenite {

// Elements of a block.
constexpr std::size_t kMapBlock = 16;

// Whole blocks. `target` may be `source`. The function is a copy: through a pointer to it, every
// element written could change it.
template <typename Source, typename Target, typename Function>
using MapBlocks = void (*)(const Source* source, Target* target, std::size_t blocks,
                           Function function);

template <typename Source, typename Target, typename Function>
__attribute__((always_inline)) inline void map_blocks(const Source* source, Target* target,
                                                      std::size_t blocks, Function function) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < blocks * kMapBlock; ++i) { target[i] = function(source[i]); }
}

template <typename Source, typename Target, typename Function>
void map_for_any(const Source* source, Target* target, std::size_t blocks, Function function) {
  map_blocks(source, target, blocks, function);
}

template <typename Source, typename Target, typename Function>
ARENITE_FOR_AVX2 void map_for_avx2(const Source* source, Target* target, std::size_t blocks,
                                   Function function) {
  map_blocks(source, target, blocks, function);
}

template <typename Source, typename Target, typename Function>
ARENITE_FOR_AVX512 void map_for_avx512(const Source* source, Target* target, std::size_t blocks,
                                       Function function) {
  map_blocks(source, target, blocks, function);
}

// Any number of elements. The rest that fills no block is padded to one and takes the same
// instructions: a result does not depend on its position.
template <typename Source, typename Target, typename Function>
class Map {
 public:
  explicit Map(Function function) : function_(function), blocks_(find()) {}

  void operator()(const Source* source, Target* target, std::size_t count) const {
    const std::size_t blocks = count / kMapBlock;
    const std::size_t rest = count % kMapBlock;
    if (blocks > 0) { blocks_(source, target, blocks, function_); }
    if (rest > 0) {
      Source in[kMapBlock];
      Target out[kMapBlock];
      std::copy_n(source + blocks * kMapBlock, rest, in);
      std::fill(in + rest, in + kMapBlock, in[0]);
      blocks_(in, out, 1, function_);
      std::copy_n(out, rest, target + blocks * kMapBlock);
    }
  }

 private:
  static MapBlocks<Source, Target, Function> find() {
    switch (vectors()) {
      case Vectors::avx512: return map_for_avx512<Source, Target, Function>;
      case Vectors::avx2: return map_for_avx2<Source, Target, Function>;
      default: return map_for_any<Source, Target, Function>;
    }
  }

  Function function_;
  MapBlocks<Source, Target, Function> blocks_;
};

}  // namespace arenite
