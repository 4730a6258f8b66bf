// Joins tensors row by row; one of them may lie at the start of the result.
#pragma once

#include <cstddef>
#include <vector>

namespace arenite {

// A row of the result is one row of each source, in order. The last row is made first, so that the
// rows of a source at the start of the result are read before they are written over.
class RowJoin {
 public:
  struct Source {
    const std::byte* data;
    std::size_t row;    // bytes of a row
    std::size_t begin;  // first byte in a row of the result
  };

  // Sizes in bytes. `sources[0]` alone may share bytes with the target, and begins where it does.
  RowJoin(std::vector<Source> sources, std::byte* target, std::size_t num_rows, std::size_t row);

  void run() const;
  std::size_t held_bytes() const { return sources_.capacity() * sizeof(Source); }

 private:
  std::vector<Source> sources_;
  std::byte* target_;
  std::size_t num_rows_;
  std::size_t row_;
};

}  // namespace arenite
