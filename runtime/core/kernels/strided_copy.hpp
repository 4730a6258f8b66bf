// Copies between strided layouts, of elements of any size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "step_memory.hpp"

struct pthreadpool;

namespace arenite {

// A prepared copy: axes of length 1 removed, contiguous axes merged, the innermost one a run.
class StridedCopy {
 public:
  struct Axis {
    std::size_t length;
    std::int64_t source;  // bytes from one index to the next
    std::int64_t target;
  };

  // Offsets and strides in bytes. Bounds are the caller's to check.
  StridedCopy(StepVector<Axis> axes, std::int64_t source_offset, std::int64_t target_offset,
              std::size_t element);

  void run(const std::byte* source, std::byte* target, pthreadpool* threads) const;
  // The same for a target that the caller's caches need not hold.
  void run_past_caches(const std::byte* source, std::byte* target, pthreadpool* threads) const;
  std::size_t held_bytes() const { return outer_.capacity() * sizeof(Axis); }

 private:
  void copy_rows(const std::byte* source, std::byte* target, std::size_t first,
                 std::size_t count) const;
  void copy_row(const std::byte* source, std::byte* target) const;
  void transpose(const std::byte* source, std::byte* target) const;

  StepVector<Axis> outer_;  // outermost first
  Axis middle_{1, 0, 0};    // of a transpose: runs are contiguous in the source
  Axis inner_{1, 0, 0};
  std::size_t element_;  // bytes that are contiguous on both sides
  std::int64_t source_offset_;
  std::int64_t target_offset_;
  std::size_t num_rows_ = 1;
  bool transposes_ = false;
};

}  // namespace arenite
