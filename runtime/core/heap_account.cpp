#include "heap_account.hpp"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace arenite {

namespace {

thread_local HeapAccount* current = nullptr;

}  // namespace

HeapAccount::Scope::Scope(HeapAccount* account) : outer_(current) { current = account; }

HeapAccount::Scope::~Scope() { current = outer_; }

void* HeapAccount::taken(void* memory) {
  if (current != nullptr && memory != nullptr) {
    current->bytes_ += static_cast<std::int64_t>(malloc_usable_size(memory));
  }
  return memory;
}

void HeapAccount::returned(void* memory) {
  if (current != nullptr && memory != nullptr) {
    current->bytes_ -= static_cast<std::int64_t>(malloc_usable_size(memory));
  }
}

}  // namespace arenite

// `new` of this library alone: what links it keeps these names to itself. They take from malloc as
// those of the C++ library do, so memory may pass from one to the other. The address sanitizer's
// own tell more, and stay.
#ifndef __SANITIZE_ADDRESS__

void* operator new(std::size_t size) {
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return arenite::HeapAccount::taken(memory);
}

void* operator new[](std::size_t size) { return operator new(size); }

void operator delete(void* memory) noexcept {
  arenite::HeapAccount::returned(memory);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

void operator delete[](void* memory) noexcept { operator delete(memory); }

void operator delete[](void* memory, std::size_t) noexcept { operator delete(memory); }

#endif
