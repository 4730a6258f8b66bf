#include "mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "errors.hpp"

namespace arenite {

namespace {

constexpr char kMagic[8] = {'A', 'R', 'E', 'N', 'I', 'T', 'E', '\x1a'};
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kPage = 4096;
constexpr int kMaxDepth = 16;
constexpr int kMaxTables = 4'000'000;

template <typename T>
T read(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

MappedFile::MappedFile(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw ProgramError("this is not a regular file; give a file that `arenite build` made");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  check_size();
  void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapped == MAP_FAILED) {
    throw SystemError(std::string("the file cannot be mapped: ") + std::strerror(errno));
  }
  data_ = static_cast<const std::uint8_t*>(mapped);
  is_mapped_ = true;
  try {
    check();
  } catch (...) {
    munmap(mapped, size_);
    throw;
  }
}

MappedFile::MappedFile(const std::byte* data, std::size_t size)
    : data_(reinterpret_cast<const std::uint8_t*>(data)), size_(size) {
  if (reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0) {
    throw ProgramError("the bytes of the file are not aligned to " + std::to_string(kAlignment) +
                       " B");
  }
  check_size();
  check();
}

MappedFile::~MappedFile() {
  if (is_mapped_) {
    munmap(const_cast<std::uint8_t*>(data_), size_);
  }
}

void MappedFile::check_size() const {
  if (size_ < kHeadSize) {
    throw ProgramError("the file has " + std::to_string(size_) + " B; a program has at least " +
                       std::to_string(kHeadSize));
  }
}

void MappedFile::check() {
  if (std::memcmp(data_, kMagic, sizeof kMagic) != 0) {
    throw ProgramError("this is not a program file; make one with `arenite build`");
  }
  const auto version = read<std::uint32_t>(data_ + 8);
  if (version != kVersion) {
    throw VersionError("the file is of version " + std::to_string(version) +
                       "; this runtime reads version " + std::to_string(kVersion) +
                       ": build the program again");
  }
  const auto program_size = read<std::uint64_t>(data_ + 16);
  const auto weights_offset = read<std::uint64_t>(data_ + 24);
  if (program_size > size_ - kHeadSize || weights_offset > size_ ||
      weights_offset < kHeadSize + program_size || weights_offset % kPage != 0) {
    throw ProgramError("the file is truncated or damaged: its program has " +
                       std::to_string(program_size) + " B, its weights begin at byte " +
                       std::to_string(weights_offset) + " of " + std::to_string(size_));
  }
  program_size_ = static_cast<std::size_t>(program_size);
  weights_offset_ = static_cast<std::size_t>(weights_offset);
  flatbuffers::Verifier verifier(program_data(), program_size_, kMaxDepth, kMaxTables);
  if (program_size_ < 8 || !program::ProgramBufferHasIdentifier(program_data()) ||
      !program::VerifyProgramBuffer(verifier)) {
    throw ProgramError("the program is damaged: an offset leads outside it");
  }
  program_ = program::GetProgram(program_data());
  if (program_->weights_size() != weights_size()) {
    throw ProgramError("the weights have " + std::to_string(weights_size()) +
                       " B; the program expects " + std::to_string(program_->weights_size()));
  }
}

void MappedFile::release(const std::byte* begin, std::size_t size) const {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(begin);
  if (!is_mapped_ || bytes < data_ || bytes >= data_ + size_) {
    return;
  }
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto from = (first + kPage - 1) / kPage * kPage;
  const auto to = (first + size) / kPage * kPage;
  if (from < to) {
    madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
  }
}

}  // namespace arenite
