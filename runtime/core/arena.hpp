// A memory that a plan is laid over.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

// Memory of the caller; the library takes its own where `data` is null.
struct Buffer {
  std::byte* data = nullptr;
  std::size_t size = 0;
};

class Arena {
 public:
  // Behind the end, kernels may read this far.
  static constexpr std::size_t kSlack = 128;
  // Kernels expect no less, whatever a program asks for.
  static constexpr std::size_t kMinAlignment = 64;
  static constexpr std::size_t kMaxAlignment = 4096;

  // No memory: what lies in it is elsewhere.
  Arena() = default;
  // Maps memory of its own, zeros, with `guard` between pages that cannot be touched; or uses the
  // caller's, size + kSlack bytes at `alignment`, at least kMinAlignment. Throws SystemError.
  Arena(std::size_t size, std::size_t alignment, bool guard, Buffer buffer);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void map(std::size_t alignment, bool guard);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  void* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
};

}  // namespace arenite
