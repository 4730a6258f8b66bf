#include "step_memory.hpp"

#include <cstdint>

namespace arenite {

thread_local StepMemory* StepMemory::current = nullptr;

namespace {

bool is_over_aligned(std::size_t alignment) { return alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__; }

}  // namespace

void* StepMemory::take(std::size_t size, std::size_t alignment) {
  if (current != nullptr) {
    const std::size_t step = is_over_aligned(alignment) ? alignment : alignof(std::max_align_t);
    const auto at = reinterpret_cast<std::uintptr_t>(current->top_);
    const std::size_t gap = -at & (step - 1);  // alignments are powers of two
    current->taken_ += size + step;
    const auto room = static_cast<std::size_t>(current->end_ - current->top_);
    if (room >= gap && room - gap >= size && size != 0) {
      std::byte* const found = current->top_ + gap;
      current->top_ = found + size;
      return found;
    }
  }
  return is_over_aligned(alignment) ? ::operator new(size, std::align_val_t{alignment})
                                    : ::operator new(size);
}

void StepMemory::give_back(void* data, std::size_t alignment) noexcept {
  auto* const bytes = static_cast<std::byte*>(data);
  if (current != nullptr && bytes >= current->begin_ && bytes < current->end_) {
    return;  // until the next restart
  }
  is_over_aligned(alignment) ? ::operator delete(data, std::align_val_t{alignment})
                             : ::operator delete(data);
}

}  // namespace arenite
