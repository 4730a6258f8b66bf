#include "mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "checksum.hpp"
#include "errors.hpp"

namespace arenite {

namespace {

constexpr char kMagic[8] = {'A', 'R', 'E', 'N', 'I', 'T', 'E', '\x1a'};
constexpr std::uint32_t kVersion = 6;
constexpr std::size_t kChecksum = 12;  // where the head has that of the program
constexpr std::size_t kChecked = 16;   // where that begins
constexpr std::size_t kPage = 4096;
// Where one page of a file is read, Linux maps what else it has there: so many bytes, so aligned.
constexpr std::size_t kMappedAlong = 65'536;
constexpr std::size_t kCheckedAtOnce = 1 << 20;
constexpr int kMaxDepth = 16;
constexpr int kMaxTables = 4'000'000;

template <typename T>
T read(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Reads the first bytes of a file.
void read_file(int descriptor, void* to, std::size_t size) {
  auto* target = static_cast<std::uint8_t*>(to);
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = pread(descriptor, target + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) { continue; }
    if (count < 0) {
      throw SystemError(std::string("the file cannot be read: ") + std::strerror(errno));
    }
    if (count == 0) { throw ProgramError("the file was cut short while it was read"); }
    done += static_cast<std::size_t>(count);
  }
}

std::unique_ptr<std::uint64_t[]> room_for(std::size_t size) {
  std::unique_ptr<std::uint64_t[]> room(new (std::nothrow) std::uint64_t[(size + 7) / 8]);
  if (room == nullptr) { throw SystemError("no memory for the program"); }
  return room;
}

}  // namespace

MappedFile::MappedFile(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw ProgramError("this is not a regular file; give a file that `arenite build` made");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  check_size();
  std::uint8_t head[kHeadSize];
  read_file(descriptor, head, kHeadSize);
  check_head(head);
  const std::size_t copied = kHeadSize + program_size_;
  copy_ = room_for(copied);
  read_file(descriptor, copy_.get(), copied);
  std::memcpy(copy_.get(), head, kHeadSize);  // as it was checked
  head_ = reinterpret_cast<const std::uint8_t*>(copy_.get());
  check_program();
  void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapped == MAP_FAILED) {
    throw SystemError(std::string("the file cannot be mapped: ") + std::strerror(errno));
  }
  data_ = static_cast<const std::uint8_t*>(mapped);
  is_mapped_ = true;
}

MappedFile::MappedFile(const std::byte* data, std::size_t size)
    : head_(reinterpret_cast<const std::uint8_t*>(data)), data_(head_), size_(size) {
  if (reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0) {
    throw ProgramError("the bytes of the file are not aligned to " + std::to_string(kAlignment) +
                       " B");
  }
  check_size();
  check_head(head_);
  check_program();
}

MappedFile::~MappedFile() {
  if (is_mapped_) { munmap(const_cast<std::uint8_t*>(data_), size_); }
}

void MappedFile::check_size() const {
  if (size_ < kHeadSize) {
    throw ProgramError("the file has " + std::to_string(size_) + " B; a program has at least " +
                       std::to_string(kHeadSize));
  }
}

void MappedFile::check_head(const std::uint8_t* head) {
  if (std::memcmp(head, kMagic, sizeof kMagic) != 0) {
    throw ProgramError("this is not a program file; make one with `arenite build`");
  }
  const auto version = read<std::uint32_t>(head + 8);
  if (version != kVersion) {
    throw VersionError("the file is of version " + std::to_string(version) +
                       "; this runtime reads version " + std::to_string(kVersion) +
                       ": build the program again");
  }
  const auto program_size = read<std::uint64_t>(head + 16);
  const auto weights_offset = read<std::uint64_t>(head + 24);
  if (program_size > size_ - kHeadSize || weights_offset > size_ ||
      weights_offset < kHeadSize + program_size || weights_offset % kPage != 0) {
    throw ProgramError("the file is truncated or damaged: its program has " +
                       std::to_string(program_size) + " B, its weights begin at byte " +
                       std::to_string(weights_offset) + " of " + std::to_string(size_));
  }
  program_size_ = static_cast<std::size_t>(program_size);
  weights_offset_ = static_cast<std::size_t>(weights_offset);
  if (program_size_ < 8 || program_size_ >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    throw ProgramError("the program is damaged: it has " + std::to_string(program_size_) + " B");
  }
}

void MappedFile::check_program() {
  flatbuffers::Verifier verifier(program_data(), program_size_, kMaxDepth, kMaxTables);
  if (!program::ProgramBufferHasIdentifier(program_data()) ||
      !program::VerifyProgramBuffer(verifier)) {
    throw ProgramError("the program is damaged: an offset leads outside it");
  }
  program_ = program::GetProgram(program_data());
  if (program_->weights_size() != weights_size()) {
    throw ProgramError("the weights have " + std::to_string(weights_size()) +
                       " B; the program expects " + std::to_string(program_->weights_size()));
  }
}

void MappedFile::check_bytes() const {
  const auto refuse = [](const std::string& part) {
    throw ProgramError("the " + part + " damaged: the bytes do not have their checksum; copy or " +
                       "build the file again");
  };
  const std::size_t end = kHeadSize + program_size_;
  const std::uint32_t found = crc32(0, head_ + kChecked, end - kChecked);
  if (crc32(found, data_ + end, weights_offset_ - end) != read<std::uint32_t>(head_ + kChecksum)) {
    refuse("program is");
  }
  std::uint32_t of_weights = 0;
  for (std::size_t begin = weights_offset_; begin < size_; begin += kCheckedAtOnce) {
    const std::size_t size = std::min(kCheckedAtOnce, size_ - begin);
    of_weights = crc32(of_weights, data_ + begin, size);
    release(reinterpret_cast<const std::byte*>(data_ + begin), size);
  }
  if (of_weights != program_->weights_checksum()) { refuse("weights are"); }
}

void MappedFile::release(const std::byte* begin, std::size_t size) const {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(begin);
  if (!is_mapped_ || bytes < data_ || bytes >= data_ + size_) { return; }
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto start = reinterpret_cast<std::uintptr_t>(data_);
  const auto from = std::max(start, first / kMappedAlong * kMappedAlong);
  const auto to = std::min((start + size_) / kPage * kPage,
                           (first + size + kMappedAlong - 1) / kMappedAlong * kMappedAlong);
  if (from < to) { madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED); }
}

}  // namespace arenite
