// Bytes of the heap that something holds, counted while it is made.
#pragma once

#include <cstdint>

namespace arenite {

// Counts what the thread takes from the heap and gives back, in the allocator's own sizes: by
// `new` in this library, and by XNNPACK.
class HeapAccount {
 public:
  // While it lives, the thread's account is this one; null: nobody's. They nest.
  class Scope {
   public:
    explicit Scope(HeapAccount* account);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    HeapAccount* outer_;
  };

  std::uint64_t bytes() const { return bytes_ > 0 ? static_cast<std::uint64_t>(bytes_) : 0; }

  // Count in the thread's account. Null is nothing; `taken` returns what it is given.
  static void* taken(void* memory);
  static void returned(void* memory);

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace arenite
