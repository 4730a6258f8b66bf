// A program file, read-only: its head checked, its weights mapped. All in the caller's memory, or
// the program a copy and the weights where the file has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "program_generated.h"

namespace arenite {

// The file is a head of 32 bytes, a FlatBuffer of program.fbs, and the weights:
//
//   0   "ARENITE" and byte 1A
//   8   version, 32 bits; 32 bits of zeros
//   16  bytes of the program, 64 bits
//   24  offset of the weights, 64 bits, a multiple of the page
class MappedFile {
 public:
  static constexpr std::size_t kAlignment = 64;
  // Behind the last constant, kernels may read this far.
  static constexpr std::size_t kSlack = 128;

  // Reads the program of an open file and maps the weights; the descriptor may be closed after.
  // What is checked is a copy: whoever writes over the file can change no offset or size, but
  // weights change with it, and where it is cut short they are gone (SIGBUS).
  // Throws ProgramError or SystemError.
  explicit MappedFile(int descriptor);
  // Takes bytes that the caller has in memory, aligned to kAlignment, and keeps as they are
  // for as long as this lives. Throws ProgramError.
  MappedFile(const std::byte* data, std::size_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Verified as a FlatBuffer; what it says is not.
  const program::Program& program() const { return *program_; }
  const std::uint8_t* program_data() const { return head_ + kHeadSize; }
  std::size_t program_size() const { return program_size_; }
  const std::byte* weights() const {
    return reinterpret_cast<const std::byte*>(data_ + weights_offset_);
  }
  std::size_t weights_size() const { return size_ - weights_offset_; }

  // Gives back the pages of these bytes of the weights, and those around that the system maps along
  // with them; they are read again from the file when touched, by whichever thread. Bytes of the
  // caller stay, and what is not of the file.
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
