// One memory of a plan, at an address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

// Memory of the caller; if `data` is null, the library allocates its own.
struct Buffer {
  std::byte* data = nullptr;
  std::size_t size = 0;
};

class Arena {
 public:
  // Kernels may read so many bytes beyond the end.
  static constexpr std::size_t kSlack = 128;
  // The least alignment that kernels expect.
  static constexpr std::size_t kMinAlignment = 64;
  static constexpr std::size_t kMaxAlignment = 4096;

  // An arena without memory, for tensors in a file.
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
