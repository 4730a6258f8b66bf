// Checks that operators share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "errors.hpp"
#include "step.hpp"

namespace arenite {

[[noreturn]] inline void refuse(const Operands& operands, const std::string& reason) {
  const auto& step = operands.step;
  throw ProgramError("step '" + step.name()->str() + "' (" +
                     program::EnumNameOperator(step.kernel_type()) + "): " + reason);
}

inline void require(const Operands& operands, bool fits, const char* reason) {
  if (!fits) { refuse(operands, reason); }
}

// Requires an index in [first, last).
inline void require_index(const program::Step& step, std::int64_t index, std::int64_t first,
                          std::int64_t last) {
  if (index < first || index >= last) {
    throw IndexError("step '" + step.name()->str() + "': index " + std::to_string(index) +
                     " is not in " + std::to_string(first) + " to " + std::to_string(last - 1));
  }
}

// Requires `least` to `most` inputs, of which the first `least` are present, and 1 to
// `most_outputs` outputs.
inline void require_arity(const Operands& operands, std::size_t least, std::size_t most,
                          std::size_t most_outputs = 1) {
  const std::size_t given = operands.inputs.size();
  require(operands, given >= least && given <= most, "it has too few or too many inputs");
  for (std::size_t i = 0; i < least; ++i) {
    require(operands, operands.inputs[i] != nullptr, "a required input is missing");
  }
  require(operands, !operands.outputs.empty() && operands.outputs.size() <= most_outputs,
          "it has no output or too many");
}

inline const TensorView* optional_input(const Operands& operands, std::size_t position) {
  return position < operands.inputs.size() ? operands.inputs[position] : nullptr;
}

// Requires that all operands are floats.
inline void require_floats(const Operands& operands) {
  for (const auto* list : {&operands.inputs, &operands.outputs}) {
    for (const auto* view : *list) {
      require(operands, view == nullptr || view->type == program::Type::float32,
              "only float32 is supported");
    }
  }
}

// Returns the address of the step's working memory, of at least so many bytes, on a cache line of
// its own.
inline std::byte* require_scratch(const Operands& operands, std::size_t bytes) {
  constexpr std::uintptr_t kAlignment = 64;
  const std::size_t given = operands.scratch == nullptr ? 0 : operands.scratch->size;
  if (given < bytes) {
    refuse(operands, "its working memory has " + std::to_string(given) + " B; it needs " +
                         std::to_string(bytes));
  }
  require(operands,
          bytes == 0 || reinterpret_cast<std::uintptr_t>(operands.scratch->data) % kAlignment == 0,
          "its working memory is not aligned to 64 B");
  return operands.scratch == nullptr ? nullptr : operands.scratch->data;
}

// The same for so many elements of a type.
template <typename T>
T* require_scratch_of(const Operands& operands, std::size_t count) {
  return reinterpret_cast<T*>(require_scratch(operands, count * sizeof(T)));
}

// Reads a list of N small numbers; those that are left out are `fallback`.
template <std::size_t N>
std::array<std::uint32_t, N> numbers(const Operands& operands,
                                     const flatbuffers::Vector<std::uint32_t>* given,
                                     std::uint32_t fallback) {
  std::array<std::uint32_t, N> result;
  result.fill(fallback);
  if (given == nullptr) { return result; }
  require(operands, given->size() == N, "a list of numbers has the wrong length");
  for (std::size_t i = 0; i < N; ++i) {
    result[i] = given->Get(static_cast<flatbuffers::uoffset_t>(i));
    require(operands, result[i] < (1u << 24), "a number is too large");
  }
  return result;
}

}  // namespace arenite
