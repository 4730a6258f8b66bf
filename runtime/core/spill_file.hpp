// A memory in a temporary file, for spilled tensors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace arenite {

// One thread at a time writes and reads; any thread may ask for failures.
class SpillFile {
 public:
  // Makes a file without a name in $TMPDIR or /tmp, and takes its bytes on the device, so that
  // none are missing in a run. Throws SystemError.
  explicit SpillFile(std::uint64_t size);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Copies bytes to the file, and back. Allocates nothing and does not throw; what a device could
  // not do is kept for `require_sound`.
  void write(std::uint64_t offset, const std::byte* data, std::size_t size) noexcept;
  void read(std::uint64_t offset, std::byte* data, std::size_t size) noexcept;

  // Throws SpillError if bytes could not be written or read since the last call.
  void require_sound();

 private:
  int descriptor_;
  std::atomic<int> failure_{0};  // an errno
};

}  // namespace arenite
