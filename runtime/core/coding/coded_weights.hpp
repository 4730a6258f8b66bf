// Weights that share few values: a codebook, indices and positions.
//
// docs/program-file.md states the bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "coding/symbol_decoder.hpp"

namespace arenite {

class CodedWeights {
 public:
  // Reads the head of `size` bytes that stay where they are, and decodes once to see that the
  // rest is sound. Throws ProgramError that begins with `label`.
  CodedWeights(const std::byte* data, std::size_t size, std::size_t num_elements,
               const std::string& label, SymbolDecoder& decoder);

  // Whether there is an index for each element.
  bool is_plain() const { return layout_ == Layout::plain; }
  float value(std::uint8_t index) const { return codebook_[index]; }

  // Decodes into the buffer of the decoder and returns the indices. Allocates nothing.
  const std::uint8_t* decode() const;

  // Calls write(position, value) in the order of positions, after `decode`. Elements that are
  // left out are 0.
  template <typename Write>
  void visit(const Write& write) const {
    const std::uint8_t* indices = decoder_->buffer();
    const std::uint8_t* positions = indices + num_indices_;
    switch (layout_) {
      case Layout::plain:
        for (std::size_t i = 0; i < num_elements_; ++i) { write(i, codebook_[indices[i]]); }
        return;
      case Layout::mask: visit_mask(indices, positions, write); return;
      case Layout::gaps:
        for (std::size_t i = 0, at = 0; i < num_indices_; ++i, ++at) {
          at += positions[i];
          if (at >= num_elements_) { return; }
          write(at, codebook_[indices[i]]);
        }
        return;
    }
  }

 private:
  enum class Layout : std::uint8_t { plain = 0, mask = 1, gaps = 2 };

  // Bits are taken many at a time: how many are set in a byte cannot be predicted.
  template <typename Write>
  void visit_mask(const std::uint8_t* indices, const std::uint8_t* mask, const Write& write) const {
    std::size_t next = 0;
    for (std::size_t byte = 0; byte < num_positions_; byte += sizeof(std::uint64_t)) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, mask + byte, std::min(sizeof bits, num_positions_ - byte));
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t at = 8 * byte + static_cast<std::size_t>(__builtin_ctzll(bits));
        if (next == num_indices_ || at >= num_elements_) { return; }
        write(at, codebook_[indices[next++]]);
      }
    }
  }

  void check(const std::string& label) const;

  SymbolDecoder* decoder_;
  std::size_t num_elements_;
  Layout layout_ = Layout::plain;
  bool has_coded_indices_ = false;
  bool has_coded_positions_ = false;
  std::size_t num_indices_ = 0;
  std::size_t num_positions_ = 0;  // gaps, or bytes of the mask
  const std::byte* indices_ = nullptr;
  std::size_t indices_size_ = 0;
  const std::byte* positions_ = nullptr;
  std::size_t positions_size_ = 0;
  std::array<float, 256> codebook_{};  // as many as an index can name
};

}  // namespace arenite
