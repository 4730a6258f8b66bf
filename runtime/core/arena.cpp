#include "arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "errors.hpp"

namespace arenite {

Arena::Arena(std::size_t size, std::size_t alignment, bool guard, Buffer buffer)
    : data_(buffer.data), size_(size) {
  alignment = std::max(alignment, kMinAlignment);
  if (buffer.data == nullptr) {
    map(alignment, guard);
    return;
  }
  if (buffer.size < kSlack || buffer.size - kSlack < size) {
    throw SystemError("the memory given has " + std::to_string(buffer.size) +
                      " B; the model needs " + std::to_string(size + kSlack));
  }
  if (reinterpret_cast<std::uintptr_t>(buffer.data) % alignment != 0) {
    throw SystemError("the memory given is not aligned to " + std::to_string(alignment) + " B");
  }
}

Arena::Arena(Arena&& other) noexcept
    : data_(other.data_),
      size_(other.size_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(other.mapping_size_) {}

void Arena::map(std::size_t alignment, bool guard) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t guarded = guard ? page : 0;
  if (size_ > std::numeric_limits<std::size_t>::max() / 2) {
    throw SystemError("an arena of " + std::to_string(size_) + " B is beyond this machine");
  }
  const std::size_t inner = (size_ + kSlack + page - 1) / page * page;
  mapping_size_ = inner + 2 * guarded;
  mapping_ =
      mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    throw SystemError("out of memory for an arena of " + std::to_string(size_) +
                      " B: " + std::strerror(errno));
  }
  auto* begin = static_cast<std::byte*>(mapping_);
  data_ = begin + guarded;
  if (guard) {
    mprotect(begin, guarded, PROT_NONE);
    mprotect(begin + guarded + inner, guarded, PROT_NONE);
    // The end lies as close to the guard as alignment allows.
    data_ += (inner - size_ - kSlack) / alignment * alignment;
  }
}

Arena::~Arena() {
  if (mapping_ != nullptr) { munmap(mapping_, mapping_size_); }
}

}  // namespace arenite
