// The memory that a plan is laid over.
#pragma once

#include <cstddef>

namespace arenite {

class Arena {
 public:
  // Behind the end, kernels may read this far.
  static constexpr std::size_t kSlack = 128;

  // Maps memory of its own, zeros, with `guard` between pages that cannot be touched; or
  // uses the caller's, size + kSlack bytes aligned to 64. Throws SystemError.
  Arena(std::size_t size, bool guard, std::byte* memory = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Fills bytes with 1s: NaN for every floating-point type.
  void poison(std::size_t offset, std::size_t size) const;

 private:
  void map(bool guard);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  void* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
};

}  // namespace arenite
