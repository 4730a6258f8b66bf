// Numbers of steps that depend on sizes, and copies of steps in which they can be written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program_generated.h"

namespace arenite {

// A number of a step's operator, in a FlatBuffer.
class StatedNumber {
 public:
  // Throws ProgramError if the step has no such number (program.fbs, SizedNumber).
  StatedNumber(const program::Step& step, std::uint32_t number);

  // Whether it is the number of rows before the first.
  bool is_padding_above() const { return is_padding_above_; }
  std::int64_t read() const {
    return kind_ == Kind::extent ? flatbuffers::ReadScalar<std::uint32_t>(place_)
                                 : flatbuffers::ReadScalar<std::int64_t>(place_);
  }
  // Of a copy of the step that nobody else reads. Throws ProgramError if the number does not fit.
  void write(std::int64_t value) const;

 private:
  enum class Kind { lengths, strides, extent };

  Kind kind_ = Kind::lengths;
  const std::uint8_t* place_ = nullptr;
  bool is_padding_above_ = false;
};

// Returns a step of its own, whose numbers share no bytes with anything else, whatever the file
// has.
flatbuffers::DetachedBuffer copied_step(const program::Step& step);

// Bytes of such a copy, about, or more than `most`. Parts of a file may be those of many steps.
std::size_t copied_bytes(const program::Step& step, std::size_t most);

}  // namespace arenite
