// Fills dead memory during a run, so that wrong reads show in the outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "arena.hpp"
#include "program_generated.h"
#include "stages.hpp"
#include "tensor_view.hpp"

namespace arenite {

// If a step reads unwritten memory, runs with different bytes give different outputs. One run is
// not enough: kernels that clamp turn 0xff, a NaN of every floating-point type, into 0.
class Poison {
 public:
  // Takes a validated program, its memories, its tensors and the byte to fill with.
  Poison(const program::Program& program, const std::vector<Arena>& arenas,
         const std::vector<TensorView>& tensors, std::uint8_t byte);

  // Fills the records that begin at a turn, none with inputs of the stage that begins there. States
  // hold what they should before the first.
  void before(std::size_t turn) const;
  // Fills the records that end with a turn, none with outputs of the stage that ends there. States
  // are kept after the last.
  void after(std::size_t turn) const;

 private:
  // The bytes of a record.
  struct Stretch {
    std::size_t memory;
    std::uint64_t offset;
    std::uint64_t size;
  };

  using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

  // Leaves out those that hold some ports.
  static void spare(std::vector<Stretch>& stretches, const program::Program& program,
                    const Ports& ports, Span some, const std::vector<TensorView>& tensors);
  void fill(const std::vector<Stretch>& stretches) const;

  const std::vector<Arena>& arenas_;
  std::uint8_t byte_;
  std::vector<std::vector<Stretch>> starting_;  // by the first turn of the record
  std::vector<std::vector<Stretch>> ending_;    // by the last turn of its life
};

}  // namespace arenite
