#include "spill_file.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "errors.hpp"

namespace arenite {

namespace {

std::string folder() {
  const char* stated = std::getenv("TMPDIR");
  return stated == nullptr || *stated == '\0' ? "/tmp" : stated;
}

[[noreturn]] void fail(std::uint64_t size, int reason) {
  throw SystemError("no temporary file of " + std::to_string(size) + " B in " + folder() +
                    " for what is spilled: " + std::strerror(reason) +
                    "; TMPDIR names another folder");
}

int opened(std::uint64_t size) {
#ifdef O_TMPFILE
  const int unnamed = open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (unnamed >= 0) { return unnamed; }
#endif
  std::string path = folder() + "/arenite-spill-XXXXXX";  // where a file must have a name at first
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) { fail(size, errno); }
  unlink(path.c_str());
  return descriptor;
}

// Calls until all is done; returns 0 or an errno.
template <typename Call>
int all_of(std::uint64_t offset, std::size_t size, Call call) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t some = call(done, size - done, static_cast<off_t>(offset + done));
    if (some < 0 && errno == EINTR) { continue; }
    if (some <= 0) {
      return some < 0 ? errno : EIO;  // the file ends before its time
    }
    done += static_cast<std::size_t>(some);
  }
  return 0;
}

}  // namespace

SpillFile::SpillFile(std::uint64_t size) : descriptor_(opened(size)) {
  int reason = 0;
  if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    reason = EFBIG;
  } else if (size > 0) {
    reason = posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
  }
  if (reason != 0) {
    close(descriptor_);
    fail(size, reason);
  }
}

SpillFile::~SpillFile() { close(descriptor_); }

void SpillFile::write(std::uint64_t offset, const std::byte* data, std::size_t size) noexcept {
  const int reason =
      all_of(offset, size, [&](std::size_t begin, std::size_t count, off_t position) {
        return pwrite(descriptor_, data + begin, count, position);
      });
  if (reason != 0) { failure_ = reason; }
}

void SpillFile::read(std::uint64_t offset, std::byte* data, std::size_t size) noexcept {
  const int reason =
      all_of(offset, size, [&](std::size_t begin, std::size_t count, off_t position) {
        return pread(descriptor_, data + begin, count, position);
      });
  if (reason != 0) { failure_ = reason; }
}

void SpillFile::require_sound() {
  const int reason = failure_.exchange(0);
  if (reason != 0) {
    throw SpillError(std::string("the spill file could not be written or read: ") +
                     std::strerror(reason));
  }
}

}  // namespace arenite
