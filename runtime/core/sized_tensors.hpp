// Tensors whose lengths or places depend on sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "live_records.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// A tensor with lengths that depend on sizes.
struct SizedLengths {
  struct Axis {
    std::uint32_t axis;
    std::uint32_t expression;
  };

  std::size_t tensor;
  std::uint64_t most;  // bytes, at the highest sizes
  std::vector<Axis> axes;

  // Sets the shape and size, and tells whether the tensor had others. Throws ProgramError if it
  // does not fit its bytes at the highest sizes.
  bool set(TensorView& view, const program::Tensor& stated,
           const std::vector<std::int64_t>& values) const;
};

// Those of the tensors that have such lengths, each once. Products of lengths were checked.
std::vector<SizedLengths> sized_lengths(const program::Program& program);

// A tensor whose size or offset varies, and where it may lie. Steps may touch its rows at turns at
// which not all of its bytes are live: then rows must lie at no lower bytes than at the highest
// sizes, and its last byte where it is there, or at no higher bytes, and its first there.
struct SizedPlace {
  enum class Hold { room, first, last };

  std::size_t tensor;
  Room room;
  Hold hold;
  std::uint64_t offset;          // at the highest sizes
  std::uint64_t size;            // there, too
  std::int64_t expression = -1;  // of its offset, if that varies
  std::byte* base = nullptr;     // of its memory

  // Sets the address. Throws ProgramError unless the tensor, whose size is settled, has room.
  void place(TensorView& view, const program::Tensor& stated,
             const std::vector<std::int64_t>& values) const;
};

// Throws ProgramError for a tensor that has no room where it varies.
std::vector<SizedPlace> sized_places(const program::Program& program,
                                     const std::vector<TensorView>& tensors,
                                     const std::vector<Room>& rooms);

}  // namespace arenite
