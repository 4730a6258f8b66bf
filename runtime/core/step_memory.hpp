// Memory of steps that are made again when sizes change: taken once, so that nothing is allocated.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace arenite {

// A stretch of bytes for one step and its lists. While a `Use` of it lives on a thread, memory of
// steps comes from it; what does not fit it, and all memory outside of a `Use`, from the heap.
class StepMemory {
 public:
  class Use {
   public:
    explicit Use(StepMemory& memory) : before_(current) { current = &memory; }
    ~Use() { current = before_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    StepMemory* before_;
  };

  // Gives it other bytes, aligned to kAlignment; none of it may be in use.
  void place(std::byte* begin, std::size_t size) {
    begin_ = top_ = begin;
    end_ = begin + size;
    taken_ = 0;
  }
  // Forgets all that was taken, once it is out of use.
  void restart() {
    top_ = begin_;
    taken_ = 0;
  }
  // Bytes taken since the last restart, from the heap too and without those given back.
  std::size_t taken() const { return taken_; }

  static void* take(std::size_t size, std::size_t alignment);
  static void give_back(void* data, std::size_t alignment) noexcept;

  static constexpr std::size_t kAlignment = 64;

 private:
  static thread_local StepMemory* current;

  std::byte* begin_ = nullptr;
  std::byte* top_ = nullptr;
  std::byte* end_ = nullptr;
  std::size_t taken_ = 0;
};

// What is made with `new` while a step is made.
struct InStepMemory {
  static void* operator new(std::size_t size) {
    return StepMemory::take(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  }
  static void* operator new(std::size_t size, std::align_val_t alignment) {
    return StepMemory::take(size, static_cast<std::size_t>(alignment));
  }
  static void operator delete(void* data) {
    StepMemory::give_back(data, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  }
  static void operator delete(void* data, std::align_val_t alignment) {
    StepMemory::give_back(data, static_cast<std::size_t>(alignment));
  }
};

template <typename T>
struct StepAllocator {
  using value_type = T;

  StepAllocator() = default;
  template <typename U>
  StepAllocator(const StepAllocator<U>& /*other*/) {}  // NOLINT: converts as all allocators do

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) { throw std::bad_array_new_length(); }
    return static_cast<T*>(StepMemory::take(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* data, std::size_t /*count*/) noexcept {
    StepMemory::give_back(data, alignof(T));
  }

  template <typename U>
  bool operator==(const StepAllocator<U>& /*other*/) const {
    return true;
  }
  template <typename U>
  bool operator!=(const StepAllocator<U>& /*other*/) const {
    return false;
  }
};

// A list that a step holds, or that lives while it is made.
template <typename T>
using StepVector = std::vector<T, StepAllocator<T>>;

// What a step computes from its constants alone, and finds again when it is made for other sizes.
class KeptTables {
 public:
  // Returns the table of this type if there is one that fits, otherwise the one that is made.
  template <typename T, typename Fits, typename Make>
  std::shared_ptr<const T> find(const Fits& fits, const Make& make) {
    static const char tag = 0;
    for (auto& [kind, table] : tables_) {
      if (kind != &tag) { continue; }
      auto found = std::static_pointer_cast<const T>(table);
      if (!fits(*found)) { table = found = std::make_shared<const T>(make()); }
      return found;
    }
    auto made = std::make_shared<const T>(make());
    tables_.emplace_back(&tag, made);
    return made;
  }

 private:
  std::vector<std::pair<const char*, std::shared_ptr<const void>>> tables_;
};

}  // namespace arenite
