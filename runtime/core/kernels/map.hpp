// Applies a function to each element with the widest vectors of the processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/processor.hpp"

namespace arenite {

// Elements of a block.
constexpr std::size_t kMapBlock = 16;

// Whether a function has code of its own for blocks.
template <typename Function, typename = void>
struct MapsBlocks : std::false_type {};
template <typename Function>
struct MapsBlocks<Function, std::void_t<decltype(&Function::map_blocks)>> : std::true_type {};

// Any number of elements. The rest that fills no block is padded to one and takes the same
// instructions: a result does not depend on its position.
template <typename Source, typename Target, typename Function>
class Map {
 public:
  explicit Map(Function function) : function_(function) {}

  void operator()(const Source* source, Target* target, std::size_t count) const {
    const std::size_t blocks = count / kMapBlock;
    const std::size_t rest = count % kMapBlock;
    if (blocks > 0) { map_blocks(source, target, blocks); }
    if (rest > 0) {
      Source in[kMapBlock];
      Target out[kMapBlock];
      std::copy_n(source + blocks * kMapBlock, rest, in);
      std::fill(in + rest, in + kMapBlock, in[0]);
      map_blocks(in, out, 1);
      std::copy_n(out, rest, target + blocks * kMapBlock);
    }
  }

 private:
  // Whole blocks. `target` may be `source`.
  void map_blocks(const Source* source, Target* target, std::size_t blocks) const {
    if constexpr (MapsBlocks<Function>::value) {
      return Function::map_blocks(source, target, blocks);
    }
    with_widest_vectors([=, function = function_] {
      std::size_t done = 0;
#ifdef ARENITE_ARM64
      // Two vectors at a time: small processors do nothing else while one waits for its last
      // result.
      const std::size_t half = blocks / 2 * kMapBlock;
#pragma GCC ivdep
      for (std::size_t i = 0; i < half; ++i) {
        const Source first = source[i];
        const Source second = source[half + i];
        target[i] = function(first);
        target[half + i] = function(second);
      }
      done = 2 * half;
#endif
#pragma GCC ivdep
      for (std::size_t i = done; i < blocks * kMapBlock; ++i) { target[i] = function(source[i]); }
    });
  }

  Function function_;
};

}  // namespace arenite
