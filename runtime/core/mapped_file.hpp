// A program file, read-only: its header checked, its weights mapped. Either all of it is in the
// caller's memory, or the program is a copy and the weights are mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "program_generated.h"

namespace arenite {

// The file is a head of 32 bytes, a FlatBuffer of program.fbs, and the weights:
//
//   0   "ARENITE" and byte 1A
//   8   version, 32 bits; checksum of all bytes from 16 to the weights, 32 bits
//   16  bytes of the program, 64 bits
//   24  offset of the weights, 64 bits, a multiple of the page
class MappedFile {
 public:
  static constexpr std::size_t kAlignment = 64;
  // Kernels may read so many bytes beyond the last constant.
  static constexpr std::size_t kSlack = 128;

  // Reads the program of an open file and maps the weights; the descriptor may be closed after.
  // The program is copied before it is checked. Writing over the file changes only weights;
  // cutting it short makes reads of them fail (SIGBUS).
  // Throws ProgramError or SystemError.
  explicit MappedFile(int descriptor);
  // Takes bytes that the caller has in memory, aligned to kAlignment, and keeps as they are
  // for as long as this lives. Throws ProgramError.
  MappedFile(const std::byte* data, std::size_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Verified as a FlatBuffer, but not validated (validation.hpp).
  const program::Program& program() const { return *program_; }
  const std::uint8_t* program_data() const { return head_ + kHeadSize; }
  std::size_t program_size() const { return program_size_; }
  const std::byte* weights() const {
    return reinterpret_cast<const std::byte*>(data_ + weights_offset_);
  }
  std::size_t weights_size() const { return size_ - weights_offset_; }

  // Reads the whole file and throws ProgramError unless its bytes have their checksums. The pages
  // of mapped weights are released.
  void check_bytes() const;

  // Releases the pages of these weights, and those that the system maps along with them; a later
  // access from any thread reads them from the file again. Memory of the caller and bytes outside
  // of the file stay.
  void release(const std::byte* begin, std::size_t size) const;

 private:
  static constexpr std::size_t kHeadSize = 32;

  void check_size() const;
  void check_head(const std::uint8_t* head);
  void check_program();

  std::unique_ptr<std::uint64_t[]> copy_;  // of head and program; null: they are the caller's
  const std::uint8_t* head_ = nullptr;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
  std::size_t program_size_ = 0;
  std::size_t weights_offset_ = 0;
  const program::Program* program_ = nullptr;
};

}  // namespace arenite
