#include "coding/coded_weights.hpp"

#include <algorithm>
#include <cstring>

#include "errors.hpp"
#include "kernels/half.hpp"

namespace arenite {

namespace {

constexpr std::size_t kHeadSize = 16;
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMostElements = std::size_t{1} << 30;
constexpr unsigned kHalf = 1;
constexpr unsigned kCodedIndices = 2;
constexpr unsigned kCodedPositions = 4;

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Where nothing is to be copied there may be no buffer, which memcpy does not take.
void copy(std::uint8_t* to, const std::byte* from, std::size_t count) {
  if (count != 0) { std::memcpy(to, from, count); }
}

[[noreturn]] void refuse(const std::string& label, const char* reason) {
  throw ProgramError(label + " has coded weights that are damaged: " + reason);
}

}  // namespace

CodedWeights::CodedWeights(const std::byte* data, std::size_t size, std::size_t num_elements,
                           const std::string& label, SymbolDecoder& decoder)
    : decoder_(&decoder), num_elements_(num_elements) {
  if (size < kHeadSize || num_elements > kMostElements) {
    refuse(label, "they are truncated, or too many");
  }
  if (read<std::uint8_t>(data) != kVersion) { refuse(label, "they are of another version"); }
  const auto layout = read<std::uint8_t>(data + 1);
  const unsigned flags = read<std::uint8_t>(data + 3);
  const std::size_t num_values = read<std::uint16_t>(data + 4);
  num_indices_ = read<std::uint32_t>(data + 8);
  indices_size_ = read<std::uint32_t>(data + 12);
  if (layout > static_cast<std::uint8_t>(Layout::gaps) || num_values == 0 ||
      num_values > codebook_.size() || num_indices_ > num_elements) {
    refuse(label, "their header is invalid");
  }
  layout_ = static_cast<Layout>(layout);
  const std::size_t width = (flags & kHalf) != 0 ? 2 : 4;
  const std::size_t start = kHeadSize + num_values * width;
  if (size < start || size - start < indices_size_) { refuse(label, "they are truncated"); }
  for (std::size_t i = 0; i < num_values; ++i) {
    const std::byte* from = data + kHeadSize + i * width;
    codebook_[i] = width == 2 ? widened(Half{read<std::uint16_t>(from)}) : read<float>(from);
  }
  has_coded_indices_ = (flags & kCodedIndices) != 0;
  has_coded_positions_ = (flags & kCodedPositions) != 0;
  indices_ = data + start;
  positions_ = indices_ + indices_size_;
  positions_size_ = size - start - indices_size_;
  switch (layout_) {
    case Layout::plain: num_positions_ = 0; break;
    case Layout::mask: num_positions_ = (num_elements + 7) / 8; break;
    case Layout::gaps: num_positions_ = num_indices_; break;
  }
  if ((layout_ == Layout::plain && num_indices_ != num_elements) ||
      (!has_coded_indices_ && indices_size_ != num_indices_) ||
      (!has_coded_positions_ && positions_size_ != num_positions_)) {
    refuse(label, "their number differs from the number of elements");
  }
  decoder_->reserve(num_indices_ + num_positions_);
  check(label);
}

// What is decoded in a run is what was sound here; a run itself never writes outside.
void CodedWeights::check(const std::string& label) const {
  std::uint8_t* symbols = decoder_->buffer();
  if ((has_coded_indices_ && !decoder_->decode(indices_, indices_size_, symbols, num_indices_)) ||
      (has_coded_positions_ &&
       !decoder_->decode(positions_, positions_size_, symbols + num_indices_, num_positions_))) {
    refuse(label, "their Huffman code is invalid");
  }
}

const std::uint8_t* CodedWeights::decode() const {
  std::uint8_t* indices = decoder_->buffer();
  std::uint8_t* positions = indices + num_indices_;
  if (!has_coded_indices_) {
    copy(indices, indices_, num_indices_);
  } else if (!decoder_->decode(indices_, indices_size_, indices, num_indices_)) {
    std::fill_n(indices, num_indices_, std::uint8_t{0});  // the file changed while it was mapped
  }
  if (!has_coded_positions_) {
    copy(positions, positions_, num_positions_);
  } else if (!decoder_->decode(positions_, positions_size_, positions, num_positions_)) {
    std::fill_n(positions, num_positions_, std::uint8_t{0});
  }
  return indices;
}

}  // namespace arenite
