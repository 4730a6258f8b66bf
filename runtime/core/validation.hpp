// Validates a program before any part of it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "live_records.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

namespace arenite {

// The largest size of a memory: 64 TiB, or 1 GiB with 32-bit addresses.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << (sizeof(std::size_t) > 4 ? 46 : 30);

// Returns the program's tensors as views without addresses, all inside their place.
//
// Throws ProgramError where a number leads outside, an operand is of no tensor, a step writes a
// constant or a memory that is not writable, or updates what is not a state, a turn is of
// a step or of rows that do not exist, something is never made, a tensor or a row of it is used
// outside the records of its memory that are live, or two records share bytes at a turn.
// `rooms` is where each tensor may lie at other sizes, in a program with dimensions.
//
// Cost: O((tensors + records + operands and rows of all turns) log records).
std::vector<TensorView> validated_tensors(const program::Program& program,
                                          std::vector<Room>& rooms);

inline bool is_short_float(program::Type type) {
  return type == program::Type::float16 || type == program::Type::bfloat16;
}

// Bytes of an element.
inline std::size_t element_size(program::Type type) {
  switch (type) {
    case program::Type::int8:
    case program::Type::uint8:
    case program::Type::boolean: return 1;
    case program::Type::float16:
    case program::Type::bfloat16:
    case program::Type::int16: return 2;
    case program::Type::float32:
    case program::Type::int32: return 4;
    case program::Type::float64:
    case program::Type::int64: return 8;
  }
  return 1;
}

}  // namespace arenite
