// Bytes of the heap that something holds, counted while it is made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

// Counts what the thread takes from the heap and gives back, in the sizes that were asked for: by
// `new` in this library, and by XNNPACK. Not counted is what the C++ library takes for itself, long
// texts above all.
class HeapAccount {
 public:
  // While it lives, what the thread takes is put down to this account; null: to nobody's. They
  // nest. What is given back comes off the account it was put down to, while the outermost lives.
  class Scope {
   public:
    explicit Scope(HeapAccount* account);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    HeapAccount* outer_account_;
  };

  std::uint64_t bytes() const { return bytes_; }

  // Null is nothing; `taken` returns the memory that it is given.
  static void* taken(void* memory, std::size_t size);
  static void returned(void* memory);

 private:
  std::uint64_t bytes_ = 0;
};

}  // namespace arenite
