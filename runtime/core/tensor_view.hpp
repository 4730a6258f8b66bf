// A tensor with its address, which is fixed for the life of a session, and its present shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "program_generated.h"
#include "step_memory.hpp"

namespace arenite {

class SpillFile;

// Most axes that a tensor may have.
constexpr std::size_t kMaxRank = 16;

struct TensorView : InStepMemory {
  program::Type type = program::Type::float32;
  StepVector<std::size_t> shape;
  std::byte* data = nullptr;  // constants are never written
  // Where each row along axis 1 lies, in bytes from `data`; null: they follow one another. Then
  // the first axis has the length 1.
  const std::uint64_t* rows = nullptr;
  std::size_t size = 0;        // bytes
  std::size_t coded_size = 0;  // bytes at `data`, of a constant that is coded; 0: it is not
  bool is_constant = false;
  bool has_one_row = false;   // along axis 1, at the highest sizes
  bool is_spilled = false;    // in a memory that only moves touch
  SpillFile* file = nullptr;  // that memory, if it is a file: then there is no `data`
  std::uint64_t offset = 0;   // in the file
  StepVector<float> scales;   // of a quantised tensor: one, or one for each index of `axis`
  std::int32_t zero_point = 0;
  std::uint32_t axis = 0;

  std::size_t rank() const { return shape.size(); }
  std::size_t num_elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  }
  bool is_quantised() const { return !scales.empty(); }

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

}  // namespace arenite
