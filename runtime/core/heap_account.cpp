#include "heap_account.hpp"

#include <cstdlib>
#include <functional>
#include <new>
#include <unordered_map>
#include <utility>

namespace arenite {

namespace {

// Takes memory that is not itself counted.
template <typename T>
struct Uncounted {
  using value_type = T;

  Uncounted() = default;
  template <typename Other>
  Uncounted(const Uncounted<Other>&) {}

  T* allocate(std::size_t count) {
    if (void* memory = std::malloc(count * sizeof(T))) {
      return static_cast<T*>(memory);
    }
    throw std::bad_alloc();
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  friend bool operator==(const Uncounted&, const Uncounted&) { return true; }
  friend bool operator!=(const Uncounted&, const Uncounted&) { return false; }
};

struct Debt {
  std::uint64_t* bytes;
  std::size_t size;
};

// What was taken and not yet given back.
using Ledger = std::unordered_map<void*, Debt, std::hash<void*>, std::equal_to<void*>,
                                  Uncounted<std::pair<void* const, Debt>>>;

thread_local HeapAccount* current = nullptr;
thread_local std::size_t depth = 0;
thread_local Ledger ledger;

}  // namespace

HeapAccount::Scope::Scope(HeapAccount* account) : outer_account_(current) {
  current = account;
  ++depth;
}

HeapAccount::Scope::~Scope() {
  current = outer_account_;
  if (--depth == 0) {
    Ledger().swap(ledger);
  }
}

void* HeapAccount::taken(void* memory, std::size_t size) {
  returned(memory);  // what lay there before, where somebody else gave it back
  if (current != nullptr && memory != nullptr) {
    ledger[memory] = {&current->bytes_, size};
    current->bytes_ += size;
  }
  return memory;
}

void HeapAccount::returned(void* memory) {
  if (depth == 0) {
    return;
  }
  const auto found = ledger.find(memory);
  if (found != ledger.end()) {
    *found->second.bytes -= found->second.size;
    ledger.erase(found);
  }
}

}  // namespace arenite

// What this library calls `new` and `delete`. The linker leads its calls here (CMakeLists.txt), and
// from here on to the process's own: memory passes between this library, the C++ library and
// whoever replaced them for all.
#if __SIZEOF_SIZE_T__ == 8
#define ARENITE_SIZE "m"
#else
#define ARENITE_SIZE "j"
#endif

extern "C" {

void* arenite_real_new(std::size_t size) __asm__("__real__Znw" ARENITE_SIZE);
void* arenite_real_new_array(std::size_t size) __asm__("__real__Zna" ARENITE_SIZE);
void arenite_real_delete(void* memory) __asm__("__real__ZdlPv");
void arenite_real_delete_sized(void* memory, std::size_t) __asm__("__real__ZdlPv" ARENITE_SIZE);
void arenite_real_delete_array(void* memory) __asm__("__real__ZdaPv");

void* arenite_new(std::size_t size) __asm__("__wrap__Znw" ARENITE_SIZE);
void* arenite_new_array(std::size_t size) __asm__("__wrap__Zna" ARENITE_SIZE);
void arenite_delete(void* memory) __asm__("__wrap__ZdlPv");
void arenite_delete_sized(void* memory, std::size_t) __asm__("__wrap__ZdlPv" ARENITE_SIZE);
void arenite_delete_array(void* memory) __asm__("__wrap__ZdaPv");

void* arenite_new(std::size_t size) {
  return arenite::HeapAccount::taken(arenite_real_new(size), size);
}

void* arenite_new_array(std::size_t size) {
  return arenite::HeapAccount::taken(arenite_real_new_array(size), size);
}

void arenite_delete(void* memory) {
  arenite::HeapAccount::returned(memory);
  arenite_real_delete(memory);
}

void arenite_delete_sized(void* memory, std::size_t size) {
  arenite::HeapAccount::returned(memory);
  arenite_real_delete_sized(memory, size);
}

void arenite_delete_array(void* memory) {
  arenite::HeapAccount::returned(memory);
  arenite_real_delete_array(memory);
}

}  // extern "C"
