#include "arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "errors.hpp"

namespace arenite {

Arena::Arena(std::size_t size, bool guard, std::byte* memory) : data_(memory), size_(size) {
  if (memory == nullptr) {
    map(guard);
  } else if (reinterpret_cast<std::uintptr_t>(memory) % 64 != 0) {
    throw SystemError("the memory for the arena is not aligned to 64 B");
  }
}

void Arena::map(bool guard) {
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
    throw SystemError("no memory for an arena of " + std::to_string(size_) +
                      " B: " + std::strerror(errno));
  }
  auto* begin = static_cast<std::byte*>(mapping_);
  data_ = begin + guarded;
  if (guard) {
    mprotect(begin, guarded, PROT_NONE);
    mprotect(begin + guarded + inner, guarded, PROT_NONE);
    // The end lies as close to the guard as alignment allows.
    data_ += (inner - size_ - kSlack) / 64 * 64;
  }
}

Arena::~Arena() {
  if (mapping_ != nullptr) {
    munmap(mapping_, mapping_size_);
  }
}

void Arena::poison(std::size_t offset, std::size_t size) const {
  std::memset(data_ + offset, 0xff, size);
}

}  // namespace arenite
